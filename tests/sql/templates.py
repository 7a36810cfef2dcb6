"""The templates by their names, and what all of them may call."""

from __future__ import annotations

from pathlib import Path

from ldiv_db.database.templates import resource_folder

#: What every template may call without importing it: `each`, and the macro that writes the items of any other list.
LISTS = frozenset({"each", "join"})


def all_templates(root: Path | None = None) -> list[str]:
    """The names of all templates in a folder that are statements, `requirements/k` for instance; of ours by default."""
    root = root or resource_folder("sql")
    files = sorted(root.rglob("*.sql.j2"))
    return [f.relative_to(root).as_posix().removesuffix(".sql.j2") for f in files if f.parent.name != "macros"]
