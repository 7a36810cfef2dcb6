"""What bad input is drawn from: names, values, columns, sources, taxonomies, catalogs, targets, options."""

from __future__ import annotations

import datetime
import math
from typing import Any

NAMES = [
    *("", " ", "a b", 'q"q', "it's", "x; DROP TABLE patients", "select", "NULL", "*", "{a, b}", "age"),
    *("AGE", "class_id", "é", "😀", "\ud800", "\u202e", "a\nb", "tab\there", "x" * 300, "x" * 20_000),
    *("main", "ldiv", "a.b", "a.b.c.d", "%s", "{}", "nul\0nul", "0", "-", "age_min", "ldiv_row", "row_id"),
    *("value", "rows"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 100, 10**9, 2**31, 2**63, 2**64, 10**30, 10**400, 0.5, 1e-9),
    *(1e-300, 1e300, 1e308, math.nan, math.inf, -math.inf, [], {}, [[]], [None], {"": None}),
    *({"a": {"b": {"c": 1}}}, [1, [2, [3]]], datetime.date(2020, 1, 1), b"\x00\xff", "auto", "none"),
    *("1e999", "0x10", "1/0", "1e999999999"),
    *NAMES,
]
#: Columns in place of one of the table's: expressions over its row `i`.
EXPRESSIONS = [
    *("NULL", "NULL::INTEGER", "1", "i", "i::DOUBLE", "'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::FLOAT"),
    *("-0.0 * i", "1e308 * (i % 2)", "CASE WHEN i % 2 = 0 THEN 1e308 ELSE -1e308 END", "1e-308 * i"),
    "170141183460469231731687303715884105727 - i",
    "CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END * 170141183460469231731687303715884105727",
    *("i::UHUGEINT + '340282366920938463463374607431768211000'::UHUGEINT", "i::UBIGINT"),
    *("i::DECIMAL(38, 20)", "i::TINYINT", "i % 2 = 0", "DATE 'infinity'", "DATE '-infinity'"),
    *("DATE '0044-03-15 (BC)' + i::INTEGER", "DATE '5877642-06-25' + 0 * i::INTEGER"),
    *("DATE '2020-01-01' + i::INTEGER", "TIMESTAMP 'infinity'", "TIMESTAMP '290309-12-22 (BC) 00:00:00'"),
    *("TIMESTAMP '2020-01-01' + i * INTERVAL 1 HOUR", "TIMESTAMPTZ '2020-01-01 00:00:00+02'"),
    *("TIME '12:00:00'", "INTERVAL 1 DAY * i", "[i]", "{'a': i}", "MAP {'a': i}", "[[NULL]]"),
    *("'\\x00\\xFF'::BLOB", "'101'::BIT", "uuid()"),
    *("CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END::ENUM('a', 'b', 'c')", "''", "' '", "'NULL'", "'*'"),
    *("'{a, b}'", "'[1-2]'", "chr(0)", "'a' || chr(0) || i", "'😀' || i % 3", "repeat('x', 200000)"),
    *("'W' || i % 2", "CASE WHEN i % 3 > 0 THEN 'D' || i % 3 END", "i % 3", "to_json({'a': i})"),
    *("'1' || i", "random()"),
]
SOURCES = {
    "a view": ("v", "CREATE VIEW v AS FROM patients"),
    "a view of a view": ("v2", "CREATE VIEW v AS FROM patients; CREATE VIEW v2 AS FROM v WHERE age > 0"),
    "a view that draws": (
        "v",
        "CREATE VIEW v AS SELECT * REPLACE ((age + 10 * random())::INTEGER AS age) FROM patients",
    ),
    "a view that fails on rows": ("v", "CREATE VIEW v AS SELECT * REPLACE (name::INTEGER AS age) FROM patients"),
    "a view that raises": ("v", "CREATE VIEW v AS SELECT * REPLACE (error('in vain') AS ward) FROM patients"),
    "a view that overflows": (
        "v",
        "CREATE VIEW v AS SELECT * REPLACE ((age + 2147483640)::INTEGER AS age) FROM patients",
    ),
    "a view of a table that is gone": ("v", "CREATE TABLE g AS FROM patients; CREATE VIEW v AS FROM g; DROP TABLE g"),
    "a view of a column that is gone": (
        "v",
        "CREATE TABLE g AS FROM patients; CREATE VIEW v AS SELECT name, age FROM g; ALTER TABLE g DROP age",
    ),
    "a view of a file that is gone": ("v", "CREATE TABLE g AS FROM patients; CREATE VIEW v AS FROM g; DROP TABLE g;"),
    "a macro": ("m", "CREATE MACRO m() AS TABLE FROM patients"),
    "a view of a macro": ("v", "CREATE MACRO m() AS TABLE FROM patients; CREATE VIEW v AS FROM m()"),
    "an empty table": ("empty", ""),
    "one row": ("one", "CREATE TABLE one AS FROM patients LIMIT 1"),
    "equal rows": ("equal", "CREATE TABLE equal AS SELECT p.* FROM (FROM patients LIMIT 1) AS p, range(20)"),
    "a generated column": (
        "g",
        "CREATE TABLE g (name VARCHAR, age INTEGER, country VARCHAR, disease VARCHAR, ward VARCHAR AS (country));"
        " INSERT INTO g SELECT name, age, country, disease FROM patients",
    ),
    "a schema of odd name": ('"s.s"."t""t"', 'CREATE SCHEMA "s.s"; CREATE TABLE "s.s"."t""t" AS FROM patients'),
    "a column more": ("w", "CREATE TABLE w AS SELECT *, 1 AS more FROM patients"),
    "columns with odd names": (
        "w",
        'CREATE TABLE w AS SELECT name, age, country, disease, ward AS "w""w d" FROM patients',
    ),
    "a system table": ("information_schema.tables", ""),
    "a table function": ("range(10)", ""),
    "the catalog": ("ldiv.run", "CREATE SCHEMA ldiv; CREATE TABLE ldiv.run (x INTEGER)"),
}
CSV = "name,age,country,disease,ward\nP1,20,Norway,Flu,A\nP2,30,Italy,Cold,B\nP3,40,Japan,Cough,A\n"
SOURCE_FILES: dict[str, bytes] = {
    "ok.csv": CSV.encode(),
    "empty.csv": b"",
    "heads.csv": b"name,age,country,disease,ward\n",
    "ragged.csv": CSV.encode() + b"P4,50\nP5,60,Italy,Flu,A,more,and more\n",
    "late.csv": CSV.encode()
    + b"".join(b"P%d,20,Norway,Flu,A\n" % i for i in range(30_000))
    + b"P,not a number,Italy,Flu,A\n",
    "wide.csv": CSV.encode() + b"P4,50," + b"x" * 3_000_000 + b",Flu,A\n",
    "latin.csv": CSV.encode() + b"P4,50,K\xf6ln,Flu,A\n",
    "nul.csv": CSV.encode() + b"P4,50,\x00\x00,Flu,A\n",
    "quote.csv": CSV.encode() + b'P4,50,"Italy,Flu,A\n',
    "twice.csv": b"name,age,age,country,disease,ward\nP1,20,21,Norway,Flu,A\n",
    "t.json": b'[{"name": "P1", "age": 1, "country": "Italy", "disease": "Flu", "ward": null}, {"name": [1]}]',
    "half.json": b'[{"name": "P1"}, {"na',
    "deep.json": b"[" * 2_000,
    "half.parquet": b"PAR1" + b"\x00" * 100,
    "empty.parquet": b"",
}
LEAVES = ("Norway", "Italy", "Japan", "Korea")
TAXONOMIES: dict[str, str | bytes] = {
    "missing.csv": "Norway;*\nItaly;*\n",
    "twice.csv": "Norway;A;*\nNorway;B;*\nItaly;A;*\nJapan;B;*\nKorea;B;*\n",
    "empty label.csv": "Norway;;*\nItaly;;*\nJapan;;*\nKorea;;*\n",
    "ragged.csv": "Norway;Europe;*\nItaly;*\nJapan;Asia;Far;*\nKorea;*\n",
    "roots.csv": "Norway\nItaly\nJapan\nKorea\n",
    "deep.csv": "".join(";".join([leaf, *(f"{leaf}{i}" for i in range(500)), "*"]) + "\n" for leaf in LEAVES),
    "deep enough.csv": "".join(";".join([leaf, *(f"{leaf}{i}" for i in range(90)), "*"]) + "\n" for leaf in LEAVES),
    "long field.csv": "Norway;" + "x" * 140_000 + ";*\nItaly;*\nJapan;*\nKorea;*\n",
    "long label.csv": "".join(f"{leaf};{'x' * 60_000};*\n" for leaf in LEAVES),
    "open quote.csv": 'Norway;"*\nItaly;*\n',
    "nul.csv": b"Norway;\x00;*\nItaly;*\nJapan;*\nKorea;*\n",
    "latin.csv": "Nörway;*\n".encode("latin-1"),
    "byte order.csv": "\ufeffNorway;*\r\nItaly;*\r\nJapan;*\r\nKorea;*\r\n",
    "null and star.csv": "Norway;NULL\nItaly;NULL\nJapan;*\nKorea;{a, b}\n",
    "many.csv": "".join(f"{leaf};*\n" for leaf in LEAVES) + "".join(f"L{i};G{i % 9};*\n" for i in range(5_000)),
    "twice many.csv": "".join(f"L{i};G{i % 9};*{i % 7}\n" for i in range(5_000)),
    "cycle.yml": "a: &a [Norway, Italy, Japan, Korea, *a]\n",
    "bomb.yml": "a: &a [x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 8)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "complex key.yml": "? [a, b]\n: [Norway, Italy, Japan, Korea]\n",
    "mapping key.yml": "? {a: b}\n: [Norway, Italy, Japan, Korea]\n",
    "scalars.yml": "1: [Norway, Italy]\ntrue: [Japan]\n2020-01-01: Korea\n",
    "nothing.yml": "a:\n",
    "a list.yml": "[Norway, [Italy, [Japan, Korea]]]\n",
    "tags.yml": "!!set {Norway, Italy, Japan, Korea}\n",
    "object.yml": "!!python/object/apply:os.getcwd []\n",
    "deep.json": "[" * 3_000 + "]" * 3_000,
    "surrogate.json": '{"\\ud800": ["Norway", "Italy", "Japan", "Korea"]}',
    "emoji.json": '{"\\ud83d\\ude00": ["Norway", "Italy", "Japan", "Korea"]}',
    "emoji.yml": "😀: [Norway, Italy, Japan, Korea]\n",
    "null.json": "null",
    "number.json": "7",
    "half.json": '{"a": [',
}
#: Somebody else's things in the catalog's schema, and a database that is called as it is.
CATALOGS = [
    "CREATE SCHEMA ldiv",
    "CREATE SCHEMA ldiv; CREATE TABLE ldiv.migration (x INTEGER)",
    "CREATE SCHEMA ldiv; CREATE VIEW ldiv.migration AS SELECT 1 AS number, 'a' AS name, 'b' AS checksum",
    "CREATE SCHEMA ldiv; CREATE TABLE ldiv.migration (number VARCHAR, name INTEGER, checksum INTEGER)",
    "CREATE SCHEMA ldiv; CREATE TABLE ldiv.run (run_id VARCHAR)",
    "CREATE SCHEMA ldiv; CREATE VIEW ldiv.taxonomy AS SELECT 1 AS name",
    "CREATE SCHEMA ldiv; CREATE TABLE ldiv.release_member (x INTEGER)",
    "CREATE SCHEMA LDIV; CREATE TABLE LDIV.RUN (X INTEGER)",
    "CREATE SCHEMA ldiv; CREATE TABLE ldiv.other (x INTEGER)",
    "CREATE SCHEMA ldiv; CREATE MACRO ldiv.run() AS 1",
    "CREATE SCHEMA ldiv; CREATE SEQUENCE ldiv.run",
    "CREATE SCHEMA ldiv; CREATE TYPE ldiv.run AS ENUM ('a')",
    "CREATE TABLE ldiv (x INTEGER)",
]
TARGETS: list[Any] = [
    *("temp.x", "temp.main.x", "system.x", "system.main.x", "information_schema.x", "pg_catalog.x"),
    *("ldiv.x", "LDIV.x", "hospital.x", "hospital.main.x", "memory.x", "other.main.x", "patients"),
    *("main.PATIENTS", "/dev/full", "/dev/null", "./x", "..", ".", "x.", ".x", '"', '""', '"a""b"', "a b"),
    *("x" * 3_000, "😀", "\ud800", "select", "main.v", {"table": "empty", "if_exists": "append"}),
    *({"table": "empty", "if_exists": "replace"}, {"file": "/dev/full"}, {"file": "/dev/null"}),
    *({"file": "folder.csv"}, {"file": "/dev/full.csv"}, {"file": "no/such.csv"}, {"file": "full.csv"}),
    *({"file": "pipe.csv"}, {"file": "out.csv"}, {"file": "out.parquet"}),
    *({"file": "out.duckdb", "table": "x"}, {"file": "out.duckdb", "table": "temp.x"}),
    *({"file": "out.duckdb", "table": "a.b.c"}, {"file": "hospital.duckdb", "table": "x"}),
    *({"file": "text.duckdb", "table": "x", "if_exists": "replace"}, {"file": "\ud800.csv"}),
    *({"file": "x" * 300 + ".csv"}, {"file": "nul\0.csv"}, {"prefix": "x"}, {"prefix": "/dev/full"}),
    *({"prefix": "temp.x"}, {}),
]
OPTIONS = [
    *(["--threads", number] for number in ("99999999999", "0", "nan", "2000")),
    *(["--memory-limit", size] for size in ("1B", "100KB", "1MB", "99999999999TB", "1e3MB")),
    *(["--temp-dir", place] for place in ("/dev/null", "text.duckdb", "", "x" * 300)),
    *(["--catalog", place] for place in ("/dev/null", "folder.csv", "text.duckdb")),
    *(["--catalog", place] for place in ("no/such.duckdb", "hospital.duckdb", "ours.duckdb")),
    *(["--no-such-option"], ["--json"], ["--kl"]),
]
ALGORITHMS: list[Any] = [
    *({"name": "bsgi", "select": "bisect"}, {"name": "bsgi", "select": "greedy"}, "topdown", "mondrian"),
    *("peel", "stratified", "auto", "fast", "tp", "tp_plus", "hilbert"),
    {"name": "cuts", "scheme": "vioRec"},
    {"name": "cuts", "metric": "DM", "scheme": "allSA", "time_limit": 5, "unproved": "publish"},
    *("incognito", "tds", {"name": "annealing", "steps": 20}, "matching"),
]
REQUIREMENTS: list[dict[str, Any]] = [
    *({"distinct": 2}, {"k": 3}, {"frequency": 2}, {"unique_distinct": 3}, {"entropy": 2}),
    *({"threshold": {"default": 0.6, "Flu": 0.5}}, {"recursive": {"c": 2, "l": 2}}),
    *({"alpha_k": {"alpha": 0.5, "k": 3}}, {"p_sensitive": {"p": 2, "k": 3}}, {"t_closeness": 0.9}),
    {"k": "auto"},
]
SETTINGS: dict[str, list[Any]] = {
    "seed": [0, 2**63 - 1, 2**63, 2**64, 10**30],
    "nulls": ["suppress", "reject"],
    "nulls_sensitive": ["value", "suppress"],
    "suppressed": ["ignore", "unknown"],
    "recode": ["set"],
    "output": [{"class_id": True}, {"bounds": True}, {"class_id": False}],
    "individual": ["name", "ward", "age", "none"],
    "key": ["name", "ward"],
}
SERIES = "decomposition_plus decomposition anatomy"
#: Options of algorithms, with those that take them.
ALGORITHM_OPTIONS: dict[str, tuple[str, list[Any]]] = {
    "exchange": ("bsgi", [0, 100, 101]),
    "select": ("bsgi", ["refine"]),
    "residue": ("bsgi peel", ["suppress", "incorporate"]),
    "split": ("mondrian", ["relaxed"]),
    "form": ("tp tp_plus hilbert", ["ranges"]),
    "coarsen": ("tp tp_plus", ["auto", {"age": 1}, {"age": 10**30}]),
    "steps": ("annealing", [1, 10**9]),
    "top": ("cuts annealing", [1, 2, 1000, 1001, 10**20]),
    "time_limit": ("cuts annealing", [1e-9, 1e308, 0]),
    "metric": ("cuts incognito", ["LM", "DM", "CM"]),
    "class": ("tds cuts", ["ward", "none"]),
    "scheme": ("cuts annealing", ["none", "allRec", "vioSA"]),
    "starvation": (SERIES, [0, 10**30]),
    "primary": (SERIES, ["disease"]),
}
TAXONOMY_KINDS: dict[str, list[Any]] = {
    "ranges": [[1e300], [5, 1e300], [5, 10], [1e-300], [0.1, 0.3], [1, 3, 7]],
    "prefix": [[1], [2, 1], [10**6], [10**30], list(range(2_000, 0, -1))],
    "dates": [["day", "year"], ["year", "day"], ["decade"]],
    "file": ["/dev/zero", "pipe", "folder.csv", ".", "", "\ud800", "x" * 300 + ".csv", "hospital.duckdb"],
}
#: Words of commands, each of which may be an odd one as well.
WORDS = {
    "TABLE": ["patients", "main.patients", "empty", "nobody", "temp.x", "\ud800", "", "v", "ok.csv"],
    "COLUMN": ["age", "age,country", "disease"],
    "VALUE": ["disease", "disease", "age"],
    "REQUIRE": ["k:1", "distinct:3", "k:99", "t_closeness:0.1", "threshold:0.5,Flu=0.1", "recursive:c=2,l=3"],
    "INTO": ["x", "bad.x", "ldiv.x", "temp.x", "information_schema.x", "/dev/full", "hospital.x", "patients"],
    "CATEGORIES": ["[[Flu, Cancer], [Hepatitis, Asthma]]", "[[x]", "pipe", "/dev/zero", "a: &a [*a]", "[[[a]], [b]]"],
    "PEOPLE": ["patients", "pipe.csv", "v", "{policy}"],
    "BESIDE": ["--also", "--definetti", "--population", "--also-policy"],
    "NUMBER": ["1", "2", "10", "0", "999999999999"],
    "LIMIT": ["disease:2"],
    "FILE": ["new.yml", "/dev/full", "no/x.yml", "folder.csv", "pipe", "/dev/null", "/dev/zero", "hospital.duckdb"],
    "DATABASE": ["folder.csv", "/dev/null", "text.duckdb", "none.duckdb", "", "pipe"],
    "WIDTHS": ["5", "1e300", "nan"],
    "END": ["9", "1e308"],
}
CALLS = """\
plan {database} {policy}
plan {database} {policy} --sql
run {database} {policy}
run {database} {policy} --kl --json
run DATABASE {policy}
run {database} FILE
check {database} TABLE --qi COLUMN --sensitive VALUE --require REQUIRE
check {database} TABLE --qi COLUMN --sensitive VALUE --require REQUIRE --into INTO
check {database} TABLE --qi COLUMN --sensitive VALUE --require distinct_alpha:l=2,alpha=1 --categories CATEGORIES
check {database} TABLE --qi COLUMN --sensitive VALUE --require REQUIRE --violations --most NUMBER
attack {database} TABLE --qi COLUMN --sensitive VALUE --require REQUIRE --m NUMBER
attack {database} TABLE --policy {policy} --known PEOPLE BESIDE PEOPLE
attack {database} TABLE --qi COLUMN --sensitive VALUE --sensitive-table PEOPLE --group ODD
measure {database} TABLE --policy {policy} --queries NUMBER
measure {database} TABLE --source patients --qi age --sensitive disease --l NUMBER
profile {database} TABLE --sensitive VALUE
profile {database} TABLE --sensitive disease --policy FILE
taxonomy import {database} ODD country.csv
taxonomy import {database} x --table TABLE --child country --parent COLUMN
taxonomy build {database} x --ranges WIDTHS --from 0 --to END
taxonomy show {database} ODD
taxonomy list {database}
release list {database}
release show {database} ODD
release check {database} --table TABLE --key name --group COLUMN --sensitive LIMIT
sql recode {database} ODD --dialect duckdb
migrate {database}
""".splitlines()
