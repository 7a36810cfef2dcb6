"""With `types: keep` quasi-identifiers that no class generalises keep their type; of others, and by default, not."""

import pytest
from strategies import draws, search, some
from tables import fill

import ldiv_db

#: Types that are kept, as SQL of a value from g in 0..2.
KEPT = {
    "DECIMAL(10,2)": "g * 0.37 - 4",
    "BOOLEAN": "g % 2 = 0",
    "TINYINT": "g - 1",
    "INTEGER": "g * 1000000",
    "BIGINT": "9007199254740993 + g",
    "UBIGINT": "18446744073709551610 + g",
    "HUGEINT": "170141183460469231731687303715884105700 + g",
    "DECIMAL(38,10)": "g * 1000.0000000001",
    "FLOAT": "g * 0.1",
    "DOUBLE": "[0.1 + 0.2, 1.5, -5e-324][g + 1]",
    "DATE": "DATE '1969-12-31' + g",
    "TIME": "TIME '10:00:00.000001' + to_hours(g)",
    "TIMESTAMP": "TIMESTAMP '1999-12-31 23:59:59.999999' + to_days(g)",
    "TIMESTAMP_NS": "make_timestamp_ns(1700000000000000001 + g * 1000000)",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ '2024-03-31 00:30:00.5+00' + to_hours(g)",
    "UUID": "concat('00000000-0000-0000-0000-00000000000', g)",
    "BLOB": "['\\x00\\xFF', 'a', '\\x27'][g + 1]",
    "BIT": "['0101', '1', '000'][g + 1]",
}
#: Types that are not: their values have members, a zone or a list of names beside them, or are read otherwise.
LABELLED = {
    "VARCHAR": "concat('v', g)",
    "ENUM('low', 'mid', 'high', 'never')": "['low', 'mid', 'high'][g + 1]",
    "TIME WITH TIME ZONE": "['10:00:00+00', '12:00:00+02', '11:00:00-11'][g + 1]",
    "JSON": """['{"a": 1}', '[]', '1'][g + 1]""",
    "INTEGER[]": "[g, 1]",
    "STRUCT(a INTEGER)": "{'a': g}",
}
POLICY = {
    "source": "t", "target": "released", "quasi_identifiers": ["x"], "sensitive": "disease", "keep": ["rid"],
    "require": [{"distinct": 3}], "algorithm": "topdown", "seed": 1, "output": {"types": "keep"},
}  # fmt: skip


def make(con, kind, value, rows=24, every=""):
    """Rows of three values of `x`, eight of each, and of NULL where `every` holds; diseases differ among them."""
    con.execute(
        f"CREATE TABLE t AS SELECT CAST(CASE WHEN NOT coalesce({every or 'FALSE'}, FALSE) THEN {value} END AS {kind})"
        f" AS x, concat('d', i // 3 % 5) AS disease, i AS rid FROM (SELECT CAST(range % 3 AS INTEGER) AS g,"
        f" CAST(range AS INTEGER) AS i FROM range({rows}))"
    )


def type_of(con, relation, column="x"):
    return {row[0]: row[1] for row in con.execute(f"DESCRIBE FROM {relation}").fetchall()}[column]


def unlike(con, relation):
    """The rows whose value is not that of the source, as a value or as text."""
    return con.execute(
        f"SELECT count(*) FROM {relation} AS p JOIN t AS s USING (rid)"
        " WHERE p.x IS DISTINCT FROM s.x OR CAST(p.x AS VARCHAR) IS DISTINCT FROM CAST(s.x AS VARCHAR)"
    ).fetchone()[0]


#: Every type with and without NULL.
WITH_NULLS = [
    pytest.param(kind, nulls, name) for nulls in ("g = 1", "") for kind in KEPT for name in ("r.duckdb", "r.parquet")
]


