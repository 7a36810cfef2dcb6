"""What an attacker may come to, and by which releases he comes to more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.errors import count_phrase
from ldiv_db.database.templates import Identifier, Value


@dataclass(frozen=True)
class Limited:
    """A sensitive attribute, by its number and column, and its l: nobody may come to more than 1/l."""

    number: Value
    column: Identifier
    l: int  # noqa: E741 - the field's name for it

    @property
    def text(self) -> Identifier:
        """The column of its values, as text, among combinations."""
        return Identifier(f"v{self.number.value}")


@dataclass(frozen=True)
class Channel:
    """Keys of whose attribute more than 1/l can be told: by a release, by comparing two, or by combinations.

    These tell it to whoever knows the person's value of the attribute `known`.
    """

    attribute: str
    releases: tuple[str, ...]
    keys: int
    best: float
    known: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "releases": list(self.releases)}

    def __str__(self) -> str:
        what = f"{self.attribute}: {count_phrase(self.keys, 'key', 'keys')}, up to {self.best:.3f}"
        who = f", to an attacker who knows {self.known}, by the combinations of " if self.known else ", by "
        return what + who + " and ".join(self.releases)


def limits_of(settings: Sequence[tuple[str, int]]) -> list[Limited]:
    """The attributes with their l, numbered."""
    return [Limited(Value(number), Identifier(name), least) for number, (name, least) in enumerate(settings, 1)]
