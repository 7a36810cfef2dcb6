"""`ldiv report`: the files that it writes, what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from refusals import codes_told

from ldiv_db.reporting import page as pdf
from tests.strategies import some

FEW = ("--queries", "1", "--tries", "1")


def report(bed: Any, *words: Any) -> Any:
    return bed.call("report", bed.database, "published.patients", "--policy", bed.policy, *FEW, *words)


def test_the_page_and_its_document(released: Any) -> None:
    page, document = released.folder / "r.html", released.folder / "r.json"
    found = report(released, "--recipient", "the ward", "--out", page, "--out", document)
    assert found.code == 0, found
    assert "meets its requirements" in found.out and f"written to {page}" in found.out
    assert "the ward" in page.read_text() and json.loads(document.read_text())["statement"]["holds"] is True
    assert stat.S_IMODE(page.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_without_out_the_page_is_here(released: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(released.folder)
    assert report(released, "--public").code == 0
    assert "<strong>Public.</strong>" in (released.folder / "report.html").read_text()


def test_a_run_by_its_id_as_json_and_nothing_is_written(released: Any) -> None:
    before = released.files()
    (run,) = released.call("runs", released.database, "--json").json["runs"]
    words = ("--policy", released.policy, "--public", "--json")
    by_id = released.call("report", released.database, run["run_id"], *words)
    assert by_id.code == 0 and by_id.json["form"] == "ldiv report 2"
    assert by_id.json == report(released, *words[2:]).json and released.files() == before


def test_a_release_that_fails_is_reported_with_code_1(released: Any) -> None:
    words = ("--qi", "age,country", "--sensitive", "disease", "--require", "distinct:4", "--json")
    found = released.call("report", released.database, "published.patients", *words, *FEW)
    assert found.code == 1 and found.json["statement"]["holds"] is False


@pytest.mark.slow
def test_verify_says_of_which_release_a_report_is(released: Any) -> None:
    document = released.folder / "r.json"
    assert report(released, "--out", document).code == 0
    words = ("report", released.database, "published.patients", "--verify", document)
    found = released.call(*words)
    assert found.code == 0 and "recomputed, all equal" in found.out
    released.sql("UPDATE published.patients SET disease = 'Measles' WHERE disease = 'Flu' AND ward = 'W0'")
    other = released.call(*words, "--policy", released.policy)
    assert other.code == 1 and "the report is not of" in other.out and "differences, " in other.out
    found = released.call(*words, "--json").json
    assert found["same_release"] is False and "annex.release.sha256" in str(found["differences"])
    forged = json.loads(document.read_text())
    forged["statement"]["rows"] = 23
    document.write_text(json.dumps(forged))
    assert "statement.rows" in released.call(*words).out


def test_a_file_without_a_database(released: Any) -> None:
    path = released.folder / "r.parquet"
    released.sql(f"COPY published.patients TO '{path}'")
    words = ("--qi", "age,country", "--class", "class_id", "--sensitive", "disease", "--require", "distinct:3", *FEW)
    found = released.call("report", ":memory:", path, *words, "--json")
    assert found.code == 0 and found.json["data"]["class_column"] == "class_id"


REFUSED = [
    ("out", ("--out", "r.txt")),
    ("out", ("--out", "nowhere/r.html")),
    ("qi", ("--qi", "age")),
    ("threshold", ("--threshold", "2", "--json")),
    ("source", ("--source", "nothing", "--json")),
    ("verify", ("--verify", "none.json")),
    ("out", ("--verify", "r.json", "--out", "r.html")),
]


def test_what_is_refused_has_its_code(released: Any) -> None:
    about = ("report", released.database, "published.patients", "--policy", released.policy)
    assert [(" ".join(codes_told(released.fails(2, *about, *words))), words) for _, words in REFUSED] == REFUSED


def test_a_file_that_is_no_report_is_refused(released: Any) -> None:
    for text in ("[1]", "{", '{"form": 1}', "\x00"):
        path = released.write("none.json", text)
        words = ("report", released.database, "published.patients", "--verify", path)
        assert "verify: " in released.fails(2, *words)


def test_a_database_that_is_none_has_code_3(released: Any) -> None:
    released.fails(3, "report", released.folder / "no.duckdb", "t", "--policy", released.policy)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "says"),
    some([(None, "no program that converts to PDF is installed"), ("exit 7", "exit code 7")]),
)
def test_a_converter_that_fails_or_is_not_there_is_told_of(
    released: Any, monkeypatch: pytest.MonkeyPatch, script: str | None, says: str
) -> None:
    convert(released, monkeypatch, script)
    found = report(released, "--out", released.folder / "r.pdf")
    assert found.code == 2 and says in found.err and not (released.folder / "r.pdf").exists()


def convert(bed: Any, monkeypatch: pytest.MonkeyPatch, script: str | None) -> None:
    """The program that converts to PDF is this script."""
    program = Path(bed.write("weasyprint", f"#!/bin/sh\n{script}\n"))
    program.chmod(0o755)
    monkeypatch.setattr(pdf.shutil, "which", lambda name: script and str(program))


@pytest.mark.slow
def test_a_converter_gets_the_page(released: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    convert(released, monkeypatch, 'cp "$1" "$2"')
    assert report(released, "--out", released.folder / "r.pdf").code == 0
    assert (released.folder / "r.pdf").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_a_context_is_filled_in_until_it_is_final(released: Any) -> None:
    template = released.call("report", "--context-template")
    assert template.code == 0 and "\nharms:\n" in template.out
    file, page = released.folder / "context.yml", released.folder / "r.html"
    file.write_text(template.out)
    refused = report(released, "--context", file, "--final", "--out", page)
    assert refused.code == 2 and "context.harms: is blank" in refused.err and not page.exists()
    blanks = report(released, "--json").json["blanks"]
    texts = {key: "x" for key in blanks if "." not in key} | {"release_model": "shared", "roles": {"Owner": "x"}}
    reasons = {key.partition(".")[2]: "x" for key in blanks if "." in key}
    file.write_text(json.dumps(texts | {"reasons": reasons}))
    found = report(released, "--context", file, "--recipient", "the ward", "--final", "--out", page)
    assert found.code == 0 and "the ward" in page.read_text() and "Draft." not in page.read_text()


def test_a_key_of_a_context_that_there_is_not(released: Any) -> None:
    (released.folder / "context.yml").write_text("recipent: us\n")
    found = report(released, "--context", released.folder / "context.yml")
    assert found.code == 2 and "did you mean 'recipient'?" in found.err
