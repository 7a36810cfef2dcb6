"""Reports on a release of several tables: numbers worked out another way, the page, what is public, verification."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter, defaultdict
from typing import Any

import duckdb
import pytest
from refusals import refuses

import ldiv_db
from ldiv_db.reporting.verification import question_again, verify_report
from tests.attacking.test_tables import places
from tests.html_pages import Page
from tests.reporting.hospitals import undone
from tests.reporting.test_page import HEADINGS
from tests.running.schemas import drawn, fill, policy_of, published, rows_of

NAMES = ("patients", "stays", "labs")
FEW = {"queries": 1}
PEOPLE = 16


def clinic_policy(**changes: Any) -> dict[str, Any]:
    """A policy with a name that would break out of a page."""
    policy = policy_of(NAMES, require=[{"frequency": 2}, {"k": 2}], **changes)
    tables = {"<b>patients" if name == "patients" else name: table for name, table in policy["tables"].items()}
    return policy | {"tables": tables}


@pytest.fixture(scope="module")
def clinic() -> Any:
    with duckdb.connect(config={"threads": 1}) as con:
        fill(con, NAMES, drawn(random.Random(4), NAMES, PEOPLE, 2, values="abcdefghij"))
        ldiv_db.run(con, clinic_policy())
        yield con


@pytest.fixture(scope="module")
def report(clinic: Any) -> Any:
    return ldiv_db.report(clinic, policy=clinic_policy(), **FEW, recipient="us")


@pytest.fixture(scope="module")
def document(report: Any) -> Any:
    return report.document


@pytest.fixture(scope="module")
def public(clinic: Any, document: Any) -> Any:
    """Of the release that the run's number names."""
    return ldiv_db.report(clinic, document["statement"]["run"]["run_id"], clinic_policy(), public=True)


def rows(con: Any, query: str) -> list[Any]:
    return list(con.execute(query).fetchall())


# -- numbers -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_audit_attacks_and_losses_are_those_of_the_other_commands(clinic: Any, document: Any) -> None:
    audits = ldiv_db.check(clinic, policy=clinic_policy())
    assert [one["sensitive"] for one in document["audit"]["attributes"]] == [one.sensitive or None for one in audits]
    assert [one["classes"] for one in document["audit"]["attributes"]] == [one.classes for one in audits]
    assert document["statement"]["holds"] is document["statement"]["promises_hold"] is True
    attacks = ldiv_db.attack(clinic, policy=clinic_policy()).as_dict()
    assert document["attacks"]["attacks"] == json.loads(json.dumps(attacks["attacks"]))
    assert {one["verdict"] for one in document["verdicts"]} == {"not tried"}
    measured = ldiv_db.measure(clinic, policy=clinic_policy(), kl=False).as_dict()
    utility = document["source"]["utility"]
    assert utility["tables"] == measured["tables"]
    assert [one["counts"] for one in utility["joins"]] == json.loads(
        json.dumps([one["counts"] for one in measured["joins"]])
    )


def test_classes_and_risks_by_hand(clinic: Any, document: Any) -> None:
    alike, values = Counter[Any](), defaultdict[Any, list[set[str]]](list)
    for tree in published(clinic, NAMES).values():
        seen = tuple(sorted(map(str, (one for _, one in places(tree)))))
        alike[seen] += 1
        if own := {value for name, (_, _, value, _) in rows_of(tree) if name == "stays"}:
            values[seen].append(own)
    sizes = document["classes"]["sizes"]
    assert (sizes["least"], sizes["most"]) == (min(alike.values()), max(alike.values()))
    assert sum(one["classes"] for one in sizes["bins"]) == len(alike) == document["statement"]["classes"]
    assert sum(one["rows"] for one in sizes["bins"]) == PEOPLE
    assert document["statement"]["largest_risk"] == 1 / min(alike.values())
    largest = [max(sum(v in own for own in people) / len(people) for v in "abcdefghij") for people in values.values()]
    shares = document["classes"]["largest_shares"]["stays.value"]
    assert shares == [sum(place / 20 < one <= (place + 1) / 20 for one in largest) for place in range(20)]


def test_rows_left_out_and_unique_ones_by_hand(clinic: Any, document: Any) -> None:
    for one in document["source"]["utility"]["tables"]:
        name = one["table"].removeprefix("<b>")
        ((before, after),) = rows(
            clinic, f"SELECT (SELECT count(*) FROM {name}), (SELECT count(*) FROM published.{name})"
        )
        assert (one["rows_in"], one["rows_published"], one["rows_suppressed"]) == (before, after, before - after)
    of_stays = next(one["uniqueness"] for one in document["source"]["tables"] if one["table"] == "stays")
    ages = Counter(age for (age,) in rows(clinic, "SELECT age FROM stays"))
    assert of_stays["unique_rows"] == sum(n == 1 for n in ages.values()) and of_stays["rows"] == sum(ages.values())
    assert document["source"]["tables"][2] == {"table": "labs", "uniqueness": None}


