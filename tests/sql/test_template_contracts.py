"""What every template promises: its header, its parameters, and SQL that other engines can carry."""

import pickle
import random
import re
import sqlite3
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import duckdb
import jinja2
import jinja2.meta
import people_in_parts
import pytest
import sqlglot
import tables
from oracle_tp import hard_groups
from plans import loops_in, one_sided
from sqlglot import exp
from stated import plain, undecided, unstated_orders
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.algorithms.bsgi import bisection as boundaries
from ldiv_db.algorithms.bsgi import repair
from ldiv_db.algorithms.cuts import boxes as cut_boxes
from ldiv_db.algorithms.cuts import branch_and_bound as cut_sweep
from ldiv_db.algorithms.local import peel
from ldiv_db.algorithms.tp import matching
from ldiv_db.attacking import attacks, question
from ldiv_db.auditing.check import CheckRequest, check
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.subject import Pair
from ldiv_db.auditing.violations import Violations
from ldiv_db.database import migrate, warehouses
from ldiv_db.database import steps as composer
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, TemplateError
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import (
    Statement,
    _environment,
    declared_params,
    header,
    render,
    resource_folder,
    template_text,
)
from ldiv_db.measuring.links import ProfiledTable, find_links
from ldiv_db.measuring.measure import Besides, MeasureRequest, measure_table
from ldiv_db.measuring.profile import ProfileRequest, profile_table
from ldiv_db.measuring.starter_policy import make_starter_policy
from ldiv_db.measuring.starter_tables import start_policy
from ldiv_db.measuring.tables import measure_tables
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import describe
from ldiv_db.publishing import earlier_releases as releases
from ldiv_db.publishing import ledger
from ldiv_db.recoding import counting as counts
from ldiv_db.recoding import recode
from ldiv_db.recoding import statement as recode_sql
from ldiv_db.reporting.verification import question_again, verify_report
from ldiv_db.requirements import REQUIREMENTS, RequirementSpec
from ldiv_db.solving import auto, improve
from ldiv_db.solving import divide as positions
from ldiv_db.taxonomies import readers as taxonomy_sources
from ldiv_db.taxonomies import taxonomy
from tests.benchmarks.command import SQL
from tests.running import schemas
from tests.sql.arguments import ARGUMENTS
from tests.sql.templates import LISTS, all_templates

TEMPLATES = all_templates()
#: Folders of templates that no release is made, judged or attacked by.
APART = ("running/demo/", "taxonomies/draft_groups")
#: What the names of working tables begin with: other in every run.
NUMBERS, NAMES = re.compile(r"\d+"), re.compile(r'"[^"]*"')


def test_templates_are_found():
    assert len(TEMPLATES) > 200


def test_every_header_says_what_the_template_takes_and_returns():
    of_benchmarks = [(template, (SQL,)) for template in all_templates(SQL)]
    for template, *others in [*zip(TEMPLATES, strict=True), *of_benchmarks]:
        said, parsed = header(template, *others), jinja2.Environment().parse(template_text(template, *others))
        assert isinstance(said["returns"], str), template
        assert jinja2.meta.find_undeclared_variables(parsed) - LISTS == declared_params(template, *others), template
        names = [name for kind in ("relations", "identifiers", "values", "options") for name in said.get(kind) or []]
        assert len(names) == len(set(names)), template


def test_a_plain_string_in_a_relation_is_refused():
    for template in [template for template in TEMPLATES if header(template).get("relations") == ["rows"]]:
        params = dict.fromkeys(declared_params(template), Identifier("x")) | {"rows": "patients; DROP TABLE x"}
        with pytest.raises((TemplateError, TypeError, AttributeError)):
            render(template, params)
            pytest.fail(template)


@pytest.mark.parametrize("param", ["t", "x'; --", 3, 2.5, None, True, ["t"], b"t"])
def test_only_names_and_values_fill_a_param(param):
    with pytest.raises(TemplateError, match="a parameter takes"):
        render("database/count_rows", {"rows": param})


def test_values_are_bound_and_never_written():
    secret = "s3cret'; DROP TABLE x; --"
    statement = render("taxonomies/list_taxonomy_nodes", {"nodes": Relation(("n",)), "taxonomy": Value(secret)})
    assert statement.values == {"p1": secret}
    assert "s3cret" not in statement.sql and "$p1" in statement.sql


def test_missing_and_undeclared_params_are_named():
    with pytest.raises(TemplateError, match=r"missing parameters \['rows'\], undeclared parameters \['row'\]"):
        render("database/count_rows", {"row": Relation(("t",))})


def test_an_unknown_template_is_named():
    with pytest.raises(TemplateError, match="no template 'recoding/input/nothing'"):
        render("recoding/input/nothing", {})


def test_an_engine_reads_the_folders_that_it_was_given(con, tmp_path):
    (tmp_path / "count_twice.sql.j2").write_text(
        "{#\nreturns: a count\nrelations: [rows]\n#}\nSELECT 2 * count(*) FROM {{ rows }}"
    )
    con.execute("CREATE TABLE t AS FROM range(3)")
    more = Engine(con, templates=[tmp_path])
    assert [more.scalar(name, rows=Relation(("t",))) for name in ("count_twice", "database/count_rows")] == [6, 3]
    with pytest.raises(TemplateError, match="no template 'count_twice'"):
        Engine(con).scalar("count_twice", rows=Relation(("t",)))


# -- all statements of some runs -------------------------------------------------------------------------


def lines_of(sql):
    """The lines of a statement, but for numbers and names and however often they are repeated, as for each column."""
    return frozenset(NUMBERS.sub("0", NAMES.sub('"x"', line.strip())) for line in sql.splitlines())


class Recorder:
    """Every way in which a template is rendered and planned, over the runs that it listens to."""

    def __init__(self):
        self.listener = ldiv_db.Listener(on_statement=self.listen)
        #: {template and lines: (template, SQL, syntax tree of its SELECT)}, and operators that try every pair of rows.
        self.recorded, self.loops, self.planned = {}, {}, set()

    def listen(self, statement):
        for step in statement.parts or [statement]:
            key = (step.template, lines_of(step.sql))
            if step.template in TEMPLATES and key not in self.recorded:
                (tree,) = sqlglot.parse(step.sql, read="duckdb")
                tree = tree.expression if isinstance(tree, exp.Create | exp.Insert) else tree
                self.recorded[key] = (step.template, step.sql, tree)

    def plan(self, connection, statement):
        key = (statement.template, lines_of(statement.sql))
        if statement.template in TEMPLATES and key not in self.planned:
            self.planned.add(key)
            connection.execute("PRAGMA enable_optimizer")
            if tried := loops_in(connection, statement):
                self.loops.setdefault(statement.template, set()).update(tried)
            connection.execute("PRAGMA disable_optimizer")

    def record(self, scenario):
        """What a scenario adds to what is known."""
        known, execute = set(self.recorded), Engine._execute

        def plan_first(engine, statement):
            self.plan(engine.connection, statement)
            return execute(engine, statement)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "_execute", plan_first)
            # A scenario changes its source as it likes, and nobody has what it publishes.
            patch.setattr("ldiv_db.publishing.result.Earlier.require_safe", lambda earlier: None)
            patch.setattr("ldiv_db.running.release._published_beside", lambda resolved, published: [])
            scenario(self.listener)
        return [what for key, what in self.recorded.items() if key not in known], self.loops


@contextmanager
def connected():
    """A database for tiny tables: there it takes longer to optimise a statement than to run it as it is written."""
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("PRAGMA disable_optimizer")
        yield con


@pytest.fixture(scope="module", params=["few runs", pytest.param("all runs", marks=pytest.mark.slow)])
def recorded(request, tmp_path_factory):
    """What scenarios record: each is run by one of the processes that need it, and read by the others."""
    scenarios = SCENARIOS if request.param == "all runs" else {name: SCENARIOS[name] for name in FEW}
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if hasattr(request.config, "workerinput") else folder) / "statements"
    folder.mkdir(exist_ok=True)
    recorder = Recorder()
    for name, scenario in scenarios.items():
        try:
            (folder / name).touch(exist_ok=False)
        except FileExistsError:
            continue
        try:
            found = recorder.record(scenario)
        except BaseException as error:
            found = f"{name}: {error!r}"
            raise
        finally:
            (folder / f"{name}.part").write_bytes(pickle.dumps(found))
            (folder / f"{name}.part").rename(folder / f"{name}.pickle")
    return [waited(folder / f"{name}.pickle") for name in scenarios]


def waited(path, seconds=300):
    """What another process records, as soon as it is there."""
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path.stem} has not ended"
        time.sleep(0.05)
    found = pickle.loads(path.read_bytes())
    assert not isinstance(found, str), found
    return found


@pytest.fixture(scope="module")
def statements(recorded):
    """(template, SQL, syntax tree of its SELECT) of every way in which the runs rendered a template."""
    found = {(template, lines_of(sql)): (template, sql, tree) for made, _ in recorded for template, sql, tree in made}
    return list(found.values())


