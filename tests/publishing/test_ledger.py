"""The rows of the ledger: what a run, or a release of a series, has there, and what it leaves if it never was."""

from __future__ import annotations

from typing import Any

import pytest
from tables import fill
from visits import COLUMNS, POLICY, place

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.publishing import ledger

SERIES: dict[str, Any] = {
    "source": "visits", "target": {"prefix": "nights"}, "quasi_identifiers": ["zip"], "sensitive": {"dx": {"l": 2}},
    "key": "person", "algorithm": "decomposition", "seed": 1,
}  # fmt: skip


def entered(engine: Engine, names: tuple[str, ...]) -> dict[str, int]:
    return {name: engine.count(ledger.table(engine, name)) for name in names}


def test_a_run_that_never_was_leaves_no_row_and_the_seed_of_one_that_was_is_shown_on_request(
    con: Any, engine: Engine
) -> None:
    place(con)
    result = ldiv_db.run(con, POLICY | {"algorithm": "tds"})  # whose rules the ledger has as well
    before = entered(engine, ledger.RUN_TABLES)
    assert all(before.values()), before
    ledger.settle_run(engine, result.run_id, in_place=True)
    assert entered(engine, ledger.RUN_TABLES) == before
    ((plain,), (shown,)) = ledger.runs(engine), ledger.runs(engine, show_seeds=True)
    assert "seed" not in plain and shown["seed"] == "1"
    ledger.settle_run(engine, result.run_id, in_place=False)
    assert not any(entered(engine, ledger.RUN_TABLES).values())


def test_a_series_goes_with_its_first_release_alone(con: Any, engine: Engine) -> None:
    place(con)
    names = (*ledger.RELEASE_TABLES, *ledger.SERIES_TABLES)
    ldiv_db.run(con, SERIES)
    (first,) = ledger.releases(engine)
    before = entered(engine, names)
    assert before["series"] == before["series_secret"] == before["release"] == 1
    fill(con, "more", COLUMNS, [(8 + i, f"{i // 4}", "abcd"[i % 4]) for i in range(8)])
    con.execute("INSERT INTO visits FROM more")
    ldiv_db.run(con, SERIES)
    assert entered(engine, names)["release"] == 2
    ledger.settle_release(engine, first.series, 2, in_place=False)
    assert entered(engine, names) == before
    ledger.settle_release(engine, first.series, 1, in_place=False)
    assert not any(entered(engine, names).values())


@pytest.mark.parametrize("status", [ledger.STARTED, ledger.WRITTEN, ledger.PUBLISHED])
def test_what_the_ledger_alone_has_of_a_release_is_not_shown(status: str) -> None:
    entry = ledger.Entry("s", 1, status, "now", {"algorithm": "bsgi", ledger.LIMITS: {"dx": ["1/2", {}]}})
    assert ledger.LIMITS not in entry.as_dict() and entry.as_dict()["status"] == status
