"""Profiles: how identifying a table's columns are, what each is taken for and why, and which l its values allow.

Everything is counts: no value of the table is read, NULL being a value like any other wherever rows are told apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from ldiv_db.auditing.people_names import tells_thing
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.context import Listener
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step, read_exactly
from ldiv_db.database.errors import InfeasibleError, Problem, nearest, refuse
from ldiv_db.database.readings import read_by
from ldiv_db.database.requests import asked
from ldiv_db.display import Shown, fields_of
from ldiv_db.measuring.generalisations import FOLDED, Generalisation, GeneralisationFinder, refuse_sensitive
from ldiv_db.measuring.population_uniqueness import MOST_PEOPLE, refuse_population
from ldiv_db.measuring.roles import (
    IDENTIFIER,
    QUASI_IDENTIFIER,
    SENSITIVE,
    Keys,
    held_by,
    is_code_of_kinds,
    is_place,
    is_postal,
    is_repeated,
    may_be_people,
    names_people,
    numbers_people,
    why_by_name,
    why_by_values,
)
from ldiv_db.measuring.uniqueness import RARE, Summary, Uniqueness, forms_of, measure_uniqueness, summarise
from ldiv_db.measuring.written_numbers import Told, find_numbers, settings_of
from ldiv_db.policy.reading import names_of
from ldiv_db.requirements import Distribution
from ldiv_db.requirements.reading import LikelySets, find_sets

#: Why a column is not published where others were named.
NOT_NAMED = "not named"
#: What is shown of a profile: columns by themselves, then together.
COUNTING, COMBINING = "counting columns", "counting combinations"
#: Values of a sensitive column whose rows are listed, the most frequent first.
HISTOGRAM = 50


@dataclass(frozen=True)
class ProfileRequest:
    """The question of a profile: a table, and what its columns are said to be."""

    table: Any = None
    qi: str | Sequence[str] | None = asked(
        None, "Quasi-identifiers, comma-separated or repeated; by default guessed.", of=list[str] | None
    )
    sensitive: str | Sequence[str] = asked((), "A sensitive attribute; may be repeated.", of=list[str] | None)
    _: KW_ONLY
    population_size: int | None = asked(None, of=int | None, least=1, most=MOST_PEOPLE)
    hipaa: bool = asked(
        False,
        "Propose a policy for HIPAA's Safe Harbor.",
    )


@dataclass(frozen=True, kw_only=True)
class ColumnProfile(Summary):
    """A column in counts, its role and why it has it; a quasi-identifier has a way in which it is generalised.

    `forms` are how many of its values are written, none of which is there.
    """

    role: str
    reason: str
    way: Generalisation | None = None
    forms: tuple[str, ...] = ()


@dataclass(frozen=True)
class SensitiveProfile:
    """A sensitive column: how often its values occur, NULL being one, without the values.

    `folded` counts texts that differ by case and blanks at their ends alone as one; None where none do.
    """

    column: Column
    distribution: Distribution
    nulls: int
    folded: Distribution | None = None
    #: The sets of members that its values look like.
    sets: LikelySets | None = None

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def entropy(self) -> float:
        """Shannon's entropy of the values, in bits."""
        return self.distribution.bits


