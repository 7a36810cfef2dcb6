"""Solving: an algorithm is chosen, the table is divided, classes are made and improved."""
