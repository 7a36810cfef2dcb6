"""Quasi-identifiers of a policy, held against the columns of its source, and how their values generalise.

Every column must be classified. Where a policy leaves open how values generalise, it is inferred from the column.
A taxonomy of the column's name in the catalog comes first, if it has a leaf for each value. Otherwise the type decides:
numbers, dates and times become ranges, anything else is published as itself or as a set. Nothing is guessed from what
values look like: that numbers are codes, or that the beginning of a text is a region, is for people to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database.catalog import Column
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import equal_problems, read_exactly
from ldiv_db.database.errors import Problem, count_phrase, nearest, refused
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.readings import read_by
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems, TaxonomySpec
from ldiv_db.policy.settings import QuasiIdentifier, written_recode
from ldiv_db.policy.sources import open_source
from ldiv_db.taxonomies import making, readers
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.making import Level
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: The code of NULL among a column's values: it is never missing, and needs no leaf.
NULL_CODE = -1
#: Columns of these keys the counts of rows need not have.
NOT_COUNTED = ("identifiers", "keep")
#: Whole numbers that a BIGINT holds.
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


def open_columns(engine: Engine, policy: Policy, folder: Path) -> Table:
    """The source of a policy, its quasi-identifiers read as the policy has it; raises PolicyError."""
    return read_columns(engine, policy, open_source(engine, policy.source, folder))


def read_columns(engine: Engine, policy: Policy, table: Table) -> Table:
    """A table or file with columns of the source, those read so of which the policy says how; raises PolicyError."""
    told = {name: qi for name, qi in policy.quasi_identifiers.items() if qi.is_read}
    return read_by(
        engine, table, [qi.reading(name) for name, qi in told.items()], partial(cast_of_texts, engine, table)
    )


def without_uncounted(policy: Policy, columns: Sequence[Column]) -> Policy:
    """The policy without the columns that only the rows have of which its source holds the counts."""
    if policy.weight is None:
        return policy
    known = {column.name.lower() for column in columns}
    return policy.model_copy(
        update={key: [name for name in getattr(policy, key) if name.lower() in known] for key in NOT_COUNTED}
    )


def column_problems(
    policy: Policy, columns: Sequence[Column], lists_all: bool = True, cast: Callable[[Column], str] = lambda _: ""
) -> list[Problem]:
    """Columns that the source lacks, those that the policy leaves unclassified, and types that do not fit.

    `cast` says how to read a column of texts as what they stand for. Unless the policy `lists_all` of its columns,
    others may be classified in what could not be read.
    """
    known = {column.name.lower(): column for column in columns}
    problems, listed = list(_missing(policy, columns)), {name.lower() for _, name in policy.roles()}
    if forgotten := [column.name for column in columns if lists_all and column.name.lower() not in listed]:
        which = f"a column {forgotten[0]}" if len(forgotten) == 1 else f"columns {', '.join(forgotten)}"
        way_out = "list each under identifiers, quasi_identifiers, sensitive or keep"
        problems.append(Problem("source", f"has {which} that the policy does not classify", way_out))
    for key, name in policy.roles():
        if key in ("quasi_identifiers", "sensitive") and name.lower() in known:
            problems += equal_problems(f"{key}.{name}", known[name.lower()])
        if key == "weight" and name.lower() in known and not known[name.lower()].is_number:
            what = f"takes a column of whole numbers, {name} is {known[name.lower()].shown}"
            problems.append(Problem("weight", what))
    order = known.get(((policy.individual.order if policy.individual else None) or "").lower())
    if order and not (order.is_number or order.is_time or order.type == "VARCHAR"):
        what = f"takes numbers, dates, timestamps or texts, {order.name} is {order.shown}"
        problems.append(Problem("individual.order", what, "CAST it in a query as the source"))
    if policy.decomposes:
        return problems
    for name, qi in policy.quasi_identifiers.items():
        if found := known.get(name.lower()):
            problems += _type_problems(f"quasi_identifiers.{name}", qi, found, cast)
            centre = policy.output.centres.get(name)
            if centre and not (qi.numeric and found.type in _WHOLE):
                what = f"a {centre} is of whole numbers of up to 64 bits under `numeric: true`"
                problems.append(Problem(f"output.{name}", what, "round them in a view, or leave it out"))
    return [*problems, *policy.released.clashes()]


def _missing(policy: Policy, columns: Sequence[Column]) -> Iterator[Problem]:
    names = [column.name for column in columns]
    known = {name.lower() for name in names}
    for key, name in policy.roles():
        if name.lower() not in known and not (policy.weight and key in NOT_COUNTED):
            yield Problem(f"{key}.{name}", "the source has no such column", nearest(name, names))


def _type_problems(key: str, qi: QuasiIdentifier, column: Column, cast: Callable[[Column], str]) -> Iterator[Problem]:
    spec = qi.taxonomy
    if qi.numeric and not (column.is_number or column.is_time):
        what = f"ranges need numbers, dates or timestamps, the column is {column.shown}"
        yield Problem(key, what, cast(column) or "give it a taxonomy")
    elif qi.has_ends and not column.is_number:
        yield Problem(key, f"`bottom` and `top` need numbers, the column is {column.shown}", "leave them out")
    elif qi.same and column.type != "VARCHAR":
        yield Problem(f"{key}.same", f"is for texts, the column is {column.shown}", "leave it out")
    elif spec and spec.ranges and not column.is_number:
        yield Problem(key, f"ranges need numbers, the column is {column.shown}", cast(column))
    elif spec and spec.dates and not column.is_time:
        what = f"stretches of time need dates or timestamps, the column is {column.shown}"
        yield Problem(key, what, cast(column))


#: Forms in which dates and times are written as text; `%Y` reads two digits as well, as a year of the first century.
_DATE_FORMS = (
    "%Y-%m-%d", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y",
    "%d %b %Y", "%b %d, %Y", "%Y/%m/%d", "%Y%m%d", "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%g",
    "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S",
)  # fmt: skip


def cast_of_texts(engine: Engine, source: Table, column: Column) -> str:
    """How texts of a column that look like dates or numbers are read as these; empty if most of them do not."""
    if column.type != "VARCHAR":
        return ""
    forms = [{"alias": Identifier(f"form_{i}"), "written": Value(form)} for i, form in enumerate(_DATE_FORMS)]
    with read_exactly(engine, source) as read:
        counts = engine.record("taxonomies/count_dates", source=read, column=column.name, forms=forms)
    found = {form: counts[f"form_{i}"] for i, form in enumerate(_DATE_FORMS)}
    most, filled, name = max(found.values()), counts["filled"], Identifier(column.name).sql()
    fit = [form for form, count in found.items() if count == most]
    if most * 2 > filled:
        likely = [form for form in fit if form.replace("%Y", "%y") == form or form.replace("%Y", "%y") not in fit]
        kind = "TIMESTAMP" if "%H" in likely[0] else "DATE"
        tried = "try_" if filled > most else ""
        way = f"CAST({tried}strptime(nullif(trim({name}), ''), '{likely[0]}') AS {kind})"
        notes = [f"or {form}, which fits as well" for form in likely[1:]]
        notes += ["of years from 1969 to 2068"] if "%y" in likely[0] else []
        return _cast("dates", way, notes, filled - most)
    if counts["numbers"] * 2 > filled:
        rest = filled - counts["numbers"]
        return _cast("numbers", f"{'TRY_' if rest else ''}CAST(nullif(trim({name}), '') AS DOUBLE)", [], rest)
    return ""


def _cast(kind: str, way: str, notes: Sequence[str], rest: int) -> str:
    rests = [f"NULL for {count_phrase(rest, 'other text', 'other texts')}"] if rest else []
    listed = "".join(f", {note}" for note in [*notes, *rests])
    return f"its texts look like {kind}: {way} in a view or in `source: {{query: …}}` reads them{listed}"


@dataclass(frozen=True)
class Inferred:
    """The settings of a quasi-identifier that the policy leaves open, as it might write them, and the reason."""

    column: str
    settings: Mapping[str, Any]
    why: str

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it, keys as in the reference."""
        return {"column": self.column, "as": dict(self.settings), "why": self.why}


