"""Sources that a policy may name: a table or files, a query, or in Python a frame or a relation.

With them the keys of releases over time, and the YAML document of a policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field, PlainValidator
from pydantic_core import PydanticCustomError

from ldiv_db.database.catalog import Column
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.frames import FRAME, KINDS, view_of_frame
from ldiv_db.database.given_queries import name_of_query, view_of_query
from ldiv_db.database.names import Relation
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.parts import PolicyPart


@dataclass(frozen=True)
class SourceQuery:
    """A query, `source: {query: "SELECT …"}`."""

    query: Annotated[str, Field(description="a SELECT, whose rows are the source")]

    def __str__(self) -> str:
        return name_of_query(self.query)


class SourcePlace(Protocol):
    """A place where the rows of a source lie, and the ledger of what is published of them; here are only counts."""

    @property
    def hashed(self) -> Sequence[str]:
        """The columns of which only a hash is here."""

    def enter(self, entries: Mapping[str, Mapping[str, Any]], watch: Any) -> None:
        """Send what the ledger here has entered; raises OvertakenError if another run of the source was faster."""

    def enter_written(self, entries: Mapping[str, Mapping[str, Any]], watch: Any, left: Mapping[str, bool]) -> None:
        """The same of a file before it is moved, by itself; of runs that were `left` whether theirs is in place.

        Raises ChangedError if the source is not what was counted.
        """

    def settle(self, run_id: str, in_place: bool) -> None:
        """Settle the file of a run in the ledger there."""

    def bring_series(self, series: str) -> None:
        """Copy here what the ledger there says of a series."""

    def recounted(self, columns: Sequence[tuple[Any, ...]]) -> Relation:
        """The source as a run read it that read other columns."""

    def kept_warnings(self, kept: Sequence[Column], individual: Column | None) -> list[str]:
        """The warnings of kept columns, as they are counted there."""

    def let_go(self) -> None:
        """End the moment at which the source is read."""


class Frame:
    """A frame, or a relation, of the client's or of the engine's own, that a caller gave; it is never copied.

    Its rows may lie in another `place`.
    """

    def __init__(self, value: Any, name: str = FRAME, place: SourcePlace | None = None):
        self.value = value
        self.name = name
        self.place = place

    def __deepcopy__(self, memo: Any) -> Frame:
        return self

    def called(self, name: str) -> Frame:
        """The frame under this name, unless it has one."""
        return Frame(self.value, name, self.place) if self.name == FRAME else self

    def __str__(self) -> str:
        return self.name


PolicySource = str | SourceQuery | Frame
#: Stands where a policy leaves its source to a frame that it is given.
UNSPECIFIED = Frame(None)


def as_source(value: Any) -> PolicySource:
    """The source as written, a frame if it is nothing that a document can hold; raises PydanticCustomError."""
    if isinstance(value, str | SourceQuery | Frame):
        return value
    if isinstance(value, Mapping) and list(value) == ["query"] and isinstance(value["query"], str):
        return SourceQuery(value["query"])
    if isinstance(value, Mapping):
        raise PydanticCustomError("source_query", 'takes {query: "SELECT …"}, or a text')
    if value is None or isinstance(value, bool | int | float | list | tuple | date):
        raise PydanticCustomError("string_type", "takes a text")
    return Frame(value)


GivenSource = Annotated[PolicySource, PlainValidator(as_source, json_schema_input_type=str | SourceQuery)]


def place_of(source: PolicySource) -> SourcePlace | None:
    """Where the rows of a source lie of which only counts are here; None of any other."""
    return source.place if isinstance(source, Frame) else None


def open_source(engine: Engine, source: PolicySource, folder: Path, key: str = "source") -> Table:
    """The source as it can be read until the engine is closed; raises PolicyError if there is none."""
    if isinstance(source, SourceQuery):
        return view_of_query(engine, source.query, f"{key}.query")
    if source is UNSPECIFIED:
        raise refused(key, "is required")
    if isinstance(source, Frame) and isinstance(source.value, Relation):
        return source.value
    if isinstance(source, Frame):
        try:
            return view_of_frame(engine, FRAME, source.value)
        except DatabaseError as error:
            raise refused(key, error.message, KINDS) from None
    return resolve_source(engine, source, folder, key)


def open_given(engine: Engine, given: Any, key: str) -> Table:
    """The table, or frame, that a caller gives for the argument `key`; raises PolicyError if it cannot be read."""
    try:
        source = as_source(given)
    except PydanticCustomError as error:
        what = "is required" if given is None else f"{error.message()}, or a frame"
        raise refused(key, what) from None
    return open_source(engine, source, Path(), key)


def given_name(given: Any, relation: Table) -> str:
    """The name of a caller's table in a report."""
    return str(relation) if isinstance(given, str) else str(as_source(given))


