"""Auto: the algorithm that suits the requirements, and why.

Requirements that are not monotone, and individuals whose rows must stay apart, are for BSGI alone. All others go to
the top-down specialisation, which lost least of all under most requirements that were measured (README), or, from so
many rows on that it would need much memory, to Mondrian.
"""

from __future__ import annotations

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.bsgi import Bsgi
from ldiv_db.algorithms.mondrian import Mondrian
from ldiv_db.algorithms.topdown import TopDown

#: From so many rows on Mondrian is chosen.
MANY_ROWS = 5_000_000


class AutoOptions(Options):
    """None: options are of the algorithm that is chosen, so they need its name."""


class Auto(Algorithm):
    """Stands for another algorithm until the source is known."""

    name = "auto"
    options_type = AutoOptions
    options: AutoOptions

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The algorithm that runs in place of this one, and the reason."""
        lone = [requirement.name for requirement in task.requirements if not requirement.monotone]
        if lone:
            return Bsgi({}), f"algorithm bsgi: {lone[0]} is not kept when classes are put together or split"
        if task.encoded.individual:
            return Bsgi({}), "algorithm bsgi: it keeps the rows of an individual apart"
        if task.encoded.row_count >= MANY_ROWS:
            return Mondrian({}), f"algorithm mondrian: it is the fastest from {MANY_ROWS:,} rows on"
        return TopDown({}), "algorithm topdown: it loses least under requirements that larger classes keep"

    def check(self, task: Task) -> Feasibility:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].check(task)

    def run(self, task: Task) -> Plan:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].run(task)