@pytest.fixture(scope="module")
def loops(recorded):
    """{template: operators that try every pair of rows} of the plans of all these statements."""
    return {
        template: set().union(*(loops.get(template, ()) for _, loops in recorded))
        for template in {template for _, loops in recorded for template in loops}
    }


def random_runs(listener):
    """Runs of random tables and policies."""
    for seed in (1, 3, 5, 12):
        for select in ("bisect", "greedy"):
            case = tables.random_case(random.Random(seed), select)
            case.policy["algorithm"]["residue"] = "incorporate"
            with connected() as con, tempfile.TemporaryDirectory() as folder:
                case.place(con, Path(folder))
                ldiv_db.run(con, case.policy, folder=folder, listener=listener)


def judge_everything(con, listener):
    """All requirements met, violated and attacked, and profiles of the table."""
    run_all_requirements(con, listener)
    engine = Engine(con, on_statement=listener.on_statement)
    source = Relation.parse("source")
    for keys in (["town"], ["town", "secret"]):
        profile_table(engine, source, ProfileRequest(qi=keys, population_size=1_000))
    con.execute("CREATE TABLE areas AS SELECT 501 + i * 777 AS zip FROM range(30) AS s(i)")
    profile_table(engine, Relation.parse("areas"), ProfileRequest(hipaa=True))
    con.execute("CREATE TABLE texts AS SELECT '2020-01-01' AS born")
    policy = {
        "source": "texts",
        "target": "none",
        "quasi_identifiers": {"born": {"numeric": True}},
        "require": [{"k": 1}],
    }
    with pytest.raises(ldiv_db.PolicyError):
        ldiv_db.run(con, policy, listener=listener)
    check_everything(engine)
    make_starter_policy(
        engine, profile_table(engine, source, ProfileRequest(None, ["town"], ["secret"])), source, "source"
    )
    attack_all(engine)
    of_people(con, listener)


def repair_nothing(con, listener):
    """Classes in conflict are given up, and others made of their rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair, "ROUNDS", 0)
        several(con, "bisect", listener)


def refine_many(con, listener):
    """What only large tables reach."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FORCED": 1, "MANY_ROWS": 0, "GRAINS": 4}.items():
            patch.setattr(boundaries, name, value)
        patch.setattr(recode, "MANY_ROWS", 0)
        refine(con, listener)


def compose(listener):
    """Statements that are written for other databases, none of which is run."""

    def noted(*said):
        statement = render(*said)
        listener.on_statement(statement)
        return statement

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composer, "render", noted)
        write_down_the_audit()


def publish_there(listener):
    """Runs on a warehouse, by plans of rows and of cells, of people and of nights, with values that are not shown."""
    rows = [(None if i == 5 else i % 4, "bcdef"[i % 5] if i % 8 else "a", i) for i in range(40)]
    policy = {
        "source": "people", "target": {"table": "out", "if_exists": "append"}, "sensitive": ["s"], "keep": ["note"],
        "quasi_identifiers": {"age": {"taxonomy": {"flat": True}}}, "over_time": "independent",
    }  # fmt: skip

    def noted(*said, **more):
        statement = render(*said, **more)
        listener.on_statement(statement)
        return statement

    with sqlite3.connect(":memory:") as there, pytest.MonkeyPatch.context() as patch:
        there.execute("CREATE TABLE people (age INTEGER, s TEXT, note INTEGER)")
        there.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        there.commit()
        patch.setattr(warehouses, "render", noted)
        for algorithm, require in (("auto", {"frequency": 3}), ("bsgi", {"k": 2}), ("topdown", {"k": 3})):
            ldiv_db.run(there, {**policy, "algorithm": algorithm, "require": [require]}, listener=listener)
        shown = {"algorithm": {"name": "cuts", "scheme": "vioSA"}, "require": [{"threshold": 0.3}], "target": "shown"}
        ldiv_db.run(there, policy | shown, listener=listener)
        people = {"individual": {"column": "note", "rows": "together"}, "keep": [], "output": {"person": "who"}}
        asked = {"algorithm": "topdown", "require": [{"k": 3}]}
        ldiv_db.run(there, policy | asked | people | {"target": "of_people"}, listener=listener)
        nightly = policy | asked | {"key": "note", "keep": [], "target": "nights", "over_time": "independent"}
        ldiv_db.run(there, nightly, listener=listener)
        tables = {"staged": Relation(("out",)), "published": Relation(("shown",)), "columns": [Identifier("s")]}
        for counted in (None, Identifier("n")):
            told = {**tables, "counted": counted}
            warehouses.Warehouse(there).written("publishing/warehouse/count_differing", **told)
        repeated = {"keep": [], "identifiers": ["note"], "algorithm": "bsgi", "require": [{"k": 2}], "target": "whole"}
        for repeats in ("rows", "list"):
            traits = replace(warehouses.TRAITS["sqlite"], repeats=repeats, exact="SELECT 's'")
            patch.setitem(warehouses.TRAITS, "sqlite", traits)
            with pytest.raises(ldiv_db.DatabaseError):  # SQLite cannot repeat rows
                ldiv_db.run(there, policy | repeated, listener=listener)


def write_down_the_audit():
    """The audit as a statement, of a table in which texts are one, and of a pair with counts."""
    settings = {"s": Sensitive.model_validate({"same": ["trim", "casefold"]})}
    named = RequirementSpec("threshold", {"default": 1, "HIV": "0.5"})
    require = [
        RequirementSpec("t_closeness", "0.2"),
        RequirementSpec("k", 2),
        RequirementSpec("risk", {"average": 0.5}),
        named,
    ]
    pair = Pair(Relation.parse("st"), "g", "n")
    with duckdb.connect() as con:
        for asked in (CheckRequest(["zip"], settings, require), CheckRequest([], settings, require, pair=pair)):
            check_statement(Engine(con), asked, Relation.parse("released"), "duckdb", labels=True)


