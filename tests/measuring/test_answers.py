"""What queries answer of a release: means, correlations and an analyst's own, worked out in plain Python beside."""

import random
import statistics
from collections import Counter, defaultdict

import pytest
from refusals import refuses
from strategies import search, seeds, some

import ldiv_db
from ldiv_db.database.errors import PolicyError

REGIONS = {"north": ["Oslo", "Bergen", "Tromsø"], "south": ["Rome", "Bari"]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "town.csv").write_text("".join(f"{t};{r};*\n" for r, towns in REGIONS.items() for t in towns))
    return tmp_path


def policy(**changes):
    return {
        "source": "people", "target": "out",
        "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": {"file": "town.csv"}}},
        "sensitive": ["cost"], "require": [{"k": 3}],
        **changes,
    }  # fmt: skip


def place(con, rows, released=None):
    """The source, and a release of it: labels as text, all of it if nothing else is said."""
    con.execute("CREATE OR REPLACE TABLE people (age INTEGER, town VARCHAR, cost INTEGER)")
    con.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    con.execute("CREATE OR REPLACE TABLE out (age VARCHAR, town VARCHAR, cost INTEGER)")
    con.executemany("INSERT INTO out VALUES (?, ?, ?)", rows if released is None else released)


def drawn(seed, count=400):
    draw = random.Random(seed)
    towns = [town for some in REGIONS.values() for town in some]
    return [(draw.randint(18, 80), draw.choice(towns), draw.randint(0, 99)) for _ in range(count)]


def answers(con, folder, *preserve):
    return ldiv_db.measure(con, "out", policy(preserve=list(preserve)), folder=folder, kl=False).answers


def test_a_release_that_is_the_source_answers_the_same(con, folder):
    rows = drawn(1)
    place(con, rows)
    found = answers(con, folder)
    assert [answer.figure for answer in found] == ["correlation of age and cost", "mean of age", "mean of cost"]
    assert all(answer.error == answer.worst == 0 for answer in found)
    ages, _, costs = zip(*rows, strict=True)
    assert found[0].before == found[0].after == pytest.approx(statistics.correlation(ages, costs))
    assert [answer.by for answer in found[1:]] == [("town",)] * 2 and found[1].groups == 5
    number = f"{found[0].before:.3g}"
    assert str(found[0]) == f"correlation of age and cost is {number}, was {number}"


@search(1, seed=seeds)
def test_ranges_are_their_middles(con, folder, seed):
    """Ages in ranges, towns as they are: what is off is worked out from the middles, row by row."""
    draw, rows = random.Random(seed), drawn(seed)
    bounds = [(max(18, age - draw.randint(0, 9)), min(80, age + draw.randint(0, 9))) for age, *_ in rows]
    ends = {age for age, *_ in rows}
    bounds = [(low if low in ends else age, high if high in ends else age)
              for (low, high), (age, *_) in zip(bounds, rows, strict=True)]  # fmt: skip
    released = [(f"[{low}-{high}]" if low < high else str(low), town, cost)
                for (low, high), (_, town, cost) in zip(bounds, rows, strict=True)]  # fmt: skip
    draw.shuffle(released)
    place(con, rows, released)
    (mean,) = answers(con, folder, "SELECT town, avg(age) AS a FROM source GROUP BY town")
    before, after = defaultdict(list), defaultdict(list)
    for (low, high), (age, town, _) in zip(bounds, rows, strict=True):
        before[town].append(age)
        after[town].append((low + high) / 2)
    off = {town: abs(statistics.mean(after[town]) - statistics.mean(before[town])) for town in before}
    assert mean.error == pytest.approx(sum(off.values()) / sum(map(statistics.mean, before.values())))
    assert mean.worst == pytest.approx(max(off[town] / statistics.mean(before[town]) for town in before))
    assert (mean.by, mean.groups, mean.before) == (("town",), 5, None)


