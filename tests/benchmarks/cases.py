"""The tables that tools are judged on: what `tests.benchmarks.judge` writes for them, and what we publish of them.

Each case is a folder `data/NAME` as github.com/kaylode/k-anonymity lays it out: `NAME.csv` with ';' between values, and
`hierarchies/NAME_hierarchy_COLUMN.csv` with a line a value, ';' between its levels. Rows and trees are theirs, but of
numbers each node is named by the range of its values: theirs are called 32.5, which is a value too. A `policy.yml`
beside them says what is asked of everybody.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import yaml

import ldiv_db

#: The column that numbers the rows, in every source and release.
KEY = "ID"
_PEOPLE = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
_MASSES = ("bi_rads_assessment", "age", "shape", "margin", "density")


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
    "cmc": Case("cmc", ("age", "Weducation", "children"), ("age", "children"), "method", {"k": 5}),
    "mgm": Case("mgm", _MASSES, ("age",), "severity", {"k": 5}),
    "adult-jobs": Case("adult", _PEOPLE[:-1], ("age",), "occupation", {"distinct": 3}),
}
#: What we publish, by the name of the release: what its policy says besides; `quasi_identifiers` is of each column, so
#: that ranges are of cases that have numbers alone.
OURS: dict[str, dict[str, Any]] = {
    "ours-quick": {"algorithm": {"name": "auto", "effort": "quick"}},
    "ours-normal": {"algorithm": {"name": "auto", "effort": "normal"}},
    "ours-ranges": {"quasi_identifiers": {"numeric": True}},
    "ours-sets": {"recode": "set"},
    "ours-sets-thorough": {"recode": "set", "algorithm": {"name": "auto", "effort": "thorough"}},
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
        written = {column: _writer(row[column] for row in rows) for column in case.numbers}
        for column, write in written.items():
            for row in rows:
                row[column] = write(row[column])
        _write(ours / f"{name}.csv", [list(rows[0]), *(list(row.values()) for row in rows)])
        for column in case.columns:
            levels = _read(theirs / "hierarchies" / f"{case.table}_hierarchy_{column}.csv")
            made = _named_by_range(levels, written[column]) if column in written else levels
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
        with open_case(home) as con:
            try:
                ldiv_db.run(con, document | _of_all(document, how), folder=home)
            except (ldiv_db.InfeasibleError, ldiv_db.PolicyError) as error:
                tell(f"{name}: left out, {error}")
                continue
            con.execute("COPY published TO $path (HEADER, DELIMITER ';')", {"path": str(target)})


def _of_all(document: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    """What a policy says besides, that of quasi-identifiers of each."""
    asked = how.get("quasi_identifiers")
    return how if asked is None else how | {"quasi_identifiers": dict.fromkeys(document["quasi_identifiers"], asked)}


def open_case(home: Path) -> duckdb.DuckDBPyConnection:
    """A database with the table `source` of a case."""
    con = duckdb.connect()
    con.execute("CREATE TABLE source AS FROM read_csv($path, delim = ';')", {"path": str(home / f"{home.name}.csv")})
    return con


def _writer(numbers: Iterable[str]) -> Callable[[str], str]:
    """How the database writes the numbers of a column: all as whole numbers, or none."""
    decimals = any("." in number for number in numbers)
    return lambda number: str(float(number)) if decimals else str(int(number))


def _named_by_range(levels: list[list[str]], write: Callable[[str], str]) -> list[list[str]]:
    """The lines of a tree of numbers, in their order, each node named by the least and greatest value below it."""
    below: dict[tuple[int, str], list[str]] = defaultdict(list)
    lines = sorted(levels, key=lambda line: float(line[0]))
    for line in lines:
        for node in enumerate(line):
            below[node].append(write(line[0]))
    return [[write(line[0]), *(_range(below[node]) for node in list(enumerate(line))[1:-1]), "*"] for line in lines]


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
