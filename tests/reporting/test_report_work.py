"""How much a report makes on its way: counted in rows, so that any machine says the same."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db
from ldiv_db.database.queries import Step

#: Seven quasi-identifiers of stays at a hospital, hardly two of them alike.
STAYS = """CREATE TABLE stays AS SELECT CAST(hash(i, 1) % 365 AS INTEGER) AS admitted,
    CAST(hash(i, 2) % 30 AS INTEGER) AS nights, printf('R%d%02d', hash(i, 3) % 6, hash(i, 4) % 12) AS region,
    's' || (hash(i, 5) % 2) AS sex, CAST(1930 + hash(i, 6) % 80 AS INTEGER) AS birth,
    'w' || (hash(i, 7) % 6) AS ward, 'i' || (hash(i, 8) % 8) AS insurance,
    'd' || (hash(i, 7) % 6 + hash(i, 9) % 20) AS diagnosis FROM range({rows}) AS t (i)"""
POLICY: dict[str, Any] = {
    "source": "stays",
    "target": "published",
    "quasi_identifiers": {
        **{name: {"numeric": True} for name in ("admitted", "nights", "birth")},
        "region": {"taxonomy": {"prefix": [4, 2]}},
        **{name: {"taxonomy": {"flat": True}} for name in ("sex", "ward", "insurance")},
    },
    "sensitive": ["diagnosis"],
    "require": [{"frequency": 3}, {"k": 4}],
    "algorithm": "tp_plus",
    "seed": 1,
}
#: Rows of the source, and the most rows that are made for each of them.
MOST = {80: 500, 1_000: 540}
#: People are encoded for those whom attackers know, for two lists of predicates, for two linked parts, and for guesses.
ENCODED = 6


@pytest.mark.slow
@pytest.mark.parametrize("rows", some(MOST))
def test_a_report_makes_few_rows_for_each_of_its_source(rows: int) -> None:
    """Labels of `tp_plus` cover many people each: nearly all that a report makes are people in classes."""
    made: list[Step] = []
    policy, few = POLICY, {}
    if rows < 1_000:
        columns = list(POLICY["quasi_identifiers"])[2:5]
        few = {"queries": 0, "tries": 5}
        policy = POLICY | {"quasi_identifiers": {name: POLICY["quasi_identifiers"][name] for name in columns}}
        policy |= {"identifiers": [name for name in POLICY["quasi_identifiers"] if name not in columns]}
    with duckdb.connect() as con:
        con.execute(STAYS.format(rows=rows))
        ldiv_db.run(con, policy)
        listener = ldiv_db.Listener(on_step=made.append)
        found = ldiv_db.report(con, "published", policy, **few, listener=listener)
    people = {one["attack"]: one["figures"].get("people") for one in found.document["attacks"]["attacks"]}
    assert people["definetti"] == people["counting"] == rows
    # Everybody of a kind is in the same classes: kinds are measured, not people.
    measured = [step.rows for step in made if step.name in ("before", "after")]
    assert len(measured) == 2 and max(measured) < rows / 4
    assert sum(step.name == "numbered_cells" for step in made) == ENCODED
    # What is believed of a person in a class is written once a round, and added up from there.
    assert sum(step.rows for step in made) < MOST[rows] * rows