def test_columns_stand_with_their_roles_and_links(document: Any) -> None:
    data = document["data"]
    assert data["links"] == ["<b>patients.who", "stays.who", "stays.stay", "labs.stay"]
    assert data["identifiers"] == ["stays.day", "who"]
    assert [one["column"] for one in data["quasi_identifiers"]] == ["<b>patients.age", "stays.age"]
    assert "all published rows of a person" in data["people"]
    assert document["algorithm"]["protection"] and "topdown" in document["algorithm"]["name"]


# -- the page ----------------------------------------------------------------------------------------------


def test_the_page_has_all_sections_and_no_name_breaks_out_of_it(report: Any) -> None:
    text = report.html()
    page = Page(text)
    assert [one["text"].split(". ")[1].removesuffix("internal").strip() for one in page.of("h2")] == HEADINGS
    assert not page.of("b") and len(page.of("caption")) == len(page.of("table"))
    cells = " ".join(one["text"] for one in page.of("td"))
    assert "all tables known" in " ".join(one["text"] for one in page.of("th")) and "replaced by numbers" in cells
    assert "<b>patients with stays" in " ".join(one["text"] for one in page.of("th"))
    assert "Information lost by column of stays" in text


def test_of_a_release_that_violates_its_policy_the_report_says_so(clinic: Any) -> None:
    with undone(clinic):
        clinic.execute("UPDATE published.stays SET age_min = -stay")  # alone among all alike in the other table
        clinic.execute("DROP TABLE labs")
        found = ldiv_db.report(clinic, policy=clinic_policy(), **FEW)
    assert not found.holds and found.document["statement"]["promises_hold"] is False
    assert found.document["source"] is None and "labs" in found.document["why_no_source"]
    assert set(found.document["algorithm"]["protection"].values()) == {"nothing: the audit failed"}
    Page(found.html())


# -- a public report ---------------------------------------------------------------------------------------


def test_a_public_report_depends_on_the_release_alone(clinic: Any, public: Any) -> None:
    with undone(clinic):
        clinic.execute("DELETE FROM labs; UPDATE stays SET age = 3, value = 'z'; DROP TABLE patients")
        clinic.execute("DROP SCHEMA ldiv CASCADE")
        assert ldiv_db.report(clinic, policy=clinic_policy(), public=True).json() == public.json()


def test_a_public_report_says_nothing_of_the_source(public: Any) -> None:
    document, text = public.document, public.html()
    assert document["source"] is None and document["earlier"] is None and document["data"]["identifiers"] == []
    said = {key for table in document["policy"]["tables"].values() for key in table}
    assert {"person", "parent", "sensitive"} <= said and {"source", "target", "identifiers", "order"}.isdisjoint(said)
    assert "individual" not in document["policy"] and "rows_suppressed" not in json.dumps(document)
    assert "Uniqueness before" not in text and "internal</span>" not in text
    Page(text)


# -- verification ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_is_verified_and_changed_numbers_are_found(clinic: Any, document: Any, public: Any) -> None:
    changed = copy.deepcopy(document)
    changed["source"]["utility"]["tables"][1]["rows_published"] += 1
    changed["classes"]["sizes"]["least"] += 1
    found = verify_report(clinic, changed, question_again(changed, None))
    assert found.plain > 10
    assert {one.where for one in found.differences} == {
        "source.utility.tables[1].rows_published", "classes.sizes.least",
    }  # fmt: skip
    with undone(clinic):
        clinic.execute("UPDATE published.labs SET value = 'z' WHERE no = (SELECT min(no) FROM published.labs)")
        policy = ldiv_db.parse_policy(clinic_policy())
        assert not verify_report(clinic, public.document, question_again(public.document, None, policy)).same_release


# -- questions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", [{"table": "published.stays"}, {"known": "patients"}, {"individual": "who"}, {"qi": "age"}]
)
def test_what_is_of_one_table_is_refused(clinic: Any, asked: dict[str, str]) -> None:
    with refuses(*asked):
        ldiv_db.report(clinic, policy=clinic_policy(), **asked)


def test_a_run_names_the_release(clinic: Any, document: Any, public: Any) -> None:
    assert public.document["annex"]["release"] == document["annex"]["release"]
    with refuses("table"):
        ldiv_db.report(clinic, qi="age", require="k:2")
