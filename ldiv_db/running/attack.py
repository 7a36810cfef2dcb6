"""Attacks as a caller asks for them: tables and policies by name, and the release replayed where that is asked for.

A replay makes worlds, runs the program on each, and counts which of them give the release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from ldiv_db.algorithms.base import Progress
from ldiv_db.attacking.attacks import Attacks, attack_table
from ldiv_db.attacking.gains import Attack
from ldiv_db.attacking.question import AttackRequest, Knowledge, Replay
from ldiv_db.attacking.replay import Replayed, SampledWorlds, WorldTally, replay_attack
from ldiv_db.auditing.kept import warn_of_source
from ldiv_db.database.attach import takes_database
from ldiv_db.database.context import open_context
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.database.frames import take_for_table
from ldiv_db.database.requests import asks
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.quasi_identifiers import read_columns
from ldiv_db.policy.reading import counted_there, parse_policy
from ldiv_db.policy.sensitive import resolve_all
from ldiv_db.policy.sources import open_given, open_source
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.guarantees import Guarantee, together
from ldiv_db.running.replay_methods import ReplaySubject, method_of, seed_of_release
from ldiv_db.running.world_sampler import Method, sample_worlds

_MOVES = {"world_no": "BIGINT", "row_no": "BIGINT", "payload_no": "BIGINT"}
#: Draws the seeds that an attacker tries who lacks the true one: figures are the same each time.
_COINS = 1
_SEED_BITS = 120
#: A row in a run of the program costs as much as so many pairs of people and classes.
_ROW = 100
_NO_RELEASE = "no world, not even the source's own values, gives this release"


@dataclass(frozen=True)
class _WorldTrial:
    """The worlds tried of a release by its method, and which of them gave it."""

    method: Method
    found: Replayed
    rows: int
    classes: int


def replay_table(
    subject: ReplaySubject, wanted: Replay, require: Sequence[RequirementSpec], budget: int
) -> list[Attack]:
    """Attacks by replay on each sensitive attribute of a table of classes, against what `require` promises.

    Raises PolicyError for a release that the policy and the source do not give, and for one that cannot be replayed.
    """
    tried = _replayed(subject, wanted, budget)
    attributes = tried.method.resolved.required.attributes
    resolved = resolve_all(subject.engine, require, attributes)
    promises = {name: together(required.promise() for required in resolved[name]) for name in attributes}
    return _attacks(subject, wanted, tried, promises)


def replay_groups(subject: ReplaySubject, wanted: Replay, budget: int) -> Attacks:
    """Attacks by replay on each sensitive attribute of an anatomised release; raises as `replay_table`."""
    tried = _replayed(subject, wanted, budget)
    limits = tried.method.resolved.limits.items()
    promises = {name: Guarantee(share=Fraction(1, least), values=least, size=least) for name, least in limits}
    return Attacks(tried.rows, tried.classes, tuple(_attacks(subject, wanted, tried, promises)))


def _attacks(
    subject: ReplaySubject, wanted: Replay, tried: _WorldTrial, promises: Mapping[str, Guarantee]
) -> list[Attack]:
    """The attack on each sensitive attribute; a promise binds where coins are secret, and the policy is transparent."""
    promised = bool(wanted.tries) and subject.policy.transparent
    attributes = tried.method.resolved.required.attributes
    return [
        replay_attack(tried.found, name, Identifier(f"s{number}"), promises[name], promised, tried.rows)
        for number, name in enumerate(attributes, 1)
    ]


def _replayed(subject: ReplaySubject, wanted: Replay, budget: int) -> _WorldTrial:
    engine, listener, folder = subject.engine, subject.context.listener, subject.context.folder
    seed = wanted.seed if wanted.seed is not None else seed_of_release(engine, subject.policy, folder)
    listener.on_stage("making the release again")
    method = method_of(replace(subject, context=subject.context.quiet, numbered=not wanted.tries), seed)
    affordable = budget // (_ROW * max(engine.count(method.people.relation), 1) * max(wanted.tries, 1))
    sampled, rows, classes = _sampled(method, seed, min(wanted.limit, max(affordable, 2)))
    listener.on_stage(f"trying {sampled.count:,} worlds")
    moves = engine.load("moves", _MOVES, sampled.moves())
    tally = _count_hits(method, sampled, moves, seed, wanted.tries, listener.on_progress)
    found = Replayed(engine, method.people.relation, method.people.donors, moves, tally)
    return _WorldTrial(method, found, rows, classes)


def _sampled(method: Method, seed: int, most: int) -> tuple[SampledWorlds, int, int]:
    """The worlds to try, and the rows and classes published.

    Raises PolicyError unless the source's own values give the release.
    """
    engine = method.engine
    with engine.scope():
        none = engine.load("moves", _MOVES, [])
        try:
            made = method.make(method.people.world(none, 0), seed)
        except InfeasibleError:
            raise _no_release_error(seed) from None
        if not method.is_release(made):
            raise _no_release_error(seed)
        classes = engine.count(engine.select("classes", made.assigned, made.class_id.name, distinct=True))
        return sample_worlds(method, made, most), engine.count(made.assigned), classes


def _no_release_error(seed: int) -> PolicyError:
    what = f"{_NO_RELEASE} by this policy and its seed"
    return PolicyError([Problem("replay", what, "source, policy or seed differ from those of its run")])


def _count_hits(
    method: Method, sampled: SampledWorlds, moves: Relation, seed: int, tries: int, on_progress: Progress
) -> WorldTally:
    """Count the runs in which each world gave the release: one by the seed, or `tries` by others."""
    coins, hits = Random(_COINS), Counter[int]()  # noqa: S311 - tries seeds, and hides nothing
    done, total = 0, sampled.count * max(tries, 1)
    for number, _, world_set, world, _ in sampled.numbered():
        if len(world_set.worlds) == 1 or (world == world_set.true and not tries):
            hits[number] = 1  # nothing is open, or it was seen to give the release
            continue
        for _ in range(max(tries, 1)):
            with method.engine.scope():
                tried = coins.getrandbits(_SEED_BITS) if tries else seed
                hits[number] += method.gives_release(method.people.world(moves, number), tried)
        done += max(tries, 1)
        on_progress(done, total)
    return WorldTally(sampled, hits, tries)


def _warnings(engine: Engine, policy: Policy, known: Knowledge, folder: Path) -> list[str]:
    """What is said of kept columns by those who know people, or else by the source, and of what was not tried."""
    told = []
    if policy.individual and known.owned is None:
        lacking = f"{policy.individual.column} of {policy.source} is not there"
        told.append(f"several rows of a person: not tried, as {lacking}")
    if not policy.keep:
        return told
    with suppress(PolicyError):  # a source that is not there tells nothing
        people = known.people.get("known") or open_source(engine, policy.source, folder)
        told += warn_of_source(
            engine, read_columns(engine, policy, people), policy.keep, list(policy.quasi_identifiers)
        )
    return told


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
@asks(AttackRequest)
def attack(con: Any, request: AttackRequest) -> Attacks:
    """Measure what attackers gain from a published table, view, data file or frame, against what is promised.

    Every table may be named, or given as a frame or a relation; in place of `con` it is the `table`. The columns are
    `qi` and `sensitive` (names, or a mapping as in a policy), or those of the release that `policy` describes, whose
    requirements are what is promised unless `require` is given. For an anatomised pair, `table` is joined to its
    `sensitive_table` by the column `group`, perhaps with a column `count`; it takes `qi` and no policy. `catalog` is
    the attached database with taxonomies and ledger; `listener` hears the progress of a replay.

    ============================  ======================================================================================
    option                        the attacker, or the attack
    ============================  ======================================================================================
    `m`                           can rule out this many values of a class
    `threshold`                   a risk above it (0..1) is high; by default that of `risk`, or else 0.2
    `known`, `population`         a table or file of people with quasi-identifiers as they are before anonymization
    `population_size`             estimates how many rows are unique in a population of this size
    `counting`                    knows that the population is everybody, each in one class at most
    `also`, `also_policies`       other releases with the known people, with one policy or one each (or `policy`)
    `definetti`                   people with true values, which the attack guesses from the release
    `downcoding`                  reads labels backwards
    `targets`, `control`          people in the release, and others who are not: singling out, linkability (of two
                                  parts, `link_columns`) and inference, with `tries` draws by `seed`
    `replay`                      runs the program again on other values that the release allows; `table` may then be
                                  one of an anatomised release, on which nothing else is tried
    `budget`                      about how many pairs of people and classes each attack examines; the rest is `untried`
    ============================  ======================================================================================

    Attacks that know people or read labels need a policy. If it names an `individual` and its source can be read,
    several rows of a person are attacked as well. The Attacks have `holds`, `finished`, `rows`, `classes` and
    `attacks`, each with what is `untried`; they hold no value of the table unless `show_values`. Raises PolicyError for
    what does not exist or cannot be read, and if policy and source do not give the release to be replayed;
    DatabaseError if the database refuses.
    """
    policy = None if request.policy is None else parse_policy(request.policy)
    promised, replay = request.promised(policy), request.replay
    request.refuse_replay(policy)
    settings = (request.listener, request.catalog, request.folder, request.show_values)
    with open_context(con, *settings, databases=policy.databases if policy else {}) as context:
        engine = context.engine
        if replay and policy and policy.decomposes:
            return replay_groups(ReplaySubject(context, request.table, None, policy), replay, request.budget)
        published = open_given(engine, request.table, "table")
        columns = request.columns(engine, published, policy)
        known = request.opened(engine, policy)
        found = attack_table(engine, published, columns, promised, known)
        told = _warnings(engine, policy, known, context.folder) if policy else []
        found = replace(found, warnings=(*found.warnings, *told))
        if replay is None or policy is None:
            return found
        subject = ReplaySubject(context, request.table, published, policy, columns.quasi_identifiers)
        return replace(found, attacks=(*found.attacks, *replay_table(subject, replay, promised, request.budget)))
