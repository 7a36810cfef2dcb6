"""The algorithms, by the name that a policy calls them."""

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.bsgi import Bsgi
from ldiv_db.algorithms.cuts import Cuts
from ldiv_db.algorithms.matching import Matching
from ldiv_db.algorithms.tp import Hilbert, Tp, TpPlus

ALGORITHMS: dict[str, type[Algorithm]] = {kind.name: kind for kind in (Bsgi, Cuts, Tp, TpPlus, Hilbert, Matching)}

__all__ = ["ALGORITHMS", "Algorithm", "Plan", "Task"]
