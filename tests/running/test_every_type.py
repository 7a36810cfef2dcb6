"""Random tables over every type, under nasty names, out of every kind of source: published as they must be, or not."""

from __future__ import annotations

import random
import re
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from oracle import parse_set
from strategies import draws, search, some

import ldiv_db

#: A type with texts that become its values, those that are out of the ordinary last.
TYPES: dict[str, list[str]] = {
    "TINYINT": ["0", "1", "2", "-5", "7", "127", "-128"],
    "SMALLINT": ["0", "1", "20", "-500", "32767", "-32768"],
    "INTEGER": ["0", "1", "20", "-500", "2147483647", "-2147483648"],
    "BIGINT": ["0", "1", "20", "-500", "9223372036854775807", "-9223372036854775808"],
    "HUGEINT": ["0", "1", "20", "-500", str(2**127 - 1), str(-(2**127))],
    "UTINYINT": ["0", "1", "20", "255"],
    "USMALLINT": ["0", "1", "20", "65535"],
    "UINTEGER": ["0", "1", "20", "4294967295"],
    "UBIGINT": ["0", "1", "20", str(2**64 - 1)],
    "UHUGEINT": ["0", "1", "20", str(2**128 - 1)],
    "DECIMAL(4,1)": ["0", "1.5", "-3.2", "999.9", "-999.9"],
    "DECIMAL(38,10)": ["0", "1.5", "-3.2", "9" * 28 + ".9999999999", "-" + "9" * 28],
    "FLOAT": ["0", "1.5", "-3.25", "3.4e38", "-0.0", "1e-45", "inf", "-inf", "nan"],
    "DOUBLE": [
        *("0", "1.5", "-3.25", "1e300", "-0.0", "5e-324", "1.7976931348623157e308", "-1.7e308", "inf"),
        *("-inf", "nan"),
    ],
    "VARCHAR": [
        *("a", "b", "ab", "é ü", "it's", 'say "x"', "*", "NULL", "[1 .. 2]", "a*", "1;2", "x\ny", "", " a "),
        *("🙂", "a\x01b"),
    ],
    "BOOLEAN": ["true", "false"],
    "DATE": [
        *("2020-01-31", "2020-02-29", "1969-12-31", "0001-01-01", "9999-12-31", "0044-03-15 (BC)"),
        *("infinity", "-infinity"),
    ],
    "TIMESTAMP": [
        *("2020-01-31 10:00:00", "2020-02-29 23:59:59.999999", "1969-12-31 00:00:00"),
        *("0044-03-15 (BC) 00:00:00", "infinity"),
    ],
    "TIMESTAMP_S": ["2020-01-31 10:00:00", "2020-02-29 23:59:59", "1969-12-31 00:00:00"],
    "TIMESTAMP_MS": ["2020-01-31 10:00:00.001", "2020-02-29 23:59:59.999", "1969-12-31 00:00:00"],
    "TIMESTAMP_NS": ["2020-01-31 10:00:00.000000001", "2020-01-31 10:00:00.000000002", "1969-12-31 00:00:00"],
    "TIMESTAMPTZ": ["2020-01-31 10:00:00+00", "2020-02-29 23:59:59.999999+02", "1969-12-31 00:00:00-11", "infinity"],
    "TIME": ["10:00:00", "23:59:59.999999", "00:00:00"],
    "TIMETZ": ["10:00:00+00", "23:59:59+02", "00:00:00-11"],
    "INTERVAL": ["1 day", "24 hours", "1 month", "30 days", "5 years"],
    "ENUM('low', 'mid', 'high')": ["low", "mid", "high"],
    "UUID": [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "12345678-1234-1234-1234-123456789012",
    ],
    "BLOB": ["abc", "\\x00\\xFF", "\\x27", ""],
    "BIT": ["0", "1", "0101", "11111111111"],
    "INTEGER[]": ["[]", "[1]", "[1, NULL]", "[2, 1]"],
    "INTEGER[2]": ["[1, 2]", "[2, 1]", "[NULL, 1]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': x}", "{'a': 2, 'b': NULL}"],
    "MAP(VARCHAR, INTEGER)": ["{a=1}", "{a=1, b=2}", "{}"],
    "JSON": ['{"a": 1}', "[]", '"x"', "1"],
}
NO_ORDER = ("VARCHAR", "BOOLEAN", "TIME", "TIMETZ", "INTERVAL", "UUID", "BLOB", "BIT", "JSON")
NESTED = ("ENUM", "INTEGER[", "STRUCT", "MAP")
ORDERED = [kind for kind in TYPES if kind not in NO_ORDER and not kind.startswith(NESTED)]
TIMES = [kind for kind in TYPES if kind.startswith(("DATE", "TIMESTAMP"))]
NAMES = [
    *("age", "Zip Code", 'he said "no"', "it's", "select", "GROUP", "straße", "年齢", "a.b", "a;b--", "%s", "{x}"),
    *("q1", "s1", "code", "row_id", "class", "value", "NULL", "$p1", "r"),
]


