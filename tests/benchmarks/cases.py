"""The tables that tools are judged on: what `tests.benchmarks.judge` writes for them, and what we publish of them.

Each case is a folder `data/NAME` as github.com/kaylode/k-anonymity lays it out: `NAME.csv` with ';' between values, and
`hierarchies/NAME_hierarchy_COLUMN.csv` with a line a value, ';' between its levels. Rows and trees are theirs, but of
numbers each node is named by the range of its values: theirs are called 32.5, which is a value too. A `policy.yml`
beside them says what is asked of everybody.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import yaml

import ldiv_db

#: The column that numbers the rows, in every source and release.
KEY = "ID"
_PEOPLE = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
_HOUSES = ("longitude", "latitude", "housing_median_age", "median_income", "median_house_value")


@dataclass(frozen=True)
class Case:
    """A table of theirs, the columns that identify, those of numbers, what is sensitive, and what is required."""

    table: str
    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    sensitive: str
    require: Mapping[str, int]


CASES = {
    "adult": Case("adult", _PEOPLE, ("age",), "salary-class", {"k": 5}),
    "cahousing": Case("cahousing", _HOUSES, _HOUSES, "ocean_proximity", {"k": 5}),
    "cmc": Case("cmc", ("age", "Weducation", "children"), ("age", "children"), "method", {"k": 5}),
    "adult-jobs": Case("adult", _PEOPLE[:-1], ("age",), "occupation", {"distinct": 3}),
}
#: What we publish, by the name of the release: what its policy says besides.
OURS: dict[str, dict[str, Any]] = {
    "ours-quick": {"algorithm": {"name": "auto", "effort": "quick"}},
    "ours-normal": {"algorithm": {"name": "auto", "effort": "normal"}},
    "ours-cuts": {"algorithm": {"name": "cuts", "scheme": "allRec"}},
    "ours-transparent": {"algorithm": "bsgi", "transparent": True},
}


def write_cases(checkout: Path, folder: Path) -> None:
    """Write the data, the trees and the policy of each case, from a checkout of theirs."""
    for name, case in CASES.items():
        theirs, ours = checkout / "data" / case.table, folder / "data" / name
        (ours / "hierarchies").mkdir(parents=True, exist_ok=True)
        with (theirs / f"{case.table}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter=";"))
        for column in case.numbers:
            for row in rows:
                row[column] = _plain(row[column])
        _write(ours / f"{name}.csv", [list(rows[0]), *(list(row.values()) for row in rows)])
        for column in case.columns:
            levels = _read(theirs / "hierarchies" / f"{case.table}_hierarchy_{column}.csv")
            made = _named_by_range(levels) if column in case.numbers else levels
            found = {row[column] for row in rows}
            _write(_tree(ours, name, column), [line for line in made if line[0] in found])
        document = policy_of(name, list(rows[0]))
        (ours / "policy.yml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def policy_of(name: str, headings: list[str]) -> dict[str, Any]:
    """What is asked of a release of the case: columns, trees and the requirement."""
    case = CASES[name]
    trees = {column: {"taxonomy": {"file": f"hierarchies/{name}_hierarchy_{column}.csv"}} for column in case.columns}
    told = {KEY, *case.columns, case.sensitive}
    return {
        "source": "source",
        "target": {"table": "published", "if_exists": "replace"},
        "identifiers": [one for one in headings if one not in told],
        "quasi_identifiers": trees,
        "sensitive": [case.sensitive],
        "keep": [KEY],
        "require": [dict(case.require)],
        "seed": 1,
    }


def publish_ours(folder: Path, name: str, tell: Callable[[str], None]) -> None:
    """Write our releases of a case that are not there yet; those that cannot meet its policy are left out."""
    home, releases = folder / "data" / name, folder / "releases" / name
    releases.mkdir(parents=True, exist_ok=True)
    document = yaml.safe_load((home / "policy.yml").read_text(encoding="utf-8"))
    for release, how in OURS.items():
        target = releases / f"{release}.csv"
        if target.exists():
            continue
        tell(f"{name}: {release} …")
        with open_case(home) as con, suppress(ldiv_db.InfeasibleError, ldiv_db.PolicyError):
            ldiv_db.run(con, document | how, folder=home)
            con.execute("COPY published TO $path (HEADER, DELIMITER ';')", {"path": str(target)})


def open_case(home: Path) -> duckdb.DuckDBPyConnection:
    """A database with the table `source` of a case."""
    con = duckdb.connect()
    con.execute("CREATE TABLE source AS FROM read_csv($path, delim = ';')", {"path": str(home / f"{home.name}.csv")})
    return con


def _plain(number: str) -> str:
    """A number as the database writes it."""
    return str(float(number)) if "." in number else str(int(number))


def _named_by_range(levels: list[list[str]]) -> list[list[str]]:
    """The lines of a tree of numbers, in their order, each node named by the least and greatest value below it."""
    values = {line[0]: float(line[0]) for line in levels}
    decimals = any("." in line[0] for line in levels)
    lines = sorted(levels, key=lambda line: values[line[0]])
    below: dict[tuple[int, str], list[str]] = defaultdict(list)
    for line in lines:
        for level, label in enumerate(line):
            below[level, label].append(str(values[line[0]]) if decimals else line[0])
    return [
        [below[0, line[0]][0], *(_range(below[level, line[level]]) for level in range(1, len(line) - 1)), "*"]
        for line in lines
    ]


def _range(values: list[str]) -> str:
    return values[0] if values[0] == values[-1] else f"[{values[0]} .. {values[-1]}]"


def _tree(home: Path, name: str, column: str) -> Path:
    return home / "hierarchies" / f"{name}_hierarchy_{column}.csv"


def _read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [line for line in csv.reader(file, delimiter=";") if line]


def _write(path: Path, lines: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows(lines)
