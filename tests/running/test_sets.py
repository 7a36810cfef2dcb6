"""Sensitive columns of sets: members are counted, a row once with each, against plain Python and by hand."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import oracle
import pytest
import yaml
from hypothesis import reject
from strategies import search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.measuring.profile import ProfileRequest, profile_table
from ldiv_db.measuring.starter_policy import make_starter_policy
from ldiv_db.recoding.statement import find_run, recoding_sql

MEMBERS = ("HIV", "flu", "cold", "gout", "ulcer")
#: Requirements whose worst class is looked for, from lenient to strict.
REQUIRED: dict[str, list[Any]] = {
    "k": [2, 4], "distinct": [2, 3], "frequency": ["1.2", 2, 3], "threshold": ["0.5", {"default": "0.9", "HIV": "0.4"}],
    "alpha_k": [{"alpha": "0.6", "k": 3}], "p_sensitive": [{"p": 2, "k": 3}], "entropy": ["1.5", 3],
    "recursive": [{"c": 2, "l": 2}], "t_closeness": ["0.3"], "beta_likeness": [1], "delta_disclosure": [2],
}  # fmt: skip
#: Those that the second reading has of sets.
READ_TWICE = ("k", "distinct", "frequency", "threshold", "alpha_k", "p_sensitive", "entropy")


def sets(draw: random.Random, rows: int, empty: bool = False) -> list[list[str]]:
    known = MEMBERS[: draw.randint(2, len(MEMBERS))]
    sizes = [0] * empty + [1, 1, 1, min(2, len(known)), min(3, len(known))]
    return [draw.sample(known, draw.choice(sizes)) for _ in range(rows)]


def written(draw: random.Random, held: list[str], separator: str) -> str | None:
    """The set as a text: with blanks, quotes and brackets, members twice and nothing between two separators."""
    texts = [*held, *([held[0]] if held and draw.random() < 0.2 else []), *([""] if draw.random() < 0.2 else [])]
    joined = separator.join(draw.choice(['"{}"', " {}", "{}  "]).format(text) for text in texts)
    joined = ("{}", "[{}]", "{{{}}}")[len(joined) % 3].format(joined)
    return None if not held and draw.random() < 0.3 else joined


def placed(con: Any, draw: random.Random, listed: bool, rows: int, empty: bool = False) -> str | None:
    """Make the table `source` of a, b and s, and return what stands between the members of a text."""
    separator = None if listed else draw.choice([",", ";", "|", "; ", " / "])
    held = sets(draw, rows, empty)
    cells = [one if separator is None else written(draw, one, separator) for one in held]
    con.execute(f"CREATE OR REPLACE TABLE source (a INTEGER, b VARCHAR, s VARCHAR{'[]' * listed})")
    for cell in cells:
        con.execute("INSERT INTO source VALUES (?, ?, ?)", [draw.randint(1, 9), draw.choice("xyz"), cell])
    return separator


def policy_of(separator: str | None, require: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "source": "source", "target": {"table": "out", "if_exists": "replace"},
        "quasi_identifiers": {"a": {"numeric": True}, "b": {}},
        "sensitive": {"s": {"set": True if separator is None else separator}}, "require": require,
        "algorithm": "topdown", "over_time": "independent", "seed": 1, **more,
    }  # fmt: skip


def holds(result: Any) -> bool:
    return all(audit.holds for audit in result.audits)


def spread(con: Any, table: str, separator: str | None) -> list[tuple[Any, ...]]:
    rows = con.execute(f"SELECT a, b, s FROM {table}").fetchall()
    return oracle.spread(rows, separator and (separator.strip() or separator))


def shares_of(con: Any, table: str, separator: str | None) -> dict[tuple[Any, ...], Fraction]:
    """The largest share of a member in each class."""
    people: dict[tuple[Any, ...], set[int]] = {}
    having: dict[tuple[Any, ...], Counter[Any]] = {}
    for *labels, member, row in spread(con, table, separator):
        people.setdefault(tuple(labels), set()).add(row)
        having.setdefault(tuple(labels), Counter())[member] += 1
    return {labels: Fraction(max(found.values()), len(people[labels])) for labels, found in having.items()}


@pytest.mark.parametrize("name", some(REQUIRED, 4))
@search(1, seed=seeds)
def test_a_check_judges_members(con, name, seed) -> None:
    draw = random.Random(seed)
    separator = placed(con, draw, draw.random() < 0.5, draw.randint(6, 40), empty=True)
    argument = draw.choice(REQUIRED[name])
    sensitive = {"s": {"set": separator or True}}
    known = {member for *_, member, _ in spread(con, "source", separator)}
    if isinstance(argument, dict) and "HIV" in argument and "HIV" not in known:
        reject()
    (audit,) = ldiv_db.check(con, "source", qi=["a", "b"], sensitive=sensitive, require=[{name: argument}], twice=True)
    (verdict,) = audit.verdicts
    expected = oracle.people_violations(spread(con, "source", separator), name, argument)
    assert verdict.violating_classes == len(expected), (separator, argument)
    assert verdict.violating_rows == sum(expected.values()) and audit.rows == con.table("source").shape[0]
    by_value = isinstance(argument, dict) and "HIV" in argument
    assert verdict.agrees and (verdict.second is not None) == (name in READ_TWICE and not by_value)


@pytest.mark.parametrize("algorithm", some(["topdown", "auto", "mondrian", "peel", "fast", "stratified"]))
@search(1, seed=seeds)
def test_a_release_holds_by_its_members(con, algorithm, seed) -> None:
    """What all rows as one class meet is met, what they do not is refused; rows keep what they have."""
    draw = random.Random(seed)
    separator = placed(con, draw, draw.random() < 0.5, draw.randint(8, 24))
    name = draw.choice([name for name in REQUIRED if name != "beta_likeness"])
    argument = draw.choice([one for one in REQUIRED[name] if not isinstance(one, dict) or "HIV" not in one])
    whole = [("*", member, row) for *_, member, row in spread(con, "source", separator)]
    feasible = not oracle.people_violations(whole, name, argument)
    policy = policy_of(separator, [{name: argument}], algorithm=algorithm)
    if not feasible:
        with pytest.raises(InfeasibleError):
            ldiv_db.plan(con, policy)
        return
    result = ldiv_db.run(con, policy)
    assert oracle.people_violations(spread(con, "out", separator), name, argument) == {}
    assert Counter(map(str, con.execute("SELECT s FROM source").fetchall())) == Counter(
        map(str, con.execute("SELECT s FROM out").fetchall())
    )
    assert result.audits[0].rows == con.table("source").shape[0]


def of_people(con: Any, table: str, whose: str, mode: str, separator: str | None) -> list[tuple[Any, ...]]:
    """The rows (labels, member, person); where rows are aligned the labels are those of all rows of the person."""
    rows = con.execute(f"SELECT a, b, {whose}, n, s FROM {table} ORDER BY n").fetchall()
    own: dict[Any, list[Any]] = {}
    for a, b, person, *_ in rows:
        own.setdefault(person, []).append((a, b))
    spread = oracle.spread(rows, separator and (separator.strip() or separator))
    return [
        (tuple(own[person]) if mode == "aligned" else (a, b), member, -1 - row if person is None else person)
        for a, b, person, _, member, row in spread
    ]


@search(1, seed=seeds)
def test_a_bag_of_people_is_the_union_of_their_sets(con, seed) -> None:
    """Releases hold by people, apart by rows as well; a check says what plain Python says, by both readings."""
    draw = random.Random(seed)
    separator = placed(con, draw, draw.random() < 0.5, draw.randint(8, 24), empty=True)
    con.execute("ALTER TABLE source ADD COLUMN who INTEGER; ALTER TABLE source ADD COLUMN n INTEGER")
    for row, _ in enumerate(con.execute("SELECT rowid FROM source").fetchall()):
        who = draw.choice([None, *range(12)])
        con.execute("UPDATE source SET who = ?, n = ? WHERE rowid = ?", [who, row, row])
    mode, name = draw.choice(["apart", "together", "aligned"]), draw.choice(list(REQUIRED))
    argument = draw.choice([one for one in REQUIRED[name] if not isinstance(one, dict) or "HIV" not in one])
    whose = {"column": "who", "rows": mode} | ({"order": "n"} if mode == "aligned" else {})
    beside = {"output": {"position": "n", "person": "nr"}} if mode == "aligned" else {"keep": ["n"]}
    policy = policy_of(separator, [{name: argument}], individual=whose, nulls_sensitive="value", **beside)
    try:
        ldiv_db.run(con, policy)
    except InfeasibleError:
        reject()
    if mode != "aligned":
        con.execute("CREATE OR REPLACE TABLE told AS SELECT out.*, who AS nr FROM out JOIN source USING (n)")
    told = "out" if mode == "aligned" else "told"
    assert oracle.people_violations(of_people(con, told, "nr", mode, separator), name, argument) == {}
    if mode == "apart":
        assert oracle.people_violations(of_people(con, told, "n", mode, separator), name, argument) == {}
    asked = draw.choice(list(REQUIRED))
    argument = draw.choice([one for one in REQUIRED[asked] if not isinstance(one, dict) or "HIV" not in one])
    columns = {"individual": "nr"} | ({"position": "n"} if mode == "aligned" else {})
    sensitive = {"s": {"set": separator or True}}
    (audit,) = ldiv_db.check(
        con, told, qi=["a", "b"], sensitive=sensitive, require=[{asked: argument}], twice=True, **columns
    )
    expected = oracle.people_violations(of_people(con, told, "nr", mode, separator), asked, argument)
    assert (audit.verdicts[0].violating_classes, audit.verdicts[0].agrees) == (len(expected), True)
    assert audit.verdicts[0].violating_rows == sum(expected.values())


@pytest.mark.parametrize("algorithm", some(["cuts", "annealing", "tds", "incognito", "topdown"]))
@search(1, seed=seeds)
def test_counts_of_equal_sets_are_planned_as_their_rows(con, algorithm, seed) -> None:
    """Also by one rule for all rows, of which no SELECT is kept: the same release, good by its members."""
    draw = random.Random(seed)
    separator = placed(con, draw, listed=draw.random() < 0.5, rows=draw.randint(6, 20))
    con.execute("ALTER TABLE source ADD COLUMN n INTEGER; UPDATE source SET n = 1 + a % 3")
    con.execute("CREATE OR REPLACE TABLE rows AS SELECT a, b, s FROM source, range(n)")
    name = draw.choice([name for name in REQUIRED if name != "beta_likeness"])
    argument = draw.choice([one for one in REQUIRED[name] if not isinstance(one, dict) or "HIV" not in one])
    keys = {"a": {"taxonomy": {"ranges": [3, 9]}}, "b": {"taxonomy": {"flat": True}}}
    policy = policy_of(separator, [{name: argument}], algorithm=algorithm, quasi_identifiers=keys)
    try:
        told = ldiv_db.run(con, policy | {"weight": "n"})
    except InfeasibleError:
        reject()
    assert oracle.people_violations(spread(con, "out", separator), name, argument) == {}
    assert ldiv_db.check(con, "out", policy=policy).holds
    if algorithm != "topdown":
        with pytest.raises(PolicyError, match="values of one are read as one"):
            recoding_sql(Engine(con), find_run(Engine(con), told.run_id), "duckdb")
    published = Counter(con.execute("SELECT a, b, s::VARCHAR FROM out").fetchall())
    ldiv_db.run(con, policy | {"source": "rows"})
    assert published == Counter(con.execute("SELECT a, b, s::VARCHAR FROM out").fetchall())


@pytest.mark.usefixtures("no_remedies")
def test_everybody_with_one_member_is_refused(con) -> None:
    """Three different lists, and HIV in each; also where a list is written as a text."""
    held = [["HIV"], ["HIV", "flu"], ["flu", "HIV"]]
    for kind, separator, form, require in (
        ("VARCHAR[]", None, list, {"frequency": 3}),
        ("VARCHAR", ",", str, {"distinct": 2}),
        ("VARCHAR", ",", "{{{}}}".format, {"alpha_k": {"alpha": 0.9, "k": 2}}),
    ):
        con.execute(f"CREATE OR REPLACE TABLE source (a INTEGER, b VARCHAR, s {kind})")
        rows = [[i, form(held[i % 3])] for i in range(12)]
        con.executemany("INSERT INTO source VALUES (?, 'x', ?)", rows)
        with pytest.raises(InfeasibleError, match="fails even in the whole table as one class"):
            ldiv_db.plan(con, policy_of(separator, [require]))


def test_lists_of_numbers_have_an_order(con) -> None:
    """Members 1, 2, 3 and 10, 20, 30: a class of neighbours is as far from the table as their distances say."""
    con.execute("CREATE TABLE source AS SELECT i AS a, 'x' AS b, [i, 10 * i]::INTEGER[2] AS s FROM range(1, 4) AS t(i)")
    (audit,) = ldiv_db.check(
        con,
        "source",
        qi=["a"],
        sensitive={"s": {"set": True}},
        require=[{"t_closeness": {"t": 0.1, "distance": "ordered"}}],
    )
    whole = [1, 2, 3, 10, 20, 30]
    distance = oracle.ground("ordered", whole)
    table = {value: Fraction(1, 6) for value in whole}
    worst = max(oracle.transport({i: Fraction(1, 2), 10 * i: Fraction(1, 2)}, table, distance) for i in (1, 2, 3))
    assert audit.verdicts[0].worst == pytest.approx(float(worst))


@pytest.mark.usefixtures("no_remedies")
def test_members_have_names_in_a_policy(con) -> None:
    """Harmless members need no protection, and a threshold is a member's."""
    con.execute("CREATE TABLE source (a INTEGER, b VARCHAR, s VARCHAR)")
    texts = ["none", "none, flu", "none,HIV", "none"]
    con.executemany("INSERT INTO source VALUES (?, 'x', ?)", [[i, texts[i % 4]] for i in range(24)])
    policy = policy_of(",", [{"frequency": 3}])
    with pytest.raises(InfeasibleError):
        ldiv_db.plan(con, policy)
    policy["sensitive"]["s"]["harmless"] = ["none"]
    assert holds(ldiv_db.run(con, policy))
    ldiv_db.plan(con, policy_of(",", [{"threshold": {"default": 1, "HIV": 0.5}}]))
    with pytest.raises(PolicyError, match="in no row: 'gout'"):
        ldiv_db.plan(con, policy_of(",", [{"threshold": {"default": 1, "gout": 0.5}}]))


