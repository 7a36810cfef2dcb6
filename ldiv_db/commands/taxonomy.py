"""`ldiv taxonomy`: the trees of the catalog, imported, built, shown and checked."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.tree import Tree

from ldiv_db.commands.console import group_of_commands
from ldiv_db.commands.options import CatalogOptions, Published, grouped
from ldiv_db.commands.telling import say
from ldiv_db.database import catalog as catalogs
from ldiv_db.database import migrate
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import count_phrase, refuse, refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.sources import resolve_source
from ldiv_db.display import table_of
from ldiv_db.measuring.generalisations import draft_levels
from ldiv_db.measuring.starter_policy import write_levels
from ldiv_db.policy.quasi_identifiers import NULL_CODE, number_values
from ldiv_db.taxonomies import making, readers
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.taxonomy import Taxonomy

taxonomy_app = group_of_commands("Import, build, draft, show and check taxonomies.")

Name = Annotated[str, typer.Argument(help="The taxonomy's name in the catalog.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace the taxonomy of that name.")]


@taxonomy_app.command("import")
@grouped
def import_command(
    *,
    stored: CatalogOptions,
    name: Name,
    file: Annotated[Path | None, typer.Argument(help="Levels leaf;…;root (CSV), or nested YAML or JSON.")] = None,
    tree: Annotated[str | None, typer.Option(help="Which tree of a nested file, if it has several.")] = None,
    table: Annotated[str | None, typer.Option(help="Read a table of edges instead of a file.")] = None,
    child: Annotated[str | None, typer.Option(help="The table's column of values.")] = None,
    parent: Annotated[str | None, typer.Option(help="The table's column of their parents.")] = None,
    replace: Replace = False,
) -> None:
    """Store a taxonomy in the catalog, from a file or a table of edges.

    \b
    Examples:
      ldiv taxonomy import warehouse.duckdb country country.csv
      ldiv taxonomy import warehouse.duckdb country trees.yml --tree country --replace
      ldiv taxonomy import warehouse.duckdb country --table places --child place --parent lies_in
    """
    edges = (table, child, parent)
    if (file is None) == (table is None) or any(edges) != all(edges) or (tree is not None and file is None):
        raise typer.BadParameter("give FILE (and perhaps --tree), or --table, --child and --parent")
    found = None if file is None else readers.read_taxonomy(file, tree)
    with stored.engine() as engine:
        if found is None:
            found = _read_edges(engine, *map(str, edges))
        _store(engine, name, found, replace)
    _show_stored(stored, name, found)


@taxonomy_app.command("build")
@grouped
def build_command(
    *,
    stored: CatalogOptions,
    name: Name,
    ranges: Annotated[str, typer.Option(help="The widths, from the leaves up: 5,10,20.")],
    smallest: Annotated[float, typer.Option("--from", help="The smallest number.")],
    largest: Annotated[float, typer.Option("--to", help="The largest number.")],
    origin: Annotated[float, typer.Option(help="A number at which ranges of all widths start.")] = 0,
    decimal: Annotated[bool, typer.Option("--decimal", help="The numbers are not whole.")] = False,
    replace: Replace = False,
) -> None:
    """Store a taxonomy of nested numeric ranges in the catalog.

    \b
    Examples:
      ldiv taxonomy build warehouse.duckdb age --ranges 5,10,20 --origin 17 --from 17 --to 99
      ldiv taxonomy build warehouse.duckdb weight --ranges 0.5,5 --from 0 --to 200 --decimal
    """
    widths = _numbers(ranges)
    if smallest > largest:
        raise refused("from", f"{smallest:g} is above --to {largest:g}")
    found = making.from_ranges(widths, _whole(origin), _whole(smallest), _whole(largest), not decimal)
    with stored.engine() as engine:
        _store(engine, name, found, replace)
    _show_stored(stored, name, found)


@taxonomy_app.command("new")
@grouped
def new_command(
    *,
    stored: CatalogOptions,
    table: Published,
    column: Annotated[str, typer.Argument(help="The column that the taxonomy is for.")],
    by: Annotated[
        str | None,
        typer.Option(help="How to group: prefixes, words or quantiles; by default chosen by the type of the values."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="The file, by default COLUMN.csv. Nothing is overwritten.")] = None,
) -> None:
    """Draft a taxonomy from the values of a column, as a level file to edit: a line a value, `value;group;*`.

    The file holds the values of the column: keep it to yourself.

    \b
    Examples:
      ldiv taxonomy new warehouse.duckdb patients ward
      ldiv taxonomy new warehouse.duckdb patients zip --by prefixes --file zip.csv
    """
    path = file or Path(re.sub(r"[^\w-]+", "_", column)[:60] + ".csv")
    with stored.engine(True, "counting values") as engine:
        source = resolve_source(engine, table, Path(), "table")
        refuse(catalogs.missing_columns(engine, source, [("column", column)], "table"))
        found = next(c for c in catalogs.columns_of(engine, source) if c.name.lower() == column.lower())
        with read_exactly(engine, source) as read:
            way, lines = draft_levels(engine, read, found, by)
    write_levels(path, lines)
    document = {"file": str(path), "column": found.name, "by": way, "leaves": len(lines)}
    stored.show(document, [f"{path}: {len(lines):,} values by {way}; edit it, then `taxonomy: {{file: {path.name}}}`"])


@taxonomy_app.command("show")
@grouped
def show_command(
    *,
    stored: CatalogOptions,
    name: Name,
    table: Annotated[str | None, typer.Option(help="Count the rows of this table, view or file.")] = None,
    column: Annotated[str | None, typer.Option(help="The column that the taxonomy is for.")] = None,
) -> None:
    """Show a taxonomy as a tree: one of the catalog, a file, or a ready one.

    With a table it shows the nodes that have rows, how many, and how many values have no leaf.

    \b
    Examples:
      ldiv taxonomy show warehouse.duckdb country
      ldiv taxonomy show warehouse.duckdb country.csv --table patients --column country
      ldiv taxonomy show warehouse.duckdb icd10cm --table patients --column diagnosis
    """
    if (table is None) != (column is None):
        raise typer.BadParameter("give both --table and --column")
    with stored.engine(True, "counting values" if table else "reading the catalog") as engine:
        source = None if table is None else resolve_source(engine, table, Path(), "table")
        found, rows = _read_shown(engine, name, source, column)
    branches: dict[int, Tree] = {}
    counts = {node.node: sum(rows.get(code, 0) for code in range(node.low, node.high + 1)) for node in found.nodes}
    for node in found.nodes:
        if source is None or counts[node.node] or node.parent is None:
            label = node.label if source is None else f"{node.label}  {counts[node.node]:,}"
            above = None if node.parent is None else branches[node.parent]
            branches[node.node] = Tree(label) if above is None else above.add(label)
    nodes = [asdict(node) | ({} if source is None else {"rows": counts[node.node]}) for node in found.nodes]
    missing = {} if source is None else {"rows_missing": rows.get(None, 0)}
    lacking = [f"{count_phrase(rows[None], 'row has', 'rows have')} no leaf"] if rows.get(None) else []
    stored.show({**_summary(name, found), "nodes": nodes, **missing}, [branches[found.nodes[0].node], *lacking])


def _read_shown(
    engine: Engine, name: str, source: Table | None, column: str | None
) -> tuple[Taxonomy, dict[int | None, int]]:
    """The taxonomy in a file, the catalog or the program, and the rows of each leaf; of None those without one."""
    if source is None or column is None:
        return _named(engine, name), {}
    found, dictionary = _held(engine, name, source, column)
    counted = engine.grouped(dictionary, "code", rows=("sum", "rows"))
    return found, {code: int(rows) for code, rows in counted if code != NULL_CODE}


def _held(engine: Engine, name: str, source: Table, column: str) -> tuple[Taxonomy, Relation]:
    """The taxonomy, and the column's values with their rows and the numbers of their leaves, NULL where they have none.

    One of the program may be made of these values.
    """
    levels = making.LEVELS[name]() if name in making.LEVELS and name not in taxonomies.stored(engine) else []
    refuse(catalogs.missing_columns(engine, source, [("column", column)], "table"))
    kinds = {found.name.lower(): found for found in catalogs.columns_of(engine, source)}
    with read_exactly(engine, source) as read:
        found = making.from_values(engine, read, Identifier(column), levels, name) if levels else _named(engine, name)
        if found.by_range and not kinds[column.lower()].is_number:
            raise refused("column", f"the taxonomy is of numbers, {column} is {kinds[column.lower()].shown}")
        return found, number_values(engine, found, read, Identifier(column), levels)


def _named(engine: Engine, name: str) -> Taxonomy:
    return readers.read_taxonomy(Path(name)) if Path(name).is_file() else making.require(engine, name)


@taxonomy_app.command("list")
@grouped
def list_command(
    *,
    stored: CatalogOptions,
) -> None:
    """List the taxonomies of the catalog.

    \b
    Example:
      ldiv taxonomy list warehouse.duckdb
    """
    with stored.engine(read_only=True) as engine:
        found = [_summary(name, making.require(engine, name)) for name in taxonomies.stored(engine)]
    columns = ("name", "origin", "leaves", "height")
    stored.show({"taxonomies": found}, [table_of("taxonomies", columns, [row.values() for row in found])])


@taxonomy_app.command("check")
@grouped
def check_command(
    *,
    stored: CatalogOptions,
    name: Name,
    table: Annotated[str, typer.Option(help="A table, a view, or a .parquet or .csv file.")],
    column: Annotated[str, typer.Option(help="The column that the taxonomy is for.")],
    show_values: Annotated[bool, typer.Option("--show-values", help="List these values.")] = False,
) -> None:
    """Count the values of a column that have no leaf; the exit code is 1 if there is one. NULL needs none.

    \b
    Examples:
      ldiv taxonomy check warehouse.duckdb country --table patients --column country
      ldiv taxonomy check warehouse.duckdb icd10cm --table patients --column diagnosis --show-values
    """
    with stored.engine(True, "counting values") as engine:
        _, dictionary = _held(engine, name, resolve_source(engine, table, Path(), "table"), column)
        shown = "all" if show_values else False
        found = engine.rows("taxonomies/list_missing_values", dictionary=dictionary, show_values=shown)
    missing, values = found[0][1] if found else 0, [value for value, _ in found if show_values]
    document = {"taxonomy": name, "table": table, "column": column, "missing_values": missing}
    document |= {"missing": values} if show_values else {}
    if stored.json or not missing:
        stored.show(document, [f"every value of {column} has a leaf in taxonomy {name}"])
    else:
        for value in values:
            typer.echo(value)
        have = count_phrase(missing, f"value of {column} has", f"values of {column} have")
        say(f"{have} no leaf in taxonomy {name}")
    raise typer.Exit(1 if missing else 0)


def _numbers(text: str) -> list[float]:
    """The numbers in `text`, commas between; whole ones as such, so that labels show no point."""
    try:
        return [_whole(float(part)) for part in text.split(",")]
    except (ValueError, OverflowError):
        raise refused("ranges", f"takes numbers with commas between, not {text!r}") from None


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


def _read_edges(engine: Engine, table: str, child: str, parent: str) -> Taxonomy:
    relation = resolve_source(engine, table, Path(), "table")
    if isinstance(relation, FileRelation):
        raise refused("table", f"{table} is a file", "edges are read from a table")
    refuse(catalogs.missing_columns(engine, relation, [("child", child), ("parent", parent)], "table"))
    return readers.read_edges(engine, relation, child, parent)


def _store(engine: Engine, name: str, taxonomy: Taxonomy, replace: bool) -> None:
    if not name.strip():
        raise refused("name", "is empty")
    with engine.transaction():
        migrate.migrate(engine)
        taxonomies.store(engine, name, taxonomy, replace)


def _summary(name: str, taxonomy: Taxonomy) -> dict[str, Any]:
    return {"name": name, "origin": taxonomy.origin, "leaves": len(taxonomy.leaves), "height": taxonomy.height}


def _show_stored(stored: CatalogOptions, name: str, taxonomy: Taxonomy) -> None:
    summary = _summary(name, taxonomy)
    stored.show(summary, ["{name}: {leaves:,} leaves, height {height}, from {origin}".format(**summary)])
