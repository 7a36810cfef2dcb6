"""What a release of a CSV file publishes as it is, it publishes as the file writes it, whatever its values count as."""

import csv
import json
import random
from pathlib import Path

import pytest
from strategies import some

import ldiv_db

COLUMNS = {
    "cost": ["1.10", "2.50", "3.00"],
    "code": ["1E50", "1E51", "1E30"],
    "deny": ["yes", "no"],
    "paid": ["3", "2.5", "0.5"],
    "seen": ["03.05.2024", "04.05.2024", "05.05.2024"],
    "at": ["10:00", "11:30", "12:00"],
}


@pytest.fixture
def folder(tmp_path):
    draw = random.Random(4)
    rows = [[draw.randint(20, 80), *(values[i % len(values)] for values in COLUMNS.values())] for i in range(60)]
    write(tmp_path, ["age", *COLUMNS], rows)
    return tmp_path


def write(folder, header, rows):
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def published(con, folder, sensitive, require, target="o.csv", **more):
    """The result of a run, and the columns of source and release, each sorted."""
    names = list(sensitive)
    keep = [name for name in COLUMNS if name not in names] if "keep" not in more else more.pop("keep")
    policy = {"source": "t.csv", "target": {"file": target}, "quasi_identifiers": {"age": {"numeric": True}},
              "sensitive": sensitive, "keep": keep, "require": require,
              "algorithm": {"name": "bsgi", "select": "bisect"}}  # fmt: skip
    result = ldiv_db.run(con, policy | more, folder=folder)
    if target.endswith(".csv"):
        with open(folder / target, newline="") as file:
            release = list(csv.DictReader(file))
    else:
        found = con.sql(f"FROM '{folder / target}'")
        release = [dict(zip(found.columns, map(str, row), strict=True)) for row in found.fetchall()]
    with open(folder / "t.csv", newline="") as file:
        source = list(csv.DictReader(file))
    return result, {
        name: tuple(sorted(row[name] for row in table) for table in (source, release)) for name in names + keep
    }


@pytest.mark.parametrize("target", some(["o.csv", "o.parquet"]))
@pytest.mark.parametrize("name", some(COLUMNS))
def test_sensitive_and_kept_columns_keep_their_spelling(con, folder, name, target):
    result, columns = published(con, folder, {name: {}}, [{"distinct": 2}], target)
    assert all(source == release for source, release in columns.values())
    assert not [note for note in result.notes if "writes it" in note]


@pytest.mark.parametrize("named", some(["2.5", "2.50"]))
@pytest.mark.parametrize("settings", some([{"harmless": ["{}"]}, {"categories": [["{}"], ["1.10"], ["3.00"]]}]))
def test_values_are_named_in_any_spelling(con, folder, settings, named):
    filled = json.loads(json.dumps(settings).replace("{}", named))
    result, columns = published(con, folder, {"cost": filled}, [{"frequency": 2}], algorithm="topdown")
    assert columns["cost"][0] == columns["cost"][1]
    assert not [note for note in result.notes if "no row has" in note]


def test_a_column_whose_numbers_are_asked_for_is_counted_by_them(con, folder):
    result, columns = published(con, folder, {"cost": {}}, [{"t_closeness": 0.3}], algorithm="mondrian")
    assert columns["cost"][0] == columns["cost"][1]  # two decimals all over: a DECIMAL writes them as they are
    (audit,) = result.audits
    assert audit.verdicts[0].requirement.distance == "ordered"


def test_equal_numbers_that_are_spelt_differently_are_one_value(con, tmp_path):
    """Two spellings of one number are no two values: by them a class of one number would pass for diverse."""
    rows = [[20 + i // 2, ("1.5", "1.50", "2.5", "3")[i % 2 if i < 20 else i % 4]] for i in range(40)]
    write(tmp_path, ["age", "dose"], rows)
    result, columns = published(con, tmp_path, {"dose": {}}, [{"distinct": 2}], keep=[], algorithm="mondrian")
    assert set(columns["dose"][1]) == {"1.5", "2.5", "3.0"}
    assert any("dose is published as DOUBLE writes it, not as t.csv does" in note for note in result.notes)
    classes = {}
    with open(Path(tmp_path, "o.csv"), newline="") as file:
        for row in csv.DictReader(file):
            classes.setdefault(row["age"], set()).add(float(row["dose"]))
    assert min(map(len, classes.values())) >= 2


@pytest.mark.slow
def test_a_release_is_measured_as_its_source_is_read(con, folder):
    published(con, folder, {"paid": {}}, [{"distinct": 2}])
    policy = {"source": "t.csv", "target": {"file": "o.csv"}, "quasi_identifiers": {"age": {"numeric": True}},
              "sensitive": ["paid"], "keep": [name for name in COLUMNS if name != "paid"],
              "require": [{"distinct": 2}]}  # fmt: skip
    found = ldiv_db.measure(con, str(folder / "o.csv"), policy=policy, folder=folder, queries=2, seed=1)
    con.execute(f"CREATE TABLE o AS SELECT * FROM read_csv('{folder / 'o.csv'}', all_varchar = true)")
    assert found.as_dict() == ldiv_db.measure(con, "o", policy=policy, folder=folder, queries=2, seed=1).as_dict() | {
        "published": found.published
    }