@dataclass(frozen=True, repr=False)
class Profile(Shown):
    """A table's columns and rows in counts; `uniqueness` is None if there is no quasi-identifier."""

    table: str
    rows: int
    columns: tuple[ColumnProfile, ...]
    uniqueness: Uniqueness | None
    sensitive: tuple[SensitiveProfile, ...]
    #: The column that may say whose a row is, of which somebody has several; None if there is none.
    individual: ColumnProfile | None = None
    #: True if columns are generalised as Safe Harbor has it.
    hipaa: bool = False

    def of_role(self, role: str) -> list[ColumnProfile]:
        """The columns of a role, in the table's order."""
        return [column for column in self.columns if column.role == role]

    def as_dict(self) -> dict[str, Any]:
        """The profile as JSON has it; shares are of all rows, 0..1."""
        return {
            "table": self.table,
            "rows": self.rows,
            "individual": self.individual.column.name if self.individual else None,
            "columns": [self._column(column) for column in self.columns],
            "uniqueness": self._uniqueness(),
            "sensitive": [self._sensitive(column) for column in self.sensitive],
        }

    def _column(self, profile: ColumnProfile) -> dict[str, Any]:
        return {
            "column": profile.column.name,
            "type": profile.column.shown,
            **fields_of(profile, "role", "reason"),
            "forms": list(profile.forms),
            **fields_of(profile, "distinct", "nulls"),
            "largest_share": profile.most / self.rows,
        }

    def _uniqueness(self) -> dict[str, Any] | None:
        uniqueness = self.uniqueness
        if uniqueness is None:
            return None
        return {
            **fields_of(uniqueness, "combinations", "unique_rows"),
            "unique_share": uniqueness.unique_rows / self.rows,
            f"rows_below_{RARE}": uniqueness.rare_rows,
            f"share_below_{RARE}": uniqueness.rare_rows / self.rows,
            "contributions": [
                {"column": name, "unique_rows_without": rows, "explains": uniqueness.unique_rows - rows}
                for name, rows in uniqueness.unique_without.items()
            ],
            "few_columns": [
                {"columns": list(few.columns), "combinations": few.combinations, "unique_rows": few.unique_rows}
                for few in uniqueness.small
            ],
            "population": uniqueness.population.as_dict() if uniqueness.population else None,
        }

    def _sensitive(self, profile: SensitiveProfile) -> dict[str, Any]:
        return {
            "column": profile.name,
            "distinct": profile.distribution.distinct,
            "distinct_folded": (profile.folded or profile.distribution).distinct,
            "nulls": profile.nulls,
            "sets": str(profile.sets) if profile.sets else None,
            "largest_share": profile.distribution.counts[0] / self.rows,
            "largest_l": profile.distribution.largest_l,
            "largest_l_folded": (profile.folded or profile.distribution).largest_l,
            "entropy": profile.entropy,
            "histogram": list(profile.distribution.counts[:HISTOGRAM]),
        }


def profile_table(
    engine: Engine,
    table: Table,
    request: ProfileRequest = ProfileRequest(),
    listener: Listener = Listener(),  # noqa: B008 - frozen
) -> Profile:
    """The profile of a table; the listener hears how many of the columns are counted.

    With the size of a population, of which the rows are a sample, it has how many of these are unique. With `hipaa`
    columns are published as Safe Harbor has it, or not at all.

    Without quasi-identifiers roles are guessed (`roles.py`); a column that cannot be generalised without
    a taxonomy of the user's is an identifier, as a policy to start from would have it. Raises PolicyError for columns
    that the table lacks or that have two roles and for a population smaller than the table, InfeasibleError for an
    empty table.
    """
    columns = columns_of(engine, table)
    given = _resolve(columns, names_of(request.qi or ()), names_of(request.sensitive))
    rows = engine.count(table)
    if rows == 0:
        raise InfeasibleError(f"{table} is empty: there is nothing to profile")
    refuse_population(request.population_size, rows)
    written = find_numbers(engine, table, [c for c in columns if given.get(c.name.lower()) != SENSITIVE])
    told = read_by(engine, table, [reading for reading, _ in written.values()])
    columns = columns_of(engine, told)
    with read_exactly(engine, told) as read:
        keys = Keys(engine, table) if request.qi is None else None
        ways = GeneralisationFinder(engine, read, request.hipaa)
        taken_for = _Roles(engine, read, given, written, keys, ways)
        summaries: list[Summary] = []
        for column in columns:
            summaries.append(summarise(engine, read, column, rows))
            listener.on_progress(len(summaries), len(columns))
        listener.on_stage(COMBINING)
        profiles = [taken_for.profile(summary, summaries) for summary in summaries]
        # What was named tells rows apart also where it cannot be generalised.
        telling = [p for p in profiles if QUASI_IDENTIFIER in (p.role, given.get(p.column.name.lower()))]
        if request.hipaa:
            refuse_sensitive(column for column in profiles if column.role == SENSITIVE)
        return Profile(
            table=str(table),
            rows=rows,
            columns=tuple(profiles),
            uniqueness=measure_uniqueness(engine, read, telling, request.population_size),
            sensitive=tuple(_sensitive(engine, read, column) for column in profiles if column.role == SENSITIVE),
            individual=taken_for.individual(profiles),
            hipaa=request.hipaa,
        )


