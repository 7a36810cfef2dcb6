"""`python -m tests.benchmarks.learned`: how labels become what a classifier is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.learned import Learned, features

TABLE = Learned("ill", ("age", "sex"), {"age": 50.5})


@pytest.mark.parametrize(
    ("label", "number"),
    [("20-24", 22), ("[20 .. 30]", 25), ("[-119.5 .. -118.5]", -119), ("-114.3", -114.3), ("*", 50.5), ("37", 37)],
)
def test_a_label_of_numbers_is_its_middle(label: str, number: float) -> None:
    pandas = pytest.importorskip("pandas")
    found = features(TABLE, pandas.DataFrame({"age": [label], "sex": ["m"]}))
    assert found["age"].tolist() == [pytest.approx(number)]


def test_a_category_has_a_column_a_label_but_the_first() -> None:
    pandas = pytest.importorskip("pandas")
    found = features(TABLE, pandas.DataFrame({"age": [1, 2, 3], "sex": ["m", "*", "f"], "more": [7, 8, 9]}))
    assert {name: [int(value) for value in found[name]] for name in found} == {
        "age": [1, 2, 3], "more": [7, 8, 9], "sex_f": [0, 0, 1], "sex_m": [1, 0, 0],
    }  # fmt: skip


def test_it_refuses_a_folder_without_their_figures(bench: Any, tmp_path: Path) -> None:
    called = bench("learned", tmp_path)
    assert called.code == 2 and "paper_results" in called.err
