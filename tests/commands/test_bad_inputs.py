"""Bad inputs of every kind, each with its exit code and what it is told; nothing is changed, there is no traceback."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

import pytest

AGE, COUNTRY = {"numeric": True}, {"taxonomy": {"file": "country.csv"}}


@dataclass(frozen=True)
class Bad:
    """A policy with some keys changed (None takes one out), or a command's words; `files` are written, `sql` is run."""

    says: str
    changes: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    code: int = 2
    files: dict[str, str] = field(default_factory=dict)
    sql: str = ""


def policy(says: str, code: int = 2, files: dict[str, str] | None = None, sql: str = "", **changes: Any) -> Bad:
    return Bad(says, changes, "", code, files or {}, sql)


def command(says: str, words: str, code: int = 2, files: dict[str, str] | None = None, sql: str = "") -> Bad:
    return Bad(says, {}, words, code, files or {}, sql)


def policy_text(says: str, text: str) -> Bad:
    """A policy by its very text."""
    return command(says, "run {database} {folder}/p.yml", files={"p.yml": text})


def foreign(table: str, words: str = "", view: bool = False) -> Bad:
    """A table or view in the catalog's schema that is not ours, and what comes upon it, by default a run."""
    sql = f"CREATE SCHEMA ldiv; CREATE {'VIEW' if view else 'TABLE'} ldiv.{table} AS SELECT 1 AS x"
    return Bad(f"ldiv.{table} is somebody else's", {} if words else {"seed": 0}, words, 3, {}, sql)


def age(**settings: Any) -> dict[str, Any]:
    return {"quasi_identifiers": {"age": settings, "country": COUNTRY}}


def country(text: str | None = None, name: str = "t.csv", **spec: Any) -> dict[str, Any]:
    """A taxonomy of countries: the file's text, and more settings."""
    keys = {"quasi_identifiers": {"age": AGE, "country": {"taxonomy": {"file": name, **spec}}}}
    return keys if text is None else {**keys, "files": {name: text}}


#: YAML of a few lines that would be written out in ten million.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
)
CHECK = "check {database} patients --qi age --sensitive disease --require"

