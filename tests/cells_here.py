"""Cells of counts in DuckDB, moved by the templates that move them in Spark."""

from dataclasses import replace

from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.database.context import Context
from ldiv_db.policy.reading import load_policy
from ldiv_db.recoding.encoded import WEIGHT
from ldiv_db.running.preparation import prepare
from ldiv_db.running.run import work_out
from ldiv_db.running.run_spec import resolve_run
from ldiv_db.running.spark.counts import MOVES, layout_of
from ldiv_db.running.spark.divided import split_nodes
from ldiv_db.running.spark.rows import counted, published
from ldiv_db.solving import nodes as positions
from ldiv_db.solving.parts import numbered, row_columns, work_of


class CellsHere:
    """As `ldiv_db.running.spark.counts.CellsThere`; `nodes` are all cells, with the number of their node."""

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

    def count(self, name, template, **params):
        listed = ", ".join(map(str, self.settled)) or "NULL"
        kept = f"SELECT * FROM {self.nodes.sql()} WHERE (node IN ({listed})) IS NOT TRUE"
        active = self.engine.view_of("active", kept)
        return self.engine.materialise(name, template, nodes=active, weight=WEIGHT, **params)

    def move(self, template, **params):
        layout = {"order": self.layout.order, "kept": self.layout.kept, "weight": WEIGHT}
        self.nodes = self.engine.materialise("moved", MOVES[template], nodes=self.nodes, **{**params, **layout})

    def settle(self, nodes):
        self.settled += nodes


def divide_cells(engine, policy, part_rows):
    """The task and the algorithm of a policy, and the cells of its rows, divided."""
    ready = prepare(Context(engine), resolve_run(Context(engine), load_policy(policy)))
    task, algorithm = ready.task, ready.algorithm
    grained, numbering = positions.positions_of(task), work_of(task, algorithm).numbering
    feasible = algorithm.check(task)
    classes = feasible.classes if isinstance(algorithm, Bsgi) else None
    cells = CellsHere(engine, task.encoded, numbering, grained, classes)
    split_nodes(task, algorithm, feasible, cells, grained, part_rows)
    return task, algorithm, cells


def number_parts(engine, policy, part_rows):
    """All steps of a table in parts that only runs on Spark take: cells moved and numbered, labels as texts."""
    task, algorithm, cells = divide_cells(engine, policy, part_rows)
    numbered(work_of(task, algorithm), engine, cells.nodes)
    for axis in task.encoded.axes:
        engine.materialise("texts", "running/spark/list_texts", dictionary=axis.dictionary)


def publish_counts(engine, policy):
    """A policy planned on the counts of equal rows: the table as it was planned on, the recoding, what is published."""
    ready = prepare(Context(engine), resolve_run(Context(engine), load_policy(policy)))
    encoded = replace(ready.encoded, kept=())
    listed = ", ".join(column.name for column in row_columns(encoded))
    text = f"SELECT {listed}, count(*) AS {WEIGHT.name} FROM {encoded.rows.sql()} GROUP BY {listed}"
    encoded = counted(engine, encoded, engine.copy("counts", engine.view_of("rows", text)))
    ready = replace(ready, task=replace(ready.task, encoded=encoded))
    _, recoding = work_out(ready)
    return encoded, recoding, published(engine, encoded, recoding)
