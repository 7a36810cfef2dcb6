"""`--catalog`: taxonomies and the ledger in a file of their own, the database read-only."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db.running.demo import adult_policy
from tests.strategies import some

RELEASE = {"file": "release.parquet"}


@pytest.fixture
def beside(bed: Any) -> Path:
    """The file of a catalog, not made yet; the policy's release goes to a file."""
    bed.write_policy(target=RELEASE)
    return Path(bed.folder / "ours.duckdb")


def read(path: Path, sql: str) -> list[Any]:
    with duckdb.connect(str(path), read_only=True) as con:
        return con.execute(sql).fetchall()


def test_a_run_writes_the_catalog_and_leaves_the_database_as_it_was(bed: Any, beside: Path) -> None:
    before = bed.database.read_bytes()
    called = bed.run("--catalog", beside)
    assert called.code == 0, called.err
    assert bed.database.read_bytes() == before
    assert read(beside, "SELECT source, target, status FROM ldiv.run") == [
        ("main.patients", "release.parquet", "published")
    ]
    assert {path.name for path in bed.folder.iterdir()} == {
        "hospital.duckdb", "country.csv", "policy.yml", "ours.duckdb", "release.parquet",
    }  # fmt: skip


def test_a_release_to_a_table_of_the_database_is_refused(bed: Any, beside: Path) -> None:
    bed.write_policy()
    for command in ("run", "plan"):
        if command == "plan":
            bed.call("migrate", bed.database, "--catalog", beside)
        message = bed.fails(2, command, bed.database, bed.policy, "--catalog", beside)
        assert "target.table: a table cannot be published" in message and "give `file:`" in message


def test_taxonomies_come_from_the_catalog_and_not_from_the_database(bed: Any, beside: Path) -> None:
    bed.write_policy(target=RELEASE, quasi_identifiers={"age": {"numeric": True}, "country": {"taxonomy": "country"}})
    assert bed.call("taxonomy", "import", bed.database, "country", bed.folder / "country.csv").code == 0
    words = ("--catalog", beside)
    assert "no taxonomy 'country'" in bed.fails(2, "run", bed.database, bed.policy, *words)
    before = bed.database.read_bytes()
    assert (
        bed.call("taxonomy", "build", bed.database, "age", "--ranges", "5", "--from", 0, "--to", 99, *words).code == 0
    )
    assert bed.call("taxonomy", "import", bed.database, "country", bed.folder / "country.csv", *words).code == 0
    assert "Europe" in bed.call("taxonomy", "show", bed.database, "country", *words).out
    listed = bed.call("taxonomy", "list", bed.database, "--json", *words).json["taxonomies"]
    assert [found["name"] for found in listed] == ["age", "country"]
    checked = ("taxonomy", "check", bed.database, "country", "--table", "patients", "--column", "country")
    assert bed.call(*checked, *words).code == 0
    assert bed.call("plan", bed.database, bed.policy, *words).code == 0
    assert bed.database.read_bytes() == before


def test_what_only_reads_makes_no_catalog(bed: Any, beside: Path) -> None:
    for words in (("plan", bed.database, bed.policy), ("taxonomy", "list", bed.database),
                  ("migrate", bed.database, "--pending")):  # fmt: skip
        assert "no catalog file" in bed.fails(3, *words, "--catalog", beside)
    assert bed.call("migrate", bed.database, "--catalog", beside).code == 0
    assert bed.call("migrate", bed.database, "--catalog", beside, "--pending").out == "the catalog is up to date\n"
    before = bed.files()
    assert bed.call("plan", bed.database, bed.policy, "--catalog", beside).code == 0
    assert bed.files() == before


def test_a_run_that_fails_leaves_no_catalog_behind(bed: Any, beside: Path) -> None:
    bed.write_policy(target=RELEASE, require=[{"distinct": 20}])
    bed.fails(1, "run", bed.database, bed.policy, "--catalog", beside)
    bed.call("migrate", bed.database, "--catalog", beside)
    bed.fails(1, "run", bed.database, bed.policy, "--catalog", beside)
    assert beside.exists()


