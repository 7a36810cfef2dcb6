"""A release says nothing beyond its classes: orders, numbers and files follow from what is public alone.

Given the classes, everything that is published is the same to the byte, whoever of a class has which of its values,
whatever numbers the algorithm gave to classes, the seed, the order of the source's rows and the number of threads.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from leaving import deal_out, file_content, same_but, table_content
from refusals import refuses
from strategies import search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import resolve
from ldiv_db.policy.targets import Target
from ldiv_db.publishing.destinations import destination_of
from ldiv_db.publishing.draft import NewClasses, RunDraft
from ldiv_db.publishing.history import Watch
from ldiv_db.publishing.in_database import InDatabase
from ldiv_db.publishing.series import Key, Series
from ldiv_db.publishing.series_draft import MatchedRows, ReleaseStart
from ldiv_db.publishing.series_target import SeriesTarget
from ldiv_db.recoding import recode
from ldiv_db.recoding.encode import read_source
from ldiv_db.recoding.recode import Assignment, plan_recoding
from ldiv_db.running.release_classes import ClassesDraft

pytestmark = pytest.mark.usefixtures("no_remedies")

#: Values of a sensitive attribute: of text with NULL and what a collation holds equal, and of numbers.
WORDS, NUMBERS = ("flu", "Flu", "", "HIV", "ü", None), (-2, 0, 10, 9, None)
COLUMNS = {
    "person": "VARCHAR", "age": "INTEGER", "town": "VARCHAR",
    "s1": "VARCHAR", "s2": "INTEGER", "k1": "VARCHAR", "k2": "DOUBLE",
}  # fmt: skip
KEYS = {
    "person": {"taxonomy": {"file": "people.csv"}},
    "age": {"numeric": True},
    "town": {"taxonomy": {"file": "towns.csv"}, "recode": "set"},
}
SHAPES = {
    "plain": {},
    "no class ids": {"output": {"class_id": False}},
    "bounds": {"output": {"class_id": True, "bounds": True}},
    "two attributes": {"sensitive": ["s1", "s2"], "identifiers": ["k1", "k2"]},
    "kept": {"sensitive": ["s1"], "keep": ["k1", "k2"], "identifiers": ["s2"]},
    "kept, no class ids": {
        "sensitive": ["s1", "s2"],
        "keep": ["k1", "k2"],
        "identifiers": [],
        "output": {"class_id": False},
    },
    "numbers": {"sensitive": ["s2"], "identifiers": ["s1", "k1", "k2"]},
}
PLACES = ("published.patients", "release.duckdb", "release.parquet", "release.csv")


@dataclass
class Case:
    """A table whose every row is another person, in classes of which many are published with equal labels.

    Classes have rows of one group of people; of each the ages are 30 and 40, and the towns a and c, or a, b and d.
    """

    draw: random.Random
    classes: list[int] = field(default_factory=list)
    people: list[tuple[Any, ...]] = field(default_factory=list)
    values: list[tuple[Any, ...]] = field(default_factory=list)
    blanked: set[tuple[int, Any]] = field(default_factory=set)

    def __post_init__(self) -> None:
        draw = self.draw
        for number in range(40):
            towns = draw.choice([("a", "c"), ("a", "b", "d")])
            size = draw.randint(3, 5)
            for place in range(size):
                age, town = (30, 40)[place % 2], towns[place % len(towns)]
                self.people.append((f"p{len(self.people):03}-{number % 3}", age, town))
                kept = draw.choice(("w", "W", None)), draw.choice((0.5, 1.0, None))
                self.values.append((draw.choice(WORDS), draw.choice(NUMBERS), *kept))
                self.classes.append(number)
        # Of a few classes a value is not shown.
        self.blanked = {
            (number, value[0]) for number, value in zip(self.classes, self.values, strict=True) if number % 4
        }

    def write_trees(self, folder: Path) -> None:
        (folder / "people.csv").write_text("".join(f"{p};group {p[-1]};*\n" for p, *_ in self.people))
        (folder / "towns.csv").write_text("".join(f"{town};*\n" for town in "abcdef"))

    def dealt_out(self) -> Case:
        """The same classes, with their rows' values dealt out anew, under other numbers, and rows in another order."""
        known = sorted(set(self.classes))
        numbers = dict(zip(known, self.draw.sample(range(1000), len(known)), strict=True))
        values = deal_out(self.draw, self.classes, self.values)
        order = self.draw.sample(range(len(self.people)), len(self.people))
        return Case._of(
            self.draw,
            [numbers[self.classes[place]] for place in order],
            [self.people[place] for place in order],
            [values[place] for place in order],
            {(numbers[number], value) for number, value in self.blanked},
        )

    @classmethod
    def _of(cls, draw: random.Random, *parts: Any) -> Case:
        found = cls.__new__(cls)
        found.draw = draw
        found.classes, found.people, found.values, found.blanked = parts
        return found


