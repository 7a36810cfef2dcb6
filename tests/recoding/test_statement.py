"""The recoding of a run as one SELECT: run by databases it gives the published rows, elsewhere it parses."""

import json
import random
import sqlite3
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
import sqlglot
from recoded import NAMED, TREE, Case, Recoded, recoded
from recoded import published as published_there
from refusals import refuses
from servers import DuckDB, comparable
from sqlglot import exp
from strategies import some
from tables import fill
from typer.testing import CliRunner

import ldiv_db
from ldiv_db.commands.cli import app
from ldiv_db.commands.sql import Dialect
from ldiv_db.database.engine import Engine
from ldiv_db.database.traits_there import DIALECTS
from ldiv_db.policy.reading import parse_policy
from ldiv_db.recoding.statement import find_run, recoding_sql

pytestmark = pytest.mark.usefixtures("no_remedies")

COLUMNS = {
    "select": "VARCHAR", 'my "age"': "INTEGER", "zip code": "VARCHAR", "born": "DATE", "größe": "SMALLINT",
    "group": "VARCHAR", "o'k": "VARCHAR",
}  # fmt: skip
KEYS = {
    "select": {"taxonomy": {"file": "tree.json"}},
    'my "age"': {"taxonomy": {"ranges": [5, 10, 20]}},
    "zip code": {"taxonomy": {"prefix": [5, 3, 1]}},
    "born": {"taxonomy": {"dates": ["day", "month", "quarter", "decade"]}},
    "größe": {"taxonomy": {"file": "named.json"}},
}


def values_of(draw, name):
    makers = {
        "select": lambda: draw.choice(['a"b', "é'\\", "x", "-- y", ""]),
        'my "age"': lambda: draw.randint(-3, 40),
        "zip code": lambda: draw.choice(["12345", "12399", "123", "1239999", "9", "12*45"]),
        "born": lambda: date(draw.choice([1999, 2000]), draw.choice([1, 2, 12]), draw.choice([1, 31 - 3])),
        "größe": lambda: draw.randint(1, 3),
    }
    return None if draw.random() < 0.15 else makers[name]()


def make(con, folder, seed, algorithm, rows=40, keep=True):
    """A random table `my source` and its policy."""
    draw = random.Random(seed)
    keys = draw.sample(list(KEYS), draw.choice([1, 2, 3]))
    secrets = ["HIV", "it's", "flu", 'c"d', "ü"]
    columns = {name: COLUMNS[name] for name in [*keys, "group", "o'k"]}
    data = [
        (*(values_of(draw, key) for key in keys), draw.choices(secrets, [5, 4, 3, 2, 1])[0], draw.choice("yn"))
        for _ in range(rows)
    ]
    fill(con, '"my source"', columns, data)
    (folder / "tree.json").write_text(json.dumps(TREE))
    (folder / "named.json").write_text(json.dumps(NAMED))
    own = {value: draw.choice(["0.3", "0.7", "0.45"]) for value in secrets if draw.random() < 0.4}
    return {
        "source": '"my source"', "target": "out.released", "sensitive": ["group"], "seed": seed,
        "output": {"types": "text"},  # as the statement writes labels
        "quasi_identifiers": {key: KEYS[key] for key in keys}, "nulls": draw.choice(["value", "suppress"]),
        "require": [{"threshold": {"default": "0.5", "absent": "allow", **own}}] + [{"frequency": "1.9"}] * (seed % 2),
        "algorithm": algorithm | {"time_limit": 0.2, "unproved": "publish"},
        **({"keep": ["o'k"]} if keep else {"identifiers": ["o'k"]}),
    }  # fmt: skip


def published(con):
    return Counter(con.execute("SELECT * FROM out.released").fetchall())


def by_sqlite(con, sql):
    """The rows of the statement in SQLite, on a copy of the table."""
    rows = con.execute('SELECT * FROM "my source"').fetchall()
    names = [column[0].replace('"', '""') for column in con.description]
    with sqlite3.connect(":memory:") as other:
        other.execute('CREATE TABLE "my source" ({})'.format(", ".join(f'"{name}"' for name in names)))
        marks = ", ".join("?" * len(names))
        plain = [[str(v) if isinstance(v, date) else v for v in row] for row in rows]
        other.executemany(f'INSERT INTO "my source" VALUES ({marks})', plain)
        return Counter(other.execute(sql).fetchall())


# -- what databases of other kinds give --------------------------------------------------------------------

