-- Releases of a table over time. A series is all releases under one target; its secret goes before every key that is
-- hashed, so that hashes cannot be compared with those of other series, or be guessed from keys alone.
CREATE TABLE ldiv.series (
    series VARCHAR PRIMARY KEY,
    secret VARCHAR NOT NULL,
    algorithm VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- 'started', 'written', 'published' as in ldiv.run. `report` is what the release's command printed, as JSON.
CREATE TABLE ldiv.release (
    series VARCHAR NOT NULL,
    release INTEGER NOT NULL,
    status VARCHAR NOT NULL,
    released_at TIMESTAMPTZ NOT NULL,
    report VARCHAR NOT NULL,
    PRIMARY KEY (series, release)
);

-- The groups that a release formed; they stay as they are in all later ones.
CREATE TABLE ldiv.release_group (
    series VARCHAR NOT NULL,
    release INTEGER NOT NULL,
    group_id BIGINT NOT NULL,
    rows BIGINT NOT NULL
);

-- What happened to a key: kept back for the first time (no group), or published in a group after so many releases.
-- `values_hash` is of the key with its sensitive values, to notice that these have changed.
CREATE TABLE ldiv.release_member (
    series VARCHAR NOT NULL,
    release INTEGER NOT NULL,
    key_hash VARCHAR NOT NULL,
    group_id BIGINT,
    waited INTEGER NOT NULL,
    values_hash VARCHAR NOT NULL
);
