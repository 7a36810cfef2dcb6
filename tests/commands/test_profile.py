"""`ldiv profile`: counts of a table without its values, and a policy that runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from refusals import codes_told

from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import demonstrate
from tests.beds import Bed
from tests.strategies import some

HOSTILE = 'a"; DROP TABLE t; --'


def profile(bed: Any, *words: Any) -> Any:
    return bed.call("profile", bed.database, *words)


@pytest.fixture(scope="module")
def patients(first_bed: Path) -> Callable[..., Any]:
    """What `ldiv profile` says of the patients, asked once; nothing is written."""
    bed = Bed(first_bed)

    @functools.cache
    def asked(*words: str) -> Any:
        before = bed.files()
        called = profile(bed, "patients", *words)
        assert called.code == 0 and bed.files() == before, called.err
        return called

    return asked


SENSITIVE = ("--sensitive", "disease")
KEYS = (*SENSITIVE, "--qi", "age,country")


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adult") / "demo"
    demonstrate(4, None, folder)
    return folder


@pytest.mark.slow
def test_adult_is_profiled_and_its_skeleton_runs(adult: Path, call: Any) -> None:
    database, policy = adult / "adult.duckdb", adult / "start.yml"
    found = call("profile", database, "adult", "--sensitive", "occupation", "--json").json
    assert found["rows"] == 30_162
    assert found["uniqueness"]["unique_rows"] == 7_653 and found["uniqueness"]["rows_below_5"] == 13_657
    assert {c["column"]: c["unique_rows_without"] for c in found["uniqueness"]["contributions"]}["age"] == 1_648
    (sensitive,) = found["sensitive"]
    assert (sensitive["distinct"], sensitive["largest_l"]) == (14, 7)
    called = call("profile", database, "adult", "--sensitive", "occupation", "--policy", policy)
    assert called.code == 0 and f"written: {policy}" in called.out
    assert yaml.safe_load(policy.read_text()) == found["policy"]
    assert call("plan", database, policy).code == 0
    ran = call("run", database, policy, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["rows_published"] == 30_162 and all(r["holds"] for r in ran.json["requirements"])


def test_the_columns_roles_are_guessed(patients: Callable[..., Any]) -> None:
    found = patients("--sensitive", "DISEASE", "--json").json
    assert set(found) == {
        "table", "rows", "individual", "columns", "uniqueness", "sensitive", "policy", "note", "run", "written"
    }  # fmt: skip
    columns = {column["column"]: column for column in found["columns"]}
    assert {name: column["role"] for name, column in columns.items()} == {
        "name": "identifier", "age": "identifier", "country": "quasi-identifier", "disease": "sensitive",
        "ward": "quasi-identifier",
    }  # fmt: skip
    assert columns["country"] == {
        "column": "country", "type": "VARCHAR", "role": "quasi-identifier", "distinct": 4, "nulls": 0,
        "largest_share": 0.25, "reason": "texts: a level file, or sets", "forms": ["Aaaaa"],
    }  # fmt: skip
    assert found["sensitive"] == [
        {
            "column": "disease", "distinct": 4, "distinct_folded": 4, "nulls": 0, "sets": None, "largest_share": 0.25,
            "largest_l": 4, "largest_l_folded": 4, "entropy": 2.0, "histogram": [6, 6, 6, 6],
        }
    ]  # fmt: skip


def test_nothing_that_is_printed_is_a_value(patients: Callable[..., Any]) -> None:
    for words in (("--json",), ()):
        text = patients(*KEYS, *words).out
        assert not [value for value in ("Norway", "Hepatitis", "P11", "W0") if value in text]


def test_the_members_of_an_enum_are_values_too(bed: Any) -> None:
    bed.sql("CREATE TYPE d AS ENUM ('HIV, (or) it''s', 'Flu'); ALTER TABLE patients ALTER ward TYPE d USING 'Flu'")
    bed.sql("ALTER TABLE patients ADD lasted INTERVAL; UPDATE patients SET lasted = INTERVAL 1 DAY")
    called = profile(bed, "patients", *SENSITIVE, "--qi", "ward,lasted", "--json")
    assert "ENUM" in called.out and "HIV" not in called.out and "Flu" not in called.out
    assert "lasted" in called.json["policy"]["identifiers"], "no policy takes an interval"
    bed.write_policy(
        keep=None,
        identifiers=["name", "country", "lasted"],
        quasi_identifiers={"ward": {"numeric": True}, "age": {"numeric": True}},
    )
    assert "the column is ENUM (" in bed.fails(2, "plan", bed.database, bed.policy)


def test_columns_that_nobody_named_are_not_published(patients: Callable[..., Any]) -> None:
    found = patients(*KEYS, "--json").json
    assert found["policy"]["identifiers"] == ["name", "ward"]
    assert list(found["policy"]["quasi_identifiers"]) == ["age", "country"]
    assert found["uniqueness"]["combinations"] == 24


def test_the_printed_policy_is_the_one_that_is_written_and_planned(bed: Any, patients: Callable[..., Any]) -> None:
    """Time and memory are those that a plan expects of it."""
    (bed.folder / "new").mkdir()
    policy = bed.folder / "new" / "p.yml"
    said = profile(bed, "patients", *KEYS, "--policy", policy).out
    assert policy.read_text() in patients(*KEYS).out
    assert "a run of this policy takes a few seconds and about" in said
    planned = bed.call("plan", bed.database, policy, "--json").json["needs"]
    found = patients(*KEYS, "--json").json["run"]
    figures = ("seconds", "memory_bytes")
    assert found["memory_bytes"] > 0 and [found[key] for key in figures] == [planned[key] for key in figures]


def test_without_a_sensitive_column_the_policy_asks_for_rows_alone(patients: Callable[..., Any]) -> None:
    said, policy = patients("--qi", "age").out, patients("--qi", "age", "--json").json["policy"]
    assert "`ldiv profile --sensitive COLUMN`" in said
    assert policy["require"] == [{"k": 5}] and policy["algorithm"] == "auto" and "sensitive" not in policy


def test_a_table_of_which_nothing_can_be_made_has_no_policy(bed: Any) -> None:
    bed.sql("CREATE TABLE keys AS SELECT i AS id, 'd' || i % 3 AS s FROM range(30) AS r(i)")
    words = ("keys", "--sensitive", "s")
    called = profile(bed, *words, "--json")
    assert called.code == 0 and called.json["note"].startswith("no policy to start from") and called.json["run"] is None
    assert "no policy was written" in bed.fails(1, "profile", bed.database, *words, "--policy", bed.folder / "new.yml")


def test_nothing_is_overwritten(bed: Any) -> None:
    words = ("profile", bed.database, "patients", "--sensitive", "disease", "--qi", "age,country", "--policy")
    assert "policy.yml exists" in bed.fails(2, "profile", bed.database, "gone", "--policy", bed.policy), (
        "before any work"
    )
    called = bed.call(*words, bed.folder / "new.yml")
    assert called.code == 2 and "country.csv exists" in called.err
    assert "quasi_identifiers:" in called.out and "largest feasible l" in called.out, "shown all the same"
    (bed.folder / "country.csv").unlink()
    assert "name of a taxonomy" in bed.call(*words, bed.folder / "country.csv").err


def test_odd_names_values_and_types_make_a_policy_that_is_planned(bed: Any) -> None:
    names = ['on', HOSTILE, "naïve; x: {y}", "new\nline", "A/b", "A b", "when", "yes?"]  # fmt: skip
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    bed.sql(
        f"CREATE TABLE \"select.from\" AS SELECT * FROM (SELECT i % 5, 'v;\"' || i % 2, 'ü' || i % 3, "
        "CASE WHEN i % 4 > 0 THEN i % 4 = 1 END, 'x'||i%2, 'y'||i%2, DATE '2020-01-01' + CAST(i % 7 AS INTEGER),"
        f" 'z' || i % 6 FROM range(60) t(i)) v({quoted})"
    )
    (bed.folder / "new").mkdir()
    policy = bed.folder / "new" / "p.yml"
    called = profile(bed, '"select.from"', "--sensitive", "yes?", "--policy", policy)
    assert called.code == 0, called.err
    document = yaml.safe_load(policy.read_text(encoding="utf-8"))
    assert list(document["quasi_identifiers"]) == names[:-1]
    parse_policy(document)
    assert bed.call("plan", bed.database, policy).code == 0


def test_a_file_is_named_relative_to_the_policy(bed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.sql(f"COPY patients TO '{bed.folder}/p.parquet'")
    (bed.folder / "new").mkdir()
    monkeypatch.chdir(bed.folder)
    words = ("--sensitive", "disease", "--qi", "age,country", "--policy", "new/p.yml")
    assert bed.call("profile", ":memory:", "p.parquet", *words).code == 0
    assert yaml.safe_load((bed.folder / "new" / "p.yml").read_text())["source"] == "../p.parquet"
    assert bed.call("plan", bed.database, "new/p.yml").code == 0


COUNTS: list[tuple[int, int, Any]] = [
    (60, 300, {"taxonomy": {"file": "job.csv"}, "recode": "set"}),
    (1_500, 6_000, None),
    (1_500, 160_000, {"taxonomy": {"prefix": [7]}}),
    (11_000, 33_000, None),
]


@pytest.mark.parametrize(("values", "rows", "way"), some(COUNTS, first=2))
def test_texts_of_many_values_are_sets_or_a_star(bed: Any, values: int, rows: int, way: Any) -> None:
    """Up to a thousand in a file; very many of them, or with few rows each, take a taxonomy of the user's."""
    job = f"'job' || CASE WHEN i < {values} THEN i ELSE hash(i) % {values} END"
    bed.sql(f"CREATE TABLE z AS SELECT {job} AS job, i % 9 AS age, 's' || i % 3 AS s FROM range({rows}) t(i)")
    found = profile(bed, "z", "--sensitive", "s", "--json").json
    assert found["policy"]["quasi_identifiers"].get("job") == way
    if way is None:
        assert found["policy"]["identifiers"] == ["job"]
        assert "different texts of few rows each, as names of people are" in found["columns"][0]["reason"]


