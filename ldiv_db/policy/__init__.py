"""Policies as they are written, and as they are held against their sources (`resolve`)."""
