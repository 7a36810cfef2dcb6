"""A policy: what a table holds, what must be true of its release, and how to get there.

Read from YAML or given as a mapping; every problem is reported at once, with its key, what is wrong
and the nearest right name.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ldiv_db.database.catalog import Column
from ldiv_db.database.equality import equal_problems
from ldiv_db.database.errors import PolicyError, Problem, nearest, what_is_wrong
from ldiv_db.database.yaml_documents import read_document
from ldiv_db.policy.parts import VALUES, Document, Part, Sensitive, TaxonomySpec, named_taxonomy, read_requirement
from ldiv_db.policy.release_columns import name_clashes
from ldiv_db.policy.series import DECOMPOSITIONS, as_decomposition, series_problems
from ldiv_db.requirements import RequirementSpec


class QuasiIdentifier(Part):
    """One quasi-identifier: its taxonomy, or `numeric: true` for plain ranges, and its weight in losses."""

    taxonomy: Annotated[TaxonomySpec | None, BeforeValidator(named_taxonomy)] = None
    numeric: bool = False
    recode: Literal["tree", "set"] | None = None
    weight: float = Field(default=1.0, ge=0, le=1_000_000)

    def problems(self, key: str) -> list[Problem]:
        if (self.taxonomy is None) != self.numeric:
            return [Problem(key, "takes either `taxonomy:` or `numeric: true`")]
        if self.numeric and self.recode == "set":
            return [Problem(f"{key}.recode", "sets are of a taxonomy's leaves; numbers are published as ranges")]
        return self.taxonomy.problems(f"{key}.taxonomy") if self.taxonomy else []


#: The endings of files that a release may go to, and their formats.
TARGET_FILES = {".duckdb": "duckdb", ".db": "duckdb", ".ddb": "duckdb", ".parquet": "parquet", ".csv": "csv"}


class Target(Part):
    """Where the release goes: a table of the source's database, or a file of its own."""

    table: str | None = None
    file: str | None = None
    prefix: str | None = None
    if_exists: Literal["fail", "replace", "append"] = "fail"

    def __str__(self) -> str:
        return ":".join(part for part in (self.file, self.table or self.prefix) if part)

    @property
    def format(self) -> str | None:
        """The file's format by its ending, None for one that we do not write."""
        return TARGET_FILES.get(Path(self.file or "").suffix.lower())

    def problems(self) -> list[Problem]:
        if "\0" in (self.file or ""):
            return [Problem("target.file", "holds a character that no file's name has")]
        if self.prefix is not None:
            return []
        if self.file is None:
            return [] if self.table else [Problem("target", "takes `table:`, `file:` or both")]
        found = []
        if self.format is None:
            found.append(Problem("target.file", f"{self.file} has none of the endings {', '.join(TARGET_FILES)}"))
        elif self.format == "duckdb" and not self.table:
            found.append(Problem("target.table", "is required: the name of the table in the file"))
        elif self.format != "duckdb" and self.table:
            found.append(Problem("target.table", "goes with a DuckDB file, this one holds one table without a name"))
        if self.if_exists == "append":
            found.append(Problem("target.if_exists", "append goes with a table of the source's database", "or replace"))
        return found


def _target(value: Any) -> Any:
    """A name alone: a file if it ends like one, otherwise a table."""
    if not isinstance(value, str):
        return value
    return {"file" if Path(value).suffix.lower() in TARGET_FILES else "table": value}


class Output(Part):
    """What the release shows besides its columns."""

    class_id: bool | None = None
    bounds: bool = False


class Algorithm(BaseModel):
    """The algorithm's name; its options are checked by the algorithm itself."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = "bsgi"

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


def _columns(value: Any) -> Any:
    """A list of column names as a mapping to empty settings."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return {name: {} for name in value}
    if isinstance(value, Mapping):
        return {name: {} if settings is None else settings for name, settings in value.items()}
    return value


#: Bits of a seed that we draw, too many for all to be tried, and of any: it is bound as an integer of 128 bits.
_DRAWN_BITS, _MOST_BITS = 120, 127


