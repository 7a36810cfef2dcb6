"""What a table has beside its rows: what is kept when its release is replaced, and what is said before it is lost."""

import subprocess
import sys
from pathlib import Path

import pytest
from alike import names, small, to_spark, written
from strategies import some

import ldiv_db
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.spark import SparkWarehouse

COLUMNS = r"age STRING COMMENT 'in \'years\'', town STRING, disease STRING, note STRING"
BESIDE = r"PARTITIONED BY (disease) COMMENT 'for \'research\', \\ all' TBLPROPERTIES ('owner.team' = 'x\'y', 'k' = '2')"


@pytest.fixture
def clinic(spark, con):
    """A policy that publishes to `clinic.released`, a table with a row and all that it can have beside."""
    spark.sql("CREATE SCHEMA clinic")
    spark.sql(f"CREATE TABLE clinic.released ({COLUMNS}) USING orc {BESIDE}")
    spark.sql("INSERT INTO clinic.released VALUES ('old', 'old', 'old', 'old')")
    target = {"table": "clinic.released", "if_exists": "replace"}
    policy = {**small(con), "source": to_spark(spark, con, "source"), "target": target, "over_time": "independent"}
    yield policy
    spark.sql("DROP SCHEMA clinic CASCADE")


def shown(spark):
    return spark.sql("SHOW CREATE TABLE clinic.released").collect()[0][0]


def lost(result):
    return [note for note in result.notes if "not kept" in note]


@pytest.mark.slow
def test_a_table_of_files_keeps_all_that_it_has(spark, clinic):
    before = shown(spark)
    first = ldiv_db.run(spark, clinic)
    assert "PARTITIONED BY" in before and shown(spark) == before and lost(first) == []
    ldiv_db.run(spark, {**clinic, "target": "clinic.plain"})
    ordered = "SELECT age, town, disease, note FROM clinic."
    published = [sorted(written(spark.sql(ordered + name).toArrow())) for name in ("released", "plain")]
    assert published[0] == published[1] and len(published[0]) == 40
    again = ldiv_db.run(spark, {**clinic, "require": [{"k": 5}]})
    assert shown(spark) == before and lost(again) == [] and spark.table("clinic.released").count() == 40
    assert not [name for name in names(spark) if name.startswith("ldiv_")]


def test_what_is_lost_with_other_columns_is_said_before(spark, clinic, monkeypatch):
    done, put = [], SparkWarehouse.put
    beside = SparkWarehouse.beside_rows
    monkeypatch.setattr(SparkWarehouse, "beside_rows", lambda *given: [done.append("said"), beside(*given)][1])
    monkeypatch.setattr(SparkWarehouse, "put", lambda *given: [done.append("put"), put(*given)][1])
    result = ldiv_db.run(spark, {**clinic, "keep": [], "identifiers": ["note"]})
    what = "the partitions, the comments and the table properties of clinic.released"
    assert lost(result) == [f"{what} are not kept, as the table is made anew"] and done == ["said", "put"]
    assert not any(word in shown(spark) for word in ("PARTITIONED", "COMMENT", "team"))
    assert spark.table("clinic.released").count() == 40
    other = ldiv_db.run(spark, clinic)
    assert lost(other) == []  # a table that we made has nothing to lose


@pytest.mark.slow
def test_text_of_fixed_length_is_not_padded(spark, clinic):
    spark.sql("DROP TABLE clinic.released")
    spark.sql("CREATE TABLE clinic.released (age STRING, town CHAR(9), disease STRING, note STRING) USING parquet")
    ldiv_db.run(spark, clinic)
    assert {town for (town,) in spark.sql("SELECT town FROM clinic.released").collect()} <= {"a", "b", "c", "*"}


@pytest.mark.slow
def test_files_of_a_place_of_their_own_stay_there(spark, clinic, tmp_path):
    spark.sql("DROP TABLE clinic.released")
    spark.sql(f"CREATE TABLE clinic.released ({COLUMNS}) USING parquet LOCATION '{tmp_path}/mine'")
    spark.sql("INSERT INTO clinic.released VALUES ('old', 'old', 'old', 'old')")
    (said,) = lost(ldiv_db.run(spark, clinic))
    assert said.startswith("the comments and the ties to the files in ") and f"{tmp_path}/mine of clinic.r" in said
    assert spark.table("clinic.released").count() == 40
    assert spark.read.parquet(f"{tmp_path}/mine").count() == 1


@pytest.mark.parametrize("is_known", some([False, True]))
def test_a_folder_of_a_table_that_is_not_known_is_refused_before_any_work(spark, clinic, monkeypatch, is_known):
    """Where it is known, the table is one of files of their own, in the place where those of the catalog's would be."""
    place = f"{spark.catalog.getDatabase('clinic').locationUri}/forgotten"
    spark.sql("SELECT 'old' AS age").write.parquet(place)
    if is_known:
        spark.sql(f"CREATE TABLE clinic.forgotten USING parquet LOCATION '{place}'")
    monkeypatch.setattr(SparkWarehouse, "fetch", None)
    target = {"table": "clinic.forgotten", "if_exists": "replace"}
    with pytest.raises(PolicyError, match=r"target: .*/clinic.db/forgotten has files already, .*move them away"):
        ldiv_db.run(spark, {**clinic, "target": target})
    assert [row["age"] for row in spark.read.parquet(place).collect()] == ["old"]


@pytest.mark.slow
def test_a_night_in_a_new_session_says_what_is_in_its_way(tmp_path):
    program = [sys.executable, str(Path(__file__).with_name("nightly.py")), str(tmp_path / "warehouse")]
    nights = [subprocess.run(program, capture_output=True, text=True, check=True, cwd=tmp_path) for _ in range(2)]
    first, second = (night.stdout.splitlines() for night in nights)
    assert first == ["published", "40"]
    assert second[0].startswith("target: ") and "clinic.db/released has files already" in second[0]
    assert second[-1] == "40"