@pytest.mark.usefixtures("no_remedies")
def test_capitals_may_be_one_member(con) -> None:
    con.execute("CREATE TABLE source (a INTEGER, b VARCHAR, s VARCHAR)")
    texts = ["HIV;flu", "hiv ; cold", " Hiv"]
    con.executemany("INSERT INTO source VALUES (?, 'x', ?)", [[i, texts[i % 3]] for i in range(12)])
    assert holds(ldiv_db.run(con, policy_of(";", [{"frequency": 3}])))
    policy = policy_of(";", [{"frequency": 3}])
    policy["sensitive"]["s"]["same"] = "casefold"
    with pytest.raises(InfeasibleError):
        ldiv_db.plan(con, policy)


@pytest.mark.usefixtures("no_remedies")
@pytest.mark.parametrize("listed", some([True, False], 1))
def test_nothing_is_as_null(con, listed) -> None:
    """An empty list, a text without members and a list of NULL are treated as NULL is."""
    kind, nothing, members = ("VARCHAR[]", [[], [None], None], [["a"], ["b"]])
    if not listed:
        kind, nothing, members = ("VARCHAR", ["", " ; ", None], ["a;c", "b"])
    con.execute(f"CREATE TABLE source (a INTEGER, b VARCHAR, s {kind})")
    con.executemany("INSERT INTO source VALUES (?, 'x', ?)", [[i, [*nothing, *members][i % 5]] for i in range(20)])
    separator = None if listed else ";"
    with pytest.raises(InfeasibleError, match="s in 12 rows"):
        ldiv_db.plan(con, policy_of(separator, [{"k": 2}]))
    left = ldiv_db.run(con, policy_of(separator, [{"k": 2}], nulls_sensitive="suppress"))
    assert left.loss.rows_published == 8
    with pytest.raises(InfeasibleError):  # 12 of 20 have nothing, which is one value
        ldiv_db.plan(con, policy_of(separator, [{"frequency": 2}], nulls_sensitive="value"))
    ldiv_db.plan(con, policy_of(separator, [{"frequency": 1.5}], nulls_sensitive="value"))


