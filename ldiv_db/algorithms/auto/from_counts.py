"""From counts: the algorithm for a source that only counts its rows, where the policy leaves it open.

A global recoding where every quasi-identifier has a taxonomy, since it can then be had as SQL that runs where the rows
are: `cuts` as long as its cuts can all be gone through, else `annealing`, and `tds` for more sensitive values than
these count. Otherwise `tp_plus`: numbers without a taxonomy, sets, and texts that are the same after some steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.baselines.annealing import Annealing
from ldiv_db.algorithms.baselines.tds import Tds
from ldiv_db.algorithms.cuts.cuts import Cuts
from ldiv_db.algorithms.cuts.problem import MOST_COLUMNS
from ldiv_db.algorithms.tp.tp import TpPlus
from ldiv_db.database.errors import InfeasibleError, PolicyError

#: So many cuts are gone through in seconds: Adult's taxonomies have a third of that.
MOST_CUTS = 10**9


class FromCountsOptions(Options):
    """None."""


class FromCounts(Algorithm):
    """The first of those that plan from counts that can meet the policy; it makes no classes of its own.

    With `sets` quasi-identifiers are published as sets, which no global recoding and no star can be; without
    `as_written` sensitive texts are compared after some steps, which no SELECT of a recoding does.
    """

    name = "auto"
    takes_counts = takes_any_class = takes_harmless = takes_rows_alone = True
    options_type: ClassVar[type[FromCountsOptions]] = FromCountsOptions

    def __init__(self, sets: bool = False, as_written: bool = True):
        super().__init__({})
        self._sets = sets
        self._as_written = as_written

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The first candidate that takes the policy, or the last, which says what is wrong; and why."""
        candidates = list(self._candidates(task))
        algorithm, why = next((one for one in candidates if _takes(one[0], task)), candidates[-1])
        return algorithm, f"algorithm {algorithm.name}: {why}"

    def _candidates(self, task: Task) -> Iterator[tuple[Algorithm, str]]:
        trees = [axis.taxonomy for axis in task.encoded.axes if axis.taxonomy is not None]
        if len(trees) == len(task.encoded.axes) and not self._sets and self._as_written:
            cuts = prod(tree.cuts for tree in trees)
            if all(axis.distribution.distinct <= MOST_COLUMNS for axis in task.encoded.sensitive):
                if cuts <= MOST_CUTS:
                    yield Cuts({}), f"it proves the best of {cuts:,} cuts, and plans from counts"
                else:
                    yield Annealing({}), "there are too many cuts to prove the best, and it plans from counts"
            yield Tds({}), "it takes the requirements that larger classes keep, and plans from counts"
        form = "ranges" if self._sets else "stars"
        yield TpPlus({"form": form}), "it takes what no global recoding can, and plans from counts"

    def check(self, task: Task) -> Feasibility:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].check(task)

    def run(self, task: Task) -> Plan:
        return self.chosen(task)[0].run(task)


def _takes(algorithm: Algorithm, task: Task) -> bool:
    """Whether the algorithm takes the policy, whatever the counts allow."""
    try:
        algorithm.refuse_unfit(task)
        algorithm.check(task)
    except PolicyError:
        return False
    except InfeasibleError:
        return True
    return True
