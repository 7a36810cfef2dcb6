"""Rows in nodes that are counted and moved: where they lie is not known to those who plan.

What a division decides it decides on counts alone, in the planner's database; so that rows may lie in another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation


class Movable(Protocol):
    """The rows of the nodes that are still to be split; each template reads them as its relation `nodes`."""

    def count(self, name: str, template: str, **holes: Any) -> Relation:
        """What a template with the hole `weight` counts of the rows, as a table of the planner's database."""

    def move(self, template: str, **holes: Any) -> None:
        """Have the rows be in other nodes, as the template has it."""

    def settle(self, nodes: Sequence[int]) -> None:
        """These nodes are parts: their rows are not counted or moved any more."""


class RowsHere:
    """Rows in the planner's own database. `parts` is all that is settled, with the number of its `node`."""

    def __init__(self, engine: Engine, nodes: Relation):
        self._engine = engine
        self._nodes: Relation | None = nodes
        self.parts: Relation | None = None

    def count(self, name: str, template: str, **holes: Any) -> Relation:
        return self._engine.materialise(name, template, nodes=self._nodes, weight=None, **holes)

    def move(self, template: str, **holes: Any) -> None:
        self._replace(self._engine.materialise("node", template, nodes=self._nodes, **holes))

    def settle(self, nodes: Sequence[int]) -> None:
        if not nodes:
            return
        engine, holes = self._engine, {"nodes": self._nodes}
        listed = engine.load("listed", {"node": "BIGINT"}, [(node,) for node in nodes])
        if self.parts:
            engine.insert(self.parts, "distributing/list_settled", listed=listed, others=False, **holes)
        else:
            self.parts = engine.materialise("parts", "distributing/list_settled", listed=listed, others=False, **holes)
        self._replace(engine.materialise("node", "distributing/list_settled", listed=listed, others=True, **holes))
        engine.drop(listed)

    def close(self) -> None:
        """Drop what is left of the nodes: nothing, once all are settled."""
        self._replace(None)

    def _replace(self, nodes: Relation | None) -> None:
        if self._nodes:
            self._engine.drop(self._nodes)  # all the rows, once a level
        self._nodes = nodes
