"""Taxonomies that come with the program, held against what their sources say, and by runs under them."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.database.errors import PolicyError
from ldiv_db.taxonomies import making

pytestmark = pytest.mark.usefixtures("no_remedies")

#: Of the tabular list of ICD-10-CM, April 2026: codes, their blocks and their chapters.
CODES = {
    "E11.9": ("E08-E13", "E00-E89"), "C4A.0": ("C43-C44", "C00-D49"), "C7A.00": ("C7A-C7A", "C00-D49"),
    "C76.0": ("C76-C80", "C00-D49"), "B20": ("B20-B20", "A00-B99"), "C50.911": ("C50-C50", "C00-D49"),
    "C50": ("C50-C50", "C00-D49"), "M1A.09": ("M05-M14", "M00-M99"), "Z3A.01": ("Z30-Z39", "Z00-Z99"),
    "D3A.0": ("D3A-D3A", "C00-D49"), "V00.1": ("V00-V09", "V00-Y99"), "U07.1": ("U00-U49", "U00-U85"),
}  # fmt: skip


def run(con, column, values, settings, k, **more):
    """The labels of each value when `values` are published in classes of k rows."""
    fill(con, "t", {"id": "INTEGER", "q": column, "s": "VARCHAR"}, [(i, v, str(i)) for i, v in enumerate(values)])
    policy = {
        "source": "t", "target": {"table": "out", "if_exists": "replace"}, "quasi_identifiers": {"q": settings},
        "keep": ["id"], "sensitive": ["s"], "require": [{"k": k}], "algorithm": "topdown", "seed": 1,
    }  # fmt: skip
    ldiv_db.run(con, policy | more)
    found = defaultdict(set)
    for value, label in con.execute("SELECT t.q, out.q FROM t JOIN out USING (id)").fetchall():
        found[value].add(label)
    return policy, found


@pytest.mark.slow
def test_zip_codes_are_three_digits_at_most_and_small_ones_none(con):
    draw = random.Random(5)
    codes = [f"{draw.randrange(100_000):05}" for _ in range(200)] + [f"{small}12" for small in making.SMALL_ZIPS] * 2
    policy, found = run(con, "VARCHAR", codes, {"taxonomy": "hipaa_zip"}, 1)
    assert len(making.SMALL_ZIPS) == len(set(making.SMALL_ZIPS)) == 17
    for code, labels in found.items():
        assert labels == {"000" if code[:3] in making.SMALL_ZIPS else f"{code[:3]}*"}
    policy, found = run(con, "VARCHAR", codes, {"taxonomy": "hipaa_zip"}, 5)
    for code, labels in found.items():
        small = code[:3] in making.SMALL_ZIPS
        assert labels <= ({"000", "*"} if small else {f"{code[:3]}*", f"{code[0]}*", "*"})
    assert ldiv_db.check(con, "out", policy=policy)[0].holds
    assert ldiv_db.measure(con, "out", policy=policy).loss.lm_mean > 0
    told = ldiv_db.attack(con, "out", policy=policy, known="t", downcoding=True)
    (linked,) = (attack for attack in told.attacks if attack.name == "linking")
    assert linked.figures["no_class"] == 0


@pytest.mark.parametrize("k", some([3, 1, len(CODES) * 2]))
def test_codes_of_diagnoses_lie_in_their_block_and_chapter(con, k):
    _, found = run(con, "VARCHAR", [*CODES] * 2, {"taxonomy": "icd10cm"}, k)
    for code, (block, chapter) in CODES.items():
        above = {code, f"{code[:3]}*", code[:3], block, chapter, "*"}
        assert found[code] <= above | {f"{code}*"} and (k > 1 or found[code] == {code})


def refused(con, column, values, settings):
    """The problem with values, half of which may be good; the message shows none of them."""
    with pytest.raises(PolicyError) as found:
        run(con, column, values, settings, 1)
    (problem,) = found.value.problems
    assert not any(str(value) in problem.what for value in values if value is not None and len(str(value)) > 2)
    return problem


#: No codes of ICD-10-CM, but of other editions, groups of codes, and what stands for none.
NO_CODES = [
    "unknown", "", " ", "250.00", "99999", "QQQ", "E11-E14", "E10.40+", "G63.2*", "e11.9", "E11.", "E11.12345",
    " E11.9", "E11 .9", "A29.1", "Z9", "E", "E11.9;I10", "R99.é",
]  # fmt: skip


@pytest.fixture
def few_blocks(monkeypatch):
    """A few blocks of ICD-10-CM: statements with all of them take most of a run's time."""
    kept = {"A00-A09", "B99-B99", "E08-E13", "I10-I1A", "J09-J18"}
    rows = [row for row in making._rows("icd10cm.csv") if row["block"] in kept]
    assert {row["block"] for row in rows} == kept
    monkeypatch.setattr(making, "_rows", lambda file: rows)