#: The algorithms that are said so by name, and the suffixes of the tables that each publishes.
DECOMPOSITIONS = {
    "decomposition_plus": ("qid", "sa", "marginals"),
    "decomposition": ("qid", "sa", "marginals"),
    "anatomy": ("qit", "st"),
}
#: What a policy that names no algorithm has.
DEFAULT_ALGORITHM = "auto"
#: The algorithms whose labels do not follow from what is in a class: they are those of a cut, or stars.
OF_CUTS = ("annealing", "cuts", "hilbert", "incognito", "matching", "tds", "tp", "tp_plus")
#: The algorithms that make no class with two rows of one person, and those that choose among others.
KEEPS_APART, CHOOSING = ("bsgi",), (DEFAULT_ALGORITHM, "fast")
#: The column that joins the tables of a decomposition, and the one in which anatomy counts rows.
GROUP_ID, COUNT = "group_id", "n"


def completed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what it leaves to be understood.

    A decomposition's requirements stand with the attributes. One table of whose rows one is known is a schema of one.
    The quasi-identifiers of tables are the policy's, once these are read.
    """
    found = _as_schema(document)
    algorithm = found.get("algorithm")
    name = algorithm.get("name") if isinstance(algorithm, Mapping) else algorithm
    if found.get("tables") and "quasi_identifiers" not in found:
        found["quasi_identifiers"] = {"": {}}
    if isinstance(name, str) and name in DECOMPOSITIONS:
        return {"require": [], **found}
    return found


#: What is said of the one table of a schema.
_OF_TABLE = ("source", "target", "quasi_identifiers", "sensitive", "identifiers", "keep")


def _as_schema(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, of one table with people of whom one row is known as one of `tables`, called after its source."""
    individual, source = document.get("individual"), document.get("source")
    whose = individual.get("column") if isinstance(individual, Mapping) else individual
    is_one = isinstance(source, str | Mapping | SourceQuery) and "tables" not in document
    if document.get("known") != 1 or not is_one or not isinstance(whose, str):
        return dict(document)
    last = source.rpartition(".")[2] if isinstance(source, str) else ""
    name = last if last.isidentifier() else "rows"
    table = {key: document[key] for key in _OF_TABLE if key in document} | {"person": whose}
    listed = table.get("identifiers")
    if isinstance(listed, list):
        table["identifiers"] = [one for one in listed if one != whose]
    require = document.get("require")
    beside = {"require": [_named(one, name) for one in require] if isinstance(require, list) else require}
    return {key: said for key, said in document.items() if key not in _OF_TABLE} | beside | {"tables": {name: table}}


def _named(required: Any, table: str) -> Any:
    """A requirement as it is written, the columns that it names under the name of their table."""
    if not isinstance(required, Mapping):
        return required
    found = {key: _named(said, table) if isinstance(said, Mapping) else said for key, said in required.items()}
    if isinstance(of := found.get("sensitive"), str | list):
        found["sensitive"] = [f"{table}.{one}" for one in ([of] if isinstance(of, str) else of)]
    return found


def policy_document(policy: PolicyPart) -> dict[str, Any]:
    """The keys that were set of a policy, as a mapping that `parse_policy` reads, without a source that is a frame."""
    written = policy.model_dump(exclude_unset=True, exclude={"source", "require"})
    document: dict[str, Any] = {}
    for key in type(policy).model_fields:
        said = getattr(policy, key)
        if key == "source" and not isinstance(said, Frame):
            document[key] = {"query": said.query} if isinstance(said, SourceQuery) else said
        elif key == "require":
            document[key] = [spec.written for spec in said]
        elif key in ("quasi_identifiers", "sensitive") and key in written:
            document[key] = written[key] if any(written[key].values()) else list(written[key])
        elif key in written:
            document[key] = written[key]
    return {key: _plain(part) for key, part in document.items()}


def _plain(part: Any) -> Any:
    """The part in what YAML has: a decimal is a number where that is the same, else a text, which reads alike."""
    if isinstance(part, Mapping):
        return {key: _plain(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(value) for value in part]
    if isinstance(part, Decimal):
        number = int(part) if part == int(part) else float(part)
        return number if Decimal(str(number)) == part else str(part)
    return part
