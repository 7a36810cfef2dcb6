"""The key of a series: another column, or keys that are written otherwise, are refused in all later releases."""

from __future__ import annotations

import pytest
from older_ledger import make_older
from refusals import refuses
from strategies import some
from tables import fill

import ldiv_db

CLASSES = {
    "source": "people", "target": {"prefix": "pub.p"}, "key": "id", "identifiers": ["other"],
    "quasi_identifiers": {"person": {"numeric": True}}, "sensitive": ["s"], "require": [{"unique_distinct": 3}],
    "algorithm": "bsgi",
}  # fmt: skip
GROUPS = CLASSES | {
    "quasi_identifiers": ["person"], "sensitive": {"s": {"l": 3}}, "require": [], "algorithm": "decomposition_plus",
}  # fmt: skip
NOTED = "SELECT key_name, key_kind FROM ldiv.series"


@pytest.fixture
def people(con):
    con.execute("SET threads = 1")
    columns = {"id": "INTEGER", "other": "VARCHAR", "person": "INTEGER", "s": "VARCHAR"}
    fill(con, "people", columns, [(i, f"k{i}", i, "abc"[i % 3]) for i in range(9)])


@pytest.mark.slow
@pytest.mark.parametrize("policy", [CLASSES, GROUPS], ids=["classes", "groups"])
def test_another_key_is_refused_and_one_that_is_written_alike_is_not(con, people, policy, snapshot):
    ldiv_db.run(con, policy)
    for kind in ("BIGINT", "UHUGEINT", "DECIMAL(12,0)", "VARCHAR", "INTEGER"):
        con.execute(f"ALTER TABLE people ALTER id TYPE {kind}")
        figures = ldiv_db.run(con, policy | {"key": "ID"}).figures
        assert (figures["rows_first_published"], figures["counterfeits"]) == (0, 0)
    con.execute("CREATE VIEW padded AS SELECT * REPLACE (lpad(CAST(id AS VARCHAR), 3, '0') AS id) FROM people")
    con.execute("CREATE VIEW named AS SELECT * REPLACE ('P' || id AS id) FROM people")
    for kind in ("DOUBLE", "DECIMAL(10,2)"):
        con.execute(f'CREATE VIEW "{kind}" AS SELECT * REPLACE (CAST(id AS {kind}) AS id) FROM people')
    before = snapshot(con)
    for source in ("padded", "named"):
        with refuses("key"):
            ldiv_db.run(con, policy | {"source": source})
    with refuses("key"):
        ldiv_db.run(con, policy | {"key": "other", "identifiers": ["id"]})
    for kind in ("DOUBLE", "DECIMAL(10,2)"):
        with refuses("key"):
            ldiv_db.run(con, policy | {"source": f'"{kind}"'})
    assert snapshot(con) == before


def test_text_that_has_zeros_in_front_does_not_become_integers(con, people):
    con.execute("CREATE VIEW padded AS SELECT * REPLACE (lpad(CAST(id AS VARCHAR), 3, '0') AS id) FROM people")
    ldiv_db.run(con, GROUPS | {"source": "padded"})
    with pytest.raises(ldiv_db.PolicyError, match="9 of the keys of earlier releases written otherwise"):
        ldiv_db.run(con, GROUPS)


@pytest.mark.parametrize("kind", some(["DOUBLE", "BIGINT"]))
def test_a_series_of_an_older_version_has_its_key_noted_by_the_next_release(con, people, kind):
    ldiv_db.run(con, CLASSES)
    assert con.execute(NOTED).fetchall() == [("id", "integer")]
    make_older(con, 5)
    con.execute(f"ALTER TABLE people ALTER id TYPE {kind}")
    if kind == "DOUBLE":
        with refuses("key"):
            ldiv_db.run(con, CLASSES)
        return
    assert ldiv_db.run(con, CLASSES).figures["rows_first_published"] == 0
    assert con.execute(NOTED).fetchall() == [("id", "integer")]


def test_groups_without_a_key_are_one_release_of_all_rows_whatever_their_order(con, people):
    """Rows that are left over join groups, as there is no next release; nor does another of the source go beside."""
    alone = {key: said for key, said in GROUPS.items() if key != "key"} | {"identifiers": ["id", "other"], "seed": 3}
    con.execute("INSERT INTO people SELECT 10, other, person, 'd' FROM people LIMIT 1")
    con.execute("CREATE TABLE turned AS FROM people ORDER BY id DESC")
    for number, source in enumerate(("people", "turned")):
        independent = {"source": source, "target": {"prefix": f"pub.q{number}"}, "over_time": "independent"}
        assert ldiv_db.run(con, alone | independent).figures["rows_waiting"] == 0
        assert ldiv_db.check(con, f"pub.q{number}_1_qid", policy=alone).holds
    for suffix in ("qid", "sa"):
        assert con.execute(f"FROM pub.q0_1_{suffix}").fetchall() == con.execute(f"FROM pub.q1_1_{suffix}").fetchall()
    for other in (alone, alone | {"target": {"prefix": "pub.q0"}}, GROUPS | {"target": {"prefix": "pub.q0"}}):
        with refuses("key"):
            ldiv_db.run(con, other)
