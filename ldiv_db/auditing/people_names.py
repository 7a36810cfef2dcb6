"""Columns that say whose a row is, by their names and their counts, and what counting rows hides there.

A name is taken apart into words (`clientIp`, `license_plate`), and a word from what numbers it (`kunden-nummer`,
`user-name`). Every word must be known (`people_names.yml`, in the languages of the world's larger tables), so that
`customer_type` and `product_name` are none of these. Where scripts put no blanks between words, a known word may stand
anywhere in the name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested
from ldiv_db.database.errors import classes_phrase, count_phrase, people_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Renamed

#: A column of up to this many values is taken for a list of kinds,
FEW_VALUES = 50
#: whatever its name is if they are as few as these, or if each of not many more has more rows than there are values;
FEW_KINDS, SOME_KINDS = 4, 20
#: one whose values have this many rows on average for one of categories, which name nobody in particular,
CATEGORY_ROWS = 100
#: and one with more different values than this share of the rows for one of a single row each.
NEARLY_UNIQUE = 0.95


def _plain(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold()).replace("ı", "i")
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


_WORDS: dict[str, str] = parse_document(read_text(Path(__file__).with_suffix(".yml"), POLICY_BYTES))
_OWN, _BEINGS, _NAMES, _AROUND, _DIALLED, _WITH_MANY = (
    frozenset(_plain(_WORDS[key]).split()) for key in ("people", "beings", "names", "beside", "phones", "things")
)
_PEOPLE, _SERVING = _OWN | _BEINGS, frozenset(_plain(_WORDS["serving"]).split())
_PARTS = frozenset(unicodedata.normalize("NFC", _WORDS["anywhere"]).split())
_STARTS, _ENDS = _WORDS["starts"].split(), _WORDS["ends"].split()


def tells_one(name: str) -> bool:
    """True if a column of that name says whose a row is: rows of one value are one person's."""
    return _is_of(name, _PEOPLE) or any(part in unicodedata.normalize("NFC", name) for part in _PARTS)


def tells_being(name: str) -> bool:
    """True if it is a word for people themselves, not for what one has."""
    return _is_of(name, _BEINGS)


def tells_serving(name: str) -> bool:
    """True if it is a word for people who serve others."""
    return _is_of(name, _SERVING)


def tells_somebody(name: str) -> bool:
    """True if it says who somebody is, by a name or an address that several people may share as well."""
    return tells_one(name) or _is_of(name, _NAMES)


def is_dialled(name: str) -> bool:
    """True if it says whose a row is by a number to be dialled alone, which has more than a few digits."""
    return tells_one(name) and _is_of(name, _DIALLED) and not _is_of(name, _PEOPLE - _DIALLED)


def tells_thing(name: str) -> bool:
    """True if a word of it is for what several people have: rows of one value are then of them all."""
    return not tells_somebody(name) and not _WITH_MANY.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_\d]+", _plain(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)))


def _is_of(name: str, known: frozenset[str]) -> bool:
    """True if all words of a name are known, and one is of `known`."""
    words = _words(name)
    core = "".join(word for word in words if word not in _AROUND)
    return (
        "".join(words) in known
        or (len(words) > 1 and core in known)
        or (
            any(_stem(word, known) for word in words)
            and all(word in _AROUND or _stem(word, _PEOPLE | _NAMES) for word in words)
        )
    )


def _stem(word: str, known: frozenset[str]) -> bool:
    """True if a word is known, as it is or without what numbers it."""
    while word not in known:
        start = next((start for start in _STARTS if word.startswith(start) and word[len(start) :] in known), None)
        if start is not None:
            return True
        end = next((end for end in _ENDS if len(word) > len(end) and word.endswith(end)), None)
        if end is None:
            return False
        word = word.removesuffix(end)
    return True


def may_say_whose(name: str) -> bool:
    """True if a column that is not published may say whose a row is, for all that its name says."""
    return not tells_somebody(name) and not tells_thing(name)


# -- by their counts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LikelyPeople:
    """A column that may say whose a row is, its different values, and the rows that have one."""

    column: Column
    people: int
    rows: int

    def __str__(self) -> str:
        rows = count_phrase(self.rows, "row belongs", "rows belong")
        counts = f"{rows} to {people_phrase(self.people)} if {self.column.name} identifies people"
        return f"{counts}, and requirements count rows"


