"""Whatever dies, and wherever: the release is the same, or there is none; and the next run settles what was left."""

import json
import resource
from contextlib import ExitStack, contextmanager

import pytest
from alike import small, written
from drivers import kill_driver, run_script

import ldiv_db
from ldiv_db.database.errors import DatabaseError
from ldiv_db.running.spark import ledger, targets

TARGETS = "ldiv_db.running.spark.targets"
#: When a driver dies, what of the target is there then, and how its run ends in the ledger. The run after one that
#: left no target puts it back, which takes two more calls.
DEATHS = {
    "table": [
        (f"{TARGETS}:CatalogTable.stage", "before", "old", []),
        (f"{TARGETS}:CatalogTable.stage", "after", "old", []),
        ("ldiv_db.running.spark.ledger:TableLedger.enter", "after", "old", ["dropped"]),
        ("ldiv_db.database.spark:rename", "after", "none", ["dropped"]),
        ("ldiv_db.database.spark:rename", "after 3", "new", ["published"]),
        (f"{TARGETS}:CatalogTable.commit", "after", "new", ["published"]),
    ],
    "file": [
        (f"{TARGETS}:ParquetFolder.stage", "after", "old", []),
        (f"{TARGETS}:ParquetFolder._move", "after", "none", ["dropped"]),
        (f"{TARGETS}:ParquetFolder._move", "after 3", "new", ["published"]),
    ],
}


def left_beside(spark, folder):
    tables = {row["tableName"] for row in spark.sql("SHOW TABLES").collect() if not row["isTemporary"]}
    return {name for name in tables | {path.name for path in folder.iterdir()} if name.startswith("ldiv_")}


@pytest.fixture
def lasting(spark, con):
    """A policy whose source is a table that other sessions see."""
    policy = {**small(con), "source": "lasting"}
    spark.createDataFrame(con.sql("FROM source").to_arrow_table()).write.saveAsTable("lasting")
    yield policy
    spark.sql("DROP TABLE lasting")


@pytest.mark.parametrize("kind", DEATHS)
def test_a_driver_that_is_killed_at_any_step(spark, lasting, tmp_path, kind):
    name = "dying" if kind == "table" else "dying.parquet"
    policy = {**lasting, "target": {kind: name, "if_exists": "replace"}}
    place = targets.target_of(spark, ldiv_db.parse_policy(policy).target, tmp_path)
    old = spark.createDataFrame([("old",)], "age STRING")
    old.write.saveAsTable(name) if kind == "table" else old.write.parquet(place.path)
    found, ends = written(old.toArrow()), []
    for function, when, there, end in DEATHS[kind]:  # each run settles what the one before it left
        kill_driver(spark, function, when, json.dumps(policy), tmp_path)
        assert place.exists() == (there != "none")
        if there == "new":
            found = written(place.current().toArrow())
            assert len(found) == 40
        elif there == "old":
            assert written(place.current().toArrow()) == found
        ends += end
    ldiv_db.run(spark, policy, tmp_path)
    assert written(place.current().toArrow()) == found
    assert not left_beside(spark, tmp_path)
    rows = spark.table("ldiv.run").where(f"target = '{name}' AND status <> 'written'").collect()
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


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes are Linux's alone")
@pytest.mark.parametrize("step", [None, (targets.CatalogTable, "stage"), (ledger.TableLedger, "enter")])
def test_a_full_disk(spark, lasting, tmp_path, monkeypatch, step):
    policy = {**lasting, "target": {"table": "full", "if_exists": "replace"}}
    spark.createDataFrame([("old",)], "age STRING").write.mode("overwrite").saveAsTable("full")
    with ExitStack() as stack:
        if step is None:
            stack.enter_context(full_disk(spark))
        else:
            own = getattr(*step)
            monkeypatch.setattr(*step, lambda *given: (stack.enter_context(full_disk(spark)), own(*given)))
        with pytest.raises(DatabaseError, match=r"^Spark cannot .*: [^\n]*$") as error:
            ldiv_db.run(spark, policy, tmp_path)
    assert "\tat " not in str(error.value)
    assert [row["age"] for row in spark.table("full").collect()] == ["old"]
    assert not left_beside(spark, tmp_path)


CLUSTER = """
import json, os, shutil, signal, sys
from pathlib import Path
import pyspark
from pyspark.sql import SparkSession
import ldiv_db
from ldiv_db.running.spark import divided
folder, own = Path(sys.argv[1]), divided.part_solver
def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
def dying(work):
    solve = own(work)
    def solve_or_die(cells):
        try:
            os.close(os.open(folder / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return solve(cells)
        executor = parent(os.getppid())
        assert b"ExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
        os.kill(executor, signal.SIGKILL)
        os._exit(1)
    return solve_or_die
divided.part_solver = dying
conf = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "2", "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.adaptive.enabled": "false",
        "spark.shuffle.io.retryWait": "100ms",  # who is dead does not answer the third time either
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.warehouse.dir": str(folder / "warehouse")}
spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=conf).getOrCreate()
try:
    policy = json.loads(sys.argv[2])
    print(ldiv_db.run(spark, policy, folder).search["parts"])
finally:
    work = Path(pyspark.__file__).parent / "work" / spark.sparkContext.applicationId
    spark.stop()
    shutil.rmtree(work, ignore_errors=True)
"""


def test_an_executor_that_is_killed_while_parts_are_solved(has_spark, con, tmp_path):
    policy = {**small(con, 60), "part_rows": 30}
    con.execute(f"COPY source TO '{tmp_path}/source.parquet'")
    embedded = ldiv_db.run(con, {**policy, "source": "source", "target": "released"})
    given = {**policy, "source": "source.parquet", "target": {"file": "r.parquet"}}
    assert run_script(CLUSTER, str(tmp_path), json.dumps(given)) == f"{embedded.search['parts']}\n"
    assert (tmp_path / "killed").exists()
    both = [con.sql(f"FROM {name}").to_arrow_table() for name in ("released", f"'{tmp_path}/r.parquet/*.parquet'")]
    assert sorted(written(both[0])) == sorted(written(both[1]))