def infer(
    engine: Engine, policy: Policy, source: Table, columns: Sequence[Column]
) -> tuple[Policy, tuple[Inferred, ...]]:
    """The policy with what it leaves open of its quasi-identifiers, and what that is.

    Those that the source lacks stay open, and so do all of a decomposition, which publishes them as they are.
    """
    types = {column.name.lower(): column for column in columns}
    open_keys = {} if policy.decomposes else {n: qi for n, qi in policy.quasi_identifiers.items() if qi.is_open}
    there = {name: types[name.lower()] for name in open_keys if name.lower() in types}
    named = taxonomies.stored(engine) if there else {}
    found = {n: _infer(engine, source, replace(column, name=n), n in named, policy) for n, column in there.items()}
    settled = policy.quasi_identifiers | {
        name: open_keys[name].settled(**inferred.settings) for name, inferred in found.items()
    }
    return policy.model_copy(update={"quasi_identifiers": settled}), tuple(found.values())


def inferred_problems(policy: Policy, found: Sequence[Inferred]) -> Iterator[Problem]:
    """Settings of quasi-identifiers that exclude the inferred ones."""
    for one in found:
        yield from policy.quasi_identifiers[one.column].problems(f"quasi_identifiers.{one.column}")


def covers(engine: Engine, taxonomy: Taxonomy, source: Table, column: Column) -> bool:
    """True if a taxonomy has a leaf for each value of the source's column; NULL needs none."""
    if taxonomy.by_range and not column.is_number:
        return False
    with engine.scope(), read_exactly(engine, source) as read:
        dictionary = number_values(engine, taxonomy, read, Identifier(column.name))
        return not engine.rows("taxonomies/list_missing_values", dictionary=dictionary, show_values=False)


