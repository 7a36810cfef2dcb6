"""TP row by row in plain Python, its optimum by trying everything, and the Hilbert curve by bits: no code of ldiv_db.

A histogram is a list of groups, each a list of counts, one a sensitive value.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

Groups = list[list[int]]


def eligible(counts: Sequence[int], l: int) -> bool:
    return sum(counts) >= l * max(counts, default=0)


def core(counts: Sequence[int], l: int) -> list[int]:
    """Phase one: a row of some pillar goes until the group is eligible."""
    left = list(counts)
    while not eligible(left, l):
        left[left.index(max(left))] -= 1
    return left


def residue(groups: Groups, kept: Groups) -> list[int]:
    return [
        sum(column) - sum(left) for column, left in zip(zip(*groups, strict=True), zip(*kept, strict=True), strict=True)
    ]


def _pillars(counts: Sequence[int]) -> set[int]:
    return {value for value, count in enumerate(counts) if count and count == max(counts)}


def _thin(counts: Sequence[int], l: int) -> bool:
    return sum(counts) == l * max(counts)


def is_dead(counts: Sequence[int], removed: Sequence[int], l: int) -> bool:
    return not any(counts) or (_thin(counts, l) and bool(_pillars(counts) & _pillars(removed)))


def three_phases(groups: Groups, l: int, draw: random.Random) -> tuple[Groups, list[list[int]]]:
    """What is kept, and the residue after each phase that ran; what the paper leaves open is drawn."""
    kept = [core(group, l) for group in groups]
    removed = residue(groups, kept)
    history = [list(removed)]

    def move(group: list[int], value: int) -> None:
        group[value] -= 1
        removed[value] += 1

    def drain() -> None:
        while not eligible(removed, l):
            alive = [group for group in kept if not is_dead(group, removed, l)]
            values = [v for v in range(len(removed)) if any(group[v] for group in alive)]
            if not values:
                return
            least = min(removed[v] for v in values)
            value = draw.choice([v for v in values if removed[v] == least])
            group = draw.choice([group for group in alive if group[value]])
            for v in _pillars(group) if _thin(group, l) else {value}:
                move(group, v)

    if not eligible(removed, l):
        drain()
        history.append(list(removed))
    third = False
    while not eligible(removed, l):
        third, uncovered, chosen = True, _pillars(removed), []
        while uncovered:
            fewest = min((g for g in kept if any(g)), key=lambda g: len(_pillars(g) & uncovered))
            assert not any(g is fewest for g in chosen), "Lemma 5.14"
            chosen.append(fewest)
            uncovered &= _pillars(fewest)
        for group in chosen:
            for value in _pillars(group):
                move(group, value)
        drain()
    if third:
        history.append(list(removed))
    return kept, history


def fewest_removed(groups: Groups, l: int) -> int:
    """The fewest rows whose removal leaves all groups, and the removed rows, eligible."""
    reached: set[tuple[int, ...]] = {(0,) * len(groups[0])}
    for group in groups:
        ways = [
            taken
            for taken in itertools.product(*(range(count + 1) for count in group))
            if eligible([count - t for count, t in zip(group, taken, strict=True)], l)
        ]
        reached = {tuple(map(sum, zip(one, way, strict=True))) for one in reached for way in ways}
    return min(sum(removed) for removed in reached if eligible(removed, l))


def hard_groups(pillars: int, l: int, high: int, copies: int) -> Groups:
    """A histogram that needs phase three: R has `pillars` pillars of `high` rows, each thin group has one of them.

    Groups have a row of one pillar and of l - 1 other values, `copies` groups a pillar; there are 2 to l - 1 pillars.
    """
    values = pillars + l - 1
    alone = [[high if v == p else 0 for v in range(values)] for p in range(pillars)]
    thin = [[int(v == p or v >= pillars) for v in range(values)] for p in range(pillars) for _ in range(copies)]
    return alone + thin


def hilbert_index(point: Sequence[int], bits: int) -> int:
    """The place of a point on the Hilbert curve, by Skilling's program as printed (AIP Conf. Proc. 707, 381), 2004."""
    x, n = list(point), len(point)
    q = 1 << (bits - 1)
    while q > 1:
        p = q - 1
        for i in range(n):
            if x[i] & q:
                x[0] ^= p
            else:
                t = (x[0] ^ x[i]) & p
                x[0] ^= t
                x[i] ^= t
        q >>= 1
    for i in range(1, n):
        x[i] ^= x[i - 1]
    t, q = 0, 1 << (bits - 1)
    while q > 1:
        if x[n - 1] & q:
            t ^= q - 1
        q >>= 1
    x = [word ^ t for word in x]
    return sum(((x[i] >> bit) & 1) << (bit * n + n - 1 - i) for bit in range(bits) for i in range(n))