def test_nulls_and_a_frequent_value_are_provided_for(bed: Any) -> None:
    bed.sql("CREATE TABLE n AS SELECT i % 9 AS age, CASE WHEN i % 5 = 0 THEN 's' || i % 2 END AS s FROM range(90) t(i)")
    found = profile(bed, "n", "--sensitive", "s", "--policy", bed.folder / "n.yml", "--json").json
    assert (found["sensitive"][0]["nulls"], found["sensitive"][0]["largest_l"]) == (72, 1)
    assert found["policy"]["require"] == [{"distinct": 3}, {"alpha_k": {"alpha": 0.87, "k": 5}}]
    assert found["policy"]["nulls_sensitive"] == "value"
    assert bed.call("plan", bed.database, bed.folder / "n.yml", "--json").json["rows_suppressed"] == 0


REFUSED = [
    ("sensitive", ("patients", "--sensitive", "diseese")),
    ("qi sensitive", ("patients", "--qi", "age,wardd", "--sensitive", "x")),
    ("sensitive", ("patients", "--qi", "age,disease", "--sensitive", "disease")),
    ("population-size", ("patients", "--qi", "age", "--population-size", "23")),
    ("table", ("patient",)),
    ("table", ("none.csv",)),
    ("table", (HOSTILE,)),
]


