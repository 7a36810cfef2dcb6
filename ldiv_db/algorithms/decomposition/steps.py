"""All steps of Decomposition, from rows to groups with the values that are published for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.decomposition.grouping import Grouping, deal, exchange, seat_rows
from ldiv_db.algorithms.decomposition.noise import Lost, Refused, add_noise, release_refused, with_links
from ldiv_db.algorithms.decomposition.waiting import place_starved
from ldiv_db.database.templates import Relation, Value


@dataclass(frozen=True)
class Groups:
    """New groups: `shown` is (row_id, group_no, the codes to be published), group_no from 1 without gaps.

    `residual` has the rows left over of each primary code after largest-l, which made `formed` groups; `refused` says
    what groups could not reach, `placed` how many starved rows joined one.
    """

    shown: Relation
    count: int
    rows: int
    formed: int
    residual: Sequence[tuple[int, int]]
    refused: Sequence[Refused]
    lost: Sequence[Lost]
    placed: int
    exchanges: Sequence[int]


def make_groups(task: Grouping, whole: Relation, threshold: int) -> Groups:
    """Groups of the rows that have none, numbered by coins; `whole` is the table in which values are linked.

    Rows that have waited for more releases than the threshold join groups, where that is possible.
    """
    engine = task.engine
    with engine.scope() as scope:
        task = deal(with_links(task, whole))
        members, formed, residual = seat_rows(task)
        members, exchanges = exchange(task, members)
        members, refused = release_refused(task, members)
        members, placed = place_starved(task, members, threshold)
        noisy, lost = add_noise(task, members)
        shown = engine.materialise(
            "shown",
            "decomposition/apply_noise",
            members=members,
            dealt=task.rows,
            primary=task.primary,
            attributes=noisy.others,
            coins=Value(task.coins),
        )
        scope.keep(shown)
        totals = engine.record("decomposition/summarise_members", members=members)
    return Groups(shown, totals["groups"], totals["rows"], formed, residual, refused, lost, placed, exchanges)
