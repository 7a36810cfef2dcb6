"""Labels as other tools write them: what each covers by `attack` and by `measure`, held against Python.

And labels of floating numbers, which are short, and cover what they stand for.
"""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.database.errors import PolicyError

AGES = range(101)
HALVES = [age + 0.5 for age in AGES] + [20.0, 30.0, 70.0]
DAYS = [date(2020, 1, 1) + timedelta(days=day) for day in range(60)]
CODES = [f"816{number:02}" for number in range(0, 100, 7)] + ["8161", "81", "916", "2134", "81_16", "8%600", "81.12"]

#: Labels of numbers, and the values that they cover.
NUMBERS = {
    "20~29": lambda v: 20 <= v <= 29, "20 ~ 29": lambda v: 20 <= v <= 29, "20,29": lambda v: 20 <= v <= 29,
    "[20,29]": lambda v: 20 <= v <= 29, "20.5,29.5": lambda v: 20.5 <= v <= 29.5, "20—29": lambda v: 20 <= v <= 29,
    " 20-29 ": lambda v: 20 <= v <= 29, "20 to 29 years": lambda v: 20 <= v <= 29,
    "[20, 30)": lambda v: 20 <= v < 30, "[20, 30[": lambda v: 20 <= v < 30, "(20.0, 30.0]": lambda v: 20 < v <= 30,
    "]20, 30]": lambda v: 20 < v <= 30, "(70, Inf]": lambda v: v > 70, "[70, ∞)": lambda v: v >= 70,
    "(-inf, 30.0]": lambda v: v <= 30, "70+": lambda v: v >= 70, "70 and over": lambda v: v >= 70,
    "70 Years and Over": lambda v: v >= 70, "70 or more": lambda v: v >= 70, "at least 70": lambda v: v >= 70,
    ">=70": lambda v: v >= 70, "≥ 70": lambda v: v >= 70, ">70": lambda v: v > 70, "over 70": lambda v: v > 70,
    "older than 70": lambda v: v > 70, "<=30": lambda v: v <= 30, "30 and under": lambda v: v <= 30,
    "up to 30": lambda v: v <= 30, "<30": lambda v: v < 30, "under 30": lambda v: v < 30,
    "Under 30 years": lambda v: v < 30, "less than 30": lambda v: v < 30, "***": lambda v: True,
}  # fmt: skip
#: Labels of days, and the days that they cover; from January 1 to February 29.
TIMES = {
    "2020-01-11~2020-01-20": lambda d: date(2020, 1, 11) <= d <= date(2020, 1, 20),
    "2020-01-11,2020-01-20": lambda d: date(2020, 1, 11) <= d <= date(2020, 1, 20),
    "[2020-01-11, 2020-01-21)": lambda d: date(2020, 1, 11) <= d < date(2020, 1, 21),
    "]2020-01-11, 2020-01-21]": lambda d: date(2020, 1, 11) < d <= date(2020, 1, 21),
    "before 2020-01-11": lambda d: d < date(2020, 1, 11), "<2020-01-11": lambda d: d < date(2020, 1, 11),
    "<= 2020-01-11": lambda d: d <= date(2020, 1, 11), "2020-01-11 and earlier": lambda d: d <= date(2020, 1, 11),
    "since 2020-01-11": lambda d: d >= date(2020, 1, 11), ">=2020-01-11": lambda d: d >= date(2020, 1, 11),
    "2020-01-11 or later": lambda d: d >= date(2020, 1, 11), "after 2020-01-11": lambda d: d > date(2020, 1, 11),
    "(2020-01-11, inf)": lambda d: d > date(2020, 1, 11),
    "(-infinity, 2020-01-11)": lambda d: d < date(2020, 1, 11),
}  # fmt: skip
#: Labels of codes, and the codes that they cover.
STARRED = {
    "816**": lambda c: c.startswith("816") and len(c) == 5, "81***": lambda c: c.startswith("81") and len(c) == 5,
    "81**": lambda c: c.startswith("81") and len(c) == 4, "816*": lambda c: c.startswith("816") and len(c) > 3,
    "8160*": lambda c: c.startswith("8160") and len(c) > 4, "81_**": lambda c: c.startswith("81_") and len(c) == 5,
    "**607": lambda c: c.endswith("607") and len(c) == 5, "*134": lambda c: c.endswith("134") and len(c) == 4,
    "*****": lambda c: True,
}  # fmt: skip
CASES = [
    *[("INTEGER", AGES, label, covers, {"numeric": True}) for label, covers in NUMBERS.items()],
    *[("DOUBLE", HALVES, label, covers, {"numeric": True}) for label, covers in list(NUMBERS.items())[4::3]],
    *[("DATE", DAYS, label, covers, {"numeric": True}) for label, covers in TIMES.items()],
    *[("TIMESTAMP", DAYS, label, covers, {"numeric": True}) for label, covers in list(TIMES.items())[::4]],
    *[("TIMESTAMPTZ", DAYS, label, covers, {"numeric": True}) for label, covers in list(TIMES.items())[5::4]],
    *[("VARCHAR", CODES, label, covers, {"taxonomy": {"prefix": [5, 3, 1]}}) for label, covers in STARRED.items()],
    *[("VARCHAR", CODES, label, covers, {}) for label, covers in list(STARRED.items())[::3]],
]


