"""Worlds that a release leaves open to an attacker who has the program and the policy, to be tried by its method.

All worlds are tried where they are few, else those of some classes, drawn by coins.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from ldiv_db.attacking.covering import known_axes
from ldiv_db.attacking.matching import matched
from ldiv_db.attacking.replay import Cell, SampledWorlds, World, WorldSet, arrange, consistent_worlds
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.running.replay_methods import MadeRelease, Method

#: From so many rows on nobody asks whether all worlds can be tried.
_FEW_ROWS = 500
#: The most worlds of a class that are tried, and the most rows and worlds that are written down for it.
_MOST_WORLDS, _MOST_MOVES = 64, 200_000
#: Draws classes and worlds: figures are the same whenever they are worked out again.
_COINS = 0
#: Working names of what an anatomised release shows of people begin so.
_SHOWN = "qk"


def sample_worlds(method: Method, made: MadeRelease, most: int) -> SampledWorlds:
    """Worlds to try of the release that was `made` of the source, about `most` of them."""
    known = {"rows": made.rows, "assigned": made.assigned, "labels": made.labels, "blanked": made.blanked}
    flow = EngineFlow(method.engine, "running/replaying", people=method.people.relation, **known)
    flow.step("placed", "place_rows", class_id=made.class_id, blank="s1")  # the codes of the first sensitive attribute
    return _all_worlds(flow, method, made, most) or _draw_worlds(method.engine, flow["placed"], most)


# -- all worlds ----------------------------------------------------------------------------------------


def _all_worlds(flow: EngineFlow, method: Method, made: MadeRelease, most: int) -> SampledWorlds | None:
    """One set of every world that the release leaves open; None if they are more than `most`."""
    engine, placed = flow.engine, flow["placed"]
    if engine.count(placed) > _FEW_ROWS:
        return None
    listed = engine.columns(flow.step("cells", "count_cells"), "place_no", "payload_no", "rows")
    cells = {(place, payload): rows for place, payload, rows in listed}
    fits: dict[int, set[int]] = defaultdict(set)
    _find_places(flow, method, made)
    if made.blanked is not None:
        flow.step("fits", "list_hidden_fits")
    for row, place in engine.columns(flow["fits"], "row_no", "place_no"):
        fits[row].add(place)
    sure = _sure_cells(fits, cells)
    undecided = {row: places for row, places in sorted(fits.items()) if row not in sure}
    worlds = consistent_worlds(list(undecided.values()), Counter(cells) - Counter(sure.values()), most)
    if worlds is None:
        return None
    true = dict(engine.columns(placed, "row_no", "payload_no"))
    sets = [_world_set(rows, worlds, true) for rows, worlds in ((undecided, worlds), (sure, None)) if rows]
    return SampledWorlds(sets, True)


def _world_set(rows: Iterable[int], worlds: list[World] | None, true: Mapping[int, int]) -> WorldSet:
    """Rows with their worlds, all alike; with the true one alone if there are no others."""
    payloads = tuple(true[row] for row in rows)
    tried = worlds or [payloads]
    return WorldSet(list(rows), payloads, tried, [1] * len(tried))


def _sure_cells(fits: Mapping[int, set[int]], cells: Mapping[Cell, int]) -> dict[int, Cell]:
    """The cells of rows that the release leaves no choice: they fit one place, all of one payload."""
    payloads: dict[int, list[int]] = defaultdict(list)
    for place, payload in cells:
        payloads[place].append(payload)
    alone = ((row, *places) for row, places in sorted(fits.items()) if len(places) == 1)
    return {row: (place, payloads[place][0]) for row, place in alone if len(payloads[place]) == 1}


def _find_places(flow: EngineFlow, method: Method, made: MadeRelease) -> None:
    """Makes `fits` (row_no, place_no): where the attacker, who knows what people are known by, may look for them."""
    engine, people = flow.engine, method.people
    if made.labels is None:
        flow.step("fits", "list_fits_of_people", shown=[one for one in people.known if one[0] in _SHOWN])
        return
    shown = [one.alias.name for one in made.shown]
    places = engine.select("places", made.labels, *shown, ("label_rank", "class_no"), distinct=True)
    aliases = iter(made.shown)
    axes = [
        replace(axis, name=f"q{number}", columns=tuple(next(aliases).alias for _ in axis.columns))
        for number, axis in enumerate(method.subject.labels, 1)
    ]
    known = known_axes(axes, columns_of(engine, people.relation), "source")
    with matched(engine, places, known, people.relation) as found:
        flow.step("fits", "list_fits_of_labels", cells=found.cells, matches=found.pairs, axes=known)


# -- drawn classes -------------------------------------------------------------------------------------


def _draw_worlds(engine: Engine, placed: Relation, most: int) -> SampledWorlds:
    """Classes drawn by coins, each a set of worlds: its rows may have any of their payloads, all else is known."""
    coins = Random(_COINS)  # noqa: S311 - draws what is tried, and hides nothing
    sets: list[WorldSet] = []
    left = most
    for rows, payloads in _classes(engine, placed, most, coins):
        found = arrange(rows, payloads, max(min(_MOST_WORLDS, most, _MOST_MOVES // len(rows)), 2), coins)
        if len(found.worlds) > max(left, 2):
            break
        left -= len(found.worlds) - 1
        sets.append(found)
    return SampledWorlds(sets, False)


def _classes(
    engine: Engine, placed: Relation, most: int, coins: Random
) -> Iterator[tuple[Sequence[int], tuple[int, ...]]]:
    """(rows, payloads) of up to `most` classes, drawn by coins; the rows that are not published are one too."""
    numbers = range(int(engine.least(placed, "class_no")), int(engine.most(placed, "class_no")) + 1)
    drawn = coins.sample(numbers, min(most, len(numbers)))
    loaded = engine.load("drawn", {"class_no": "BIGINT"}, [(number,) for number in drawn])
    members = engine.select_among("members", placed, loaded, "class_no")
    classes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, row, payload in engine.columns(members, "class_no", "row_no", "payload_no"):
        classes[number].append((row, payload))
    engine.drop(loaded, members)
    for number in drawn:
        if number in classes:
            rows, payloads = zip(*sorted(classes[number]), strict=True)
            yield rows, payloads
