"""The audit as one statement: run by other databases it finds what `ldiv check` finds, class by class."""

import datetime
import json
import math
import random
import re
from collections import Counter
from decimal import Decimal

import duckdb
import pytest
import sqlglot
from own_names import resolve
from servers import SQLite, started
from sqlglot import exp
from strategies import search, seeds, some

import ldiv_db
from ldiv_db.auditing.check import CheckRequest, check
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.subject import Pair
from ldiv_db.auditing.violations import Violations
from ldiv_db.database.dbt_macros import count_failures
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import DIALECTS
from ldiv_db.policy.reading import read_requirements, read_sensitive

TEXTS = ["flu", "HIV", "é'\\", "e\u0301", "FLU", "", "*", "null"]
KINDS = {
    "text": ("VARCHAR", lambda draw: draw.choice(TEXTS)),
    "integer": ("INTEGER", lambda draw: draw.choice([-5, 0, 1, 2, 3, 10, 100])),
    "date": ("DATE", lambda draw: datetime.date(draw.choice([1920, 2020]), 1, draw.choice([1, 2, 3, 9, 30]))),
    "decimal": ("DECIMAL(12,2)", lambda draw: Decimal(draw.choice(["0.10", "0.30", "0.50", "7.25", "-1.00"]))),
}
TREE = {
    "Any": {
        "flus": {"flu": {}, "FLU": {}},
        "HIV": {},
        "rest": {t: {} for t in TEXTS if t not in ("flu", "FLU", "HIV", "*")},
        "*": {},
    }
}


