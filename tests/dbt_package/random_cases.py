"""Random tables with requirements, as SQL that any database takes, and what `ldiv check` says of them."""

from __future__ import annotations

import random
from typing import Any

from ldiv_db.auditing.check import CheckRequest, check
from ldiv_db.auditing.violations import Violations
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import read_requirements, read_sensitive

#: What the columns are called: otherwise than, and as, columns that the tests themselves make.
COLUMNS = [("sex", "age", "disease", "income"), ("c2", "v", "c1", "n"), ("class_no", "order", "rows", "Größe")]
TYPES = ("varchar(20)", "integer", "varchar(20)", "integer")
DISEASES = ("flu", "Flu", "it's", "Grippe é", "HIV", None)


def random_rows(draw: random.Random) -> list[tuple[Any, ...]]:
    """One row to some twenty, with NULLs and ties; of few kinds, so that classes have several rows."""
    values = draw.choice([DISEASES[:2], DISEASES[2:], DISEASES])
    return [
        (draw.choice(["f", "m", None]), draw.choice([1, 2, None]), draw.choice(values), draw.choice([1, 2, 2, 9, None]))
        for _ in range(draw.choice([1, 2, 6, 12, 24]))
    ]


def random_requirement(draw: random.Random, disease: str, income: str) -> dict[str, Any]:
    """Any requirement that the tests know, on both sensitive columns or on one."""
    k, values = draw.randint(1, 4), draw.randint(1, 4)
    decimal = draw.choice([1, 1.5, 2, 3, 1.333333333, "2.50"])
    share = draw.choice([1, 0.5, 0.75, 0.3, 0.666666667])
    found = draw.choice(
        [
            {"k": k},
            {"distinct": values},
            {"unique_distinct": {"l": values}},
            {"entropy": decimal},
            {"frequency": decimal},
            {"recursive": {"c": draw.choice([0.5, 1, 2, 1.25]), "l": values}},
            {"alpha_k": {"alpha": share, "k": k}},
            {"p_sensitive": {"p": values, "k": k}},
            {"threshold": share},
            {"range": {"k": values, "e": draw.choice([0.5, 1, 7, "2.25"])}, "sensitive": income},
            {"t_closeness": draw.choice([0, 0.2, 0.333333333, 0.5])},
            {"t_closeness": {"t": draw.choice([0.1, 0.25]), "distance": draw.choice(["equal", "auto"])}},
            {"t_closeness": {"t": draw.choice([0.1, 0.25]), "distance": "ordered"}, "sensitive": income},
        ]
    )
    if "k" not in found and "sensitive" not in found:
        found = found | draw.choice([{}, {}, {"sensitive": disease}, {"sensitive": [income.capitalize()]}])
        found = found | draw.choice([{}, {}, {"others_known": True}])
    return found


def random_case(draw: random.Random, number: int) -> dict[str, Any]:
    columns = draw.choice(COLUMNS)
    return {
        "table": f"t{number}",
        "columns": columns,
        "rows": random_rows(draw),
        "qi": list(columns[: draw.choice([1, 2])]),
        "class_column": None,
        "sensitive": list(columns[2:]),
        "require": [random_requirement(draw, *columns[2:]) for _ in range(draw.randint(1, 2))],
    }


def statements(case: dict[str, Any]) -> list[str]:
    """What makes the table of a case."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(case["columns"], TYPES, strict=True))
    rows = ", ".join(f"({', '.join(map(_literal, row))})" for row in case["rows"])
    return [f"create table {case['table']} ({columns})", f"insert into {case['table']} values {rows}"]


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def checked(con: Any, case: dict[str, Any]) -> list[list[Any]]:
    """The violating classes by `ldiv check`: rows, what was reached, and the margin."""
    engine = Engine(con)
    for statement in statements(case):
        con.execute(statement)
    question = CheckRequest(case["qi"], read_sensitive(case["sensitive"]), read_requirements(case["require"]))
    found = Violations(engine, most=1000)
    check(engine, Relation((case["table"],)), question, found.see)
    engine.close_scratch()
    once = [
        row for row in found.rows if not row["requirement"].startswith("k ") or row["sensitive"] == case["sensitive"][0]
    ]
    return in_order([[row["rows"], row["reached"], -row["missing"]] for row in once])


def in_order(rows: list[list[Any]]) -> list[list[Any]]:
    """The rows sorted, figures rounded: what a class reached may have no figure."""
    rounded = [[None if cell is None else round(cell, 6) + 0.0 for cell in row] for row in rows]
    return sorted(rounded, key=lambda row: [(cell is not None, cell or 0) for cell in row])


def arguments(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """What the macro `judge` takes."""
    asked = [{name: value for name, value in case.items() if name not in ("columns", "rows")} for case in cases]
    return {"statements": [sql for case in cases for sql in statements(case)], "cases": asked}
