"""What counts alone say of classes of different values: how large they are, and which tables have any."""

from __future__ import annotations

from typing import Any

import pytest
from tables import fill

import ldiv_db
from ldiv_db.running.run import plan

pytestmark = pytest.mark.usefixtures("no_remedies")

POLICY: dict[str, Any] = {
    "source": "visits", "target": "released", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["dx"],
    "require": [{"distinct": 2}], "algorithm": {"name": "bsgi", "select": "bisect"}, "seed": 1,
}  # fmt: skip


def planned(con: Any, values: str, **more: Any) -> Any:
    rows = [(number, None if value == "-" else value) for number, value in enumerate(values)]
    fill(con, "visits", {"age": "INTEGER", "dx": "VARCHAR"}, rows)
    return plan(con, POLICY | more)


@pytest.mark.parametrize(("values", "l"), [("aaab", 2), ("aaaabbc", 2), ("aaabbc", 3)])
def test_a_value_in_more_than_one_of_l_rows_is_refused(con: Any, values: str, l: int) -> None:
    with pytest.raises(ldiv_db.InfeasibleError) as error:
        planned(con, values, require=[{"distinct": l}])
    assert error.value.l == l


@pytest.mark.parametrize(("values", "l"), [("aabb", 2), ("aaabbc", 2), ("aabbcc", 3)])
def test_one_in_just_so_many_is_not(con: Any, values: str, l: int) -> None:
    assert planned(con, values, require=[{"distinct": l}]).feasibility.rows_suppressed == 0


def test_where_null_is_not_judged_a_class_may_have_one_besides(con: Any) -> None:
    found = [
        planned(con, values, nulls_sensitive="value", suppressed="ignore").feasibility.l
        for values in ("aabbcc", "aabbcc--")
    ]
    assert found == [2, 3]
