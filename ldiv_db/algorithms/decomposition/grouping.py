"""Decomposition+: groups of rows with different primary values, several sensitive attributes protected at once.

A group takes one row from each of l buckets of primary values (largest-l), so there are as many groups as possible
(Ye et al. 2009, Theorem 2): `max{k : sum_i min(n_i, k) >= k l}`. All groups are made at once: a bucket's quota of rows,
the longest waiting first, takes that many consecutive groups in a circle, and no quota exceeds the number of groups.
Rows of equal primary value are then exchanged between groups as long as that lowers the diversity penalty (Das &
Bhattacharyya 2012): how many rows have a value of another attribute that stands in more than 1/l_i of their group's.
What is left of the penalty is noise (`noise`); a group for which there is none is refused, its rows are kept back.

How groups were formed tells no more than they do. Who knows everybody's quasi-identifiers, the policy and this code,
but not the coins (the seed) and nobody's sensitive values, holds all ways to give values to people for equally likely.
Let p be the order of the people that the coins deal, and T the table of sensitive values and waits in that order. p is
uniform, and T is as likely whatever p is, since the values in another order are as likely: p and T are independent. All
that is done from here on is a function of T and of further coins (`deal`: rows come without what people are known by,
and their numbers are places in p). It says which places make a group, and what is published of it, its number included;
p says who is in these places. So, given everything that is published, each way to give a group's people to its places
is equally likely, and a person has a value with the probability that is its share of the group. Over releases people
keep their groups, and each release deals anew those who have none.

Where rows are of people who may have several, groups are made as if they had not, and those with two rows of somebody
are given up. Which these are follows from who is in a group, whoever of them is in which of its places: of a group that
is published each way is still as likely. Nothing is exchanged for that, as a place would tell who was not in another.
Values that are written differently are one to `T`'s codes, and spellings go with them; what is harmless may stand in a
group as often as it will, as if each row had a value of its own. Rows of sets are seated by one member of each, and
again in a few rounds where groups had too much of another: a function of `T` as before.

Not covered: who knows who was kept back in an earlier release (rows that wait come first, and frequent values wait);
noise, as a value that stands in place of another is nobody's, and that other one is more frequent than is published;
who knows some of a person's sensitive values (see `publishing.pairings`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from ldiv_db.algorithms.base import Options, Progress
from ldiv_db.algorithms.neighbours.passes import choose, sides_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements.guarantees import most_classes

#: Rounds of exchanges, partners that a row looks at in each, exchanges ranked for a group.
ROUNDS, PARTNERS, RANKED = 24, 8, 2
#: The end comes after so many rounds in a row with fewer exchanges than one in LEAST_SHARE groups with a penalty.
IDLE, LEAST_SHARE = 3, 100
#: How far partners may be, and the modulus of what stands for chance.
_FAR = PRIME = 2_147_483_579


class DecompositionOptions(Options):
    """The primary attribute, how many releases a row waits at most, where noise comes from, and when combinations of
    values are published: where they tell no pairings, whatever they tell, or never."""

    primary: str | None = None
    starvation: int = Field(default=3, ge=0, le=1_000_000)
    noise: Literal["nearest", "random", "none"] = "nearest"
    combinations: Literal["checked", "first", "none"] = "checked"


@dataclass(frozen=True)
class Secret(SensitiveAxis):
    """A sensitive attribute with its l; `nodes` (node, low, high, height) is its taxonomy's, if it has one.

    `dictionary` is (value, rows, code, leaf, is_free). `counts` and `links` are there while groups are made: (group_no,
    code, n, most, size) and (primary_code, code); `spelled` (code, own) is how another's value is written as noise.
    """

    number: int
    l: int
    nodes: Relation | None = None
    height: int = 1
    counts: Relation | None = None
    links: Relation | None = None
    noise: Relation | None = None
    spelled: Relation | None = None
    #: Where rows have sets, the `members` (code, member, is_first) of each, and these as a dictionary.
    members: Relation | None = None
    kinds: Relation | None = None

    @property
    def name(self) -> str:
        return self.column.name

    #: The counts of a row's own value in its own group; `there` of another's value in it, and so on.
    here = NamedAfter("{0.code.name}_here")
    there = NamedAfter("{0.code.name}_there")
    away = NamedAfter("{0.code.name}_away")
    back = NamedAfter("{0.code.name}_back")


@dataclass(frozen=True)
class Grouping:
    """Rows to be grouped: `rows` is (row_id, the codes, group_id, waited), of which those without a group_id.

    Once they are dealt, it is (row_id, source_id, the codes, waited) of these, `row_id` being a place that coins gave.
    No group has two rows of one `individual`, a column of the rows.
    """

    engine: Engine
    rows: Relation
    primary: Secret
    others: tuple[Secret, ...]
    options: DecompositionOptions
    seed: int = 0
    release: int = 1
    progress: Progress = lambda done, total: None
    individual: Identifier | None = None

    @property
    def coins(self) -> str:
        """The secret key of all that is left to chance, another in each release: row 7 is somebody else by then."""
        return f"{self.seed}:{self.release}"

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return (self.primary, *self.others)

    @property
    def exchanged(self) -> tuple[Secret, ...]:
        """The attributes of which values may be exchanged between groups, or replaced by noise."""
        return tuple(one for one in self.others if one.members is None)

    def flow(self, members: Relation | None = None, **known: Any) -> EngineFlow:
        """Steps on the rows, and on members of groups; `attributes` are all but the primary one."""
        flow = EngineFlow(self.engine, "decomposition", rows=self.rows, members=members, coins=self.coins, **known)
        flow.know(primary=self.primary, secrets=self.secrets, attributes=self.others)
        return flow


def largest_l_quotas(
    counts: Sequence[int], l: int, waits: Sequence[int] | None = None, free: Collection[int] = ()
) -> tuple[int, list[int]]:
    """The most groups of l rows with different values, and how many rows of each value they take; `counts` fall.

    What is beyond l rows a group is taken off values that are in no more rows than there are groups, one row each:
    there are more of these values than such rows (Theorem 2). Those go first of which a row has waited least (`waits`).
    Each row of the values in the places that are `free` is as one of a value of its own.
    """
    groups = most_classes([n for i, n in enumerate(counts) if i not in free], l, sum(counts[i] for i in free))
    quotas = [count if place in free else min(count, groups) for place, count in enumerate(counts)]
    surplus = sum(quotas) - groups * l
    whole = [place for place, count in enumerate(counts) if count <= groups or place in free]
    for place in sorted(whole, key=lambda place: waits[place] if waits else 0):
        taken = min(surplus, quotas[place] if place in free else 1)
        quotas[place] -= taken
        surplus -= taken
    return groups, quotas


def deal(task: Grouping) -> Grouping:
    """The task with the rows that have no group, in an order of coins, without anything that people are known by."""
    return replace(task, rows=task.flow().step("dealt", "deal_rows"))


def _buckets(task: Grouping) -> list[tuple[int, int, int]]:
    """(code, rows, least wait) of every primary value, the most frequent first."""
    by_code: dict[int, list[tuple[int, int]]] = {}
    for code, waited, rows in task.engine.tally(task.rows, task.primary.code.name, "waited"):
        by_code.setdefault(code, []).append((rows, waited))
    found = [(code, sum(rows for rows, _ in of), min(waited for _, waited in of)) for code, of in by_code.items()]
    return sorted(found, key=lambda bucket: (-bucket[1], bucket[0]))


def seat_rows(task: Grouping, again: int = 0) -> tuple[Relation, int, list[tuple[int, int]]]:
    """The members (row_id, group_no, codes, ...), the number of groups, and of each primary code the rows left over."""
    engine, primary = task.engine, task.primary
    buckets = _buckets(task)
    counts, waits = [rows for _, rows, _ in buckets], [waited for *_, waited in buckets]
    harmless = {code for (code,) in engine.find(primary.dictionary, "code", where=[Where("is_free", True)])}
    free = [place for place, (code, *_) in enumerate(buckets) if code in harmless]
    groups, quotas = largest_l_quotas(counts, primary.l, waits, free)
    starts = itertools.accumulate(quotas, initial=0)
    slots = [(code, quota, start) for (code, *_), quota, start in zip(buckets, quotas, starts, strict=False)]
    loaded = engine.load("quotas", {"code": "INTEGER", "quota": "BIGINT", "start": "BIGINT"}, slots)
    members = task.flow(quotas=loaded, groups=max(groups, 1), again=again).step("members", "seat_rows")
    engine.drop(loaded)
    residual = [(code, rows - quota) for (code, rows, _), quota in zip(buckets, quotas, strict=True)]
    return members, groups, residual


def with_counts(task: Grouping, members: Relation) -> Grouping:
    """The task whose attributes have the counts of these members."""
    flow = task.flow(members)
    counts = [flow.step(f"counts_{one.code.name}", "count_values", attribute=one) for one in task.others]
    others = tuple(replace(one, counts=of_one) for one, of_one in zip(task.others, counts, strict=True))
    return replace(task, others=others)


def regroup(task: Grouping, members: Relation, **changes: Relation) -> Relation:
    """The members after exchanges that are `settled`, with rows `accepted` by groups, without `refused` groups.

    The old members are dropped.
    """
    none = dict.fromkeys(("settled", "accepted", "refused"))
    moved = task.flow(members, **(none | changes)).step("members", "regroup_rows")
    task.engine.drop(members)  # all the rows, once a round
    return moved


def exchange(task: Grouping, members: Relation) -> tuple[Relation, list[int]]:
    """The members with rows of equal primary value exchanged, and how many exchanges there were in each round."""
    draw = random.Random(f"{task.coins}:jumps")  # noqa: S311 - not to be guessed without the seed, nor to be repeated
    rounds: list[int] = []
    idle = 0
    while task.exchanged and len(rounds) < ROUNDS and idle < IDLE:
        task.progress(len(rounds), ROUNDS)
        jumps = [draw.randrange(1, _FAR) for _ in range(PARTNERS)]  # in the order of the bucket, which is one of coins
        members, crowded, done = _exchange_once(task, members, len(rounds), jumps)
        if not crowded:
            break
        rounds.append(done)
        idle = idle + 1 if done * LEAST_SHARE < crowded else 0
    return members, rounds


def _exchange_once(task: Grouping, members: Relation, turn: int, jumps: Sequence[int]) -> tuple[Relation, int, int]:
    """The members after one round, the groups with a penalty before it, and the exchanges."""
    engine = task.engine
    with engine.scope() as scope:
        counted = with_counts(task, members)
        flow = counted.flow(members, ranked=RANKED, prime=PRIME)
        flow.know(attributes=counted.exchanged)
        crowded = engine.count(flow.step("crowded", "list_crowded", turn=turn))
        if not crowded:
            return members, 0, 0
        flow.know(jumps=engine.load("jumps", {"jump": "BIGINT"}, [(jump,) for jump in jumps]))
        settled, done, _ = choose(engine, sides_of(engine, flow.step("ranked", "rank_exchanges")), passes=1)
        if not done:
            return members, crowded, 0
        return scope.keep(regroup(task, members, settled=settled)), crowded, done
