"""Sets as lists (`output: {zip: list}`): the same release in another form, which readers read as the same labels."""

import random
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

import ldiv_db
from ldiv_db.database.catalog import named_table
from ldiv_db.database.composer import Composer
from ldiv_db.database.context import working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.snapshot import POSTGRES
from ldiv_db.measuring.asking.answer import AskRequest
from ldiv_db.measuring.asking.statement import ask_statement, expand_statement
from ldiv_db.policy.reading import parse_policy
from tests.refusals import refuses

ZIPS = ["13053", "13068", "14850", "a, b", "{x}", 'q"', "NULL", "", "*0", None]


def written(members):
    """A list as its label is written: the grammar of the labels page, in plain Python."""
    if members is None:
        return None
    if len(members) == 1 and members[0] is not None and not members[0].startswith("{"):
        return members[0]

    def member(text):
        if text is None:
            return "NULL"
        quoted = text in ("", "NULL") or text != text.strip(" ") or set(text) & set(',"{}')
        return '"' + text.replace('"', '""') + '"' if quoted else text

    return "{" + ", ".join(map(member, members)) + "}"


def policy(target="pub", **more):
    return {
        "source": "people",
        "target": target,
        "quasi_identifiers": {
            "age": {"numeric": True},
            "zip": {"taxonomy": {"flat": True}, "recode": "set"},
            "city": {"recode": "set"},
        },
        "sensitive": ["dx"],
        "require": [{"frequency": 2}],
        "algorithm": "topdown",
        "seed": 1,
        "over_time": "independent",
        **more,
    }


