"""A policy held against its source: problems of every kind at once, and what later steps are given."""

from datetime import date

import duckdb
import pytest
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.policy.reading import load_policy, parse_policy
from ldiv_db.policy.resolve import resolve
from ldiv_db.policy.rules import problems_of
from tests.strategies import some

GOOD = {
    "source": "people",
    "target": "released",
    "identifiers": ["name"],
    "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [2, 1]}}},
    "sensitive": {"disease": {}},
    "keep": ["ward"],
    "require": [{"distinct": 2}],
    "seed": 1,
}


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT 'p' || i AS name, i AS age, '1' || i % 3 AS zip, 'd' || i % 4 AS disease,"
            " 'w' AS ward, 'x' AS town FROM range(24) AS r(i)"
        )
        connection.execute("CREATE TABLE taken (i INTEGER)")
        yield connection


def problems(con, document, folder, call=ldiv_db.run):
    with pytest.raises(PolicyError) as caught:
        call(con, document, folder)
    return {problem.key: str(problem) for problem in caught.value.problems}


#: One mistake of every kind, with the key under which it is reported.
MISTAKES = {
    "nulls": "takes",
    "output.clas_id": "unknown key",
    "quasi_identifiers.zip.taxonomy.prefix": "falling lengths",
    "quasi_identifiers.height": "no such column",
    "source": "has a column town that the policy does not classify",
    "quasi_identifiers.ward": "ranges need numbers",
    "quasi_identifiers.age.taxonomy": "no.csv",
    "require.0.distinct": "",
    "require.1.t_closeness": "disease",
    "require.2.sensitive": "not sensitive",
    "algorithm.swaps": "no such option",
    "target": "exists",
}
WRONG = GOOD | {
    "nulls": "drop",
    "output": {"clas_id": True},
    "quasi_identifiers": {
        "age": {"taxonomy": {"file": "no.csv"}},
        "zip": {"taxonomy": {"prefix": [1, 2]}},
        "height": {"numeric": True},
        "ward": {"numeric": True},
    },
    "keep": [],
    "require": [{"distinct": 0}, {"t_closeness": {"t": 0.2, "distance": "hierarchical"}}, {"k": 2, "sensitive": "zip"}],
    "algorithm": {"name": "bsgi", "swaps": 1},
    "target": "taken",
}


@pytest.mark.parametrize("call", [ldiv_db.run, ldiv_db.plan])
def test_problems_of_every_kind_at_once(con, tmp_path, call):
    found = problems(con, WRONG, tmp_path, call)
    assert set(found) == set(MISTAKES)
    assert all(text in found[key] for key, text in MISTAKES.items())


def test_releases_over_time_have_theirs_at_once(con, tmp_path):
    document = GOOD | {"algorithm": {"name": "bsgi", "swaps": 1}, "key": "name", "target": {"prefix": "ldiv.r"}}
    found = problems(con, document | {"identifiers": ["nam"]}, tmp_path, ldiv_db.run)
    assert set(found) == {"identifiers.nam", "source", "algorithm.swaps", "target.prefix"}


def test_what_cannot_be_judged_is_left_out(con, tmp_path):
    found = problems(con, WRONG | {"source": "peple"}, tmp_path)
    assert "did you mean 'people'" in found["source"]
    columns = {"quasi_identifiers.height", "quasi_identifiers.ward", "require.1.t_closeness", "target"}
    assert set(found) == {"source", *MISTAKES} - columns
    found = problems(con, GOOD | {"algorithm": 3, "keep": ["none"]}, tmp_path)
    assert set(found) == {"algorithm"}


def test_columns_may_be_listed_in_what_cannot_be_read(con, tmp_path):
    for wrong in ({"kep": ["town"]}, {"identifiers": "name, town"}, {"identifiers": ["name", 3]}):
        found = problems(con, GOOD | wrong | {"target": "taken"}, tmp_path)
        assert len(found) == 2 and "town" not in found and "target" in found


def test_parts_that_are_wrong_are_not_read(con, tmp_path):
    wrong = {
        "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"name": "zip", "dates": ["week"]}}},
        "sensitive": {"disease": {"categories": [["d0"], ["d1"]], "weights": [1, "x"]}},
        "require": [{"threshold": {"default": 0.5, "d9": 2}}],
    }
    found = problems(con, GOOD | wrong | {"keep": ["ward", "town"], "target": "taken"}, tmp_path)
    keys = {"quasi_identifiers.zip.taxonomy", "sensitive.disease.categories", "require.0.threshold", "target"}
    assert set(found) == keys


