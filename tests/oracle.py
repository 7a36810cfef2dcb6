"""What a release should be, worked out row by row in plain Python: slow, short, and sharing no code with ldiv_db.

Definitions are those of the papers, in fractions, so that a comparison has one rounding at most (the
product's). A class is the list of its rows; a row's quasi-identifiers are a tuple of raw values, None
for NULL.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    if name == "entropy":
        # -sum p ln p >= ln l, both sides raised: |G|^|G| >= l^|G| prod n^n
        power = Fraction(len(values)) ** len(values)
        return power >= Fraction(str(argument)) ** len(values) * math.prod(n**n for n in counts.values())
    if name == "recursive":
        falling = sorted(counts.values(), reverse=True)
        return falling[0] < Fraction(str(argument["c"])) * sum(falling[argument["l"] - 1 :])
    if name == "alpha_k":
        alpha = Fraction(str(argument["alpha"]))
        return len(values) >= argument["k"] and all(count <= alpha * len(values) for count in counts.values())
    if name == "p_sensitive":
        return len(values) >= argument["k"] and len(counts) >= argument["p"]
    if name == "k":
        return len(values) >= argument
    if name == "risk":
        return Fraction(1, len(values)) <= Fraction(str(argument))
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
    if name == "range":
        ends = [Fraction(value) for value in counts if value is not None] or [Fraction(0)]
        return len(counts) >= argument["k"] and max(ends) - min(ends) >= Fraction(str(argument["e"]))
    if name == "proximity":
        return all(neighbours(values, value, argument["epsilon"]) * argument["m"] <= len(values) for value in counts)
    raise AssertionError(name)


def mean_risk(classes: Iterable[Sequence[Any]]) -> Fraction:
    """The mean over all rows of picking one's row within its class."""
    risks = [Fraction(1, len(values)) for values in classes for _ in values]
    return sum(risks, Fraction(0)) / len(risks)


def gain_is_allowed(values: Sequence[Any], table: Sequence[Any], name: str, argument: Mapping[str, Any]) -> bool:
    """Whether a class of these values of the table has beta-likeness, or delta-disclosure privacy."""
    return gain_of_shares_is_allowed(shares(values), shares(table), name, argument)


def gain_of_shares_is_allowed(
    have: Mapping[Any, Fraction], whole: Mapping[Any, Fraction], name: str, argument: Mapping[str, Any]
) -> bool:
    """Whether shares of a class have beta-likeness, or delta-disclosure privacy, beside those of the table."""
    if name == "beta_likeness":
        beta, enhanced = Fraction(str(argument["beta"])), argument.get("kind", "enhanced") == "enhanced"
        gains = [(have.get(value, Fraction(0)) / p - 1, p) for value, p in whole.items()]
        return all(gain <= beta and (not enhanced or gain <= max(0, -math.log(p))) for gain, p in gains)
    base = 2 if str(argument.get("log", 2)) == "2" else math.e
    if have.keys() != whole.keys():
        return False
    return all(
        abs(math.log(have[value] / p) / math.log(base)) < float(argument["delta"]) - 1e-12 for value, p in whole.items()
    )


def neighbours(values: Sequence[Any], value: Any, epsilon: Any) -> int:
    """How many of the values are within epsilon of one of them, itself among them; NULL is near NULL alone."""
    if value is None:
        return sum(other is None for other in values)
    placed = [Fraction(other) for other in values if other is not None]
    return sum(abs(other - Fraction(value)) <= Fraction(str(epsilon)) for other in placed)


