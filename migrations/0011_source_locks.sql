-- What runs hold of which one source is published at the same time: each changes some of these rows, by a hash of what the
-- source is called and of its rows, so that the second of two transactions fails, or waits. `run_id` is whoever held it last.
CREATE TABLE ldiv.source_lock (
    name VARCHAR NOT NULL,
    run_id VARCHAR
);
INSERT INTO ldiv.source_lock (name) SELECT CAST(unnest(range(1024)) AS VARCHAR);
