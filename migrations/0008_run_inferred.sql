-- How quasi-identifiers generalise of which the run's policy did not say it: a JSON list of column, as, why. NULL for what
-- was made before; releases of a series have it in their report.
ALTER TABLE ldiv.run ADD COLUMN inferred VARCHAR;
