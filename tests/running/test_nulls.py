"""What becomes of NULLs, as the policy says."""

import pytest
from strategies import some

import ldiv_db

pytestmark = pytest.mark.usefixtures("no_remedies")

COLUMNS = {"age": "INTEGER", "town": "VARCHAR", "secret": "VARCHAR"}
ROWS = [
    (20, "a", "x"), (None, "a", "y"), (22, None, "x"), (23, "b", "y"),
    (None, None, "x"), (None, None, "y"), (26, "b", "x"), (27, "a", "y"),
]  # fmt: skip


def policy(**changes):
    base = {
        "source": "t",
        "target": "released",
        "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": {"file": "town.yml"}}},
        "sensitive": ["secret"],
        "require": [{"unique_distinct": 2}],
        "algorithm": {"name": "bsgi", "select": "bisect"},
    }
    return base | changes


@pytest.fixture
def towns(table, tmp_path):
    table("t", COLUMNS, ROWS)
    (tmp_path / "town.yml").write_text("Any: {a: {}, b: {}}")
    return tmp_path


def test_nulls_alone_in_a_class_are_published_as_null_and_the_text_null_is_not_that(con, table, towns):
    """A leaf that is called NULL is a value of its own beside real NULLs."""
    (towns / "town.yml").write_text("Any: {'NULL': {}, b: {}}")
    places = [(1, "NULL"), (90, None), (None, None), (40, "b")]
    table("t", COLUMNS, [(*place, secret) for place in places for secret in "xy"])
    result = ldiv_db.run(con, policy(), folder=towns)
    released = sorted(con.execute("SELECT age, town FROM released").fetchall(), key=repr)
    expected = [(age and str(age), town) for age, town in places]
    assert released == sorted(expected * 2, key=repr) and result.loss.lm == 0


def test_null_beside_values_is_a_star(con, table, towns):
    table("t", COLUMNS, [(None, None, "x"), (5, "a", "y")])
    result = ldiv_db.run(con, policy(), folder=towns)
    assert con.execute("SELECT DISTINCT age, town FROM released").fetchall() == [("*", "*")]
    assert result.loss.lm_mean == 1


def test_rows_with_null_are_suppressed(con, towns):
    result = ldiv_db.run(con, policy(nulls="suppress"), folder=towns)
    assert (result.loss.rows_published, result.loss.rows_suppressed) == (4, 4)
    assert con.execute("SELECT count(*) FROM released WHERE age = '*' OR age IS NULL").fetchone() == (0,)
    assert result.loss.dm == 8 + 4 * 8  # two classes of two, four rows at the size of the table


def test_nulls_are_rejected_with_their_counts(con, towns, snapshot):
    before = snapshot(con)
    with pytest.raises(ldiv_db.InfeasibleError, match=r"age in 3 rows, town in 3 rows"):
        ldiv_db.run(con, policy(nulls="reject"), folder=towns)
    assert snapshot(con) == before


@pytest.fixture
def secrets(table, towns):
    table("t", COLUMNS, [(20, "a", "x"), (21, "a", "y"), (22, "b", None), (23, "b", "y")])
    return towns


def test_sensitive_nulls_are_refused_unless_the_policy_says_otherwise(con, secrets, snapshot):
    before = snapshot(con)
    with pytest.raises(ldiv_db.InfeasibleError, match=r"secret in 1 row.*nulls_sensitive"):
        ldiv_db.run(con, policy(), folder=secrets)
    assert snapshot(con) == before


def test_sensitive_nulls_suppressed(con, table, secrets):
    table("t", COLUMNS, [(20, "a", "x"), (21, "a", "y"), (22, "b", None), (23, "b", "y"), (23, "b", "x")])
    result = ldiv_db.run(con, policy(nulls_sensitive="suppress"), folder=secrets)
    assert (result.loss.rows_published, result.loss.rows_suppressed) == (4, 1)
    assert con.execute("SELECT count(*) FROM released WHERE secret IS NULL").fetchone() == (0,)


@pytest.mark.parametrize("select", some(["bisect", "greedy"], 1))
def test_a_sensitive_null_is_a_value(con, secrets, select):
    algorithm = {"name": "bsgi", "select": select}
    result = ldiv_db.run(con, policy(nulls_sensitive="value", algorithm=algorithm), folder=secrets)
    assert result.loss.rows_published == 4
    assert con.execute("SELECT count(*) FROM released WHERE secret IS NULL").fetchone() == (1,)
    assert all(verdict["holds"] for verdict in result.requirements)


def test_every_row_suppressed_is_infeasible(con, table, towns):
    table("t", COLUMNS, [(None, "a", "x"), (None, "b", "y")])
    with pytest.raises(ldiv_db.InfeasibleError, match="every one of the 2 rows"):
        ldiv_db.run(con, policy(nulls="suppress"), folder=towns)
