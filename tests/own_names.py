"""The names of a statement, resolved as its engine resolves them, without the engine."""

import re

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

_PLAIN = re.compile("[a-z_][a-z0-9_]*")


def held(name, dialect):
    """A name as the engine holds it, if it was made by a plain name without quotes, or by any other in quotes."""
    strategy = Dialect.get_or_raise(dialect).normalization_strategy
    if strategy is NormalizationStrategy.CASE_INSENSITIVE:
        return name.lower()
    return name.upper() if strategy is NormalizationStrategy.UPPERCASE and _PLAIN.fullmatch(name) else name


def resolve(sql, dialect, tables):
    """The statement with every name resolved; raises OptimizeError for one that nothing is called.

    `tables` are the columns (name to type) of each table, in our own database's words.
    """
    schema = MappingSchema(dialect=dialect, normalize=False)
    for table, columns in tables.items():
        name = exp.table_(exp.to_identifier(held(table, dialect), quoted=True))
        typed = {held(column, dialect): exp.DataType.build(kind, dialect="duckdb") for column, kind in columns.items()}
        schema.add_table(name, typed, dialect=dialect, normalize=False, match_depth=False)
    tree = sqlglot.parse_one(sql, read=dialect)
    normalize = Dialect.get_or_raise(dialect).normalize_identifier
    steps = {normalize(step.args["alias"].this.copy()).name for step in tree.find_all(exp.CTE)}
    asked = {normalize(table.this.copy()).name for table in tree.find_all(exp.Table) if table.name}
    if unknown := asked - steps - {held(table, dialect) for table in tables}:
        raise OptimizeError(f"no table or step is called {', '.join(unknown)}")
    for select in tree.find_all(exp.Select):
        refuse_two_meanings(select, normalize)
    for query in tree.find_all(exp.Query):
        query.set("settings", None)  # of ClickHouse's, which are no columns
    for rows in tree.find_all(exp.Values):  # whose columns SQLite names by itself
        width, alias = len(rows.expressions[0].expressions), rows.args.get("alias")
        if dialect == "sqlite" and alias and not alias.columns:
            alias.set("columns", [exp.to_identifier(f"column{place}") for place in range(1, width + 1)])
    return qualify(tree, dialect=dialect, schema=schema, quote_identifiers=False)


def refuse_two_meanings(select, normalize):
    """Raise OptimizeError for a name in GROUP BY that a column of another meaning is published as.

    Databases differ in which of both they group by, and some refuse it.
    """
    shown = {normalize(one.args["alias"].copy()).name: one.this for one in select.selects if one.alias}
    for column in select.args["group"].expressions if select.args.get("group") else ():
        if isinstance(column, exp.Column) and not column.table:
            name = normalize(column.this.copy()).name
            if shown.get(name, column) != column:
                raise OptimizeError(f"GROUP BY {name} is either a column or what is published under its name")
