"""What a newcomer meets first: words, defaults and errors that lead on."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import ldiv_db
from ldiv_db.taxonomies.readers import read_taxonomy
from tests.strategies import some


def error(called: Any, kind: str) -> list[dict[str, str]]:
    """The problems of a failure as JSON, which is all that stands on stdout."""
    assert set(called.json) == {"error"} and set(called.json["error"]) == {"kind", "problems", "remedies"}
    assert called.json["error"]["kind"] == kind and called.err.startswith(("error: ", "Usage: "))
    problems = called.json["error"]["problems"]
    assert problems and all(set(problem) == {"code", "key", "what", "hint"} for problem in problems)
    assert all(set(remedy) == {"change", "costs", "rows"} for remedy in called.json["error"]["remedies"])
    return list(problems)


def test_failures_are_json_too(bed: Any) -> None:
    """Of every kind, with the exit codes that they have without."""
    bed.write_policy(keep=[], algorithm="bsgy")
    called = bed.run("--json")
    assert called.code == 2
    assert [p["key"] for p in error(called, "policy")] == ["source", "algorithm.name"]
    bed.write_policy(require=[{"distinct": 9}])
    called = bed.run("--json")
    assert (called.code, len(error(called, "infeasible"))) == (1, 1)
    called = bed.call("run", bed.folder / "none.duckdb", bed.policy, "--json")
    assert called.code == 3 and "no database file" in error(called, "database")[0]["what"]
    for words in (("run", "--json"), ("run", "x", "y", "--threads", "none", "--json"), ("rum", "--json")):
        called = bed.call(*words)
        assert called.code == 2 and error(called, "usage")[0]["what"]


def test_a_run_is_found_again(bed: Any) -> None:
    assert "the ledger has no runs" in bed.call("runs", bed.database).out
    assert bed.call("runs", bed.database, "--json").json == {"runs": [], "releases": 0}
    called = bed.run()
    (listed,) = bed.call("runs", bed.database, "--json").json["runs"]
    assert listed["run_id"] in called.out and listed["target"] == "published.patients"
    assert (listed["status"], listed["rows_published"], listed["algorithm"]) == ("published", 24, "bsgi")
    assert "seed" not in listed, "who has it can repeat the run"
    out = bed.call("runs", bed.database).out
    assert "published.patients" in out and listed["run_id"][:8] in out


def test_a_release_to_memory_is_refused_before_work(bed: Any) -> None:
    bed.sql(f"COPY patients TO '{bed.folder / 'patients.csv'}'")
    bed.write_policy(source="patients.csv")
    message = bed.fails(2, "run", ":memory:", bed.policy)
    assert "is gone when the command ends" in message and "target: {file:" in message
    bed.write_policy(source="patients.csv", target="release.csv")
    assert bed.call("run", ":memory:", bed.policy).code == 0


def test_quiet_says_nothing_and_progress_speaks_of_stages(bed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldiv_db.commands.progress._PAUSE", 0.0)
    called = bed.run()
    assert "forming classes" in called.err and "reading the source" in called.err
    assert "left" in called.err and "rows" not in called.err, "names of our tables say nothing to a reader"
    assert bed.call("check", bed.database, "published.patients", "--policy", bed.policy, "--quiet").err == ""
    monkeypatch.setattr("ldiv_db.commands.progress._PAUSE", 5.0)
    profiled = bed.call("profile", bed.database, "patients", "--qi", "ward", "--quiet")
    assert (profiled.code, profiled.err) == (0, "")


@pytest.mark.parametrize("shell", some(["bash", "zsh", "fish"]))
def test_words_are_completed(shell: str, tmp_path: Path) -> None:
    """Commands, and the options of a command, whose module is imported for that."""
    lines = {
        line: {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_TYPER_COMPLETE_ARGS": line}
        for line in ("ldiv ru", "ldiv run --mem")
    }
    script = (
        "import contextlib, os\nfrom ldiv_db.__main__ import main\n"
        f"for line, words in {lines!r}.items():\n    os.environ.update(words)\n    print('of', line)\n"
        "    with contextlib.suppress(SystemExit):\n        main()\n"
    )
    more = {
        "_LDIV_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args", "PATH": "/usr/bin:/bin"
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script], env=more, capture_output=True, text=True, check=False, timeout=60
    )
    commands, options = done.stdout.split("of ldiv run --mem")
    assert "runs" in commands and "profile" not in commands
    assert "--memory-limit" in options


def test_a_table_of_which_nothing_is_promised_neither_holds_nor_fails(bed: Any) -> None:
    """Raw data, of which everybody's value is told, is not called good."""
    words = ("attack", bed.database, "patients", "--qi", "name", "--sensitive", "disease")
    found = bed.call(*words, "--json")
    assert (found.code, found.json["holds"]) == (0, None)
    assert {attack["holds"] for attack in found.json["attacks"]} == {None}
    shown = bed.call(*words).out
    assert "nothing promised" in shown and " yes " not in shown and "--require or --policy" in shown
    asked = bed.call(*words, "--require", "distinct:2", "--json")
    assert asked.code == 1 and asked.json["holds"] is False


