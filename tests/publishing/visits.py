"""A small table `visits` and its policy, for what the ledger has of a release."""

from __future__ import annotations

from typing import Any

from tables import fill

POLICY: dict[str, Any] = {
    "source": "visits", "target": {"table": "released", "if_exists": "replace"}, "quasi_identifiers": ["zip"],
    "sensitive": ["dx"], "identifiers": ["person"], "require": [{"distinct": 2}],
    "algorithm": {"name": "bsgi", "select": "bisect"}, "seed": 1,
}  # fmt: skip
COLUMNS = {"person": "INTEGER", "zip": "VARCHAR", "dx": "VARCHAR"}


def place(con: Any) -> None:
    fill(con, "visits", COLUMNS, [(i, f"{i // 4}", "abcd"[i % 4]) for i in range(8)])
