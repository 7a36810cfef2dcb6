"""The floors: imports go down or level, one module knows the database's client, SQL stays on the ground floor.

And where the test of a module is.
"""

import ast
import graphlib
import re
from functools import cache
from pathlib import Path

import ldiv_db
from ldiv_db.database.templates import resource_folder

#: The program's text is the same with every version of the database.
PACKAGE = Path(ldiv_db.__file__).parent
FLOORS = {
    0: {"database", "display"},
    1: {"taxonomies"},
    2: {"requirements"},
    3: {"policy", "require"},
    4: {"recoding"},
    5: {"algorithms", "auditing", "measuring"},
    6: {"attacking", "publishing", "solving"},
    7: {"reporting", "running"},
    8: {"api"},
    9: {"__init__", "__main__", "commands"},
}
FLOOR_OF = {name: floor for floor, names in FLOORS.items() for name in names}
MODULES = sorted(PACKAGE.rglob("*.py"))


def unit(path):
    """The part of the package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree, path):
    """The names of all modules that a file imports, wherever in it."""
    package = ["ldiv_db", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


@cache
def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def names_imported(path):
    return frozenset(imported(parse(path), path))


def test_every_module_has_a_floor():
    assert {unit(path) for path in MODULES} <= set(FLOOR_OF)


@cache
def files_of(name):
    """The modules of ours that an imported name may be, or is of."""
    at = PACKAGE.parent.joinpath(*name.split("."))
    files = [at.with_suffix(".py"), at / "__init__.py", at.parent.with_suffix(".py"), at.parent / "__init__.py"]
    return [file for file in files if file.is_relative_to(PACKAGE) and file.is_file()]


def modules_imported(path):
    """The modules of ours that a file imports, wherever in it, by file."""
    return {file for name in names_imported(path) if name.startswith("ldiv_db") for file in files_of(name)}


def test_no_modules_import_one_another_in_a_circle():
    graph = {path: modules_imported(path) - {path} for path in MODULES if path.name != "__init__.py"}
    graph = {path: below & set(graph) for path, below in graph.items()}
    order = graphlib.TopologicalSorter(graph)
    order.prepare()  # raises CycleError, naming the circle


def test_an_import_within_a_function_counts():
    late = ast.parse("def late():\n    from ldiv_db.database.engine import Engine")
    assert list(imported(late, PACKAGE / "late.py")) == ["ldiv_db.database.engine.Engine"]


def names_above(path):
    """The modules of floors above it that a file imports."""
    for name in names_imported(path):
        parts = name.split(".")
        if parts[0] == "ldiv_db":
            part = parts[1] if len(parts) > 1 and parts[1] in FLOOR_OF else "__init__"
            if FLOOR_OF[part] > FLOOR_OF[unit(path)]:
                yield name


def test_imports_go_down_or_level():
    assert {path: found for path in MODULES if (found := set(names_above(path)))} == {}


SQL_FOLDERS = {path.name for path in resource_folder("sql").iterdir() if path.is_dir()} - {"macros", "dbt"}


def room_of(folder):
    """The room whose templates lie in a folder of SQL: the one of its name, or the family's."""
    return folder if folder in FLOOR_OF else "algorithms"


def sql_folders(tree):
    """The folders whose templates a module names; of a name that is put together, its beginning."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            folder, slash, rest = node.value.partition("/")
            if slash and folder in SQL_FOLDERS and re.fullmatch("[a-z_/]*", rest):
                yield folder


def test_every_folder_of_sql_has_a_room():
    assert {folder for folder in SQL_FOLDERS if not (PACKAGE / folder).is_dir()} <= {
        path.stem for path in (PACKAGE / "algorithms").iterdir()
    }


def test_sql_goes_down_or_level():
    named = [(path, folder) for path in MODULES for folder in sql_folders(parse(path))]
    assert [one for one in named if FLOOR_OF[room_of(one[1])] > FLOOR_OF[unit(one[0])]] == []


def test_the_folders_of_templates_are_found():
    code = 'engine.rows("recoding/input/map_leaves")\nf"requirements/{name}"\n"text/html"\n"recoding/Input: a title"'
    assert list(sql_folders(ast.parse(code))) == ["recoding", "requirements"]


def test_one_module_imports_the_databases_client():
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        for name in names_imported(path)
        if name.split(".")[0] == "duckdb"
    }
    assert users == {"database/connections.py"}


SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\b(CREATE|DROP|ALTER)\s+(OR\s+REPLACE\s+)?(TEMP\s+)?(TABLE|VIEW|SCHEMA)\b"
    r"|\bINSERT\s+INTO\b|\bDELETE\s+FROM\b|\bUPDATE\s+\S+\s+SET\b|\bGROUP\s+BY\b|\bORDER\s+BY\b|\bATTACH\s+'|^\s*SELECT\b|\bCOPY\s+\S+\s+TO\b",
    re.DOTALL,
)


def sql_texts(tree):
    """String constants that hold SQL, docstrings aside; of an f-string, its constant parts joined."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else " x " for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            text = node.value
        else:
            continue
        if SQL.search(text):
            yield text