#: How many random cases a server gets, if not two.
CASES = {"bigquery": 3}
CUTS = {
    "source": '"my source"', "target": "out.released", "sensitive": ["group"], "seed": 1,
    "require": [{"frequency": 2}], "algorithm": {"name": "cuts", "scheme": "vioRec"},
}  # fmt: skip
FREE = {"algorithm": {"name": "cuts", "scheme": "none"}}


def test_random_releases_are_what_the_select_gives(server):
    tried = [made for seed in range(CASES.get(server.dialect, 2)) if (made := recoded(seed, server.plain_names))]
    assert tried
    for made in tried:
        assert made.differs(server) == "", made.case.policy["seed"]
        assert_no_value_but_labels(made)


def assert_no_value_but_labels(made):
    """What the ledger holds of taxonomies that are made of the data is in the release; no sensitive value is there."""
    con, shown = made.engine.connection, {str(value) for row in made.release for value in row}
    labels = con.execute(
        "SELECT r.label FROM ldiv.run_rule AS r JOIN ldiv.run_column AS c USING (run_id, place)"
        " WHERE c.name IN ('zip code', 'born', 'zip_code')"
    ).fetchall()
    assert {str(label) for (label,) in labels} <= shown
    ledger = [row for table in ("run_rule", "run_column") for row in con.execute(f"FROM ldiv.{table}").fetchall()]
    assert not {"HIV", "flu\\", 'c"d', "ü"} & {value for row in ledger for value in row}


def run_of(folder, columns, rows, policy):
    """A run on a table `my source` of its own."""
    case = Case(columns, rows, CUTS | policy)
    server = DuckDB()
    case.place(server, folder)
    result = ldiv_db.run(server.connection, case.policy, folder=folder)
    return Recoded(case, Engine(server.connection), result.run_id, published_there(server, case))


PLAIN_COLUMNS = {"age": "integer", "Home Town": "text", "user": "text", "q1": "boolean"}


@pytest.fixture(scope="module")
def of_plain_names(tmp_path_factory):
    rows = [(day % 4, f"t{day % 3}", f"s{day}", day % 2 == 0) for day in range(12)]
    policy = {
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [2, 4]}}, "Home Town": {"taxonomy": {"flat": True}}},
        "sensitive": ["user"], "keep": ["q1"],
    }  # fmt: skip
    return run_of(tmp_path_factory.mktemp("plain"), PLAIN_COLUMNS, rows, policy | FREE)


@pytest.fixture(scope="module")
def of_many_digits(tmp_path_factory):
    rows = [(Decimal(f"{i % 2}123456789.0{i % 9}") / 1, f"s{i}") for i in range(18)]
    policy = {"quasi_identifiers": {"sum": {"taxonomy": {"flat": True}}}, **FREE}
    return run_of(tmp_path_factory.mktemp("digits"), {"sum": "decimal", "group": "text"}, rows, policy)


@pytest.mark.slow
def test_large_products_and_days_far_apart(server, tmp_path):
    """Places in a class times a common multiple of the thresholds exceed 32 bits, in which Spark counts places.

    Days are from 1900 to 2299, which ClickHouse has; moments have microseconds.
    """
    rows = [(1, "abc"[i % 7 % 3]) for i in range(900)]
    require = [{"threshold": {"default": "0.8123", "a": "0.3967"}}]
    policy = {"quasi_identifiers": {"age": {"taxonomy": {"ranges": [5]}}}, "require": require}
    made = run_of(tmp_path, {"age": "integer", "group": "text"}, rows, policy)
    assert 0 < sum(made.release.values()) < 900 and made.differs(server) == ""
    days = [date(1900, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2149, 6, 7), date(2299, 12, 30)]
    rows = [(day, datetime(1969, 12, 31, 23, 59, 59, 999990) + timedelta(microseconds=5 * (i % 5)), f"s{i}")
            for i, day in enumerate(days * 2)]  # fmt: skip
    keys = {"born": {"taxonomy": {"dates": ["day", "year"]}}, "seen": {"taxonomy": {"flat": True}}}
    policy = {"quasi_identifiers": keys, **FREE}
    assert run_of(tmp_path, {"born": "date", "seen": "timestamp", "group": "text"}, rows, policy).differs(server) == ""


