"""What a run finds published before, and the locks by which two runs of one source do not miss each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from visits import POLICY, place

import ldiv_db
from ldiv_db.database import migrate
from ldiv_db.database.engine import Engine
from ldiv_db.publishing import ledger
from ldiv_db.publishing.history import OvertakenError, Published, Watch


@pytest.fixture
def published(con: Any, engine: Engine) -> str:
    """The id of a run of `visits`."""
    place(con)
    return str(ldiv_db.run(con, POLICY).run_id)


def test_what_was_withdrawn_was_not_published_and_what_is_about_to_be_moved_was(published: str, engine: Engine) -> None:
    assert Published.in_ledger(engine).names == {published}
    for status, found in {ledger.WRITTEN: {published}, ledger.STARTED: set()}.items():
        engine.update(ledger.table(engine, "run"), {"status": status}, {"run_id": published})
        assert Published.in_ledger(engine).names == found
    engine.update(ledger.table(engine, "run"), {"status": ledger.PUBLISHED}, {"run_id": published})
    ledger.withdraw_run(engine, published)
    assert Published.in_ledger(engine).names == set()


def test_a_run_is_overtaken_by_one_that_it_does_not_know(published: str, engine: Engine) -> None:
    Watch(engine, "visits", Path(), frozenset([published])).hold()
    Watch(engine, "stays", Path()).hold()
    Watch(engine, "visits", Path(), run_id=published).hold()
    with pytest.raises(OvertakenError):
        Watch(engine, "visits", Path()).hold()


def test_while_a_run_is_entered_no_other_of_its_source_is() -> None:
    with duckdb.connect() as con, con.cursor() as cursor:
        engine, other = Engine(con), Engine(cursor)
        migrate.migrate(engine)
        with engine.transaction():
            Watch(engine, "visits", Path()).hold()
            with other.transaction():
                Watch(other, "stays", Path()).hold()
            with pytest.raises(OvertakenError), other.transaction():
                Watch(other, "visits", Path()).hold()