@pytest.mark.parametrize(("kind", "nulls", "name"), some(WITH_NULLS))
def test_values_that_are_not_generalised_keep_their_type(con, tmp_path, kind, nulls, name):
    make(con, kind, KEPT[kind], every=nulls)
    target = {"file": name} | ({"table": "released"} if name == "r.duckdb" else {})
    assert ldiv_db.run(con, POLICY | {"target": target}, tmp_path).loss.lm_mean == 0
    if name == "r.duckdb":
        con.execute(f"ATTACH '{tmp_path}/r.duckdb' AS filed")
        assert type_of(con, "filed.released") == type_of(con, "t") and unlike(con, "filed.released") == 0
        return
    parquet = f"'{tmp_path}/r.parquet'"
    assert type_of(con, parquet) == ("VARCHAR" if kind in ("HUGEINT", "BIT") else type_of(con, "t"))
    other = f"SELECT count(*) FROM {parquet} AS p JOIN t USING (rid)"
    other += " WHERE CAST(p.x AS VARCHAR) IS DISTINCT FROM CAST(t.x AS VARCHAR)"
    assert con.execute(other).fetchone() == (0,)


@pytest.mark.parametrize("kind", some(LABELLED))
def test_of_other_types_labels_are_text(con, kind):
    make(con, kind, LABELLED[kind])
    ldiv_db.run(con, POLICY | {"recode": "tree"})  # as a set a text that begins with a brace is quoted
    assert type_of(con, "released") == "VARCHAR"
    texts = "SELECT CAST(x AS VARCHAR) AS x, rid FROM {} ORDER BY rid"
    assert con.execute(texts.format("released")).fetchall() == con.execute(texts.format("t")).fetchall()


def test_zeros_and_nans_have_no_sign_and_one_class_that_is_generalised_has_the_whole_column_be_labels(con):
    """As in labels: which of two equal values stood for both would depend on the order of the rows."""
    make(con, "DOUBLE", "[-0.0, CAST('-nan' AS DOUBLE), 2][g + 1]")
    con.execute("ALTER TABLE t ADD COLUMN y INTEGER; UPDATE t SET y = CASE WHEN rid = 23 THEN 9 ELSE rid % 3 END")
    columns = {"x": {"numeric": False, "recode": "tree"}, "y": {"numeric": True}}
    ldiv_db.run(con, POLICY | {"quasi_identifiers": columns})
    assert (type_of(con, "released"), type_of(con, "released", "y")) == ("DOUBLE", "VARCHAR")
    texts = {text for (text,) in con.execute("SELECT CAST(x AS VARCHAR) FROM released").fetchall()}
    assert texts == {"0.0", "nan", "2.0"}


WAYS = [
    {"numeric": True},
    {"taxonomy": {"flat": True}},
    {"taxonomy": {"prefix": [2, 1]}},
    {"taxonomy": {"prefix": [9, 1]}},
    {"taxonomy": {"ranges": [1, 4]}},
    {"taxonomy": {"ranges": [2, 8]}},
]
#: What may be required, by the algorithms that are tried.
ALGORITHMS = {
    "topdown": [{"distinct": 2}],
    "mondrian": [{"k": 2}],
    "peel": [{"distinct": 2}],
    "stratified": [{"entropy": 2}],
    "bsgi": [{"unique_distinct": 2}],
    "tp_plus": [{"frequency": 2}],
}