def read_a_file(con, listener):
    """A run on a CSV file whose numbers have several spellings, some of them of one number."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{i % 9},{i % 2}.5,{('1', '1.0', '2.50')[i % 3]}" for i in range(24)]
        Path(folder, "rows.csv").write_text("\n".join(["age,dose,paid", *lines]))
        policy = {"source": "rows.csv", "target": "from_a_file", "quasi_identifiers": ["age"], "keep": ["dose"],
                  "sensitive": "paid", "require": [{"k": 2}], "algorithm": "mondrian"}  # fmt: skip
        ldiv_db.run(con, policy, folder=Path(folder), listener=listener)


def leave_open(con, listener):
    """A run whose policy says nothing of quasi-identifiers, some of which no class generalises, nor of people."""
    rows = [(i % 3, f"{i % 4}", i % 2, "uvw"[i // 12 % 3], i // 2) for i in range(48)]
    columns = {"age": "INTEGER", "zip": "VARCHAR", "smokes": "BOOLEAN", "secret": "VARCHAR", "patient": "INTEGER"}
    fill(con, "source", columns, rows)
    policy = {"source": "source", "target": "released", "quasi_identifiers": ["age", "zip", "smokes"],
              "identifiers": ["patient"], "sensitive": "secret", "require": [{"distinct": 2}],
              "output": {"types": "keep"}, "algorithm": "topdown"}  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)
    columns = "i // 3 AS whose, i // 3 % 7 AS home, i / 7 AS cost"
    con.execute(f"CREATE TABLE visits AS SELECT {columns} FROM range(600) AS r(i)")
    engine = Engine(con, on_statement=listener.on_statement)
    profile_table(engine, Relation.parse("visits"))
    con.execute(
        "CREATE TABLE homes AS SELECT CAST(i AS VARCHAR) AS whose, 'abc'[1 + i % 3] AS rent FROM range(150) AS r(i);"
        "CREATE TABLE users AS SELECT i AS user_id, i % 9 AS age FROM range(60) AS r(i);"
        "CREATE TABLE trips AS SELECT i AS trip_id, i % 60 AS user_id, i % 5 AS days FROM range(90) AS r(i);"
        "CREATE TABLE bills AS SELECT i AS bill_id, i % 90 AS trip_id, i % 90 % 60 AS user_id FROM range(120) AS r(i)"
    )
    tables = []
    for name, sensitive in (("visits", []), ("homes", ["rent"]), ("users", []), ("trips", ["days"]), ("bills", [])):
        relation = Relation.parse(name)
        tables.append(
            ProfiledTable.of(
                engine, name, name, relation, profile_table(engine, relation, ProfileRequest(sensitive=sensitive))
            )
        )
    start_policy(engine, tables, find_links(engine, tables))


def divide_rows(con, listener):
    """Tables in parts, some of whose columns are counted in grains, and rows of a part that are counted."""
    rows = [(rid, rid % 40, f"{rid % 4}001", 1.5 * rid, "abcd"[rid % 4], "x") for rid in range(60)]
    equal = [(rid, 7, "1001", 1.0, "abcd"[rid % 4], "x") for rid in range(60)]
    ways = [
        ({"name": "bsgi", "select": "bisect", "residue": "suppress"}, {"unique_distinct": 4}, rows[:59]),
        ("topdown", {"distinct": 2}, rows),
        ("topdown", {"distinct": 2}, equal),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "GRAINS", 4)
        for way, require, table in ways:
            fill(con, "source", people_in_parts.COLUMNS, table)
            ldiv_db.run(con, people_in_parts.policy_of(way, [require], 40), listener=listener)


def plan_from_counts(con, listener):
    """Runs on counts of rows, with a class column, sets of texts that are the same, and measured by their rows."""
    rows = [(i % 8, f"{i % 4:02d}", "abc"[i % 3], "yn"[i % 2], i % 3 + 1) for i in range(24)]
    columns = {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR", "label": "VARCHAR", "n": "BIGINT"}
    fill(con, "source", columns, rows)
    policy = {"source": "source", "weight": "n", "target": {"table": "out", "if_exists": "replace"},
              "quasi_identifiers": {"age": {"taxonomy": {"ranges": [2, 4]}}, "zip": {"taxonomy": {"prefix": [2, 1]}}},
              "sensitive": ["s"], "keep": ["label"], "require": [{"frequency": 2}]}  # fmt: skip
    ways = [{"name": "cuts"}, {"name": "cuts", "metric": "CM", "class": "label"}, {"name": "tds", "class": "label"}]
    for algorithm in [*ways, {"name": "tp"}, {"name": "topdown"}, {"name": "mondrian"}, {"name": "auto"}]:
        ldiv_db.run(con, policy | {"algorithm": algorithm}, listener=listener, kl=True)
    alone = {"sensitive": [], "identifiers": ["s"], "keep": [], "require": [{"k": 3}], "algorithm": "tds"}
    con.execute("ALTER TABLE source DROP label")
    ldiv_db.run(con, policy | alone, listener=listener, kl=True)
    engine = Engine(con, on_statement=listener.on_statement)
    engine.rows(counts.TEMPLATE, **counts.counting_params(parse_policy(policy), "source"))
    with mock.patch("ldiv_db.recoding.snapshot.COUNTED_FROM", 0):
        rows = policy | alone | {"weight": None, "identifiers": ["s", "n"], "algorithm": "mondrian"}
        ldiv_db.run(con, rows, listener=listener)


def let_rows_flow(con, listener):
    """`auto` on rows of which some go to classes that cost less."""
    draw = random.Random(5)
    rows = [(draw.randrange(12), f"{draw.randrange(12):02d}", draw.choice("aaabbcd")) for _ in range(60)]
    fill(con, "source", {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR"}, rows)
    policy = {
        "source": "source",
        "target": {"table": "out", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [2, 1]}}},
        "sensitive": ["s"],
        "require": [{"t_closeness": 0.1}],
        "seed": 0,
    }
    assert sum(ldiv_db.run(con, policy, listener=listener).search["flows"])


def recode_locally(con, listener):
    """All ways of local recoding, with and without a taxonomy, for requirements of each kind."""
    rows = [(i % 9, f"{i % 12:02d}", "abc"[i % 3], "uvw"[i * 5 % 7 % 3]) for i in range(48)]
    fill(con, "source", {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR", "u": "VARCHAR"}, rows)
    policy = {
        "source": "source",
        "target": {"table": "out", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [2, 1]}}},
        "sensitive": {"s": {"categories": [["a"], ["b"], ["c"]]}, "u": {}},
        "require": [
            {"t_closeness": 0.9},
            {"distinct": 2, "sensitive": "s"},
            {"distinct": 2, "sensitive": "u", "others_known": True},
        ],
    }
    ways = [{"name": "topdown"}, {"name": "peel"}, {"name": "stratified"}, {"name": "mondrian"},
            {"name": "mondrian", "split": "relaxed"}]  # fmt: skip
    for way in ways:
        ldiv_db.run(con, policy | {"algorithm": way}, listener=listener)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "LARGE", 1)
        ldiv_db.run(con, policy | {"algorithm": {"name": "auto", "effort": "thorough"}}, listener=listener)
    few = {"sensitive": ["s"], "require": [{"frequency": 2}], "algorithm": "peel", "identifiers": ["u"]}
    fill(con, "source", {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR", "u": "VARCHAR"},
         [(0, "00", "a", "")] * 5 + [(99, "99", value, "") for value in "bcdef"])  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peel, "PLACES", 1)
        patch.setattr(peel, "LAST_ROUNDS", 0)
        ldiv_db.run(con, policy | few, listener=listener)
    for show_values in (False, True):
        with pytest.raises(InfeasibleError):
            ldiv_db.plan(
                con, policy | few | {"require": [{"frequency": 3}]}, listener=listener, show_values=show_values
            )
    fill(con, "far", {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR", "u": "VARCHAR"},
         [(0, "00", "a", "")] * 8 + [(99, "99", "b", "")])  # fmt: skip
    spared = {"source": "far", "require": [{"k": 2}], "algorithm": "mondrian", "suppression": 0.2}
    assert ldiv_db.run(con, policy | few | spared, listener=listener).search["outliers"] == [1]
    con.execute("CREATE TABLE wages AS SELECT age, zip, age AS wage FROM source")
    near = {"source": "wages", "sensitive": ["wage"], "require": [{"proximity": {"epsilon": 1, "m": 2}}]}
    ldiv_db.run(con, policy | near | {"algorithm": "topdown"}, listener=listener)
    con.execute("CREATE TABLE spelt AS SELECT age, zip, s, age AS n FROM source UNION ALL"
                " SELECT 0, '00', upper(s), 0 FROM source")  # fmt: skip
    read = {"source": "spelt", "sensitive": ["s", "n"], "require": [{"distinct": 2}]}
    ldiv_db.run(con, policy | read | {"algorithm": "topdown"}, listener=listener)
    one = {"sensitive": {"s": {"same": ["trim", "casefold"]}}, "identifiers": ["n"]}
    one["require"] = [{"threshold": {"default": 0.9, "A": 0.8}}]
    ldiv_db.run(con, policy | read | one | {"algorithm": "topdown"}, listener=listener)


def spare_harmless_values(con, listener):
    """A run beside harmless values, a check of what violates there, and an attack."""
    fill(con, "source", {"zip": "VARCHAR", "s": "VARCHAR"}, [(f"{i % 4:02d}", "aabc"[i % 4]) for i in range(12)])
    sensitive = {"s": {"harmless": ["a", "z"]}}
    policy = {"source": "source", "target": "out", "quasi_identifiers": {"zip": {"taxonomy": {"prefix": [2, 1]}}},
              "sensitive": sensitive, "require": [{"recursive": {"c": 3, "l": 2}}], "algorithm": "topdown"}  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)
    engine = Engine(con, on_statement=listener.on_statement)
    settings = {"s": Sensitive.model_validate(sensitive["s"])}
    require = [RequirementSpec(name, 3) for name in ("distinct", "frequency")]
    check(engine, Relation.parse("source"), CheckRequest(["zip"], settings, require), Violations(engine).see)
    columns = question.Columns(["zip"], settings, require)
    attacks.attack_table(engine, Relation.parse("source"), columns, question.Knowledge())


def count_people(con, listener):
    """People with several rows and values: apart, so that classes lack people and merge, together, and by a cut."""
    rows = [(i // 2, f"{i // 2 % 2}0", 10 * (i // 2) + i % 2, "abcd"[(i + i // 4) % 4]) for i in range(24)]
    fill(con, "source", {"p": "INTEGER", "zip": "VARCHAR", "n": "INTEGER", "s": "VARCHAR"}, rows)
    keys = {"zip": {"taxonomy": {"prefix": [2, 1]}}}
    policy = {"source": "source", "quasi_identifiers": {"n": {"numeric": True}, **keys}, "sensitive": ["s"],
              "require": [{"k": 2}, {"entropy": 1.1}], "individual": "p"}  # fmt: skip
    pairs = {"identifiers": ["s"], "sensitive": [], "require": [{"k": 3}]}
    ldiv_db.run(con, {**policy, **pairs, "target": "pairs", "algorithm": "mondrian"}, listener=listener)
    fill(con, "few", {"p": "INTEGER", "zip": "VARCHAR", "n": "INTEGER"}, [(max(0, i - 8), "00", i) for i in range(12)])
    few = {"source": "few", "identifiers": [], "sensitive": [], "require": [{"k": 2}], "target": "merged"}
    ldiv_db.run(con, {**policy, **few, "algorithm": "mondrian"}, listener=listener)
    ldiv_db.run(con, {**policy, "target": "apart", "algorithm": "topdown"}, listener=listener)
    ldiv_db.attack(con, "apart", policy=policy, listener=listener)
    together = {"individual": {"column": "p", "rows": "together"}, "output": {"person": "who"}}
    ldiv_db.run(con, {**policy, **together, "target": "together", "algorithm": "topdown"}, listener=listener)
    ldiv_db.attack(con, "together", policy=policy | together, listener=listener)
    aligned = {"individual": {"column": "p", "rows": "aligned", "order": "n"}, "require": [{"k": 2}]}
    ldiv_db.run(con, {**policy, **aligned, "target": "aligned", "algorithm": "topdown"}, listener=listener)
    cut = {"identifiers": ["n"], "quasi_identifiers": keys, "require": [{"k": 2}], "algorithm": "tds"}
    ldiv_db.run(con, {**policy, **cut, "target": "cut"}, listener=listener)


def publish_tables(con, listener):
    """Several tables as one release: of people, of their rows in an order, and of what belongs to these."""
    names = ("patients", "stays", "labs")
    schemas.fill(con, names, schemas.drawn(random.Random(4), names, 48, most=2, values="abcdefghij"))
    policy = schemas.policy_of(names, require=[{"k": 2}])
    ldiv_db.run(con, policy, listener=listener)
    ldiv_db.attack(con, policy=policy, listener=listener)
    engine = Engine(con, on_statement=listener.on_statement)
    measure_tables(engine, ldiv_db.parse_policy(policy), MeasureRequest())
    engine.close_scratch()


def tell_means(con, listener):
    """The means of classes beside their ranges, as they are published and read again."""
    fill(con, "source", {"n": "INTEGER", "s": "VARCHAR"}, [(i, "abc"[i % 3]) for i in range(12)])
    policy = {"source": "source", "target": "out", "quasi_identifiers": {"n": {"numeric": True}},
              "sensitive": ["s"], "require": [{"distinct": 2}], "output": {"n": "mean"}}  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)


def follow_prices(con, listener):
    """Classes by prices through trees, whose labels are read backwards."""
    draw, homes = random.Random(3), [f"{town}{street}" for town in "abcd" for street in range(6)]
    rows = [(draw.choice(homes), draw.choice(homes)) for _ in range(300)]
    fill(con, "source", {"home": "VARCHAR", "work": "VARCHAR"}, rows)
    trees = {name: {"taxonomy": {"file": "towns.csv"}} for name in ("home", "work")}
    policy = {"source": "source", "target": "out", "quasi_identifiers": trees, "require": [{"k": 4}],
              "algorithm": {"name": "auto", "effort": "thorough"}}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        Path(folder, "towns.csv").write_text("\n".join(f"{home};{home[0]};*" for home in homes), encoding="utf-8")
        patch.setitem(improve.EFFORTS, "thorough", replace(improve.EFFORTS["thorough"], trials=0))
        asked = {"policy": policy, "folder": folder, "listener": listener}
        ldiv_db.run(con, **asked)
        ldiv_db.attack(con, "out", refine=True, budget=10**5, **asked)


def count_sets(con, listener):
    """Rows with sets of values."""
    fill(con, "source", {"n": "INTEGER", "s": "VARCHAR"}, [(i, ["a;b", "c", "a; c", "d"][i % 4]) for i in range(12)])
    policy = {"source": "source", "target": "out", "quasi_identifiers": {"n": {"numeric": True}},
              "sensitive": {"s": {"set": ";"}}, "require": [{"k": 2}, {"entropy": 1.1}]}  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)


def report(con, listener):
    """The evidence on a release, with all that its source tells, and worked out again."""
    rows = [(f"{i % 4:02d}", i, "abc"[i % 3]) for i in range(12)]
    fill(con, "source", {"zip": "VARCHAR", "n": "INTEGER", "s": "VARCHAR"}, rows)
    ways = {"zip": {"taxonomy": {"prefix": [2, 1]}}, "n": {"numeric": True}}
    policy = {"source": "source", "target": "out", "quasi_identifiers": ways,
              "sensitive": ["s"], "require": [{"distinct": 2}], "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)
    few = {"queries": 2, "tries": 2, "worlds": 2}
    made = ldiv_db.report(con, "out", policy, population="source", **few, listener=listener)
    verify_report(con, made.document, question_again(made.document, "out"), listener=listener)


def count_rows_alone(con, listener):
    """k-anonymity without a sensitive attribute: releases with labels alone, their check, and a recoding as SQL."""
    fill(con, "source", {"zip": "VARCHAR"}, [(f"{i % 4:02d}",) for i in range(12)])
    policy = {"source": "source", "quasi_identifiers": {"zip": {"taxonomy": {"prefix": [2, 1]}}}, "require": [{"k": 3}]}
    for ids in (True, False):
        more = {"target": f"out_{ids}", "output": {"class_id": ids}, "algorithm": "peel"}
        ldiv_db.run(con, policy | more, listener=listener)
    result = ldiv_db.run(con, policy | {"target": "recoded", "algorithm": "incognito"}, listener=listener)
    engine = Engine(con, on_statement=listener.on_statement)
    params = recode_sql.recoding_params(engine, recode_sql.find_run(engine, result.run_id))
    engine.rows(recode_sql.TEMPLATE, **params)
    check(engine, Relation.parse("recoded"), CheckRequest(["zip"], {}, [RequirementSpec("k", 5)]))


def profile_orders(con, listener):
    """A table whose columns are numbers, times, texts and codes, and name rows of another table."""
    fill(con, "customers", {"c_key": "INTEGER"}, [(i,) for i in range(30)])
    columns = {"o_key": "INTEGER", "age": "INTEGER", "day": "DATE", "zip": "VARCHAR", "what": "VARCHAR", "s": "VARCHAR"}
    rows = [
        (i % 30, i % 40, f"2020-01-{i % 28 + 1:02d}", f"{i % 45:05d}", "abc"[i % 3], "xxy"[i % 3]) for i in range(90)
    ]
    fill(con, "source", columns, rows)
    engine, source = Engine(con, on_statement=listener.on_statement), Relation.parse("source")
    make_starter_policy(engine, profile_table(engine, source, ProfileRequest(sensitive=["s", "age"])), source, "source")


def measure_everything(con, listener):
    """A published table with every kind of column, measured in every way."""
    engine = Engine(con, on_statement=listener.on_statement)
    columns = {
        "zip": "VARCHAR",
        "age": "INTEGER",
        "pay": "DOUBLE",
        "born": "DATE",
        "seen": "TIMESTAMP",
        "at": "TIMESTAMPTZ",
    }
    rows = [(f"{i}1", 20 + i, i / 2, f"2000-01-0{i + 1}", f"2000-01-0{i + 1}", f"2000-01-0{i + 1}", "xy"[i % 2])
            for i in range(6)]  # fmt: skip
    fill(engine.connection, "source", columns | {"secret": "VARCHAR"}, rows)
    texts = dict.fromkeys([*columns, "secret", "label"], "VARCHAR")
    fill(engine.connection, "published", texts | {"age_min": "INTEGER"},
         [("{01, 1*}", "*", "0.5", "*", "[2000-01-01 .. 2000-01-04]", None, "x", "yes", 1)])  # fmt: skip
    keys = {name: {"numeric": True} for name in columns}
    keys |= {"zip": {"taxonomy": {"prefix": [2, 1]}, "recode": "set"}, "age": {"taxonomy": {"ranges": [5]}}}
    policy = parse_policy({"source": "source", "target": "t", "quasi_identifiers": keys, "sensitive": ["secret"],
                           "require": [{"distinct": 2}]})  # fmt: skip
    tables = [Relation.parse(name) for name in ("published", "source")]
    original = describe(engine, policy, tables[1], Path())
    wanted = MeasureRequest(class_label="label", class_column="age_min", queries=5)
    measure_table(engine, tables[0], original, wanted, Besides(preserve=()))
    engine.connection.execute("UPDATE published SET age = '25'")
    engine.connection.execute("ALTER TABLE published RENAME age TO age_max")
    measure_table(engine, tables[0], original, MeasureRequest(), Besides(preserve=["SELECT count(*) FROM source"]))


def refine(con, listener):
    """A run that splits at boundaries and exchanges, with numbers and a tree."""
    draw = random.Random(1)
    rows = [(draw.randrange(60), draw.choice("abcd") + str(draw.randrange(9)), "uvwxyz"[i % 6]) for i in range(600)]
    fill(con, "source", {"age": "INTEGER", "zip": "VARCHAR", "secret": "VARCHAR"}, rows)
    keys = {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [2, 1]}}}
    policy = {"source": "source", "target": "released", "sensitive": ["secret"], "quasi_identifiers": keys}
    policy |= {"output": {"class_id": True}}
    algorithm = {"name": "bsgi", "select": "refine"}
    ldiv_db.run(con, policy | {"require": [{"distinct": 3}], "algorithm": algorithm}, listener=listener)
    open_method = {"target": "open", "require": [{"distinct": 3}], "transparent": True}
    ldiv_db.run(con, policy | open_method, listener=listener)


def cut_everything(con, listener):
    """Cuts by every metric and scheme, and one that is not allowed."""
    rows = [("ab"[i % 2], "cd"[i % 3 % 2], "xxxyyz"[i % 6], "no"[i // 4 % 2]) for i in range(14)]
    fill(con, "source", {"zip": "VARCHAR", "area": "VARCHAR", "secret": "VARCHAR", "label": "VARCHAR"}, rows)
    policy = {
        "source": "source", "sensitive": ["secret"], "keep": ["label"],
        "quasi_identifiers": {name: {"taxonomy": {"prefix": [1]}} for name in ("zip", "area")},
        "require": [{"threshold": {"default": 0.5, "x": 0.3}}, {"threshold": {"base": 0.6}}, {"frequency": 1.5}],
    }  # fmt: skip
    schemes = [("LM", "vioSA"), ("LM", "allSA"), ("LM", "vioRec"), ("DM", "vioRec"), ("CM", "vioRec"), ("CM", "allRec")]
    for place, (metric, scheme) in enumerate([*schemes, ("LM", "vioRec"), ("CM", "vioRec")]):
        most = cut_boxes.MOST_BOXES if place < len(schemes) else 0
        algorithm = {
            "name": "cuts",
            "unproved": "publish",
            "metric": metric,
            "scheme": scheme,
            "class": "label",
            "top": 2 if scheme == "vioSA" else 1,
        }
        require = policy["require"] if metric == "DM" else policy["require"][::2]
        target = {"target": f"{metric}_{scheme}_{place}", "algorithm": algorithm, "require": require}
        with mock.patch.object(cut_boxes, "MOST_BOXES", most), mock.patch.object(cut_sweep, "_MOST_PREFIXES", 1):
            result = ldiv_db.run(con, policy | target, listener=listener)
        if metric != "DM" and (metric, scheme) != ("CM", "vioRec"):
            engine = Engine(con, on_statement=listener.on_statement)
            run = recode_sql.find_run(engine, result.run_id)
            engine.rows(
                recode_sql.TEMPLATE, **recode_sql.recoding_params(engine, run, policy=parse_policy(policy | target))
            )
    with pytest.raises(ldiv_db.InfeasibleError):
        ldiv_db.run(con, policy | {"target": "t", "algorithm": {"name": "cuts", "scheme": "none"}}, listener=listener)
    judged = [("LM", "none", cut_boxes.MOST_BOXES), ("CM", "allRec", cut_boxes.MOST_BOXES), ("LM", "allRec", 0)]
    for place, (metric, scheme, most) in enumerate(judged):
        algorithm = {"name": "cuts", "metric": metric, "scheme": scheme, "class": "label", "unproved": "publish"}
        target = {"target": f"judged_{place}", "require": [{"distinct": 2}], "algorithm": algorithm}
        with mock.patch.object(cut_boxes, "MOST_BOXES", most):
            ldiv_db.run(con, policy | target, listener=listener)
    cut_numbers(con, listener)
    baselines = [("incognito", {"metric": metric, "class": "label"}) for metric in ("LM", "DM", "CM")]
    for place, (name, options) in enumerate([*baselines, ("tds", {}), ("tds", {"class": "label"})]):
        target = {"target": f"baseline_{place}", "require": [{"distinct": 2}], "algorithm": {"name": name, **options}}
        ldiv_db.run(con, policy | target, listener=listener)


def cut_numbers(con, listener):
    """Cuts through numbers without a taxonomy, with and without NULL, judged and by thresholds, and on a grid."""
    rows = [(i % 9 if i % 5 else None, i % 7, "uvw"[i * 5 % 11 % 3]) for i in range(40)]
    fill(con, "numbers", {"age": "INTEGER", "hours": "INTEGER", "secret": "VARCHAR"}, rows)
    policy = {"source": "numbers", "sensitive": ["secret"], "nulls": "value",
              "quasi_identifiers": {"age": {"numeric": True}, "hours": {"numeric": True}}}  # fmt: skip
    ways = [({"frequency": 1.5}, "none", 40_000_000), ({"k": 3}, "allRec", 40_000_000), ({"k": 3}, "allRec", 200)]
    for place, (require, scheme, most) in enumerate([*ways, ({"frequency": 1.5}, "allRec", 200)]):
        algorithm = {"name": "cuts", "scheme": scheme, "unproved": "publish"}
        target = {"target": f"numbers_{place}", "require": [require], "algorithm": algorithm}
        with mock.patch.object(cut_boxes, "MOST_BOXES", most):
            ldiv_db.run(con, policy | target, listener=listener)


def suppress(con, listener):
    """Runs of TP's family: one that needs phase three, ones whose thin, fat and almost thin groups give up rows."""
    hard = hard_groups(2, 3, 3, 3)
    thin = [[3, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]
    fat = [[3, 0, 0, 0, 0], [0, 3, 3, 3, 3]]
    stiff = [[30, 0, 0, 0, 0], [0, 30, 30, 30, 1]]
    keys = {"age": {"numeric": True}, "other": {"numeric": True}}
    for number, groups in enumerate((hard, thin, fat, stiff)):
        rows = [
            (30 + 3 * g, g % 2, f"v{v}")
            for g, group in enumerate(groups)
            for v, n in enumerate(group)
            for _ in range(n)
        ]
        fill(con, "source", {"age": "INTEGER", "other": "INTEGER", "secret": "VARCHAR"}, rows)
        for name in ("tp", "tp_plus", "hilbert"):
            policy = {"source": "source", "target": f"{name}_{number}", "sensitive": ["secret"],
                      "quasi_identifiers": keys, "require": [{"frequency": 3}], "algorithm": name,
                      "output": {"bounds": number == 1}}  # fmt: skip
            ldiv_db.run(con, policy, listener=listener)
    coarse = {"name": "tp", "coarsen": {"other": 1}}
    keys = {"age": {"numeric": True}, "other": {"taxonomy": {"ranges": [1, 2]}}}
    policy |= {"target": "coarse", "quasi_identifiers": keys, "algorithm": coarse}
    ldiv_db.run(con, policy, listener=listener)
    rows = [(30 + g, g, f"v{g}") for g in (0, 0, 1, 1)]
    fill(con, "source", {"age": "INTEGER", "other": "INTEGER", "secret": "VARCHAR"}, rows)
    policy |= {"target": "matched", "require": [{"frequency": 2}], "algorithm": "matching"}
    with pytest.MonkeyPatch.context() as patch:  # the statements are the same whoever finds the matching
        patch.setattr(matching, "_networkx", lambda: None)
        patch.setattr(matching, "match", lambda surplus: [(surplus[0].group_no, surplus[1].group_no, 2)])
        ldiv_db.run(con, policy, listener=listener)


def several(con, select, listener):
    """A run with two sensitive attributes and individuals, values that are too frequent, and conflicts to repair."""
    rows = [(i % 31, "uvwxyz"[i % 6], "aaabcdefg"[i // 10 % 9], i // 4 % 50 or None) for i in range(240)]
    fill(con, "source", {"age": "INTEGER", "secret": "VARCHAR", "other": "VARCHAR", "person": "INTEGER"}, rows)
    for residue in ("suppress", "incorporate"):
        policy = {
            "source": "source", "target": f"released_{residue}", "sensitive": ["secret", "other"],
            "quasi_identifiers": {"age": {"numeric": True}}, "individual": "person",
            "require": [{"distinct": 4 if residue == "suppress" else 2}],
            "algorithm": {"name": "bsgi", "select": select, "residue": residue},
        }  # fmt: skip
        ldiv_db.run(con, policy, listener=listener)


def decompose(con, listener):
    """Releases over time with noise, a taxonomy, refused groups and rows that join; and what is asked of them."""
    fill(con, "source", {"id": "INTEGER", "age": "INTEGER", "secret": "VARCHAR", "other": "VARCHAR"},
         [(i, i % 5, "xxxxyz"[i % 6], "aaab"[i % 4]) for i in range(24)])  # fmt: skip
    policy = {
        "source": "source", "target": {"prefix": "plus"}, "key": "id", "quasi_identifiers": ["age"],
        "sensitive": {"secret": {"l": 2}, "other": {"l": 2, "taxonomy": {"file": "other.yml"}}},
        "algorithm": {"name": "decomposition_plus", "starvation": 0},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "other.yml").write_text("{any: {a: {}, b: {}, c: {}}}")
        ldiv_db.run(con, policy, folder, listener)
        con.execute("INSERT INTO source VALUES (50, 1, 'u', 'a'), (51, 1, 'v', 'b')")
        ldiv_db.run(con, policy, folder, listener)
        algorithm = {"name": "decomposition", "combinations": "first"}
        ldiv_db.run(con, policy | {"target": {"prefix": "old"}, "algorithm": algorithm}, folder, listener)
    plain = policy | {"sensitive": {"secret": {"l": 2}}, "identifiers": ["other"], "algorithm": {"name": "anatomy"}}
    ldiv_db.run(con, plain | {"target": {"prefix": "anatomy"}}, listener=listener)
    again = {"source": "source", "target": {"prefix": "again"}, "key": "id", "sensitive": ["secret"],
             "quasi_identifiers": {"age": {"numeric": True}}, "identifiers": ["other"],
             "require": [{"k": 2}]}  # fmt: skip
    for _ in range(2):
        ldiv_db.run(con, again, listener=listener)
        con.execute("INSERT INTO source VALUES (60, 1, 'u', 'a'), (61, 1, 'v', 'b')")
    con.execute("DELETE FROM source WHERE id >= 60")
    con.execute("ALTER TABLE source ALTER id TYPE VARCHAR")
    ldiv_db.run(con, again, listener=listener)
    fill(con, "source", {"id": "INTEGER", "age": "INTEGER", "secret": "VARCHAR", "other": "VARCHAR"},
         [(i, i, "aabbcde"[i], "ppppqrs"[i]) for i in range(7)])  # fmt: skip
    last = policy | {"target": {"prefix": "none"}, "algorithm": {"name": "decomposition", "noise": "none"}}
    last["sensitive"] = {"secret": {"l": 3}, "other": {"l": 3}}
    ldiv_db.run(con, last, listener=listener)
    engine = Engine(con, on_statement=listener.on_statement)
    con.execute("CREATE TABLE plus_1_marginals AS SELECT secret, other FROM source")
    con.execute("CREATE TABLE plus_2_marginals AS FROM plus_1_marginals")  # as older versions had it
    releases.check_series(engine, "plus")
    ledger.runs(engine)
    releases.difference(engine, "plus", 1, 2)
    asked = releases.SequenceRequest(["source", "source"], "id", ["age"], [("secret", 1)])
    releases.check_sequence(engine, asked)


def replay(con, listener):
    """Replays of a table of classes with all worlds, and with some of them; of groups, with and without the seed."""
    fill(con, "source", {"id": "INTEGER", "age": "INTEGER", "secret": "VARCHAR"},
         [(i, i * 7 % 10, "aabbc"[i]) for i in range(5)])  # fmt: skip
    keys = {"age": {"numeric": True}, "id": {"numeric": True}}
    policy = {"source": "source", "target": "classes", "quasi_identifiers": keys,
              "sensitive": ["secret"], "require": [{"frequency": 2}],
              "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)
    for limit in (2, 100):
        attack = ldiv_db.Replay(limit=limit)
        ldiv_db.attack(con, "classes", policy=policy, replay=attack, listener=listener)
    blanked = {"target": "blanked", "algorithm": {"name": "cuts", "scheme": "vioSA"}, "suppressed": "unknown",
               "quasi_identifiers": {"age": {"taxonomy": {"ranges": [2, 4, 16]}}}, "identifiers": ["id"]}  # fmt: skip
    ldiv_db.run(con, policy | blanked, listener=listener)
    ldiv_db.attack(con, "blanked", policy=policy | blanked, replay=ldiv_db.Replay(), listener=listener)
    policy = {"source": "source", "target": {"prefix": "groups"}, "key": "id", "quasi_identifiers": ["age"],
              "sensitive": {"secret": {"l": 2}}, "algorithm": "anatomy"}  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)
    for tries in (0, 1):
        ldiv_db.attack(con, "groups", policy=policy, replay=ldiv_db.Replay(tries=tries), listener=listener)


def run_all_requirements(con, listener):
    """A run with a taxonomy out of the catalog, made from a table of edges, and every requirement."""
    engine = Engine(con, on_statement=listener.on_statement)
    migrate.migrate(engine)
    fill(con, "edges", {"child": "VARCHAR", "parent": "VARCHAR"}, [("a", "top"), ("b", "top")])
    taxonomy.store(engine, "town", taxonomy_sources.read_edges(engine, Relation.parse("edges"), "child", "parent"))
    rows = [("ab"[i % 2], "xyz"[i % 3]) for i in range(10)]
    fill(con, "source", {"town": "VARCHAR", "secret": "VARCHAR"}, rows)
    policy = {
        "source": "source", "target": "released", "sensitive": ["secret"], "nulls": "suppress",
        "quasi_identifiers": {"town": {"taxonomy": "town"}},
        "require": [{"k": 2}, {"risk": 0.5}, {"risk": {"average": 0.5}}, {"distinct": 2}, {"unique_distinct": 2},
                    {"frequency": 2}, {"threshold": 0.5}],
    }  # fmt: skip
    ldiv_db.run(con, policy, listener=listener)
    appended = {"table": "numbered", "if_exists": "append"}
    for _ in range(2):
        ldiv_db.run(con, policy | {"target": appended, "output": {"class_id": True}}, listener=listener)
    con.execute("CREATE TABLE typed AS SELECT DATE '2020-01-01' + CAST(i AS INTEGER) AS d, i % 2 AS secret,"
                " TIMESTAMP '2020-01-01' + i * INTERVAL 1 DAY AS t, CAST(12345 + i AS VARCHAR) AS zip"
                " FROM (SELECT range AS i FROM range(8))")  # fmt: skip
    keys = {
        "d": {"taxonomy": {"dates": ["day", "month", "quarter", "year", "decade"]}},
        "t": {"numeric": True},
        "zip": {"taxonomy": {"prefix": [5, 3]}},
    }
    typed = policy | {"source": "typed", "target": "times", "quasi_identifiers": keys}
    ldiv_db.run(con, typed, listener=listener)
    con.execute("CREATE TABLE signed AS SELECT CAST(['-0.0', '1', '0', '1'][1 + i % 4] AS DOUBLE) AS secret,"
                " 'a' COLLATE NOCASE AS town, [i] AS k FROM range(8) AS r(i)")  # fmt: skip
    ldiv_db.run(con, policy | {"source": "signed", "target": "kept", "keep": ["k"]}, listener=listener)
    forms = {"target": "bounded", "recode": "set", "output": {"bounds": True}}
    ldiv_db.run(con, typed | forms, listener=listener)
    with pytest.raises(ldiv_db.PolicyError):  # a value without a leaf
        fill(con, "source", {"town": "VARCHAR", "secret": "VARCHAR"}, [("c", "x"), ("a", "y")])
        ldiv_db.run(con, policy | {"target": "other"}, listener=listener)


def leave_out_everything(con, listener):
    """Rows that are not judged, and rows that are not published where shares are compared with the table's."""
    draw = random.Random(2)
    n = draw.choice([24, 30, 40])
    rows = [(draw.randint(0, 40), draw.choice("abcde"), draw.choice("xxxyyz")) for _ in range(n)]
    fill(con, "source", {"age": "INTEGER", "town": "VARCHAR", "s": "VARCHAR"}, rows)
    policy = {
        "source": "source", "target": "released", "sensitive": ["s"], "suppressed": "ignore",
        "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": {"prefix": [1]}}},
        "require": [{"t_closeness": {"t": 0.15, "distance": "equal"}}, {"k": 2}], "nulls_sensitive": "value",
        "algorithm": {"name": "peel", "residue": "suppress"},
    }  # fmt: skip
    assert ldiv_db.run(con, policy, listener=listener).search["resettled"]
    con.execute("UPDATE source SET s = NULL WHERE age < 10")
    unjudged = {"target": "again", "algorithm": "topdown", "require": [{"k": 2}]}
    ldiv_db.run(con, policy | unjudged, listener=listener)


def check_everything(engine):
    """Checks of a table that fails every requirement, of a table with suppressed rows, and of anatomised pairs."""
    con = engine.connection
    fill(
        con,
        "poor",
        {"town": "VARCHAR", "other": "INTEGER", "secret": "VARCHAR"},
        [("a", 1, "x"), ("a", 1, "x"), ("b", 2, "y"), ("b", 2, "x"), ("b", 3, "y"), ("*", 3, "y"), (None, 3, None)],
    )
    fill(con, "groups", {"town": "VARCHAR", "g": "INTEGER"}, [("a", 1), ("b", 1)])
    fill(con, "values_of", {"g": "INTEGER", "secret": "VARCHAR", "n": "INTEGER"}, [(1, "x", 1), (1, "y", 1)])
    absent = {"threshold": {**ARGUMENTS["threshold"], "absent": "allow"}}
    arguments = {name: argument for name, argument in (ARGUMENTS | absent).items() if name in REQUIREMENTS}
    require = [RequirementSpec(name, argument) for name, argument in arguments.items()]
    require += [
        RequirementSpec("t_closeness", {"t": 0, "distance": distance}) for distance in ("ordered", "hierarchical")
    ]
    settings = Sensitive.model_validate({"categories": [["x"], ["y", "z"]], "taxonomy": {"file": "secret.yml"}})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "secret.yml").write_text("{any: {x: {}, y: {}}}")
        for labels, values in ((False, False), (True, True)):
            shown = Violations(engine, labels, values)
            question = CheckRequest(["town"], {"secret": settings}, require, folder=Path(folder))
            check(engine, Relation.parse("poor"), question, shown.see)
    of_numbers = [RequirementSpec("t_closeness", 0), RequirementSpec("threshold", {"3.0": 0.5})]
    of_numbers += [RequirementSpec("range", {"k": 2, "e": 1}), RequirementSpec("proximity", {"epsilon": 1, "m": 2})]
    con.execute("CREATE TABLE dated AS SELECT 1 AS q, unnest([DATE '2020-01-01', DATE '2020-01-03']) AS seen")
    of_times = [RequirementSpec("range", {"k": 2, "e": "1 day"})]
    check(engine, Relation.parse("dated"), CheckRequest(["q"], {"seen": Sensitive()}, of_times))
    numbers = CheckRequest(["town"], {"other": Sensitive()}, of_numbers, suppressed="ignore")
    check(engine, Relation.parse("poor"), numbers)
    for count in (None, "n"):
        pair = Pair(Relation.parse("values_of"), "g", count)
        check(engine, Relation.parse("groups"), CheckRequest([], {"secret": Sensitive()}, require[:1], pair=pair))
    with pytest.raises(ldiv_db.InfeasibleError):
        policy = {"source": "poor", "target": "none", "identifiers": ["town"], "sensitive": ["secret"],
                  "quasi_identifiers": {"other": {"numeric": True}}, "require": [{"k": 9}]}  # fmt: skip
        listener = ldiv_db.Listener(on_statement=engine.on_statement)
        ldiv_db.run(con, policy | {"nulls_sensitive": "value"}, listener=listener)


def of_people(con, listener):
    """Runs whose classes are held against the people of a population."""
    fill(con, "everybody", {"zip": "VARCHAR"}, [("11",), ("12",), ("21",), ("31",)])
    fill(con, "drawn", {"zip": "VARCHAR", "secret": "VARCHAR"}, [("11", "x"), ("21", "y")])
    require = [{"k_map": {"k": 2, "population": "everybody"}}]
    require += [{"delta_presence": {"max": "0.9", "min": "0.1", "population": "everybody"}}]
    require += [{"risk": {"max": 0.9, "population": "everybody"}}]
    policy = {
        "source": "drawn",
        "quasi_identifiers": {"zip": {"taxonomy": {"prefix": [2, 1]}}},
        "sensitive": ["secret"],
    }
    policy |= {"target": {"table": "of_people", "if_exists": "replace"}, "require": require, "seed": 1}
    for algorithm in ("tds", "incognito"):
        ldiv_db.run(con, policy | {"algorithm": algorithm}, listener=listener)


def attack_all(engine):
    """Attacks on releases with labels of every kind, by people that are known."""
    keys = {
        "town": {"taxonomy": "town"},
        "d": {"numeric": True},
        "t": {"taxonomy": {"dates": ["day", "year"]}},
        "zip": {"taxonomy": {"prefix": [5, 3]}},
        "n": {"numeric": True},
        "m": {"numeric": True},
    }
    secret = {"secret": {"categories": ["x", "y"]}}
    policy = {"source": "x", "target": "y", "quasi_identifiers": keys, "sensitive": secret, "require": [{"k": 1}]}
    types = {"town": "VARCHAR", "d": "DATE", "t": "TIMESTAMP", "zip": "VARCHAR", "n": "TIMESTAMPTZ", "m": "DOUBLE"}
    people = [("a", "2020-01-01", "2020-01-01 10:00:00", "12345", "2020-01-01 10:00:00+00", 1.5)]
    fill(engine.connection, "people", types, people)
    labels = ("top", "[2020-01-01 .. 2020-02-01]", "2020", "{12345, 123*}", "2020-01-01 10:00:00+00", 1, 2, "x")
    columns = dict.fromkeys(["town", "d", "t", "zip", "n"], "VARCHAR") | {"m_min": "DOUBLE", "m_max": "DOUBLE"}
    fill(engine.connection, "attacked", columns | {"secret": "VARCHAR"}, [labels])
    table, known = Relation.parse("attacked"), Relation.parse("people")
    seen = question.columns_by_policy(engine, table, parse_policy(policy), Path())
    everybody = {"known": known, "population": known, "definetti": Relation.parse("truth")}
    engine.connection.execute("CREATE TABLE truth AS SELECT *, 'x' AS secret FROM people")
    also = [(table, seen)]
    asked = question.AttackRequest(counting=True, show_values=True)
    result = attacks.attack_table(engine, table, seen, question.Knowledge(asked, everybody, also=also))
    assert [attack.figures["one_class"] for attack in result.attacks if attack.name == "linking"] == [1]
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/attacked.parquet"
        engine.connection.execute(f"COPY (SELECT 1 AS class_id, t.* FROM attacked AS t) TO '{file}'")
        of_classes = CheckRequest(["town"], {"secret": Sensitive()}, [], "class_id")
        numbered = question.columns_asked(engine, FileRelation.of(file), of_classes)
        attacks.attack_table(engine, FileRelation.of(file), numbered, question.Knowledge())
    fill(engine.connection, "qit", {"g": "INTEGER", "town": "VARCHAR"}, [(1, "a"), (1, "b")])
    fill(engine.connection, "st", {"g": "INTEGER", "secret": "VARCHAR"}, [(1, "x"), (1, "y")])
    pair = Pair(Relation.parse("st"), "g")
    qit = Relation.parse("qit")
    groups = question.columns_asked(engine, qit, CheckRequest(["town"], {"secret": Sensitive()}, [], pair=pair))
    attacks.attack_table(engine, qit, groups, question.Knowledge(people={"definetti": Relation.parse("truth")}))
    engine.connection.execute("ALTER TABLE people ADD secret VARCHAR DEFAULT 'x'")
    people = dict.fromkeys(("population", "targets", "control"), known)
    tried = question.Knowledge(question.AttackRequest(downcoding=True), people)
    result = attacks.attack_table(engine, table, seen, tried)
    assert [attack.figures["successes"] for attack in result.attacks if attack.name == "inference"] == [1]


def alone(scenario, *more):
    """A scenario on a database of its own."""

    def run(listener):
        with connected() as con:
            scenario(con, *more, listener)

    return run


#: Runs that together reach every template; the longest first, so that processes share them evenly.
SCENARIOS = {
    "recode_locally": alone(recode_locally),
    "cut_everything": alone(cut_everything),
    "judge_everything": alone(judge_everything),
    "random_runs": random_runs,
    **{
        scenario.__name__: alone(scenario)
        for scenario in (
            replay, suppress, decompose, refine, plan_from_counts, report, leave_out_everything, divide_rows,
            let_rows_flow, refine_many, repair_nothing, measure_everything, count_rows_alone, spare_harmless_values,
            leave_open, read_a_file, profile_orders, count_people, count_sets, publish_tables,
            tell_means, follow_prices,
        )
    },
    "several_bisect": alone(several, "bisect"),
    "several_greedy": alone(several, "greedy"),
    "publish_there": publish_there,
    "compose": compose,
}  # fmt: skip


#: Those that each pass runs: of quick ones those that reach the most templates.
FEW = (
    "read_a_file", "profile_orders", "measure_everything", "compose", "spare_harmless_values",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("recorded", ["all runs"], indirect=True)
def test_every_template_was_exercised(statements):
    expected = {name for name in TEMPLATES if not name.startswith(APART)}
    assert expected - {template for template, _, _ in statements} == set()


def test_every_template_is_named_by_the_code():
    root = resource_folder("sql").parent
    code = " ".join(path.read_text(encoding="utf-8") for path in root.rglob("*.py"))
    words = set(re.findall(r"\w+", code))
    names = {template.rpartition("/")[2] for template in TEMPLATES}
    # Some are put together of their first word and what they are of.
    assert [name for name in names - words if f"{name.partition('_')[0]}_{{" not in code] == []


def test_each_template_is_one_select(statements):
    for template, _, tree in statements:
        assert isinstance(tree, exp.Select | exp.SetOperation), template


#: Who joins two tables by trying every pair of rows, and why this costs little, or is what is asked for.
LOOPS = {
    "attacking/downcoding/side_levels": "one label of a column covers everything",
    "attacking/downcoding/side_nodes": "one label of a column covers everything",
    "attacking/inference/guess_values": "one value is the most frequent of all",
    "bsgi/count_positions": "a row becomes one a quasi-identifier",
    "bsgi/residue/choose_classes": "BSGI compares every residual row with every class",
    "cuts/spread_counts": "a row becomes one a value",
    "decomposition/list_openings": "nearly every new group lacks a value that waits, and is one of the result",
    "decomposition/rank_exchanges": "a row of the result a jump",
    "solving/choose_merges": "a class that lacks people is compared with every other",
    "solving/count_codes": "a row becomes one a quasi-identifier",
    "local/peel/list_guests": "one vector of levels is looked up",
    "local/peel/list_keys": "a row of the result a vector",
    "local/peel/rank_classes": "the rows left are in the trial of each power of two",
    "local/peel/renew_standing": "one vector of levels is looked up",
    "local/stratified/list_cuts": "a node has a few parts",
    "local/stratified/mix_shares": "a cut has a few mixes",
    "measuring/answer_pairs": "as many queries as are asked for, and one tree",
    "measuring/choose_query_nodes": "as many queries as are asked for, and one tree",
    "neighbours/repair/seat_classes": "a value that is frequent in classes is looked for in all of them",
    "recoding/input/count_weights": "the hash of what a warehouse's rows keep is one row",
    "recoding/input/snapshot_source": "the hash of what a warehouse's rows keep is one row",
    "requirements/reading/find_sets": "three signs are looked for in each value",
    "running/replaying/list_fits_of_labels": "who is not published may be anybody",
}


def all_runs(recorded):
    return len(recorded) == len(SCENARIOS)


def test_no_statement_tries_every_pair_of_rows(loops, recorded):
    assert set(loops) <= set(LOOPS) and (not all_runs(recorded) or set(loops) == set(LOOPS)), loops


def test_outer_joins_ask_for_the_joined_table_only(statements):
    assert {(template, what) for template, _, tree in statements for what in one_sided(tree)} == set()


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT a.x FROM a LEFT JOIN b ON b.x = a.x", set()),
        ("SELECT a.x FROM a LEFT JOIN b ON b.x = a.x OR b.y = a.y", {"BLOCKWISE_NL_JOIN"}),
        ("SELECT a.x FROM a JOIN b ON b.x < a.x + b.y", {"BLOCKWISE_NL_JOIN"}),
        ("SELECT a.x FROM a JOIN b ON b.x <= a.x AND b.y >= a.x", set()),
        ("SELECT a.x FROM a CROSS JOIN b", {"CROSS_PRODUCT"}),
        ("SELECT a.x FROM a CROSS JOIN (SELECT max(b.x) AS x FROM b) AS m", set()),
        ("SELECT a.x FROM a CROSS JOIN (VALUES (1), ($p1)) AS v(x)", set()),
    ],
)
def test_pairs_that_are_tried_are_found(con, sql, found):
    con.execute("CREATE TABLE a AS SELECT 1 AS x, 2 AS y; CREATE TABLE b AS FROM a")
    assert loops_in(con, Statement("t", sql, {"p1": 2} if "$p1" in sql else {})) == found