BAD = {
    # -- the policy's file
    "policy: no file": command("cannot read", "run {database} {folder}/none.yml"),
    "policy: a folder": command("cannot read", "run {database} {folder}"),
    "policy: no YAML": policy_text("is not YAML", "a: [1"),
    "policy: empty": policy_text("policy: is empty", ""),
    "policy: a list": policy_text("is not a mapping", "- a"),
    "policy: a text": policy_text("is not a mapping", "source"),
    "policy: a key twice": policy_text("twice", "source: a\nsource: b"),
    "policy: nested too deeply": policy_text("nested too deeply", "[" * 5000),
    "policy: half a character": policy_text("half a character", 'a: "\\ud800"'),
    "policy: a key that is a list": policy_text("a key is not a text", "? [a, b]\n: 1"),
    "policy: a number of 5,000 digits": policy_text("is not YAML", "a: " + "1" * 5000),
    "policy: a date that is none": policy_text("is not YAML", "a: 2024-13-45"),
    "policy: aliases without end": command(
        "its aliases stand for", "plan {database} {folder}/p.yml", files={"p.yml": BOMB}
    ),
    "policy: an alias of itself": command(
        "its aliases stand for", "plan {database} {folder}/p.yml", files={"p.yml": "a: &a [*a]"}
    ),
    "policy: larger than any": policy_text("larger than 1 MB", "#" * 2**20 + "##"),
    "policy: a device": command("is not a regular file", "run {database} /dev/zero"),
    "policy: two documents": policy_text("is not YAML", "a: 1\n---\nb: 2"),
    "policy: an object": policy_text("is not YAML", "!!python/object:x {}"),
    "policy: binary": policy_text("is not YAML", "\x00\x01"),
    # -- keys
    "key: unknown": policy("sorce: unknown key (did you mean 'source'?)", sorce="x"),
    "key: source missing": policy("source: is required", source=None),
    "key: target missing": policy("target: is required", target=None),
    "key: sensitive missing": policy("sensitive: is required", sensitive=None),
    "key: require missing": policy("require: is required", require=None),
    "key: quasi_identifiers missing": policy("quasi_identifiers: is required", quasi_identifiers=None),
    "key: no name": policy("unknown key", **{"": 1}),
    # -- types of values
    "source: a list": policy("source: takes a text", source=["patients"]),
    "source: a number": policy("source: takes a text", source=3),
    "source: empty": policy("source: '' is not the name of a table", source=""),
    "seed: a text": policy("seed: takes a whole number", seed="x"),
    "seed: negative": policy("seed: ", seed=-1),
    "seed: beyond 127 bits": policy("seed: takes a whole number from 0 to 2^127 - 1", seed=2**127),
    "seed: a fraction": policy("seed: takes a whole number", seed=1.5),
    "nulls: unknown": policy("nulls: takes 'value', 'suppress' or 'reject'", nulls="drop"),
    "nulls_sensitive: unknown": policy("nulls_sensitive: takes 'reject', 'suppress' or 'value'", nulls_sensitive=True),
    "keep: a mapping": policy("keep: takes a list", keep={"ward": 1}),
    "keep: numbers": policy("keep.0: takes a text", keep=[1]),
    "keep: one text": policy("keep: takes a list", keep="ward"),
    "identifiers: one text": policy("identifiers: takes a list", identifiers="name"),
    "quasi_identifiers: a list of numbers": policy("quasi_identifiers: takes a mapping", quasi_identifiers=[3]),
    "quasi_identifiers: none": policy("quasi_identifiers: ", quasi_identifiers={}),
    "quasi_identifiers: a text": policy("quasi_identifiers.age: takes a mapping", quasi_identifiers={"age": "x"}),
    "sensitive: none": policy("sensitive: ", sensitive=[]),
    "sensitive: a number": policy("sensitive: takes a mapping", sensitive=3),
    "sensitive: settings": policy("sensitive.disease.weight: unknown key", sensitive={"disease": {"weight": 1}}),
    "output: a text": policy("output: takes a mapping", output="class_id"),
    "output: unknown": policy(
        "output.class: unknown key (did you mean 'class_id'?; a quasi-identifier takes 'mean' or 'median')",
        output={"class": True},
    ),
    "output: no boolean": policy("output.class_id: takes true or false", output={"class_id": "maybe"}),
    "algorithm: a number": policy("algorithm: takes a mapping", algorithm=3),
    "target: a list": policy("target: takes a mapping", target=[1]),
    # -- columns
    "column: not classified": policy("ward: is a column of the source that the policy does not classify", keep=[]),
    "column: unknown": policy("keep.wrd: the source has no such column (did you mean 'ward'?)", keep=["wrd", "ward"]),
    "column: twice": policy("keep.DISEASE: is classified already under sensitive", keep=["ward", "DISEASE"]),
    "column: twice in one list": policy("keep.ward: is classified already under keep", keep=["ward", "ward"]),
    "column: class_id is there": policy(
        "output.class_id: the source has a column of that name",
        keep=["ward", "class_id"],
        sql="ALTER TABLE patients ADD COLUMN class_id INTEGER",
    ),
    # -- quasi-identifiers
    "qi: both": policy("takes either `taxonomy:` or `numeric: true`", **age(numeric=True, taxonomy="x")),
    "qi: unknown key": policy("quasi_identifiers.age.numric: unknown key", **age(numric=True)),
    "qi: negative weight": policy("quasi_identifiers.age.weight: ", **age(numeric=True, weight=-1)),
    "qi: endless weight": policy("quasi_identifiers.age.weight: ", **age(numeric=True, weight=float("inf"))),
    "qi: no number weight": policy("quasi_identifiers.age.weight: takes a number", **age(numeric=True, weight="x")),
    "qi: ranges of text": policy(
        "ranges need numbers, dates or timestamps, the column is VARCHAR",
        quasi_identifiers={"age": AGE, "country": {"numeric": True}},
    ),
    "qi: dates of numbers": policy("stretches of time need dates", **age(taxonomy={"dates": ["year"]})),
    "qi: unknown unit": policy("no unit 'hour'", **age(taxonomy={"dates": ["hour"]})),
    "qi: falling units": policy("takes rising units", **age(taxonomy={"dates": ["year", "day"]})),
    "qi: rising prefixes": policy("takes falling lengths", **age(taxonomy={"prefix": [1, 2]})),
    "qi: prefix of nothing": policy("prefix.0: ", **age(taxonomy={"prefix": [0]})),
    "qi: no widths": policy("ranges: ", **age(taxonomy={"ranges": []})),
    "qi: widths that do not nest": policy("10.0 is not a multiple of 4.0", **age(taxonomy={"ranges": [4, 10]})),
    "qi: a negative width": policy("takes rising widths above 0", **age(taxonomy={"ranges": [-5]})),
    "qi: a broken width": policy("whole numbers take whole widths", **age(taxonomy={"ranges": [0.5]})),
    "qi: the widest width": policy(
        "takes rising widths above 0, from 1e-18 to 1e+38", **age(taxonomy={"ranges": [1e300]})
    ),
    "qi: a width among wide ones": policy("to 1e+38", **age(taxonomy={"ranges": [5, 1e300]})),
    "qi: an origin far away": policy("an origin up to that", **age(taxonomy={"ranges": [5], "origin": 1e300})),
    "qi: more prefixes than levels": policy("has too many entries", **age(taxonomy={"prefix": [*range(200, 0, -1)]})),
    "qi: a prefix beyond any text": policy("prefix.0: takes a number up to", **age(taxonomy={"prefix": [10**30]})),
    "qi: no number width": policy("takes a number", **age(taxonomy={"ranges": ["x"]})),
    "qi: an endless width": policy("takes finite numbers", **age(taxonomy={"ranges": [float("inf")]})),
    "qi: too narrow widths": policy(
        "makes more than 1,000,000 leaves",
        sql="UPDATE patients SET age = 2000000000 WHERE age = 20",
        **age(taxonomy={"ranges": [1]}),
    ),
    "qi: an infinite value": policy(
        "holds NaN or infinity",
        sql="ALTER TABLE patients ALTER age TYPE DOUBLE; UPDATE patients SET age = 'inf' WHERE age = 20",
    ),
    "qi: two kinds of taxonomy": policy("takes one of", **age(taxonomy={"ranges": [5], "prefix": [1]})),
    "qi: no kind of taxonomy": policy("takes one of", **age(taxonomy={})),
    "qi: a list as taxonomy": policy("quasi_identifiers.age.taxonomy: takes a mapping", **age(taxonomy=[5])),
    "qi: a tree without file": policy("goes with `file:`", **age(taxonomy={"name": "x", "tree": "y"})),
    "qi: an unknown kind": policy(
        "taxonomy.prefx: unknown key (did you mean 'prefix'?)", **age(taxonomy={"prefx": [1]})
    ),
    # -- taxonomies
    "taxonomy: not in the catalog": policy(
        "the catalog has no taxonomy 'x'", quasi_identifiers={"age": AGE, "country": {"taxonomy": "x"}}
    ),
    "taxonomy: no file": policy("no file none.csv", **country(name="none.csv")),
    "taxonomy: a folder": policy("taxonomy: no file", **country(name=".")),
    "taxonomy: empty": policy("the file is empty", **country("")),
    "taxonomy: a value is missing": policy("no leaf for 1 value of the", **country("Norway;*\nItaly;*\nJapan;*\n")),
    "taxonomy: no value is there": policy("has no leaf for 4 values of the source", **country("Mars;*\n")),
    "taxonomy: an empty level": policy("line 1 has an empty level", **country("Norway;;*\n")),
    "taxonomy: two places": policy("'Norway' has two places (line 2)", **country("Norway;Europe;*\nNorway;Asia;*\n")),
    "taxonomy: a label twice": policy(
        "'Europe' stands for more than one node", **country("Norway;Europe;*\nEurope;Asia;*\n")
    ),
    "taxonomy: not UTF-8": policy("taxonomy t.csv: is not UTF-8", **country("Norw\udce6y;*\n")),
    "taxonomy: a field beyond any": policy("line 1 is not a line of levels", **country(f"Norway;{'x' * 140_000};*\n")),
    "taxonomy: too many levels": policy("has more than 100 levels", **country(";".join(map(str, range(200))) + "\n")),
    "taxonomy: nested too deeply": policy("is nested too deeply", **country("[" * 5000, name="t.json")),
    "taxonomy: aliases without end": policy("its aliases stand for", **country(BOMB, name="t.yml")),
    "taxonomy: a key that is a list": policy("a label is not a text", **country("? [a, b]\n: [c]\n", name="t.yml")),
    "taxonomy: half a character": policy("half a character", **country('{"\\ud800": ["Norway"]}', name="t.json")),
    "taxonomy: larger than any": policy("is larger than 8 MB", **country("#" * 2**23 + "##", name="t.yml")),
    "taxonomy: no JSON": policy("is not YAML or JSON", **country("{", name="t.json")),
    "taxonomy: holds nothing": policy("holds no value", **country("[]", name="t.json")),
    "taxonomy: no such tree": policy("has no tree 'x'", **country("a: [b]", name="t.yml", tree="x")),
    # -- requirements
    "require: a text": policy("require.0: takes `name: value`", require=["distinct"]),
    "require: a mapping": policy("require: takes a list", require={"distinct": 3}),
    "require: nothing": policy("require: ", require=[]),
    "require: two in one": policy("require.0: takes `name: value`", require=[{"distinct": 2, "k": 2}]),
    "require: unknown": policy("no requirement 'distinkt' (did you mean 'distinct'?)", require=[{"distinkt": 3}]),
    "require: k of nothing": policy("require.0.k: takes a whole number from 1", require=[{"k": 0}]),
    "require: a broken k": policy("require.0.k: takes a whole number", require=[{"k": 2.5}]),
    "require: no value": policy("require.0.distinct: takes a whole number", require=[{"distinct": None}]),
    "require: true": policy("require.0.distinct: takes a whole number", require=[{"distinct": True}]),
    "require: frequency of a text": policy("require.0.frequency: takes a number", require=[{"frequency": "x"}]),
    "require: frequency below 1": policy("takes a number from 1", require=[{"frequency": 0.5}]),
    "require: too exact": policy("at most 9 digits", require=[{"frequency": 2.00000000001}]),
    "require: not a number": policy("require.0.frequency: takes a number", require=[{"frequency": float("nan")}]),
    "require: threshold above 1": policy("require.0.threshold: ", require=[{"threshold": 2}]),
    "require: threshold of 0": policy("require.0.threshold: ", require=[{"threshold": {"Flu": 0}}]),
    "require: threshold of nothing": policy("require.0.threshold: ", require=[{"threshold": {}}]),
    "require: threshold as list": policy("require.0.threshold: takes a number", require=[{"threshold": [0.5]}]),
    "require: class ids are needed": policy(
        "unique_distinct can only be audited with class ids", output={"class_id": False}
    ),
    "require: a k beyond any class": policy("takes a whole number up to 1,000,000,000", require=[{"k": 10**30}]),
    "require: a requirement of a series that lacks a parameter": policy(
        "require.0.recursive: lacks l",
        require=[{"recursive": {"c": 2}}],
        target={"prefix": "x"},
        key="name",
        identifiers=[],
    ),
    "require: a weight without end": policy(
        "weights are numbers",
        sensitive={"disease": {"categories": [["Flu"], ["Cancer"]], "weights": [0, "1e-999999999"]}},
    ),
    "require: too many categories": policy(
        "takes up to 1,000 categories", sensitive={"disease": {"categories": [[f"c{i}"] for i in range(1_001)]}}
    ),
    # -- algorithms
    "algorithm: unknown": policy("no algorithm 'bsg' (did you mean 'bsgi'?)", algorithm="bsg"),
    "algorithm: unknown option": policy(
        "algorithm.selct: bsgi has no such option (did you mean 'select'?)", algorithm={"name": "bsgi", "selct": "x"}
    ),
    "algorithm: wrong option": policy(
        "algorithm.select: takes 'bisect', 'refine' or 'greedy'", algorithm={"name": "bsgi", "select": "x"}
    ),
    "algorithm: too many exchanges": policy("algorithm.exchange: ", algorithm={"name": "bsgi", "exchange": 101}),
    "algorithm: an exchange of text": policy(
        "algorithm.exchange: takes a whole number", algorithm={"name": "bsgi", "exchange": "x"}
    ),
    "algorithm: too long a time": policy("algorithm.time_limit: ", algorithm={"name": "cuts", "time_limit": 1e300}),
    "algorithm: too many steps": policy("algorithm.steps: ", algorithm={"name": "annealing", "steps": 10**9}),
    "algorithm: waiting for ever": policy(
        "algorithm.starvation: takes a number up to",
        target={"prefix": "x"},
        key="name",
        identifiers=[],
        require=None,
        algorithm={"name": "decomposition_plus", "starvation": 10**30},
        sensitive={"disease": {"l": 2}},
    ),
    # -- sources
    "source: unknown": policy("no table or view main.patient (did you mean 'main.patients'?)", source="main.patient"),
    "source: no name": policy("is not the name of a table", source="main.."),
    "source: SQL": policy("no table or view patients; DROP", source="patients; DROP TABLE patients"),
    "source: a query": policy("no table or view (SELECT 1)", source="(SELECT 1)"),
    "source: too many parts": policy("is not the name of a table", source="a.b.c.d"),
    "source: no file": policy("no file none.parquet", source="none.parquet"),
    "source: a pattern of no file": policy("source: no file *.parquet", source="*.parquet"),
    "source: no Parquet": policy(
        "source: t.parquet cannot be read as Parquet", source="t.parquet", files={"t.parquet": "nonsense" * 100}
    ),
    "source: no JSON": policy("source: t.json cannot be read as Json", source="t.json", files={"t.json": "{nonsense"}),
    "source: an empty CSV": policy("t.csv is empty (the first line", source="t.csv", files={"t.csv": ""}),
    "source: no rows": policy("empty is empty", code=1, source="empty"),
    "source: a broken view": policy(
        "broken",
        code=3,
        source="broken",
        sql="CREATE VIEW broken AS SELECT name, age, disease FROM patients; ALTER TABLE patients DROP disease",
    ),
    "source: a view that fails on a row": policy(
        "failing cannot be read: ConversionException (its text may quote data and is withheld)",
        code=3,
        source="failing",
        sql="CREATE VIEW failing AS SELECT * REPLACE (name::INTEGER AS age) FROM patients",
    ),
    "source: a view of what is gone": policy(
        "gone cannot be read: Catalog Error",
        code=3,
        source="gone",
        sql="CREATE TABLE old AS FROM patients; CREATE VIEW gone AS FROM old; DROP TABLE old",
    ),
    "source: NULLs": policy(
        "NULLs: disease in 1 row", code=1, sql="UPDATE patients SET disease = NULL WHERE name = 'P1'"
    ),
    "source: NULLs in keys": policy(
        "NULLs: age in 1 row", code=1, nulls="reject", sql="UPDATE patients SET age = NULL WHERE name = 'P1'"
    ),
    "source: one sensitive value": policy("a single value", code=1, sql="UPDATE patients SET disease = 'Flu'"),
    "source: too few values": policy(
        "classes of 9 different sensitive values are impossible", code=1, require=[{"distinct": 9}]
    ),
    # -- targets
    "target: exists": policy(
        "main.taken exists (set if_exists", target="main.taken", sql="CREATE TABLE taken (x INTEGER)"
    ),
    "target: the source": policy("is the source itself", target="PATIENTS"),
    "target: the catalog": policy("schema 'ldiv' is the catalog's own", target="ldiv.x"),
    "target: another database": policy("is in another database", target="other.main.t"),
    "target: a view": policy(
        "is a view", target={"table": "v", "if_exists": "replace"}, sql="CREATE VIEW v AS SELECT 1 AS x"
    ),
    "target: no name": policy("is not the name of a table", target="main..x"),
    "target: nothing": policy("takes `table:`, `file:` or both", target={}),
    "target: unknown if_exists": policy(
        "target.if_exists: takes 'fail', 'replace' or 'append'", target={"table": "x", "if_exists": "drop"}
    ),
    "target: unknown ending": policy("has none of the endings", target={"file": "release.xlsx"}),
    "target: no table in a database": policy("target.table: is required", target={"file": "release.duckdb"}),
    "target: a table in a data file": policy("goes with a DuckDB file", target={"file": "release.csv", "table": "t"}),
    "target: append to a file": policy(
        "append goes with a table", target={"file": "release.csv", "if_exists": "append"}
    ),
    "target: a name of no file": policy("target.file: holds a character", target={"file": "a\0b.csv"}),
    "target: no folder": policy("no folder for", target="deep/release.csv"),
    "target: the file exists": policy("release.csv exists", target="release.csv", files={"release.csv": "x"}),
    "target: the open database": policy(
        "is the source, or is open here", target={"file": "hospital.duckdb", "table": "t"}
    ),
    "target: other columns": policy(
        "has column x as INTEGER, not none",
        target={"table": "taken", "if_exists": "append"},
        sql="CREATE TABLE taken (x INTEGER)",
    ),
    **{
        f"target: {place}": policy("lies in a schema of the database system", target=place)
        for place in ("temp.x", "temp.main.x", "system.x", "system.main.x", "information_schema.x", "pg_catalog.x")
    },
    "target: a database as schema": policy("is the name of a database, and no schema", target="hospital.x"),
    "target: a device": policy("'/dev/full' looks like a path", target="/dev/full"),
    "target: a path": policy("looks like a path", target="out/release"),
    "target: a prefix in temp": policy(
        "target.prefix: temp.x lies in a schema", target={"prefix": "temp.x"}, key="name", identifiers=[]
    ),
    # -- the catalog
    "catalog: another ledger": foreign("migration"),
    "catalog: a view for a ledger": foreign("migration", view=True),
    "catalog: another table": foreign("run"),
    "catalog: other taxonomies": foreign("taxonomy", "taxonomy list {database}"),
    "catalog: other releases": foreign("release_member", "release list {database}"),
    "catalog: other runs": foreign("run", "sql recode {database} a --dialect spark", view=True),
    # -- commands
    "command: none of the name": command("No such command", "runn"),
    "command: no database": command("Missing argument", "run"),
    "command: unknown option": command("No such option", "run {database} {policy} --thread 1"),
    "command: no threads": command("greater than or equal to 1", "run {database} {policy} --threads 0"),
    "command: threads beyond any": command(
        "less than or equal to 1024", "run {database} {policy} --threads 99999999999"
    ),
    "command: no memory to speak of": command("Out of Memory", "run {database} {policy} --memory-limit 1KB", code=3),
    "command: less memory than it takes": command(
        "Out of Memory", "run {database} {policy} --memory-limit 1MB", code=3
    ),
    "command: no number of threads": command("should be a valid integer", "plan {database} {policy} --threads two"),
    "command: no memory": command("'lots' is not a size", "run {database} {policy} --memory-limit lots"),
    "command: no database file": command("no database file", "run {folder}/none.duckdb {policy}", code=3),
    "command: a folder as database": command("no database file", "run {folder} {policy}", code=3),
    "command: a text as database": command(
        "cannot open", "plan {folder}/t.duckdb {policy}", code=3, files={"t.duckdb": "x" * 10_000}
    ),
    "command: an empty database": command(
        "cannot open", "plan {folder}/t.duckdb {policy}", code=3, files={"t.duckdb": ""}
    ),
    "check: no table": command(
        "no table or view patient (did you mean 'patients'?)",
        "check {database} patient --qi age --sensitive disease --require k:1",
    ),
    "check: no column": command(
        "qi: the table has no column 'agee' (did you mean 'age'?)",
        "check {database} patients --qi agee --sensitive disease --require k:1",
    ),
    "check: no sensitive column": command(
        "sensitive: the table has no column 'x'", "check {database} patients --qi age --sensitive x --require k:1"
    ),
    "check: two roles": command(
        "sensitive: 'DISEASE' is under qi already",
        "check {database} patients --qi age,disease --sensitive DISEASE --require k:1",
    ),
    "check: a class that is sensitive": command(
        "sensitive: 'disease' is under class already", f"{CHECK} k:1 --class disease"
    ),
    "check: classes beside a pair": command(
        "qi: does not go with --group", f"{CHECK} k:1 --sensitive-table patients --group name"
    ),
    "check: a group that is sensitive": command(
        "sensitive: 'disease' is under group already",
        "check {database} patients --sensitive disease --require k:1 --sensitive-table patients --group disease",
    ),
    "check: no class column": command("class: the table has no column 'x'", f"{CHECK} k:1 --class x"),
    "check: no requirement": command(
        "require: is missing (say what must hold", "check {database} patients --qi age --sensitive disease"
    ),
    "check: no value": command("a requirement is written name:value", f"{CHECK} distinct"),
    "check: an empty value": command("a requirement is written name:value", f"{CHECK} distinct:"),
    "check: an unknown requirement": command(
        "no requirement 'distnct' (did you mean 'distinct'?)", f"{CHECK} distnct:3"
    ),
    "check: a base": command("threshold: base needs the source of a policy", f"{CHECK} threshold:base=0.25"),
    "check: auto": command("auto needs a source", f"{CHECK} distinct:auto"),
    "check: no whole number": command("takes a whole number", f"{CHECK} k:x"),
    "check: a threshold of text": command("takes a number", f"{CHECK} threshold:x"),
    "check: no column name": command(
        "the table has no column ''", "check {database} patients --qi , --sensitive disease --require k:1"
    ),
    "check: into the catalog": command("schema 'ldiv' is the catalog's own", f"{CHECK} k:9 --into ldiv.x"),
    "check: into temp": command("lies in a schema of the database", f"{CHECK} k:9 --into temp.main.x"),
    "check: into a system schema": command("lies in a schema of the database", f"{CHECK} k:9 --into pg_catalog.x"),
    "check: more than is listed": command(
        "less than or equal to 1000000", f"{CHECK} k:9 --most 1000000000000000000000000000000"
    ),
    "measure: queries beyond any": command(
        "less than or equal to 1000000", "measure {database} patients --policy {policy} --queries 999999999999"
    ),
    "attack: more values than any": command(
        "less than or equal to 1000000000",
        "attack {database} patients --policy {policy} --m 1000000000000000000000000000000",
    ),
    "profile: the policy is there": command(
        "exists", "profile {database} patients --sensitive disease --policy {policy}"
    ),
    "profile: no folder": command(
        "there is no folder", "profile {database} patients --sensitive disease --policy {folder}/deep/p.yml"
    ),
    "taxonomy import: nothing": command("give FILE", "taxonomy import {database} x"),
    "taxonomy import: half of a table": command("give FILE", "taxonomy import {database} x --table patients"),
    "taxonomy import: no file": command("no file none.csv", "taxonomy import {database} x {folder}/none.csv"),
    "taxonomy import: no name": command("name: is empty", "taxonomy import {database} ' ' {folder}/country.csv"),
    "taxonomy import: no column": command(
        "child", "taxonomy import {database} x --table patients --child c --parent age"
    ),
    "taxonomy import: a cycle": command(
        "is its own ancestor",
        "taxonomy import {database} x --table e --child c --parent p",
        sql="CREATE TABLE e AS SELECT 'a' AS c, 'b' AS p UNION ALL SELECT 'b', 'a'",
    ),
    "taxonomy show: none": command("the catalog has no taxonomy 'x'", "taxonomy show {database} x"),
    "taxonomy check: none": command(
        "the catalog has no taxonomy 'x'", "taxonomy check {database} x --table patients --column age"
    ),
    "migrate: a changed catalog": command(
        "0001_taxonomies_and_runs was changed after it was applied",
        "migrate {database}",
        code=3,
        sql="CREATE SCHEMA ldiv; CREATE TABLE ldiv.migration (number INTEGER, name VARCHAR, checksum VARCHAR);"
        " INSERT INTO ldiv.migration VALUES (1, 'x', 'y')",
    ),
    "demo: l of 1": command("greater than or equal to 2", "demo --l 1"),
    "demo: no selection": command("'x' is not one of", "demo --select x"),
}


def test_there_are_a_hundred_and_more() -> None:
    assert len(BAD) >= 100


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_a_bad_input_is_told_what_is_wrong_and_changes_nothing(bed: Any, name: str) -> None:
    bad = BAD[name]
    for file, text in bad.files.items():
        (bed.folder / file).write_text(text, encoding="utf-8", errors="surrogateescape")
    if bad.sql:
        bed.sql(bad.sql)
        bed.sql("CHECKPOINT")
    if bad.changes:
        bed.write_policy(**bad.changes)
    places = {"database": bed.database, "policy": bed.policy, "folder": bed.folder}
    words = [word.format(**places) for word in shlex.split(bad.words or "run {database} {policy}")]
    message = bed.fails(bad.code, *words)
    assert bad.says in " ".join(message.split()), message
