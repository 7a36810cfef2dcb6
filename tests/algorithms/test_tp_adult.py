"""TP's family on Adult's 30,162 clean training rows: the residue after phase one, and who has fewer stars."""

import duckdb
import oracle
import pytest

import ldiv_db

QI = ("education", "marital_status", "race", "sex")
AFTER_PHASE_ONE = {2: (1012, 783), 4: (5001, 1850)}
ROWS = 30162


@pytest.fixture(scope="module")
def adult(fixtures):
    with duckdb.connect(config={"threads": 2}) as con:
        con.execute(
            f"CREATE TABLE adult AS SELECT {', '.join(QI)}, occupation FROM read_parquet(?, file_row_number = true)"
            " WHERE file_row_number < 32561 AND workclass IS NOT NULL AND occupation IS NOT NULL"
            " AND native_country IS NOT NULL",
            [str(fixtures / "adult" / "adult.parquet")],
        )
        yield con


def run(con, fixtures, name, l):
    policy = {
        "source": "adult",
        "target": {"table": "released", "if_exists": "replace"},
        "quasi_identifiers": {name: {"taxonomy": {"file": f"{name}.csv"}} for name in QI},
        "sensitive": ["occupation"],
        "require": [{"frequency": l}],
        "algorithm": {"name": name},
        "seed": 0,
    }
    result = ldiv_db.run(con, policy, folder=fixtures / "adult" / "taxonomies")
    return result, con.execute("SELECT * FROM released").fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("l", [2, 4, 7])
def test_stars_of_the_three(adult, fixtures, l):
    stars = {}
    for name in ("tp", "tp_plus", "hilbert"):
        result, release = run(adult, fixtures, name, l)
        assert len(release) == ROWS
        assert not oracle.violations([(row[:4], row[4]) for row in release], "frequency", l)
        assert result.loss.stars == sum(cell == "*" for row in release for cell in row[:4]) == result.search["stars"]
        stars[name] = result.loss.stars
        if name != "hilbert":
            first = (result.search["removed_rows"][0], result.search["pillar_heights"][0])
            assert first == AFTER_PHASE_ONE.get(l, first)
            assert result.search["phase"] == 2
            assert result.search["removed_rows"][-1] <= l * first[1] + l - 1 == result.search["most_rows"]
    assert stars["tp_plus"] <= stars["tp"] and stars["tp_plus"] < stars["hilbert"]