def test_requirements_that_cannot_be_read_keep_their_numbers():
    found = load_policy(GOOD | {"require": ["distinct", {"k": 0}, {"frequency": 2}]})
    assert {problem.key for problem in problems_of(found)} == {"require.0", "require.1.k"}
    assert found.require[2].name == "frequency"


def test_what_later_steps_are_given(con, tmp_path):
    policy = parse_policy(GOOD | {"keep": ["WARD", "town"], "nulls": "suppress"})
    found = resolve(Engine(con), policy, tmp_path)
    assert [qi.name for qi in found.source.quasi_identifiers] == ["age", "zip"]
    plain, made = (qi.hierarchy for qi in found.source.quasi_identifiers)
    assert plain.is_plain and plain.by_range and made.prefix == 2 and not made.by_range
    assert [column.name for column in found.source.keep] == ["WARD", "town"] and found.source.nulls == "suppress"
    assert found.types == dict.fromkeys(["age", "zip", "disease", "WARD", "town"], "VARCHAR")
    assert [str(requirement) for requirement in found.required.resolved()["disease"]] == ["distinct l=2"]


DAYS = [date(1950 + 7 * i % 19, 1 + i % 12, 13 + i % 16) for i in range(40)]


FORMS = [
    ("%d-%b-%y", [""], "'%d-%b-%y') AS DATE)"),
    ("%d.%m.%Y", ["unknown"], "CAST(try_strptime(nullif(trim(\"q\"), ''), '%d.%m.%Y') AS DATE)"),
    ("%Y-%m-%d", ["", " "], "CAST(strptime(nullif(trim(\"q\"), ''), '%Y-%m-%d') AS DATE)"),
    ("%m/%d/%Y", [], "'%m/%d/%Y') AS DATE)"),
    ("%d/%m/%Y", [None], "'%d/%m/%Y') AS DATE)"),
    ("%Y-%m-%d %H:%M:%S.000", [], "'%Y-%m-%d %H:%M:%S.%g') AS TIMESTAMP)"),
]


@pytest.mark.parametrize(("form", "more", "way"), some(FORMS, first=2))
@pytest.mark.parametrize("settings", some([{"numeric": True}, {"taxonomy": {"dates": ["month", "year"]}}]))
def test_texts_that_look_like_dates_are_said_to_be_cast(con, form, more, way, settings):
    texts = [day.strftime(form).upper() if "%b" in form else day.strftime(form) for day in DAYS]
    fill(con, "t", {"q": "VARCHAR", "s": "VARCHAR"}, [(text, str(i % 4)) for i, text in enumerate([*texts, *more])])
    policy = {"source": "t", "target": "o", "sensitive": ["s"], "require": [{"k": 2}]}
    policy["quasi_identifiers"] = {"q": settings}
    with pytest.raises(PolicyError) as found:
        ldiv_db.plan(con, policy)
    (problem,) = found.value.problems
    assert problem.hint.startswith("its texts look like dates: ") and way in problem.hint
    assert ("NULL for 1 other text" in problem.hint) == ("unknown" in more)
    assert ("1969 to 2068" in problem.hint) == ("%y" in form) and not any(text in str(problem) for text in texts)
    cast = problem.hint.removeprefix("its texts look like dates: ").split(" in a view")[0]
    ldiv_db.plan(con, policy | {"source": {"query": f"SELECT {cast} AS q, s FROM t"}})
    days = {day for (day,) in con.execute(f"SELECT CAST({cast} AS DATE) FROM t").fetchall()} - {None}
    assert "%y" in form or days == set(DAYS)


def test_dates_that_may_be_read_in_two_ways_and_numbers_are_told(con):
    rows = [("01/02/1960", "34", "Ann"), ("03/04/1970", "n/a", "B"), ("", "1.5", "")]
    fill(con, "t", dict.fromkeys("qnw", "VARCHAR"), rows)
    policy = {"source": "t", "target": "o", "quasi_identifiers": {key: {"numeric": True} for key in "qnw"}}
    policy["require"] = [{"k": 1}]
    with pytest.raises(PolicyError) as found:
        ldiv_db.run(con, policy)
    hints = {problem.key[-1]: problem.hint for problem in found.value.problems}
    assert "'%m/%d/%Y') AS DATE)" in hints["q"] and "or %d/%m/%Y, which fits as well" in hints["q"]
    assert "look like numbers: TRY_CAST(" in hints["n"] and "NULL for 1 other text" in hints["n"]
    assert hints["w"] == "give it a taxonomy"
