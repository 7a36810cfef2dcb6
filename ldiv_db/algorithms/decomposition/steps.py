"""All steps of Decomposition, from rows to groups with the values that are published for them.

Noise: values that stand too often in a group become others that its primary values occur with. LSV(S, G) are the values
of S that occur anywhere in the table with a primary value of G. Of those that G lacks, a row gets the one at least
hierarchical distance from its own, level(LCA) / H (Decomposition+), or any (Decomposition). Every value is given once
in a group, so it never stands too often. A group that runs out of them is refused.

Starvation: rows that have waited too long join a group made in the same release that lacks their primary value. They
never join a group of an earlier release: the values that the group gets would be theirs. A group takes a row only if it
reaches every l with it, perhaps by noise; a row tries the groups by its diversity penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.decomposition.grouping import Grouping, Secret, deal, exchange, regroup, seat_rows, with_counts
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where

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
            flow = task.flow(members, refused=refused, attribute=attribute)
            is_noisy = task.options.noise != "none" and attribute.members is None
            flow.insert("refused", "list_refused", noise=is_noisy)
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
    for attribute in task.exchanged:
        reached = [(largest, groups) for number, largest, groups in tally if number == attribute.number]
        if reached:
            refused_groups, (largest_l, _) = sum(groups for _, groups in reached), reached[0]
            shortfalls.append(Refused(attribute.name, refused_groups, attribute.l, largest_l))
    return members, shortfalls


def part_people(task: Grouping, members: Relation, whole: Relation) -> tuple[Relation, int]:
    """The members without groups that have several rows of a person in `whole`, and how many these were."""
    if task.individual is None:
        return members, 0
    known = {"dealt": task.rows, "rows": whole, "individual": task.individual}
    repeated = task.engine.materialise("repeated", "decomposition/list_repeated", members=members, **known)
    groups = task.engine.count(repeated)
    members = regroup(task, members, refused=repeated)
    task.engine.drop(repeated)
    return members, groups


def add_noise(task: Grouping, members: Relation, whole: Relation) -> tuple[Grouping, list[NoiseLoss]]:
    """The task whose attributes have their `noise` (row_id, group_no, code, other, height), and what it cost.

    What stands in place of a value is written as in a row of `whole`.
    """
    engine = task.engine
    others, lost = [], []
    with engine.scope() as scope:
        counted = with_counts(task, members)
        rows = engine.count(members, Where("group_no", 0, ">"))
        for attribute in counted.others:
            noise, random = _noise_of(counted, members, attribute)
            spelled = {"rows": whole, "attribute": attribute, "coins": task.coins}
            own = engine.materialise("spelled", "decomposition/spell_values", **spelled) if attribute.own else None
            others.append(replace(attribute, noise=scope.keep(noise), spelled=own and scope.keep(own)))
            changed, heights = engine.count(noise), [engine.total(part, "height") for part in (noise, random)]
            means = [height / (attribute.height * changed) if changed else 0.0 for height in heights]
            lost.append(NoiseLoss(attribute.name, rows, changed, *means))
    return replace(task, others=tuple(others)), lost


def _noise_of(task: Grouping, members: Relation, attribute: Secret) -> tuple[Relation, Relation]:
    """The noise that the options ask for, and random noise for the same groups."""
    with task.engine.scope() as scope:
        if attribute.members:
            return (scope.keep(task.engine.load("noise", _NOISE, [])),) * 2
        flow = task.flow(members, attribute=attribute, distances=None)
        flow.step("surplus", "list_surplus")
        flow.step("linkable", "list_linkable")
        if attribute.nodes is not None:  # else all different values are equally far apart
            flow.know(dictionary=attribute.dictionary, nodes=attribute.nodes)
            flow.step("distances", "measure_distances")
        noise = scope.keep(_choose(flow, nearest=task.options.noise == "nearest"))
        return noise, scope.keep(_choose(flow, nearest=False))


def _choose(flow: EngineFlow, nearest: bool) -> Relation:
    """The noise, one row of every group in a turn."""
    taken = flow.engine.load("noise", _NOISE, [])
    flow.know(taken=taken)
    for turn in range(1, 1 + (flow.engine.most(flow["surplus"], "turn") or 0)):
        flow.insert("taken", "choose_noise", turn=turn, nearest=nearest)
    return taken


#: In how many further rounds rows of sets are seated that find no group.
RESEATS = 16


def reseat(task: Grouping, members: Relation) -> Relation:
    """The members with more groups, of rows of sets whose groups had too much of a member."""
    engine = task.engine
    for turn in range(1, RESEATS + 1 if any(secret.members for secret in task.others) else 1):
        with engine.scope() as scope:
            waiting = engine.select("waiting", members, "row_id", where=[Where("group_no", 0, "<")])
            left = engine.select_among("left", task.rows, waiting, "row_id")
            fresh, formed, _ = seat_rows(replace(task, rows=left), turn)
            if not formed:
                break
            fresh, _ = release_refused(task, exchange(task, fresh)[0])
            last = engine.most(members, "group_no", Where("group_no", 0, ">")) or 0
            joined = task.flow(members, fresh=fresh, last=last).step("members", "join_rounds")
            scope.keep(joined)
        engine.drop(members)
        members = joined
    return members


#: How many groups a row tries at most.
ATTEMPTS = 100


def place_starved(task: Grouping, members: Relation, threshold: int) -> tuple[Relation, int]:
    """The members with rows placed that have waited longer than the threshold, and how many were."""
    engine, placed = task.engine, 0
    with engine.scope() as scope:
        flow = task.flow(members, starvation=threshold)
        scope.keep(flow.step("openings", "list_openings", attributes=with_counts(task, members).exchanged))
    for _ in range(ATTEMPTS):
        if not engine.count(openings := flow["openings"]):
            break
        chosen = flow.step("chosen", "choose_openings")
        accepted = _accepted(task, members, chosen)
        placed += engine.count(accepted)
        members = regroup(task, members, accepted=accepted)
        flow.step("openings", "keep_openings", accepted=accepted)
        engine.drop(openings, chosen, accepted)  # every row with its groups, once an attempt
    flow.drop("openings")
    return members, placed


def _accepted(task: Grouping, members: Relation, chosen: Relation) -> Relation:
    """The chosen rows whose groups reach every l with them."""
    engine = task.engine
    with engine.scope() as scope:
        trial = task.flow(members, chosen=chosen).step("trial", "list_trial")
        refused = list_refused(task, trial)
        return scope.keep(
            engine.select_others("accepted", chosen, refused, "group_no", columns=["row_id", "code", "group_no"])
        )


@dataclass(frozen=True)
class Groups:
    """New groups: `shown` is (row_id, group_no, the codes to be published), group_no from 1 without gaps.

    `residual` has the rows left over of each primary code after largest-l, which made `formed` groups; `refused` says
    what groups could not reach, `placed` how many starved rows joined one, `repeated` how many groups had two rows of a
    person and are given up.
    """

    shown: Relation
    count: int
    rows: int
    formed: int
    residual: Sequence[tuple[int, int]]
    refused: Sequence[Refused]
    lost: Sequence[NoiseLoss]
    placed: int
    repeated: int
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
        members = reseat(task, members)
        members, placed = place_starved(task, members, threshold)
        members, repeated = part_people(task, members, whole)
        noisy, lost = add_noise(task, members, whole)
        shown = scope.keep(noisy.flow(members, dealt=task.rows).step("shown", "apply_noise", rows=whole))
        groups, rows = engine.most(shown, "group_no") or 0, engine.count(shown)
    return Groups(shown, groups, rows, formed, residual, refused, lost, placed, repeated, exchanges)