def spared_class_is_good(values: Sequence[Any], name: str, argument: Any, harmless: Iterable[Any]) -> bool:
    """Whether one class meets a requirement that promises nothing of harmless values, whose rows count all the same.

    Shares and numbers of values are asked of the others. Recursive: nobody who rules out any l - 2 values, harmless or
    not, finds one of the others in c times as many rows as all that is left beside it.
    """
    counts = Counter(values)
    others = {value: count for value, count in counts.items() if value not in set(harmless)}
    size = len(values)
    if name == "k":
        return size >= argument
    if name == "distinct":
        return not others or len(others) >= argument
    if name == "p_sensitive":
        return size >= argument["k"] and (not others or len(others) >= argument["p"])
    if name == "frequency":
        return all(Fraction(str(argument)) * count <= size for count in others.values())
    if name == "alpha_k":
        return size >= argument["k"] and all(c <= Fraction(str(argument["alpha"])) * size for c in others.values())
    if name == "threshold":
        return class_is_good(values, name, _thetas(argument) | dict.fromkeys(harmless, 1))
    if name == "recursive":
        c, most = Fraction(str(argument["c"])), argument["l"] - 2
        if most < 0:
            return all(count < c * size for count in others.values())
        return all(
            count < c * (size - count - sum(counts[other] for other in out))
            for value, count in others.items()
            for out in itertools.combinations(set(counts) - {value}, min(most, len(counts) - 1))
        )
    raise AssertionError(name)


def _thetas(argument: Any) -> dict[Any, Any]:
    return dict(argument) if isinstance(argument, Mapping) else {"default": argument}


class Weighing:
    """Categories of sensitive values, most sensitive first; NULL, unless listed, is of the first."""

    def __init__(self, groups: Sequence[Sequence[Any]], weights: Sequence[Fraction]):
        self.category = {None: 0} | {value: i for i, group in enumerate(groups) for value in group}
        self.weights = weights

    def is_good(self, values: Sequence[Any], name: str, argument: Mapping[str, Any]) -> bool:
        """Whether a class is distinct, entropy or recursive (l,alpha)-diverse."""
        categories = [self.category[value] for value in values]
        weight = sum(self.weights[category] for category in categories)
        if len(set(values)) < argument["l"] or weight < Fraction(str(argument["alpha"])):
            return False
        if name == "entropy_alpha":
            return class_is_good(categories, "entropy", argument["l"])
        return name == "distinct_alpha" or class_is_good(categories, "recursive", argument)


def weights(steps: Sequence[Fraction]) -> list[Fraction]:
    """Weights from 0 to 1 whose differences stand to each other as the steps ((l,alpha) paper, Definition 3)."""
    return [sum(steps[:i], Fraction(0)) / sum(steps) for i in range(len(steps) + 1)]


def transport(have: Mapping[Any, Fraction], want: Mapping[Any, Fraction], distance: Any) -> Fraction:
    """The earth mover's distance of two distributions, by cheapest augmenting paths."""
    from_, to = list(have), list(want)
    left, open_ = dict(have), dict(want)
    flow: dict[tuple[Any, Any], Fraction] = defaultdict(Fraction)
    while any(left.values()):
        # Bellman-Ford over the residual graph; a node is (side, value).
        cost: dict[Any, Fraction] = {(0, a): Fraction(0) for a in from_ if left[a]}
        way: dict[Any, Any] = {}
        for _ in range(len(from_) + len(to)):
            for a, b in itertools.product(from_, to):
                for one, other, price, ok in (
                    ((0, a), (1, b), distance(a, b), True),
                    ((1, b), (0, a), -distance(a, b), flow[a, b] > 0),
                ):
                    if ok and one in cost and (other not in cost or cost[one] + price < cost[other]):
                        cost[other], way[other] = cost[one] + price, one
        last = min((node for node in cost if node[0] == 1 and open_[node[1]]), key=lambda node: cost[node])
        path = [last]
        while path[-1] in way:
            path.append(way[path[-1]])
        steps = list(itertools.pairwise(reversed(path)))
        back = [flow[other[1], one[1]] for one, other in steps if one[0] == 1]
        amount = min([left[path[-1][1]], open_[last[1]], *back])
        for one, other in steps:
            key = (one[1], other[1]) if one[0] == 0 else (other[1], one[1])
            flow[key] += amount if one[0] == 0 else -amount
        left[path[-1][1]] -= amount
        open_[last[1]] -= amount
    return sum((amount * distance(a, b) for (a, b), amount in flow.items()), Fraction(0))


