"""A source that counts its rows: plans, releases and recodings are those of the rows themselves."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from strategies import search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.recoding.snapshot import MOST_COUNTED
from ldiv_db.recoding.statement import find_run, recoding_sql
from ldiv_db.running.preview import describe_plan

pytestmark = pytest.mark.usefixtures("no_remedies")

SHARES, MONOTONE = {"frequency": "1.9"}, {"distinct": 2}
#: Every way to plan from counts, with a requirement that it promises.
WAYS = [
    ({"name": "cuts"}, SHARES),
    ({"name": "cuts", "scheme": "none"}, {"frequency": "1.3"}),
    ({"name": "cuts", "scheme": "vioSA"}, SHARES),
    ({"name": "cuts", "scheme": "allSA"}, SHARES),
    ({"name": "cuts", "scheme": "allRec", "metric": "DM"}, SHARES),
    ({"name": "cuts", "metric": "CM", "class": "la bel"}, SHARES),
    ({"name": "annealing", "steps": 40}, SHARES),
    ({"name": "incognito", "metric": "DM"}, MONOTONE),
    ({"name": "incognito", "metric": "CM", "class": "la bel"}, MONOTONE),
    ({"name": "tds"}, MONOTONE),
    ({"name": "tds", "class": "la bel"}, {"entropy": "1.2"}),
    ({"name": "tp"}, SHARES),
    ({"name": "tp_plus"}, SHARES),
    ({"name": "tp_plus", "form": "ranges", "coarsen": {"age": 1}}, SHARES),
    ({"name": "tp_plus", "coarsen": "auto"}, SHARES),
    ({"name": "topdown"}, MONOTONE),
    ({"name": "topdown"}, {"t_closeness": "0.4"}),
    ({"name": "mondrian"}, MONOTONE),
    ({"name": "mondrian", "split": "relaxed"}, SHARES),
    ({"name": "bsgi"}, {"distinct": 2}),
    ({"name": "peel"}, SHARES),
    ({"name": "fast"}, MONOTONE),
]
KEYS = {
    "age": {"taxonomy": {"ranges": [5, 10, 20]}},
    'z"ip': {"taxonomy": {"prefix": [3, 1]}},
    "größe": {"taxonomy": {"flat": True}},
}
COLUMNS = {"age": "INTEGER", 'z"ip': "VARCHAR", "größe": "VARCHAR", "what": "VARCHAR", "la bel": "VARCHAR"}


def make(con, seed, rows=60):
    """A random table `people` with NULLs and ties, its counts `counts` in pieces, and what policies of it share."""
    draw = random.Random(seed)
    data = [
        (
            draw.choice([None, *range(12)]),
            draw.choice([None, "111", "112", "211"]),
            draw.choice(["ü", "it's", None]),
            draw.choices(["flu", "HIV", "é", "x;--"], [3, 3, 2, 2])[0],
            draw.choice("yn"),
        )
        for _ in range(rows)
    ]
    fill(con, "people", COLUMNS, data)
    counted = [
        (*row, part) for row, count in Counter(data).items() for part in ([count] if count < 3 else [1, count - 1])
    ]
    draw.shuffle(counted)
    fill(con, "counts", COLUMNS | {"How Many": draw.choice(["BIGINT", "DECIMAL(9, 2)", "DOUBLE", "UTINYINT"])}, counted)
    return {
        "target": {"table": "released", "if_exists": "replace"}, "quasi_identifiers": KEYS, "sensitive": ["what"],
        "keep": ["la bel"], "seed": seed, "nulls": draw.choice(["value", "suppress"]),
    }  # fmt: skip


def of(policy, source):
    return policy | ({"source": "counts", "weight": "how many"} if source == "counts" else {"source": source})


def told(result):
    """What a run says of itself, without what no two runs share."""
    return result.loss, result.search, result.algorithm, result.similarity, result.seed, result.l


@search(1, seed=seeds)
@pytest.mark.parametrize("way", some(range(len(WAYS)), 1))
def test_counts_give_what_the_rows_give(con, seed, way):
    """So do counts that a run makes itself, of a source with many equal rows."""
    algorithm, required = WAYS[way]
    policy = make(con, seed * 100 + way) | {"algorithm": algorithm, "require": [required]}
    found = []
    for source in ("people", "counts", "equal"):
        try:
            with pytest.MonkeyPatch.context() as patch:
                if source == "equal":
                    patch.setattr("ldiv_db.recoding.snapshot.COUNTED_FROM", 0)
                    patch.setattr("ldiv_db.recoding.snapshot.EQUAL_ROWS", 1)
                result = ldiv_db.run(con, of(policy, "counts" if source == "counts" else "people"))
        except ldiv_db.InfeasibleError as error:
            found.append(str(error))
            continue
        columns = [] if result.recoding is None else [c for c in result.recoding.columns if c.role != "weight"]
        audits = [replace(audit, seconds=0) if hasattr(audit, "seconds") else audit for audit in result.audits]
        rows = con.execute("FROM released").fetchall()
        found.append((rows, told(result), columns, audits))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("way", some(range(len(WAYS)), 1))
def test_a_plan_from_counts_says_what_that_of_the_rows_says(con, way):
    algorithm, required = WAYS[way]
    policy = make(con, way) | {"algorithm": algorithm, "require": [required], "nulls": "value"}
    plans = [describe_plan(ldiv_db.plan(con, of(policy, source))) for source in ("people", "counts")]
    for plan in plans:
        del plan["source"], plan["needs"]
    assert plans[1].pop("rows_different") == con.execute("SELECT count(*) FROM counts").fetchone()[0]
    assert plans[1]["columns"].pop(-2) == {"column": "how many", "role": "weight", "generalised_by": None}
    assert plans[0] == plans[1]


@pytest.mark.slow
def test_only_the_release_reads_the_rows_that_are_counted(con):
    """Searches read counts, of which there may be few where rows are many."""
    policy = of(make(con, 3), "counts")
    for algorithm, required in (WAYS[number] for number in (2, 5, 6, 8, 10)):
        sent = []
        listener = ldiv_db.Listener(on_statement=sent.append)
        ldiv_db.run(con, policy | {"algorithm": algorithm, "require": [required]}, listener=listener)
        readers = {one.template for one in sent if "_repeated" in one.sql and not one.template.startswith("(")}
        publishing = {"cuts/assign_rows", "cuts/assign_classes", "cuts/bound_classes", "cuts/list_blanked"}
        publishing.add("measuring/number_planned")  # what is published of rows that are assigned one by one
        apart = ("recoding/publish/", "recoding/input/repeat_rows")
        assert {name for name in readers if not name.startswith(apart)} <= publishing


@pytest.mark.slow
def test_a_file_does_not_tell_that_equal_rows_were_counted(con, tmp_path, monkeypatch):
    """Where its groups of rows end would say how many of the source's rows are equal."""
    con.execute("CREATE TABLE people AS SELECT i * i % 97 AS age, i * i % 7 AS what FROM range(150000) AS r(i)")
    policy = {"source": "people", "quasi_identifiers": ["age"], "sensitive": ["what"], "require": [{"k": 5}],
              "algorithm": "topdown", "target": {"file": f"{tmp_path}/r.parquet", "if_exists": "replace"}}  # fmt: skip
    files = []
    for least in (10**9, 0):
        monkeypatch.setattr("ldiv_db.recoding.snapshot.COUNTED_FROM", least)
        ldiv_db.run(con, policy)
        files.append((tmp_path / "r.parquet").read_bytes())
    assert files[0] == files[1]


