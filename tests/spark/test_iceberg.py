"""Publishing to a table of Iceberg's: its catalog has one commit for what replaces a table.

Iceberg's JAR is a wheel for Spark 3.5 alone: `pip install 'pyspark==3.5.*' snowpark-connect-deps-iceberg==1.0.2`. What
PySpark 4 has and 3.5 has not, frames to and from Arrow, is added to it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alike import names, small

import ldiv_db
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.spark import SparkWarehouse

jars = pytest.importorskip("snowpark_connect_deps_iceberg", reason="Iceberg's JAR is not installed")
pyspark = pytest.importorskip("pyspark")
if not pyspark.__version__.startswith("3.5."):
    pytest.skip("Iceberg's JAR is for Spark 3.5", allow_module_level=True)

TABLE = "ice.clinic.released"


def _arrow_as_in_spark_4(patch: pytest.MonkeyPatch) -> None:
    import pyarrow  # noqa: PLC0415
    from pyspark.sql import DataFrame, SparkSession  # noqa: PLC0415
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema  # noqa: PLC0415

    made = SparkSession.createDataFrame

    def create(session: Any, data: Any, schema: Any = None) -> Any:
        if isinstance(data, pyarrow.Table):
            schema = schema or from_arrow_schema(data.schema)
            data = [tuple(row.values()) for row in data.to_pylist()]
        return made(session, data, schema)

    def to_arrow(frame: Any) -> Any:
        return pyarrow.Table.from_batches(frame._collect_as_arrow(), to_arrow_schema(frame.schema))

    patch.setattr(SparkSession, "createDataFrame", create)
    patch.setattr(DataFrame, "toArrow", to_arrow, raising=False)


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with a catalog `ice` of files, in which tables cannot be renamed."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    (jar,) = Path(jars.get_jars_dir()).glob("iceberg-spark-runtime-3.5_2.12-*.jar")
    folder = tmp_path_factory.mktemp("iceberg")
    settings = {
        "spark.jars": str(jar),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
    }
    with pytest.MonkeyPatch.context() as patch:
        _arrow_as_in_spark_4(patch)
        session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
        session.sql("CREATE NAMESPACE ice.clinic")
        yield session
        session.stop()


def commits(session: Any) -> int:
    """How many commits have replaced or filled the release."""
    return int(session.sql(f"SELECT * FROM {TABLE}.snapshots").count())


def left(session: Any) -> set[str]:
    """The names of what runs leave beside the ledger, which is in the session's own catalog, and the release."""
    beside = {row["tableName"] for row in session.sql("SHOW TABLES IN ice.clinic").collect()}
    return {name for name in beside | names(session) if name.startswith("ldiv_")}


def test_a_release_is_made_replaced_and_appended_to_by_a_commit_each(
    ice: Any, con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {**small(con), "source": "ice.clinic.people", "target": {"table": TABLE, "if_exists": "replace"}}
    policy["over_time"] = "independent"
    rows = con.execute("FROM source").fetchall()
    ice.createDataFrame(rows, "age INT, town STRING, disease STRING, note STRING").writeTo(policy["source"]).create()
    ldiv_db.run(ice, policy)
    assert (ice.table(TABLE).count(), commits(ice)) == (40, 1)
    old = ice.table(TABLE).collect()

    with pytest.raises(ldiv_db.LdivError):
        ldiv_db.run(ice, {**policy, "require": [{"k": 41}]})
    assert ice.table(TABLE).collect() == old
    put = SparkWarehouse.put
    for number, is_put in enumerate((False, True), 1):
        with monkeypatch.context() as patch, pytest.raises(DatabaseError, match="lost"):
            patch.setattr(SparkWarehouse, "put", lambda *given, done=is_put: _lose(put if done else None, *given))
            ldiv_db.run(ice, {**policy, "algorithm": "topdown"})
        assert (ice.table(TABLE).count(), commits(ice)) == (40, number)
        assert (ice.table(TABLE).collect() == old) != is_put

    ldiv_db.run(ice, {**policy, "require": [{"k": 5}]})
    assert (ice.table(TABLE).count(), commits(ice)) == (40, 3)
    assert ldiv_db.check(ice, TABLE, policy={**policy, "require": [{"k": 5}]}).holds
    ldiv_db.run(ice, {**policy, "target": {"table": TABLE, "if_exists": "append"}})
    assert (ice.table(TABLE).count(), commits(ice)) == (80, 4)
    assert not left(ice)


def test_a_table_keeps_its_partitions_comments_and_properties(ice: Any, con: Any) -> None:
    table = "ice.clinic.kept"
    policy = {**small(con), "source": "ice.clinic.sick", "target": {"table": table, "if_exists": "replace"}}
    policy["over_time"] = "independent"
    rows = con.execute("FROM source").fetchall()
    ice.createDataFrame(rows, "age INT, town STRING, disease STRING, note STRING").writeTo(policy["source"]).create()
    ice.sql(
        f"CREATE TABLE {table} (age STRING COMMENT 'in years', town STRING, disease STRING, note STRING) USING iceberg"
        " PARTITIONED BY (disease) COMMENT 'for research' TBLPROPERTIES ('owner.team' = 'x')"
    )
    ice.sql(f"INSERT INTO {table} VALUES ('old', 'old', 'old', 'old')")
    words = ("PARTITIONED BY (disease)", "COMMENT 'for research'", "COMMENT 'in years'", "'owner.team' = 'x'")
    for require in (3, 5):
        ice.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        notes = ldiv_db.run(ice, {**policy, "require": [{"k": require}]}).notes
        assert ice.conf.get("spark.sql.sources.partitionOverwriteMode") == "dynamic"
        ice.conf.unset("spark.sql.sources.partitionOverwriteMode")
        shown = ice.sql(f"SHOW CREATE TABLE {table}").collect()[0][0]
        assert ice.table(table).count() == 40 and [word for word in words if word not in shown] == []
        assert not any("not kept" in note for note in notes)
    result = ldiv_db.run(ice, {**policy, "keep": [], "identifiers": ["note"]})
    shown = ice.sql(f"SHOW CREATE TABLE {table}").collect()[0][0]
    said = f"any partitions and comments on columns of {table} are not kept, as its columns are others now"
    assert said in result.notes and [word for word in words if word not in shown] == [words[0], words[2]]


def _lose(put: Any, *given: Any) -> None:
    """The connection is lost, once the release is in its place or before."""
    if put:
        put(*given)
    raise DatabaseError("lost")