TREE = [["Norway", "Europe", "*"], ["Italy", "Europe", "*"], ["Japan", "Asia", "*"], ["Korea", "Asia", "*"]]
HEADERS = [None, ["country", "continent", "all"], ["a", "b", "c"], ["value", "level 1", "*"]]


def test_level_files_with_commas_tabs_and_headers(tmp_path: Path) -> None:
    """All are the same tree."""
    file, trees = tmp_path / "country.csv", []
    for header, delimiter in product(HEADERS, ";,\t"):
        lines = [*([header] if header else []), *TREE]
        file.write_text("".join(delimiter.join(line) + "\n" for line in lines))
        trees.append(read_taxonomy(file).nodes)
    assert all(nodes == trees[0] for nodes in trees)
    assert [node.label for node in trees[0]] == ["*", "Europe", "Norway", "Italy", "Asia", "Japan", "Korea"]


def test_a_level_file_that_leaves_its_delimiter_open_is_refused(bed: Any) -> None:
    bed.write("country.csv", "Norway,Europe,*\nItaly,*\nJapan,Asia,*\nKorea,Asia,*\n")
    assert "part levels by semicolons" in bed.fails(2, "run", bed.database, bed.policy)


LABELS = {
    "60+": range(60, 101), "<20": range(20), "{60+, <20}": [*range(20), *range(60, 101)], "[50 to 59)": range(50, 59),
    ">=65": range(65, 101), ">65": range(66, 101), "<=20": range(21), "50 to 59": range(50, 60),
    "50–59": range(50, 60), "[50–59]": range(50, 60), "≥ 65": range(65, 101), "≤3": range(4),
}  # fmt: skip
KINDS = ("INTEGER", "DOUBLE", "DECIMAL(5, 1)")


def people_of_all_ages(con: Any, kind: str) -> dict[str, Any]:
    con.execute(f"CREATE TABLE people AS SELECT CAST(i AS {kind}) AS age, 'flu' AS s FROM range(101) AS r(i)")
    policy = {"source": "people", "target": "t", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": "s"}
    return policy | {"require": [{"k": 1}]}


@pytest.mark.parametrize(("kind", "label"), some(product(KINDS, LABELS)))
def test_ranges_are_read_as_people_write_them(con: Any, kind: str, label: str) -> None:
    """`attack` and `measure` agree with what each label says of the people from 0 to 100."""
    policy, covered = people_of_all_ages(con, kind), LABELS[label]
    con.execute("CREATE TABLE published AS SELECT $1 AS age, 'flu' AS s", [label])
    found = ldiv_db.attack(con, "published", policy=policy, population="people")
    (journalist,) = [attack for attack in found.attacks if attack.name == "journalist"]
    assert journalist.gains[0].gain == 1 / len(covered)
    measured = ldiv_db.measure(con, "published", policy).loss
    # 100 rows are suppressed; two bounds that are open at an end stop at the domain's.
    width = 1 if label.startswith("{") else (max(covered) - min(covered)) / 100
    near = {"<20": 0.20, "[50 to 59)": 0.09, ">65": 0.35}.get(label, width)
    assert measured.lm_mean * 101 == pytest.approx(100 + near, abs=1e-6)


def test_ranges_that_nobody_writes_are_refused_with_those_that_are_read(con: Any) -> None:
    policy = people_of_all_ages(con, "INTEGER")
    for label in ("60++", "<", "50 too 59", "20<"):
        con.execute("CREATE OR REPLACE TABLE published AS SELECT $1 AS age, 'flu' AS s", [label])
        with pytest.raises(ldiv_db.PolicyError, match=r"20 to 30, 60\+, >60, >=60, <20, <=20, 60 and over"):
            ldiv_db.attack(con, "published", policy=policy, population="people")
    with pytest.raises(ldiv_db.PolicyError, match="60 and over"):
        ldiv_db.measure(con, "published", policy)