def test_a_hundred_billion_rows_are_planned_from_their_counts(con):
    con.execute("SET memory_limit = '300MB'")
    rows = [(i % 40, "abcd"[i % 4], MOST_COUNTED // 160) for i in range(160)]
    fill(con, "counts", {"age": "INTEGER", "what": "VARCHAR", "n": "BIGINT"}, rows)
    policy = {"source": "counts", "weight": "n", "target": "t", "sensitive": "what", "require": [{"frequency": 2}],
              "quasi_identifiers": {"age": {"taxonomy": {"ranges": [5, 10]}}}}  # fmt: skip
    for name in ("cuts", "annealing", "incognito", "tds", "tp", "tp_plus"):
        assert ldiv_db.plan(con, policy | {"algorithm": name}).encoded.row_count == MOST_COUNTED


# -- what is chosen where nothing is said ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "name"),
    some(
        [
            ({"require": [SHARES]}, "cuts"),
            ({"require": [SHARES], "quasi_identifiers": {**KEYS, "age": {"numeric": True}}}, "tp_plus"),
            ({"require": [MONOTONE]}, "cuts"),
            ({"require": [{"k": 3}]}, "cuts"),
            ({"require": [{"k": 3}], "sensitive": [], "identifiers": ["what"]}, "cuts"),
            ({"require": [SHARES], "quasi_identifiers": list(KEYS)}, "tp_plus"),
            ({"require": [SHARES], "recode": "set"}, "tp_plus"),
            ({"require": [SHARES], "sensitive": {"what": {"same": "trim"}}}, "cuts"),
            ({"require": [SHARES], "sensitive": {"what": {"set": ","}}, "recode": "set"}, "topdown"),
        ],
        2,
    ),
)
def test_an_algorithm_that_plans_from_counts_is_chosen(con, more, name):
    policy = of(make(con, 1), "counts") | more
    planned = ldiv_db.plan(con, policy)
    assert planned.algorithm.name == name
    assert f"algorithm {name}: " in planned.reasons[0]


def test_too_many_cuts_to_go_through_are_walked(con, monkeypatch):
    monkeypatch.setattr("ldiv_db.solving.from_counts.MOST_CUTS", 3)
    assert ldiv_db.plan(con, of(make(con, 1), "counts") | {"require": [SHARES]}).algorithm.name == "annealing"


def test_more_values_than_cuts_can_count_are_left_to_another(con, monkeypatch):
    monkeypatch.setattr("ldiv_db.solving.from_counts.MOST_COLUMNS", 3)
    assert ldiv_db.plan(con, of(make(con, 1), "counts") | {"require": [SHARES]}).algorithm.name == "tds"


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    some(
        [
            ("NULL", "how many is NULL in 1 row"),
            ("0", "how many is zero in 1 row"),
            ("-3", "how many is negative in 1 row"),
            ("1.5", "how many is no whole number in 1 row"),
            ("0.5", "how many is no whole number in 1 row"),
            ("'nan'", "how many is more than 100,000,000,000 in 1 row"),
            ("'inf'", "how many is more than 100,000,000,000 in 1 row"),
            ("1e11", "how many is more than 100,000,000,000 in total"),
        ],
        3,
    ),
)
def test_counts_that_are_none_are_refused(con, wrong, says):
    policy = of(make(con, 1), "counts") | {"require": [SHARES]}
    con.execute('ALTER TABLE counts ALTER "How Many" TYPE DOUBLE')
    con.execute(f'UPDATE counts SET "How Many" = {wrong} WHERE rowid = 4')
    for act in (ldiv_db.plan, ldiv_db.run):
        with pytest.raises(ldiv_db.PolicyError, match=f"weight: {says}"):
            act(con, policy)
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'released'").fetchone() == (0,)


