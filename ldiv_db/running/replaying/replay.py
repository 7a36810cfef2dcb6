"""The replay of a release: worlds are made, the program is run on each, and what gives the release is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from ldiv_db.algorithms.base import Progress
from ldiv_db.attacking.attacks import Attacks
from ldiv_db.attacking.disclosure import Attack
from ldiv_db.attacking.replay import Replay, Replayed, Scenes, Tally, replay_attack
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.policy.required import resolve_all
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.guarantees import Guarantee, together
from ldiv_db.running.preparation import Listener
from ldiv_db.running.replaying.method import Method
from ldiv_db.running.replaying.methods import Asked, method_of, seed_of_release
from ldiv_db.running.replaying.scenes import scenes_of

_MOVES = {"world_no": "BIGINT", "row_no": "BIGINT", "payload_no": "BIGINT"}
#: Draws the seeds that an attacker tries who lacks the true one: figures are the same each time.
_COINS = 1
_SEED_BITS = 120
#: A row in a run of the program costs as much as so many pairs of people and classes.
_ROW = 100
_NO_RELEASE = "no world, not even the source's own values, gives this release"


@dataclass(frozen=True)
class _Tried:
    """What was tried of a release, by which method, and what of it gave the release."""

    method: Method
    found: Replayed
    rows: int
    classes: int


def replay_table(
    asked: Asked, wanted: Replay, require: Sequence[RequirementSpec], listener: Listener, budget: int
) -> list[Attack]:
    """What replay tells of each sensitive attribute of a table of classes, against what `require` promises.

    Raises PolicyError for a release that the policy and the source do not give, and for one that cannot be replayed.
    """
    tried = _replayed(asked, wanted, listener, budget)
    attributes = tried.method.resolved.required.attributes
    resolved = resolve_all(asked.engine, require, attributes)
    promises = {name: together(required.promise() for required in resolved[name]) for name in attributes}
    return _attacks(asked, wanted, tried, promises)


def replay_groups(asked: Asked, wanted: Replay, listener: Listener, budget: int) -> Attacks:
    """What replay tells of each sensitive attribute of an anatomised release; raises as `replay_table`."""
    tried = _replayed(asked, wanted, listener, budget)
    limits = tried.method.resolved.limits.items()
    promises = {name: Guarantee(share=Fraction(1, least), values=least, size=least) for name, least in limits}
    return Attacks(tried.rows, tried.classes, tuple(_attacks(asked, wanted, tried, promises)))


def _attacks(asked: Asked, wanted: Replay, tried: _Tried, promises: Mapping[str, Guarantee]) -> list[Attack]:
    """The attack on each sensitive attribute; a promise binds where coins are secret, and the policy is transparent."""
    promised = bool(wanted.tries) and asked.policy.transparent
    attributes = tried.method.resolved.required.attributes
    return [
        replay_attack(tried.found, name, Identifier(f"s{number}"), promises[name], promised, tried.rows)
        for number, name in enumerate(attributes, 1)
    ]


def _replayed(asked: Asked, wanted: Replay, listener: Listener, budget: int) -> _Tried:
    engine = asked.engine
    seed = wanted.seed if wanted.seed is not None else seed_of_release(engine, asked.policy, asked.folder)
    listener.on_stage("making the release again")
    method = method_of(replace(asked, numbered=not wanted.tries), seed)
    affordable = budget // (_ROW * max(engine.count(method.people.relation), 1) * max(wanted.tries, 1))
    scenes, rows, classes = _scenes(method, seed, min(wanted.limit, max(affordable, 2)))
    listener.on_stage(f"trying {scenes.count:,} worlds")
    moves = engine.load("moves", _MOVES, scenes.moves())
    tally = _tried(method, scenes, moves, seed, wanted.tries, listener.on_progress)
    found = Replayed(engine, method.people.relation, method.people.donors, moves, tally)
    return _Tried(method, found, rows, classes)


def _scenes(method: Method, seed: int, most: int) -> tuple[Scenes, int, int]:
    """What is to be tried, and the rows and classes published.

    Raises PolicyError unless the source's own values give the release.
    """
    engine = method.engine
    with engine.scope():
        none = engine.load("moves", _MOVES, [])
        try:
            made = method.make(method.people.world(none, 0), seed)
        except InfeasibleError:
            raise _no_release(seed) from None
        if not method.is_release(made):
            raise _no_release(seed)
        holes = {"assigned": made.assigned, "class_id": made.class_id}
        published = engine.record("running/replaying/count_published", **holes)
        return scenes_of(method, made, most), published["rows"], published["classes"]


def _no_release(seed: int) -> PolicyError:
    what = f"{_NO_RELEASE} by this policy and its seed"
    return PolicyError([Problem("replay", what, "source, policy or seed are others than those of its run")])


def _tried(method: Method, scenes: Scenes, moves: Relation, seed: int, tries: int, on_progress: Progress) -> Tally:
    """In how many runs each world gave the release: one by the seed, or `tries` by others."""
    coins, hits = Random(_COINS), Counter[int]()  # noqa: S311 - tries seeds, and hides nothing
    done, total = 0, scenes.count * max(tries, 1)
    for number, _, scene, world, _ in scenes.numbered():
        if len(scene.worlds) == 1 or (world == scene.true and not tries):
            hits[number] = 1  # nothing is open, or it was seen to give the release
            continue
        for _ in range(max(tries, 1)):
            hits[number] += _gives(method, moves, number, coins.getrandbits(_SEED_BITS) if tries else seed)
        done += max(tries, 1)
        on_progress(done, total)
    return Tally(scenes, hits, tries)


def _gives(method: Method, moves: Relation, world: int, seed: int) -> bool:
    with method.engine.scope():
        return method.gives_release(method.people.world(moves, world), seed)
