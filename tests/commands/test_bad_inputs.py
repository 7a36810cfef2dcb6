"""Bad inputs of every kind, each refused by the code of its problem or with its exit code; nothing is changed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from beds import COUNTRIES, PATIENTS, Bed, policy_document

import ldiv_db

AGE, COUNTRY = {"numeric": True}, {"taxonomy": {"file": "country.csv"}}
SERIES: dict[str, Any] = {"target": {"prefix": "x"}, "key": "name", "identifiers": []}
#: YAML of a few lines that would be written out in ten million.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
)


def each(key: str, *values: Any) -> list[dict[str, Any]]:
    return [{key: value} for value in values]


def ages(*settings: Any) -> list[dict[str, Any]]:
    return each("quasi_identifiers", *({"age": setting, "country": COUNTRY} for setting in settings))


def trees(*kinds: Any) -> list[dict[str, Any]]:
    return ages(*({"taxonomy": kind} for kind in kinds))


def countries(*taxonomies: Any) -> list[dict[str, Any]]:
    return each("quasi_identifiers", *({"age": AGE, "country": {"taxonomy": taxonomy}} for taxonomy in taxonomies))


def listing(**categories: Any) -> dict[str, Any]:
    return {"sensitive": {"disease": categories}}


#: What is refused of a policy, by the code of its problem: other values of some keys, of which None takes one out.
POLICIES: dict[str, list[dict[str, Any]]] = {
    "sorce": each("sorce", "x"),
    "policy": each("", 1),
    "source": [
        *each("source", None, ["patients"], 3, "", "main.patient", "main..", "patients; DROP TABLE patients"),
        *each("source", "(SELECT 1)", "a.b.c.d", "none.parquet", "*.parquet", "nonsense.parquet", "nonsense.json"),
        *each("source", "empty.csv"),
        *each("keep", []),  # leaves out a column of the source
    ],
    "seed": each("seed", "x", -1, 2**127, 1.5),
    "nulls": each("nulls", "drop"),
    "nulls_sensitive": each("nulls_sensitive", True),
    "identifiers": each("identifiers", "name"),
    # -- columns
    "keep": each("keep", {"ward": 1}, "ward"),
    "keep.0": each("keep", [1]),
    "keep.wrd": each("keep", ["wrd", "ward"]),
    "keep.DISEASE": each("keep", ["ward", "DISEASE"]),
    "keep.ward": each("keep", ["ward", "ward"]),
    "output": [
        *each("output", "class_id", {"class": True}, {"class_id": "maybe"}, {"class_id": False}),
        {"source": "numbered", "keep": ["ward", "class_id"]},
    ],
    # -- quasi-identifiers
    "quasi_identifiers": [
        *each("quasi_identifiers", None, [3], {}, {"age": "x"}, {"age": AGE, "country": AGE}),
        *ages({"numeric": True, "taxonomy": "x"}, {"taxonomy": {"dates": ["year"]}}),
        *countries({"file": "three.csv"}, {"file": "mars.csv"}),
        {"source": "endless"},
    ],
    "quasi_identifiers.numric": ages({"numric": True}),
    "quasi_identifiers.weight": ages(*({"numeric": True, "weight": weight} for weight in (-1, float("inf"), "x"))),
    "quasi_identifiers.taxonomy": [
        *trees({"ranges": [5], "prefix": [1]}, {}, [5]),
        *countries("x", {"file": "."}, {"file": "nested.csv", "tree": "x"}),
        *countries(*({"file": name} for name in ("none.csv", "empty.csv", "gap.csv", "places.csv", "label.csv"))),
        *countries(*({"file": name} for name in ("latin.csv", "field.csv", "levels.csv", "deep.json", "bomb.yml"))),
        *countries(*({"file": name} for name in ("key.yml", "half.json", "large.yml", "open.json", "nothing.json"))),
        *countries({"file": "tree.yml", "tree": "x"}),
    ],
    "quasi_identifiers.taxonomy.prefx": trees({"prefx": [1]}),
    "quasi_identifiers.taxonomy.tree": trees({"name": "x", "tree": "y"}),
    "quasi_identifiers.taxonomy.dates": trees({"dates": ["hour"]}, {"dates": ["year", "day"]}),
    "quasi_identifiers.taxonomy.prefix": trees({"prefix": [1, 2]}, {"prefix": [*range(200, 0, -1)]}),
    "quasi_identifiers.taxonomy.prefix.0": trees({"prefix": [0]}, {"prefix": [10**30]}),
    "quasi_identifiers.taxonomy.ranges.0": trees({"ranges": ["x"]}),
    "quasi_identifiers.taxonomy.ranges": [
        *trees(*({"ranges": widths} for widths in ([], [4, 10], [-5], [0.5], [1e300], [5, 1e300], [float("inf")]))),
        *trees({"ranges": [5], "origin": 1e300}),
        {"source": "old", **trees({"ranges": [1]})[0]},
    ],
    # -- sensitive attributes and requirements
    "source sensitive": each("sensitive", None, []),
    "sensitive": each("sensitive", 3),
    "sensitive.weight": [listing(weight=1)],
    "sensitive.categories": [
        listing(categories=[["Flu"], ["Cancer"]], weights=[0, "1e-999999999"]),
        listing(categories=[[f"c{i}"] for i in range(1_001)]),
    ],
    "require": each("require", None, {"distinct": 3}, []),
    "require.0": each("require", ["distinct"], [{"distinct": 2, "k": 2}], [{"distinkt": 3}]),
    "require.0.k": each("require", *([{"k": k}] for k in (0, 2.5, 10**30))),
    "require.0.distinct": each("require", [{"distinct": None}], [{"distinct": True}]),
    "require.0.frequency": each("require", *([{"frequency": l}] for l in ("x", 0.5, 2.00000000001, float("nan")))),
    "require.0.threshold": each("require", *([{"threshold": share}] for share in (2, {"Flu": 0}, {}, [0.5]))),
    "require.0.recursive": [SERIES | {"require": [{"recursive": {"c": 2}}]}],
    # -- algorithms
    "algorithm": each("algorithm", 3),
    "algorithm.name": each("algorithm", "bsg"),
    "algorithm.selct": each("algorithm", {"name": "bsgi", "selct": "x"}),
    "algorithm.select": each("algorithm", {"name": "bsgi", "select": "x"}),
    "algorithm.exchange": each("algorithm", *({"name": "bsgi", "exchange": count} for count in (101, "x"))),
    "algorithm.time_limit": each("algorithm", {"name": "cuts", "time_limit": 1e300}),
    "algorithm.steps": each("algorithm", {"name": "annealing", "steps": 10**9}),
    "algorithm.starvation": [
        {**SERIES, "require": None, **listing(l=2), "algorithm": {"name": "decomposition_plus", "starvation": 10**30}}
    ],
    # -- targets
    "target": each(
        "target",
        *(None, [1], {}, "main.taken", "PATIENTS", "ldiv.x", "release.csv", {"table": "v", "if_exists": "replace"}),
        {"table": "taken", "if_exists": "append"},
    ),
    "target.if_exists": each("target", {"table": "x", "if_exists": "drop"}, {"file": "new.csv", "if_exists": "append"}),
    "target.file": each("target", {"file": "release.xlsx"}, {"file": "a\0b.csv"}, "deep/release.csv"),
    "target.table": each(
        "target",
        *({"file": "release.duckdb"}, {"file": "new.csv", "table": "t"}, "other.main.t", "main..x", "/dev/full"),
        *("out/release", "temp.x", "temp.main.x", "system.x", "system.main.x", "information_schema.x", "pg_catalog.x"),
    ),
    "target.prefix": [SERIES | {"target": {"prefix": "temp.x"}}],
}
#: Files of which the policies name one each.
FILES = {
    **{"nonsense.parquet": "nonsense" * 100, "nonsense.json": "{nonsense", "empty.csv": "", "release.csv": "x"},
    **{"three.csv": "Norway;*\nItaly;*\nJapan;*\n", "mars.csv": "Mars;*\n", "gap.csv": "Norway;;*\n"},
    "places.csv": "Norway;Europe;*\nNorway;Asia;*\n",
    "label.csv": "Norway;Europe;*\nEurope;Asia;*\n",
    "latin.csv": "Norw\udce6y;*\n",
    "field.csv": f"Norway;{'x' * 140_000};*\n",
    "levels.csv": ";".join(map(str, range(200))) + "\n",
    **{"deep.json": "[" * 1500, "bomb.yml": BOMB, "key.yml": "? [a, b]\n: [c]\n", "open.json": "{"},
    **{"half.json": '{"\\ud800": ["Norway"]}', "large.yml": "#" * 2**23 + "##", "nothing.json": "[]"},
    "tree.yml": "a: [b]",
}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """A connection with the patients and tables that no policy fits, and a folder of files that none fits."""
    folder = tmp_path_factory.mktemp("bad")
    for name, text in (FILES | {"country.csv": COUNTRIES}).items():
        (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("CREATE TABLE patients (name VARCHAR, age INTEGER, country VARCHAR, disease VARCHAR, ward VARCHAR)")
        con.executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?)", PATIENTS)
        con.execute("CREATE TABLE numbered AS SELECT *, 1 AS class_id FROM patients; CREATE TABLE taken (x INTEGER)")
        con.execute("CREATE TABLE old AS SELECT * REPLACE (if(age = 20, 2000000000, age) AS age) FROM patients")
        con.execute("CREATE TABLE endless AS SELECT * REPLACE (if(age = 20, 'inf'::DOUBLE, age) AS age) FROM patients")
        con.execute("CREATE VIEW v AS SELECT 1 AS x")
        yield con, folder


def codes(con: Any, policy: Any, folder: Path) -> set[str]:
    """The codes of what a plan refuses of a policy; none if it plans."""
    try:
        ldiv_db.plan(con, policy, folder)
    except ldiv_db.PolicyError as error:
        return {problem.code for problem in error.problems}
    return set()


@pytest.mark.parametrize("code", POLICIES)
def test_a_bad_policy_is_refused_by_its_code(
    hospital: tuple[Any, Path], code: str, snapshot: Callable[[Any], Any]
) -> None:
    con, folder = hospital
    before = snapshot(con)
    told = {str(changes): codes(con, policy_document(**changes), folder) for changes in POLICIES[code]}
    assert told == {changes: set(code.split()) for changes in told}
    assert snapshot(con) == before


TEXTS = [
    *("a: [1", "", "- a", "source", "source: a\nsource: b", "[" * 1500, 'a: "\\ud800"', "? [a, b]\n: 1"),
    *("a: " + "1" * 5000, "a: 2024-13-45", BOMB, "a: &a [*a]", "#" * 2**20 + "##", "a: 1\n---\nb: 2"),
    *("!!python/object:x {}", "\x00\x01", "source: {a: 1}\n", "&a [*a]\n"),
]


def test_a_file_that_is_no_policy_is_refused_as_one(tmp_path: Path) -> None:
    for content in (*(text.encode() for text in TEXTS), "source: köln\n".encode("latin-1")):
        (tmp_path / "p.yml").write_bytes(content)
        with pytest.raises(ldiv_db.PolicyError) as refused:
            ldiv_db.read_policy(tmp_path / "p.yml")
        assert all(str(problem) for problem in refused.value.problems), content


#: What the data or the database cannot give: the SQL before, what of the policy is other, exit code, and what is said.
SOURCES: list[tuple[str, dict[str, Any], int, str]] = [
    ("", {"source": "empty"}, 1, "empty is empty"),
    ("UPDATE patients SET disease = NULL WHERE name = 'P1'", {}, 1, "NULLs: disease in 1 row"),
    ("UPDATE patients SET age = NULL WHERE name = 'P1'", {"nulls": "reject"}, 1, "NULLs: age in 1 row"),
    ("UPDATE patients SET disease = 'Flu'", {}, 1, "a single value"),
    ("", {"require": [{"distinct": 9}]}, 1, "classes of 9 different sensitive values are impossible"),
    ("", {"target": {"file": "hospital.duckdb", "table": "t"}}, 2, "is the source, or is open here"),
    ("", {"target": "hospital.x"}, 2, "is the name of a database, and no schema"),
    ("CREATE TABLE g AS FROM patients; CREATE VIEW gone AS FROM g; DROP TABLE g", {"source": "gone"}, 3,
     "gone cannot be read: Catalog Error"),
    ("CREATE VIEW broken AS SELECT name, age, disease FROM patients; ALTER TABLE patients DROP disease",
     {"source": "broken"}, 3, "broken cannot be read: Binder Error"),
    ("CREATE VIEW failing AS SELECT * REPLACE (name::INTEGER AS age) FROM patients", {"source": "failing"}, 3,
     "failing cannot be read: ConversionException (its text may quote data and is withheld)"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "changes", "code", "says"), SOURCES)
def test_what_the_data_cannot_give_has_its_exit_code(
    bed: Bed, sql: str, changes: dict[str, Any], code: int, says: str
) -> None:
    if sql:
        bed.sql(sql)
    bed.write_policy(**changes)
    assert says in " ".join(bed.fails(code, "run", bed.database, bed.policy).split())


#: Tables and views in the catalog's schema that are not ours, and the command that comes upon them.
FOREIGN = [
    ("TABLE migration", "run {database} {policy}"),
    ("VIEW migration", "run {database} {policy}"),
    ("TABLE run", "run {database} {policy}"),
    ("TABLE taxonomy", "taxonomy list {database}"),
    ("TABLE release_member", "release list {database}"),
    ("VIEW run", "sql recode {database} a --dialect spark"),
]


@pytest.mark.parametrize(("made", "words"), FOREIGN)
def test_what_is_somebody_elses_in_the_catalog_is_left_alone(bed: Bed, made: str, words: str) -> None:
    kind, name = made.split()
    bed.sql(f"CREATE SCHEMA ldiv; CREATE {kind} ldiv.{name} AS SELECT 1 AS x")
    bed.sql("CHECKPOINT")
    assert f"ldiv.{name} is somebody else's" in bed.fails(3, *placed(bed, words))


def test_a_catalog_of_changed_migrations_is_refused(bed: Bed) -> None:
    bed.sql("CREATE SCHEMA ldiv; CREATE TABLE ldiv.migration (number INTEGER, name VARCHAR, checksum VARCHAR)")
    bed.sql("INSERT INTO ldiv.migration VALUES (1, 'x', 'y')")
    bed.sql("CHECKPOINT")
    assert "0001_taxonomies_and_runs was changed after it was applied" in bed.fails(3, "migrate", bed.database)


def placed(bed: Bed, words: str) -> list[str]:
    places = {"database": bed.database, "policy": bed.policy, "folder": bed.folder}
    return [word.format(**places) for word in shlex.split(words)]


CHECK = "check {database} patients --qi age --sensitive disease --require"
#: Commands that are refused by these codes; usage errors have none.
COMMANDS = {
    "policy": [
        *("run {database} {folder}/none.yml", "run {database} {folder}", "run {database} /dev/zero"),
        "profile {database} patients --sensitive disease --policy {policy}",
        "profile {database} patients --sensitive disease --policy {folder}/deep/p.yml",
    ],
    "table": ["check {database} patient --qi age --sensitive disease --require k:1"],
    "qi": [
        "check {database} patients --qi agee --sensitive disease --require k:1",
        "check {database} patients --qi , --sensitive disease --require k:1",
        f"{CHECK} k:1 --sensitive-table patients --group name",
    ],
    "sensitive": [
        "check {database} patients --qi age --sensitive x --require k:1",
        "check {database} patients --qi age,disease --sensitive DISEASE --require k:1",
        f"{CHECK} k:1 --class disease",
        "check {database} patients --sensitive disease --require k:1 --sensitive-table patients --group disease",
    ],
    "class": [f"{CHECK} k:1 --class x"],
    "require": [
        "check {database} patients --qi age --sensitive disease",
        *(f"{CHECK} {asked}" for asked in ("distinct", "distinct:", "distnct:3", "threshold:base=0.25")),
        f"{CHECK} distinct:auto",
    ],
    "require.k": [f"{CHECK} k:x"],
    "require.threshold": [f"{CHECK} threshold:x"],
    "into": [f"{CHECK} k:9 --into {table}" for table in ("ldiv.x", "temp.main.x", "pg_catalog.x")],
    "name": ["taxonomy import {database} ' ' {folder}/country.csv"],
    "child": ["taxonomy import {database} x --table patients --child c --parent age"],
    "taxonomy": [
        "taxonomy import {database} x {folder}/none.csv",
        "taxonomy import {database} x --table edges --child c --parent p",
        "taxonomy show {database} x",
        "taxonomy check {database} x --table patients --column age",
    ],
}
USAGE = [
    *("runn", "run", "run {database} {policy} --thread 1", "run {database} {policy} --threads 0"),
    *("run {database} {policy} --threads 99999999999", "plan {database} {policy} --threads two"),
    *("run {database} {policy} --memory-limit lots", f"{CHECK} k:9 --most 1{'0' * 30}"),
    "measure {database} patients --policy {policy} --queries 999999999999",
    f"attack {{database}} patients --policy {{policy}} --m 1{'0' * 30}",
    *("taxonomy import {database} x", "taxonomy import {database} x --table patients", "demo --l 1", "demo --select x"),
]
#: What the database or its file refuses.
DATABASE = [
    *(f"run {{database}} {{policy}} --memory-limit {size}" for size in ("1KB", "1MB")),
    *(f"run {{folder}}/{name} {{policy}}" for name in ("none.duckdb", "", "text.duckdb", "empty.duckdb")),
    *("plan {folder}/none.duckdb {policy}", "migrate {folder}/none.duckdb"),
]


@pytest.fixture
def edges(bed: Bed) -> Bed:
    """The bed with a table of edges that go in a circle, and files that are no databases."""
    bed.sql("CREATE TABLE edges AS SELECT 'a' AS c, 'b' AS p UNION ALL SELECT 'b', 'a'")
    bed.sql("CHECKPOINT")
    bed.write("text.duckdb", "x" * 10_000)
    bed.write("empty.duckdb", "")
    return bed


@pytest.mark.parametrize("code", COMMANDS)
def test_a_bad_command_is_refused_by_its_code(edges: Bed, code: str) -> None:
    for words in COMMANDS[code]:
        edges.refuses(code, *placed(edges, words))


@pytest.mark.parametrize(("code", "begins", "calls"), [(2, "Usage: ldiv", USAGE), (3, "error: ", DATABASE)])
def test_a_command_that_cannot_be_called_has_its_exit_code(
    edges: Bed, code: int, begins: str, calls: list[str]
) -> None:
    for words in calls:
        assert edges.fails(code, *placed(edges, words)).startswith(begins), words
