"""Whether any table meets its requirements, in SQL of its own: what makes a release shares no template with it."""
