"""Taxonomies: trees whose nodes are intervals of leaf numbers, and what they are read from."""
