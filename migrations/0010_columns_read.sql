-- The columns of the source that a run read, as a list in JSON: by them a later run under another policy finds out that
-- the rows are the same. NULL for what was made before. The status of a run may be 'withdrawn' from here on: its release
-- was never handed out.
ALTER TABLE ldiv.run_secret ADD COLUMN columns_read VARCHAR;
