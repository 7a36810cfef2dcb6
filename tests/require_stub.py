"""The types of the calls that make requirements, for editors and mypy: `python -m tests.require_stub` writes them."""

from pathlib import Path

import ldiv_db
from ldiv_db.require import builder_name
from ldiv_db.requirements import REQUIREMENTS

PATH = Path(ldiv_db.__file__).with_name("require.pyi")
HEAD = '''"""Written by `python -m tests.require_stub`: the calls of `require.py`, with their types."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from ldiv_db.requirements import RequirementSpec

Number = int | float | str | Decimal

def builder_name(name: str) -> str: ...
'''


def stub():
    """The text of the stub."""
    return HEAD + "".join(map(_call, REQUIREMENTS.values()))


def _call(kind):
    parameters = [
        f"{name}: {kind_} | None = None" if name in kind.optional else f"{name}: {kind_}"
        for name, kind_ in kind.typed().items()
    ]
    beside = ["*", "sensitive: str | Sequence[str] = ()", "others_known: bool = False"]
    beside.append('each: Literal["", "position"] = ""')
    listed = "".join(f"    {parameter},\n" for parameter in [*parameters, *beside])
    return f"def {builder_name(kind.name)}(\n{listed}) -> RequirementSpec: ...\n"


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
