"""Auto: it publishes the least that any of its candidates loses, leaves no row out unasked, and can be repeated."""

import random
from collections import Counter
from hashlib import md5

import duckdb
import pytest
import tables
from refusals import refuses
from strategies import some
from towns import frequent

import ldiv_db
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.running.preview import describe_plan
from ldiv_db.running.run import plan
from ldiv_db.solving import auto, improve

pytestmark = pytest.mark.usefixtures("no_remedies")

#: A run of it is several runs.
ALL = {"name": "auto", "effort": "thorough"}
NEW = {"table": "out", "if_exists": "replace"}


def simple(con, require, algorithm="auto", count=30, **more):
    """A policy for so many rows."""
    rows = [(i * 7 % 40, i % 5, "abc"[i % 3], "uvw"[i * 5 % 7 % 3]) for i in range(count)]
    tables.fill(con, "t", {"age": "INTEGER", "size": "INTEGER", "s": "VARCHAR", "u": "VARCHAR"}, rows)
    return {
        "source": "t", "target": NEW, "quasi_identifiers": {"age": {"numeric": True}, "size": {"numeric": True}},
        "sensitive": ["s"], "identifiers": ["u"], "require": require, "algorithm": algorithm, "seed": 0,
    } | more  # fmt: skip


def to_improve(con):
    """A policy for 150 rows, whose classes are improved by every effort but the least."""
    rows = [(i * i % 61, i * 5 % 7, "abcd"[i * i % 11 % 4], "u") for i in range(150)]
    policy = simple(con, [{"distinct": 3}])
    tables.fill(con, "t", {"age": "INTEGER", "size": "INTEGER", "s": "VARCHAR", "u": "VARCHAR"}, rows)
    return policy


TRIED = [
    ([{"distinct": 2}], ["topdown", "bsgi", "peel", "stratified"], "mondrian"),
    ([{"frequency": 3}], ["bsgi", "topdown", "peel", "stratified"], "bsgi"),
    ([{"entropy": 2}, {"t_closeness": 1}], ["stratified", "topdown", "peel"], "mondrian"),
    ([{"k": 3}], ["peel", "bsgi", "topdown"], "mondrian"),
    ([{"frequency": 2}], ["topdown", "bsgi", "peel", "stratified"], "mondrian"),
    ([{"threshold": 0.4}, {"distinct": 3}], ["bsgi", "topdown", "peel", "stratified"], "bsgi"),
    ([{"frequency": 3}, {"k": 4}], ["topdown", "peel", "stratified"], "mondrian"),
]


@pytest.mark.parametrize(("require", "tries", "fast"), some(TRIED))
def test_a_plan_says_what_is_tried(con, monkeypatch, require, tries, fast):
    monkeypatch.setattr(auto, "SMALL", 0)
    document = describe_plan(plan(con, simple(con, require, count=60)))
    assert document["tries"] == tries[: 2 if tries[0] in ("stratified", "bsgi") else 1]
    document = describe_plan(plan(con, simple(con, require, ALL, count=60)))
    assert (document["algorithm"], document["tries"]) == ("auto", tries)
    assert document["notes"][0].startswith(f"auto tries {', '.join(tries)}")
    document = describe_plan(plan(con, simple(con, require, "fast", count=60)))
    assert (document["algorithm"], document["tries"]) == (fast, [])
    assert document["notes"][0].startswith(f"algorithm {fast}: ")


@pytest.mark.parametrize("name", some(["auto", "fast"]))
def test_what_one_algorithm_alone_can_do_is_its(con, name):
    for more in ({}, {"individual": "u", "identifiers": []}):
        ready = describe_plan(plan(con, simple(con, [{"unique_distinct": 2}], name, **more)))
        assert (ready["algorithm"], ready["tries"]) == ("bsgi", [])
        assert more or "unique_distinct is not kept" in ready["notes"][0]