def test_catalogs_that_are_none(bed: Any, beside: Path) -> None:
    assert "is the database itself" in bed.fails(2, "run", bed.database, bed.policy, "--catalog", bed.database)
    bed.write("text", "no database " * 1000)
    message = bed.fails(3, "run", bed.database, bed.policy, "--catalog", bed.folder / "text")
    assert f"cannot open {bed.folder / 'text'}" in message
    bed.fails(3, "run", bed.database, bed.policy, "--catalog", bed.folder / "none" / "ours.duckdb")
    assert "no database file" in bed.fails(3, "run", bed.folder / "x.duckdb", bed.policy, "--catalog", beside)


@pytest.mark.parametrize("name", some(["ours.duckdb", "select it.v2.duckdb", "memory.duckdb", "ldiv_catalog.duckdb"]))
def test_names_of_files_do_not_get_in_the_way(bed: Any, beside: Path, name: str) -> None:
    (bed.folder / "deep").mkdir()
    database = bed.folder / "deep" / name
    shutil.copy(bed.database, database)
    assert bed.call("run", database, bed.policy, "--catalog", beside).code == 0
    assert read(beside, "SELECT count(*) FROM ldiv.run") == [(1,)]


def test_from_python_the_catalog_is_a_database_that_is_attached(bed: Any, beside: Path) -> None:
    document = ldiv_db.read_policy(bed.policy)
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{bed.database}' AS source (READ_ONLY)")
        con.execute(f"ATTACH '{beside}' AS cat")
        con.execute("USE source")
        ldiv_db.run(con, document, bed.folder, catalog="cat")
        assert con.execute("SELECT current_database(), current_schema()").fetchone() == ("source", "main")
        assert con.execute("SELECT status FROM cat.ldiv.run").fetchall() == [("published",)]
        assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)
        to_table = {**adult_policy(), "source": "patients"}
        with pytest.raises(ldiv_db.PolicyError):
            ldiv_db.plan(con, to_table, bed.folder, catalog="cat")


def test_in_the_catalogs_own_database_a_table_can_be_published(bed: Any) -> None:
    bed.write_policy()
    with duckdb.connect(str(bed.database)) as con:
        ldiv_db.run(con, ldiv_db.read_policy(bed.policy), bed.folder, catalog="Hospital")
        assert con.execute("SELECT count(*) FROM published.patients").fetchone() == (24,)
        assert con.execute("SELECT count(*) FROM hospital.ldiv.run").fetchone() == (1,)


def test_a_profiles_policy_names_the_taxonomies_of_the_catalog_that_cover_their_columns(bed: Any, beside: Path) -> None:
    words = ("--catalog", beside)
    assert bed.call("taxonomy", "import", bed.database, "country", bed.folder / "country.csv", *words).code == 0
    assert (
        bed.call("taxonomy", "build", bed.database, "age", "--ranges", "5", "--from", 0, "--to", 30, *words).code == 0
    )
    bed.sql("COPY patients TO '" + str(bed.folder / "patients.parquet") + "'")
    before = bed.database.read_bytes()
    asked = ("--sensitive", "disease", "--qi", "age,country", *words)
    of_file = bed.call("profile", ":memory:", bed.folder / "patients.parquet", "--json", *asked)
    found = of_file.json["policy"]["quasi_identifiers"]
    assert found == {"age": {"numeric": True}, "country": {"taxonomy": "country"}}, "no leaf for the ages above 30"
    rebuilt = ("taxonomy", "build", bed.database, "age", "--ranges", "5", "--from", 0, "--to", 99, "--replace")
    assert bed.call(*rebuilt, *words).code == 0
    assert bed.call("profile", bed.database, "patients", "--policy", bed.folder / "p.yml", *asked).code == 0
    policy = ldiv_db.read_policy(bed.folder / "p.yml").model_dump()
    assert [policy["quasi_identifiers"][name]["taxonomy"]["name"] for name in ("age", "country")] == ["age", "country"]
    assert bed.call("plan", bed.database, bed.folder / "p.yml").code == 2, "the database has no catalog"
    assert bed.database.read_bytes() == before
