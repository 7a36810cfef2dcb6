"""The engine: errors that say no data, transactions, scratch that goes."""

import traceback
from contextlib import nullcontext

import pytest

from ldiv_db.database.catalog import looked_up
from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.engine import SMALL, Engine
from ldiv_db.database.equality import text_with_collation
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.queries import Where
from ldiv_db.database.steps import OneStatement

SECRET = "HIV-of-Alice"


@pytest.fixture
def secrets(con):
    con.execute("CREATE TABLE t AS SELECT $1 AS disease", [SECRET])
    con.execute("CREATE VIEW broken AS SELECT CAST(disease AS INTEGER) AS disease FROM t")


def test_an_error_and_its_traceback_hide_the_values_of_the_data(engine, secrets):
    """What a scheduler logs is the whole traceback, causes and all."""
    asked = {"column": Identifier("disease"), "kind": "real"}
    with pytest.raises(DatabaseError) as caught:
        engine.rows("recoding/input/bound_numbers", rows=Relation(("t",)), **asked)
    text = str(caught.value)
    assert SECRET not in text
    assert "withheld" in text and "recoding/input/bound_numbers" in text
    with pytest.raises(DatabaseError) as caught:
        engine.materialise("x", "recoding/input/bound_numbers", rows=Relation(("broken",)), **asked)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_defect_of_ours_is_reported_with_its_sql_and_a_bad_source_in_one_sentence(engine, secrets):
    params = {"column": Identifier("disease"), "kind": "real"}
    with pytest.raises(DatabaseError) as ours:
        engine.rows(
            "recoding/input/bound_numbers", rows=engine.load("x", {"disease": "VARCHAR"}, [(SECRET,)]), **params
        )
    assert "   1  SELECT" in str(ours.value) and SECRET not in str(ours.value)
    with pytest.raises(DatabaseError) as theirs:
        engine.rows("recoding/input/bound_numbers", rows=Relation(("broken",)), **params)
    assert str(theirs.value).startswith("broken cannot be read: ") and "\n" not in str(theirs.value)


def test_half_a_character_is_refused_wherever_it_comes_from(engine, con):
    con.execute("CREATE TABLE t (x VARCHAR)")
    for params in ({"rows": Relation(("\ud800",))}, {"rows": Relation(("t", "\udfff"))}):
        with pytest.raises(PolicyError, match="half a character"):
            engine.rows("database/count_rows", **params)
    with pytest.raises(PolicyError, match="half a character"):
        engine.load("x", {"label": "VARCHAR"}, [("\ud83d",)])


def test_an_error_hides_bound_values(engine, con):
    con.execute("CREATE TABLE n (taxonomy INTEGER)")
    with pytest.raises(DatabaseError) as caught:
        engine.rows("taxonomies/list_taxonomy_nodes", nodes=Relation(("n",)), taxonomy=Value(SECRET))
    assert SECRET not in str(caught.value)


def test_an_error_about_names_gives_the_databases_hint(engine, con):
    con.execute("CREATE TABLE patients (age INTEGER)")
    with pytest.raises(DatabaseError, match='"age"'):
        engine.rows(
            "recoding/input/bound_numbers", rows=Relation(("patients",)), column=Identifier("agee"), kind="real"
        )


def test_a_failed_transaction_is_undone_also_where_it_is_nested(engine, con):
    counted = "SELECT count(*) FROM duckdb_tables()"
    for nested in (False, True):
        with pytest.raises(ValueError, match="stop"), engine.transaction():
            with engine.transaction() if nested else nullcontext():
                engine.execute("CREATE TABLE t (x INTEGER)")
            raise ValueError("stop")
        assert con.execute(counted).fetchone() == (0,)
    with engine.transaction():
        engine.execute("CREATE TABLE t (x INTEGER)")
    assert con.execute(counted).fetchone() == (1,)


@pytest.mark.parametrize("is_committed", [False, True])
def test_an_interrupt_at_the_commit_leaves_no_transaction_open_and_no_scratch(engine, con, monkeypatch, is_committed):
    execute = engine.execute

    def interrupted(sql, *rest):
        if sql == "COMMIT":
            if is_committed:
                execute(sql)
            raise KeyboardInterrupt
        return execute(sql, *rest)

    monkeypatch.setattr(engine, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt), engine.transaction():
        engine.load("y", {"a": "INTEGER"}, [(1,)])
        engine.execute("CREATE TABLE t (x INTEGER)")
    assert not engine.in_transaction()
    engine.close_scratch()
    assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)] * is_committed


def test_a_transaction_joins_the_callers(engine, con):
    con.execute("BEGIN")
    with engine.transaction():
        engine.execute("CREATE TABLE t (x INTEGER)")
    con.execute("ROLLBACK")  # would fail had the engine committed
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,)


