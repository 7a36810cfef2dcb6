"""Several tables published as Parquet files of one folder, which is there whole or not at all."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from refusals import refuses

import ldiv_db
from ldiv_db import PolicyError
from ldiv_db.database import files
from tests.running.schemas import drawn, fill, policy_of

NAMES = ("patients", "stays")
KILLED = Path(__file__).with_name("killed.py")


def policy(if_exists: str = "fail", folder: str = "published", **changes: Any) -> dict[str, Any]:
    """A policy of two tables and a public one, which go to files of a folder."""
    found = policy_of(NAMES, **changes)
    found["tables"]["wards"] = {"source": "wards", "public": True, "keep": ["ward"]}
    for name, table in found["tables"].items():
        table["target"] = {"file": f"{folder}/{name}.parquet", "if_exists": if_exists}
    return found


@pytest.fixture
def hospital(tmp_path: Path) -> Path:
    """The file of a database with the tables."""
    path = tmp_path / "hospital.duckdb"
    with duckdb.connect(str(path)) as con:
        fill(con, NAMES, drawn(random.Random(3), NAMES, 24, values="abcdefghij"))
        con.execute("CREATE TABLE wards AS SELECT range AS ward FROM range(5)")
    return path


def run(hospital: Path, asked: dict[str, Any]) -> ldiv_db.Result:
    with duckdb.connect(str(hospital)) as con:
        return ldiv_db.run(con, asked, hospital.parent)


def shown(folder: Path) -> dict[str, list[Any]]:
    """The rows of each file, which the folder has beside nothing."""
    return {path.stem: duckdb.sql(f"FROM '{path}' ORDER BY ALL").fetchall() for path in sorted(folder.iterdir())}


def statuses(hospital: Path) -> list[str]:
    with duckdb.connect(str(hospital)) as con:
        return [status for (status,) in con.execute("SELECT status FROM ldiv.run ORDER BY finished_at").fetchall()]


@pytest.mark.slow
def test_check_reads_the_files(hospital: Path) -> None:
    run(hospital, policy())
    place = hospital.parent / "published"
    with duckdb.connect(str(hospital)) as con:
        assert all(audit.holds for audit in ldiv_db.check(con, policy=policy(), folder=hospital.parent))
        stays = place / "stays.parquet"
        con.execute(f"CREATE TEMP TABLE told AS SELECT * REPLACE ('a' AS value) FROM '{stays}'")
        con.execute(f"COPY told TO '{stays}' (FORMAT parquet)")
        assert not all(audit.holds for audit in ldiv_db.check(con, policy=policy(), folder=hospital.parent))
        (place / "patients.parquet").unlink()
        with refuses("tables.target"):
            ldiv_db.check(con, policy=policy(), folder=hospital.parent)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="folders change places on Linux alone")
def test_a_folder_is_replaced_whole_and_only_where_it_may_be(hospital: Path) -> None:
    asked = {"seed": 1, "over_time": "independent"}
    run(hospital, policy(**asked))
    place = hospital.parent / "published"
    before = shown(place)
    with refuses("tables.target"):
        run(hospital, policy(**asked))
    (place / "mine.txt").write_text("mine")
    with refuses("tables.target.file"):
        run(hospital, policy("replace", **asked))
    (place / "mine.txt").unlink()
    assert shown(place) == before

    def put(stage: str) -> None:
        if stage.startswith("writing"):  # the target was checked long before
            (place / "late.txt").write_text("mine")

    with duckdb.connect(str(hospital)) as con, pytest.raises(PolicyError, match=r"published holds late\.txt as well"):
        late = policy("replace", **{**asked, "seed": 2})
        ldiv_db.run(con, late, hospital.parent, ldiv_db.Listener(on_stage=put))
    (place / "late.txt").unlink()
    assert shown(place) == before
    run(hospital, policy("replace", **{**asked, "seed": 2}))
    after = shown(place)
    assert after != before and after["wards"] == before["wards"]
    assert {path.name for path in hospital.parent.iterdir()} == {"published", "hospital.duckdb"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="folders change places on Linux alone")
def test_where_folders_cannot_change_places_the_old_one_stays(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(hospital, policy())
    place = hospital.parent / "published"
    before = shown(place)
    monkeypatch.setattr(files, "_EXCHANGE", 1 << 20)  # which no file system knows
    with pytest.raises(PolicyError, match=r"two folders cannot change places here: .* \(name a new folder\)"):
        run(hospital, policy("replace", seed=2))
    assert shown(place) == before and statuses(hospital) == ["published"]
    monkeypatch.setattr("ldiv_db.publishing.refusals.CAN_SWAP", False)
    with pytest.raises(PolicyError, match="on Linux alone"):
        run(hospital, policy("replace", seed=2))


def test_files_elsewhere_are_refused_before_any_work(hospital: Path) -> None:
    everywhere = (*NAMES, "wards")
    for targets, code in (
        ({"stays": "other/stays.parquet"}, "tables.target"),
        ({"stays": "published.stays"}, "tables.target"),
        ({name: f"{name}.parquet" for name in everywhere}, "tables.target"),
        ({"stays": "published/stays.csv"}, "tables.target.file"),
        ({"stays": "published//patients.parquet"}, "tables.target"),
        ({name: f"none/such/{name}.parquet" for name in everywhere}, "tables.target.file"),
        ({name: f"a*/{name}.parquet" for name in everywhere}, "tables.target.file"),
    ):
        asked = policy()
        for name, place in targets.items():
            asked["tables"][name]["target"] = place
        with refuses(code):
            run(hospital, asked)
    with duckdb.connect(str(hospital)) as con:
        con.execute("BEGIN")
        with pytest.raises(PolicyError, match="joins no open transaction"):
            ldiv_db.run(con, policy(), hospital.parent)
    assert [path.name for path in hospital.parent.iterdir()] == ["hospital.duckdb"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="folders change places on Linux alone")
@pytest.mark.parametrize("is_there", [False, True])
def test_a_run_killed_around_the_move_leaves_the_old_folder_or_the_new_one(hospital: Path, is_there: bool) -> None:
    """The next run says in the ledger which of the two it was, and nothing else is left."""
    asked = policy("replace", seed=1, over_time="independent")
    if is_there:
        run(hospital, asked)
    (hospital.parent / "policy.yml").write_text(yaml.safe_dump({**asked, "seed": 2}))
    beds = {moment: hospital.parent.with_name(f"{moment}_{is_there}") for moment in ("100", "before", "after")}
    for folder in beds.values():
        shutil.copytree(hospital.parent, folder)
    runs = [f"{folder}:{moment}" for moment, folder in beds.items()]
    done = subprocess.run([sys.executable, str(KILLED), *runs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    old, place = shown(hospital.parent / "published") if is_there else None, "published"
    run(hospital, {**asked, "seed": 2})
    new = shown(hospital.parent / place)
    for moment, folder in beds.items():
        wanted = new if moment == "after" else old
        assert (shown(folder / place) if (folder / place).exists() else None) == wanted, moment
        run(folder / "hospital.duckdb", {**asked, "seed": 3})
        moved = (moment == "after") + is_there + 1
        assert statuses(folder / "hospital.duckdb") == ["published"] * moved, moment
        assert {path.name for path in folder.iterdir()} == {place, "hospital.duckdb", "policy.yml"}, moment
