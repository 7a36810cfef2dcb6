"""Classes made by prices: against the best of all recodings of tiny tables, and in runs of `auto`."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_recodings import TREES, cells_of, drawn, least_cost, meets, nodes_of
from strategies import search, seeded, some
from towns import cost, random_rows, run_on

from ldiv_db.algorithms.neighbours.passes import Changed
from ldiv_db.algorithms.priced import making, opening, priced
from ldiv_db.algorithms.priced.classes import Classes
from ldiv_db.measuring.least_loss.bounds import Need
from ldiv_db.measuring.least_loss.cells import Cells
from ldiv_db.solving import auto, improve

NEEDS = [Need(2), Need(3), Need(1, 2), Need(1, 3), Need(4, 2)]
EVERY = [nodes_of(tree) for tree in TREES]


def made(cells: Cells, need: Need) -> Classes:
    return making.classes_by_prices(cells, need, 200_000, lambda cost: None)


def members(classes: Classes, cells: Cells) -> list[list[tuple[int, int]]]:
    """Of each class the cell and value of each of its rows."""
    return [
        [(cell, int(cells.value[cell])) for cell, rows in one.rows.items() for _ in range(rows)]
        for one in classes.open.values()
    ]


def all_good(rows: list[tuple[int, ...]], need: Need) -> bool:
    return meets(need, [row[-1] for row in rows])


def cases(draw: random.Random, largest: int) -> list[tuple[list[tuple[int, ...]], Need]]:
    """Random tables that are good as one class."""
    drawn_ = [(drawn(draw, largest), need) for need in NEEDS]
    return [(rows, need) for rows, need in drawn_ if all_good(rows, need)]


@search(1, draw=seeded)
def test_classes_are_good_and_have_all_rows(draw: random.Random) -> None:
    for rows, need in cases(draw, 24):
        cells = cells_of(rows)
        classes = made(cells, need)
        found = members(classes, cells)
        assert all(meets(need, [value for _, value in one]) for one in found)
        dealt = np.bincount([cell for one in found for cell, _ in one], minlength=len(cells.rows))
        assert dealt.tolist() == cells.rows.tolist()
        for one in classes.open.values():
            assert set(one.rows) <= set(classes.cells_of(one.label))


@pytest.mark.parametrize("tables", some([3, 16]))
def test_classes_cost_no_less_than_the_best_and_little_more(tables: int) -> None:
    """Moves end where none gains by itself: of these tables a fifth above the best, about."""
    best = found = 0
    for number in range(tables):
        for rows, need in cases(random.Random(number), 8 if tables > 3 else 6):
            least, cost_ = least_cost(rows, need, EVERY), made(cells_of(rows), need).cost
            assert cost_ >= least
            best, found = best + least, found + cost_
    assert found < 1.3 * best


def test_moves_save_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each keeps classes good, and saves something now and then."""
    saved: dict[str, int] = {"relocate": 0, "dissolve": 0, "open_labels": 0}

    def listen(move: str) -> None:
        change = getattr(making.moves, move)

        def told(classes: Classes) -> int:
            before = classes.cost
            found = int(change(classes))
            assert before - classes.cost == found >= 0
            assert all(classes.is_good(one) for one in classes.open.values())
            saved[move] += found
            return found

        monkeypatch.setattr(making.moves, move, told)

    for move in saved:
        listen(move)
    monkeypatch.setattr(making, "_LOSING", 3.0)  # so that some labels are opened that are not worth it
    for rows, need in cases(random.Random(1), 40):
        made(cells_of(rows), need)
    assert all(saved.values()), saved


@pytest.mark.slow
def test_classes_that_would_lack_something_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that some tables lose more, and all together."""
    listed = [one for number in range(2) for one in cases(random.Random(number), 40)]
    with_ = sum(made(cells_of(rows), need).cost for rows, need in listed)
    monkeypatch.setattr(opening, "_closings", lambda classes, label, offers: ())
    assert with_ < sum(made(cells_of(rows), need).cost for rows, need in listed)


# -- in runs ------------------------------------------------------------------------------------------

THOROUGH = {"name": "auto", "effort": "thorough"}


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[Changed]:
    """What each making of classes by prices comes to; no algorithm is tried but the first."""
    heard, make = list[Changed](), making.make_classes

    def told(*given: Any) -> Changed:
        heard.append(make(*given))
        return heard[-1]

    monkeypatch.setattr(making, "make_classes", told)
    monkeypatch.setitem(improve.EFFORTS, "thorough", replace(improve.EFFORTS["thorough"], trials=0))
    monkeypatch.setattr(auto, "SMALL", 0)
    return heard


@pytest.mark.slow
def test_classes_by_prices_are_what_is_published(
    tmp_path: Path, rounds: list[Changed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no other pass: where they cost less than the classes before, and as much less as they say."""
    monkeypatch.setattr(improve, "IMPROVEMENTS", ())
    rows = random_rows(2, 60, "uuvwxyz")
    _, release = run_on(rows, tmp_path, [{"k": 4}], THOROUGH)
    _, before = run_on(rows, tmp_path, [{"k": 4}], {"name": "auto", "effort": "quick"})
    saved = total(before, rows) - total(release, rows)
    assert saved * 10**6 == pytest.approx(2 * rounds[-1].gain, rel=1e-3, abs=1)
    assert any(one.gain for one in rounds)


def total(release: list[Any], rows: list[Any]) -> float:
    classes: dict[int, list[Any]] = {}
    for number, *_, i in release:
        classes.setdefault(number, []).append(rows[i])
    return sum(cost(one) for one in classes.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("require", "most"),
    ([pytest.param([{"k": 4}], "MOST_AXES"), pytest.param([{"frequency": 2}], None),
          pytest.param([{"k": 4}], "MOST_WITH_RANGES"), pytest.param([{"entropy": 2}], None),
          pytest.param([{"t_closeness": 0.4}], None)]),
)  # fmt: skip
def test_what_asks_for_more_or_has_many_labels_is_left_alone(
    tmp_path: Path, rounds: list[Changed], require: list[Any], most: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if most:
        monkeypatch.setattr(priced, most, 1)
    run_on(random_rows(1, 36, "uuvwxyz"), tmp_path, require, THOROUGH, threads=1)
    assert not rounds
