"""Publishing on Spark: all or nothing, whatever is there, whatever fails, and whatever a dead run left."""

import uuid

import duckdb
import pytest
from alike import small, to_spark

import ldiv_db
from ldiv_db.database.errors import AuditError, DatabaseError, PolicyError
from ldiv_db.running.spark import targets


def names(spark):
    return {row["tableName"] for row in spark.sql("SHOW TABLES").collect() if not row["isTemporary"]}


def policy_of(spark, con, target, **more):
    return {**small(con), "source": to_spark(spark, con, "source"), "target": target, **more}


def test_tables_are_made_replaced_and_appended_to(spark, con):
    policy = policy_of(spark, con, "grown", output={"class_id": True, "types": "text"})
    first = ldiv_db.run(spark, policy)
    with pytest.raises(PolicyError, match="grown exists"):
        ldiv_db.run(spark, policy)
    ldiv_db.run(spark, {**policy, "target": {"table": "grown", "if_exists": "replace"}})
    assert spark.table("grown").count() == 40
    added = ldiv_db.run(spark, {**policy, "target": {"table": "grown", "if_exists": "append"}})
    assert spark.table("grown").count() == 80
    ids = [row[0] for row in spark.table("grown").select("class_id").distinct().collect()]
    assert sorted(ids) == list(range(1, 2 * first.loss.classes + 1))
    assert added.audits[0].rows == 80
    ledger = spark.table("ldiv.run").where("target = 'grown'").collect()
    assert sorted(row["status"] for row in ledger) == ["published"] * 3 + ["written"] * 3
    assert not [name for name in names(spark) if name.startswith("ldiv_")]


def test_seeds_stand_in_a_table_of_their_own(spark, con):
    """Also those that an older version wrote beside its runs; and an earlier release of a source is told of."""
    policy = policy_of(spark, con, {"table": "secretive", "if_exists": "replace"})
    first = ldiv_db.run(spark, policy, catalog="older")
    (row,) = spark.table("older.run").where("status = 'published'").collect()
    old = spark.createDataFrame([tuple({**row.asDict(), "run_id": "old", "seed": "12345678901234567890"}.values())],
                                spark.table("older.run").schema)  # fmt: skip
    old.write.insertInto("older.run")
    count = spark.table("older.run").count()
    later = ldiv_db.run(spark, policy, catalog="older")
    runs = spark.table("older.run").collect()
    assert len(runs) == count + 2 and {row["run_id"] for row in runs} == {"old", first.run_id, later.run_id}
    assert {row["seed"] for row in runs} == {None}
    seeds = {row["run_id"]: row["seed"] for row in spark.table("older.run_secret").collect()}
    assert seeds == {"old": "12345678901234567890", first.run_id: str(first.seed), later.run_id: str(later.seed)}
    assert "published this source" in later.said[0] and "key: …" in later.said[0] and not first.earlier.run_id


def test_a_folder_and_a_ledger_in_a_file(spark, con, tmp_path):
    policy = policy_of(spark, con, "r.parquet")
    catalog = tmp_path / "ours.duckdb"
    result = ldiv_db.run(spark, policy, tmp_path, catalog=str(catalog))
    ldiv_db.run(
        spark, {**policy, "target": {"file": "r.parquet", "if_exists": "replace"}}, tmp_path, catalog=str(catalog)
    )
    assert [path.name for path in tmp_path.iterdir() if "ldiv" in path.name] == []
    with duckdb.connect() as other:
        found = other.execute(f"SELECT count(*) FROM '{tmp_path}/r.parquet/*.parquet'").fetchone()
        other.execute(f"ATTACH '{catalog}' AS ours (READ_ONLY)")
        runs = other.execute("SELECT status FROM ours.ldiv.run").fetchall()
    assert found == (result.loss.rows_published,)
    assert runs == [("published",), ("published",)]


def test_a_release_that_fails_its_audit_is_not_published(spark, con, monkeypatch):
    ldiv_db.run(spark, policy_of(spark, con, "kept"))
    before = spark.table("kept").toArrow()
    stage = targets.CatalogTable.stage
    monkeypatch.setattr(targets.CatalogTable, "stage", lambda self, frame, run: stage(self, frame.limit(1), run))
    with pytest.raises(AuditError, match=r"k k=3 on disease: 1 of 1 classes"):
        ldiv_db.run(spark, policy_of(spark, con, {"table": "kept", "if_exists": "replace"}))
    assert spark.table("kept").toArrow().equals(before)
    assert not [name for name in names(spark) if name.startswith("ldiv_")]


