"""People who give up rows, as too many of those who publish as many rows have one value.

Where N_v of the N people of a level have v, which the share s may have, (N_v - s N) / (1 - s) of them, rounded up, must
go, and it is enough that they do. They give up the rows with v, and what belongs to these, and publish what is left.
Who has the fewest such rows does, where most people of similar quasi-identifiers have v, so that small classes can be
good, and of equals whom a secret draws.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.stacked import Stack
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.guarantees import together

#: The largest denominator of a share, so that its products with counts are whole numbers of 64 bits.
MOST_WHOLE = 10**9
#: How many people next to each other have the value about equally often once some have given up rows with it.
BLOCK = 16


@dataclass(frozen=True)
class Bounded:
    """A sensitive column, by number, of whose values so many people have each at most; `coded` is (code, value).

    A value may have `most` of `whole` people, if it has no share of its own. With `is_whole` (1) somebody who gives up
    such a row gives up all.
    """

    number: int
    code: Identifier
    coded: Relation
    most: int
    whole: int
    own: Sequence[tuple[str | None, int, int]]
    is_whole: int


@dataclass(frozen=True)
class Frequent:
    """What is too frequent in the levels of people: `found` is (level, how many must go), of each value."""

    attributes: Sequence[Bounded]
    ceilings: Relation
    holders: Relation
    listed: Relation
    found: Sequence[tuple[int, int]]

    @property
    def people(self) -> int:
        """How many people must go at least."""
        most = dict[int, int]()
        for level, gone in self.found:
            most[level] = max(gone, most.get(level, 0))
        return sum(most.values())

    def given_up(self, engine: Engine, stack: Stack, secret: str) -> Relation:
        """(row_id): the rows of the stack that people of these levels give up."""
        params = {"holders": self.holders, "frequent": self.listed, "ceilings": self.ceilings, "secret": secret}
        known = {"attributes": self.attributes, "rows": stack.encoded.rows}
        return engine.materialise("given_up", "recoding/tables/give_up_rows", **params, **known)


def bounded_in(stack: Stack, wanted: Mapping[str, Sequence[Requirement]], alone: Collection[int]) -> list[Bounded]:
    """The sensitive columns whose values have a bounded share.

    Of the members `alone` a person has one row, on which all others hang.
    """
    found = list[Bounded]()
    for axis in stack.encoded.told:
        promises = [one.promise() for one in wanted[axis.column.name] if one.bounds_shares and not one.each]
        if promises:
            least, is_whole = together(promises), int(stack.owners[axis.code].number in alone)
            own = [(value, *_ratio(share)) for value, share in least.shares]
            found.append(Bounded(len(found) + 1, axis.code, axis.coded, *_ratio(least.share), tuple(own), is_whole))
    return found


def _ratio(share: Fraction) -> tuple[int, int]:
    return share.limit_denominator(MOST_WHOLE).as_integer_ratio()


def frequent_in(
    engine: Engine, stack: Stack, published: Relation, attributes: Sequence[Bounded], slack: Fraction
) -> Frequent:
    """What is too frequent in the levels of published rows, and how many must go so that `slack` of a share is left."""
    columns = {"attribute": "INTEGER", "value": "VARCHAR", "most": "BIGINT", "whole": "BIGINT"}
    own = [(one.number, *threshold) for one in attributes for threshold in one.own]
    thresholds = engine.load("thresholds", columns, own)
    named = {"attributes": attributes}
    ceilings = engine.materialise("ceilings", "recoding/tables/list_ceilings", thresholds=thresholds, **named)
    axes = sorted(stack.encoded.axes, key=lambda axis: axis.scale)
    params = {"published": published, "ceilings": ceilings, "axes": axes, "block": BLOCK, **named}
    holders = engine.materialise("holders", "recoding/tables/list_holders", **params)
    listed = engine.materialise("frequent", "recoding/tables/count_frequent", holders=holders, slack=slack)
    return Frequent(attributes, ceilings, holders, listed, engine.columns(listed, "level", "gone"))
