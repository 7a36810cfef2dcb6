"""Where a release goes, how it gets there whole or not at all; the ledger, series and their inference check."""