@pytest.mark.slow
def test_a_taxonomy_of_thousands_of_leaves(server, tmp_path):
    """The CASE has a branch for each label and a list of its leaves; the statement has some 30,000 characters."""
    tree = {"*": {f"town {i}": {f"street {i}.{j} 'é'": {} for j in range(8)} for i in range(150)}}
    (tmp_path / "streets.json").write_text(json.dumps(tree))
    leaves = [leaf for below in tree["*"].values() for leaf in below]
    rows = [(leaf, "ab"[i % 2]) for i, leaf in enumerate(leaves)]
    policy = {"quasi_identifiers": {"street": {"taxonomy": {"file": "streets.json"}}}, "require": [{"frequency": 2}]}
    made = run_of(tmp_path, {"street": "text", "group": "text"}, rows, policy | {"algorithm": {"name": "tds"}})
    assert len(made.sql(server.dialect)) > 20_000
    assert sum(made.release.values()) == 1200 and made.differs(server) == ""


def test_plain_names_are_found_as_the_server_folds_them(server, of_plain_names):
    made = of_plain_names
    assert made.differs(server) == ""
    sql = recoding_sql(made.engine, find_run(made.engine, made.run_id), server.dialect, "patients")
    server.create("patients", list(PLAIN_COLUMNS.items()), made.case.rows)
    assert comparable(server.query(sql)) == made.release
    server.drop("patients")


def test_numbers_of_many_digits_are_told_apart(server, of_many_digits):
    """Neighbours that a floating number would make one."""
    assert of_many_digits.differs(server) == ""


@pytest.mark.parametrize(
    ("kind", "value"),
    some([
        pytest.param("FLOAT", "i % 4 / 10"),
        pytest.param("TIME", "TIME '10:00:00' + to_hours(i % 4)"),
        pytest.param("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ '2001-01-01 00:00:00+00' + to_hours(i % 4)"),
        pytest.param("DOUBLE", "CASE WHEN i % 2 = 0 THEN CAST('nan' AS DOUBLE) ELSE 1 END"),
    ]),
)  # fmt: skip
def test_values_that_databases_write_otherwise_are_refused(con, kind, value):
    """In all dialects but DuckDB's, where a value's text is that of the run's labels."""
    con.execute(f"CREATE TABLE t AS SELECT CAST({value} AS {kind}) AS x, concat('s', i) AS s FROM range(8) AS r(i)")
    keys = {"x": {"taxonomy": {"flat": True}}}
    result = ldiv_db.run(con, CUTS | FREE | {"source": "t", "sensitive": ["s"], "quasi_identifiers": keys})
    engine = Engine(con)
    run = find_run(engine, result.run_id)
    rows = con.execute(recoding_sql(engine, run, "duckdb")).fetchall()
    assert sorted(rows) == sorted(con.execute("SELECT CAST(x AS VARCHAR), s FROM out.released").fetchall())
    for dialect in set(DIALECTS) - {"duckdb"}:
        with refuses("dialect") as told:
            recoding_sql(engine, run, dialect)
        assert f"whose values {dialect} may write otherwise" in str(told.value)


# -- what the statement is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", some(["vioRec", "vioSA", "allRec"]))
def test_every_dialect_parses_to_one_select_with_its_names(con, tmp_path, scheme):
    policy = make(con, tmp_path, 7, {"name": "cuts", "scheme": scheme})
    result = ldiv_db.run(con, policy, folder=tmp_path)
    engine = Engine(con)
    run = find_run(engine, result.run_id)
    for dialect in DIALECTS:
        sql = recoding_sql(engine, run, dialect, 'shop."da ta".people', parse_policy(policy))
        assert_it_parses(con, policy, sql, dialect)


def assert_it_parses(con, policy, sql, dialect):
    (tree,) = sqlglot.parse(sql, read=dialect)
    assert isinstance(tree, exp.Select)
    names = [*policy["quasi_identifiers"], "group", "o'k"]
    assert [select.alias for select in tree.selects] == [folded(name, dialect) for name in names]
    (table,) = tree.find_all(exp.Table)
    assert [part.name for part in table.parts] == [folded(part, dialect) for part in ("shop", "da ta", "people")]
    assert all(part.args["quoted"] for part in table.parts)
    assert not list(tree.find_all(exp.Parameter, exp.Placeholder))
    texts = {node.this for node in tree.find_all(exp.Literal) if node.is_string}
    labels = {
        label for (label,) in con.execute("SELECT DISTINCT label FROM ldiv.run_rule WHERE kind = 'range'").fetchall()
    }
    own = set(policy["require"][0]["threshold"]) - {"default", "absent"}
    assert own | labels <= texts