@dataclass
class Table:
    """A source with its policy: columns by name, with their types; rows as texts."""

    columns: dict[str, str]
    rows: list[list[str | None]]
    policy: dict[str, Any]
    qi: list[str]
    folder: Path
    relation: str = ""
    trees: dict[str, str] = field(default_factory=dict)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def value(text: str | None, kind: str) -> str:
    return f"CAST(NULL AS {kind})" if text is None else f"CAST({literal(text)} AS {kind})"


def make(draw: random.Random, folder: Path, kinds: list[str], kept: str, sensitive: str, plain: bool) -> Table:
    """A table whose quasi-identifiers have `kinds`; `plain` leaves out odd values, and NULLs."""
    names = [*draw.sample(NAMES, len(kinds) + 2), "rid"]
    columns = dict(zip(names, [*kinds, sensitive, kept, "INTEGER"], strict=True))
    n = draw.randint(6, 24)
    pools = [
        TYPES[kind][:3] if plain else draw.sample(TYPES[kind], draw.randint(2, len(TYPES[kind])))
        for kind in [*kinds, kept]
    ]
    params = 0 if plain else draw.choice([0, 0.2])
    values = TYPES[sensitive]
    rows: list[list[str | None]] = []
    for i in range(n):
        row = [None if draw.random() < params else draw.choice(pool) for pool in pools]
        secret = None if draw.random() < params / 3 else values[i % min(len(values), 4)]
        rows.append([*row[:-1], secret, row[-1], str(i)])
    policy = {
        "source": "", "target": "out.released", "sensitive": [names[-3]], "keep": [names[-2], "rid"],
        "quasi_identifiers": {}, "require": [{"unique_distinct": 2}], "seed": draw.randint(0, 9),
        "nulls": draw.choice(["value", "suppress", "reject"]),
        "nulls_sensitive": draw.choice(["value", "suppress", "reject"]), "output": {"types": ["keep", "text"][n % 2]},
        "algorithm": {"name": "bsgi", "select": draw.choice(["bisect", "bisect", "refine", "greedy"]),
                      "residue": draw.choice(["suppress", "incorporate"])},
    }  # fmt: skip
    return Table(columns, rows, policy, names[: len(kinds)], folder)


def place(draw: random.Random, con: Any, table: Table, kind: str) -> None:
    """Make the source: a table in a schema, a view of it, or a file."""
    schema, name = draw.sample(NAMES, 2)
    con.execute(f"CREATE SCHEMA {quoted(schema)}")
    relation = f"{quoted(schema)}.{quoted(name)}"
    rows = [", ".join(map(value, row, table.columns.values())) for row in table.rows]
    columns = ", ".join(f"{quoted(column)} {type_}" for column, type_ in table.columns.items())
    con.execute(f"CREATE TABLE {relation} ({columns})")
    con.execute(f"INSERT INTO {relation} VALUES {', '.join(f'({row})' for row in rows)}")
    table.policy["source"] = relation
    if kind == "view":
        con.execute(f"CREATE VIEW {quoted('v ' + name)} AS FROM {relation}")
        table.policy["source"] = relation = quoted("v " + name)
    if kind in ("parquet", "csv"):
        con.execute(f"COPY {relation} TO '{table.folder}/s.{kind}' (FORMAT {kind})")
        table.policy["source"] = f"s.{kind}"
        relation = f"read_{kind}('{table.folder}/s.{kind}')"
    table.relation = relation


