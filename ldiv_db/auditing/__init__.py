"""Audits of any table against its requirements: classes counted anew by templates of its own, and a second reading."""
