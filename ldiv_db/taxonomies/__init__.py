"""taxonomies."""
