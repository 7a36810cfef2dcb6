"""Taxonomies that come with the program, held against what their sources say, and by runs under them."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from tables import fill

import ldiv_db
from ldiv_db.database.errors import PolicyError
from ldiv_db.taxonomies import ready

#: Of the tabular list of ICD-10-CM, April 2026: codes, their blocks and their chapters; the last is none of it.
CODES = {
    "E11.9": ("E08-E13", "E00-E89"), "C4A.0": ("C43-C44", "C00-D49"), "C7A.00": ("C7A-C7A", "C00-D49"),
    "C76.0": ("C76-C80", "C00-D49"), "B20": ("B20-B20", "A00-B99"), "C50.911": ("C50-C50", "C00-D49"),
    "C50": ("C50-C50", "C00-D49"), "M1A.09": ("M05-M14", "M00-M99"), "Z3A.01": ("Z30-Z39", "Z00-Z99"),
    "D3A.0": ("D3A-D3A", "C00-D49"), "V00.1": ("V00-V09", "V00-Y99"), "U07.1": ("U00-U49", "U00-U85"),
    "?": ("*", "*"),
}  # fmt: skip


def run(con, column, values, settings, k, **more):
    """The labels of each value when `values` are published in classes of k rows."""
    fill(con, "t", {"id": "INTEGER", "q": column, "s": "VARCHAR"}, [(i, v, str(i)) for i, v in enumerate(values)])
    policy = {
        "source": "t", "target": {"table": "out", "if_exists": "replace"}, "quasi_identifiers": {"q": settings},
        "keep": ["id"], "sensitive": ["s"], "require": [{"k": k}], "seed": 1,
    }  # fmt: skip
    ldiv_db.run(con, policy | more)
    found = defaultdict(set)
    for value, label in con.execute("SELECT t.q, out.q FROM t JOIN out USING (id)").fetchall():
        found[value].add(label)
    return policy, found


def test_zip_codes_are_three_digits_at_most_and_small_ones_none(con):
    draw = random.Random(5)
    codes = [f"{draw.randrange(100_000):05}" for _ in range(200)] + [f"{small}12" for small in ready.SMALL_ZIPS] * 2
    policy, found = run(con, "VARCHAR", codes, {"taxonomy": "hipaa_zip"}, 1)
    assert len(ready.SMALL_ZIPS) == len(set(ready.SMALL_ZIPS)) == 17
    for code, labels in found.items():
        assert labels == {"000" if code[:3] in ready.SMALL_ZIPS else f"{code[:3]}*"}
    policy, found = run(con, "VARCHAR", codes, {"taxonomy": "hipaa_zip"}, 5)
    for code, labels in found.items():
        small = code[:3] in ready.SMALL_ZIPS
        assert labels <= ({"000", "*"} if small else {f"{code[:3]}*", f"{code[0]}*", "*"})
    assert ldiv_db.check(con, "out", policy=policy)[0].holds
    assert ldiv_db.measure(con, "out", policy=policy).loss.lm_mean > 0
    told = ldiv_db.attack(con, "out", policy=policy, known="t", downcoding=True)
    (linked,) = (attack for attack in told.attacks if attack.name == "linking")
    assert linked.figures["no_class"] == 0


@pytest.mark.parametrize("k", [1, 3, len(CODES) * 2])
def test_codes_of_diagnoses_lie_in_their_block_and_chapter(con, k):
    _, found = run(con, "VARCHAR", [*CODES] * 2, {"taxonomy": "icd10cm"}, k)
    for code, (block, chapter) in CODES.items():
        above = {code, f"{code[:3]}*", code[:3], block, chapter, "*"} if code != "?" else {"?", "*"}
        assert found[code] <= above | {f"{code}*"} and (k > 1 or found[code] == {code})


def test_siblings_meet_in_their_block(con):
    values = ["E08.9", "E13.9", "A00.0", "B99.9", "J09.X1", "J09.X2"]
    _, found = run(con, "VARCHAR", values, {"taxonomy": "icd10cm"}, 2, algorithm="topdown")
    assert [found[value] for value in values] == [{"E08-E13"}] * 2 + [{"A00-B99"}] * 2 + [{"J09*"}] * 2


def test_ages_from_90_on_are_one(con):
    ages = [*range(0, 110, 3), 90, 107, 89, 89]
    _, found = run(con, "INTEGER", ages, {"taxonomy": "hipaa_age"}, 1)
    assert all(labels == {str(age) if age < 90 else "90+"} for age, labels in found.items())
    policy, found = run(con, "INTEGER", ages, {"taxonomy": "hipaa_age"}, 4)
    assert all(labels <= {"90+", "*"} for age, labels in found.items() if age >= 90)
    assert ldiv_db.attack(con, "out", policy=policy, known="t").attacks
    with pytest.raises(PolicyError, match="no leaf for 1 value"):
        run(con, "INTEGER", [-1, 5], {"taxonomy": "hipaa_age"}, 1)


def test_birth_years_before_one_are_one(con):
    days = [f"{year}-03-0{1 + year % 7}" for year in range(1920, 1950)]
    settings = {"taxonomy": {"dates": ["year", "decade"], "before": 1936}}
    policy, found = run(con, "DATE", days, settings, 1)
    assert all(labels == {str(d.year) if d.year >= 1936 else "before 1936"} for d, labels in found.items())
    assert ldiv_db.measure(con, "out", policy=policy).loss.lm_mean == 0
    policy, found = run(con, "DATE", days, settings, 3)
    assert ldiv_db.measure(con, "out", policy=policy).loss.lm_mean > 0
    assert {label for labels in found.values() for label in labels} <= {"before 1936", "1930s", "1940s", "*"} | {
        str(year) for year in range(1936, 1950)
    }
    for wrong in ({"dates": ["day", "year"], "before": 1936}, {"prefix": [2], "before": 1936}):
        with pytest.raises(PolicyError, match="goes with `dates:` of years and decades"):
            run(con, "DATE", days, {"taxonomy": wrong}, 1)


def test_countries_lie_in_regions_of_the_un(con):
    values = ["Norway", "Denmark", "Kenya", "Egypt", "Antarctica", "Antarctica"]
    _, found = run(con, "VARCHAR", values, {"taxonomy": "country_name"}, 2, algorithm="topdown")
    expected = [{"Northern Europe"}] * 2 + [{"Africa"}] * 2 + [{"Antarctica"}] * 2
    assert [found[value] for value in values] == expected
    for key, norway in (("alpha2", "NO"), ("alpha3", "NOR")):
        tree = ready.TREES[f"country_{key}"]()
        assert norway in {leaf.label for leaf in tree.leaves} and len(tree.leaves) == 249


def test_a_taxonomy_of_the_catalog_comes_first_and_skip_is_refused(con):
    with pytest.raises(PolicyError, match="it takes no `skip`"):
        run(con, "VARCHAR", ["1", "2"], {"taxonomy": {"name": "hipaa_zip", "skip": 1}}, 1)
    _, found = run(con, "VARCHAR", ["Norway", "Denmark"], {"taxonomy": {"name": "country_name", "skip": 1}}, 2)
    assert found["Norway"] == {"Europe"}
    with pytest.raises(PolicyError, match="hipaa_zip"):
        run(con, "VARCHAR", ["1", "2"], {"taxonomy": "hipaa_zipp"}, 1)


def test_spellings_of_a_quasi_identifier_are_one_value(con):
    values = ["F", " f", "f", "M", "m ", "ﬀ", None, None]
    policy, found = run(con, "VARCHAR", values, {"same": ["trim", "casefold"]}, 1)
    assert found == {"F": {"f"}, " f": {"f"}, "f": {"f"}, "M": {"m"}, "m ": {"m"}, "ﬀ": {"ﬀ"}, None: {None}}
    assert ldiv_db.check(con, "out", policy=policy)[0].holds and ldiv_db.measure(con, "out", policy=policy)
    told = ldiv_db.attack(con, "out", policy=policy, known="t")
    (linked,) = (attack for attack in told.attacks if attack.name == "linking")
    assert (linked.figures["no_class"], linked.figures["one_class"]) == (0, 8)
    _, found = run(con, "VARCHAR", values, {"same": "casefold", "taxonomy": {"prefix": [2, 1]}}, 1)
    assert found["F"] == found["f"] == {"f"} and found[" f"] == {" f"} and found["m "] == {"m "}
    for settings, column in (
        ({"same": "trim", "numeric": True}, "INTEGER"), ({"same": "trim"}, "INTEGER"),
        ({"same": "trim", "taxonomy": "country_name"}, "VARCHAR"), ({"same": "luck"}, "VARCHAR"),
    ):  # fmt: skip
        with pytest.raises(PolicyError, match="same"):
            run(con, column, ["1", "2"], settings, 1)