def test_no_sql_above_the_ground_floor():
    above = [path for path in MODULES if FLOOR_OF[unit(path)] > 0]
    assert [(path, text) for path in above for text in sql_texts(parse(path))] == []


def test_sql_is_found_and_prose_is_none():
    for code in ('f"SELECT {x} FROM t"', '"CREATE TABLE t (x INT)"', '"INSERT INTO t VALUES (1)"', 'f"DROP TABLE {t}"'):
        assert list(sql_texts(ast.parse(f"x = {code}")))
    for code in ('x = "Select the rows of a table"', 'def f():\n    """SELECT x FROM t"""', 'x = "from t"'):
        assert not list(sql_texts(ast.parse(code)))


def test_the_audit_counts_by_templates_that_nothing_else_uses():
    """The auditor would repeat the mistakes of what it checks."""
    assert {unit(path) for path in MODULES if "auditing" in sql_folders(parse(path))} == {"auditing"}


def test_the_second_reading_shares_no_text_with_the_first():
    """It is the macros of the dbt package, which take nothing from our templates and give them nothing."""
    root = resource_folder("sql")
    package = [path.read_text(encoding="utf-8") for path in (root / "dbt").rglob("*.sql")]
    assert package and not [text for text in package if re.search(r"\{%-?\s*(from|import|include|extends)\b", text)]
    assert not [path for path in root.rglob("*.j2") if re.search(r"\{%.*[\"/]dbt/", path.read_text(encoding="utf-8"))]
    names = {name for path in (PACKAGE / "database" / "dbt_macros.py",) for name in names_imported(path)}
    assert "ldiv_db.database.templates.render" not in names


#: What makes a policy of a text or a mapping, and the functions below `api` that call it: those of the public face, and
#: those that are given one by dbt, the demonstration, a report that is verified, or with another release.
READERS = {"load_file", "load_policy", "parse_policy", "read_policy"}
READING = {
    "attacking/question.py": ["_others"],
    "reporting/request.py": ["read_again", "question"],
    "running/attack.py": ["attack"],
    "running/dbt_policy.py": ["policy_of"],
    "running/demo.py": ["demonstrate"],
    "running/demo_tables.py": ["demonstrate_tables"],
    "running/exploring/explore.py": ["explore"],
    "running/run.py": ["run", "plan", "estimate"],
}


def calling(tree, names):
    """The functions of a module that call one of these by its name."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
            if any(isinstance(called, ast.Name) and called.id in names for called in calls):
                yield function.name


def test_a_policy_is_read_once():
    below = [path for path in MODULES if FLOOR_OF[unit(path)] < FLOOR_OF["api"] and unit(path) != "policy"]
    found = {path.relative_to(PACKAGE).as_posix(): list(calling(parse(path), READERS)) for path in below}
    assert {name: functions for name, functions in found.items() if functions} == READING
    assert list(calling(ast.parse("def late(p):\n    return load_policy(p)"), READERS)) == ["late"]


#: The modules beside `policy/` that know a policy: until it is resolved, where another is tried in its place, and what
#: has no source to hold it against, as an audit, an attack or a statement for another database.
KNOWING = {
    *("attacking/columns.py", "attacking/question.py", "auditing/cells.py"),
    *("auditing/check.py", "auditing/tables.py"),
    *("measuring/measure.py", "measuring/tables.py"),
    *("measuring/asking/answer.py", "measuring/asking/columns.py", "measuring/asking/statement.py"),
    *("publishing/refusals.py", "recoding/counting.py", "recoding/statement.py"),
    *("reporting/attempts.py", "reporting/contract.py", "reporting/request.py"),
    *("reporting/risks.py", "reporting/subject.py", "reporting/verification.py"),
    *("running/attack.py", "running/dbt_model.py", "running/dbt_policy.py", "running/demo.py"),
    "running/policy_algorithm.py",
    *("running/exploring/explore.py", "running/exploring/variants.py"),
    *("running/release.py", "running/remedies.py", "running/replay_methods.py", "running/rights.py"),
    *("running/run.py", "running/run_spec.py", "running/there.py"),
    *("running/tables.py", "running/tables_apart.py", "running/tables_remedies.py"),
}


def test_what_follows_resolving_knows_no_policy():
    below = [path for path in MODULES if FLOOR_OF[unit(path)] < FLOOR_OF["api"] and unit(path) != "policy"]
    names = {f"ldiv_db.policy.{module}.Policy" for module in ("document", "reading")}
    found = {path.relative_to(PACKAGE).as_posix() for path in below if names & names_imported(path)}
    assert found == KNOWING


def takers(tree, kind):
    """The functions of a module that have a parameter of a type."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            if any(isinstance(one.annotation, ast.Name) and one.annotation.id == kind for one in given):
                yield function.name


