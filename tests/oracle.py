"""What a release should be, worked out row by row in plain Python: slow, short, and sharing no code with ldiv_db.

Definitions are those of the papers, in fractions, so that a comparison has one rounding at most (the
product's). A class is the list of its rows; a row's quasi-identifiers are a tuple of raw values, None
for NULL.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

Nested = Mapping[str, "Nested"]

# -- requirements ----------------------------------------------------------------------------------


def group(rows: Iterable[tuple[Hashable, Any]]) -> dict[Hashable, list[Any]]:
    """The sensitive values of each class, from rows (class key, sensitive value)."""
    classes: dict[Hashable, list[Any]] = defaultdict(list)
    for key, value in rows:
        classes[key].append(value)
    return dict(classes)


def class_is_good(values: Sequence[Any], name: str, argument: Any) -> bool:
    """Whether one class with these sensitive values meets a requirement."""
    counts = Counter(values)
    if name == "k":
        return len(values) >= argument
    if name == "distinct":
        return len(counts) >= argument
    if name == "unique_distinct":
        return len(counts) == len(values) >= argument
    if name == "frequency":
        return all(Fraction(str(argument)) * count <= len(values) for count in counts.values())
    if name == "threshold":
        thetas = argument if isinstance(argument, Mapping) else {"default": argument}
        default = thetas.get("default", 1)
        return all(count <= Fraction(str(thetas.get(value, default))) * len(values) for value, count in counts.items())
    raise AssertionError(name)


def violations(rows: Iterable[tuple[Hashable, Any]], name: str, argument: Any) -> dict[Hashable, int]:
    """The violating classes of a table with their sizes; empty if the requirement holds."""
    return {k: len(v) for k, v in group(rows).items() if not class_is_good(v, name, argument)}


# -- attacks ---------------------------------------------------------------------------------------


def single(rows: Iterable[tuple[Hashable, Any]]) -> int:
    """The rows of classes in which all values (or categories) are the same."""
    return sum(len(values) for values in group(rows).values() if len(set(values)) == 1)


def skewness(rows: Sequence[tuple[Hashable, Any]]) -> tuple[Fraction, Fraction]:
    """The largest posterior over prior, and the largest posterior less prior."""
    table = [value for _, value in rows]
    pairs = [
        (Fraction(values.count(value), len(values)), Fraction(table.count(value), len(table)))
        for values in group(rows).values()
        for value in values
    ]
    return max(a / b for a, b in pairs), max(a - b for a, b in pairs)


def background(rows: Iterable[tuple[Hashable, Any]], m: int) -> tuple[Fraction, int]:
    """The largest posterior of who excludes up to m values, and the rows of classes where one value can be left.

    Every choice of excluded values is tried, in every class, for people of every value that is not excluded.
    """
    largest, certain = Fraction(0), 0
    for values in group(rows).values():
        best = Fraction(0)
        for size in range(m + 1):
            for excluded in itertools.combinations(sorted(set(values), key=repr), size):
                left = [value for value in values if value not in excluded]
                best = max([best, *(Fraction(left.count(value), len(left)) for value in left)])
        largest, certain = max(largest, best), certain + len(values) * (best == 1)
    return largest, certain


def posteriors(rows: Iterable[tuple[Hashable, Any]]) -> list[Fraction]:
    """Every row's posterior of its own value, given its class, in rising order."""
    classes = group(rows).values()
    return sorted(Fraction(values.count(value), len(values)) for values in classes for value in values)


def linked(
    people: Iterable[Sequence[Any]], classes: Mapping[Any, Sequence[Any]], covers: Any
) -> list[tuple[list[Any], list[Any]]]:
    """For everybody the classes whose label covers them (`covers(label, person)`), and the values of all of these."""
    found = []
    for person in people:
        labels = [label for label in classes if covers(label, person)]
        found.append((labels, [value for label in labels for value in classes[label]]))
    return found


# -- losses ----------------------------------------------------------------------------------------


