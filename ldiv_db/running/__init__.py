"""A run from its policy to its result: plan, estimate, rehearsal, and the next release of a series."""
