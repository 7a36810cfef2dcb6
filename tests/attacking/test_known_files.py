"""People whom attackers know from files: a CSV file tells the same as a Parquet file of the same people."""

import random

import pytest
from strategies import some

import ldiv_db

#: A quasi-identifier as a file writes its values, and how a policy has it generalise.
KINDS = {
    "codes": (["01067", "10115", "80331"], {"taxonomy": {"prefix": [5, 3, 1]}}),
    "German dates": (["01.05.1957", "31.12.1958", "17.02.1959"], {"numeric": True}),
    "capitals": (["True", "False"], {}),
    "letters": (["t", "f"], {}),
    "decimals": (["1.50", "2.50", "3.00"], {"numeric": True}),
    "decimal labels": (["1.50", "2.50", "3.00"], {"numeric": False}),
    "powers": (["1e3", "2e3", "25e2"], {"numeric": True}),
    "months": (["01.05.1957", "31.12.1958", "17.02.1959"], {"taxonomy": {"dates": ["month", "year"]}}),
    "American dates": (["05/01/1957", "12/31/1958", "02/17/1959"], {"numeric": True}),
    "timestamps": (["1957-05-01T10:00:00", "1958-12-31T11:30:00", "1959-02-17T12:00:00"], {"numeric": True}),
    "instants": (["1957-05-01T10:00:00Z", "1958-12-31T11:30:00Z", "1959-02-17T12:00:00Z"], {"numeric": True}),
    "times of day": (["10:00", "11:30", "12:00"], {}),
    "words": (["yes", "no"], {}),
}


@pytest.fixture(params=some(KINDS))
def release(request, con, tmp_path):
    """A policy and a release of it, as people.csv and people.parquet have its source."""
    values, settings = KINDS[request.param]
    draw = random.Random(request.param)
    rows = [f"{draw.choice(values)};{draw.randint(20, 60)};{draw.choice(['flu', 'HIV', 'ulcer'])}" for _ in range(30)]
    (tmp_path / "people.csv").write_text("\n".join(["x;age;dx", *rows]))
    con.execute(f"COPY (FROM '{tmp_path / 'people.csv'}') TO '{tmp_path / 'people.parquet'}'")
    policy = {"source": str(tmp_path / "people.csv"), "target": {"table": "released"}, "sensitive": ["dx"],
              "quasi_identifiers": {"x": settings, "age": {"numeric": True}}, "require": [{"k": 3}, {"frequency": 1.2}],
              "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy)
    return con, policy, tmp_path


@pytest.mark.slow
def test_both_files_give_the_same_figures(release):
    con, policy, folder = release
    found = []
    for ending in ("csv", "parquet"):
        asked = ("known", "definetti", "targets") if "taxonomy" in policy["quasi_identifiers"]["x"] else ("known",)
        people = dict.fromkeys(asked, str(folder / f"people.{ending}"))
        found.append(ldiv_db.attack(con, "released", policy=policy, **people))
    by_csv, by_parquet = (
        [(a.name, a.sensitive, a.gains, a.figures.get("no_class")) for a in one.attacks] for one in found
    )
    assert by_csv == by_parquet
    assert {name: lost for name, _, _, lost in by_csv}["linking"] == 0
    assert not found[0].lost and not found[1].lost


PEOPLE = "SELECT i % 9 + 20 AS age, 's' || i % 2 AS sex, 'd' || i % 3 AS dx FROM range(90) t(i)"


@pytest.mark.slow
def test_people_in_no_class_are_warned_of_and_leave_nothing_decided(con):
    con.execute(f"CREATE TABLE people AS {PEOPLE}")
    policy = {"source": "people", "target": "released", "quasi_identifiers": {"age": {"numeric": True}, "sex": {}},
              "sensitive": ["dx"], "require": [{"frequency": 2}], "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy)
    con.execute("CREATE TABLE others AS SELECT * REPLACE (upper(sex) AS sex) FROM people")
    con.execute("CREATE TABLE mixed AS FROM people UNION ALL SELECT * FROM others LIMIT 100")
    good = ldiv_db.attack(con, "released", policy=policy, known="people", population="people")
    assert good.holds and not good.lost
    bad = ldiv_db.attack(con, "released", policy=policy, known="others", targets="others", population="others")
    assert bad.holds is None and bad.undecided
    line = "90 of 90 people stand in no class; no label covers their sex (90)"
    assert bad.lost == tuple(f"{key}: {line}" for key in ("known", "population", "targets"))
    assert [a.holds for a in bad.attacks if a.name in ("linking", "inference", "linkability", "journalist")] == [
        None
    ] * 4
    mixed = ldiv_db.attack(con, "released", policy=policy, known="mixed")
    assert mixed.holds and mixed.lost == ("known: 10 of 100 people stand in no class; no label covers their sex (10)",)
    assert mixed.as_dict()["warnings"] == list(mixed.lost)
    assert f"note: {mixed.lost[0]}" in "\n".join(map(str, mixed.text()))


@pytest.mark.slow
def test_a_report_has_no_good_verdict_by_people_whom_nothing_covers(con):
    con.execute(f"CREATE TABLE people AS {PEOPLE}")
    policy = {"source": "people", "target": "released", "quasi_identifiers": {"age": {"numeric": True}, "sex": {}},
              "sensitive": ["dx"], "require": [{"frequency": 2}], "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy)
    con.execute("CREATE TABLE others AS SELECT * REPLACE (upper(sex) AS sex) FROM people")
    found = ldiv_db.report(con, "released", policy, known="others", population="others")
    verdicts = {row["attack"]: row["verdict"] for row in found.document["verdicts"]}
    assert {verdicts[name] for name in ("linking", "counting")} == {"undecided"}
    assert any("90 of 90 people stand in no class" in line for line in found.document["not_tried"])
    assert "warning: known: 90 of 90 people stand in no class" in "\n".join(map(str, found.text()))
