"""Templates take from a flow what their headers list."""

import pytest

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import TemplateError
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation


@pytest.fixture
def flow(con):
    con.execute("CREATE TABLE t AS SELECT range AS a, range % 2 AS b FROM range(6)")
    return EngineFlow(Engine(con), "database", rows=Relation(("t",)), columns=["a"], unread=1)


def test_a_step_is_known_to_later_ones_by_its_name(flow):
    flow.step("rows", "list_rows")
    assert flow.rows("count_rows") == [(6,)]
    numbered = flow.step("numbered", "database/number_groups", by=["a"], number="class_id")
    assert flow.engine.count(numbered) == 6 and flow["columns"] == ["a"]


def test_what_replaces_a_relation_is_made_of_it(flow):
    before = flow.step("rows", "list_rows")
    flow.replace("rows", "list_rows")
    assert flow.rows("count_rows") == [(6,)] and flow["rows"] != before


def test_what_a_call_says_is_for_that_call(flow):
    assert flow.engine.connection.sql(f"FROM {flow.step('some', 'list_rows', columns=['b']).sql()}").columns == ["b"]
    assert flow["columns"] == ["a"]


def test_what_is_unknown_or_undeclared_is_named(flow):
    with pytest.raises(TemplateError, match="missing parameters \\['by', 'number'\\]"):
        flow.step("numbered", "number_groups")
    with pytest.raises(TemplateError, match="undeclared parameters \\['unread'\\]"):
        flow.rows("count_rows", unread=2)
    with pytest.raises(KeyError):
        flow["nothing"]


def test_a_scope_forgets_what_was_made_within(flow):
    outer = flow["rows"]
    with flow.scope("kept"):
        flow.step("rows", "list_rows")
        flow.step("kept", "list_rows")
    assert flow["rows"] == outer and flow.engine.count(flow["kept"]) == 6
    flow.drop("kept")
    with pytest.raises(KeyError):
        flow["kept"]
