"""`python -m tests.benchmarks.hospital`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.command import engine_on
from tests.benchmarks.hospital import COLUMNS, MOST_STAYS, make_stays

SIZE = ("--rows", 800, "--patients", 520)


def test_the_stays_are_those_that_are_asked_for_and_drawn_by_the_seed(con: Any) -> None:
    engine = engine_on(con)
    drawn = []
    for seed, dirty in ((1, False), (1, False), (2, False), (1, True)):
        stays = make_stays(engine, 800, 520, seed, dirty)
        drawn.append(con.execute(f"FROM {stays}").fetchall())
        con.execute(f"DROP TABLE {stays}")
    first, again, other, dirty = ([dict(zip(COLUMNS, row, strict=True)) for row in rows] for rows in drawn)
    assert first == again != other
    patients = {row["patient_nr"]: [one for one in first if one["patient_nr"] == row["patient_nr"]] for row in first}
    assert (len(first), len(patients)) == (800, 520)
    assert 5 < max(map(len, patients.values())) <= MOST_STAYS and None in {row["zip"] for row in first}
    for column, least in {"birth": 1, "zip": 5, "insurance": 3}.items():
        assert sum(len({row[column] for row in stays}) > 1 for stays in patients.values()) >= least
    written = {row["diagnosis"] for row in dirty}
    assert written > {text.strip().lower() for text in written} - {"hiv"} and len(written) > 40


@pytest.mark.slow
def test_a_run_is_measured_and_what_is_refused_is_said(bench: Any) -> None:
    words = ("--algorithm", "mondrian", "--require", "frequency:3", "--dirty")
    called = bench("hospital", *SIZE, *words, "--require", "frequency:300", "--json")
    (found,) = called.json["results"]
    assert "frequency" in called.err and (found["require"], found["individual"]) == ("frequency:3", "none")
    assert 0 < found["lm_mean"] < 1 and set(found["lm_by_column"]) == {"birth", "sex", "zip", "insurance", "admitted"}
    assert found["peak_memory_mb"] > 10 and found["processor_seconds"] > 0
    assert "apart" in bench("hospital", *SIZE, "--algorithm", "bsgi", "--individual", "apart", "--require", "k:2").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--individual", "nobody"), "nobody is none of"),
        (("--rows", 100, "--patients", 200), "from one to 15 stays"),
        (("--require", "likes:3"), "likes is none of"),
    ],
)
def test_what_it_does_not_know_is_refused(bench: Any, words: tuple[Any, ...], said: str) -> None:
    called = bench("hospital", *words)
    assert called.code == 2 and said in called.err
