"""Frames of pandas, Polars, Arrow and Ibis in place of a database: the release is that of the table itself."""

import datetime
import gc
import random
from collections import Counter

import duckdb
import pytest
from strategies import some

import ldiv_db

pandas = pytest.importorskip("pandas", reason="the extra `notebooks` is not installed")
COLUMNS = ("age", "sex", "since", "disease")
DRAW = random.Random(3)
ROWS = [
    (
        DRAW.choice([None, *range(20, 60)]),
        DRAW.choice(["f", "m", "ünbekannt", None]),
        datetime.date(2020, 1, 1) + datetime.timedelta(days=DRAW.randint(0, 400)),
        DRAW.choice(["flu", "HIV", "cold", "it's"]),
    )
    for _ in range(60)
]
POLICY = {
    "quasi_identifiers": ["age", "sex", "since"],
    "sensitive": ["disease"],
    "require": [{"distinct": 2}],
    "algorithm": "mondrian",
    "seed": 1,
}


def _values():
    return {name: [row[place] for row in ROWS] for place, name in enumerate(COLUMNS)}


def of_pandas():
    return pandas.DataFrame(_values()).astype({"age": "Int64"})


def of_objects():
    return pandas.DataFrame(_values(), dtype=object, index=range(100, 160))


def of_polars():
    return pytest.importorskip("polars").DataFrame(_values())


def of_lazy():
    return of_polars().lazy()


def of_arrow():
    return pytest.importorskip("pyarrow").table(_values())


def of_reader():
    return of_arrow().to_reader()


def of_ibis():
    """A table of Ibis's, on a connection of its own, with a step that is worked out when its rows are asked for."""
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.connect()
    backend.con.register("arrow", of_arrow())
    backend.con.execute("CREATE TABLE people AS FROM arrow")
    people = backend.table("people")
    return people.filter(people.disease != "none")


GIVEN = [of_objects, of_polars, of_pandas, of_lazy, of_arrow, of_reader, of_ibis]


@pytest.fixture(scope="module")
def expected():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (age BIGINT, sex VARCHAR, since DATE, disease VARCHAR)")
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
        ldiv_db.run(con, {**POLICY, "source": "t", "target": "r"})
        return Counter(con.execute("FROM r").fetchall())


@pytest.mark.parametrize("make", some(GIVEN, 2), ids=lambda make: make.__name__)
@pytest.mark.parametrize("named", some([False, True]), ids=["alone", "named"])
def test_a_frame_is_released_as_its_table_is(make, named, expected):
    result = ldiv_db.run({"people": make()} if named else make(), POLICY)
    assert Counter(result.table().fetchall()) == expected


def test_a_release_is_a_frame_of_every_library(expected):
    pytest.importorskip("polars")
    release = ldiv_db.run(of_pandas(), POLICY).table()
    assert Counter(release.pl().rows()) == expected
    assert list(release.df().columns) == list(COLUMNS)
    assert ldiv_db.check(release.pl(), list(COLUMNS[:3]), "disease", "distinct:2").holds
    assert ldiv_db.check(release.df(), list(COLUMNS[:3]), "disease", "distinct:2").holds


def test_a_release_outlives_its_result_in_lazy_frames_and_tables_of_ibis(expected):
    ibis, pyarrow = pytest.importorskip("ibis"), pytest.importorskip("pyarrow")
    lazy = ldiv_db.run(of_lazy(), POLICY).table().pl(lazy=True)
    table = ibis.memtable(ldiv_db.run(of_ibis(), POLICY).table())
    gc.collect()
    rows = (tuple(row.values()) for row in table.to_pyarrow().to_pylist())
    assert Counter(lazy.collect().rows()) == Counter(rows) == expected
    assert ldiv_db.check(lazy, list(COLUMNS[:3]), "disease", "distinct:2").holds
    assert ldiv_db.check(table, list(COLUMNS[:3]), "disease", "distinct:2").holds
    assert pyarrow.table(ldiv_db.run(of_arrow(), POLICY).table()).num_rows == len(ROWS)


def test_a_table_of_ibis_is_asked_once_and_may_be_of_the_same_connection(expected, monkeypatch):
    people = of_ibis()
    asked, ask = [], type(people).to_pyarrow
    monkeypatch.setattr(type(people), "to_pyarrow", lambda *given, **how: asked.append(1) or ask(*given, **how))
    con = people.get_backend().con
    result = ldiv_db.run(con, {**POLICY, "source": people, "target": "released"})
    assert Counter(result.table().fetchall()) == expected and asked == [1]


def test_a_frame_is_not_changed_and_may_have_columns_of_any_name():
    frame = of_pandas().rename(columns={"sex": "cursor", "since": "execute"})
    before = frame.copy()
    policy = {**POLICY, "quasi_identifiers": ["age", "cursor", "execute"]}
    assert ldiv_db.run(frame, policy).loss.rows_published == len(ROWS)
    assert frame.equals(before)


def test_a_column_of_several_types_is_text():
    frame = of_objects()
    frame.loc[105, "disease"] = 5
    assert ldiv_db.profile(frame, sensitive="disease").sensitive[0].column.type == "VARCHAR"


def test_a_text_late_among_numbers_makes_a_column_text():
    frame = pandas.DataFrame({"age": list(range(50)) * 101, "o": [1] * 5049 + ["text"]}, dtype=object)
    with duckdb.connect() as con:
        before = con.execute("SELECT current_setting('pandas_analyze_sample')").fetchall()
        policy = {**POLICY, "quasi_identifiers": ["age"], "sensitive": ["o"], "require": [{"k": 2}]}
        result = ldiv_db.run(con, {**policy, "source": frame, "target": "r"})
        assert (result.loss.rows_published, result.table().types[1]) == (5050, "VARCHAR")
        assert con.execute("SELECT current_setting('pandas_analyze_sample')").fetchall() == before


def test_to_frame_is_of_pandas():
    result = ldiv_db.run(of_pandas(), POLICY)
    found = [result, ldiv_db.profile(of_polars(), sensitive="disease"), ldiv_db.plan(of_arrow(), POLICY)]
    audits = ldiv_db.check(result.table(), list(COLUMNS[:3]), "disease", ["distinct:2", "k:2"])
    frames = [one.to_frame() for one in (*found, audits, audits[0])]
    assert all(isinstance(frame, pandas.DataFrame) for frame in frames)
    assert [len(frame) for frame in frames] == [1, len(COLUMNS), 1, 2, 2]
    assert frames[0].loc[0, "lm_mean"] == result.loss.lm_mean and "seed" not in frames[0]
