-- How far a release has come: 'started'; 'written' when its file is whole and audited and is about to be moved
-- into place; 'published'. A table in this very file is published in the transaction that makes it.
ALTER TABLE ldiv.run ADD COLUMN status VARCHAR DEFAULT 'published';
