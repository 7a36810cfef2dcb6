"""Sets and bounds as they are published: types, targets, audits, order, and nothing in a file but the release."""

from __future__ import annotations

import datetime
import random
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from strategies import some
from tables import fill

import ldiv_db

FILES = ("release.duckdb", "release.parquet", "release.csv")
BOUNDS = {"bounds": True}
SETS_OF_NUMBERS = {"age": {"numeric": True, "recode": "set"}}


def target(name: str) -> dict[str, Any]:
    return {"file": name, **({"table": "published.patients"} if name.endswith(".duckdb") else {})}


def columns(bed: Any, table: str = "patients") -> dict[str, str]:
    """The columns of the release with their types."""
    return dict(
        bed.sql(
            "SELECT column_name, data_type FROM duckdb_columns()"
            f" WHERE schema_name = 'published' AND table_name = '{table}' ORDER BY column_index"
        )
    )


# -- bounds ----------------------------------------------------------------------------------------------


def test_bounds_are_two_columns_of_the_sources_type(released: Any) -> None:
    labels = released.sql("SELECT class_id, age, country, disease, ward FROM published.patients ORDER BY ALL")
    released.write_policy(output=BOUNDS, target="published.bounded")
    called = released.run("--json")
    assert called.code == 0, called.err
    assert columns(released, "bounded") == {
        "class_id": "BIGINT", "age_min": "INTEGER", "age_max": "INTEGER", "country": "VARCHAR", "disease": "VARCHAR",
        "ward": "VARCHAR",
    }  # fmt: skip
    bounded = released.sql("SELECT age_min, age_max, country, disease, ward FROM published.bounded")
    assert sorted((f"[{low} .. {high}]" if low < high else str(low), *rest) for low, high, *rest in bounded) == sorted(
        row[1:] for row in labels
    )


TYPES = {
    "UTINYINT": ("CAST(i * 5 AS UTINYINT)", int),
    "BIGINT": ("CAST(9007199254740993 + i AS BIGINT)", int),
    "HUGEINT": ("CAST(170141183460469231731687303715884105700 + i AS HUGEINT)", int),
    "DECIMAL(10,2)": ("CAST(i * 0.37 - 4 AS DECIMAL(10, 2))", None),
    "DOUBLE": ("CAST(i * 0.1 AS DOUBLE)", float),
    "DATE": ("DATE '1969-12-20' + CAST(i AS INTEGER)", datetime.date),
    "TIMESTAMP": ("TIMESTAMP '1999-12-31 23:59:50' + i * INTERVAL 1 SECOND", datetime.datetime),
}


@pytest.mark.parametrize("kind", some(TYPES))
@pytest.mark.parametrize("name", some([*FILES[1:], None, FILES[0]]))
def test_bounds_of_every_type_bound_their_class_wherever_they_go(bed: Any, kind: str, name: str | None) -> None:
    value, python = TYPES[kind]
    bed.sql(
        f"CREATE TABLE typed AS SELECT {value} AS x, {value} AS truth, 'd' || (i * 7 % 5) AS disease"
        " FROM (SELECT CAST(range AS BIGINT) AS i FROM range(24))"
    )
    bed.write_policy(
        source="typed", identifiers=None, keep=["truth"], quasi_identifiers={"x": {"numeric": True}}, output=BOUNDS,
        target=target(name) if name else "published.patients",
    )  # fmt: skip
    called = bed.run("--json")
    if kind == "HUGEINT" and name == "release.parquet":
        assert called.code == 2 and "no integers as wide as x_min, x_max, truth" in called.err
        return
    assert called.code == 0, called.err
    relation = {".parquet": "read_parquet('{}')", ".csv": "read_csv('{}', all_varchar = true)"}.get(
        Path(name or "").suffix, "published.patients"
    )
    database = bed.folder / name if name and name.endswith("duckdb") else bed.database
    with duckdb.connect(str(database), read_only=True) as con:
        cast = f"CAST({{}} AS {kind})"
        shown = [cast.format(column) for column in ("x_min", "x_max", "truth")]
        found = con.execute(f"SELECT {', '.join(shown)} FROM {relation.format(bed.folder / (name or ''))}").fetchall()
        kinds = con.execute(f"SELECT DISTINCT typeof(x_min) FROM {relation.format(bed.folder / (name or ''))}")
        assert kinds.fetchall() == [("VARCHAR" if name == "release.csv" else kind,)]
    assert len(found) == 24 and len({row[:2] for row in found}) > 1
    assert all(low <= truth <= high for low, high, truth in found)
    assert python is None or all(isinstance(cell, python) for row in found for cell in row)


