"""`measure` of our own releases: the losses that the run reported, read off the published table alone."""

import duckdb
import pytest
from strategies import some

import ldiv_db

MEASURES = ("lm", "lm_mean", "ncp", "ncp_mean", "dm", "stars", "classes", "rows_published", "rows_suppressed")
TREES = ("education", "sex", "workclass")
ROWS = 400


def agree(found, reported, rel=1e-6):
    for measure in MEASURES:
        assert getattr(found, measure) == pytest.approx(getattr(reported, measure), rel=rel, abs=1e-9), measure
    for name, value in reported.lm_by_column.items():
        assert found.lm_by_column[name] == pytest.approx(value, rel=rel, abs=1e-9)
    for one, other in zip(found.precision, reported.precision, strict=True):
        assert [one.exact, one.told, one.half, one.nine_tenths] == pytest.approx(
            [other.exact, other.told, other.half, other.nine_tenths], rel=rel, abs=1e-6
        )
        assert (one.column, one.width, one.is_time, one.leaves) == (
            other.column, other.width, other.is_time, other.leaves
        )  # fmt: skip


@pytest.fixture(scope="module")
def adult(fixtures):
    """A connection with some rows of Adult, and the policy's part that describes them."""
    columns = ("age", *TREES, "occupation")
    with duckdb.connect() as con:
        con.execute(
            f"CREATE TABLE adult AS SELECT {', '.join(columns)} FROM read_parquet(?)"
            f" WHERE columns(*) IS NOT NULL LIMIT {ROWS}",
            [str(fixtures / "adult" / "adult.parquet")],
        )
        keys = {"age": {"numeric": True}} | {name: {"taxonomy": {"file": f"{name}.csv"}} for name in TREES}
        policy = {"source": "adult", "target": "t", "quasi_identifiers": keys, "sensitive": ["occupation"]}
        policy["algorithm"] = {"name": "bsgi", "select": "bisect"}
        yield con, policy, fixtures / "adult" / "taxonomies"


@pytest.mark.parametrize(
    ("l", "changes"),
    some(
        [
            pytest.param(6, {"recode": "set", "output": {"bounds": True}}),
            pytest.param(
                7, {"algorithm": {"name": "bsgi", "residue": "suppress"}, "require": [{"distinct": 7}, {"k": 7}]}
            ),
        ]
    ),
)
def test_adult_loses_what_the_run_said_to_the_last_digit(adult, l, changes):
    con, policy, folder = adult
    target = {"table": f"t{l}", "if_exists": "replace"}
    wanted = {**policy, "require": [{"unique_distinct": l}], "target": target, **changes}
    result = ldiv_db.run(con, wanted, folder=folder)
    found = ldiv_db.measure(con, f"t{l}", wanted, folder=folder, class_label="occupation", queries=20)
    published = con.execute(f"SELECT count(*) FROM t{l}").fetchall()[0][0]
    assert found.loss.rows_published == published == result.loss.rows_published
    if "k" not in str(changes.get("require")):  # without class ids, classes with equal labels are one
        agree(found.loss, result.loss, rel=1e-12)
        assert found.loss.cavg(l) == result.loss.cavg(l)
        assert found.cm == published - result.loss.classes + result.loss.rows_suppressed
    else:
        assert (found.loss.lm, found.loss.ncp) == (result.loss.lm, result.loss.ncp)
        assert found.loss.classes <= result.loss.classes and found.loss.dm >= result.loss.dm
    assert found.loss.kl > 0 and found.rows_unmatched == 0
    assert found.queries.queries == 20 and 0 < found.queries.median_relative_error < 1
