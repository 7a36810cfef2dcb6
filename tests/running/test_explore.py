"""Exploring a policy: every variant is what a run of its policy would be, and nothing is left behind."""

import json
import random

import duckdb
import pytest
import yaml
from strategies import some

import ldiv_db
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.reporting.exploration_page import page
from ldiv_db.running.exploring import rehearsal as workers
from ldiv_db.running.exploring.outcomes import is_beaten
from ldiv_db.running.exploring.variants import MOST_VARIANTS
from tests.running import schemas

TREE = "Oslo;Norway;Europe;*\nBergen;Norway;Europe;*\nRome;Italy;Europe;*\nTokyo;Japan;Asia;*\nSeoul;Korea;Asia;*\n"
CITIES = [line.partition(";")[0] for line in TREE.splitlines()]
DISEASES = ["flu", "Grippe ü", "癌", "asthma", "it's", "none"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "city.csv").write_text(TREE, encoding="utf-8")
    return tmp_path


def policy(**changes):
    document = {
        "source": "people",
        "target": "released",
        "quasi_identifiers": {
            "age": {"numeric": True},
            "city": {"taxonomy": {"file": "city.csv"}, "weight": 2},
            "zip": {"taxonomy": {"prefix": [4, 2, 1]}},
            "sex": {"taxonomy": {"flat": True}},
        },
        "sensitive": ["disease"],
        "keep": ["ward"],
        "require": [{"distinct": 2}],
        "algorithm": "mondrian",  # few statements
        "seed": 7,
    }
    return {key: value for key, value in (document | changes).items() if value is not None}


def people(seed, rows=40, nulls=0.05):
    drawn = random.Random(seed)

    def some(value):
        return None if drawn.random() < nulls else value

    return [
        (some(drawn.randrange(18, 90)), some(drawn.choice(CITIES)), some(f"{drawn.randrange(900, 1400):04}"),
         some(drawn.choice("mf")), drawn.choice(DISEASES), drawn.randrange(3))
        for _ in range(rows)
    ]  # fmt: skip


COLUMNS = {"age": "INTEGER", "city": "VARCHAR", "zip": "VARCHAR", "sex": "VARCHAR", "disease": "VARCHAR",
           "ward": "INTEGER"}  # fmt: skip


def names_left(con):
    return con.execute(
        "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
        " UNION ALL SELECT database_name FROM duckdb_databases() WHERE NOT internal ORDER BY ALL ASC NULLS FIRST"
    ).fetchall()


def compared(found):
    document = found.as_dict()
    document.pop("seconds")
    return json.dumps(document, default=str)


def ran(con, document, folder):
    """The loss of a run, and what an attack on its release gains; or the error's message."""
    con.execute("DROP TABLE IF EXISTS released")
    try:
        result = ldiv_db.run(con, document, folder)
    except (InfeasibleError, PolicyError) as error:
        return type(error), "\n".join(line for line in error.message.splitlines() if "--show-values" not in line)
    attacks = {one.name: one for one in ldiv_db.attack(con, "released", policy=document, folder=folder).attacks}
    told = [attacks["posterior"].gains[-1].gain, attacks["posterior"].figures["mean"]] if "posterior" in attacks else []
    rows = [attacks["prosecutor"].gains[0].gain, attacks["prosecutor"].figures["mean"]]
    return result.algorithm, result.l, result.loss, [*told, *rows]


def of_outcome(outcome):
    if outcome.loss is None:
        return {"infeasible": InfeasibleError, "refused": PolicyError}[outcome.status], outcome.reason
    risks = [number for number in vars(outcome.risk).values() if number is not None]
    return outcome.algorithm, outcome.l, outcome.loss, risks


def agree(con, document, folder, **asked):
    """Every variant is what a run of the policy that it shows does, and nothing is left behind; the outcomes."""
    before = names_left(con)
    found = ldiv_db.explore(con, document, **asked, folder=folder)
    assert names_left(con) == before and found.done
    for outcome in found.outcomes:
        whole = found.policy_of(outcome) | {"seed": document["seed"]}
        assert of_outcome(outcome) == ran(con, whole, folder), outcome.variant.label
        # As it is copied from the page.
        assert yaml.safe_load(yaml.safe_dump(whole)) == whole
    return found