def likely_people(
    engine: Engine, table: Table, columns: Sequence[Column], dropped: Sequence[str] = ()
) -> LikelyPeople | None:
    """Of the columns that may say whose a row is, if somebody has several, the one to go by; one statement.

    It is known by its name, or is one of those that are `dropped` and has more than a few values of few rows each. What
    has few kinds of values, or labels for values, is none.
    """
    aside = {name.lower() for name in dropped}
    asked = [c for c in columns if not (c.is_time or c.is_fractional or c.type == "BOOLEAN" or is_nested(c))]
    asked = [c for c in asked if tells_one(c.name) or (c.name.lower() in aside and may_say_whose(c.name))]
    if not asked:
        return None
    kinds = ("rows", "different", "labels")
    counted = [{kind: Identifier(f"{kind}_{i}") for kind in kinds} for i in range(len(asked))]
    columns_counted = [
        {"column": Identifier(c.name), "is_text": c.type == "VARCHAR", **names}
        for c, names in zip(asked, counted, strict=True)
    ]
    found = engine.record("auditing/count_repeated", source=table, columns=columns_counted)
    every = [
        LikelyPeople(c, found[names["different"].name], found[names["rows"].name])
        for c, names in zip(asked, counted, strict=True)
        if 2 * found[names["labels"].name] <= found[names["different"].name]
    ]
    several = [one for one in every if _has_several(one)]
    return min(several, key=lambda one: (not tells_one(one.column.name), one.people), default=None)


def are_few_kinds(values: int, rows: int) -> bool:
    """True if so many values of so many rows are a few kinds of things, whatever their column is called."""
    return values <= FEW_KINDS or (values <= SOME_KINDS and rows > values**2)


def _has_several(found: LikelyPeople) -> bool:
    """True if people have several rows, and are more than a few kinds of things."""
    many, few_rows = found.people > FEW_VALUES, found.rows < CATEGORY_ROWS * found.people
    kinds = are_few_kinds(found.people, found.rows)
    is_one = many or (few_rows and not kinds) if tells_one(found.column.name) else many and few_rows
    return 1 < found.people <= NEARLY_UNIQUE * found.rows and is_one


def warn_of_people(
    engine: Engine,
    people: LikelyPeople,
    rows: Table,
    person: Identifier,
    members: Relation | None = None,
    class_columns: Sequence[Renamed] = (),
) -> str:
    """The warning of what counting rows hides in classes, empty if nothing.

    They are the rows that agree on some columns, or `members` (row_id, class_no).
    """
    params = {"rows": rows, "members": members, "class_columns": class_columns, "person": person}
    found = engine.record("auditing/count_people", **params)
    if not found["repeated"]:
        return ""
    repeated = f"{found['repeated']:,} of {classes_phrase(found['classes'])} have two rows of one person"
    way_out = f"`individual: {people.column.name}` in the policy keeps one person's rows apart"
    return f"{people}: {repeated}, {found['alone']:,} have one person alone; {way_out}"


#: From so many rows of a person on, those that others know single people out.
MANY_ROWS = 4


def warn_of_many_rows(column: str, rows: int) -> str:
    """The warning of what people tell who have about so many rows each; empty where these are few.

    Farzanehfar, Houssiau and de Montjoye (Patterns 2021), and arXiv 2603.18382.
    """
    if rows < MANY_ROWS:
        return ""
    return (
        f"a person has about {rows:,} rows, and who knows a few of them can single most people out: four places and"
        " times did 93 % of 60 million (Patterns 2021), sparse ratings 79 % of Netflix's users (arXiv 2603.18382);"
        f" `individual: {{column: {column}, rows: aligned}}`, or together, keeps what it promises to who"
        " knows all rows of a person"
    )


def people_warning(engine: Engine, subject: Subject, sensitive: Sequence[str]) -> str:
    """The warning of what counting rows hides in a table; empty if no column says by its name whose they are.

    What classes are told apart by, and what is sensitive, says whose no row is.
    """
    if subject.pair or (isinstance(subject.table, FileRelation) and (form := subject.table.form) and form.is_exported):
        return ""
    aside = {name.lower() for name in [*sensitive, *subject.class_columns]}
    columns = [column for column in columns_of(engine, subject.table) if column.name.lower() not in aside]
    people = likely_people(engine, subject.table, columns)
    if people is None:
        return ""
    person = Identifier(people.column.name)
    return warn_of_people(engine, people, subject.table, person, class_columns=subject.renamed)
