"""Options that several commands share, and what their words mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ldiv_db.database.attach import CATALOG
from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text
from ldiv_db.database.engine import Settings
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.measuring.population_uniqueness import MOST_PEOPLE
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import read_requirements, read_sensitive
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.values import read_named

_SIZE = re.compile(r"\d+(\.\d+)?\s*(B|[KMGT]i?B)", re.IGNORECASE)


def _size(text: str | None) -> str | None:
    """The size as the database takes it; refused if it is none."""
    if text is None or (_SIZE.fullmatch(text.strip()) and float(re.split("[a-zA-Z ]", text.strip())[0]) > 0):
        return text
    raise typer.BadParameter(f"{text!r} is not a size, write e.g. 500MB or 4GB")


Database = Annotated[
    str,
    typer.Argument(
        help="A DuckDB file, or what DuckDB attaches: postgres:…, sqlite:…, ducklake:…, mysql:…, md:…; ${NAME} in it is"
        " read from the environment, so that no password is written there. :memory: is only for files; for `ldiv run`,"
        " spark is the session of the environment.",
        show_default=False,
    ),
]
PolicyFile = Annotated[Path, typer.Argument(help="The policy, a YAML file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only errors on stderr, no progress.")]
#: The database makes all its threads at once.
MOST_THREADS = 1_024
Threads = Annotated[
    int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use; all if not given.")
]
Memory = Annotated[
    str | None, typer.Option(callback=_size, help="Memory the database may use, e.g. 4GB; most of it if not given.")
]
PopulationSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_PEOPLE,
        help="Of how many people the rows are a random sample: how many of them are unique is estimated.",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="Processes that solve the parts of a table of more than the policy's part_rows rows; as many as threads"
        " if not given.",
    ),
]
TempDir = Annotated[
    Path | None,
    typer.Option(
        help="Where the database puts what does not fit into memory; beside it, or where that may not be written in"
        " the system's folder, if not given.",
        show_default=False,
    ),
]
Catalog = Annotated[
    Path | None,
    typer.Option(
        help="The file of the catalog (taxonomies, runs) if it is not the database, which is then not written to. On"
        " Spark such a file, or the schema of the ledger's tables.",
        show_default=False,
    ),
]
ShowValues = Annotated[
    bool,
    typer.Option(
        "--show-values",
        help="Show the values that a policy is refused for: too frequent ones, or not in a taxonomy.",
    ),
]
ShowSeed = Annotated[
    bool,
    typer.Option("--show-seed", help="Name seeds, by which who has source and policy makes the same release again."),
]
ClassColumn = Annotated[
    str | None, typer.Option("--class", help="A column of class ids that distinguishes classes as well.")
]
CategoriesOf = Annotated[
    list[str] | None,
    typer.Option(
        help="Sensitive values by category, most sensitive first: a YAML list of lists, or a file of one."
        " With several sensitive attributes COLUMN=….",
        show_default=False,
    ),
]
WeightsOf = Annotated[
    list[str] | None,
    typer.Option(help="Of the categories: uniform, {sensitivity: 2} or [0, .2, 1].", show_default=False),
]
TaxonomyOf = Annotated[
    list[str] | None,
    typer.Option(help="Of the sensitive values: a name in the catalog, or a file.", show_default=False),
]
HarmlessOf = Annotated[
    list[str] | None,
    typer.Option(
        help="A sensitive value that needs no protection, though its rows count: COLUMN=VALUE; may be repeated. NULL"
        ' is null, the text null is "null".',
        show_default=False,
    ),
]
SameOf = Annotated[
    list[str] | None,
    typer.Option(help="Texts are one value after these steps: trim, casefold, or both.", show_default=False),
]

SensitiveColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="A sensitive attribute; may be repeated, and left out if only k is required.", show_default=False
    ),
]
QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option(help="Quasi-identifiers, comma-separated or repeated.", show_default=False),
]
OthersKnown = Annotated[bool, typer.Option("--others-known", help="Count the other sensitive attributes as known.")]
_SUPPRESSED = "How to take rows whose QIs are all * or NULL, or whose sensitive value is NULL."
SuppressedIfGiven = Annotated[
    Literal["judge", "ignore", "unknown"] | None,
    typer.Option(help=f"{_SUPPRESSED} The policy's, or judge, if not given.", show_default=False),
]
SensitiveTable = Annotated[
    str | None, typer.Option(help="The sensitive table of an anatomised pair.", show_default=False)
]
Group = Annotated[str | None, typer.Option(help="The column that joins the two tables of a pair.", show_default=False)]
CountColumn = Annotated[
    str | None, typer.Option(help="The sensitive table's column of counts, if it has one.", show_default=False)
]


def settings(threads: int | None, memory_limit: str | None, temp_dir: Path | None) -> Settings:
    """The settings of a database that these options ask for."""
    return Settings(threads, memory_limit, None if temp_dir is None else str(temp_dir))


def catalog_name(catalog: Path | None) -> str | None:
    """The name under which the file is attached."""
    return None if catalog is None else CATALOG


def sensitive_settings(
    sensitive: Sequence[str],
    categories: Sequence[str],
    weights: Sequence[str],
    taxonomy: Sequence[str],
    harmless: Sequence[str] = (),
    same: Sequence[str] = (),
) -> dict[str, Sensitive]:
    """What the options say of each sensitive attribute."""
    documents: dict[str, dict[str, Any]] = {name: {} for name in sensitive}
    for text in categories:
        name, rest = _addressed(text, sensitive, "categories")
        documents[name]["categories"] = _yaml(rest, "categories", [()])  # all its scalars are texts
    for text in weights:
        name, rest = _addressed(text, sensitive, "weights")
        documents[name]["weights"] = _yaml(rest, "weights")
    for text in taxonomy:
        name, rest = _addressed(text, sensitive, "taxonomy")
        documents[name]["taxonomy"] = {"file": rest} if Path(rest).is_file() else rest
    for text in harmless:
        name, rest = _addressed(text, sensitive, "harmless")
        documents[name].setdefault("harmless", []).append(read_named(rest))
    for text in same:
        name, rest = _addressed(text, sensitive, "same")
        documents[name]["same"] = [step.strip() for step in rest.split(",")]
    return read_sensitive(documents)


def requirements_of(require: Sequence[str], others_known: bool) -> list[RequirementSpec]:
    """The requirements that the options ask for; with `others_known` all of them of refined classes."""
    return [
        RequirementSpec(spec.name, spec.argument, spec.sensitive, spec.others_known or others_known)
        for spec in read_requirements(require)
    ]


def pair_names(table: str | None, group: str | None, count: str | None) -> tuple[str, str] | None:
    """The sensitive table of a pair and the column that joins it; None if there is no pair."""
    if table is None and group is None and count is None:
        return None
    if table is None or group is None:
        raise PolicyError([Problem("sensitive-table", "goes with --group: a pair is two tables joined by a column")])
    return table, group


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
    """Whether there is a file of that name."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or with a character that no name has
        return False
