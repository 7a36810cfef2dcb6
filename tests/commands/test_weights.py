"""`ldiv sql counts`, and runs on what it counts: what they print, and what is refused with nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import sqlglot
from sqlglot import exp

from ldiv_db.commands.sql import Dialect
from ldiv_db.database.traits_there import DIALECTS
from tests.beds import Bed
from tests.strategies import some

TREES = {"age": {"taxonomy": {"ranges": [5, 10]}}, "country": {"taxonomy": {"file": "country.csv"}}}


@pytest.fixture(scope="module")
def first_counted(first_bed: Path, tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """The bed with the counts of its patients beside them, and a policy of them."""
    bed = Bed(first_bed).copied(tmp_path_factory.mktemp("counted"))
    bed.write_policy(quasi_identifiers=TREES, algorithm="cuts", require=[{"frequency": 2}])
    counts = bed.call("sql", "counts", bed.policy).out
    bed.sql(f"CREATE TABLE counts AS {counts}")
    return bed


@pytest.fixture
def counted(first_counted: Bed, tmp_path: Path) -> Bed:
    return first_counted.copied(tmp_path)


def of_counts(bed: Any, **changes: Any) -> None:
    more = {"source": "counts", "weight": "n", "algorithm": "cuts", "require": [{"frequency": 2}]}
    bed.write_policy(**{"quasi_identifiers": TREES, **more, **changes})


def test_the_options_are_the_dialects() -> None:
    assert get_args(Dialect) == DIALECTS


@pytest.mark.parametrize("dialect", some(DIALECTS))
def test_every_dialect_has_one_select_of_the_columns(counted: Any, dialect: str) -> None:
    called = counted.call("sql", "counts", counted.policy, "--dialect", dialect, "--source", 'clinic."the people"')
    assert called.code == 0 and called.err == ""
    (tree,) = sqlglot.parse(called.out.rstrip().removesuffix(";"), read=dialect)
    assert isinstance(tree, exp.Select)
    assert [column.alias.lower() for column in tree.selects] == ["age", "country", "disease", "n"]
    grouped = {column.name.lower() for one in tree.args["group"].expressions for column in one.find_all(exp.Column)}
    assert grouped == {"age", "country", "disease"}
    (table,) = tree.find_all(exp.Table)
    assert (table.name, table.db.lower()) == ("the people", "clinic")


def test_counts_as_json(counted: Any) -> None:
    called = counted.call("sql", "counts", counted.policy, "--json", "--dialect", "clickhouse")
    document = called.json
    assert set(document) == {"dialect", "columns", "weight", "sql"}
    assert (document["dialect"], document["weight"]) == ("clickhouse", "n")
    assert document["columns"] == ["age", "country", "disease"]


def test_a_run_on_counts_says_what_it_says_of_the_rows(counted: Any) -> None:
    of_rows = counted.run("--json").json
    released = counted.sql("SELECT age, country, disease FROM published.patients")
    counted.sql("DROP TABLE published.patients")
    of_counts(counted)
    plan = counted.call("plan", counted.database, counted.policy, "--json").json
    assert {"column": "n", "role": "weight", "generalised_by": None} in plan["columns"]
    assert plan["rows_in"] == 24
    called = counted.run("--json")
    assert called.code == 0, called.err
    found = called.json
    assert counted.sql("FROM published.patients") == released
    assert "the release lacks ward, kept beside rows that the source only counts" in found["notes"]
    apart = ("run_id", "seconds", "source", "notes")
    assert {k: v for k, v in found.items() if k not in apart} == {k: v for k, v in of_rows.items() if k not in apart}
    says = counted.fails(2, "sql", "recode", counted.database, found["run_id"])
    assert "--source: the run was planned from counts, counts" in says
    select = counted.call("sql", "recode", counted.database, found["run_id"], "--source", "patients").out
    recoded = counted.sql(select.rstrip().removesuffix(";"))
    assert sorted(row[:-1] for row in recoded) == sorted(released) and len(recoded[0]) == 4


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--dialect", "sparc"], "sparc"),
        (["--source", "people.csv"], "source: people.csv is a file"),
        (["--source", "a..b"], "source: 'a..b' is not the name of a table"),
    ],
)
def test_a_count_of_nothing_is_refused(counted: Any, words: list[str], says: str) -> None:
    assert says in counted.fails(2, "sql", "counts", counted.policy, *words)


def test_the_counts_of_counts_are_refused(counted: Any) -> None:
    of_counts(counted)
    assert "source: counts holds the counts already" in counted.fails(2, "sql", "counts", counted.policy)
    assert counted.call("sql", "counts", counted.policy, "--source", "patients").code == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"weight": None}, "source: has a column n that the policy does not classify"),
        ({"weight": "m"}, "weight.m: the source has no such column"),
        ({"weight": ["n"]}, "weight"),
        ({"algorithm": {"name": "tds", "class": "ward"}}, "algorithm.class: ward is not published as it is"),
    ],
)
def test_what_a_source_of_counts_cannot_have_is_refused(counted: Any, changes: dict[str, Any], says: str) -> None:
    of_counts(counted, **changes)
    assert says in counted.fails(2, "run", counted.database, counted.policy)


def test_a_count_that_is_none_is_refused(counted: Any) -> None:
    of_counts(counted)
    counted.sql("UPDATE counts SET n = 0 WHERE rowid = 0")
    says = counted.fails(2, "run", counted.database, counted.policy)
    assert "weight: n is zero in 1 row (takes positive whole numbers" in says
    assert "a line of none stands for nobody" in says and 'WHERE "n" > 0' in says