@pytest.mark.parametrize("kind", ["VARCHAR", "BOOLEAN", "DATE"])
def test_counts_are_numbers(con, kind):
    policy = of(make(con, 1), "counts") | {"require": [SHARES]}
    con.execute(f'ALTER TABLE counts ALTER "How Many" TYPE {kind} USING NULL')
    with pytest.raises(ldiv_db.PolicyError, match=f"weight: takes a column of whole numbers, how many is {kind}"):
        ldiv_db.plan(con, policy)


def test_no_counts_at_all_are_an_empty_source(con):
    policy = of(make(con, 1), "counts") | {"require": [SHARES]}
    con.execute("DELETE FROM counts")
    with pytest.raises(ldiv_db.InfeasibleError, match="counts is empty"):
        ldiv_db.plan(con, policy)


def test_rows_with_null_are_counted_as_they_are_rejected(con):
    policy = make(con, 2) | {"require": [SHARES], "nulls": "reject", "algorithm": "cuts"}
    said = []
    for source in ("people", "counts"):
        with pytest.raises(ldiv_db.InfeasibleError, match="NULLs") as raised:
            ldiv_db.plan(con, of(policy, source))
        said.append(str(raised.value))
    assert said[0] == said[1]


# -- from rows to counts, and back -----------------------------------------------------------------------


