"""Auto: the algorithm that suits the requirements, and why.

Requirements that are not monotone, and individuals whose rows must stay apart, are for BSGI alone. Where shares are
what makes classes large, its classes of different values are the smallest that will do, and lost least. From so many
rows on that others would need much memory or time Mondrian is taken. Peeling lost least under k-anonymity alone, the
top-down specialisation under every other requirement that was measured (README).
"""

from __future__ import annotations

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.bsgi.bsgi import Bsgi, class_size
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.algorithms.local.peel import Peel
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.database.errors import InfeasibleError, PolicyError

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
        promised = [requirement for requirement in task.requirements if requirement.unique_class_size() is not None]
        lone = [requirement.name for requirement in promised if not requirement.monotone]
        if lone:
            return Bsgi({}), f"algorithm bsgi: {lone[0]} is not kept when classes are put together or split"
        if task.encoded.individual:
            return Bsgi({}), "algorithm bsgi: it keeps the rows of an individual apart"
        if _shares_decide(task):
            return Bsgi({}), "algorithm bsgi: shares are bounded, and fewest rows do that if all their values differ"
        if task.encoded.row_count >= MANY_ROWS:
            return Mondrian({}), f"algorithm mondrian: it is the fastest from {MANY_ROWS:,} rows on"
        if all(requirement.of_rows for requirement in task.requirements):
            return Peel({}), "algorithm peel: it loses least where rows alone are counted"
        return TopDown({}), "algorithm topdown: it loses least under requirements that larger classes keep"

    def check(self, task: Task) -> Feasibility:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].check(task)

    def run(self, task: Task) -> Plan:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].run(task)


def _shares_decide(task: Task) -> bool:
    """Whether BSGI can meet the policy, and its classes are as large as bounds of shares make them, three rows or more.

    Of two rows with different values there is no smaller class, but larger ones may hold equal rows.
    """
    bound = max((requirement.share_size for requirement in task.requirements), default=0)
    try:
        if bound < 3 or class_size(task) != bound:
            return False
        Bsgi({}).check(task)
    except (InfeasibleError, PolicyError):
        return False
    return True
