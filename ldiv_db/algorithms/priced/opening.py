"""Labels are opened: by value at prices, and later where rows of open classes save by it."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from ldiv_db.algorithms.priced.classes import Class, Classes, Offer, Taken
from ldiv_db.measuring.least_loss.cells import Ints
from ldiv_db.measuring.least_loss.labels import starts

#: The most labels that are tried in a round, those first that could save most.
TRIED = 6_000
#: Where the rows of closed classes go, by class: the other class, if not to the one that is made, a cell and its rows.
Rest = dict[Class, list[tuple[Class, int, int]]]


def open_by_value(classes: Classes, price: Ints, values: Ints, least: int) -> None:
    """Open the label of the most value again and again, with its best class at these prices of the rows that are left.

    `values` are at first no more than those of labels, which only fall; labels below `least` are let be. Rows that are
    left join the cheapest class around them, or the one that covers all.
    """
    left, priced = list(classes.counts), price.tolist()
    heap = [(-int(values[label]), int(label)) for label in np.flatnonzero(values > least)]
    heapq.heapify(heap)
    ordered: dict[int, list[int]] = {}
    while heap:
        _, label = heapq.heappop(heap)
        cells = ordered.get(label) or sorted(classes.cells_of(label), key=lambda cell: -priced[cell])
        ordered[label] = cells = [cell for cell in cells if left[cell]]
        cost = classes.costs[label]
        value, taken = classes.best([Offer(priced[cell] - cost, cell, left[cell]) for cell in cells])
        if taken and heap and value < -heap[0][0]:
            if value > least:
                heapq.heappush(heap, (-value, label))
        elif taken and value > least:
            classes.make(label, taken)
            for offer, rows in taken:
                left[offer.cell] -= rows
    _place(classes, left)


def _place(classes: Classes, left: list[int]) -> None:
    """Put the rows that are left into the cheapest classes around them, or the last, which others fill up."""
    rest = [(cell, left[cell]) for cell in np.flatnonzero(left).tolist()]
    for cell, rows in rest:
        if classes.around[cell]:
            classes.put(classes.around[cell][0], cell, rows)
    rest = [(cell, rows) for cell, rows in rest if not classes.around[cell]]
    if not rest:
        return
    whole = classes.make(len(classes.costs) - 1, [])
    for cell, rows in rest:
        classes.put(whole, cell, rows)
    for one in sorted(classes.open.values(), reverse=True):
        if classes.is_good(whole):
            break
        if one is not whole:
            for cell, rows in list(one.rows.items()):
                classes.move(one, whole, cell, rows)
            classes.close(one)


def open_labels(classes: Classes) -> int:
    """New labels are opened with rows that save by it and others as far as these lack; what all of that saves.

    Classes that would lack something without these rows are closed, where that saves all the same.
    """
    return sum(_opened(classes, label) for label in _promising(classes).tolist() if label not in classes.open)


def _opened(classes: Classes, label: int) -> int:
    """What opening a label saves; it is opened if that is anything."""
    offers = classes.offers(label)
    saved, taken = classes.best(offers)
    rest: Rest = {}
    for closing in _closings(classes, label, offers):
        more, with_closed = classes.best(offers, closing)
        if with_closed:
            moves = _rest(classes, label, closing, with_closed)
            more += sum(rows * (one.cost - to.cost) for one in moves for to, _, rows in moves[one])
            if more > max(saved, 0):
                saved, taken, rest = more, with_closed, moves
    if saved <= 0:
        return 0
    made = classes.make(label, taken)
    for one, going in rest.items():
        for to, cell, rows in going:
            classes.move(one, made if to.label == label else to, cell, rows)
        classes.close(one)
    return saved


def _closings(classes: Classes, label: int, offers: Sequence[Offer]) -> Iterator[Collection[Class]]:
    """The classes that would lack something without what a label wants: all, and those that are worth closing.

    A class is if its rows save more under the label than the others lose elsewhere.
    """
    every = {offer.held: None for offer in offers if offer.held is not None}
    _, wanted = classes.best(offers, every)
    gained = dict[Class, int]()
    for offer, rows in wanted:
        assert offer.held is not None  # noqa: S101 - all are held
        gained[offer.held] = gained.get(offer.held, 0) + rows * offer.saves
    lacking = [one for one in gained if not _stays_good(classes, one, wanted)]
    worth = list[Class]()
    for one in lacking:
        moves = _rest(classes, label, (one,), wanted)[one]
        if gained[one] + sum(rows * (one.cost - to.cost) for to, _, rows in moves) > 0:
            worth.append(one)
    if lacking:
        yield lacking
    if worth and len(worth) < len(lacking):
        yield worth


def _stays_good(classes: Classes, one: Class, taken: Taken) -> bool:
    """True if a class has what is needed without the rows that are taken."""
    size, values = one.size, dict(one.values)
    for offer, rows in taken:
        if offer.held is one:
            size -= rows
            values[classes.values[offer.cell]] -= rows
    return size >= classes.need.rows and sum(count > 0 for count in values.values()) >= classes.need.values


def _rest(classes: Classes, label: int, closing: Collection[Class], taken: Taken) -> Rest:
    """Where the rows go that a label does not take of closed classes: to the cheapest that is around each then."""
    gone = {(offer.held, offer.cell): rows for offer, rows in taken}
    made, below = Class(label, classes.costs[label]), set(classes.cells_of(label))
    nowhere = Class(-1, 2**40)
    found: Rest = {one: [] for one in closing}
    for one, moves in found.items():
        for cell, rows in one.rows.items():
            left = rows - gone.get((one, cell), 0)
            if left:
                to = next((other for other in classes.around[cell] if other not in found), nowhere)
                moves.append((made if cell in below and made < to else to, cell, left))
    return found


def _promising(classes: Classes) -> Ints:
    """The labels that could save most if every row could leave its class."""
    held = [(cell, one.cost, rows) for one in classes.open.values() for cell, rows in one.rows.items()]
    cell, cost, rows = np.array(sorted(held), np.int64).T
    first = np.searchsorted(cell, np.arange(len(classes.counts) + 1))
    labels = classes.labels
    counts = np.diff(first)[labels.cell]
    pair = np.repeat(np.arange(len(counts)), counts)
    at = first[labels.cell][pair] + np.arange(len(pair)) - np.repeat(starts(counts), counts)
    label = labels.label[pair]
    saves = np.maximum(cost[at] - labels.cost[label], 0) * rows[at]
    could = np.bincount(label, saves, len(labels.start))
    order: Ints = np.argsort(-could, kind="stable")[:TRIED]
    return order[could[order] > 0]
