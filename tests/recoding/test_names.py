"""Counts, recodings and empty releases by each engine's own rules of names, which emulators that fold names hide."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import reject
from hypothesis import strategies as st
from own_names import held, resolve
from recoded import Case, random_case, recoded
from servers import DuckDB
from strategies import search

from ldiv_db.database.catalog import Column
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import DIALECTS
from ldiv_db.policy.reading import parse_policy
from ldiv_db.recoding.counting import counting_sql
from ldiv_db.running import dbt_model


def tables(case: Case, source: str) -> dict[str, dict[str, str]]:
    """The columns of the case's table, with their types, under the name `source`."""
    return {source: {name: DuckDB.types[kind] for name, kind in case.columns.items()}}


def named(seed: int) -> tuple[str | None, str]:
    """What the table is called there, as it is asked for, and its name: a plain one, or that of the policy."""
    return ("patients", "patients") if seed % 2 else (None, "my source")


@search(4, seed=st.integers(0, 107))
def test_each_name_of_the_counts_is_one(seed: int) -> None:
    case = random_case(seed)
    asked, name = named(seed)
    for dialect in DIALECTS:
        sql = counting_sql(parse_policy(case.policy), dialect, asked)
        assert [select.alias for select in resolve(sql, dialect, tables(case, name)).selects]


@search(1, seed=st.integers(0, 107))
def test_each_name_of_a_recoding_is_one(seed: int) -> None:
    made = recoded(seed)
    if made is None:  # the random table cannot meet its requirements
        reject()
    asked, name = named(seed)
    for dialect in DIALECTS:
        with suppress(PolicyError):  # of values that the dialect may write otherwise, which has tests of its own
            sql = made.sql(dialect, asked)
            assert len(resolve(sql, dialect, tables(made.case, name)).selects) == len(made.case.columns)


@search(4, seed=st.integers(0, 107))
def test_each_name_of_an_empty_release_is_one(seed: int) -> None:
    """The columns of a dbt model's release, as `--empty` makes them."""
    case = random_case(seed)
    _, name = named(seed)
    policy = parse_policy(case.policy | {"output": {"class_id": seed % 3 == 0, "bounds": seed % 4 == 0}})
    for dialect in DIALECTS:
        columns = [Column(held(column, dialect), DuckDB.types[kind]) for column, kind in case.columns.items()]
        sql = dbt_model._no_rows(policy, Relation((name,)), columns, dialect)
        found = resolve(sql, dialect, tables(case, name)).selects
        assert [one.alias for one in found] == [held(column, dialect) for column in policy.released.all]
