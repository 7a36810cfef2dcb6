"""The algorithms by the name that a policy calls them; the code of one is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from ldiv_db.algorithms.base import Algorithm

_PLACES = {
    "auto": "auto.auto:Auto",
    "annealing": "baselines.annealing:Annealing",
    "bsgi": "bsgi.bsgi:Bsgi",
    "cuts": "cuts.cuts:Cuts",
    "fast": "auto.auto:Fast",
    "hilbert": "tp.tp:Hilbert",
    "incognito": "baselines.incognito:Incognito",
    "matching": "tp.matching:Matching",
    "mondrian": "local.mondrian:Mondrian",
    "peel": "local.peel:Peel",
    "stratified": "local.stratified:Stratified",
    "tds": "baselines.tds:Tds",
    "topdown": "local.topdown:TopDown",
    "tp": "tp.tp:Tp",
    "tp_plus": "tp.tp:TpPlus",
}
#: The names of all algorithms.
ALGORITHMS = tuple(_PLACES)


def algorithm_of(name: str) -> type[Algorithm]:
    """The class of the algorithm; raises KeyError if there is none of that name."""
    module, kind = _PLACES[name].split(":")
    algorithm: type[Algorithm] = getattr(import_module(f"ldiv_db.algorithms.{module}"), kind)
    return algorithm
