"""A policy as it is written: what a table holds, what must be true of its release, and how to get there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr, StrictBool, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from ldiv_db.database.errors import Problem, refused
from ldiv_db.policy.context import ReleaseContext
from ldiv_db.policy.parts import PolicyPart, Sensitive, read_requirement
from ldiv_db.policy.release_columns import Form, ReleaseColumns
from ldiv_db.policy.settings import (
    AlgorithmSpec,
    Attributes,
    GivenAlgorithm,
    GivenExpand,
    GivenIndividual,
    GivenRecode,
    Individual,
    Output,
    QuasiIdentifier,
    QuasiIdentifiers,
    Recode,
    Seed,
    SetsUpTo,
    draw_seed,
)
from ldiv_db.policy.sources import (
    CHOOSING,
    DECOMPOSITIONS,
    DEFAULT_ALGORITHM,
    KEEPS_APART,
    OF_CUTS,
    UNSPECIFIED,
    GivenSource,
    as_source,
    completed,
    policy_document,
)
from ldiv_db.policy.tables import PolicyTable, qualified
from ldiv_db.policy.targets import ONLY, GivenTarget, Target
from ldiv_db.requirements import RequirementSpec

#: The most rows of a part of a table that is divided, where the policy does not say it: the fewer parts, the less time
#: (docs/benchmarks.md).
PART_ROWS = 4_000_000
#: What stands between the sources of a release of several tables, in the ledger.
BETWEEN = " & "


class Policy(PolicyPart):
    """A whole policy; see the policy reference for every key.

    A source and a target may be left out: where a frame is given they are that frame, and a table in memory.
    Raises PolicyError with all that cannot be read; what does not go together is said where the policy is used.
    """

    if TYPE_CHECKING:  # what it takes is more than what it has: names for mappings, texts for parts

        def __init__(
            self,
            *,
            quasi_identifiers: str | Sequence[str] | Mapping[str, QuasiIdentifier | Mapping[str, Any] | None] = ...,
            require: Sequence[RequirementSpec | Mapping[str, Any]] = ...,
            suppression: float | None = ...,
            sensitive: str | Sequence[str] | Mapping[str, Sensitive | Mapping[str, Any] | None] = ...,
            source: Any = ...,
            target: Target | str | Mapping[str, Any] = ...,
            expand: str | Mapping[str, Any] | None = ...,
            databases: Mapping[str, str] = ...,
            identifiers: Sequence[str] = ...,
            keep: Sequence[str] = ...,
            individual: str | Individual | Mapping[str, Any] | None = ...,
            key: str | None = ...,
            nights: Literal["apart"] | None = ...,
            known: Literal["all", 1] = ...,
            weight: str | None = ...,
            algorithm: str | Mapping[str, Any] | AlgorithmSpec = ...,
            recode: Literal["tree", "set"] | Mapping[str, int] = ...,
            nulls: Literal["value", "suppress", "reject"] = ...,
            nulls_sensitive: Literal["reject", "suppress", "value"] = ...,
            suppressed: Literal["judge", "ignore", "unknown"] = ...,
            output: Output | Mapping[str, Any] = ...,
            preserve: Sequence[str] = ...,
            tables: Mapping[str, PolicyTable | Mapping[str, Any]] = ...,
            tables_of: Sequence[Sequence[str]] = ...,
            transparent: bool = ...,
            part_rows: int = ...,
            seed: int = ...,
            context: ReleaseContext | Mapping[str, Any] = ...,
        ) -> None: ...

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
    _path: Path | None = PrivateAttr(None)
    _written: Any = PrivateAttr(None)
    _unread: tuple[Problem, ...] = PrivateAttr(())
    _lists_all: bool = PrivateAttr(True)

    source: GivenSource = UNSPECIFIED
    databases: dict[str, str] = Field(default_factory=dict)
    target: GivenTarget = Target()
    expand: GivenExpand = None
    quasi_identifiers: QuasiIdentifiers = Field(min_length=1)
    sensitive: Attributes = Field(default_factory=dict)
    require: list[Annotated[RequirementSpec, BeforeValidator(read_requirement)]]
    suppression: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] | None = None
    identifiers: list[str] = Field(default_factory=list)
    keep: list[str] = Field(default_factory=list)
    individual: GivenIndividual = None
    key: str | None = None
    nights: Literal["apart"] | None = None
    known: Literal["all", 1] = "all"
    weight: str | None = None
    algorithm: GivenAlgorithm = AlgorithmSpec()
    recode: GivenRecode = None
    nulls: Literal["value", "suppress", "reject"] = "value"
    nulls_sensitive: Literal["reject", "suppress", "value"] = "reject"
    suppressed: Literal["judge", "ignore", "unknown"] = "judge"
    output: Output = Output()
    preserve: list[str] = Field(default_factory=list)
    tables: Annotated[dict[str, PolicyTable], Field(min_length=1)] = Field(
        default_factory=dict, description="several tables that are one release, in place of `source` and its columns"
    )
    tables_of: list[Annotated[list[str], Field(min_length=1)]] = Field(default_factory=list)
    transparent: StrictBool = False
    over_time: Literal["independent"] | None = None
    part_rows: StrictInt = Field(default=PART_ROWS, ge=2)
    seed: Seed = Field(default_factory=draw_seed)
    context: ReleaseContext = ReleaseContext()

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, document: Any) -> Any:
        return completed(document) if isinstance(document, Mapping) else document

    @model_validator(mode="after")
    def _take_columns(self) -> Self:
        """The quasi-identifiers and sensitive columns of all tables, each named after its table and a dot."""
        if "" in self.quasi_identifiers and self.tables:
            self.model_fields_set.discard("quasi_identifiers")
            object.__setattr__(self, "quasi_identifiers", qualified(self.tables, "quasi_identifiers"))
            if "sensitive" not in self.model_fields_set:
                object.__setattr__(self, "sensitive", qualified(self.tables, "sensitive"))
        return self

    @model_validator(mode="after")
    def _take_rows(self) -> Self:
        """Where people's rows stand, in what order, and which is which, in tables that do not say it themselves."""
        if self.individual is not None:
            told = {n: t.model_copy(update=t.by_default(self.individual, self.key)) for n, t in self.tables.items()}
            object.__setattr__(self, "tables", told)
        return self

    @model_validator(mode="after")
    def _settle_algorithm(self) -> Self:
        """The algorithm that only one can be: of transparent releases, and of people over time in one promise."""
        people_over_time = self.key is not None and self.individual is not None and not (self.nights or self.tables)
        if self.algorithm.name == DEFAULT_ALGORITHM and (people_over_time or self.transparent):
            settled = AlgorithmSpec.model_validate({"name": KEEPS_APART[0], **self.algorithm.options})
            object.__setattr__(self, "algorithm", settled)  # frozen to everybody else
        return self

    def __repr__(self) -> str:
        """The source, the columns and the requirements alone: a seed may be a secret, and a frame has rows."""
        asked = ", ".join(f"{spec.name}: {spec.argument}" for spec in self.require)
        keys, sensitive = ", ".join(self.quasi_identifiers), ", ".join(self.sensitive)
        return f"Policy(source={self.source}, quasi_identifiers=[{keys}], sensitive=[{sensitive}], require=[{asked}])"

    __str__ = __repr__

    @property
    def path(self) -> Path | None:
        """The file that it was read from, None if it was not."""
        return self._path

    @property
    def written(self) -> Any:
        """The document in that file."""
        return self._written

    def read_from(self, path: Path, written: Any) -> Self:
        """Itself, as read from the file at `path`."""
        self._path, self._written = path, written
        return self

    @property
    def unread(self) -> Sequence[Problem]:
        """The problems of the parts that could not be read, and that it lacks therefore."""
        return self._unread

    @property
    def lists_all(self) -> bool:
        """True unless columns may have been listed in a part that could not be read."""
        return self._lists_all

    def without(self, unread: Iterable[Problem], lists_all: bool) -> Self:
        """Itself, as read from a document with parts that could not be read."""
        self._unread, self._lists_all = tuple(unread), lists_all
        return self

    def with_source(self, source: Any) -> Policy:
        """The same policy of another source: a name, a query, a frame or a relation."""
        try:
            return self.model_copy(update={"source": as_source(source)})
        except PydanticCustomError as error:
            raise refused("source", error.message()) from None

    def to_yaml(self) -> str:
        """The policy as a YAML document, which `read_policy` reads; a frame that is its source is left out."""
        return yaml.safe_dump(policy_document(self), sort_keys=False, allow_unicode=True)

    @property
    def places(self) -> str:
        """Where its release goes: its target, or those of its tables."""
        return ", ".join(map(str, self.targets.values()))

    @property
    def targets(self) -> dict[str, Target]:
        """Its target, or those of its tables, by the names of these."""
        return {name: table.target for name, table in self.tables.items()} or {ONLY: self.target}

    @property
    def reads(self) -> str:
        """What the ledger calls its source, or those of its tables together."""
        return BETWEEN.join(str(one.source) for one in (self.tables.values() or [self]))

    @property
    def left_out_at_most(self) -> Decimal | None:
        """The share of rows that may be left out, None for any; none may where means of rows in their order tell."""
        if self.output.centres and (self.is_aligned or self.tables):
            return Decimal(0)
        return None if self.suppression is None else Decimal(repr(self.suppression))

    @property
    def decomposes(self) -> bool:
        """True if quasi-identifiers are published as they are, and sensitive values in tables of their own."""
        return self.algorithm.name in DECOMPOSITIONS

    @property
    def is_apart(self) -> bool:
        """True if several tables are published without links, each as a release of its own."""
        whose = self.individual
        return bool(self.tables) and whose is not None and "rows" in whose.model_fields_set and whose.rows == "apart"

    @property
    def knows_one(self) -> bool:
        """True if of the person sought one row is known beside those of the table of people, and no number of rows."""
        return self.known == 1

    @property
    def is_series(self) -> bool:
        """True if the source is published again and again as it changes."""
        return self.decomposes or self.key is not None or bool(self.tables and self.nights)

    @property
    def counts_people(self) -> bool:
        """True if requirements are on people; else rows are counted, and those of a person kept apart if it is named.

        They are by BSGI, and where the algorithm is left open and something is asked of rows that people cannot be
        asked.
        """
        if self.individual is None or self.individual.rows != "apart":
            return self.individual is not None
        of_rows = any(spec.kind.on_people is None or spec.others_known for spec in self.require)
        on_rows = self.algorithm.name in CHOOSING and (of_rows or self.suppressed != "judge")
        return not (on_rows or self.decomposes or self.algorithm.name in KEEPS_APART)

    @property
    def by_rows(self) -> bool:
        """True if requirements are on people, and on rows as well: each that stands apart is protected by itself."""
        return self.counts_people and self.individual is not None and self.individual.rows == "apart"

    @property
    def is_aligned(self) -> bool:
        """True if the rows of a person are published in their order."""
        return self.individual is not None and self.individual.rows == "aligned"

    @property
    def names_algorithm(self) -> bool:
        """True if it says which algorithm is to run, be that one that chooses among others."""
        return "algorithm" in self.model_fields_set

    @property
    def publishes_class_id(self) -> bool:
        """True if the release has a column `class_id`; by default exactly where it is needed."""
        return self.needs_class_id is not None if self.output.class_id is None else self.output.class_id

    @property
    def needs_class_id(self) -> str | None:
        """The part that cannot be audited without class ids: classes with equal labels cannot be told apart."""
        asked = [spec.name for spec in self.require if not spec.kind.monotone]
        repeats = "key" if self.is_series and not self.decomposes else None
        apart = self.individual is not None and self.individual.rows == "apart"
        return asked[0] if asked else "individual" if apart and not self.decomposes else repeats

    @property
    def primary(self) -> str:
        """The sensitive attribute that a decomposition's groups are made on: the one that is named, or the first."""
        return str(self.algorithm.options.get("primary") or next(iter(self.sensitive), ""))

    def recode_of(self, name: str) -> Recode:
        """What classes publish of a quasi-identifier without plain ranges: sets, where nothing else is said of it.

        Labels of cuts do not follow from what a class has.
        """
        own = self.quasi_identifiers[name]
        by_rule = self.weight is not None and not self.names_algorithm  # which SQL can repeat
        of_cuts = by_rule or self.algorithm.name in OF_CUTS or any(spec.counts_people for spec in self.require)
        return own.recode or self.recode or ("set" if own.is_open and not of_cuts else "tree")

    @property
    def released(self) -> ReleaseColumns:
        """The columns that a release has."""
        output, named = self.output, self.quasi_identifiers.items()
        recodes = {name: self.recode_of(name) for name in self.quasi_identifiers}
        forms: dict[str, Form] = {name: qi.form(recodes[name], output.bounds) for name, qi in named}
        most = {name: one.set for name, one in recodes.items() if isinstance(one, SetsUpTo) and forms[name] == "set"}
        forms |= {name: centre for name, centre in output.centres.items() if name in forms}
        people = output.people(self.is_aligned)
        lists, shown = tuple(name for name in output.lists if name in forms), self.publishes_class_id
        return ReleaseColumns(forms, tuple(self.sensitive), tuple(self.keep), shown, *people, lists, most)

    def requiring(self, require: Sequence[RequirementSpec]) -> Policy:
        """The same with other requirements."""
        return self.model_copy(update={"require": list(require)})

    def roles(self) -> list[tuple[str, str]]:
        """Every (key, column) that the policy classifies, in its order."""
        keys: list[tuple[str, str]] = [("identifiers", name) for name in self.identifiers]
        keys += [("quasi_identifiers", name) for name in self.quasi_identifiers]
        keys += [("sensitive", name) for name in self.sensitive]
        whose = self.individual.column if self.individual else None
        for role, column in (("individual", whose), ("key", self.key)):
            if column and column.lower() not in map(str.lower, self.identifiers):
                keys.append((role, column))
        keys += [("weight", self.weight)] if self.weight else []
        keys += [("keep", name) for name in self.keep]
        order = self.individual.order if self.individual else None
        alone = order and order.lower() not in {name.lower() for _, name in keys}  # it may have another role as well
        return keys + ([("order", order)] if order and alone else [])
