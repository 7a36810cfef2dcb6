-- Written by `python -m tests.whole_catalog`: what all migrations make, which say what it is for.
CREATE TABLE ldiv."release"(series VARCHAR, "release" INTEGER, status VARCHAR NOT NULL, released_at TIMESTAMP WITH TIME ZONE NOT NULL, report VARCHAR NOT NULL, grouped_by VARCHAR, PRIMARY KEY(series, "release"));
CREATE TABLE ldiv.release_group(series VARCHAR NOT NULL, "release" INTEGER NOT NULL, group_id BIGINT NOT NULL, "rows" BIGINT NOT NULL);
CREATE TABLE ldiv.release_member(series VARCHAR NOT NULL, "release" INTEGER NOT NULL, key_hash VARCHAR NOT NULL, group_id BIGINT, waited INTEGER NOT NULL, values_hash VARCHAR NOT NULL);
CREATE TABLE ldiv.release_secret(series VARCHAR, "release" INTEGER, seed VARCHAR NOT NULL, PRIMARY KEY(series, "release"));
CREATE TABLE ldiv.run(run_id VARCHAR PRIMARY KEY, finished_at TIMESTAMP WITH TIME ZONE NOT NULL, algorithm VARCHAR NOT NULL, "source" VARCHAR NOT NULL, "target" VARCHAR NOT NULL, rows_in BIGINT NOT NULL, rows_published BIGINT NOT NULL, rows_suppressed BIGINT NOT NULL, classes BIGINT NOT NULL, lm_mean DOUBLE NOT NULL, versions VARCHAR NOT NULL, status VARCHAR DEFAULT('published'), inferred VARCHAR, tables_of_people VARCHAR);
CREATE TABLE ldiv.run_column(run_id VARCHAR, place INTEGER, "name" VARCHAR NOT NULL, "role" VARCHAR NOT NULL, "type" VARCHAR NOT NULL, "nulls" BOOLEAN NOT NULL, PRIMARY KEY(run_id, place));
CREATE TABLE ldiv.run_recoding(run_id VARCHAR PRIMARY KEY, scheme VARCHAR NOT NULL);
CREATE TABLE ldiv.run_report_secret(run_id VARCHAR PRIMARY KEY, report VARCHAR NOT NULL);
CREATE TABLE ldiv.run_requirement(run_id VARCHAR NOT NULL, requirement VARCHAR NOT NULL, parameters VARCHAR NOT NULL, holds BOOLEAN NOT NULL, worst DOUBLE);
CREATE TABLE ldiv.run_rule(run_id VARCHAR, place INTEGER, number INTEGER, kind VARCHAR NOT NULL, low VARCHAR, high VARCHAR, "label" VARCHAR, PRIMARY KEY(run_id, place, number));
CREATE TABLE ldiv.run_secret(run_id VARCHAR PRIMARY KEY, seed VARCHAR NOT NULL, hash_key VARCHAR, rows_hash VARCHAR, policy_hash VARCHAR, columns_read VARCHAR);
CREATE TABLE ldiv.series(series VARCHAR PRIMARY KEY, algorithm VARCHAR NOT NULL, "source" VARCHAR NOT NULL, created_at TIMESTAMP WITH TIME ZONE NOT NULL, key_name VARCHAR, key_kind VARCHAR);
CREATE TABLE ldiv.series_secret(series VARCHAR PRIMARY KEY, "secret" VARCHAR NOT NULL);
CREATE TABLE ldiv.source_lock("name" VARCHAR NOT NULL, run_id VARCHAR);
CREATE TABLE ldiv.taxonomy("name" VARCHAR PRIMARY KEY, origin VARCHAR NOT NULL, created_at TIMESTAMP WITH TIME ZONE NOT NULL);
CREATE TABLE ldiv.taxonomy_node(taxonomy VARCHAR, node INTEGER, parent INTEGER, "label" VARCHAR NOT NULL, depth INTEGER NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL, min_value DOUBLE, max_value DOUBLE, PRIMARY KEY(taxonomy, node));
INSERT INTO ldiv.source_lock (name) SELECT CAST(unnest(range(1024)) AS VARCHAR);
