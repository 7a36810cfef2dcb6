"""k-map and delta-presence: classes held against the people of a population, by brute force over people and labels."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import reject
from refusals import refuses
from strategies import search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.requirements import Classes, RequirementSpec, judge

pytestmark = pytest.mark.usefixtures("no_remedies")

#: Two trees as level files, leaf to root; `z` is in none.
CITY = {"a": ("ab", "*"), "b": ("ab", "*"), "c": ("cd", "*"), "d": ("cd", "*")}
JOB = {"p": ("pq", "*"), "q": ("pq", "*"), "r": ("rst", "*"), "s": ("rst", "*"), "t": ("rst", "*")}
TREES = {"city": CITY, "job": JOB}
PEOPLE = "people"


def k_map(k: int, population: Any = PEOPLE) -> dict[str, Any]:
    return {"k_map": {"k": k, "population": population}}


def presence(most: Any, **more: Any) -> dict[str, Any]:
    return {"delta_presence": {"max": most, "population": PEOPLE, **more}}


def covers(label: str | None, value: str | None, tree: dict[str, tuple[str, ...]]) -> bool:
    """Whether a label stands for a value: NULL for NULL, the root for everything, a node or a set for its leaves."""
    if label and label.startswith("{"):
        return value in label[1:-1].split(", ")
    if label == "*":
        return True
    if label is None or value is None:
        return label is None and value is None
    return label in (value, *tree[value]) if value in tree else False


def people_of(labels: tuple[Any, ...], people: list[tuple[Any, ...]]) -> int:
    """How many people a class covers."""
    return sum(
        all(covers(label, value, tree) for label, value, tree in zip(labels, person, TREES.values(), strict=True))
        for person in people
    )


def holds(require: dict[str, Any], released: list[tuple[Any, ...]], people: list[tuple[Any, ...]]) -> bool:
    """Whether a release, rows of labels, meets the requirement."""
    ((name, asked),) = require.items()
    classes = Counter(released)
    if name == "k_map":
        return all(people_of(labels, people) >= asked["k"] for labels in classes)
    least, most = Fraction(asked.get("min", 0)), Fraction(asked["max"])
    everybody_in = all(any(people_of(labels, [person]) for labels in classes) for person in people)
    return (everybody_in or not least) and all(
        least * people_of(labels, people) <= rows <= most * people_of(labels, people)
        for labels, rows in classes.items()
    )


def draw_case(seed: int, odd: bool = True) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """A source of some of the people of a population; perhaps people with values that the trees lack."""
    source = random.Random(seed)
    strange = [None, "z"] if odd else []
    jobs = sorted(JOB)[: source.randint(2, 5)]
    people: list[tuple[Any, ...]] = [
        (source.choice(sorted(CITY)), source.choice(jobs)) for _ in range(source.randint(6, 40))
    ]
    chosen = people[: source.randint(2, max(2, len(people) - 2))]
    people += [(source.choice([*CITY, *strange]), source.choice([*JOB, *strange])) for _ in range(source.randint(0, 9))]
    source.shuffle(people)
    return chosen, people


def draw_requirement(source: random.Random) -> dict[str, Any]:
    if source.random() < 0.5:
        return k_map(source.randint(2, 8))
    most = source.choice(["0.4", "0.5", "0.75", "1"])
    least = source.choice([{}, {"min": "0"}, {"min": "0.1"}, {"min": "0.3"}])
    return presence(most, **least)


def place(con: Any, folder: Path, rows: list[tuple[Any, ...]], people: list[tuple[Any, ...]]) -> None:
    """The tables of the source and of the population, and the level files."""
    columns = {"city": "VARCHAR", "job": "VARCHAR", "disease": "VARCHAR"}
    fill(con, "source", columns, [(*row, f"d{i % 3}") for i, row in enumerate(rows)])
    columns = {"JOB": "VARCHAR", "number": "INTEGER", "city": "VARCHAR"}
    fill(con, "people", columns, [(job, i, city) for i, (city, job) in enumerate(people)])
    for name, tree in TREES.items():
        (folder / f"{name}.csv").write_text("".join(f"{';'.join([leaf, *up])}\n" for leaf, up in tree.items()))


def policy_of(require: dict[str, Any], algorithm: str, **changes: Any) -> dict[str, Any]:
    return {
        "source": "source",
        "target": {"table": "released", "if_exists": "replace"},
        "quasi_identifiers": {name: {"taxonomy": {"file": f"{name}.csv"}} for name in TREES},
        "sensitive": ["disease"],
        "require": [require],
        "algorithm": algorithm,
        "seed": 1,
        **changes,
    }


def released(con: Any) -> list[tuple[Any, ...]]:
    return con.execute("SELECT city, job FROM released").fetchall()


def at_levels(rows: list[tuple[Any, ...]], levels: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """The rows under a full-domain generalisation."""
    trees = list(TREES.values())
    return [
        tuple((value, *tree[value])[level] for value, tree, level in zip(row, trees, levels, strict=True))
        for row in rows
    ]


def loss(labels: list[tuple[Any, ...]]) -> float:
    """LM per cell."""
    cells = [
        (sum(covers(label, leaf, tree) for leaf in tree) - 1) / (len(tree) - 1)
        for row in labels
        for label, tree in zip(row, TREES.values(), strict=True)
    ]
    return sum(cells) / len(cells)


@search(1, seed=seeds)
def test_incognito_finds_the_best_of_all_levels(con: Any, tmp_path: Path, seed: int) -> None:
    """Every vector of levels is judged by brute force: the loss is the least of those that hold, or none does."""
    seed += 1  # of the first case some levels hold, and some do not
    rows, people = draw_case(seed)
    require = draw_requirement(random.Random(seed))
    place(con, tmp_path, rows, people)
    good = [
        loss(at_levels(rows, levels))
        for levels in itertools.product(range(3), repeat=2)
        if holds(require, at_levels(rows, levels), people)
    ]
    if not good:
        with pytest.raises(InfeasibleError, match=next(iter(require))):
            ldiv_db.run(con, policy_of(require, "incognito"), folder=tmp_path)
        return
    result = ldiv_db.run(con, policy_of(require, "incognito"), folder=tmp_path)
    assert result.loss.lm_mean == pytest.approx(min(good), abs=1e-6)
    assert holds(require, released(con), people)


@pytest.mark.slow
@search(2, seed=seeds)
def test_tds_keeps_what_no_single_value_can_be_specialised_of(con: Any, tmp_path: Path, seed: int) -> None:
    """What it publishes holds by brute force, and fails with the children of any one value in its place."""
    rows, people = draw_case(seed)
    require = draw_requirement(random.Random(seed))
    place(con, tmp_path, rows, people)
    if not holds(require, at_levels(rows, (2, 2)), people):
        with pytest.raises(InfeasibleError):
            ldiv_db.run(con, policy_of(require, "tds"), folder=tmp_path)
        return
    cut = ldiv_db.run(con, policy_of(require, "tds"), folder=tmp_path).search["cut"]
    labels = [
        tuple(
            next(label for label in (value, *tree[value]) if label in cut[name])
            for value, (name, tree) in zip(row, TREES.items(), strict=True)
        )
        for row in rows
    ]
    assert sorted(labels) == sorted(released(con)) and holds(require, labels, people)
    for place_, (name, tree) in enumerate(TREES.items()):
        for value in set(cut[name]) - set(tree):
            finer = [
                (*row[:place_], _child(value, own[place_], tree), *row[place_ + 1 :]) if row[place_] == value else row
                for own, row in zip(rows, labels, strict=True)
            ]
            assert finer == labels or not holds(require, finer, people), (name, value)


def _child(value: str, leaf: str, tree: dict[str, tuple[str, ...]]) -> str:
    """The child of a node above a leaf."""
    way = (leaf, *tree[leaf])
    return way[way.index(value) - 1]


@search(2, seed=seeds)
def test_any_table_is_checked_by_whom_its_labels_cover(con: Any, tmp_path: Path, seed: int) -> None:
    """Labels at random: classes overlap, some cover nobody. The verdict and the worst by brute force.

    Presence is refused exactly where a person is covered twice.
    """
    source = random.Random(seed)
    rows, people = draw_case(seed)
    place(con, tmp_path, rows, people)
    nodes = [sorted({*tree, *itertools.chain(*tree.values())}) for tree in TREES.values()]
    table = [tuple(source.choice([*own, None]) for own in nodes) for _ in range(source.randint(1, 5))]
    table = [source.choice(table) for _ in range(source.randint(1, 15))]
    con.execute("CREATE OR REPLACE TABLE released (city VARCHAR, job VARCHAR, disease VARCHAR)")
    con.executemany("INSERT INTO released VALUES (?, ?, 'd')", table)
    require = draw_requirement(source)
    ((name, asked),) = require.items()
    policy = policy_of(require, "tds")
    twice = sum(sum(people_of(labels, [person]) for labels in set(table)) > 1 for person in people)
    if name == "delta_presence" and twice:
        said = f"delta_presence .*people of the population, and {twice} of these are in several classes"
        for ask in (ldiv_db.check, ldiv_db.attack):
            with pytest.raises(PolicyError, match=said):
                ask(con, "released", policy=policy, folder=tmp_path)
        return
    (audit,) = ldiv_db.check(con, "released", policy=policy, folder=tmp_path)
    (verdict,) = audit.verdicts
    assert verdict.holds is holds(require, table, people)
    covered = {labels: people_of(labels, people) for labels in table}
    if name == "k_map":
        assert verdict.worst == min(covered.values())
        assert verdict.violating_classes == sum(count < asked["k"] for count in covered.values())
        bound = Fraction(source.randint(1, 9), 9)
        policy = policy_of({"risk": {"max": str(bound), "population": PEOPLE}}, "tds")
        ((verdict,),) = (audit.verdicts for audit in ldiv_db.check(con, "released", policy=policy, folder=tmp_path))
        risks = [Fraction(1, max(count, 1)) for count in covered.values()]
        assert verdict.worst == pytest.approx(float(max(risks)))
        assert verdict.holds is (min(covered.values()) > 0 and max(risks) <= bound)
    elif all(covered.values()):
        assert verdict.worst == pytest.approx(max(n / covered[labels] for labels, n in Counter(table).items()))


def test_presence_is_not_known_of_classes_that_share_people(con: Any, tmp_path: Path) -> None:
    """Everybody is in the table, and each of four classes with the same labels has two rows of the eight people."""
    rows = [("a", "p")] * 8
    place(con, tmp_path, rows, rows)
    con.execute("CREATE TABLE released AS SELECT 'ab' AS city, '*' AS job, disease, rowid % 4 AS class FROM source")
    half = presence("0.5")
    asked = {"folder": tmp_path, "class_column": "class"}
    with pytest.raises(PolicyError, match="8 of these are in several classes"):
        ldiv_db.check(con, "released", policy=policy_of(half, "tds"), **asked)
    fewest = k_map(8)
    assert ldiv_db.check(con, "released", policy=policy_of(fewest, "tds"), **asked)[0].holds


@pytest.mark.slow
def test_ranges_prefixes_and_values_nobody_published_has(con: Any, tmp_path: Path) -> None:
    """A population's values that the source lacks count for the labels that cover them, and for no narrower one."""
    con.execute("CREATE TABLE source AS SELECT * FROM (VALUES (1, '101', 'x'), (2, '102', 'y')) AS v (age, zip, s)")
    con.execute("CREATE TABLE people AS SELECT * FROM (VALUES (1, '101'), (2, '102'), (3, '109')) AS v (age, zip)")
    keys = {"age": {"taxonomy": {"ranges": [5, 10]}}, "zip": {"taxonomy": {"prefix": [3, 2]}}}
    policy = policy_of(k_map(3), "incognito", quasi_identifiers=keys)
    policy |= {"sensitive": ["s"]}
    result = ldiv_db.run(con, policy)
    assert set(con.execute("SELECT age, zip FROM released").fetchall()) == {("[0 .. 4]", "10*")}
    assert result.audits[0].verdicts[0].worst == 3
    con.execute("INSERT INTO people VALUES (77, '109')")
    (audit,) = ldiv_db.check(con, "released", policy=policy, require="delta_presence:max=1,population=people,min=0.1")
    assert not audit.holds  # who is 77 is in no class