@contextmanager
def drafted(case: Case, folder: Path, shape: dict[str, Any], target: Any, con: Any, blank: bool = False) -> Any:
    """The draft of a release of the case's classes, which no algorithm made."""
    case.write_trees(folder)
    fill(con, "source", COLUMNS, [(*p, *v) for p, v in zip(case.people, case.values, strict=True)])
    con.execute("ALTER TABLE source ALTER k1 TYPE VARCHAR COLLATE NOCASE")
    policy = {
        "source": "source", "target": target, "quasi_identifiers": KEYS, "sensitive": ["s1"], "require": [{"k": 1}],
        "identifiers": ["s2", "k1", "k2"], "output": {"class_id": True}, "nulls_sensitive": "value", **shape,
    }  # fmt: skip
    engine = Engine(con)
    resolved = resolve(engine, parse_policy(policy), folder)
    encoded = read_source(engine, resolved.source).encode()
    recoding = plan_recoding(
        engine,
        encoded,
        Assignment(given(engine, encoded, case), blanked=blanks(engine, encoded, case) if blank else None),
        resolved.released.forms,
    )
    classes = NewClasses(engine, resolved, encoded, recoding, {name: [] for name in resolved.limits})
    yield RunDraft(classes, Watch(engine, "", Path()), None, 0.0)
    engine.close_scratch()


def given(engine: Engine, encoded: Any, case: Case) -> Relation:
    """The relation `assigned` of the case's classes."""
    rows = [(number, person) for number, (person, *_) in zip(case.classes, case.people, strict=True)]
    loaded = engine.load("given", {"class_id": "BIGINT", "person": "VARCHAR"}, rows)
    axis = encoded.axes[0]
    assigned = Relation(("temp", "main", "given_classes"))
    engine.execute(
        f"CREATE OR REPLACE TEMP TABLE given_classes AS SELECT r.row_id, g.class_id FROM {loaded.sql()} AS g"
        f" JOIN {axis.dictionary.sql()} AS d ON d.value = g.person"
        f" JOIN {encoded.rows.sql()} AS r ON r.{axis.code.sql()} = d.code"
    )
    return assigned


def blanks(engine: Engine, encoded: Any, case: Case) -> Relation:
    """The values of classes that are not shown."""
    loaded = engine.load("blanks", {"class_id": "BIGINT", "value": "VARCHAR"}, sorted(case.blanked, key=repr))
    engine.execute(
        "CREATE OR REPLACE TEMP TABLE given_blanks AS SELECT b.class_id, d.code"
        f" FROM {loaded.sql()} AS b JOIN {encoded.sensitive[0].dictionary.sql()} AS d"
        " ON CAST(d.value AS VARCHAR) IS NOT DISTINCT FROM b.value"
    )
    return Relation(("temp", "main", "given_blanks"))


def connection(threads: int) -> Any:
    """A database that leaves no gaps in its files: where it compresses text, these have what memory had."""
    con = duckdb.connect(config={"threads": threads})
    con.execute("SET force_compression = 'uncompressed'")
    return con


def published(case: Case, folder: Path, shape: dict[str, Any], place: str, threads: int, blank: bool) -> list[Any]:
    """What is published of the case at the place, once or, of a database file, several times."""
    with connection(threads) as con, drafted(case, folder, shape, aim(place), con, blank) as draft:
        if place == "published.patients":
            write(draft, folder)
            return table_content(con, Relation(("published", "patients")))
        repeats = 6 if place.endswith(".duckdb") else 1  # a word may be alike by chance in a few
        return file_content(partial(write, draft, folder), folder, place, repeats)