def number_values(
    engine: Engine, taxonomy: Taxonomy, rows: Table, column: Identifier, levels: Sequence[Level] = ()
) -> Relation:
    """A column's values with their rows and the numbers of their leaves: NULL_CODE of NULL, NULL where they have none.

    `levels` are those by which the taxonomy was made of the values, if it was.
    """
    return engine.materialise(
        "dictionary",
        "taxonomies/map_leaves",
        rows=rows,
        nodes=taxonomies.load(engine, taxonomy, "known"),
        column=column,
        by_range=taxonomy.by_range,
        levels=levels,
        null_code=NULL_CODE,
        weight=None,
    )


def written(settings: Mapping[str, Any]) -> str:
    """Settings as a policy has them, on one line: `taxonomy: {flat: true}`."""
    return yaml.safe_dump(dict(settings), default_flow_style=True, width=float("inf"), allow_unicode=True).strip()[1:-1]


def _infer(engine: Engine, source: Table, column: Column, named: bool, policy: Policy) -> Inferred:
    """The settings for a column's values; `named` says that the catalog has a taxonomy of its name."""
    given, sets = policy.quasi_identifiers[column.name], written_recode(policy.recode_of(column.name))
    taxonomy = (
        taxonomies.fetch(engine, column.name) if named and not given.same and not equal_problems("", column) else None
    )
    if taxonomy is not None and covers(engine, taxonomy, source, column):
        why = "the catalog has a taxonomy of that name, with a leaf for every value"
        return Inferred(column.name, {"taxonomy": column.name}, why)
    aside = "; the catalog's taxonomy of that name lacks values" if taxonomy is not None else ""
    if (column.is_number or column.is_time) and not given.refuses_ranges:
        return Inferred(column.name, {"numeric": True}, f"{column.shown}: ranges{aside}")
    shown = f"{column.shown}: itself, or {'a set' if sets else '*'}{aside}"
    return Inferred(column.name, {"taxonomy": {"flat": True}, **sets}, shown)


