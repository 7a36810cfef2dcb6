"""Failures of statements, put in words of ours: a sentence where a user's table or file is to blame, SQL where we are.

A server's own words may quote a row, or a part of a password. So none is handed on: each form that is known has a
sentence. Exceptions of the database's client are told by the names of their types, so that one module imports it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from ldiv_db.database.errors import CONVERT, NOT_UTF_8, ConflictError, ConstraintError, DatabaseError, refused
from ldiv_db.database.templates import BUILT_IN, Statement

#: What servers say, and our sentences.
_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: The sentences of conflicts: to try again may help.
CONFLICT, MADE = _WORDS["conflict"], _WORDS["made"]
_FORMS: list[tuple[str, str]] = [
    ("|".join(one["said"]), one.get("means") or _WORDS[one["is"]]) for one in _WORDS["known"]
]

_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]\s*(.*)")
#: The names of Java's exceptions, which stand before their messages.
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error):?\s*")
#: Conditions whose sentences quote values of the data.
_QUOTING = ("CAST_", "INVALID_INPUT", "CANNOT_PARSE", "MALFORMED", "DIVIDE", "ARITHMETIC", "NUMERIC_VALUE", "UDF")


def sentence_of(text: str) -> str | None:
    """The meaning of an error of a server or of a foreign file, None for a form that is not known."""
    for form, sentence in _FORMS:
        match = re.search(form, text)
        if match:
            return sentence.format(*(word.strip("\"';,.") for word in match.groups()))
    return None


#: Errors whose text is about names and resources. The text of any other may quote a row's value, so it is withheld.
_PLAIN = frozenset({
    "BinderException", "CatalogException", "ConnectionException", "DependencyException", "InternalException",
    "IOException", "NotImplementedException", "OutOfMemoryException", "ParserException", "PermissionException",
    "SyntaxException", "TransactionException",
})  # fmt: skip
#: Of these, the ones about the machine: no statement is to blame.
_RESOURCES = frozenset({"IOException", "OutOfMemoryException"})
#: The ones that come from what rows hold, wherever they are read.
_OF_ROWS = frozenset({
    "ConversionException", "DataError", "InvalidInputException", "InvalidTypeException", "OutOfRangeException",
    "TypeMismatchException",
})  # fmt: skip
#: The beginnings of errors of databases that are attached.
_OF_SERVERS = re.compile(
    r"(?:[\w ]*Error: )?(?:Failed to (?:execute|prepare|query|begin|commit|fetch|copy|open|create|connect)"
    r"|Unable to connect|Error (?:while|executing|in)|unable to|SQLite|DuckLake|MySQL|Postgres)",
    re.IGNORECASE,
)


#: Kinds of constraints, by the beginning of DuckDB's words where one is violated; the rest quotes a row.
_CONSTRAINTS = (
    (r"NOT NULL", ("NOT NULL",)),
    (r"CHECK", ("CHECK",)),
    (r"Violates foreign key", ("FOREIGN KEY",)),
    (r"PRIMARY KEY or UNIQUE|Duplicate key|duplicate key", ("PRIMARY KEY", "UNIQUE")),
)


def failure_of(error: Exception, statement: Statement) -> DatabaseError:
    """The report of a failed statement, in one sentence, or with its template, its numbered SQL and the hint.

    Raises PolicyError where the statement could not be sent for a text that was given.
    """
    refuse_half_characters(statement)
    text, kind = str(error), type(error).__name__
    if kind == "TransactionException" and "conflict" in text.lower():
        what = "another transaction writes the same at the same time"
        where = f" as {statement.writes}" if statement.writes else ""
        way_out = "commit one before the other begins, and make schemas before both (`ldiv migrate` makes the ledger's)"
        return ConflictError(f"{what}{where}: {way_out}")
    if kind == "Error" or _OF_SERVERS.match(text):  # whose words are not to be handed on
        return _of_server(text, statement)
    if "read-only" in text:
        return DatabaseError("the database is open read-only, and this step writes")
    return _of_duckdb(text, kind, statement)


def _of_duckdb(text: str, kind: str, statement: Statement) -> DatabaseError:
    if kind == "ConstraintException" and statement.writes is not None:
        words = text.removeprefix("Constraint Error: ")
        kinds = next((kinds for form, kinds in _CONSTRAINTS if re.match(form, words)), ())
        what = f"a {' or '.join(kinds)} constraint" if kinds else "a constraint"
        return ConstraintError(f"cannot write {statement.writes}: {what} of the table forbids it", kinds)
    hint = first_sentence(text) if kind in _PLAIN else f"{kind} (its text may quote data and is withheld)"
    if kind in _RESOURCES:
        return DatabaseError(f"{hint}, while running {statement.template}")
    if statement.writes is not None and kind in _PLAIN:
        return DatabaseError(f"cannot write {statement.writes}: {hint}")
    if statement.reads and (kind in _OF_ROWS or statement.template == BUILT_IN):
        names = " and ".join(dict.fromkeys(map(str, statement.reads)))
        if "nicode" in text and (place := _place_in_file(text)):
            return DatabaseError(f"{names} {NOT_UTF_8.format(place)} ({CONVERT})")
        where = _place_in_file(text) or f", while running {statement.template}" * (statement.template != BUILT_IN)
        return DatabaseError(f"{names} cannot be read: {hint}{where}")
    hint = text if kind in _PLAIN else f"{hint}{_place_in_file(text)}"
    return DatabaseError(f"{hint}\nin template {statement.template}:\n{statement.numbered()}")


def _place_in_file(text: str) -> str:
    """The place in a CSV file of the database's error, as `, in line 7`; no more of its text may be shown."""
    match = re.match(r"[\w ]*Error: CSV Error on Line: (\d+)\n", text)
    return f", in line {match[1]} of the file" if match else ""


