"""Algorithms: a folder or a module a family, each saying what it does, its promise, its steps, and its paper.

`base` is what an algorithm is given and gives back; here one is found by the name that a policy calls it, and its code
imported when it is asked for. `infeasible` and `costs` are for all families; `neighbours` improves classes that some of
them have made.
"""

from __future__ import annotations

from importlib import import_module

from ldiv_db.algorithms.base import Algorithm

_PLACES = {
    "auto": "solving.auto:Auto",
    "annealing": "algorithms.baselines.annealing:Annealing",
    "bsgi": "algorithms.bsgi.bsgi:Bsgi",
    "cuts": "algorithms.cuts.cuts:Cuts",
    "fast": "solving.auto:Fast",
    "hilbert": "algorithms.tp.hilbert:Hilbert",
    "incognito": "algorithms.baselines.incognito:Incognito",
    "matching": "algorithms.tp.matching:Matching",
    "mondrian": "algorithms.local.mondrian:Mondrian",
    "peel": "algorithms.local.peel:Peel",
    "stratified": "algorithms.local.stratified:Stratified",
    "tds": "algorithms.baselines.tds:Tds",
    "topdown": "algorithms.local.topdown:TopDown",
    "tp": "algorithms.tp.tp:Tp",
    "tp_plus": "algorithms.tp.hilbert:TpPlus",
}
#: The names of all algorithms.
ALGORITHMS = tuple(_PLACES)


def algorithm_of(name: str) -> type[Algorithm]:
    """The class of the algorithm; raises KeyError if there is none of that name."""
    module, kind = _PLACES[name].split(":")
    algorithm: type[Algorithm] = getattr(import_module(f"ldiv_db.{module}"), kind)
    return algorithm
