"""Publishing on Spark: all or nothing, whatever is there, whatever fails, and whatever a dead run left."""

import hashlib
import uuid
from pathlib import Path

import pytest
from alike import names, small, to_spark
from strategies import some

import ldiv_db
from ldiv_db.database.errors import AuditError, DatabaseError, PolicyError
from ldiv_db.database.spark import SparkWarehouse
from ldiv_db.publishing.ledger import runs, withdraw_run
from ldiv_db.publishing.ledger_there import ledger_of
from ldiv_db.running import run as running


def policy_of(spark, con, target, **more):
    return {**small(con), "source": to_spark(spark, con, "source"), "target": target, **more}


def shorten(monkeypatch, condition):
    """Have fewer rows staged than a run means to."""
    write = SparkWarehouse._write

    def less(self, table, sql, *like):
        write(self, table, sql, *like)
        if not table.name.startswith("ldiv_new"):
            return
        fewer = table.beside("fewer")
        self.session.sql(
            f"CREATE TABLE {self.name(fewer)} USING parquet AS SELECT * FROM {self.name(table)} {condition}"
        )
        self.drop(table)
        self.rename(fewer, table.name)

    monkeypatch.setattr(SparkWarehouse, "_write", less)


def test_tables_are_made_replaced_and_appended_to(spark, con):
    policy = policy_of(spark, con, "grown", output={"class_id": True, "types": "text"})
    ldiv_db.run(spark, policy)
    with pytest.raises(PolicyError, match="grown exists"):
        ldiv_db.run(spark, policy)
    first = ldiv_db.run(spark, {**policy, "require": [{"k": 5}], "target": {"table": "grown", "if_exists": "replace"}})
    assert spark.table("grown").count() == 40
    added = ldiv_db.run(spark, {**policy, "target": {"table": "grown", "if_exists": "append"}})
    assert spark.table("grown").count() == 80
    ids = [row[0] for row in spark.table("grown").select("class_id").distinct().collect()]
    assert sorted(ids) == list(range(1, first.loss.classes + added.loss.classes + 1))
    assert added.audits[0].rows == 80
    ledger = spark.table("ldiv.run").where("target = 'grown'").collect()
    assert sorted(row["status"] for row in ledger) == ["published"] * 3 + ["written"] * 3
    assert not [name for name in names(spark) if name.startswith("ldiv_")]


@pytest.mark.slow
def test_seeds_stand_in_a_table_of_their_own(spark, con):
    policy = policy_of(spark, con, {"table": "secretive", "if_exists": "replace"})
    del policy["seed"]
    first = ldiv_db.run(spark, policy, catalog="elsewhere")
    again = ldiv_db.run(spark, policy, catalog="elsewhere")
    assert again.as_dict()["unchanged"] == first.run_id and again.seed == first.seed
    assert "seed" not in spark.table("elsewhere.run").columns
    seeds = {row["run_id"]: row["seed"] for row in spark.table("elsewhere.run_secret").collect()}
    assert seeds == {first.run_id: str(first.seed), again.run_id: str(first.seed)}


@pytest.mark.slow
def test_changed_rows_are_not_published_again_without_a_word(spark, con):
    policy = policy_of(spark, con, {"table": "again", "if_exists": "replace"})
    spark.table(policy["source"]).write.saveAsTable("changing")
    policy["source"] = "changing"
    ldiv_db.run(spark, policy)
    before = spark.table("again").toArrow()
    spark.sql("INSERT INTO changing SELECT * FROM changing WHERE age = 3")
    with pytest.raises(PolicyError, match="over_time"):
        ldiv_db.run(spark, policy)
    assert spark.table("again").toArrow().equals(before)
    spark.sql("DROP TABLE changing")


@pytest.mark.slow
def test_a_run_that_is_withdrawn_has_one_status(spark, con):
    run_id = ldiv_db.run(spark, policy_of(spark, con, "taken")).run_id
    with ledger_of(SparkWarehouse(spark)) as engine:
        withdraw_run(engine, run_id)
    with ledger_of(SparkWarehouse(spark)) as engine:
        assert [run["status"] for run in runs(engine) if run["run_id"] == run_id] == ["withdrawn"]


def test_a_release_that_fails_its_audit_is_not_published(spark, con, monkeypatch):
    ldiv_db.run(spark, policy_of(spark, con, "kept"))
    before = spark.table("kept").toArrow()
    shorten(monkeypatch, "LIMIT 1")
    with pytest.raises(AuditError, match=r"k k=3 on disease: 1 of 1 classes"):
        ldiv_db.run(spark, policy_of(spark, con, {"table": "kept", "if_exists": "replace"}, output={"class_id": True}))
    assert spark.table("kept").toArrow().equals(before)
    assert not [name for name in names(spark) if name.startswith("ldiv_")]


@pytest.mark.slow
def test_a_release_that_lost_rows_is_not_published(spark, con, monkeypatch):
    shorten(monkeypatch, "WHERE town <> 'a'")
    tree = {"quasi_identifiers": {"town": {"taxonomy": {"flat": True}}}, "keep": ["note", "age"]}
    with pytest.raises(AuditError, match="rows were written in place of the 40"):
        ldiv_db.run(spark, policy_of(spark, con, "lost", **tree))
    assert "lost" not in names(spark)


