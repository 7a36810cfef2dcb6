-- Of a run that published several tables against who knows one row of a person: the names of those in which everybody had
-- one row, as a list in JSON. Whose classes others are judged in hangs on them. NULL for other runs, and what was made before.
ALTER TABLE ldiv.run ADD COLUMN tables_of_people VARCHAR;
