"""The algorithms, by the name that a policy calls them."""

from ldiv_db.algorithms.annealing import Annealing
from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.bsgi import Bsgi
from ldiv_db.algorithms.cuts import Cuts
from ldiv_db.algorithms.incognito import Incognito
from ldiv_db.algorithms.tds import Tds

ALGORITHMS: dict[str, type[Algorithm]] = {kind.name: kind for kind in (Annealing, Bsgi, Cuts, Incognito, Tds)}

__all__ = ["ALGORITHMS", "Algorithm", "Plan", "Task"]
