"""auditing."""
