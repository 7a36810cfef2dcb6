"""Cells: one value on each axis, a small table, and its policy; the promises are asked of the release of each.

An axis is a question that a user answers (one table or several? whose rows? to where?), a value one of the answers.
Which values go together is not said here: a policy is put together of the features of its values, by `GIVEN` of
`tests/policy/test_limits.py`, and left out where `LIMITS` of the product refuses it. A pair that starts to work, whose
limit goes, is thus tried at once; one that the product refuses without a limit is in `NOT_YET`, with why.

To add a value to an axis:

1. Give it a line in `AXES`: the features of policies that it stands for (names of `GIVEN`; a feature that is new there
   is one line of `GIVEN`), and perhaps what else it changes of a policy once that is put together (`then`).
2. If it is a place, say in `homes.py` how tables come to it and how what is published is read; if it is a kind of
   values, add its ages and towns to `VALUES`. Nothing else needs to know of it: rows of what is published are read as
   texts by the names of their columns.
3. `python -m pytest tests/promises -k NAME` runs the cells with a value of that name; `python -m tests.promises.cells`
   prints all of them. The diagonal, in which each value stands at least once, is of every pass;
   `--hypothesis-profile=whole` takes the cells in which each pair of values stands that goes together.

A promise is a function of `test_promises.py` that takes `release`, made once a cell in a process. It looks at what was
published by `release.rows`, which `release.origin` leads back to the source, and by `release.classes`; those that run
again stand last, as they may change what is there.
"""

from __future__ import annotations

import copy
import datetime
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from ldiv_db.policy.limits import FEATURES, LIMITS
from ldiv_db.policy.reading import load_policy
from ldiv_db.policy.sources import DECOMPOSITIONS
from tests.policy.test_limits import GIVEN, broken_of, has, of_person, over_time, part, plain


def _nothing(document: dict[str, Any]) -> None:
    pass


class Value(NamedTuple):
    """An answer: the features of policies that have it, and what it changes of one that is put together."""

    features: tuple[str, ...] = ()
    then: Callable[[dict[str, Any]], Any] = _nothing


Row = dict[str, Any]
Tables = dict[str, list[Row]]
#: What an axis is called, and its values; the first is what is plain.
AXES: dict[str, dict[str, Value]] = {}
_TOWNS = ["D-115", "D-117", "A-095"]
#: The ages and towns of a kind of values, in the order of their rows; and the types of both columns.
VALUES: dict[str, tuple[list[Any], list[Any], str, str]] = {
    "integers": ([20, 24, 31, 38, 45, 52], _TOWNS, "INTEGER", "VARCHAR"),
    "decimals": ([Decimal(n) / 4 for n in (-6, 1, 3, 50, 51, 401)], _TOWNS, "DECIMAL(8, 2)", "VARCHAR"),
    "dates": (
        [datetime.date(1999, 12, 28) + datetime.timedelta(n) for n in (0, 3, 6, 64, 70, 400)],
        _TOWNS, "DATE", "VARCHAR",
    ),
    "hostile text": ([20, 24, 31, 38, 45, 52], ["it's; DROP", 'say "x" --', "é\n☃"], "INTEGER", "VARCHAR"),
    "NULLs": ([20, None, 31, 38, None, 52], ["D-115", None, "A-095"], "INTEGER", "VARCHAR"),
}  # fmt: skip
#: What columns are called where names are hostile.
HOSTILE = {"zip": 'zip "code"; --', "dx": "it's {dx}", "note": "SELECT"}
SENSITIVE = ["flu-1", "hiv-2", "x;--3", "é'4\"", "cold-5", "gout-6"]
#: Whose each row is: some have one, some two or three.
OWNERS = [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 4]


def _sets(document: dict[str, Any]) -> None:
    part(document)["quasi_identifiers"]["zip"] = {"taxonomy": {"flat": True}, "recode": "set"}


def _unit(rows: str) -> Callable[[dict[str, Any]], Any]:
    """A person's rows as one, or in their order; of several tables those of the stays."""

    def then(document: dict[str, Any]) -> None:
        if "tables" not in document:
            of_person(rows, document)
            document.setdefault("output", {})["person"] = "nr"
            return
        stays = document["tables"]["stays"]
        stays["identifiers"] = ["day", "stay"]
        del stays["order"]
        if rows == "together":
            stays["rows"] = rows
        if rows == "aligned":
            document["individual"] = {"column": "who", "rows": rows, "order": "day"}

    return then


def _by_nights(document: dict[str, Any]) -> None:
    """A promise of each night, where people have several rows."""
    if document.get("individual"):
        document["nights"] = "apart"


