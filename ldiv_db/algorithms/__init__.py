"""The algorithms, by the name that a policy calls them."""

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.bsgi import Bsgi
from ldiv_db.algorithms.cuts import Cuts

ALGORITHMS: dict[str, type[Algorithm]] = {kind.name: kind for kind in (Bsgi, Cuts)}

__all__ = ["ALGORITHMS", "Algorithm", "Plan", "Task"]