def settle(draw: random.Random, con: Any, table: Table, ways: dict[str, str] | None = None) -> None:
    """How every quasi-identifier is generalised, as its type allows or, now and then, does not."""
    for i, name in enumerate(table.qi):
        kind = table.columns[name]
        way = (ways or {}).get(name) or draw.choice(
            ["numeric"] * 4 * (kind in ORDERED)
            + ["dates"] * 3 * (kind in TIMES)
            + ["tree", "tree", "tree", "prefix", "open", draw.choice(["ranges", "prefix", "tree"])]
        )
        texts = [
            text
            for (text,) in read(
                con,
                f"SELECT DISTINCT CAST({quoted(name)} AS VARCHAR) FROM {table.relation}"
                f" WHERE {quoted(name)} IS NOT NULL ORDER BY 1",
            )
        ]
        if way == "tree":
            (table.folder / f"{i}.yml").write_text(
                yaml.safe_dump({"(all)": texts}, allow_unicode=True), encoding="utf-8"
            )
        table.policy["quasi_identifiers"][name] = {
            "numeric": {"numeric": True},
            "dates": {
                "taxonomy": {"dates": draw.choice([["day", "month", "year"], ["month", "quarter"], ["year", "decade"]])}
            },
            "tree": {"taxonomy": {"file": f"{i}.yml"}},
            "prefix": {"taxonomy": {"prefix": draw.choice([[3, 1], [10, 4], [1]])}},
            "ranges": {"taxonomy": {"ranges": [10, 100], "origin": 3}},
            "open": {},
        }[way]


def read(con: Any, sql: str) -> list[Any]:
    """Rows of texts, the two zeros being one."""
    return [tuple("0.0" if text == "-0.0" else text for text in row) for row in con.execute(sql).fetchall()]


def covers(label: str | None, texts: list[str | None], text: str | None, way: dict[str, Any]) -> bool:
    """Whether a published label covers a value; `texts` are all values of its column in their order."""
    if label and label.startswith("{") and not way:
        # A whole number of floating point is published without a point.
        return (text and re.sub(r"[.]0$", "", text)) in parse_set(label)
    if label is None or text is None:
        return label == text or label in ("*", "(all)")
    if label in (text, "*", "(all)"):
        return True
    spec = way.get("taxonomy", {})
    if "prefix" in spec:
        return label.endswith("*") and text.startswith(label[:-1])
    if "dates" in spec:
        year = re.match(r"(-?\d+)", text)[1]
        if label.endswith("s"):
            return year[:-1] == label[:-2]
        if "-Q" in label:
            return label == f"{int(year)}-Q{(int(text[len(year) + 1 : len(year) + 3]) + 2) // 3}"
        return text.startswith(label) or (label.isdigit() and int(label) == int(year))
    if "ranges" in spec:
        low, high, end = re.fullmatch(r"\[(-?[\d.]+) \.\. (-?[\d.]+)([\])])", label).groups()
        number = Decimal(text)
        return Decimal(low) <= number <= Decimal(high) if end == "]" else Decimal(low) <= number < Decimal(high)
    places = [text and re.sub(r"[.]0$", "", text) for text in texts]
    low, _, high = label[1:-1].partition(" .. ") if label.startswith("[") else (label, "", label)
    ends = [places.index(re.sub(r"[.]0$", "", end)) for end in (low, high)]
    return ends[0] <= texts.index(text) <= ends[1]


def verify(con: Any, table: Table, result: Any) -> None:
    """Assert all that must be true of a release, whatever the types."""
    secret, note = table.policy["sensitive"][0], table.policy["keep"][0]
    released = con.execute("SELECT count(*), count(DISTINCT rid) FROM out.released").fetchone()
    assert released[0] == released[1] == result.loss.rows_published
    assert result.loss.rows_published + result.loss.rows_suppressed == len(table.rows)
    same = " AND ".join(f"o.{quoted(name)} IS NOT DISTINCT FROM p.{quoted(name)}" for name in (secret, note))
    (kept,) = con.execute(
        f"SELECT count(*) FROM out.released AS p JOIN {table.relation} AS o USING (rid) WHERE {same}"
    ).fetchone()
    assert kept == result.loss.rows_published
    worst = con.execute(
        f"SELECT min(n), max(n - d) FROM (SELECT count(*) AS n, count(DISTINCT {quoted(secret)})"
        f" + max(CASE WHEN {quoted(secret)} IS NULL THEN 1 ELSE 0 END) AS d FROM out.released GROUP BY class_id)"
    ).fetchone()
    assert worst[0] >= 2 and worst[1] == 0
    for name in table.qi:
        column = quoted(name)
        texts = [
            text
            for (text,) in read(
                con,
                f"SELECT CAST(x AS VARCHAR) FROM (SELECT DISTINCT {column} AS x FROM {table.relation}"
                f" WHERE {column} IS NOT NULL) ORDER BY x",
            )
        ]
        pairs = read(
            con,
            f"SELECT DISTINCT CAST(p.{column} AS VARCHAR), CAST(o.{column} AS VARCHAR) FROM out.released AS p"
            f" JOIN {table.relation} AS o USING (rid)",
        )
        for label, text in pairs:
            assert covers(label, texts, text, table.policy["quasi_identifiers"][name]), (name, label, text)


