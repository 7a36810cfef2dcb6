"""Random tables with their policies, and what a release of them must be by the oracle."""

from __future__ import annotations

import datetime
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import oracle


def fill(con: Any, name: str, columns: dict[str, str], rows: list[tuple[Any, ...]]) -> None:
    """A table of the given columns (name to type) and rows; names are quoted here, not by the product.

    It takes the place of another, whose releases nobody has seen: a run of changed rows would be stopped.
    """
    quoted = ", ".join('"{}" {}'.format(column.replace('"', '""'), kind) for column, kind in columns.items())
    con.execute(f"CREATE OR REPLACE TABLE {name} ({quoted})")
    if con.execute("SELECT 1 FROM duckdb_tables() WHERE schema_name = 'ldiv' AND table_name = 'run'").fetchone():
        con.execute("UPDATE ldiv.run SET status = 'withdrawn' WHERE source = ?", [name])
    # One JSON text a column: a row at a time takes a millisecond each, ten times as long as what most tests are about.
    texts = [json.dumps([_text(value) for value in column], ensure_ascii=False) for column in zip(*rows, strict=True)]
    if texts:
        lists = ", ".join(f"unnest(?::JSON::VARCHAR[]::{kind}[])" for kind in columns.values())
        con.execute(f"INSERT INTO {name} SELECT {lists}", texts)


def _text(value: Any) -> str | None:
    """A value as DuckDB casts it from text."""
    return value if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Case:
    """A table, its policy, and the oracle's scale of each quasi-identifier."""

    columns: dict[str, str]
    rows: list[tuple[Any, ...]]
    policy: dict[str, Any]
    scales: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    trees: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.policy["quasi_identifiers"])

    def place(self, con: Any, folder: Path, order: list[int] | None = None) -> None:
        """Make the table `source` and the taxonomy files; what was released of another is gone."""
        con.execute("DROP SCHEMA IF EXISTS out CASCADE")
        rows = self.rows if order is None else [self.rows[i] for i in order]
        fill(con, "source", self.columns, rows)
        for name, tree in self.trees.items():
            (folder / f"{name}.json").write_text(json.dumps(tree))


TREES = [
    {"*": {"a": {}, "b": {}, "c": {}}},
    {"Any": {"L": {"a": {}, "b": {}}, "R": {"c": {}, "d": {}}}},
    {"*": {"a": {}, "M": {"N": {"O": {"b": {}, "c": {}, "d": {}}}}}},  # unbalanced, with single children
    {"Any": {"One": {"Two": {"a": {}}}, "Rest": {"b": {}, "Deep": {"c": {}, "Deeper": {"d": {}, "e": {}}}}}},
    {"*": {"P": {"it's; DROP TABLE source --": {}, 'say "x"': {}}, "é ü": {}, "1": {}, "-": {}}},
    {"Top": {"only": {}}},
    {"only": {}},
]


def _leaf_labels(tree: Any) -> list[str]:
    return [leaf for label, below in tree.items() for leaf in (_leaf_labels(below) or [label])]


def _column(draw: random.Random, kind: str, n: int, name: str, case: Case) -> list[Any]:
    """The values of one quasi-identifier; its entry in the policy and its scale go into the case."""
    params = draw.choice([0, 0, 0.15, 0.5])

    def values(make: Any) -> list[Any]:
        return [None if draw.random() < params else make() for _ in range(n)]

    entry: dict[str, Any]
    if kind in ("integer", "negative", "constant", "wide", "decimal", "double"):
        makers: dict[str, tuple[str, Any]] = {
            "integer": ("INTEGER", lambda: draw.randint(0, 9)),
            "negative": ("SMALLINT", lambda: draw.randint(-50, 50)),
            "constant": ("BIGINT", lambda: 7),
            "wide": ("BIGINT", lambda: draw.choice([-(10**12), 3, 10**12, 10**12 + 1])),
            "decimal": ("DECIMAL(8, 2)", lambda: Decimal(draw.randint(-500, 500)) / 100),
            "double": ("DOUBLE", lambda: draw.choice([-1.5, 0.0, 0.25, 2.0, 1e3])),
        }
        sql_type, make = makers[kind]
        column = values(make)
        entry, scale = {"numeric": True}, oracle.Numbers(column)
    elif kind == "ranges":
        integers = draw.random() < 0.5
        widths: list[Any] = draw.choice([[5, 10, 20], [1, 3], [10], [2, 4, 8, 64]])
        origin: Any = draw.choice([0, 3, -2])
        if not integers and draw.random() < 0.5:
            widths, origin = [0.5, 2.5], 0.1
        sql_type = "INTEGER" if integers else "DECIMAL(8, 2)"
        column = values(lambda: draw.randint(-30, 30) if integers else Decimal(draw.randint(-900, 900)) / 100)
        if all(value is None for value in column):
            column[0] = 1 if integers else Decimal("1.25")
        ends = draw.choice([(None, None), (None, None), (None, 7), (-6, None), (-4, 5), (0, 1)])
        entry = {"taxonomy": {"ranges": widths, "origin": origin}}
        entry["taxonomy"] |= {name: end for name, end in zip(("bottom", "top"), ends, strict=True) if end is not None}
        scale = oracle.Ranges(widths, origin, column, integers, ends)
    else:
        if kind == "dates":
            days = [datetime.date(1988, 4, 17) + datetime.timedelta(days=40 * i) for i in range(12)]
            tree: Any = {"*": {}}
            for day in days:
                tree["*"].setdefault(f"{day:%Y}", {}).setdefault(f"{day:%Y-%m}", {})[day.isoformat()] = {}
            # A month that is all its year holds is one node with it in no tree: labels differ.
        else:
            tree = draw.choice(TREES)
        labels = _leaf_labels(tree)
        sql_type = draw.choice(["DATE", "VARCHAR"]) if kind == "dates" else "VARCHAR"
        column = values(lambda: draw.choice(labels))
        case.trees[name] = tree
        entry, scale = {"taxonomy": {"file": f"{name}.json"}}, oracle.Tree(tree, None in column)
    case.columns[name] = sql_type
    weight = draw.choice([1, 1, 1, 0.5, 3, 0])
    case.policy["quasi_identifiers"][name] = {**entry, "weight": weight}
    case.scales.append(scale)
    case.weights.append(weight)
    return column


