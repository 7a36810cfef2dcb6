"""What every template promises: its header, its parameters, and SQL that other engines can carry."""

import pickle
import re
import subprocess
import sys
import time

import duckdb
import jinja2
import jinja2.meta
import pytest
import sqlglot
import steps
from examples import run_example
from plans import loops_in, one_sided
from sqlglot import exp
from stated import is_sorted_at_once, plain, undecided, unstated_orders
from strategies import some

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import TemplateError
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
from tests.benchmarks.command import SQL
from tests.sql.recording import Recording
from tests.sql.templates import LISTS, all_templates

TEMPLATES = all_templates()
#: Folders of templates that no release is made, judged or attacked by.
APART = ("running/demo/", "taxonomies/draft_groups")
#: What reaches every template, with the examples of headers: the quick tests of some rooms, of files of others, and
#: some slow ones.
ROOMS = ("algorithms", "attacking", "promises", "solving")
FILES = {
    "auditing": "check statement table_macros",
    "commands": "contract profile_tables rows_alone",
    "database": "csv_files engine",
    "measuring": "asking links measure profile starter_policy tables",
    "publishing": "earlier_releases release_keys",
    "recoding": "same_values",
    "reporting": "evidence verification",
    "requirements": "harmless_requirements nearness populations requirement_oracle",
    "running": "every_type pace rows_alone there there_beside there_faults weights",
}
SLOW = (
    "algorithms/test_boxes.py::test_boxes_that_are_too_many_are_not_made",
    "attacking/test_replay.py::test_posteriors_are_those_of_running_the_program_on_every_assignment",
    "solving/test_auto.py::test_classes_are_compared_with_what_is_published_where_rows_are_left_out",
    "solving/test_divide.py::test_what_cannot_be_divided_is_solved_whole",
)


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


@pytest.fixture(scope="module", params=["few runs", pytest.param("all runs", marks=pytest.mark.slow)])
def recorded(request, tmp_path_factory):
    return whole_pass(request.config, tmp_path_factory) if request.param == "all runs" else few_runs()


@pytest.fixture(scope="module")
def statements(recorded):
    """(template, SQL, syntax tree of its SELECT) of every way in which the runs rendered a template."""
    trees = [(*way, *sqlglot.parse(way[1], read="duckdb")) for way in recorded.ways.values()]
    return [(*way, tree.expression if isinstance(tree, exp.Create | exp.Insert) else tree) for *way, tree in trees]


def few_runs():
    """The examples of headers, and runs of two algorithms."""
    recording = Recording()
    with duckdb.connect(config={"threads": 1}) as con, recording.listening():
        for template in TEMPLATES:
            if "example" in header(template):
                run_example(con, template)
        for name in ("bsgi", "local/topdown"):
            steps.listen(steps.CASES[name])
    return recording


def whole_pass(config, tmp_path_factory):
    """All that these tests send: one process of those that need it has them run, the others wait."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if hasattr(config, "workerinput") else folder) / "statements"
    try:
        folder.mkdir()
    except FileExistsError:
        until = time.monotonic() + 3_600
        while not (folder / "ended").exists() and time.monotonic() < until:
            time.sleep(0.5)
    else:
        quick = [*ROOMS, *(f"{room}/test_{name}.py" for room, names in FILES.items() for name in names.split())]
        said = [recorded_in(folder / "quick", config, quick), recorded_in(folder / "slow", config, SLOW, "-m", "slow")]
        (folder / "ended").write_text("".join(said))
    recording = few_runs()
    recording.is_whole = True
    for path in folder.glob("*/*.pickle"):
        recording.add(pickle.loads(path.read_bytes()))
    return recording


def recorded_in(folder, config, tests, *words):
    """What pytest said of these tests, which leave their recordings in a folder."""
    folder.mkdir()
    asked = ["-p", "tests.sql.recording", "--record", str(folder), "-n", "auto", *words]
    command = [sys.executable, "-m", "pytest", *asked, *(f"tests/{test}" for test in tests)]
    return subprocess.run(command, cwd=config.rootpath, capture_output=True, text=True, check=False).stdout


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
    "database/count_rows": "a view of a warehouse's rows, with the hash of what they keep, is counted too",
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
    "running/replaying/list_fits_of_labels": "who is not published may be anybody",
}


def test_no_statement_tries_every_pair_of_rows(recorded):
    loops = recorded.loops
    assert set(loops) <= set(LOOPS) and (not recorded.is_whole or set(loops) == set(LOOPS)), loops


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
            is_lacking = name in FUNCTIONS or isinstance(node, exp.ArrayAgg | exp.Rand | exp.List)
            if is_lacking and not is_sorted_at_once(node):
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
        unsorted = re.sub(r"list_sort\(\s*(list_distinct\(\s*)?list\(", "", plain(text))
        assert not re.search(r"\b(GROUP BY ALL|ORDER BY ALL|QUALIFY|ASOF|EXCLUDE|rowid|random\(|list\()", unsorted), (
            path
        )
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
    ways = statements if recorded.is_whole else {way[0]: way for way in statements}.values()  # one a template
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
