"""Random tables of types that every server has, with policies of runs that recode them globally."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from servers import DuckDB, Server, comparable

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.policy.reading import parse_policy
from ldiv_db.recoding.statement import find_run, recoding_sql

#: Names and labels that need quoting, in trees with single children, a leaf below the root, and a root `*`.
TREE = {"*": {"it's": {'a"b': {}, "é'\\": {}}, "SELECT": {"only": {"x": {}}}, "-- y": {}, "": {}, "a\n\tb\\n": {}}}
NAMED = {"Any": {"up": {"1": {}, "2": {}}, "3": {}, "-1": {}}}
TEXTS = ['a"b', "é'\\", "x", "-- y", "", "a\n\tb\\n"]
AGES: list[dict[str, Any]] = [{"ranges": [5, 10, 20]}, {"ranges": [5, 10], "bottom": 1, "top": 17}, {"flat": True}]
#: Quasi-identifiers: their type, their values, and how they may generalise.
KEYS: dict[str, tuple[str, list[Any], list[dict[str, Any]]]] = {
    "select": ("text", TEXTS, [{"file": "tree.json"}, {"flat": True}, {"prefix": [8, 1]}]),
    "zip code": ("text", ["12345", "12399", "123", "1239999", "9", "12*45", "äöü99", "äöx99"], [{"prefix": [5, 3, 1]}]),
    'my "age"': ("integer", [-1, 0, 1, 2, 3, 7, 12, 19, 40, 1000], AGES),
    "größe": ("integer", [-1, 1, 2, 3], [{"file": "named.json"}, {"flat": True}, {"prefix": [2, 1]}]),
    "Price": (
        "decimal",
        [Decimal(n) / 100 for n in (-25, 0, 10, 150, 300, 1999)],
        [{"ranges": [0.5, 2]}, {"ranges": [0.5, 2], "bottom": 0.1}, {"flat": True}],
    ),
    "dose": ("double", [-1.5, 0.0, 0.1, 0.25, 3.0, -12.625], [{"ranges": [0.1, 10]}]),
    "level": ("double", [-1.5, 0.0, 0.1, 3.0, 1e16, -0.0, 123456789.125, 1e-7, 1e300], [{"flat": True}]),
    "born": (
        "date",
        [date(1900, 1, 1), date(1969, 2, 28), date(2000, 1, 1), date(2000, 2, 29), date(2101, 7, 1)],
        [{"dates": ["day", "month", "quarter", "decade"]}, {"flat": True}],
    ),
    "seen at": (
        "timestamp",
        [datetime(1969, 12, 31, 23, 59, 59), datetime(2001, 1, 1), datetime(2001, 1, 1, 12, 30, 0, 500)],
        [{"dates": ["day", "year"]}, {"flat": True}],
    ),
    "order": ("boolean", [True, False], [{"flat": True}]),
}
#: Sensitive and kept columns: values by type. Fractions are such as every server holds exactly.
OTHERS: dict[str, list[Any]] = {
    "text": ["HIV", "it's", "flu\\", 'c"d', "ü", ""],
    "integer": [-1, 0, 7, 2**31 - 1],
    "decimal": [Decimal("0.50"), Decimal("-1.25"), Decimal("3.00")],
    "boolean": [True, False],
    "date": [date(1969, 1, 2), date(2001, 2, 3), date(2024, 2, 29)],
}
SCHEMES = ["none", "vioSA", "allSA", "vioRec", "allRec"]


@dataclass
class Case:
    """A table `my source`, its types by column, and the policy of a run on it."""

    columns: dict[str, str]
    rows: list[tuple[Any, ...]]
    policy: dict[str, Any]
    files: dict[str, Any] = field(default_factory=lambda: {"tree.json": TREE, "named.json": NAMED})

    def place(self, server: Server, folder: Path) -> None:
        """Make the table on a server, and the files of taxonomies."""
        server.create("my source", list(self.columns.items()), self.rows)
        self.write_files(folder)

    def write_files(self, folder: Path) -> None:
        for name, tree in self.files.items():
            (folder / name).write_text(json.dumps(tree))

    def rename(self) -> None:
        """Give the columns names of letters, digits and `_` alone."""
        self.columns = {_plain(name): kind for name, kind in self.columns.items()}
        keys = self.policy["quasi_identifiers"].items()
        self.policy |= {"keep": [_plain(name) for name in self.policy["keep"]]}
        self.policy |= {"quasi_identifiers": {_plain(name): entry for name, entry in keys}}

    @property
    def keys(self) -> list[str]:
        return list(self.policy["quasi_identifiers"])

    @property
    def kept_is_free(self) -> bool:
        """Whether which rows of a value go is free, so that what is kept beside it may be another row's."""
        return bool(self.policy["algorithm"].get("scheme") == "vioRec")