@pytest.mark.parametrize(
    ("on", "found"),
    [
        ("b.x = a.x AND b.y = 1", []),
        ("b.x = a.x AND a.y = 1", ["a.y = 1"]),
        ("b.x = CASE WHEN a.y = 1 THEN a.x END", []),
    ],
)
def test_a_condition_on_one_side_is_found(on, found):
    assert one_sided(sqlglot.parse_one(f"SELECT a.x FROM a LEFT JOIN b ON {on}", read="duckdb")) == found


FUNCTIONS = {
    "hash",
    "list",
    "array_agg",
    "random",
    "uuid",
    "gen_random_uuid",
    "now",
    "current_timestamp",
    "struct_pack",
}


def lint(tree):
    """What in a syntax tree other engines cannot carry, or gives other results from run to run."""
    found = []
    for node in tree.walk():
        if isinstance(node, exp.Group) and (
            node.args.get("all") or any(e.name.upper() == "ALL" for e in node.expressions)
        ):
            found.append("GROUP BY ALL")
        if isinstance(node, exp.Order) and any(
            e.name.upper() == "ALL" and not e.this.args.get("quoted") for e in node.expressions
        ):
            found.append("ORDER BY ALL")
        if isinstance(node, exp.Star) and any(node.args.get(key) for key in ("except", "except_", "replace", "rename")):
            found.append("EXCLUDE")
        if isinstance(node, exp.Join):
            kinds = {str(node.args.get(key) or "").upper() for key in ("kind", "method", "side")}
            found += sorted(kinds & {"SEMI", "ANTI", "ASOF", "POSITIONAL"})
        if isinstance(node, exp.Column) and node.name.lower() == "rowid":
            found.append("rowid")
        if isinstance(node, exp.Func):
            name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
            if name in FUNCTIONS or isinstance(node, exp.ArrayAgg | exp.Rand | exp.List):
                found.append(f"{name}()")
        if isinstance(node, exp.Qualify | exp.Pivot | exp.Lambda):
            found.append(type(node).__name__)
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, count(*) FROM t GROUP BY ALL",
        "SELECT a FROM t ORDER BY ALL",
        "SELECT * EXCLUDE (a) FROM t",
        "SELECT * FROM t ASOF JOIN u ON t.a >= u.a",
        "SELECT * FROM t SEMI JOIN u ON t.a = u.a",
        "SELECT * FROM t ANTI JOIN u ON t.a = u.a",
        "SELECT rowid FROM t",
        "SELECT hash(a) FROM t",
        "SELECT list(a ORDER BY b) FROM t",
        "SELECT random() FROM t",
        "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
    ],
)
def test_the_lint_finds(sql):
    assert lint(sqlglot.parse_one(sql, read="duckdb"))


