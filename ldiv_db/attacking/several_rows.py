"""The attack of those who know several rows of one person, where a policy says whose each row of its source is.

They know the quasi-identifiers of two rows of a person, of three, or of all, hence the classes that cover these, and
that they are one person's. The posterior is that of "has the value v in any of these rows". What is open to them is
which rows of the release, the seats, are the person's: every way to seat the known rows is as likely. They use neither
what was required nor how classes were made. Two or three rows of somebody who has more are those that tell most.

`apart` the pool of a row is all classes that cover it. Rows of one pool take different seats of it: none of k has v
with probability C(n - n_v, k) / C(n, k), in a pool of n rows of which n_v have v. Rows of different pools are drawn
independently. That is exact where the pools of somebody's rows are equal or have no class in common, as where each row
fits one class. Where pools overlap, it also counts ways that put two rows on one seat: it is wrong by at most their
share of all ways, at most one over the size of the larger pool for each such pair of rows.

`together` one class covers all rows of a person: the known ones are different seats of it, and a class is as likely as
there are ways to seat them in it. A pseudonym leaves the ways alone in which all seats are one person's; whoever knows
all rows then looks for somebody with just as many.

Where rows are apart, every class is good by its rows: none of m rows is surer to have v than the share that is
promised, so that "in any of them" is at most m times as sure. Where they are together nothing is promised: what is
required bounds what all rows tell, for those who use what was required, or a pseudonym, and do not know how many rows
the person has; these attackers know that, and without a pseudonym hold ways for possible that the requirement rules
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ldiv_db.attacking.base import AttackedAttribute, AttackedTable, Attacker, place_values
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, mean_of
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier

#: How many rows are known, as templates have it (0: all), in words.
_KNOWN = {2: "two", 3: "three", 0: "all"}
#: Ways to seat rows are counted in so many parts of those of the largest class: a sum that no order changes.
_WAYS = 10**15


class SeveralRows(Attacker):
    """The attack beside what is promised of a row or, of people, of all theirs.

    `kinds` are people whose rows are placed alike; `pools` (cell_no, pool_no, classes) are there if rows are apart. Of
    so many people those that were `tried` had all their rows matched within the budget.
    """

    names = ("several rows",)
    key = "individual"
    people = "source"

    def __init__(self, table: AttackedTable) -> None:
        super().__init__(table)
        owned, first = table.known.owned, table.first
        assert owned is not None  # noqa: S101 - a policy says whose rows are
        matches = table.matches("source", 1)
        published = {column.name.lower(): column.name for column in columns_of(table.engine, first.read.table)}
        pseudonym = published.get((owned.pseudonym or "").lower())
        self.pseudonym = Identifier(pseudonym) if pseudonym else None
        self.apart = not owned.together
        self.flow = flow = EngineFlow(
            table.engine, "attacking/several_rows", matches=matches.pairs, cells=matches.cells, unit=_WAYS
        )
        kept = ("kinds", "pools") if self.apart else ("kinds",)
        with flow.scope(*kept):
            every, axes = matches.prefixes.cells, matches.prefixes.axes
            with read_exactly(table.engine, owned.source) as people:
                flow.step("placed", "place_rows", people=people, cells=every, axes=axes, person=owned.person)
            totals = flow.record("count_people")
            self.everybody, self.tried = totals["people"], totals["tried"]
            if self.apart:
                flow.step("pools", "list_pools")
            flow.step("kinds", "list_kinds_apart" if self.apart else "list_kinds_together")
        table.made += [flow[name] for name in kept]

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        flow, promise = self.flow, target.promise
        with flow.scope():
            self._judge(target)
            priors = place_values(target.engine, target.classes.totals, promise)
            told = {row["known"]: row for row in flow.records("summarise", priors=priors, unit=UNIT)}
        promised = max([promise.share, *(s for v, s in promise.shares if v not in target.harmless)])
        bounds_rows = self.apart and promised < 1 and not target.harmless
        gains, figures = [], {}
        for known, words in _KNOWN.items():
            row = told.get(known)
            share = Fraction(int(row["largest"]), UNIT) if row else None
            most = known or target.engine.most(flow["kinds"], "rows") or 1
            bound = promised * most if bounds_rows else Fraction(1)
            if share is not None and bound < share < bound + Fraction(1, UNIT):  # it is rounded to units
                share = bound
            measure = f"posterior, {words} rows of a person known"
            gains.append(gain_of(measure, share, bound if bound < 1 else None))
            if row:
                figures[f"{words}_rows_people"] = row["people"]
                figures[f"{words}_rows_one_class"] = row["one_class"]
                figures[f"{words}_rows_mean"] = mean_of(row["total"], row["people"])
                figures |= {f"{words}_rows_above": row["above"]} if promised < 1 else {}
        if promised < 1:
            figures["share_promised"] = float(promised)
        attack = Attack("several rows", target.sensitive, tuple(gains), figures)
        yield attack.with_untried("people", self.tried, self.everybody)

    def _judge(self, target: AttackedAttribute) -> None:
        """Makes (kind_no, people, classes, known, value, posterior): every value that somebody of a kind may have."""
        flow, histogram, counts = self.flow, target.histogram, self.table.first
        if self.apart:
            flow.step("seats", "list_seats", histogram=histogram)
            flow.step("judged", "judge_apart")
            return
        if self.pseudonym is None:
            columns = ("class_no", ("class_no", "group_no"), "value", "rows", ("class_rows", "whole"))
            flow.know(groups=target.engine.select("groups", histogram, *columns))
        else:
            known = {"class_columns": counts.subject.renamed, "sensitive": target.sensitive, "person": self.pseudonym}
            is_set = counts.read.is_set(target.sensitive)
            flow.step("groups", "list_groups", published=counts.read.table, members=is_set, **known)
        flow.step("judged", "judge_together", linked=self.pseudonym is not None)
