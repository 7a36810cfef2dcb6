-- What is to be kept as secret as the source stands in tables of its own, which take grants of their own: who may read what
-- was published need not be able to make it again. `seed` is what a run drew by. `rows_hash` and `policy_hash` are of the
-- source's rows, and of the policy with the program's version, keyed with `hash_key`: by them a later run finds out that it
-- has the same to publish. They are NULL for what was made before.
CREATE TABLE ldiv.run_secret (
    run_id VARCHAR PRIMARY KEY,
    seed VARCHAR NOT NULL,
    hash_key VARCHAR,
    rows_hash VARCHAR,
    policy_hash VARCHAR
);
INSERT INTO ldiv.run_secret (run_id, seed) SELECT run_id, seed FROM ldiv.run WHERE seed IS NOT NULL;
ALTER TABLE ldiv.run DROP COLUMN seed;

-- The secret of a series goes before every key that is hashed; of a release the seed that its groups were drawn by.
CREATE TABLE ldiv.series_secret (
    series VARCHAR PRIMARY KEY,
    secret VARCHAR NOT NULL
);
INSERT INTO ldiv.series_secret (series, secret) SELECT series, secret FROM ldiv.series;
ALTER TABLE ldiv.series DROP COLUMN secret;

CREATE TABLE ldiv.release_secret (
    series VARCHAR NOT NULL,
    release INTEGER NOT NULL,
    seed VARCHAR NOT NULL,
    PRIMARY KEY (series, release)
);
INSERT INTO ldiv.release_secret (series, release, seed)
SELECT n.series, n.release, n.seed
FROM (
    SELECT series, release, coalesce(seed, nullif(regexp_extract(report, '"seed": ([0-9]+), ', 1), '')) AS seed FROM ldiv.release
) AS n
WHERE n.seed IS NOT NULL;
ALTER TABLE ldiv.release DROP COLUMN seed;
UPDATE ldiv.release SET report = regexp_replace(report, '"seed": [0-9]+, ', '');
