"""The algorithms, by the name that a policy calls them."""

from ldiv_db.algorithms.auto import Auto
from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.baselines.annealing import Annealing
from ldiv_db.algorithms.baselines.incognito import Incognito
from ldiv_db.algorithms.baselines.tds import Tds
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.cuts.cuts import Cuts
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.algorithms.local.peel import Peel
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.algorithms.tp.matching import Matching
from ldiv_db.algorithms.tp.tp import Hilbert, Tp, TpPlus

_KINDS: tuple[type[Algorithm], ...] = (
    Annealing, Auto, Bsgi, Cuts, Hilbert, Incognito, Matching, Mondrian, Peel, Tds, TopDown, Tp, TpPlus,
)  # fmt: skip
ALGORITHMS: dict[str, type[Algorithm]] = {kind.name: kind for kind in _KINDS}

__all__ = ["ALGORITHMS", "Algorithm", "Plan", "Task"]
