"""`ldiv profile`: how identifying a table's columns are, and a policy to start from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.commands.console import ProgressDisplay, show, split_names
from ldiv_db.commands.options import Database, DatabaseOptions, Json, OptionsOf, Quiet, grouped
from ldiv_db.commands.profile_tables import profile_several
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, LdivError
from ldiv_db.database.sources import resolve_source
from ldiv_db.measuring.profile import ProfileRequest, profile_table
from ldiv_db.measuring.starter_policy import (
    StarterPolicy,
    make_starter_policy,
    policy_source,
    refuse_folder,
    write_starter_policy,
)
from ldiv_db.reporting.table_text import notes_text
from ldiv_db.running.estimate import Estimate, about, size
from ldiv_db.running.run import estimate


@grouped
def profile_command(
    *,
    database: Database,
    tables: Annotated[
        list[str],
        typer.Argument(help="A table, a view, or a .parquet or .csv file; several are profiled as one release."),
    ],
    asked: Annotated[dict[str, Any], OptionsOf(ProfileRequest)],
    policy: Annotated[
        Path | None,
        typer.Option(
            help="Write the policy here and, beside it, level files for quasi-identifiers of text, which list the"
            " column's values: write groups into them. Nothing is overwritten."
        ),
    ] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Name sensitive values in the policy's comments.")
    ] = False,
    json: Json = False,
    resources: DatabaseOptions,
    quiet: Quiet = False,
) -> None:
    """Show how identifying a table's columns are, and propose a policy; writes nothing to the database.

    Without --qi a column is an identifier if nearly every row has its own value, if it names rows of another table, or
    by its name; otherwise a quasi-identifier. The reason is shown. Without --sensitive the policy asks for k-anonymity.
    Only counts and forms (`99999`) are printed, never values.

    Of several tables it finds the links, says how many rows people have in each, and proposes a policy with `tables`;
    columns are then named with their table (`stays.diagnosis`) where several have one of that name.

    \b
    Examples:
      ldiv profile warehouse.duckdb patients --sensitive disease
      ldiv profile warehouse.duckdb patients --sensitive disease --qi age,sex,zip --policy policy.yml
      ldiv profile warehouse.duckdb patients --sensitive disease --hipaa --policy policy.yml
      ldiv profile warehouse.duckdb patients --qi age,sex,zip --population-size 83000000
      ldiv profile warehouse.duckdb patients stays labs --sensitive diagnosis --sensitive result --policy schema.yml
    """
    if policy is not None:
        refuse_folder(policy)
    with (
        resources.open(database, True, asked) as connection,
        ProgressDisplay(quiet, "counting columns") as listener,
    ):
        engine = Engine(connection, on_step=listener.on_step, catalog=resources.catalog_name)
        folder = policy.parent if policy else Path()
        if len(tables) > 1:
            document, text, started = profile_several(engine, tables, asked, folder, listener)
            skeleton, reason, told = started.starter, started.reason, started.notes
            written = _write(skeleton, reason, policy)
            document |= {"written": [str(path) for path in written]}
            show(document, chain(text, notes_text(told), _policy_text(skeleton, reason, written, True)), json)
            return
        (table,) = tables
        relation = resolve_source(engine, table, Path(), "table")
        names = {column.name.lower() for column in columns_of(engine, relation)}
        qi, population = asked["qi"], asked["population_size"]
        keys = None if qi is None else split_names(qi, names)
        secrets = split_names(asked["sensitive"], names)
        found = profile_table(engine, relation, keys, secrets, listener.on_progress, population, asked["hipaa"])
        source = policy_source(table, relation, folder)
        skeleton, reason = make_starter_policy(engine, found, relation, source)
        estimate, told = _estimated(connection, skeleton, folder, resources.catalog_name)
    written = _write(skeleton, reason, policy)
    document = {**found.as_dict(), "policy": skeleton.policy if skeleton else None}
    document |= {"note": reason, "run": estimate and estimate.as_dict(), "written": [str(path) for path in written]}
    show(document, chain(found.text(), told, _policy_text(skeleton, reason, written, show_values)), json)


def _estimated(
    connection: Any, skeleton: StarterPolicy | None, folder: Path, catalog: str | None
) -> tuple[Estimate | None, list[str]]:
    """What a run of the policy would take, and that in words or why it is not known; level files are not yet there."""
    if skeleton is None:
        return None, []
    keys = skeleton.policy["quasi_identifiers"].items()
    flat = {name: {"taxonomy": {"flat": True}} if "file" in one.get("taxonomy", ()) else one for name, one in keys}
    try:
        found = estimate(connection, {**skeleton.policy, "quasi_identifiers": flat}, folder, catalog)
    except LdivError as error:
        return None, [f"note: time and memory of a run of this policy are not known: {error.message.splitlines()[0]}"]
    return found, [f"a run of this policy takes {about(found.seconds)} and about {size(found.memory)} of memory"]


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
