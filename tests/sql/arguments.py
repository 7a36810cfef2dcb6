"""An argument for every requirement."""

from __future__ import annotations

from typing import Any

#: An argument for every requirement, such that a release of classes of l values meets some and fails others.
ARGUMENTS: dict[str, Any] = {
    "k": 4,
    "risk": 0.25,
    "distinct": 4,
    "unique_distinct": 4,
    "entropy": 4,
    "recursive": {"c": 2, "l": 3},
    "frequency": 4,
    "threshold": {"default": 0.3, "Sales": 0.2},
    "alpha_k": {"alpha": 0.25, "k": 4},
    "p_sensitive": {"p": 4, "k": 4},
    "distinct_alpha": {"l": 3, "alpha": 1},
    "entropy_alpha": {"l": 2, "alpha": 1},
    "recursive_alpha": {"c": 2, "l": 2, "alpha": 1},
    "beta_likeness": 8,
    "delta_disclosure": 3,
    "t_closeness": {"t": 0.5, "distance": "equal"},
    "t_closeness_ordered": {"t": 0.5, "distance": "ordered"},
    "t_closeness_hierarchical": {"t": 0.5, "distance": "hierarchical"},
}