@pytest.mark.parametrize("label", some(["{Oslo, Bari}", "south", "north", "*"]))
def test_labels_are_spread_evenly_over_their_leaves(con, folder, label):
    rows = drawn(3)
    covered = {"*": [t for some in REGIONS.values() for t in some], "{Oslo, Bari}": ["Oslo", "Bari"], **REGIONS}[label]
    place(con, rows, [(age, label, cost) for age, _, cost in rows])
    (count,) = answers(con, folder, "SELECT town, count(*) FROM source GROUP BY ALL")
    before = Counter(town for _, town, _ in rows)
    off = sum(abs(len(rows) / len(covered) * (town in covered) - before[town]) for town in before)
    assert count.error == pytest.approx(off / len(rows), abs=0.03)
    # Ages of what is spread have the mean of all: columns are spread independently.
    mean = statistics.mean(age for age, *_ in rows)
    (own,) = answers(con, folder, f"SELECT avg(age) FROM source WHERE town = '{covered[0]}'")
    assert own.after == pytest.approx(mean, rel=0.1)


def test_groups_that_one_of_the_tables_lacks_count_in_full(con, folder):
    rows = [(20, "Rome", 1)] * 30 + [(30, "Bari", 1)] * 10
    place(con, rows, [("20", "Rome", 1)] * 30 + [("30", "Oslo", 1)] * 10)
    con.execute("INSERT INTO people VALUES (40, 'Oslo', 1)")
    count, least = answers(con, folder, "SELECT town, count(*) AS n, min(cost) FROM source GROUP BY town")
    assert (count.groups, count.error, count.worst) == (3, pytest.approx((10 + 9) / 41), 9)
    assert least.error == pytest.approx(1 / 3)


def test_numbers_of_nothing_are_undefined(con, folder):
    place(con, [(20, "Rome", 1)] * 30)
    correlation, total = answers(
        con, folder, "SELECT corr(age, cost) AS r, sum(cost) FILTER (cost > 9) AS s FROM source"
    )
    assert (correlation.before, correlation.after, correlation.error) == (None, None, None)
    assert str(total) == "s is undefined, was undefined"


@pytest.mark.parametrize(
    ("query", "said"),
    some(
        [
            ("SELECT town FROM source", "names no figure"),
            ("DELETE FROM source", "takes one SELECT"),
            ("SELECT avg(age + random()) FROM source", "side effects"),
            ("SELECT avg(age) FROM people", "does not read the table `source`"),
            ("SELECT avg(age) FROM main.source", "does not read the table `source`"),
            ("WITH source AS (FROM people) SELECT avg(age) FROM source", "does not read the table `source`"),
            ("SELECT * FROM source", "names no figure"),
            ("SELECT avg(age) FROM source; DROP TABLE people", "takes one SELECT"),
            ("SELECT avg(height) FROM source", "cannot be read"),
            ("SELECT avg(age) FROM source) AS x, (SELECT 1", "cannot be read|takes one SELECT|names no figure"),
        ],
        2,
    ),
)
def test_what_cannot_be_asked_is_refused_by_its_place(con, folder, query, said):
    place(con, drawn(1, 20))
    with pytest.raises(PolicyError, match=said) as refused:
        answers(con, folder, "SELECT avg(age) FROM source", query)
    assert [problem.key for problem in refused.value.problems] == ["preserve.1"]


@pytest.mark.parametrize(("kind", "middle"), [("DATE", "2020-01-11"), ("TIMESTAMP", "2020-01-11 12:00:00")])
def test_times_have_middles(con, kind, middle):
    con.execute(
        f"CREATE TABLE people AS SELECT {kind} '2020-01-01' + INTERVAL (i) DAY AS day, i % 2 AS s FROM range(22) r(i)"
    )
    con.execute(f"ALTER TABLE people ALTER day TYPE {kind}")
    con.execute("CREATE TABLE out AS SELECT '*' AS day, s FROM people")
    keys = {"source": "people", "target": "x", "quasi_identifiers": {"day": {"numeric": True}}, "sensitive": ["s"]}
    query = f"SELECT count(*) AS n FROM source WHERE day = {kind} '{middle}'"
    asked = keys | {"require": [{"k": 2}], "preserve": [query]}
    (answer,) = ldiv_db.measure(con, "out", asked, kl=False).answers
    assert answer.after == 22


def test_a_run_answers_what_its_policy_names_and_refuses_it_before_it_works(con, folder):
    place(con, drawn(9, 60))
    query = "SELECT town, avg(age) AS a FROM source GROUP BY town"
    asked = policy(algorithm="mondrian", seed=1, require=[{"k": 10}], preserve=[query])
    result = ldiv_db.run(con, {**asked, "target": "made"}, folder=folder)
    assert result.answers == ldiv_db.measure(con, "made", asked, folder=folder, kl=False).answers
    assert str(result.answers[0]) in str(result) and result.as_dict()["answers"] == [result.answers[0].as_dict()]
    wrong = {**asked, "target": "never", "preserve": [query, "SELECT avg(height) FROM source"]}
    with refuses("preserve.1"):
        ldiv_db.run(con, wrong, folder=folder)


