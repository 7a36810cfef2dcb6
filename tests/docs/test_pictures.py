"""The pictures of the pages are those of runs of today."""

from __future__ import annotations

import pytest

from tests.docs.pictures import CASES, FOLDER, VALUES, bounds, people, picture, released
from tests.strategies import some


@pytest.mark.parametrize("name", some(CASES))
def test_a_picture_is_of_what_the_algorithm_makes(name: str) -> None:
    drawn = picture(name, CASES[name], released(CASES[name]))
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawn, "python -m tests.docs.pictures draws it again"


def test_nothing_else_lies_there() -> None:
    """But the head of a report, which is quickly loaded (`tests/docs/page_picture.py`)."""
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted([*CASES, "report"])
    assert (FOLDER / "report.png").stat().st_size < 150_000


def test_values_are_equally_frequent() -> None:
    found = [value for _, _, value in people()]
    assert len(set(people())) == 36 and {found.count(value) for value in VALUES} == {12}


def test_what_labels_cover() -> None:
    assert [bounds(label, (1, 9)) for label in ("[2 .. 5]", "7", "*")] == [(2, 5), (7, 7), (1, 9)]
