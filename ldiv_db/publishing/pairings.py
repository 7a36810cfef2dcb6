"""Channels by which releases tell too much, and combinations of sensitive values, which may be one.

Of somebody of whom no sensitive value is known combinations tell nothing: which of a group's rows is a person's was
dealt by coins (`algorithms.decomposition`), whatever the rows have in common. But an attacker who knows one value of a
person, say a, looks which of the group's values of another attribute are combined with a, and how often. In every
group, for every value and every other attribute, the most frequent of these combinations must not have more than 1/l of
them. Each group is looked at by itself, by all combinations: an attacker who solves all groups at once, as a puzzle, is
not bounded so.

The combinations of a second release less those of the first are those of the new groups alone, in a group of three all
its pairings. So only the first release of a series has a table of them, and there are no differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ldiv_db.algorithms.decomposition.grouping import Secret
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation


@dataclass(frozen=True)
class LimitedAttribute:
    """A sensitive attribute, by its number and column, and its l: nobody may come to more than 1/l."""

    number: int
    column: Identifier
    l: int

    @property
    def text(self) -> Identifier:
        """The column of its values, as text, among combinations."""
        return Identifier(f"v{self.number}")


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


def limits_of(settings: Sequence[tuple[str, int]]) -> list[LimitedAttribute]:
    """The attributes with their l, numbered."""
    return [LimitedAttribute(number, Identifier(name), least) for number, (name, least) in enumerate(settings, 1)]


def load_limits(engine: Engine, limits: Sequence[LimitedAttribute]) -> Relation:
    """The TEMP table (attribute_no, l)."""
    rows = [(limit.number, limit.l) for limit in limits]
    return engine.load("limits", {"attribute_no": "INTEGER", "l": "BIGINT"}, rows)


Option = Literal["checked", "first", "none"]


@dataclass(frozen=True)
class CombinationsDecision:
    """The decision on combinations of a release: the option, the verdict, and what the combinations reveal."""

    option: Option
    published: bool
    told: tuple[Channel, ...] = ()

    @property
    def allowed(self) -> bool:
        """True if they are published whatever they tell."""
        return self.option == "first"

    def as_dict(self) -> dict[str, Any]:
        told = [{"attribute": c.attribute, "known": c.known, "keys": c.keys, "best": c.best} for c in self.told]
        return {"option": self.option, "published": self.published, "told": told}

    @property
    def note(self) -> str | None:
        """A note on them for the user, None if they tell nothing."""
        if not self.told:
            return None
        worst = max(self.told, key=lambda channel: (channel.best, channel.keys))
        keys = count_phrase(worst.keys, "key", "keys")
        what = f"{worst.attribute} of {keys} with probability up to {worst.best:.3g}"
        what += f" for an attacker who knows {worst.known}"
        more = f", and {len(self.told) - 1} more pairs of attributes" if self.told[1:] else ""
        if self.published:
            return f"the table of combinations reveals {what}{more}"
        return f"there is no table of combinations: it would reveal {what}{more}"


def plan_combinations(
    engine: Engine, option: Option, shown: Relation, secrets: Sequence[Secret]
) -> CombinationsDecision:
    """Decide if the first groups, `shown` (group_no, the codes to be published), get a table of combinations."""
    if option == "none":
        return CombinationsDecision(option, published=False)
    coded = [LimitedAttribute(secret.number, secret.code, secret.l) for secret in secrets]
    told_by = {"published": shown, "attributes": coded, "group": [Identifier("group_no")], "count": None, "release": 1}
    cells = engine.materialise("cells", "publishing/list_cells", **told_by)
    names = {secret.code.name: secret.name for secret in secrets}
    told = tuple(
        replace(channel, attribute=names[channel.attribute], known=names[channel.known or ""])
        for channel in tell_pairings(engine, cells, shown, None, coded, ("release 1",))
    )
    engine.drop(cells)
    return CombinationsDecision(option, option == "first" or not told, told)


def tell_pairings(
    engine: Engine,
    cells: Relation,
    combined: Relation,
    before: Relation | None,
    limits: Sequence[LimitedAttribute],
    releases: tuple[str, ...],
) -> list[Channel]:
    """Channels by the combinations of groups, `cells` (group_id, attribute_no, value, n).

    With `before` it is their difference from the combinations that an earlier release published.
    """
    if len(limits) < 2:
        return []
    flow = EngineFlow(engine, "publishing", cells=cells, limits=load_limits(engine, limits))
    flow.step("pairs", "list_pairs", combined=combined, before=before, attributes=limits)
    flow.step("alike", "match_groups")
    rows = engine.records("publishing/summarise_pairs", **flow.params("summarise_pairs"))
    flow.drop("pairs", "alike", "limits")
    names = {limit.number: limit.column.name for limit in limits}
    return [
        Channel(names[row["attribute_no"]], releases, row["rows"], row["best"], names[row["known_no"]]) for row in rows
    ]
