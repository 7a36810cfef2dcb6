"""Priced: classes of rows that lose least at the prices by which the bound on losses is proved, and moves after that.

Guarantee: every class has what its requirements ask for, all rows keep a class, and no step costs more. For
requirements that ask for rows and different values of one attribute alone. Works in arrays of codes and counts.
"""
