"""What profiles make of columns as programs write them, and of the names and values by which people are known."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from strategies import some

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.measuring.profile import Profile, ProfileRequest, profile_table
from ldiv_db.measuring.starter_policy import StarterPolicy, make_starter_policy

VALUES = ["flu", "hiv", "cold", "ulcer"]


def profiled(con: Any, columns: str, rows: list[tuple[Any, ...]], *sensitive: str) -> Profile:
    con.execute(f"CREATE TABLE t ({columns})")
    con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return profile_table(Engine(con), Relation(("t",)), ProfileRequest(sensitive=sensitive))


def proposed(con: Any, found: Profile) -> StarterPolicy:
    made, why = make_starter_policy(Engine(con), found, Relation(("t",)), "t")
    assert made is not None, why
    return made


def starter(con: Any, found: Profile, folder: Path) -> StarterPolicy:
    """The policy that is proposed, which runs."""
    made = proposed(con, found)
    for name, text in made.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    policy = {"algorithm": "mondrian"} | yaml.safe_load(made.text)
    assert ldiv_db.run(con, policy, folder=folder).loss.rows_published == found.rows
    return made


def stays(ids: list[Any], each: int, draw: random.Random) -> list[tuple[Any, ...]]:
    """So many stays of each person, whose sex and birth are theirs."""
    own = [(one, draw.choice("fm"), draw.randint(1930, 2000)) for one in ids]
    return [(*who, draw.randint(0, 400), draw.choice(VALUES)) for who in own for _ in range(each)]


@pytest.mark.parametrize(
    "name",
    some([
        "xyz", "codice_fiscale", "abonnent", "Abonnentennummer", "numero_securite_sociale", "numéro_sécurité_sociale",
        "id_abonne", "numero_seguridad_social", "num_asegurado", "nr_tessera_sanitaria", "lidmaatschapsnummer",
        "numero_beneficiario", "nr_ubezpieczonego", "numer_klienta", "forsakradnummer", "personnummer", "medlemsnummer",
        "fodselsnummer", "numpatient", "social_security_no", "teilnehmer_nr",
    ]),
)  # fmt: skip
@pytest.mark.parametrize("wide", some([False, True]))
def test_people_are_known_in_many_languages_and_by_their_rows(con: Any, tmp_path: Path, name: str, wide: bool) -> None:
    draw = random.Random(name)
    ids = [1_850_000_000_000 + i * 7919 if wide else i for i in range(100)]
    found = profiled(con, f'"{name}" BIGINT, sex TEXT, born INT, days INT, dx TEXT', stays(ids, 10, draw), "dx")
    assert found.individual is not None and found.individual.column.name == name
    assert [column.role for column in found.columns][:4] == ["identifier"] + ["quasi-identifier"] * 3
    if name == "xyz":
        assert starter(con, found, tmp_path).policy["individual"] == name


@pytest.mark.parametrize(
    ("form", "rest"), some([("%m/%d/%Y %H:%M:%S", ""), ("%d.%m.%Y", "unknown"), ("%Y-%m-%d", "not asked")])
)
def test_texts_that_are_dates_but_for_a_few_are_told(con: Any, form: str, rest: str) -> None:
    rows = [(rest if i % 100 == 0 else (date(1950, 1, 1) + timedelta(days=37 * i)).strftime(form), VALUES[i % 4])
            for i in range(400)]  # fmt: skip
    born = profiled(con, "born TEXT, dx TEXT", rows, "dx").columns[0]
    assert born.role == "identifier" and f"strptime(nullif(trim(\"born\"), ''), '{form}')" in born.reason


def test_texts_that_are_no_dates_are_told_nothing_of_these(con: Any) -> None:
    rows = [(f"K{i * 7919:07d}", f"{i * 104729 % 10**8}", VALUES[i % 4]) for i in range(400)]
    found = profiled(con, "code TEXT, number TEXT, dx TEXT", rows, "dx")
    assert all("strptime" not in column.reason for column in found.columns)


@pytest.mark.parametrize(("first", "lengths"), some([(10_000, [5, 3, 1]), (1_000, None)]))
def test_postal_codes_that_are_numbers_have_prefixes_if_all_are_as_long(con: Any, first: int, lengths: Any) -> None:
    rows = [(first + i * 7919 % 80_000, VALUES[i % 4]) for i in range(400)]
    plz = profiled(con, "plz BIGINT, dx TEXT", rows, "dx").columns[0]
    assert plz.way is not None
    assert plz.way.settings == ({"taxonomy": {"prefix": lengths}} if lengths else {"numeric": True})


@pytest.mark.parametrize("form", some(["19{0:06d}-{1:04d}", "{0:06d}-{1:04d}"]))
def test_numbers_of_people_with_a_dash_are_no_ranges(con: Any, form: str) -> None:
    """As Sweden's: few of them rise, as ranges of a release all do."""
    draw = random.Random(form)
    ids = [form.format(draw.randrange(10_000, 990_000), draw.randrange(10_000)) for _ in range(100)]
    found = profiled(con, "personnummer TEXT, sex TEXT, born INT, days INT, dx TEXT", stays(ids, 4, draw), "dx")
    assert found.individual is not None and found.columns[0].role == "identifier"


