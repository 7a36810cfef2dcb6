"""ldiv_db: an in-database anonymizer for l-diversity on DuckDB.

The names below are those of `ldiv_db.api`, which is imported when the first of them is asked for: the command line
answers `--help` without it, and can hear Ctrl-C before that.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

#: As `typing` has it, which takes longer to import than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldiv_db.api import (
        Attacks,
        Audit,
        AuditError,
        DatabaseError,
        InfeasibleError,
        LdivError,
        Listener,
        Measurement,
        Policy,
        PolicyError,
        Profile,
        Released,
        Result,
        attack,
        check,
        measure,
        parse_policy,
        plan,
        profile,
        publish_release,
        read_policy,
        run,
    )

__all__ = [
    "Attacks",
    "Audit",
    "AuditError",
    "DatabaseError",
    "InfeasibleError",
    "LdivError",
    "Listener",
    "Measurement",
    "Policy",
    "PolicyError",
    "Profile",
    "Released",
    "Result",
    "attack",
    "check",
    "measure",
    "parse_policy",
    "plan",
    "profile",
    "publish_release",
    "read_policy",
    "run",
]


class _Package(ModuleType):
    """The package: `ldiv_db.run` is the function, and stays it when the module of that name is imported."""

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module("ldiv_db.api"), name)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