@search(1, seed=seeds)
def test_an_attack_reaches_what_counting_finds(con, seed) -> None:
    draw = random.Random(seed)
    separator = placed(con, draw, draw.random() < 0.5, 20)
    policy = policy_of(separator, [{"k": 2}])
    ldiv_db.run(con, policy)
    shares = shares_of(con, "out", separator)
    found = ldiv_db.attack(con, "out", policy=policy, known="source")
    gains = {(attack.name, gain.measure): gain for attack in found.attacks for gain in attack.gains}
    reached = gains["posterior", "posterior"].gain
    assert reached == pytest.approx(float(max(shares.values()))) and gains["posterior", "posterior"].bound is None
    certain = {labels for labels, share in shares.items() if share == 1}
    rows = con.execute("SELECT a, b FROM out").fetchall()
    expected = sum(row in certain for row in rows) / len(rows)
    (homogeneous,) = [gain.gain for (name, _), gain in gains.items() if name == "homogeneity"]
    assert homogeneous == pytest.approx(expected)
    assert gains["linking", "posterior"].gain <= reached + 1e-12


def test_a_promise_is_of_members(con) -> None:
    """A table with a class in which all have HIV breaks what frequency promises, and entropy promises nothing."""
    con.execute("CREATE TABLE out (a VARCHAR, b VARCHAR, s VARCHAR)")
    con.executemany(
        "INSERT INTO out VALUES (?, 'x', ?)", [["1", "HIV,flu"], ["1", "HIV,cold"], ["2", "flu"], ["2", "cold"]]
    )
    asked: dict[str, Any] = {"qi": ["a", "b"], "sensitive": {"s": {"set": ","}}}
    assert ldiv_db.attack(con, "out", **asked, require=[{"frequency": 2}]).holds is False
    found = ldiv_db.attack(con, "out", **asked, require=[{"entropy": 2}])
    assert found.holds is None and "members" in found.warnings[0]
    (audit,) = ldiv_db.check(con, "out", **asked, require=[{"entropy": 2}])
    assert audit.holds and "may have one in common" in audit.warnings[0]


