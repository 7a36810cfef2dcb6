"""How what is returned looks: a line, a page in a notebook, no traceback of ours; frames are in `tests/notebooks`."""

import random
import re

import duckdb
import pytest
from tables import fill

import ldiv_db
from ldiv_db.auditing.audit import Audits
from ldiv_db.display import Shown
from ldiv_db.measuring.asking.answer import Bounds
from ldiv_db.reporting.forms import FORMS
from ldiv_db.running.preparation import Preparation
from ldiv_db.running.tables import PreparedTables
from tests.html_pages import Page
from tests.running import schemas

NASTY = "<b>\"&'"
COLUMNS = {NASTY: "INTEGER", "sex": "VARCHAR", "disease": "VARCHAR"}
ROWS = [(i % 7, "fm"[i % 2], f"value-{i % 5}") for i in range(35)]
POLICY = {
    "source": "t",
    "target": f'"{NASTY.replace(chr(34), chr(34) * 2)}"',
    "quasi_identifiers": [NASTY, "sex"],
    "sensitive": ["disease"],
    "require": [{"distinct": 3}, {"k": 3}],
    "algorithm": "mondrian",
    "seed": 123456789123,
}


def of_tables():
    """The plan of a release of several tables, and what was measured of it."""
    names = ("patients", "stays")
    con = duckdb.connect()
    schemas.fill(con, names, schemas.drawn(random.Random(3), names, 8, values="abcdefghij"))
    policy = schemas.policy_of(names)
    ldiv_db.run(con, policy)
    alone = schemas.policy_of(names[:1], individual={"column": "who", "rows": "apart"}, require=[{"k": 2}], output={})
    return ldiv_db.plan(con, policy), ldiv_db.measure(con, policy=policy, queries=1), ldiv_db.plan(con, alone)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect(config={"threads": 1}) as connection:
        fill(connection, "t", COLUMNS, ROWS)
        yield connection


@pytest.fixture(scope="module")
def returned(con):
    """One object of every class that is returned, by its class."""
    result = ldiv_db.run(con, POLICY)
    audits = ldiv_db.check(con, result.table(), [NASTY, "sex"], "disease", ["distinct:3", "k:3"])
    attacks = ldiv_db.attack(con, result.table(), policy=POLICY, known="t", show_values=True)
    objects = [
        result,
        audits,
        audits[0],
        attacks,
        ldiv_db.profile(con, "t", sensitive="disease"),
        ldiv_db.measure(con, result.table(), POLICY, queries=1),
        ldiv_db.ask(con, result.table(), "SELECT sex, count(*) FROM t GROUP BY ALL", POLICY),
        ldiv_db.plan(con, {**POLICY, "target": "other"}),
        *of_tables(),
    ]
    return {type(shown): shown for shown in objects}


def test_a_night_of_a_series_looks_as_any_release(con):
    """It has figures of its own, and no loss of a whole table."""
    con.execute("CREATE TABLE keyed AS SELECT row_number() OVER () AS id, * FROM t")
    series = {key: part for key, part in POLICY.items() if key not in ("algorithm", "require")}
    unique = {"require": [{"unique_distinct": 3}], "key": "id", "target": {"prefix": "again"}}
    night = ldiv_db.run(con, {**series, **unique, "source": "keyed"})
    page = night._repr_html_()
    assert "svg" not in Page(page).tags() and repr(night).startswith("Release 1: ")
    (figures,) = FORMS["Result"].records(night)
    assert figures["release"] == 1 and "lm_mean" not in figures
    assert not any("123456789123" in text for text in (page, repr(night), str(night), str(figures)))


def test_every_class_that_is_returned_has_a_form(returned):
    printed = {"Exploration", "Inference", "Verification"}
    assert all(issubclass(kind, Shown) for kind in returned)
    assert {kind.__name__ for kind in returned} == FORMS.keys() - printed


def test_bounds_are_rounded_outwards_on_a_screen():
    bounds = Bounds(2 / 3, 2 / 3, 1234567.0)
    shown = str(ldiv_db.Answers("t", (), ("avg(x)",), (((), (bounds,)),), 0, None))
    assert "0.666667 (0.666666 .. 1,234,570)" in shown


def test_a_line_is_one_short_line(returned):
    for shown in returned.values():
        assert "\n" not in repr(shown) and len(repr(shown)) < 200


def test_print_shows_the_tables_of_the_commands(returned):
    texts = {kind: str(shown) for kind, shown in returned.items()}
    assert all("│" in text for text in texts.values()) and "123456789123" not in "".join(texts.values())
    assert "a plan: nothing was written" in texts[Preparation]
    assert "nothing was written" in texts[PreparedTables] and "publish their rows in" in texts[PreparedTables]
    assert texts[ldiv_db.Audit] in texts[Audits] and "audit of disease: " in texts[ldiv_db.Result]


def test_a_page_is_whole_and_escapes_what_is_in_it(returned):
    for shown in returned.values():
        page = shown._repr_html_()
        assert not {"script", "b"} & Page(page).tags()
        assert not re.search(r"(src|href)=|url\(|@import", page)


def test_no_row_value_and_no_seed_is_shown(returned):
    """The attacks hold rows, which were asked for: a page is passed on more easily than they were."""
    assert any(attack.shown for attack in returned[ldiv_db.Attacks].attacks)
    for shown in returned.values():
        texts = [repr(shown), shown._repr_html_(), *(str(row) for row in FORMS[type(shown).__name__].records(shown))]
        assert not any("value-" in text or "123456789123" in text for text in texts)


def test_what_is_drawn_has_a_chart(returned):
    drawn = {kind for kind, shown in returned.items() if "<svg" in shown._repr_html_()}
    assert drawn == {ldiv_db.Result, ldiv_db.Attacks, ldiv_db.Profile, ldiv_db.Measurement}


def test_rows_are_those_of_what_they_are_about(returned):
    rows = {kind: list(FORMS[kind.__name__].records(shown)) for kind, shown in returned.items()}
    assert [row["name"] for row in rows[Audits]] == ["distinct l=3", "k k=3"]
    assert [row["column"] for row in rows[ldiv_db.Profile]] == list(COLUMNS)
    (figures,) = rows[ldiv_db.Result]
    loss = returned[ldiv_db.Result].loss
    assert figures["lm_mean"] == loss.lm_mean and figures[f"lm.{NASTY}"] == loss.lm_by_column[NASTY]
    gains = [gain for attack in returned[ldiv_db.Attacks].attacks for gain in attack.gains]
    assert [row["gain"] for row in rows[ldiv_db.Attacks]] == [gain.gain for gain in gains]


def test_audits_hold_if_all_do(con):
    assert not ldiv_db.check(con, "t", NASTY, ["sex", "disease"], "distinct:3").holds
    assert ldiv_db.check(con, "t", NASTY, ["sex", "disease"], "distinct:2").holds


def test_a_notebook_shows_what_went_wrong_and_no_traceback(con):
    with pytest.raises(ldiv_db.PolicyError) as caught:
        ldiv_db.run(con, {**POLICY, "target": "other", "sensitve": 1, "nulls": "x"})
    lines = caught.value._render_traceback_()
    assert lines[0].startswith("PolicyError: ") and "File" not in "".join(lines)
    assert any("did you mean 'sensitive'?" in line for line in lines) and len(lines) == 2
    with pytest.raises(ldiv_db.InfeasibleError) as caught:
        ldiv_db.run(con, {**POLICY, "target": "other", "require": [{"frequency": 9}]})
    assert len(caught.value._render_traceback_()) > 1