def test_no_statement_uses_what_other_engines_lack(statements):
    found = {(template, what) for template, _, tree in statements for what in lint(tree)}
    assert found == set()


def test_lines_fit_and_every_order_says_its_direction_and_where_null_stands():
    """`default_order` and `default_null_order` of a connection decide nothing."""
    for path in resource_folder("sql").rglob("*.j2"):
        text = path.read_text(encoding="utf-8")
        assert unstated_orders(plain(text)) == [], path
        assert not re.search(
            r"\b(GROUP BY ALL|ORDER BY ALL|QUALIFY|ASOF|EXCLUDE|rowid|random\(|list\()", plain(text)
        ), path
        assert max(map(len, text.splitlines())) <= 120, path


@pytest.mark.parametrize(
    ("sql", "terms"),
    [
        ("SELECT a FROM t ORDER BY a ASC NULLS FIRST, {{ b }} DESC NULLS LAST LIMIT 1", 0),
        ("SELECT a FROM t ORDER BY a", 1),
        ("SELECT a FROM t ORDER BY a ASC", 1),
        ("SELECT a FROM t ORDER BY a NULLS LAST", 1),
        ("SELECT sum(a) OVER (PARTITION BY c ORDER BY f(a, b), d DESC ROWS UNBOUNDED PRECEDING) FROM t", 2),
        ("SELECT string_agg(a, ', ' ORDER BY ' ASC NULLS LAST') FROM t", 1),
        ('{% for c in x %}ORDER BY {{ c }} ASC{{ "," if not loop.last }}{% endfor %}', 1),
    ],
)
def test_an_order_that_is_not_stated_is_found(sql, terms):
    assert len(unstated_orders(plain(sql))) == terms


