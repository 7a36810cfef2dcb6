"""How columns generalise where nobody has said it: the ways of quasi-identifiers, and drafts of level files to edit.

Numbers and times become ranges, times of few values stretches of time. A text is published as itself or in a set; up to
so many values stand in a level file, into which groups can be written: drafts have groups by what values begin with, by
words, or by quantiles. Texts of more values are themselves or `*`. Codes of one length, of more than a few values, lose
their last characters. Of texts with few rows each, which may name people, those of very many values have no hierarchy,
and of the others this is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from ldiv_db.auditing.people_names import FEW_VALUES
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step, equal_problems, is_nested
from ldiv_db.database.errors import PolicyError, Problem, count_phrase, nearest, refuse
from ldiv_db.database.names import Identifier
from ldiv_db.measuring.roles import is_place, is_postal, numbers_kinds
from ldiv_db.measuring.uniqueness import Summary, Texts, summarise
from ldiv_db.policy.quasi_identifiers import cast_of_texts, covers
from ldiv_db.recoding.snapshot import bounds_of, refuse_odd_years
from ldiv_db.taxonomies import making
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.making import prefix_levels, warn_of_lengths
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL

#: Texts of up to this many values get a level file and sets, of up to so many others are themselves or `*`.
LISTED_VALUES, MANY_VALUES = 1_000, 10_000
#: How numbers that stand for something are generalised.
CODED: dict[str, Any] = {"numeric": False}
#: What is asked of texts that may name people.
_QUESTION = "; few rows have each: DOES IT NAME PEOPLE? Then move it to `identifiers`"
#: What makes texts one to a reader.
FOLDED: tuple[Step, ...] = ("trim", "casefold")
#: The stretches of time, rising.
DATES = ("day", "month", "quarter", "year")
#: The characters of the longest date with a time that is looked for.
_LONGEST_DATE = 30
#: What columns of codes of diagnoses, and of countries are called.
_DIAGNOSES, _COUNTRIES = re.compile(r"(?i:icd|diag|(^|_)dx)"), re.compile(r"(?i:country|nation)")
#: What the two columns of a place are called, with the degrees that they go up to, and the sides of cells in degrees.
_SIDES = {90: re.compile(r"(^|_)lat(itude)?($|_)"), 180: re.compile(r"(^|_)(lon|lng|long|longitude)($|_)")}
_CELLS = [0.01, 0.1, 1, 10]
#: What stands over a policy by HIPAA's Safe Harbor.
SAFE_HARBOR = (
    "By HIPAA's Safe Harbor (45 CFR 164.514(b)(2)): three digits of ZIP codes, years, ages up to 89, no areas.",
    "Columns were recognised by name and type: look for other identifiers of the 18 kinds, also inside texts.",
    "You must also have no actual knowledge that somebody can be identified by what is left.",
)  # fmt: skip
_AREAS = "postal codes: prefixes, which are areas"
_AGE = re.compile(r"(^|_)ages?($|_)")
_BIRTH = re.compile(r"birth|born|(^|_)(dob|yob)($|_)")
_AREA = re.compile(
    r"(^|_)(address|street|road|city|town|village|place|county|district|municipality|parish|precinct|borough|"
    r"neighbou?rhood|census|tract|block|location|lat|latitude|lon|lng|long|longitude|gps|coordinates?|geo[a-z]*)($|_)"
)


@dataclass(frozen=True)
class Generalisation:
    """A quasi-identifier's hierarchy: as a policy says it, in words, and the level file that must be written."""

    settings: dict[str, Any]
    said: str
    file: str = ""


