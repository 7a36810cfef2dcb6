"""The classes that fail an audit, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ldiv_db.auditing.counting import Counted
from ldiv_db.database import catalog
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.histogram import suppress_if_few

_TEMPLATE = "auditing/list_violations"
#: The columns of a violation besides labels; a label of such a name gets an underscore.
_COLUMNS = ("sensitive", "requirement", "class_no", "rows", "reached", "missing", "suppress", "values")


@dataclass
class Violations:
    """Collects the violating classes of an audit; hand `see` to it as its watch.

    Rows are (sensitive, requirement, class_no, [labels], rows, reached, missing, suppress, [values]), the worst
    first: `class_no` is the place of the class in the order of its published values, `missing` what its
    margin lacks, `suppress` the fewest rows whose suppression mends it, NULL where no exact rule is known. The
    first `most` of each requirement are kept here; with `into`, all are written to that new table.
    Sensitive values are shown on request alone.
    """

    engine: Engine
    labels: bool = False
    show_values: bool = False
    most: int = 20
    into: Relation | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    _written: bool = False

    def refuse_target(self) -> None:
        """Raise PolicyError if the table to be written is there already, or would lie in the catalog's own schema."""
        if self.into is not None and catalog.is_ours(self.engine, self.into):
            raise refused("into", f"schema {catalog.SCHEMA!r} is the catalog's own", "name another schema")
        if self.into is not None and catalog.table_exists(self.engine, self.into):
            raise refused("into", f"{self.into} exists", "name another table")

    def see(self, sensitive: str, requirement: Requirement, found: Counted, measures: Relation) -> None:
        """Take in the violating classes of one requirement."""
        labels = found.subject.renamed[: len(found.subject.open_columns)]
        if found.subject.person is not None or (found.classes.of_people and not requirement.rows_only):
            # Who has several values takes some of each along, and who has several rows all of these: no rule is known.
            mended = suppress_if_few(self.engine, found.classes, measures, 0)
        else:
            mended = requirement.rows_to_suppress(self.engine, found.classes, measures)
        params: dict[str, Any] = {
            "measures": measures,
            "mended": mended,
            "classes": self._shown(found, labels) if self.labels else found.listed,
            "histogram": found.classes.histogram,
            "labels": label_columns(labels, _COLUMNS) if self.labels else [],
            "sensitive": sensitive or None,
            "requirement": str(requirement) if self.show_values else requirement.label,
            "show_values": self.show_values and bool(sensitive),
            "most_is_worst": requirement.most_is_worst,
        }
        self.rows += self.engine.records(_TEMPLATE, most=self.most, **params)
        if self.into is not None:
            write = self.engine.insert if self._written else self.engine.create
            write(self.into, _TEMPLATE, most=None, **params)
            self._written = True
        self.engine.drop(mended)

    def _shown(self, found: Counted, labels: Sequence[Renamed]) -> Relation:
        """The classes with texts in place of the numbers that stand for them."""
        written = found.subject.written
        if not written:
            return found.listed
        columns = [
            {"column": one.alias, "texts": written.get(one.column.name), "alias": Identifier(f"w{n}")}
            for n, one in enumerate(labels)
        ]
        return self.engine.view("shown", "auditing/tables/write_classes", classes=found.listed, labels=columns)


def label_columns(columns: Sequence[Renamed], taken: Sequence[str]) -> list[Renamed]:
    """The class columns under the names that they have beside columns of the names `taken`."""
    names = [column.column.name + "_" * (column.column.name.lower() in taken) for column in columns]
    return [Renamed(Identifier(name), column.alias) for name, column in zip(names, columns, strict=True)]
