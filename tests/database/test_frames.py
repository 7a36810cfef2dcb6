"""Relations and Arrow streams in place of a database or a table; frames of libraries are in `tests/notebooks`."""

import copy
import gc
import pickle
import random
import weakref
from collections import Counter

import duckdb
import pytest

import ldiv_db
from ldiv_db.database import frames
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError
from tests.refusals import refuses
from tests.strategies import some
from tests.tables import fill

POLICY = {
    "quasi_identifiers": ["age", "sex"], "sensitive": ["disease"], "require": [{"distinct": 2}],
    "algorithm": "mondrian", "seed": 1,
}  # fmt: skip
COLUMNS = {"age": "INTEGER", "sex": "VARCHAR", "disease": "VARCHAR"}
DRAW = random.Random(5)
ROWS = [
    (DRAW.randint(1, 60), DRAW.choice(["f", "m", None]), DRAW.choice(["flu", "HIV", "ü", "cold"])) for _ in range(24)
]
MANY_TYPES = """
    SELECT i AS n, (i * 10::HUGEINT ** 30)::HUGEINT AS huge, md5(i::VARCHAR)::UUID AS u, i::UHUGEINT AS uhuge,
        ['a', 'b', NULL][i % 3 + 1]::ENUM('b', 'a') AS e, ('[' || i || ']')::JSON AS j, (i / 4)::DECIMAL(9, 2) AS d,
        TIMESTAMPTZ '2020-01-01' + to_days(i::INTEGER) AS z, TIME '10:00' AS t, INTERVAL (i) DAY AS v,
        {'x': i::HUGEINT, 'y': [i::VARCHAR::ENUM('0', '1', '2')]} AS s, i % 2 = 0 AS b, '\\xAA'::BLOB AS bytes
    FROM range(3) AS r(i)
"""


class Stream:
    """An object that gives its rows once each time it is asked, as libraries that we do not know do."""

    def __init__(self, relation):
        self.relation = relation

    def __arrow_c_stream__(self, schema=None):
        return self.relation.__arrow_c_stream__(schema)


@pytest.fixture
def people(con, table):
    """A relation of `con`."""
    table("people", COLUMNS, ROWS)
    return con.table("people")


@pytest.fixture(scope="module")
def of_table():
    """The result of a run on the table itself, and the release."""
    with duckdb.connect() as con:
        fill(con, "people", COLUMNS, ROWS)
        result = ldiv_db.run(con, {**POLICY, "source": "people", "target": "expected"})
        return result, Counter(con.execute("FROM expected").fetchall())


@pytest.fixture
def expected(of_table):
    return of_table[1]


def released(result):
    return Counter(result.table().fetchall())


def test_a_run_on_a_frame_releases_what_one_on_the_table_does_whatever_the_policy_calls_it(people, expected):
    policy = ldiv_db.parse_policy({**POLICY, "source": "ward.patients", "target": "published.patients"})
    result = ldiv_db.run(Stream(people), policy)
    assert released(result) == expected
    assert (policy.source, result.target) == ("ward.patients", "published.patients")
    assert all(audit.holds for audit in result.audits)


def test_one_frame_of_several_is_named_and_nothing_but_the_release_is_kept_in_memory(con, people, expected):
    several, kept = {"other": con.sql("SELECT 1 AS x"), "people": people}, []
    listener = ldiv_db.Listener(on_statement=kept.append)
    result = ldiv_db.run(several, {**POLICY, "source": "people"}, listener=listener)
    assert released(result) == expected
    assert (result.source, result.target) == ("people", "release")
    held = result.place._kept
    tables = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
    assert kept and held.execute(tables).fetchall() == [("release",)]
    assert held.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone() == (0,)
    with refuses("source"):
        ldiv_db.run(several, POLICY)
    with pytest.raises(PolicyError, match="no table or view poeple"):
        ldiv_db.run(several, {**POLICY, "source": "poeple"})


@pytest.mark.parametrize("name", some(["out.duckdb", "out.parquet", "out.csv"]))
def test_a_release_of_a_frame_goes_to_a_file(people, expected, tmp_path, name):
    target = {"file": name, **({"table": "clinic.people"} if name.endswith("duckdb") else {})}
    result = ldiv_db.run(people, {**POLICY, "target": target}, folder=tmp_path)
    assert released(result) == expected and (tmp_path / name).is_file()


def test_the_engine_lets_go_of_a_frame(con, people):
    class Held(Stream):
        pass

    held = Held(people)
    gone = weakref.ref(held)
    with duckdb.connect() as other:
        ldiv_db.check(other, held, "age", "disease", "distinct:1")
        del held
        assert gone() is None


