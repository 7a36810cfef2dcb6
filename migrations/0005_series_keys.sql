-- Which column tells rows apart over time, and how its values are written before they are hashed ('integer', 'text', or
-- a type of SQL): NULL for a series that was begun before this was noted, until its next release.
ALTER TABLE ldiv.series ADD COLUMN key_name VARCHAR;
ALTER TABLE ldiv.series ADD COLUMN key_kind VARCHAR;
