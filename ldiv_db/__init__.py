"""ldiv_db: an in-database anonymizer for l-diversity on DuckDB.

What it offers is imported when it is first asked for, so that the command line can hear Ctrl-C before that.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

#: As `typing` has it, which takes longer to import than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldiv_db.api import attack, check, measure, profile
    from ldiv_db.attacking.attacks import Attacks
    from ldiv_db.audit import Audit
    from ldiv_db.errors import AuditError, DatabaseError, InfeasibleError, LdivError, PolicyError
    from ldiv_db.measuring.measure import Measurement
    from ldiv_db.policy import Policy, parse_policy, read_policy
    from ldiv_db.profile import Profile
    from ldiv_db.releasing.publish import Released, publish_release
    from ldiv_db.report import Result
    from ldiv_db.run import Listener, plan, run

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
#: The module that has each of them.
_HOMES = {
    "api": ("attack", "check", "measure", "profile"),
    "attacking.attacks": ("Attacks",),
    "audit": ("Audit",),
    "errors": ("AuditError", "DatabaseError", "InfeasibleError", "LdivError", "PolicyError"),
    "measuring.measure": ("Measurement",),
    "policy": ("Policy", "parse_policy", "read_policy"),
    "profile": ("Profile",),
    "releasing.publish": ("Released", "publish_release"),
    "report": ("Result",),
    "run": ("Listener", "plan", "run"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """The package. `check`, `profile` and `run` are its functions, not its modules of the same names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):  # as an import of `ldiv_db.run` would have it
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        found = getattr(import_module(f"{self.__name__}.{_HOME_OF[name]}"), name)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