TREES = {"city": {"taxonomy": {"file": "city.csv"}}, "sex": {}}
BSGI = {"name": "bsgi", "select": "bisect"}
#: Changes of the policy, and what is varied of it.
CASES = [
    ({"quasi_identifiers": TREES, "identifiers": ["age", "zip"]}, {"vary": "taxonomy", "workers": 1}),
    ({}, {"l": [2, 7], "algorithms": ["mondrian", "bsgi"], "vary": ["columns", "taxonomy"], "workers": 2}),
    ({"require": [{"k": 3}], "sensitive": None, "keep": ["ward", "disease"]}, {"k": [5], "vary": "columns"}),
    ({"sensitive": {"disease": {"harmless": "none"}, "ward": {}}, "keep": None,
      "require": [{"frequency": 2}, {"k": 3}]}, {"l": [3], "vary": "columns"}),
    ({"individual": "ward", "keep": None, "algorithm": BSGI}, {"l": [3], "vary": "taxonomy"}),
    ({"recode": "set", "algorithm": BSGI | {"residue": "suppress"}}, {"l": [3], "vary": "taxonomy"}),
    ({"output": {"bounds": True}}, {"l": [3], "vary": "columns"}),
    ({"quasi_identifiers": ["age", "sex"], "identifiers": ["zip", "city"]}, {"l": [3], "vary": "columns"}),
    ({"require": [{"entropy": 2.5}, {"p_sensitive": {"p": 2, "k": 4}}]}, {"l": [3], "vary": "columns"}),
    ({"algorithm": "cuts", "quasi_identifiers": TREES, "identifiers": ["age", "zip"], "require": [{"frequency": 2}]},
     {"l": [3], "vary": "taxonomy"}),
]  # fmt: skip


@pytest.mark.usefixtures("no_remedies")
@pytest.mark.parametrize(("changes", "asked"), some(CASES, 1), ids=str)
def test_a_variant_is_what_a_run_of_its_policy_would_be(con, table, folder, changes, asked):
    table("people", COLUMNS, people(5, rows=30))
    found = agree(con, policy(**changes), folder, **asked)
    if not changes:
        # Of l = 2 the first is the policy as it is written, of sex no level.
        assert len(found.outcomes) == 2 * 2 + 4 + 3
    assert {outcome.status for outcome in found.outcomes} <= {"done", "infeasible"}


@pytest.mark.slow
def test_of_counts(con, table, folder):
    table("people", COLUMNS, people(6, rows=80, nulls=0))
    con.execute("CREATE TABLE counted AS SELECT age, city, sex, disease, count(*) AS n FROM people GROUP BY ALL")
    keys = TREES | {"age": {"taxonomy": {"ranges": [5, 10, 20]}}}
    document = policy(source="counted", weight="n", quasi_identifiers=keys, keep=None, algorithm="tp_plus")
    found = agree(con, document, folder, l=[2, 3], vary=["columns", "taxonomy"])
    assert len(found.done) > 4 and {"coarser": "age"} in [dict(one.variant.varied) for one in found.done]


@pytest.mark.slow
def test_a_column_of_nulls_that_leave_rows_out_is_left_out_with_them(con, table, folder):
    table("people", COLUMNS, [(age, city, None if i % 2 else z, *rest)
                              for i, (age, city, z, *rest) in enumerate(people(8, nulls=0))])  # fmt: skip
    found = agree(con, policy(nulls="suppress"), folder, vary="columns")
    rows = {one.variant.label: one.loss.rows_published for one in found.done}
    assert rows["without zip"] == 40 and rows["without age"] == 20


