"""Questions to a published table: the source's own answer lies within the bounds, and estimates are those of worlds.

Sources are small and drawn, labels cover them in each form that is published, and the same SELECT is asked of the
source. Estimates have a second source: rows with all values that their labels stand for, each with its share.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from strategies import search, seeded

import ldiv_db
from ldiv_db.database.composer import Composer
from ldiv_db.database.context import working_engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.database.questions import read_question
from ldiv_db.measuring.asking.answer import AskRequest
from ldiv_db.measuring.asking.statement import ask_statement, expand_statement

COUNTRIES = {"Norway": "Europe", "Italy": "Europe", "Japan": "Asia", "Korea": "Asia", "Peru": None}
POLICY = {
    "source": "src",
    "target": "pub",
    "quasi_identifiers": {
        "age": {"numeric": True},
        "wage": {"numeric": True},
        "country": {"taxonomy": {"file": "country.csv"}},
        "sex": {"taxonomy": {"flat": True}, "recode": "set"},
        "zip": {"taxonomy": {"prefix": [3, 1]}},
        "visit": {"taxonomy": {"dates": ["day", "month", "year"]}},
    },
    "sensitive": ["disease"],
    "keep": ["cost"],
    "require": [{"k": 1}],
}
KEYS = (*POLICY["quasi_identifiers"],)  # type: ignore[misc]
TYPES = "age INTEGER, wage DOUBLE, country TEXT, sex TEXT, zip TEXT, visit DATE, disease TEXT, cost INTEGER"
GROUPS = (
    *("age", "country", "sex", "zip", "visit", "disease", "floor(age / 10) * 10", "width_bucket(age, 15, 35, 4)"),
    *("date_trunc('month', visit)", "floor(wage / 0.5)", "floor(cost / 5) * 5"),
)
FIGURES = (
    *("count(*)", "count(cost)", "count(age)", "count(zip)", "sum(cost)", "avg(cost)", "median(cost)", "sum(age)"),
    *("avg(age)", "median(age)", "median(visit)", "avg(wage)"),
)
BUCKETS = "CASE WHEN age < 15 THEN 0 WHEN age >= 35 THEN 5 ELSE floor((age - 15) / 5.0) + 1 END"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    paths = (";".join([name, *([above] if above else []), "*"]) for name, above in COUNTRIES.items())
    (tmp_path / "country.csv").write_text("\n".join(paths) + "\n")
    return tmp_path


def drawn_row(r: random.Random) -> dict[str, Any]:
    row = {
        "age": r.randrange(10, 40),
        "wage": r.choice([1.5, 2.25, 3.0, 3.5, 10.75]),
        "country": r.choice([*COUNTRIES]),
        "sex": r.choice("mfx"),
        "zip": "".join(r.choice("01") for _ in range(3)),
        "visit": date(2020, 1, 1) + timedelta(days=r.randrange(500)),
        "disease": r.choice(["flu", "hiv", "cold"]),
        "cost": r.randrange(-5, 20),
    }
    return {name: None if r.random() < 0.08 else value for name, value in row.items()}


def label(r: random.Random, column: str, values: set[Any]) -> str | None:
    """A label that covers the values."""
    if values == {None}:
        return r.choice([None, None, "*"])
    if r.random() < 0.08 or (None in values and column != "sex"):
        return "*"
    if column == "sex":
        values = values | ({r.choice("mfx")} if r.random() < 0.3 else set())
        texts = sorted("NULL" if value is None else value for value in values)
        return texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"
    low, high = min(values), max(values)
    if column in ("age", "wage"):
        forms = [f"[{low:g} .. {high:g}]", f"[{low:g} .. {high + 1:g})", f"{low:g}+", f"<={high:g}"]
        return f"{low:g}" if low == high else r.choice([forms[0], *forms])
    if low == high and r.random() < 0.7:
        return str(low)
    above = {COUNTRIES[value] for value in values} if column == "country" else {str(v)[:7] for v in values}
    if column == "zip":
        above = {f"{value[0]}*" for value in values}
    elif column == "visit" and len(above) > 1:
        above = {month[:4] for month in above}
    return above.pop() if len(above) == 1 and None not in above else "*"


def drawn_release(r: random.Random, rows: list[dict[str, Any]], left_out: int) -> list[dict[str, Any]]:
    """Rows in classes of one to three, and so many of them in none."""
    kept, found = rows[left_out:], list[dict[str, Any]]()
    while kept:
        several, kept = kept[: (size := r.randrange(1, 4))], kept[size:]
        labels = {key: label(r, key, {row[key] for row in several}) for key in KEYS}
        found += [{**row, **labels} for row in several]
    return found


def drawn_condition(r: random.Random, columns: tuple[str, ...], depth: int = 2) -> str:
    if depth and r.random() < 0.7:
        one, other = (drawn_condition(r, columns, depth - 1) for _ in range(2))
        return r.choice([f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"])
    column = r.choice(columns)
    value = {
        "age": lambda: r.randrange(8, 43),
        "wage": lambda: r.choice([1, 1.5, 2.25, 2.5, 3, 10.75]),
        "country": lambda: f"'{r.choice([*COUNTRIES])}'",
        "sex": lambda: f"'{r.choice('mfxq')}'",
        "zip": lambda: f"'{r.choice(['000', '010', '111', '01', '2'])}'",
        "visit": lambda: f"DATE '{date(2020, 1, 1) + timedelta(days=r.randrange(-5, 505))}'",
        "disease": lambda: f"'{r.choice(['flu', 'hiv'])}'",
        "cost": lambda: r.randrange(-6, 20),
    }[column]
    ways = [f"{column} {r.choice(['=', '<>', '<', '<=', '>', '>='])} {value()}"] * 3
    ways += [f"{column} IS NULL", f"{column} IS NOT NULL", f"{column} BETWEEN {value()} AND {value()}"]
    ways += [f"{column} {r.choice(['IN', 'NOT IN'])} ({value()}, {value()})"]
    if column in ("country", "sex", "zip", "disease"):
        ways += [
            f"{column} {r.choice(['LIKE', 'NOT LIKE'])} '{r.choice(['%a%', '0%', '01%', '_1%', '%1', 'm', 'f%'])}'"
        ]
    return r.choice(ways)


def filled(rows: list[dict[str, Any]], published: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": 1})
    labels = ", ".join(f"{key} TEXT" for key in KEYS)
    for name, types, made in (("src", TYPES, rows), ("pub", f"{labels}, disease TEXT, cost INTEGER", published)):
        con.execute(f"CREATE TABLE {name} ({types})")
        for row in made:
            con.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", [*row.values()])
    return con


def plain(value: Any) -> Any:
    """A number or a day as answers have it."""
    if isinstance(value, datetime):
        return value.date()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def moment(value: Any) -> Any:
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else value


@search(3, r=seeded)
def test_the_source_answers_within_the_bounds(folder: Path, r: random.Random) -> None:
    rows = [drawn_row(r) for _ in range(r.randrange(2, 12))]
    left_out = r.choice([0, 0, 1])
    groups = [one for one in r.sample(GROUPS, r.choice([0, 1, 2])) if one]
    figures = ["count(*)", *r.sample(FIGURES, 2)]
    if len({column for column in (*KEYS, "disease", "cost") for one in groups if column in one}) < len(groups):
        groups = groups[:1]
    where = drawn_condition(r, (*KEYS, "disease", "cost"))
    query = f"SELECT {', '.join([*groups, *figures])} FROM t WHERE {where} {'GROUP BY ALL' if groups else ''}"
    with filled(rows, drawn_release(r, rows, left_out)) as con:
        found = ldiv_db.ask(con, "pub", query, POLICY, left_out=left_out, folder=folder)
        truth = con.execute(query.replace("FROM t", "FROM src").replace(GROUPS[7], BUCKETS)).fetchall()
    answers = dict(found.groups)
    for values in truth:
        key, told = tuple(map(plain, values[: len(groups)])), values[len(groups) :]
        if key not in answers:
            assert told[0] <= (found.unlisted or 0)
            continue
        for figure, value, bounds in zip(figures, told, answers[key], strict=True):
            if value is not None and (figure.startswith("count") or not left_out):
                low, high = (getattr(bounds, end) for end in ("low", "high"))
                assert low is None or low <= moment(value), (query, figure)
                assert high is None or high >= moment(value), (query, figure)
    others = [
        bounds[0].low
        for key, bounds in answers.items()
        if key not in {tuple(map(plain, v[: len(groups)])) for v in truth}
    ]
    assert not any(others)  # no row is sure to be where none is


@pytest.mark.parametrize(
    ("column", "labels", "where", "low", "high"),
    [
        ("age", ["[20 .. 30]", "*", None, "20+"], "age IS NULL", 1, 2),
        ("age", ["[20 .. 30]", "*", None, "20+"], "age >= 20", 2, 3),
        ("age", ["[20 .. 30)", "<=29", "30"], "NOT age >= 30", 2, 2),
        ("zip", ["80*", "8*", "*", "805", "9*"], "zip LIKE '80%'", 2, 4),
        ("zip", ["80*", "8*", "*", "805", "9*"], "zip <> '805'", 1, 4),
        ("country", ["Europe", "Norway", "*", "Asia", None], "country = 'Europe'", 2, 3),
        ("country", ["Europe", "Norway", "*", "Asia", None], "country NOT LIKE 'Eur%'", 1, 2),
        ("visit", ["2020", "2020-02", "2020-01-31", "*"], "visit >= DATE '2020-02-01'", 1, 3),
        ("sex", ["{f, NULL}", "f", "{f, m}"], "sex = 'f'", 1, 3),
        ("disease", ["flu", None, "hiv"], "disease <> 'flu'", 1, 1),
    ],
)
def test_what_a_label_surely_is_and_may_be(
    folder: Path, column: str, labels: list[str | None], where: str, low: int, high: int
) -> None:
    blank = dict.fromkeys((*KEYS, "disease", "cost"))
    with filled([], [blank | {column: label} for label in labels]) as con:
        found = ldiv_db.ask(con, "pub", f"SELECT count(*) FROM t WHERE {where}", POLICY, left_out=7, folder=folder)
    assert [(one.low, one.high) for _, (one,) in found.groups] == [(low, high + 7)]


def test_rows_of_which_no_value_is_known_are_estimated_to_be_no_null(folder: Path) -> None:
    """But where the release shows NULL, a label may stand for it as for any value."""
    blank = dict.fromkeys((*KEYS, "disease", "cost"))
    with filled([], [blank | {"zip": label} for label in ("80*", "8*", "*")]) as con:
        found = ldiv_db.ask(con, "pub", "SELECT zip, count(*) FROM t GROUP BY zip", POLICY, left_out=0, folder=folder)
        assert found.groups == ()
        con.execute("UPDATE pub SET zip = NULL WHERE zip = '8*'")
        found = ldiv_db.ask(con, "pub", "SELECT zip, count(*) FROM t GROUP BY zip", POLICY, left_out=0, folder=folder)
    assert [(by, one.low, one.estimate, one.high) for by, (one,) in found.groups] == [((None,), 1, 2, 2)]


def values_of(column: str, text: str | None, reach: tuple[int, int]) -> list[Any]:
    """What a label of whole numbers, of a tree or of a set stands for, each alike."""
    if text is None:
        return [None]
    if column == "age":
        low, high = (
            reach if text == "*" else map(int, text.strip("[]").split(" .. ")) if ".." in text else (int(text),) * 2
        )
        return [*range(low, high + 1)]
    if column == "country":
        return [name for name, above in COUNTRIES.items() if text in (name, above, "*")]
    return [*("mfx" if text == "*" else text.strip("{}").split(", "))]


def shares_of(labels: list[list[Any]]) -> list[dict[Any, float]]:
    """The shares of the values of each row's label, by the root of how many rows are of a value if spread evenly."""
    frequent = Counter[Any]()
    for values in labels:
        frequent.update({value: 1 / len(values) for value in values})  # type: ignore[arg-type, misc]
    roots = [{value: math.sqrt(frequent[value]) for value in values} for values in labels]
    return [{value: root / sum(own.values()) for value, root in own.items()} for own in roots]


