"""The page on attacks has the figures that its command prints."""

from __future__ import annotations

import pytest

from tests.benchmarks.attackers import KEPT, several_rows, two_tables
from tests.docs.pages import DOCS

PAGE = (DOCS / "explanation" / "attacks.md").read_text(encoding="utf-8")
#: The table of several rows: how they are kept, and the cells for two, three and all rows.
HEADING = "| rows | two known | three known | all known |\n|---|---|---|---|\n"
LINES = [line.strip("|").split("|") for line in PAGE.partition(HEADING)[2].partition("\n\n")[0].splitlines()]


@pytest.mark.slow
def test_tables_published_one_by_one_say_more_than_as_one_release() -> None:
    alone, attacks = two_tables()
    assert f"{alone['one_value']} of the 600 people" in PAGE and f"for {alone['above_promise_of_one']}." in PAGE
    largest = [attack.gains[0].gain for attack in attacks if attack.name == "posterior"]
    assert len(largest) == 6 and max(largest) <= 1 / 3 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("kept", "line"), list(zip(KEPT, LINES, strict=True)), ids=list(KEPT))
def test_several_rows(kept: str, line: list[str]) -> None:
    found = several_rows(kept)
    assert kept in line[0].replace("`", "")
    for cell, gain, which in zip(line[1:], found.gains, ("two_rows", "three_rows", "all_rows"), strict=True):
        largest, mean, above = cell.strip().split(", ")
        assert round(gain.gain, 2) == float(largest) and round(found.figures[f"{which}_mean"], 2) == float(mean)
        assert found.figures[f"{which}_above"] == int(above.replace(",", ""))