@pytest.mark.slow
def test_neither_workers_nor_threads_nor_order_matter(table, folder):
    rows, found = people(9, rows=50), []
    for workers_, threads, order in [(1, 1, rows), (2, 2, rows[::-1]), (5, 3, sorted(rows, key=str))]:
        with duckdb.connect(":memory:", config={"threads": threads}) as con:
            con.execute(f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
            con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", order)
            asked = {"algorithms": ["bsgi", "mondrian"], "vary": ["taxonomy"]}
            document = policy(algorithm={"name": "bsgi", "select": "bisect"})
            found.append(ldiv_db.explore(con, document, [2], **asked, folder=folder, workers=workers_))
    assert len({compared(one) for one in found}) == 1 and len({page(one) for one in found}) == 1


@pytest.mark.slow
def test_a_frame_or_a_query_as_the_source(con, table, folder):
    table("people", COLUMNS, people(3))
    plain = ldiv_db.explore(con, policy(), [2, 3], folder=folder, workers=2)
    for source in ({"query": "SELECT * FROM people"}, con.sql("FROM people")):
        found = ldiv_db.explore(con, policy(source=source), [2, 3], folder=folder, workers=2)
        assert [one.loss for one in found.outcomes] == [one.loss for one in plain.outcomes]


@pytest.mark.slow
def test_the_least_loss_within_a_risk_is_that_of_all_variants(con, table, folder):
    """Each risk takes the place of the policy's own, and what loses least of all that keep it is said."""
    table("people", COLUMNS, people(5))
    document = policy(require=[{"distinct": 2}, {"risk": 0.5}, {"risk": {"average": 0.5}}])
    asked = {"risk": [0.25, "1/10", 0.011], "vary": ["columns"], "algorithms": ["mondrian", "topdown"]}
    found = ldiv_db.explore(con, document, **asked, folder=folder, workers=2)
    assert len(found.outcomes) == 3 * (2 + 4)
    for outcome in found.outcomes:
        bound = outcome.variant.varied["risk"]
        assert outcome.variant.keys["require"] == [{"distinct": 2}, {"risk": {"average": 0.5}}, {"risk": bound}]
    for bound, least in found.least:
        number = 0.1 if bound == "1/10" else bound
        within = [one for one in found.done if one.risk.prosecutor <= number]
        assert (least is None) == (not within) == (bound == 0.011)
        assert least is None or found.loss_of(least) == min(map(found.loss_of, within))
    assert "least loss at a risk of at most 1/10: 0." in str(found)
    assert "0.011: no variant meets it" in str(found)
    assert len(found.costs) == 4  # of the first risk alone, as what they are compared with


@pytest.mark.slow
@pytest.mark.parametrize("frame", some([False, True], 1))
def test_variants_are_compared_by_what_they_answer(con, table, folder, frame):
    table("people", COLUMNS, people(6, nulls=0))
    asked = ["SELECT city, avg(age) FROM source GROUP BY city", "SELECT disease, count(*) FROM source GROUP BY 1"]
    document = policy(preserve=asked, **({"source": con.sql("FROM people")} if frame else {}))
    found = ldiv_db.explore(con, document, [2, 4], vary="columns", by="utility", folder=folder, workers=2)
    for outcome in found.done:
        here = {"source": "people", "seed": 7, "target": f"out{outcome.variant.number}"}
        released = {**document, **found.policy_of(outcome), **here}
        ldiv_db.run(con, released, folder=folder)
        answers = ldiv_db.measure(con, released["target"], released, folder=folder, kl=False).answers
        assert outcome.answers == answers
        assert found.loss_of(outcome) == sum(min(answer.error, 1) for answer in answers) / 2 > 0
        assert answers[1].error == 0
        assert str(outcome.loss.counts) in page(found)
    reasons = {one.variant.label: one.status for one in found.outcomes if one.loss is None}
    assert reasons == {"without age": "refused", "without city": "refused"}
    best = min(found.done, key=found.loss_of)
    assert f"least error: {best.variant.label}; {best.answers[0]}" in str(found)
    assert "mean error of the answers" in page(found) and str(best.answers[0]) in page(found)


@pytest.mark.slow
def test_without_queries_variants_are_compared_by_counts(con, table, folder):
    table("people", COLUMNS, people(6))
    found = ldiv_db.explore(con, policy(), vary="columns", by="utility", folder=folder, workers=1)
    total = len(found.columns)
    for outcome in found.done:
        released = {**policy(), **found.policy_of(outcome), "source": "people", "seed": 7, "target": "released"}
        result = ldiv_db.run(con, released | {"target": f"out{outcome.variant.number}"}, folder=folder, kl=True)
        counts, kept = result.loss.counts, len(result.loss.lm_by_column)
        assert outcome.loss.counts == counts
        assert found.loss_of(outcome) == pytest.approx((kept * min(counts.median, 1) + total - kept) / total)
        assert 0 < found.loss_of(outcome) <= 1
    assert str(min(found.done, key=found.loss_of).loss.counts) in str(found)
    alone = policy(quasi_identifiers={"age": {"numeric": True}}, sensitive={}, keep=[], require=[{"k": 2}])
    with pytest.raises(PolicyError, match="by: utility is measured by counts over two columns"):
        ldiv_db.explore(con, alone, k=[2], by="utility", folder=folder)


def test_the_frontier_is_that_of_all_pairs():
    drawn = random.Random(4)
    for _ in range(50):
        places = [(drawn.randrange(6), drawn.randrange(6)) for _ in range(drawn.randrange(1, 12))]
        best = [place for place in places if not is_beaten(place, places)]
        for risk, loss in places:
            beaten = any((r < risk and l <= loss) or (r <= risk and l < loss) for r, l in places)
            assert ((risk, loss) in best) != beaten


def test_a_column_left_out_is_lost_wholly(con, table, folder):
    table("people", COLUMNS, people(4))
    document = policy(quasi_identifiers=TREES, identifiers=["age", "zip"])
    found = ldiv_db.explore(con, document, vary="columns", folder=folder, workers=1)
    first, *others = found.done
    assert found.loss_of(first) == pytest.approx(first.loss.lm_mean)
    for one in others:
        assert found.loss_of(one) == pytest.approx((sum(one.loss.lm_by_column.values()) + 1) / 2)
    saved = [before - after for _, before, after in found.costs]
    assert len(saved) == 2 and saved == sorted(saved, reverse=True)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done(con, table, folder, monkeypatch):
    table("people", COLUMNS, people(4))
    for workers_ in (1, 2):
        real, calls = workers.rehearse, []

        def rehearse(job, connection, listener, real=real, calls=calls):
            calls.append(job)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return real(job, connection, listener)

        before = names_left(con)
        with monkeypatch.context() as patch:
            patch.setattr(workers, "rehearse", rehearse)
            found = ldiv_db.explore(con, policy(), [1, 2, 3, 4], folder=folder, workers=workers_)
        assert found.interrupted and [one.status for one in found.outcomes].count("interrupted") >= 2
        assert found.done or workers_ == 2
        assert names_left(con) == before and "interrupted" in page(found)


@pytest.mark.slow
def test_an_error_of_the_database_is_the_outcome_of_its_variant_alone(con, table, folder, monkeypatch):
    table("people", COLUMNS, people(4))
    real = workers.rehearse.__globals__["rehearsed"]

    def rehearsed(ready, workers):
        if ready.task.requirements[0].l == 3:
            raise ldiv_db.DatabaseError("Out of Memory Error: full\nin a statement")
        return real(ready, workers)

    monkeypatch.setitem(workers.rehearse.__globals__, "rehearsed", rehearsed)
    found = ldiv_db.explore(con, policy(), [2, 3, 4], folder=folder, workers=2)
    assert [one.status for one in found.outcomes] == ["done", "error", "done"]
    assert found.outcomes[1].reason == "Out of Memory Error: full"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"l": [0]}, "l: takes whole numbers"),
        ({"l": [2], "algorithms": ["bsig"]}, "did you mean 'bsgi'"),
        ({"vary": ["rows"]}, "vary: takes taxonomy and columns, not 'rows'"),
        ({"k": [2]}, "the policy requires distinct, which has no k"),
        ({"risk": [2]}, "risk: takes a number from"),
        ({"by": "looks"}, "by: 'looks' is not an objective"),
        ({"workers": 0}, "workers: takes a whole number from 1"),
        ({"l": range(1, MOST_VARIANTS + 3)}, "more than 300 variants"),
    ],
)
def test_what_cannot_be_varied(con, table, folder, asked, said):
    table("people", COLUMNS, people(4))
    with pytest.raises(PolicyError, match=said):
        ldiv_db.explore(con, policy(), **asked, folder=folder)


