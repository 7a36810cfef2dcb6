"""People's rows in their places, by which they have a shape: of all people once, then of those who gave up rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.recoding.shapes import ROW_UNIT, Below, Need, Option, Shapes, Standing
from ldiv_db.recoding.stacked import Stack

#: How many rows of a table people keep at most, where too few have more: all numbers, or some of them where there would
#: be more combinations than are looked at.
_CAPS, _MOST_CAPS = (range(65), (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)), 600


def shapes_of(
    engine: Engine, stack: Stack, secret: str, most: int | None = None, busiest: frozenset[int] = frozenset()
) -> Shapes:
    """The shapes of all people, who publish `most` rows of a table at most.

    Rows of `busiest` members come first to which most others belong, and who publishes fewer of these leaves out the
    last ones of each such row first: people then differ in numbers alone.
    """
    needs = [Need(member.number) for member in stack.members]
    with engine.scope() as scope:
        placed, paths = _placed(engine, stack, stack.encoded.rows, needs, secret, busiest)
        turns = [int(engine.most(placed, need.column.name) or 0) for need in needs]
        caps = _caps([min(turn, most or turn) for turn in turns])
        of_people = engine.materialise("shapes", "recoding/tables/list_shapes", placed=placed, spots=None)
        spots = _spots(engine, placed, of_people, needs)
        found, left = _options(engine, stack, spots, caps, needs)
        people = dict(engine.tally(of_people, "shape_no"))
        options = {shape: found.get(shape, []) for shape in people}
        at = Standing(placed, of_people, spots, paths, left)
        for relation in at.relations:
            scope.keep(relation)
    return Shapes(at, needs, caps, people, options, options, secret=secret, most=most, busiest=busiest)


def shapes_without(engine: Engine, stack: Stack, shapes: Shapes, rows: Relation) -> Shapes:
    """The shapes of people without some `rows` (row_id), and what belongs to these; who has no labels then is left out.

    Only those who lose rows are looked at anew: their other rows come to places before.
    """
    before = shapes.at
    with engine.scope() as scope:
        losers = engine.select_among("losers", before.placed, rows, "row_id", columns=["person"])
        theirs = engine.select_among("theirs", before.placed, losers, "person", columns=["row_id"])
        own = engine.select_among(
            "own", stack.encoded.rows, engine.select_others("left", theirs, rows, "row_id"), "row_id"
        )
        placed, paths = _placed(engine, stack, own, shapes.needs, shapes.secret, shapes.busiest, before.paths)
        of_people = engine.materialise("shapes", "recoding/tables/list_shapes", placed=placed, spots=before.spots)
        moved = frozenset(shape for shape, _ in engine.tally(of_people, "shape_no"))
        new = engine.select_others("new", of_people, before.spots, "shape_no")
        spots = _spots(engine, placed, new, shapes.needs)
        found, left = _options(engine, stack, spots, shapes.caps, shapes.needs, before.left)
        engine.extend(spots, before.spots)
        for target, known in ((placed, before.placed), (of_people, before.of_people)):
            engine.extend_others(target, known, losers, "person")
        seen = {**shapes.seen, **found}
        people = {shape: count for shape, count in engine.tally(of_people, "shape_no") if seen.get(shape)}
        options = {shape: seen[shape] for shape in people}
        at = Standing(placed, of_people, spots, paths, left)
        for relation in at.relations:
            scope.keep(relation)
    return replace(shapes, at=at, people=people, options=options, seen=seen, moved=moved)


def _placed(
    engine: Engine,
    stack: Stack,
    rows: Relation,
    needs: Sequence[Need],
    secret: str,
    busiest: frozenset[int],
    known: Relation | None = None,
) -> tuple[Relation, Relation]:
    """Rows of all tables in their places, and (path, place): those of people, those that belong to them, and so on.

    Paths that are `known` keep the number of their place.
    """
    params = {"rows": rows, "axes": stack.encoded.axes, "needs": needs, "secret": secret}
    params["spread"] = [one.number for one in stack.members if one.above in busiest]
    placed: Relation | None = None
    for members in stack.by_depth():
        here = busiest.intersection(member.number for member in members)
        below = [Below(one.number, one.above) for one in stack.members if one.above in here]
        of_members = {"placed": placed, "members": members, "below": below, **params}
        if placed is None:
            placed = engine.materialise("placed", "recoding/tables/place_rows", **of_members)
        else:
            engine.insert(placed, "recoding/tables/place_rows", **of_members)
    paths = engine.materialise("paths", "recoding/tables/number_paths", placed=placed, known=known)
    numbered = {"placed": placed, "paths": paths, "needs": needs}
    return engine.materialise("places", "recoding/tables/number_places", **numbered), paths


def _spots(engine: Engine, placed: Relation, of_people: Relation, needs: Sequence[Need]) -> Relation:
    """The rows of one person of each shape."""
    firsts = engine.group("firsts", of_people, "shape_no", person=("min", "person"))
    return engine.materialise("spots", "recoding/tables/list_spots", placed=placed, firsts=firsts, needs=needs)


def _options(
    engine: Engine,
    stack: Stack,
    spots: Relation,
    caps: Sequence[Sequence[int]],
    needs: Sequence[Need],
    known: Relation | None = None,
) -> tuple[dict[int, list[Option]], Relation]:
    """What may be left of each shape, most rows first, and (kept, places), which begins with what is `known`."""
    columns = dict.fromkeys(["cap_no", *(n.column.name for n in needs), *(n.before.name for n in needs)], "BIGINT")
    lower = [{b: a for a, b in pairwise([-1, *sorted(set(own))])} for own in zip(*caps, strict=True)]
    rows = [(n, *cap, *(of[own] for of, own in zip(lower, cap, strict=True))) for n, cap in enumerate(caps)]
    params = {"spots": spots, "caps": engine.load("caps", columns, rows), "needs": needs, "members": _weights(stack)}
    lesser = engine.materialise("lesser", "recoding/tables/list_lesser_shapes", known=known, **params)
    options: dict[int, list[Option]] = {}
    for shape, *option in engine.columns(lesser, "shape_no", *Option._fields):
        options.setdefault(shape, []).append(Option(*option))
    left = engine.select("left", lesser, "kept", "places", distinct=True)
    if known:
        engine.extend_others(left, known, left, "kept")
    return {shape: sorted(own, reverse=True) for shape, own in options.items()}, left


def _weights(stack: Stack) -> list[dict[str, int]]:
    """What a row of each member loses if it is left out, its sensitive values too, and whether it has labels."""
    lost = Counter(stack.owners[attribute.code].number for attribute in stack.encoded.told)
    lost = Counter({number: values * ROW_UNIT for number, values in lost.items()})
    for axis in stack.encoded.axes:
        lost[stack.owners[axis.code].number] += round(axis.weight * ROW_UNIT)
    labelled = {owner.number for axis in stack.encoded.axes if (owner := stack.owners[axis.code])}
    return [
        {"number": one.number, "weight": lost[one.number] or ROW_UNIT, "labels": int(one.number in labelled)}
        for one in stack.members
    ]


def _caps(most: Sequence[int]) -> list[tuple[int, ...]]:
    """How many rows of each member may be kept: all combinations, of few numbers where there would be too many."""
    for steps in (_CAPS[0], *(_CAPS[1][:length] for length in range(len(_CAPS[1]), 1, -1))):
        caps = [sorted({*(step for step in steps if step < n), n}) if n > 1 else [n] for n in most]
        if prod(map(len, caps)) <= _MOST_CAPS:
            break
    return list(product(*caps))