def test_bad_arguments_are_refused_by_their_codes(bed: Any) -> None:
    found = [
        (" ".join(sorted(codes_told(bed.fails(2, "profile", bed.database, *words)))), words) for _, words in REFUSED
    ]
    assert found == REFUSED
    assert "empty" in bed.fails(1, "profile", bed.database, "empty")


def test_several_sensitive_columns_make_a_policy_that_is_planned(bed: Any) -> None:
    policy = bed.folder / "several.yml"
    bed.sql("CREATE TABLE several AS SELECT *, 'd' || (age * 5 % 7) AS drug FROM patients")
    words = ("--sensitive", "disease", "--sensitive", "drug", "--qi", "age", "--policy", policy)
    assert profile(bed, "several", *words).code == 0
    assert list(yaml.safe_load(policy.read_text())["sensitive"]) == ["disease", "drug"]
    assert bed.call("plan", bed.database, policy).code == 0


@pytest.mark.parametrize("value", some(["DATE 'infinity'", "DATE '0044-03-15 (BC)'", "1e400"]))
def test_columns_whose_values_have_no_place_are_not_published(bed: Any, value: str) -> None:
    other = "DATE '2020-01-01' + CAST(i AS INTEGER)" if "DATE" in value else "CAST(i AS DOUBLE)"
    value = value.replace("1e400", "CAST('inf' AS DOUBLE)")
    bed.sql(
        f"CREATE TABLE odd AS SELECT i % 30 AS age, CASE WHEN i = 7 THEN {value} ELSE {other} END AS x,"
        " 'd' || i % 7 AS disease FROM range(200) AS r(i)"
    )
    policy = bed.folder / "odd.yml"
    assert profile(bed, "odd", "--sensitive", "disease", "--qi", "age,x", "--policy", policy).code == 0
    document = yaml.safe_load(policy.read_text())
    assert document["identifiers"] == ["x"] and list(document["quasi_identifiers"]) == ["age"]
    assert bed.call("plan", bed.database, policy).code == 0


def test_the_uniqueness_of_a_population_is_estimated(patients: Callable[..., Any]) -> None:
    """Two rows a country, and one of a new one: none of the models but Zayatz's and the negative binomial's fit."""
    words = ("--qi", "age,country", "--population-size", "240")
    found = patients(*words, "--json").json["uniqueness"]["population"]
    assert (found["size"], found["sampling_fraction"]) == (240, 0.1)
    called = patients(*words)
    for name, estimate in found["estimates"].items():
        (line,) = (line for line in called.out.splitlines() if f"by {name}" in line)
        uniques = estimate["unique_people"]
        assert ("no estimate" if uniques is None else f"{uniques:,.0f} (") in line
        assert ("the one to go by" in line) is (name == found["model"])