LISTS = {"zip": "list", "city": "list"}


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The same release with sets as texts (`texts`), and as lists in a file, copied as `pub`; the path of it."""
    con, draws, file = (
        duckdb.connect(config={"threads": 1}),
        random.Random(3),
        tmp_path_factory.mktemp("lists") / "pub.parquet",
    )
    con.execute("CREATE TABLE people (age INTEGER, zip VARCHAR, city VARCHAR, dx VARCHAR)")
    drawn = [
        (draws.randrange(20, 60), draws.choice(ZIPS), draws.choice("abcdefg"), draws.choice(["flu", "hiv", "cold"]))
        for _ in range(40)
    ]
    con.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", drawn)
    ldiv_db.run(con, policy("texts"))
    ldiv_db.run(con, policy({"file": str(file)}, output={**LISTS, "types": "keep"}))
    con.execute(f"CREATE TABLE pub AS FROM '{file}'")
    return con, file


def rows(con, table):
    return con.execute(f"SELECT age, zip, city, dx FROM {table}").fetchall()


def test_lists_are_the_members_of_the_labels_in_their_order(released):
    con, _ = released
    lists = rows(con, "pub")
    assert [(age, written(zip_), written(city), dx) for age, zip_, city, dx in lists] == rows(con, "texts")
    assert {len(zip_) for _, zip_, _, _ in lists if zip_} > {1}  # some were generalised


def test_any_lists_are_read_as_different_labels():
    draws, pieces = random.Random(1), ["a", ",", " ", ", ", '"', "{", "}", "NULL", "*", "\n", "é"]
    lists = [None, [], [None], [""], ["*"], ["{a}"], ["a", "b"], ["a, b"]]
    lists += [
        [None if draws.random() < 0.1 else "".join(draws.choices(pieces, k=draws.randrange(4))) for _ in range(n)]
        for n in [1, 2, 3] * 100
    ]
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("CREATE TABLE t AS SELECT unnest(?::VARCHAR[][]) AS label, 1 AS label_rank", [lists])
        con.execute("INSERT INTO t VALUES (NULL, 1)")
        engine = Engine(con)
        labels = engine.materialise(
            "texts", "recoding/labels/read_lists", published=Relation(("t",)), lists=[Identifier("label")]
        )
        texts = [text for text, _ in con.execute(f"FROM {labels.sql()}").fetchall()]
        again = engine.materialise(
            "lists", "recoding/publish/list_members", labels=labels, listed=[Identifier("label")]
        )
        assert [found for found, _ in con.execute(f"FROM {again.sql()}").fetchall()] == [*lists, None]
    assert texts == [*(written(one) if one != [] else "{}" for one in lists), None]
    known = sorted({(text, str(one)) for text, one in zip(texts, lists, strict=False) if text is not None})
    assert all(one != other for (one, _), (other, _) in pairwise(known))


def judged(con, table, asked):
    named = ldiv_db.check(con, table, ["age", "zip", "city"], "dx", "frequency:2")
    return [[one.as_dict() for one in found] for found in (ldiv_db.check(con, table, policy=asked), named)]


def attacked(con, table, asked):  # by the form of a table other things are seen
    found = ldiv_db.attack(con, table, policy=asked, known="people").as_dict()["attacks"]
    return [one for one in found if one["attack"] != "form"]


def answered(con, table, asked):
    query = "SELECT city, count(*) FROM t WHERE zip = '13053' GROUP BY ALL"
    return [ldiv_db.ask(con, table, query, told).groups for told in (asked, None)]


def measured(con, table, asked):
    return ldiv_db.measure(con, table, policy=asked).as_dict() | {"published": None}


SLOW = [pytest.param(ask, marks=pytest.mark.slow) for ask in (attacked, measured)]


@pytest.mark.parametrize("ask", [judged, answered, *SLOW])
def test_every_reader_reads_them_as_the_same_labels(released, ask):
    con, file = released
    assert ask(con, str(file), policy(output=LISTS)) == ask(con, "texts", policy("texts"))


@pytest.mark.slow
def test_they_are_appended(released):
    con, _ = released
    con.execute("CREATE TABLE more AS FROM pub")
    ldiv_db.run(con, policy({"table": "more", "if_exists": "append"}, output=LISTS))
    assert Counter(map(str, rows(con, "more"))) == Counter(map(str, rows(con, "pub") * 2))


def test_statements_of_duckdb_read_them_and_others_are_refused(released):
    (con, _), listed, texts = released, parse_policy(policy(output=LISTS)), parse_policy(policy("texts"))
    query = "SELECT city, count(*) FROM t WHERE zip = '13053' GROUP BY ALL"

    def statements(table, asked, dialect="duckdb"):
        there, at = named_table(table, "table"), partial(Composer, dialect, [table])
        with working_engine(con) as engine:
            yield ldiv_db.check_sql(table, policy=asked, suppressed="ignore", dialect=dialect)
            yield expand_statement(engine, there, ["zip", "city"], asked, Path(), at(), there)
            yield ask_statement(engine, there, AskRequest(there, query), asked, at())

    for lists, labels in zip(statements("pub", listed), statements("texts", texts), strict=True):
        assert Counter(con.execute(lists).fetchall()) == Counter(con.execute(labels).fetchall())
    with refuses("dialect"):
        list(statements("pub", listed, "snowflake"))


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"target": {"file": "out.csv"}}, "output"),
        ({"target": {"table": "texts", "if_exists": "append"}}, "target"),
        ({"quasi_identifiers": {"age": {"numeric": True}, "zip": {"recode": "tree"}, "city": {}}}, "output"),
        ({"output": {"age": "list"}}, "output"),
        ({"output": {"zip": "list", "sex": "list"}}, "output"),
        ({"key": "city", "quasi_identifiers": {"age": {}, "zip": {"recode": "set"}}}, "output"),
    ],
    ids=["csv", "text", "tree", "number", "nothing", "series"],
)
def test_what_has_no_lists_is_refused_by_name(released, tmp_path, more, key):
    with refuses(key):
        ldiv_db.plan(released[0], policy("other", output={"zip": "list"}) | more, folder=tmp_path)


def test_a_database_of_another_kind_is_refused_by_name(released, monkeypatch):
    monkeypatch.setattr("ldiv_db.publishing.in_database.DUCKDB", POSTGRES)
    with refuses("output"):
        ldiv_db.plan(released[0], policy("other", output=LISTS))