KINDS = ("integer", "negative", "constant", "wide", "decimal", "double", "ranges", "tree", "tree", "dates")


def _sensitive(draw: random.Random, n: int, values: list[Any], l: int) -> list[Any]:
    """A column with no value in more than n/l rows."""
    if draw.random() < 0.2:  # all rows different
        return [f"v{i}" for i in range(n)] if isinstance(values[0], str) else list(range(n))
    column = [draw.choice(values) for _ in range(n)]
    while max(Counter(column).values()) * l > n:
        most = Counter(column).most_common(1)[0][0]
        column[column.index(most)] = min(values, key=column.count)
    return column


def random_case(draw: random.Random, select: str, largest: int = 36) -> Case:
    """A feasible case: a table of 4 to `largest` rows with a unique key `rid`, and its policy."""
    n = draw.randint(4, largest)
    l = draw.choice([2, 2, 3, 4]) if n >= 8 else 2
    case = Case({}, [], {"source": "source", "target": "out.released", "quasi_identifiers": {}})
    columns = [_column(draw, draw.choice(KINDS), n, f"q{i}", case) for i in range(draw.randint(1, 4))]
    pool: list[Any] = draw.choice([["flu", "HIV", "it's", "", "ü", "x;--"], [3, -1, 0, 7, 11], ["a", "b", "c", "d"]])
    pool = pool[: draw.randint(3, len(pool))]
    while n // l * len(pool) < n or len(pool) < l:  # so many values cannot all stay below n/l rows
        l -= 1
    secret = _sensitive(draw, n, pool, l)
    case.columns |= {
        "secret": "VARCHAR" if isinstance(secret[0], str) else "INTEGER",
        "rid": "INTEGER",
        "note": "VARCHAR",
    }
    notes = [draw.choice([None, "n1", "n2"]) for _ in range(n)]
    case.rows = list(zip(*columns, secret, range(n), notes, strict=True))
    text = {str(value) for value in secret}
    require: list[dict[str, Any]] = [{"unique_distinct": l}]
    require += draw.sample(
        [
            {"k": draw.randint(1, l)},
            {"distinct": l},
            {"frequency": draw.choice([l, l - 0.5])},
            {"threshold": {"default": 1, sorted(text)[0]: 0.5}},
        ],
        draw.randint(0, 4),
    )
    case.policy |= {
        "sensitive": ["secret"],
        "keep": ["rid", "note"],
        "require": require,
        "algorithm": {"name": "bsgi", "select": select, "residue": draw.choice(["incorporate", "suppress"])},
        "output": {"class_id": True},
        "seed": draw.randint(0, 99),
    }
    _choose_forms(draw, case)
    return case


def _choose_forms(draw: random.Random, case: Case) -> None:
    """Perhaps sets, for all trees or for one, and perhaps bounds."""
    recode, bounds = draw.choice(["tree", "tree", "set"]), draw.choice([False, False, True])
    case.policy |= {"recode": recode}
    case.policy["output"] |= {"bounds": bounds}
    for (name, entry), scale in zip(case.policy["quasi_identifiers"].items(), case.scales, strict=True):
        if isinstance(scale, oracle.Numbers):
            scale.bounded = bounds
            continue
        own = draw.choice([None, None, {"set": 3}, "tree"])
        scale.sets = (own or recode) != "tree"
        scale.most = 3 if isinstance(own, dict) else None
        case.policy["quasi_identifiers"][name] = {**entry, **({"recode": own} if own else {})}


