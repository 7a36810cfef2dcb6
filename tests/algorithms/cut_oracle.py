"""Cuts by brute force: every cut of every tree, its partitions row by row, its cost in exact fractions."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import floor

#: Small trees of several shapes.
SHAPES = [
    {"*": {"a": {}, "b": {}, "c": {}}},
    {"*": {"L": {"a": {}, "b": {}}, "R": {"c": {}, "d": {}}}},
    {"*": {"a": {}, "M": {"N": {"b": {}, "c": {}}, "d": {}}}},
    {"T": {"U": {"a": {}, "b": {}}}},
    {"*": {"P": {"Q": {"a": {}, "b": {}}, "c": {}}, "d": {}, "e": {}}},
]


@dataclass(frozen=True)
class Numbers:
    """In place of a tree: numbers in order, of which any neighbours may be put together, and NULL if that occurs."""

    values: tuple
    has_null: bool = False

    def cuts(self):
        """All ways to part the numbers, with NULL alone, and all of them with NULL, as `cuts` has those of a tree."""
        for choice in product([False, True], repeat=len(self.values) - 1):
            groups = [[self.values[0]]]
            for value, begins in zip(self.values[1:], choice, strict=True):
                groups += [[value]] if begins else []
                groups[-1] += [] if begins else [value]
            yield {v: (shown(g), tuple(g)) for g in [*groups, *([[None]] if self.has_null else [])] for v in g}
        if self.has_null:
            every = (*self.values, None)
            yield dict.fromkeys(every, ("*", every))

    def loss(self, group):
        """The share of the range, of NULL among numbers all of it."""
        if None in group:
            return Fraction(len(group) > 1)
        return Fraction(group[-1] - group[0]) / (Fraction(self.values[-1] - self.values[0]) or 1)


def shown(group):
    """What an interval is published as."""
    if group == [None]:
        return None
    return str(group[0]) if len(group) == 1 else f"[{group[0]} .. {group[-1]}]"


def leaves(tree):
    """The leaves below a tree {label: {...}} of one root."""
    if isinstance(tree, Numbers):
        return [*tree.values, *([None] if tree.has_null else [])]
    ((label, below),) = tree.items()
    return [leaf for child, deeper in below.items() for leaf in leaves({child: deeper})] or [label]


def cuts(tree):
    """All cuts of a tree, each {leaf: (label, leaves of the label)}."""
    if isinstance(tree, Numbers):
        yield from tree.cuts()
        return
    ((label, below),) = tree.items()
    own = leaves(tree)
    yield {leaf: (label, tuple(own)) for leaf in own}
    if below:
        for parts in product(*(list(cuts({child: deeper})) for child, deeper in below.items())):
            yield {leaf: value for part in parts for leaf, value in part.items()}


def core(counts, thetas):
    """What the l-eligible core keeps of each value, by the definition's own iteration."""
    n = sum(counts.values())
    while True:
        kept = {s: min(c, floor(thetas[s] * n)) for s, c in counts.items()}
        if sum(kept.values()) == n:
            return kept
        n = sum(kept.values())


def cost(rows, trees, cut, thetas, metric, scheme):
    """The cost of a cut, None if it is not allowed; rows are (leaves, sensitive value, label)."""
    return _total(
        _cost(members, rows, trees, cut, thetas, metric, scheme) for members in partitions(rows, cut).values()
    )


def judged_cost(rows, trees, cut, good, metric, scheme):
    """The same where `good` says of the rows of a partition whether it may be published; schemes none and allRec."""
    parts = partitions(rows, cut).values()
    return _total(_judged(members, rows, trees, cut, good, metric, scheme) for members in parts)


def keeps_rows(rows, trees, keeps):
    """Whether a partition of any cut is not left out as a whole: `keeps` says it of the partition's rows."""
    every = (partitions(rows, cut).values() for cut in product(*(list(cuts(tree)) for tree in trees)))
    return any(keeps(members) for parts in every for members in parts)


def _total(costs):
    found = list(costs)
    return None if None in found else sum(found, Fraction(0))


def partitions(rows, cut):
    """The rows by what they are published as."""
    found = defaultdict(list)
    for row in rows:
        found[tuple(one[leaf] for one, leaf in zip(cut, row[0], strict=True))].append(row)
    return found


def _cost(members, rows, trees, cut, thetas, metric, scheme):
    n, d = len(members), len(trees)
    counts = Counter(row[1] for row in members)
    bad = [s for s, c in counts.items() if c > thetas[s] * n]
    loss, row_cost = _loss(members, trees, cut), _row_cost(rows, trees, metric)
    if not bad:
        return _own(members, loss, metric)
    if scheme == "none":
        return None
    if scheme == "vioSA":
        return _own(members, loss, metric) + d * sum(counts[s] for s in bad)
    if scheme == "allSA":
        return _own(members, loss, metric) + d * n
    if scheme == "allRec":
        return row_cost * n
    kept = core(counts, thetas)
    left = sum(kept.values())
    if metric == "CM":  # which rows of a value go is free: for each label keep as many of its rows as can be
        labels = {row[2] for row in members}
        most = max(
            sum(min(kept[s], sum(row[1] == s and row[2] == label for row in members)) for s in counts)
            for label in labels
        )
        return (n - left) + (left - most)
    return (n - left) * row_cost + (left * loss if metric == "LM" else left * left)


def _judged(members, rows, trees, cut, good, metric, scheme):
    if good(members):
        return _own(members, _loss(members, trees, cut), metric)
    return None if scheme == "none" else _row_cost(rows, trees, metric) * len(members)


def _loss(members, trees, cut):
    """LM of a row of the partition."""
    return sum(_cell(tree, one[leaf][1]) for one, tree, leaf in zip(cut, trees, members[0][0], strict=True))


def _cell(tree, group):
    """LM of a cell."""
    if isinstance(tree, Numbers):
        return tree.loss(group)
    return Fraction(len(group) - 1, max(len(leaves(tree)) - 1, 1))


def _row_cost(rows, trees, metric):
    """What a row costs that is left out."""
    return {"LM": 2 * len(trees), "DM": len(rows), "CM": 1}[metric]


def _own(members, loss, metric):
    n = len(members)
    if metric == "LM":
        return n * loss
    return n * n if metric == "DM" else n - max(Counter(row[2] for row in members).values())


def all_costs(rows, trees, thetas, metric, scheme):
    """The costs of all allowed cuts, in rising order."""
    every = product(*(list(cuts(tree)) for tree in trees))
    found = (cost(rows, trees, cut, thetas, metric, scheme) for cut in every)
    return sorted(c for c in found if c is not None)


def all_judged_costs(rows, trees, good, metric, scheme, of_tree=cuts):
    """The same where `good` judges; `of_tree` gives the cuts of a tree, all of them or those of whole levels."""
    every = product(*(list(of_tree(tree)) for tree in trees))
    found = (judged_cost(rows, trees, cut, good, metric, scheme) for cut in every)
    return sorted(c for c in found if c is not None)


def ways(tree, above=()):
    """The way from the root to every leaf, as the leaves below each node on it."""
    ((label, below),) = tree.items()
    here = (*above, tuple(leaves(tree)))
    if not below:
        yield label, here
    for child, deeper in below.items():
        yield from ways({child: deeper}, here)


def full_domains(tree):
    """A cut {leaf: (name, leaves)} for every depth, by the definition."""
    found = dict(ways(tree))
    for depth in range(max(map(len, found.values()))):
        yield {leaf: (way[min(depth, len(way) - 1)],) * 2 for leaf, way in found.items()}