def write(draft: RunDraft, folder: Path, part: Path | None = None) -> None:
    """Write the draft where its policy says, to a file as `part`."""
    destination = destination_of(draft.engine, {"": draft.resolved.target}, folder, draft.resolved.released.all)
    if part is None:
        draft.write(destination.tables)
        return
    with destination.writing(part) as where:
        draft.write(where)


def aim(place: str) -> Any:
    return {"file": place, "table": "patients"} if place.endswith(".duckdb") else place


#: Every shape at one place, and the first at all; whether values are not shown, where that can be.
AT = [
    pytest.param(shape, place, blank)
    for i, shape in enumerate(SHAPES)
    for j, place in enumerate(PLACES)
    for blank in (True, False)
    if (i == 0 or i % len(PLACES) == j) and not (blank and SHAPES[shape].get("sensitive", ["s1"])[0] != "s1")
]


@pytest.mark.parametrize(("shape", "place", "blank"), some(AT))
def test_values_dealt_out_anew_within_classes_are_published_alike(tmp_path, shape, place, blank):
    """Of a database file with one thread: its figures of different values are the threads'."""
    case = Case(random.Random(f"{shape} {place}"))
    first = published(case, tmp_path, SHAPES[shape], place, 1, blank)
    threads = 1 if place.endswith(".duckdb") else 2
    other = published(case.dealt_out(), tmp_path, {**SHAPES[shape], "seed": 1}, place, threads, blank)
    if place.endswith(".duckdb"):
        assert same_but(first[0], other[0], first)
    else:
        assert other == first


def test_the_cases_have_what_could_tell(tmp_path):
    """Many classes with equal labels and other values, values that a collation holds equal, and some blanked."""
    case = Case(random.Random(1))
    with (
        connection(1) as con,
        drafted(case, tmp_path, {"keep": ["k1"], "identifiers": ["s2", "k2"]}, "t", con) as draft,
    ):
        write(draft, tmp_path)
        rows = con.execute("SELECT class_id, person, age, town, s1, k1 FROM t").fetchall()
        labels = {row[0]: row[1:4] for row in rows}
        assert max(Counter(labels.values()).values()) > 3 and len(labels) == 40
        assert {town for *_, town in labels.values()} == {"{a, c}", "{a, b, d}"}
        assert {"w", "W", None} == {row[5] for row in rows}
        ((apart,),) = con.execute("SELECT count(DISTINCT k1) FROM t").fetchall()
        assert apart == 2, "what is published is compared by bytes"


@search(1, seed=seeds)
def test_classes_are_numbered_by_labels_then_by_the_values_that_they_show(tmp_path, seed):
    """The numbers are those that anybody can give to the published classes: no other order and no coin is in them."""
    case = Case(random.Random(seed))
    with connection(2) as con, drafted(case, tmp_path, {}, "t", con) as draft:
        write(draft, tmp_path)
        rows = con.execute("SELECT class_id, person, age, town, s1 FROM t").fetchall()
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    classes: dict[int, list[Any]] = {}
    for number, *labels, value in rows:
        classes.setdefault(number, [labels, []])[1].append(value)
    assert list(classes) == list(range(1, 41))
    assert [labels for labels, _ in classes.values()] == sorted(labels for labels, _ in classes.values())
    order = [None, *sorted({v for v, *_ in case.values if v is not None}, key=str.encode)]
    for values in (values for _, values in classes.values()):
        assert [order.index(value) for value in values] == sorted(order.index(value) for value in values)
    # Which of equally labelled classes comes first is decided by what they show, and the same shown stand together.
    shown = [(labels, tuple(values)) for labels, values in classes.values()]
    assert len({json.dumps(one) for one in shown}) == 1 + sum(a != b for a, b in pairwise(shown))


