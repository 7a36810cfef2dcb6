"""The tests of the dbt package without dbt: its macros, with what dbt offers to them so far as they ask for it.

dbt reads the same files (`ldiv dbt path`), so what is rendered here is what dbt-duckdb sends.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

from jinja2 import Environment, FileSystemLoader, Template, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Macro

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier
from ldiv_db.database.templates import Compiled, resource_folder

#: A folder of the package that is no test: dbt alone can carry out a materialization.
_LEFT_OUT = "materializations/"


class NotReadError(Exception):
    """The package says that it cannot judge what it is asked."""


class _ReturnedError(Exception):
    """Carries what a macro returns out of the text that it writes, as in dbt."""

    def __init__(self, value: Any):
        super().__init__()
        self.value = value


class _Tests(Extension):
    """A `test` block of dbt's is a macro of that name with `test_` before it."""

    tags = {"test"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        node = nodes.Macro(lineno=next(parser.stream).lineno)
        node.name = f"test_{parser.parse_assign_target(name_only=True).name}"
        parser.parse_signature(node)
        node.body = parser.parse_statements(("name:endtest",), drop_needle=True)
        return node


def count_failures(engine: Engine, table: Table, test: str, **arguments: Any) -> int:
    """The number of rows that the package's generic `test` returns for the table; raises NotReadError if it refuses."""
    columns = [SimpleNamespace(name=column.name, dtype=column.type) for column in columns_of(engine, table)]
    package = _package(columns, lambda name: Identifier(name).sql())
    sql = getattr(package, f"test_{test}")(table.sql(), **arguments)
    ((found,),) = engine.execute(f"SELECT count(*) FROM (\n{sql}\n) AS failures", reads=[table])
    return int(found)


def _package(columns: list[Any], quote: Any, adapters: Sequence[str] = ("duckdb",), **others: Any) -> Any:
    """The macros of the package by name, for a table of DuckDB with these columns, or of the first of `adapters`."""
    macros = SimpleNamespace()

    def dispatch(name: str, _: str) -> Any:
        return next(found for one in (*adapters, "default") if (found := getattr(macros, f"{one}__{name}", None)))

    offered = {
        "ldiv": macros,
        "adapter": SimpleNamespace(dispatch=dispatch, quote=quote, get_columns_in_relation=lambda _: columns),
        "dbt": SimpleNamespace(
            escape_single_quotes=lambda text: text.replace("'", "''"),
            string_literal=lambda text: f"'{text}'",
            type_string=lambda: "text",
        ),
        "exceptions": SimpleNamespace(raise_compiler_error=_refuse),
        "execute": True,
        "graph": {"nodes": {}},
        "modules": {"re": re},
        "return": _return,
        **others,
    }
    for template in _templates():
        for name, macro in vars(template.make_module(offered)).items():
            if isinstance(macro, Macro):
                setattr(macros, name, _called(macro))
    return macros


@functools.cache
def _templates() -> list[Template]:
    """The files of the package that have tests, and what these call."""
    environment = Environment(  # noqa: S701 - it writes SQL, whose names the macros quote
        loader=FileSystemLoader(resource_folder("sql") / "dbt" / "macros"),
        extensions=["jinja2.ext.do", _Tests],
        bytecode_cache=Compiled(),
    )
    names = environment.list_templates(filter_func=lambda name: not name.startswith(_LEFT_OUT))
    return [environment.get_template(name) for name in names]


def _called(macro: Macro) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return macro(*args, **kwargs)
        except _ReturnedError as returned:
            return returned.value

    return call


def _return(value: Any) -> NoReturn:
    raise _ReturnedError(value)


def _refuse(what: str) -> NoReturn:
    raise NotReadError(what)
