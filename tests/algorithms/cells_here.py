"""Cells of counts in DuckDB, moved by the templates that move them in Spark."""

from ldiv_db.recoding.encoded import WEIGHT
from ldiv_db.running.spark.movable import MOVES, layout_of


class CellsHere:
    """As `ldiv_db.running.spark.movable.CellsThere`; `nodes` are all cells, with the number of their node."""

    def __init__(self, engine, encoded, numbering, positions, classes=None):
        self.engine, self.layout = engine, layout_of(encoded, numbering)
        columns = [column.name for column in self.layout.order]
        grains = [position for position in positions if position.coarse]
        joins = "".join(
            f" JOIN {p.grains.sql()} AS g{i} ON g{i}.code = r.{p.axis.code.name}" for i, p in enumerate(grains)
        )
        coarse = "".join(f", any_value(g{i}.grain) AS {p.coarse.name}" for i, p in enumerate(grains))
        listed = ", ".join(f"r.{name}" for name in columns)
        more = "" if classes is None else f", {classes} AS classes"
        self.nodes = engine.view_of(
            "cells",
            f"SELECT {listed}, CAST(1 AS BIGINT) AS node{more}{coarse}, count(*) AS {WEIGHT.name}"
            f" FROM {encoded.rows.sql()} AS r{joins} GROUP BY {listed}",
        )
        self.settled = []

    def count(self, name, template, **holes):
        listed = ", ".join(map(str, self.settled)) or "NULL"
        kept = f"SELECT * FROM {self.nodes.sql()} WHERE (node IN ({listed})) IS NOT TRUE"
        active = self.engine.view_of("active", kept)
        return self.engine.materialise(name, template, nodes=active, weight=WEIGHT, **holes)

    def move(self, template, **holes):
        layout = {"order": self.layout.order, "kept": self.layout.kept, "weight": WEIGHT}
        self.nodes = self.engine.materialise("moved", MOVES[template], nodes=self.nodes, **layout, **holes)

    def settle(self, nodes):
        self.settled += nodes