@pytest.mark.slow
@search(2, seed=seeds)
def test_numbers_by_compositions_are_those_by_what_classes_show(con, monkeypatch, seed):
    """Of many rows it is told by a number which classes show the same; where that would be too large, as of few."""
    draw, found = random.Random(seed), []
    rows = [(draw.choice([20, 30, 40]), draw.choice([*WORDS, "x"])) for _ in range(120)]
    fill(con, "people", {"age": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {
        "source": "people", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"], "seed": 1,
        "nulls_sensitive": "value", "require": [{"distinct": 2}], "output": {"class_id": True},
        "algorithm": draw.choice(["bsgi", "topdown"]),
    }  # fmt: skip
    for number, (least, bits) in enumerate([(10**9, 126), (0, 126), (0, 7)]):
        monkeypatch.setattr(recode, "MANY_ROWS", least)
        monkeypatch.setattr(recode, "_BITS", bits)
        sent: list[Any] = []
        ldiv_db.run(
            con,
            policy | {"target": {"table": f"t{number}", "if_exists": "replace"}},
            listener=ldiv_db.Listener(on_statement=sent.append),
        )
        composed = "recoding/publish/compose_classes" in {statement.template for statement in sent}
        found.append((composed, con.execute(f"FROM t{number}").fetchall()))
    assert [composed for composed, _ in found] == [False, True, False]
    assert found[0][1] == found[1][1] == found[2][1]


@pytest.mark.slow
def test_appended_classes_follow_the_last_whatever_the_algorithm_called_them(tmp_path):
    target = {"table": "patients", "if_exists": "append"}
    found = []
    case = Case(random.Random(4))
    for turn in range(2):
        with connection(1 + turn % 2) as con:
            for part in (case, case.dealt_out()):
                with drafted(part, tmp_path, {}, target, con) as draft:
                    write(draft, tmp_path)
            found.append(table_content(con, Relation(("patients",))))
            assert con.execute("SELECT max(class_id) FROM patients").fetchone() == (80,)
        case = case.dealt_out()
    assert found[0] == found[1]


def test_a_release_of_a_series_is_published_alike(tmp_path):
    """The next release, with the classes of the last as they are and new ones after them."""
    case, later = Case(random.Random(5)), Case(random.Random(6))
    found = []
    for turn in range(2):
        with connection(1 + turn % 2) as con:
            for number, part in enumerate((case, later)):
                with drafted(part, tmp_path, {"seed": turn}, "unused", con) as draft:
                    series = Series("p", "secret", Key("person", "text"), releases=number, last_group=40 * number)
                    release = next_release(draft, series)
                    tables = [release.start.target.tables(Relation(("main", "p")), number) for number in (1, 2)]
                    release.write_tables(tables[number], tables[0] if number else None)
            found.append(table_content(con, *(table.people for table in tables)))
        case, later = case.dealt_out(), later.dealt_out()
    assert found[0] == found[1]


def next_release(draft: RunDraft, series: Series) -> ClassesDraft:
    """The draft as one of a series."""
    prefix = Relation(("main", "p"))
    target = SeriesTarget("bsgi", prefix, "p", InDatabase(draft.engine, {"": prefix}), {"": Target(prefix="p")})
    start = ReleaseStart(draft.resolved, series, target, draft.watch)
    nothing = Relation(("nothing",))
    matched = MatchedRows(nothing, nothing, 0, 0)
    classes = replace(draft.classes, last_class=series.last_group)
    return ClassesDraft(start, matched, nothing, nothing, 0, 0, classes, None)


@pytest.mark.slow
def test_files_are_the_same_whatever_the_threads(tmp_path):
    """Also of several groups of rows, which are of one size and follow from the order of rows alone."""
    rows = "SELECT i % 100 AS age, 's' || i % 7 AS s FROM range(300000) AS r(i)"
    document = {
        "source": "source", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"], "require": [{"k": 1}],
    }  # fmt: skip
    found = []
    for threads, order in ((1, "i"), (2, "md5(CAST(i AS VARCHAR))"), (2, "i DESC")):
        with duckdb.connect(config={"threads": threads}) as con:
            con.execute(f"CREATE TABLE source AS {rows} ORDER BY {order}")
            for name in ("release.parquet", "release.csv"):
                engine = Engine(con)
                resolved = resolve(engine, parse_policy(document | {"target": name}), tmp_path)
                encoded = read_source(engine, resolved.source).encode()
                con.execute(
                    f"CREATE OR REPLACE TEMP TABLE c AS SELECT row_id, {encoded.axes[0].code.sql()} // 10 AS class_id"
                    f" FROM {encoded.rows.sql()}"
                )
                recoding = plan_recoding(
                    engine, encoded, Assignment(Relation(("temp", "main", "c"))), resolved.released.forms
                )
                classes = NewClasses(engine, resolved, encoded, recoding, {"s": []})
                draft = RunDraft(classes, Watch(engine, "", Path()), None, 0.0)
                found += file_content(partial(write, draft, tmp_path), tmp_path, name)
                engine.close_scratch()
    assert found[0:2] == found[2:4] == found[4:6]
    (tmp_path / "release.parquet").write_bytes(found[0])
    parts = f"SELECT DISTINCT row_group_id, row_group_num_rows FROM parquet_metadata('{tmp_path}/release.parquet')"
    assert sorted(duckdb.sql(parts).fetchall()) == [(0, 122880), (1, 122880), (2, 54240)]


# -- whole runs ----------------------------------------------------------------------------------------------


PEOPLE = [(i, 20 + i * 7 % 40, "abcdef"[i % 6]) for i in range(48)]
POLICY = {
    "source": "people", "target": "published.patients", "identifiers": ["id"], "sensitive": ["disease"],
    "quasi_identifiers": {"age": {"numeric": True}}, "require": [{"unique_distinct": 3}],
    "algorithm": {"name": "bsgi", "select": "bisect"},
}  # fmt: skip
SERIES = POLICY | {"target": {"prefix": "pub.p"}, "key": "id", "identifiers": []}
GROUPS = SERIES | {
    "quasi_identifiers": ["age"], "sensitive": {"disease": {"l": 3}}, "require": [], "algorithm": "decomposition_plus",
}  # fmt: skip


@pytest.fixture
def people(con):
    fill(con, "people", {"id": "INTEGER", "age": "INTEGER", "disease": "VARCHAR"}, PEOPLE)
    return con


def test_the_seed_is_drawn_for_every_policy_that_names_none():
    drawn = {parse_policy(POLICY).seed for _ in range(20)}
    assert len(drawn) == 20 and min(drawn) >= 0
    assert 2**110 < max(drawn) < 2**120, "too many for all of them to be tried"
    assert parse_policy(POLICY | {"seed": 7}).seed == 7


def test_a_seed_that_is_none_is_one_problem(tmp_path):
    for seed in (-1, 2**127, 10**40, 1.5, "x", None):
        with refuses("seed"):
            parse_policy(POLICY | {"seed": seed})
    (tmp_path / "policy.yml").write_text(f"seed: {'9' * 5000}\n")
    with pytest.raises(ldiv_db.PolicyError) as refused:
        ldiv_db.read_policy(tmp_path / "policy.yml")
    assert len(refused.value.problems) == 1


ALGORITHMS = [
    {"name": "bsgi", "select": "bisect"},
    {"name": "bsgi", "select": "refine"},
    {"name": "bsgi", "select": "greedy"},
    {"name": "bsgi", "residue": "suppress"},
    {"name": "topdown"},
    {"name": "mondrian"},
    {"name": "peel"},
    {"name": "tp"},
    {"name": "tp_plus"},
    {"name": "cuts", "top": 3},
    {"name": "annealing", "top": 3},
]


@pytest.mark.parametrize(
    ("algorithm", "largest"),
    some([*(pytest.param(algorithm, True) for algorithm in ALGORITHMS), pytest.param(ALGORITHMS[0], False)]),
    ids=lambda options: "-".join(map(str, options.values())) if isinstance(options, dict) else None,
)
def test_a_run_with_the_recorded_seed_is_the_same_to_the_byte(people, algorithm, largest):
    """Wherever an algorithm draws, a seed of all its digits serves."""
    keys = {"age": {"taxonomy": {"ranges": [5, 10, 20], "origin": 0}}}
    wanted = POLICY | {"algorithm": algorithm, "require": [{"frequency": 3}], "quasi_identifiers": keys}
    wanted |= {"seed": 2**127 - 1} if largest else {}
    first = ldiv_db.run(people, wanted)
    (recorded,) = people.execute("SELECT seed FROM ldiv.run_secret").fetchone()
    assert recorded == str(first.seed) and first.as_dict(show_seed=True)["seed"] == first.seed
    assert "seed" not in first.as_dict()
    again = {"seed": int(recorded), "target": {"table": "published.again"}}
    assert ldiv_db.run(people, wanted | again).seed == first.seed
    found = table_content(people, Relation(("published", "patients")), Relation(("published", "again")))
    assert found[0] == found[1]


FILES = ["out.duckdb", "out.parquet", "out.csv"]


@pytest.mark.parametrize(("name", "catalog"), some([(name, own) for name in FILES for own in (None, "ours")]))
def test_a_file_for_others_has_neither_seed_nor_ledger(tmp_path, name, catalog):
    """Not as text, not as an integer of any order of bytes; nor any table, schema or note beside the release."""
    with duckdb.connect(str(tmp_path / "base.duckdb")) as con:
        fill(con, "people", {"id": "INTEGER", "age": "INTEGER", "disease": "VARCHAR"}, PEOPLE)
        if catalog:
            con.execute(f"ATTACH '{tmp_path}/ours.duckdb' AS ours")
        target = {"file": name} | ({"table": "patients"} if name == FILES[0] else {})
        result = ldiv_db.run(con, POLICY | {"target": target}, folder=tmp_path, catalog=catalog)
        ledger = "ours.ldiv.run_secret" if catalog else "ldiv.run_secret"
        assert (str(result.seed),) in con.execute(f"SELECT seed FROM {ledger}").fetchall()
    content = (tmp_path / name).read_bytes()
    for written in (str(result.seed).encode(), *(result.seed.to_bytes(16, end) for end in ("little", "big"))):
        assert written not in content
    if name == "out.parquet":
        kept = duckdb.sql(f"SELECT * FROM parquet_kv_metadata('{tmp_path / name}')").fetchall()
        assert str(result.seed) not in repr(kept)
    if name == "out.duckdb":
        with duckdb.connect(str(tmp_path / name), read_only=True) as con:
            assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("patients",)]
            assert con.execute("SELECT comment, tags FROM duckdb_tables()").fetchall() == [(None, {})]
            assert not con.execute("FROM duckdb_schemas() WHERE schema_name = 'ldiv'").fetchall()
    assert b"ldiv." not in content and result.run_id.encode() not in content


@pytest.mark.parametrize("policy", some([SERIES, GROUPS]), ids=["classes", "groups"])
def test_the_ledger_alone_has_the_seed_of_each_release_of_a_series(people, tmp_path, policy):
    """Also where the releases go to a file for others."""
    wanted = policy | {"target": {"file": "series.duckdb", "prefix": "p"}}
    drawn = []
    for _ in range(2):
        drawn.append(ldiv_db.run(people, wanted, folder=tmp_path).seed)
        people.execute("INSERT INTO people SELECT id + 100, age, disease FROM people")
    content = (tmp_path / "series.duckdb").read_bytes()
    for seed in drawn:
        for written in (str(seed).encode(), seed.to_bytes(16, "little"), seed.to_bytes(16, "big"), b"ldiv."):
            assert written not in content
    found = people.execute("SELECT seed FROM ldiv.release_secret ORDER BY release").fetchall()
    assert found == [(str(seed),) for seed in drawn] and len(set(drawn)) == 2


# -- thresholds from a base ----------------------------------------------------------------------------------


RARE = [(i, i % 8, "Zika" if i % 5 < 2 else "Flu" if i % 5 == 2 else f"Other{i % 4}") for i in range(60)]
BASE = {
    "source": "people", "target": "published.patients", "identifiers": ["id"], "sensitive": ["disease"],
    "quasi_identifiers": {"age": {"taxonomy": {"ranges": [2, 4], "origin": 0}}},
}  # fmt: skip
#: What the thresholds of the values above the average frequency are: 0.4, 0.2 and 0.1 of the rows, of six values.
TOLD = re.compile(r"Zika|Other|0\.2\b|0\.24|0\.4\b|0\.48|0\.72")


def held(con: Any) -> str:
    """All that the catalog has, as text."""
    tables = [
        name for (name,) in con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ldiv'").fetchall()
    ]
    return repr([con.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ldiv.{name}").fetchall() for name in tables])


@pytest.fixture
def rare(con):
    fill(con, "people", {"id": "INTEGER", "age": "INTEGER", "disease": "VARCHAR"}, RARE)
    return con


@pytest.mark.parametrize("algorithm", some(["mondrian", "cuts", "topdown", "peel", "bsgi", "tp"]))
def test_thresholds_from_a_base_are_told_as_the_policy_wrote_them(rare, algorithm):
    """Not which values are above the average, nor how frequent they are, which is what their thresholds say."""
    wanted = BASE | {"algorithm": algorithm, "require": [{"threshold": {"base": 0.9, "Flu": 0.95}}]}
    wanted |= {"suppressed": "unknown"} if algorithm == "cuts" else {}
    result = ldiv_db.run(rare, wanted)
    (told,) = result.requirements
    assert told["parameters"] == {"base": 0.9, "Flu": 0.95} and told["holds"]
    assert "Zika" not in repr(result.requirements) + str(result.audits[0].verdicts[0].requirement) + held(rare)
    stored = json.loads(rare.execute("SELECT parameters FROM ldiv.run_requirement").fetchone()[0])
    assert stored == {"base": 0.9, "own_thresholds": 1}
    planned = ldiv_db.plan(rare, wanted | {"target": "t"})
    (found,) = planned.requirements["disease"]
    assert found.parameters.keys() == {"base", "Flu"}
    assert dict(found.thetas).keys() == {"Flu", "Zika"}, "what is judged are the thresholds that follow"


@pytest.mark.parametrize(
    "algorithm",
    some(["mondrian", "tp", "topdown", "peel", "bsgi", "incognito", "tds", {"name": "cuts", "scheme": "none"}]),
)
def test_errors_tell_no_threshold_that_follows_from_a_base(rare, algorithm):
    wanted = BASE | {"algorithm": algorithm, "require": [{"threshold": {"base": 0.12}}]}
    with pytest.raises(ldiv_db.InfeasibleError) as refused:
        ldiv_db.run(rare, wanted)
    assert TOLD.search(str(refused.value)) is None, refused.value
    with pytest.raises(ldiv_db.InfeasibleError, match="Zika"):
        ldiv_db.plan(rare, wanted, show_values=True)


def test_the_audit_judges_the_thresholds_that_follow(rare, monkeypatch):
    """A release that keeps the base alone, and not what follows for frequent values, would be too strict; one that
    keeps neither fails, and the message says it in the words of the policy.
    """
    real = RunDraft.write

    def broken(self, where):
        real(self, where)
        self.engine.execute(f"UPDATE {where[''].sql()} SET disease = 'Zika' WHERE disease <> 'Flu'")

    monkeypatch.setattr(RunDraft, "write", broken)
    wanted = BASE | {"algorithm": "topdown", "require": [{"threshold": {"base": 0.3}}]}
    with pytest.raises(ldiv_db.AuditError) as failed:
        ldiv_db.run(rare, wanted)
    assert "threshold base=0.3 on disease" in str(failed.value) and TOLD.search(str(failed.value)) is None


def test_a_run_with_a_base_cannot_be_written_as_sql(rare):
    from ldiv_db.recoding import statement as recode_sql  # noqa: PLC0415

    wanted = BASE | {"algorithm": "cuts", "require": [{"threshold": {"base": 0.5}}]}
    result = ldiv_db.run(rare, wanted)
    found = recode_sql.find_run(Engine(rare), result.run_id)
    for policy in (None, parse_policy(wanted)):
        with refuses("RUN"):
            recode_sql.recoding_sql(Engine(rare), found, "duckdb", None, policy)
