"""`ldiv doctor`: what is on this machine; and does everything work in a database, on people that were made up?"""

from __future__ import annotations

from typing import Annotated

import typer

from ldiv_db.commands.console import open_for_command
from ldiv_db.commands.options import AnyDatabase, OutputOptions, grouped
from ldiv_db.database.counted import names_warehouse, open_planned
from ldiv_db.running.doctor import doctor
from ldiv_db.running.machine import look_around


@grouped
def doctor_command(
    *,
    database: AnyDatabase = None,
    schema: Annotated[
        str | None, typer.Option(help="An empty schema to try in, which stays; by default one is made and dropped.")
    ] = None,
    output: OutputOptions,
) -> None:
    """Try the smallest policies of all kinds in a database, on made-up people, and leave nothing there.

    Without a DATABASE it says what this machine has of all that may be needed, and how to get the rest; it asks no
    network.

    In a warehouse all lies in a schema of its own; elsewhere each check is a transaction that is rolled back. The exit
    code is 1 if a check fails. What it prints holds no rows of yours.

    \b
    Examples:
      ldiv doctor
      ldiv doctor snowflake:PROFILE
      ldiv doctor databricks:/sql/1.0/warehouses/1234 --schema sandbox.anonymize --json
      ldiv doctor postgres:service=clinic
    """
    if database is None:
        machine = look_around()
        output.show(machine.as_dict(), machine.text())
        return
    with (
        open_planned(database) if names_warehouse(database) else open_for_command(database) as opened,
        output.progress("making people up") as listener,
    ):
        visit = doctor(opened, schema, listener=listener)
    output.show(visit.as_dict(), visit.text())
    raise typer.Exit(0 if visit.holds else 1)
