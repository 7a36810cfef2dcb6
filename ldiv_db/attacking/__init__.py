"""Attacks on any published table: what it tells an attacker, alone and with people whom they know."""
