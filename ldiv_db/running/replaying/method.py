"""The method of a release, ready to be run on worlds: what an attacker has who has the program and the policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.attacking.covering import LabelAxis
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.recode import SpanColumn

#: The number of a row, which goes along with it wherever its values go.
ROW_NO = Renamed(Identifier("row_no"), Identifier("row_no"))


@dataclass(frozen=True)
class Compared:
    """A table of a release, and the columns in which it is compared with the same table of another."""

    table: Relation | FileRelation
    columns: Sequence[Identifier]


@dataclass(frozen=True)
class Made:
    """What the method made of a world: rows (row_id, row_no, ...), their classes, and the tables of the release.

    `assigned` is (row_id, `class_id`), `blanked` (class_id, code) are values of the first sensitive attribute that are
    published as NULL. Rows of classes with labels (class_id, label_rank, the columns `shown`) fit all
    classes whose labels cover them.
    """

    rows: Relation
    assigned: Relation
    class_id: Identifier
    tables: Sequence[Compared]
    labels: Relation | None = None
    shown: Sequence[SpanColumn] = ()
    blanked: Relation | None = None


@dataclass(frozen=True)
class People:
    """The source's rows: `relation` has their working columns, row_no and payload_no, `donors` a row a payload.

    `known` are the columns that the attacker knows of everybody, `told` those that a world gives out anew.
    """

    engine: Engine
    relation: Relation
    donors: Relation
    known: Sequence[Identifier]
    told: Sequence[Identifier]

    def world(self, moves: Relation, number: int) -> Relation:
        """The source's copy as it would be in a world; `moves` (world_no, row_no, payload_no) say what is otherwise."""
        return self.engine.materialise(
            "world",
            "running/replaying/list_world",
            people=self.relation,
            donors=self.donors,
            moves=moves,
            known=self.known,
            told=self.told,
            world=Value(number),
        )


def number_people(engine: Engine, snapshot: Relation, told: str, key: Renamed | None) -> People:
    """The rows of a source's copy; columns whose names begin with a letter of `told` are given out by worlds."""
    columns = [Identifier(column.name) for column in columns_of(engine, snapshot)]
    parts = {
        "known": [column for column in columns if column.name[0] not in told],
        "told": [column for column in columns if column.name[0] in told],
    }
    people = engine.materialise("people", "running/replaying/number_people", snapshot=snapshot, key=key, **parts)
    donors = engine.materialise("donors", "running/replaying/list_donors", people=people)
    return People(engine, people, donors, **parts)


@dataclass
class Method(ABC):
    """A policy and its source, read once; it makes the release of any world, by any seed.

    `release` are the tables that were published, `axes` the labels in it, if it has some.
    """

    engine: Engine
    resolved: Resolved
    people: People
    release: Sequence[Compared]
    axes: Sequence[LabelAxis]

    @abstractmethod
    def make(self, world: Relation, seed: int) -> Made:
        """What the program makes of a world; raises InfeasibleError if that is no release."""

    def gives_release(self, world: Relation, seed: int) -> bool:
        """Whether the program makes of a world what was published."""
        try:
            made = self.make(world, seed)
        except InfeasibleError:
            return False
        return self.is_release(made)

    def is_release(self, made: Made) -> bool:
        """Whether that is what was published."""
        if len(made.tables) != len(self.release):
            return False
        return not any(
            self.engine.scalar(
                "running/replaying/count_unlike", one=one.table, other=other.table, columns=other.columns
            )
            for one, other in zip(made.tables, self.release, strict=True)
        )