def folded(name, dialect):
    """What a plain name is called in the dialect."""
    return name.upper() if dialect == "snowflake" and name in ("shop", "people", "select", "born", "group") else name


def test_a_changed_source_is_held_to_the_thresholds(con, tmp_path):
    """Rows that came later: values without a label are dropped, the others suppressed where thresholds ask for it."""
    policy = make(con, tmp_path, 4, {"name": "cuts", "scheme": "vioRec"}, keep=False)
    policy["require"] = [{"frequency": 2}]
    result = ldiv_db.run(con, policy, folder=tmp_path)
    con.execute(
        'INSERT INTO "my source" SELECT * REPLACE (\'HIV\' AS "group") FROM "my source" WHERE "group" <> \'HIV\''
    )
    engine = Engine(con)
    rows = con.execute(recoding_sql(engine, find_run(engine, result.run_id), "duckdb")).fetchall()
    classes = {}
    for *labels, secret in rows:
        classes.setdefault(tuple(labels), Counter())[secret] += 1
    assert rows and all(2 * max(counts.values()) <= sum(counts.values()) for counts in classes.values())


@pytest.mark.slow
def test_what_no_select_expresses_is_refused(con, tmp_path):
    policy = make(con, tmp_path, 3, {"name": "cuts"})
    bsgi = policy | {"algorithm": {"name": "bsgi", "residue": "suppress"}, "require": [{"distinct": 2}]}
    local = ldiv_db.run(con, bsgi | {"target": "local"}, folder=tmp_path)
    engine = Engine(con)
    with refuses("RUN") as told:
        recoding_sql(engine, find_run(engine, local.run_id), "duckdb")
    assert "bsgi left nothing to write as a SELECT" in str(told.value) and "local recoding" in str(told.value)
    with refuses("RUN"):
        find_run(engine, "zzz")
    policy["require"] = [{"threshold": {"default": 0.5, "HIV": 0.4}}]
    run = find_run(engine, ldiv_db.run(con, policy, folder=tmp_path).run_id)
    by_label = policy | {"target": "third", "algorithm": {"name": "cuts", "metric": "CM", "class": "o'k"}}
    third = find_run(engine, ldiv_db.run(con, by_label, folder=tmp_path).run_id)
    for found, source, given, words in (
        (run, None, None, "thresholds of their own"),
        (run, None, policy | {"require": [{"frequency": 2}]}, "other thresholds than the run"),
        (run, "people.csv", policy, "is a file"),
        (third, None, policy, "CM with vioRec"),
    ):
        with pytest.raises(ldiv_db.PolicyError, match=words):
            recoding_sql(engine, found, "duckdb", source, given and parse_policy(given))


def test_plain_names_are_folded_as_the_database_does(tmp_path, con):
    fill(con, "patients", {"age": "INTEGER", "Home Town": "VARCHAR", "2nd": "VARCHAR"},
         [(i, "ab"[i % 2], "uvw"[i % 3]) for i in range(12)])  # fmt: skip
    policy = {
        "source": "patients", "target": "released", "sensitive": ["2nd"], "require": [{"frequency": 2}],
        "algorithm": {"name": "cuts"}, "quasi_identifiers": {
            "age": {"taxonomy": {"ranges": [4]}}, "Home Town": {"taxonomy": {"prefix": [1]}}},
    }  # fmt: skip
    engine = Engine(con)
    run = find_run(engine, ldiv_db.run(con, policy, folder=tmp_path).run_id)

    def names(dialect):
        tree = sqlglot.parse_one(recoding_sql(engine, run, dialect, "clinic.patients"), read=dialect)
        return {name.name for name in tree.find_all(exp.Identifier) if name.quoted}, tree.named_selects

    quoted, shown = names("snowflake")
    assert {"CLINIC", "PATIENTS", "AGE", "Home Town", "2nd"} <= quoted and shown == ["AGE", "Home Town", "2nd"]
    assert not {"clinic", "patients", "age", "HOME TOWN", "2ND"} & quoted
    for dialect in ("postgres", "bigquery"):
        quoted, shown = names(dialect)
        assert {"clinic", "patients", "age", "Home Town", "2nd"} <= quoted and shown == ["age", "Home Town", "2nd"]


