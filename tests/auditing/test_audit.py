"""The second reading of an audit: it agrees, refuses what either gets wrong, and says what it leaves out."""

import json
import random
from pathlib import Path

import duckdb
import oracle
import pytest
import random_cases
from strategies import draws, search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db import api
from ldiv_db.auditing import second_reading
from ldiv_db.auditing.check import CheckRequest, check
from ldiv_db.auditing.subject import Pair
from ldiv_db.database import dbt_macros, templates
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError
from ldiv_db.database.names import Relation
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import parse_policy, read_requirements, read_sensitive
from ldiv_db.publishing import draft
from ldiv_db.recoding.units import with_numbers

POLICY = {
    "source": "patients",
    "identifiers": ["cost"],
    "target": {"table": "release", "if_exists": "replace"},
    "quasi_identifiers": {"age": {"numeric": True}, "sex": {}},
    "sensitive": ["disease"],
    "require": [{"distinct": 3}],
    "algorithm": "mondrian",
}
#: Each reading, broken: the module that reads the file, the file, what it says and what it is to say.
FIRST = (
    templates,
    "requirements/distinct.sql.j2",
    "least(s.values - {{ l }}, s.rows - s.largest - ({{ l }} - 1)) END",
    "s.values - {{ l }} + 2 END",
)
SECOND = (dbt_macros, "dbt/macros/requirements/measures.sql", '"values_n >= " ~ l', '"values_n > 3 + " ~ l')


def make_patients(con):
    con.execute(
        "CREATE TABLE patients AS SELECT i % 30 AS age, ['f', 'm'][i % 2 + 1] AS sex,"
        " 'd' || (i % 30 + i // 60) % 5 AS disease, (i * 37) % 11 AS cost FROM range(120) AS t(i)"
    )


@pytest.fixture
def patients(con):
    make_patients(con)
    return con


@pytest.fixture(scope="module")
def released():
    """Patients and people's stays, each with a release, which no run that fails changes."""
    with duckdb.connect() as con:
        make_patients(con)
        api.run(con, {**POLICY, "require": [{"k": 30}]})
        con.execute(STAYS)
        api.run(con, {**OF_PEOPLE, "target": "of_people"})
        yield con


def judged(con, table, qi, sensitive, require):
    """The verdicts of both readings."""
    audits = ldiv_db.check(con, table, qi, sensitive, require, twice=True)
    return [verdict for audit in audits for verdict in audit.verdicts]


@search(4, seed=seeds)
def test_both_readings_agree_on_random_tables(con, engine, seed):
    case = random_cases.random_case(random.Random(seed + 2300), seed)
    for statement in random_cases.statements(case):
        con.execute(statement)
    asked = read_sensitive(case["sensitive"]), read_requirements(case["require"])
    for audit in check(engine, Relation((case["table"],)), CheckRequest(case["qi"], *asked, twice=True)):
        assert [verdict.second for verdict in audit.verdicts] == [v.violating_classes for v in audit.verdicts]
        assert not any(verdict.once for verdict in audit.verdicts)


#: What the class a, a, b, b just meets, and what it just violates.
AT_THE_BOUND = [
    ("k:4", 0), ("k:5", 1), ("risk:0.25", 0), ("risk:0.24", 1), ("distinct:2", 0), ("distinct:3", 1), ("entropy:2", 0),
    ("frequency:2", 0), ("frequency:2.1", 1), ("alpha_k:alpha=0.5,k=4", 0), ("alpha_k:alpha=0.49,k=4", 1),
    ("p_sensitive:p=2,k=4", 0), ("p_sensitive:p=2,k=5", 1), ("recursive:c=1,l=2", 1), ("recursive:c=1.1,l=2", 0),
    ("recursive:c=1.1,l=3", 1), ("threshold:0.5", 0), ("threshold:0.49", 1),
]  # fmt: skip


def test_both_readings_agree_at_the_bound(con):
    con.execute("CREATE TABLE t AS SELECT 1 AS age, s FROM (VALUES ('a'), ('a'), ('b'), ('b')) AS v(s)")
    found = judged(con, "t", ["age"], ["s"], [require for require, _ in AT_THE_BOUND])
    assert [(v.violating_classes, v.second) for v in found] == [(wrong, wrong) for _, wrong in AT_THE_BOUND]


