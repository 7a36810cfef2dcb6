"""What an error says would be accepted is accepted, and leaves out as many rows as it says."""

import json
import random

import duckdb
import pytest
from strategies import search, seeds, some

import ldiv_db
from ldiv_db.database.errors import InfeasibleError, PolicyError

CATEGORIES = {"categories": [["v0"], ["v1", "v2"], ["v3", "v4"]]}
QUASI = {"age": {"taxonomy": {"ranges": [5, 20], "origin": 0}}, "place": {"taxonomy": {"file": "place.json"}}}
TREE = {"*": {"P": {"a": {}, "b": {}}, "Q": {"c": {}, "d": {}}}}
GLOBAL = ("cuts", "incognito", "tds", "annealing")
ALGORITHMS = ["bsgi", "bsgi", "auto", "topdown", "mondrian", "peel", "tp", "tp_plus", "hilbert", *GLOBAL[:3]]
REQUIREMENTS = [
    {"distinct": 3}, {"distinct": 5}, {"distinct": 9}, {"unique_distinct": 3}, {"frequency": 2}, {"frequency": 3.5},
    {"entropy": 3}, {"recursive": {"c": 0.5, "l": 2}}, {"recursive": {"c": 1, "l": 4}},
    {"p_sensitive": {"p": 4, "k": 6}},
    {"alpha_k": {"alpha": 0.3, "k": 4}}, {"threshold": 0.4}, {"threshold": {"default": 0.6, "values": {"v0": 0.2}}},
    {"threshold": {"base": 0.2}}, {"k": 99}, {"distinct_alpha": {"l": 3, "alpha": 2}},
    {"entropy_alpha": {"l": 2.5, "alpha": 1}}, {"recursive_alpha": {"c": 1, "l": 2, "alpha": 9}},
]  # fmt: skip


def drawn(draw, con, folder):
    """A skewed table and a policy that may well be infeasible."""
    rows, several = draw.randint(6, 30), draw.random() < 0.2
    weights = [draw.choice([1, 1, 2, 5, 12]) for _ in range(5)]
    texts = draw.choice([["v0", "v1", "v2", "v3", "v4"], ["v0", "v1", "v2", "v3", "default"]])
    values = draw.choices(texts, weights, k=rows)
    nulls = draw.choice(["reject", "value", "suppress"])
    if nulls != "reject":
        values = [None if draw.random() < 0.2 else value for value in values]
    con.execute("CREATE OR REPLACE TABLE t (age INTEGER, place VARCHAR, secret VARCHAR, other VARCHAR)")
    table = [(draw.randint(0, 60), draw.choice("abcd"), value, draw.choice("xyz")) for value in values]
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", table)
    (folder / "place.json").write_text(json.dumps(TREE))
    secret = CATEGORIES if "default" not in texts else {}
    required = draw.choices(REQUIREMENTS, k=draw.choice([1, 1, 2]))
    return {
        "source": "t", "target": {"table": "released", "if_exists": "replace"}, "quasi_identifiers": QUASI,
        "sensitive": {"secret": secret} | ({"other": {}} if several else {}),
        "require": [r | ({"sensitive": "secret"} if several and draw.random() < 0.5 else {}) for r in required],
        "keep": [] if several else ["other"], "nulls_sensitive": nulls, "seed": draw.randrange(1000),
        "suppressed": draw.choice(["judge", "judge", "ignore"]), "algorithm": draw.choice(ALGORITHMS),
    }  # fmt: skip


@search(1, seed=seeds)
def test_every_remedy_is_accepted_and_leaves_out_as_many_rows_as_announced(tmp_path, seed):
    """Random policies, most of which are infeasible; changes go through JSON, as a program would read them."""
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        written = drawn(random.Random(seed), con, tmp_path)
        try:
            ldiv_db.run(con, written, tmp_path, show_values=True)
        except InfeasibleError as error:
            for remedy in error.remedies:
                told = json.loads(json.dumps(remedy.as_dict()))
                change = remedy.change if told["change"] is None else told["change"]
                result = ldiv_db.run(con, written | change, tmp_path)
                left_out = result.loss.rows_suppressed
                exact = "cuts" not in str(change.get("algorithm"))
                assert left_out == remedy.rows if exact else left_out >= remedy.rows, (written, remedy)
                assert all(found["holds"] for found in result.requirements), (written, remedy)
        except PolicyError as error:
            for remedy in error.remedies:
                ldiv_db.run(con, written | remedy.change, tmp_path)


