"""Options that several commands share: single ones, and groups that are declared once, each a dataclass.

A command takes a group as one parameter, and `grouped` has typer read its fields as options of their own. So are the
fields of a request that say how commands ask for them: `Annotated[dict[str, Any], OptionsOf(AttackRequest)]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ldiv_db.commands.console import open_for_command, show
from ldiv_db.database.addresses import address_of, is_attached
from ldiv_db.database.attach import CATALOG
from ldiv_db.database.connections import Settings
from ldiv_db.database.counted import names_warehouse, open_named, open_planned
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.names import Relation
from ldiv_db.database.requests import Asked, asked_fields
from ldiv_db.display import Part

if TYPE_CHECKING:
    from ldiv_db.commands.progress import ProgressDisplay

_SHOW_VALUES = "Name values of the data in errors and notes; a run shows three rows before and after as well."
_SIZE = re.compile(r"\d+(\.\d+)?\s*(B|[KMGT]i?B)", re.IGNORECASE)
#: The database makes all its threads at once.
MOST_THREADS = 1_024


@dataclass(frozen=True)
class OptionsOf:
    """The options of a command that a request asks for: those of its fields that say so.

    A request within a request is an option of its own, without which the options of its fields are refused.
    """

    request: Any
    prefix: str = ""
    #: Fields that this command has no option for.
    without: Sequence[str] = ()

    @property
    def _asked(self) -> dict[str, tuple[Any, Asked]]:
        return {field: how for field, how in asked_fields(self.request).items() if field not in self.without}

    def parameters(self) -> Iterator[Parameter]:
        """The options as typer reads them."""
        for field, (default, how) in self._asked.items():
            name, within = f"{self.prefix}{field}", is_dataclass(how.of)
            written = how.name or name.replace("_", "-")
            names = f"--{written}/--no-{written}" if default is True else f"--{written}"
            option = typer.Option(names, help=how.words or SHARED[name], min=how.least, max=how.most)
            kind: Any = Annotated[bool if within else how.of, option]
            shown = type(default) is how.of or isinstance(default, str)
            given = False if within else default if shown else None
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=given, annotation=kind)
            if within:
                yield from OptionsOf(how.of, f"{name}_").parameters()

    def taken(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments that these options give, taken out of all that are given.

        Raises PolicyError for texts that cannot be read, and for options of a request within that is not asked for.
        """
        found: dict[str, Any] = {}
        for field, (default, how) in self._asked.items():
            name = f"{self.prefix}{field}"
            value = given.pop(name)
            if is_dataclass(how.of):
                value = OptionsOf(how.of, f"{name}_")._made(given, field, bool(value))
            elif how.read is not None:
                value = how.read(value)
            found[field] = default if value is None or value == [] else value
        return found

    def _made(self, given: dict[str, Any], field: str, wanted: bool) -> Any:
        if wanted:
            return self.request(**self.taken(given))
        values = {one.name: (one.default, given.pop(one.name)) for one in self.parameters()}
        beside = [name for name, (default, value) in values.items() if default is None and value is not None]
        if beside:
            raise PolicyError(Problem(name, f"goes with a {field}", f"give --{field}") for name in beside)
        return None


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: the fields of its option groups stand in their places, each an option."""
    shape = signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: given.annotation for name, given in shape.items() if is_dataclass(given.annotation)}
    asked = {
        name: one
        for name, given in shape.items()
        for one in getattr(given.annotation, "__metadata__", ())
        if isinstance(one, OptionsOf)
    }
    spread: list[Parameter] = []
    for name, given in shape.items():
        if name in groups:
            kinds = get_type_hints(groups[name], include_extras=True)  # of fields of its bases as well
            every = signature(groups[name]).parameters.items()
            spread += [one.replace(annotation=kinds[field]) for field, one in every]
        else:
            spread += asked[name].parameters() if name in asked else [given]

    @wraps(command)
    def call(**given: Any) -> None:
        made = {
            name: group(**{one.name: given.pop(one.name) for one in fields(group)}) for name, group in groups.items()
        }
        made |= {name: options.taken(given) for name, options in asked.items()}
        command(**given, **made)

    call.__signature__ = Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in spread])  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in spread}
    return call


def _size(text: str | None) -> str | None:
    if text is None or (_SIZE.fullmatch(text.strip()) and float(re.split("[a-zA-Z ]", text.strip())[0]) > 0):
        return text
    raise typer.BadParameter(f"{text!r} is not a size, write e.g. 500MB or 4GB")


def of_data_file(context: typer.Context, text: str | None) -> str | None:
    """The table that is named; without one, or a policy, that of a data file in place of a database."""
    database, policy = (context.params.get(name) for name in ("database", "policy"))
    if text is not None or policy is not None or database is None or is_attached(database):
        return text
    name = address_of(database).table
    return None if name is None else str(Relation((name,)))


# -- single options ----------------------------------------------------------------------------------

_DATABASE = typer.Argument(
    help="A DuckDB file; what DuckDB attaches: postgres:…, sqlite:…, ducklake:…, mysql:…, md:…; a warehouse:"
    " snowflake:…, bigquery:…, databricks:…, adbc:…, spark; data files; or :memory:. ${NAME} is read from the"
    " environment, for passwords."
)
Database = Annotated[str, _DATABASE]
AnyDatabase = Annotated[str | None, _DATABASE]
Published = Annotated[str, typer.Argument(help="A table, a view, or a .parquet or .csv file.")]
Released = Annotated[
    str | None,
    typer.Argument(
        callback=of_data_file,
        help="A table, a view, or a .parquet or .csv file; left out, the policy's tables or a data file as DATABASE.",
    ),
]
PolicyFile = Annotated[Path, typer.Argument(help="The policy, a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only errors on stderr, no progress.")]
Memory = Annotated[
    str | None, typer.Option(callback=_size, help="Memory the database may use, e.g. 4GB; by default most of it.")
]
Catalog = Annotated[
    Path | None,
    typer.Option(
        help="A file for the catalog (taxonomies, runs); the database is then not written to. For a warehouse, the"
        " ledger's schema."
    ),
]
ShowSeed = Annotated[
    bool,
    typer.Option("--show-seed", help="Show the seed, which reproduces the release from source and policy."),
]
#: What is said of options that several requests ask for.
SHARED = {
    "budget": "About how many pairs of people and classes each attack examines.",
    "class_column": "A column of class ids, by which classes are distinguished as well.",
    "control": "A table or file of people who are not in the release.",
    "count": "The sensitive table's column of counts, if it has one.",
    "group": "The column that joins the two tables of a pair.",
    "population_size": "The size of the population of which the rows are a random sample; estimates how many are unique"
    " in it.",
    "sensitive_table": "The sensitive table of an anatomised pair.",
    "show_values": _SHOW_VALUES,
}


# -- what is shown -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputOptions:
    """What a command shows: progress unless it is quiet, and its result as text or as one JSON object."""

    quiet: Quiet = False
    json: Json = False

    def progress(self, first_stage: str = "reading the source") -> ProgressDisplay:
        """Progress on stderr, which begins with a stage."""
        from ldiv_db.commands.progress import ProgressDisplay  # noqa: PLC0415 - for commands that work long

        return ProgressDisplay(self.quiet, first_stage)

    def show(self, document: Mapping[str, Any], text: Iterable[Part]) -> None:
        """Print the result."""
        show(document, text, self.json)


# -- the database ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DatabaseOptions:
    """Limits on the memory, threads and disk of a command's database, and the file of its catalog."""

    threads: Annotated[
        int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use; by default all.")
    ] = None
    memory_limit: Memory = None
    temp_dir: Annotated[
        Path | None,
        typer.Option(
            help="A folder for what does not fit into memory; by default beside the database, else the system's."
        ),
    ] = None
    catalog: Catalog = None

    @property
    def settings(self) -> Settings:
        return Settings(self.threads, self.memory_limit, None if self.temp_dir is None else str(self.temp_dir))

    def open(
        self, database: str, read_only: bool = False, asked: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Any]:
        """A connection to the database within these limits, with the catalog attached if it is a file of its own."""
        return open_for_command(database, read_only, self.settings, self.catalog, asked)

    @contextmanager
    def open_planned(self, database: str, read_only: bool = False) -> Iterator[tuple[Any, str | None]]:
        """A connection to the database, or what a run in a warehouse is given, and what it calls the catalog."""
        if names_warehouse(database):
            with open_planned(database, settings=self.settings) as there:
                yield there, None if self.catalog is None else str(self.catalog)
        else:
            with self.open(database, read_only) as connection:
                yield connection, self.catalog_name

    @property
    def catalog_name(self) -> str | None:
        """The name under which the catalog's file is attached."""
        return CATALOG if self.catalog else None


