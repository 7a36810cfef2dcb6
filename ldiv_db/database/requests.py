"""Requests: one dataclass is the question of a call, of which its arguments and the options of its command are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from ldiv_db.database.errors import Problem

Request = TypeVar("Request")
Answer = TypeVar("Answer")
P = ParamSpec("P")
_KEY = "asked"


@dataclass(frozen=True)
class Asked:
    """How a command asks for a field of a request: in what words, and for what type; `read` makes the field's of it.

    Without words it is an option that several commands share. A number is from `least` to `most`. Where it asks `of`
    another request, the fields of that are options as well, named after this one.
    """

    words: str = ""
    read: Callable[[Any], Any] | None = None
    of: Any = str | None
    name: str = ""
    least: int | None = None
    most: int | None = None


def asked(default: Any, words: str = "", read: Callable[[Any], Any] | None = None, **how: Any) -> Any:
    """A field of a request that commands ask for; see `Asked`. A truth value or a number is of its own type."""
    own = {"of": type(default)} if isinstance(default, bool | int) else {}
    return field(default=default, metadata={_KEY: Asked(words, read, **own | how)})


def _places(request: Any) -> dict[str, int]:
    """The places of a request's fields where they are listed: its own first, then those of its parts, part by part."""
    kinds = (request if isinstance(request, type) else type(request)).__mro__
    names = (name for kind in kinds for name in vars(kind).get("__annotations__", ()))
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def asked_fields(request: Any) -> dict[str, tuple[Any, Asked]]:
    """The default of each field that commands ask for, and how they do."""
    places, every = _places(request), (one for one in fields(request) if _KEY in one.metadata)
    return {one.name: (one.default, one.metadata[_KEY]) for one in sorted(every, key=lambda one: places[one.name])}


def number_problems(request: Any, *names: str, prefix: str = "") -> Iterator[Problem]:
    """Problems of those numbers of a request, by default of all, that are too small or too large."""
    for name, (_, how) in asked_fields(request).items():
        value, least, most = getattr(request, name), how.least, how.most
        if least is None or most is None or value is None or (names and name not in names):
            continue
        if not least <= value <= most:
            yield Problem(f"{prefix}{name}", f"takes a whole number from {least} to {most:,}")


def asks(
    request: Callable[P, Request],
) -> Callable[[Callable[[Any, Request], Answer]], Callable[Concatenate[Any, P], Answer]]:
    """Has a function of a connection and a request take the fields of the request as arguments of its own."""

    def decorate(answer: Callable[[Any, Request], Answer]) -> Callable[Concatenate[Any, P], Answer]:
        whole = signature(answer)
        first = next(iter(whole.parameters.values()))
        places, taken = _places(request), signature(request).parameters.values()
        told = sorted(taken, key=lambda one: (one.kind, places[one.name] if one.kind is one.KEYWORD_ONLY else 0))
        shape = whole.replace(parameters=[first, *told])

        @wraps(answer)
        def call(*args: Any, **kwargs: Any) -> Answer:
            given = shape.bind(*args, **kwargs)
            connection = given.arguments.pop(first.name)
            return answer(connection, cast(Callable[..., Request], request)(**given.arguments))

        call.__signature__ = shape  # type: ignore[attr-defined]
        return call

    return decorate