def test_scratch_is_temporary_and_dropped(con):
    engine = Engine(con)
    con.execute("CREATE TABLE t (x INTEGER)")
    made = engine.materialise("x", "database/count_rows", rows=Relation(("t",)))
    loaded = engine.load("y", {"a": "INTEGER"}, [(1,), (2,)])
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (2,)
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE NOT temporary").fetchone() == (1,)
    assert made.parts[0] == loaded.parts[0] == "temp"
    engine.drop(made)
    engine.close_scratch()
    assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)]


def scratch_of(con):
    return {name for (name,) in con.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()}


def test_a_view_is_read_anew_and_dropped_as_tables_are(engine, con):
    cells = engine.load("cells", {"row_id": "BIGINT", "code": "INTEGER", "n": "BIGINT"}, [(1, 7, 2), (3, 9, 1)])
    params = {"cells": cells, "columns": [Identifier("code")], "weight": Identifier("n")}
    with engine.scope() as scope:
        engine.view("gone", "recoding/input/repeat_rows", **params)
        kept = scope.keep(engine.view("kept", "recoding/input/repeat_rows", **params))
    assert sorted(engine.columns(kept, "row_id", "code")) == [(1, 7), (2, 7), (3, 9)]
    engine.append(cells, {"row_id": "BIGINT", "code": "INTEGER", "n": "BIGINT"}, [(4, 5, 3)])
    assert engine.count(kept) == 6
    views = "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
    assert con.execute(views).fetchall() == [(1,)]
    engine.close_scratch()
    assert con.execute(views).fetchall() == [(0,)] == con.execute("SELECT count(*) FROM duckdb_tables()").fetchall()


def test_a_scope_drops_what_it_is_not_told_to_keep(engine, con):
    def load(name):
        return engine.load(name, {"a": "INTEGER"}, [(1,)] * SMALL)

    before, gone = load("x"), load("x")
    with engine.scope() as outer:
        engine.drop(gone)
        with engine.scope() as inner:
            load("y")
            kept, handed = inner.keep(load("y")), inner.keep(load("y"))
        assert scratch_of(con) == {before.name, kept.name, handed.name}
        outer.keep(kept)
    assert scratch_of(con) == {before.name, kept.name}


def test_the_next_step_takes_the_place_of_a_small_table(engine, con):
    small, other = (engine.load("x", {"a": "INTEGER"}, [(1,)]) for _ in range(2))
    engine.drop(small)
    later = engine.load("y", {"b": "VARCHAR"}, [("c",), ("d",)])
    assert engine.load("x", {"a": "INTEGER"}, []) not in (small, other)
    assert later == small and engine.count(later) == 2
    assert con.execute(f"SELECT b FROM {later.sql()} ORDER BY b").fetchall() == [("c",), ("d",)]
    assert con.execute(f"SELECT a FROM {other.sql()}").fetchall() == [(1,)]
    engine.close_scratch()
    assert not scratch_of(con)


def test_an_error_leaves_a_scope_to_the_end_of_the_run(engine, con):
    with pytest.raises(ValueError, match="stop"), engine.scope():
        engine.load("x", {"a": "INTEGER"}, [])
        raise ValueError("stop")
    assert len(scratch_of(con)) == 1
    engine.close_scratch()
    assert not scratch_of(con)


def test_plain_queries_need_no_template(engine):
    made = engine.load("x", {"a": "INTEGER", "b c": "VARCHAR"}, [(3, "x"), (1, "y")])
    copied = engine.copy("copied", made, "a")
    engine.extend(copied, made, "a")
    assert (engine.count(copied), engine.least(copied, "a"), engine.most(copied, "a")) == (4, 1, 3)
    assert engine.total(copied, "a") == 8 and sorted(engine.column(copied, "a")) == [1, 1, 3, 3]
    assert sorted(engine.columns(engine.copy("all", made), "b c", "a")) == [("x", 3), ("y", 1)]
    empty = engine.load("x", {"a": "INTEGER"}, [])
    assert (engine.least(empty, "a"), engine.most(empty, "a"), engine.total(empty, "a")) == (None, None, 0)