def _file(name: str) -> Callable[[dict[str, Any]], Any]:
    """A file of this name; of several tables, or groups, a folder of such files, or the database that it is."""

    def then(document: dict[str, Any]) -> None:
        for table, said in document.get("tables", {"": document}).items():
            is_alone = (table or str(document.get("algorithm")) in DECOMPOSITIONS) and not name.endswith("duckdb")
            place = {"file": f"out/{table or 'pub'}.{name.split('.')[1]}" if is_alone else name}
            said["target"] = place | {key: v for key, v in said["target"].items() if key == "prefix" and not is_alone}
            if name.endswith("duckdb") and "prefix" not in said["target"]:
                said["target"]["table"] = f"pub{table}"

    return then


def _requires(requirement: Mapping[str, Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda document: document.update(require=[requirement])


def _by(algorithm: Any) -> Callable[[dict[str, Any]], Any]:
    """By this algorithm, unless the form is one itself."""
    return lambda document: document.setdefault("algorithm", algorithm)


METHODS: dict[str, Any] = {name: name for name in ("topdown", "bsgi", "mondrian", "peel", "cuts", "tds")}
METHODS["auto"] = {"name": "auto", "effort": "quick"}
#: What takes several times as long as the other values of its axis, and stands in as few cells as it can.
DEAR = {("method", "auto"), ("tables", "several"), ("time", "series"), ("place", "sqlite"), ("place", "postgres")}
#: What is required, as the oracle takes it; the share of the worlds in which a person may have a value, if it says one.
REQUIRED: dict[str, tuple[Any, Fraction | None]] = {
    "frequency": (2, Fraction(1, 2)),
    "k": (2, None),
    "distinct": (2, None),
    "entropy": (1.5, None),
    "recursive": ({"c": 3, "l": 2}, None),
    "alpha_k": ({"alpha": 0.6, "k": 2}, Fraction(3, 5)),
    "threshold": ({"default": 0.6}, Fraction(3, 5)),
    "t_closeness": ({"t": 0.9, "distance": "equal"}, None),
}
AXES |= {
    "tables": {"one": Value(), "several": Value(("tables",))},
    "unit": {
        "row": Value(),
        "apart": Value(("individual",), lambda document: "tables" in document and _unit("apart")(document)),
        "together": Value((), _unit("together")),
        "aligned": Value((), _unit("aligned")),
    },
    "time": {"once": Value(), "series": Value(("releases over time",), _by_nights)},
    "form": {
        "trees": Value(),
        "sets": Value((), _sets),
        "bounds": Value(("bounds",)),
        "means": Value(("means and medians",)),
        "transparent": Value(("transparent",)),
        "counts": Value(("weight",)),
        "decomposition": Value(("decomposition",), over_time),
    },
    "require": {
        name: Value(("comparisons",) if name == "t_closeness" else (), _requires({name: said}) if number else _nothing)
        for number, (name, (said, _)) in enumerate(REQUIRED.items())
    },
    "method": {name: Value((), _by(said)) for name, said in METHODS.items()},
    "place": {
        "database": Value(),
        "attached": Value(("databases",)),
        "frame": Value(),
        "csv": Value(),
        "sqlite": Value(("a warehouse",)),
        "postgres": Value(("a warehouse",)),
    },
    "target": {
        "table": Value(),
        "parquet": Value(("flat files",), _file("pub.parquet")),
        "duckdb": Value(("a file",), _file("pub.duckdb")),
        "another database": Value(("databases", "another database")),
    },
    "values": {kind: Value() for kind in VALUES},
    "sensitive": {"single": Value(), "set": Value(("set",))},
}
#: Pairs that are refused without a limit, each with why.
NOT_YET: Mapping[frozenset[str], str] = {
    frozenset(pair): why
    for pair, why in {
        **{(name, "decomposition"): "it requires l of each attribute" for name in REQUIRED if name != "frequency"},
        **{(name, "decomposition"): "a decomposition is an algorithm itself" for name in METHODS if name != "topdown"},
        ("t_closeness", "bsgi"): "different values are not enough for it",
        ("several", "row"): "of several tables people are counted",
        ("sqlite", "dates"): "dates are texts there",
        ("several", "bsgi"): "it takes one sensitive value a person",
        ("together", "bsgi"): "it takes one sensitive value a person",
        ("aligned", "bsgi"): "it takes one sensitive value a person",
        ("set", "bsgi"): "it takes one sensitive value a row",
        ("means", "decimals"): "a mean is of whole numbers",
        ("means", "dates"): "a mean is of whole numbers",
    }.items()
}
#: Three that do not go together, though any two of them do.
NOT_ALL = [
    {"means", "several", "together"},
] + [
    {"series", place, target} for place in ("sqlite", "postgres") for target in ("duckdb", "parquet")
]  # every night of a table there goes to a table there


class Cell(NamedTuple):
    """A value on each axis."""

    tables: str = "one"
    unit: str = "row"
    time: str = "once"
    form: str = "trees"
    require: str = "frequency"
    method: str = "topdown"
    place: str = "database"
    target: str = "table"
    values: str = "integers"
    sensitive: str = "single"

    @property
    def id(self) -> str:
        return "-".join(value.replace(" ", "_") for value in self)

    @property
    def choices(self) -> list[tuple[str, str]]:
        return list(zip(AXES, self, strict=True))

    @property
    def given(self) -> set[str]:
        """The features that a policy does not say."""
        return {"a warehouse"} if self.place in ("sqlite", "postgres") else set()

    @property
    def features(self) -> set[str]:
        return {feature for axis, value in zip(AXES, self, strict=True) for feature in AXES[axis][value].features}

    def document(self) -> dict[str, Any]:
        """The policy, by the plain names of columns; a source is a table."""
        document = plain()
        document["keep"] = ["note"]
        document["quasi_identifiers"]["age"] = {"numeric": True}
        features = self.features
        for name, give in GIVEN.items():
            if name in features:
                give(document)
        for axis, value in zip(AXES, self, strict=True):
            AXES[axis][value].then(document)
        return document

    def is_allowed(self) -> bool:
        """Whether nothing refuses it: no limit of the product's, and no pair that is not yet."""
        if any(frozenset(pair) in NOT_YET for pair in itertools.combinations(self, 2)):
            return False
        if any(three <= {*self} for three in NOT_ALL):
            return False
        return not broken_of(self.document(), self.given)

    def names(self) -> dict[str, str]:
        """What the columns are called."""
        return HOSTILE if self.values == "hostile text" else {}


def renamed(given: Any, names: Mapping[str, str]) -> Any:
    """A policy or a row with other names for some columns."""
    if isinstance(given, dict):
        return {names.get(key, key): renamed(value, names) for key, value in given.items()}
    if isinstance(given, list):
        return [renamed(value, names) for value in given]
    return names.get(given, given) if isinstance(given, str) else given


def rows_of(cell: Cell, nights: int | None = None) -> list[Row]:
    """The stays, by plain names: a dozen, and of a series as many again for each of two nights."""
    ages, towns, *_ = VALUES[cell.values]
    found: list[Row] = []
    for no in range(12 * (nights or (2 if cell.time == "series" else 1))):
        owner = OWNERS[no % 12] + 8 * (no // 12)
        found.append(
            {
                "stay": 100 + no, "who": owner, "day": no, "age": ages[(owner * 5 + no // 8) % 6],
                "zip": towns[owner % 3], "dx": SENSITIVE[(no * 5 + no // 6) % 6], "note": f"note {no:02}",
            }
        )  # fmt: skip
    if cell.sensitive == "set":
        for no, row in enumerate(found):
            row["dx"] = ", ".join([row["dx"], SENSITIVE[no % 6]][: 1 + no % 2])
    is_whole = cell.form == "means" and (cell.unit == "aligned" or cell.tables == "several")
    return found[:-1] if is_whole else found  # nobody else has three rows, and none may be left out


def members(cell: Cell, value: Any) -> list[Any]:
    """The values that one of the sensitive column stands for."""
    return list(dict.fromkeys(value.split(", "))) if cell.sensitive == "set" else [value]


def tables_of(cell: Cell, rows: list[Row]) -> tuple[Tables, dict[str, dict[str, str]]]:
    """The tables that hold these stays, and the types of their columns."""
    *_, age, town = VALUES[cell.values]
    kinds = {"stay": "INTEGER", "who": "INTEGER", "day": "INTEGER", "age": age, "zip": town, "dx": "VARCHAR"}
    kinds |= {"note": "VARCHAR"}
    if cell.form == "counts":
        counted = [
            {name: row[name] for name in ("age", "zip", "dx", "note")} | {"n": 1 + no % 2}
            for no, row in enumerate(rows[:8])
        ]
        return {"counted": counted}, {
            "counted": {name: kinds[name] for name in counted[0] if name != "n"} | {"n": "INTEGER"}
        }
    tables: Tables = {"stays": rows}
    types = {"stays": kinds}
    if cell.tables == "several":
        people = sorted({row["who"] for row in rows})
        tables["patients"] = [{"who": who, "sex": "mf"[who % 2]} for who in people]
        types["patients"] = {"who": "INTEGER", "sex": "VARCHAR"}
    return tables, types


Choice = tuple[str, str]


@functools.cache
def features_of(axis: str, value: str, tables: str) -> set[str]:
    """All features that a policy of one table or of several has by this value, also those that follow from it."""
    cell = Cell(**{"tables": tables, axis: value})
    policy = load_policy(copy.deepcopy(cell.document()))
    return {name for name in FEATURES if has(name, policy, cell.given)}


@functools.cache
def own(choice: Choice, tables: str) -> set[str]:
    """The features that come with a value, and not with all of its axis."""
    every = {value: features_of(choice[0], value, tables) for value in AXES[choice[0]]}
    return every[choice[1]] - set.intersection(*every.values())


@functools.cache
def refused(one: Choice, other: Choice, tables: str) -> bool:
    """Whether two values do not go together, whatever the others are."""
    if frozenset((one[1], other[1])) in NOT_YET:
        return True
    first, second = (own(choice, tables) for choice in (one, other))
    return any(
        (limit.feature in first and limit.other in second) or (limit.feature in second and limit.other in first)
        for limit in LIMITS
        if limit.way_out != "nights: apart"  # which both have
    )


def completed(known: Mapping[str, str], prefer: Callable[[list[Choice]], Any], tries: int = 60) -> Cell | None:
    """An allowed cell with these values, of which the others are those that are preferred; None if there is none."""
    left = [tries]

    def deeper(chosen: list[Choice]) -> Cell | None:
        if len(chosen) == len(AXES):
            left[0] -= 1
            cell = Cell(**dict(chosen))
            return cell if cell.is_allowed() else None
        axis = next(axis for axis in AXES if axis not in dict(chosen))
        able = [(axis, value) for value in AXES[axis] if not _hinders((axis, value), chosen)]
        for choice in sorted(able, key=lambda choice: prefer([*chosen, choice])):
            if left[0] > 0 and (found := deeper([*chosen, choice])):
                return found
        return None

    return deeper(list(known.items()))


def _hinders(choice: Choice, chosen: list[Choice]) -> bool:
    tables = dict([*chosen, choice]).get("tables", "one")
    return any(refused(choice, one, tables) for one in chosen)


def pairs_of(chosen: Iterable[Choice]) -> set[frozenset[Choice]]:
    return set(map(frozenset, itertools.combinations(chosen, 2)))


def _rank(axis: str) -> tuple[bool, int]:
    """Of what comes first: series, which few forms have, and then the axes with most values."""
    return axis != "time", -len(AXES[axis])


@functools.cache
def diagonal(times: int = 1) -> tuple[Cell, ...]:
    """Cells in which each value stands so many times, all units of one table and of several, and nights."""
    found: list[Cell] = []
    used: Counter[Choice] = Counter()
    seen: set[frozenset[Choice]] = set()

    def add(*known: Choice) -> None:
        cell = completed(
            dict(known), lambda chosen: (chosen[-1] in DEAR, used[chosen[-1]], len(pairs_of(chosen) & seen))
        )
        if cell is None:
            assert len(known) > 1, known
            return
        found.append(cell)
        used.update(cell.choices)
        seen.update(pairs_of(cell.choices))

    units = itertools.product(*([(axis, value) for value in AXES[axis]] for axis in ("tables", "unit")))
    for pair in (*units, *((("time", "series"), ("form", form)) for form in ("trees", "decomposition"))):
        if not _hinders(pair[0], [pair[1]]):
            add(*pair)
    every = sorted(((axis, value) for axis in AXES for value in AXES[axis]), key=lambda one: _rank(one[0]))
    for time, (axis, value) in itertools.product(range(1, times + 1), every):
        while used[axis, value] < time:
            add((axis, value))
    return tuple(found)


@functools.cache
def covering() -> tuple[Cell, ...]:
    """Cells in which each pair of values stands that goes together, the diagonal first."""
    found = list(diagonal())
    seen = {pair for cell in found for pair in pairs_of(cell.choices)}
    every = [(axis, value) for axis in AXES for value in AXES[axis]]
    for one, other in itertools.combinations(every, 2):
        if one[0] == other[0] or frozenset((one, other)) in seen or _hinders(one, [other]):
            continue
        cell = completed(dict([one, other]), lambda chosen, seen=seen: len(pairs_of(chosen) & seen))
        if cell is not None:  # else a third value, which they need, does not go with one of them
            found.append(cell)
            seen |= pairs_of(cell.choices)
    return tuple(found)


if __name__ == "__main__":
    for cell in covering():
        print(cell.id)