def test_no_division_or_aggregate_is_left_to_settings_or_the_order_of_rows(statements):
    """`integer_division` decides nothing, nor does `preserve_insertion_order`."""
    assert {(template, what) for template, _, tree in statements for what in undecided(tree)} == set()


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT a / b FROM t", 1),
        ("SELECT sum(a) / count(*) FROM t", 1),
        ("SELECT (a + 1) * $p1 / greatest(b, 1) FROM t", 1),
        ("SELECT CASE WHEN CAST(a AS DOUBLE) > 1 THEN a END / b FROM t", 1),
        ("SELECT a / CAST(b AS DOUBLE), ln(a) / b, CAST(a AS DECIMAL(9, 2)) * c / b, a // b FROM t", 0),
        ("SELECT first(a), string_agg(b, ','), arg_min(a, b), any_value(b), max_by(a, b) FROM t", 5),
        ("SELECT string_agg(a, ',' ORDER BY a ASC NULLS LAST) FROM t", 0),
        ("SELECT a FROM t LIMIT 1", 1),
        ("SELECT DISTINCT ON (a) b FROM t", 1),
    ],
)
def test_what_settings_or_the_order_of_rows_would_decide_is_found(sql, found):
    assert len(undecided(sqlglot.parse_one(sql, read="duckdb"))) == found