@pytest.mark.parametrize(
    ("kind", "setting", "words"),
    [
        ("VARCHAR", True, "name what stands between"),
        ("VARCHAR[]", ",", "set: true"),
        ("INTEGER", True, "takes a list or a text"),
        ("DOUBLE[]", True, "takes members that are texts"),
        ("VARCHAR[][]", True, "takes members that are texts"),
        ("VARCHAR", " and ", "the sign between"),
        ("VARCHAR", "", "the sign between"),
    ],
)
def test_a_set_is_written_as_its_column_has_it(con, kind, setting, words) -> None:
    con.execute(f"CREATE TABLE source (a INTEGER, b VARCHAR, s {kind})")
    policy = policy_of(None, [{"k": 2}]) | {"sensitive": {"s": {"set": setting}}}
    with pytest.raises(PolicyError, match=words):
        ldiv_db.run(con, policy)


def test_a_csv_file_has_no_lists(con, tmp_path) -> None:
    placed(con, random.Random(1), True, 20)
    policy = policy_of(None, [{"k": 2}], target={"file": str(tmp_path / "out.csv")})
    with pytest.raises(PolicyError, match="a CSV file has no lists"):
        ldiv_db.run(con, policy)


@pytest.mark.slow
def test_a_release_in_parts_and_by_workers(con) -> None:
    draw = random.Random(9)
    placed(con, draw, True, 200)
    policy = policy_of(None, [{"frequency": "1.3"}, {"k": 2}], algorithm="mondrian", part_rows=60)
    for workers in (1, 2):
        result = ldiv_db.run(con, policy, workers=workers)
        assert result.search["parts"] > 1
        assert oracle.people_violations(spread(con, "out", None), "frequency", "1.3") == {}


