"""Options that several commands share: single ones, and groups that are declared once, each a dataclass.

A command takes a group as one parameter, and `grouped` has typer read its fields as options of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.auditing.subject import Pair, Suppressed, pair_of
from ldiv_db.commands.console import open_for_command
from ldiv_db.database.attach import CATALOG
from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text
from ldiv_db.database.engine import Engine, Settings
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.named_warehouses import names_warehouse, open_named
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.measuring.population_uniqueness import MOST_PEOPLE
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import read_requirements, read_sensitive
from ldiv_db.publishing.ledger_there import ledger_of
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.values import read_named

_SIZE = re.compile(r"\d+(\.\d+)?\s*(B|[KMGT]i?B)", re.IGNORECASE)
#: The database makes all its threads at once.
MOST_THREADS = 1_024


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: the fields of its option groups stand in their places, each an option."""
    shape = signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: given.annotation for name, given in shape.items() if is_dataclass(given.annotation)}
    spread: list[Parameter] = []
    for name, given in shape.items():
        spread += signature(groups[name], eval_str=True).parameters.values() if name in groups else [given]

    @wraps(command)
    def call(**given: Any) -> None:
        made = {
            name: group(**{one.name: given.pop(one.name) for one in fields(group)}) for name, group in groups.items()
        }
        command(**given, **made)

    call.__signature__ = Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in spread])  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in spread}
    return call


def _size(text: str | None) -> str | None:
    """The size as the database takes it; refused if it is none."""
    if text is None or (_SIZE.fullmatch(text.strip()) and float(re.split("[a-zA-Z ]", text.strip())[0]) > 0):
        return text
    raise typer.BadParameter(f"{text!r} is not a size, write e.g. 500MB or 4GB")


# -- single options ----------------------------------------------------------------------------------

Database = Annotated[
    str,
    typer.Argument(
        help="A DuckDB file; what DuckDB attaches: postgres:…, sqlite:…, ducklake:…, mysql:…, md:…; a warehouse:"
        " snowflake:…, bigquery:…, databricks:…, adbc:…, spark; or :memory:, for files. ${NAME} is read from the"
        " environment, for passwords."
    ),
]
Published = Annotated[str, typer.Argument(help="A table, a view, or a .parquet or .csv file.")]
PolicyFile = Annotated[Path, typer.Argument(help="The policy, a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only errors on stderr, no progress.")]
Memory = Annotated[
    str | None, typer.Option(callback=_size, help="Memory the database may use, e.g. 4GB; by default most of it.")
]
PopulationSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_PEOPLE,
        help="How many people the rows are a random sample of; estimates how many of them are unique.",
    ),
]
Catalog = Annotated[
    Path | None,
    typer.Option(
        help="A file for the catalog (taxonomies, runs); the database is then not written to. Of a warehouse the"
        " ledger's schema."
    ),
]
ShowValues = Annotated[
    bool,
    typer.Option(
        "--show-values", help="Show the values for which a policy is refused: too frequent, or not in a taxonomy."
    ),
]
ShowSeed = Annotated[
    bool,
    typer.Option("--show-seed", help="Show the seed: with source and policy it gives the same release again."),
]
ClassColumn = Annotated[
    str | None, typer.Option("--class", help="A column of class ids, which tells classes apart as well.")
]
SensitiveColumns = Annotated[
    list[str] | None, typer.Option(help="A sensitive attribute; may be repeated, and left out if only k is required.")
]
QuasiIdentifiers = Annotated[list[str] | None, typer.Option(help="Quasi-identifiers, comma-separated or repeated.")]
SensitiveTable = Annotated[str | None, typer.Option(help="The sensitive table of an anatomised pair.")]
Group = Annotated[str | None, typer.Option(help="The column that joins the two tables of a pair.")]
CountColumn = Annotated[str | None, typer.Option(help="The sensitive table's column of counts, if it has one.")]


# -- the database ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits on the memory, threads and disk of a command's database."""

    threads: Annotated[
        int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use; by default all.")
    ] = None
    memory_limit: Memory = None
    temp_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where the database puts what does not fit into memory; by default beside it, else in the system's."
        ),
    ] = None

    def open(
        self, database: str, read_only: bool = False, asked: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Any]:
        """A connection to the database within these limits, as `open_for_command` has it."""
        return open_for_command(database, read_only, self.settings, asked=asked)

    @property
    def settings(self) -> Settings:
        return Settings(self.threads, self.memory_limit, None if self.temp_dir is None else str(self.temp_dir))


