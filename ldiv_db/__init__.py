"""ldiv_db: an in-database anonymizer for l-diversity on DuckDB.

The names below are those of `ldiv_db.api`, which is imported when the first of them is asked for: the command line
answers `--help` without it, and can hear Ctrl-C before that.
"""

from __future__ import annotations

from importlib import import_module

#: As `typing` has it, which takes longer to import than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldiv_db.api import *

__all__ = [
    "Attacks",
    "Audit",
    "AuditError",
    "Audits",
    "DatabaseError",
    "Exploration",
    "InfeasibleError",
    "LdivError",
    "Listener",
    "Measurement",
    "Policy",
    "PolicyError",
    "Profile",
    "QuasiIdentifier",
    "Released",
    "Replay",
    "Report",
    "Result",
    "Sensitive",
    "Target",
    "TaxonomySpec",
    "attack",
    "check",
    "check_sql",
    "counts_sql",
    "explore",
    "measure",
    "parse_policy",
    "plan",
    "profile",
    "publish_release",
    "read_policy",
    "report",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("ldiv_db.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