@pytest.mark.slow
def test_classes_by_many_columns_are_left_as_they_are_and_the_result_says_so(con, monkeypatch):
    policy, told = to_improve(con), "more than 1 quasi-identifiers are not improved"
    monkeypatch.setattr(improve, "MANY_COLUMNS", 1)
    few = ldiv_db.run(con, policy)
    assert "improved" in few.search and told not in " ".join(few.notes)
    monkeypatch.setattr(improve, "FEW_CELLS", 100)
    result, thorough = ldiv_db.run(con, policy), ldiv_db.run(con, policy | {"algorithm": ALL})
    assert "improved" not in result.search and told in " ".join(result.notes)
    assert told in " ".join(describe_plan(plan(con, policy))["notes"])
    assert "improved" in thorough.search and told not in " ".join(thorough.notes)


@pytest.mark.slow
def test_more_effort_takes_more_work_and_loses_no_more(con):
    policy = to_improve(con)
    losses, work = [], []
    for effort in ("quick", "normal", "thorough"):
        result = ldiv_db.run(con, policy | {"algorithm": {"name": "auto", "effort": effort}})
        steps = [*result.search["tried"], *result.search.get("improved", [])]
        assert result.search["effort"] == effort and all(step["work"] > 0 for step in steps)
        if effort == "quick":  # the first that is tried is taken as it is
            assert not {"regroup", "resplit", "flows", "polish", "improved"} & set(result.search)
            alone = ldiv_db.run(con, policy | {"algorithm": result.algorithm, "target": "again"})
            assert result.loss.lm_mean == alone.loss.lm_mean
            rehearsed = plan(con, policy | {"algorithm": {"name": "auto", "effort": effort}}, rehearse=True)
            assert describe_plan(rehearsed)["tried"] == result.search["tried"]
        else:
            assert f"lowered that to {result.loss.lm_mean:.4f}" in " ".join(result.notes)
        losses.append(result.loss.lm_mean)
        work.append(sum(step["work"] for step in steps))
    assert losses[0] > losses[1] >= losses[2] and work[0] < work[1] < work[2]
    with refuses("algorithm.effort"):
        ldiv_db.run(con, policy | {"algorithm": {"name": "auto", "effort": "great"}})


# -- what can be met is met ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some(["fast", "auto", None]))
def test_what_any_algorithm_can_meet_is_not_refused(con, name):
    policy = frequent(con, {"distinct": 3}, **({"algorithm": name} if name else {}))
    result = ldiv_db.run(con, policy)
    assert result.loss.rows_published == 24 and all(found["holds"] for found in result.requirements)
    with pytest.raises(InfeasibleError):
        ldiv_db.run(con, policy | {"algorithm": "bsgi"})


FAILURES = [
    (AssertionError(), "what the algorithm asserts does not hold", "failed"),
    (InfeasibleError("no class was found"), "no class was found", "infeasible"),
]


@pytest.mark.parametrize(("error", "failed", "told"), some([pytest.param(*case) for case in FAILURES]))
def test_what_fails_while_it_runs_is_told_and_another_takes_its_place(con, monkeypatch, error, failed, told):
    def fail(self, task):
        raise error

    monkeypatch.setattr(Bsgi, "run", fail)
    result = ldiv_db.run(con, simple(con, [{"frequency": 3}], {"name": "auto", "effort": "quick"}))
    first, second = result.search["tried"]
    assert first == {"algorithm": "bsgi", "rows": 30, "work": 1, "failed": failed}
    assert (second["algorithm"], result.algorithm, result.loss.rows_published) == ("topdown", "topdown", 30)
    assert f"bsgi ({told})" in result.notes[0]
    # The release and the ledger tell nothing of what was tried.
    assert [name for name, *_ in con.execute("DESCRIBE out").fetchall()] == ["age", "size", "s"]
    assert con.execute("SELECT algorithm FROM ldiv.run").fetchall() == [("topdown",)]


def test_the_error_says_what_no_algorithm_can_meet(con):
    for name in ("auto", "fast"):
        with pytest.raises(InfeasibleError, match="no table of all these rows meets the policy"):
            ldiv_db.plan(con, simple(con, [{"distinct": 4}], name))


