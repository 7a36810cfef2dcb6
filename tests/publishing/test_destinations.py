"""Where a release goes: tables, replaced and appended to, and files that hold nothing but the release."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from beds import Bed
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.database.files import work_folder
from ldiv_db.database.migrate import available

FILES = ('it\'s a "release".duckdb', "é 中.parquet", "release.csv")
LEDGER = "SELECT target, status, rows_published FROM ldiv.run ORDER BY finished_at"


def target(name: str, **more: Any) -> dict[str, Any]:
    """The policy's target for a file."""
    return {"file": name, **({"table": "published.patients"} if name.endswith(".duckdb") else {}), **more}


def read(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a release, whichever form it has."""
    if path.suffix == ".csv":
        with path.open(newline="") as lines:
            return [tuple(row) for row in csv.reader(lines)][1:]
    if path.suffix == ".parquet":
        return duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall()
    with duckdb.connect(str(path), read_only=True) as con:
        return con.execute("SELECT * FROM published.patients").fetchall()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# -- files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some(FILES))
def test_a_file_holds_what_a_table_would_and_is_replaced_on_demand_only(
    bed: Any, first_release: Path, name: str
) -> None:
    bed.write_policy(target=target(name))
    before = names(bed.folder)
    called = bed.run("--json")
    assert called.code == 0, called.err
    assert called.json["target"].startswith(name)
    found, as_table = read(bed.folder / name), Bed(first_release).sql("SELECT * FROM published.patients")
    assert [tuple(map(str, row)) for row in found] == [tuple(map(str, row)) for row in as_table]
    assert names(bed.folder) - before == {name}
    assert [row[1] for row in bed.sql(LEDGER)] == ["published"]
    assert not bed.sql("SELECT * FROM information_schema.tables WHERE table_schema = 'published'")
    bed.refuses("target", "run", bed.database, bed.policy)
    bed.sql("DELETE FROM patients WHERE name IN ('P1', 'P2', 'P3', 'P4')")
    bed.write_policy(target=target(name, if_exists="replace"), over_time="independent")
    assert bed.run().code == 0
    assert len(read(bed.folder / name)) < 24
    assert [row[2] for row in bed.sql(LEDGER)] == [24, len(read(bed.folder / name))]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ("release.duckdb", "target.table"),
        ({"file": "hospital.duckdb", "table": "x", "if_exists": "replace"}, "target.file"),
        ({"file": "a[b].csv"}, "target.file"),
        ({"file": "release.duckdb", "table": "a.b.c"}, "target.table"),
        ({"file": "folder.csv", "if_exists": "replace"}, "target.file"),
        ({"file": "patients.parquet", "if_exists": "replace"}, "target.file"),
        ({"file": "logged.duckdb", "table": "x"}, "target.file"),
    ],
)
def test_targets_that_are_refused(bed: Any, wanted: Any, code: str) -> None:
    """Among them the source itself, and a file beside which a write-ahead log is left."""
    (bed.folder / "folder.csv").mkdir()
    bed.write("logged.duckdb.wal", "left over")
    bed.sql(f"COPY patients TO '{bed.folder / 'patients.parquet'}'")
    bed.write_policy(target=wanted, source="patients.parquet" if "patients" in str(wanted) else "main.patients")
    bed.refuses(code, "run", bed.database, bed.policy)


def test_replace_never_drops_tables_that_are_not_the_release(bed: Any) -> None:
    with duckdb.connect(str(bed.folder / "release.duckdb")) as con:
        con.execute("CREATE TABLE precious AS SELECT 1 AS x")
    bed.write_policy(target=target("release.duckdb", if_exists="replace"))
    bed.refuses("target.file", "run", bed.database, bed.policy)
    bed.write("other.duckdb", "no database " * 1000)
    bed.write_policy(target=target("other.duckdb", if_exists="replace"))
    assert bed.fails(3, "run", bed.database, bed.policy)


def test_a_link_is_followed(bed: Any) -> None:
    (bed.folder / "away").mkdir()
    (bed.folder / "release.csv").symlink_to(bed.folder / "away" / "real.csv")
    bed.write_policy(target="release.csv")
    assert bed.run().code == 0
    assert names(bed.folder / "away") == {"real.csv"} and (bed.folder / "release.csv").is_symlink()


def test_a_folder_that_cannot_be_written_is_a_database_error(bed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.mkdir

    def refuse(path: Path, *rest: Any, **named: Any) -> None:
        if "release.csv" in path.name:
            raise PermissionError(13, "Permission denied")
        real(path, *rest, **named)

    monkeypatch.setattr(Path, "mkdir", refuse)
    bed.write_policy(target="release.csv")
    assert "cannot write release.csv: Permission denied" in bed.fails(3, "run", bed.database, bed.policy)


def test_a_move_that_fails_leaves_no_row_in_the_ledger(bed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ldiv_db.database.files.os.replace", refuse)
    bed.write_policy(target="release.csv")
    assert bed.call("migrate", bed.database).code == 0
    before = names(bed.folder)
    called = bed.run()
    assert called.code == 3 and "No space left" in called.err
    assert names(bed.folder) == before
    assert bed.sql(LEDGER) == [] and bed.sql("FROM ldiv.run_requirement") == []


@pytest.mark.parametrize(
    ("name", "verb"), some([("release.csv", "export"), ("release.duckdb", "create"), ("release.parquet", "export")])
)
def test_a_file_that_fails_its_audit_is_not_published(
    bed: Any, monkeypatch: pytest.MonkeyPatch, name: str, verb: str
) -> None:
    """The rows of one class get other quasi-identifiers behind the algorithm's back."""
    from ldiv_db.database.engine import Engine  # noqa: PLC0415

    real = getattr(Engine, verb)

    def broken(self: Any, *words: Any, **params: Any) -> Any:
        labels = params["labels"].sql()
        self.execute(f"UPDATE {labels} SET published_id = published_id + 1000 WHERE published_id < 3")
        self.execute(f"UPDATE {params['assigned'].sql()} SET class_id = 1 WHERE row_id < 6")
        return real(self, *words, **params)

    monkeypatch.setattr(Engine, verb, broken)
    bed.write_policy(target=target(name))
    before = names(bed.folder)
    called = bed.run()
    assert called.code == 1 and "the audit failed" in called.err, called.err
    assert names(bed.folder) == before
    assert not bed.sql("FROM duckdb_schemas() WHERE schema_name = 'ldiv'")


@pytest.mark.parametrize(("name", "how"), some([(None, "append"), (None, "fail"), *((name, "fail") for name in FILES)]))
def test_a_release_that_lacks_rows_is_not_published(
    bed: Any, monkeypatch: pytest.MonkeyPatch, name: str | None, how: str
) -> None:
    """A class that is lost on the way leaves a release that meets its policy."""
    from ldiv_db.database.engine import Engine  # noqa: PLC0415

    bed.write_policy(target=target(name) if name else {"table": "published.patients", "if_exists": how})
    if how == "append":
        bed.sql("CREATE SCHEMA published")
        texts = ", ".join(f"{column} VARCHAR" for column in ("age", "country", "disease", "ward"))
        bed.sql(f"CREATE TABLE published.patients (class_id BIGINT, {texts})")
    for verb in ("create", "insert", "export"):
        real = getattr(Engine, verb)

        def broken(self: Any, *words: Any, real: Any = real, **params: Any) -> Any:
            if "labels" in params:
                self.execute(f"DELETE FROM {params['labels'].sql()} WHERE published_id = 2")
            return real(self, *words, **params)

        monkeypatch.setattr(Engine, verb, broken)
    before = names(bed.folder)
    called = bed.run()
    assert called.code == 1 and "21 rows were written in place of the 24 to be published" in called.err, called.err
    assert names(bed.folder) == before
    if how == "append":
        assert bed.sql("SELECT count(*) FROM published.patients") == [(0,)]
    own = ("ldiv",) if how == "append" else ("ldiv", "published")
    assert not [name for (name,) in bed.sql("SELECT schema_name FROM duckdb_schemas()") if name in own]


def test_an_open_transaction_of_the_callers_is_refused(bed: Any) -> None:
    bed.write_policy(target="release.csv")
    policy = ldiv_db.read_policy(bed.policy)
    with duckdb.connect(str(bed.database)) as con:
        con.execute("BEGIN")
        with pytest.raises(ldiv_db.PolicyError, match="joins no open transaction"):
            ldiv_db.run(con, policy, bed.folder)
        con.execute("ROLLBACK")
        assert len(con.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal").fetchall()) == 1


# -- NULL and text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some([*FILES[::-1]]))
def test_null_and_empty_text_stay_apart(bed: Any, name: str) -> None:
    """Read back as one value, '' and NULL would leave two diseases to a class that needs three."""
    with duckdb.connect(str(bed.database)) as con:
        con.execute("CREATE TABLE texts (age INTEGER, disease VARCHAR)")
        con.executemany(
            "INSERT INTO texts VALUES (?, ?)", [(age, text) for age in (None, 1, 2) for text in ("", None, 'x, "y"\n')]
        )
    bed.write_policy(
        source="texts", identifiers=None, keep=None, require=[{"distinct": 3}], nulls_sensitive="value",
        quasi_identifiers={"age": {"numeric": True}}, target=target(name),
    )  # fmt: skip
    called = bed.run("--json")
    assert called.code == 0, called.err
    assert called.json["rows_published"] == 9
    (held,) = called.json["requirements"]
    assert held["holds"] and held["worst"] == 3


def test_csv_quotes_text_and_leaves_null_empty(bed: Any) -> None:
    bed.sql("UPDATE patients SET ward = CASE WHEN ward = 'W0' THEN NULL ELSE '' END")
    bed.write_policy(target="release.csv")
    assert bed.run().code == 0
    lines = (bed.folder / "release.csv").read_text().splitlines()
    assert lines[0] == '"class_id","age","country","disease","ward"'
    assert {line.rpartition(",")[2] for line in lines[1:]} == {"", '""'}


def test_parquet_refuses_integers_that_it_would_round(bed: Any) -> None:
    bed.sql("ALTER TABLE patients ALTER ward TYPE HUGEINT USING 1::HUGEINT << 100")
    bed.write_policy(target="release.parquet")
    bed.refuses("target.file", "run", bed.database, bed.policy)
    bed.write_policy(target="release.csv")
    assert bed.run().code == 0
    assert read(bed.folder / "release.csv")[0][-1] == str(1 << 100)


# -- append ------------------------------------------------------------------------------------------------


def test_append_makes_the_table_if_there_is_none_goes_on_numbering_and_finds_columns_by_name(bed: Any) -> None:
    bed.write_policy(target={"table": "released", "if_exists": "append"})
    for times in (1, 2):
        called = bed.run()
        assert called.code == 0, called.err
        found = bed.sql("SELECT count(*), count(DISTINCT class_id), min(class_id), max(class_id) FROM released")
        (rows, classes, first, last) = found[0]
        assert (rows, first, last) == (24 * times, 1, classes) and classes % times == 0
        assert bed.sql("SELECT DISTINCT ward FROM released ORDER BY 1") == [("W0",), ("W1",)]
        bed.sql(
            "CREATE OR REPLACE TABLE released AS SELECT ward AS WARD, disease, class_id, country, age FROM released"
        )
    assert len(bed.sql(LEDGER)) == 2


def test_append_that_would_break_a_class_is_refused(bed: Any) -> None:
    """A row that stands alone among those that are there."""
    bed.write_policy(
        require=[{"k": 2}], keep=None, identifiers=["name", "ward"], output={"class_id": False},
        target={"table": "released", "if_exists": "append"},
    )  # fmt: skip
    bed.sql("CREATE TABLE released AS SELECT '99' AS age, 'Norway' AS country, 'Flu' AS disease")
    called = bed.run()
    assert called.code == 1 and "the audit failed" in called.err
    assert bed.sql("FROM released") == [("99", "Norway", "Flu")]
    assert not bed.sql("FROM duckdb_schemas() WHERE schema_name = 'ldiv'")


@pytest.mark.parametrize(
    "change",
    some(
        [
            "ALTER TABLE published.patients DROP COLUMN ward",
            "ALTER TABLE published.patients ADD COLUMN more INTEGER",
            "ALTER TABLE published.patients ALTER ward TYPE BLOB USING NULL",
            "ALTER TABLE published.patients RENAME class_id TO class_no",
        ]
    ),
)
def test_append_needs_the_same_columns(released: Any, change: str) -> None:
    released.write_policy(target={"table": "published.patients", "if_exists": "append"})
    released.sql(change)
    released.refuses("target", "run", released.database, released.policy)


# -- what crashed runs left -----------------------------------------------------------------------------------


def test_folders_of_the_dead_are_swept_and_those_of_the_living_stay(bed: Any) -> None:
    dead = bed.folder / f".release.csv.ldiv-{'a' * 32}"
    dead.mkdir()
    (dead / "release.csv").write_text("raw")
    alike = bed.folder / ".release.csv.ldiv-mine"
    alike.mkdir()
    bed.write_policy(target="release.csv")
    with work_folder(bed.folder, "release.csv", "b" * 32) as living:
        assert bed.run().code == 0
        assert living.is_dir() and alike.is_dir() and not dead.exists()


@pytest.mark.parametrize("moved", some([False, True]))
def test_the_next_run_settles_the_ledger(bed: Any, moved: bool) -> None:
    """A process died just before the move, or just after it."""
    bed.write_policy(target={"file": "release.csv", "if_exists": "replace"})
    assert bed.run().code == 0
    bed.sql("UPDATE ldiv.run SET status = 'written'")
    ((run_id,),) = bed.sql("SELECT run_id FROM ldiv.run")
    folder = bed.folder / f".release.csv.ldiv-{run_id}"
    folder.mkdir()
    if not moved:
        (folder / "release.csv").write_text("whole but not in place")
    assert bed.run().code == 0
    assert [row[1] for row in bed.sql(LEDGER)] == ["published"] * (2 if moved else 1)
    assert not folder.exists()
    assert len(bed.sql("SELECT DISTINCT run_id FROM ldiv.run_requirement")) == (2 if moved else 1)


@pytest.mark.slow
def test_a_catalog_of_the_first_version_is_brought_up_to_date(bed: Any) -> None:
    assert bed.run().code == 0
    for later in available()[1:]:
        for column in re.findall(r"ALTER TABLE ldiv.run ADD COLUMN (\S+)", later.sql):
            bed.sql(f"ALTER TABLE ldiv.run DROP COLUMN IF EXISTS {column}")
        for table in re.findall(r"CREATE TABLE (\S+)", later.sql):
            bed.sql(f"DROP TABLE {table}")
    bed.sql("DELETE FROM ldiv.migration WHERE number > 1")
    bed.write_policy(target="release.csv")
    assert "it is not known whether its rows have changed" in bed.fails(2, "run", bed.database, bed.policy)
    bed.write_policy(target="release.csv", over_time="independent")
    assert bed.run().code == 0
    assert [row[1] for row in bed.sql(LEDGER)] == ["published", "published"]


CONSTRAINED = {
    "s VARCHAR UNIQUE": "out has UNIQUE\\(s\\), and the release has the same values twice",
    "s VARCHAR, PRIMARY KEY (s)": "out has PRIMARY KEY\\(s\\), and the release has the same values twice",
    "s VARCHAR, UNIQUE (age)": "out has UNIQUE\\(age\\)",
    "s VARCHAR CHECK (length(s) > 9)": "to out: .* break CHECK\\(\\(length\\(s\\) > 9\\)\\): drop the constraint",
    "s VARCHAR REFERENCES few (s)": "cannot append to out: .* break FOREIGN KEY \\(s\\) REFERENCES few\\(s\\)",
    "s VARCHAR, UNIQUE (age, s)": "cannot append to out: .* break UNIQUE\\(age, s\\)",
}


@pytest.mark.parametrize("columns", some(CONSTRAINED))
def test_a_constraint_of_the_table_that_is_appended_to_is_named(con, columns):
    con.execute("CREATE TABLE src AS SELECT i AS id, i % 7 + 20 AS age, 'd' || (i % 4) AS s FROM range(60) AS t (i)")
    con.execute("CREATE TABLE few (s VARCHAR PRIMARY KEY); INSERT INTO few VALUES ('d0')")
    con.execute(f"CREATE TABLE out (age VARCHAR, {columns})")
    policy = {"source": "src", "target": {"table": "out", "if_exists": "append"}, "identifiers": ["id"]}
    policy |= {"quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"], "algorithm": "mondrian"}
    with pytest.raises(ldiv_db.LdivError, match=CONSTRAINED[columns]) as failed:
        ldiv_db.run(con, policy | {"require": [{"frequency": 2}]})
    said = str(failed.value)
    assert "SELECT" not in said and "template" not in said and "d0" not in said
    assert con.execute("SELECT count(*) FROM out").fetchone() == (0,)


@pytest.mark.parametrize("kind", some(["TABLE", "VIEW"]))
def test_a_temp_table_of_the_targets_name_is_not_audited_in_its_place(con, kind):
    con.execute("CREATE TABLE people AS SELECT i % 5 AS age, 'd' || (i % 3) AS s FROM range(30) AS t (i)")
    con.execute(f"CREATE TEMP {kind} out AS SELECT '*' AS age, 'd' || i AS s FROM range(9) AS t (i)")
    policy = {"source": "people", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": "s"}
    policy |= {"require": [{"frequency": 2}], "algorithm": "topdown"}
    for target in ("out", "main.out"):
        with refuses("target"):
            ldiv_db.run(con, policy | {"target": target})
    assert ldiv_db.run(con, policy | {"target": "memory.main.out"}).audits[0].rows == 30
