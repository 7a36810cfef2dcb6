"""The view beside a target (`expand`): the estimates of `ask`, made anew with the table, and nothing of others."""

import duckdb
import pytest

import ldiv_db
from tests.refusals import refuses

#: Few people, whose sexes have classes of their own.
ROWS = [(20 + i * 7 % 40, "fm"[i % 2], ("flu", "hiv", "cold", "ok")[i // 2 % 4]) for i in range(40)]


def policy(**more):
    return {
        "source": "people",
        "target": {"table": "published.pub", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"numeric": True}, "sex": {"taxonomy": {"flat": True}}},
        "sensitive": ["dx"],
        "require": [{"frequency": 2}],
        "algorithm": "topdown",
        "seed": 1,
        "expand": "published.weighted",
        **more,
    }


@pytest.fixture
def con():
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("CREATE TABLE people (age INTEGER, sex VARCHAR, dx VARCHAR)")
        con.executemany("INSERT INTO people VALUES (?, ?, ?)", ROWS)
        yield con


def views(con):
    found = con.execute("SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    return sorted(".".join(row) for row in found if row[0] != "ldiv")


def estimates(con, view):
    query = f"SELECT sex, sum(weight) FROM {view} WHERE age < 35 GROUP BY ALL"
    return {sex: round(found, 6) for sex, found in con.execute(query).fetchall()}


def asked(con):
    found = ldiv_db.ask(con, "published.pub", "SELECT sex, count(*) FROM t WHERE age < 35 GROUP BY ALL", policy())
    return {sex: round(figure.estimate, 6) for (sex,), (figure,) in found.groups}


def test_its_weights_are_the_estimates_and_it_goes_with_the_table(con):
    result = ldiv_db.run(con, policy())
    assert result.as_dict()["expand"] == "published.weighted"
    assert estimates(con, "published.weighted") == asked(con)
    assert con.execute("SELECT sum(weight) FROM published.weighted").fetchone()[0] == pytest.approx(len(ROWS))
    again = ldiv_db.run(con, policy(expand={"view": "by_sex", "columns": ["sex"]}))
    assert again.as_dict()["unchanged"] and views(con) == ["main.by_sex"]
    labels = "SELECT age FROM by_sex EXCEPT SELECT age FROM published.pub"
    assert con.execute(labels).fetchall() == []  # the column that is not named stays as it is


@pytest.mark.slow
def test_it_follows_the_table_and_is_dropped_by_a_policy_without_it(con):
    ldiv_db.run(con, policy())
    con.execute("INSERT INTO people SELECT age + 30, sex, dx FROM people")
    ldiv_db.run(con, policy(over_time="independent"))  # other labels
    assert estimates(con, "published.weighted") == asked(con)
    con.execute("DROP VIEW published.weighted")
    ldiv_db.run(con, policy(over_time="independent", expand=None))
    assert views(con) == []


@pytest.mark.slow
def test_a_run_that_fails_leaves_both_as_they_were(con, monkeypatch):
    ldiv_db.run(con, policy())
    before = con.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'weighted'").fetchall()
    con.execute("INSERT INTO people VALUES (99, 'f', 'ok'), (98, 'm', 'ok')")
    monkeypatch.setattr("ldiv_db.publishing.draft.require_good", lambda audits: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ldiv_db.run(con, policy(over_time="independent"))
    assert con.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'weighted'").fetchall() == before


@pytest.mark.parametrize(
    "made", ["CREATE VIEW taken AS FROM people", "CREATE TABLE taken AS FROM people"], ids=["view", "table"]
)
def test_what_others_made_is_refused_and_left(con, made):
    con.execute(made)
    with refuses("expand"):
        ldiv_db.run(con, policy(expand="taken"))
    assert con.execute("SELECT count(*) FROM taken").fetchone() == (len(ROWS),)


@pytest.mark.parametrize(
    ("expand", "code"),
    [("published.pub", "expand"), ("ldiv.weighted", "expand"), ({"view": "v", "columns": ["dx"]}, "expand.columns")],
)
def test_a_view_that_cannot_be_is_refused(con, expand, code):
    with refuses(code):
        ldiv_db.plan(con, policy(expand=expand))
