"""Division: which tables are divided, and into which parts, by counts, until no part has more than `part_rows` rows.

Rows are in nodes, each of which is split until it is a part, or until nothing that is required allows another split.
What decides is counted: the values of a quasi-identifier one by one, or in grains where they are many.

Of classes of l different values a part of k classes has l*k rows and no value in more than k of them, so that k classes
can be made of it by itself, as many in all parts together as of the whole table: it is split by refined bisection. The
rows beyond, fewer than l, are the last part's.

Otherwise a node is split as Mondrian does, at the median of its widest quasi-identifier where both sides, each as one
class, meet every requirement; else along the next one. So a part can be published by itself, and the first levels of
Mondrian are these. Where equal values need not stay together a node that no boundary splits is cut through one value,
or through all of its rows, each combination of sensitive values giving its share to both sides. A node that cannot be
split is a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.algorithms.bsgi.bisection import DEPTH, PART, RANKED, SIMPLE, Position, fill_root
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.costs import lm_measures, span_costs
from ldiv_db.algorithms.eligibility import quotas
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.algorithms.local.mondrian import Mondrian, widths_of
from ldiv_db.database.counted import WEIGHT
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import NUMBER_SCALE

#: The values of a quasi-identifier that are counted one by one, and about the grains that more are counted in.
GRAINS = 1024


@dataclass(frozen=True)
class Grained(Position):
    """A quasi-identifier by its number; `grains` is (code, grain) where it is counted in grains."""

    grains: Relation | None = None


def _positions(task: Task) -> list[Grained]:
    """All quasi-identifiers of a task; grains have about as many rows each, or one value."""
    positions, params = [], {"grains": GRAINS}
    for number, axis in enumerate(task.encoded.axes, 1):
        listed = {"dictionary": axis.dictionary, "null_code": axis.null_apart}
        grains = task.engine.materialise("grains", "solving/list_grains", **listed, **params)
        if task.engine.count(grains) > GRAINS:
            positions.append(Grained(number, axis, None, Identifier(f"{axis.code.name}_grain"), grains))
        else:
            task.engine.drop(grains)
            positions.append(Grained(number, axis))
    return positions


class Nodes(EngineFlow):
    """The `nodes` that are still to be split, at first one that has all the rows, perhaps of so many `classes`.

    Of classes equal rows are one, with its weight. `parts` is all that is settled, with the number of its `node`.
    """

    def __init__(self, task: Task, rows: Relation, classes: int | None = None) -> None:
        super().__init__(task.engine, "solving", positions=_positions(task), sensitive=task.encoded.sensitive)
        encoded = task.encoded
        codes = [*(axis.code for axis in encoded.axes), *(key.code for key in encoded.sensitive)]
        self.step("nodes", "start_nodes", rows=rows, classes=classes, codes=codes)
        self.parts: Relation | None = None

    def settle(self, numbers: Sequence[int]) -> None:
        """These nodes are parts: their rows are not counted or moved any more."""
        if not numbers:
            return
        listed = self.engine.load("listed", {"node": "BIGINT"}, [(node,) for node in numbers])
        settled = self.params("list_settled", listed=listed, others=False)
        if self.parts:
            self.engine.insert(self.parts, "solving/list_settled", **settled)
        else:
            self.parts = self.engine.materialise("parts", "solving/list_settled", **settled)
        self.replace("nodes", "list_settled", listed=listed, others=True)
        self.engine.drop(listed)


@dataclass
class _Splits:
    """The nodes that are split: where their rows go (`sides`, `cells`), and the nodes that come of them with rows."""

    sides: Relation | None = None
    cells: Relation | None = None
    nodes: set[int] = field(default_factory=set)
    children: dict[int, int] = field(default_factory=dict)

    @property
    def tables(self) -> list[Relation]:
        return [table for table in (self.sides, self.cells) if table]


class HalvedNodes(Nodes):
    """Nodes that are split in halves, both sides of which meet what is required, until they are parts."""

    def __init__(self, task: Task, part_rows: int, cuts: bool) -> None:
        super().__init__(task, task.encoded.rows)
        self._task, self._part_rows, self._cuts = task, part_rows, cuts
        self._checker, widths = ClassChecker(task), widths_of(task.encoded.axes)
        self._attempts, self._last = range(1, len(widths) + 1), 1
        self._settled = list[tuple[int, int]]()
        scales = self.engine.load("scales", {"axis": "INTEGER"}, [(position.number,) for position in self["positions"]])
        self.know(widths=widths, scales=scales, least=2 * self._checker.least, most=1, key="node", weight="found")

    def divide(self) -> list[tuple[int, int]]:
        """The parts of the rows, all in node 1 at first."""
        nodes = {1: self._task.encoded.row_count}
        while nodes:
            self._task.progress(sum(rows for _, rows in self._settled), self._task.encoded.row_count)
            nodes = self._level(nodes)
        return sorted(self._settled)

    def _level(self, nodes: Mapping[int, int]) -> dict[int, int]:
        """The nodes of the next level that are to be split, with their rows; the others are settled."""
        splits = self._split(nodes)
        self._settle([(node, rows) for node, rows in nodes.items() if node not in splits.nodes])
        if splits.tables:
            self.replace("nodes", "move_rows", sides=splits.sides, cells=splits.cells)
            self.engine.drop(*splits.tables)
        self._settle([(node, rows) for node, rows in splits.children.items() if rows <= self._part_rows])
        return {node: rows for node, rows in splits.children.items() if rows > self._part_rows}

    def _settle(self, nodes: Sequence[tuple[int, int]]) -> None:
        self.settle([node for node, _ in nodes])
        self._settled += nodes

    def _split(self, nodes: Mapping[int, int]) -> _Splits:
        """The splits of nodes: each way in turn splits those that no earlier way could."""
        engine, splits = self.engine, _Splits()
        with engine.scope() as scope:
            self.step("counts", "count_codes")
            self.know(trying=engine.load("trying", {"node": "BIGINT"}, [(node,) for node in nodes]))
            for attempt, way in self._ways():
                if len(splits.nodes) == len(nodes):
                    break
                with engine.scope() as tried:
                    if engine.count(self._sides(attempt, way)):
                        self._try(splits)
                    for table in splits.tables:
                        tried.keep(table)
            for table in splits.tables:
                scope.keep(table)
        return splits

    def _ways(self) -> Iterator[tuple[int, str]]:
        """The ways to split a node, as (which quasi-identifier from the widest on, how)."""
        yield from ((attempt, "median") for attempt in self._attempts)
        if self._cuts:
            yield from ((attempt, "cut") for attempt in self._attempts)
            yield 1, "whole"

    def _sides(self, attempt: int, way: str) -> Relation:
        """The sides to which the rows of each node would go."""
        self.step("bounds", "bound_nodes", attempt=attempt)
        if way == "whole":
            return self.step("sides", "list_whole_sides", beyond=2 * NUMBER_SCALE)
        self.step("choices", "local/mondrian/choose_axes")
        if self.engine.count(self.step("grains", "find_grains")):
            self.step("inside", "count_grain")
        else:
            columns = dict.fromkeys(("node", "position", "rows"), "BIGINT")
            self.know(inside=self.engine.load("inside", columns, []))
        self.step("placed", "list_positions")
        self.step("medians", "find_cells" if way == "cut" else "local/mondrian/find_medians")
        return self.step("sides", "list_sides", cut=way == "cut")

    def _try(self, splits: _Splits) -> None:
        """Split the nodes both of whose sides are good; they are tried no longer."""
        engine = self.engine
        counts = self.step("sided", "count_sides")
        self.step("cells", "share_cells", counts=counts)
        halves = self.step("halves", "count_halves", counts=counts)
        good = self.step("splits", "local/mondrian/list_splits", margins=self._checker.margins(halves), last=self._last)
        self._last += 2 * engine.count(good)
        children = self.step("children", "list_children")
        sides, cells = (
            engine.join(f"split_{name}", self[name], good, "node", right_columns=["first"])
            for name in ("sides", "cells")
        )
        if splits.sides and splits.cells:
            engine.extend(splits.sides, sides)
            engine.extend(splits.cells, cells)
        else:
            splits.sides, splits.cells = sides, cells
        splits.nodes |= set(engine.column(good, "node"))
        splits.children |= dict(engine.columns(children, "node", "rows"))
        engine.delete_listed(self["trying"], Identifier("node"), good)


@dataclass(frozen=True)
class Division:
    """The parts (node, rows), in an order given by content, and their rows with the number of their `node`.

    A row stands for as many as its column `weight` says, if there is one.
    """

    parts: list[tuple[int, int]]
    rows: Relation
    weight: Identifier | None = None


def why_whole(task: Task, algorithm: Algorithm) -> str:
    """The reason why a task is not divided; empty if it can be."""
    options = algorithm.options
    if isinstance(algorithm, Bsgi):
        if task.transparent:
            return "a transparent release is made of all rows together"
        if len(task.encoded.keys) > 1:
            return "rows that differ on several keys are chosen among all rows"
        return "greedy selection chooses among all rows" if algorithm.options.select == "greedy" else ""
    if not algorithm.traits.divides:
        return f"{algorithm.name} plans on all rows together"
    if getattr(options, "residue", "") == "suppress" and task.compares_with_table:
        return "classes are compared with all rows that are published"
    return ""


def divide(task: Task, algorithm: Algorithm, part_rows: int) -> Division:
    """The parts of a task that is divided; of `bsgi` that leaves rows out those rows are in no part."""
    with task.engine.scope() as scope:
        if isinstance(algorithm, Bsgi):
            found = _in_classes(task, algorithm, part_rows)
        else:
            keeps_equal = isinstance(algorithm, Mondrian) and algorithm.options.split == "strict"
            nodes = HalvedNodes(task, part_rows, cuts=not keeps_equal)
            found = _divided(nodes, nodes.divide())
        scope.keep(found.rows)
        return found


def cells_of(task: Task) -> Division:
    """The cells of cross-tables as parts, whatever rows they have."""
    assert task.cross is not None  # noqa: S101 - the caller has looked
    engine, cross = task.engine, task.cross
    number = [("class_id", "node")]
    rows = engine.join("parts", task.encoded.rows, cross.placed, "row_id", right_columns=number)
    return Division(sorted(engine.columns(cross.bounds, "class_id", "rows")), rows)


def _in_classes(task: Task, algorithm: Bsgi, part_rows: int) -> Division:
    feasible = algorithm.check(task)
    l, classes, rows = feasible.l, feasible.classes, task.encoded.rows
    beyond = task.encoded.row_count - l * classes
    if algorithm.options.residue == "suppress" and beyond:
        counts = task.encoded.sensitive[0].distribution.counts
        rows, beyond = fill_root(task, quotas(counts, l, classes), classes), 0
    nodes = Nodes(task, rows, classes)
    if rows is not task.encoded.rows:
        task.engine.drop(rows)
    parts = _split_classes(task, nodes, l, classes, part_rows)
    last = {node for node, _ in parts if node & (node + 1) == 0}  # the right side of every split above it
    found = _divided(nodes, [(node, size * l + (beyond if node in last else 0)) for node, size in parts])
    return replace(found, weight=WEIGHT)


def _split_classes(task: Task, rows: Nodes, l: int, classes: int, part_rows: int) -> list[tuple[int, int]]:
    """The parts (node, classes) of the rows, all in node 1 of so many classes at first."""
    most = max((part_rows - l + 1) // l, 2 * l)  # so many that either side of a split can have the rows beyond
    depth = -(-(classes - 1).bit_length() * DEPTH // 100)  # as far as the whole table's go: uneven where that pays
    level, parts, nodes = 0, list[tuple[int, int]](), [(1, classes)]
    part = PART if most * PART >= 100 * l else 50
    rows.know(**span_costs(task, lm_measures(task)), l=l, part=part, ranked=RANKED, simple=SIMPLE, weight=WEIGHT)
    while True:
        small = [(node, size) for node, size in nodes if size <= most]
        rows.settle([node for node, _ in small])
        parts += small
        if len(small) == len(nodes):
            return sorted(parts)
        task.progress(classes - max(size for _, size in nodes), classes - most)
        level += 1
        nodes = _halve(rows, side=2 ** (depth - level))


def _halve(rows: Nodes, side: int) -> list[tuple[int, int]]:
    """Split every node at the boundary of most gain, no side of more than `side` classes; the nodes there are then."""
    sensitive = rows["sensitive"][0]
    with rows.scope("splits", "cells"):
        rows.step("counts", "bsgi/count_positions", sensitive=sensitive, by_bucket=True, simple=1)
        rows.step("splits", "bsgi/choose_splits", forced=True, most=side)
        rows.step("cells", "bsgi/cut_cells")
    rows.replace("nodes", "bsgi/split_cells", sensitive=sensitive)
    halves = sorted(rows.rows("list_halves"))
    rows.drop("splits", "cells")
    return halves


def _divided(nodes: Nodes, parts: list[tuple[int, int]]) -> Division:
    nodes.drop("nodes")  # none is left, once all are settled
    assert nodes.parts is not None  # noqa: S101 - every division has a part
    return Division(parts, nodes.parts)