def test_rows_are_selected_by_conditions_and_by_other_tables(engine):
    rows = engine.load("x", {"a": "INTEGER", "b c": "VARCHAR"}, [(1, "x"), (2, "y"), (2, "y"), (3, None)])
    found = engine.select("found", rows, ("a", "number"), "b c", where=[Where("a", 2, ">="), Where("b c", None, "<>")])
    assert sorted(engine.columns(found, "number", "b c")) == [(2, "y"), (2, "y")]
    assert engine.columns(engine.select("one", rows, "a", where=[Where("b c", None)]), "a") == [(3,)]
    assert sorted(engine.column(engine.select("each", rows, "a", distinct=True), "a")) == [1, 2, 3]
    assert sorted(engine.find(rows, "b c", "a", where=[Where("a", 2, "<>")]), key=repr) == [("x", 1), (None, 3)]
    listed = engine.load("y", {"n": "INTEGER"}, [(2,), (2,), (7,)])
    assert engine.column(engine.select_among("in", rows, listed, ("a", "n")), "b c") == ["y", "y"]
    others = engine.select_others("out", rows, listed, ("a", "n"), columns=[("b c", "text")])
    assert set(engine.column(others, "text")) == {"x", None}
    assert (engine.count(rows, Where("a", 1, ">")), engine.count(rows, Where("a", 0, "<"))) == (3, 0)
    few = Where("a", 3, "<")
    assert (engine.least(rows, "a", few), engine.most(rows, "a", few), engine.total(rows, "a", few)) == (1, 2, 5)


def test_groups_are_counted_and_numbered(engine):
    rows = engine.load("x", {"row_id": "INTEGER", "node": "INTEGER"}, [(1, 30), (2, 10), (3, 30)])
    counted = engine.count_groups("counted", rows, ("node", "n"))
    assert sorted(engine.columns(counted, "n", "rows")) == [(10, 1), (30, 2)]
    assert engine.tally(rows, "node", where=[Where("row_id", 2, "<=")]) in ([(30, 1), (10, 1)], [(10, 1), (30, 1)])
    numbered = engine.number_groups("numbered", rows, "node")
    assert sorted(engine.columns(numbered, "row_id", "class_id")) == [(1, 2), (2, 1), (3, 2)]


def test_two_engines_do_not_meet(con):
    con.execute("CREATE TABLE t (x INTEGER)")
    first, second = Engine(con), Engine(con)
    assert first.load("x", {"a": "INTEGER"}, []) != second.load("x", {"a": "INTEGER"}, [])


def test_steps_are_named_and_counted(con):
    steps, statements = [], []
    engine = Engine(con, steps.append, statements.append)
    con.execute("CREATE TABLE t AS SELECT range AS x FROM range(3)")
    engine.materialise("counted", "database/count_rows", rows=Relation(("t",)))
    assert [(step.name, step.rows) for step in steps] == [("counted", 1)] and steps == engine.steps
    assert steps[0].milliseconds >= 0
    assert [statement.template for statement in statements] == ["database/count_rows"]


def test_metadata_loads_with_nulls_and_quotes(engine, con):
    rows = [(1, "it's"), (2, None), (None, 'a"b')]
    made = engine.load("x", {"number": "INTEGER", "te xt": "VARCHAR"}, rows)
    assert con.execute(f"SELECT * FROM {made.sql()}").fetchall() == rows


