"""Noise: values that stand too often in a group become others that its primary values occur with.

LSV(S, G) are the values of S that occur anywhere in the table with a primary value of G. Of those that G lacks, a row
gets the one at least hierarchical distance from its own, level(LCA) / H (Decomposition+), or any (Decomposition). Every
value is given once in a group, so it never stands too often. A group that runs out of them is refused.

Rows that have waited too long join a group made in the same release that lacks their primary value.

They never join a group of an earlier release: the values that the group gets would be theirs. A group takes a row only
if it reaches every l with it, perhaps by noise; a row tries the groups by its diversity penalty.

All steps of Decomposition, from rows to groups with the values that are published for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.decomposition.grouping import Grouping, Secret, deal, exchange, regroup, seat_rows, with_counts
from ldiv_db.database.engine import Engine
from ldiv_db.database.queries import Where
from ldiv_db.database.templates import Relation, Value
from ldiv_db.recoding.encoded import SensitiveAxis

_REFUSED = {"group_no": "BIGINT", "attribute_no": "INTEGER", "largest_l": "BIGINT"}
_NOISE = {"row_id": "BIGINT", "group_no": "BIGINT", "code": "INTEGER", "other": "INTEGER", "height": "INTEGER"}


@dataclass(frozen=True)
class NoiseLoss:
    """The cost of noise to an attribute: values changed of `values`, their mean distance, and that of random noise."""

    attribute: str
    values: int
    changed: int
    distance: float
    random_distance: float

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Refused:
    """Groups that could not reach l of an attribute, and the largest l that all of them could reach."""

    attribute: str
    groups: int
    l: int
    largest_l: int

    def __str__(self) -> str:
        return f"{self.groups:,} groups cannot reach l = {self.l} of {self.attribute}; the largest is {self.largest_l}"


def with_links(task: Grouping, whole: Relation) -> Grouping:
    """The task whose attributes know which of their values occur with which primary value in `whole`."""
    others = tuple(
        replace(
            attribute,
            links=task.engine.select(
                f"links_{attribute.code.name}",
                whole,
                (task.primary.code.name, "primary_code"),
                (attribute.code.name, "code"),
                distinct=True,
            ),
        )
        for attribute in task.others
    )
    return replace(task, others=others)


def list_refused(task: Grouping, members: Relation) -> Relation:
    """The TEMP table (group_no, attribute_no, largest_l) of groups for which there is not noise enough."""
    engine = task.engine
    with engine.scope() as scope:
        refused = scope.keep(engine.load("refused", _REFUSED, []))
        for attribute in with_counts(task, members).others:
            engine.insert(
                refused,
                "decomposition/list_refused",
                members=members,
                primary=task.primary,
                attribute=attribute,
                noise=task.options.noise != "none",
            )
    return refused


def release_refused(task: Grouping, members: Relation) -> tuple[Relation, list[Refused]]:
    """The members, those of groups that cannot be published without one; and what these groups lacked."""
    engine = task.engine
    refused = list_refused(task, members)
    tally = sorted(engine.tally(refused, "attribute_no", "largest_l"))
    if tally:
        members = regroup(task, members, refused=refused)
    engine.drop(refused)
    shortfalls = []
    for attribute in task.others:
        reached = [(largest, groups) for number, largest, groups in tally if number == attribute.number.value]
        if reached:
            refused_groups, (largest_l, _) = sum(groups for _, groups in reached), reached[0]
            shortfalls.append(Refused(attribute.name, refused_groups, attribute.l, largest_l))
    return members, shortfalls


def add_noise(task: Grouping, members: Relation) -> tuple[Grouping, list[NoiseLoss]]:
    """The task whose attributes have their `noise` (row_id, group_no, code, other, height), and what it cost."""
    engine = task.engine
    others, lost = [], []
    with engine.scope() as scope:
        counted = with_counts(task, members)
        rows = engine.count(members, Where("group_no", 0, ">"))
        for attribute in counted.others:
            noise, random = _noise_of(counted, members, attribute)
            others.append(replace(attribute, noise=scope.keep(noise)))
            lost.append(_lost(engine, attribute, rows, noise, random))
    return replace(task, others=tuple(others)), lost


def _noise_of(task: Grouping, members: Relation, attribute: Secret) -> tuple[Relation, Relation]:
    """The noise that the options ask for, and random noise for the same groups."""
    engine = task.engine
    with engine.scope() as scope:
        surplus = engine.materialise("surplus", "decomposition/list_surplus", members=members, attribute=attribute)
        linkable = engine.materialise(
            "linkable",
            "decomposition/list_linkable",
            members=members,
            surplus=surplus,
            primary=task.primary,
            attribute=attribute,
        )
        distances = _distances(engine, attribute, surplus)
        params = {"surplus": surplus, "linkable": linkable, "distances": distances}
        noise = scope.keep(_choose(task, params, nearest=task.options.noise == "nearest"))
        return noise, scope.keep(_choose(task, params, nearest=False))


def _choose(task: Grouping, params: dict[str, Any], nearest: bool) -> Relation:
    """The noise, one row of every group in a turn."""
    engine = task.engine
    taken = engine.load("noise", _NOISE, [])
    turns = engine.most(params["surplus"], "turn") or 0
    for turn in range(1, turns + 1):
        chosen = {"taken": taken, "turn": Value(turn), "coins": Value(task.coins), "nearest": nearest}
        engine.insert(taken, "decomposition/choose_noise", **params, **chosen)
    return taken


def _distances(engine: Engine, attribute: Secret, surplus: Relation) -> Relation | None:
    """The heights of lowest common ancestors; without a taxonomy all different values are equally far apart."""
    if attribute.nodes is None:
        return None
    params = {"dictionary": attribute.dictionary, "nodes": attribute.nodes}
    return engine.materialise("distances", "decomposition/measure_distances", surplus=surplus, **params)


def _lost(engine: Engine, attribute: SensitiveAxis, rows: int, noise: Relation, random: Relation) -> NoiseLoss:
    height = getattr(attribute, "height", 1)
    changed = engine.count(noise)
    means = [engine.total(part, "height") / (height * changed) if changed else 0.0 for part in (noise, random)]
    return NoiseLoss(attribute.column.name, rows, changed, *means)


#: How many groups a row tries at most.
ATTEMPTS = 100


def place_starved(task: Grouping, members: Relation, threshold: int) -> tuple[Relation, int]:
    """The members with rows placed that have waited longer than the threshold, and how many were."""
    engine = task.engine
    openings = _openings(task, members, threshold)
    placed = 0
    for _ in range(ATTEMPTS):
        if not engine.count(openings):
            break
        chosen = engine.materialise("chosen", "decomposition/choose_openings", openings=openings)
        accepted = _accepted(task, members, chosen)
        placed += engine.count(accepted)
        members = regroup(task, members, accepted=accepted)
        still_open = engine.materialise(
            "openings", "decomposition/keep_openings", openings=openings, chosen=chosen, accepted=accepted
        )
        engine.drop(openings, chosen, accepted)  # every row with its groups, once an attempt
        openings = still_open
    engine.drop(openings)
    return members, placed


def _openings(task: Grouping, members: Relation, threshold: int) -> Relation:
    with task.engine.scope() as scope:
        openings = task.engine.materialise(
            "openings",
            "decomposition/list_openings",
            members=members,
            primary=task.primary,
            attributes=with_counts(task, members).others,
            starvation=threshold,
        )
        return scope.keep(openings)


def _accepted(task: Grouping, members: Relation, chosen: Relation) -> Relation:
    """The chosen rows whose groups reach every l with them."""
    engine = task.engine
    with engine.scope() as scope:
        trial = engine.materialise(
            "trial", "decomposition/list_trial", members=members, chosen=chosen, secrets=task.secrets
        )
        refused = list_refused(task, trial)
        return scope.keep(
            engine.select_others("accepted", chosen, refused, "group_no", columns=["row_id", "code", "group_no"])
        )


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
    lost: Sequence[NoiseLoss]
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
            coins=task.coins,
        )
        scope.keep(shown)
        groups, rows = engine.most(shown, "group_no") or 0, engine.count(shown)
    return Groups(shown, groups, rows, formed, residual, refused, lost, placed, exchanges)