# -- attacks ------------------------------------------------------------------------------------------


@pytest.mark.slow
@search(1, seed=seeds)
def test_attacks_keep_what_is_promised_of_the_population(con: Any, tmp_path: Path, seed: int) -> None:
    """The population that a requirement names is taken without being said, and another promises nothing."""
    rows, people = draw_case(seed, odd=False)
    place(con, tmp_path, rows, people)
    most = Fraction(len(rows), len(people))
    asked = [k_map(3), {"delta_presence": {"max": str(min(1, round(float(most) + 0.2, 2))), "population": PEOPLE}}]
    policy = policy_of(asked[0], "tds") | {"require": asked}
    ldiv_db.run(con, policy, folder=tmp_path)
    found = ldiv_db.attack(con, "released", policy=policy, folder=tmp_path).attacks
    attacks = {one.name: one.gains[0] for one in found}
    classes = Counter(released(con))
    covered = {labels: people_of(labels, people) for labels in classes}
    assert attacks["journalist"].gain == pytest.approx(1 / min(covered.values()))
    assert attacks["journalist"].bound == pytest.approx(1 / 3) and attacks["journalist"].holds
    assert attacks["marketer"].holds
    assert attacks["presence"].gain == pytest.approx(max(n / covered[labels] for labels, n in classes.items()))
    assert attacks["presence"].holds is not False
    con.execute("CREATE OR REPLACE TABLE others AS FROM people")
    others = ldiv_db.attack(con, "released", policy=policy, folder=tmp_path, population="others").attacks
    assert {one.name: one.gains[0].bound for one in others}["presence"] is None


