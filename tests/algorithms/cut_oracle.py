"""Cuts by brute force: every cut of every tree, its partitions row by row, its cost in exact fractions."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from math import floor


def leaves(tree):
    """The leaves below a tree {label: {...}} of one root."""
    ((label, below),) = tree.items()
    return [leaf for child, deeper in below.items() for leaf in leaves({child: deeper})] or [label]


def cuts(tree):
    """All cuts of a tree, each {leaf: (label, leaves of the label)}."""
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
    total = Fraction(0)
    for members in partitions(rows, cut).values():
        found = _cost(members, rows, trees, cut, thetas, metric, scheme)
        if found is None:
            return None
        total += found
    return total


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
    loss = sum(
        Fraction(len(one[leaf][1]) - 1, max(len(leaves(tree)) - 1, 1))
        for one, tree, leaf in zip(cut, trees, members[0][0], strict=True)
    )
    row_cost = {"LM": 2 * d, "DM": len(rows), "CM": 1}[metric]
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
