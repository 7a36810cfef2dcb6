"""What is wrong with a document or a part of one, in our words, each with its key and the nearest right name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from ldiv_db.database.errors import Problem, nearest, what_is_wrong


def problem_of(item: Mapping[str, Any], whole: type[BaseModel]) -> Problem:
    """A pydantic error in our words; `whole` is what was read."""
    key = ".".join(str(part) for part in item["loc"] if not str(part).startswith("function-")) or "policy"
    if item["type"] == "extra_forbidden":
        return Problem(key, "unknown key", nearest(str(item["loc"][-1]), _owner(whole, item["loc"]).model_fields))
    if item["type"] == "missing":
        return Problem(key, "is required")
    return Problem(key, what_is_wrong(item))


def _owner(whole: type[BaseModel], location: Sequence[Any]) -> type[BaseModel]:
    """The part in which the last key of a location stands; the key after that of a mapping is a name of its own."""
    owner, is_name = whole, False
    for key in location[:-1]:
        field = None if is_name else owner.model_fields.get(str(key))
        is_name = field is not None and get_origin(field.annotation) is dict
        owner = next(_models(field.annotation), owner) if field is not None else owner
    return owner


def _models(annotation: Any) -> Any:
    """The parts that an annotation is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