class Case:
    """A random published table and a question about it."""

    def __init__(self, seed, folder, plain_names=False):
        draw = random.Random(seed)
        self.zip, self.id = ("zip_code", "kind") if plain_names else ("zip code", "select")
        self.kind = draw.choice(list(KINDS))
        self.table = f"released_{self.kind}s" if plain_names else f"released {self.kind}s"
        self.type, one = KINDS[self.kind]
        self.columns = [("age", "text"), (self.zip, "integer"), (self.id, "text"), ("s", self.kind), ("o", "text")]
        rows = draw.choice([0, 1, 2, 7, 40, 120])
        few = draw.choice([1, 2, 4])
        absent = draw.choice([0, 0.2])

        def null(value):
            return None if draw.random() < absent else value

        self.rows = [
            (
                null(draw.choice(["*", "20-29", "ü", ""][:few])), null(draw.randint(1, few)), draw.choice(["x", "*"]),
                null(one(draw)) if draw.random() < 0.7 else one(random.Random(seed)), draw.choice(["p", "q", None]),
            )
            for _ in range(rows)
        ]  # fmt: skip
        self.settings = {"s": {}}
        if draw.random() < 0.3:
            self.settings["o"] = {}
        requirements = self.requirements(draw, folder)
        self.require = read_requirements(draw.sample(requirements, min(3, len(requirements))))
        self.suppressed = draw.choice(["judge", "judge", "ignore", "unknown"])
        if self.suppressed == "unknown":
            self.require = read_requirements(["frequency:2"])
        self.keys = draw.sample(["age", self.zip], draw.choice([1, 2]))
        self.ids = draw.choice([None, self.id])

    def requirements(self, draw, folder):
        least, c = draw.choice([2, 3]), draw.choice(["0.5", "1", "2", "1.7"])
        known = draw.random() < 0.3
        found = [
            {"k": least}, {"distinct": least}, {"unique_distinct": least}, {"entropy": draw.choice([2, 1.5])},
            {"frequency": draw.choice(["1.9", "2", "1.333333333"])}, {"recursive": {"c": c, "l": least}},
            {"alpha_k": {"alpha": draw.choice(["0.5", "0.333333333"]), "k": 2}}, {"p_sensitive": {"p": least, "k": 3}},
            {"t_closeness": {"t": draw.choice(["0.1", "0.25", "0.333"]), "distance": "equal"}},
            {"t_closeness": {"t": draw.choice(["0.1", "0.25"]), "distance": "ordered"}},
            {"beta_likeness": {"beta": draw.choice(["0.5", "1", "2.5"]), "kind": draw.choice(["basic", "enhanced"])}},
            {"delta_disclosure": {"delta": draw.choice(["0.7", "1", "2"]), "log": draw.choice(["2", "e"])}},
        ]  # fmt: skip
        if known:
            found = [requirement | {"others_known": True} for requirement in found]
        mine = []
        if self.kind == "text":
            values = [value for value in TEXTS if draw.random() < 0.3]
            thresholds = {value: draw.choice(["0.3", "0.5"]) for value in values}
            mine.append(
                {"threshold": {"default": "0.6", "absent": "allow", "values": thresholds}}
                if values
                else {"threshold": 0.5}
            )
            if draw.random() < 0.4:
                groups = [TEXTS[:2], TEXTS[2:5], TEXTS[5:]]
                self.settings["s"]["categories"] = groups
                self.settings["s"]["weights"] = draw.choice([[0, "1/3", 1], {"sensitivity": 2}])
                mine = [
                    {"distinct_alpha": {"l": least, "alpha": "1.5"}},
                    {"entropy_alpha": {"l": 1.5, "alpha": 1}},
                    {"recursive_alpha": {"c": c, "l": 2, "alpha": "0.7"}},
                ]
            elif draw.random() < 0.4:
                (folder / "tree.json").write_text(json.dumps(TREE))
                self.settings["s"]["taxonomy"] = {"file": str(folder / "tree.json")}
                mine = [{"t_closeness": {"t": "0.2", "distance": "hierarchical"}}]
        if self.kind == "integer":
            mine = [{"range": {"k": least, "e": 3}}, {"proximity": {"epsilon": 2, "m": 2}}]
        if self.kind == "decimal":
            mine = [{"range": {"k": least, "e": "0.2"}}, {"proximity": {"epsilon": "0.2", "m": 2}}]
        if self.kind == "date":
            mine = [{"range": {"k": least, "e": "8 days"}}, {"proximity": {"epsilon": "1 days", "m": 2}}]
        if draw.random() < 0.25 and self.kind in ("text", "integer", "date") and "categories" not in self.settings["s"]:
            harmless = {"text": ["flu", None], "integer": [0], "date": ["2020-01-01"]}[self.kind]
            self.settings["s"]["harmless"] = harmless
            found = [r for r in found if set(r) & {"k", "distinct", "frequency", "alpha_k", "p_sensitive", "recursive"}]
            return [{**r, "sensitive": "s"} for r in found]
        return [{**r, "sensitive": "s"} for r in [*found, *mine, *mine]]

    def question(self):
        return CheckRequest(self.keys, read_sensitive(self.settings), self.require, self.ids, self.suppressed)


def found_by_check(case):
    con = duckdb.connect(config={"threads": 1})
    table = started("duckdb")
    table.create(case.table, case.columns, case.rows)
    engine = Engine(table.connection)
    found = Violations(engine, labels=True, most=10**6)
    check(engine, Relation((case.table,)), case.question(), found.see)
    con.close()
    names = [*case.keys, *([case.ids] if case.ids else [])]
    return sorted_rows(
        (row["requirement"], row["sensitive"], row["rows"], row["reached"], -row["missing"], *(row[n] for n in names))
        for row in found.rows
    )


def sorted_rows(rows):
    return sorted(rows, key=lambda row: (str(row[0]), str(row[1]), row[2], *map(str, row[5:]), round(row[4], 6)))


def told(row):
    """What is told of a class beside figures; a statement that compares labels by their bytes has them as texts."""
    return row[:3], [None if label is None else str(label) for label in row[5:]]


def assert_same(found, expected):
    assert [told(row) for row in found] == [told(row) for row in expected]
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine[3:5], theirs[3:5], strict=True):
            assert (a is None) is (b is None)
            assert a is None or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def written(requirement, server):
    """The requirement; BigQuery's emulator takes 0.5 within a text for a number, and writes 0.5e0."""
    return re.sub(r"(?<=\d)e0\b", "", requirement) if server.dialect == "bigquery" else requirement


