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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any, Literal

from ldiv_db.algorithms.decomposition.grouping import Secret
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Members, Reading, members_of
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.requirements.guarantees import Guarantee
from ldiv_db.requirements.values import Named


@dataclass(frozen=True)
class LimitedAttribute:
    """A sensitive attribute, by its number and column, and the largest `share` of a value that anybody may come to.

    Values that may have another share are in `own`, by digests after the secret of their series: the ledger keeps them,
    and has no value as it is.
    """

    number: int
    column: Identifier
    share: Fraction
    own: Mapping[str, Fraction] = field(default_factory=dict)
    #: The steps after which its values are one.
    same: Reading = ()

    @property
    def is_set(self) -> bool:
        """True if rows have sets of values, of whose members it is the share of the rows that have each."""
        return members_of(self.same) is not None

    @property
    def largest_l(self) -> int:
        """The largest l whose 1/l bounds the share of every value: 1 where some are harmless."""
        return math.floor(1 / (max(self.share, *self.own.values(), Fraction(0)) or 1))

    @property
    def entry(self) -> list[Any]:
        """The limit as the ledger keeps it: `entered` reads it."""
        steps = [vars(step) if isinstance(step, Members) else step for step in self.same]
        return [str(self.share), {digest: str(share) for digest, share in self.own.items()}, steps]

    def __str__(self) -> str:
        most = f"1/{self.share.denominator}" if self.share.numerator == 1 else f"{float(self.share):.3g}"
        own = count_phrase(len(self.own), "value has its own", "values have their own")
        return f"{most} ({own})" if self.own else most

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
    listed = enumerate(settings, 1)
    return [LimitedAttribute(number, Identifier(name), Fraction(1, least)) for number, (name, least) in listed]


def promised_limits(
    promises: Mapping[str, Guarantee], same: Mapping[str, Reading], secret: str
) -> list[LimitedAttribute]:
    """The attributes with what is promised of each of their values in a series of that secret, numbered.

    `same` has the steps after which values of an attribute are one.
    """
    return [
        LimitedAttribute(
            number,
            Identifier(name),
            promise.share,
            {_digest(value, secret): share for value, share in promise.shares if share != promise.share},
            same.get(name, ()),
        )
        for number, (name, promise) in enumerate(promises.items(), 1)
    ]


def entered_limits(entries: Mapping[str, Sequence[Any]]) -> list[LimitedAttribute]:
    """The attributes as the ledger keeps them, numbered."""
    return [
        LimitedAttribute(
            number,
            Identifier(name),
            Fraction(share),
            {one: Fraction(own[one]) for one in own},
            tuple(Members(**step) if isinstance(step, Mapping) else step for steps in same for step in steps),
        )
        for number, (name, (share, own, *same)) in enumerate(entries.items(), 1)
    ]


def _digest(value: Named, secret: str) -> str:
    """The digest of a value as `list_cells` writes it: `list_limits` makes the same one."""
    return sha256(f"{secret}:{'-' if value is None else f'={value}'}".encode()).hexdigest()


def load_shares(engine: Engine, limits: Sequence[LimitedAttribute]) -> Relation:
    """The TEMP table (attribute_no, numerator, denominator) of the shares of values that have none of their own."""
    return engine.load("shares", _KEY | _SHARE, [(one.number, *one.share.as_integer_ratio()) for one in limits])


def list_limits(engine: Engine, cells: Relation, limits: Sequence[LimitedAttribute], secret: str) -> Relation:
    """The TEMP table (attribute_no, value, numerator, denominator) of the share that each value of cells may have."""
    rows = [(one.number, digest, *share.as_integer_ratio()) for one in limits for digest, share in one.own.items()]
    own = engine.load("own", _KEY | {"digest": "VARCHAR"} | _SHARE, rows)
    given = {"cells": cells, "shares": load_shares(engine, limits), "own": own, "secret": secret}
    return engine.materialise("limits", "publishing/list_limits", **given)


_KEY = {"attribute_no": "INTEGER"}
_SHARE = {"numerator": "HUGEINT", "denominator": "HUGEINT"}


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
    coded = [LimitedAttribute(secret.number, secret.code, Fraction(1, secret.l)) for secret in secrets]
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
    combined: Table,
    before: Table | None,
    limits: Sequence[LimitedAttribute],
    releases: tuple[str, ...],
) -> list[Channel]:
    """Channels by the combinations of groups, `cells` (group_id, attribute_no, value, n).

    With `before` it is their difference from the combinations that an earlier release published.
    """
    if len(limits) < 2:
        return []
    flow = EngineFlow(engine, "publishing", cells=cells, shares=load_shares(engine, limits))
    flow.step("pairs", "list_pairs", combined=combined, before=before, attributes=limits)
    flow.step("alike", "match_groups")
    rows = engine.records("publishing/summarise_pairs", **flow.params("summarise_pairs"))
    flow.drop("pairs", "alike", "shares")
    names = {limit.number: limit.column.name for limit in limits}
    return [
        Channel(names[row["attribute_no"]], releases, row["rows"], row["best"], names[row["known_no"]]) for row in rows
    ]
