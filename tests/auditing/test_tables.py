"""The audit of several tables: a wrong plan, a wrong table and a wrong reading, each of which publishes nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest

import ldiv_db
from ldiv_db.auditing import tables as auditing
from ldiv_db.database import templates
from ldiv_db.database.errors import AuditError
from ldiv_db.publishing import tables_draft
from tests.auditing import test_second_reading
from tests.running.schemas import drawn, fill, policy_of

NAMES = ("patients", "stays", "labs")
#: Each reading, broken so that all people of one shape are a class: the file, what it says and what it is to say.
FIRST = (templates, "auditing/tables/gather_rows.sql.j2", "    r.labels{{", "    '' AS labels{{")
SECOND = (templates, "auditing/tables/list_paths.sql.j2", "    AS shown{{", "    || NULL AS shown{{")
#: Each reading, broken so that a table's rows are of other people: by the labels of what they belong to.
FIRST_JOIN = (templates, "auditing/tables/join_rows.sql.j2", "a.key = p.{{ owner }}", "a.key = -p.{{ owner }}")
#: The plan, broken: each person is a class of their own, or the rows of a class have labels of others.
ALONE = (templates, "recoding/input/part_positions.sql.j2", "ORDER BY a.class_id ASC", "ORDER BY m.unit_id ASC")


@pytest.fixture
def clinic(con: Any) -> Any:
    fill(con, NAMES, drawn(random.Random(4), NAMES, 60, values="abcdefghij"))
    return con


def run(con: Any, **changes: Any) -> Any:
    return ldiv_db.run(con, policy_of(NAMES, **{"require": [{"k": 2}], **changes}))


def test_people_are_counted_by_what_all_tables_show_of_them(clinic: Any) -> None:
    result = run(clinic, require=[{"frequency": 2}, {"k": 2}])
    assert [audit.sensitive for audit in result.audits] == ["stays.value", "labs.value", ""]
    assert all(audit.of_people and audit.least_people >= 2 for audit in result.audits)
    assert all(verdict.second == 0 for audit in result.audits for verdict in audit.verdicts)
    published = {one.name: one.loss.rows_published for one in result.tables}
    assert [audit.rows for audit in result.audits] == [published["stays"], published["labs"], sum(published.values())]
    # One table by itself has larger classes than all together.
    (alone,) = ldiv_db.check(clinic, "published.patients", ["age_min", "age_max"], (), [{"k": 2}])
    assert alone.classes < result.audits[-1].classes


@pytest.mark.always
def test_a_wrong_plan_publishes_nothing(clinic: Any, broken: Any, snapshot: Any) -> None:
    run(clinic)
    before = snapshot(clinic)
    broken(*ALONE)
    with pytest.raises(AuditError, match="k k=3: "):
        run(clinic, require=[{"k": 3}])
    assert snapshot(clinic) == before


@pytest.mark.always
@pytest.mark.parametrize("which", [FIRST, SECOND])
def test_a_wrong_reading_publishes_nothing(clinic: Any, broken: Any, snapshot: Any, which: Any) -> None:
    """Each person is a class of their own then, which one of the readings overlooks and the other does not."""
    run(clinic)
    before = snapshot(clinic)
    broken(*ALONE)
    broken(*which)
    with pytest.raises(AuditError, match="one of the two is wrong"):
        run(clinic, require=[{"k": 3}])
    assert snapshot(clinic) == before


@pytest.mark.always
@pytest.mark.parametrize("which", [test_second_reading.FIRST, test_second_reading.SECOND])
def test_a_wrong_formula_publishes_nothing(clinic: Any, broken: Any, snapshot: Any, which: Any) -> None:
    run(clinic)
    before = snapshot(clinic)
    broken(*which)
    with pytest.raises(AuditError, match="one of the two is wrong"):
        run(clinic, require=[{"distinct": 3}])
    assert snapshot(clinic) == before


@pytest.mark.always
def test_rows_that_are_joined_wrongly_publish_nothing(clinic: Any, broken: Any, snapshot: Any) -> None:
    run(clinic)
    before = snapshot(clinic)
    broken(*FIRST_JOIN)
    with pytest.raises(AuditError, match="rows of labs belong to nobody"):
        run(clinic, seed=8)
    assert snapshot(clinic) == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("UPDATE published.stays SET value = 'a'", "what was written is not what people were counted in"),
        ("DELETE FROM published.labs WHERE value = 'a'", "rows were written in place of"),
        ("UPDATE published.stays SET who = 1 - who % 2", "what was written is not what people were counted in"),
        ("UPDATE published.labs SET stay = 1", "what was written is not what people were counted in"),
    ],
)
def test_a_table_that_is_not_what_was_planned_publishes_nothing(
    clinic: Any, monkeypatch: Any, snapshot: Any, wrong: str, message: str
) -> None:
    write, before = tables_draft.TablesDraft.write, snapshot(clinic)

    def tampered(self: Any, where: Any) -> None:
        write(self, where)
        self.engine.execute(wrong)

    monkeypatch.setattr(tables_draft.TablesDraft, "write", tampered)
    with pytest.raises(AuditError, match=message):
        run(clinic)
    assert snapshot(clinic) == before


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("UPDATE published.stays SET value = 'a'", "frequency l=2 on stays.value"),
        ("UPDATE published.labs SET value = 'a'", "frequency l=2 on labs.value"),
        ("UPDATE published.patients SET age_min = -who", "k k=2"),
        ("UPDATE published.stays SET age_max = 1000 + stay WHERE position = 1", "k k=2"),
        ("DELETE FROM published.labs WHERE stay % 2 = 1", "k k=2"),
    ],
)
def test_the_tables_are_read_and_not_the_plan(
    clinic: Any, monkeypatch: Any, snapshot: Any, wrong: str, found: str
) -> None:
    """What a table shows is judged even where nobody holds it against the plan."""
    write, before = tables_draft.TablesDraft.write, snapshot(clinic)

    def tampered(self: Any, where: Any) -> None:
        write(self, where)
        self.engine.execute(wrong)

    monkeypatch.setattr(tables_draft.TablesDraft, "write", tampered)
    monkeypatch.setattr(tables_draft.TablesDraft, "_as_written", lambda self, draft, table: table)
    with pytest.raises(AuditError, match=found):
        run(clinic, require=[{"frequency": 2}, {"k": 2}])
    assert snapshot(clinic) == before


def test_readings_that_find_other_rows_publish_nothing(clinic: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(auditing, "_path", lambda tables, table: [table])
    with pytest.raises((AuditError, ldiv_db.DatabaseError)):
        run(clinic)
