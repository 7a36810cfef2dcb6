"""The encoded table, as algorithms see it: axes of integer codes, sensitive codes, kept columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ldiv_db.database.counted import WEIGHT
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Looseness, Reading
from ldiv_db.database.names import Identifier, NamedAfter, Relation, SqlType, Value
from ldiv_db.database.steps import Steps
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.recoding.bags import Bags
from ldiv_db.recoding.set_words import SetWord, words_of
from ldiv_db.requirements import Classes, Distribution, OfPeople, Requirement
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: Codes of numbers that are not whole, or too far apart, run from 0 to this.
NUMBER_SCALE = 2**30
#: Losses per value are integers, in billionths, so that sums do not depend on their order.
LOSS_UNIT = 10**9

#: The name of the column that says how many of a cell a class has.
DEALT = Identifier("dealt")


@dataclass(frozen=True)
class Renamed:
    """A column of the source, and the name under which the working tables carry it."""

    column: Identifier
    alias: Identifier
    #: The way in which equal values may be written differently, if they may.
    loose: Looseness | None = None
    #: The steps after which its values are one.
    same: Reading = ()
    #: The type that it is read in, if not its own.
    cast: SqlType | None = None


@dataclass(frozen=True)
class OpenEnds:
    """The ends of plain numbers: from `top` on all are one value, called `above`, and below `bottom`, `below`.

    Those stand at `top`, these at `floor`, next to `bottom`.
    """

    bottom: float | None = None
    top: float | None = None
    floor: float | None = None
    below: Value = Value(None)  # noqa: RUF009 - frozen
    above: Value = Value(None)  # noqa: RUF009 - frozen

    def __bool__(self) -> bool:
        return self.bottom is not None or self.top is not None

    def clamped(self, position: float) -> float:
        """Where a number stands."""
        low = position if self.floor is None else max(position, self.floor)
        return low if self.top is None else min(low, self.top)


@dataclass(frozen=True)
class Domain:
    """The domain of numbers or times: its width, in seconds of these, and the ends beyond which all are one value."""

    width: float
    is_time: bool = False
    ends: OpenEnds = OpenEnds()


@dataclass(frozen=True)
class Axis:
    """One quasi-identifier as algorithms see it: integer codes `0..scale`, ordered.

    `dictionary` is (value, code); `nodes` are the taxonomy's, None for plain numbers. `null_code` is
    the code of NULL, None if the column holds none; it is counted in `scale` for a taxonomy only. With `sets` classes
    publish the sets of its values, of so many at most: to algorithms its codes are a line, and NULL is one of them.
    """

    column: Identifier
    code: Identifier
    dictionary: Relation
    scale: int
    null_code: int | None
    weight: float
    nodes: Relation | None = None
    taxonomy: Taxonomy | None = None
    sets: int = 0
    #: What its codes are of, if it has numbers alone.
    domain: Domain | None = None
    #: How many published cells a code stands for: of a unit that is several rows, those in which it does not vary.
    cells: int = 1
    #: About how many quasi-identifiers become narrower with this one, itself among them.
    alike: float = 1.0

    low = NamedAfter("{0.code.name}_low")
    high = NamedAfter("{0.code.name}_high")
    table = NamedAfter("t_{0.code.name}")

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def ends(self) -> OpenEnds:
        return self.domain.ends if self.domain else OpenEnds()

    @property
    def tree(self) -> Taxonomy | None:
        """The taxonomy whose nodes classes publish; None of a line, of numbers or sets."""
        return None if self.sets else self.taxonomy

    @property
    def null_apart(self) -> int | None:
        """The code of NULL where it makes everything of any others: it is no number, and a member of sets."""
        return None if self.sets else self.null_code

    @property
    def words(self) -> tuple[SetWord, ...]:
        """Its codes as the words of a set; none of a tree, of numbers, and of very many codes."""
        return words_of(self.code.name, self.leaves) if self.sets else ()

    @property
    def leaves(self) -> int:
        """The number of leaves of the taxonomy, NULL counted if it occurs."""
        return self.scale + 1


@dataclass(frozen=True)
class SensitiveAxis:
    """One sensitive attribute: codes from 1 in an order given by the seed; `dictionary` is (value, rows, code).

    The individual is encoded alike, in the order of its values; NULL, somebody of whom nothing is known, has
    no code there, so that it equals nobody. `judged` is the dictionary without NULL, and its distribution, if there is
    NULL and rows that have it are not judged. `own` is the column of the rows with what is published of each, where
    equal values are written differently: they have one code.
    """

    column: Identifier
    code: Identifier
    dictionary: Relation
    distribution: Distribution
    judged: tuple[Relation, Distribution] | None = field(default=None, kw_only=True)
    own: Identifier | None = field(default=None, kw_only=True)
    #: The distribution of the values of which something is promised, if nothing is of some that are judged.
    spared: Distribution | None = field(default=None, kw_only=True)
    #: The values that are judged in the whole table, where this is the attribute of a part of it.
    whole: Relation | None = field(default=None, kw_only=True)
    #: What the codes stand for where they are those of bags, of people with several values.
    bags: Bags | None = field(default=None, kw_only=True)

    #: Whether something is asked of it at each position of people's rows as well.
    each: bool = field(default=False, kw_only=True)
    #: The attribute that this is at one position of people's rows; empty if it is of all rows.
    of: str = field(default="", kw_only=True)

    table = NamedAfter("t_{0.code.name}")
    #: The column of another row's code, beside that of a row.
    other = NamedAfter("{0.code.name}_other")

    def asked(self, wanted: Mapping[str, Sequence[Requirement]]) -> list[Requirement]:
        """Of what is wanted of each attribute that of this one; at one position it is what is asked at each."""
        own = wanted[self.of or self.column.name]
        return [replace(one, each="") for one in own if bool(one.each) == bool(self.of)]

    def at(self, turn: int) -> SensitiveAxis:
        """The attribute at one position, from 1, of the rows that have it."""
        name, code = f"{self.column.name} (row {turn})", f"{self.code.name}_at_{turn}"
        return replace(self, column=Identifier(name), code=Identifier(code), each=False, of=self.column.name)

    @property
    def is_said(self) -> bool:
        """True if it is a column of the source, and of the release; else it stands for rows alone."""
        return bool(self.column.name)

    @property
    def tables(self) -> list[Relation]:
        """All that it refers to, but for what is of the whole table where it is of a part."""
        bags = self.bags.tables if self.bags else []
        return [self.dictionary, *([self.judged[0]] if self.judged else []), *bags]

    @property
    def reference(self) -> Relation:
        """The values that are judged, (value, rows, code): what shares in a class are compared with."""
        return self.whole or (self.judged[0] if self.judged else self.dictionary)

    @property
    def written(self) -> Relation:
        """(value, code) as rows of the source have it: a set is one value."""
        return self.dictionary if self.bags else self.reference

    @property
    def coded(self) -> Relation:
        """(code, value): the values that each code stands for."""
        return self.bags.listed if self.bags else self.reference

    @property
    def values(self) -> Relation:
        """The values that are judged, (value, rows), with the people who have each where its codes are of bags."""
        return self.bags.whole if self.bags else self.reference

    def classes(self, steps: Steps, histogram: Relation) -> Classes:
        """The classes of a histogram of the values, or of the codes of bags."""
        if self.bags is None:
            return Classes(steps, histogram, self.reference)
        bags, scale = self.bags, Value(self.bags.scale)

        def spread(name: str, shares: bool = False, by_rows: bool = False) -> Relation:
            params = {"bags": bags.listed, "scale": scale, "shares": shares, "by_rows": by_rows}
            return steps.materialise(name, "requirements/spread_bags", histogram=histogram, **params)

        def units(shares: Relation, of_rows: bool = False) -> Classes:
            return Classes(steps, spread("units", True, of_rows), shares)

        by_rows = None
        if bags.rows:
            of_sets = OfPeople(partial(units, bags.row_shares, True)) if bags.row_shares else None
            by_rows = Classes(steps, spread("people", by_rows=True), bags.rows, of_people=of_sets)
        of_people = OfPeople(partial(units, bags.shares) if bags.scale else None, by_rows)
        return Classes(steps, spread("people"), bags.whole, of_people=of_people)

    def whole_table(self, engine: Engine) -> Classes:
        """The whole table as one class."""
        return self.classes(engine, engine.materialise("whole", "requirements/take_whole", dictionary=self.reference))

    @property
    def judged_distribution(self) -> Distribution:
        return self.judged[1] if self.judged else self.distribution

    @property
    def asked_distribution(self) -> Distribution:
        """The values that are judged, those of which nothing is promised as rows beside."""
        return self.spared or self.judged_distribution

    @property
    def parted_distribution(self) -> Distribution:
        """The values of which a class of different ones has one row each, harmless ones as rows beside."""
        return self.spared or self.distribution

    @property
    def free(self) -> int:
        """Rows of harmless values, each as of a value of its own."""
        return self.spared.harmless if self.spared else 0

    @property
    def loose(self) -> Looseness | None:
        """The way in which equal values may be published differently."""
        return "signs" if self.own else None


@dataclass(frozen=True)
class Encoded:
    """The encoded table: `rows` is (row_id, codes, kept columns), `row_id` from 1 in an order given by content alone.

    Without a sensitive attribute there is one of a single value that is not published. `rows_in` counts the source's
    rows, `left_out` those that a NULL took out before anything else; `individual` is whose row it is, if the policy
    says so: it is never published. Where equal rows are counted, `cells` is (row_id of the first, codes, kept columns,
    `weight`, how many they are), and `rows` a view of all of them: what can be had of counts is had of these.
    """

    rows: Relation
    axes: tuple[Axis, ...]
    sensitive: tuple[SensitiveAxis, ...]
    kept: tuple[Renamed, ...]
    rows_in: int
    left_out: int
    individual: SensitiveAxis | None = None
    cells: Relation | None = None
    #: How many cells there are.
    different: int = 0
    #: Whether its rows are people.
    of_people: bool = False

    @property
    def noun(self) -> str:
        """What its rows are called in words."""
        return "people" if self.of_people else "rows"

    @property
    def tables(self) -> list[Relation]:
        """Its rows, and all that its sensitive attributes refer to."""
        return [self.rows, *(table for axis in self.sensitive for table in axis.tables)]

    @property
    def counted(self) -> Relation:
        """The unit that rows are counted in: the counts of the source, or its rows."""
        return self.cells or self.rows

    @property
    def weight(self) -> Identifier | None:
        """The column of `counted` that says how many rows each stands for; None if it is one."""
        return WEIGHT if self.cells else None

    @property
    def codes(self) -> list[str]:
        """The columns of the codes of all quasi-identifiers."""
        return [axis.code.name for axis in self.axes]

    def members(self, dealt: Identifier | None) -> Relation:
        """What a plan assigns to classes: cells, if it says in that column how many of each, or rows."""
        return self.counted if dealt else self.rows

    def in_rows(self, engine: Engine) -> Encoded:
        """The same with a table of all rows in place of cells."""
        return replace(self, rows=engine.copy("rows", self.rows), cells=None) if self.cells else self

    def count_cells(self, engine: Engine, *columns: ColumnName) -> Relation:
        """(the codes of all quasi-identifiers, the columns, rows): how many rows have each combination."""
        if self.weight is None:
            return engine.count_groups("cells", self.rows, *self.codes, *columns)
        return engine.group("cells", self.counted, *self.codes, *columns, rows=("sum", self.weight.name))

    def bound_classes(
        self, engine: Engine, assigned: Relation, name: str = "bounds", dealt: Identifier | None = None
    ) -> Relation:
        """(class_id, rows, each quasi-identifier's smallest and largest code and bits) of rows assigned to classes.

        With `dealt` it is cells that are, in that column how many rows of each.
        """
        params = {"rows": self.members(dealt), "assigned": assigned, "axes": self.axes, "dealt": dealt}
        return engine.materialise(name, "recoding/publish/bound_classes", **params)

    @property
    def told(self) -> tuple[SensitiveAxis, ...]:
        """The sensitive attributes that are published."""
        return tuple(axis for axis in self.sensitive if axis.is_said)

    @property
    def keys(self) -> tuple[SensitiveAxis, ...]:
        """The attributes on which the rows of a class must differ pairwise."""
        return (*self.sensitive, *([self.individual] if self.individual else []))

    @property
    def leaves_unjudged(self) -> bool:
        """True if there are rows with NULL in the place of a sensitive value that are not judged."""
        return any(axis.judged for axis in self.sensitive)

    @property
    def size(self) -> int:
        """The rows that a plan looks at, those of a cell as one."""
        return self.different if self.cells else self.row_count

    @property
    def row_count(self) -> int:
        return self.rows_in - self.left_out
