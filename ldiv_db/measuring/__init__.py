"""The loss of any published table against its source, and the error of queries on it."""
