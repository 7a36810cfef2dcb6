"""Requirements that compare the sensitive values of every class with those of the table; NULL is a value.

t-closeness (Li et al. 2007) bounds how far the two distributions are apart, beta-likeness (Cao and Karras, VLDB 2012)
by what part a share may exceed the table's, so that rare values gain no more than frequent ones, and delta-disclosure
privacy (Brickell and Shmatikov, KDD 2008) the ratio of shares both ways. All survive the union of classes, whose shares
lie between those of the two.

The distance of t-closeness is the earth mover's, over one of three ground distances: `equal`, 1 between any two values;
`ordered`, the number of places between them in the order of the table's values over the number of values less one, NULL
being the last; `hierarchical`, the height of their lowest common ancestor over that of the taxonomy, where NULL is a
leaf under the root. Over N rows, a class of |G| rows is compared in whole numbers, `n_s N` against `N_s |G|`. Ordered:
the running sums of both differ by a step function that changes its sign at most once between two values of the class,
and where depends on (rows so far, |G|) alone, of which there are few. Hierarchical: children of a node that the class
has no row of are never in excess, so only the ancestors of the class's own values are visited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.guarantees import Distribution, Guarantee
from ldiv_db.requirements.histogram import Classes, suppress_if_few
from ldiv_db.requirements.parameters import distance, in_lowest_units, one_of, positive
from ldiv_db.requirements.values import Attribute
from ldiv_db.taxonomies.taxonomy import Taxonomy

AUTO, EQUAL, ORDERED, HIERARCHICAL = GROUNDS = ("auto", "equal", "ordered", "hierarchical")
BASIC, ENHANCED = "basic", "enhanced"
TWO, E = "2", "e"
_NODE_COLUMNS = {
    "node": "INTEGER",
    "parent": "INTEGER",
    "label": "VARCHAR",
    "low": "INTEGER",
    "high": "INTEGER",
    "parent_height": "INTEGER",
    "is_leaf": "BOOLEAN",
}


class SharesRequirement(Requirement, in_policy=False):
    """Common part of the requirements that compare the shares of a class with those of the table."""

    on_people = "shares"
    most_is_worst = True
    compares_with_table = True

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return suppress_if_few(engine, classes, measures, 0)

    def unique_class_size(self) -> None:
        return None


@dataclass(frozen=True)
class TCloseness(SharesRequirement):
    """t-closeness: the earth mover's distance of class and table is at most `t` (Li et al. 2007)."""

    name = "t_closeness"
    places_values = True
    reaches = "distance"
    fields = {"t": distance, "distance": one_of(GROUNDS, f"a distance, one of {', '.join(GROUNDS)}")}  # noqa: RUF012
    optional = frozenset({"distance"})
    t: Decimal
    distance: str = EQUAL
    taxonomy: Taxonomy | None = None
    is_number: bool = False
    is_text: bool = False

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        """`auto` is hierarchical with a taxonomy, ordered for numbers and times, else equal."""
        distance = values.get("distance", AUTO)
        if distance == AUTO and attribute.taxonomy is not None:
            distance = HIERARCHICAL
        elif distance == AUTO:
            distance = ORDERED if attribute.is_number or attribute.is_time else EQUAL
        if distance == HIERARCHICAL and attribute.taxonomy is None:
            raise ValueError("the hierarchical distance needs a taxonomy of the sensitive values")
        if distance == ORDERED and attribute.type.startswith("ENUM("):  # the release has its texts, in another order
            raise ValueError("the order of an ENUM is not published: take numbers, or a taxonomy")
        taxonomy = attribute.taxonomy if distance == HIERARCHICAL else None
        is_text = attribute.type == "VARCHAR" and not attribute.is_number
        return cls(values["t"], distance, taxonomy, attribute.is_number, is_text, others_known=others_known)

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        if self.distance == EQUAL:
            return super().measure(steps, classes)
        known = {"histogram": classes.histogram, "totals": classes.totals, "total": classes.total}
        flow = Flow(steps, "requirements", **known, is_number=self.is_number, is_text=self.is_text)
        return self._ordered(flow) if self.distance == ORDERED else self._hierarchical(flow, steps)

    def _ordered(self, flow: Flow) -> Relation:
        flow.step("places", "order_values")
        flow.step("gaps", "list_gaps")
        flow.step("turns", "find_turns")
        measures = flow.step(self.name, "t_closeness_ordered", **in_lowest_units("t", self.t))
        flow.drop("places", "gaps", "turns")
        return measures

    def _hierarchical(self, flow: Flow, steps: Steps) -> Relation:
        nodes, height = self._load_nodes(steps)
        flow.step("ways", "list_ways", nodes=nodes)
        steps.refuse_any(
            lambda found: Problem("taxonomy", f"has no leaf for {found} of the sensitive values"),
            flow.path("count_placeless"),
            **flow.params("count_placeless"),
        )
        flow.step("excesses", "sum_excesses")
        measures = flow.step(self.name, "t_closeness_hierarchical", height=height, **in_lowest_units("t", self.t))
        flow.drop("ways", "excesses")
        steps.drop(nodes)
        return measures

    def _load_nodes(self, steps: Steps) -> tuple[Relation, int]:
        """The tree as (node, parent, label, low, high, parent_height, is_leaf), a leaf of NULL added, and its height.

        The leaf of NULL has no label. A root that is a leaf hangs below a node of its own.
        """
        assert self.taxonomy is not None  # noqa: S101 - `build` has the distance only with one
        nodes, heights = self.taxonomy.nodes, self.taxonomy.heights
        inner = {node.parent for node in nodes}
        height = max(heights[0], 1)
        hung = [n for n in nodes if n.parent is not None or len(nodes) == 1]
        rows: list[tuple[Any, ...]] = [
            (n.node, n.parent or 0, n.label, n.low, n.high, heights[n.parent or 0] or 1, n.node not in inner)
            for n in hung
        ]
        last = nodes[0].high + 1
        rows.append((len(nodes), 0, None, last, last, height, True))
        return steps.load("ground", _NODE_COLUMNS, rows), height

    def promise(self) -> Guarantee:
        """With equal distances the largest gap between two distributions, over any set of values, is their distance."""
        return Guarantee(difference=Fraction(self.t)) if self.distance == EQUAL else Guarantee()

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return "t: 0"

    def nearest_at(self, size: int) -> str:
        return "t: 1"


