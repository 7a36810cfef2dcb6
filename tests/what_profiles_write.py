"""Events of people with several rows each, and the policies that profiles of them write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.measuring.profile import Profile, ProfileRequest, profile_table
from ldiv_db.measuring.starter_policy import StarterPolicy, make_starter_policy

#: Ten events of each of three hundred people: what is theirs is the same in all of them, what happens is not.
EVENTS = """
CREATE OR REPLACE TABLE events AS
SELECT
    'h' || p AS "{name}", CAST(1930 + hash(p * 7) % 80 AS INTEGER) AS born, 'R' || hash(p * 13) % 16 AS region,
    'E' || hash(i * 3) % 8 AS event, TIMESTAMP '2024-01-01' + i * INTERVAL 37 SECOND AS seen,
    CAST(1 + i / 7.0 AS DOUBLE) AS cost, CAST(hash(i) % 1000000 / 7.0 AS DECIMAL(12, 4)) AS weight
FROM (SELECT i, hash(i * 19) % 300 AS p FROM range(3000) AS r(i)) AS e
"""
#: Columns of which profiles write all that they may: by turns too frequent, spelt differently, near, small, and times.
MORE = """
ALTER TABLE events ADD rare VARCHAR; UPDATE events SET rare = CASE WHEN rowid % 9 > 7 THEN event END;
ALTER TABLE events ADD spelt VARCHAR; UPDATE events SET spelt = [event, ' ' || lower(event)][1 + rowid % 2];
ALTER TABLE events ADD day DATE; UPDATE events SET day = DATE '2024-01-01' + CAST(hash(rowid) % 900 AS INTEGER);
ALTER TABLE events ADD small DOUBLE; UPDATE events SET small = cost / 1e9;
"""
#: The column of people, or one of nobody, and what is sensitive.
ASKED = [
    (name, sensitive)
    for name in ("user", "town")
    for sensitive in (
        (), ("event",), ("cost",), ("event", "cost"), ("seen",), ("rare",), ("born",), ("spelt",), ("day",),
        ("small",), ("weight", "rare"),
    )
]  # fmt: skip


def make(con: Any, name: str = "user", more: str = MORE) -> None:
    """The table `events`; a `town` has rows of many people."""
    sql = EVENTS.format(name=name)
    con.execute(sql.replace("'h' || p", "'t ' || hash(i * 5) % 200") if name == "town" else sql)
    con.execute(more)


def profiled(con: Any, *sensitive: str, qi: Sequence[str] | None = None) -> Profile:
    return profile_table(Engine(con), Relation.parse("events"), ProfileRequest(None, qi, sensitive))


def starter(con: Any, folder: Path, *sensitive: str, qi: Sequence[str] | None = None) -> StarterPolicy:
    """The policy that the table's profile writes, its level files beside."""
    found, why = make_starter_policy(Engine(con), profiled(con, *sensitive, qi=qi), Relation.parse("events"), "events")
    assert found is not None, why
    for name, text in found.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return found