@pytest.mark.parametrize("require", [{"k": 6, "others_known": True}, {"distinct": 5, "others_known": True}])
def test_both_know_the_other_attributes(patients, require):
    verdicts = judged(patients, "patients", ["sex"], ["disease", "cost"], require)
    assert [v.second for v in verdicts] == [v.violating_classes for v in verdicts]
    assert any(v.violating_classes for v in verdicts)


def test_both_read_lists(con):
    con.execute("CREATE TABLE t (q INTEGER, s VARCHAR[])")
    con.execute("INSERT INTO t SELECT i // 4, ([['a'], ['a', 'b'], [], ['b']])[i % 4 + 1] FROM range(12) AS t(i)")
    for verdict in judged(con, "t", ["q"], ["s"], ["distinct:5", "frequency:3", "t_closeness:0.1"]):
        assert verdict.second == verdict.violating_classes


def test_what_the_package_does_not_read_is_named_as_judged_once(patients):
    shown = {"beta_likeness": 2, "proximity": {"epsilon": 2, "m": 2}, "threshold": {"default": 0.5, "0": 0.1}}
    (audit,) = ldiv_db.check(patients, "patients", "sex", "cost", [{n: v} for n, v in shown.items()], twice=True)
    assert [(verdict.second, verdict.once) for verdict in audit.verdicts] == [(None, second_reading.UNREAD)] * 3
    assert all(line.startswith("not judged again: ") for line in audit.readings) and len(audit.readings) == 3


def test_what_is_said_quotes_no_value(patients):
    settings = {"disease": {"harmless": ["d4"]}}
    require = [{"frequency": 2}, {"threshold": {"default": 0.9, "d3": 0.1}}, {"k": 2}]
    (audit,) = ldiv_db.check(patients, "patients", "sex", settings, require, twice=True)
    said = json.dumps([audit.readings, [(v.second, v.once) for v in audit.verdicts]])
    assert "d3" not in said and "d4" not in said
    assert [verdict.second is None for verdict in audit.verdicts] == [True, True, False]


def test_suppressed_rows_and_pairs_are_judged_once(patients):
    (audit,) = ldiv_db.check(patients, "patients", "sex", "disease", "distinct:2", suppressed="ignore", twice=True)
    assert audit.verdicts[0].once == second_reading.UNREAD
    patients.execute("CREATE TABLE qit AS SELECT age, age // 3 AS g FROM patients")
    patients.execute("CREATE TABLE st AS SELECT age // 3 AS g, disease FROM patients")
    pair = Pair(Relation(("st",)), "g")
    asked = read_sensitive(["disease"]), read_requirements("distinct:2")
    (audit,) = check(Engine(patients), Relation(("qit",)), CheckRequest([], *asked, pair=pair, twice=True))
    assert audit.verdicts[0].once == second_reading.UNREAD


@pytest.mark.parametrize(
    ("says", "counts"),
    [
        ({"individual": "cost"}, True),
        ({"individual": {"column": "cost", "rows": "together"}, "algorithm": "bsgi"}, True),
        ({"individual": "cost", "algorithm": {"name": "bsgi"}}, False),
        ({}, False),
    ],
)
def test_the_package_judges_no_policy_that_counts_people(patients, says, counts):
    policy = {"quasi_identifiers": ["sex"], "require": [{"k": 2}], **says}
    asked = Engine(patients), Relation(("patients",)), "meets_policy"
    assert parse_policy({"source": "patients", "target": "t", **policy}).counts_people is counts
    if not counts:
        assert dbt_macros.count_failures(*asked, policy=policy) == 0
        return
    with pytest.raises(dbt_macros.NotReadError, match="cannot judge individual"):
        dbt_macros.count_failures(*asked, policy=policy)