def test_a_policy_of_k_alone_has_no_l_and_a_transaction_of_the_callers_shows_what_it_has_written(con, table, folder):
    con.begin()
    table("people", COLUMNS, people(4))
    document = policy(require=[{"k": 2}])
    with pytest.raises(PolicyError, match=r"the policy requires k, which has no l \(vary k\)"):
        ldiv_db.explore(con, document, [2], folder=folder)
    assert [one.variant.label for one in ldiv_db.explore(con, document, folder=folder).done] == ["as written"]
    con.rollback()


def test_the_first_release_of_a_series_is_explored_as_it_would_be_published(con, table, folder):
    table("people", {"id": "INTEGER", **COLUMNS}, [(number, *row) for number, row in enumerate(people(40, rows=20))])
    asked = policy(key="id", algorithm="topdown", target={"table": "r"})
    explored = ldiv_db.explore(con, asked, [2, 3], folder=folder).done
    for found, l in zip(explored, (2, 3), strict=True):
        con.execute("DROP SCHEMA IF EXISTS ldiv CASCADE; DROP TABLE IF EXISTS r")
        published = ldiv_db.run(con, asked | {"require": [{"distinct": l}]}, folder=folder).figures
        assert found.loss.lm_mean == published["loss_new"]["lm_mean"]
        assert found.loss.rows_published == published["rows_published"]
    with pytest.raises(PolicyError, match="publishes groups"):
        groups = {"sensitive": {"disease": {"l": 2}}, "algorithm": "anatomy", "target": {"prefix": "g"}}
        ldiv_db.explore(con, policy(key="id", require=None, **groups), folder=folder)


