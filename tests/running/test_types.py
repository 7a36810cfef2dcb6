"""Every column type as a quasi-identifier and as a sensitive attribute; names and sources of every kind."""

import datetime

import pytest

import ldiv_db

#: type: (SQL of 24 values from i in 0..23, the quasi-identifier's settings)
NUMBERS = {
    "TINYINT": "CAST(i * 5 - 60 AS TINYINT)",
    "BIGINT": "CAST(9007199254740993 + i AS BIGINT)",
    "UBIGINT": "CAST(18446744073709551590 + i AS UBIGINT)",
    "HUGEINT": "CAST(170141183460469231731687303715884105700 + i AS HUGEINT)",
    "DECIMAL(10,2)": "CAST(i * 0.37 - 4 AS DECIMAL(10, 2))",
    "FLOAT": "CAST(i * 0.1 AS FLOAT)",
    "DOUBLE": "CAST(1e300 * (i - 12) / 12 AS DOUBLE)",
    "DATE": "DATE '1969-12-20' + CAST(i AS INTEGER)",
    "TIMESTAMP": "TIMESTAMP '1999-12-31 23:59:50' + i * INTERVAL 1 SECOND",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2024-03-31 00:30:00+00' + i * INTERVAL 10 MINUTE",
}
#: settings of the quasi-identifier, SQL of the value, and of the labels that a value may be published as
TREES = {
    "prefix": ({"taxonomy": {"prefix": [5, 3, 1]}}, "CAST(10000 + i * 777 AS VARCHAR)"),
    "days": ({"taxonomy": {"dates": ["day", "month", "year"]}}, "DATE '2019-11-25' + CAST(i * 9 AS INTEGER)"),
    "decades": (
        {"taxonomy": {"dates": ["month", "quarter", "year", "decade"]}},
        "TIMESTAMP '1989-01-01 12:00:00' + i * INTERVAL 5 MONTH",
    ),
    "weeks": ({"taxonomy": {"dates": ["week", "iso_year", "decade"]}}, "DATE '2019-10-25' + CAST(i * 9 AS INTEGER)"),
    "boolean": ({"taxonomy": {"file": "boolean.yml"}}, "i % 2 = 0"),
    "enum": (
        {"taxonomy": {"file": "enum.yml"}},
        "CAST(['low', 'mid', 'high'][1 + i % 3] AS ENUM ('low', 'mid', 'high'))",
    ),
}


def _source(con, value, nulls=False):
    value = f"CASE WHEN i % 6 = 5 THEN NULL ELSE {value} END" if nulls else value
    con.execute(
        f"CREATE TABLE t AS SELECT {value} AS x, {value} AS truth, 'd' || (i * 7 % 5) AS disease"
        " FROM (SELECT CAST(range AS BIGINT) AS i FROM range(24))"
    )


def _run(con, settings, folder=".", **changes):
    document = {
        "source": "t",
        "target": "released",
        "quasi_identifiers": {"x": settings},
        "sensitive": ["disease"],
        "keep": ["truth"],
        "require": [{"unique_distinct": 2}],
    }
    return ldiv_db.run(con, document | changes, folder)


@pytest.mark.slow
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", NUMBERS)
def test_ranges_of_every_ordered_type_cover_their_values(con, kind, nulls):
    _source(con, NUMBERS[kind], nulls)
    result = _run(con, {"numeric": True})
    assert result.loss.rows_published == 24 and 0 < result.loss.lm_mean < 1
    cast = f"CAST(%s AS {kind})"
    low, high = (cast % f"regexp_extract(x, '^\\[(.+) [.][.] (.+)\\]$', {part})" for part in (1, 2))
    uncovered = con.execute(
        f"SELECT count(*) FROM released WHERE NOT CASE WHEN x IS NULL THEN truth IS NULL WHEN x = '*' THEN true"
        f" WHEN x LIKE '[%' THEN truth BETWEEN {low} AND {high} ELSE CAST(truth AS VARCHAR) = x END"
    ).fetchone()
    assert uncovered == (0,)
    assert con.execute("SELECT count(*) FROM released WHERE x LIKE '[%'").fetchone()[0] > 0


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_trees_made_of_values(con, tmp_path, name, nulls):
    (tmp_path / "boolean.yml").write_text("'*': ['true', 'false']", encoding="utf-8")
    (tmp_path / "enum.yml").write_text("'*': {some: [low, mid], much: [high]}", encoding="utf-8")
    settings, value = TREES[name]
    _source(con, value, nulls)
    result = _run(con, settings, tmp_path)
    assert result.loss.rows_published == 24
    labels = con.execute(
        "SELECT DISTINCT CAST(x AS VARCHAR) AS label, CAST(truth AS VARCHAR) FROM released WHERE label <> '*'"
    ).fetchall()
    for label, truth in labels:
        assert _covers(name, label, truth), (label, truth)


def _covers(name, label, truth):
    if name == "enum":
        return {"some": truth in ("low", "mid"), "much": truth == "high"}.get(label, label == truth)
    if name == "weeks":
        year, week, _ = datetime.date.fromisoformat(truth).isocalendar()
        return label in (f"{year}-W{week:02}", f"ISO {year}", f"ISO {year // 10}0s")
    if label.endswith("s") and name == "decades":
        return truth.startswith(label[:3])
    if "-Q" in label:
        year, quarter = label.split("-Q")
        return truth[:4] == year and (int(truth[5:7]) + 2) // 3 == int(quarter)
    return truth.startswith(label.rstrip("*"))


@pytest.mark.parametrize(
    "value", ["i % 4", "i % 2 = 0", "i % 4 / 10.0", "DATE '2020-01-01' + CAST(i % 4 AS INTEGER)", "[i % 4]"]
)
def test_sensitive_values_of_any_type_are_published_as_they_were(con, value):
    con.execute(
        f"CREATE TABLE t AS SELECT i AS x, {value} AS disease, i AS truth FROM (SELECT range AS i FROM range(24))"
    )
    _run(con, {"numeric": True})
    before = con.execute("SELECT truth, disease FROM (SELECT x AS truth, disease FROM t) ORDER BY ALL").fetchall()
    assert con.execute("SELECT truth, disease FROM released ORDER BY ALL").fetchall() == before
    assert con.execute("DESCRIBE released").fetchall()[2][1] == con.execute("DESCRIBE t").fetchall()[1][1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numeric": True}, "ranges need numbers, dates or timestamps"),
        ({"taxonomy": {"ranges": [5]}}, "ranges need numbers"),
        ({"taxonomy": {"dates": ["day"]}}, "need dates or timestamps"),
        ({"taxonomy": {"dates": ["weeks"]}}, "no unit 'weeks'"),
        ({"taxonomy": {"dates": ["week", "month"]}}, "no week lies in one month"),
        ({"taxonomy": {"dates": ["year", "day"]}}, "rising units"),
        ({"taxonomy": {"prefix": [1, 3]}}, "falling lengths"),
        ({"taxonomy": {"prefix": [0]}}, "takes a number from 1"),
        ({"taxonomy": {"prefix": [2], "ranges": [2]}}, "takes one of"),
    ],
)
def test_settings_that_do_not_fit_the_type(con, settings, message):
    _source(con, "CAST(i AS VARCHAR)")
    with pytest.raises(ldiv_db.PolicyError, match=message):
        _run(con, settings)
    assert con.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall() == [("t",)]