@dataclass(frozen=True)
class BetaLikeness(SharesRequirement):
    """beta-likeness: no value's share q of a class exceeds its share p of the table by more than beta p.

    Basic: `(q - p) / p <= beta` where q > p (Cao and Karras 2012). Enhanced, the default: by no more
    than `min(beta, -ln p) p`, so that no share of a class comes to 1 where that of the table is not.
    """

    name = "beta_likeness"
    reaches = "gain over the table's share"
    fields = {"beta": positive, "kind": one_of((BASIC, ENHANCED), f"{BASIC} or {ENHANCED}")}  # noqa: RUF012
    optional = frozenset({"kind"})
    beta: Decimal
    kind: str = ENHANCED

    @property
    def enhanced(self) -> bool:
        return self.kind == ENHANCED

    def promise(self) -> Guarantee:
        return Guarantee(ratio=1 + Fraction(self.beta), logarithmic=self.enhanced)


@dataclass(frozen=True)
class DeltaDisclosure(SharesRequirement):
    """delta-disclosure privacy: `|log(q / p)| < delta` for the share q of a class of every value of the table.

    Every class has every value, then, and in about the share p that it has of the table (Brickell and Shmatikov
    2008). The logarithm is to the base 2 if nothing else is said.
    """

    name = "delta_disclosure"
    reaches = "largest |log(q / p)|"
    fields = {"delta": positive, "log": one_of((TWO, E), f"the base of a logarithm, {TWO} or {E}")}  # noqa: RUF012
    optional = frozenset({"log"})
    delta: Decimal
    log: str = TWO

    @property
    def binary(self) -> bool:
        """True if the logarithm is to the base 2."""
        return self.log == TWO

    def promise(self) -> Guarantee:
        base = 2.0 if self.binary else math.e
        try:
            return Guarantee(ratio=Fraction(math.nextafter(base ** float(self.delta), math.inf)))
        except OverflowError:
            return Guarantee()
