"""`ldiv sql contract`: a policy as an Open Data Contract, whose rules say what the audit says."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import sqlglot
import yaml
from sqlglot import exp

from ldiv_db.commands.sql import Dialect
from ldiv_db.policy.reading import read_policy
from ldiv_db.reporting.request import policy_hash, written_policy
from tests.beds import Bed
from tests.strategies import some

#: What a rule in SQL may have, by the standard.
RULE = {"name", "description", "type", "query", "mustBe", "dimension", "severity", "unit"}
TWO = [{"distinct": 3}, {"k": 3}, {"threshold": {"default": 0.5, "Cancer": 0.4}, "sensitive": "disease"}]


def contract(bed: Bed, *words: Any) -> Any:
    done = bed.call("sql", "contract", bed.policy, *words)
    assert done.code == 0, done
    return yaml.safe_load(done.out)


def test_a_contract_has_the_published_columns_and_a_rule_a_requirement(bed: Bed) -> None:
    bed.write_policy(require=TWO, seed=987654321)
    found = contract(bed)
    assert {key: found[key] for key in ("apiVersion", "kind", "id", "status")} == {
        "apiVersion": "v3.0.2",
        "kind": "DataContract",
        "id": "ldiv:published.patients",
        "status": "active",
    }
    (release,) = found["schema"]
    assert (release["name"], release["physicalName"]) == ("patients", "published.patients")
    columns = {column["name"]: column["tags"] for column in release["properties"]}
    keys = {name: ["quasi-identifier"] for name in ("age", "country")}
    assert columns == {**keys, "disease": ["sensitive"], "ward": ["kept"]}
    assert [rule["name"] for rule in release["quality"]] == ["distinct", "k", "threshold of disease"]
    assert all(set(rule) == RULE and rule["mustBe"] == 0 for rule in release["quality"])
    said = {one["property"]: one["value"] for one in found["customProperties"]}
    assert said["policySha256"] == policy_hash(written_policy(read_policy(bed.policy), public=True))
    text = str(found)
    assert not [word for word in ("987654321", "main.patients", "Norway", "Flu", "'name': 'name'") if word in text]


def test_its_rules_hold_of_the_release_and_fail_of_the_source(released: Bed) -> None:
    bed = released
    bed.write_policy(require=TWO)
    rules = contract(bed)["schema"][0]["quality"]
    assert [bed.sql(rule["query"]) for rule in rules] == [[(0,)]] * 3
    bare = contract(bed, "--table", "main.patients")["schema"][0]["quality"]
    judged = bed.call("check", bed.database, "patients", "--policy", bed.policy, "--json").json["audits"][0]
    violating = [one["violating_classes"] for one in judged["requirements"]]
    assert [bed.sql(rule["query"])[0][0] for rule in bare] == violating and min(violating) > 0


@pytest.mark.parametrize("dialect", some(get_args(Dialect)))
def test_its_rules_are_one_select_in_every_dialect(bed: Bed, dialect: str) -> None:
    bed.write_policy(require=TWO)
    for rule in contract(bed, "--dialect", dialect)["schema"][0]["quality"]:
        (tree,) = sqlglot.parse(rule["query"], read=dialect)
        assert isinstance(tree, exp.Select) and len(tree.selects) == 1


def test_what_is_no_table_is_refused(bed: Bed) -> None:
    bed.write_policy(target="release.parquet")
    assert "give --table" in bed.fails(2, "sql", "contract", bed.policy, "--json")
    assert contract(bed, "--table", "public.release")["schema"][0]["physicalName"] == "public.release"
