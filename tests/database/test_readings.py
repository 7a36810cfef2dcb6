"""Quasi-identifiers whose columns are read as the policy has it: texts that stand for no value, and decimal commas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.readings import NUMBERS, TIMES, Reading, read_by
from tests.strategies import some

POLICY: dict[str, Any] = {
    "source": "people.csv", "target": {"table": "released", "if_exists": "replace"}, "sensitive": ["dx"],
    "require": [{"frequency": 2}], "algorithm": {"name": "bsgi", "select": "bisect"}, "seed": 1,
    "over_time": "independent",
}  # fmt: skip


def write(folder: Path, marker: str) -> list[int | None]:
    """A file of ages of which each seventh is missing, and of scores with decimal commas; the ages."""
    ages = [None if i % 7 == 3 else 20 + i * 13 % 30 for i in range(35)]
    lines = ["age,score,zip,dx"]
    lines += [
        f'{marker if age is None else age},"{i % 40},5",0{1000 + i % 9},{["NA", "flu", "hiv"][i % 3]}'
        for i, age in enumerate(ages)
    ]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ages


@pytest.mark.parametrize("marker", some(["NA", "-99", "nan", "?", ".", "-", "N/A", "k.A."]))
def test_a_release_is_that_of_numbers_with_nulls_and_every_call_reads_them_so(
    con: Any, tmp_path: Path, marker: str
) -> None:
    """Row for row what the same table with NULLs gives; the sensitive column keeps its `NA`."""
    ages = write(tmp_path, marker)
    qi = {
        "age": {"numeric": True, "null_values": [marker]}, "score": {"numeric": True, "decimal": ","},
        "zip": {"taxonomy": {"flat": True}},
    }  # fmt: skip
    policy = ldiv_db.parse_policy({**POLICY, "quasi_identifiers": qi})
    ldiv_db.run(con, policy, folder=tmp_path)
    found = con.execute("FROM released ORDER BY ALL").fetchall()
    assert ldiv_db.check(con, "released", policy=policy, folder=tmp_path).holds
    assert ldiv_db.measure(con, "released", policy=policy, folder=tmp_path).loss.rows_published == 35
    people = str(tmp_path / "people.csv")
    attacked = ldiv_db.attack(con, "released", policy=policy, known=people, folder=tmp_path)
    (linking,) = [attack for attack in attacked.attacks if attack.name == "linking"]
    assert linking.figures["people"] == 35 and linking.figures["no_class"] == 0
    con.execute("CREATE TABLE clean (row_no INTEGER, age BIGINT)")
    con.executemany("INSERT INTO clean VALUES (?, ?)", list(enumerate(ages)))
    con.execute(
        f"CREATE TABLE people AS SELECT c.age, c.row_no % 40 + 0.5::DOUBLE AS score, p.zip, p.dx FROM clean AS c JOIN"
        f" (SELECT *, row_number() OVER () - 1 AS row_no FROM '{tmp_path / 'people.csv'}') AS p USING (row_no)"
        " ORDER BY row_no"
    )
    plain = {name: {"numeric": True} for name in ("age", "score")} | {"zip": {"taxonomy": {"flat": True}}}
    ldiv_db.run(con, {**POLICY, "source": "people", "quasi_identifiers": plain})
    assert found == con.execute("FROM released ORDER BY ALL").fetchall()
    assert {row[-1] for row in found} == {"NA", "flu", "hiv"}


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"numeric": True, "null_values": ["?"]}, "null_values: leaves 5 rows whose values are no numbers or times"),
        ({"numeric": True, "null_values": [True]}, "age.null_values"),
        ({"taxonomy": {"flat": True}, "decimal": ","}, "decimal: is of numbers"),
        ({"numeric": True, "decimal": ";"}, "age.decimal"),
    ],
)
def test_what_cannot_be_read_is_refused_without_its_values(
    con: Any, tmp_path: Path, setting: dict[str, Any], says: str
) -> None:
    write(tmp_path, "secret")
    policy = {**POLICY, "quasi_identifiers": {"age": setting, "score": {}}, "identifiers": ["zip"]}
    with pytest.raises(ldiv_db.PolicyError) as error:
        ldiv_db.plan(con, policy, folder=tmp_path)
    assert says in str(error.value) and "secret" not in str(error.value)


def test_dates_in_another_form_are_told_how_to_be_read(con: Any) -> None:
    born = "CASE WHEN i % 50 = 0 THEN 'unknown' ELSE strftime(DATE '1950-01-01' + CAST(i * 37 AS INT), '%d.%m.%Y') END"
    con.execute(f"CREATE TABLE t AS SELECT {born} AS born, 'd' || i % 5 AS s FROM range(100) AS r(i)")
    qi = {"born": {"numeric": True, "null_values": ["unknown"]}}
    policy = {"source": "t", "target": "o", "quasi_identifiers": qi, "sensitive": "s", "require": [{"k": 2}]}
    with pytest.raises(ldiv_db.PolicyError) as error:
        ldiv_db.plan(con, policy)
    (problem,) = error.value.problems
    assert problem.what == "leaves 98 rows whose values are no numbers or times such as 2024-05-31"
    assert "strptime" in problem.hint and "'%d.%m.%Y'" in problem.hint
    con.execute("UPDATE t SET born = CAST(strptime(born, '%d.%m.%Y') AS DATE) WHERE born <> 'unknown'")
    assert ldiv_db.plan(con, policy)


@pytest.mark.parametrize(
    ("values", "nulls", "decimal", "types", "kind", "read"),
    [
        (["1", " 2 ", "NA"], ["NA"], None, NUMBERS, "BIGINT", [1, 2, None]),
        (["1.5", "-2", ""], [""], None, NUMBERS, "DOUBLE", [1.5, -2.0, None]),
        (["1.234,5", "7"], [], ",", NUMBERS, "DOUBLE", [1234.5, 7.0]),
        (["1,234", "12 %"], [], ".", NUMBERS, "BIGINT", [1234, 12]),
        (["12,34,567.5", "+1e3", ".5"], [], ".", NUMBERS, "DOUBLE", [1234567.5, 1000.0, 0.5]),
        (["1 234,50", "1'000", ",5"], [], ",", NUMBERS, "DOUBLE", [1234.5, 1000.0, 0.5]),
        (["2020-01-31", "?"], ["?"], None, (*NUMBERS, *TIMES), "DATE", ["2020-01-31", None]),
        (["99999999999999999999", "NA"], ["NA"], None, NUMBERS, "DOUBLE", [1e20, None]),
        (["x", "NA"], ["NA"], None, (), "VARCHAR", ["x", None]),
    ],
)
def test_a_text_is_what_it_stands_for(
    con: Any, values: list[str], nulls: list[str], decimal: str | None, types: tuple[str, ...], kind: str, read: Any
) -> None:  # fmt: skip
    con.execute("CREATE TABLE t (place INTEGER, x VARCHAR)")
    con.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(values)))
    with Engine(con).scope():
        view = read_by(Engine(con), Relation(("t",)), [Reading("x", nulls, decimal, types)])
        found = con.execute(f"SELECT x, typeof(x) FROM {view.sql()} ORDER BY place").fetchall()
    assert {one for _, one in found} == {kind}
    assert [str(value) if kind == "DATE" and value else value for value, _ in found] == read


@pytest.mark.parametrize(
    ("value", "decimal"), [("2.5", ","), ("1,234.50", ","), ("2,5", "."), ("1.234,50", "."), ("1.2.3", ",")]
)
def test_a_sign_that_parts_no_thousands_is_refused(con: Any, value: str, decimal: str) -> None:
    """Taken out wherever it stands, it would make 25 of 2.5, and 1.23450 of 1,234.50."""
    con.execute("CREATE TABLE t AS SELECT unnest(['7', $1]) AS x", [value])
    with pytest.raises(ldiv_db.PolicyError, match="leaves 1 row whose values are no numbers"):
        read_by(Engine(con), Relation(("t",)), [Reading("x", [], decimal, NUMBERS)])


def test_numbers_that_stand_for_no_value_are_null(con: Any) -> None:
    con.execute("CREATE TABLE t AS SELECT unnest([1.0, 2.0, -99.0, 'nan'::DOUBLE]) AS x")
    view = read_by(Engine(con), Relation(("t",)), [Reading("x", ["-99", "nan", "NA"], None, NUMBERS)])
    assert con.execute(f"SELECT x, typeof(x) FROM {view.sql()}").fetchall() == [
        (1, "BIGINT"), (2, "BIGINT"), (None, "BIGINT"), (None, "BIGINT"),
    ]  # fmt: skip
