"""How results, audits, profiles, attacks and plans look in a notebook, and as frames."""
