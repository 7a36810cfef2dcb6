"""Names quote themselves, whatever they hold."""

import pytest

from ldiv_db.database import templates
from ldiv_db.database.catalog import named_table
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.errors import LdivError, TemplateError
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import render

HOSTILE = [
    'a"b',
    "it's",
    "x; DROP TABLE y --",
    "select",
    "",
    " ",
    "ü",
    "{{ 7 * 7 }}",
    "$p1",
    "a.b",
    "\\",
    "/* */",
    'a""b',
]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_hostile_names_come_back_as_they_are(con, name):
    quoted = Identifier(name).sql()
    assert quoted == '"' + name.replace('"', '""') + '"'
    con.execute(f"CREATE TABLE {Relation((name,)).sql()} ({quoted} INTEGER)")
    assert con.execute("SELECT table_name, column_name FROM information_schema.columns").fetchall() == [(name, name)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("main.t", ("main", "t")),
        ("db.main.t", ("db", "main", "t")),
        ('"my schema"."my.table"', ("my schema", "my.table")),
        ('"a""b"', ('a"b',)),
        ("Patients", ("Patients",)),
    ],
)
def test_parse(text, parts):
    relation = Relation.parse(text)
    assert relation.parts == parts and relation.name == parts[-1]
    assert Relation.parse(relation.sql()) == relation


@pytest.mark.parametrize("text", ["", "a.", "a.b.c.d"])
def test_parse_refuses_what_is_no_name(engine, text):
    with pytest.raises(LdivError, match="is not the name of a table"):
        named_table(text, "source")


@pytest.mark.parametrize(
    "text", ["t; DROP TABLE u", "SELECT 1", "t WHERE 1 = 1", "t AS x", "t JOIN u", "f(x)", "(SELECT 1)"]
)
def test_what_looks_like_sql_is_at_most_a_strange_name(engine, text):
    try:
        relation = named_table(text, "source")
    except LdivError:
        return
    assert relation.parts == (text,) and relation.sql() == f'"{text}"'


def test_a_files_path_is_bound():
    statement = render("database/count_rows", {"rows": FileRelation.of("it's.parquet")})
    assert statement.values == {"p1": "it's.parquet"} and "read_parquet($p1)" in statement.sql


@pytest.mark.parametrize(
    ("path", "reader"), [("a.CSV", "read_csv"), ("b.json", "read_json"), ("main.t", None), ("c.txt", None)]
)
def test_files_are_told_by_their_ending(path, reader):
    file = FileRelation.of(path)
    assert (file.reader if file else None) == reader


def test_value_does_not_become_sql_even_in_an_identifiers_place():
    statement = render("recoding/input/bound_numbers", {"rows": Relation(("t",)), "column": Value("x"), "kind": "real"})
    assert "x" not in statement.sql.replace("max", "") and statement.values


def test_what_a_header_says_decides_what_a_text_becomes():
    hostile = 'x" FROM t; DROP TABLE u; --'
    rows, other = Relation(("t",)), Relation(("u",))
    name = render("database/number_groups", {"rows": rows, "by": [hostile], "columns": (), "number": hostile}).sql
    assert Identifier(hostile).sql() in name and hostile not in name.replace(Identifier(hostile).sql(), "")
    bound = render("taxonomies/list_taxonomy_nodes", {"nodes": rows, "taxonomy": hostile})
    assert list(bound.values.values()) == [hostile] and hostile not in bound.sql
    condition = {"column": Identifier("c"), "sign": "=", "value": 7}
    counted = render("database/count_groups", {"rows": other, "columns": [], "conditions": [condition]})
    assert list(counted.values.values()) == [7]
    with pytest.raises(TemplateError, match="not str"):
        render("database/count_groups", {"rows": other, "columns": [], "conditions": [condition | {"value": hostile}]})


def test_compiled_templates_are_kept_if_they_may_be(tmp_path, monkeypatch):
    def rendered():
        templates._environment.cache_clear()
        return templates.render("database/count_rows", {"rows": Relation(("t",))}).sql

    monkeypatch.setattr(templates.sys, "dont_write_bytecode", False)
    expected = rendered()
    for folder in (tmp_path, tmp_path / "missing"):
        monkeypatch.setattr(templates.Compiled, "__init__", lambda self, to=folder: _keep_in(self, to))
        assert rendered() == rendered() == expected
    assert len(list(tmp_path.iterdir())) == 2  # itself, and the lists that all templates have
    monkeypatch.setattr(templates.sys, "dont_write_bytecode", True)
    unwritten = tmp_path / "unwritten"
    unwritten.mkdir()
    monkeypatch.setattr(templates.Compiled, "__init__", lambda self: _keep_in(self, unwritten))
    assert rendered() == expected and not list(unwritten.iterdir())
    templates._environment.cache_clear()


def _keep_in(cache, folder):
    templates.FileSystemBytecodeCache.__init__(cache, str(folder), "template_%s.cache")