class Numbers:
    """A numeric quasi-identifier without a tree; `column` is all values that take part.

    `bounded` says that it is published as two columns, of which NULL tells nothing.
    """

    bounded = False

    def __init__(self, column: Iterable[Any]):
        numbers = [Fraction(str(value)) for value in column if value is not None]
        self.width = max(numbers) - min(numbers) if numbers else Fraction(0)

    def lm(self, values: Sequence[Any]) -> Fraction:
        """The share of the domain that the class spans; numbers mixed with NULL lose all."""
        numbers = [Fraction(str(value)) for value in values if value is not None]
        if not numbers:
            return Fraction(self.bounded)
        if len(numbers) < len(values):
            return Fraction(1)
        return (max(numbers) - min(numbers)) / self.width if self.width else Fraction(0)

    ncp = lm

    def covers(self, label: str | None, value: Any) -> bool:
        if label is None or value is None:
            return label == "*" or (label is None and value is None)
        low, high, _ = _span(label)
        return label == "*" or low <= Decimal(str(value)) <= high

    def bounds(self, low: Any, high: Any, values: Sequence[Any]) -> bool:
        """Whether `low` and `high` bound a class with these values, as close as the codes of numbers are."""
        if None in values:
            return low is None and high is None
        slack = self.width / 2**30
        below, above = Fraction(str(min(values))) - Fraction(str(low)), Fraction(str(high)) - Fraction(str(max(values)))
        return 0 <= below <= slack and 0 <= above <= slack


class Tree:
    """A quasi-identifier with a tree: nested mappings with one root, leaves are empty.

    Where the column holds NULL, NULL is one more leaf under the root; a root that is not `*` first
    gets a root `*` above it. `sets` says that a class is published as the set of its leaves where that
    is fewer than those of their lowest common ancestor.
    """

    sets = False

    def __init__(self, tree: Nested, holds_null: bool):
        ((root, branches),) = tree.items()
        self.root_leaves = _leaves(branches) + holds_null
        self._leaves: dict[tuple[str, ...], int] = {}
        self._ways: dict[str | None, tuple[str, ...]] = {}
        above = ("*",) if holds_null and root != "*" else ()
        self._walk((*above, root), branches)
        if holds_null:
            self._leaves[("*",)] = self.root_leaves
            self._ways[None] = ("*", "\0null")
            self._leaves[self._ways[None]] = 1

    def _walk(self, way: tuple[str, ...], branches: Nested) -> None:
        self._leaves[way] = _leaves(branches)
        if not branches:
            self._ways[way[-1]] = way
        for label, below in branches.items():
            self._walk((*way, label), below)

    def leaf(self, value: Any) -> str | None:
        """The leaf that a value of the column is."""
        return None if value is None else str(value)

    def ancestor(self, values: Iterable[Any]) -> tuple[str, ...]:
        """The way from the root to the lowest common ancestor."""
        ways = [self._ways[self.leaf(value)] for value in values]
        shared = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*ways, strict=False))
        return tuple(level[0] for level in shared)

    def label(self, values: Iterable[Any]) -> str | None:
        """The lowest common ancestor's label."""
        way = self.ancestor(values)
        return None if way == self._ways.get(None) else way[-1]

    def members(self, values: Sequence[Any]) -> list[str | None] | None:
        """The set that a class is published as, in the order of the tree; None if it is published as a label."""
        found = {self.leaf(value) for value in values}
        if not self.sets or not 1 < len(found) < self._leaves[self.ancestor(values)]:
            return None
        return [leaf for leaf in self._ways if leaf in found]

    def _size(self, values: Sequence[Any]) -> int:
        """The leaves that are published for a class."""
        members = self.members(values)
        return self._leaves[self.ancestor(values)] if members is None else len(members)

    def lm(self, values: Sequence[Any]) -> Fraction:
        leaves = self._size(values)
        return Fraction(leaves - 1, self.root_leaves - 1) if leaves > 1 else Fraction(0)

    def ncp(self, values: Sequence[Any]) -> Fraction:
        leaves = self._size(values)
        # A node with a single leaf below it says exactly what the leaf says.
        return Fraction(leaves, self.root_leaves) if leaves > 1 else Fraction(0)

    def covers(self, label: str | None, value: Any) -> bool:
        if self.sets and label is not None and label.startswith("{"):
            return any(self._node_covers(member, value) for member in parse_set(label))
        return self._node_covers(label, value)

    def _node_covers(self, label: str | None, value: Any) -> bool:
        way = self._ways[self.leaf(value)]
        return value is None if label is None else label in way