@pytest.mark.slow
def test_rows_are_left_out_only_where_the_policy_says_so(con):
    """One row of 31 stands far off: without it classes are narrow."""
    rows = [(i // 2, "ab"[i % 2]) for i in range(30)] + [(1000, "a")]
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {"source": "t", "target": NEW, "quasi_identifiers": {"age": {"taxonomy": {"ranges": [2, 4, 2000]}}},
              "sensitive": ["s"], "require": [{"distinct": 2}], "seed": 0}  # fmt: skip
    whole = ldiv_db.run(con, policy)
    assert whole.loss.rows_suppressed == 0
    less = ldiv_db.run(con, policy | {"algorithm": ALL | {"residue": "suppress"}})
    assert less.loss.rows_suppressed == 1 and less.loss.lm_mean < whole.loss.lm_mean
    assert "1 row is left out" in " ".join(less.notes)


@pytest.mark.slow
def test_classes_are_compared_with_what_is_published_where_rows_are_left_out(con):
    """A dozen rows stand far off and are of other shares: improvements by the shares of all rows failed the audit."""
    draw = random.Random(5)
    rows = [(draw.randrange(60), draw.randrange(4), draw.choice("abcd"), "") for _ in range(150)]
    rows += [(draw.randrange(500, 520), 9, draw.choice("aaab"), "") for _ in range(12)]
    policy = simple(con, [{"t_closeness": 0.2}], ALL | {"residue": "suppress"})
    tables.fill(con, "t", {"age": "INTEGER", "size": "INTEGER", "s": "VARCHAR", "u": "VARCHAR"}, rows)
    ages, sizes = {"taxonomy": {"ranges": [5, 20, 60, 600]}}, {"taxonomy": {"flat": True}}
    result = ldiv_db.run(con, policy | {"quasi_identifiers": {"age": ages, "size": sizes}})
    assert result.loss.rows_suppressed and all(found["holds"] for found in result.requirements)


def test_a_value_in_most_rows_needs_suppression(con):
    policy = frequent(con, {"frequency": 3})
    with pytest.raises(InfeasibleError):
        ldiv_db.plan(con, policy)
    sparing = {"name": "auto", "residue": "suppress", "effort": "quick"}
    result = ldiv_db.run(con, policy | {"algorithm": sparing})
    assert result.algorithm == "bsgi" and result.loss.rows_suppressed == 6


@pytest.mark.slow
def test_rows_of_several_attributes_find_a_class(con):
    """BSGI leaves out rows that differ from none of the others in all attributes, the others do not."""
    kinds = [*["aux", "avy", "buy", "bvx"] * 6, "aux", "aux", "bvy", "bvy"]
    rows = [(i, *kind) for i, kind in enumerate(kinds)]
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR", "u": "VARCHAR", "w": "VARCHAR"}, rows)
    policy = {"source": "t", "target": NEW, "quasi_identifiers": {"age": {"numeric": True}},
              "sensitive": ["s", "u", "w"], "require": [{"k": 2}], "algorithm": ALL, "seed": 0}  # fmt: skip
    result = ldiv_db.run(con, policy)
    assert result.loss.rows_published == 28
    left_out = {tried["algorithm"]: tried["rows_left_out"] for tried in result.search["tried"]}
    assert left_out["bsgi"] and not left_out["topdown"]


# -- the default, and what follows from it -------------------------------------------------------------


def test_a_policy_without_an_algorithm_has_auto_but_where_one_alone_can_be():
    policy = {"source": "t", "target": "out", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"],
              "require": [{"unique_distinct": 2}]}  # fmt: skip
    assert ldiv_db.parse_policy(policy).algorithm.name == "auto"
    over_time = {"key": "id", "target": {"prefix": "out"}, "identifiers": []}
    assert ldiv_db.parse_policy(policy | over_time).algorithm.name == "auto"
    for more in ({"transparent": True}, over_time | {"individual": "who"}):
        assert ldiv_db.parse_policy(policy | more).algorithm.name == "bsgi"
        options = {"algorithm": {"name": "auto", "residue": "incorporate"}}
        assert ldiv_db.parse_policy(policy | more | options).algorithm.options == {"residue": "incorporate"}
    with refuses("key"):
        ldiv_db.parse_policy(policy | {"target": {"prefix": "out"}})


def test_a_default_policy_is_published_transparently_and_over_time(con):
    rows = [(i, i * 7 % 40, "abc"[i % 3]) for i in range(12)]
    tables.fill(con, "t", {"id": "INTEGER", "age": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {"source": "t", "target": "one", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"],
              "require": [{"unique_distinct": 3}], "identifiers": ["id"], "seed": 0}  # fmt: skip
    assert ldiv_db.run(con, policy | {"transparent": True}).search["select"] == "transparent"
    over_time = {"key": "id", "target": {"prefix": "series"}, "over_time": "independent"}
    released = ldiv_db.run(con, policy | over_time)
    assert (released.figures["algorithm"], released.figures["rows_published"]) == ("auto", 12)


@pytest.mark.parametrize("most", some([7, 0, 40, 100]))
def test_a_sample_has_the_rows_whose_hashes_come_first(most, con, engine):
    con.execute("CREATE TABLE t AS SELECT 3 * i AS row_id, i % 7 AS code FROM range(40) AS r(i)")
    con.execute("CREATE TABLE d AS SELECT 'v' || i AS value, 99 AS rows, i AS code FROM range(9) AS r(i)")
    sample = engine.materialise("sample", "solving/draw_sample", rows=Relation(("t",)), seed=Value(5), most=Value(most))
    ranked = sorted((md5(f"5:{3 * i}".encode()).hexdigest(), i) for i in range(40))[:most]
    assert sorted(engine.columns(sample, "row_id", "code")) == sorted((3 * i, i % 7) for _, i in ranked)
    params = {"dictionary": Relation(("d",)), "sample": sample, "key": Identifier("code")}
    counted = engine.materialise("counted", "recoding/input/count_sample", **params)
    counts = Counter(i % 7 for _, i in ranked)
    assert sorted(engine.columns(counted, "value", "rows", "code")) == sorted(
        (f"v{code}", rows, code) for code, rows in counts.items()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("require", "nulls"), [({"distinct": 2}, 0.2), ({"frequency": 3}, 0), ({"t_closeness": 0.4}, 0.2)]
)
def test_many_rows_are_tried_on_a_sample(require, nulls, monkeypatch):
    """What is taken is run on all rows; the sample, too, is the same for any order of rows and number of threads."""
    monkeypatch.setattr("ldiv_db.solving.auto.LARGE", 200)
    monkeypatch.setattr("ldiv_db.solving.auto.SAMPLE", 80)
    draw = random.Random(3)
    rows = [
        (draw.randint(0, 30), draw.randint(0, 5), None if draw.random() < nulls else "abcd"[i % 4]) for i in range(240)
    ]
    found = []
    for threads, order in ((2, 1), (1, -1)):
        with duckdb.connect(config={"threads": threads}) as con:
            policy = simple(con, [require], ALL, identifiers=[], nulls_sensitive="value", suppressed="ignore")
            tables.fill(con, "t", {"age": "INTEGER", "size": "INTEGER", "s": "VARCHAR"}, rows[::order])
            assert "on a sample of 80 rows" in plan(con, policy).feasibility.notes[0]
            result = ldiv_db.run(con, policy)
            found.append((con.execute("SELECT * FROM out").fetchall(), result.search))
    assert found[0] == found[1]
    *samples, last = result.search["tried"]
    assert [tried["rows"] for tried in samples] == [80] * len(samples) and last["rows"] == 240
    best = min(
        (tried for tried in samples if "loss" in tried), key=lambda tried: (tried["rows_left_out"], tried["loss"])
    )
    assert len(samples) >= 2 and best["algorithm"] == last["algorithm"] == result.algorithm


@pytest.mark.parametrize(("alike", "first"), [(0.6, "bsgi"), (0, "topdown")])
def test_near_rows_of_a_large_table_say_which_algorithm_is_tried_alone(alike, first, con, monkeypatch):
    """Of bounds of shares: what loses less follows from how often rows of near ages have the same value."""
    monkeypatch.setattr("ldiv_db.solving.choose.NEAR", 100)
    monkeypatch.setattr(auto, "SMALL", 0)
    draw = random.Random(2)
    ages = [draw.randint(0, 90) for _ in range(240)]
    rows = [
        (age, i // 8 % 2, "abcdefgh"[age * 8 // 91 if draw.random() < alike else i % 8]) for i, age in enumerate(ages)
    ]
    policy = simple(con, [{"frequency": 3}], identifiers=[])
    tables.fill(con, "t", {"age": "INTEGER", "size": "INTEGER", "s": "VARCHAR"}, rows)

    def tries(effort):
        return describe_plan(plan(con, policy | {"algorithm": {"name": "auto", "effort": effort}}))["tries"]

    assert tries("quick") == [first] and sorted(tries("normal")) == ["bsgi", "topdown"]
    for module in ("auto", "choose"):
        monkeypatch.setattr(f"ldiv_db.solving.{module}.LARGE", 100)
    assert tries("quick") == tries("normal") == [first]


def test_of_a_large_table_some_classes_are_improved(monkeypatch):
    """Whatever the order of rows and the number of threads: no more rows than a small table has are looked at."""
    heard, found = [], []

    def listen(steps, state, some, *more):
        heard.append(state.task.engine.count(some))
        return improve_classes(steps, state, some, *more)

    improve_classes = improve.improve
    monkeypatch.setattr(improve, "improve", listen)
    monkeypatch.setattr(improve, "SMALL_CELLS", 240)
    monkeypatch.setattr(auto, "SMALL", 0)
    for threads, order in ((2, "ASC"), (1, "DESC")):
        with duckdb.connect(config={"threads": threads}) as con:
            policy = to_improve(con)
            con.execute(f"CREATE OR REPLACE TABLE t AS FROM t ORDER BY rowid {order}")
            result = ldiv_db.run(con, policy)
            found.append((con.execute("SELECT age, size, s FROM out ORDER BY ALL").fetchall(), result.search))
    assert found[0] == found[1] and result.search["polish"][0] and 80 < heard[0] <= 120
    assert result.loss.lm_mean < result.search["tried"][0]["loss"]


def test_very_large_tables_are_not_tried(con, monkeypatch):
    for module in ("auto", "choose"):
        monkeypatch.setattr(f"ldiv_db.solving.{module}.MANY_ROWS", 20)
    policy = simple(con, [{"distinct": 2}], ALL)
    assert describe_plan(plan(con, policy))["tries"] == ["mondrian"]
    result = ldiv_db.run(con, policy)
    assert [tried["algorithm"] for tried in result.search["tried"]] == ["mondrian"] and "polish" not in result.search


def test_a_small_table_is_tried_by_peel_and_topdown(con):
    """Of twelve rows and two columns `peel`, the first for k alone, loses .226, and topdown .193."""
    regions = ["north", "south", "east", "west", "mid"]
    rows = [(regions[i % 5], 20 + i * 7 % 30, "abc"[i % 3]) for i in range(12)]
    tables.fill(con, "source", {"region": "VARCHAR", "age": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {
        "source": "source", "target": {"table": "out", "if_exists": "replace"}, "identifiers": ["s"],
        "quasi_identifiers": {"region": {}, "age": {"numeric": True}}, "require": [{"k": 2}],
        "over_time": "independent", "seed": 1, "recode": "tree",
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    losses = {tried["algorithm"]: tried["loss"] for tried in result.search["tried"]}
    assert result.loss.lm_mean <= losses["topdown"] < losses["peel"]


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["together", "apart"])
@pytest.mark.parametrize("weight", [1, 5])
def test_the_loss_that_a_note_names_is_the_release_s(con, rows, weight):
    """Where people are planned, columns weigh unlike, or rows are left out of what was tried."""
    draw = random.Random(rows)
    visits = [(f"p{i}", draw.randint(20, 60), kind, draw.choice("abcd")) for i in range(60) for kind in "xy"]
    con.execute("CREATE TABLE visits (person VARCHAR, age INTEGER, kind VARCHAR, s VARCHAR)")
    con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", visits)
    policy = {
        "source": "visits", "target": "out", "sensitive": ["s"], "require": [{"k": 5}, {"distinct": 2}], "seed": 1,
        "quasi_identifiers": {"age": {"numeric": True, "weight": weight}, "kind": {}},
        "individual": {"column": "person", "rows": rows},
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    (note,) = [note for note in result.notes if note.startswith("auto tried")]
    assert note.endswith(f" {result.loss.lm_mean:.4f}") or f"({result.loss.lm_mean:.4f})" in note
    assert result.search["loss"] == result.loss.lm_mean
    sparse = ldiv_db.run(
        con, policy | {"individual": None, "identifiers": ["person"], "suppression": 0.1, "target": "o2"}
    )
    (note,) = [note for note in sparse.notes if note.startswith("auto tried")]
    assert f"{sparse.loss.lm_mean:.4f}" in note