def publish(con: Any, table: Table, snapshot: Any) -> bool:
    """Whether the table was published, as it must be, and not refused; then nothing was changed."""
    before = snapshot(con)
    try:
        result = ldiv_db.run(con, table.policy, table.folder)
    except (ldiv_db.PolicyError, ldiv_db.InfeasibleError) as error:
        assert str(error) and snapshot(con) == before
        return False
    verify(con, table, result)
    return True


def texts_of(con: Any) -> dict[str, Any]:
    """Everything that stays in the database, as texts."""
    names = con.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL"
    ).fetchall()
    rows = {
        n: con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {quoted(n[0])}.{quoted(n[1])} ORDER BY ALL").fetchall()
        for n in names
    }
    return {"names": names, "rows": rows}


COMPARED = [kind for kind in TYPES if kind != "INTERVAL"]


@pytest.mark.parametrize("sensitive", some(["TIMESTAMP", *COMPARED]))
def test_every_type_is_published_as_it_was(con, tmp_path, sensitive):
    """As a sensitive attribute and as a column that is kept."""
    draw = random.Random(sensitive)
    table = make(draw, tmp_path, ["INTEGER"], sensitive, sensitive, plain=True)
    place(draw, con, table, "table")
    settle(draw, con, table, {table.qi[0]: "numeric"})
    table.policy["require"] = [{"unique_distinct": 2}]
    assert publish(con, table, texts_of)
    kinds = {row[0]: row[1] for row in con.execute("DESCRIBE out.released").fetchall()}
    original = {row[0]: row[1] for row in con.execute(f"DESCRIBE {table.relation}").fetchall()}
    for name in (table.policy["sensitive"][0], table.policy["keep"][0]):
        assert kinds[name] == ("VARCHAR" if original[name].startswith("ENUM(") else original[name])


FIRST = [("DATE", "numeric"), ("DECIMAL(4,1)", "tree"), ("BLOB", "numeric")]
WAYS = [*FIRST, *((kind, way) for kind in TYPES for way in ("numeric", "tree", "prefix", "open"))]


@pytest.mark.parametrize(("kind", "way"), some(WAYS, len(FIRST)))
def test_every_type_is_generalised_or_refused(con, tmp_path, kind, way):
    draw = random.Random(kind + way)
    table = make(draw, tmp_path, [kind], "VARCHAR", "VARCHAR", plain=True)
    place(draw, con, table, "table")
    settle(draw, con, table, {table.qi[0]: way})
    assert publish(con, table, texts_of) == (kind in ORDERED if way == "numeric" else kind in COMPARED)


YEARS = {"taxonomy": {"dates": ["day", "year"]}}


@pytest.mark.parametrize(
    ("kind", "texts", "way", "says"),
    [
        ("DATE", ["2020-01-01", "infinity"], {"numeric": True}, "which no range covers"),
        ("TIMESTAMPTZ", ["2020-01-01 00:00:00+00", "-infinity"], {"numeric": True}, "which no range covers"),
        ("DATE", ["2020-01-01", "infinity"], YEARS, "which no range covers"),
        ("DATE", ["2020-01-01", "0044-03-15 (BC)"], YEARS, "years outside 1 to 9999"),
        ("TIMESTAMP", ["2020-01-01", "10000-01-01"], YEARS, "years outside 1 to 9999"),
        ("DOUBLE", ["1", "nan"], {"numeric": True}, "which no range covers"),
        ("DOUBLE", ["-1.7e308", "1.7e308"], {"numeric": True}, "too far apart"),
        ("HUGEINT", [str(-(2**126)), str(2**126)], {"numeric": True}, "too far apart"),
        ("INTERVAL", ["1 day", "24 hours"], {"taxonomy": {"prefix": [1]}}, "1 day and 24 hours are equal"),
    ],
)
def test_values_that_have_no_place_are_refused(con, kind, texts, way, says):
    rows = ", ".join(f"({value(texts[i % 2], kind)}, {i % 3}, {i})" for i in range(12))
    con.execute("CREATE SCHEMA out; CREATE TABLE t AS FROM (VALUES " + rows + ") AS v(x, s, rid)")
    before = texts_of(con)
    policy = {"source": "t", "target": "out.released", "quasi_identifiers": {"x": way}, "sensitive": ["s"],
              "keep": ["rid"], "require": [{"distinct": 2}]}  # fmt: skip
    with pytest.raises(ldiv_db.PolicyError, match=says):
        ldiv_db.run(con, policy)
    assert texts_of(con) == before


