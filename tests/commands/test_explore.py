"""`ldiv explore`: a table, a page and JSON; exit codes; Ctrl-C; what the page says and what it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.html_pages import Page

INTERRUPTED = Path(__file__).with_name("interrupted.py")
HOSTILE = '<script>alert("ü")</script>'


def explore(bed: Any, *words: Any) -> Any:
    return bed.call("explore", bed.database, bed.policy, *words)


def test_a_table_with_the_frontier(bed: Any) -> None:
    done = explore(bed, "--l", "2..3,9", "--quiet")
    assert done.code == 0, done.err
    assert re.search(r"l = 3 +│ \* +│ 0\.\d{4} │ 0\.3333", done.out) and "l = 9: infeasible: " in done.out
    assert "2 of 2 are on the frontier" in done.out
    assert not bed.sql("SELECT 1 FROM duckdb_tables() WHERE schema_name = 'published'")


@pytest.mark.slow
def test_what_json_has_is_what_a_run_gives(bed: Any) -> None:
    found = explore(bed, "--l", "2", "--vary", "columns,taxonomy", "--json").json
    assert [one["label"] for one in found["variants"]] == [
        "as written", "l = 2", "without age", "without country", "coarser age", "coarser country",
    ]  # fmt: skip
    assert found["risk"] == "posterior" and not found["interrupted"] and len(found["costs"]) == 2
    for one in found["variants"]:
        if one["status"] == "done":
            assert "seed" not in one["policy"]
            other = {"seed": 0, "target": {"file": "out.csv", "if_exists": "replace"}}
            bed.policy.write_text(yaml.safe_dump(one["policy"] | other))
            ran = bed.call("run", bed.database, bed.policy, "--json").json
            assert ran["loss"]["lm_by_column"] == one["lm_by_column"] and ran["classes"] == one["classes"]


def test_the_page_and_hostile_names(bed: Any) -> None:
    name = HOSTILE.replace('"', '""')
    bed.sql(f'ALTER TABLE patients RENAME country TO "{name}"')
    bed.sql(f'ALTER TABLE patients RENAME TO "{name}"')
    keys = {"age": {"numeric": True}, HOSTILE: {"taxonomy": {"file": "country.csv"}}}
    bed.write_policy(source=f'main."{name}"', quasi_identifiers=keys)
    out = bed.folder / "map.html"
    done = explore(bed, "--l", "3,9", "--vary", "columns", "--out", out)
    assert done.code == 0, done.err
    text = out.read_text(encoding="utf-8")
    page = Page(text)
    parts = {one["attrs"]["id"] for one in page.of("article")}
    links = {one["attrs"]["href"][1:] for one in page.of("a")}
    assert links == parts and len(parts) == 3
    assert len(page.of("svg")) == 2 * 2 + 2 * len(parts)  # maps of both risks; each variant, and who pays in it
    assert all(one["attrs"]["aria-label"] for one in page.of("svg"))
    assert "\ufffd" not in text and "infeasible" in text
    assert "http" not in text and not {"link", "img", "iframe", "object"} & page.tags()
    assert len(page.of("script")) == 1 and "src" not in page.of("script")[0]["attrs"] and "<script>alert" not in text
    assert any(HOSTILE in one["text"] for one in page.of("a"))
    assert "do not publish it" in text and "not shown here: seed" in text and "seed: 0" not in text
    assert not [value for value in ("Flu", "Cancer", "Hepatitis", "Asthma", "Norway", "Oslo") if value in text]


def test_bad_input_is_refused_by_its_code(bed: Any) -> None:
    for code, value in (("l", "x"), ("l", "7..2"), ("l", "٣"), ("l", "1..1000000000"), ("out", "nowhere/map.html")):
        bed.refuses(code, "explore", bed.database, bed.policy, "--out" if code == "out" else "--l", value)


def test_nothing_possible_ends_with_1(bed: Any) -> None:
    done = explore(bed, "--l", "60,70", "--algorithm", "mondrian")
    assert done.code == 1 and "refused" in done.out


def test_a_database_in_use_or_missing_ends_with_3(bed: Any) -> None:
    assert bed.call("explore", bed.folder / "none.duckdb", bed.policy).code == 3


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_what_is_done(bed: Any, workers: int) -> None:
    """It comes while the first release is audited: what was done by then is shown."""
    bed.write_policy(algorithm="mondrian", require=[{"distinct": 2}])
    out, before = bed.folder / "map.html", bed.files()
    words = ["--l", "1..60", "--workers", str(workers), "--out", str(out)]
    begin = [sys.executable, str(INTERRUPTED), "auditing/sum_counts", "explore"]
    command = [*begin, str(bed.database), str(bed.policy), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr
    assert re.search(r"interrupted: \d+ of 60 variants were tried", done.stderr)
    assert "Ctrl-C came first" in done.stdout and "Not possible, or not tried" in out.read_text(encoding="utf-8")
    out.unlink()
    assert bed.files() == before


def test_a_target_that_is_there_and_a_catalog_beside(released: Any) -> None:
    catalog = released.folder / "ours.duckdb"
    assert released.call("migrate", released.database, "--catalog", catalog).code == 0
    before = released.files()
    limits = ("--memory-limit", "1GB", "--threads", "1")
    done = explore(released, "--l", "3", "--algorithm", "bsgi", "--catalog", catalog, *limits)
    assert done.code == 0 and released.files() == before, done.err


@pytest.mark.slow
def test_a_file_and_another_database_as_sources(bed: Any) -> None:
    bed.sql(f"COPY patients TO '{bed.folder / 'people.csv'}'")
    losses = []
    for changes in (
        {"source": "people.csv"},
        {"source": "other.main.patients", "databases": {"other": str(bed.database)}},
    ):
        bed.write_policy(**changes)
        done = bed.call("explore", ":memory:", bed.policy, "--l", "2", "--json")
        assert done.code == 0 and str(bed.database) not in done.out, done.err
        losses.append([one["lm_by_column"] for one in done.json["variants"]])
    assert losses[0] == losses[1]
