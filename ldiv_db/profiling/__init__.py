"""How identifying a table is, and a policy to start from."""