def _of_server(text: str, statement: Statement) -> DatabaseError:
    sentence = sentence_of(text) or "the database refuses (its words may quote data and are withheld)"
    if sentence == CONFLICT:
        return ConflictError(f"{CONFLICT}: try again")
    if statement.writes is not None:
        return DatabaseError(f"cannot write {statement.writes}: {sentence}")
    if statement.reads:
        return DatabaseError(f"{' and '.join(dict.fromkeys(map(str, statement.reads)))} cannot be read: {sentence}")
    return DatabaseError(
        sentence if statement.template == BUILT_IN else f"{sentence}, while running {statement.template}"
    )


def said_there(error: BaseException, who: str, what: str) -> DatabaseError:
    """The error of a driver's as ours: its own words may quote a row or a password."""
    why = sentence_of(str(error)) or f"{type(error).__name__} (its words may quote data and are withheld)"
    return (ConflictError if why in (CONFLICT, MADE) else DatabaseError)(f"{who} cannot {what}: {why}")


def sentence_of_spark(error: BaseException) -> str:
    """The first sentence of what Spark says, or the name of its condition where that would quote data."""
    text = str(error).strip() or type(error).__name__
    if found := _CONDITION.search(text):
        condition, said = found.groups()
        return condition if condition.startswith(_QUOTING) else said.strip() or condition
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in lines if line.startswith("Caused by:")), lines[0] if lines else text)
    return _CLASS.sub("", cause.removeprefix("Caused by:").strip())[:300] or type(error).__name__


def first_sentence(text: str) -> str:
    """The first line of what the database says: the others repeat the statement, or advise on settings."""
    return text.strip().splitlines()[0].strip() if text.strip() else "no reason given"


def refuse_half_characters(statement: Statement) -> None:
    """Raise PolicyError if the statement, or a text bound to it, has no UTF-8 form and so could never be sent."""
    texts = [statement.sql, *(value for value in statement.values.values() if isinstance(value, str))]
    if any(map(has_half_character, texts)):
        what = "holds half a character (a lone surrogate), which no database can hold"
        raise refused("text", what, "look in the policy, the taxonomies and the options")


def has_half_character(text: str) -> bool:
    """True if the text has a lone surrogate, as `\\ud800` in YAML or JSON writes one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def unread_type(frame: Any, said: str) -> str:
    """The type of a column of pandas' that is not read: intervals, periods and the like; empty if none is known.

    DuckDB 1.5 does not tell intervals, in which `cut` has its categories.
    """
    if told := re.search(r"Data type '([^']+)' not recognized", said):
        return told[1]
    kinds = [getattr(getattr(kind, "categories", None), "dtype", kind) for kind in getattr(frame, "dtypes", ())]
    return next((str(kind) for kind in kinds if str(kind).startswith("interval")), "")
