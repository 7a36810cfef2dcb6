"""Transparent: classes that tell no more to whoever knows how they were made.

Xiao, Tao and Koudas, Transparent Anonymization: Thwarting Adversaries Who Know the Algorithm (TODS 2010); the layout,
and classes by splits and exchanges, are ours. For families whose classes have rows of different values (`bsgi`).

Guarantee: who knows everybody's quasi-identifiers, the policy, this program and the release, but not the seed, and
holds all ways to give the values to the people for equally likely, has no value of anybody for more certain than 1/l.

Steps, as `build` takes them:

1. `lay_out`: columns, one a class, of l different values or one more; from the counts of the values alone.
   Columns of the same values make a bucket: `columns` of them take as many rows of each value.
2. `draw_coins`, `seat_rows`: the rows of a value go to its buckets in an order of coins; another order of coins numbers
   all rows, and decides every tie from here on.
3. `split`: each bucket splits, level by level, into classes with a row of each of its values. Of each value
   the first rows along a quasi-identifier go left, as many as of any other. Where to split follows from codes and from
   the least and the greatest count that any value has there. Of few classes each takes the next row of each value.
4. `neighbours.exchange`: classes of one bucket exchange rows of equal value, where that lowers the loss.

Proof. A world gives the values, each with how it is written (`same`) and what is published beside it (`keep`), to the
people; a run is a world and its coins. Seats and ties are drawn without a look at the world, so all runs are equally
likely. Take a bucket of b values and k columns, and a cyclic shift s of its values. It sends a run to another: in each
class of the bucket, who had value v gets what the class has of value s(v), and of the bucket's seats for s(v) the one
that they had of those for v. The new world gives the same values as often, since a class has each of the b values once;
the rows of each value are still seated one by one; and the shift back undoes it: runs are sent to runs, one to one.
Steps 3 and 4 treat the two runs alike. They see people's codes, their numbers, their bucket, and who shares a value,
which are the same in both; they compare rows of one value with each other, and take the least, the greatest or the sum
over values, whatever those are called. So classes have the same people in both runs, and show the same values. Labels
follow from the people's codes, the order and the numbers of what is published from itself, columns and buckets from
counts, which the release shows. So both runs publish the same table. Over the b shifts everybody in the bucket has each
of its values equally often: given the release, and even who is in which class, each has the probability 1/b, and b is l
or more. Rows beyond l in a class are of such a bucket too. Of a harmless value a bucket may have several parts, by the
order of coins: the b are different parts, of which a value that is not harmless has one.

What this takes: the seed is as secret as the source, and too long to be tried; nobody's sensitive value is known; one
row a person; one sensitive attribute; one release; all rows published. What a policy says against that is refused
(`policy/limits.toml`).

Layouts give the values of columns by the counts of the values alone. A column is what a class will be: `size` rows of
as many different values, or one row more in some. Columns of the same values make a bucket. Loss falls with the room
that a bucket has, so the widest buckets come first: of the values with the most rows left, as many columns as leave the
others room.

Splitting makes classes of the columns of a bucket, by the quasi-identifiers and without a look at the values. A node of
c classes has c rows of each of its bucket's values. It splits into nodes of a and of c - a classes along a
quasi-identifier: of each value the first a rows go left, so that either side has a row of each value for each of its
classes. Where to split is chosen by what the sides span, for all nodes at once, a level a few statements. Nodes of few
classes are dealt: of each value the first row in the order of codes goes to the first class, and so on.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure, lm_measures, span_costs
from ldiv_db.algorithms.neighbours.exchange import exchange_rows
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.axes import counts_falling


@dataclass(frozen=True)
class Bucket:
    """So many columns of the same values: of each value (its place among the counts) the rows from `first` on."""

    columns: int
    values: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """The rows of a column."""
        return len(self.values)


def lay_out(counts: Sequence[int], columns: int, free: Collection[int] = ()) -> list[Bucket]:
    """The buckets of so many columns that hold all rows, each value at most once in a column.

    In the places that are `free` as many rows as there are columns, and again as many, are each as of another value.
    Columns have `sum(counts) // columns` rows or one more. Raises ValueError if a count exceeds the columns. With c
    columns left, w of them with a row more, the counts left sum to c * size + w and none exceeds c. Columns of the
    values with the most rows left keep that so, as long as no other value then has more rows than there are columns:
    so there is a bucket as long as there are columns.
    """
    if any(count > columns for place, count in enumerate(counts) if place not in free):
        raise ValueError("a value has more rows than there are columns")
    size, wide = divmod(sum(counts), max(columns, 1))
    rest = [
        (-min(count - first, columns), place, first)
        for place, count in enumerate(counts)
        for first in range(0, count, columns)
    ]
    heapq.heapify(rest)
    buckets, left = [], columns
    while left:
        one_more = left <= wide
        top = [heapq.heappop(rest) for _ in range(size + one_more)]
        others = -rest[0][0] if rest else 0
        width = min(-top[-1][0], left - others, left - wide * (not one_more))
        buckets.append(Bucket(width, tuple((place, first) for _, place, first in top)))
        for count, place, first in top:
            if -count > width:
                heapq.heappush(rest, (count + width, place, first + width))
        left -= width
    return buckets


#: Each side of a split that is not in halves has at least so many hundredths of the classes.
PART = 8
#: Nodes of at most so many classes are dealt in the order of their codes: exchanges do as well there as splits.
SIMPLE = 4
#: Levels allowed, in hundredths of those that halving takes: nodes may be uneven, but not for ever.
DEPTH = 125


def split(task: Task, measures: Sequence[Measure], nodes: Relation, largest: int) -> Relation:
    """The rows with their node and their class's place in it; `largest` is the classes of the largest node."""
    engine = task.engine
    halvings = (largest - 1).bit_length()
    depth, level = -(-halvings * DEPTH // 100), 0
    with engine.scope() as scope:
        flow = EngineFlow(engine, "transparent", nodes=nodes, sensitive=task.encoded.sensitive[0], simple=SIMPLE)
        flow.know(
            ways=[{"number": number, "measure": measure} for number, measure in enumerate(measures, 1)], part=PART
        )
        settled = flow.step("settled", "settle_nodes")
        flow.know(**span_costs(task, measures))
        while largest > SIMPLE:
            task.progress(level, depth)
            level += 1
            largest = _split(flow, 2 ** max(depth - level, 0))
        task.progress(depth, depth)
        return scope.keep(settled)


def _split(flow: EngineFlow, deepest: int) -> int:
    """Go to the next level, its nodes of few classes `settled`; the classes of its largest node.

    No side of a split has more than `deepest` classes, unless it is a half.
    """
    nodes = flow["nodes"]
    with flow.scope("nodes"):
        flow.step("codes", "count_codes")
        flow.step("splits", "choose_splits", deepest=deepest)
        sides = flow.record("neighbours/bound_splits")
        flow.know(nodes=flow.step("node", "split_nodes"))
        if sides["least"] <= SIMPLE:
            flow.insert("settled", "settle_nodes")
        flow.engine.drop(nodes)  # all the rows, once a level
    return int(sides["most"])


#: The most rounds of exchanges, and with many rows, which lose less and take longer, unless the policy says how many.
ROUNDS, FEWER_ROUNDS, MANY_ROWS = 6, 3, 200_000


def build(task: Task, l: int, rounds: int | None = None) -> tuple[Relation, dict[str, Any]]:
    """(row_id, class_id) of classes of l different values or more, and what the result says of them. Their coins have
    `task.seed` as key; call after `check_counts`."""
    engine, sensitive = task.engine, task.encoded.sensitive[0]
    if rounds is None:
        rounds = ROUNDS if task.encoded.row_count < MANY_ROWS else FEWER_ROUNDS
    with engine.scope() as scope:
        values = counts_falling(engine, sensitive)
        columns = task.encoded.row_count // l
        named = {value for requirement in task.requirements for value in requirement.harmless}
        harmless = engine.load(
            "harmless", {"value": "VARCHAR", "is_harmless": "BOOLEAN"}, [(value, True) for value in named]
        )
        known = {"dictionary": sensitive.dictionary, "leaves": None, "harmless": harmless}
        spared = engine.materialise("spared", "decomposition/map_leaves", **known)
        codes = {code for (code,) in engine.find(spared, "code", where=[Where("is_free", True)])}
        free = [place for place, (code, _) in enumerate(values) if code in codes]
        buckets = lay_out([rows for _, rows in values], columns, free)
        drawn = {"rows": task.encoded.rows, "coins": f"{task.seed}:transparent"}
        coins = engine.materialise("coins", "transparent/draw_coins", **drawn)
        assigned, exchanges = build_from(task, coins, buckets, [code for code, _ in values], rounds)
        scope.keep(assigned)
    figures = {
        "columns": columns,
        "buckets": len(buckets),
        "largest_bucket": max(bucket.columns for bucket in buckets),
        "exchange_rounds": len(exchanges),
        "exchanges": list(exchanges),
    }
    return assigned, figures


def build_from(
    task: Task, coins: Relation, buckets: Sequence[Bucket], codes: Sequence[int], rounds: int
) -> tuple[Relation, tuple[int, ...]]:
    """The classes that these coins (row_id, seat, tie) give, and the exchanges of each round: nothing is drawn here.

    `codes` are those of the values. The nodes of buckets are leaves of one tree: no split of one meets those of
    another. Classes of one row more than others, of which there are few, exchange none.
    """
    root, size = 1 << len(buckets).bit_length(), min(bucket.size for bucket in buckets)
    places = [(part, bucket, *seat) for part, bucket in enumerate(buckets) for seat in bucket.values]
    seats = [
        (number, codes[place], first, part, root + part, bucket.columns)
        for number, (part, bucket, place, first) in enumerate(places, 1)
    ]
    engine, encoded = task.engine, task.encoded
    columns = {"number": "INTEGER", "code": "INTEGER"}
    columns |= dict.fromkeys(("first", "part", "node", "classes"), "BIGINT")
    with engine.scope() as scope:
        params = {"axes": encoded.axes, "sensitive": encoded.sensitive[0], "rows": encoded.rows, "coins": coins}
        loaded = engine.load("seats", columns, seats)
        nodes = engine.materialise("node", "transparent/seat_rows", seats=loaded, **params)
        measures = lm_measures(task)
        settled = split(task, measures, nodes, max(bucket.columns for bucket in buckets))
        numbered = engine.number_groups("numbered", settled, "node", "place", columns=("row_id", "source_id", "part"))
        sizes = engine.count_groups("sizes", numbered, "class_id")
        alike = engine.select("alike", sizes, "class_id", where=[Where("rows", size)])
        members = engine.select_among("members", numbered, alike, "class_id", columns=("row_id", "class_id"))
        parts = engine.select("parts", numbered, "class_id", "part", distinct=True)
        unnamed = replace(task, encoded=replace(encoded, rows=settled))
        exchanged, exchanges = exchange_rows(unnamed, measures, members, size, rounds, parts)
        assigned = scope.keep(engine.reassign(numbered, exchanged, "source_id"))
    return assigned, exchanges