def _resolve(columns: Sequence[Column], quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> dict[str, str]:
    """The role of every column that was named, by its name in lower case; raises PolicyError for all bad names."""
    names = [column.name for column in columns]
    known = {name.lower() for name in names}
    roles: dict[str, str] = {}
    problems = []
    for key, role, given in (("qi", QUASI_IDENTIFIER, quasi_identifiers), ("sensitive", SENSITIVE, sensitive)):
        for name in given:
            if name.lower() not in known:
                problems.append(Problem(key, f"the table has no column {name!r}", nearest(name, names)))
            elif roles.setdefault(name.lower(), role) != role:
                problems.append(Problem(key, f"{name!r} is a quasi-identifier already"))
    refuse(problems)
    return roles


class _Roles:
    def __init__(
        self, engine: Engine, read: Table, asked: dict[str, str],
        written: Mapping[str, Told], keys: Keys | None, ways: GeneralisationFinder,
    ) -> None:  # fmt: skip
        self._engine = engine
        self._read = read
        self._asked = asked
        self._written = written
        self._belonging: set[str] = set()
        self._keys = keys
        self._ways = ways

    def profile(self, summary: Summary, all_columns: Sequence[Summary]) -> ColumnProfile:
        """The column with its role, the reason, and how it is generalised."""
        role, reason, way = self._taken_for(summary, all_columns)
        forms = forms_of(self._engine, self._read, summary)
        return ColumnProfile(**vars(summary), role=role, reason=reason, way=way, forms=forms)

    def _taken_for(self, summary: Summary, all_columns: Sequence[Summary]) -> tuple[str, str, Generalisation | None]:
        asked = self._asked.get(summary.column.name.lower())
        if asked == SENSITIVE:
            return SENSITIVE, "named", None
        belonging = "" if asked else self._why_belonging(summary, all_columns)
        if asked is None and (why := self._why_identifier(summary) or belonging):
            return IDENTIFIER, why + ("" if names_people(summary) else self._ways.dates_in(summary)), None
        way, why = self._ways.find(summary)
        if way is None:
            return IDENTIFIER, (f"named, but {why}" if asked else why) + self._ways.dates_in(summary), None
        if told := self._written.get(summary.column.name):
            reading, said = told
            way = replace(way, settings=way.settings | settings_of(reading), said=f"{way.said}{said}")
        return QUASI_IDENTIFIER, way.said, way

    def individual(self, profiles: Sequence[ColumnProfile]) -> ColumnProfile | None:
        """Of the columns that may say whose a row is the one to go by: by its name, and then of the fewest values.

        Other identifiers of few rows each come last, by which a plan says the same.
        """
        found = [p for p in profiles if p.role == IDENTIFIER and is_repeated(p)]
        named = [p for p in found if names_people(p)]
        held = [p for p in found if p.column.name in self._belonging]
        others = [p for p in found if may_be_people(p)]
        return min(named or held or others, key=lambda p: p.distinct, default=None)

    def _why_belonging(self, summary: Summary, all_columns: Sequence[Summary]) -> str:
        """Why a column may say whose a row is by what hardly varies within its values; empty if it may not.

        Of values with evenly few rows each, as those are by which people are numbered, one such column is enough, and
        of long numbers and codes none is needed.
        """
        name = summary.column.name
        if is_postal(summary) or is_place(summary) or tells_thing(name) or is_code_of_kinds(name):
            return ""
        held, of = held_by(self._engine, self._read, summary, all_columns)
        even = numbers_people(summary)
        if not even and any(numbers_people(one) and one.distinct > summary.distinct for one in all_columns):
            return ""  # what is known of the people whom the other numbers
        if not (held and held * 2 >= of) and not (even and (held or summary.is_coded)):
            return ""
        self._belonging.add(summary.column.name)
        evenly = ", evenly few rows have each value" if even else ""
        return f"may identify people: {held} of {of} other columns hardly vary within a value{evenly}"

    def _why_identifier(self, summary: Summary) -> str:
        if self._keys is None:
            return NOT_NAMED
        if why := why_by_values(summary):
            return why
        owner = self._keys.owner(summary, self._read)
        return f"names rows of {owner}" if owner else why_by_name(summary)


def _sensitive(engine: Engine, table: Table, profile: ColumnProfile) -> SensitiveProfile:
    column, found = profile.column, _distribution(engine, table, profile.column)
    folded = _distribution(engine, table, column, FOLDED) if column.type == "VARCHAR" else found
    with engine.scope():
        values = engine.count_groups("values", table, (column.name, "value"))
        sets = find_sets(engine, values, column.type)
    return SensitiveProfile(column, found, profile.nulls, folded if folded.distinct < found.distinct else None, sets)


def _distribution(engine: Engine, table: Table, column: Column, same: Sequence[Step] = ()) -> Distribution:
    counts = engine.rows("measuring/profile/count_values", source=table, column=column.name, same=same)
    return Distribution([count for (count,) in counts])
