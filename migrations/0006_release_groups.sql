-- By which method the groups of a decomposition's release were formed: 'coins'; NULL for a release made before this was
-- noted, whose groups were filled and numbered in the order of the quasi-identifiers, and for classes of one table.
ALTER TABLE ldiv.release ADD COLUMN grouped_by VARCHAR;
