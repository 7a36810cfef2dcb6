"""Roles of columns where nobody has said them: identifiers, people's names, and how others can be generalised.

Rows of one person have the same birthday, sex and home, and differ in what happened: a column whose values have a few
rows each, within which most other columns hardly vary, may be whose they are, whatever it is called.

A column that names rows of another table leads to whoever has that. A foreign key says so; without one another table
has a unique column of the column's name or of the same stem (`c_custkey` of `o_custkey`, `customers.id` of
`customer_id`), with all its values. Where a value has very many rows, the other table is taken for a list of
categories, such as countries.

Numbers and times become ranges, times of few values stretches of time. A text is published as itself or as `*`; up to
so many values stand in a level file, into which groups can be written. Codes of one length, of more than a few values,
lose their last characters. Of texts with few rows each, which may name people, those of very many values have no
hierarchy, and of the others this is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.auditing.individuals import (
    CATEGORY_ROWS,
    FEW_VALUES,
    NEARLY_UNIQUE,
    are_few_kinds,
)
from ldiv_db.auditing.people_names import is_dialled, may_say_whose, tells_one, tells_somebody
from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step, equal_problems, is_nested
from ldiv_db.database.errors import PolicyError, count_phrase
from ldiv_db.database.lineage import ColumnBeside, columns_beside, foreign_keys
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.measuring import safe_harbor
from ldiv_db.measuring.uniqueness import Summary, Texts
from ldiv_db.policy.quasi_identifiers import covers
from ldiv_db.recoding.snapshot import bounds_of, refuse_odd_years
from ldiv_db.taxonomies import ready
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.readers import warn_of_lengths

#: A column of more different values than this share of the rows varies in nearly any rows.
OFTEN_UNIQUE = 0.5
#: Values that are looked at, of those that have several rows.
_MOST = 1_000
#: A column belongs to somebody if it varies in their rows this part at most of what it does in any rows, and has two
#: values there on average at most.
_LITTLE, _FEW = 3, 2
#: So few texts of so many rows each are kinds of something, as `yes` and `no` are.
_KINDS, _KIND_ROWS = 4, 10
#: The smallest number of as many digits as one to be dialled has.
_DIALLED = 10_000


def names_people(summary: Summary) -> bool:
    """True if a column says by its name whose rows they are, and is no list of a few kinds."""
    return may_name(summary) and tells_one(summary.column.name)


def may_be_people(summary: Summary) -> bool:
    """True if an identifier that nothing else tells of may say whose a row is: its values have few rows each."""
    return may_name(summary) and summary.has_few_rows and may_say_whose(summary.column.name)


def numbers_people(summary: Summary) -> bool:
    """True if its values have evenly few rows each, as those have by which people are numbered, whatever its name."""
    return summary.is_even and is_repeated(summary) and may_be_people(summary)


def is_repeated(summary: Summary) -> bool:
    """True if values of a column that identifies people have several rows, and are more than a few kinds."""
    rows = summary.rows - summary.nulls
    return 1 < summary.distinct <= NEARLY_UNIQUE * rows and not are_few_kinds(summary.distinct, rows)


def held_by(
    engine: Engine, table: Relation | FileRelation, summary: Summary, all_columns: Sequence[Summary]
) -> tuple[int, int]:
    """Counts the other columns that belong to the values of a column, and all others that vary; one statement.

    (0, 0) where it cannot say whose rows they are.
    """
    if not (may_name(summary) and summary.has_few_rows and is_repeated(summary)):
        return 0, 0
    varying = [
        c for c in all_columns if c is not summary and 1 < c.distinct <= OFTEN_UNIQUE * c.rows and not c.decimals
    ]
    kinds = {"alias": "d", "together": "together_", "apart": "apart_"}
    others = [
        {"column": Identifier(c.column.name)} | {kind: Identifier(f"{name}{i}") for kind, name in kinds.items()}
        for i, c in enumerate(varying)
    ]
    if not others:
        return 0, 0
    column = Identifier(summary.column.name)
    found = engine.record("measuring/profile/hold_together", source=table, column=column, others=others, most=_MOST)
    values = found["values"]
    extra = [[found[other[kind].name] - values for kind in ("together", "apart")] for other in others]
    vary = [(together, apart) for together, apart in extra if apart * 20 > values]
    most = (_FEW - 1) * values
    return sum(together * _LITTLE <= apart and together <= most for together, apart in vary), len(vary)


def may_name(summary: Summary) -> bool:
    """True if a column is of a type that names people, and not of a few values with many rows each."""
    if summary.is_measure or summary.column.type == "BOOLEAN" or summary.distinct < 2:
        return False
    if summary.texts is not None and (2 * summary.texts.labels > summary.distinct or summary.texts.starred):
        return False  # as a release has them
    if is_dialled(summary.column.name) and summary.distinct <= FEW_VALUES and not _has_digits(summary):
        return False  # makes of devices
    few_rows = summary.rows < CATEGORY_ROWS * summary.distinct
    kinds = summary.distinct <= _KINDS and summary.rows >= _KIND_ROWS * summary.distinct
    return summary.distinct > FEW_VALUES or (summary.texts is not None and few_rows and not kinds)


def _has_digits(summary: Summary) -> bool:
    """True if most values have as many digits as a number to be dialled."""
    if summary.texts is None:
        return summary.largest >= _DIALLED
    return summary.texts.numbered * 2 > summary.distinct


#: Tables of more rows are not looked at, and of those that a column may belong to no more than so many.
_MOST_ROWS, _MOST_TABLES = 5_000_000, 5
#: A column's name after the letter or two of its table.
_STEM = re.compile(r"[a-z]{1,3}_(.+)")


class Keys:
    """The tables beside one table, asked column by column whether they own it."""

    def __init__(self, engine: Engine, table: Relation | FileRelation) -> None:
        self._engine = engine
        self._declared: dict[str, str] = {}
        self._beside: list[ColumnBeside] = []
        if isinstance(table, Relation):
            self._declared = foreign_keys(engine, table)
            self._beside = columns_beside(engine, table, _MOST_ROWS)

    def owner(self, summary: Summary, read: Relation | FileRelation) -> str | None:
        """The name of the table whose rows the column of `read` names, None if there is none."""
        column = summary.column
        if column.is_time or column.is_fractional or summary.rows >= CATEGORY_ROWS * summary.distinct:
            return None
        if declared := self._declared.get(column.name.lower()):
            return declared
        for other in self._candidates(column):
            params = {"column": Identifier(column.name), "key": Identifier(other.column.name)}
            found = self._engine.record("measuring/profile/hold_against_key", source=read, other=other.table, **params)
            if not found["repeated"] and not found["strangers"]:
                return other.table.name
        return None

    def _candidates(self, column: Column) -> Sequence[ColumnBeside]:
        """The columns of other tables that the column's name leads to, of its type or whole numbers as well."""
        found = [other for other in self._beside if _alike(column, other.column) and _leads(column.name, other)]
        return found[:_MOST_TABLES]