def test_a_context_is_handed_on_within_runs_alone():
    """Whatever works for a run takes the engine, the folder or the listener that it uses."""
    assert {unit(path) for path in MODULES if list(takers(parse(path), "Context"))} == {"running"}
    assert list(takers(ast.parse("def late(engine: Engine, *, context: Context): ..."), "Context")) == ["late"]


def test_nothing_below_calls_back_into_runs_in_warehouses():
    above = {"running", "api", "commands"}
    users = {unit(path) for path in MODULES if PACKAGE / "running" / "there.py" in modules_imported(path)}
    assert users <= above


#: What many fields or parameters have in common is a concept that lacks its name. Few are as wide as what they stand
#: for: a result as JSON has it, a dialect, a policy as Python writes it, the commands whose options typer reads.
MOST_FIELDS, MOST_PARAMETERS = 12, 6
WIDE_CLASSES, WIDE_FUNCTIONS = 8, 15


def fields_declared(tree):
    """The names of the dataclasses of a module, each with how many fields it declares itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in node.decorator_list):
            own = [one for one in node.body if isinstance(one, ast.AnnAssign)]
            kept = [one for one in own if not re.match("ClassVar|KW_ONLY", ast.unparse(one.annotation))]
            yield node.name, len(kept)


def parameters_taken(tree):
    """The names of the functions of a module, each with how many parameters it has beside its instance or class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
            yield node.name, len(given) + len(node.args.kwonlyargs) - (given[:1] in (["self"], ["cls"]))


def wide(counts, most):
    """The names of what has more than `most` of something, over all modules."""
    return [name for path in MODULES for name, count in counts(parse(path)) if count > most]


def test_few_classes_and_functions_are_wide():
    assert len(wide(fields_declared, MOST_FIELDS)) <= WIDE_CLASSES
    assert len(wide(parameters_taken, MOST_PARAMETERS)) <= WIDE_FUNCTIONS
    code = "@dataclass\nclass C:\n    a: int\n    _: KW_ONLY\n    b: ClassVar[int] = 1\n    def f(self, a, *, b): ..."
    assert list(fields_declared(ast.parse(code))) == [("C", 1)]
    assert list(parameters_taken(ast.parse(code))) == [("f", 2)]


MOST_LINES_OF_A_MODULE = 350


def test_modules_are_read_in_one_sitting():
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: found for name, found in lines.items() if found > MOST_LINES_OF_A_MODULE} == {}


# -- tests ---------------------------------------------------------------------------------------------

TESTS = Path(__file__).parent
#: A row of the table that says which tests other modules have.
COVERED = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)


def test_every_module_has_a_test_file_of_its_name_or_a_line_in_the_table():
    rows = [(tests.split(), modules.split()) for tests, modules in COVERED.findall((TESTS / "README.md").read_text())]
    named = {path.stem.removeprefix("test_") for path in TESTS.rglob("test_*.py")}
    without = {
        path.relative_to(PACKAGE).with_suffix("") for path in MODULES if path.stem not in {"__init__", "__main__"}
    }
    without = {path for path in without if path.name not in named}
    patterns = [pattern for _, modules in rows for pattern in modules]
    assert [str(path) for path in sorted(without) if not any(path.match(pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(path.match(pattern) for path in without)] == [], "no such module"
    there = [TESTS / test if (TESTS / test).is_dir() else TESTS / f"{test}.py" for tests, _ in rows for test in tests]
    assert [path.name for path in there if not path.exists()] == []