@dataclass(frozen=True)
class DatabaseOptions(Limits):
    """Limits of a command's database, and the file of its catalog."""

    catalog: Catalog = None

    def open(
        self, database: str, read_only: bool = False, asked: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[Any]:
        """The same with the catalog attached if it is a file of its own."""
        return open_for_command(database, read_only, self.settings, self.catalog, asked)

    @property
    def ledger_schema(self) -> str | None:
        """The schema of a warehouse in which the ledger lies, if another is wanted."""
        return None if self.catalog is None else str(self.catalog)

    @property
    def catalog_name(self) -> str | None:
        """The name under which the catalog's file is attached."""
        return catalog_name(self.catalog)


def catalog_name(catalog: Path | None) -> str | None:
    """The name under which the file is attached."""
    return None if catalog is None else CATALOG


@contextmanager
def catalog_engine(database: str, catalog: Path | None, read_only: bool = False) -> Iterator[Engine]:
    """An engine on the database, or with the ledger of a warehouse, for commands that work on the catalog alone."""
    if names_warehouse(database):
        with open_named(database) as there, ledger_of(there, None if catalog is None else str(catalog)) as engine:
            yield engine
        return
    with open_for_command(database, read_only, catalog=catalog) as connection:
        yield Engine(connection, catalog=catalog_name(catalog))


# -- sensitive attributes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Attributes:
    """Settings of sensitive attributes; a text may start with the name of its attribute."""

    categories: Annotated[
        list[str] | None,
        typer.Option(
            help="Sensitive values by category, most sensitive first: a YAML list of lists, or a file of one."
            " With several sensitive attributes COLUMN=…."
        ),
    ] = None
    weights: Annotated[
        list[str] | None, typer.Option(help="Of the categories: uniform, {sensitivity: 2} or [0, .2, 1].")
    ] = None
    taxonomy: Annotated[
        list[str] | None, typer.Option(help="Of the sensitive values: a name in the catalog, or a file.")
    ] = None
    harmless: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=VALUE: a sensitive value that needs no protection; its rows count. May be repeated. NULL is"
            ' null, the text null is "null".'
        ),
    ] = None
    same: Annotated[
        list[str] | None, typer.Option(help="Compare texts after these steps: trim, casefold, or both.")
    ] = None

    def of(self, sensitive: Sequence[str]) -> dict[str, Sensitive]:
        """The settings of each sensitive attribute; raises PolicyError for what is said of none of them."""
        documents: dict[str, dict[str, Any]] = {name: {} for name in sensitive}
        for option in ("categories", "weights", "taxonomy", "harmless", "same"):
            for text in getattr(self, option) or ():
                name, rest = _addressed(text, sensitive, option)
                documents[name][option] = _setting(option, rest, documents[name].get(option))
        return read_sensitive(documents)


@dataclass(frozen=True)
class Judged(Attributes):
    """Options for judging a table: its sensitive attributes, suppressed rows, and the other table of a pair."""

    others_known: Annotated[
        bool, typer.Option("--others-known", help="Take the other sensitive attributes as known to the attacker.")
    ] = False
    suppressed: Annotated[
        Suppressed | None,
        typer.Option(
            help="What becomes of rows whose quasi-identifiers are all * or NULL, or whose sensitive value is NULL. By"
            " default the policy's, or judge."
        ),
    ] = None
    individual: Annotated[
        str | None,
        typer.Option(help="The column that says whose a row is: count people, not rows.", show_default=False),
    ] = None
    sensitive_table: SensitiveTable = None
    group: Group = None
    count: CountColumn = None

    def pair(self, open_table: Callable[[str, str], Relation | FileRelation]) -> Pair | None:
        """The anatomised pair, if one is named; raises PolicyError for half of one."""
        return pair_of(self.sensitive_table, self.group, self.count, open_table)

    def requirements(self, require: Sequence[str] | None, policy: Path | None) -> list[RequirementSpec]:
        """The requirements that are asked for; raises PolicyError if there are none, and no policy."""
        if not require and policy is None:
            what = "say what must hold, e.g. distinct:3, or name a --policy"
            raise PolicyError([Problem("require", "is missing", what)])
        return [
            replace(spec, others_known=spec.others_known or self.others_known)
            for spec in (read_requirements(require) if require else ())
        ]


def _setting(option: str, text: str, earlier: Any) -> Any:
    """The option's text as a policy would hold it; harmless values are collected."""
    match option:
        case "categories":
            return _yaml(text, option, [()])  # all its scalars are texts
        case "weights":
            return _yaml(text, option)
        case "taxonomy":
            return {"file": text} if Path(text).is_file() else text
        case "harmless":
            return [*(earlier or []), read_named(text)]
        case _:
            return [step.strip() for step in text.split(",")]


def _addressed(text: str, sensitive: Sequence[str], option: str) -> tuple[str, str]:
    """The sensitive attribute that an option is for, and the rest of it."""
    for name in sensitive:
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    if not sensitive:
        raise PolicyError([Problem(option, "is about a sensitive attribute", "name it")])
    if len(sensitive) > 1:
        raise PolicyError([Problem(option, "say for which sensitive attribute", f"e.g. {sensitive[0]}=…")])
    return sensitive[0], text


def _yaml(text: str, option: str, texts: Sequence[Sequence[str]] = ()) -> Any:
    """The YAML in a file of that name, or in the text itself."""
    try:
        return parse_document(read_text(Path(text), POLICY_BYTES) if _is_path(text) else text, texts)
    except (OSError, ValueError) as error:
        raise PolicyError([Problem(option, f"is neither YAML nor a file of YAML: it {error}")]) from error


def _is_path(text: str) -> bool:
    """Return True if a file has that name."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or with a character that no name has
        return False
