"""Whatever dies, and wherever: the release is the same, or there is none; and the next run settles what was left."""

import json
import resource
from contextlib import ExitStack, contextmanager

import pytest
from alike import names, small, written
from drivers import kill_driver
from strategies import some

import ldiv_db
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.names import Relation
from ldiv_db.database.spark import SparkWarehouse
from ldiv_db.publishing.ledger import runs
from ldiv_db.publishing.ledger_there import LedgerThere, ledger_of

SPARK = "ldiv_db.database.spark"
#: When a driver dies, what of the target is there then, and how its run ends in the ledger. The run after one that
#: left no target puts it back, which takes one more call.
DEATHS = [
    (f"{SPARK}:SparkWarehouse.lend", "before", "old", []),
    (f"{SPARK}:SparkWarehouse.lend", "after", "old", []),
    ("ldiv_db.publishing.ledger_there:LedgerThere.enter", "after", "old", ["dropped"]),
    (f"{SPARK}:SparkWarehouse._write", "after 2", "old", ["dropped"]),
    (f"{SPARK}:SparkWarehouse.rename", "after", "none", ["dropped"]),
    (f"{SPARK}:SparkWarehouse.rename", "after 3", "new", ["published"]),
    (f"{SPARK}:SparkWarehouse.put", "after", "new", ["published"]),
]


def left_beside(spark, folder):
    return {name for name in names(spark) | {path.name for path in folder.iterdir()} if name.startswith("ldiv_")}


@pytest.fixture
def lasting(spark, con):
    """A policy whose source is a table that other sessions see."""
    policy = {**small(con), "source": "lasting"}
    spark.createDataFrame(con.sql("FROM source").to_arrow_table()).write.saveAsTable("lasting")
    yield policy
    spark.sql("DROP TABLE lasting")


@pytest.mark.slow
def test_a_driver_that_is_killed_at_any_step(spark, lasting, tmp_path):
    policy = {**lasting, "target": {"table": "dying", "if_exists": "replace"}, "over_time": "independent"}
    spark.createDataFrame([("old",)], "age STRING").write.saveAsTable("dying")
    found, ends = written(SparkWarehouse(spark).read(Relation(("dying",))).toArrow()), []
    for function, when, there, end in DEATHS:  # each run settles what the one before it left
        kill_driver(spark, function, when, json.dumps(policy), tmp_path)
        assert SparkWarehouse(spark).exists(Relation(("dying",))) == (there != "none")
        if there == "new":
            found = written(SparkWarehouse(spark).read(Relation(("dying",))).toArrow())
            assert len(found) == 40
        elif there == "old":
            assert written(SparkWarehouse(spark).read(Relation(("dying",))).toArrow()) == found
        ends += end
    ldiv_db.run(spark, policy, tmp_path)
    assert sorted(written(SparkWarehouse(spark).read(Relation(("dying",))).toArrow())) == sorted(found)
    assert not left_beside(spark, tmp_path)
    rows = (
        SparkWarehouse(spark)
        .read(Relation(("ldiv", "run")))
        .where("target = 'dying' AND status <> 'written'")
        .collect()
    )
    assert sorted(row["status"] for row in rows) == sorted([*ends, "published"])


@contextmanager
def full_disk(session):
    """Within, Java cannot write a file of more than a few bytes, as on a disk that is full."""
    java = session.sparkContext._gateway.proc.pid
    before = resource.prlimit(java, resource.RLIMIT_FSIZE)
    try:
        resource.prlimit(java, resource.RLIMIT_FSIZE, (64, before[1]))
        yield
    finally:
        resource.prlimit(java, resource.RLIMIT_FSIZE, before)


#: What is under way when the disk is full; nothing yet.
FILLED = [None, (SparkWarehouse, "lend"), (LedgerThere, "enter"), (SparkWarehouse, "put")]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes are Linux's alone")
@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_a_full_disk(spark, lasting, tmp_path, monkeypatch, number):
    table, step = f"full_{number}", FILLED[number]
    policy = {**lasting, "target": {"table": table, "if_exists": "replace"}}
    spark.createDataFrame([("old",)], "age STRING").write.saveAsTable(table)
    with ExitStack() as stack, monkeypatch.context() as patch:
        if step is None:
            stack.enter_context(full_disk(spark))
        else:
            own = getattr(*step)
            patch.setattr(*step, lambda *given, **more: (stack.enter_context(full_disk(spark)), own(*given, **more)))
        fails(spark, policy, tmp_path)
    assert [row["age"] for row in spark.table(table).collect()] == ["old"]
    last = ldiv_db.run(spark, policy, tmp_path)
    assert not left_beside(spark, tmp_path)
    assert published(spark, table) == {last.run_id} and len(spark.table(table).collect()) == 40


def fails(spark, policy, folder, **more):
    """A run that fails with one line, and no trace of Java's."""
    with pytest.raises(DatabaseError, match=r"^Spark cannot .*: [^\n]*$") as error:
        ldiv_db.run(spark, policy, folder, **more)
    assert "\tat " not in str(error.value)


def published(spark, target):
    """The runs that the ledger has as published to a target."""
    with ledger_of(SparkWarehouse(spark)) as engine:
        return {run["run_id"] for run in runs(engine) if (run["target"], run["status"]) == (target, "published")}


@pytest.mark.parametrize("closed", some(["target", "ledger"]))
def test_a_schema_in_which_nothing_can_be_written(spark, lasting, tmp_path, closed):
    place = tmp_path / "closed"
    spark.sql(f"CREATE SCHEMA closed LOCATION '{place}'")
    try:
        place.rmdir()
        place.touch()  # whoever is root has all rights, but not to a file's inside
        if closed == "target":
            fails(spark, {**lasting, "target": "closed.t"}, tmp_path)
            assert not published(spark, "closed.t")
        else:
            fails(spark, {**lasting, "target": "never"}, tmp_path, catalog="closed")
        assert not left_beside(spark, tmp_path) and not SparkWarehouse(spark).exists(Relation(("never",)))
        assert not SparkWarehouse(spark).tables(Relation(("closed", "t")))
    finally:
        place.unlink()
        place.mkdir()
        spark.sql("DROP SCHEMA closed CASCADE")