def random_case(seed: int) -> Case:
    """A table of 1 to 60 rows and a policy; the run may be infeasible."""
    draw = random.Random(seed)
    keys = draw.sample(list(KEYS), draw.choice([1, 2, 3]))
    secret, kept = draw.choice(["text", "text", "integer", "decimal", "boolean", "date"]), draw.choice(list(OTHERS))
    columns = {key: KEYS[key][0] for key in keys} | {"group": secret, 'o"k': kept}
    params = draw.choice([0, 0.15, 0.5])

    def one(values: list[Any], missing: float) -> Any:
        return None if draw.random() < missing else draw.choice(values)

    size = draw.choice([1, 2, 12, 40, 60])
    rows = [
        (*(one(KEYS[key][1], params) for key in keys), one(OTHERS[secret], params / 3), one(OTHERS[kept], 0.2))
        for _ in range(size)
    ]
    policy = {
        "source": '"my source"', "target": "out.released", "sensitive": ["group"], "seed": seed, "keep": ['o"k'],
        "quasi_identifiers": {key: {"taxonomy": draw.choice(KEYS[key][2])} for key in keys},
        "nulls": draw.choice(["value", "suppress"]), "nulls_sensitive": draw.choice(["value", "suppress"]),
    }  # fmt: skip
    policy |= _run(draw, secret)
    if policy["algorithm"].get("scheme") in ("vioSA", "allSA"):  # they publish NULL for what they suppress
        policy["nulls_sensitive"] = "suppress"
    return Case(columns, rows, policy)


def _run(draw: random.Random, secret: str) -> dict[str, Any]:
    """An algorithm with requirements that it takes, thresholds of values of their own among them."""
    known = {"time_limit": 0.2, "unproved": "publish"}
    named = {_named(value): draw.choice(["0.3", "0.7", "0.45"]) for value in OTHERS[secret] if draw.random() < 0.3}
    thresholds = [{"threshold": {"default": draw.choice(["0.5", "0.81"]), "absent": "allow", **named}}]
    algorithm: dict[str, Any] = {"name": draw.choice(["cuts", "cuts", "annealing", "incognito", "tds"])}
    if algorithm["name"] in ("incognito", "tds"):
        require = draw.choice([
            [{"k": 2}], [{"k": 2}, {"distinct": 2}], [{"alpha_k": {"alpha": "0.7", "k": 2}}],
            [{"p_sensitive": {"p": 2, "k": 3}}, {"frequency": "1.2"}],
        ])  # fmt: skip
        return {"algorithm": algorithm, "require": require}
    algorithm |= known | {"scheme": draw.choice(SCHEMES)} | ({"steps": 5} if algorithm["name"] == "annealing" else {})
    return {"algorithm": algorithm, "require": draw.choice([thresholds, [*thresholds, {"frequency": "1.9"}]])}


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _named(value: Any) -> Any:
    """A value as a policy names it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Recoded:
    """A case with its release, and the engine whose ledger has the run."""

    case: Case
    engine: Engine
    run_id: str
    release: Counter[tuple[Any, ...]]

    def sql(self, dialect: str, source: str | None = None) -> str:
        """The run as a SELECT, of a table of that name or of the run's."""
        run = find_run(self.engine, self.run_id)
        return recoding_sql(self.engine, run, dialect, source, parse_policy(self.case.policy))

    def differs(self, server: Server) -> str:
        """How what the SELECT gives on the server, from a copy of the table, is not the release; nothing if it is."""
        server.create("my source", list(self.case.columns.items()), self.case.rows)
        found, expected = comparable(server.query(self.sql(server.dialect))), self.release
        if self.case.kept_is_free:
            found, expected = without_last(found), without_last(expected)
        more, less = list((found - expected).items()), list((expected - found).items())
        return f"{len(more)} rows more, as {more[:2]}, {len(less)} less, as {less[:2]}" if more or less else ""


@cache
def recoded(seed: int, plain_names: bool = False) -> Recoded | None:
    """The random case of a seed, run in DuckDB; None if that cannot meet its requirements."""
    case, server = random_case(seed), DuckDB()
    if plain_names:
        case.rename()
    with tempfile.TemporaryDirectory() as folder:
        case.place(server, Path(folder))
        try:
            result = ldiv_db.run(server.connection, case.policy, folder=folder)
        except ldiv_db.InfeasibleError:
            return None
    return Recoded(case, Engine(server.connection), result.run_id, published(server, case))


def published(server: DuckDB, case: Case) -> Counter[tuple[Any, ...]]:
    """The release, quasi-identifiers as text, as the statement writes labels."""
    labels = ", ".join(f"CAST({server.quoted(key)} AS VARCHAR) AS {server.quoted(key)}" for key in case.keys)
    return comparable(server.query(f"SELECT * REPLACE ({labels}) FROM out.released"))


def without_last(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The rows without their last column."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        found[row[:-1]] += count
    return found