@dataclass(frozen=True, kw_only=True)
class CatalogOptions(OutputOptions):
    """The database with the catalog that a command works on alone, and how its result is shown."""

    database: Database
    catalog: Catalog = None

    @property
    def schema(self) -> str | None:
        """The schema of the ledger of a warehouse, None for the usual one."""
        return None if self.catalog is None else str(self.catalog)

    @contextmanager
    def engine(self, read_only: bool = False, work: str = "reading the catalog") -> Iterator[Engine]:
        """An engine on the database, for so long as the command shows this `work`."""
        with (
            open_for_command(self.database, read_only, catalog=self.catalog) as connection,
            self.progress(work) as listener,
        ):
            yield Engine(connection, listener.on_step, catalog=CATALOG if self.catalog else None)

    @contextmanager
    def ledger(
        self,
        read_only: bool = False,
        besides: Sequence[str] = (),
        series: str | None = None,
        work: str = "reading the ledger",
    ) -> Iterator[Engine]:
        """The same, or one with the ledger of a warehouse: what commands read `besides` runs, or of a series."""
        if names_warehouse(self.database):
            from ldiv_db.publishing.ledger_there import ledger_of  # noqa: PLC0415 - all that a ledger is about

            with (
                open_named(self.database) as there,
                self.progress(work),
                ledger_of(there, self.schema, besides, series) as engine,
            ):
                yield engine
            return
        with self.engine(read_only, work) as engine:
            yield engine