def parse_set(text: str) -> list[str | None]:
    """The labels in a published set `{a, "b, c", NULL}`, read character by character; None is NULL."""
    assert text.startswith("{"), text
    found: list[str | None] = []
    place = 1
    while True:
        if text[place] == '"':
            place, written = place + 1, ""
            while text[place] != '"' or text[place + 1] == '"':
                written += text[place]
                place += 2 if text[place] == '"' else 1
            found.append(written)
            place += 1
        else:
            start = place
            while text[place] not in ",}":
                place += 1
            written = text[start:place]
            assert written and not set(written) & set('{"'), text
            found.append(None if written == "NULL" else written)
        if text[place] == "}":
            assert place == len(text) - 1, text
            return found
        assert text[place : place + 2] == ", ", text
        place += 2


class Ranges(Tree):
    """A quasi-identifier with nested ranges of numbers as its tree."""

    def __init__(self, widths: Sequence[Any], origin: Any, column: Iterable[Any], integers: bool):
        column = list(column)
        self._integers = integers
        self._origin = Decimal(str(origin))
        self._width = Decimal(str(widths[0]))
        numbers = [Decimal(str(value)) for value in column if value is not None]
        tree: Any = {}
        if numbers:
            leaf, last = self._floor(min(numbers), self._width), max(numbers)
            while leaf <= last:
                branch = tree
                for width in reversed([Decimal(str(width)) for width in widths]):
                    branch = branch.setdefault((self._floor(leaf, width), width), {})
                leaf += self._width
        named = self._named(tree)
        super().__init__(named if len(named) == 1 else {"*": named}, None in column)

    def _floor(self, value: Decimal, width: Decimal) -> Decimal:
        steps = Fraction(value - self._origin) / Fraction(width)
        return self._origin + (steps.numerator // steps.denominator) * width

    def _named(self, tree: Any) -> Any:
        return {self._name(*key): self._named(below) for key, below in tree.items()}

    def _name(self, low: Decimal, width: Decimal) -> str:
        return f"{low.normalize():f}+{width.normalize():f}"

    def leaf(self, value: Any) -> str | None:
        return None if value is None else self._name(self._floor(Decimal(str(value)), self._width), self._width)

    def _node_covers(self, label: str | None, value: Any) -> bool:
        if label is None or value is None:
            return label == "*" or (label is None and value is None)
        low, high, closed = _span(label)
        number = Decimal(str(value))
        return label == "*" or (low <= number and (number <= high if closed else number < high))


def _leaves(branches: Nested) -> int:
    return sum(map(_leaves, branches.values())) if branches else 1


def _span(label: str) -> tuple[Decimal, Decimal, bool]:
    """Low, high and whether high is in it, of `[low-high]`, `[low-high)` or a bare number."""
    if label == "*":
        return Decimal(0), Decimal(0), True
    if not label.startswith("["):
        return Decimal(label), Decimal(label), True
    inner = label[1:-1]
    dash = inner.index("-", 1)  # from 1 on: the first character may be a minus
    return Decimal(inner[:dash]), Decimal(inner[dash + 1 :]), label.endswith("]")


def loss(
    scales: Sequence[Any], weights: Sequence[Any], classes: Sequence[Sequence[tuple[Any, ...]]], suppressed: int
) -> dict[str, Fraction]:
    """LM, NCP, their means per cell and DM of a table published in `classes`; suppressed rows lose every cell."""
    total = sum(map(len, classes)) + suppressed
    lm = ncp = Fraction(0)
    for place, (scale, weight) in enumerate(zip(scales, weights, strict=True)):
        columns = [[row[place] for row in rows] for rows in classes]
        lm += sum(len(values) * scale.lm(values) for values in columns) + suppressed
        ncp += Fraction(str(weight)) * (sum(len(values) * scale.ncp(values) for values in columns) + suppressed)
    all_weights = sum(Fraction(str(weight)) for weight in weights)
    return {
        "lm": lm,
        "ncp": ncp,
        "lm_mean": lm / (total * len(scales)),
        "ncp_mean": ncp / (total * all_weights) if all_weights else Fraction(0),
        "dm": Fraction(discernibility(list(map(len, classes)), suppressed)),
    }


def discernibility(sizes: Sequence[int], suppressed: int) -> int:
    """DM: every row costs the size of its class, a suppressed one that of the table."""
    return sum(size * size for size in sizes) + suppressed * (sum(sizes) + suppressed)


def average_class_size(sizes: Sequence[int], l: int) -> Fraction:  # noqa: E741
    """CAVG: the average class size in units of l."""
    return Fraction(sum(sizes), len(sizes) * l)


# -- BSGI ------------------------------------------------------------------------------------------


def most_classes(counts: Sequence[int], l: int) -> int:  # noqa: E741
    """The most disjoint groups of l rows with different values, by trying every way to draw them."""

    @functools.cache
    def most(left: tuple[int, ...]) -> int:
        best = 0
        places = [place for place, count in enumerate(left) if count]
        for drawn in itertools.combinations(places, l):
            rest = tuple(sorted(count - (place in drawn) for place, count in enumerate(left)))
            best = max(best, 1 + most(rest))
        return best

    return most(tuple(sorted(counts)))


def draws(counts: Sequence[int], l: int) -> list[list[int]]:  # noqa: E741
    """The buckets (from 0) that each group draws from: the l largest, ties to the first, until fewer than l are left."""  # noqa: E501
    left = list(counts)
    plan = []
    while sum(count > 0 for count in left) >= l:
        order = sorted(range(len(left)), key=lambda bucket: (-left[bucket], bucket))[:l]
        for bucket in order:
            left[bucket] -= 1
        plan.append(order)
    return plan


class CodedNumbers:
    """The cost of a group on a numeric axis, in whole units: what Select compares."""

    def __init__(self, scale: int, null_code: int | None, unit: int):
        self.scale, self.null_code, self.unit = scale, null_code, unit

    def cost(self, codes: Sequence[int]) -> int:
        if self.null_code in codes:
            return 0 if set(codes) == {self.null_code} else self.unit
        return (max(codes) - min(codes)) * self.unit // max(self.scale, 1)


class CodedTree:
    """The cost of a group on an axis with a tree; `spans` are the first and last leaf number of every node."""

    def __init__(self, spans: Sequence[tuple[int, int]], unit: int):
        self.spans, self.unit = spans, unit
        self.leaves = max(high for _, high in spans) + 1

    def cost(self, codes: Sequence[int]) -> int:
        over = [high - low + 1 for low, high in self.spans if low <= min(codes) and high >= max(codes)]
        return 0 if min(over) == 1 else min(over) * self.unit // self.leaves


def select(
    rows: Mapping[int, tuple[int, tuple[int, ...]]],
    axes: Sequence[Any],
    order: Sequence[int],
    l: int,  # noqa: E741
    seed: int,
    stride: int,
) -> dict[int, int]:
    """BSGI's Select (Figure 2), one group after the other: row id to group, from 1.

    `rows` maps row ids (from 1) to (bucket, codes), `order` is the buckets by falling size. The first row
    of a group is the free row of its bucket that comes first in the order of md5("seed:row id"); each
    next is the one that costs least in the grown group, ties to the least `(row id + group * stride)`
    modulo the number of rows and one.
    """
    free: dict[int, set[int]] = defaultdict(set)
    for row, (bucket, _) in rows.items():
        free[bucket].add(row)
    modulus = len(rows) + 1
    taken: dict[int, int] = {}
    for number, buckets in enumerate(draws([len(free[bucket]) for bucket in order], l), 1):
        members: list[tuple[int, ...]] = []
        for bucket in (order[place] for place in buckets):
            if members:
                key = functools.partial(_choice, rows, axes, members, number * stride, modulus)
            else:
                key = functools.partial(_drawn, seed)
            row = min(free[bucket], key=key)
            free[bucket].remove(row)
            taken[row] = number
            members.append(rows[row][1])
    return taken


def _drawn(seed: int, row: int) -> tuple[str, int]:
    return hashlib.md5(f"{seed}:{row}".encode()).hexdigest(), row


def _choice(rows: Any, axes: Sequence[Any], members: list[Any], turn: int, modulus: int, row: int) -> tuple[int, int]:
    grown = [*members, rows[row][1]]
    cost = sum(axis.cost([codes[place] for codes in grown]) for place, axis in enumerate(axes))
    return cost, (row + turn) % modulus
