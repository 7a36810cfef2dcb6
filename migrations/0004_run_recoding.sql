-- What a run that publishes a value alike in all rows made of it, so that the recoding can be written as SQL: labels
-- and what stands under them in taxonomies, no row. `scheme` says what is suppressed where a class violates.
CREATE TABLE ldiv.run_recoding (
    run_id VARCHAR PRIMARY KEY,
    scheme VARCHAR NOT NULL
);

-- The columns of the release, in order; `role` is quasi-identifier, sensitive or keep, `nulls` whether NULL is a value.
CREATE TABLE ldiv.run_column (
    run_id VARCHAR NOT NULL,
    place INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    nulls BOOLEAN NOT NULL,
    PRIMARY KEY (run_id, place)
);

-- What has which label: `value` low; `range` of numbers or `dates`, low <= v < high; `prefix` low, and longer; `any`
-- but NULL; `null`.
CREATE TABLE ldiv.run_rule (
    run_id VARCHAR NOT NULL,
    place INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    low VARCHAR,
    high VARCHAR,
    label VARCHAR,
    PRIMARY KEY (run_id, place, number)
);
