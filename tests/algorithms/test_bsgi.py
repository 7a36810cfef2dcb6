"""BSGI on Adult's 30,162 clean training rows and on some of them, and the tables of the papers."""

import csv
from collections import Counter

import duckdb
import oracle
import pytest
import yaml
from adult import make_adult
from strategies import some

import ldiv_db

pytestmark = pytest.mark.usefixtures("no_remedies")

TREES = ("education", "marital_status", "native_country", "race", "sex", "workclass")
QI = ("age", *TREES)
#: The classes of the paper's Table 5, and the mean loss of a cell, at most.
CLASSES = {2: 15081, 3: 10054, 4: 7540, 5: 6032, 6: 5027, 7: 4308}
LM_AT_MOST = {
    "bisect": {2: 0.05, 4: 0.195, 6: 0.450, 7: 0.550},
    "refine": {2: 0.025, 4: 0.130, 6: 0.300, 7: 0.385},
    "transparent": {2: 0.193, 4: 0.347, 6: 0.453, 7: 0.486},
}
ROWS = 30162


def policy(l, way="bisect", **changes):
    algorithm = {"transparent": True} if way == "transparent" else {"algorithm": {"name": "bsgi", "select": way}}
    keys = {"age": {"numeric": True}} | {name: {"taxonomy": {"file": f"{name}.csv"}} for name in TREES}
    return {
        "source": "adult", "target": {"table": "released", "if_exists": "replace"}, "quasi_identifiers": keys,
        "sensitive": ["occupation"], "require": [{"unique_distinct": l}], "seed": 0,
    } | algorithm | changes  # fmt: skip


def connect(fixtures, threads, order="file_row_number", rows=32561, columns=(*QI, "occupation")):
    con = duckdb.connect(config={"threads": threads})
    make_adult(con, fixtures, columns, rows, order)
    return con


@pytest.fixture(scope="module")
def adult(fixtures):
    with connect(fixtures, 2) as con:
        yield con


@pytest.fixture(scope="module")
def some_adults(fixtures):
    with connect(fixtures, 1, rows=330) as con:
        yield con


def run(con, fixtures, *chosen, **changes):
    result = ldiv_db.run(con, policy(*chosen, **changes), folder=fixtures / "adult" / "taxonomies")
    return result, con.execute("SELECT * FROM released").fetchall()


def assert_valid(con, result, release, l):
    """Every row is published once, in as many classes as there can be, each of l rows or one more."""
    place, rows = len(QI) + 1, con.execute("SELECT occupation FROM adult").fetchall()
    occupations = Counter(value for (value,) in rows)
    assert len(release) == len(rows) and result.loss.rows_suppressed == 0, "no row is lost"
    assert Counter(row[place] for row in release) == occupations
    assert not oracle.violations([(row[:place], row[place]) for row in release], "unique_distinct", l)
    classes = result.loss.classes
    assert classes == len(rows) // l == len(oracle.draws(sorted(occupations.values(), reverse=True), l))
    sizes = Counter(Counter(row[0] for row in release).values())
    assert sizes == +Counter({l: classes - len(rows) % l, l + 1: len(rows) % l}), "residual rows join a class each"


@pytest.mark.slow
@pytest.mark.parametrize("l", CLASSES)
@pytest.mark.parametrize("way", LM_AT_MOST)
def test_table_5(adult, fixtures, way, l):
    result, release = run(adult, fixtures, l, way)
    assert_valid(adult, result, release, l)
    assert result.loss.classes == CLASSES[l] and result.loss.lm_mean <= LM_AT_MOST[way].get(l, 1)


#: What classes of four of some hundred rows lose, which is more than of all.
SOME_LM_AT_MOST = {"refine": 0.24, "transparent": 0.41, "bisect": 0.34, "greedy": 0.38}


@pytest.mark.parametrize("way", some(SOME_LM_AT_MOST))
def test_classes_of_some_rows_are_as_many_and_lose_as_little(some_adults, fixtures, way):
    """The losses are those of the oracle; another seed gives another table."""
    result, release = run(some_adults, fixtures, 4, way)
    assert_valid(some_adults, result, release, 4)
    assert result.loss.lm_mean <= SOME_LM_AT_MOST[way]
    ages = oracle.Numbers(row[0] for row in some_adults.execute("SELECT age FROM adult").fetchall())
    spans = [[int(end) for end in row[1].strip("[]").split(" .. ")] for row in release]
    assert result.loss.lm_by_column["age"] == pytest.approx(float(sum(map(ages.lm, spans)) / len(spans)), rel=1e-6)
    if way == "bisect":
        assert run(some_adults, fixtures, 4, way, seed=2)[1] != release


def test_the_largest_feasible_l_of_some_rows(some_adults, fixtures):
    counts = Counter(some_adults.execute("SELECT occupation FROM adult").fetchall())
    most = counts.total() // max(counts.values())
    with pytest.raises(ldiv_db.InfeasibleError, match=f"largest l of this algorithm is {most}"):
        ldiv_db.plan(some_adults, policy(most + 1), folder=fixtures / "adult" / "taxonomies")
    ready = ldiv_db.plan(some_adults, policy("auto"), folder=fixtures / "adult" / "taxonomies")
    assert (ready.feasibility.l, ready.feasibility.classes) == (most, counts.total() // most)


@pytest.mark.slow
@pytest.mark.parametrize(("sensitive", "l"), [(["occupation", "education"], 3), (["occupation", "relationship"], 2)])
def test_several_sensitive_attributes(fixtures, sensitive, l):
    """A third of all rows have one education, so nearly every class of three needs one; four tenths are husbands."""
    keys = [name for name in TREES if name not in sensitive]
    columns = ["age", *keys, *sensitive, "row_number() OVER () % 5000 AS person"]
    with connect(fixtures, 2, columns=columns) as con:
        changes = {
            "quasi_identifiers": {"age": {"numeric": True}}
            | {name: {"taxonomy": {"file": f"{name}.csv"}} for name in keys},
            "sensitive": sensitive,
            "individual": "person",
        }
        result, _ = run(con, fixtures, l, "refine", **changes)
        published = con.execute(f"SELECT class_id, {', '.join(sensitive)} FROM released").fetchall()
    assert result.loss.classes <= ROWS // l and result.loss.classes >= 0.999 * (ROWS // l)
    assert len(published) + result.loss.rows_suppressed == ROWS and result.loss.rows_suppressed <= 5
    for place in (1, 2):
        assert not oracle.violations([(row[0], row[place]) for row in published], "unique_distinct", l)
    assert [v["name"] for v in result.requirements] == ["unique_distinct", "unique_distinct", "individuals"]
    assert all(verdict["holds"] for verdict in result.requirements)


# -- the papers --------------------------------------------------------------------------------------------

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


def paper_policy(**changes):
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


@pytest.mark.parametrize(("select", "seed"), some([("bisect", 0), ("greedy", 1)]))
def test_seven_rows_become_three_classes(con, people, tmp_path, select, seed):
    result = ldiv_db.run(con, paper_policy(algorithm={"name": "bsgi", "select": select}, seed=seed), folder=tmp_path)
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
    result = ldiv_db.run(con, paper_policy(algorithm={"name": "bsgi", "residue": "suppress"}), folder=tmp_path)
    assert (result.loss.rows_published, result.loss.rows_suppressed, result.loss.classes) == (6, 1, 3)
    assert con.execute("SELECT count(*) FROM published.people").fetchone() == (6,)