@pytest.mark.slow
@search(2, draw=draws)
def test_a_type_is_kept_exactly_where_all_labels_are_the_values(con, draw):
    """By brute force: the same run with labels as text, each held against the text of its row's value."""
    n, names = 24, ["a", "b", "c"]
    rows = [
        (
            *(draw.choice([*range(draw.choice([1, 2, 25])), *[None] * draw.choice([0, 0, 1])]) for _ in names),
            f"d{i % 5}",
            i,
        )
        for i in range(n)
    ]
    con.execute("DROP SCHEMA IF EXISTS ldiv CASCADE; DROP TABLE IF EXISTS labelled; DROP TABLE IF EXISTS released")
    columns = {"a": "INTEGER", "b": "DECIMAL(6,2)", "c": "BIGINT", "disease": "VARCHAR", "rid": "INTEGER"}
    fill(con, "t", columns, rows)
    algorithm = draw.choice(list(ALGORITHMS))
    keys = {name: draw.choice(WAYS) for name in names}
    policy = POLICY | {"quasi_identifiers": keys, "algorithm": algorithm, "require": ALGORITHMS[algorithm]}
    policy |= {"recode": draw.choice(["tree", "set"]) if algorithm != "tp_plus" else "tree"}
    ldiv_db.run(con, policy | {"target": "labelled", "output": {"types": "text"}})
    ldiv_db.run(con, policy)
    for name in names:
        other = con.execute(
            f"SELECT count(*) FROM labelled AS p JOIN t USING (rid)"
            f" WHERE p.{name} IS DISTINCT FROM CAST(t.{name} AS VARCHAR)"
        ).fetchone()[0]
        assert type_of(con, "labelled", name) == "VARCHAR"
        assert type_of(con, "released", name) == ("VARCHAR" if other else type_of(con, "t", name)), (name, keys)
    texts = "SELECT CAST(COLUMNS(* EXCLUDE ({})) AS VARCHAR) FROM {} ORDER BY rid"
    aside = "class_id" if algorithm == "bsgi" else "disease"  # classes are numbered by what is published
    found = [con.execute(texts.format(aside, table)).fetchall() for table in ("released", "labelled")]
    assert found[0] == found[1]


def test_what_a_table_is_appended_to_has_labels(con):
    make(con, "INTEGER", "g")
    append = POLICY | {"target": {"table": "released", "if_exists": "append"}}
    ldiv_db.run(con, append)
    assert type_of(con, "released") == "VARCHAR"
    con.execute("CREATE OR REPLACE TABLE released AS FROM t")
    with pytest.raises(ldiv_db.PolicyError, match=r"column x as INTEGER, not VARCHAR.*make it by if_exists: append"):
        ldiv_db.run(con, append)


def test_releases_over_time_have_labels(con):
    make(con, "INTEGER", "g")
    ldiv_db.run(con, POLICY | {"key": "rid", "keep": [], "target": {"prefix": "series"}})
    assert type_of(con, "series_1") == "VARCHAR"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["BOOLEAN", "INTEGER", "DECIMAL(10,2)", "DATE", "TIMESTAMP WITH TIME ZONE", "UUID"])
def test_a_release_of_values_is_read_as_one_of_labels(con, kind):
    """By check, measure, every attack on it, and a replay; class ids rise with the values."""
    make(con, kind, KEPT[kind], rows=12)
    policy = POLICY | {"output": {"class_id": True}}
    figures = []
    for types in ("keep", "text"):
        mine = policy | {"target": f"of_{types}", "output": {"class_id": True, "types": types}}
        ldiv_db.run(con, mine)
        name = f"of_{types}"
        (audit,) = ldiv_db.check(con, name, ["x"], "disease", ["distinct:3"], class_column="class_id")
        assert audit.holds
        measured = ldiv_db.measure(con, name, mine, queries=20).as_dict()
        attacks = ldiv_db.attack(
            con, name, policy=mine, known="t", population="t", targets="t", definetti="t", downcoding=True,
            counting=True, replay=ldiv_db.Replay(limit=5),
        )  # fmt: skip
        form = next(attack for attack in attacks.attacks if attack.name == "form")
        assert form.figures["numbers_against_labels"] == form.figures["classes_with_an_order"] == 0
        told = [attack.as_dict() for attack in attacks.attacks if attack.name != "form"]
        figures.append((audit.as_dict(), measured | {"published": ""}, told))
    assert type_of(con, "of_keep") == type_of(con, "t") and type_of(con, "of_text") == "VARCHAR"
    assert figures[0] == figures[1]


def test_a_rehearsal_goes_the_same_way(con):
    make(con, "INTEGER", "g")
    sent = []
    ldiv_db.plan(con, POLICY, listener=ldiv_db.Listener(on_statement=sent.append), rehearse=True)
    assert "recoding/publish/value_spans" in {statement.template for statement in sent}