def test_no_bounds_for_null_and_for_null_beside_numbers(bed: Any) -> None:
    """The two are published alike, count as fully generalised, and stand in no order that would tell them apart."""
    rows = [(None, f"s{i + 2}", i) for i in range(20)] + [(None, "s1", 20 + i) for i in range(40)]
    rows += [(30, f"t{i}", 60 + i) for i in range(60)]
    with duckdb.connect(str(bed.database)) as con:
        fill(con, "nulls", {"age": "INTEGER", "disease": "VARCHAR", "rid": "INTEGER"}, rows)
    wanted = {"source": "nulls", "identifiers": None, "keep": ["rid"], "require": [{"unique_distinct": 2}],
              "quasi_identifiers": {"age": {"numeric": True}}}  # fmt: skip
    bed.write_policy(**wanted, output=BOUNDS)
    called = bed.run("--json")
    assert called.code == 0, called.err
    classes: dict[int, set[Any]] = {}
    for class_id, low, high, rid in bed.sql("SELECT class_id, age_min, age_max, rid FROM published.patients"):
        age = rows[rid][0]
        assert (low, high) in ((None, None), (age, age))
        classes.setdefault(class_id, set()).add(age)
    untold = [classes[number] for number in sorted(classes) if None in classes[number]]
    assert untold.count({None}) > 3 and untold.count({None, 30}) > 3
    kinds = [len(ages) for ages in untold]
    assert kinds not in (sorted(kinds), sorted(kinds, reverse=True))
    lost = sum(1 for _, low, *_ in bed.sql("SELECT class_id, age_min FROM published.patients") if low is None)
    assert called.json["loss"]["lm"] == lost
    # The auditor sees one class where it may not tell them apart.
    called = bed.call("check", bed.database, "published.patients", "--qi", "age_min,age_max", "--sensitive", "disease",
                      "--require", "distinct:2", "--json")  # fmt: skip
    assert called.code == 0
    merged = bed.sql("SELECT count(DISTINCT (age_min, age_max)) FROM published.patients")
    assert f'"classes": {merged[0][0]}' in called.out


def test_append_needs_bounds_of_the_same_type(bed: Any) -> None:
    bed.write_policy(output=BOUNDS, target={"table": "released", "if_exists": "append"})
    texts = ", ".join(f"{name} VARCHAR" for name in ("country", "disease", "ward"))
    bed.sql(f"CREATE TABLE released (class_id BIGINT, age_min INTEGER, age_max BIGINT, {texts})")
    bed.refuses("target", "run", bed.database, bed.policy)
    bed.sql("ALTER TABLE released ALTER age_max TYPE INTEGER")
    bed.write_policy(target={"table": "released", "if_exists": "append"})
    message = bed.fails(2, "run", bed.database, bed.policy)
    assert "has column age_min as INTEGER, not none" in message and "has column age as none, not VARCHAR" in message


def test_append_takes_labels_and_sets_alike(released: Any) -> None:
    released.write_policy(recode="set", target={"table": "published.patients", "if_exists": "append"})
    assert released.run().code == 0
    assert released.sql("SELECT count(*) FROM published.patients") == [(48,)]