def test_a_policy_that_does_not_fit_its_source_is_refused_at_once(con, table, folder):
    table("people", COLUMNS, people(4))
    with pytest.raises(PolicyError, match="does not classify"):
        ldiv_db.explore(con, policy(keep=None), [2, 3], folder=folder)


def test_variants_of_several_tables_are_what_runs_of_them_publish(con, snapshot):
    names = ("patients", "stays")
    schemas.fill(con, names, schemas.drawn(random.Random(4), names, 8, most=2, values="abcdefghij"))
    policy, before = schemas.policy_of(names), snapshot(con)
    for wrong in ({"vary": "columns"}, {"by": "utility"}):
        with pytest.raises(PolicyError, match="of one table"):
            ldiv_db.explore(con, policy, **wrong)
    found = ldiv_db.explore(con, policy, l=[2, 9], workers=1)
    assert snapshot(con) == before
    one, high = found.outcomes
    assert (one.variant.label, one.status, high.status, high.loss) == ("l = 2", "done", "infeasible", None)
    result = ldiv_db.run(con, policy | dict(one.variant.keys))
    assert (one.loss.lm_mean, one.loss.rows_suppressed) == (result.loss.lm_mean, result.loss.rows_suppressed)
    attacks = ldiv_db.attack(con, policy=policy | dict(one.variant.keys)).attacks
    shares = [a.gains[-1].gain for a in attacks if a.name == "posterior" and a.knows == "all tables"]
    assert one.risk.posterior == max(share for share in shares if share is not None) <= 1 / one.l
    assert "patients.age" in page(found)
    lost, whole = {table.name: table.loss.lm_mean for table in result.tables}, set()
    for column in {group.column for group in one.groups}:
        groups, name = [group for group in one.groups if group.column == column], column.split(".")[0]
        if sum(group.share for group in groups) == pytest.approx(1):  # all its values are told
            assert sum(group.share * group.lm_mean for group in groups) == pytest.approx(lost[name])
            whole.add(name)
    assert whole == set(names)