def draw_seed() -> int:
    """A seed that nobody can guess, drawn by the operating system."""
    return secrets.randbits(_DRAWN_BITS)


def _in_range(seed: int) -> int:
    if not 0 <= seed < 2**_MOST_BITS:
        raise ValueError(f"takes a whole number from 0 to 2^{_MOST_BITS} - 1")
    return seed


class Policy(Document):
    """A whole policy; see the README's policy reference for every key."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    source: str
    target: Annotated[Target, BeforeValidator(_target)]
    quasi_identifiers: dict[str, QuasiIdentifier] = Field(min_length=1)
    sensitive: Annotated[dict[str, Sensitive], BeforeValidator(_columns)] = Field(min_length=1)
    require: list[Annotated[RequirementSpec, BeforeValidator(read_requirement)]]
    identifiers: list[str] = Field(default_factory=list)
    keep: list[str] = Field(default_factory=list)
    individual: str | None = None
    key: str | None = None
    algorithm: Annotated[Algorithm, BeforeValidator(lambda v: {"name": v} if isinstance(v, str) else v)] = Algorithm()
    recode: Literal["tree", "set"] = "tree"
    nulls: Literal["value", "suppress", "reject"] = "value"
    nulls_sensitive: Literal["reject", "suppress", "value"] = "reject"
    suppressed: Literal["judge", "ignore", "unknown"] = "judge"
    output: Output = Output()
    seed: Annotated[int, AfterValidator(_in_range)] = Field(default_factory=draw_seed)

    @property
    def decomposes(self) -> bool:
        """Whether quasi-identifiers are published as they are, and sensitive values in tables of their own."""
        return self.algorithm.name in DECOMPOSITIONS

    @property
    def is_series(self) -> bool:
        """Whether the source is published again and again as it changes."""
        return self.decomposes or self.key is not None

    @property
    def publishes_class_id(self) -> bool:
        """Whether the release has a column `class_id`; by default exactly where it is needed."""
        return self.needs_class_id is not None if self.output.class_id is None else self.output.class_id

    @property
    def needs_class_id(self) -> str | None:
        """What cannot be audited without class ids: classes published with equal labels cannot be told apart."""
        asked = [spec.name for spec in self.require if not spec.kind.monotone]
        repeats = "key" if self.is_series and not self.decomposes else None
        return asked[0] if asked else "individual" if self.individual else repeats

    def roles(self) -> list[tuple[str, str]]:
        """Every (key, column) that the policy classifies, in its order."""
        keys: list[tuple[str, str]] = [("identifiers", name) for name in self.identifiers]
        keys += [("quasi_identifiers", name) for name in self.quasi_identifiers]
        keys += [("sensitive", name) for name in self.sensitive]
        for role, column in (("individual", self.individual), ("key", self.key)):
            if column and column.lower() not in map(str.lower, self.identifiers):
                keys.append((role, column))
        return keys + [("keep", name) for name in self.keep]


def read_policy(path: str | Path) -> Policy:
    """The policy in a YAML file; raises PolicyError with everything that is wrong with it."""
    return parse_policy(read_document(Path(path), "policy", [VALUES])).read_from(Path(path))


def parse_policy(document: Any) -> Policy:
    """The policy of a mapping; raises PolicyError with everything that is wrong with it."""
    if isinstance(document, Policy):
        return document
    if not isinstance(document, Mapping):
        raise PolicyError([Problem("policy", "is empty" if document is None else "is not a mapping of keys")])
    try:
        policy = Policy.model_validate(as_decomposition(document))
    except ValidationError as error:
        raise PolicyError([_problem(item) for item in error.errors()]) from None
    problems = series_problems(policy)
    if not policy.decomposes:
        problems += [
            p for name, qi in policy.quasi_identifiers.items() for p in qi.problems(f"quasi_identifiers.{name}")
        ]
    problems += [p for name, attribute in policy.sensitive.items() for p in attribute.problems(f"sensitive.{name}")]
    problems += _require_problems(policy)
    problems += _twice(policy) + policy.target.problems()
    needing = policy.needs_class_id
    if needing and not policy.publishes_class_id:
        hint = "or require frequency" if needing in [spec.name for spec in policy.require] else ""
        problems.append(Problem("output.class_id", f"{needing} can only be audited with class ids", hint))
    if problems:
        raise PolicyError(problems)
    return policy


def _require_problems(policy: Policy) -> list[Problem]:
    """Requirements that are none, and those for attributes that are not sensitive."""
    known = {name.lower() for name in policy.sensitive}
    problems = []
    for number, spec in enumerate(policy.require):
        problems += spec.problems(f"require.{number}")
        problems += [
            Problem(f"require.{number}.sensitive", f"{name!r} is not sensitive", nearest(name, policy.sensitive))
            for name in spec.sensitive
            if name.lower() not in known
        ]
    return problems


def _problem(item: Mapping[str, Any]) -> Problem:
    """A pydantic error in our words."""
    key = ".".join(str(part) for part in item["loc"] if not str(part).startswith("function-")) or "policy"
    if item["type"] == "extra_forbidden":
        owner = _owner(item["loc"])
        return Problem(key, "unknown key", nearest(str(item["loc"][-1]), owner.model_fields))
    if item["type"] == "missing":
        return Problem(key, "is required")
    return Problem(key, what_is_wrong(item))


def _owner(location: tuple[Any, ...]) -> type[BaseModel]:
    """The part of the policy in which a key at `location` stands."""
    if len(location) == 1:
        return Policy
    if "taxonomy" in location[:-1]:
        return TaxonomySpec
    parts: dict[str, type[BaseModel]] = {
        "quasi_identifiers": QuasiIdentifier,
        "sensitive": Sensitive,
        "target": Target,
        "output": Output,
    }
    return parts.get(str(location[0]), Policy)


def _twice(policy: Policy) -> list[Problem]:
    """Columns that two keys classify; names are compared as the database compares them."""
    first: dict[str, str] = {}
    problems = []
    for key, column in policy.roles():
        if column.lower() in first:
            problems.append(Problem(f"{key}.{column}", f"is classified already under {first[column.lower()]}"))
        first.setdefault(column.lower(), key)
    return problems


def check_columns(policy: Policy, columns: list[Column]) -> None:
    """Check the policy against the source's columns.

    Raises PolicyError naming every column that the source lacks, every one that the policy leaves
    unclassified, and every quasi-identifier whose type does not fit.
    """
    known = {column.name.lower(): column for column in columns}
    problems = []
    for key, name in policy.roles():
        if name.lower() not in known:
            hint = nearest(name, [column.name for column in columns])
            problems.append(Problem(f"{key}.{name}", "the source has no such column", hint))
    listed = {name.lower() for _, name in policy.roles()}
    for column in columns:
        if column.name.lower() not in listed:
            way_out = "list it under identifiers, quasi_identifiers, sensitive or keep"
            problems.append(
                Problem(column.name, "is a column of the source that the policy does not classify", way_out)
            )
    for key, name in policy.roles():
        if key in ("quasi_identifiers", "sensitive") and name.lower() in known:
            problems += equal_problems(f"{key}.{name}", known[name.lower()])
    for name, qi in policy.quasi_identifiers.items() if not policy.decomposes else ():
        if found := known.get(name.lower()):
            problems += _type_problems(f"quasi_identifiers.{name}", qi, found)
    problems += [] if policy.decomposes else name_clashes(policy)
    if problems:
        raise PolicyError(problems)


def _type_problems(key: str, qi: QuasiIdentifier, column: Column) -> list[Problem]:
    """What the column's type does not allow."""
    spec = qi.taxonomy
    if qi.numeric and not (column.is_number or column.is_time):
        return [
            Problem(
                key, f"ranges need numbers, dates or timestamps, the column is {column.shown}", "give it a taxonomy"
            )
        ]
    if spec and spec.ranges and not column.is_number:
        return [Problem(key, f"ranges need numbers, the column is {column.shown}")]
    if spec and spec.dates and not column.is_time:
        return [Problem(key, f"stretches of time need dates or timestamps, the column is {column.shown}")]
    return []
