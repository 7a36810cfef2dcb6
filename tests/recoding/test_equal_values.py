"""Values that the database holds equal and writes differently: none is published as another, whatever rows' order."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest
import yaml
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.publishing.earlier_releases import SequenceRequest, check_sequence

pytestmark = pytest.mark.usefixtures("no_remedies")

#: Collations under which some of the texts are equal; those of a column, and of the connection.
COLLATIONS = ("NOCASE", "NOACCENT", "NOCASE.NOACCENT")
TEXTS = ("Ab", "aB", "ab", "é", "e", "É", "flu", "FLU")
TOWNS = ("Rom", "ROM", "rom", "Rôm", "Oslo", "oslo")
FLOATS = ("-0.0", "0.0", "nan", "-nan", "1.5", "-1.5")
ALGORITHMS: tuple[dict[str, Any], ...] = (
    {"name": "bsgi", "select": "bisect", "residue": "suppress"},
    {"name": "bsgi", "residue": "suppress"},
    {"name": "topdown"},
    {"name": "mondrian"},
    {"name": "peel"},
    {"name": "cuts"},
    {"name": "tds"},
    {"name": "tp"},
)
COLUMNS = ("town", "age", "secret", "ward", "reading", "parts")


def rows_of(draw: random.Random, count: int) -> list[tuple[Any, ...]]:
    return [
        (draw.choice(TOWNS), draw.randint(1, 9), draw.choice(TEXTS), draw.choice(TEXTS), draw.choice(FLOATS),
         draw.choice(["-0.0", "0.0"]))
        for _ in range(count)
    ]  # fmt: skip


def fill(con: Any, rows: list[tuple[Any, ...]], collation: str | None, secret: str = "VARCHAR") -> None:
    """The table `people`, its texts with a collation; `secret` is the type of the column of that name."""
    text = f"VARCHAR COLLATE {collation}" if collation else "VARCHAR"
    kind = secret if secret != "VARCHAR" else text
    con.execute(
        f"CREATE OR REPLACE TABLE people (town {text}, age INTEGER, secret {kind}, ward {text}, reading DOUBLE,"
        " parts STRUCT(x DOUBLE))"
    )
    values = f"?, ?, CAST(? AS {secret}), ?, CAST(? AS DOUBLE), struct_pack(x := CAST(? AS DOUBLE))"
    con.executemany(f"INSERT INTO people SELECT {values}", rows)


def policy_of(folder: Any, algorithm: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A policy with a tree of towns in which spellings are leaves of their own."""
    (folder / "towns.yml").write_text(yaml.safe_dump({"*": {"here": list(TOWNS[:4]), "there": list(TOWNS[4:])}}))
    age = {"taxonomy": {"ranges": [3]}} if algorithm["name"] in ("cuts", "tds") else {"numeric": True}
    return {
        "source": "people", "target": {"table": "released", "if_exists": "replace"}, "algorithm": algorithm,
        "quasi_identifiers": {"town": {"taxonomy": {"file": "towns.yml"}}, "age": age}, "sensitive": ["secret"],
        "keep": ["ward", "reading", "parts"], "require": [{"frequency": 2}], "seed": 3, **changes,
    }  # fmt: skip


def texts(con: Any, table: str, columns: str = "COLUMNS(*)") -> list[tuple[str, ...]]:
    """The rows of a table as text, compared by bytes."""
    return con.execute(f"SELECT encode(CAST({columns} AS VARCHAR)) FROM {table}").fetchall()


def released(con: Any, policy: dict[str, Any], folder: Any) -> list[tuple[str, ...]] | None:
    """The release as text in its order; None if the policy cannot be met."""
    try:
        ldiv_db.run(con, policy, folder=folder)
    except ldiv_db.InfeasibleError:
        return None
    return texts(con, "released")


