"""The evidence on a release as one document, and as a page for the person who signs it."""
