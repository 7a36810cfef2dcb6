"""Roles of columns where nobody has said them: whose rows they are, and what identifies people.

Rows of one person have the same birthday, sex and home, and differ in what happened: a column whose values have a few
rows each, within which most other columns hardly vary, may be whose they are, whatever it is called.

A column that names rows of another table leads to whoever has that. A foreign key says so; without one another table
has a unique column of the column's name or of the same stem (`c_custkey` of `o_custkey`, `customers.id` of
`customer_id`), with all its values. Where a value has very many rows, the other table is taken for a list of
categories, such as countries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ldiv_db.auditing.people_names import (
    CATEGORY_ROWS,
    FEW_VALUES,
    NEARLY_UNIQUE,
    are_few_kinds,
    is_dialled,
    may_say_whose,
    tells_one,
    tells_somebody,
    tells_thing,
)
from ldiv_db.database.catalog import Column
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.lineage import columns_beside, foreign_keys
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.uniqueness import Summary

#: A column of more different values than this share of the rows varies in nearly any rows.
OFTEN_UNIQUE = 0.5
#: Values that are looked at, of those that have several rows, and other columns.
_MOST, _OTHERS = 1_000, 12
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


def held_by(engine: Engine, table: Table, summary: Summary, all_columns: Sequence[Summary]) -> tuple[int, int]:
    """Counts the other columns that belong to the values of a column, and all others that vary; one statement.

    (0, 0) where it cannot say whose rows they are.
    """
    if not (may_name(summary) and summary.has_few_rows and is_repeated(summary)):
        return 0, 0
    same = (summary.distinct, summary.nulls)  # of what says the same in other words, as a code and its text
    varying = [
        c for c in all_columns if 1 < c.distinct <= OFTEN_UNIQUE * c.rows and (c.distinct, c.nulls) != same
        and not c.decimals
    ]  # fmt: skip
    varying = varying[:: -(-len(varying) // _OTHERS) or 1]  # of many columns some tell as much as all
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
    many_texts = summary.column.type == "VARCHAR" and summary.distinct > FEW_VALUES
    texts = summary.texts
    long = summary.largest >= _DIALLED if texts is None else texts.numbered * 2 > summary.distinct
    if is_dialled(summary.column.name) and not many_texts and not long:
        return False  # makes of devices, minutes of calls
    few_rows = summary.rows < CATEGORY_ROWS * summary.distinct
    kinds = summary.distinct <= _KINDS and summary.rows >= _KIND_ROWS * summary.distinct
    return summary.distinct > FEW_VALUES or (summary.texts is not None and few_rows and not kinds)


#: Tables of more rows are not looked at, and of those that a column may belong to no more than so many.
_MOST_ROWS, _MOST_TABLES = 5_000_000, 5
#: A column's name after the letter or two of its table.
_STEM = re.compile(r"[a-z]{1,3}_(.+)")


class Keys:
    """The tables beside one table, asked column by column whether they own it."""

    def __init__(self, engine: Engine, table: Table) -> None:
        self._engine = engine
        self._declared: dict[str, tuple[Relation, str]] = {}
        self._beside: list[tuple[Relation, Column]] = []
        if isinstance(table, Relation):
            self._declared = foreign_keys(engine, table)
            self._beside = columns_beside(engine, table, _MOST_ROWS)

    def owner(self, summary: Summary, read: Table) -> str | None:
        """The name of the table whose rows the column of `read` names, None if there is none."""
        column = summary.column
        if column.is_time or column.is_fractional or summary.rows >= CATEGORY_ROWS * summary.distinct:
            return None
        if declared := self._declared.get(column.name.lower()):
            return declared[0].name
        own = set(stems(column.name))  # the names are one, but for the letters of their tables
        alike = [
            (table, other)
            for table, other in self._beside
            if (column.type == other.type or (column.is_integer and other.is_integer))
            and not own.isdisjoint(stems(other.name, singulars(table.name)))
        ]
        for table, other in alike[:_MOST_TABLES]:
            params = {"column": Identifier(column.name), "key": Identifier(other.name)}
            found = self._engine.record("measuring/profile/hold_against_key", source=read, other=table, **params)
            if not found["repeated"] and not found["strangers"]:
                return table.name
        return None


def stems(name: str, called: Iterable[str] = ()) -> Iterator[str]:
    """Names of a column elsewhere, in lower case: `id` of the table `customers` is `customer_id`."""
    name = name.lower()
    yield name
    if stem := _STEM.fullmatch(name):
        yield stem[1]
    if name in ("id", "key", "nr", "no", "number", "code"):
        yield from (f"{owner}_{name}" for owner in called)


#: How plurals end, and how what they are many of.
_PLURALS = (("s", ""), ("es", ""), ("ies", "y"), ("people", "person"), ("children", "child"), ("men", "man"))


def singulars(table: str) -> set[str]:
    """What one row of a table may be called, in lower case, and the table itself."""
    name = table.lower()
    found = (name.removesuffix(many) + one for many, one in _PLURALS if name.endswith(many))
    return {name, *filter(None, found)}


IDENTIFIER, QUASI_IDENTIFIER, SENSITIVE, KEPT = "identifier", "quasi-identifier", "sensitive", "kept"
#: What columns are called that number rows.
_NUMBERING = re.compile(r"(?i:(^|_)(id|uuid|guid)$|[a-z]_?key$)|[a-z]I[dD]$")


def why_by_values(summary: Summary) -> str:
    """Why a column is taken for an identifier by its values and how they are spread; empty if it is not."""
    if summary.distinct == 1 and summary.rows > 1 and not summary.nulls:
        return "the same in every row: it tells nothing, and `keep` publishes it"
    if summary.is_measure or is_postal(summary) or is_place(summary):
        return ""  # a birthday, a town or a cost is one of many things that are known of somebody
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
    if summary.texts is not None and summary.texts.longest > _LINE and _PROSE.search(_apart(name)):
        return "by its name free text, which may say anything"
    is_key = _NUMBERING.search(name) and not (is_code_of_kinds(name) or tells_thing(name))
    return "its name: a key" if is_key and summary.has_few_rows and not summary.is_measure else ""


def is_code_of_kinds(name: str) -> bool:
    """True if a column has by its name codes of kinds of things: concepts, types, states."""
    return _CODES.search(_apart(name)) is not None


def numbers_kinds(summary: Summary) -> bool:
    """True if whole numbers of a column stand for kinds or for rows, so that those between two mean nothing."""
    name, column = summary.column.name, summary.column
    return column.is_integer and (is_code_of_kinds(name) or bool(_NUMBERING.search(name))) and not tells_thing(name)


#: What columns of codes are called, and of prose, whose texts are longer than so many characters.
_CODES = re.compile(
    r"(^|_)(concepts?|codes?|types?|status|kinds?|category|reason)(_(ids?|keys?|nr|no|codes?|values?))?$"
)
_PROSE = re.compile(r"(^|_)(notes?|comments?|remarks?|descriptions?|memos?|narrative|bio(graphy)?|bemerkung(en)?)$")
_LINE = 30
#: What columns of places are called in which many people live.
_PLACE = re.compile(
    r"(^|_)(city|town|village|state|province|region|county|country|district|municipality|suburb|borough|stadt|ort|land|"
    r"bundesland|ville|pays|ciudad|pais|provincia|cidade|citta|comune|plaats|gemeente|miasto)$"
)


def is_place(summary: Summary) -> bool:
    """True if a column has by its name places in which many people live, as towns and countries."""
    return summary.texts is not None and bool(_PLACE.search(_apart(summary.column.name)))


#: What columns of postal codes are called.
_POSTAL = re.compile(
    r"(^|[^a-z])(zip|zip_?codes?|postal(_?codes?)?|post_?codes?|plz|postleitzahl|code_?postal|c[oó]digo_?postal|cod_?postal"
    r"|kod_?pocztowy|postnummer|postnr|postinumero|ir[aá]ny[ií]t[oó]sz[aá]m|psc|cep)($|[^a-z])|^(cap|cp)$",
    re.IGNORECASE,
)


#: What columns are called that tell of one life: the two names of a person or a birth; and a sex.
_LIFE = re.compile(
    r"(^|_)((first|last|given|family|full|middle|maiden|fore|sur)_?names?|names?_(first|last|given)"
    r"|(birth|born|dob|yob)(_?(date|day|month|year|place|city|country|datetime))?|geburts(datum|tag|jahr)"
    r"|vorname|nachname|prenom|apellidos?|cognome|voornaam|achternaam|imie|nazwisko|naissance|nacimiento|nascita)$"
)
_SEX = re.compile(r"(^|_)(sex|gender|geschlecht|sexe|sexo|sesso|geslacht|plec)($|_)")


def tells_life(name: str) -> bool:
    """True if a column has by its name what one has of a life: the names of a person, or a birth."""
    return _LIFE.search(_apart(name)) is not None


def tells_sex(name: str) -> bool:
    """True if a column has by its name a sex, which things for sale are made for as well."""
    return _SEX.search(_apart(name)) is not None


def _apart(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def is_postal(summary: Summary) -> bool:
    """True if a column has postal codes, by its name."""
    return bool(_POSTAL.search(summary.column.name))
