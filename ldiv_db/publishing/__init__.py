"""Where a release goes and how it gets there whole or not at all; its ledger, series and the inference check of these."""
