"""Taxonomies of nested ranges of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext

from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.taxonomies.taxonomy import Taxonomy, Tree, number, range_label, rooted

#: More leaves than this are no taxonomy but a mistake in its widths.
MAX_LEAVES = 1_000_000
#: Widths, and what they are reckoned with: as many digits as the widest takes in terms of the narrowest, with room.
_NARROWEST, _WIDEST, _EXACT = Decimal("1e-18"), Decimal("1e38"), Context(prec=100)


def from_ranges(widths: Sequence[float], origin: float, smallest: float, largest: float, integers: bool) -> Taxonomy:
    """The taxonomy of nested numeric ranges that covers `smallest..largest`.

    `widths` go from the leaves up, each a multiple of the one before; ranges start at `origin` plus
    multiples of their width. Raises PolicyError if the widths do not nest.
    """
    trees = range_trees(widths, origin, smallest, largest, integers)
    return number(rooted(trees), f"ranges {', '.join(map(str, widths))}")


def range_trees(widths: Sequence[float], origin: float, smallest: float, largest: float, integers: bool) -> list[Tree]:
    """The trees of the widest ranges, as `from_ranges` puts them under one root."""
    if not all(map(math.isfinite, [*widths, origin, smallest, largest])):
        raise PolicyError([Problem("ranges", "takes finite numbers")])
    with localcontext(_EXACT):
        exact, start = [Decimal(str(width)) for width in widths], Decimal(str(origin))
        _refuse_widths(exact, start, integers)
        leaf = exact[0]
        if (Decimal(str(largest)) - Decimal(str(smallest))) / leaf > MAX_LEAVES:
            raise PolicyError([Problem("ranges", f"{leaf} makes more than {MAX_LEAVES:,} leaves", "widen it")])
        first, last = (math.floor((Decimal(str(end)) - start) / leaf) for end in (smallest, largest))
        level = [(begin := start + i * leaf, _range_tree(begin, leaf, integers)) for i in range(first, last + 1)]
        for width in exact[1:]:
            groups: dict[Decimal, Tree] = {}  # the next level up, by where its ranges begin
            for begin, tree in level:
                low = start + math.floor((begin - start) / width) * width
                groups.setdefault(low, _range_tree(low, width, integers)).children.append(tree)
            level = list(groups.items())
    return [tree for _, tree in level]


def _refuse_widths(widths: Sequence[Decimal], origin: Decimal, integers: bool) -> None:
    """Raise PolicyError unless the widths nest, and are not beyond what can be reckoned with exactly."""
    if not widths or not all(_NARROWEST <= width <= _WIDEST for width in widths) or abs(origin) > _WIDEST:
        what = f"takes rising widths above 0, from {_NARROWEST:e} to {_WIDEST:e}, and an origin up to that"
        raise PolicyError([Problem("ranges", what)])
    problems = [
        Problem("ranges", f"{wide} is not a multiple of {narrow}")
        for narrow, wide in itertools.pairwise(widths)
        if wide % narrow
    ]
    if sorted(set(widths)) != list(widths):
        problems.append(Problem("ranges", "takes rising widths above 0"))
    if integers and any(width % 1 for width in widths):
        problems.append(Problem("ranges", "whole numbers take whole widths"))
    refuse(problems)


def _range_tree(low: Decimal, width: Decimal, integers: bool) -> Tree:
    if not integers:
        begin, end = (f"{bound.normalize():f}" for bound in (low, low + width))
        label = range_label(begin, end, ")")
    else:
        label = str(int(low)) if width == 1 else range_label(int(low), int(low + width - 1))
    return Tree(label, bounds=(float(low), float(low + width)))