def test_the_first_and_the_last_day_have_a_place(con):
    days = ["0001-01-01", "9999-12-31"]
    rows = ", ".join(f"({value(days[i % 2], 'DATE')}, {i % 3}, {i})" for i in range(12))
    con.execute("CREATE TABLE t AS FROM (VALUES " + rows + ") AS v(x, s, rid)")
    policy = {"source": "t", "target": "released", "quasi_identifiers": {"x": YEARS}, "sensitive": ["s"],
              "keep": ["rid"], "require": [{"distinct": 2}], "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy)
    published = {x for (x,) in con.execute("SELECT DISTINCT CAST(x AS VARCHAR) FROM released").fetchall()}
    assert published <= {*days, "0001", "1", "9999", "*"}


@pytest.mark.parametrize("role", some(["qi", "sensitive", "keep"], 1))
def test_the_two_zeros_are_told_apart_in_whatever_order_rows_stand(role):
    """They are equal, so which of them is published must not depend on the order: a row's own, of a range the plain."""
    released = set()
    for order in ("rid", "rid DESC"):
        with duckdb.connect() as con:
            zero = "CASE WHEN i % 2 = 0 THEN -0.0::DOUBLE ELSE 0.0::DOUBLE END"
            con.execute(
                f"CREATE TABLE t AS SELECT CASE WHEN i < 6 THEN {zero} ELSE i END AS z, (i // 2 % 3)::VARCHAR AS v,"
                f" i AS rid FROM range(12) AS r(i) ORDER BY {order}"
            )
            keys = {"z" if role == "qi" else "v": {"numeric": True} if role == "qi" else {"taxonomy": {"prefix": [1]}}}
            roles = {"sensitive": ["z" if role == "sensitive" else "v" if role == "qi" else "rid"]}
            rest = [name for name in ("z", "v", "rid") if name not in keys and name not in roles["sensitive"]]
            policy = {"source": "t", "target": "released", "quasi_identifiers": keys, **roles, "keep": rest}
            algorithm = {"name": "bsgi", "select": "bisect", "residue": "suppress"}
            ldiv_db.run(con, policy | {"require": [{"distinct": 2}], "algorithm": algorithm})
            released.add(str(con.execute("SELECT COLUMNS(*)::VARCHAR FROM released").fetchall()))
    assert len(released) == 1 and released.pop().count("'-0.0'") == (0 if role == "qi" else 3)


@search(3, draw=draws)
def test_random_tables_are_published_or_refused(draw):
    kinds = [draw.choice(list(TYPES)) for _ in range(draw.randint(1, 3))]
    with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
        table = make(draw, Path(folder), kinds, draw.choice(list(TYPES)), draw.choice(list(TYPES)), plain=False)
        source = draw.choice(["table", "table", "view", "parquet", "csv"])
        place(draw, con, table, source)
        settle(draw, con, table)
        publish(con, table, texts_of)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numeric": True}, "ranges need numbers, dates or timestamps"),
        ({"taxonomy": {"ranges": [5]}}, "ranges need numbers"),
        ({"taxonomy": {"dates": ["day"]}}, "need dates or timestamps"),
        ({"taxonomy": {"dates": ["weeks"]}}, "no unit 'weeks'"),
        ({"taxonomy": {"dates": ["week", "month"]}}, "no week lies in one month"),
        ({"taxonomy": {"dates": ["year", "day"]}}, "rising units"),
        ({"taxonomy": {"prefix": [1, 3]}}, "falling lengths"),
        ({"taxonomy": {"prefix": [0]}}, "takes a number from 1"),
        ({"taxonomy": {"prefix": [2], "ranges": [2]}}, "takes one of"),
    ],
)
def test_settings_that_do_not_fit_the_type(con, settings, message):
    con.execute("CREATE TABLE t AS SELECT CAST(i AS VARCHAR) AS x, 'd' || (i * 7 % 5) AS disease FROM range(24) r(i)")
    policy = {"source": "t", "target": "released", "sensitive": ["disease"], "require": [{"unique_distinct": 2}]}
    with pytest.raises(ldiv_db.PolicyError, match=message):
        ldiv_db.run(con, policy | {"quasi_identifiers": {"x": settings}})
    assert con.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall() == [("t",)]
