"""The construction: columns by coins and counts, then classes by what is not secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.neighbours.exchange import exchange_rows
from ldiv_db.algorithms.transparent.layout import Bucket, lay_out
from ldiv_db.algorithms.transparent.splitting import split
from ldiv_db.database.templates import Relation, Value

#: The most rounds of exchanges, and with many rows, which lose less and take longer, unless the policy says how many.
ROUNDS, FEWER_ROUNDS, MANY_ROWS = 6, 3, 200_000


@dataclass(frozen=True)
class Built:
    """The assignment (row_id, class_id) of all rows, its classes, and what the result says of them."""

    assigned: Relation
    classes: int
    figures: dict[str, Any]


def build(task: Task, l: int, rounds: int | None = None) -> Built:  # noqa: E741 - the field's name for it
    """Classes of l different values or more, by coins that `task.seed` is the key of; call after `check_counts`."""
    engine, sensitive = task.engine, task.encoded.sensitive[0]
    if rounds is None:
        rounds = ROUNDS if task.encoded.row_count < MANY_ROWS else FEWER_ROUNDS
    with engine.scope() as scope:
        values = engine.rows("transparent/list_values", dictionary=sensitive.dictionary)
        columns = task.encoded.row_count // l
        buckets = lay_out([rows for _, rows in values], columns)
        seats = seats_of(buckets, [code for code, _ in values])
        coins = engine.materialise(
            "coins",
            "transparent/draw_coins",
            rows=task.encoded.rows,
            coins=Value(f"{task.seed}:transparent"),
        )
        assigned, exchanges = build_from(task, coins, seats, rounds)
        scope.keep(assigned)
    figures = {
        "columns": columns,
        "buckets": len(buckets),
        "largest_bucket": max(bucket.columns for bucket in buckets),
        "exchange_rounds": len(exchanges),
        "exchanges": list(exchanges),
    }
    return Built(assigned, columns, figures)


@dataclass(frozen=True)
class Seats:
    """Which rows of a value sit in which bucket: `rows` are (code, first, part, node, classes)."""

    rows: Sequence[tuple[int, int, int, int, int]]
    #: The classes of the largest bucket, and the rows of a class of most buckets.
    largest: int
    size: int


def seats_of(buckets: Sequence[Bucket], codes: Sequence[int]) -> Seats:
    """The seats of these buckets, whose nodes are leaves of one tree: no split of one meets those of another."""
    root = 1 << len(buckets).bit_length()
    rows = [
        (codes[place], first, part, root + part, bucket.columns)
        for part, bucket in enumerate(buckets)
        for place, first in bucket.values
    ]
    return Seats(rows, max(bucket.columns for bucket in buckets), min(bucket.size for bucket in buckets))


def build_from(task: Task, coins: Relation, seats: Seats, rounds: int) -> tuple[Relation, tuple[int, ...]]:
    """The classes that these coins (row_id, seat, tie) give, and the exchanges of each round: nothing is drawn here.

    Classes of one row more than others, of which there are few, exchange none.
    """
    engine, encoded = task.engine, task.encoded
    columns = {"code": "INTEGER", "first": "BIGINT", "part": "BIGINT", "node": "BIGINT", "classes": "BIGINT"}
    with engine.scope() as scope:
        holes = {"axes": encoded.axes, "sensitive": encoded.sensitive[0]}
        loaded = engine.load("seats", columns, seats.rows)
        nodes = engine.materialise(
            "node", "transparent/seat_rows", rows=encoded.rows, coins=coins, seats=loaded, **holes
        )
        measures = lm_measures(task)
        settled = split(task, measures, nodes, seats.largest)
        numbered = engine.materialise("numbered", "transparent/number_classes", settled=settled)
        members = engine.materialise("members", "transparent/list_members", numbered=numbered, size=Value(seats.size))
        parts = engine.materialise("parts", "transparent/list_parts", numbered=numbered)
        unnamed = replace(task, encoded=replace(encoded, rows=settled))
        exchanged, exchanges = exchange_rows(unnamed, measures, members, seats.size, rounds, parts)
        holes = {"numbered": numbered, "exchanged": exchanged}
        assigned = scope.keep(engine.materialise("assigned", "transparent/assign_rows", **holes))
    return assigned, exchanges