def test_a_repeated_id_is_told_as_a_plan_tells_it(con: Any, tmp_path: Path) -> None:
    draw = random.Random(5)
    rows = [(i, draw.random(), draw.choice(VALUES)) for i in range(120) for _ in range(draw.choice([1, 2]))]
    found = profiled(con, "record_id INT, score DOUBLE, dx TEXT", rows, "dx")
    assert found.individual is not None and found.individual.column.name == "record_id"
    made = starter(con, found, tmp_path)
    assert made.policy["individual"] == "record_id"
    told = {**made.policy, "identifiers": ["record_id"], "target": "other", "over_time": "independent"}
    told["algorithm"] = "mondrian"
    told.pop("individual")
    assert f"{len(rows)} rows belong to 120 people" in ldiv_db.plan(con, told, folder=tmp_path).warnings[0]


def test_nobody_is_known_by_what_many_have(con: Any) -> None:
    """Answers, minutes, weights of strata, models and their terms, and labels of another release name nobody."""
    draw = random.Random(1)
    rows = []
    for i in range(90):
        make, cylinders, region = draw.choice("abcd"), draw.choice([4, 6, 8]), draw.choice("NSWE")
        for _ in range(draw.randint(1, 6)):
            answers = (draw.choice(["yes", "no", "both"]), draw.choice([0] * 9 + list(range(1, 200))))
            own = (f"[{i} .. {i + 9}]", f"model {i}", f"2{i:03d}-1", 1000 + 37 * i, make, cylinders, region)
            rows.append((*answers, *own, draw.choice(VALUES)))
    columns = (
        "mobile TEXT, phone INT, age TEXT, model TEXT, term TEXT, wt INT, make TEXT, cyl INT, region TEXT, dx TEXT"
    )
    found = profiled(con, columns, rows, "dx")
    assert found.individual is None
    assert [column.column.name for column in found.of_role("identifier")] == []
    assert "individual" not in proposed(con, found).policy


@pytest.mark.parametrize("marker", some(["k.A.", "NA", "?", ".", "-", "nan", "#N/A", " ", ""]))
def test_numbers_stay_numbers_beside_what_stands_for_none(con: Any, marker: str) -> None:
    draw = random.Random(2)
    rows = [(marker if i % 9 == 4 else str(draw.randint(20, 80)), draw.choice(VALUES)) for i in range(180)]
    found = profiled(con, "age TEXT, dx TEXT", rows, "dx")
    (age, _) = found.columns
    assert (age.role, age.nulls, age.column.type) == ("quasi-identifier", 20, "BIGINT")
    assert "20 rows of" in age.reason and "as NULL" in age.reason
    settings = proposed(con, found).policy["quasi_identifiers"]["age"]
    assert settings == {"numeric": True, "null_values": [marker.strip()]}


@pytest.mark.parametrize(
    ("written", "settings"),
    some(
        [
            pytest.param(lambda i: f"{1 + i % 70}.{100 + i % 800},{i % 10}", {"numeric": True, "decimal": ","}),
            pytest.param(lambda i: f"0{1000 + i * 41 % 8000}" if i % 9 else "NA", None),
            pytest.param(lambda i: f"{i % 70},{i % 10}", {"numeric": True, "decimal": ","}),
            pytest.param(lambda i: f"{i % 101} %", {"numeric": True, "decimal": "."}),
            pytest.param(lambda i: f"{1 + i % 7},{100 + i % 9}", {"numeric": True, "decimal": "."}),
            pytest.param(lambda i: f"{10000 + i * 401 % 80000}", {"taxonomy": {"prefix": [5, 3, 1]}}),
        ],
    ),
)
def test_other_ways_of_writing_numbers_and_codes(con: Any, tmp_path: Path, written: Any, settings: Any) -> None:
    rows = [(written(i), i % 2 == 0, VALUES[i % 4]) for i in range(200)]
    name = "zip" if settings is None or "taxonomy" in settings else "score"
    found = profiled(con, f"{name} TEXT, smoker BOOLEAN, dx TEXT", rows, "dx")
    assert [column.role for column in found.columns] == ["quasi-identifier", "quasi-identifier", "sensitive"]
    proposed = starter(con, found, tmp_path).policy["quasi_identifiers"]
    assert proposed["smoker"] == {}
    assert proposed[name] == settings if settings else "numeric" not in proposed[name]


def test_the_frequent_value_is_asked_about_where_null_gains_nothing(con: Any) -> None:
    rows = [(i, "never") for i in range(80)] + [(i, VALUES[i % 3]) for i in range(80, 99)] + [(99, None)]
    made = proposed(con, profiled(con, "age INT, smoke TEXT", [(a % 40, s) for a, s in rows], "smoke"))
    assert "80 rows (80.0%)" in made.text and "# harmless: [never]" in made.text
    one = [(i % 40, None if i == 0 else VALUES[i % 4]) for i in range(60)]
    con.execute("DROP TABLE t")
    made = proposed(con, profiled(con, "age INT, smoke TEXT", one, "smoke"))
    assert "1 row (1.7%)" in made.text