@pytest.mark.usefixtures("few_blocks")
def test_what_is_no_code_of_a_diagnosis_is_refused(con):
    problem = refused(con, "VARCHAR", ["E11.9", *NO_CODES * 2, None, "I10"], {"taxonomy": "icd10cm"})
    assert f"has no leaf for {len(NO_CODES)} values of the source" in problem.what
    assert "E11.9 or E119" in problem.hint and "nullif" in problem.hint and "--show-values" in problem.hint


@pytest.mark.usefixtures("few_blocks")
def test_numbers_are_no_codes_of_diagnoses(con):
    assert "for 2 values" in refused(con, "DOUBLE", [250.0, 401.1], {"taxonomy": "icd10cm"}).what


#: ZIP codes as they are stored, and what is published of them at most.
ZIPS = {
    "INTEGER": {2134: "021*", 10001: "100*", 501: "005*", 601: "006*", 3601: "000"},
    "DOUBLE": {2134.0: "021*", 94103.0: "941*", 5901.0: "000"},
    "DECIMAL(7,1)": {"2134.0": "021*", "94103.0": "941*"},
    "VARCHAR": {
        "2134": "021*", "02134": "021*", "02134-1234": "021*", "021341234": "021*", "5901": "000", "05901-0001": "000",
        "94103": "941*", "00501": "005*",
    },
}  # fmt: skip


@pytest.mark.parametrize("column", some(["VARCHAR", "INTEGER", "DOUBLE", "DECIMAL(7,1)"]))
def test_zip_codes_get_the_zeros_back_that_they_lost(con, column):
    policy, found = run(con, column, [*ZIPS[column]] * 2, {"taxonomy": "hipaa_zip"}, 1)
    assert {str(value): labels for value, labels in found.items()} == {
        str(value): {label} for value, label in ZIPS[column].items()
    }
    assert ldiv_db.measure(con, "out", policy=policy).loss.lm_mean == 0
    told = ldiv_db.attack(con, "out", policy=policy, known="t")
    (linked,) = (attack for attack in told.attacks if attack.name == "linking")
    assert linked.figures["no_class"] == 0


def test_what_may_be_another_zip_code_is_refused(con):
    for column, wrong in (
        ("VARCHAR", ["601", "021", "", "2134.0", "02134-12", "02134 1234", "O2134", "SW1A", "021345"]),
        ("INTEGER", [0, -2134, 36, 500, 123456, 21341234]),
        ("DOUBLE", [2134.5, float("nan"), 1e20]),
    ):
        problem = refused(con, column, [10001, *wrong * 2, 94103], {"taxonomy": "hipaa_zip"})
        assert f"has no leaf for {len(wrong)} values of the source" in problem.what and "lpad" in problem.hint


@pytest.mark.parametrize(
    ("column", "values", "prefix", "counts"),
    some([
        pytest.param("INTEGER", [2134, 2135, 10001, 90210, 90210], [5, 3, 1],
                     "2 values (rows: 2) of 4, 2 values (rows: 3) of 5"),
        pytest.param("VARCHAR", ["02134", "90210", None, "n/a"], [5, 3], ""),
        pytest.param("VARCHAR", ["7", "07", "12", "x"], [2, 1],
                     "1 value (rows: 1) of 1, 2 values (rows: 2) of 2 digits"),
        pytest.param("DOUBLE", [1.0, 10.0, 100.0], [3, 1], "1 value (rows: 1) of 2, 1 value (rows: 1) of 3 digits"),
        pytest.param("INTEGER", [12345, 90210], [5, 3, 1], ""),
        pytest.param("VARCHAR", ["AB1", "AB12"], [5, 3], ""),
        pytest.param("INTEGER", [1, 10], [2], ""),
    ]),
)  # fmt: skip
def test_prefixes_of_codes_of_several_lengths_are_told(con, column, values, prefix, counts):
    policy, _ = run(con, column, values, {"taxonomy": {"prefix": prefix}}, 1)
    told = [note for note in ldiv_db.plan(con, policy).reasons if "several lengths" in note]
    assert len(told) == bool(counts) and all(counts in note and 'lpad(CAST("q" AS' in note for note in told)


@pytest.mark.usefixtures("few_blocks")
def test_siblings_meet_in_their_block(con):
    values = ["E08.9", "E13.9", "A00.0", "B99.9", "J09.X1", "J09.X2"]
    _, found = run(con, "VARCHAR", values, {"taxonomy": "icd10cm"}, 2)
    assert [found[value] for value in values] == [{"E08-E13"}] * 2 + [{"A00-B99"}] * 2 + [{"J09*"}] * 2


