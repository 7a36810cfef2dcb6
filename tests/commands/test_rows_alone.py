"""k-anonymity without a sensitive attribute, from the command line."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest


@pytest.mark.slow
def test_plan_run_check_measure_attack(bed: Any) -> None:
    bed.write_policy(sensitive=None, keep=None, identifiers=["name", "disease", "ward"], require=[{"k": 4}])
    assert "bsgi needs a sensitive attribute (algorithm: auto" in bed.fails(2, "run", bed.database, bed.policy)
    bed.write_policy(
        sensitive=None, keep=None, identifiers=["name", "disease", "ward"], require=[{"k": 4}], algorithm="auto"
    )
    planned = bed.call("plan", bed.database, bed.policy)
    assert planned.code == 0 and "k: k = 4" in planned.out and "feasible without suppression" not in planned.out
    found = bed.run("--json").json
    tried = {trial["algorithm"] for trial in found["search"]["tried"]}
    assert found["algorithm"] in tried <= {"peel", "topdown"} and found["requirements"][0]["sensitive"] is None
    release = bed.sql("SELECT age, country FROM published.patients")
    sizes = Counter(release)
    assert len(release) == 24 and min(sizes.values()) >= 4
    assert [name for name, *_ in bed.sql("DESCRIBE published.patients")] == ["age", "country"]
    assert "audit of rows alone" in bed.call("run", bed.database, bed.write("p.yml", _other(bed))).out

    about = ("published.patients", "--qi", "age,country")
    held = bed.call("check", bed.database, *about, "--require", "k:4")
    assert held.code == 0 and "rows alone" in held.out
    failed = bed.call("check", bed.database, *about, "--require", "k:25", "--violations", "--show-values")
    assert failed.code == 1 and "worst classes: k k=25" in failed.out and "None" not in failed.out
    assert "sensitive: is missing" in bed.fails(2, "check", bed.database, *about, "--require", "distinct:2")
    assert bed.call("measure", bed.database, about[0], "--policy", bed.policy, "--json").json["l"] == 4
    plain = bed.call("measure", bed.database, about[0], "--source", "patients", "--qi", "age", "--json").json
    assert (plain["l"], plain["classes"]) == (None, len({age for age, _ in release}))
    attacked = bed.call("attack", bed.database, about[0], "--policy", bed.policy, "--json")
    assert (attacked.code, attacked.json["holds"]) == (0, True)
    assert bed.call("attack", bed.database, *about, "--require", f"k:{min(sizes.values()) + 1}").code == 1


def _other(bed: Any) -> str:
    """The policy with another target."""
    return str(bed.policy.read_text().replace("published.patients", "published.others"))


def test_a_recoding_of_rows_alone_as_sql(bed: Any) -> None:
    bed.write_policy(
        sensitive=None,
        identifiers=["name", "disease"],
        quasi_identifiers={"age": {"taxonomy": {"ranges": [10, 20]}}, "country": {"taxonomy": {"file": "country.csv"}}},
        require=[{"k": 3}],
        algorithm="incognito",
    )
    run = bed.run("--json").json["run_id"]
    assert bed.sql(bed.call("sql", "recode", bed.database, run).out) == bed.sql("FROM published.patients")
