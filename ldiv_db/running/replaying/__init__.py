"""Replay of a release: the program run again on other assignments of its sensitive values to its rows."""