@pytest.mark.slow
def test_a_release_of_which_rows_are_lost_on_the_way_to_its_place_is_not_published(spark, con, monkeypatch):
    ldiv_db.run(spark, policy_of(spark, con, "whole"))
    before, rows = spark.table("whole").toArrow(), SparkWarehouse.rows_of
    monkeypatch.setattr(SparkWarehouse, "rows_of", lambda self, staged: f"{rows(self, staged)} LIMIT 1")
    with pytest.raises(DatabaseError, match="has 1 of the 40 rows"):
        ldiv_db.run(spark, policy_of(spark, con, {"table": "whole", "if_exists": "replace"}, output={"class_id": True}))
    assert spark.table("whole").toArrow().equals(before)
    assert not [name for name in names(spark) if name.startswith("ldiv_")]


def test_what_dead_runs_left_is_settled_by_the_next(spark, con):
    policy = policy_of(spark, con, {"table": "left"}, over_time="independent")
    ldiv_db.run(spark, policy)
    old, run_id = spark.table("left").toArrow(), uuid.uuid4().hex
    mark = hashlib.sha256(b"left").hexdigest()[:8]
    staged, copy, aside = (f"{kind}_{run_id}_{mark}" for kind in ("ldiv_new", "ldiv_put", "ldiv_old"))
    for name in (f"ldiv.{staged}", copy):  # a run was about to replace it
        spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT * FROM left LIMIT 1")
    spark.sql(f"ALTER TABLE left RENAME TO {aside}")  # and died between the two renames
    with pytest.raises(PolicyError, match="exists"):  # it is put back first
        ldiv_db.run(spark, policy)
    assert spark.table("left").toArrow().equals(old)
    assert not {staged, copy, aside} & names(spark)


def test_what_is_not_for_spark_is_refused_by_name(spark, con):
    frame = spark.sql("SELECT 1 AS age, array(1) AS many, map(1, 2) AS pairs, 'x' AS name, 2 AS s")
    policy = {"source": frame, "target": "never", "require": [{"k": 1}]}
    with pytest.raises(PolicyError) as error:
        ldiv_db.run(
            spark, {**policy, "quasi_identifiers": ["age", "many"], "sensitive": ["s"], "keep": ["pairs", "name"]}
        )
    assert "quasi_identifiers.many: is of a type that is not read" in str(error.value)
    assert "keep.pairs: is of a type" in str(error.value)
    listed = {"quasi_identifiers": ["age"], "sensitive": ["s"], "identifiers": ["many", "pairs", "name"]}
    with pytest.raises(PolicyError, match="does not work on a warehouse"):
        ldiv_db.explore(spark, {**policy, **listed})
    for change, said in {
        ("key", "name"): "two nights at once in spark",
        ("source", "nowhere"): "source: nowhere: ",
        ("algorithm", "anatomy"): "publishes tables of single rows",
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
    assert str(error.value) == "Spark cannot count: CAST_INVALID_INPUT"


def test_what_metadata_says_of_columns_is_not_published(spark, con):
    """Comments, and lists of values as transformers of Spark's leave them."""
    policy = small(con)
    frame = spark.table(to_spark(spark, con, "source"))
    told = {"comment": "Ebola (patient 200)", "ml_attr": {"type": "nominal", "vals": ["Ebola (patient 200)"]}}
    for name in frame.columns:
        frame = frame.withMetadata(name, told)
    ldiv_db.run(spark, {**policy, "source": frame, "target": {"table": "uncommented", "if_exists": "replace"}})
    assert [field.metadata for field in spark.table("uncommented").schema.fields] == [{}] * 4
    place = spark.sql("DESCRIBE TABLE EXTENDED uncommented").where("col_name = 'Location'").collect()[0][1]
    for file in Path(place.removeprefix("file:")).glob("*"):
        assert b"Ebola" not in file.read_bytes()


@pytest.mark.parametrize("kept", some([True, False]))
@pytest.mark.parametrize("kind", some(["folder", "table"]))
def test_rows_that_come_while_a_run_plans_are_published(spark, con, tmp_path, monkeypatch, kind, kept):
    """A view of files has those that were there: it is made anew before its rows are held against what was counted."""
    given = str(tmp_path / "people.parquet") if kind == "folder" else "growing"
    asked = {**small(con), "source": given, "target": {"table": "grew", "if_exists": "replace"},
             "over_time": "independent"}  # fmt: skip
    asked |= {} if kept else {"keep": [], "identifiers": ["note"]}
    rows, plain, times = spark.createDataFrame(con.sql("FROM source").to_arrow_table()), running.work_out, []

    def write(some, mode):
        writer = some.write.mode(mode)
        writer.parquet(given) if kind == "folder" else writer.saveAsTable(given)

    def work_out(*taken):
        times.append(True)
        if len(times) == 1:
            write(rows.limit(7), "append")
        return plain(*taken)

    write(rows, "overwrite")
    monkeypatch.setattr(running, "work_out", work_out)
    try:
        result = ldiv_db.run(spark, asked)
        assert (result.loss.rows_published, spark.table("grew").count(), len(times)) == (47, 47, 2)
        assert not [name for name in names(spark) if name.startswith("ldiv_")]
    finally:
        for name in ("growing", "grew"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