def test_a_query_that_fails_on_values_is_refused_by_the_plan_and_one_that_fails_on_labels_ends_no_run(con, folder):
    """No code is a number; each age is one, but not each middle of a range of ages is a whole one."""
    con.execute(
        "CREATE TABLE people AS SELECT 'x' || (i % 2) AS code, i % 7 AS age, 'v' || i % 4 AS s FROM range(56) t(i)"
    )
    asked = {"source": "people", "target": "out", "sensitive": ["s"], "require": [{"k": 8}], "algorithm": "mondrian"}
    asked |= {"quasi_identifiers": {"age": {"numeric": True}, "code": {"taxonomy": {"prefix": [2]}}}}
    for call in (ldiv_db.plan, ldiv_db.run):
        with pytest.raises(PolicyError, match=r"preserve.0: fails on some values .TRY_CAST"):
            call(con, asked | {"preserve": ["SELECT sum(code::INT) FROM source"]}, folder=folder)
    middles = "SELECT sum(CAST(if(age = floor(age), '1', 'x') AS INT)) FROM source"
    ldiv_db.plan(con, asked | {"preserve": [middles]}, folder=folder)
    result = ldiv_db.run(con, asked | {"preserve": [middles], "require": [{"k": 12}]}, folder=folder)
    assert result.answers == () and any("fails on values of the release" in note for note in result.notes)


def test_figures_that_are_not_finite_are_none(con, folder):
    con.execute("CREATE TABLE people AS SELECT i % 7 AS age, 'v' || i % 4 AS s FROM range(56) t(i)")
    asked = {"source": "people", "target": "out", "sensitive": ["s"], "require": [{"k": 8}], "algorithm": "mondrian"}
    asked |= {"quasi_identifiers": {"age": {"numeric": True}}, "preserve": ["SELECT sum(1 / (age - age)) FROM source"]}
    answer = ldiv_db.run(con, asked, folder=folder).answers[0].as_dict()
    assert {answer[key] for key in ("error", "worst", "before", "after")} == {None}


def test_spellings_that_are_published_as_one_are_one_group(con, folder):
    """Texts that `same` takes for one are compared as they are published."""
    con.execute(
        "CREATE TABLE people AS SELECT i AS age, ['Rome', ' rome ', 'Bari'][1 + i % 3] AS town FROM range(60) r(i)"
    )
    towns = {"town": {"same": ["trim", "casefold"], "taxonomy": {"flat": True}}}
    asked = {"source": "people", "target": "out", "quasi_identifiers": {"age": {"numeric": True}, **towns},
             "require": [{"k": 2}]}  # fmt: skip
    con.execute("CREATE TABLE out AS SELECT CAST(age AS VARCHAR) AS age, lower(trim(town)) AS town FROM people")
    (mean,) = ldiv_db.measure(con, "out", asked, kl=False).answers
    assert (mean.groups, mean.error) == (2, 0)


@pytest.mark.parametrize("kind", some(["ENUM('Bari', 'Oslo', 'Rome')", "VARCHAR"]))
def test_an_enum_is_measured_as_the_text_that_is_published(con, kind):
    con.execute(f"CREATE TABLE people (age INTEGER, town {kind}, cost {kind})")
    towns = "['Bari', 'Oslo', 'Rome']"
    con.execute(f"INSERT INTO people SELECT i % 20, {towns}[1 + i % 3], {towns}[1 + i % 2] FROM range(60) r(i)")
    asked = {"source": "people", "target": "out", "quasi_identifiers": {"age": {"numeric": True}, "town": {}},
             "sensitive": ["cost"], "require": [{"k": 3}], "algorithm": "mondrian", "seed": 1}  # fmt: skip
    ldiv_db.run(con, asked)
    found = ldiv_db.measure(con, "out", asked)
    assert {(answer.by, answer.groups) for answer in found.answers if answer.by} == {(("town",), 3), (("cost",), 2)}
