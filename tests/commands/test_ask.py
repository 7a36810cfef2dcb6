"""`ldiv ask`, `ldiv sql ask` and `ldiv sql expand`, as they are called."""

from __future__ import annotations

from typing import Any

import duckdb
from beds import PATIENTS

from ldiv_db.database import connections

QUERY = "SELECT disease, count(*) AS n, avg(age) FROM patients WHERE country = 'Europe' GROUP BY disease"


def test_a_release_answers_within_bounds_here_and_as_a_statement(released: Any) -> None:
    """The source is not read, and the ledger says how many rows were left out."""
    released.sql("DROP TABLE patients")
    asked = [released.database, "published.patients"]
    found = released.call("ask", *asked, QUERY, "--policy", released.policy, "--json").json
    assert found["left_out"] == 0 and found["notes"] == []
    for group in found["groups"]:
        whose = [row for row in PATIENTS if row[2] in ("Norway", "Italy") and row[3] == group["by"]["disease"]]
        ages = [row[1] for row in whose]
        figures = (len(ages), sum(ages) / len(ages)) if ages else (0,)
        for bounds, truth in zip(group["figures"].values(), figures, strict=False):
            assert bounds["low"] <= truth <= bounds["high"] and bounds["low"] <= bounds["estimate"] <= bounds["high"]
    text = released.call("sql", "ask", *asked, QUERY, "--policy", released.policy).out
    rows = duckdb.connect(str(released.database), read_only=True).execute(text.rstrip().rstrip(";")).fetchall()
    counts = {group: row for group, _, figure, *row in rows if figure == 1}
    told = {one["by"]["disease"]: one["figures"]["n"] for one in found["groups"]}
    assert counts == {by: [figure[name] for name in ("low", "estimate", "high")] + [0] for by, figure in told.items()}
    spread = released.call("sql", "expand", *asked, "--policy", released.policy, "--columns", "country", "--json").json
    with duckdb.connect(str(released.database), read_only=True) as con:
        ((whole,),) = con.execute(f"SELECT sum(weight) FROM ({spread['sql']})").fetchall()
    assert round(whole, 9) == len(PATIENTS)


def test_a_policy_says_of_a_file_that_nothing_was_left_out_if_nothing_could_be(released: Any) -> None:
    file = released.folder / "r.parquet"
    released.sql(f"COPY published.patients TO '{file}'")
    asked = ["ask", ":memory:", file, QUERY, "--policy", released.policy, "--json"]
    found = released.call(*asked).json
    assert found["left_out"] == 0 and "if the table is the whole release" in found["notes"][0]
    released.write_policy(suppression=0.1)
    assert released.call(*asked).json["left_out"] is None


def test_what_nobody_says_was_left_out_is_not_known(released: Any) -> None:
    released.sql("DELETE FROM published.patients WHERE disease = 'Flu'")
    found = released.call("ask", released.database, "published.patients", QUERY, "--json")
    assert found.json["left_out"] is None and len(found.json["notes"]) == 2
    more = ["--policy", released.policy, "--json"]
    assert released.call("ask", released.database, "published.patients", QUERY, *more).json["left_out"] is None
    refused = released.call("ask", released.database, "published.patients", f"{QUERY} HAVING n > 1")
    assert refused.code == 2 and "HAVING is not answered" in refused.err


def test_a_database_whose_extension_is_not_here_is_asked_by_a_statement(released: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(connections, "attempt", lambda *given: "not here")
    refused = released.call("ask", "postgresql://localhost/clinic", "published.patients", QUERY)
    assert refused.code == 3 and "needs DuckDB's extension postgres_scanner" in refused.err
    assert "`ldiv sql ask … --dialect postgres`" in refused.err