@pytest.mark.parametrize("seed", some([0, 10, *range(1, 16)]))
def test_a_release_is_of_bytes_whatever_the_order_of_rows(tmp_path: Any, seed: int) -> None:
    """Of sensitive values and columns that are kept none is lost, none published as another that is equal to it."""
    draw = random.Random(seed)
    algorithm, secret = ALGORITHMS[seed % len(ALGORITHMS)], ("VARCHAR", "DOUBLE")[seed // 8 % 2]
    rows = rows_of(draw, 30)
    if secret == "DOUBLE":
        rows = [(*row[:2], draw.choice(FLOATS), *row[3:]) for row in rows]
    policy = policy_of(tmp_path, algorithm)
    found = []
    for order in range(2):
        with duckdb.connect() as con:
            fill(con, draw.sample(rows, len(rows)) if order else rows, draw.choice(COLLATIONS), secret)
            found.append(released(con, policy, tmp_path))
            if found[-1] is None:
                continue
            assert found[-1]
            for column in ("secret", "ward", "reading", "parts"):
                lost = Counter(texts(con, "people", column))
                lost.subtract(texts(con, "released", column))
                assert min(lost.values()) >= 0
                if algorithm["name"] in ("topdown", "mondrian", "peel", "tds", "tp"):
                    assert not +lost, "no row is suppressed"
    assert found[0] == found[1]


@pytest.mark.parametrize("transaction", some([True, False]))
@pytest.mark.parametrize("algorithm", some(ALGORITHMS[:5]), ids=lambda a: "-".join(map(str, a.values())))
def test_the_connections_collation_changes_nothing(tmp_path: Any, algorithm: dict[str, Any], transaction: bool) -> None:
    rows = rows_of(random.Random(5), 30)
    policy = policy_of(tmp_path, algorithm)
    with duckdb.connect() as con:
        fill(con, rows, None)
        expected = released(con, policy, tmp_path)
        con.execute("SET default_collation = 'NOCASE'")
        if transaction:
            con.begin()
        assert released(con, policy, tmp_path) == expected
        assert con.execute("SELECT current_setting('default_collation'), 'a' = 'A'").fetchall() == [("NOCASE", True)]


def test_a_collation_that_is_locked_is_refused(tmp_path: Any) -> None:
    with duckdb.connect() as con:
        fill(con, rows_of(random.Random(5), 30), None)
        con.execute("SET default_collation = 'NOCASE'; SET lock_configuration = true")
        with pytest.raises(ldiv_db.DatabaseError, match="default_collation is NOCASE"):
            ldiv_db.run(con, policy_of(tmp_path, ALGORITHMS[0]), folder=tmp_path)


def test_the_release_of_a_table_with_collations_is_compared_by_bytes(tmp_path: Any) -> None:
    """Its columns have no collation, so that whoever reads it sees what was audited; appending goes on."""
    with duckdb.connect() as con:
        fill(con, rows_of(random.Random(5), 20), "NOCASE")
        policy = policy_of(tmp_path, {"name": "bsgi", "select": "bisect"})
        ldiv_db.run(con, policy, folder=tmp_path)
        assert (
            "COLLATE" not in con.execute("SELECT sql FROM duckdb_tables() WHERE table_name = 'released'").fetchone()[0]
        )
        policy["target"] = {"table": "released", "if_exists": "append"}
        ldiv_db.run(con, policy, folder=tmp_path)
        assert len(texts(con, "released")) == 40


@pytest.mark.slow
def test_individuals_are_told_apart_by_bytes(tmp_path: Any) -> None:
    """`Ab` and `aB` may be in one class, two rows of `Ab` may not."""
    with duckdb.connect() as con:
        rows = [("Rom", 1, str(i), who, "1", "0.0") for i, who in enumerate(["Ab", "aB"] * 4)]
        fill(con, rows, "NOCASE")
        policy = policy_of(tmp_path, ALGORITHMS[0], individual="ward", keep=["reading", "parts"])
        policy["require"] = [{"unique_distinct": 2}]
        assert ldiv_db.run(con, policy, folder=tmp_path).loss.rows_published == 8


@pytest.mark.parametrize("role", some(["qi", "sensitive"]))
@pytest.mark.parametrize(
    ("kind", "values"),
    some([
        pytest.param("DOUBLE[]", ("[0.0]", "[-0.0]")),
        pytest.param("VARIANT", ("1", "2")),
        pytest.param("STRUCT(x DOUBLE)", ("{'x': 0.0}", "{'x': -0.0}")),
        pytest.param("MAP(VARCHAR, FLOAT)", ("{a=0.0}", "{a=-0.0}")),
        pytest.param("INTERVAL[]", ("[1 day]", "['24:00:00']")),
    ]),
)  # fmt: skip
def test_what_cannot_be_compared_by_bytes_is_refused_by_name(tmp_path: Any, role: str, kind: str, values: Any) -> None:
    """Values with members, where two are equal and written differently; where all are alike they are published."""
    with duckdb.connect() as con:
        policy = policy_of(tmp_path, ALGORITHMS[2], keep=["n"])
        policy["sensitive"] = ["odd"] if role == "sensitive" else ["n"]
        policy["keep"] = ["n"] if role == "sensitive" else []
        tree = {"taxonomy": {"prefix": [2]}}
        policy["quasi_identifiers"] = {"odd": tree} if role == "qi" else {"age": {"numeric": True}}
        if role == "qi":
            policy["identifiers"] = ["age"]
        for alike in (False, True):
            chosen = values[:1] * 2 if alike else values
            odd = ["'" + text.replace("'", "''") + "'" for text in chosen]
            cases = ", ".join(f"(CAST({odd[i % 2]} AS {kind}), {i}, {i})" for i in range(8))
            con.execute(f"CREATE OR REPLACE TABLE people AS FROM (VALUES {cases}) AS v(odd, age, n)")
            policy["require"] = [{"k": 2}]
            if alike and kind not in ("INTERVAL[]", "VARIANT"):
                assert ldiv_db.run(con, policy, folder=tmp_path).loss.rows_published == 8
                continue
            with refuses("sensitive" if role == "sensitive" else "quasi_identifiers"):
                ldiv_db.run(con, policy, folder=tmp_path)


@pytest.mark.parametrize("algorithm", some(["decomposition_plus", "bsgi"]))
def test_series_publish_bytes(tmp_path: Any, algorithm: str) -> None:
    """Keys and values of releases over time, and signs of zeros, which are one value."""
    rows = [("Rom", i, TEXTS[i % 8], f"{'aA'[i % 2]}{i // 2}", "1", "0.0") for i in range(32)]
    policy = policy_of(tmp_path, {"name": algorithm}, target={"prefix": "p"}, key="ward", keep=["reading", "parts"])
    policy |= {"require": [{"unique_distinct": 2}]}
    if algorithm != "bsgi":
        policy |= {"sensitive": {"secret": {"l": 2}}, "quasi_identifiers": ["town", "age"]}
        del policy["require"]
    with duckdb.connect() as con:
        fill(con, rows, "NOCASE")
        ldiv_db.run(con, policy, folder=tmp_path)
        table = "p_1" if algorithm == "bsgi" else "p_1_sa"
        assert Counter(texts(con, table, "secret")) == Counter(texts(con, "people", "secret"))
        fill(
            con,
            [(*row[:2], ("-0.0", "1.5", "0.0", "1.5")[i % 4], *row[3:]) for i, row in enumerate(rows)],
            "NOCASE",
            "DOUBLE",
        )
        policy |= {"target": {"prefix": "q"}, "over_time": "independent"}
        ldiv_db.run(con, policy, folder=tmp_path)
        shown = texts(con, table.replace("p", "q", 1), "secret")
        assert Counter(shown) == Counter(texts(con, "people", "secret"))


# -- tables of anybody's ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_any_table_is_judged_measured_and_attacked_by_bytes(tmp_path: Any, seed: int) -> None:
    """What is said of a table with collations is what is said of its copy without."""
    rows = rows_of(random.Random(seed), 40)
    policy = policy_of(tmp_path, {"name": "topdown"}, keep=[], identifiers=["ward", "reading", "parts"])
    said = []
    for collation, default in ((None, ""), (COLLATIONS[seed % 3], ""), (None, "NOCASE")):
        with duckdb.connect() as con:
            con.execute(f"SET default_collation = '{default}'")
            fill(con, rows, None)
            con.execute("CREATE TABLE plain AS FROM people")
            fill(con, rows, collation)
            audits = ldiv_db.check(
                con, "people", ["town", "age"], "secret", ["distinct:2", "frequency:1.5", "entropy:2"]
            )
            known = dict.fromkeys(("known", "population", "definetti", "also"), "people")
            attacks = ldiv_db.attack(con, "people", policy=policy, folder=tmp_path, counting=True, **known)
            loss = ldiv_db.measure(con, "people", policy, source="plain", folder=tmp_path, queries=5, seed=1)
            profile = ldiv_db.profile(con, "people", ["town", "age"], "secret")
            said.append([[a.as_dict() for a in audits], attacks.as_dict(), loss.as_dict(), profile.as_dict()])
    assert said[0] == said[1] == said[2]


def test_classes_that_equal_numbers_tell_apart_are_refused_by_name() -> None:
    with duckdb.connect() as con:
        zero = "CASE WHEN i % 2 = 0 THEN CAST('-0.0' AS DOUBLE) ELSE 0 END"
        con.execute(f"CREATE TABLE t AS SELECT {zero} AS x, i AS s FROM range(8) AS r(i)")
        with pytest.raises(ldiv_db.PolicyError, match="x: has 1 value that is equal to another and written"):
            ldiv_db.check(con, "t", ["x"], "s", ["distinct:2"])
        (audit,) = ldiv_db.check(con, "t", ["s"], "x", ["distinct:1"])
        assert audit.holds


def test_releases_are_compared_by_bytes() -> None:
    """Keys and values that a collation holds equal are not one to who compares releases."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (id VARCHAR COLLATE NOCASE, g INTEGER, s VARCHAR COLLATE NOCASE)")
        con.execute("INSERT INTO t VALUES ('a', 1, 'Ab'), ('A', 1, 'aB'), ('b', 2, 'x'), ('B', 2, 'X')")
        found = check_sequence(Engine(con), SequenceRequest(["t"], "id", ["g"], [("s", 2)]))
        assert found.holds
