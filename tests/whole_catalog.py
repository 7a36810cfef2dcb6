"""What all migrations make of an empty database: `python -m tests.whole_catalog` writes it, for first runs."""

import duckdb

from ldiv_db.database import migrate
from ldiv_db.database.templates import resource_folder

PATH = resource_folder("migrations") / migrate.WHOLE
HEAD = "-- Written by `python -m tests.whole_catalog`: what all migrations make, which say what it is for.\n"
_LOCKS = f"INSERT INTO ldiv.{migrate.LOCK} (name) SELECT CAST(unnest(range(1024)) AS VARCHAR)"


def made(scripts):
    """The statements that make the tables that these make, and the rows of each table."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA ldiv")
        for script in scripts:
            connection.execute(script)
        found = connection.execute("SELECT table_name, sql FROM duckdb_tables() ORDER BY table_name").fetchall()
        rows = {name: connection.execute(f"FROM ldiv.{name} ORDER BY ALL").fetchall() for name, _ in found}
    return [sql.removesuffix(";") for _, sql in found], {name: held for name, held in rows.items() if held}


def whole():
    """The text of the file."""
    tables, _ = made(migration.sql for migration in migrate.available())
    return HEAD + "".join(f"{statement};\n" for statement in [*tables, _LOCKS])


if __name__ == "__main__":
    PATH.write_text(whole(), encoding="utf-8")
