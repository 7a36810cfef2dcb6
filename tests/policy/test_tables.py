"""Policies of several tables: what is refused as it is written, each by its name and with a way out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from ldiv_db.policy.reading import load_policy
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.schema import content_of, members_of

POLICY: dict[str, Any] = {
    "individual": "patient_nr",
    "tables": {
        "patients": {
            "source": "clinic.patients",
            "person": "patient_nr",
            "quasi_identifiers": ["birth", "sex"],
            "target": "published.patients",
        },
        "stays": {
            "source": "clinic.stays",
            "person": "patient_nr",
            "key": "stay_id",
            "order": "admitted",
            "quasi_identifiers": ["admitted", "ward"],
            "sensitive": ["diagnosis"],
            "keep": ["los"],
            "target": "published.stays",
        },
        "labs": {
            "source": "clinic.labs",
            "parent": {"stay_id": "stays"},
            "sensitive": ["result_class"],
            "target": "published.labs",
        },
        "wards": {"source": "clinic.wards", "public": True, "keep": ["ward", "beds"], "target": "published.wards"},
    },
    "require": [{"frequency": 3}, {"k": 4}],
}


#: What is said of one table as well.
WITHOUT_WAY_OUT = ("require: must name at least one", "tables.stays.keep.ward: is classified already")


def changed(**changes: Any) -> dict[str, Any]:
    """The policy with other keys at the top, or by `table__key` in a table; None leaves one out."""
    policy = deepcopy(POLICY)
    for key, value in changes.items():
        *way, last = key.split("__")
        part = policy["tables"].setdefault(way[0], {}) if way else policy
        part[last] = value
        if value is None:
            del part[last]
    return policy


def told(**changes: Any) -> str:
    return "\n".join(map(str, problems_of(load_policy(changed(**changes)))))


def test_the_grammar_of_one_table_is_that_of_each() -> None:
    policy = load_policy(POLICY)
    assert not problems_of(policy)
    assert list(policy.quasi_identifiers) == ["patients.birth", "patients.sex", "stays.admitted", "stays.ward"]
    assert list(policy.sensitive) == ["stays.diagnosis", "labs.result_class"]
    members = members_of(policy)
    assert list(members) == ["patients", "stays", "labs"]
    assert members["stays"].identifiers == ["stay_id"] and members["stays"].is_aligned
    assert [spec.name for spec in members["patients"].require] == ["k"]
    assert [spec.name for spec in members["stays"].require] == ["frequency", "k"]
    assert load_policy(load_policy(POLICY).model_copy()).tables == policy.tables


def test_a_requirement_is_for_all_sensitive_columns_or_those_it_names() -> None:
    require = [{"frequency": 3, "sensitive": "stays.diagnosis"}, {"distinct": 2}]
    members = members_of(load_policy(changed(require=require)))
    assert [spec.name for spec in members["stays"].require] == ["frequency", "distinct"]
    assert [spec.name for spec in members["labs"].require] == ["distinct"]


NOT = "does not go with tables"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": "day_of_stay", "nights": "apart"}, "key: no table has day_of_stay among its identifiers"),
        ({"transparent": True}, f"transparent: {NOT}: it is proved for one row of each person"),
        ({"weight": "n"}, f"weight: {NOT}: counts do not say whose rows they are"),
        ({"preserve": ["sex"]}, f"preserve: {NOT}"),
        ({"source": "clinic.patients"}, "source: stands with each of the tables"),
        ({"keep": ["los"]}, "keep: stands with each of the tables"),
        ({"quasi_identifiers": ["birth"]}, "quasi_identifiers: stands with each of the tables"),
        ({"individual": None}, "individual: is required: the column that says who a person is"),
        ({"individual": {"column": "patient_nr", "order": "day"}}, "individual.order: no table has day among its"),
        ({"individual": {"column": "patient_nr", "rows_at_most": 2}}, "individual.rows_at_most: is of one table"),
        ({"algorithm": "anatomy"}, f"algorithm.name: {NOT}: anatomy publishes tables of its own"),
        ({"nulls": "suppress"}, f"nulls: {NOT}: a row that is left out lacks in other tables"),
        ({"nulls_sensitive": "value"}, "nulls_sensitive: "),
        ({"suppressed": "ignore"}, f"suppressed: {NOT}: people are counted"),
        ({"output": {"person": "who"}}, f"output.person: {NOT}: people and rows are linked by their keys"),
        ({"require": []}, "require: must name at least one"),
        ({"require": [{"unique_distinct": 3}]}, f"require.0: {NOT}: unique_distinct is about rows of one value"),
        ({"require": [{"k_map": {"k": 2, "population": "p"}}]}, f"require.0: {NOT}: k_map counts people of a"),
        ({"require": [{"frequency": 3, "sensitive": "stays.diagnos"}]}, "'stays.diagnos' is not sensitive"),
        ({"stays__person": None}, "tables.stays: belongs to nobody"),
        ({"stays__public": True}, "tables.stays: takes one of person, parent and public, and has person, public"),
        ({"wards__sensitive": ["beds"], "wards__keep": []}, "tables.wards.sensitive: is of people"),
        ({"stays__key": None}, "tables.labs.parent: stays has no key"),
        ({"labs__parent": {"stay_id": "stay"}}, "tables.labs.parent: there is no table stay"),
        ({"labs__parent": {"stay_id": "stays", "ward": "wards"}}, "tables.labs.parent: leads to stays and to wards"),
        ({"stays__key": ["stay_id", "ward"]}, "tables.labs.parent: is not as many columns as the key of stays"),
        ({"stays__key": ["patient_nr"]}, "tables.stays.key: patient_nr says whose a row is already"),
        ({"wards__orphans": "leave_out"}, "tables.wards.orphans: is of people"),
        ({"labs__parent": {"ward": "wards"}, "wards__key": "ward"}, "tables.labs.parent: wards leads to no person"),
        (
            {"stays__person": None, "stays__parent": {"lab_id": "labs"}, "labs__key": "lab_id"},
            "tables.stays.parent: labs leads back to the table itself",
        ),
        ({"labs__target": "published.stays"}, "tables.labs.target: is that of stays already"),
        ({"labs__target": "labs.parquet"}, "tables.labs.target: all tables go to one database, DuckDB file or folder"),
        ({"labs__target": {"prefix": "p"}}, f"tables.labs.target: {NOT}: the releases of a series go by a prefix"),
        ({"labs__target": {"table": "t", "database": "other"}}, "tables.labs.target: all tables go to one database"),
        ({"labs__target": {"table": "t", "if_exists": "append"}}, f"tables.labs.target.if_exists: {NOT}: nobody knows"),
        ({"wards__rows": "together"}, "tables.wards.rows: is of people"),
        (
            {"stays__rows": "together", "require": [{"frequency": 3, "each": "position"}]},
            "tables.stays.rows: have one label, and something is asked at each position",
        ),
        ({"labs__order": "result_class"}, "tables.labs.individual.order: result_class is sensitive"),
        ({"stays__keep": ["ward"]}, "tables.stays.keep.ward: is classified already"),
        ({"a.b": {"source": "x", "target": "y", "person": "p"}}, "takes a name without a dot"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    if "a.b" in changes:
        policy = deepcopy(POLICY)
        policy["tables"] |= changes
        found = "\n".join(map(str, problems_of(load_policy(policy))))
    else:
        found = told(**changes)
    assert message in found, found
    (line,) = [line for line in found.splitlines() if message in line]
    assert line.endswith(")") or message in WITHOUT_WAY_OUT


def test_what_is_said_of_all_tables_is_refused_once_and_nothing_follows_from_it() -> None:
    found = told(suppressed="ignore", transparent=True, weight="n", nulls="suppress")
    keys = [line.strip().partition(":")[0] for line in found.splitlines() if NOT in line]
    assert sorted(keys) == ["nulls", "suppressed", "transparent", "weight"]
    assert "tables." not in found


def test_what_cannot_be_read_is_told_with_the_table() -> None:
    assert "tables.stays.rows: " in told(stays__rows="apart")
    assert "tables.stays.sourse: unknown key" in told(stays__sourse="x")
    assert "tables.stays.key: takes a column, or several" in told(stays__key=[])
    assert "tables.stays.key: names a column twice" in told(stays__key=["stay_id", "STAY_ID"])
    assert "tables.stays.person: takes one column: make one of several" in told(stays__person=["clinic", "patient_nr"])


def test_what_a_policy_says_is_written_alike_in_every_process() -> None:
    said = repr(content_of(load_policy(POLICY)))
    assert "'birth'" in said and " at 0x" not in said
    moved = deepcopy(POLICY) | {"databases": {}}
    for name, table in moved["tables"].items():
        table |= {"source": f"other.{name}", "target": f"elsewhere.{name}"}
    assert repr(content_of(load_policy(moved))) == said
