"""Publication: destinations, drafts, one protocol that is whole or not at all, the ledger, series and their check."""
