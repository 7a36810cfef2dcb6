"""What the templates of a folder take by name: relations that earlier steps made, identifiers, values, options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import declared_params


class Flow:
    """Steps of one folder of `sql/`, each called after the relation that it makes and that later ones read by its name.

    A template takes from the flow what its header lists; what is given with a call comes first, for this call alone.
    """

    def __init__(self, steps: Steps, folder: str, **known: Any) -> None:
        self._steps = steps
        self._folder = folder
        self._known = known

    def __getitem__(self, name: str) -> Any:
        """What is known by that name: raises KeyError if nothing is."""
        return self._known[name]

    def know(self, **known: Any) -> None:
        """Enter more names, or what they mean from here on."""
        self._known |= known

    def params(self, template: str, /, **more: Any) -> dict[str, Any]:
        """What a template takes, by the names of its header."""
        declared = declared_params(self.path(template))
        return {name: known for name, known in self._known.items() if name in declared} | more

    def path(self, template: str) -> str:
        """A template by its folder and name; one of another folder is named with it."""
        return template if "/" in template else f"{self._folder}/{template}"

    def step(self, name: str, template: str = "", /, **more: Any) -> Relation:
        """The relation `name` of what a template selects, that of the same name by default."""
        template = template or name
        self._known[name] = made = self._steps.materialise(name, self.path(template), **self.params(template, **more))
        return made

    def replace(self, name: str, template: str, /, **more: Any) -> Relation:
        """As `step`, of what the relation of that name was, which is dropped then."""
        before = self._known[name]
        made = self.step(name, template, **more)
        self._steps.drop(before)
        return made

    def drop(self, *names: str) -> None:
        """Drop relations, and forget their names."""
        self._steps.drop(*(self._known.pop(name) for name in names))


class EngineFlow(Flow):
    """A flow whose steps an engine runs, so that what they select can be read."""

    def __init__(self, engine: Engine, folder: str, **known: Any) -> None:
        super().__init__(engine, folder, **known)
        self.engine = engine

    def rows(self, template: str, /, **more: Any) -> list[tuple[Any, ...]]:
        """As `Engine.rows`."""
        return self.engine.rows(self.path(template), **self.params(template, **more))

    def scalar(self, template: str, /, **more: Any) -> Any:
        """As `Engine.scalar`."""
        return self.engine.scalar(self.path(template), **self.params(template, **more))

    def records(self, template: str, /, **more: Any) -> list[dict[str, Any]]:
        """As `Engine.records`."""
        return self.engine.records(self.path(template), **self.params(template, **more))

    def record(self, template: str, /, **more: Any) -> dict[str, Any]:
        """As `Engine.record`."""
        return self.engine.record(self.path(template), **self.params(template, **more))

    def insert(self, target: Relation | str, template: str, /, **more: Any) -> None:
        """As `Engine.insert`, into a relation, or the one of that name."""
        into = self[target] if isinstance(target, str) else target
        self.engine.insert(into, self.path(template), **self.params(template, **more))

    @contextmanager
    def scope(self, *kept: str) -> Iterator[None]:
        """Within, what steps make is dropped at the end, and what names meant before is known again, but for `kept`."""
        before = self._known
        self._known = {**before}
        with self.engine.scope() as scope:
            yield
            last = {name: self._known[name] for name in kept}
            for relation in last.values():
                scope.keep(relation)
        self._known = before | last
