"""The rule by which an algorithm is taken for a source of counts, where the policy leaves it open."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ldiv_db.algorithms.base import Algorithm, Task, Traits
from ldiv_db.algorithms.baselines.annealing import Annealing
from ldiv_db.algorithms.baselines.tds import Tds
from ldiv_db.algorithms.cuts.cuts import Cuts
from ldiv_db.algorithms.cuts.problem import MOST_COLUMNS
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.algorithms.tp.hilbert import TpPlus
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.solving.auto import Rule

#: So many cuts are gone through in seconds: Adult's taxonomies have a third of that.
MOST_CUTS = 10**9


class FromCounts(Rule):
    """The first of those that plan from counts of rows that can meet the policy, where it leaves the algorithm open.

    A global recoding where every quasi-identifier has a taxonomy, since it can then be had as SQL that runs where the
    rows are: `cuts` as long as its cuts can all be gone through, else `annealing`, and `tds` for more sensitive values
    than these count. Otherwise `tp_plus`, as for numbers without a taxonomy; `topdown` where rows have several values.

    With `sets` quasi-identifiers are published as sets, which no global recoding and no star can be.
    """

    name = "auto"
    traits = Traits(counts=True, any_class=True, harmless=True, rows_alone=True)

    def __init__(self, sets: bool = False):
        super().__init__({})
        self._sets = sets

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The first candidate that takes the policy, or the last, which says what is wrong; and why."""
        candidates = list(self._candidates(task))
        algorithm, why = next((one for one in candidates if _accepts_policy(one[0], task)), candidates[-1])
        return algorithm, f"algorithm {algorithm.name}: {why}"

    def _candidates(self, task: Task) -> Iterator[tuple[Algorithm, str]]:
        if task.cross:
            yield TopDown({}), "it specialises every cell of `tables_of` by itself"
            return
        trees = [axis.taxonomy for axis in task.encoded.axes if axis.taxonomy is not None]
        if len(trees) == len(task.encoded.axes) and not self._sets:
            cuts = prod(tree.cuts for tree in trees)
            if all(axis.distribution.distinct <= MOST_COLUMNS for axis in task.encoded.sensitive):
                if cuts <= MOST_CUTS:
                    yield Cuts({}), f"it proves the best of {cuts:,} cuts, and plans from counts"
                else:
                    yield Annealing({}), "there are too many cuts to prove the best, and it plans from counts"
            yield Tds({}), "it takes the requirements that larger classes keep, and plans from counts"
        form = "ranges" if self._sets else "stars"
        yield TpPlus({"form": form}), "it takes what no global recoding can, and plans from counts"
        yield TopDown({}), "it takes rows with several values, and plans from counts"


def _accepts_policy(algorithm: Algorithm, task: Task) -> bool:
    """True if the algorithm takes the policy, whatever the counts allow."""
    try:
        algorithm.refuse_unfit(task)
        algorithm.check(task)
    except PolicyError:
        return False
    except InfeasibleError:
        return True
    return True