def test_a_missing_file_is_no_database(tmp_path):
    with pytest.raises(DatabaseError, match="no database file"), open_database(tmp_path / "x.duckdb"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "x.duckdb"
    path.write_text("no database, this" * 1000)
    with pytest.raises(DatabaseError, match="cannot open"), open_database(path):
        pass


def test_read_only_refuses_to_write(tmp_path):
    path = tmp_path / "x.duckdb"
    with open_database(path, create=True, settings=Settings(threads=1)) as con:
        assert con.execute("SELECT current_setting('threads')").fetchone() == (1,)
    with open_database(path, read_only=True) as con, pytest.raises(DatabaseError, match="read-only"):
        Engine(con).execute("CREATE TABLE t (x INTEGER)")


def test_a_count_is_of_the_rows_as_they_are_now(engine):
    made = engine.load("x", {"a": "INTEGER"}, [(1,), (2,), (2,)])
    copied = engine.copy("copied", made)
    assert engine.count(copied) == 3
    changes = [
        (lambda: engine.delete(copied, {"a": 1}), 2),
        (lambda: engine.extend(copied, made, "a"), 5),
        (lambda: engine.append(copied, {"a": "INTEGER"}, [(7,)]), 6),
        (lambda: engine.delete_listed(copied, Identifier("a"), engine.load("y", {"a": "INTEGER"}, [(2,)])), 2),
        (lambda: engine.update(copied, {"a": 5}, {"a": 7}), 2),
    ]
    for change, rows in changes:
        change()
        assert engine.count(copied) == rows == len(engine.column(copied, "a"))


def listed(steps, rows, way):
    """What lists the column a of the rows."""
    return way(steps, "listed", "database/list_rows", rows=rows, columns=[Identifier("a")])


def test_steps_run_as_one_statement_that_leaves_the_last_alone(con):
    sent = []
    engine = Engine(con, on_statement=sent.append)
    rows = engine.load("x", {"a": "BIGINT"}, [(3,), (4,)])
    steps = OneStatement(engine)
    first = listed(steps, rows, OneStatement.materialise)
    total = steps.sum_of(first, "a")
    assert steps.sum_of(rows, "a") == Value(7)
    del sent[:]
    made = steps.keep("doubled", "database/list_rows", rows=first, columns=[])
    assert [statement.template for statement in sent] == ["database/list_rows"]
    assert [step.template for step in sent[0].parts] == [
        "database/list_rows",
        "database/sum_column",
        "database/list_rows",
    ]
    assert list(sent[0].reads) == [] and engine.count(made) == 2
    assert sorted(engine.column(made, "a")) == [3, 4]
    assert con.execute(
        f"{sent[0].sql.split('AS', 1)[1].split('SELECT * FROM')[0]} SELECT {total.sql()}"
    ).fetchall() == [(7,)]
    assert scratch_of(con) == {rows.name, made.name}


def test_values_of_all_steps_are_bound(con):
    sent = []
    engine = Engine(con, on_statement=sent.append)
    columns = {"class_no": "BIGINT", "rows": "BIGINT", "values": "BIGINT", "largest": "BIGINT"}
    summary = engine.load("summary", columns, [(1, 9, 3, 4), (2, 2, 2, 1), (3, 8, 7, 2)])
    steps = OneStatement(engine)
    judged = [
        steps.materialise("k", "requirements/k", tallies=summary, k=4, as_risk=False),
        steps.materialise("distinct", "requirements/distinct", tallies=summary, l=3),
    ]
    worst = steps.keep("worst", "local/take_worst", margins=judged, counts=None)
    assert sorted(sent[-1].values.values()) == [3, 3, 4]
    assert sorted(engine.columns(worst, "class_no", "margin")) == [(1, 0), (2, -2), (3, 4)]


def test_a_doubt_is_asked_of_the_steps_so_far(engine):
    rows = engine.load("x", {"a": "INTEGER"}, [(3,), (4,)])
    steps = OneStatement(engine)
    first = listed(steps, rows, OneStatement.materialise)
    with pytest.raises(PolicyError, match="2 rows"):
        steps.refuse_any(lambda found: Problem("x", f"{found} rows"), "database/count_rows", rows=first)
    assert engine.count(listed(steps, first, OneStatement.keep)) == 2


def test_columns_are_described_once_in_a_transaction_until_something_changes(con):
    con.execute("CREATE TABLE t (a INT)")
    asked = []
    engine = Engine(con, on_statement=lambda statement: asked.append(statement.sql))
    table = Relation(("t",))
    with engine.transaction():
        assert engine.describe(table) == engine.describe(table) == [("a", "INTEGER")]
        engine.execute("ALTER TABLE t ADD COLUMN b VARCHAR", writes=table)
        assert engine.describe(table) == [("a", "INTEGER"), ("b", "VARCHAR")]
    assert sum("DESCRIBE" in sql for sql in asked) == 2
    con.execute("ALTER TABLE t DROP COLUMN a")  # somebody else
    assert engine.describe(table) == [("b", "VARCHAR")]
    with pytest.raises(ValueError, match="stop"), engine.transaction():
        engine.execute("ALTER TABLE t ADD COLUMN c VARCHAR", writes=table)
        assert engine.describe(table) == [("b", "VARCHAR"), ("c", "VARCHAR")]
        raise ValueError("stop")
    with engine.transaction():
        assert engine.describe(table) == [("b", "VARCHAR")]


def test_a_temporary_table_is_looked_up_first(con):
    engine, named = Engine(con), Relation(("T",))
    assert looked_up(engine, named) is None
    con.execute("CREATE TABLE t (a INT)")
    assert looked_up(engine, named) == named
    con.execute("CREATE TEMP VIEW t AS SELECT 1 AS b")
    assert looked_up(engine, named) == Relation(("temp", "main", "T"))
    assert looked_up(engine, Relation(("main", "t"))) == Relation(("main", "t"))


@pytest.mark.parametrize("made", ["TABLE t (a VARCHAR COLLATE nocase, b INT)", "VIEW t AS SELECT a, b FROM base"])
def test_a_collation_is_seen_of_tables_and_views(con, made):
    con.execute("CREATE TABLE base (a VARCHAR COLLATE nocase, b INT)")
    con.execute(f"CREATE {made}")
    engine = Engine(con)
    assert [column.name for column in text_with_collation(engine, Relation(("t",)))] == ["a"]
    con.execute("CREATE TEMP TABLE t (a VARCHAR, b INT)")  # takes the name
    assert text_with_collation(engine, Relation(("t",))) == []
    engine.close_scratch()
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (1,)


def test_a_setting_is_of_this_connection_alone_and_put_back(con):
    asked = "SELECT current_setting('default_collation')"
    with Engine(con).setting("default_collation", "nocase"):
        assert con.execute(asked).fetchone() == ("nocase",)
        assert con.cursor().execute(asked).fetchone() == ("",)
    assert con.execute(asked).fetchone() == ("",)