def policy_of(con, column, values, label, settings):
    """The policy of a source of the values, each in one row, of which one row with a label is published."""
    con.execute("SET TimeZone = 'UTC'")
    fill(con, "t", {"q": column, "s": "VARCHAR"}, [(value, str(i % 3)) for i, value in enumerate(values)])
    fill(con, "out", {"q": "VARCHAR", "s": "VARCHAR"}, [(label, "0")])
    return {"source": "t", "quasi_identifiers": {"q": settings}, "sensitive": ["s"], "require": [{"k": 2}]}


#: Every pass has every twenty-seventh.
FIRST = [*CASES[::27], *(case for number, case in enumerate(CASES) if number % 27)]


@pytest.mark.parametrize(
    ("column", "values", "label", "covers", "settings"), some([pytest.param(*case) for case in FIRST], len(CASES[::27]))
)
def test_labels_of_other_tools_cover_what_they_say(con, column, values, label, covers, settings):
    policy = policy_of(con, column, values, label, settings)
    told = ldiv_db.attack(con, "out", policy=policy, known="t")
    (linked,) = (attack for attack in told.attacks if attack.name == "linking")
    expected = sum(map(covers, values))
    assert len(values) - linked.figures["no_class"] == expected
    measured = ldiv_db.measure(con, "out", policy=policy, kl=True)
    assert measured.rows_uncovered == sum(not covers(v) or i % 3 > 0 for i, v in enumerate(values))


def test_labels_that_may_be_something_else_are_counted(con):
    numeric, prefix = {"numeric": True}, {"taxonomy": {"prefix": [5, 3, 1]}}
    for column, values, label, settings in (
        *(("INTEGER", AGES, label, numeric) for label in ("1,500", "29~20", "20 and 29", "over")),
        ("DATE", DAYS, "11.01.2020~20.01.2020", numeric),
        *(("VARCHAR", CODES, label, prefix) for label in ("9999*", "8*6*0")),
    ):
        policy = policy_of(con, column, values, label, settings)
        with pytest.raises(PolicyError, match="1 different published value"):
            ldiv_db.measure(con, "out", policy=policy)


def test_stars_are_those_of_a_node_that_the_taxonomy_has(con, tmp_path):
    (tmp_path / "ward.csv").write_text("Surgery;Surgery;*\nSurgery 2;Surgery;*\nSurgery 3;Other;*\nTrauma;Other;*\n")
    values = ["Surgery", "Surgery 2", "Surgery 3", "Trauma"]
    for label, covered in (("Surgery*", 2), ("Surgery **", 0), ("Traum*", 1)):
        policy = policy_of(con, "VARCHAR", values, label, {"taxonomy": {"file": "ward.csv"}})
        if not covered:
            with pytest.raises(PolicyError):
                ldiv_db.attack(con, "out", policy=policy, known="t", folder=tmp_path)
            continue
        told = ldiv_db.attack(con, "out", policy=policy, known="t", folder=tmp_path)
        (linked,) = (attack for attack in told.attacks if attack.name == "linking")
        assert len(values) - linked.figures["no_class"] == covered


@pytest.mark.slow
@pytest.mark.parametrize("column", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("k", [1, 4])
def test_labels_of_floats_are_short_and_read_again(con, column, k):
    """Whole numbers that are doubles only as some are missing look whole; 3.1 of a FLOAT is no 3.0999999."""
    numbers = [15, 26, 33, 3.1, 0.1, -0.5, 2.7, 1e-5, 3300, 7.25, None, 0, -2]
    fill(con, "t", {"q": column, "s": "VARCHAR"}, [(v, str(i % 3)) for i, v in enumerate(numbers * 3)])
    policy = {
        "source": "t", "target": "out", "quasi_identifiers": {"q": {"numeric": True}}, "sensitive": ["s"],
        "require": [{"k": k}], "algorithm": "topdown", "seed": 1,
    }  # fmt: skip
    ldiv_db.run(con, policy)
    labels = [label for (label,) in con.execute("SELECT DISTINCT q FROM out WHERE q IS NOT NULL").fetchall()]
    ends = {end for label in labels for end in label.strip("[]").split(" .. ")} - {"*"}
    texts = {str(v) for v in numbers if v is not None and abs(v) > 1e-4} | {"1e-05", "0"}
    assert ends <= texts and (k > 1 or ends == texts)
    told = ldiv_db.attack(con, "out", policy=policy, known="t")
    (linked,) = (attack for attack in told.attacks if attack.name == "linking")
    assert linked.figures["no_class"] == 0
    measured = ldiv_db.measure(con, "out", policy=policy)
    assert (measured.rows_uncovered, measured.rows_unmatched) == (0, 0)
    assert all(audit.holds for audit in ldiv_db.check(con, "out", policy=policy))
