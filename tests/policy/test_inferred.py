"""Quasi-identifiers of which a policy says nothing: what is inferred is what the same policy written out gives."""

import itertools
import json
import random

import pytest
import yaml
from oracle import parse_set
from refusals import refuses

import ldiv_db
from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.database.errors import PolicyError
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.sources import OF_CUTS
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.taxonomy import Tree, number
from tests.strategies import some

COLUMNS = {
    "age": "INTEGER", "height": "DECIMAL(4,1)", "born": "DATE", "seen": "TIMESTAMP", "town": "VARCHAR",
    "smokes": "BOOLEAN", "device": "UUID", "level": "ENUM('low', 'mid', 'high')", "hour": "TIME",
}  # fmt: skip
RANGES = ("age", "height", "born", "seen")
FLAT = {"taxonomy": {"flat": True}}
SETS = FLAT | {"recode": "set"}
BASE = {"source": "people", "target": "released", "sensitive": "disease", "require": [{"distinct": 2}], "seed": 4}
BASE |= {"algorithm": {"name": "bsgi", "select": "bisect"}}


@pytest.fixture
def people(con):
    """Sixty people, some without a town, drawn in SQL."""
    con.execute(
        "CREATE TABLE people AS SELECT CAST(20 + (i * 7) % 23 AS INTEGER) AS age,"
        " CAST(150 + (i * 11) % 37 / 2 AS DECIMAL(4, 1)) AS height, DATE '1960-01-01' + CAST(i * 97 % 41 AS INTEGER)"
        " AS born, TIMESTAMP '2024-02-28 23:00:00' + to_hours(i % 13) AS seen,"
        " CASE WHEN i % 17 > 0 THEN chr(CAST(97 + i * 5 % 9 AS INTEGER)) END AS town, i % 3 = 0 AS smokes,"
        " CAST(concat('00000000-0000-0000-0000-00000000000', i % 4) AS UUID) AS device,"
        " CAST(['low', 'mid', 'high'][1 + i % 3] AS ENUM('low', 'mid', 'high')) AS level,"
        " CAST(concat('0', i % 5, ':30:00') AS TIME) AS hour, concat('d', i % 5) AS disease FROM range(60) AS r(i)"
    )
    return con


def rows_of(con, table="released"):
    return con.execute(f"FROM {table} ORDER BY ALL").fetchall()


def inferred(con, policy):
    return [one.as_dict() for one in ldiv_db.plan(con, policy).resolved.inferred]


def kept_aside(names):
    return [name for name in COLUMNS if name not in names]