def _alike(one: Column, other: Column) -> bool:
    return one.type == other.type or (one.is_integer and other.is_integer)


def _leads(name: str, other: ColumnBeside) -> bool:
    """True if a column's name is, but for its table's letters, that of a column of another table."""
    return not set(_stems(name)).isdisjoint(_stems(other.column.name, other.table.name))


def _stems(name: str, table: str = "") -> Iterator[str]:
    """Names of a column elsewhere, in lower case: `id` of the table `customers` is `customer_id`."""
    name = name.lower()
    yield name
    if stem := _STEM.fullmatch(name):
        yield stem[1]
    if name == "id":
        for owner in (table.lower(), table.lower().removesuffix("s")):
            yield f"{owner}_id"


IDENTIFIER, QUASI_IDENTIFIER, SENSITIVE = "identifier", "quasi-identifier", "sensitive"
#: What columns are called that number rows.
_NUMBERING = re.compile(r"(?i:(^|_)(id|uuid|guid)$|[a-z]_?key$)|[a-z]I[dD]$")


def why_by_values(summary: Summary) -> str:
    """Why a column is taken for an identifier by its values and how they are spread; empty if it is not."""
    if summary.is_measure or is_postal(summary):
        return ""  # a birthday or a cost is one of many things that are known of somebody
    if summary.distinct > NEARLY_UNIQUE * summary.rows:
        return "nearly every row has its own value"
    if summary.texts is None:
        return ""
    if summary.distinct > max(FEW_VALUES, OFTEN_UNIQUE * summary.rows):
        return "different values in more than half the rows"
    addressed = summary.texts.addressed * 2 > summary.distinct
    return "its values look like addresses or numbers of people" if addressed else ""


def why_by_name(summary: Summary) -> str:
    """Why a column is taken for an identifier by its name; empty if it is not."""
    name = summary.column.name
    if names_people(summary):
        return "its name suggests that it identifies people"
    if summary.texts is not None and may_name(summary) and tells_somebody(name):
        return "its name suggests that it names people"
    return "its name: a key" if _NUMBERING.search(name) and summary.has_few_rows and not summary.is_measure else ""


