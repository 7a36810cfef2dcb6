"""What a policy says for releases over time, and for sensitive values in tables of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The algorithms that are said so by name, and the suffixes of the tables that each publishes.
DECOMPOSITIONS = {
    "decomposition_plus": ("qid", "sa", "marginals"),
    "decomposition": ("qid", "sa", "marginals"),
    "anatomy": ("qit", "st"),
}
#: What a policy that names no algorithm has.
DEFAULT_ALGORITHM = "auto"
#: The algorithms of one table that may publish it again and again: with a key.
REPEATED = ("bsgi",)
#: The column that joins the tables of a decomposition, and the one in which anatomy counts rows.
GROUP_ID, COUNT = "group_id", "n"


def as_decomposition(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, of a decomposition with what it may leave out.

    Its requirements stand with the attributes.
    """
    found = dict(document)
    algorithm = found.get("algorithm")
    name = algorithm.get("name") if isinstance(algorithm, Mapping) else algorithm
    if not isinstance(name, str) or name not in DECOMPOSITIONS:
        return found
    return {"require": [], **found}
