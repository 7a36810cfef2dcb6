"""`ldiv demo`."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldiv_db.running import demo


def test_demo_keeps_a_folder_to_go_on_with(bed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fewer rows, which take as long a way."""
    monkeypatch.setattr(demo, "load_adult", functools.partial(demo.load_adult, rows=3_000))
    folder = tmp_path / "kept"
    called = bed.call("demo", "--select", "bisect", "--l", 6, "--directory", folder)
    assert called.code == 0, called.err
    plan = bed.call("plan", folder / "adult.duckdb", folder / "policy.yml", "--json").json
    rows = plan["rows_in"]
    assert plan["algorithm"] == "bsgi" and 2_500 < rows <= 3_000
    counts = (f"{rows:,}", f"{rows // 6:,}")
    for text in (*counts, "before", "after", "the policy holds", "What to try next", f"ldiv plan {folder}"):
        assert text in called.out
    assert "exists" in bed.fails(2, "demo", "--directory", folder)


@pytest.mark.slow
def test_the_report_on_the_demo_has_no_red_mark(bed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has that for outsiders: what the demonstration does is what a user should do."""
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "kept"
    called = bed.call("demo", "--directory", folder)
    assert len(re.findall("(?m)^[┃│] occupation", called.out)) == 2, "what is protected has room on every screen"
    assert "1,521" in called.out and "the policy holds" in called.out
    plan = bed.call("plan", folder / "adult.duckdb", folder / "policy.yml", "--json").json
    assert (plan["algorithm"], plan["tries"]) == ("auto", ["topdown"])
    words = ("report", folder / "adult.duckdb", "published.adult", "--policy", folder / "policy.yml")
    for more in ((), ("--public",)):
        assert "within the threshold of 0.2" in bed.call(*words, *more, "--out", tmp_path / "r.html").out
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert re.findall(r'class="[^"]*\bgood\b', page) and not re.findall(r'class="[^"]*\b(?:bad|warn)\b', page)


def test_a_demo_that_cannot_be_met_keeps_nothing(bed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    assert "too frequent in occupation for frequency l=15" in bed.fails(1, "demo", "--l", 15, "--directory", folder)
    assert not folder.exists()
    assert "l: is of one table" in bed.fails(2, "demo", "--tables", "--l", 3)


@pytest.mark.slow
def test_the_demo_of_tables_shows_each_table_and_their_joins(bed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "clinic"
    called = bed.call("demo", "--tables", "--directory", folder)
    assert called.code == 0, called.err
    for name in ("patients", "stays", "labs"):
        assert f"before: {name}" in called.out and f"after: {name}" in called.out
    assert "the policy holds" in called.out and f"ldiv plan {folder}" in called.out
    with duckdb.connect(str(folder / "clinic.duckdb"), read_only=True) as con:
        join = "{0}.patients JOIN {0}.stays USING (patient_nr) JOIN {0}.labs USING (stay_id)"
        count = f"SELECT (SELECT count(*) FROM {join}), (SELECT count(*) FROM {{0}}.labs)"
        (before, found), (after, kept) = (con.sql(count.format(at)).fetchall()[0] for at in ("main", "published"))
        assert (before, after) == (found, kept), "every finding has its stay, and every stay its patient"
        assert 0.9 * before < after < before
        assert re.search(rf"stays and labs\D+{before:,}\D+{before - after:,}\D+{after:,}\D", called.out)
        messy = "SELECT count(*) FILTER (sex IS NULL), count(*) FILTER (zip IS NULL) FROM patients"
        assert min(con.sql(messy).fetchall()[0]) > 5
        twice = "SELECT count(*) AS n FROM stays GROUP BY patient_nr, admitted, diagnosis HAVING n > 1"
        assert len(con.sql(twice).fetchall()) > 5
    assert bed.call("plan", folder / "clinic.duckdb", folder / "policy.yml").code == 0
    assert "exists" in bed.fails(2, "demo", "--tables", "--directory", folder)