# -- columns that look like sets -----------------------------------------------------------------------

LOOKS = {
    "commas": (["HIV", "HIV,flu", "flu, HIV"], "split at `,`"),
    "bars": (["a|b", "b|a", "a"], "split at `|`"),
    "semicolons among commas": (["a, x; b, y", "b, y; a, x", "a, x"], "split at `;`"),
    "one value": (["a", "b", "a;b"], "split at `;`"),
    "lists as text": (["[HIV]", "[HIV,flu]", "[flu,HIV]"], "split at `,`"),
    "lists as Python and JSON write them": (["['HIV']", '["HIV", "flu"]', "['flu', 'HIV']"], "split at `,`"),
    "arrays as PostgreSQL writes them": (["{HIV}", "{HIV,flu}", "{flu,HIV}"], "split at `,`"),
    "sentences": (["came on Monday, was ill", "fell, broke an arm", "flu"], ""),
    "no member again": (["a,b", "c,d", "e"], ""),
    "plain": (["a", "b", "c"], ""),
}


@pytest.mark.parametrize(("texts", "words"), some(LOOKS.values(), 1), ids=LOOKS)
def test_texts_that_look_like_sets_are_told(con, texts, words) -> None:
    con.execute("CREATE TABLE source (a INTEGER, b VARCHAR, s VARCHAR)")
    con.executemany("INSERT INTO source VALUES (?, 'x', ?)", [[i, texts[i % 3]] for i in range(30)])
    policy = policy_of(None, [{"frequency": 2}]) | {"sensitive": ["s"]}
    planned, result = ldiv_db.plan(con, policy).warnings, ldiv_db.run(con, policy).audits[0].warnings
    attacked = ldiv_db.attack(con, "out", policy=policy).warnings
    profiled = ldiv_db.profile(con, "source", sensitive=["s"])
    for told in (planned, result, attacked, [profiled.as_dict()["sensitive"][0]["sets"] or ""]):
        assert [words in line for line in told if "counts members" in line] == [True] * bool(words), told
    if words:
        parts = words[10]
        member = Counter(part.strip(" []{}'\"") for i in range(30) for part in set(texts[i % 3].split(parts)))
        assert (
            f"the most frequent member is in {max(member.values())} rows, the most frequent value in 10" in planned[0]
        )


