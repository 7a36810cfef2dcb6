"""The example of the BSGI paper: Tables 1 to 4."""

import csv
from collections import Counter

import oracle
import pytest
import yaml

import ldiv_db
from ldiv_db.auditing.check import CheckRequest, check
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import read_sensitive
from ldiv_db.requirements import parse_requirement

POSTCODES = {"*": {"1007*": {"10075": {}, "10076": {}, "10077": {}}}}
SEXES = {"*": {"F": {}, "M": {}}}


@pytest.fixture
def people(con, fixtures, tmp_path):
    """Table 1 in the database, its taxonomies beside the policy."""
    path = fixtures / "papers" / "bsgi_table1.csv"
    con.execute(
        "CREATE TABLE people AS SELECT no, name, gender, postcode, CAST(age AS INTEGER) AS age, disease"
        " FROM read_csv(?, all_varchar = true)",
        [str(path)],
    )
    (tmp_path / "postcode.yml").write_text(yaml.safe_dump(POSTCODES))
    (tmp_path / "gender.yml").write_text(yaml.safe_dump(SEXES))
    with path.open() as lines:
        return list(csv.DictReader(lines))


def policy(**changes):
    base = {
        "source": "people",
        "target": "published.people",
        "identifiers": ["name"],
        "quasi_identifiers": {
            "gender": {"taxonomy": {"file": "gender.yml"}},
            "postcode": {"taxonomy": {"file": "postcode.yml"}},
            "age": {"numeric": True},
        },
        "sensitive": ["disease"],
        "keep": ["no"],
        "require": [{"unique_distinct": 2}],
    }
    return base | changes


@pytest.mark.parametrize("select", ["bisect", "greedy"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_seven_rows_become_three_classes(con, people, tmp_path, select, seed):
    result = ldiv_db.run(con, policy(algorithm={"name": "bsgi", "select": select}, seed=seed), folder=tmp_path)
    columns = [c[0] for c in con.execute("SELECT * FROM published.people").description]
    rows = con.execute("SELECT class_id, gender, postcode, age, disease, no FROM published.people").fetchall()
    assert "name" not in columns
    assert sorted(row[5] for row in rows) == [person["no"] for person in people]
    assert result.loss.classes == 3 and result.loss.rows_suppressed == 0
    assert sorted(Counter(row[0] for row in rows).values()) == [2, 2, 3], "the residual row joins a class"
    assert not oracle.violations([(row[0], row[4]) for row in rows], "unique_distinct", 2)
    assert result.search["residue_rows"] == 1
    numbers = {person["no"]: person for person in people}
    for _, gender, postcode, age, disease, no in rows:
        person = numbers[no]
        assert gender in (person["gender"], "*") and disease == person["disease"]
        assert postcode in (person["postcode"], "1007*")
        low, _, high = age.strip("[]").partition(" .. ")
        assert int(low) <= int(person["age"]) <= int(high or low)


def test_residue_may_be_suppressed_instead(con, people, tmp_path):
    result = ldiv_db.run(con, policy(algorithm={"name": "bsgi", "residue": "suppress"}), folder=tmp_path)
    assert (result.loss.rows_published, result.loss.rows_suppressed, result.loss.classes) == (6, 1, 3)
    assert con.execute("SELECT count(*) FROM published.people").fetchone() == (6,)


def test_paper_table_4_passes_the_audit(engine, fixtures):
    released = FileRelation.of(str(fixtures / "papers" / "bsgi_table4.csv"))
    texts = ("unique_distinct:2", "distinct:2", "k:2", "frequency:2", "threshold:0.5")
    (audit,) = check(
        engine,
        released,
        CheckRequest(
            ["gender", "postcode", "age"], read_sensitive("disease"), list(map(parse_requirement, texts)), "group_id"
        ),
    )
    assert audit.holds and (audit.classes, audit.rows) == (3, 7)
    assert all(verdict.worst == pytest.approx(2) for verdict in audit.verdicts[:4])


def test_paper_table_4_fails_for_three(engine, fixtures):
    released = FileRelation.of(str(fixtures / "papers" / "bsgi_table4.csv"))
    (audit,) = check(
        engine,
        released,
        CheckRequest(["gender", "postcode", "age"], read_sensitive("disease"), [parse_requirement("distinct:3")]),
    )
    (verdict,) = audit.verdicts
    assert not audit.holds and (verdict.violating_classes, verdict.violating_rows) == (2, 4)


@pytest.mark.parametrize(("number", "worst_frequency"), [(6, 2), (7, 2)])
def test_tables_of_the_l_alpha_paper(engine, con, fixtures, number, worst_frequency):
    path = fixtures / "papers" / f"l_alpha_table{number}.csv"
    con.execute("CREATE TABLE t AS SELECT * FROM read_csv(?, all_varchar = true)", [str(path)])
    rows = con.execute("SELECT age || country || zip_code, disease FROM t").fetchall()
    for text, name, argument in [
        ("distinct:2", "distinct", 2), ("distinct:3", "distinct", 3), ("frequency:2", "frequency", 2),
        ("frequency:2.1", "frequency", 2.1), ("threshold:1,HIV=0.4", "threshold", {"HIV": 0.4}),
    ]:  # fmt: skip
        (audit,) = check(
            engine,
            Relation.parse("t"),
            CheckRequest(["age", "country", "zip_code"], read_sensitive("disease"), [parse_requirement(text)]),
        )
        expected = oracle.violations(rows, name, argument)
        verdict = audit.verdicts[0]
        assert (verdict.violating_classes, verdict.violating_rows) == (len(expected), sum(expected.values())), text
        if text == "frequency:2":
            assert verdict.holds and verdict.worst == worst_frequency
