"""Stratified: everything starts in one class, which is cut so that both sides keep its shares of sensitive values.

For requirements that compare classes with the whole table, as `t_closeness`, under which classes that follow the
quasi-identifiers alone stay large. The idea is that of BUREL's ECTree, which halves every bucket of sensitive values
(Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee, 2012), and of SABRE (Cao, Karras, Kalnis & Tan,
2011); what is ours is where nodes are cut, and that shares are kept only as far as requirements ask for it
(`stratified_splits`). In the end classes near each other are put together and cut anew where that loses less
(`neighbours.resplit`).

Guarantee: every class meets every requirement, no row is left out.
"""

from __future__ import annotations

from ldiv_db.algorithms.base import Options, Plan, Task
from ldiv_db.algorithms.local.class_checker import LocalAlgorithm, require_good
from ldiv_db.algorithms.local.stratified_splits import StratifiedSplits
from ldiv_db.algorithms.neighbours.resplit import SPLITS
from ldiv_db.algorithms.neighbours.rounds import Improving, improve

#: The rounds in which its classes are split anew.
ROUNDS = 2


class StratifiedOptions(Options):
    """None."""


class Stratified(LocalAlgorithm):
    """Cuts that keep the shares of sensitive values, for any list of monotone requirements."""

    name = "stratified"
    options_type = StratifiedOptions
    options: StratifiedOptions

    def run(self, task: Task) -> Plan:
        feasible, engine = self.check(task), task.engine
        with engine.scope() as scope:
            state = Improving.of(task)
            splits = StratifiedSplits(task, state.checker, state.measures)
            whole = engine.materialise("whole", "local/stratified/list_whole", rows=task.encoded.rows)
            assigned, again = improve(SPLITS, state, splits.split(whole, last=1), ROUNDS)
            scope.keep(assigned)
            require_good(task, self.name, assigned)
        return Plan(assigned, feasible.l, feasible.notes, {"rounds": splits.rounds, "resplit": again})