def test_ages_from_90_on_are_one(con):
    ages = [*range(0, 110, 3), 90, 107, 89, 89]
    _, found = run(con, "INTEGER", ages, {"taxonomy": "hipaa_age"}, 1)
    assert all(labels == {str(age) if age < 90 else "90+"} for age, labels in found.items())
    _, found = run(con, "INTEGER", ages, {"taxonomy": "hipaa_age"}, 4)
    assert all(labels <= {"90+", "*"} for age, labels in found.items() if age >= 90)
    with pytest.raises(PolicyError, match="no leaf for 1 value"):
        run(con, "INTEGER", [-1, 5], {"taxonomy": "hipaa_age"}, 1)


@pytest.mark.parametrize("kind", some(["INTEGER", "DOUBLE", "DECIMAL(6, 2)"]))
def test_plain_numbers_have_open_ends(con, kind):
    def plain(found):
        return {int(value): {label.replace(".00", "") for label in labels} for value, labels in found.items()}

    first = 18 if kind == "INTEGER" else 19  # a step of 2 ** -30 from those below may be given up
    values = [*range(0, 110, 7), 17, first, 89, 90, 90, 107]
    settings = {"numeric": True, "bottom": 18, "top": 90}
    policy, found = run(con, kind, values, settings, 1)
    assert plain(found) == {v: {"<18" if v < 18 else "90+" if v >= 90 else str(v)} for v in values}
    assert ldiv_db.measure(con, "out", policy).loss.lm_mean == 0  # what is beyond an end is one value
    policy, found = run(con, kind, values, settings, 3, algorithm="mondrian")
    found = plain(found)
    labels = set().union(*found.values())
    ends = {label: [v for v, of in found.items() if label in of] for label in labels if "[" not in label}
    assert any("+" in label for label in ends) and any("<" in label for label in ends)
    least, most = 17 if kind == "INTEGER" else 18, 90  # where those below 18 stand
    losses = []
    for value in values:
        (label,) = found[value]
        low, high = min(v for v in values if label in found[v]), max(v for v in values if label in found[v])
        whole = {"<18": high < 18, "90+": low >= 90, "*": low < 18 and high >= 90}
        assert whole.get(label, label in (f"[{low} .. {high}]", f"<={high}", f"{low}+"))
        losses.append((min(max(high, least), most) - min(max(low, least), most)) / (most - least))
    measured = ldiv_db.measure(con, "out", policy)
    assert abs(measured.loss.lm_mean - sum(losses) / len(losses)) < 1e-8
    assert measured.rows_uncovered == 0
    con.execute("CREATE TABLE known AS SELECT 500 AS q UNION ALL SELECT -500 UNION ALL SELECT 18")
    assert ldiv_db.attack(con, "out", policy=policy, known="known").attacks


def test_ends_cut_ranges_off_where_they_lie():
    (root,) = [making.from_ranges((0.5, 2), 0.25, -3, 9, False, (-1.0, 1.1))]
    assert [node.label for node in root.leaves] == [
        "<-1", "[-1 .. -0.75)", "[-0.75 .. -0.25)", "[-0.25 .. 0.25)", "[0.25 .. 0.75)", "[0.75 .. 1.1)", "1.1+"
    ]  # fmt: skip
    assert [n.label for n in making.from_ranges((1, 10), 0, 95, 99, True, (None, 90)).nodes] == ["90+"]
    assert [n.label for n in making.from_ranges((1, 10), 0, 80, 99, True, (None, 81)).nodes] == ["*", "80", "81+"]


def test_ends_that_do_not_fit_are_refused(con):
    for taxonomy, says in (
        ({"ranges": [5], "top": 9, "bottom": 9}, "top: lies above `bottom`"),
        ({"ranges": [5], "top": 9.5}, "top: is a number of at most 1e\\+36, and whole where the column is"),
        ({"ranges": [5], "bottom": -1e37}, "bottom: is a number of at most"),
        ({"prefix": [2], "top": 9}, "taxonomy.top: goes with `ranges:`"),
    ):
        with pytest.raises(PolicyError, match=says):
            run(con, "INTEGER", [1, 5], {"taxonomy": taxonomy}, 1)


@pytest.mark.slow
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
    _, found = run(con, "VARCHAR", values, {"taxonomy": "country_name"}, 2)
    expected = [{"Northern Europe"}] * 2 + [{"Africa"}] * 2 + [{"Antarctica"}] * 2
    assert [found[value] for value in values] == expected
    for key, norway in (("alpha2", "NO"), ("alpha3", "NOR")):
        tree = making.TREES[f"country_{key}"]()
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