@pytest.mark.parametrize("dialect", some(["spark", "postgres"]))
def test_every_statement_transpiles(statements, recorded, dialect):
    failed = {}
    ways = statements if all_runs(recorded) else {way[0]: way for way in statements}.values()  # one a template
    for template, _, tree in ways:
        try:
            sql = tree.sql(dialect=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)
            sqlglot.parse_one(sql, read=dialect)
        except sqlglot.errors.SqlglotError as error:
            failed[template] = str(error)
    assert failed == {}


#: The patterns of labels, which macros put together of parts, and what takes the place of what they find.
LABEL_PATTERNS = _environment(()).from_string(
    '{% import "macros/labels.j2" as labels %}{% for kind in kinds %}'
    "{{ labels.is_item(kind) }}{{ labels.plain_range(kind) }}{{ labels.range_item(kind, 1) }}{% endfor %}"
)


def test_no_statement_holds_a_value(statements):
    """Literals are the template's own: every value is bound as a parameter."""
    macros = "".join(path.read_text(encoding="utf-8") for path in (resource_folder("sql") / "macros").glob("*.j2"))
    patterns = set(re.findall("'([^']*)'", LABEL_PATTERNS.render(kinds=("integer", "real", "date", "timestamp"))))
    for template, _, tree in statements:
        if template == "database/read_columns":  # a view binds nothing: the file and a set's separator stand in it
            continue
        read = {id(part) for call in tree.find_all(exp.ReadCSV) for part in call.find_all(exp.Literal)}  # names, types
        written = {part.this for part in tree.find_all(exp.Literal) if part.is_string and id(part) not in read}
        own = {
            literal.this
            for literal in tree.find_all(exp.Literal)
            if exp.Literal.string(literal.this).sql() in template_text(template) + macros
        }
        assert written <= own | patterns | {"", "utf-8"}, template  # the encoding that sqlglot adds to `encode`