@pytest.mark.parametrize("require", some([presence("0.5"), k_map(2)]), ids=str)
def test_a_broken_promise_is_found(con: Any, tmp_path: Path, require: Any) -> None:
    place(con, tmp_path, [("a", "p")], [("a", "p"), ("b", "q")])
    con.execute("CREATE TABLE released AS FROM source")
    assert ldiv_db.attack(con, "released", policy=policy_of(require, "tds"), folder=tmp_path).holds is False


# -- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algorithm", some(["bsgi", "cuts", "annealing", "topdown", "mondrian", "peel", "tp", "tp_plus", "hilbert"], 2)
)
def test_other_algorithms_refuse(con: Any, tmp_path: Path, algorithm: str) -> None:
    place(con, tmp_path, *draw_case(0))
    policy = policy_of(k_map(2), algorithm)
    with pytest.raises(
        PolicyError,
        match=r"does not know which people of people its classes cover \(algorithm:"
        " auto, tds",
    ):
        ldiv_db.run(con, policy, folder=tmp_path)


def test_the_way_out_of_a_transparent_release_leaves_that_out(con: Any, tmp_path: Path) -> None:
    place(con, tmp_path, *draw_case(0))
    policy = policy_of(k_map(2), "bsgi") | {"transparent": True, "require": [{"frequency": 2}, k_map(2)]}
    with pytest.raises(PolicyError, match="in a run of its own, without `transparent`"):
        ldiv_db.run(con, policy, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some(["auto", "fast"]))
