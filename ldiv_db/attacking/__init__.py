"""What an attacker learns from any published table, and from people that he knows in it."""
