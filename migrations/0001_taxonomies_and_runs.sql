-- Taxonomies: every node with its interval of leaf numbers (depth first), so that the lowest common
-- ancestor of a set of leaves depends on the smallest and largest number alone.
CREATE TABLE ldiv.taxonomy (
    name VARCHAR PRIMARY KEY,
    origin VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- A leaf that stands for a range of numbers holds the values with min_value <= v < max_value.
CREATE TABLE ldiv.taxonomy_node (
    taxonomy VARCHAR NOT NULL,
    node INTEGER NOT NULL,
    parent INTEGER,
    label VARCHAR NOT NULL,
    depth INTEGER NOT NULL,
    low INTEGER NOT NULL,
    high INTEGER NOT NULL,
    min_value DOUBLE,
    max_value DOUBLE,
    PRIMARY KEY (taxonomy, node)
);

-- The ledger of runs: what was published, never a value of the data.
CREATE TABLE ldiv.run (
    run_id VARCHAR PRIMARY KEY,
    finished_at TIMESTAMPTZ NOT NULL,
    algorithm VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    rows_in BIGINT NOT NULL,
    rows_published BIGINT NOT NULL,
    rows_suppressed BIGINT NOT NULL,
    classes BIGINT NOT NULL,
    lm_mean DOUBLE NOT NULL,
    versions VARCHAR NOT NULL
);

CREATE TABLE ldiv.run_requirement (
    run_id VARCHAR NOT NULL,
    requirement VARCHAR NOT NULL,
    parameters VARCHAR NOT NULL,
    holds BOOLEAN NOT NULL,
    worst DOUBLE
);