def test_names_that_bounds_would_take_twice_are_refused(bed: Any) -> None:
    bed.sql("ALTER TABLE patients RENAME ward TO AGE_Max")
    bed.sql("ALTER TABLE patients ADD COLUMN Age_Min INTEGER")
    bed.write_policy(keep=["AGE_Max"], identifiers=["name"], output=BOUNDS)
    document = yaml.safe_load(bed.policy.read_text())
    document["quasi_identifiers"]["age_min"] = {"taxonomy": {"ranges": [5]}}
    bed.policy.write_text(yaml.safe_dump(document, sort_keys=False))
    message = bed.fails(2, "run", bed.database, bed.policy)
    assert "output.bounds: age would be published as age_min" in message
    assert "output.bounds: age would be published as age_max" in message
    document["output"] = {}
    bed.policy.write_text(yaml.safe_dump(document, sort_keys=False))
    assert bed.call("plan", bed.database, bed.policy).code == 0
    # Bounds of its own free a name, and what is not published takes none.
    document["quasi_identifiers"]["age_min"] = {"numeric": True}
    document |= {"output": BOUNDS, "keep": [], "identifiers": ["name", "AGE_Max"]}
    bed.policy.write_text(yaml.safe_dump(document, sort_keys=False))
    assert bed.run().code == 0
    assert list(columns(bed))[1:5] == ["age_min", "age_max", "country", "age_min_min"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"recode": "leaf"}, "recode"),
        ({"quasi_identifiers": SETS_OF_NUMBERS, "identifiers": ["name", "country"]}, "quasi_identifiers.recode"),
        ({"output": {"bounds": "wide"}}, "output"),
        ({"output": {"bound": True}}, "output"),
        ({"recod": "set"}, "recod"),
    ],
)
def test_what_is_no_form_is_refused(bed: Any, changes: dict[str, Any], code: str) -> None:
    bed.write_policy(**changes)
    bed.refuses(code, "run", bed.database, bed.policy)


def test_the_plan_says_what_is_published(bed: Any) -> None:
    bed.write_policy(recode="set", output=BOUNDS)
    planned = bed.call("plan", bed.database, bed.policy, "--json").json["columns"]
    ways = {column["column"]: column["generalised_by"] for column in planned}
    assert ways["age"] == "ranges of numbers, as two columns" and ways["country"].endswith("height 2, or sets")


# -- nothing but the release ---------------------------------------------------------------------------------


@pytest.fixture
def secrets(bed: Any) -> Any:
    """Towns of a tree, of which some occur in rows that are dropped alone, and incomes that occur nowhere else."""
    towns = [f"Towntown{i:03}x" for i in range(240)]
    bed.write("town.csv", "".join(f"{town};Region{i // 60};*\n" for i, town in enumerate(towns)))
    rows = [(f"Secretname{i:04}y", towns[i], 7_000_001 + i * i * 31, "ABCD"[i % 4]) for i in range(200)]
    rows += [(f"Droppedname{i}z", towns[200 + i], 9_999_991 + i, None) for i in range(20)]
    with duckdb.connect(str(bed.database)) as con:
        columns = {"name": "VARCHAR", "town": "VARCHAR", "income": "BIGINT", "disease": "VARCHAR"}
        fill(con, "secrets", columns, random.Random(3).sample(rows, len(rows)))
    bed.write_policy(
        source="secrets", keep=None, nulls_sensitive="suppress", seed=918273645546372819, recode="set", output=BOUNDS,
        quasi_identifiers={"town": {"taxonomy": {"file": "town.csv"}}, "income": {"numeric": True}},
    )  # fmt: skip
    return bed


DROPPED = re.compile(rb"Secretname\d|Droppedname|Towntown2[0-3]\d|99999\d\d|10000\d{3}|918273645546372819")


def read(path: Path) -> list[tuple[Any, ...]]:
    """Town and bounds of every row of a release, as text."""
    relation = "published.patients" if path.suffix == ".duckdb" else f"read_{path.suffix[1:]}('{path}')"
    with duckdb.connect(
        str(path) if path.suffix == ".duckdb" else ":memory:", read_only=path.suffix == ".duckdb"
    ) as con:
        return con.execute(f"SELECT town, income_min::VARCHAR, income_max::VARCHAR FROM {relation}").fetchall()


@pytest.mark.parametrize("name", some([*FILES, None]))
def test_no_value_that_was_dropped_is_published_logged_or_in_the_ledger(secrets: Any, name: str | None) -> None:
    """And the seed is in the ledger alone; the search finds what is there."""
    source = secrets.database.read_bytes()
    assert DROPPED.search(source) and b"Droppedname" in source
    if name:
        document = yaml.safe_load(secrets.policy.read_text())
        secrets.policy.write_text(yaml.safe_dump(document | {"target": target(name)}))
    called = secrets.run()
    assert called.code == 0, called.err
    said = called.out + called.err + secrets.call("plan", secrets.database, secrets.policy, "--sql").out
    assert re.search(r"Secretname|Droppedname|Towntown|918273645546372819", said) is None
    tables = secrets.sql("SELECT schema_name, table_name FROM duckdb_tables() WHERE table_name <> 'secrets'")
    held = {
        (table, cell)
        for schema, table in tables
        for row in secrets.sql(f'SELECT CAST(COLUMNS(*) AS VARCHAR) FROM "{schema}"."{table}"')
        for cell in row
        if cell is not None
    }
    assert {(table, cell) for table, cell in held if DROPPED.search(cell.encode())} == {
        ("run_secret", "918273645546372819")
    }
    assert not [cell for table, cell in held if table != "patients" and "Towntown" in cell]
    if name:
        _require_nothing_dropped(secrets.folder / name)


