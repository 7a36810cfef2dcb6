"""The worked examples in the headers of templates: tables to read, values, and the rows that come of them.

    example: |
      summary
      class_no rows values
      1        4    2
      l = 2
      gives
      class_no rows reached margin
      1        4    2       0

A line of one word begins a table: its columns, then its rows, NULL as such; of a table that an object names the word
ends in a colon. `l = 2` is a value, `axes = [{code: q1}]` (YAML) an object of names. `gives` is what the template
returns, in any order of rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import yaml

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import header


@dataclass
class Table:
    """Columns and rows as an example writes them."""

    columns: list[str]
    rows: list[list] = field(default_factory=list)


def read_example(template):
    """(tables by name, values and objects by name) of the template's example; the table `gives` is the result."""
    tables, values, name = {}, {}, None
    for line in header(template)["example"].splitlines():
        words = line.split()
        if match := re.fullmatch(r"(\w+) = (.+)", line):
            values[match[1]] = yaml.safe_load(match[2])
        elif len(words) == 1 and (words[0] == "gives" or words[0].endswith(":") or is_param(template, words[0])):
            name = words[0].removesuffix(":")
        elif name not in tables:
            tables[name] = Table(words)
        else:
            tables[name].rows.append([plain(word) for word in words])
    return tables, values


def is_param(template, word):
    return word in (header(template).get("relations") or ())


def plain(word):
    """A number if it looks like one and has no quotes, None for NULL, or the text."""
    named = {"NULL": None, "TRUE": True, "FALSE": False}
    if word in named:
        return named[word]
    if word.startswith(("'", "['")):  # a text that looks like a number; a list of texts, without blanks
        return yaml.safe_load(word)
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def type_of(values):
    kinds = {type(value) for value in values} - {type(None)}
    known = {int: "BIGINT", str: "VARCHAR", list: "VARCHAR[]", bool: "BOOLEAN"}
    return known[kinds.pop()] if len(kinds) == 1 and not kinds & {float} else "DOUBLE"


def param(value):
    """What fills a parameter: texts are names, in single quotes values as numbers are, null nothing, truth options.

    Lists and mappings hold some of them.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [param(item) for item in value]
    if isinstance(value, dict):
        return SimpleNamespace(**{key: param(item) for key, item in value.items()})
    if isinstance(value, str) and not value.startswith("'"):
        return Identifier(value)
    return Value(value[1:-1] if isinstance(value, str) else value)


def run_example(con, template):
    """(columns, rows) that the template makes of its example's tables and values."""
    tables, values = read_example(template)
    head = header(template)
    params = dict.fromkeys(head.get("options") or (), False)
    for name, table in tables.items():
        if name != "gives":
            kinds = [type_of([row[i] for row in table.rows]) for i in range(len(table.columns))]
            columns = ", ".join(f'"{column}" {kind}' for column, kind in zip(table.columns, kinds, strict=True))
            con.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" ({columns})')
            rows = ", ".join([f"({', '.join('?' * len(table.columns))})"] * len(table.rows))
            con.execute(f'INSERT INTO "{name}" VALUES {rows}', [value for row in table.rows for value in row])
            if is_param(template, name):
                params[name] = Relation(("temp", "main", name))
    words = head.get("options") or ()
    params |= {name: value if name in words else param(value) for name, value in values.items()}
    records = Engine(con).records(template, **params)
    return tables["gives"], records
