"""Attacks on rows: by whoever looks for somebody's row among those that are alike, and by the form of a table.

A table says something beyond its classes by its order, its numbers and what lies beside it. Whoever has the source, or
a table in the same order, holds the k-th row of a class for the k-th of its people. So rows are looked at in the order
in which they lie. Where the values of a class rise or fall they stand as anybody could put them, and nothing is told;
any other order may be that of the source. Numbers of classes that do not rise with the labels may be the order in which
classes were made, which follows from sensitive values. Nothing is promised of either; a release of ours has neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.attacking.base import AttackedTable, Attacker
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.gains import UNIT, Attack, Gain, gain_of, share_in
from ldiv_db.attacking.question import Knowledge
from ldiv_db.database.catalog import catalog_of, full_name, relations_in
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import Problem
from ldiv_db.database.files import free_bytes, metadata_entries
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.measuring.population_uniqueness import estimate_uniqueness, refuse_population
from ldiv_db.recoding.encoded import Renamed

#: The database of temporary tables, and of frames.
TEMPORARY = "temp"
_POPULATIONS = dict.fromkeys(("class_rows", "found", "population"), "BIGINT")
_RECOGNISED = "share of rows recognised"


class Prosecutor(Attacker):
    """The attack of those who know that somebody is in the table: they guess a row of the class, risk `1 / |G|`."""

    names = ("prosecutor",)
    of_values = False
    on_people = True
    words: ClassVar = {"mean": "mean risk"}

    def attacks(self) -> Iterator[Attack]:
        table = self.table
        yield prosecutor(table.engine, table.classes, table.known.threshold, table.bound)


def prosecutor(engine: Engine, classes: Relation, threshold: Decimal, bound: Fraction | None) -> Attack:
    """The attack on classes (class_no, class_rows); a risk above the threshold is high."""
    units = int(threshold * UNIT)  # it has at most nine digits
    risky = Where("class_rows", (UNIT - 1) // units if units else None, "<=" if units else "<>")
    mean = _mean_risk(engine, classes)
    figures = {
        "mean": mean if mean is None else float(mean),
        "threshold": float(threshold),
        "rows_above_threshold": engine.total(classes, "class_rows", risky),
    }
    return Attack("prosecutor", None, (_risk(engine.least(classes, "class_rows"), bound),), figures)


def _mean_risk(engine: Engine, classes: Relation) -> Fraction | None:
    rows = engine.total(classes, "class_rows")
    return Fraction(engine.count(classes), rows) if rows else None


def _risk(least: int | None, bound: Fraction | None) -> Gain:
    return gain_of("1 / people alike", Fraction(1, least) if least else None, bound)


class Journalist(Attacker):
    """Journalist and marketer risk, and who is in the table, by how many people of a population each class covers.

    Without a population marketers match all rows at once to people in the table: they are right about one row a class.
    """

    names = ("journalist", "marketer", "presence")
    people = "population"
    reads_labels = True
    of_values = False
    on_people = True
    words: ClassVar = {"mean": "mean risk"}

    def __init__(self, table: AttackedTable) -> None:
        super().__init__(table)
        self.prefixes = table.prefixes("population") if "population" in table.known.people else None

    def attacks(self) -> Iterator[Attack]:
        table, engine = self.table, self.table.engine
        if self.prefixes is None:
            yield Attack("marketer", None, (gain_of(_RECOGNISED, _mean_risk(engine, table.classes), table.bound),))
            return
        of_people, of_presence = table.population_bounds
        populations = engine.load("populations", _POPULATIONS, [])
        for found, part, _ in self.prefixes.drawn(table.budget, by_classes=True):
            classes = engine.select_among("kept", table.classes, part, "class_no")
            engine.insert(populations, "attacking/count_population", classes=classes, **found.alike())
        tried = engine.count(populations), engine.count(table.classes)
        params = {"populations": populations, "threshold": table.known.threshold, "unit": UNIT}
        summary = engine.record("attacking/summarise_population", **params)
        engine.drop(populations)
        matched = summary["rows"]
        mean = Fraction(int(summary["mean_units"]), UNIT * matched) if matched else None
        figures = {
            "threshold": float(table.known.threshold),
            "rows_above_threshold": summary["rows_above"],
            "rows_beyond_population": summary["rows_unlisted"],
        }
        bounds = (table.bound, of_people)
        bound = min((one for one in bounds if one is not None), default=None)  # a population has all of the table
        present = gain_of("share of people alike who are in the table", share_in(summary), of_presence)
        for attack in (
            Attack("journalist", None, (_risk(summary["least"], bound),), figures),
            Attack("marketer", None, (gain_of(_RECOGNISED, mean, bound),)),
            Attack("presence", None, (present,)),
        ):
            yield attack.with_untried("classes", *tried)


class PopulationUniqueness(Attacker):
    """The attack of those who know the population's size: the share of rows of people who are unique in it.

    It is 0 where no class has one row, which any bound on a row's risk promises. Raises PolicyError for a population
    smaller than the table.
    """

    names = ("population uniqueness",)
    key = "population_size"
    of_values = False
    on_people = True

    @classmethod
    def problems(cls, engine: Engine, columns: Columns, known: Knowledge) -> Iterator[Problem]:
        if columns.pair is not None:
            yield Problem("population-size", "goes with one table: a pair publishes values as they are")

    def attacks(self) -> Iterator[Attack]:
        table, population = self.table, self.table.known.asked.population_size
        assert population is not None  # noqa: S101 - it was asked for
        refuse_population(population, table.engine.total(table.classes, "class_rows"))
        found = estimate_uniqueness(table.engine, table.classes, "class_rows", population)
        share = Fraction(0) if found is None else None if found.share is None else Fraction(found.share)
        bound = Fraction(0) if table.bound is not None and table.bound < 1 else None
        figures: dict[str, Any] = {"population": population}
        if found is not None:
            figures |= {"sampling_fraction": found.rows / population, "model": found.chosen}
            for name, estimate in found.estimates.items():
                figures[f"unique_people_by_{name}"] = estimate.reason if estimate.uniques is None else estimate.uniques
        what, kept = "share of rows unique in the population, estimated", bound is None or share == 0
        yield Attack("population uniqueness", None, (gain_of(what, share, bound, kept=kept),), figures)


class Form(Attacker):
    """The attack by the form of a table: what its order, numbers and surroundings say beyond its classes."""

    names = ("form",)
    of_values = False
    words: ClassVar = {
        "classes_with_an_order": "classes that may still be in the source's order",
        "free_bytes": "free bytes in the file",
        "other_tables": "other tables in the file",
    }

    def attacks(self) -> Iterator[Attack]:
        table, engine = self.table.first.subject.table, self.table.engine
        if isinstance(table, Relation) and hasattr(engine.connection, "there"):
            figures = self._numbers() | {"order": "a warehouse's counts have none"}
            yield Attack("form", None, (), figures)
            return
        gains, figures = self._order(table) if self.table.columns.sensitive else ((), {})
        yield Attack("form", None, gains, figures | self._numbers() | _surroundings(engine, table))

    def _order(self, table: Table) -> tuple[tuple[Gain, ...], dict[str, Any]]:
        """The gain by the order of rows, which may tell their sensitive values."""
        counts = self.table.first
        values = [
            Renamed(Identifier(name), Identifier(f"v{i}")) for i, name in enumerate(self.table.columns.sensitive, 1)
        ]
        flow = EngineFlow(self.table.engine, "attacking/form", class_columns=counts.subject.renamed, values=values)
        with flow.scope():
            with read_exactly(flow.engine, table) as read:
                flow.step("placed", "place_rows", published=read)
            unordered = flow.record("count_unordered_rows", beyond=counts.rows + 1)  # more than any rank
        share = Fraction(unordered["rows"], unordered["all_rows"]) if unordered["all_rows"] else None
        gain = gain_of("share of rows that may still be in the source's order (0 is best)", share, None)
        return (gain,), {"classes_with_an_order": unordered["classes"]}

    def _numbers(self) -> dict[str, Any]:
        """Counts numbers of classes that fall where labels rise; nothing for classes without either."""
        counts, centres = self.table.first, {name.lower() for name in self.table.columns.centres}
        width = len(counts.subject.labels)
        labels, beside = counts.subject.renamed[:width], counts.subject.renamed[width:]
        ids = [one for one in beside if one.column.name.lower() not in centres]
        if not labels or not ids:
            return {}
        params = {"classes": counts.listed, "labels": labels, "ids": ids}
        found = self.table.engine.scalar("attacking/form/count_falling_numbers", **params)
        return {"numbers_against_labels": found}


def _surroundings(engine: Engine, table: Table) -> dict[str, Any]:
    """Counts what else the file holds: other tables and dropped data in a database, entries in Parquet metadata."""
    if isinstance(table, FileRelation):
        return {} if table.reader != "read_parquet" else {"metadata_entries": metadata_entries(engine, table.path)}
    database = catalog_of(engine, table)
    if database.lower() == TEMPORARY:  # a frame, or what its caller keeps: nobody is given what lies beside it
        return {}
    _, *own = full_name(engine, table)
    others = [other for other in relations_in(engine, database) if [part.lower() for part in other.parts] != own]
    return {"other_tables": len(others), "free_bytes": free_bytes(engine, database)}