class GeneralisationFinder:
    """Finds the way of one quasi-identifier after the other, so that no two of them share a level file."""

    def __init__(self, engine: Engine, table: Table, hipaa: bool = False) -> None:
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
        return _why_unfit(summary) if self._hipaa else ""

    def dates_in(self, summary: Summary) -> str:
        """How texts that may be dates or times in another form are read as such, for what was said before."""
        texts = summary.texts
        if texts is None or texts.longest > _LONGEST_DATE or 2 * texts.numbered < summary.distinct:
            return ""
        found = cast_of_texts(self._engine, self._table, summary.column)
        return f"; {found}" if "dates" in found.partition(":")[0] else ""

    def _without_leaf(self, column: Column, name: str) -> int:
        params = {"rows": self._table, "column": Identifier(column.name), "levels": making.LEVELS[name]()}
        return int(self._engine.scalar("taxonomies/count_without_leaf", **params))

    def _lengths(self, column: Column) -> str:
        with self._engine.scope():
            counted = self._engine.count_groups("counted", self._table, (column.name, "value"))
            told = warn_of_lengths(self._engine, column.name, counted)
        return f"; {told}" if told else ""

    def _covers(self, column: Column) -> bool:
        taxonomy = taxonomies.fetch(self._engine, column.name)
        return taxonomy is not None and covers(self._engine, taxonomy, self._table, column)

    def _on_a_line(self, summary: Summary) -> tuple[Generalisation | None, str]:
        column, name = summary.column, Identifier(summary.column.name)
        check: Callable[..., Any] = refuse_odd_years if column.is_time else bounds_of
        try:
            check(self._engine, self._table, name, column)
        except PolicyError as error:
            return None, error.problems[0].what
        if way := self._of_kind(summary):
            return way, ""
        said = "times: ranges" if column.is_time else "numbers: ranges"
        if is_postal(summary) and column.is_integer:
            shortest, longest = (len(str(int(end))) for end in bounds_of(self._engine, self._table, name, column))
            if shortest == longest > 1:
                return Generalisation({"taxonomy": {"prefix": falling_lengths(longest)}}, _AREAS), ""
        if is_postal(summary):
            said += f"; as texts, postal codes have prefixes, which are areas{self._lengths(column)}"
        return Generalisation({"numeric": True}, said), ""

    def _of_kind(self, summary: Summary) -> Generalisation | None:
        """The way of numbers and times of which more is known than their ranges; None of all others."""
        column = summary.column
        if self._hipaa and (way := _by_safe_harbor(summary)):
            return way
        if column.is_time and summary.distinct <= FEW_VALUES:
            return Generalisation({"taxonomy": {"dates": list(DATES)}}, "few different times: periods")
        if numbers_kinds(summary) and not is_postal(summary) and summary.distinct <= MANY_VALUES:
            return Generalisation(CODED, "codes: themselves or sets")
        if self._is_side_of_place(column):
            return Generalisation({"taxonomy": {"ranges": _CELLS}}, "a place: cells of a grid, from 1 km on")
        return None

    def _is_side_of_place(self, column: Column) -> bool:
        """True if it is a latitude or a longitude by its name and values, and the table has the other one as well."""
        sides = [(side, most) for most in _SIDES if (side := self._side(column, most))]
        return any(
            self._side(other, most) == side
            for side, own in sides
            for other in columns_of(self._engine, self._table)
            for most in _SIDES
            if most != own
        )

    def _side(self, column: Column, most: int) -> str:
        """The name of the place whose latitude or longitude, of so many degrees at most, this is; empty if it is none.

        The name begins with `@`, as a place may have none but those of its two columns.
        """
        words = _words_of(column)
        if not _SIDES[most].search(words) or not column.is_number or column.is_integer:
            return ""
        ends = bounds_of(self._engine, self._table, Identifier(column.name), column)
        return f"@{_SIDES[most].sub('@', words)}" if max(map(abs, ends)) <= most else ""

    def _of_text(self, summary: Summary, texts: Texts) -> tuple[Generalisation | None, str]:
        may_name = summary.has_few_rows and not is_postal(summary)
        if not texts.starred and (found := self._ready(summary, texts)):
            return found, ""
        if texts.stars:
            why = "holds `*`, which in a release stands for anything"
        elif may_name and summary.distinct > LISTED_VALUES and not is_place(summary):
            what = f"{summary.distinct:,} different texts of few rows each, as names of people are"
            why = f"{what}: give a taxonomy if they are none"
        else:
            return self._of_some(summary, texts, _QUESTION if may_name else "")
        return None, why

    def _ready(self, summary: Summary, texts: Texts) -> Generalisation | None:
        column, many = summary.column, summary.distinct > FEW_VALUES
        coded = _DIAGNOSES.search(column.name) or (many and texts.uncoded)
        if coded and texts.longest <= making.LONGEST and not self._without_leaf(column, "icd10cm"):
            return Generalisation({"taxonomy": "icd10cm"}, "codes of diagnoses: blocks and chapters of ICD-10-CM")
        kind = {(2, 2): "alpha2", (3, 3): "alpha3"}.get((texts.shortest, texts.longest), "name")
        shown = kind == "name" or many or _COUNTRIES.search(column.name)
        tree = making.TREES[f"country_{kind}"]()
        if not shown or summary.distinct > len(tree.leaves) or not covers(self._engine, tree, self._table, column):
            return None
        return Generalisation({"taxonomy": f"country_{kind}"}, "countries: regions of the UN")

    def _of_some(self, summary: Summary, texts: Texts, asked: str) -> tuple[Generalisation | None, str]:
        """The way of texts that are no names of people, or of which that is `asked`."""
        spelt = texts.folded is not None and texts.folded < summary.distinct <= MANY_VALUES
        if spelt and summary.column.type == "VARCHAR" and not is_postal(summary):
            said = f"texts: themselves or sets; {texts.folded:,} if case and blanks are ignored{asked}"
            return Generalisation({"same": list(FOLDED)}, said), ""
        if summary.column.type == "BOOLEAN":
            return Generalisation({}, "values: themselves or sets"), ""
        if is_code(summary, texts) and not texts.starred:
            settings = {"taxonomy": {"prefix": falling_lengths(texts.longest)}}
            way = _by_safe_harbor(summary) if self._hipaa else None
            why = "codes of one length: prefixes, if codes that begin alike are alike"
            if is_postal(summary):
                why = _AREAS
                why += "" if way or texts.shortest == texts.longest else self._lengths(summary.column)
            return way or Generalisation(settings, f"{why}{asked}"), ""
        if summary.distinct <= LISTED_VALUES and not texts.unlisted:
            file = self._file_name(summary.column.name)
            listed = {"taxonomy": {"file": file}, "recode": "set"}
            return Generalisation(listed, f"texts: a level file, or sets{asked}", file), ""
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