#: Each reading of sequences, broken so that all people, or those whose first rows are alike, are of one class.
FIRST_OF_PEOPLE = (templates, "auditing/sign_rows.sql.j2", "coalesce(q.labels, s.label) AS", "'' AS")
SECOND_OF_PEOPLE = (
    dbt_macros,
    "dbt/macros/requirements/violations.sql",
    "order by turn, {{ columns }}) as c_all",
    "order by turn, {{ columns }})[1:0] as c_all",
)
#: The plan of people's rows, broken: the rows of a class are of one each.
PLANNED = ("recoding/input/part_positions.sql.j2", "a.class_id *", "m.unit_id *")
STAYS = """
    CREATE TABLE stays AS
    SELECT p AS patient, p AS day, 20 + p % 7 AS age, 'd' || p % 7 % 4 AS disease FROM range(40) AS t(p)
    UNION ALL SELECT p, 100 + p, 40 + p % 5, 'd' || (p + 3) % 11 FROM range(20) AS t(p)
"""
OF_PEOPLE = {
    "source": "stays",
    "target": {"table": "release", "if_exists": "replace"},
    "quasi_identifiers": {"age": {"numeric": True}},
    "sensitive": ["disease"],
    "individual": {"column": "patient", "rows": "aligned", "order": "day"},
    "require": [{"k": 4}],
    "algorithm": "topdown",
    "over_time": "independent",
    "seed": 3,
}


def stays(rng, people):
    """Rows (place, disease, patient, position), of a few nobody is known."""
    return [
        (rng.randrange(3), rng.choice("abcd"), person if rng.random() < 0.9 else None, position)
        for person in range(people)
        for position in range(rng.randint(1, 3))
    ]


@search(2, draw=draws)
def test_both_readings_count_people_and_their_sequences(con, draw):
    rows = stays(draw, draw.randrange(4, 20))
    fill(con, "stays", {"place": "INT", "disease": "VARCHAR", "patient": "INT", "position": "INT"}, rows)
    named = [(p, d, who if who is not None else -n, at) for n, (p, d, who, at) in enumerate(rows, 1)]
    asked = {"k": 3, "distinct": 2, "frequency": 2, "entropy": 1.5, "recursive": {"c": 3, "l": 2}}
    for position, known in (("position", oracle.sequences(named)), (None, [row[:3] for row in named])):
        (audit,) = ldiv_db.check(
            *(con, "stays", "place", "disease", [{name: argument} for name, argument in asked.items()]),
            **{"twice": True, "individual": "patient", "position": position},
        )
        for verdict, (name, argument) in zip(audit.verdicts, asked.items(), strict=True):
            assert verdict.violating_classes == len(oracle.people_violations(known, name, argument)), name
            assert verdict.second == (None if name == "recursive" else verdict.violating_classes)


@pytest.mark.parametrize("which", some([(FIRST_OF_PEOPLE,), (SECOND_OF_PEOPLE,)]))
def test_a_wrong_reading_of_people_publishes_nothing(released, broken, snapshot, which):
    """Each person is a class of their own then, which one of the readings overlooks and the other does not."""
    before = snapshot(released)
    broken(*which)
    broken(templates, *PLANNED)
    with pytest.raises(AuditError, match="one of the two is wrong"):
        api.run(released, {**OF_PEOPLE, "require": [{"k": 5}]})
    assert snapshot(released) == before


def test_a_class_id_that_nobody_names_tells_no_classes_apart(patients):
    patients.execute("CREATE TABLE t AS SELECT *, row_number() OVER () AS class_id FROM patients")
    (apart,) = judged(patients, "t", ["sex", "class_id"], ["disease"], "k:2")
    (together,) = judged(patients, "t", ["sex"], ["disease"], "k:2")
    assert (apart.second, together.second) == (120, 0)


@pytest.mark.parametrize("target", some(["release.csv", {"table": "release"}, "release.parquet", "release.duckdb"]))
def test_runs_are_read_twice_wherever_they_go(patients, tmp_path, target):
    if target == "release.duckdb":
        target = {"file": target, "table": "release"}
    result = api.run(patients, {**POLICY, "target": target}, tmp_path)
    assert [(entry["second_reading"], entry["read_once"]) for entry in result.as_dict()["requirements"]] == [(0, None)]
    assert result.audits[0].readings == [
        "judged again, by other SQL (the dbt package's tests): the same verdict on distinct l=3"
    ]


@pytest.mark.parametrize("which", some([(SECOND,), (FIRST,)]))
def test_a_wrong_reading_publishes_nothing(released, broken, snapshot, which):
    before = snapshot(released)
    broken(*which)
    found = r"0 of \d+ classes violate it \(0 rows\); a second reading found [1-9]\d*: one of the two is wrong"
    with pytest.raises(AuditError, match=rf"nothing was published:\ndistinct l=3 on disease: {found}"):
        api.run(released, POLICY)
    assert snapshot(released) == before