def _require_nothing_dropped(path: Path) -> None:
    """That a file has neither what was dropped, nor incomes inside the bounds of their class, nor the seed."""
    content, rows = path.read_bytes(), read(path)
    if path.suffix == ".parquet":  # compressed there: look into the pages and the metadata
        content += repr(rows).encode()
        for meta in ("parquet_metadata", "parquet_kv_metadata"):
            content += repr(duckdb.sql(f"SELECT * FROM {meta}('{path}')").fetchall()).encode()
    assert DROPPED.search(content) is None
    assert b"Towntown0" in content and any(town.startswith("{") for town, *_ in rows)
    shown = {int(bound) for _, *bounds in rows for bound in bounds}
    incomes = {7_000_001 + i * i * 31 for i in range(200)}
    assert shown < incomes and len(incomes - shown) > 40, "some incomes lie inside their class's bounds"
    inside = (incomes - shown) | {9_999_991 + i for i in range(20)} | {918273645546372819}
    assert not [
        number for number in inside if number.to_bytes(8, "little") in content or str(number).encode() in content
    ]


@pytest.mark.slow
def test_a_file_holds_no_value_that_was_generalised(secrets: Any) -> None:
    """With labels of a tree and of ranges no town and no income is shown, as text or as an integer."""
    document = yaml.safe_load(secrets.policy.read_text()) | {"target": target("release.duckdb"), "output": {}}
    document |= {"recode": "tree"}
    document["quasi_identifiers"]["income"] = {"taxonomy": {"ranges": [1_000_000], "origin": 0}}
    secrets.policy.write_text(yaml.safe_dump(document))
    assert secrets.run().code == 0
    content = (secrets.folder / "release.duckdb").read_bytes()
    assert DROPPED.search(content) is None and b"Towntown" not in content and b"Region" in content
    incomes = [7_000_001 + i * i * 31 for i in range(200)]
    assert not [i for i in incomes if i.to_bytes(8, "little") in content or str(i).encode() in content]


@pytest.mark.parametrize(("output", "counted"), some([({}, False), (BOUNDS, True), ({}, True), (BOUNDS, False)], 2))
def test_rows_are_shown_before_and_after_to_whoever_may_see_values(con, output, counted):
    rows = [(age, town, "abcd"[age % 4]) for age in range(20, 60) for town in ["x", None]] * (1 + counted)
    fill(con, "people", {"age": "INTEGER", "town": "VARCHAR", "s": "VARCHAR"}, rows)
    policy = {"source": "people", "target": {"table": "out", "if_exists": "replace"}, "sensitive": ["s"], "seed": 1}
    policy |= {"quasi_identifiers": {"age": {"numeric": True}, "town": {"recode": "set"}}, "require": [{"distinct": 3}]}
    policy |= {"output": output, "algorithm": "topdown"}
    found = ldiv_db.run(con, policy, show_values=True)
    age, town, s = found.examples
    before = list(zip(age.before, town.before, s.before, strict=True))
    assert len(before) == 3 and {*before} <= {(str(a), t or "NULL", v) for a, t, v in rows}
    columns = "age_min || ' .. ' || age_max" if output else "age"
    written = con.execute(f"SELECT {columns}, coalesce(town, 'NULL'), s FROM out").fetchall()
    assert {*zip(age.after, town.after, s.after, strict=True)} <= {*written}
    for was, now in zip(age.before, age.after, strict=True):
        low, *high = (int(text) for text in re.findall(r"\d+", now))
        assert low <= int(was) <= (high or [low])[0]
    assert all(was in now for was, now in zip(town.before, town.after, strict=True) if now != "*")
    hidden = ldiv_db.run(con, policy)
    assert "before → after" in str(found) and "before → after" not in str(hidden) and not hidden.examples
    assert found.as_dict().keys() == hidden.as_dict().keys()  # for the screen alone
