"""The database: the engine, templates, what a file or catalog holds, errors. Nothing here knows of privacy."""