def test_whom_the_policy_leaves_the_algorithm_tds_runs(con: Any, tmp_path: Path, algorithm: str) -> None:
    place(con, tmp_path, *draw_case(0))
    policy = policy_of(k_map(2), "tds")
    expected, rows = ldiv_db.run(con, policy, folder=tmp_path), released(con)
    found = ldiv_db.run(con, policy | {"algorithm": algorithm}, folder=tmp_path)
    assert (found.algorithm, found.search, released(con)) == ("tds", expected.search, rows)
    assert any("knows whom of people" in note for note in found.notes)


@search(2, seed=seeds)
def test_sets_cover_the_people_who_have_their_members(con: Any, tmp_path: Path, seed: int) -> None:
    rows, people = draw_case(seed)
    place(con, tmp_path, rows, people)
    require = k_map(2 + seed % 5)
    policy = policy_of(require, "tds", recode="set")
    try:
        ldiv_db.run(con, policy, folder=tmp_path)
    except InfeasibleError:
        reject()
    assert ldiv_db.check(con, "released", policy=policy, folder=tmp_path).holds
    assert holds(require, released(con), people)


@pytest.mark.parametrize("algorithm", some(["tds", "incognito"]))
@search(2, seed=seeds)
def test_numbers_cover_the_people_between_their_bounds(con: Any, tmp_path: Path, algorithm: str, seed: int) -> None:
    """Without a taxonomy; people have numbers that no row has, and none."""
    source = random.Random(seed)
    people: list[int | None] = [source.randint(-5, 12) for _ in range(source.randint(8, 40))]
    rows = [*people[: len(people) // 2], *([None] if seed % 2 else [])]
    people += [None] * source.randint(1, 3)
    fill(con, "source", {"n": "INTEGER", "disease": "VARCHAR"}, [(n, f"d{i % 3}") for i, n in enumerate(rows)])
    fill(con, "people", {"n": "INTEGER"}, [(n,) for n in people])
    require, bounds = draw_requirement(source), source.random() < 0.5
    changes = {"quasi_identifiers": {"n": {"numeric": True}}, "nulls": "value", "output": {"bounds": bounds}}
    policy = policy_of(require, algorithm, **changes)
    try:
        ldiv_db.run(con, policy, folder=tmp_path)
    except InfeasibleError:
        reject()
    assert ldiv_db.check(con, "released", policy=policy, folder=tmp_path).holds
    if not bounds:
        return
    ((name, asked),) = require.items()
    for low, high, count in con.execute("SELECT n_min, n_max, count(*) FROM released GROUP BY ALL").fetchall():
        covered = len(people) if low is None else sum(n is not None and low <= n <= high for n in people)
        if name == "k_map":
            assert covered >= asked["k"]
        else:
            assert count <= Fraction(asked["max"]) * covered


@pytest.mark.parametrize(
    ("require", "changes", "says"),
    [
        ({"k_map": 5}, {}, "takes k, population"),
        (k_map(5, 3), {}, "of a table or file, not 3: a population's size says nothing about any class"),
        (k_map(2, "nobody"), {}, "no table or view nobody"),
        (k_map(2, "cities"), {}, "cities has no column job"),
        (presence(2), {}, "from 0 to 1"),
        (presence("0.2", min="0.5"), {}, "a min up to max"),
        ({"delta_presence": {"max": "0.2", "population": PEOPLE}, "others_known": True}, {}, "no others_known"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    con: Any, tmp_path: Path, require: dict[str, Any], changes: dict[str, Any], says: str
) -> None:
    place(con, tmp_path, *draw_case(0))
    con.execute("CREATE TABLE cities AS SELECT city FROM people")
    con.execute("CREATE TABLE numbers AS SELECT 3 AS n, 'x' AS disease")
    con.execute("ALTER TABLE people ADD n INTEGER DEFAULT 3")
    with pytest.raises(PolicyError, match=says):
        ldiv_db.run(con, policy_of(require, "tds", **changes), folder=tmp_path)


def test_a_check_without_a_policy_and_as_one_statement_is_refused(con: Any, tmp_path: Path) -> None:
    place(con, tmp_path, *draw_case(0))
    policy = policy_of(k_map(2), "tds")
    with pytest.raises(PolicyError, match="k_map k=2, population=people needs a policy"):
        ldiv_db.check(con, "source", ["city", "job"], "disease", "k_map:k=2,population=people")
    with pytest.raises(PolicyError, match="cannot be judged here"):
        ldiv_db.check_sql("source", policy=policy)


def test_presence_is_compared_in_whole_numbers(engine: Any) -> None:
    """A third is above 0.333333333 and below 0.333333334."""
    histogram = engine.load(
        "h", {"class_no": "BIGINT", "value": "VARCHAR", "rows": "BIGINT", "class_rows": "BIGINT"}, [(1, "x", 1, 1)]
    )
    people = engine.load("p", {"class_no": "BIGINT", "rows": "BIGINT"}, [(1, 3)])
    classes = Classes(engine, histogram)
    classes.place_people({PEOPLE: people})
    found = {
        most: judge(
            engine, RequirementSpec("delta_presence", {"max": most, "population": PEOPLE}).resolve(None), classes
        ).holds
        for most in ("0.333333333", "0.333333334")
    }
    assert found == {"0.333333333": False, "0.333333334": True}


def test_rows_that_are_not_judged_are_present_too(con: Any, tmp_path: Path) -> None:
    """Everybody is in the table: half of them without a value, who are ignored, make no presence of a half."""
    rows = [(city, "p") for city in "abab"]
    place(con, tmp_path, rows, rows)
    con.execute("UPDATE source SET disease = NULL WHERE rowid >= 2")
    changes = {"nulls_sensitive": "value", "suppressed": "ignore"}
    policy = policy_of(presence("0.5"), "tds", **changes)
    with pytest.raises(PolicyError, match="counts all rows, and ignore leaves some out"):
        ldiv_db.run(con, policy, folder=tmp_path)
    with refuses("suppressed"):
        ldiv_db.check(con, "source", policy=policy, folder=tmp_path)
    assert not ldiv_db.check(con, "source", policy=policy, folder=tmp_path, suppressed="judge")[0].holds


def test_a_check_by_a_policy_takes_its_quasi_identifiers(con: Any, tmp_path: Path) -> None:
    place(con, tmp_path, [("a", "p"), ("b", "q")], [("a", "p"), ("a", "p"), ("b", "q"), ("b", "q")])
    policy = policy_of(k_map(2), "tds")
    assert ldiv_db.check(con, "source", ["JOB", "City"], policy=policy, folder=tmp_path)[0].holds
    con.execute("ALTER TABLE source ADD n INTEGER")
    for others in (["city"], ["city", "job", "n"]):
        with pytest.raises(PolicyError, match=r"are not the policy's quasi-identifiers.*\(city, job\)"):
            ldiv_db.check(con, "source", others, policy=policy, folder=tmp_path)


@pytest.mark.parametrize(
    ("people", "require", "nearest"),
    some(
        [
            (7, presence("0.2"), "; the nearest it meets is max: 0.428571429,"),
            (7, presence("0.2", min="0.1"), "as one class$"),
            (2, presence("0.2"), "as one class$"),
            (7, k_map(9), "; the nearest it meets is k: 7, population: people$"),
            (0, k_map(9), "as one class$"),
        ],
        2,
    ),
)
def test_what_the_whole_table_meets_is_told_where_it_is_known(
    con: Any, tmp_path: Path, people: int, require: dict[str, Any], nearest: str
) -> None:
    place(con, tmp_path, [("a", "p")] * 3, [("a", "p")] * 7)
    con.execute(f"DELETE FROM people WHERE number >= {people}")
    with pytest.raises(InfeasibleError, match=nearest):
        ldiv_db.run(con, policy_of(require, "tds"), folder=tmp_path)


@pytest.mark.parametrize("rows", some(["apart", "sets", "together"], 2))
@search(2, seed=seeds)
def test_people_of_the_source_are_counted_once(con, tmp_path, rows, seed) -> None:
    """Who has several rows is one of a class, as is a row with a set; the population is counted by the labels."""
    draw = random.Random(seed)
    people = [(draw.choice(sorted(CITY)), draw.choice(sorted(JOB))) for _ in range(draw.randint(8, 30))]
    place(con, tmp_path, [], people)
    con.execute("ALTER TABLE source ADD COLUMN who INTEGER; ALTER TABLE source ADD COLUMN n INTEGER")
    for who, own in enumerate(people[: draw.randint(4, len(people))]):
        for _ in range(1 if rows == "sets" else draw.choice([1, 2, 3])):
            city, job = draw.choice(people) if rows == "apart" else own
            number = con.table("source").shape[0]
            con.execute(
                "INSERT INTO source VALUES (?, ?, ?, ?, ?)", [city, job, draw.choice(["x", "y", "x, y"]), who, number]
            )
    asked = k_map(draw.randint(2, 8)) if rows == "apart" else draw_requirement(draw)
    whose: dict[str, Any] = {"individual": {"column": "who", "rows": rows}}
    if rows == "sets":
        whose = {"identifiers": ["who"], "sensitive": {"disease": {"set": ","}}}
    policy = policy_of(asked, draw.choice(["tds", "incognito"]), keep=["n"], **whose)
    try:
        ldiv_db.run(con, policy, folder=tmp_path)
    except InfeasibleError:
        reject()
    told = con.execute("SELECT DISTINCT r.city, r.job, who FROM released r JOIN source USING (n)").fetchall()
    assert holds(asked, [(city, job) for city, job, _ in told], people)
    if rows == "apart":
        with refuses("require.0"):
            ldiv_db.plan(con, policy | {"require": [presence(1)]}, folder=tmp_path)