def test_the_command_prints_it(tmp_path):
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as con:
        policy = make(con, tmp_path, 2, {"name": "cuts", "scheme": "allRec"})
        policy["require"] = [{"frequency": 2}]
        result = ldiv_db.run(con, policy, folder=tmp_path)
    assert set(Dialect.__args__) == set(DIALECTS)
    shown = CliRunner().invoke(app, ["sql", "recode", str(path), result.run_id, "--dialect", "sqlite"])
    assert shown.exit_code == 0 and shown.stdout.startswith("SELECT")
    as_json = CliRunner().invoke(app, ["sql", "recode", str(path), result.run_id[:6], "--dialect", "sqlite", "--json"])
    assert json.loads(as_json.stdout)["sql"] + ";\n" == shown.stdout
    with duckdb.connect(str(path)) as con:
        assert by_sqlite(con, shown.stdout) == published(con)


@pytest.mark.parametrize("seed", some([0, 1]))
def test_rows_that_sizes_and_shares_leave_out_are_left_out_there_too(con, tmp_path, seed):
    policy = make(con, tmp_path, seed, {"name": "cuts", "scheme": "allRec"})
    policy["require"] = [{"p_sensitive": {"p": 2, "k": 4}}, {"alpha_k": {"alpha": "0.7", "k": 3}}]
    result = ldiv_db.run(con, policy, folder=tmp_path)
    engine = Engine(con)
    sql = recoding_sql(engine, find_run(engine, result.run_id), "duckdb", policy=parse_policy(policy))
    assert Counter(con.execute(sql).fetchall()) == published(con)


@pytest.mark.parametrize(
    ("scheme", "more"),
    some([
        pytest.param("allRec", {"require": [{"entropy": "1.5"}]}),
        pytest.param("none", {"require": [{"k": 2}], "sensitive": ["group", "o'k"], "keep": []}),
    ]),
)  # fmt: skip
def test_what_leaves_rows_out_for_other_reasons_is_no_select(con, tmp_path, scheme, more):
    """It would publish what was left out."""
    policy = make(con, tmp_path, 1, {"name": "cuts", "scheme": scheme}) | more
    result = ldiv_db.run(con, policy, folder=tmp_path)
    engine = Engine(con)
    with pytest.raises(ldiv_db.PolicyError, match="left nothing to write as a SELECT"):
        recoding_sql(engine, find_run(engine, result.run_id), "duckdb", policy=parse_policy(policy))


# -- runs that suppress nothing, on a table that has changed ------------------------------------------

#: Algorithms that suppress nothing, with requirements that their SELECT keeps.
UNSUPPRESSED = [
    ({"name": "cuts", "scheme": "none"}, [{"frequency": "1.5"}]),
    ({"name": "cuts", "scheme": "none"}, [{"threshold": {"default": "0.9", "HIV": "0.6"}}]),
    ({"name": "annealing", "scheme": "none", "steps": 5}, [{"frequency": "1.4"}, {"threshold": "0.8"}]),
    ({"name": "incognito"}, [{"k": 4}, {"distinct": 3}]),
    ({"name": "incognito"}, [{"alpha_k": {"alpha": "0.7", "k": 3}}]),
    ({"name": "tds"}, [{"p_sensitive": {"p": 2, "k": 5}}, {"frequency": "1.5"}]),
    ({"name": "tds"}, [{"k": 5}]),
    ({"name": "tds"}, [{"distinct": 2}]),
]


def change(con, draw):
    """Take rows out of the source, and put rows in that break what holds of some classes."""
    con.execute(f'DELETE FROM "my source" WHERE hash("group", "o\'k", rowid) % 3 = {draw.randrange(3)}')
    con.execute(
        'INSERT INTO "my source" SELECT * REPLACE (\'HIV\' AS "group") FROM "my source"'
        f" WHERE hash(rowid) % 4 = {draw.randrange(4)}"
    )


def judged(con, rows, keys, require):
    """The audit of the rows, as a table of its own."""
    names = [*keys, "group", "o'k"]
    fill(con, "changed", dict.fromkeys(names, "VARCHAR"), list(rows.elements()))
    return ldiv_db.check(con, "changed", keys, "group", require)[0]


