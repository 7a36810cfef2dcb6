"""How closely a release tells a column, in words and figures, as a reader of its labels would work it out."""

import math

import pytest
from strategies import some

import ldiv_db
from ldiv_db.recoding.loss import Precision


def test_figures_in_words():
    for figures, text in (
        ((0.5, 1, 0, 0.1, 80, False, 81), "a is within 4 for nine rows of ten, exact for 50 %"),
        ((0, 0.75, 0.05, 1, 80, False, 81), "a is within 2 for half, not told for 25 %"),
        ((0, 0.25, 1, 1, None, False, 81), "a is not told for 75 %"),
        ((0.95, 1, 0, 0, 80, False, 81), "a is exact for 95 %"),
        ((1, 1, 0, 0, None, False, 1), "a is exact"),
        ((0.999, 1, 0, 0, None, False, 9), "a is exact for more than 99 %"),
        ((0.001, 1, 0.25, 0.5, None, False, 9), "a is one of 5 values (of 9) for nine rows of ten, one of 3 values (of 9) for half, exact for less than 1 %"),  # noqa: E501
        ((0.6, 1, 0, 0.5, 86_400 * 10, True, 9), "a is within 2.5 days for nine rows of ten, exact for 60 %"),
        ((0.6, 1, 0, 0.25, 3_600 * 10, True, 9), "a is within 1.25 hours for nine rows of ten, exact for 60 %"),
        ((0.6, 1, 0, 0.5, 200_000.0, False, 9), "a is within 50,000 for nine rows of ten, exact for 60 %"),
    ):  # fmt: skip
        assert str(Precision("a", *figures)) == text


@pytest.mark.parametrize("kind", some(["TIMESTAMP", "INTEGER", "DOUBLE", "DATE"]))
def test_true_values_lie_within_what_is_said(con, kind):
    """Nine values of ten are within the half width of the middle of their range, by the rows themselves."""
    value = {
        "DATE": "DATE '2020-01-01' + CAST(i AS INTEGER)",
        "TIMESTAMP": "TIMESTAMP '2020-01-01' + i * INTERVAL 7 HOUR",
    }
    con.execute(
        f"CREATE TABLE people AS SELECT CAST({value.get(kind, 'i * 1.5')} AS {kind}) AS x, i AS id,"
        " 's' || hash(i) % 5 AS s FROM (SELECT hash(i * 3) % 90 AS i FROM range(100) AS r(i)) AS p"
    )
    policy = {"source": "people", "target": "out", "quasi_identifiers": {"x": {"numeric": True}}, "keep": ["id"],
              "sensitive": ["s"], "require": [{"k": 4}], "algorithm": "mondrian", "seed": 1,
              "output": {"bounds": True}}  # fmt: skip
    (told,) = ldiv_db.run(con, policy).loss.precision
    seconds = "epoch({})" if told.is_time else "CAST({} AS DOUBLE)"
    low, high, true = (seconds.format(name) for name in ("o.x_min", "o.x_max", "p.x"))
    off = [
        abs(found)
        for (found,) in con.execute(
            f"SELECT {true} - ({low} + {high}) / 2 FROM out AS o"
            " JOIN (SELECT DISTINCT id, x FROM people) AS p USING (id)"
        ).fetchall()
    ]
    within = told.as_dict()["within"]
    for share, most in ((0.5, within["half"]), (0.9, within["nine_tenths"])):
        assert sum(one <= most * (1 + 1e-6) for one in off) >= math.floor(share * len(off))
    assert max(off) > 0 and within["nine_tenths"] >= within["half"] > 0
