"""Migrations and their ledger."""

import pytest

from ldiv_db.database import migrate
from ldiv_db.database.errors import DatabaseError


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


def test_looking_writes_nothing(engine, con, folder):
    assert [m.name for m in migrate.pending(engine, folder)] == ["first", "second"]
    assert migrate.applied(engine) == {} and tables(con) == set()
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
    assert "ldiv.d" not in tables(con) and set(migrate.applied(engine)) == {1, 2}
