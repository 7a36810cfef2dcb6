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
        exact = [Decimal(str(width)) for width in widths]
        _refuse_widths(exact, Decimal(str(origin)), integers)
        level = _leaves(exact[0], Decimal(str(origin)), Decimal(str(smallest)), Decimal(str(largest)), integers)
        for width in exact[1:]:
            level = _group_ranges(level, width, Decimal(str(origin)), integers)
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


def _leaves(
    width: Decimal, origin: Decimal, smallest: Decimal, largest: Decimal, integers: bool
) -> list[tuple[Decimal, Tree]]:
    """The ranges of `width` that cover `smallest..largest`, each with where it begins."""
    if (largest - smallest) / width > MAX_LEAVES:
        raise PolicyError([Problem("ranges", f"{width} makes more than {MAX_LEAVES:,} leaves", "widen it")])
    first, last = (math.floor((end - origin) / width) for end in (smallest, largest))
    begins = (origin + i * width for i in range(first, last + 1))
    return [(begin, _range_tree(begin, width, integers)) for begin in begins]


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")


def _range_label(low: Decimal, width: Decimal, integers: bool) -> str:
    if not integers:
        return range_label(_plain(low), _plain(low + width), ")")
    return str(int(low)) if width == 1 else range_label(int(low), int(low + width - 1))


def _range_tree(low: Decimal, width: Decimal, integers: bool) -> Tree:
    return Tree(_range_label(low, width, integers), bounds=(float(low), float(low + width)))


def _group_ranges(
    level: list[tuple[Decimal, Tree]], width: Decimal, origin: Decimal, integers: bool
) -> list[tuple[Decimal, Tree]]:
    """The next level up, the ranges of `width` over those of `level`, each with where it begins."""
    groups: dict[Decimal, Tree] = {}
    for begin, tree in level:
        low = origin + math.floor((begin - origin) / width) * width
        groups.setdefault(low, _range_tree(low, width, integers)).children.append(tree)
    return list(groups.items())
