"""Several tables a release, releases over time, their ledger and the inference check."""