def test_a_policy_to_start_from_has_sets_as_a_comment(con) -> None:
    con.execute(
        "CREATE TABLE source AS SELECT i % 9 AS a, [['p', 'q'], ['q', 'r'], ['r', 'p'], ['s']][i % 4 + 1] AS s"
        " FROM range(30) AS t(i)"
    )
    engine, source = Engine(con), Relation.parse("source")
    profile = profile_table(engine, source, ProfileRequest(None, ["a"], ["s"]))
    started, _ = make_starter_policy(engine, profile, source, "source")
    assert started is not None and "# set: true" in started.text
    uncommented = yaml.safe_load(started.text.replace("# set: true", "set: true"))
    assert uncommented["sensitive"] == {"s": {"set": True}}
    with pytest.raises(InfeasibleError):  # of p, q and r each is in half of the rows, and `frequency: 3` is asked for
        ldiv_db.plan(con, uncommented)


@pytest.mark.usefixtures("no_remedies")
@pytest.mark.parametrize("separator", some(["–", "\n", "\t"], 1))
def test_what_stands_between_members_may_be_what_trim_folds(con, separator) -> None:
    """`same: [trim]` makes one dash of all and a blank of a line's end, within members alone."""
    members = (["Covid-19", "flu"], ["COVID‑19 ", "gout"], ["covid-19"], [" Flu", "FLU"])
    rows = [(1, "x", separator.join(held)) for held in members]
    fill(con, "source", {"a": "INTEGER", "b": "VARCHAR", "s": "VARCHAR"}, rows)
    sensitive = {"s": {"set": separator, "same": ["trim", "casefold"]}}
    require = [{"frequency": 1.3}, {"threshold": {"default": 1, "covid-19": "0.5"}}]
    (audit,) = ldiv_db.check(con, "source", qi=["a", "b"], sensitive=sensitive, require=require, twice=True)
    members_found, own = audit.verdicts
    assert (members_found.worst, members_found.violating_rows, members_found.second) == (pytest.approx(4 / 3), 0, 0)
    assert own.violating_rows == 4
    assert holds(ldiv_db.run(con, policy_of(separator, [{"frequency": 1.3}]) | {"sensitive": sensitive}))
    with pytest.raises(InfeasibleError):
        ldiv_db.plan(con, policy_of(separator, [{"frequency": 1.4}]) | {"sensitive": sensitive})


@pytest.mark.parametrize(("separator", "holds"), [("'", False), ("';", False), ("\\", True), ("';--", True)])
def test_a_separator_parts_members_whatever_its_signs_mean_in_sql(con, separator, holds):
    """All have x, where the separator stands in their text."""
    con.execute("CREATE TABLE odd AS SELECT i % 3 AS a, 'x'';y' || i % 4 AS s FROM range(40) t(i)")
    assert ldiv_db.check(con, "odd", ["a"], {"s": {"set": separator}}, [{"distinct": 2}]).holds is holds
