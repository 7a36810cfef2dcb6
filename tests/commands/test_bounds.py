"""Input without end, devices, and numbers at the limits of their types: an answer at once, or a result that holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from refusals import refuses

import ldiv_db
from ldiv_db.database.errors import DatabaseError, PolicyError
from ldiv_db.taxonomies.readers import from_edges, read_taxonomy


def test_a_pipe_is_no_policy_source_taxonomy_categories_or_known_people(bed: Any) -> None:
    """Nobody waits for what may come through it."""
    for name in ("pipe.csv", "pipe.yml"):
        os.mkfifo(bed.folder / name)
    for words in (["run"], ["plan"], ["measure", "patients", "--policy"]):
        called = bed.call(words[0], bed.database, *words[1:], bed.folder / "pipe.yml")
        assert (called.code, called.out) == (2, "") and "is not a regular file" in called.err
    bed.write_policy(source="pipe.csv")
    assert "no file pipe.csv" in bed.run().err
    bed.write_policy(quasi_identifiers={"age": {"numeric": True}, "country": {"taxonomy": {"file": "pipe.yml"}}})
    assert f"no file pipe.yml in {bed.folder.resolve()}" in " ".join(bed.run().err.split())
    check = ("check", bed.database, "patients", "--qi", "age", "--sensitive", "disease", "--require")
    called = bed.call(*check, "distinct_alpha:l=2,alpha=1", "--categories", bed.folder / "pipe.yml")
    assert called.code == 2 and "is not a regular file" in called.err
    bed.write_policy()
    attack = ("attack", bed.database, "patients", "--policy", bed.policy, "--known", bed.folder / "pipe.csv")
    assert "known: no file" in bed.call(*attack).err


def test_two_halves_of_a_character_are_one(tmp_path: Path) -> None:
    """JSON writes characters beyond 16 bits as two escapes."""
    (tmp_path / "t.json").write_text('{"\\ud83d\\ude00": ["a", "b \\u00e9"]}')
    assert [node.label for node in read_taxonomy(tmp_path / "t.json").nodes] == ["😀", "a", "b é"]


def test_tags_say_nothing_of_labels(tmp_path: Path) -> None:
    (tmp_path / "t.yml").write_text("top: !!set {a, b}\n")
    assert [node.label for node in read_taxonomy(tmp_path / "t.yml").leaves] == ["a", "b"]


def test_aliases_that_stand_for_little_are_read(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(
        "source: &s t\ntarget: {table: x}\nquasi_identifiers: {a: &q {numeric: true}, b: *q}\n"
        "sensitive: [d]\nrequire: [{k: 2}]\n"
    )
    assert list(ldiv_db.read_policy(tmp_path / "p.yml").quasi_identifiers) == ["a", "b"]


def test_a_long_chain_of_edges_is_refused_at_once() -> None:
    """A chain of as many values as this took a time that grows with its square, then ended in a RecursionError."""
    chain = [(f"v{i}", f"v{i + 1}") for i in range(50_000)]
    with pytest.raises(PolicyError, match="more than 100 levels"):
        from_edges(chain, "chain")


def test_the_divergence_of_numbers_near_the_limits_of_doubles(con: Any) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT CASE WHEN i < 4 THEN 1e308 ELSE i END AS a, 'v' || i % 4 AS s FROM range(24) AS r(i)"
    )
    policy = {"source": "t", "target": "p", "quasi_identifiers": {"a": {"numeric": True}}, "sensitive": ["s"],
              "require": [{"distinct": 2}], "algorithm": "mondrian"}  # fmt: skip
    result = ldiv_db.run(con, policy, kl=True)
    assert result.loss.kl is not None and result.loss.kl >= 0
    measured = ldiv_db.measure(con, "p", policy).loss
    assert measured.lm_mean == pytest.approx(result.loss.lm_mean, abs=1e-6) and measured.kl == result.loss.kl


def test_bounds_hold_for_calls_from_python_as_well(con: Any) -> None:
    con.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS s")
    limits: list[tuple[str, dict[str, int]]] = [
        ("queries", {"queries": 10**12}), ("seed", {"queries": 10, "seed": 2**63}), ("l", {"l": 10**30})
    ]  # fmt: skip
    for code, words in limits:
        with refuses(code):
            ldiv_db.measure(con, "t", source="t", qi={"a": {"numeric": True}}, sensitive="s", **words)


def test_an_output_without_room_is_no_success(bed: Any) -> None:
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "ldiv_db", "plan", str(bed.database), str(bed.policy)]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3 and "error: the disk is full where the output goes: it cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("words", [["run", "-q"], ["run", "--json"], ["plan"]])
def test_where_nothing_can_be_said_either_the_exit_code_still_tells_the_truth(bed: Any, words: list[str]) -> None:
    """1 would say that the data cannot meet the policy, whose release is there."""
    line = [sys.executable, "-m", "ldiv_db", *words, str(bed.database), str(bed.policy)]
    with open("/dev/full", "w") as full:
        assert subprocess.run(line, stdout=full, stderr=full, check=False).returncode == 3
    names = bed.sql("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'published'")
    assert bool(names) is (words[0] == "run")


@pytest.mark.slow
def test_a_note_that_finds_no_room_ends_no_run(bed: Any) -> None:
    line = [sys.executable, "-m", "ldiv_db", "--log", "json", "run", str(bed.database), str(bed.policy)]
    with open("/dev/full", "w") as full:
        assert subprocess.run(line, stdout=subprocess.PIPE, stderr=full, check=False).returncode == 0


def test_a_refused_release_to_a_file_leaves_not_even_a_catalog(bed: Any, monkeypatch: Any) -> None:
    bed.write_policy(target={"file": "out.duckdb", "prefix": "p"}, key="name", identifiers=[])

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ldiv_db.publishing.in_file.move", fail)
    called = bed.call("run", bed.database, bed.policy)
    assert called.code == 3 and "cannot write out.duckdb" in called.err
    assert not (bed.folder / "out.duckdb").exists()
    with duckdb.connect(str(bed.database)) as con:
        assert not con.execute("SELECT 1 FROM duckdb_schemas() WHERE schema_name = 'ldiv'").fetchall()
    monkeypatch.undo()
    assert bed.call("run", bed.database, bed.policy).code == 0


def test_a_catalog_that_lost_a_table_is_told_before_any_work(released: Any) -> None:
    released.sql("DROP TABLE ldiv.run_requirement; DROP TABLE published.patients; CHECKPOINT")
    assert "has lost its table run_requirement" in released.fails(3, "run", released.database, released.policy)


def test_a_taxonomy_of_the_catalog_that_lost_its_nodes(con: Any) -> None:
    from ldiv_db.database import migrate  # noqa: PLC0415
    from ldiv_db.database.engine import Engine  # noqa: PLC0415
    from ldiv_db.taxonomies import making  # noqa: PLC0415

    engine = Engine(con)
    migrate.migrate(engine)
    con.execute("INSERT INTO ldiv.taxonomy VALUES ('x', 'a file', now())")
    with pytest.raises(DatabaseError, match="has lost its nodes"):
        making.require(engine, "x")
