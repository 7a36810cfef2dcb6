"""More rows than a part: the release is that of an embedded run in parts, and the driver sees counts alone."""

import random

import pytest
from alike import assert_alike, run_both, small, to_spark

import ldiv_db

CASES = {
    "bsgi": {"algorithm": "bsgi", "require": [{"unique_distinct": 2}], "output": {"class_id": True}},
    "mondrian": {"algorithm": "mondrian", "require": [{"distinct": 2}]},
    "relaxed": {"algorithm": {"name": "mondrian", "split": "relaxed"}, "require": [{"k": 3}], "nulls": "suppress"},
    "topdown": {"algorithm": "topdown", "require": [{"entropy": 1.5}]},
    "one task": {"algorithm": {"name": "bsgi", "residue": "suppress"}, "require": [{"unique_distinct": 2}]},
}


def skewed(con, seed, rows=60):
    """Half of the rows have one combination, one sensitive value is in many, and NULLs are in all columns."""
    draw = random.Random(seed)
    con.execute("CREATE TABLE source (age INTEGER, city VARCHAR, smokes BOOLEAN, disease VARCHAR, note VARCHAR)")
    for number in range(rows):
        usual = (30, "Łódź", True)
        other = (draw.choice([None, 20, 30, 41]), draw.choice([None, "a`b", "é"]), draw.choice([None, True, False]))
        row = usual if number % 2 else other
        disease, note = draw.choice(["flu", "flu", "HIV", "cold", "ok"]), draw.choice([None, "x", ""])
        con.execute("INSERT INTO source VALUES (?, ?, ?, ?, ?)", [*row, disease, note])


@pytest.mark.parametrize("name", CASES)
def test_parts_are_published_as_those_of_an_embedded_run(spark, con, tmp_path, name):
    skewed(con, name, 61 if name == "one task" else 60)  # of pairs one row is left out
    policy = {
        "quasi_identifiers": ["age", "city", "smokes"],
        "sensitive": ["disease"],
        "keep": ["note"],
        "seed": 1,
        "part_rows": 24,
        **CASES[name],
    }
    embedded, found = run_both(spark, con, policy, tmp_path)
    assert found.search.get("parts") == embedded.search.get("parts")
    if name == "one task":
        assert any("one task of one executor" in note for note in found.notes)
        return
    assert_alike(spark, con, embedded, found)


@pytest.fixture
def collected(monkeypatch):
    """The rows that came to the driver, by what fetched them."""
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415

    fetched = []

    def watch(name):
        own = getattr(DataFrame, name)

        def fetch(self, *args, **kwargs):
            found = own(self, *args, **kwargs)
            rows = found.to_pylist() if name == "toArrow" else list(found)
            fetched.extend(repr(row) for row in rows)
            return found

        monkeypatch.setattr(DataFrame, name, fetch)

    for name in ("collect", "toArrow", "take", "head", "toLocalIterator"):
        watch(name)
    monkeypatch.setattr(DataFrame, "toPandas", None)
    return fetched


@pytest.mark.parametrize("part_rows", [1000, 150])
def test_the_driver_sees_counts_and_dictionaries(spark, con, collected, tmp_path, part_rows):
    policy = {**small(con, 400), "part_rows": part_rows, "source": to_spark(spark, con, "source")}
    # Neither the tables of the session's catalog are listed nor its ledger read, which tests before this one filled.
    result = ldiv_db.run(spark, {**policy, "target": "counted.parquet"}, tmp_path, catalog=str(tmp_path / "c.duckdb"))
    assert result.loss.rows_published == 400
    assert not any("secret" in row for row in collected)
    # 7 ages, 3 towns and 4 diseases make 84 combinations; of the release classes are counted.
    assert 0 < len(collected) < 250
