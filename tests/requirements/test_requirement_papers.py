"""Tables of the papers, and the figures of pyCANON on Adult."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ldiv_db

try:
    import pandas
    from pycanon import anonymity
except ImportError:  # it is an extra of its own, for it pins versions of what we use ourselves
    pandas = anonymity = None
with_pycanon = pytest.mark.skipif(anonymity is None, reason="pyCANON is not installed: the extra `peers`")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
KEYS = ["age", "country", "zip_code"]
CATEGORIES = [["HIV", "Cancer"], ["Phthisis", "Hepatitis"], ["Obesity", "Asthma"], ["Flu", "Indigestion"]]


#: What the tables meet, and what they do not.
OF_TABLES = {
    "l_alpha_table6": [
        ({"distinct_alpha": {"l": 3, "alpha": 1}}, True), ({"distinct_alpha": {"l": 3, "alpha": "1.000000001"}}, False),
        ({"distinct_alpha": {"l": 4, "alpha": 1}}, False), ({"entropy_alpha": {"l": 2, "alpha": 1}}, False),
    ],
    "l_alpha_table7": [
        ({"entropy_alpha": {"l": 2, "alpha": 2}}, True), ({"entropy_alpha": {"l": "2.000001", "alpha": 2}}, False),
        ({"entropy_alpha": {"l": 2, "alpha": "2.000000001"}}, False), ({"distinct_alpha": {"l": 3, "alpha": 1}}, False),
    ],
}  # fmt: skip


@pytest.mark.parametrize("table", OF_TABLES)
def test_tables_of_the_l_alpha_paper(con: Any, table: str) -> None:
    path = FIXTURES / "papers" / f"{table}.csv"
    con.execute(f"CREATE TABLE t AS FROM read_csv('{path}', all_varchar = true)")
    require, holds = zip(*OF_TABLES[table], strict=True)
    (audit,) = ldiv_db.check(con, "t", KEYS, {"disease": {"categories": CATEGORIES}}, list(require))
    assert [verdict.holds for verdict in audit.verdicts] == list(holds) and audit.classes == 3


# -- pyCANON ---------------------------------------------------------------------------------------------

ADULT = ["marital_status", "race", "sex"]


@pytest.fixture(scope="module")
def adult() -> Any:
    """Adult coarsened, so that classes are of many sizes; it has no NULLs in these columns."""
    con = duckdb.connect()
    con.execute(
        f"CREATE TABLE adult AS SELECT marital_status, race, sex, occupation, age FROM '{FIXTURES}/adult/adult.parquet'"
        " WHERE occupation IS NOT NULL"
    )
    return con


@functools.cache
def frame(con: Any) -> Any:
    names = [column[0] for column in con.execute("SELECT * FROM adult").description]
    return pandas.DataFrame(con.execute("SELECT * FROM adult").fetchall(), columns=names)


def worst(con: Any, sensitive: str, require: Any) -> float:
    (audit,) = ldiv_db.check(con, "adult", ADULT, sensitive, [require])
    return audit.verdicts[0].worst


@with_pycanon
@pytest.mark.parametrize("sensitive", ["occupation", "age"])
def test_pycanon_agrees_on_adult(adult: Any, sensitive: str) -> None:
    data, keys, columns = frame(adult), ADULT, [sensitive]
    k = anonymity.k_anonymity(data, keys)
    assert worst(adult, sensitive, {"k": 10**6}) == k
    assert worst(adult, sensitive, {"distinct": 10**6}) == anonymity.l_diversity(data, keys, columns)
    entropy = worst(adult, sensitive, {"entropy": 100})
    assert math.floor(entropy + 1e-9) == anonymity.entropy_l_diversity(data, keys, columns)
    alpha, found_k = anonymity.alpha_k_anonymity(data, keys, columns)
    assert found_k == k
    assert worst(adult, sensitive, {"alpha_k": {"alpha": "0.000001", "k": 1}}) == pytest.approx(alpha)
    t = anonymity.t_closeness(data, keys, columns)
    assert worst(adult, sensitive, {"t_closeness": 0}) == pytest.approx(t)
    assert anonymity.recursive_c_l_diversity(data, keys, columns)[1] == worst(adult, sensitive, {"distinct": 1})
