"""`check` and `profile` on the caller's connection, and the names that the package gives out."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from refusals import refuses

import ldiv_db
from ldiv_db import api
from ldiv_db.database.errors import DatabaseError, InfeasibleError, PolicyError
from tests.strategies import draws, search

COLUMNS = {"id": "INTEGER", "a": "INTEGER", "b": "VARCHAR", "s": "VARCHAR"}
ROWS = [(1, 1, "x", "Flu"), (2, 1, "x", "HIV"), (3, 2, None, "Flu"), (4, 2, None, "Cold"), (5, None, "x", "Flu")]


@pytest.fixture
def loaded(con, table):
    table("t", COLUMNS, ROWS)
    return con


@pytest.mark.parametrize("require", ["distinct:2", ["distinct:2"], [{"distinct": 2}], {"distinct": 2}])
def test_requirements_are_written_in_several_ways(loaded, require):
    (audit,) = ldiv_db.check(loaded, "t", qi=["a", "b"], sensitive=["s"], require=require)
    assert (audit.sensitive, audit.classes, audit.rows, audit.holds) == ("s", 3, 5, False)
    (verdict,) = audit.verdicts
    assert (verdict.violating_classes, verdict.violating_rows) == (1, 1)


def test_a_class_column_tells_classes_apart(loaded):
    (audit,) = ldiv_db.check(loaded, "t", "a", "s", ["k:2"], class_column="id")
    assert audit.classes == 5 and not audit.holds


def test_a_pair_is_joined_by_its_group(con, table):
    table("q", {"id": "INTEGER", "place": "INTEGER"}, [(n, n % 2) for n in range(4)])
    values = [(0, "Flu", 1), (0, "HIV", 1), (1, "Flu", 2)]
    table("v", {"place": "INTEGER", "s": "VARCHAR", "n": "INTEGER"}, values)
    (audit,) = ldiv_db.check(
        con, "q", sensitive="s", require="distinct:2", sensitive_table="v", group="place", count="n"
    )
    assert (audit.classes, audit.rows, audit.holds) == (2, 4, False)
    with pytest.raises(PolicyError, match="sensitive-table: goes with --group"):
        ldiv_db.check(con, "q", sensitive="s", require="distinct:2", group="place")


def test_bad_arguments_are_refused_by_their_codes(loaded, snapshot):
    before, words = snapshot(loaded), {"table": "t", "qi": ["a"], "sensitive": ["s"], "require": ["k:2"]}
    for code, changes in (
        ("table", {"table": "tt"}), ("qi", {"qi": ["aa"]}), ("sensitive", {"sensitive": "ss"}),
        ("class", {"class_column": "c"}), ("require", {"require": []}), ("require", {"require": ["distinct"]}),
        ("require require.k", {"require": [{"distict": 2}, {"k": "x"}]}), ("require", {"require": [{}, 3]}),
        ("require", {"require": ["k:auto"]}),
    ):  # fmt: skip
        with refuses(*code.split()):
            ldiv_db.check(loaded, **words | changes)
    assert snapshot(loaded) == before


def test_a_closed_connection_is_a_database_error(loaded):
    loaded.close()
    with pytest.raises(DatabaseError):
        ldiv_db.profile(loaded, "t")


def test_they_read_inside_the_callers_transaction_and_leave_nothing(loaded, snapshot):
    before = snapshot(loaded)
    loaded.execute("BEGIN")
    loaded.execute("INSERT INTO t VALUES (6, 1, 'x', 'Flu')")
    assert ldiv_db.profile(loaded, "t", ["a"], "s").rows == 6
    assert ldiv_db.check(loaded, "t", ["a"], "s", "k:1")[0].rows == 6
    assert loaded.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)
    loaded.execute("ROLLBACK")
    assert snapshot(loaded) == before


def test_null_is_a_value_of_a_combination(loaded):
    profile = ldiv_db.profile(loaded, "t", ["a", "b"], "s")
    assert profile.uniqueness.combinations == 3
    assert (profile.uniqueness.unique_rows, profile.uniqueness.rare_rows) == (1, 5)
    assert profile.uniqueness.unique_without == {"a": 0, "b": 1}
    assert [column.role for column in profile.columns] == [
        "identifier", "quasi-identifier", "quasi-identifier", "sensitive",
    ]  # fmt: skip
    b = profile.columns[2]
    assert (b.distinct, b.nulls, b.most) == (1, 2, 3)


@search(3, draw=draws)
def test_random_tables_agree_with_plain_python(con, table, draw):
    names = [f"q{i}" for i in range(draw.randint(1, 5))]
    rows = [tuple(draw.choice([None, "a", "b", "c"]) for _ in names) for _ in range(draw.randint(1, 60))]
    table("t", dict.fromkeys(names, "VARCHAR"), rows)
    found = ldiv_db.profile(con, "t", names).uniqueness

    def unique(kept):
        counts = Counter(tuple(row[i] for i in kept) for row in rows)
        return sum(count == 1 for count in counts.values())

    counts = Counter(rows)
    everything = list(range(len(names)))
    assert found.combinations == len(counts) and found.unique_rows == unique(everything)
    assert found.rare_rows == sum(count for count in counts.values() if count < 5)
    assert found.unique_without == {
        name: unique([i for i in everything if i != out]) for out, name in enumerate(names)
    }  # fmt: skip


def test_a_table_without_quasi_identifiers(con, table):
    table("t", {"s": "VARCHAR"}, [("a",), ("a",), ("b",)])
    profile = ldiv_db.profile(con, "t", sensitive="s")
    assert profile.uniqueness is None and profile.as_dict()["uniqueness"] is None
    assert profile.sensitive[0].entropy == pytest.approx(0.9183, abs=1e-4)


def test_what_cannot_be_profiled_is_refused(con, table):
    table("t", COLUMNS, [])
    with pytest.raises(InfeasibleError, match="empty"):
        ldiv_db.profile(con, "t")
    with pytest.raises(PolicyError, match="no table"):
        ldiv_db.profile(con, "u")


# -- the public names ------------------------------------------------------------------------------------


def test_every_public_name_is_that_of_the_api():
    assert ldiv_db.__all__ == api.__all__ and set(dir(ldiv_db)) >= set(api.__all__)
    for name in ldiv_db.__all__:
        assert getattr(ldiv_db, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ldiv_db.nothing  # noqa: B018


def test_the_package_offers_functions_and_no_modules_of_their_names():
    """It imports them when they are asked for: a module of the same name, imported before, does not stand for one."""
    lines = ["import sys, ldiv_db"]
    lines += ["assert not [m for m in sys.modules if m == 'duckdb' or m.startswith('ldiv_db.')]"]
    lines += [
        "import ldiv_db.commands.cli",
        "assert set(ldiv_db.__all__) <= set(dir(ldiv_db))",
        "from ldiv_db import api",
    ]
    lines += [f"from ldiv_db import {name}\nassert api.{name} is {name}" for name in ldiv_db.__all__]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert not [n for n in ldiv_db.__all__ if (Path(ldiv_db.__file__).parent / f"{n}.py").exists()]