def published(con: Any, case: Case) -> list[dict[str, Any]]:
    """The release as a list of rows by column name, what is published of quasi-identifiers as text."""
    there = [row[0] for row in con.execute("DESCRIBE out.released").fetchall()]
    labels = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in case.names if name in there)
    cursor = con.execute(f"SELECT *{f' REPLACE ({labels})' if labels else ''} FROM out.released")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def verify(case: Case, result: Any, release: list[dict[str, Any]]) -> None:
    """Assert all that must be true of a release of a feasible case."""
    names = case.names
    place = {name: i for i, name in enumerate(case.columns)}
    original = {row[place["rid"]]: row for row in case.rows}
    rids = [row["rid"] for row in release]
    assert len(set(rids)) == len(rids), "a row is published twice"
    assert set(rids) <= set(original)
    # Sensitive values and kept columns are the row's own.
    for row in release:
        assert row["secret"] == original[row["rid"]][place["secret"]]
        assert row["note"] == original[row["rid"]][place["note"]]
    l = max(2, *(_smallest_class(spec) for spec in case.policy["require"]))
    counts = list(Counter(row[place["secret"]] for row in case.rows).values())
    most = len(oracle.draws(sorted(counts, reverse=True), l))
    assert result.loss.classes == most == len({row["class_id"] for row in release})
    residue = 0 if case.policy["algorithm"]["residue"] == "incorporate" else len(case.rows) - most * l
    assert len(case.rows) - len(release) == residue == result.loss.rows_suppressed
    # Every published value covers the original, and says no more and no less than its class allows.
    classes: dict[int, list[tuple[Any, ...]]] = {}
    for row in release:
        classes.setdefault(row["class_id"], []).append(tuple(original[row["rid"]][: len(names)]))
    for row in release:
        for i, (name, scale) in enumerate(zip(names, case.scales, strict=True)):
            values = [member[i] for member in classes[row["class_id"]]]
            verify_value(row, name, scale, original[row["rid"]][i], values)
    # Requirements, on the table as published, with and without class ids.
    identifying = [name for name in release[0] if name not in ("class_id", "secret", "rid", "note")]
    for spec in case.policy["require"]:
        ((name, argument),) = spec.items()
        by_class = [((*(row[n] for n in identifying), row["class_id"]), row["secret"]) for row in release]
        if name == "threshold":
            by_class = [(key, str(value)) for key, value in by_class]
        assert not oracle.violations(by_class, name, argument), name
        if name != "unique_distinct":
            by_label = [(key[:-1], value) for key, value in by_class]
            assert not oracle.violations(by_label, name, argument), name
    assert all(verdict["holds"] for verdict in result.requirements)
    # Losses.
    expected = oracle.loss(case.scales, case.weights, list(classes.values()), result.loss.rows_suppressed)
    for measure, value in expected.items():
        found = getattr(result.loss, measure)
        assert abs(found - value) <= 1e-6 * max(1, abs(value)), (measure, found, float(value))
    sizes = [len(rows) for rows in classes.values()]
    assert result.loss.dm == expected["dm"]
    assert abs(result.loss.cavg(l) - oracle.average_class_size(sizes, l)) < 1e-9
    assert (result.loss.smallest_class, result.loss.largest_class) == (min(sizes), max(sizes))


def verify_value(row: dict[str, Any], name: str, scale: Any, value: Any, values: list[Any]) -> None:
    """Assert that a row's published value is that of its class, which holds `values`, and covers its own."""
    if isinstance(scale, oracle.Numbers) and scale.bounded:
        assert scale.bounds(row[f"{name}_min"], row[f"{name}_max"], values)
        assert name not in row
        return
    assert scale.covers(row[name], value), (name, row[name], value)
    members = scale.members(values) if isinstance(scale, oracle.Tree) else None
    if type(scale) is oracle.Tree:
        assert row[name] == scale.label(values) if members is None else oracle.parse_set(row[name]) == members
    elif members is not None:
        assert len(oracle.parse_set(row[name])) == len(members)


def _smallest_class(spec: dict[str, Any]) -> int:
    """The smallest class of different values that is good."""
    ((name, argument),) = spec.items()
    size = 1
    while not oracle.class_is_good([f"{i}" for i in range(size)], name, argument) or (
        name == "threshold" and any(size * oracle.Fraction(str(theta)) < 1 for theta in argument.values())
    ):
        size += 1
    return size
