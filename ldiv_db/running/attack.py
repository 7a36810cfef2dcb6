"""Attacks as a caller asks for them: tables and policies by name, and the release replayed where that is asked for.

A replay makes worlds, runs the program on each, and counts which of them give the release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from ldiv_db.algorithms.base import Progress
from ldiv_db.attacking.attacks import PREPARING, Attacks, attack_published, attack_table
from ldiv_db.attacking.question import AttackRequest, Knowledge, Replay, refuse_replay
from ldiv_db.attacking.replay import Replayed, SampledWorlds, WorldTally, replay_attack
from ldiv_db.auditing.kept import warn_of_source
from ldiv_db.auditing.tables import PublishedTables
from ldiv_db.database.attach import named_databases, takes_database
from ldiv_db.database.context import Listener, working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, refuse, refused
from ldiv_db.database.frames import take_for_table
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.requests import asks
from ldiv_db.policy.document import Policy
from ldiv_db.policy.published import asked_of, tell_of_each
from ldiv_db.policy.quasi_identifiers import read_columns
from ldiv_db.policy.reading import counted_there, parse_policy, said_of_one_table
from ldiv_db.policy.schema import members_of, of_published
from ldiv_db.policy.sensitive import resolve_all
from ldiv_db.policy.sources import open_given, open_source
from ldiv_db.publishing.found import auto_found, recorded_tables
from ldiv_db.requirements import RequirementSpec, promised_by
from ldiv_db.requirements.guarantees import Guarantee
from ldiv_db.running.replay_methods import Method, ReplaySubject, method_of, seed_of_release
from ldiv_db.running.world_sampler import sample_worlds

_MOVES = {"world_no": "BIGINT", "row_no": "BIGINT", "payload_no": "BIGINT"}
#: Draws the seeds that an attacker tries who lacks the true one: figures are the same each time.
_COINS = 1
_SEED_BITS = 120
#: A row in a run of the program costs as much as so many pairs of people and classes.
_ROW = 100


def replay(
    subject: ReplaySubject, wanted: Replay, require: Sequence[RequirementSpec], budget: int, listener: Listener
) -> Attacks:
    """Attacks by replay on each sensitive attribute, against what `require` promises, or the sizes of groups.

    A promise binds where coins are secret, and the policy is transparent. Raises PolicyError for a release that the
    policy and the source do not give, and for one that cannot be replayed.
    """
    engine, policy = subject.engine, subject.policy
    method, found = _replayed(subject, wanted, budget, listener)
    attributes = method.resolved.required.attributes
    if policy.decomposes:
        limits = method.resolved.limits.items()
        promises = {name: Guarantee(share=Fraction(1, least), values=least, size=least) for name, least in limits}
    else:
        resolved = resolve_all(engine, require, attributes)
        promises = {name: promised_by(resolved[name]) for name in attributes}
    promised = bool(wanted.tries) and policy.transparent
    columns = {name: Identifier(f"s{number}") for number, name in enumerate(attributes, 1)}
    attacks = [replay_attack(found, name, column, promises[name], promised) for name, column in columns.items()]
    return Attacks(found.rows, found.classes, tuple(attacks))


def _replayed(subject: ReplaySubject, wanted: Replay, budget: int, listener: Listener) -> tuple[Method, Replayed]:
    """The method of the release, and the worlds tried of it with those that gave it."""
    engine = subject.engine
    seed = seed_of_release(subject) if wanted.seed is None else wanted.seed
    listener.on_stage("making the release again")
    method = method_of(replace(subject, numbered=not wanted.tries), seed)
    people = method.people
    affordable = budget // (_ROW * max(engine.count(people.relation), 1) * max(wanted.tries, 1))
    sampled, rows, classes = _sampled(method, seed, min(wanted.limit, max(affordable, 2)))
    listener.on_stage(f"trying {sampled.count:,} worlds")
    moves = engine.load("moves", _MOVES, sampled.moves())
    tally = _count_hits(method, sampled, moves, seed, wanted.tries, listener.on_progress)
    return method, Replayed(engine, people.relation, people.donors, moves, tally, rows, classes)


def _sampled(method: Method, seed: int, most: int) -> tuple[SampledWorlds, int, int]:
    """The worlds to try, and the rows and classes published.

    Raises PolicyError unless the source's own values give the release.
    """
    engine = method.engine
    with engine.scope():
        try:
            made = method.make(method.people.world(engine.load("moves", _MOVES, []), 0), seed)
        except InfeasibleError:
            made = None
        if made is None or not method.is_release(made):
            what = "no world, not even the source's own values, gives this release by this policy and its seed"
            raise refused("replay", what, "source, policy or seed differ from those of its run")
        classes = engine.count(engine.select("classes", made.assigned, made.class_id, distinct=True))
        return sample_worlds(method, made, most), engine.count(made.assigned), classes


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
    if policy.is_aligned:
        bounded = "what requirements bound is what all published rows of a person tell, and their number"
        told.append(f"several rows of a person: not tried where rows are aligned; {bounded}")
    elif policy.individual and policy.decomposes:
        told.append("several rows of a person: not tried on groups, each of which bounds a row of theirs by itself")
    elif policy.individual and known.owned is None:
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
    requirements are what is promised unless `require` is given. A pair is given as to `check`. Options choose attacks
    as those of `ldiv attack` do: `threshold` is a risk (0..1), `also_policies` has one policy for all of `also` or one
    each, `link_columns` two lists of columns, `budget` counts pairs of people and classes, and `replay` is a `Replay`.

    Attacks that know people or read labels need a policy. If it names an `individual` and its source can be read,
    several rows of a person are attacked as well. Of a policy with `tables` all published tables are attacked.

    The Attacks have `holds`, `finished`, `rows`, `classes` and `attacks`, each with what is `untried`; they hold no
    value of the table unless `show_values`. Raises PolicyError also if policy and source do not give the release to be
    replayed.
    """
    policy = None if request.policy is None else of_published(parse_policy(request.policy), request.table)
    listener, folder = request.heard, Path(request.folder)
    if policy is not None and policy.is_apart:
        refuse(said_of_one_table(request))
        with (
            working_engine(con, listener, request.catalog) as engine,
            named_databases(engine, policy.databases, folder),
        ):
            tell_of_each(engine, listener, policy, folder, PREPARING)
            found = {name: _attacked(engine, *asked_of(request, name, own)) for name, own in members_of(policy).items()}
            return Attacks.of_tables(found)
    if policy is not None and policy.tables:
        refuse(said_of_one_table(request))
        known = Knowledge(request, threshold=request.high_risk(policy))
        with working_engine(con, listener, request.catalog) as engine:
            policy = policy.requiring(auto_found(engine, policy.places, policy.require))
            recorded = recorded_tables(engine, policy.places, policy.is_series, policy.knows_one)
            return attack_published(PublishedTables.open(engine, policy, folder, request.require, recorded), known)
    if request.replay:
        refuse_replay(request.replay, policy)
    databases = policy.databases if policy else {}
    with working_engine(con, listener, request.catalog) as engine, named_databases(engine, databases, folder):
        return _attacked(engine, request, policy)


def _attacked(engine: Engine, request: AttackRequest, policy: Policy | None) -> Attacks:
    """The attacks on one table."""
    listener, folder = request.heard, Path(request.folder)
    if request.replay and policy and policy.decomposes:
        subject = ReplaySubject(engine, folder, request.table, None, policy)
        return replay(subject, request.replay, [], request.budget, listener)
    policy = policy and policy.requiring(auto_found(engine, policy.places, policy.require))
    listener.on_stage(PREPARING)
    published = open_given(engine, request.table, "table")
    columns = request.columns(engine, published, policy)
    known = request.opened(engine, policy)
    found = attack_table(engine, published, columns, known)
    told = _warnings(engine, policy, known, folder) if policy else []
    found = replace(found, warnings=(*found.warnings, *told))
    if request.replay is None or policy is None:
        return found
    subject = ReplaySubject(engine, folder, request.table, published, policy, columns.axes)
    replayed = replay(subject, request.replay, columns.require, request.budget, listener)
    return replace(found, attacks=(*found.attacks, *replayed.attacks))