def run_on(server, case, engine):
    server.create(case.table, case.columns, case.rows)
    types = {"s": case.type}
    table = Relation((case.table,))
    sql = check_statement(engine, case.question(), table, server.dialect, types, labels=True)
    return sorted_rows(
        (written(r, server), s, int(n), None if reached is None else float(reached), float(margin), *labels)
        for r, s, n, reached, margin, *labels in server.query(sql)
    )


@search(1, seed=seeds)
def test_a_statement_finds_what_the_audit_finds(seed, server, tmp_path):
    case = Case(seed, tmp_path, server.plain_names)
    with_engine = Engine(duckdb.connect(config={"threads": 1}))
    try:
        found = run_on(server, case, with_engine)
    except PolicyError as error:
        assert (server.dialect, True) in (
            ("sqlite", "exact decimals" in str(error)),
            ("clickhouse", "window" in str(error)),
        )
        return
    assert_same(found, found_by_check(case))


def work_of(require, rows):
    """How often SQLite tells of a hundred instructions while it judges so many rows in classes of four."""
    table, told = SQLite(), []
    released(table, "growing", [(str(i // 4) if i % 40 else None, "abcde"[i % 5]) for i in range(rows)])
    table.connection.set_progress_handler(lambda: told.append(1) and None, 100)
    assert ask(table, "growing", [require])
    return len(told)


@pytest.mark.parametrize(
    "require", some(["frequency:5", "t_closeness:0.1", "k:5", "entropy:5", "recursive:c=1,l=5", "threshold:0.1"], 2)
)
def test_the_work_grows_with_the_rows(require):
    """SQLite nests loops where NULL is to equal NULL: classes that are joined to their rows cost their square."""
    assert work_of(require, 4_000) < 6 * work_of(require, 1_000)


def test_a_statement_has_nothing_that_nothing_reads():
    """Two aggregations judge frequencies, as they would by hand, of values that are told apart by their bytes."""
    question = CheckRequest(["age", "zip"], read_sensitive("s"), read_requirements(["frequency:2"]))
    with duckdb.connect(config={"threads": 1}) as con:
        tree = sqlglot.parse_one(check_statement(Engine(con), question, Relation(("t",)), "duckdb"), read="duckdb")
    steps = {step.alias: {column.alias_or_name for column in step.this.selects} for step in tree.find_all(exp.CTE)}
    assert steps == {
        "read": {"age", "zip", "s"},
        "counts": {"c1", "c2", "rows"},
        "classes": {"rows", "largest"},
        "frequency": {"rows", "reached", "margin"},
    }


def released(server, name, rows, kind="text"):
    server.create(name, [("age", "text"), ("s", kind)], rows)


def ask(server, table, require, settings=None, keys=("age",), **asked):
    settings = read_sensitive(settings or {"s": {}})
    pair = asked.pop("pair", None)
    question = CheckRequest(list(keys), settings, read_requirements(require), pair=pair)
    with duckdb.connect(config={"threads": 1}) as con:
        return server.query(check_statement(Engine(con), question, Relation((table,)), server.dialect, **asked))


def test_what_an_audit_refuses_to_judge_is_a_row(server):
    """A value of no category, and one without a leaf: a statement that said nothing would say that all is well."""
    released(server, "open_values", [("a", "flu"), ("a", "HIV"), ("a", "other"), ("a", None)])
    settings = {"s": {"categories": [["HIV"], ["flu"]]}}
    ((said, column, rows, reached, margin),) = ask(server, "open_values", ["distinct_alpha:l=1,alpha=0"], settings)
    assert said == "open: sensitive.s.categories: list 3 values, and not some of those in the table"
    assert (column, rows, reached, margin) == ("s", 1, None, None)


def test_a_value_without_a_leaf_is_a_row(server, tmp_path):
    released(server, "leafless", [("a", "flu"), ("a", "HIV"), ("b", "other"), ("b", "other")])
    (tmp_path / "tree.json").write_text('{"*": {"flu": {}, "HIV": {}}}')
    settings = {"s": {"taxonomy": {"file": str(tmp_path / "tree.json")}}}
    found = ask(server, "leafless", ["t_closeness:t=1,distance=hierarchical"], settings)
    assert [row[:3] for row in found] == [("open: taxonomy: has no leaf for some of the sensitive values", "s", 1)]


def test_a_pair_is_judged_by_its_groups(server):
    people = [("qit", [("g", "integer"), ("age", "text")], [(1, "a"), (1, "b"), (2, "c"), (2, "d"), (None, "e")])]
    values = [("st", [("g", "integer"), ("s", "text"), ("n", "integer")], [(1, "x", 1), (1, "y", 1), (2, "x", 2),
               (None, "z", 1), (2, "gone", 0)])]  # fmt: skip
    for name, columns, rows in people + values:
        server.create(name, columns, rows)
    pair = Pair(Relation(("st",)), "g", "n")
    found = ask(server, "qit", ["frequency:2"], keys=(), pair=pair, labels=True)
    assert sorted((row[2], float(row[3]), float(row[4]), row[5]) for row in found if row[5]) == [(2, 1, -2, 2)]
    assert [(row[2], row[5]) for row in found if row[5] is None] == [(1, None)]
    server.create("qit", people[0][1], people[0][2][1:])
    found = ask(server, "qit", ["k:1"], keys=(), pair=pair)
    assert [row[:3] for row in found] == [("open: group: some groups differ in size", "s", 1)]


def test_a_pair_of_negative_counts_is_open(server):
    server.create("qit", [("g", "integer")], [(1,)])
    server.create("st", [("g", "integer"), ("s", "text"), ("n", "integer")], [(1, "x", 2), (1, "y", -1)])
    found = ask(server, "qit", ["k:1"], keys=(), pair=Pair(Relation(("st",)), "g", "n"))
    assert [row[:3] for row in found] == [("open: count: some counts are negative", "s", 1)]


def test_rows_alone_and_an_empty_table(server):
    released(server, "alone", [("a", "x"), ("a", "x"), ("b", None)])
    found = ask(server, "alone", ["k:2"], labels=True)
    assert [(row[1], row[2], row[5]) for row in found] == [("s", 1, "b")]
    with duckdb.connect(config={"threads": 1}) as con:
        question = CheckRequest(["age"], {}, read_requirements(["k:2"]))
        sql = check_statement(Engine(con), question, Relation(("alone",)), server.dialect)
    assert [(row[1], row[2]) for row in server.query(sql)] == [(None, 1)]
    released(server, "alone", [])
    assert server.query(sql) == []


def test_a_table_and_columns_may_be_called_like_the_steps(server):
    for table in ("counts", "histogram", "classes"):
        columns = [("rows", "text"), ("value", "text"), ("margin", "text")]
        server.create(table, columns, [("a", "x", "p"), ("a", "y", "p"), ("b", "x", "p")])
        found = ask(server, table, ["distinct:2"], {"value": {}}, keys=["rows", "margin"], labels=True)
        assert [(row[0], row[2], *row[5:]) for row in found] == [("distinct l=2", 1, "b", "p")]
        server.drop(table)


@pytest.mark.slow
def test_many_values_may_be_listed(server):
    """More than SQLite allows SELECTs in a union."""
    if server.dialect == "bigquery":
        pytest.skip("its emulator takes minutes for a list of a thousand")
    values = [f"v{i}" for i in range(1_200)]
    released(server, "many", [("a", value) for value in values])
    settings = {"s": {"categories": [values[:600], values[600:]]}}
    found = ask(server, "many", ["distinct_alpha:l=1201,alpha=1"], settings)
    assert [row[:3] for row in found] == [("distinct_alpha l=1201, alpha=1, weights=[0.0, 1.0]", "s", 1_200)]


def test_a_named_value_may_have_several_lines(server):
    """A margin within it would make it another, of which nothing is asked."""
    released(server, "several_lines", [("a", "one\n\u2028 two"), ("a", "one\n\u2028 two"), ("a", "x")])
    found = ask(server, "several_lines", [{"threshold": {"default": 1, "one\n\u2028 two": "0.5"}}])
    assert [row[:3] for row in found] == [("threshold default=1, own_thresholds=1", "s", 3)]


def test_numbers_of_other_digits_are_classes_of_their_own(server):
    """Whoever reads the table tells PostgreSQL's 1.0 and 1.00 apart."""
    if server.dialect != "postgres":
        pytest.skip("other databases have a column's numbers of as many digits")
    server.drop("digits")
    server.execute("CREATE TABLE digits (age NUMERIC, s TEXT)")
    server.execute("INSERT INTO digits VALUES (1.0, 'flu'), (1.0, 'flu'), (1.00, 'HIV')")
    found = ask(server, "digits", ["distinct:3", "frequency:2"])
    assert sorted(row[::2][:2] for row in found) == [
        (name, n) for name in ("distinct l=3", "frequency l=2") for n in (1, 2)
    ]


def test_a_named_value_that_no_row_has_is_a_row(server):
    """One that is misspelt would be protected by nothing: `check` refuses it."""
    columns = [("age", "text"), ("s", "text"), ("o", "text")]
    server.create("misspelt", columns, [("a", "HIV", "flu"), ("a", "HIV", None)])
    thresholds = {"default": 1, "HIVV": "0.1"}
    found = ask(server, "misspelt", [{"threshold": thresholds, "sensitive": "s"}], {"s": {}, "o": {}})
    said = "open: require.0.threshold: some of the values named are in no row (`absent: allow` beside them allows it)"
    assert [tuple(row) for row in found] == [(said, "s", 1, None, None)]
    found = ask(server, "misspelt", [{"threshold": {"default": 1, "HIV": 1, "flu": 1, None: 1}}], {"s": {}, "o": {}})
    assert found == []
    found = ask(server, "misspelt", [{"threshold": {**thresholds, "flu": 1}}], {"s": {}, "o": {}})
    assert [row[1:3] for row in found] == [(None, 1)]
    assert ask(server, "misspelt", [{"threshold": {**thresholds, "absent": "allow"}}]) == []


def test_texts_are_ordered_by_their_bytes(server):
    """As `check` has them, whatever collation the column has: B stands before a."""
    if server.dialect != "postgres":
        pytest.skip("other databases order texts by their bytes unless told otherwise")
    server.drop("collated")
    server.execute('CREATE TABLE collated (age TEXT, s TEXT COLLATE "en-x-icu")')
    rows = [("p", value) for value in "BDBaBacBD"] + [("q", value) for value in "acc"]
    server.insert("collated", [("age", "text"), ("s", "text")], rows)
    found = ask(server, "collated", ["t_closeness:t=0.3,distance=ordered"])
    assert [(row[2], round(float(row[3]), 6)) for row in found] == [(3, 0.416667)]


#: By what makes the column, and what is set, values of which each is in a row, where the database holds some equal.
HELD_EQUAL = [
    ("VARCHAR COLLATE NOCASE", "", ["a", "A", "A", "A"]),
    ("VARCHAR COLLATE NOACCENT", "", ["e", "e", "é", "é", None, None]),
    ("DOUBLE", "", ["1.5", "1.5", "nan", "nan", "0.0"]),
    ("VARCHAR", "SET default_collation = 'NOCASE'", ["a", "A", "A", "A"]),
    ("ENUM ('z', 'a', 'm')", "", ["z", "a", "z", "m"]),
    ("TIMESTAMP WITH TIME ZONE", "", ["2026-01-01 00:00:00+00", "2026-01-01 00:00:00+00", "2027-01-01 00:00:00+00"]),
]


@pytest.mark.parametrize(("kind", "setting", "values"), some(HELD_EQUAL, 2))
def test_all_that_is_handed_out_tells_values_apart_as_check_does(kind, setting, values):
    """By bytes, as classes and as sensitive values: statements, macros, tests of dbt and counts."""
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute(f"CREATE TABLE t (q {kind}, s VARCHAR); {setting}")
        con.executemany("INSERT INTO t VALUES (?, ?)", [(value, f"{i}") for i, value in enumerate(values)])
        con.execute(f"CREATE TABLE reversed (q VARCHAR, s {kind}); INSERT INTO reversed SELECT 'all', q FROM t")
        con.execute("RESET default_collation")
        ldiv_db.register(con)
        for table, require in (("t", "k:2"), ("reversed", f"frequency:{len(values) / 2}"), ("reversed", "distinct:4")):
            (audit,) = ldiv_db.check(con, table, ["q"], "s", [require])
            con.execute(setting)
            statement = ldiv_db.check_sql(table, ["q"], "s", [require])
            assert len(con.execute(statement).fetchall()) == audit.verdicts[0].violating_classes
            name, parameter = require.split(":")
            verdict = f"SELECT violating_classes FROM ldiv_check('{table}', ['q'], 's', '{name}', {parameter})"
            assert con.execute(verdict).fetchall() == [(audit.verdicts[0].violating_classes,)]
            asked = {"require": [{name: json.loads(parameter)}], "quasi_identifiers": ["q"], "sensitive": ["s"]}
            failures = count_failures(Engine(con), Relation((table,)), "meets_policy", **asked)
            assert failures == audit.verdicts[0].violating_classes
            con.execute("RESET default_collation")
        con.execute(setting)
        sizes = sorted(Counter(values).values())
        assert sorted(con.execute("SELECT rows FROM ldiv_classes('t', ['q'])").fetchall()) == [(n,) for n in sizes]
        policy = {"source": "t", "target": "o", "quasi_identifiers": ["q"], "sensitive": "s", "require": [{"k": 2}]}
        counted = con.execute(ldiv_db.counts_sql(policy)).fetchall()
        held = con.execute("SELECT q FROM t").fetchall()
        assert sorted(str(value) for value, *_ in counted) == sorted(str(value) for (value,) in held)


def test_zeros_of_either_sign_are_classes_of_their_own():
    """Who reads the table tells them apart: `check` refuses them, and no statement puts them together."""
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("CREATE TABLE t (q DOUBLE, s VARCHAR)")
        con.executemany("INSERT INTO t VALUES (?, ?)", [("0.0", "a"), ("-0.0", "b"), ("0.0", "c")])
        assert con.execute(ldiv_db.check_sql("t", ["q"], "s", ["k:2"])).fetchall()
        asked = {"require": [{"k": 2}], "quasi_identifiers": ["q"], "sensitive": ["s"]}
        assert count_failures(Engine(con), Relation(("t",)), "meets_policy", **asked) == 1


def test_other_databases_tell_texts_apart_by_their_bytes(server):
    """Of columns that hold texts equal which differ, where the database has a collation that does not."""
    kinds = {"postgres": 'COLLATE "ldiv_any"', "sqlite": "COLLATE NOCASE"}
    if server.dialect not in kinds:
        pytest.skip("the database's own equality decides")
    if server.dialect == "postgres":
        options = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
        server.execute(f'CREATE COLLATION IF NOT EXISTS "ldiv_any" ({options})')
    server.drop("alike")
    server.execute(f"CREATE TABLE alike (age TEXT {kinds[server.dialect]}, s TEXT)")
    server.insert("alike", [("age", "text"), ("s", "text")], [("a", "x"), ("A", "y"), ("A", "z")])
    assert [row[2] for row in ask(server, "alike", ["k:2"])] == [1]
    policy = {"source": "alike", "target": "o", "quasi_identifiers": ["age"], "sensitive": "s", "require": [{"k": 2}]}
    counted = server.query(ldiv_db.counts_sql(policy, server.dialect))
    assert sorted((age, int(n)) for age, _, n in counted) == [("A", 1), ("A", 1), ("a", 1)]


#: Around the hours that a zone of Europe leaves out, and that it has twice.
TURNS = [
    datetime.datetime(1924, 3, 31, 0, 30),
    datetime.datetime(2024, 3, 31, 0, 30),
    datetime.datetime(2024, 10, 27, 0, 59, 59, 999_999),
]
STRETCHES = ["0.000003 seconds", "1 hours", "3600.000001 seconds", "200 days"]


@pytest.mark.parametrize("kind", some(["TIMESTAMP WITH TIME ZONE", "TIMESTAMP"]))
@search(1, seed=seeds)
def test_points_in_time_are_as_far_apart_as_the_audit_has_them(seed, kind, server):
    """To the microsecond, those with a zone in whatever zone the connection is; other databases refuse them."""
    draw = random.Random(seed)
    asked = [
        {"range": {"k": 2, "e": draw.choice(STRETCHES)}},
        {"proximity": {"m": 2, "epsilon": draw.choice(STRETCHES)}},
    ]
    zone = datetime.UTC if kind.endswith("ZONE") else None
    steps = [0, 1, 3, 10**6, 3_600 * 10**6, 7_200 * 10**6 + 1]
    times = [draw.choice(TURNS) + datetime.timedelta(microseconds=draw.choice(steps)) for _ in range(40)]
    rows = [(draw.choice("abc"), draw.choice([None, *[time.replace(tzinfo=zone)] * 9])) for time in times]
    found = {}
    for judge in (started("duckdb"), server):
        if judge.dialect not in ("duckdb", "postgres"):
            with pytest.raises(PolicyError, match=f"points in time are compared by {judge.dialect} in its own way"):
                ask(judge, "seen_at", asked, types={"s": kind})
            continue
        judge.drop("seen_at")
        judge.execute(f"CREATE TABLE seen_at (age TEXT, s {kind})")
        judge.insert("seen_at", [("age", "text"), ("s", "timestamp")], rows)
        judge.execute("SET TIME ZONE 'Europe/Berlin'")
        violating = ask(judge, "seen_at", asked, types={"s": kind}, labels=True)
        judge.execute("SET TIME ZONE 'UTC'")
        found[judge.dialect] = sorted_rows(violating)
        assert_same(found[judge.dialect], found["duckdb"])


def test_a_time_without_end_lies_nowhere(server):
    if server.dialect != "postgres":
        pytest.skip("other databases are not asked for points in time")
    server.create("endless", [("age", "text"), ("s", "timestamp")], [("a", datetime.datetime(2024, 1, 1))])
    server.execute("INSERT INTO endless VALUES ('a', 'infinity'), ('a', '2024-01-09')")
    found = ask(server, "endless", [{"range": {"k": 2, "e": "1 days"}}], types={"s": "TIMESTAMP"})
    said = "open: require.range: some of the sensitive values cannot be compared: too large, infinite or NaN"
    assert [tuple(row) for row in found] == [(said, "s", 1, None, None)]


def test_points_in_time_are_named_in_utc_whatever_the_connection_s_zone():
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'Asia/Tokyo'")
        con.execute("CREATE TABLE seen AS SELECT 'a' AS age, TIMESTAMPTZ '2020-01-01 10:00:00+00' AS s FROM range(3)")
        threshold = {"default": 1, "absent": "allow", "values": {"2020-01-01 10:00:00+00": "0.5"}}
        types = {"s": "TIMESTAMP WITH TIME ZONE"}
        question = CheckRequest(["age"], read_sensitive("s"), read_requirements([{"threshold": threshold}]))
        sql = check_statement(Engine(con), question, Relation(("seen",)), "duckdb", types)
        assert [(row[2], row[4]) for row in con.execute(sql).fetchall()] == [(3, -1.5)]


@pytest.mark.parametrize("dialect", some(DIALECTS, 4))
@search(1, seed=seeds)
def test_each_name_is_one_by_the_engines_own_rules(seed, dialect, tmp_path):
    """Emulators of engines that tell `rows` from `ROWS` do not."""
    case = Case(seed, tmp_path, plain_names=seed % 2 == 0)
    types = dict(case.columns) | {"s": case.type}
    tables = {case.table: {name: {"text": "VARCHAR"}.get(kind, kind) for name, kind in types.items()}}
    with duckdb.connect(config={"threads": 1}) as con:
        try:
            sql = check_statement(
                Engine(con), case.question(), Relation((case.table,)), dialect, {"s": case.type}, True
            )
        except PolicyError as error:
            assert dialect in ("sqlite", "clickhouse"), error
            return
    assert resolve(sql, dialect, tables).selects
