"""Migrations and their ledger."""

import pytest

from ldiv_db.database import migrate
from ldiv_db.database.errors import DatabaseError
from ldiv_db.publishing import ledger
from tests import whole_catalog


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "0001_first.sql").write_text("CREATE TABLE ldiv.a (x INTEGER);\nCREATE TABLE ldiv.b (x INTEGER);\n")
    (tmp_path / "0002_second.sql").write_text("ALTER TABLE ldiv.a ADD COLUMN y INTEGER;\n")
    return tmp_path


def tables(con):
    return {
        f"{row[0]}.{row[1]}" for row in con.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
    }


def test_the_shipped_migrations_apply_once(engine, con):
    assert [m.number for m in migrate.migrate(engine)] == [m.number for m in migrate.available()]
    assert {"ldiv.run", "ldiv.taxonomy", "ldiv.migration"} <= tables(con)
    assert migrate.migrate(engine) == [] and migrate.pending(engine) == []


def test_a_first_run_makes_at_once_what_migrations_make():
    each = [migration.sql for migration in migrate.available()]
    assert whole_catalog.made(migrate._scripts(migrate.available())) == whole_catalog.made(each)
    assert migrate._scripts(migrate.available()[1:]) == each[1:]


def test_looking_writes_nothing(engine, con, folder):
    assert [m.name for m in migrate.pending(engine, folder)] == ["first", "second"]
    assert migrate.held(engine).applied == {} and tables(con) == set()
    assert con.execute("SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'ldiv'").fetchone() == (0,)


def test_the_ledger(engine, con, folder):
    migrate.migrate(engine, folder)
    rows = con.execute("SELECT number, name, checksum FROM ldiv.migration ORDER BY 1").fetchall()
    assert rows == [(m.number, m.name, m.checksum) for m in migrate.available(folder)]


def test_only_what_is_new_is_applied(engine, con, folder):
    later = folder / "0002_second.sql"
    text = later.read_text()
    later.unlink()
    migrate.migrate(engine, folder)
    later.write_text(text)
    assert [m.number for m in migrate.migrate(engine, folder)] == [2]


def test_a_changed_migration_is_refused(engine, con, folder):
    migrate.migrate(engine, folder)
    (folder / "0001_first.sql").write_text("CREATE TABLE ldiv.a (z INTEGER);")
    with pytest.raises(DatabaseError, match="0001_first was changed"):
        migrate.pending(engine, folder)


def test_line_ends_are_no_change(engine, folder):
    migrate.migrate(engine, folder)
    first = folder / "0001_first.sql"
    first.write_bytes(first.read_bytes().replace(b"\n", b"\r\n"))
    assert migrate.pending(engine, folder) == []


def test_a_gap_in_the_files_is_refused(engine, con, folder):
    (folder / "0002_second.sql").rename(folder / "0003_third.sql")
    with pytest.raises(DatabaseError, match="0002 is missing, 0003"):
        migrate.migrate(engine, folder)
    assert tables(con) == set()


def test_a_gap_in_the_ledger_is_refused(engine, con, folder):
    migrate.migrate(engine, folder)
    con.execute("DELETE FROM ldiv.migration WHERE number = 1")
    with pytest.raises(DatabaseError, match="lacks 0001 but has 0002"):
        migrate.pending(engine, folder)


def test_a_newer_database_is_refused(engine, con, folder):
    migrate.migrate(engine, folder)
    (folder / "0002_second.sql").unlink()
    with pytest.raises(DatabaseError, match="0002; this version of ldiv_db is older"):
        migrate.pending(engine, folder)


def test_a_strange_name_is_refused(folder):
    (folder / "3_x.sql").write_text("")
    with pytest.raises(DatabaseError, match=r"3_x.sql is not the name"):
        migrate.available(folder)


def test_migrations_and_their_ledger_are_one(engine, con, folder):
    """The second migration fails half way: nothing stays of either, and what was there before does."""
    (folder / "0002_second.sql").write_text("CREATE TABLE ldiv.c (x INTEGER);\nCREATE TABLE ldiv.a (x INTEGER);")
    with pytest.raises(DatabaseError, match="already exists"):
        migrate.migrate(engine, folder)
    assert tables(con) == set()
    (folder / "0002_second.sql").write_text("CREATE TABLE ldiv.c (x INTEGER);")
    migrate.migrate(engine, folder)
    (folder / "0003_third.sql").write_text("CREATE TABLE ldiv.d (x INTEGER);")
    (folder / "0004_fourth.sql").write_text("CREATE TABLE ldiv.a (x INTEGER);")
    with pytest.raises(DatabaseError, match="already exists"):
        migrate.migrate(engine, folder)
    assert tables(con) == {"ldiv.a", "ldiv.b", "ldiv.c", "ldiv.migration"}
    assert con.execute("SELECT number FROM ldiv.migration ORDER BY number").fetchall() == [(1,), (2,)]


def test_a_ledger_row_that_cannot_be_written_undoes_the_body(engine, con, folder):
    migrate.migrate(engine, folder)
    (folder / "0003_third.sql").write_text(
        "CREATE TABLE ldiv.d (x INTEGER);\nINSERT INTO ldiv.migration VALUES (3, 'x', 'x', now());"
    )
    with pytest.raises(DatabaseError):
        migrate.migrate(engine, folder)
    assert "ldiv.d" not in tables(con) and set(migrate.held(engine).applied) == {1, 2}


def test_seeds_and_secrets_move_into_tables_of_their_own(engine, con, tmp_path):
    """A ledger of the version before: its seeds are found before and after, and stand nowhere else."""
    for migration in migrate.available()[:8]:
        (tmp_path / f"{migration.number:04d}_{migration.name}.sql").write_text(migration.sql)
    migrate.migrate(engine, tmp_path)
    seeds = [str(2**127 - 1), str(10**20 + 7), str(10**19 + 3)]
    rows = "SELECT $r, now(), 'a', 's', $r, 1, 1, 0, 1, .5, '{}', 'published', $seed, '[]'"
    for name, seed in (("r0", None), ("r1", seeds[0])):
        con.execute(f"INSERT INTO ldiv.run {rows}", {"r": name, "seed": seed})
    con.execute("INSERT INTO ldiv.series VALUES ('t', 'hidden', 'bsgi', 's', now(), 'id', 'integer')")
    report = '{"run_id": "r2", "inferred": [], "seed": %s, "versions": {}}'
    for number, seed in ((1, seeds[1]), (2, None)):  # the second is of a version that wrote it in its report alone
        text = report % seeds[number]
        con.execute(
            "INSERT INTO ldiv.release VALUES ('t', $1, 'published', now(), $2, 'coins', $3)", [number, text, seed]
        )

    def found():
        return [ledger.seed_of(engine, "r0"), ledger.seed_of(engine, "r1"), ledger.release_seed(engine, "t", 1)]

    before = found()
    assert before == [None, int(seeds[0]), int(seeds[1])]
    migrate.migrate(engine)
    assert [*found(), ledger.release_seed(engine, "t", 2)] == [*before, int(seeds[2])]
    assert con.execute("SELECT secret FROM ldiv.series_secret WHERE series = 't'").fetchall() == [("hidden",)]
    assert ledger.releases(engine)[0].report == {"run_id": "r2", "inferred": [], "versions": {}}
    for name in tables(con):
        if not name.endswith("_secret"):
            text = repr(con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {name}").fetchall())
            assert not any(secret in text for secret in ["hidden", *seeds]), name