def is_code(summary: Summary, texts: Texts) -> bool:
    """True if the beginnings of a column's texts mean something: postal codes by their name, codes of one length."""
    if texts.longest < 2:
        return False
    alike = texts.shortest == texts.longest and not texts.uncoded
    return is_postal(summary) or (alike and summary.distinct > FEW_VALUES)


def falling_lengths(longest: int) -> list[int]:
    """The lengths of prefixes of codes of that length, from 2 on: up to five, the whole code first."""
    return list(range(longest, 0, -max(1 if longest == 2 else 2, -(-longest // 5))))


Way = Literal["prefixes", "words", "quantiles"]
WAYS: tuple[Way, ...] = get_args(Way)


def draft_levels(engine: Engine, table: Table, column: Column, by: str | None = None) -> tuple[str, list[list[str]]]:
    """How values were grouped, and the lines of a level file: from each value to the root, as long as one another.

    Raises PolicyError for a column that takes no level file, and for a way that is none or not for its type.
    """
    summary = summarise(engine, table, column, engine.count(table))
    problems = equal_problems("column", column)
    if is_nested(column) or not 0 < summary.distinct <= MANY_VALUES:
        what = f"{column.name} has {summary.distinct:,} different values, a level file takes 1 to {MANY_VALUES:,}"
        problems.append(Problem("column", what, "take `prefix:`, `dates:`, `ranges:` or `numeric: true` in the policy"))
    if by is not None and by not in WAYS:
        problems.append(Problem("by", f"no way {by!r}", nearest(by, WAYS)))
    texts = summary.texts
    if texts is not None and (texts.unlisted or texts.stars):
        what = f"{texts.unlisted + texts.stars:,} values are `*`, empty, a level's name, or have blanks at their ends"
        problems.append(Problem("column", what, "change them in a view"))
    way = by or ("quantiles" if texts is None else "prefixes" if is_code(summary, texts) else "words")
    if (way == "quantiles") != (texts is None):
        problems.append(Problem("by", f"{column.name} is {column.shown}, and quantiles are of numbers and times"))
    refuse(problems)
    name = Identifier(column.name)
    if texts is not None and way == "prefixes":
        levels = prefix_levels(falling_lengths(max(2, texts.longest)))
        rows = engine.rows("taxonomies/list_paths", rows=table, column=name, levels=levels)
    else:
        rows = engine.rows("taxonomies/draft_groups", rows=table, column=name, quantiles=way == "quantiles")
    return way, [_line(row) for row in rows]


def _line(row: Sequence[str | None]) -> list[str]:
    """A value and the groups above it; where it has none on a level the one below is said again, as level files do."""
    line: list[str] = []
    for label in row:
        line.append(line[-1] if label is None else label)
    return [*line, ROOT_LABEL]


# -- Safe Harbor ---------------------------------------------------------------------------------------


def _words_of(column: Column) -> str:
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", column.name)
    return re.sub(r"[^a-z]+", "_", apart.lower())


def _why_unfit(summary: Summary) -> str:
    """Why a column, which is none of ZIP codes, may not be published in a form that is known here; empty if it may."""
    column = summary.column
    if _AREA.search(_words_of(column)):
        return "by its name an area smaller than a state, which Safe Harbor removes"
    if _BIRTH.search(_words_of(column)) and not column.is_time:
        return "by its name a date of birth: convert it to a date in a view"
    if _AGE.search(_words_of(column)) and not column.is_integer:
        return "by its name an age: convert it to whole years in a view"
    return ""


def _by_safe_harbor(summary: Summary) -> Generalisation | None:
    """The way of a column; None where Safe Harbor says nothing of it."""
    if is_postal(summary):
        return Generalisation({"taxonomy": "hipaa_zip"}, "ZIP codes: three digits, small areas as 000")
    if summary.column.is_time:
        before = datetime.now(UTC).year - making.OLD + 1  # who was born in it is 89 at most
        dates = {"dates": ["year", "decade"], "before": before}
        return Generalisation({"taxonomy": dates}, f"times: years, all before {before} as one")
    if _AGE.search(_words_of(summary.column)):
        return Generalisation({"taxonomy": "hipaa_age"}, "ages: 90 and older as one")
    return None


def refuse_sensitive(columns: Iterable[Summary]) -> None:
    """Raise PolicyError for sensitive columns of times, which are published as they are."""
    times = [summary.column.name for summary in columns if summary.column.is_time]
    if times:
        what = f"{', '.join(times)}: a sensitive value is published as it is, and Safe Harbor allows years alone"
        raise PolicyError([Problem("sensitive", what, "take the year of it in a view")])