@pytest.mark.parametrize("seed", some([3, *range(16)]))
def test_a_changed_source_is_held_to_what_a_run_without_suppression_met(con, tmp_path, seed):
    """On the run's table nothing is left out; on a changed one the classes that violate are, in both databases."""
    algorithm, require = UNSUPPRESSED[seed % len(UNSUPPRESSED)]
    policy = make(con, tmp_path, seed, {}, rows=40)
    known = {} if algorithm["name"] in ("incognito", "tds") else {"time_limit": 0.2, "unproved": "publish"}
    policy |= {"algorithm": algorithm | known, "require": require}
    try:
        result = ldiv_db.run(con, policy, folder=tmp_path)
    except ldiv_db.InfeasibleError:
        return
    engine = Engine(con)
    run = find_run(engine, result.run_id)
    ours, lite = (recoding_sql(engine, run, dialect, policy=parse_policy(policy)) for dialect in ("duckdb", "sqlite"))
    assert not ours.startswith("--")
    assert Counter(con.execute(ours).fetchall()) == published(con) == by_sqlite(con, lite)
    draw = random.Random(seed)
    keys = list(policy["quasi_identifiers"])
    change(con, draw)
    for rows in (Counter(con.execute(ours).fetchall()), by_sqlite(con, lite)):
        assert not rows or judged(con, rows, keys, require).holds
        con.execute("DROP TABLE IF EXISTS changed")


def test_classes_that_still_hold_are_kept_on_a_changed_source(con, tmp_path):
    """Of four classes one comes to exceed its threshold, one is too small, one has one value: the fourth stays."""
    policy = {
        "source": "people", "target": "out.released", "sensitive": ["group"],
        "quasi_identifiers": {"town": {"taxonomy": {"prefix": [1]}}},
        "require": [{"k": 4}, {"distinct": 2}, {"threshold": "0.75"}], "algorithm": {"name": "incognito"},
    }  # fmt: skip
    fill(con, "people", {"town": "VARCHAR", "group": "VARCHAR"}, [(town, g) for town in "abcd" for g in "uuvv"])
    result = ldiv_db.run(con, policy, folder=tmp_path)
    engine = Engine(con)
    sql = recoding_sql(engine, find_run(engine, result.run_id), "duckdb")
    con.execute("INSERT INTO people SELECT 'a', 'u' FROM range(5)")
    con.execute("DELETE FROM people WHERE rowid IN (SELECT min(rowid) FROM people WHERE town = 'b')")
    con.execute("UPDATE people SET \"group\" = 'w' WHERE town = 'c'")
    con.execute("INSERT INTO people VALUES ('d', 'w')")
    assert Counter(con.execute(sql).fetchall()) == Counter([("d", g) for g in "uuvvw"])


def test_a_requirement_that_no_select_keeps_is_named(con, tmp_path):
    policy = make(con, tmp_path, 2, {}, rows=60)
    policy |= {"algorithm": {"name": "incognito"}, "require": [{"entropy": "1.2"}, {"t_closeness": 0.9}, {"k": 2}]}
    engine = Engine(con)
    sql = recoding_sql(engine, find_run(engine, ldiv_db.run(con, policy, folder=tmp_path).run_id), "postgres")
    first, second, third, *_ = sql.splitlines()
    assert first.startswith("-- entropy is not kept on a table that has changed")
    assert second.startswith("-- t_closeness is not kept") and third == "SELECT"
    assert len(sqlglot.parse(sql, read="postgres")) == 1


def test_texts_that_a_collation_holds_equal_are_published_apart(con):
    """A class that has become too small by the bytes of its texts is left out, and no rule takes `A` for `a`."""
    con.execute("CREATE TABLE collated (zip VARCHAR COLLATE NOCASE, s VARCHAR COLLATE NOCASE)")
    con.execute("INSERT INTO collated VALUES ('a', 'x'), ('a', 'X'), ('A', 'y'), ('A', 'Y'), ('b', 'z'), ('b', 'z')")
    policy = {
        **{"source": "collated", "target": "o", "quasi_identifiers": {"zip": {"taxonomy": {"flat": True}}}},
        **{"sensitive": "s", "require": [{"k": 2}], "seed": 1, "algorithm": "incognito"},
    }
    run = find_run(Engine(con), ldiv_db.run(con, policy).run_id)
    statement = recoding_sql(Engine(con), run, "duckdb")
    assert Counter(con.execute(statement).fetchall()) == Counter(con.execute("FROM o").fetchall())
    con.execute("DELETE FROM collated WHERE s COLLATE C = 'Y'")
    assert sorted({zip for zip, _ in con.execute(statement).fetchall()}) == ["a", "b"]