STAYS = (
    "CREATE TABLE stays AS SELECT i AS stay, i // {each} AS who, i % {each} AS day, i % 5 AS ward, {dx} AS dx"
    " FROM range(60) t(i)"
)
WARD = {"source": "stays", "quasi_identifiers": {"ward": {"numeric": True}}, "sensitive": ["dx"], "target": "out"}
ALIGNED = {"individual": {"column": "who", "rows": "aligned", "order": "day"}, "identifiers": ["stay"]}
SERIES = {"key": "stay", "identifiers": ["who", "day"], "over_time": "independent"}
MEMBER = {"identifiers": ["stay"], "person": "who", "order": "day"}
SEVERAL = {"individual": "who", "tables": {"stays": WARD | MEMBER}}
KNOWN = {"stays": WARD | {"identifiers": ["stay", "day"], "person": "who"}}
ONE_KNOWN = {"individual": "who", "known": 1, "algorithm": "auto", "tables": KNOWN}
ROADS = {"series": WARD | SERIES, "tables": SEVERAL, "one known": ONE_KNOWN, "aligned": WARD | ALIGNED}


@pytest.mark.parametrize("call", some([ldiv_db.run, ldiv_db.plan], 1))
@pytest.mark.parametrize("require", some([{"distinct": 9}, {"frequency": 9}], 1))
@pytest.mark.parametrize("road", some(ROADS, 3))
def test_series_aligned_rows_and_several_tables_name_what_a_run_accepts(road, require, call):
    """Nine different values are one more than there are."""
    dx = "if(i % 5 < 2, 'a', 'x' || i % 7)"
    asked = {"algorithm": "topdown"} | ROADS[road] | {"require": [require], "seed": 1}

    def made():
        con = duckdb.connect(config={"threads": 1})
        con.execute(STAYS.format(each=1 if road == "series" else 2, dx=dx))
        return con

    with pytest.raises(InfeasibleError) as refused:
        call(made(), asked, show_values=True)
    remedies = [remedy for remedy in refused.value.remedies if remedy.change]  # the others are told in words
    assert {"require"} & set().union(*(remedy.change for remedy in remedies)), refused.value
    for remedy in remedies:
        found = ldiv_db.run(made(), asked | remedy.change)
        left_out = found.loss.rows_suppressed if road != "series" else 60 - found.figures["rows_published"]
        assert left_out == remedy.rows, remedy


def test_an_algorithm_of_one_value_a_person_is_refused_before_the_audit_refuses_its_classes():
    """Of these people most have one stay, and twenty three with several values, which BSGI would take for one."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE stays AS SELECT i AS stay, if(i < 40, i, 40 + i % 20) AS who, i AS day, i % 5 AS ward,"
                " 'x' || i % 7 AS dx FROM range(100) t(i)")  # fmt: skip
    asked = SEVERAL | {"require": [{"frequency": 2}, {"k": 3}], "algorithm": {"name": "bsgi", "residue": "suppress"}}
    with pytest.raises(PolicyError, match="bsgi takes one sensitive value a person") as refused:
        ldiv_db.plan(con, asked)
    assert [remedy.change for remedy in refused.value.remedies] == [{"algorithm": "auto"}]


def test_rows_that_people_have_more_than_others_count_before_work_starts():
    """Of 60 people 59 have one stay and one has eleven, of which ten are left out: 14 % of all rows."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE stays AS SELECT i AS stay, least(i, 59) AS who, i AS day, i % 5 AS ward,"
                " 'x' || i % 7 AS dx FROM range(70) t(i)")  # fmt: skip
    asked = SEVERAL | {"require": [{"frequency": 2}], "suppression": 0.1}
    with pytest.raises(InfeasibleError, match=r"10 of 70 rows .14.29 %. would be left out") as refused:
        ldiv_db.plan(con, asked)
    remedy = refused.value.remedies[0]
    assert ldiv_db.run(con, asked | remedy.change).loss.rows_suppressed == remedy.rows


@pytest.mark.parametrize("known", some([1, "all"]))
def test_what_a_plan_says_leaves_out_fewer_rows_does(known):
    """Of 30 people two thirds have a, and frequency 3 allows it to one third; some have other values as well."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE stays AS SELECT i AS stay, i % 30 AS who, i AS day, i % 3 AS ward,"
                " if(i % 3 < 2 AND i < 30, 'a', 'x' || i % 7) AS dx FROM range(45) t(i)")  # fmt: skip
    asked = {"require": [{"frequency": 3}, {"k": 2}], "seed": 4}
    policy = (SEVERAL if known == "all" else ONE_KNOWN) | asked
    found = ldiv_db.plan(con, policy, show_values=True)
    told = {remedy.costs.split()[0]: remedy.rows for remedy in found.fewer}
    assert all(rows < found.feasibility.rows_suppressed for rows in told.values())
    harmless = policy | {"tables": {"stays": policy["tables"]["stays"] | {"sensitive": {"dx": {"harmless": ["a"]}}}}}
    others = {"`harmless`": harmless, "bounds": policy | {"require": [{"frequency": 3, "each": "row"}, {"k": 2}]}}
    others |= {"`known:": ONE_KNOWN | asked} if known == "all" else {}
    left_out = {
        name: ldiv_db.plan(con, other).feasibility.rows_suppressed for name, other in others.items() if name in told
    }
    assert left_out == told and "`harmless`" in told and (known == 1 or len(told) == 2)
