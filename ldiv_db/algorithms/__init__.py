"""The algorithms, by the name that a policy calls them."""

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.bsgi import Bsgi

ALGORITHMS: dict[str, type[Algorithm]] = {Bsgi.name: Bsgi}

__all__ = ["ALGORITHMS", "Algorithm", "Plan", "Task"]