def written(con: Any, query: str, folder: Path) -> tuple[str, str, Any]:
    """The SELECT of rows with weights, and that of the answer here; and what SQLite answers to it of rows."""
    at, policy = Relation(("pub",)), ldiv_db.parse_policy(POLICY)
    with working_engine(con) as engine:
        rows = expand_statement(engine, at, ["age", "country", "sex"], policy, folder, Composer("duckdb", ["pub"]), at)
        request = AskRequest(at, query, left_out=0, folder=folder)
        here, there = (ask_statement(engine, at, request, policy, Composer(d, ["pub"])) for d in ("duckdb", "sqlite"))

    def answer(published: list[dict[str, Any]]) -> list[Any]:
        with closing(sqlite3.connect(":memory:")) as other:
            other.execute(f"CREATE TABLE pub ({', '.join(published[0])})")
            signs = ", ".join("?" * len(published[0]))
            other.executemany(f"INSERT INTO pub VALUES ({signs})", [[*row.values()] for row in published])
            return other.execute(there).fetchall()

    return rows, here, answer


@search(1, r=seeded)
def test_estimates_are_those_of_rows_spread_over_their_values(folder: Path, r: random.Random) -> None:
    rows = [{**drawn_row(r), "age": r.randrange(10, 40), "sex": r.choice("mfx")} for _ in range(9)]
    rows = [{**row, "country": row["country"] or "Peru"} for row in rows]
    published = drawn_release(r, rows, 0)
    ages = [r.randrange(10, 30) for _ in published]
    shown = ("*", *(f"[{age} .. {age + 6}]" for age in ages[1:]))
    published = [{**row, "age": text, "sex": row["sex"] or "m"} for row, text in zip(published, shown, strict=True)]
    published += [{**published[0], "age": "12", "sex": one} for one in "mfx"]  # a `*` of texts is what others show
    reach = (min([12, *ages[1:]]), max([12, *(age + 6 for age in ages[1:])]))
    where = drawn_condition(r, ("age", "country", "sex", "disease"))
    with filled(rows, published) as con:
        con.execute(
            "CREATE TABLE spread (age INTEGER, country TEXT, sex TEXT, disease TEXT, row_no INTEGER, weight DOUBLE)"
        )
        spread = ("age", "country", "sex")
        columns = [shares_of([values_of(key, row[key], reach) for row in published]) for key in spread]
        for number, (row, *shares) in enumerate(zip(published, *columns, strict=True)):
            for values in itertools.product(*shares):
                share = math.prod(own[value] for own, value in zip(shares, values, strict=True))
                con.execute("INSERT INTO spread VALUES (?, ?, ?, ?, ?, ?)", [*values, row["disease"], number, share])
        ((expected,),) = con.execute(f"SELECT coalesce(sum(weight), 0) FROM spread WHERE {where}").fetchall()
        met = con.execute(f"SELECT row_no, sum(weight) FROM spread WHERE {where} GROUP BY row_no").fetchall()
        query = f"SELECT count(*) FROM t WHERE {where}"
        bounds = ldiv_db.ask(con, "pub", query, POLICY, left_out=0, folder=folder).groups[0][1][0]
        rows, asked, answer = written(con, query, folder)
        ((of_rows,),) = con.execute(f"SELECT coalesce(sum(weight), 0) FROM ({rows}) AS t WHERE {where}").fetchall()
        (here,) = con.execute(asked).fetchall()
        (there,) = answer(published)
    assert bounds.estimate == pytest.approx(expected, abs=1e-9)
    assert bounds.low <= sum(share > 1 - 1e-9 for _, share in met) and bounds.high >= len(met)
    assert of_rows == pytest.approx(expected, abs=1e-9)
    assert here == there == (1, bounds.low, pytest.approx(bounds.estimate), bounds.high, 0)
    if "age" not in where and "NULL" not in where:  # ages may be no whole numbers, and anything of * NULL
        assert bounds.high == len(met)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT count(*) FROM a JOIN b ON a.x = b.x", "JOIN is not answered"),
        ("SELECT count(*) OVER () FROM t", "a window is not answered"),
        ("SELECT count(*) FROM (SELECT 1)", "FROM takes the name of one table"),
        ("SELECT count(*) FROM t WHERE x IN (SELECT 1)", "a subquery is not answered"),
        ("SELECT x, count(*) FROM t GROUP BY x HAVING count(*) > 1", "HAVING is not answered"),
        ("SELECT count(DISTINCT x) FROM t", "count(DISTINCT x) is not answered"),
        ("SELECT max(x) FROM t", "max(x) is not answered"),
        ("SELECT count(*) FROM t WHERE x = y", "x = y is not answered"),
        ("SELECT count(*) FROM t WHERE x = NULL", "nothing is equal to NULL"),
        ("SELECT x, count(*) FROM t", "no GROUP BY"),
        ("SELECT x, count(*) FROM t GROUP BY y", "GROUP BY does not list"),
        ("SELECT x FROM t GROUP BY x", "asks for no figure"),
        ("SELECT count(*) FROM t ORDER BY 1", "ORDER BY is not answered"),
        ("SELECT count(*), count(*) FROM t", "two columns of one name"),
        ("SELECT count(*) FROM read_csv('x.csv')", "FROM takes the name of one table"),
        ("SELECT count(*) FROM t; SELECT count(*) FROM t", "takes one SELECT"),
        ("DROP TABLE t", "takes one SELECT"),
        ("SELECT count(*", "cannot be read"),
    ],
)
def test_what_is_not_answered_is_named(query: str, told: str) -> None:
    with pytest.raises(PolicyError, match=f"(?i){re.escape(told)}"):
        read_question(query)
