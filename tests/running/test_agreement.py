"""What is planned passes its audit, and run, measure and audit say the same of what is published.

Random tables through every algorithm, requirement, residue, setting of NULLs and of suppressed rows. A policy that is
accepted may not fail its audit after all the work.
"""

import pytest
import tables
from strategies import some

import ldiv_db

UNJUDGED = ("bsgi", "topdown", "mondrian", "peel", "stratified", "incognito", "tds", "tp", "tp_plus", "hilbert")


@pytest.mark.parametrize("name", some(UNJUDGED, 1))
def test_rows_that_are_not_judged_make_no_class_good(name, con):
    """A value beside NULL is one value where NULL is not judged: such rows need a third."""
    values = ["x", None, "y", None, "z", "x", None, "y", "z", "x", "y", "z"]
    tables.fill(con, "source", {"q": "INTEGER", "s": "VARCHAR"}, [(i // 2, s) for i, s in enumerate(values)])
    policy = {
        "source": "source", "target": "released", "quasi_identifiers": {"q": {"taxonomy": {"ranges": [1, 2, 6]}}},
        "sensitive": ["s"], "require": [{"frequency": 2}], "nulls_sensitive": "value", "suppressed": "ignore",
        "algorithm": {"name": name, "form": "ranges"} if name in ("tp", "tp_plus", "hilbert") else name,
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    assert result.loss.rows_published == 12 and result.loss.classes >= 1
    (audit,) = result.audits
    assert audit.holds and (audit.rows, audit.ignored_rows) == (9, 3)
    (again,) = ldiv_db.check(con, "released", ["q"], "s", [{"frequency": 2}], suppressed="ignore")
    assert again.holds and again.rows == 9


def test_cuts_says_before_any_work_that_it_judges_all_rows(con):
    tables.fill(
        con, "source", {"q": "INTEGER", "s": "VARCHAR"}, [(i // 2, "xyz"[i % 3]) for i in range(8)] + [(1, None)]
    )
    policy = {"source": "source", "target": "released", "quasi_identifiers": {"q": {"taxonomy": {"ranges": [1, 8]}}},
              "sensitive": ["s"], "require": [{"frequency": 2}], "nulls_sensitive": "value", "suppressed": "ignore",
              "algorithm": "cuts"}  # fmt: skip
    with pytest.raises(ldiv_db.PolicyError, match="suppressed: ignore leaves rows with NULL unjudged"):
        ldiv_db.plan(con, policy)


def test_what_cannot_be_judged_where_values_are_unknown_is_refused_before_any_work(con):
    tables.fill(con, "source", {"q": "INTEGER", "s": "VARCHAR"}, [(i, "xyz"[i % 3]) for i in range(9)])
    policy = {"source": "source", "target": "released", "quasi_identifiers": {"q": {"numeric": True}},
              "sensitive": ["s"], "require": [{"distinct": 2}], "suppressed": "unknown"}  # fmt: skip
    with pytest.raises(ldiv_db.PolicyError, match="unknown values leave open"):
        ldiv_db.plan(con, policy)


def test_tds_compares_shares_with_those_of_the_whole_table(con):
    """Also where what may be specialised yet has other shares: of 8 to 15 nothing may be, and half of the rest is x."""
    values = {0: "xxxyyyyy", 2: "xxxxxyyy", 4: "xxxxyyyy", 8: "xxxxxxxx", 12: "xxxxyyyy"}
    rows = [(q, value) for q, some in values.items() for value in some]
    tables.fill(con, "source", {"q": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {
        "source": "source", "target": "released", "sensitive": ["s"], "algorithm": "tds",
        "quasi_identifiers": {"q": {"taxonomy": {"ranges": [2, 4, 8, 16]}}},
        "require": [{"t_closeness": {"t": 0.16, "distance": "equal"}}],
    }  # fmt: skip
    assert ldiv_db.run(con, policy).loss.classes == 3
