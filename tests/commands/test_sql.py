"""`ldiv sql check`: the audit printed as one SELECT, by its options or a policy, and what it refuses."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from refusals import codes_told

import ldiv_db

ASKED = ("--qi", "age", "--sensitive", "disease")


@pytest.fixture
def patients(bed: Any) -> Any:
    bed.sql(
        "CREATE TABLE released AS FROM (VALUES ('20', 'HIV', 1), ('20', 'flu', 2), ('30', 'flu', 3), ('30', 'flu', 30))"
        " v(age, disease, salary)"
    )
    return bed


def found(bed: Any, *words: Any) -> list[tuple[Any, ...]]:
    """What the printed statement returns of the table."""
    called = bed.call("sql", "check", "released", *words)
    assert called.code == 0, called.err
    with duckdb.connect(str(bed.database), read_only=True) as con:
        return list(con.execute(called.out).fetchall())


def test_no_row_comes_back_if_all_is_well(patients: Any) -> None:
    assert found(patients, *ASKED, "--require", "k:2") == []
    ((requirement, sensitive, rows, reached, margin),) = found(patients, *ASKED, "--require", "distinct:2")
    assert (requirement, sensitive, rows, reached, margin) == ("distinct l=2", "disease", 2, 1, -1)
    assert found(patients, *ASKED, "--require", "distinct:2", "--labels")[0][5:] == ("30",)


def test_numbers_are_numbers_if_their_type_is_said(patients: Any) -> None:
    asked = ("--qi", "age", "--sensitive", "salary", "--require", "range:k=2,e=20")
    assert patients.call("sql", "check", "released", *asked).code == 2
    assert [row[2:] for row in found(patients, *asked, "--type", "salary=int")] == [(2, 1, -19)]


def test_a_policy_says_what_is_asked(patients: Any) -> None:
    policy = patients.write(
        "policy.yml",
        "source: people\ntarget: released\nquasi_identifiers: [age]\nsensitive: {disease: {harmless: [flu]}}\n"
        "require: [{distinct: 2}]\n",
    )
    (row,) = found(patients, "--policy", policy)
    assert row[:4] == ("distinct l=2, harmless=1", "disease", 2, 1)
    assert found(patients, "--policy", policy, "--require", "k:2") == []


def test_a_policy_that_leaves_rows_out_can_be_overruled(patients: Any) -> None:
    policy = patients.write(
        "policy.yml",
        "source: people\ntarget: released\nquasi_identifiers: [age]\nsensitive: disease\nrequire: [{k: 2}]\n"
        "suppressed: ignore\n",
    )
    patients.sql("INSERT INTO released VALUES (NULL, 'HIV', 4)")
    assert found(patients, "--policy", policy) == []
    assert [row[2] for row in found(patients, "--policy", policy, "--suppressed", "judge")] == [1]


def test_a_name_in_the_quotes_of_another_database_is_refused() -> None:
    with pytest.raises(ldiv_db.PolicyError, match="quote names with double quotes"):
        ldiv_db.check_sql("`p.d.t`", "age", "disease", "k:2", dialect="bigquery")
    assert "`my-p`.`d`.`t`" in ldiv_db.check_sql('"my-p".d.t', "age", "disease", "k:2", dialect="bigquery")


def test_a_policy_of_bounds_and_of_pairs_is_refused(patients: Any) -> None:
    policy = (
        "source: p\ntarget: released\nquasi_identifiers: {age: {}}\nsensitive: [disease]\nrequire: [{distinct: 2}]\n"
    )
    open_bounds = patients.write("bounds.yml", policy + "output: {bounds: true}\n")
    called = patients.call("sql", "check", "released", "--policy", open_bounds)
    assert (called.code, "only its release shows whether age has them" in called.err) == (2, True)
    pair = patients.write(
        "pair.yml",
        "source: p\ntarget: {prefix: p}\nkey: id\nquasi_identifiers: [age]\nsensitive: {disease: {l: 2}}\n"
        "require: []\nalgorithm: anatomy\n",
    )
    called = patients.call("sql", "check", "released", "--policy", pair)
    assert called.code == 2 and "pair of tables" in called.err


K2 = (*ASKED, "--require", "k:2")
REFUSED = [
    ("require", ASKED),
    ("require", (*ASKED, "--require", "nothing:2")),
    ("require", (*ASKED, "--require", "threshold:base=0.5")),
    ("sensitive", ("--qi", "age", "--require", "distinct:2")),
    ("qi", ("--sensitive", "disease", "--require", "distinct:2")),
    ("type", (*K2, "--type", "disease=NOTHING")),
    ("type", (*K2, "--type", "salary=INTEGER")),
    ("type", (*K2, "--type", "salary")),
    ("sensitive-table", (*K2, "--group", "g")),
    ("sensitive.same", (*K2, "--same", "trim", "--dialect", "trino")),
    ("sensitive", (*ASKED, "--require", "threshold:0.5,1.0=0.1", "--type", "disease=DOUBLE", "--dialect", "spark")),
    ("require.range", (*ASKED, "--require", "range:k=2,e=0.5", "--type", "disease=DECIMAL(9,2)",
                       "--dialect", "sqlite")),
    ("require.proximity", (*ASKED, "--require", "proximity:epsilon=2,m=2", "--type", "disease=INTEGER",
                           "--dialect", "clickhouse")),
    ("sensitive", (*K2, "--type", "disease=DOUBLE", "--dialect", "clickhouse")),
    ("", (*K2, "--dialect", "oracle")),
]  # fmt: skip


def test_what_cannot_be_asked_is_refused_by_its_code(patients: Any) -> None:
    told = []
    for _, words in REFUSED:
        called = patients.call("sql", "check", "released", *words)
        assert (called.code, called.out) == (2, "")
        told.append((" ".join(codes_told(called.err)), words))
    assert told == REFUSED


def test_a_file_is_read_by_duckdb_alone(patients: Any, tmp_path: Any) -> None:
    path = tmp_path / "released.parquet"
    duckdb.sql("SELECT '1' AS age, 'x' AS disease").write_parquet(str(path))
    called = patients.call("sql", "check", path, *ASKED, "--require", "k:2")
    assert [row[2] for row in duckdb.sql(called.out.rstrip(";\n")).fetchall()] == [1]
    called = patients.call("sql", "check", path, *ASKED, "--require", "k:2", "--dialect", "postgres")
    assert called.code == 2 and "is a file" in called.err


def test_json_and_python_say_the_same(patients: Any) -> None:
    called = patients.call(
        "sql", "check", "released", *ASKED, "--require", "entropy:2", "--dialect", "bigquery", "--json"
    )
    text = ldiv_db.check_sql("released", "age", "disease", "entropy:2", dialect="bigquery")
    assert called.json == {"table": "released", "dialect": "bigquery", "sql": text}
    assert "(Machanavajjhala et al. 2006)" in text


def test_no_sensitive_value_is_in_a_statement_but_those_that_are_named() -> None:
    text = ldiv_db.check_sql(
        "patients", "age", "disease", {"threshold": {"default": 0.5, "absent": "allow", "HIV": 0.1}}
    )
    assert text.count("'HIV'") == 1 and "own_thresholds=1" in text
