"""What a run is said to need, against what it takes and against what there is."""

import dataclasses
import re

import duckdb
import pytest

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.snapshot import Snapshot
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running import estimate
from ldiv_db.running.demo import adult_policy
from ldiv_db.running.estimate import Estimate, size
from tests.benchmarks import bsgi as bench
from tests.benchmarks.command import engine_on

POLICY = {
    "source": "t", "target": "released", "quasi_identifiers": {"x": {"numeric": True}}, "sensitive": ["s"],
    "keep": ["note"], "require": [{"distinct": 2}], "algorithm": {"name": "bsgi", "select": "bisect"},
}  # fmt: skip
PLENTY = Estimate(
    memory=1000, memory_limit=5000, overflow=0, temp_directory="/spill", temp_free=10, release=300, disk_free=400
)


@pytest.fixture
def loaded(con):
    con.execute(
        "CREATE TABLE t AS SELECT i % 50 AS x, 's' || i % 7 AS s,"
        " CASE WHEN i % 2 = 0 THEN repeat('n', 40) END AS note FROM range(3000) AS r(i)"
    )
    return con


@pytest.mark.slow
def test_the_estimate_is_near_what_a_run_takes(con, fixtures):
    small, large = (bench.measure(bench.Case(rows, select="bisect")) for rows in (1_000, 60_000))
    taken = (large["peak_memory_mb"] - small["peak_memory_mb"]) * 2**20
    document = adult_policy(4, "bisect")
    bench.make_rows(engine_on(con), parse_policy(document), 60_000, seed=1)
    ready = ldiv_db.plan(con, document | {"source": "variants"}, fixtures / "adult")
    assert taken / 4 < ready.estimate.memory < taken * 4


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_release_is_hardly_larger_than_estimated(loaded, tmp_path, form):
    document = POLICY | {"target": f"release.{form}"}
    expected = ldiv_db.plan(loaded, document, tmp_path).estimate.release
    ldiv_db.run(loaded, document, tmp_path)
    assert 0 < (tmp_path / f"release.{form}").stat().st_size < 2 * expected


def test_it_grows_with_rows_columns_and_their_width(loaded, tmp_path):
    def needed(sql, **changes):
        loaded.execute(f"CREATE OR REPLACE TABLE t AS {sql}")
        return ldiv_db.plan(loaded, POLICY | changes, tmp_path).estimate.memory

    base = "SELECT i % 50 AS x, 's' || i % 7 AS s, {} AS note FROM range({}) AS r(i)"
    narrow = needed(base.format("'a'", 1000))
    assert needed(base.format("'a'", 4000)) == 4 * narrow
    assert needed(base.format("repeat('a', 101)", 1000)) == narrow + 1000 * 100 * 2
    assert needed(base.format("NULL", 1000)) == narrow - 1000 * 2
    keys = {"x": {"numeric": True}, "y": {"numeric": True}}
    assert needed("SELECT *, x AS y FROM (" + base.format("'a'", 1000) + ")", quasi_identifiers=keys) > narrow


def test_what_fits_is_not_spoken_of():
    assert PLENTY.notes == []
    PLENTY.require_room()


def test_what_does_not_fit_into_memory_goes_to_the_temp_directory():
    tight = dataclasses.replace(PLENTY, memory=5_000_000, memory_limit=4_000_000, overflow=1_000_000, temp_free=2**40)
    assert tight.notes == ["about 5 MB of memory are needed and 4 MB allowed: about 1 MB will go to /spill"]
    tight.require_room()
    tight = dataclasses.replace(tight, temp_free=500_000)
    assert tight.notes[1] == "only 500 KB are free there"
    tight.require_room()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"memory": 90_000, "memory_limit": 30_000, "overflow": 60_000, "temp_free": 10_000},
         "about 60 KB will go to /spill, where only 10 KB are free. Give another --temp-dir"),
        ({"memory": 90_000, "memory_limit": 30_000, "overflow": 60_000, "temp_free": 0, "temp_directory": ""},
         "will go to no temp directory"),
        ({"release": 900, "disk_free": 440}, "the release takes about 900 bytes, and only 440 bytes are free"),
    ],
)  # fmt: skip
def test_too_little_room_is_refused(changes, says):
    with pytest.raises(DatabaseError, match=re.escape(says)):
        dataclasses.replace(PLENTY, **changes).require_room()


def limit_to(monkeypatch, **limits):
    for name, limit in limits.items():
        monkeypatch.setattr(Snapshot, name, limit)


def test_a_run_without_room_is_refused_before_it_starts_and_a_plan_shows_why(loaded, snapshot, monkeypatch):
    before = snapshot(loaded)
    limit_to(monkeypatch, memory_limit=50_000, temp_directory="/spill", temp_limit=60_000)
    ready = ldiv_db.plan(loaded, POLICY)
    assert ready.estimate.overflow > 0 and "will go to /spill" in ready.estimate.notes[0]
    statements = []
    with pytest.raises(DatabaseError, match="too little room"):
        ldiv_db.run(loaded, POLICY, listener=ldiv_db.Listener(on_statement=statements.append))
    assert not [statement for statement in statements if statement.template.startswith("bsgi/")]
    assert snapshot(loaded) == before


def test_a_run_with_little_room_says_so_in_its_notes(loaded, monkeypatch):
    limit_to(monkeypatch, memory_limit=50_000, temp_directory="/tmp", temp_limit=None)
    notes = ldiv_db.run(loaded, POLICY).notes
    assert any("of memory are needed and 50 KB allowed" in note for note in notes)


@pytest.mark.parametrize("limit", ["100MB", "2GB", "1.5GiB"])
def test_what_the_database_may_use_is_read_from_its_settings(limit):
    unit = {"MB": 10**6, "GB": 10**9, "GiB": 2**30}[limit.lstrip("0123456789.")]
    wanted = float(limit.rstrip("MGiB")) * unit
    with duckdb.connect(config={"memory_limit": limit, "max_temp_directory_size": limit}) as con:
        found = Engine(con).snapshot
    assert abs(found.memory_limit - wanted) < 0.1 * wanted and found.temp_limit == found.memory_limit
    assert found.temp_directory


def test_a_share_of_the_disk_is_no_limit(con):
    assert Engine(con).snapshot.temp_limit is None


def test_sizes_for_people():
    assert [size(count) for count in (0, 999, 1000, 20_500_000, 3 * 10**12, 10**16)] == [
        "0 bytes", "999 bytes", "1 KB", "20.5 MB", "3 TB", "10,000 TB"
    ]  # fmt: skip


def test_a_folder_that_is_not_there_yet_is_on_the_disk_of_the_one_above(tmp_path):
    free = estimate.free_bytes(tmp_path / "deep" / "spill")
    assert free is not None and free > 0