def test_the_release_of_a_table_is_a_relation_of_its_connection(con, people):
    result = ldiv_db.run(con, {**POLICY, "source": "people", "target": "published.people"})
    assert released(result) == Counter(con.execute("FROM published.people").fetchall())
    con.execute("DROP TABLE published.people")
    with pytest.raises(DatabaseError, match=r"published\.people cannot be read here"):
        result.table()


def test_a_result_keeps_no_connection_of_its_caller_open_and_can_be_copied(tmp_path):
    con = duckdb.connect(str(tmp_path / "w.duckdb"))
    con.execute("CREATE TABLE people AS SELECT * FROM range(10) AS t(age), (VALUES ('a'), ('b')) AS v(disease)")
    policy = {**POLICY, "quasi_identifiers": ["age"], "source": "people"}
    result = ldiv_db.run(con, {**policy, "target": "r"})
    assert len(copy.deepcopy(result).table().fetchall()) == 20
    gone = "r cannot be read here: its connection is gone"
    with pytest.raises(DatabaseError, match=gone):
        pickle.loads(pickle.dumps(result)).table()
    del con
    gc.collect()
    with pytest.raises(DatabaseError, match=gone):
        result.table()
    of_a_file = ldiv_db.run(tmp_path / "w.duckdb", {**policy, "target": "s", "over_time": "independent"})
    with pytest.raises(DatabaseError, match="s cannot be read here"):
        of_a_file.table()


def test_checks_profiles_measures_and_attacks_take_frames_as_objects(con, people, of_table):
    result, rows = of_table
    fill(con, "published", dict.fromkeys(COLUMNS, "VARCHAR"), list(rows.elements()))
    release, policy = con.table("published"), {**POLICY, "source": people}
    keys = ["age", "sex"]
    assert ldiv_db.check({"a": release, "b": people}, "a", keys, "disease", ["distinct:2"]).holds
    assert ldiv_db.profile(people, sensitive="disease").as_dict() == {
        **ldiv_db.profile(con, "people", sensitive="disease").as_dict(),
        "table": "frame",
    }
    measured = ldiv_db.measure(release, POLICY, source=people)
    assert (measured.loss.lm_mean, measured.published, measured.source) == (result.loss.lm_mean, "frame", "frame")
    assert measured.rows_uncovered == measured.rows_unmatched == 0
    attacked = ldiv_db.attack(release, policy=policy, known=people, population=people)
    figures = {attack.name: attack.figures for attack in attacked.attacks}
    assert attacked.holds is not False
    assert (figures["linking"]["people"], figures["linking"]["no_class"]) == (len(ROWS), 0)
    assert figures["journalist"]["rows_beyond_population"] == 0 and "presence" in figures
    assert set(figures["form"]) == {"classes_with_an_order"}, "nothing lies beside a frame"


def test_a_relation_of_another_connection_is_not_looked_up_by_name_here(people, table):
    """Both databases have a table `people`: the relation's own is the one that is read."""
    with duckdb.connect() as other:
        other.execute("CREATE TABLE people AS SELECT 99 AS age, 'x' AS sex, 'secret' AS disease")
        assert ldiv_db.profile(other, people).rows == len(ROWS)


def test_types_survive_from_one_connection_to_another(con):
    relation = con.sql(MANY_TYPES)
    with duckdb.connect() as other:
        engine = Engine(other)
        view = frames.view_of_frame(engine, "frame", relation)
        found = other.sql(f"FROM {view.sql()}")
        assert [str(kind) for kind in found.types] == [str(kind) for kind in relation.types]
        texts = "COLUMNS(*)::VARCHAR"
        assert found.project(texts).fetchall() == relation.project(texts).fetchall()
        engine.close_scratch()


def test_columns_of_one_name_are_carried_over(con):
    """The database itself tells them apart by a number."""
    relation = con.sql("SELECT 1 AS x, uuid() AS x, 'a' AS y")
    assert [column.type for column in _carried(relation)] == ["INTEGER", "UUID", "VARCHAR"]


def _carried(relation):
    with duckdb.connect() as other:
        engine = Engine(other)
        return columns_of(engine, frames.view_of_frame(engine, "frame", relation))


def test_a_transaction_of_the_callers_goes_on_after_a_relation_of_another_connection(people):
    with duckdb.connect() as other:
        other.begin()
        other.execute("CREATE TABLE kept AS SELECT 1 AS a")
        assert ldiv_db.profile(other, people).rows == len(ROWS)
        other.commit()
        assert other.execute("FROM kept").fetchall() == [(1,)]


