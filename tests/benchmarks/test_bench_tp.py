"""`python -m tests.benchmarks.tp`."""

from typing import Any

import pytest

from tests.benchmarks.tp_runs import FIGURES, Scales, exceptions, figure_as_table, plan_cases, sets_of

RUN_KEYS = {"rows", "d", "l", "quasi_identifiers", "algorithm", "stars", "seconds", "kl"}


@pytest.mark.slow
def test_runs_on_adult_and_on_rows_made_from_it(bench: Any) -> None:
    asked = ("--figure", 6, "--figure", 7, "--algorithm", "tp", "--algorithm", "nothing", "--l", 2, "--rows", 2000)
    called = bench("tp", *asked, "--sets", 1, "--json")
    assert called.code == 0, called.err
    assert "no algorithm nothing: left out" in called.err
    assert set(called.json) == {"figures", "exceptions", "runs"}
    made, adult = called.json["runs"]
    assert set(made) == set(adult) == RUN_KEYS
    assert (made["rows"], made["l"], made["kl"]) == (2000, 6, None) and made["seconds"] > 0
    assert (adult["rows"], adult["l"]) == (30162, 2) and adult["kl"] > 0
    speed, kl = called.json["figures"]
    assert speed["averages"] == [{"rows": 2000, "tp": made["seconds"]}]
    assert kl["averages"] == [{"l": 2, "tp": adult["kl"]}]


def test_people_get_tables(bench: Any) -> None:
    called = bench("tp", "--figure", 6, "--rows", 1000, "--sets", 1, "--algorithm", "tp")
    assert called.code == 0 and "Figure 6: seconds against rows (d = 4, l = 6)" in called.out
    assert "1,000" in called.out


def test_a_figure_shows_averages() -> None:
    stars = {(2, "tp"): (5, 6), (3, "tp"): (9, 9), (2, "tp_plus"): (1, 2)}
    runs = [
        {"rows": 30162, "d": 4, "l": l, "algorithm": name, "stars": count}
        for (l, name), counts in stars.items()
        for count in counts
    ]
    assert figure_as_table(FIGURES[2], runs, Scales(l=(2, 3))) == [
        {"l": 2, "tp": 5.5, "tp_plus": 1.5, "hilbert": None},
        {"l": 3, "tp": 9, "tp_plus": None, "hilbert": None},
    ]


def test_each_job_once() -> None:
    (adult,) = plan_cases([FIGURES[n] for n in (2, 3, 4, 5)], Scales(l=(2, 6), d=(4, 5)))
    assert adult.jobs == [
        (d, value, name, False) for d, value in ((4, 2), (4, 6), (5, 6)) for name in ("hilbert", "tp", "tp_plus")
    ]
    (adult,) = plan_cases([FIGURES[2], FIGURES[7]], Scales(l=(2,)))
    assert adult.jobs == [(4, 2, "hilbert", False), (4, 2, "tds", True), (4, 2, "tp", False), (4, 2, "tp_plus", True)]


def test_sets_come_from_all_over_the_list() -> None:
    assert len(sets_of("abcdefg", 4, None)) == len(set(sets_of("abcdefg", 4, 35))) == 35
    some = sets_of("abcdefg", 4, 5)
    assert len(set(some)) == 5 and set("".join(map("".join, some))) == set("abcdefg")
    assert sets_of("abc", 3, 5) == [("a", "b", "c")]


def test_exceptions_are_named() -> None:
    stars = {("a", 2): (5, 5), ("a", 3): (4, 5), ("b", 2): (7, 6), ("b", 3): (0, 0)}
    runs = [
        {"rows": 9, "l": l, "quasi_identifiers": [name], "algorithm": algorithm, "stars": count}
        for (name, l), counts in stars.items()
        for algorithm, count in zip(("tp_plus", "hilbert"), counts, strict=True)
    ]
    assert [(one["quasi_identifiers"], one["l"], one["tp_plus"]) for one in exceptions(runs)] == [
        (["a"], 2, 5),
        (["b"], 2, 7),
    ]