def counted_elsewhere(con, policy):
    """The counts of the people as `ldiv sql counts` has them, in a table; the policy that plans from them."""
    con.execute(f"CREATE OR REPLACE TABLE fetched AS {ldiv_db.counts_sql(policy, 'duckdb')}")
    return policy | {"source": "fetched", "weight": "n"}


@pytest.mark.slow
@search(1, seed=seeds)
@pytest.mark.parametrize("way", range(11))
def test_a_recoding_from_counts_is_run_on_the_rows(con, seed, way):
    algorithm, required = WAYS[way]
    policy = make(con, seed * 50 + way) | {"algorithm": algorithm, "require": [required], "source": "people"}
    policy["output"] = {"types": "text"}  # as the SELECT writes labels
    policy["keep"] = ["la bel"] if "class" in algorithm else []
    policy["identifiers"] = [] if policy["keep"] else ["la bel"]
    if algorithm.get("metric") == "CM" and algorithm["name"] == "cuts":
        pytest.skip("no SELECT: the rows left out depend on the class column")
    ldiv_db.run(con, policy)
    expected = Counter(con.execute("FROM released").fetchall())
    result = ldiv_db.run(con, counted_elsewhere(con, policy))
    assert Counter(con.execute("FROM released").fetchall()) == expected
    engine = Engine(con)
    select = recoding_sql(engine, find_run(engine, result.run_id), "duckdb", "people")
    assert Counter(con.execute(select).fetchall()) == expected


def test_columns_that_stay_with_the_rows_are_in_the_recoding_and_not_in_the_counts(con):
    policy = make(con, 4) | {"algorithm": "tds", "require": [MONOTONE], "source": "people"}
    policy["output"] = {"types": "text"}
    con.execute("ALTER TABLE people ADD name VARCHAR")
    policy |= {"identifiers": ["name"]}
    ldiv_db.run(con, policy)
    expected = Counter(con.execute("FROM released").fetchall())
    result = ldiv_db.run(con, counted_elsewhere(con, policy))
    assert [row[0] for row in con.execute("DESCRIBE fetched").fetchall()] == [*KEYS, "what", "n"]
    assert Counter(con.execute("FROM released").fetchall()) == Counter(
        row[:-1] for row, count in expected.items() for _ in range(count)
    )
    assert "the release lacks la bel, kept beside rows that the source only counts" in result.notes
    engine = Engine(con)
    with pytest.raises(ldiv_db.PolicyError, match="--source: the run was planned from counts, fetched"):
        recoding_sql(engine, find_run(engine, result.run_id), "duckdb")
    select = recoding_sql(engine, find_run(engine, result.run_id), "duckdb", "people")
    assert Counter(con.execute(select).fetchall()) == expected


# -- the SELECT of the counts ----------------------------------------------------------------------------


@search(2, seed=seeds)
def test_the_select_counts_rows(con, seed):
    policy = make(con, seed) | {"require": [SHARES], "source": "people"}
    counted = con.execute(ldiv_db.counts_sql(policy)).fetchall()
    rows = con.execute("FROM people").fetchall()
    assert Counter({row[:-1]: row[-1] for row in counted}) == Counter(row[:4] for row in rows)
    assert len(counted) == len({row[:4] for row in rows})
    by_class = ldiv_db.counts_sql(
        policy | {"algorithm": {"name": "tds", "class": "La Bel"}, "weight": "m"}, "duckdb", "people"
    )
    assert Counter({row[:-1]: row[-1] for row in con.execute(by_class).fetchall()}) == Counter(rows)
    assert con.description[-1][0] == "m"
