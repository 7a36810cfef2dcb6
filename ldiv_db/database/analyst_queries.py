"""Queries of an analyst, asked of a source and of what stands in its place: SELECTs from a table called `source`.

A column of a query that has an aggregate is a figure; the others say which group it is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import in_from
from ldiv_db.database.errors import refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.sources import calls_in, parse_select, reads_as, view_of_query

#: A query that can be asked.
EXAMPLE = "SELECT region, avg(cost) FROM source GROUP BY region"


@dataclass(frozen=True)
class AnalystQuery:
    """A SELECT from `source`, and the key of a policy that has it."""

    text: str
    key: str = "preserve"

    @classmethod
    def mean(cls, number: str, group: str) -> AnalystQuery:
        """The mean of a column in each group of another."""
        of, by = (Identifier(name).sql() for name in (number, group))
        return cls(f"SELECT {by}, avg({of}) AS {Identifier(f'mean of {number}').sql()} FROM source GROUP BY ALL")

    @classmethod
    def correlation(cls, one: str, other: str) -> AnalystQuery:
        """Pearson's correlation of two columns."""
        name = Identifier(f"correlation of {one} and {other}").sql()
        return cls(f"SELECT corr({Identifier(one).sql()}, {Identifier(other).sql()}) AS {name} FROM source")

    def asked_of(self, engine: Engine, table: Relation | FileRelation, columns: Sequence[str]) -> Relation:
        """A TEMP view of the answer of a table, of which it sees these columns; raises PolicyError if it cannot be."""
        query, tree = parse_select(engine, self.text, self.key)
        if not reads_as(tree, "source"):
            raise refused(self.key, "does not read the table `source`", EXAMPLE)
        names = ", ".join(Identifier(name).sql() for name in columns)
        seen = f"WITH source AS (SELECT {names} FROM {in_from(table)})"
        return view_of_query(engine, f"{seen}\nSELECT * FROM (\n{query}\n) AS asked", self.key)

    def parts(self, engine: Engine, answer: Relation) -> tuple[list[str], list[str]]:
        """The columns of an answer that say which group it is, and its figures; raises PolicyError without any."""
        names = [column.name for column in columns_of(engine, answer)]
        _, tree = parse_select(engine, self.text, self.key)
        items = tree["node"].get("select_list", [])
        found = engine.execute("SELECT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'")
        aggregates = {name.lower() for (name,) in found}
        figures = [any(name in aggregates for _, name in calls_in(item)) for item in items]
        if len(figures) != len(names) or not any(figures):
            what = "names no figure: of the columns of its SELECT, each written out, one has an aggregate at least"
            raise refused(self.key, what, EXAMPLE)
        pairs = list(zip(names, figures, strict=True))
        return [name for name, figure in pairs if not figure], [name for name, figure in pairs if figure]