@pytest.mark.parametrize("which", some([(FIRST,), (SECOND,)]))
def test_a_wrong_reading_leaves_no_file(patients, broken, tmp_path, which):
    broken(*which)
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(AuditError, match="a second reading found"):
        api.run(patients, {**POLICY, "target": "release.parquet"}, into)
    assert list(into.iterdir()) == []


@pytest.mark.parametrize("which", some([(FIRST,), (SECOND,)]))
def test_check_says_that_its_readings_disagree(patients, broken, which):
    asked = ["patients", ["age", "sex"], "disease", "distinct:2" if which is SECOND else "distinct:4"]
    before = ldiv_db.check(patients, *asked, twice=True)
    assert before[0].verdicts[0].agrees
    broken(*which)
    (audit,) = ldiv_db.check(patients, *asked, twice=True)
    (verdict,) = audit.verdicts
    assert not (audit.holds or verdict.agrees) and verdict.second != verdict.violating_classes
    assert f"a second reading found {verdict.second:,}: one of the two is wrong" in audit.readings[0]
    assert ldiv_db.check(patients, *asked)[0].verdicts[0].second is None


def test_large_releases_are_read_once_and_small_ones_always(patients, monkeypatch):
    def once(require, sensitive="disease"):
        policy = {
            **POLICY,
            "identifiers": [],
            "keep": [{"cost": "disease"}.get(sensitive, "cost")],
            "sensitive": [sensitive],
            "require": [require],
        }
        return [verdict.once for verdict in api.run(patients, policy).audits[0].verdicts]

    monkeypatch.setattr("ldiv_db.auditing.second_reading.CHEAP", 119)
    assert once({"distinct": 3}) == ["reading it again would take 120 rows, more than 119"]
    assert ldiv_db.check(patients, "release", ["age", "sex"], "disease", "k:1", twice=True)[0].verdicts[0].second == 0
    # Compared with all values: eleven of them in each of more than eleven classes.
    monkeypatch.setattr("ldiv_db.auditing.second_reading.CHEAP", 120)
    (said,) = once({"t_closeness": {"t": 1, "distance": "ordered"}}, "cost")
    assert said is not None and int(said.split()[5]) % 11 == 0


def test_the_package_is_where_the_program_is():
    assert (Path(resource_folder("sql")) / "dbt" / "dbt_project.yml").is_file()


# -- between the plan and the table ----------------------------------------------------------------------

#: Four people with two rows each, on two days.
VISITS = [(i // 2, i % 2, 30 + 10 * (i // 4), "abcd"[(i + i // 2) % 4]) for i in range(8)]
OF_VISITS = {
    "source": "visits", "target": "released", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["dx"],
    "require": [{"distinct": 2}], "algorithm": "topdown", "seed": 1,
}  # fmt: skip
APART = OF_VISITS | {"individual": "person", "identifiers": ["day"]}
ALIGNED = OF_VISITS | {
    "individual": {"column": "person", "rows": "aligned", "order": "day"}, "identifiers": ["day"],
    "output": {"person": "who", "position": "turn"},
}  # fmt: skip


@pytest.fixture
def visits(con):
    fill(con, "visits", {"person": "INTEGER", "day": "INTEGER", "age": "INTEGER", "dx": "VARCHAR"}, VISITS)


def refused(con, policy):
    with pytest.raises(AuditError) as error:
        ldiv_db.run(con, policy)
    tables = con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'released'").fetchone()
    assert tables == (0,)
    return str(error.value)


def test_a_table_that_is_not_the_plan_is_refused(visits, con, monkeypatch):
    write = draft.write_rows

    def changed(engine, where, *args):
        told = write(engine, where, *args)
        engine.execute(f"UPDATE {where.sql()} SET dx = 'a' WHERE dx = 'b'")
        return told

    monkeypatch.setattr(draft, "write_rows", changed)
    assert "what was written is not what people were counted in" in refused(con, APART)


def test_a_number_of_two_people_is_refused(visits, con, monkeypatch):
    def numbered(*given):
        engine, found = given[0], with_numbers(*given)
        number = found[0].kept[0].alias.sql()
        engine.execute(f"UPDATE {found[0].rows.sql()} SET {number} = 1 WHERE {number} = 2")
        return found

    monkeypatch.setattr("ldiv_db.running.classes.with_numbers", numbered)
    assert "of people, or of their rows, are not theirs alone" in refused(con, ALIGNED)
