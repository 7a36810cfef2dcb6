"""The audit of several tables: a wrong plan, a wrong table and a wrong reading, each of which publishes nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db import PolicyError
from ldiv_db.auditing import joined_tables
from ldiv_db.auditing.audit import Judging
from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.auditing.tables import audit_tables
from ldiv_db.database import templates
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.publishing import tables_draft
from ldiv_db.requirements import RequirementSpec
from tests.auditing import test_audit
from tests.running.schemas import drawn, fill, policy_of

NAMES = ("patients", "stays", "labs")
#: Each reading, broken so that all people of one shape are a class: the file, what it says and what it is to say.
FIRST = (templates, "auditing/tables/show_people.sql.j2", "r.shown", "r.place AS shown")
SECOND = (templates, "auditing/tables/list_paths.sql.j2", "    )\n    AS shown\n", "    ) || NULL AS shown\n")
#: Each reading, broken so that a table's rows are of other people: by the labels of what they belong to.
FIRST_JOIN = (templates, "auditing/tables/join_rows.sql.j2", "a.key = p.{{ owner }}", "a.key = -p.{{ owner }}")
#: The plan, broken: each person is a class of their own, or the rows of a class have labels of others.
ALONE = (templates, "recoding/input/part_positions.sql.j2", "a.class_id *", "m.unit_id *")


def run(con: Any, **changes: Any) -> Any:
    return ldiv_db.run(con, policy_of(NAMES, **{"require": [{"k": 2}], **changes}))


@pytest.fixture(scope="module")
def published() -> Iterator[tuple[Any, Any]]:
    """A clinic whose tables are published, and what the run said."""
    with duckdb.connect(config={"threads": 1}) as con:
        fill(con, NAMES, drawn(random.Random(4), NAMES, 16, values="abcdefghij"))
        yield con, run(con, require=GOOD)


def test_people_are_counted_by_what_all_tables_show_of_them(published: Any) -> None:
    clinic, result = published
    assert [audit.sensitive for audit in result.audits] == ["stays.value", "labs.value", ""]
    assert all(audit.of_people and audit.least_people >= 2 for audit in result.audits)
    assert all(verdict.second == 0 for audit in result.audits for verdict in audit.verdicts)
    published = {one.name: one.loss.rows_published for one in result.tables}
    assert [audit.rows for audit in result.audits] == [published["stays"], published["labs"], sum(published.values())]
    # One table by itself has larger classes than all together.
    (alone,) = ldiv_db.check(clinic, "published.patients", ["age_min", "age_max"], (), [{"k": 2}])
    assert alone.classes < result.audits[-1].classes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "require", "message"),
    some(
        [
            # Each person is a class of their own then, which one of the readings overlooks and the other does not.
            pytest.param([ALONE, SECOND], {"k": 3}, "one of the two is wrong", id="second reading"),
            pytest.param([FIRST_JOIN], {"k": 2}, "rows of labs belong to nobody", id="join"),
            pytest.param([ALONE, FIRST], {"k": 3}, "one of the two is wrong", id="first reading"),
            pytest.param([ALONE], {"k": 3}, "k k=3: ", id="plan"),
            pytest.param([test_audit.FIRST], {"distinct": 3}, "one of the two is wrong", id="first formula"),
            pytest.param([test_audit.SECOND], {"distinct": 3}, "one of the two is wrong", id="second formula"),
        ]
    ),
)
def test_what_is_wrong_publishes_nothing(
    published: Any, broken: Any, snapshot: Any, changes: Any, require: Any, message: str
) -> None:
    con, _ = published
    before = snapshot(con)
    for change in changes:
        broken(*change)
    with pytest.raises(AuditError, match=message):
        run(con, require=[require], seed=8)
    assert snapshot(con) == before


@pytest.mark.parametrize("knows_one", [False, True])
def test_texts_that_are_written_differently_are_no_class(knows_one: bool) -> None:
    """Neither reading numbers two texts alike, whatever collation their column has."""
    texts = ["a", "A", "NULL", None, '"a"', "<", ">"]
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("CREATE TABLE people (who INTEGER, label VARCHAR COLLATE NOCASE)")
        con.executemany("INSERT INTO people VALUES (?, ?)", list(enumerate(texts)))
        named = {"owner": Identifier("who"), "labels": [Identifier("label")], "key": None, "position": None}
        table = PublishedTable("people", 1, Relation(("main", "people")), above="", sensitive={}, **named)
        wanted = {"": [RequirementSpec("k", 2).resolve(None)]}
        (audit,) = audit_tables(Engine(con), [table], wanted, Judging(twice=True), knows_one)
    assert [verdict.violating_classes for verdict in audit.verdicts] == [len(texts)]
    assert [verdict.second for verdict in audit.verdicts] == [len(texts)]


NOT_PLANNED = "what was written is not what people were counted in"


@pytest.mark.parametrize(
    ("wrong", "is_held_against_the_plan", "message"),
    some(
        [
            ("UPDATE published.labs SET stay = 1", True, NOT_PLANNED),
            ("UPDATE published.stays SET age_max = 1000 + stay WHERE position = 1", False, "k k=2"),
            ("UPDATE published.stays SET value = 'a'", True, NOT_PLANNED),
            ("UPDATE published.stays SET who = 1 - who % 2", True, NOT_PLANNED),
            ("DELETE FROM published.labs WHERE value = 'a'", True, "rows were written in place of"),
            ("UPDATE published.labs SET value = 'a'", False, "frequency l=2 on labs.value"),
            ("UPDATE published.stays SET value = 'a'", False, "frequency l=2 on stays.value"),
            ("UPDATE published.patients SET age_min = -who", False, "k k=2"),
            ("DELETE FROM published.labs WHERE stay % 2 = 1", False, "k k=2"),
        ]
    ),
)
def test_a_table_that_is_not_what_was_planned_publishes_nothing(
    published: Any, monkeypatch: Any, snapshot: Any, wrong: str, is_held_against_the_plan: bool, message: str
) -> None:
    """What a table shows is judged even where nobody holds it against the plan."""
    con, _ = published
    write, before = tables_draft.NewTables.write, snapshot(con)

    def tampered(self: Any, where: Any, before: Any = None) -> Any:
        yield from write(self, where, before)
        self.engine.execute(wrong)

    monkeypatch.setattr(tables_draft.NewTables, "write", tampered)
    if not is_held_against_the_plan:
        monkeypatch.setattr(tables_draft.NewTables, "_as_written", lambda self, draft, table: table)
    with pytest.raises(AuditError, match=message):
        run(con, require=GOOD)
    assert snapshot(con) == before


@pytest.mark.slow
def test_readings_that_find_other_rows_publish_nothing(published: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(joined_tables, "path_of", lambda tables, table: [table])
    with pytest.raises((AuditError, ldiv_db.DatabaseError)):
        run(published[0])


# -- the check of what was published -------------------------------------------------------------------


@pytest.fixture
def released(published: Any) -> Iterator[Any]:
    """The same, to which nothing that a test does to it stays done."""
    con, _ = published
    con.execute("BEGIN")
    yield con
    con.execute("ROLLBACK")


def checked(con: Any, **changes: Any) -> Any:
    return ldiv_db.check(con, policy=policy_of(NAMES, **{"require": GOOD, **changes}))


#: What the releases meet that are checked below.
GOOD: list[Any] = [{"frequency": 2}, {"k": 2}]


@pytest.mark.parametrize(
    ("changed", "found"),
    some(
        [
            ("UPDATE published.patients SET age_max = age_max + 1 WHERE who = 3", ""),
            ("UPDATE published.labs SET value = 'a' WHERE stay % 3 > 0", "labs.value"),
            ("UPDATE published.labs SET stay = 1000 WHERE no % 2 = 0", "rows of labs belong to nobody"),
            ("UPDATE published.patients SET who = NULL WHERE who = 3", "1 rows of patients belong to nobody"),
            ("UPDATE published.stays SET age_min = age_min - 1 WHERE stay = 3", ""),
            ("UPDATE published.stays SET age_min = NULL WHERE stay = 3", ""),
            ("UPDATE published.stays SET value = 'a'", "stays.value"),
            ("UPDATE published.stays SET who = 4 WHERE stay = 3", ""),
            ("UPDATE published.stays SET who = 1000 WHERE stay = 3", ""),
            ("UPDATE published.labs SET stay = (SELECT max(stay) FROM published.labs)", ""),
            (
                "DELETE FROM published.stays WHERE stay = (SELECT min(stay) FROM published.stays ANTI JOIN"
                " published.labs USING (stay))",
                "",
            ),
            ("UPDATE published.stays SET who = NULL WHERE stay = 3", "1 rows of stays belong to nobody"),
            ("UPDATE published.stays SET stay = 3 WHERE stay IN (SELECT stay FROM published.labs)", "rows of labs be"),
        ],
        5,
    ),
)
def test_a_table_that_was_changed_is_refused(released: Any, changed: str, found: str) -> None:
    released.execute(changed)
    if "rows of" in found:
        with pytest.raises(AuditError, match=found):
            checked(released)
        return
    audits = checked(released)
    assert audits.holds is False
    assert found in [audit.sensitive for audit in audits if audit.holds is False]
    assert all(verdict.agrees for audit in audits for verdict in audit.verdicts)


def test_what_is_not_there_is_named_with_its_table(released: Any) -> None:
    released.execute("ALTER TABLE published.stays RENAME position TO place; DROP TABLE published.labs")
    with pytest.raises(PolicyError) as error:
        checked(released)
    assert {problem.key for problem in error.value.problems} == {"tables.stays.order", "tables.labs.target"}


def test_what_is_said_of_one_table_is_refused(released: Any) -> None:
    with pytest.raises(PolicyError) as error:
        ldiv_db.check(
            released, "published.stays", ["age_min"], {"value": {}}, policy=policy_of(NAMES), individual="who"
        )
    assert [problem.key for problem in error.value.problems] == ["table", "qi", "sensitive", "individual"]
    with refuses("require.0.sensitive"):
        ldiv_db.check(released, require=[{"distinct": 2, "sensitive": "value"}], policy=policy_of(NAMES))


@pytest.mark.parametrize("which", [FIRST, SECOND])
def test_a_wrong_reading_is_found_by_a_check(released: Any, broken: Any, which: Any) -> None:
    released.execute("UPDATE published.stays SET age_min = age_min - stay")
    broken(*which)
    found = checked(released)
    assert found.holds is False and not all(verdict.agrees for audit in found for verdict in audit.verdicts)