#: Texts of up to this many values get a level file, of up to so many others are themselves or `*`.
LISTED_VALUES, MANY_VALUES = 1_000, 10_000
#: What is asked of texts that may name people.
_QUESTION = "; few rows have each: DOES IT NAME PEOPLE? Then move it to `identifiers`"
#: What makes texts one to a reader.
FOLDED: tuple[Step, ...] = ("trim", "casefold")
#: The stretches of time, rising.
DATES = ("day", "month", "quarter", "year")
#: What columns of codes of diagnoses, of countries and of postal codes are called.
_DIAGNOSES, _COUNTRIES = re.compile(r"(?i:icd|diag|(^|_)dx)"), re.compile(r"(?i:country|nation)")
_POSTAL = re.compile(
    r"(^|[^a-z])(zip|zip_?codes?|postal(_?codes?)?|post_?codes?|plz|postleitzahl|code_?postal|c[oó]digo_?postal|cod_?postal"
    r"|kod_?pocztowy|postnummer|postnr|postinumero|ir[aá]ny[ií]t[oó]sz[aá]m|psc|cep)($|[^a-z])|^(cap|cp)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Generalisation:
    """A quasi-identifier's hierarchy: as a policy says it, in words, and the level file that must be written."""

    settings: dict[str, Any]
    said: str
    file: str = ""


class GeneralisationFinder:
    """Finds the way of one quasi-identifier after the other, so that no two of them share a level file."""

    def __init__(self, engine: Engine, table: Relation | FileRelation, hipaa: bool = False) -> None:
        self._engine = engine
        self._table = table
        self._hipaa = hipaa
        self._known = taxonomies.stored(engine)
        self._taken: set[str] = set()

    def find(self, summary: Summary) -> tuple[Generalisation | None, str]:
        """The way of a column, or None and the reason why it takes a taxonomy that only the user can make."""
        column = summary.column
        if why := self._why_none(summary):
            return None, why
        if column.name in self._known and not self._hipaa and self._covers(column):
            return Generalisation({"taxonomy": column.name}, "values: the catalog's taxonomy of this name"), ""
        if summary.texts is None:
            return self._on_a_line(summary)
        return self._of_text(summary, summary.texts)

    def _why_none(self, summary: Summary) -> str:
        """Why a column can be generalised in no way; empty if it may be in one."""
        column = summary.column
        if problems := equal_problems("", column):
            return problems[0].what
        if not summary.distinct:
            return "holds nothing but NULL"
        if is_nested(column):
            return "holds several values a row: give one of them in a view"
        if self._hipaa and is_postal(summary):
            unfit = self._without_leaf(column, "hipaa_zip")
            have = count_phrase(unfit, "of its values is no ZIP code", "of its values are no ZIP codes")
            return f"{have} of five digits: convert them in a view" if unfit else ""
        return safe_harbor.why_unfit(summary) if self._hipaa else ""

    def _without_leaf(self, column: Column, name: str) -> int:
        """The values of a column that the levels of the program of that name have no leaf for."""
        params = {"rows": self._table, "column": Identifier(column.name), "levels": ready.LEVELS[name]()}
        return int(self._engine.scalar("taxonomies/count_without_leaf", **params))

    def _lengths(self, column: Column) -> str:
        """What is to be said of codes of several lengths."""
        with self._engine.scope():
            counted = self._engine.count_groups("counted", self._table, (column.name, "value"))
            told = warn_of_lengths(self._engine, column.name, counted)
        return f"; {told}" if told else ""

    def _covers(self, column: Column) -> bool:
        """True if the catalog's taxonomy of the column's name has a leaf for each of its values."""
        taxonomy = taxonomies.fetch(self._engine, column.name)
        return taxonomy is not None and covers(self._engine, taxonomy, self._table, column)

    def _on_a_line(self, summary: Summary) -> tuple[Generalisation | None, str]:
        """The way of numbers or times; None if some of them have no place, as infinities have."""
        column = summary.column
        check: Callable[..., Any] = refuse_odd_years if column.is_time else bounds_of
        try:
            check(self._engine, self._table, Identifier(column.name), column)
        except PolicyError as error:
            return None, error.problems[0].what
        if self._hipaa and (way := safe_harbor.way_of(summary, is_postal(summary))):
            return Generalisation(*way), ""
        if column.is_time and summary.distinct <= FEW_VALUES:
            return Generalisation({"taxonomy": {"dates": list(DATES)}}, "few different times: periods"), ""
        said = "times: ranges" if column.is_time else "numbers: ranges"
        if is_postal(summary):
            said += f"; as texts, postal codes have prefixes, which are areas{self._lengths(column)}"
        return Generalisation({"numeric": True}, said), ""

    def _of_text(self, summary: Summary, texts: Texts) -> tuple[Generalisation | None, str]:
        may_name = summary.has_few_rows and not is_postal(summary)
        if not texts.starred and (found := self._ready(summary, texts)):
            return found, ""
        if texts.stars:
            why = "holds `*`, which in a release stands for anything"
        elif may_name and summary.distinct > LISTED_VALUES:
            what = f"{summary.distinct:,} different texts of few rows each, as names of people are"
            why = f"{what}: give a taxonomy if they are none"
        else:
            return self._of_some(summary, texts, _QUESTION if may_name else "")
        return None, why

    def _ready(self, summary: Summary, texts: Texts) -> Generalisation | None:
        """The taxonomy of the program that a column's values show; None if it has none for them."""
        column, many = summary.column, summary.distinct > FEW_VALUES
        coded = _DIAGNOSES.search(column.name) or (many and texts.uncoded)
        if coded and texts.longest <= ready.LONGEST and not self._without_leaf(column, "icd10cm"):
            return Generalisation({"taxonomy": "icd10cm"}, "codes of diagnoses: blocks and chapters of ICD-10-CM")
        kind = {(2, 2): "alpha2", (3, 3): "alpha3"}.get((texts.shortest, texts.longest), "name")
        shown = kind == "name" or many or _COUNTRIES.search(column.name)
        tree = ready.TREES[f"country_{kind}"]()
        if not shown or summary.distinct > len(tree.leaves) or not covers(self._engine, tree, self._table, column):
            return None
        return Generalisation({"taxonomy": f"country_{kind}"}, "countries: regions of the UN")

    def _of_some(self, summary: Summary, texts: Texts, asked: str) -> tuple[Generalisation | None, str]:
        """The way of texts that are no names of people, or of which that is `asked`."""
        spelt = texts.folded is not None and texts.folded < summary.distinct <= MANY_VALUES
        if spelt and summary.column.type == "VARCHAR" and not is_postal(summary):
            said = f"texts: themselves or `*`; {texts.folded:,} if case and blanks are ignored{asked}"
            return Generalisation({"same": list(FOLDED)}, said), ""
        if summary.column.type == "BOOLEAN":
            return Generalisation({}, "values: themselves or `*`"), ""
        if is_code(summary, texts) and not texts.starred:
            settings = {"taxonomy": {"prefix": falling_lengths(texts.longest)}}
            way = safe_harbor.way_of(summary, is_postal(summary)) if self._hipaa else None
            why = "codes of one length: prefixes, if codes that begin alike are alike"
            if is_postal(summary):
                why = "postal codes: prefixes, which are areas"
                why += "" if way or texts.shortest == texts.longest else self._lengths(summary.column)
            return Generalisation(*(way or (settings, f"{why}{asked}"))), ""
        if summary.distinct <= LISTED_VALUES and not texts.unlisted:
            file = self._file_name(summary.column.name)
            return Generalisation({"taxonomy": {"file": file}}, f"texts: a level file{asked}", file), ""
        if summary.distinct <= MANY_VALUES:
            return Generalisation(
                {"taxonomy": {"prefix": [max(1, texts.longest)]}}, f"texts: themselves or `*`{asked}"
            ), ""
        return None, f"{summary.distinct:,} different texts need a taxonomy that you make"

    def _file_name(self, column: str) -> str:
        """A file's name for a column's taxonomy that any file system takes, and that no other column has."""
        stem = re.sub(r"[^\w-]+", "_", column)[:60]
        name, number = f"{stem}.csv", 1
        while name.lower() in self._taken:
            number += 1
            name = f"{stem}_{number}.csv"
        self._taken.add(name.lower())
        return name


def is_postal(summary: Summary) -> bool:
    """True if a column has postal codes, by its name."""
    return bool(_POSTAL.search(summary.column.name))


def is_code(summary: Summary, texts: Texts) -> bool:
    """True if the beginnings of a column's texts mean something: postal codes by their name, codes of one length."""
    if texts.longest < 2:
        return False
    alike = texts.shortest == texts.longest and not texts.uncoded
    return is_postal(summary) or (alike and summary.distinct > FEW_VALUES)


def falling_lengths(longest: int) -> list[int]:
    """The lengths of prefixes of codes of that length, from 2 on: up to five, the whole code first."""
    return list(range(longest, 0, -max(1 if longest == 2 else 2, -(-longest // 5))))


def files_of(ways: Iterable[Generalisation | None]) -> list[str]:
    """The level files that must be written."""
    return [way.file for way in ways if way and way.file]