@dataclass(frozen=True)
class Hierarchy:
    """By a taxonomy, by levels made of the values themselves (called `origin`), by nested ranges, or as plain numbers.

    Nested ranges have `widths` and begin at `start` plus multiples of them; plain numbers have none of all these.
    """

    taxonomy: Taxonomy | None = None
    levels: tuple[Level, ...] = ()
    #: The most characters of values, if levels are prefixes of them.
    prefix: int | None = None
    origin: str = ""
    widths: tuple[float, ...] | None = None
    start: float = 0
    #: All numbers below the first are one value, and all from the second on.
    ends: making.Ends = (None, None)
    #: What values are that have a leaf, in words, where levels do not take any.
    form: str = ""
    is_shown: bool = False  # as they are

    @property
    def is_plain(self) -> bool:
        """True if values are numbers of which every range can be published."""
        return self.taxonomy is None and not self.levels and self.widths is None

    @property
    def by_range(self) -> bool:
        """True if labels are ranges of numbers or times."""
        return not self.levels and (self.taxonomy is None or self.taxonomy.by_range)

    @property
    def is_flat(self) -> bool:
        """True if its only level is that of the values as they are."""
        return bool(self.levels) and self.prefix is None and not self.by_time

    @property
    def banded(self) -> bool:
        """True if labels are given to some values, or made of others, and do not follow from what values begin with."""
        return any(level.bands or level.same for level in self.levels)

    @property
    def by_time(self) -> bool:
        """True if its levels are stretches of time."""
        return any(level.unit for level in self.levels)


def read_hierarchy(engine: Engine, qi: QuasiIdentifier, folder: Path) -> Hierarchy:
    """The hierarchy of a quasi-identifier; raises PolicyError for a taxonomy that is not to be had."""
    if qi.numeric:
        return Hierarchy(ends=(qi.bottom, qi.top))
    spec = qi.taxonomy or TaxonomySpec()
    if made := _of_levels(engine, spec):
        return replace(made, levels=tuple(replace(level, same=tuple(qi.same)) for level in made.levels))
    if taxonomy := read_named_taxonomy(engine, spec, folder):
        return Hierarchy(taxonomy)
    return Hierarchy(widths=tuple(spec.ranges or ()), start=spec.origin, ends=(spec.bottom, spec.top))


def _of_levels(engine: Engine, spec: TaxonomySpec) -> Hierarchy | None:
    """The hierarchy of levels that are made of the values; None if the policy describes it otherwise."""
    if spec.name in making.LEVELS and not spec.skip and spec.name not in taxonomies.stored(engine):
        levels = making.LEVELS[spec.name]()
        made, form = making.LONGEST, making.FORMS[spec.name]
        return Hierarchy(levels=tuple(levels), prefix=made, origin=f"{spec.name}, of the program", form=form)
    if spec.prefix:
        levels = making.prefix_levels(spec.prefix)
        return Hierarchy(levels=tuple(levels), prefix=spec.prefix[0], origin=f"of prefixes {spec.prefix}")
    if spec.dates:
        levels = making.date_levels(spec.dates, spec.before)
        return Hierarchy(levels=tuple(levels), origin=f"of {', '.join(spec.dates)}")
    return Hierarchy(levels=(Level(Identifier("level_1")),), origin="of the values") if spec.flat else None


def read_named_taxonomy(engine: Engine, spec: TaxonomySpec | None, folder: Path) -> Taxonomy | None:
    """The taxonomy in a file or in the catalog; None if the policy describes it otherwise."""
    if spec is None or (spec.file is None and spec.name is None):
        return None
    if spec.file is not None:
        found = readers.read_taxonomy(folder / spec.file, spec.tree)
    else:
        found = making.require(engine, spec.name or "")
    if spec.skip > found.skippable:
        what = f"the taxonomy has {count_phrase(found.skippable, 'level', 'levels')} between its values and its root"
        raise refused("taxonomy.skip", what)
    return found.skipping(spec.skip) if spec.skip else found


def collect_hierarchies(
    engine: Engine, quasi_identifiers: Mapping[str, QuasiIdentifier], folder: Path, problems: Problems
) -> dict[str, Hierarchy]:
    """The hierarchies that are to be had; what is wrong with the others is added to `problems`."""
    found = {}
    for name, qi in quasi_identifiers.items():
        with problems.collected(f"quasi_identifiers.{name}"):
            found[name] = read_hierarchy(engine, qi, folder)
    return found
