-- What a run that has the same to publish says again in place of making the release anew, as JSON: a keyed hash of the
-- release, by which it knows that it stands where it was published, and figures of it. As secret as the source.
CREATE TABLE ldiv.run_report_secret (
    run_id VARCHAR PRIMARY KEY,
    report VARCHAR NOT NULL
);