def shares(values: Sequence[Any]) -> dict[Any, Fraction]:
    """How the values are distributed."""
    return {value: Fraction(count, len(values)) for value, count in Counter(values).items()}


def ground(kind: str, column: Sequence[Any], tree: Nested | None = None) -> Any:
    """The distance of two values: `equal`, `ordered` among those of the column (None last), `hierarchical`."""
    places = {v: i for i, v in enumerate(sorted(set(column), key=lambda v: (v is None, v)))}
    ways = _tree_ways(tree) if tree else {}

    def distance(a: Any, b: Any) -> Fraction:
        if a == b:
            return Fraction(0)
        if kind == "equal":
            return Fraction(1)
        if kind == "ordered":
            return Fraction(abs(places[a] - places[b]), len(places) - 1)
        return Fraction(*_shared_height(tree or {}, ways, a, b))

    return distance


def _tree_ways(tree: Nested, above: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """The way from the root to every leaf."""
    found: dict[str, tuple[str, ...]] = {}
    for label, below in tree.items():
        found |= _tree_ways(below, (*above, label)) if below else {label: (*above, label)}
    return found


def _shared_height(tree: Nested, ways: Any, a: Any, b: Any) -> tuple[int, int]:
    """The height of the lowest common ancestor, and that of the tree, which NULL has as a leaf under the root."""

    def height(below: Nested) -> int:
        return 1 + max(map(height, below.values())) if below else 0

    (branches,) = tree.values()
    whole = max(height(branches), 1)
    if a is None or b is None:
        return whole, whole
    at: Nested = tree
    deepest: Nested = branches
    for one, other in zip(ways[a], ways[b], strict=False):
        if one != other:
            break
        deepest = at[one]
        at = deepest
    return height(deepest), whole


def least_suppression(values: Sequence[Any], good: Any) -> int:
    """The fewest rows whose suppression leaves a good class or none, by trying all."""
    counts = sorted(Counter(values).items(), key=repr)
    best = len(values)
    for kept in itertools.product(*(range(count + 1) for _, count in counts)):
        rest = [value for (value, _), count in zip(counts, kept, strict=True) for _ in range(count)]
        if len(values) - len(rest) < best and rest and good(rest):
            best = len(values) - len(rest)
    return best


def violations(rows: Iterable[tuple[Hashable, Any]], name: str, argument: Any) -> dict[Hashable, int]:
    """The violating classes of a table with their sizes; empty if the requirement holds."""
    return {k: len(v) for k, v in group(rows).items() if not class_is_good(v, name, argument)}


# -- requirements on people -------------------------------------------------------------------------
# A class is pairs (person, value); None is somebody else in every row. A person has the different values of their
# rows in the class.


def bags(pairs: Iterable[tuple[Hashable, Any]]) -> list[frozenset[Any]]:
    """What each person has."""
    found: dict[Hashable, set[Any]] = defaultdict(set)
    for place, (person, value) in enumerate(pairs):
        found["nobody known" if person is None else "known", place if person is None else person].add(value)
    return [frozenset(values) for values in found.values()]


def shares_of_people(pairs: Iterable[tuple[Hashable, Any]]) -> dict[Any, Fraction]:
    """How values are distributed where every person weighs one, evenly over what they have."""
    people = bags(pairs)
    found: dict[Any, Fraction] = defaultdict(Fraction)
    for bag in people:
        for value in bag:
            found[value] += Fraction(1, len(bag) * len(people))
    return dict(found)


def people_are_good(
    pairs: Sequence[tuple[Hashable, Any]],
    name: str,
    argument: Any,
    whole: Sequence[tuple[Hashable, Any]] = (),
    harmless: Iterable[Any] = (),
    distance: Any = None,
) -> bool:
    """Whether one class of people meets a requirement; `whole` is the table, for those that compare with it.

    `distance` is that of two values for t-closeness, as `ground` has it; all are equally far apart without it.
    """
    people = bags(pairs)
    size, have = len(people), Counter(value for bag in people for value in bag)
    for value in harmless:
        del have[value]
    if name == "k":
        return size >= argument
    if name == "risk":
        return class_is_good(people, name, argument)
    if name == "unique_distinct":
        return size == len(pairs) and class_is_good([value for _, value in pairs], name, argument)
    if name == "distinct":
        enough = len(have) >= argument and all(size - count >= argument - 1 for count in have.values())
        return enough or not have
    if name == "p_sensitive":
        return size >= argument["k"] and people_are_good(pairs, "distinct", argument["p"], harmless=harmless)
    if name == "frequency":
        return all(Fraction(str(argument)) * count <= size for count in have.values())
    if name == "alpha_k":
        most = Fraction(str(argument["alpha"])) * size
        return size >= argument["k"] and all(count <= most for count in have.values())
    if name == "threshold":
        thetas = {"default": 1} | _thetas(argument)
        return all(Fraction(str(thetas.get(v, thetas["default"]))) * size >= count for v, count in have.items())
    assert not harmless, name
    shares, of_whole = shares_of_people(pairs), shares_of_people(whole)
    if name == "t_closeness" and distance:
        return transport(shares, of_whole, distance) <= Fraction(str(argument["t"]))
    return _shares_are_good(shares, name, argument, of_whole)


def _shares_are_good(have: Mapping[Any, Fraction], name: str, argument: Any, whole: Mapping[Any, Fraction]) -> bool:
    falling = sorted(have.values(), reverse=True)
    if name == "recursive":
        return falling[0] < Fraction(str(argument["c"])) * sum(falling[argument["l"] - 1 :])
    if name == "entropy":
        parts = math.lcm(*(share.denominator for share in falling))
        if parts > 5_000:  # powers of such numbers take too long
            return -sum(share * math.log(share) for share in falling) >= math.log(float(argument)) - 1e-9
        counts = [int(share * parts) for share in falling]
        return Fraction(parts) ** parts >= Fraction(str(argument)) ** parts * math.prod(n**n for n in counts)
    if name == "t_closeness":
        t = argument["t"] if isinstance(argument, Mapping) else argument
        # With equal distances as much is moved as values have too much.
        return sum(max(share - whole.get(value, 0), Fraction(0)) for value, share in have.items()) <= Fraction(str(t))
    assert name in ("beta_likeness", "delta_disclosure"), name
    key = name.partition("_")[0]
    return gain_of_shares_is_allowed(have, whole, name, argument if isinstance(argument, Mapping) else {key: argument})


def spread(rows: Iterable[Sequence[Any]], separator: str | None = None) -> list[tuple[Any, ...]]:
    """Rows (*labels, set) as (*labels, member, number of the row), with `separator` of the members of a text.

    NULL is the member of what has none.
    """
    found = []
    for number, (*labels, held) in enumerate(rows):
        listed = held or [] if separator is None else [text.strip(" []{}'\"") for text in (held or "").split(separator)]
        members = {member for member in listed if member not in (None, "")} or {None}
        found += [(*labels, member, number) for member in members]
    return found


def people_violations(
    rows: Iterable[Sequence[Any]], name: str, argument: Any, harmless: Iterable[Any] = ()
) -> dict[tuple[Any, ...], int]:
    """The violating classes of a table of rows (*labels, value, person), with how many people they have."""
    classes = people_of(rows)
    whole = [pair for pairs in classes.values() for pair in pairs]
    return {
        labels: len(bags(pairs))
        for labels, pairs in classes.items()
        if not people_are_good(pairs, name, argument, whole, harmless)
    }


def people_of(rows: Iterable[Sequence[Any]]) -> dict[tuple[Any, ...], list[tuple[Any, Any]]]:
    """The pairs (person, value) of each class, from rows (*labels, value, person)."""
    classes: dict[tuple[Any, ...], list[tuple[Any, Any]]] = defaultdict(list)
    for *labels, value, person in rows:
        classes[tuple(labels)].append((person, value))
    return dict(classes)


def sequences(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows (*labels, value, person, position) as (labels, value, person), of all rows of the person in their order."""
    listed, own = list(rows), defaultdict(list)
    for *labels, _, person, position in listed:
        own[person].append((position, tuple(labels)))
    shown = {
        person: tuple(labels for _, labels in sorted(found, key=lambda one: one[0])) for person, found in own.items()
    }
    return [(shown[person], value, person) for *_, value, person, _ in listed]


def scattered(rows: Iterable[Sequence[Any]]) -> set[Any]:
    """The people whose rows (*labels, value, person) are in several classes."""
    places = Counter(person for pairs in people_of(rows).values() for person in {person for person, _ in pairs})
    return {person for person, count in places.items() if count > 1 and person is not None}


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
    is fewer than those of their lowest common ancestor, and no more than `most`.
    """

    sets = False
    most: int | None = None

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
        if self.most is not None and len(found) > self.most:
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
    """A quasi-identifier with nested ranges of numbers as its tree, and what lies below and above the `ends` as one."""

    def __init__(
        self, widths: Sequence[Any], origin: Any, column: Iterable[Any], integers: bool, ends: Any = (None, None)
    ):
        column = list(column)
        self._integers = integers
        bottom, top = ends
        self._bottom = Decimal("-inf") if bottom is None else Decimal(str(bottom))
        self._top = Decimal("inf") if top is None else Decimal(str(top))
        self._origin = Decimal(str(origin))
        self._width = Decimal(str(widths[0]))
        numbers = [Decimal(str(value)) for value in column if value is not None]
        tree: Any = {}
        if numbers:
            leaf, last = self._floor(max(min(numbers), self._bottom), self._width), max(numbers)
            while leaf <= last and leaf < self._top:
                branch = tree
                for width in reversed([Decimal(str(width)) for width in widths]):
                    branch = branch.setdefault((self._floor(leaf, width), width), {})
                leaf += self._width
        named = ({} if bottom is None else {"below": {}}) | self._named(tree) | ({} if top is None else {"above": {}})
        super().__init__(named if len(named) == 1 else {"*": named}, None in column)

    def _floor(self, value: Decimal, width: Decimal) -> Decimal:
        steps = Fraction(value - self._origin) / Fraction(width)
        return self._origin + (steps.numerator // steps.denominator) * width

    def _named(self, tree: Any) -> Any:
        """By names; of a range that is cut off at an end so that it is no wider than its only part, that part."""
        found = {self._name(*key): self._named(below) for key, below in tree.items()}
        return {name: below[name] if list(below) == [name] else below for name, below in found.items()}

    def _name(self, low: Decimal, width: Decimal) -> str:
        begin, end = max(low, self._bottom), min(low + width, self._top)
        return f"{begin.normalize():f}+{(end - begin).normalize():f}"

    def leaf(self, value: Any) -> str | None:
        if value is None:
            return None
        number = Decimal(str(value))
        if number < self._bottom or number >= self._top:
            return "below" if number < self._bottom else "above"
        return self._name(self._floor(number, self._width), self._width)

    def _node_covers(self, label: str | None, value: Any) -> bool:
        if label is None or value is None:
            return label == "*" or (label is None and value is None)
        low, high, closed = _span(label)
        number = Decimal(str(value))
        return label == "*" or (low <= number and (number <= high if closed else number < high))


def _leaves(branches: Nested) -> int:
    return sum(map(_leaves, branches.values())) if branches else 1


def _span(label: str) -> tuple[Decimal, Decimal, bool]:
    """Low, high and whether high is in it, of `[low .. high]`, `[low .. high)` or a bare number."""
    if label[0] == "<" or label[-1] == "+":
        end = Decimal(label.strip("<+"))
        return (Decimal("-inf"), end, False) if label[0] == "<" else (end, Decimal("inf"), False)
    if label == "*":
        return Decimal(0), Decimal(0), True
    if not label.startswith("["):
        return Decimal(label), Decimal(label), True
    low, _, high = label[1:-1].partition(" .. ")
    return Decimal(low), Decimal(high), label.endswith("]")


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


def average_class_size(sizes: Sequence[int], l: int) -> Fraction:
    """CAVG: the average class size in units of l."""
    return Fraction(sum(sizes), len(sizes) * l)


# -- BSGI ------------------------------------------------------------------------------------------


def most_classes(counts: Sequence[int], l: int) -> int:
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


def draws(counts: Sequence[int], l: int) -> list[list[int]]:
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
    l: int,
    seed: int,
    stride: int,
    others: Mapping[int, tuple[Any, ...]] | None = None,
    most: int | None = None,
) -> dict[int, int]:
    """BSGI's Select (Figure 2), one group after the other: row id to group, from 1.

    `rows` maps row ids (from 1) to (bucket, codes), `order` is the buckets by falling size. The first row
    of a group is the free row of its bucket that comes first in the order of md5("seed:row id"); each
    next is the one that costs least in the grown group, ties to the least `(row id + group * stride)`
    modulo the number of rows and one.

    `others` are values on which rows of a group must differ as well, None for a value like no other. A group that
    finds no row gives up: its first row stays out, the others are free again. `most` bounds the groups.
    """
    free: dict[int, set[int]] = defaultdict(set)
    for row, (bucket, _) in rows.items():
        free[bucket].add(row)
    others = others or dict.fromkeys(rows, ())
    modulus = len(rows) + 1
    taken: dict[int, int] = {}
    for number, buckets in enumerate(draws([len(free[bucket]) for bucket in order], l)[:most], 1):
        members: list[int] = []
        for bucket in (order[place] for place in buckets):
            found = [row for row in free[bucket] if all(differ(others[row], others[member]) for member in members)]
            if not found:
                break
            if members:
                codes = [rows[member][1] for member in members]
                key = functools.partial(_choice, rows, axes, codes, number * stride, modulus)
            else:
                key = functools.partial(_drawn, seed)
            row = min(found, key=key)
            free[bucket].remove(row)
            members.append(row)
        if len(members) == l:
            taken |= dict.fromkeys(members, number)
        else:
            for row in members[1:]:
                free[rows[row][0]].add(row)
    return taken


def differ(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two rows differ on every key; None, of whom nothing is known, differs from all."""
    return all(a is None or a != b for a, b in zip(one, other, strict=True))


def incorporate(
    rows: Mapping[int, tuple[Any, ...]],
    keys: Mapping[int, tuple[Any, ...]],
    axes: Sequence[Any],
    classes: Mapping[int, list[int]],
    residual: Iterable[int],
) -> dict[int, int]:
    """BSGI's Incorporate (Figure 3) for residual rows in the order given: row id to class, for those that find one.

    `rows` maps row ids to codes, `keys` to the values on which a class's rows differ, `classes` class ids to rows.
    """
    grown = {number: list(members) for number, members in classes.items()}
    joined = {}
    for row in residual:
        costs = [
            (len(members) * sum(axis.cost([rows[m][i] for m in members]) for i, axis in enumerate(axes)), number)
            for number, others in grown.items()
            if all(differ(keys[row], keys[member]) for member in others)
            for members in [[*others, row]]
        ]
        if costs:
            joined[row] = min(costs)[1]
            grown[joined[row]].append(row)
    return joined


def most_differing_classes(keys: Sequence[tuple[Any, ...]], l: int) -> int:
    """The most disjoint groups of l rows that differ pairwise on every key, by trying all: for a dozen rows."""

    @functools.cache
    def most(left: frozenset[int]) -> int:
        if len(left) < l:
            return 0
        first = min(left)
        best = most(left - {first})
        for rest in itertools.combinations(sorted(left - {first}), l - 1):
            members = (first, *rest)
            if all(differ(keys[a], keys[b]) for a, b in itertools.combinations(members, 2)):
                best = max(best, 1 + most(left - set(members)))
            if best == len(left) // l:
                break
        return best

    return most(frozenset(range(len(keys))))


def _drawn(seed: int, row: int) -> tuple[str, int]:
    return hashlib.md5(f"{seed}:{row}".encode()).hexdigest(), row


def _choice(rows: Any, axes: Sequence[Any], members: list[Any], turn: int, modulus: int, row: int) -> tuple[int, int]:
    grown = [*members, rows[row][1]]
    cost = sum(axis.cost([codes[place] for codes in grown]) for place, axis in enumerate(axes))
    return cost, (row + turn) % modulus


# -- published tables --------------------------------------------------------------------------------
# A published cell is worked out by whoever wrote it: the base values that it covers, and what it loses.


@dataclass(frozen=True)
class Cell:
    """What a published cell covers, as places among the base values of its column, and its loss."""

    covers: frozenset[int]
    loss: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))


def tree_cell(covers: Iterable[int], leaves: int) -> Cell:
    """A cell that covers some of a tree's leaves: LM and NCP are those of a node with as many."""
    some = frozenset(covers)
    if len(some) == 1:
        return Cell(some)
    return Cell(some, (Fraction(len(some) - 1, leaves - 1), Fraction(len(some), leaves)))


def number_cell(low: Fraction, high: Fraction, numbers: Sequence[Fraction], covers: Iterable[int]) -> Cell:
    """A cell that names the range from `low` to `high` of the domain that `numbers`, the base values, span."""
    width = max(numbers) - min(numbers)
    inside = max(Fraction(0), min(high, max(numbers)) - max(low, min(numbers)))
    share = inside / width if width else Fraction(0)
    return Cell(frozenset(covers), (share, share))


def published_loss(
    published: Sequence[Sequence[Cell]], weights: Sequence[Any], rows_in: int, classes: Sequence[int]
) -> dict[str, Fraction]:
    """The losses of rows of cells against a source of `rows_in` rows; `classes` are their sizes."""
    suppressed, total = max(0, rows_in - len(published)), max(rows_in, len(published))
    exact = [Fraction(str(weight)) for weight in weights]
    lm = sum((cell.loss[0] for row in published for cell in row), Fraction(len(weights) * suppressed))
    ncp = sum((exact[i] * row[i].loss[1] for row in published for i in range(len(row))), suppressed * sum(exact))
    return {
        "lm": lm,
        "ncp": ncp,
        "lm_mean": lm / (total * len(weights)),
        "ncp_mean": ncp / (total * sum(exact)) if sum(exact) else Fraction(0),
        "dm": Fraction(sum(size * size for size in classes) + suppressed * rows_in),
        # Fully generalised, as far as losses in billionths tell.
        "stars": Fraction(sum(cell.loss[0] > 1 - Fraction(1, 2 * 10**9) for row in published for cell in row)),
    }


def precision(cells: Sequence[Cell], rows_in: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """The shares of the rows whose cell is exact, and not all, and what half and nine tenths lose at most, by LM."""
    lost = sorted([cell.loss[0] for cell in cells] + [Fraction(1)] * (rows_in - len(cells)))
    exact = sum(lm < Fraction(1, 2 * 10**9) for lm in lost)
    told = sum(lm <= 1 - Fraction(1, 2 * 10**9) for lm in lost)
    return (
        Fraction(exact, len(lost)),
        Fraction(told, len(lost)),
        lost[-(-len(lost) // 2) - 1],
        lost[-(-9 * len(lost) // 10) - 1],
    )


def classification(labels: Iterable[Sequence[Any]], suppressed: int) -> int:
    """CM: suppressed rows, and rows without the most frequent class label of their class."""
    return suppressed + sum(len(some) - max(Counter(some).values()) for some in labels)


def divergence(
    source: Sequence[tuple[int, ...]], published: Sequence[Sequence[Cell]], sizes: Sequence[int]
) -> float | None:
    """KL of published rows from the source's, all columns together; None if a row of the source has no chance.

    `sizes` are the numbers of base values; suppressed rows spread over all of them.
    """
    total = max(len(source), len(published))
    rest = Fraction(total - len(published), math.prod(sizes))
    sums = 0.0
    for row, count in Counter(source).items():
        mass = rest + sum(
            Fraction(1, math.prod(len(cell.covers) for cell in cells)) for cells in published if covers(cells, row)
        )
        if not mass:
            return None
        sums += count / len(source) * math.log(Fraction(count, len(source)) / (mass / total))
    return sums


def covers(cells: Sequence[Cell], row: Sequence[int]) -> bool:
    """Whether a published row may stand for a row of the source."""
    return all(value in cell.covers for value, cell in zip(row, cells, strict=True))


def query_errors(
    source: Sequence[tuple[int, ...]],
    published: Sequence[Sequence[Cell]],
    domains: Sequence[tuple[Any, int, bool]],
    keys: int,
    queries: int,
    seed: int,
) -> list[float]:
    """The relative errors of random COUNT queries over the first `keys` columns and one of the others.

    A domain is (the spans of a tree's nodes in the order of the tree, None for numbers; base values; whether the
    last of them is NULL).
    """
    found = []
    for query in range(queries):

        def draw(what: str, below: int, query: int = query) -> int:
            return int(hashlib.md5(f"{seed}:{query}:{what}".encode()).hexdigest(), 16) % below

        count = 1 + draw("count", keys)
        asked = sorted(range(keys), key=lambda place: draw(f"order {place}", 2**64))[:count]
        asked.append(keys + draw("sensitive", len(domains) - keys))
        anchor = sorted(source)[draw("anchor", len(source))]
        wanted = [set(range(size)) for _, size, _ in domains]
        for place in asked:
            nodes, size, null = domains[place]
            width = max(1, round((size - null) * 0.05 ** (1 / (count + 1))))
            wanted[place] = _asked(nodes, size, null, anchor[place], width, draw(f"shift {place}", width))
        answer = sum(all(value in some for value, some in zip(row, wanted, strict=True)) for row in source)
        estimate = sum(
            math.prod(
                Fraction(len(cell.covers & some), max(1, len(cell.covers)))
                for cell, some in zip(row, wanted, strict=True)
            )
            for row in published
        )
        bound = max(1, Fraction(len(source), 1000))
        found.append(float(abs(estimate - answer) / max(answer, bound)))
    return found


def _asked(nodes: Any, size: int, null: bool, anchor: int, width: int, shift: int) -> set[int]:
    """The base values that a query asks for in one column."""
    if nodes is not None:
        above = [(low, high) for low, high in nodes if low <= anchor <= high and high - low < width]
        low, high = max(above, key=lambda span: span[1] - span[0])
        return set(range(low, high + 1))
    if null and anchor == size - 1:
        return {anchor}
    low = max(0, min(anchor - shift, size - null - width))
    return set(range(low, low + width))


# -- kept columns ------------------------------------------------------------------------------------


def held_by_at_most(rows: Sequence[tuple[Any, Any, Any, int]], people: Sequence[Any] | None, most: int) -> int:
    """The rows (value, _, _, how many) whose value so many rows have at most, or so many people; None is somebody."""
    held: dict[Any, list[Any]] = defaultdict(list)
    for place, (value, _, _, count) in enumerate(rows):
        who = [place] * count if people is None else [people[place] if people[place] is not None else f"nobody {place}"]
        held[value].append((who, count))
    found = 0
    for entries in held.values():
        everybody = [one for who, _ in entries for one in who]
        if (len(everybody) if people is None else len(set(everybody))) <= most:
            found += sum(count for _, count in entries)
    return found


def follows(rows: Sequence[tuple[Any, Any, int]]) -> Fraction | None:
    """The share of rows (given, guessed, how many) guessed right by the most frequent value beside what is given.

    One row of each given value counts for nothing, and neither do all but one of the most frequent value of all. None
    where fewer than ten rows, or one in a hundred, are left.
    """
    total = sum(count for *_, count in rows)
    beside: dict[Any, Counter[Any]] = defaultdict(Counter)
    alone: Counter[Any] = Counter()
    for given, value, count in rows:
        beside[given][value] += count
        alone[value] += count
    spared = len(beside) + max(alone.values()) - 1
    if total - spared < max(10, Fraction(total, 100)):
        return None
    right = sum(max(values.values()) for values in beside.values())
    return max(Fraction(0), Fraction(right - spared, total - spared))