def test_a_release_that_lost_rows_is_not_published(spark, con, monkeypatch):
    stage = targets.CatalogTable.stage

    def leave_out(self, frame, run):
        stage(self, frame.where("town <> 'a'"), run)

    monkeypatch.setattr(targets.CatalogTable, "stage", leave_out)
    tree = {"quasi_identifiers": {"town": {"taxonomy": {"flat": True}}}, "keep": ["note", "age"]}
    with pytest.raises(AuditError, match="rows were written in place of the 40"):
        ldiv_db.run(spark, policy_of(spark, con, "lost", **tree))
    assert "lost" not in names(spark)


@pytest.mark.parametrize("target", ["table", "file"])
def test_what_dead_runs_left_is_settled_by_the_next(spark, con, tmp_path, target):
    name = "left" if target == "table" else "left.parquet"
    policy = policy_of(spark, con, {target: name})
    ldiv_db.run(spark, policy, tmp_path)
    place = targets.target_of(spark, ldiv_db.parse_policy(policy).target, tmp_path)
    old = place.current().toArrow()
    run_id = uuid.uuid4().hex
    place.stage(place.current().limit(1), run_id)  # a run was about to replace it
    staged, aside = (place._beside(kind, run_id) for kind in ("ldiv_new", "ldiv_old"))
    if target == "table":
        spark.sql(f"ALTER TABLE left RENAME TO {aside}")  # and died between the two renames
    else:
        (tmp_path / name).rename(tmp_path / aside)
    assert not place.exists()
    with pytest.raises(PolicyError, match="exists"):  # it is put back first
        ldiv_db.run(spark, policy, tmp_path)
    assert place.settle() == []
    assert place.current().toArrow().equals(old)
    there = names(spark) if target == "table" else {path.name for path in tmp_path.iterdir()}
    assert not {staged, aside} & there


def test_what_is_not_for_spark_is_refused_by_name(spark, con):
    frame = spark.sql("SELECT 1 AS age, array(1) AS many, map(1, 2) AS pairs, 'x' AS name, 2 AS s")
    policy = {"source": frame, "target": "never", "require": [{"k": 1}]}
    with pytest.raises(PolicyError) as error:
        ldiv_db.run(
            spark, {**policy, "quasi_identifiers": ["age", "many"], "sensitive": ["s"], "keep": ["pairs", "name"]}
        )
    assert "quasi_identifiers.many: is array, which is not read" in str(error.value)
    assert "keep.pairs: is map" in str(error.value)
    listed = {"quasi_identifiers": ["age"], "sensitive": ["s"], "identifiers": ["many", "pairs", "name"]}
    with pytest.raises(PolicyError, match=r"takes no session of Spark's, as ldiv_db\.run does"):
        ldiv_db.plan(spark, {**policy, **listed})
    for change, said in {
        ("individual", "name"): "individual: is not kept apart on Spark",
        ("source", "nowhere"): "source: nowhere: ",
        ("target", "t.csv"): "target.file: Spark does not write t.csv",
        ("algorithm", "anatomy"): "is not run on Spark",
        ("target", "ldiv.mine"): "schema 'ldiv' is the ledger's own",
    }.items():
        with pytest.raises(PolicyError, match=said):
            ldiv_db.run(spark, {**policy, **listed, **dict([change])})


def test_errors_have_no_traces_of_java(spark, con, monkeypatch):
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "age INT, s STRING").selectExpr("age", "CAST(s AS INT) AS s")
    policy = {
        "source": frame,
        "target": "never",
        "quasi_identifiers": ["age"],
        "sensitive": ["s"],
        "require": [{"k": 1}],
    }
    with pytest.raises(DatabaseError) as error:
        ldiv_db.run(spark, policy)
    assert str(error.value) == "Spark cannot read the source: CAST_INVALID_INPUT"


def test_what_metadata_says_of_columns_is_not_published(spark, con, tmp_path):
    """Comments, and lists of values as transformers of Spark's leave them."""
    secret, policy = "Ebola (patient 200)", small(con)
    frame = spark.table(to_spark(spark, con, "source"))
    told = {"comment": secret, "ml_attr": {"type": "nominal", "vals": [secret]}}
    for name in frame.columns:
        frame = frame.withMetadata(name, told)
    policy["source"] = frame
    for more in ({}, {"part_rows": 20}):
        ldiv_db.run(spark, {**policy, **more, "target": {"file": "r.parquet", "if_exists": "replace"}}, tmp_path)
        for file in (tmp_path / "r.parquet").glob("*"):
            assert secret.encode() not in file.read_bytes()
        ldiv_db.run(spark, {**policy, **more, "target": {"table": "uncommented", "if_exists": "replace"}})
        assert [field.metadata for field in spark.table("uncommented").schema.fields] == [{}] * 4
