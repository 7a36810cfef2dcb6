-- The seed that a run drew by: with source, policy and seed anybody makes the same release again, so that it is to be kept
-- as secret as the source. As text, for it has more digits than an integer of SQL may have; NULL for what was made before.
ALTER TABLE ldiv.run ADD COLUMN seed VARCHAR;
ALTER TABLE ldiv.release ADD COLUMN seed VARCHAR;
