"""Pictures of numbers as SVG: small, without scripts, the same bytes for the same numbers. They know no privacy."""
