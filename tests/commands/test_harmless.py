"""Harmless values from the command line: a policy file, `ldiv check --harmless`, `ldiv attack`, the ledger, and SQL."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

KEYS = {"age": {"taxonomy": {"ranges": [10, 20]}}, "country": {"taxonomy": {"file": "country.csv"}}}


@pytest.fixture
def mostly_well(bed: Any) -> Any:
    """Two thirds of the patients have 010, a text, or nothing; the others have a disease."""
    bed.sql("UPDATE patients SET disease = '010' WHERE substr(name, 2)::INTEGER % 3 > 0")
    bed.sql("UPDATE patients SET disease = NULL WHERE name = 'P1'")
    return bed


def policy(bed: Any, **more: Any) -> None:
    """The values stand without quotes in the file: they are texts there, but null."""
    changes = {
        "require": [{"frequency": 3}],
        "nulls_sensitive": "value",
        "quasi_identifiers": KEYS,
        "algorithm": "topdown",
    }
    bed.write_policy(sensitive={"disease": {"harmless": ["HARMLESS"]}}, **(changes | more))
    bed.policy.write_text(bed.policy.read_text().replace("- HARMLESS", "- 010\n    - null"))


def worst(bed: Any, table: str) -> float:
    """The largest share of a disease in a class."""
    rows = bed.sql(f"SELECT age, country, disease FROM {table}")
    sizes = Counter(row[:2] for row in rows)
    return max(n / sizes[row[:2]] for row, n in Counter(rows).items() if row[2] not in ("010", None))


def test_a_run_and_what_is_said_of_it(mostly_well: Any) -> None:
    bed = mostly_well
    policy(bed, algorithm="tds")
    planned = bed.call("plan", bed.database, bed.policy)
    assert planned.code == 0 and "harmless" in planned.out
    found = bed.run("--json").json
    assert found["requirements"][0]["parameters"] == {"l": 3, "harmless": ["null", "010"]}
    assert worst(bed, "published.patients") <= 1 / 3
    ((kept,),) = bed.sql("SELECT parameters FROM ldiv.run_requirement")
    assert json.loads(kept) == {"l": 3, "harmless": 2}
    attacked = bed.call("attack", bed.database, "published.patients", "--policy", bed.policy, "--json")
    assert (attacked.code, attacked.json["holds"]) == (0, True)
    says = bed.fails(2, "sql", "recode", bed.database, found["run_id"], "--policy", bed.policy)
    assert "has harmless values, of which the ledger has only the number" in says


def test_a_check_and_an_attack(mostly_well: Any) -> None:
    bed = mostly_well
    about = (bed.database, "patients", "--qi", "country", "--sensitive", "disease", "--require", "frequency:3")
    said = ("--harmless", "disease=010", "--harmless", "null")
    holds = worst_of_countries(bed) <= 1 / 3
    assert bed.call("check", *about).code == 1, "most have 010"
    assert bed.call("check", *about, *said).code == (0 if holds else 1)
    attacked = bed.call("attack", *about, *said, "--json")
    (posterior,) = [attack for attack in attacked.json["attacks"] if attack["attack"] == "posterior"]
    assert posterior["gains"][1]["gain"] == pytest.approx(worst_of_countries(bed))
    assert posterior["holds"] is holds and attacked.code == (0 if holds else 1)
    assert "is about all values of a class" in bed.fails(
        2, "check", *about[:-1], "entropy:2", "--harmless", "disease=010"
    )
    assert "harmless: is about a sensitive attribute" in bed.fails(
        2, "check", bed.database, "patients", "--qi", "country", "--require", "k:2", "--harmless", "disease=010"
    )


def worst_of_countries(bed: Any) -> float:
    bed.sql("CREATE OR REPLACE VIEW by_country AS SELECT 0 AS age, country, disease FROM patients")
    found = worst(bed, "by_country")
    bed.sql("DROP VIEW by_country")
    return found