@pytest.mark.parametrize("kind", ["BIT", "TIMETZ", "STRUCT(x BIT[])"])
def test_types_that_would_not_survive_are_refused(con, kind):
    relation = con.sql(f"SELECT 1 AS a, NULL::{kind} AS odd")
    with pytest.raises(PolicyError, match="column 'odd' has a type that cannot be carried over"):
        ldiv_db.profile(relation)
    assert ldiv_db.profile(con, con.sql(f"SELECT 1 AS a, NULL::{kind} AS odd")).rows == 1


def test_a_table_of_a_library_that_we_do_not_know_is_asked_for_its_rows_once(people):
    """It may work them out anew each time, or ask a database in which others write."""

    class Table(Stream):
        asked = 0

        def __arrow_c_stream__(self, schema=None):
            self.asked += 1
            return super().__arrow_c_stream__(schema)

    asked = []
    for given in (Table(people), type("Other", (Table,), {})(people)):
        ldiv_db.profile(given)
        asked.append(given.asked)
    assert asked[0] == asked[1]


def test_what_is_read_once_is_read_whole():
    """A reader that gives its rows a single time would be empty to the second statement of a run."""
    pyarrow = pytest.importorskip("pyarrow")
    values = pyarrow.table({"age": list(range(40)), "disease": ["a", "b"] * 20})
    policy = {**POLICY, "quasi_identifiers": ["age"]}
    assert ldiv_db.run(values.to_reader(), policy).loss.rows_published == 40


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ldiv_db.run(3, POLICY), "connection: takes a connection, a frame or an address, not int"),
        (lambda: ldiv_db.profile(None), "con: takes a connection, a frame or an address, not NoneType"),
        (lambda: ldiv_db.run({"a": [1]}, POLICY), "a: list is not a frame that the database reads"),
        (lambda: ldiv_db.run({3: 4}, POLICY), "3 is not the name of a frame"),
        (lambda: ldiv_db.profile({"a": Stream(None), "b": Stream(None)}), "is not a frame that the database reads"),
    ],
)
def test_what_is_no_frame_is_said(call, says):
    with pytest.raises(ldiv_db.LdivError, match=says):
        call()


def test_a_column_that_is_not_read_is_told_of_its_frame():
    pandas = pytest.importorskip("pandas")
    ages = pandas.Series([20, 30, 40, 50] * 5)
    frame = pandas.DataFrame({"band": pandas.cut(ages, [0, 35, 60]), "disease": ["a", "b"] * 10})
    with pytest.raises(PolicyError, match=r"a column of type interval.*, which the database does not read: give"):
        ldiv_db.profile(frame)
    assert ldiv_db.profile(frame.astype({"band": str})).rows == 20
    assert ldiv_db.profile(frame.assign(band=ages.astype("category"))).rows == 20


def test_releases_over_time_keep_their_ledger_in_a_catalog(tmp_path, people):
    policy = {**POLICY, "key": "visit", "target": {"file": f"{tmp_path}/pub.parquet"}}
    visits = people.project("row_number() OVER () AS visit, *")
    with pytest.raises(
        PolicyError, match="key: promises what several releases tell together, and the ledger is in memory"
    ):
        ldiv_db.run(visits.df(), policy)
    assert any("the ledger is in memory" in note for note in ldiv_db.plan(visits.df(), policy).notes)
    first, second = (
        ldiv_db.run(visits.filter(part).df(), policy, catalog=f"{tmp_path}/ours.duckdb")
        for part in ("visit <= 12", "true")
    )
    assert [night.figures["release"] for night in (first, second)] == [1, 2]
    assert second.figures["rows_first_published"] == 12


def test_a_table_must_be_named_on_a_connection(con):
    with pytest.raises(PolicyError, match="table: is required"):
        ldiv_db.profile(con)


@pytest.mark.usefixtures("no_remedies")
def test_an_error_closes_what_was_opened(people, monkeypatch):
    opened = []

    def connect(*args):
        opened.append(duckdb.connect(":memory:"))
        return opened[-1]

    monkeypatch.setattr(frames, "connect", connect)
    with pytest.raises(ldiv_db.InfeasibleError):
        ldiv_db.run(people, {**POLICY, "require": [{"distinct": 9}]})
    with pytest.raises(duckdb.ConnectionException):
        opened[0].execute("SELECT 1")
