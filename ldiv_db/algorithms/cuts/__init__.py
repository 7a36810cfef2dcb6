"""cuts."""