def written_out(con, name, folder):
    """What somebody who knows the column would write: ranges, or a file with its values under a root."""
    if name in RANGES:
        return {"numeric": True}
    texts = con.execute(f"SELECT DISTINCT CAST({name} AS VARCHAR) FROM people WHERE {name} IS NOT NULL ORDER BY 1")
    tree = {"*": [text for (text,) in texts.fetchall()]}
    (folder / f"{name}.yml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    return {"taxonomy": {"file": f"{name}.yml"}}


FORMS = [("bsgi", "tree"), ("topdown", "set"), ("tp", "tree")]


@pytest.mark.parametrize(("names", "algorithm", "recode"), some(
    [pytest.param(["town", "age"], *FORMS[0]), pytest.param([*COLUMNS], *FORMS[1]), pytest.param(["level"], *FORMS[2]),
     *(pytest.param([name], *form) for name in COLUMNS for form in FORMS)], first=1,
))  # fmt: skip
def test_a_column_is_published_as_if_it_were_written_out(people, tmp_path, names, algorithm, recode):
    policy = BASE | {"identifiers": kept_aside(names), "algorithm": algorithm, "recode": recode}
    policy |= {"require": [{"frequency": 2}]}
    ldiv_db.run(people, policy | {"quasi_identifiers": names})
    keys = {name: written_out(people, name, tmp_path) for name in names}
    ldiv_db.run(people, policy | {"target": "known", "quasi_identifiers": keys}, tmp_path)
    assert rows_of(people) == rows_of(people, "known") != []


def test_the_ways_to_say_nothing_are_the_same(people):
    policy = BASE | {"identifiers": kept_aside(["town"])}
    for keys in ("town", ["town"], {"town": None}, {"town": {"weight": 1}}):
        planned = inferred(people, policy | {"quasi_identifiers": keys})
        assert planned == [{"column": "town", "as": SETS, "why": "VARCHAR: itself, or a set"}]
    ldiv_db.run(people, policy | {"quasi_identifiers": "town"})
    (noted,) = people.execute("SELECT inferred FROM ldiv.run").fetchone()
    assert json.loads(noted) == planned


def test_every_type_has_a_form(people):
    found = {one["column"]: one["as"] for one in inferred(people, BASE | {"quasi_identifiers": [*COLUMNS]})}
    assert found == {name: {"numeric": True} if name in RANGES else SETS for name in COLUMNS}


@pytest.mark.parametrize(
    ("changes", "as_sets"),
    some([
        ({}, True), ({"recode": "tree"}, False), ({"quasi_identifiers": {"town": {"recode": "tree"}}}, False),
        ({"algorithm": "cuts"}, False), ({"algorithm": "topdown"}, True),
        ({"quasi_identifiers": {"town": FLAT}}, False),
        ({"quasi_identifiers": {"town": FLAT}, "recode": "set"}, True), ({"tables_of": [["town"]]}, True),
        ({"weight": "n"}, False), ({"weight": "n", "algorithm": "topdown"}, True),
        ({"require": [{"k_map": {"k": 2, "population": "people"}}]}, False),
    ], 3),
)  # fmt: skip
def test_sets_are_published_where_nothing_else_is_said(changes, as_sets):
    """Not where labels follow from more than what a class has."""
    base = {key: value for key, value in BASE.items() if key != "algorithm"}
    policy = parse_policy(base | {"quasi_identifiers": ["town", "age"]} | changes)
    assert policy.released.forms["town"] == ("set" if as_sets else "label")


def test_every_algorithm_has_sets_or_is_of_cuts():
    for name in ALGORITHMS:
        algorithm = algorithm_of(name)({})
        assert (name in OF_CUTS) == bool(algorithm.traits.recodes_globally or algorithm.excludes_sets)


@pytest.mark.parametrize("most", some([2, None], 2))
def test_a_cell_tells_the_values_of_its_class_and_no_others(people, most):
    """All values there are, and more than a set may have, are `*`; NULL is one of them."""
    names = ["town", "smokes", "level"]
    policy = BASE | {"identifiers": kept_aside([*names, "device"]), "quasi_identifiers": names, "keep": ["device"]}
    policy |= {"output": {"class_id": True, "types": "text"}, **({"recode": {"set": most}} if most else {})}
    policy |= {"require": [{"distinct": 3}]}
    people.execute("CREATE OR REPLACE TABLE people AS SELECT * REPLACE (CAST(md5(concat(age, born, seen, town, disease,"
                   " smokes, device, rowid)) AS UUID) AS device) FROM people")  # fmt: skip
    ldiv_db.run(people, policy)
    for name in names:
        listed = people.execute(
            f"SELECT class_id, p.{name}, CAST(s.{name} AS VARCHAR) FROM released AS p JOIN people AS s USING (device)"
            " ORDER BY ALL"
        ).fetchall()
        assert len(listed) == 60
        for _, rows in itertools.groupby(listed, key=lambda row: row[0]):
            labels, values = zip(*[row[1:] for row in rows], strict=True)
            is_all = len(set(values)) == len({value for *_, value in listed}) > 1
            if is_all or (most and len(set(values)) > most):
                assert set(labels) == {"*"}
            elif len(set(values)) == 1:
                assert set(labels) == set(values)
            else:
                (label,) = set(labels)
                assert len(parse_set(label)) == len(set(values)) and set(parse_set(label)) == set(values)


def test_other_settings_of_an_open_column_stay(people):
    keys = {"age": {"weight": 2.0}, "town": {"weight": 3.0, "recode": "set"}}
    policy = BASE | {"identifiers": kept_aside(keys), "quasi_identifiers": keys}
    ready = ldiv_db.plan(people, policy)
    assert [axis.weight for axis in ready.encoded.axes] == [2.0, 3.0]
    assert dict(ready.resolved.released.forms) == {"age": "label", "town": "set"}


def test_numbers_that_are_no_ranges(people):
    policy = BASE | {"identifiers": kept_aside(["age"]), "quasi_identifiers": {"age": {"numeric": False}}}
    ldiv_db.run(people, policy | {"output": {"types": "text"}, "recode": "tree"})
    ages = {text for (text,) in people.execute("SELECT DISTINCT CAST(age AS VARCHAR) FROM people").fetchall()}
    assert {row[0] for row in rows_of(people)} <= {*ages, "*"}


def keep_taxonomy(con, name, groups):
    from ldiv_db.database import migrate  # noqa: PLC0415
    from ldiv_db.database.engine import Engine  # noqa: PLC0415

    engine = Engine(con)
    migrate.migrate(engine)
    trees = [Tree(group, [Tree(value) for value in values]) for group, values in groups.items()]
    taxonomies.store(engine, name, number(Tree("*", trees), name))


@pytest.mark.parametrize("column", some(["town", "age"]))
def test_a_taxonomy_of_the_catalog_that_covers_all_values_comes_first(people, column):
    values = people.execute(f"SELECT DISTINCT CAST({column} AS VARCHAR) AS v FROM people ORDER BY v NULLS LAST")
    texts = [text for (text,) in values.fetchall() if text is not None]
    keep_taxonomy(people, column, {"first": texts[:4], "rest": texts[4:]})
    policy = BASE | {"identifiers": kept_aside([column]), "quasi_identifiers": [column]}
    (found,) = inferred(people, policy)
    assert found["as"] == {"taxonomy": column} and "catalog" in found["why"]


def test_a_taxonomy_that_lacks_a_value_is_left_aside_and_that_is_said(people):
    keep_taxonomy(people, "town", {"first": ["a", "b"], "rest": ["c"]})
    policy = BASE | {"identifiers": kept_aside(["town"]), "quasi_identifiers": ["town"]}
    (found,) = inferred(people, policy)
    assert found["as"] == SETS and "lacks values" in found["why"]


def test_a_value_that_is_written_as_the_root_is_refused(people):
    people.execute("UPDATE people SET town = '*' WHERE town = 'a'")
    policy = BASE | {"identifiers": kept_aside(["town"]), "quasi_identifiers": ["town"]}
    with refuses("taxonomy"):
        ldiv_db.run(people, policy)


def test_all_problems_are_reported_together(people):
    keys = {"age": {"recode": "set"}, "twon": {}, "born": {"numeric": True, "taxonomy": "born"}}
    policy = BASE | {"identifiers": kept_aside(["age", "town", "born"]), "quasi_identifiers": keys}
    with pytest.raises(PolicyError) as caught:
        ldiv_db.plan(people, policy)
    found = {problem.key: str(problem) for problem in caught.value.problems}
    wrong = {"quasi_identifiers.age.recode", "quasi_identifiers.twon", "quasi_identifiers.born"}
    assert set(found) == {*wrong, "source"}
    assert "did you mean 'town'" in found["quasi_identifiers.twon"]


def test_the_policy_stays_as_it_was_written(people):
    policy = parse_policy(BASE | {"identifiers": kept_aside(["age"]), "quasi_identifiers": "age"})
    ldiv_db.plan(people, policy)
    assert policy.quasi_identifiers["age"].is_open


def test_what_is_measured_and_attacked_is_what_was_published(people):
    names = ["age", "town"]
    policy = BASE | {"identifiers": kept_aside(names), "quasi_identifiers": names}
    result = ldiv_db.run(people, policy)
    assert ldiv_db.measure(people, "released", policy).loss.lm_mean == result.loss.lm_mean
    found = ldiv_db.attack(people, "released", policy=policy, known="people")
    linking = next(attack for attack in found.attacks if attack.name == "linking")
    assert linking.figures["no_class"] == 0


def test_without_its_source_nothing_can_be_inferred(people):
    policy = BASE | {"identifiers": kept_aside(["town"]), "quasi_identifiers": "town"}
    people.execute("CREATE TABLE released AS SELECT '*' AS town, disease FROM people; DROP TABLE people")
    with pytest.raises(PolicyError, match="how town generalise is inferred from the source"):
        ldiv_db.attack(people, "released", policy=policy)


def test_a_series_infers_too(people):
    people.execute("ALTER TABLE people ADD COLUMN id INTEGER; UPDATE people SET id = rowid")
    policy = BASE | {"identifiers": kept_aside(["age", "town"]), "quasi_identifiers": ["age", "town"], "key": "id"}
    found = ldiv_db.run(people, policy | {"target": {"prefix": "series"}, "require": [{"unique_distinct": 2}]})
    assert [one["as"] for one in found.as_dict()["inferred"]] == [{"numeric": True}, SETS]


def test_a_series_goes_on_with_the_labels_that_it_began_with(people):
    """Also with those of a version that had no sets, whose ledger has no word of them, until the policy says it."""
    people.execute("ALTER TABLE people ADD COLUMN id INTEGER; UPDATE people SET id = rowid")
    policy = BASE | {"identifiers": kept_aside(["age", "town"]), "quasi_identifiers": ["age", "town"], "key": "id"}
    policy |= {"target": {"table": "released"}, "source": {"query": "FROM people WHERE id < 20"}}
    ldiv_db.run(people, policy)
    assert people.execute("SELECT count(*) FROM released WHERE town LIKE '{%'").fetchone() != (0,)
    people.execute("UPDATE released SET town = '*' WHERE town LIKE '{%'")
    people.execute("UPDATE ldiv.release SET report = replace(report, ', \"recode\": \"set\"', '')")
    for last, more, recode in ((40, {}, None), (50, {}, None), (60, {"recode": "set"}, "set")):
        query = {"source": {"query": f"FROM people WHERE id < {last}"}}
        found = ldiv_db.run(people, policy | query | more).as_dict()
        assert found["inferred"][1]["as"].get("recode") == recode
        sets = people.execute("SELECT count(*) FROM released WHERE town LIKE '{%'").fetchone()
        assert (sets != (0,)) == bool(recode)


def test_a_recoding_of_inferred_columns_can_be_written_as_sql(people):
    from ldiv_db.database.engine import Engine  # noqa: PLC0415
    from ldiv_db.recoding.statement import find_run, recoding_sql  # noqa: PLC0415

    names = ["town", "smokes", "level"]
    policy = BASE | {"identifiers": kept_aside(names), "quasi_identifiers": names, "require": [{"frequency": 2}]}
    as_text = {"algorithm": {"name": "cuts", "scheme": "none"}, "output": {"types": "text"}}
    result = ldiv_db.run(people, policy | as_text)
    engine = Engine(people)
    sql = recoding_sql(engine, find_run(engine, result.run_id), "duckdb")
    assert sorted(people.execute(sql).fetchall(), key=repr) == sorted(rows_of(people), key=repr)


def test_many_values_are_no_obstacle(con):
    """More than any level file that `profile` writes would have."""
    draw = random.Random(3)
    rows = [(f"t{draw.randint(0, 4000):04}", f"d{i % 5}") for i in range(3000)]
    con.execute("CREATE TABLE people (town VARCHAR, disease VARCHAR)")
    con.execute("INSERT INTO people SELECT unnest($1), unnest($2)", [list(part) for part in zip(*rows, strict=True)])
    result = ldiv_db.run(con, BASE | {"quasi_identifiers": "town"})
    assert result.loss.rows_published == 3000
