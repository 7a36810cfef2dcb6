"""What callers ask, declared once: a question is a dataclass, and `Asked` says of a field what a user may give for it.

The command's options (`commands/options.py`), the bounds of numbers and the Python call are made from its fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_type_hints

from ldiv_db.database.errors import Problem

Question = TypeVar("Question")


@dataclass(frozen=True)
class Asked:
    """What a field of a question takes: a command's help for it, its bounds, and its option if not the field's name."""

    help: str
    least: int | None = None
    most: int | None = None
    option: str | None = None


def asked_of(kind: type) -> dict[str, Asked]:
    """What users may give for a question's fields, by their names."""
    hints = get_type_hints(kind, include_extras=True)
    found = {one.name: getattr(hints[one.name], "__metadata__", ()) for one in fields(kind)}
    return {name: said[0] for name, said in found.items() if said and isinstance(said[0], Asked)}


def given_for(question: Any) -> dict[str, Any]:
    """What users gave for a question, by the names of its fields."""
    return {name: getattr(question, name) for name in asked_of(type(question))}


def question_of(kind: type[Question], arguments: Mapping[str, Any], **settled: Any) -> Question:
    """The question that a call asks by the arguments of its fields' names, but for those that are `settled`."""
    given = {name: arguments[name] for name in asked_of(kind) if name in arguments}
    return kind(**(given | settled))


def out_of_bounds(question: Any) -> Iterator[Problem]:
    """The whole numbers of a question that are beyond their bounds."""
    for name, asked in asked_of(type(question)).items():
        value, least, most = getattr(question, name), asked.least, asked.most
        if least is not None and most is not None and value is not None and not least <= value <= most:
            yield Problem(name, f"takes a whole number from {least} to {most:,}")
