"""`python -m tests.benchmarks.clinic`."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import some

from tests.benchmarks.clinic import make_clinic
from tests.benchmarks.command import engine_on


def test_the_tables_are_drawn_by_the_seed_and_link_to_one_another(con: Any) -> None:
    engine, drawn = engine_on(con), []
    for seed in (1, 1, 2):
        made = make_clinic(engine, 2000, seed)
        drawn.append({name: con.execute(f"FROM {table}").fetchall() for name, table in made.items()})
        links = "patients JOIN stays USING (patient_nr) JOIN labs USING (stay_id)"
        assert con.execute(f"SELECT count(*) FROM {links}").fetchone() == (len(drawn[-1]["labs"]),)
        for table in made.values():
            con.execute(f"DROP TABLE {table}")
    first, again, other = drawn
    assert first == again and all(first[name] != other[name] for name in first)
    assert len(first["patients"]) == 2000
    assert len(first["stays"]) == pytest.approx(3077, rel=0.05) and len(first["labs"]) == pytest.approx(7700, rel=0.1)


@pytest.mark.parametrize("seed", some([1, 2]))
def test_one_diagnosis_is_too_frequent_among_patients_of_the_hospital_who_have_several_stays(
    con: Any, seed: int
) -> None:
    made = make_clinic(engine_on(con), 19_946, seed, "hospital")
    ill = "bool_or(diagnosis = 'd0') AS ill"
    of_each = f"SELECT patient_nr, count(*) AS stays, {ill} FROM {made['stays']} GROUP BY patient_nr"
    found = f"SELECT stays, count(*), count(*) FILTER (ill) FROM ({of_each}) GROUP BY stays ORDER BY stays"
    assert con.execute(found).fetchall() == [
        (1, 11_718, 2_419), (2, 6_228, 2_306), (3, 1_634, 817), (4, 322, 194), (5, 39, 27), (6, 5, 4)
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("release", "tables"), some([pytest.param("tables", 3), pytest.param("stays", 1), pytest.param("together", 1)])
)
def test_each_release_is_measured(bench: Any, release: str, tables: int) -> None:
    words = ("--patients", 40, "--algorithm", "mondrian", "--release", release)
    (found,) = bench("clinic", *words, "--json").json["results"]
    assert len(found["left_out"]) == tables
    assert 0 < found["lm_mean"] < 1 and found["levels"] > 0 and found["processor_seconds"] > 0


@pytest.mark.parametrize("option", ["--release", "--schema"])
def test_what_it_does_not_know_is_refused(bench: Any, option: str) -> None:
    called = bench("clinic", option, "wards")
    assert called.code == 2 and "wards is none of" in called.err
