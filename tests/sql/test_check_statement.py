"""The audit as one statement: run by other databases it finds what `ldiv check` finds, class by class."""

import datetime
import json
import math
import random
from decimal import Decimal

import duckdb
import pytest
from servers import started
from times import seeds

from ldiv_db.auditing.check import Question, check
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.violations import Violations
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.templates import Relation
from ldiv_db.policy.given import read_requirements, read_sensitive

TEXTS = ["flu", "HIV", "é'\\", "e\u0301", "FLU", "", "*", "null"]
KINDS = {
    "text": ("VARCHAR", lambda draw: draw.choice(TEXTS)),
    "integer": ("INTEGER", lambda draw: draw.choice([-5, 0, 1, 2, 3, 10, 100])),
    "date": ("DATE", lambda draw: datetime.date(2020, 1, draw.choice([1, 2, 3, 9, 30]))),
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

    def __init__(self, seed, folder):
        draw = random.Random(seed)
        self.kind = draw.choice(list(KINDS))
        self.table = f"released {self.kind}s"
        self.type, one = KINDS[self.kind]
        self.columns = [("age", "text"), ("zip code", "integer"), ("select", "text"), ("s", self.kind), ("o", "text")]
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
        self.keys = draw.sample(["age", "zip code"], draw.choice([1, 2]))
        self.ids = draw.choice([None, "select"])

    def requirements(self, draw, folder):
        least, c = draw.choice([2, 3]), draw.choice(["0.5", "1", "2", "1.7"])
        known = draw.random() < 0.3
        found = [
            {"k": least}, {"distinct": least}, {"unique_distinct": least}, {"entropy": draw.choice([2, 1.5])},
            {"frequency": draw.choice(["1.9", "2", "1.333333333"])}, {"recursive": {"c": c, "l": least}},
            {"alpha_k": {"alpha": draw.choice(["0.5", "0.333333333"]), "k": 2}}, {"p_sensitive": {"p": least, "k": 3}},
            {"t_closeness": {"t": draw.choice(["0.1", "0.25", "0.333"]), "distance": "equal"}},
            {"t_closeness": {"t": draw.choice(["0.1", "0.25"]), "distance": "ordered"}},
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
        return Question(self.keys, read_sensitive(self.settings), self.require, self.ids, self.suppressed)


def found_by_check(case):
    con = duckdb.connect()
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
    return sorted(rows, key=lambda row: (str(row[0]), str(row[1]), row[2], *map(str, row[5:])))


def assert_same(found, expected):
    assert [(row[:3], row[5:]) for row in found] == [(row[:3], row[5:]) for row in expected]
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine[3:5], theirs[3:5], strict=True):
            assert (a is None) is (b is None)
            assert a is None or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def run_on(server, case, engine):
    server.create(case.table, case.columns, case.rows)
    types = {"s": case.type}
    table = Relation((case.table,))
    sql = check_statement(engine, case.question(), table, server.dialect, types, labels=True)
    return sorted_rows(
        (r, s, int(n), None if reached is None else float(reached), float(margin), *labels)
        for r, s, n, reached, margin, *labels in server.query(sql)
    )


@pytest.mark.parametrize("seed", seeds(40))
def test_a_statement_finds_what_the_audit_finds(seed, server, tmp_path):
    case = Case(seed, tmp_path)
    with_engine = Engine(duckdb.connect())
    try:
        found = run_on(server, case, with_engine)
    except PolicyError as error:
        assert (server.dialect, True) in (
            ("sqlite", "exact decimals" in str(error)),
            ("clickhouse", "window" in str(error)),
        )
        return
    assert_same(found, found_by_check(case))
