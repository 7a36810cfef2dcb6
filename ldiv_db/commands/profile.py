"""`ldiv profile`: how identifying a table's columns are, and a policy to start from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.commands.options import Database, DatabaseOptions, OptionsOf, OutputOptions, grouped
from ldiv_db.commands.profile_tables import profile_release
from ldiv_db.commands.whole_database import files_as_tables, tables_meant
from ldiv_db.database.addresses import address_of
from ldiv_db.database.counted import names_warehouse
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, refused
from ldiv_db.measuring.profile import COUNTING, ProfileRequest
from ldiv_db.measuring.starter_policy import StarterPolicy, refuse_files, refuse_folder, write_starter_policy


@grouped
def profile_command(
    *,
    database: Database,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="A table, a view, or a .parquet or .csv file; several are profiled as one release. A schema, or a"
            " folder of files, is all of its tables; without a name it is the whole database."
        ),
    ] = None,
    asked: Annotated[dict[str, Any], OptionsOf(ProfileRequest)],
    policy: Annotated[
        Path | None,
        typer.Option(help="Write the policy here, and level files of texts beside it. Nothing is overwritten."),
    ] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Name sensitive values in the policy's comments.")
    ] = False,
    resources: DatabaseOptions,
    output: OutputOptions,
) -> None:
    """Show how identifying a table's columns are, and propose a policy; writes nothing to the database.

    Without --qi the roles of columns are guessed, and the reason is shown. Without --sensitive the policy asks for
    k-anonymity. Only counts and forms (`99999`) are printed, never values.

    Of several tables, or of all that a database has, it finds the table of people, what belongs to them, and lists
    that belong to nobody, says why, and proposes a policy with `tables`; name columns with their table
    (`stays.diagnosis`) where several have one of that name.

    \b
    Examples:
      ldiv profile warehouse.duckdb patients --sensitive disease
      ldiv profile warehouse.duckdb patients --sensitive disease --qi age,sex,zip --policy policy.yml
      ldiv profile warehouse.duckdb patients --sensitive disease --hipaa --policy policy.yml
      ldiv profile warehouse.duckdb patients --qi age,sex,zip --population-size 83000000
      ldiv profile warehouse.duckdb patients stays labs --sensitive diagnosis --sensitive result --policy schema.yml
      ldiv profile shop.duckdb --policy schema.yml
      ldiv profile exports/ --policy schema.yml
    """
    if policy is not None:
        refuse_folder(policy)
        refuse_files(policy)
    database, names = files_as_tables(database, tables or [])
    if not names and names_warehouse(database):
        raise refused("table", f"which of {database} are meant is not known", "name tables")
    with (
        resources.open(database, True, asked) as connection,
        output.progress(COUNTING) as listener,
    ):
        engine = Engine(connection, on_step=listener.on_step, catalog=resources.catalog_name)
        folder, lasts = (
            policy.parent if policy else Path(),
            not (names_warehouse(database) or address_of(database).is_memory),
        )
        found = profile_release(engine, tables_meant(engine, names), asked, folder, listener, lasts)
    started = found.started
    try:
        written = _write(started.starter, started.reason, policy)
    except PolicyError:  # of level files that are there: what took long is shown all the same
        if not output.json:
            output.show({}, chain(found.text(), _policy_text(started.starter, started.reason, [], show_values)))
        raise
    document = found.as_dict() | {"written": [str(path) for path in written]}
    output.show(document, chain(found.text(), _policy_text(started.starter, started.reason, written, show_values)))


def _write(skeleton: StarterPolicy | None, reason: str, policy: Path | None) -> list[Path]:
    if policy is None:
        return []
    if skeleton is None:
        raise InfeasibleError(f"no policy was written: {reason}")
    return write_starter_policy(skeleton, policy)


def _policy_text(skeleton: StarterPolicy | None, reason: str, written: list[Path], show_values: bool) -> Iterator[str]:
    if skeleton is None:
        yield f"note: {reason}"
    elif written:
        yield from (f"written: {path}" for path in written)
    else:
        yield f"\n{skeleton.text if show_values else skeleton.shown_text}".removesuffix("\n")
        if skeleton.shown_text != skeleton.text and not show_values:
            yield "# `…` stands for a sensitive value: --policy FILE writes it, --show-values shows it here."
