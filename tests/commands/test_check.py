"""`ldiv check`: the audit of any table, view or file."""

from __future__ import annotations

from typing import Any

import pytest

from tests.strategies import some


@pytest.fixture
def small(bed: Any) -> Any:
    """Three classes: two values, three values, and one whose quasi-identifiers are NULL and whose values are equal."""
    bed.sql(
        "CREATE TABLE t AS FROM (VALUES (1, 'x', 'Flu'), (1, 'x', 'HIV'), (2, 'y', 'Flu'), (2, 'y', 'HIV'),"
        " (2, 'y', 'Cold')) v(\"a,b\", c, s)"
    )
    bed.sql('CREATE VIEW w AS SELECT "a,b" AS a, c, s FROM t')
    return bed


def check(bed: Any, table: Any, *words: Any) -> Any:
    return bed.call("check", bed.database, table, *words)


def test_a_table_that_holds_or_fails(small: Any) -> None:
    words = ("--qi", "a", "--qi", "c", "--sensitive", "s", "--require", "distinct:2")
    called = check(small, "w", *words, "--require", "k:2")
    assert called.code == 0 and "distinct l=2" in called.out and "yes" in called.out
    called = check(small, "main.w", *words, "--require", "distinct:3")
    assert called.code == 1 and "NO" in called.out


def test_texts_are_one_after_the_steps_that_are_said(small: Any) -> None:
    small.sql("UPDATE t SET s = ' flu' WHERE s = 'HIV'")
    words = ("w", "--qi", "a,c", "--sensitive", "s", "--require", "distinct:2")
    called = check(small, *words)
    assert called.code == 0 and "note: s: 2 of its values, in 4 rows, are 1 if case, blanks" in called.out
    assert "2 rows are in classes of one of these alone" in " ".join(called.out.split())
    called = check(small, *words, "--same", "trim,casefold")
    assert called.code == 1 and "note:" not in called.out


def test_a_policy_that_counts_people_is_not_judged_by_rows(small: Any) -> None:
    small.sql("CREATE TABLE released AS SELECT '*' AS a, 'x' AS c, s, 1 AS class_id, rowid AS who FROM t")
    policy = small.write(
        "policy.yml",
        "source: t\ntarget: released\nquasi_identifiers: [a, c]\nsensitive: [s]\nindividual: person\n"
        "require: [{k: 3}]\nalgorithm: topdown\n",
    )
    called = check(small, "released", "--policy", policy, "--json")
    assert called.code == 1 and called.json["holds"] is None
    assert called.json["audits"][0]["requirements"][0]["holds"] is None
    called = check(small, "released", "--policy", policy, "--individual", "who", "--json")
    assert called.code == 0 and called.json["holds"]
    called = small.call("sql", "check", "released", "--policy", policy)
    assert called.code == 2 and "no column identifies the person" in called.err


def test_null_classes_count(small: Any) -> None:
    small.sql("INSERT INTO t VALUES (NULL, 'x', 'Flu'), (NULL, 'x', 'Flu')")
    called = check(small, "w", "--qi", "a,c", "--sensitive", "s", "--require", "distinct:2", "--json")
    assert called.code == 1
    (audit,) = called.json["audits"]
    assert (audit["classes"], audit["rows"], audit["requirements"][0]["violating_classes"]) == (3, 7, 1)


def test_json_has_the_documented_keys(small: Any) -> None:
    words = ("--sensitive", "s", "--sensitive", "c", "--require", "threshold:0.5,HIV=0.4", "--json")
    found = check(small, "w", "--qi", "a", *words).json
    assert set(found) == {"table", "holds", "audits"}
    assert [audit["sensitive"] for audit in found["audits"]] == ["s", "c"]
    for audit in found["audits"]:
        assert set(audit) == {
            "sensitive", "classes", "rows", "suppressed_rows", "ignored_rows", "unmatched_groups", "holds",
            "of_people", "least_people", "requirements", "warnings",
        }  # fmt: skip
        for requirement in audit["requirements"]:
            assert set(requirement) == {
                "name", "parameters", "holds", "worst", "worst_is", "worst_class", "worst_class_rows", "margin",
                "classes", "violating_classes", "violating_rows", "second_reading", "read_once",
            }  # fmt: skip
    assert found["holds"] is False


def test_a_column_whose_name_has_a_comma(small: Any) -> None:
    called = check(small, "t", "--qi", "a,b", "--qi", "c", "--sensitive", "s", "--require", "frequency:2")
    assert called.code == 0, called.err


def test_a_class_column_tells_classes_apart(small: Any) -> None:
    words = ("--qi", "c", "--sensitive", "s", "--require", "unique_distinct:1")
    small.sql("CREATE TABLE u AS SELECT row_number() OVER () AS id, 'x' AS c, s FROM t")
    assert check(small, "u", *words).code == 1
    assert check(small, "u", *words, "--class", "id").code == 0


@pytest.mark.parametrize("name", some(["we\"ird 'na;me.parquet", "r.parquet", "r.csv"]))
def test_a_file(small: Any, name: str) -> None:
    path = small.folder / name
    quoted = str(path).replace("'", "''")
    small.sql(f"COPY w TO '{quoted}'")
    words = ("--qi", "a,c", "--sensitive", "s", "--require", "distinct:2")
    assert small.call("check", ":memory:", path, *words).code == 0


@pytest.mark.parametrize("name", some(["theirs.csv.gz", "theirs.parquet", "theirs.csv"]))
def test_a_data_file_is_a_database_that_has_it_under_its_name(small: Any, name: str) -> None:
    path = small.folder / name
    small.sql(f"COPY w TO '{path}'")
    words = ("--qi", "a,c", "--sensitive", "s", "--require", "distinct:2", "--json")
    found, there = small.call("check", path, "theirs", *words), check(small, "w", *words)
    assert (found.code, found.json["holds"]) == (0, True) and found.json["audits"] == there.json["audits"]
    assert small.call("check", path, *words).json == found.json, "it is the one table"
    assert "no table or view w" in small.fails(2, "check", path, "w", *words[:-1])
    assert "no database file" in small.fails(3, "check", small.folder / "none.csv", "none", *words[:-1])


def test_an_empty_table_violates_nothing(small: Any) -> None:
    called = check(small, "empty", "--qi", "age", "--sensitive", "disease", "--require", "k:2", "--json")
    assert called.code == 0 and called.json["audits"][0]["rows"] == 0
