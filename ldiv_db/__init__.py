"""ldiv_db: an in-database anonymizer for l-diversity on DuckDB.

Its names are those of `ldiv_db.api`, which is imported when the first of them is asked for: the command line answers
`--help` without it, and can hear Ctrl-C before that.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

#: As `typing` has it, which takes longer to import than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldiv_db.api import *


def __getattr__(name: str) -> Any:
    if name != "__all__" and (name.startswith("__") or find_spec(f"{__name__}.{name}")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")  # a module is there once it is imported
    api = import_module("ldiv_db.api")
    if name not in ("__all__", *api.__all__):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(api, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
