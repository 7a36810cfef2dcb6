"""The audit as one SELECT for any database: a row for every class that violates a requirement, none if all is well.

The steps are those of the audit, the same templates in the same order, written down in place of being run. What a
dialect does not express is refused by name, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

from ldiv_db.auditing.check import NOT_JUDGED, CheckRequest, problems_of
from ldiv_db.auditing.numbering import count_unmatched, count_values, number_classes
from ldiv_db.auditing.refusals import refuse_people, refuse_unknown, refuse_unlisted
from ldiv_db.auditing.subject import Subject
from ldiv_db.auditing.violations import label_columns
from ldiv_db.database.catalog import Column, type_named
from ldiv_db.database.composer import WIDTH, Composer
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.database.names import DIALECT, Identifier, Relation, Value
from ldiv_db.database.traits_there import DIALECTS, TRAITS
from ldiv_db.recoding.labels import labels_there
from ldiv_db.requirements import Attribute, Requirement
from ldiv_db.requirements.verdict import measure_table

#: Types whose values every database writes alike.
_WRITTEN_ALIKE = ("VARCHAR", "DATE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT")
#: Databases whose windows do not reach as far as an exact decimal does.
_NO_DECIMAL_FRAMES = ("clickhouse",)
#: Databases whose points in time are compared as ours are, by statements that are tried there.
_INSTANTS_ALIKE = ("postgres",)
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


def refuse_dialect(
    dialect: str,
    tables: Sequence[Table],
    attributes: Mapping[str, Attribute],
    requirements: Mapping[str, Sequence[Requirement]],
) -> None:
    """Raise PolicyError, naming what the dialect does not express."""
    if dialect not in DIALECTS:
        raise PolicyError([Problem("dialect", f"is one of {', '.join(DIALECTS)}, not {dialect!r}")])
    if dialect == "duckdb":
        return
    files = [table for table in tables if isinstance(table, FileRelation)]
    problems = [Problem("TABLE", f"{Path(file.path).name} is a file", "name the table") for file in files]
    for name, attribute in attributes.items():
        key = f"sensitive.{name}"
        if attribute.same:
            problems.append(
                Problem(f"{key}.same", f"{dialect} folds case and blanks in its own way", "fold them in a view")
            )
        if _names_values(attribute, requirements[name]) and attribute.type not in _WRITTEN_ALIKE:
            what = f"values of type {attribute.type} are named, which {dialect} writes otherwise"
            problems.append(Problem(key, what, "give texts, dates or whole numbers in a view"))
        if dialect == "clickhouse" and attribute.type in ("FLOAT", "DOUBLE"):
            problems.append(Problem(key, "0.0 and -0.0 are two values in clickhouse", "give decimals in a view"))
        for requirement in requirements[name]:
            problems += _distance_problems(dialect, attribute, requirement)
    refuse(problems)


def _names_values(attribute: Attribute, requirements: Sequence[Requirement]) -> bool:
    named = any(requirement.named or requirement.listed for requirement in requirements)
    return bool(named or attribute.harmless or attribute.taxonomy)


def _distance_problems(dialect: str, attribute: Attribute, requirement: Requirement) -> list[Problem]:
    """Problems of distances of values in the dialect: they are compared exactly, or not at all."""
    if requirement.uses_distances and not requirement.monotone and dialect in _NO_DECIMAL_FRAMES:
        what = f"{dialect} has no window from a decimal below a value to one above it"
        return [Problem(f"require.{requirement.name}", what, "judge it with `ldiv check`")]
    if not requirement.uses_distances or attribute.type == "DATE" or attribute.type in _WHOLE:
        return []
    if attribute.is_time and dialect in _INSTANTS_ALIKE:
        return []
    if attribute.is_time:
        what = f"points in time are compared by {dialect} in its own way"
    elif dialect == "sqlite":
        what = "sqlite has no exact decimals"
    else:
        return []
    return [Problem(f"require.{requirement.name}", what, "give days or whole numbers in a view")]


_TEMPLATE = "auditing/statement/select_violations"
_ABSENT_TEMPLATE = "auditing/statement/count_absent"
#: The columns of the result besides labels; a label of such a name gets an underscore.
_COLUMNS = ("requirement", "sensitive", "rows", "reached", "margin")


def check_statement(
    engine: Engine,
    request: CheckRequest,
    table: Table,
    dialect: str,
    types: Mapping[str, str] | None = None,
    labels: bool = False,
) -> str:
    """The SELECT (requirement, sensitive, rows, reached, margin and on request the labels) in a dialect.

    A row stands for a violating class, as `check` would find it, or for what it would refuse to judge, such as values
    of no category: then `reached` and `margin` are NULL. `types` are SQL types of sensitive columns as our own database
    calls them, by name; VARCHAR if nothing is said. The engine serves to read the request, not to look at the table.
    Raises PolicyError for what is wrong with the request, for people whom no column tells, and for what the dialect
    does not express.
    """
    refuse(problems_of(request) + ([Problem("individual", NOT_JUDGED)] if request.is_open else []))
    if request.position:
        raise PolicyError([Problem("position", "no single SELECT reads sequences", "judge them with `ldiv check`")])
    sets = [f"sensitive.{name}.set" for name, setting in request.sensitive.items() if setting.set]
    refuse(Problem(key, "no single SELECT counts members of sets", "judge it with `ldiv check`") for key in sets)
    columns = _columns(engine, request.sensitive, types or {})
    attributes, requirements = request.requirements(engine, columns)
    tables = [table, *([request.pair.table] if request.pair else [])]
    refuse_dialect(dialect, tables, attributes, requirements)
    writer = _Writer(
        Composer(dialect, [found.name for found in tables if isinstance(found, Relation)]), request, table, labels
    )
    for name, wanted in requirements.items():
        writer.judge(attributes[name], wanted, [other for other in attributes if other != name])
    writer.refuse_absent()
    return "\n".join([*_heading(table, requirements), writer.text()])


class _Writer:
    def __init__(self, steps: Composer, request: CheckRequest, table: Table, labels: bool):
        self._steps = steps
        self._request = request
        self._subject = request.subject(labels_there(steps, table, [*map(Identifier, request.lists)]))
        self._labels = label_columns(self._subject.renamed, _COLUMNS) if labels else []
        self._judged: list[dict[str, Any]] = []  # the measures of each requirement, and the classes that they are of
        self._open: list[dict[str, Any]] = []  # what leaves the verdicts on an attribute open, and how often
        #: The requirements that name values, with these (place, value), and counts of the column that may have them.
        self._named: dict[int, list[tuple[Requirement, str, dict[str, Relation]]]] = {}

    def judge(self, attribute: Attribute, requirements: Sequence[Requirement], others: Sequence[str]) -> None:
        """Write the steps for one attribute; those with `others_known` have classes refined by the others."""
        refuse_unknown(self._request.suppressed, requirements)
        if self._subject.person is not None:
            _refuse_people(self._subject, requirements)
        subject = self._read(attribute, others)
        self._steps.has_instants = attribute.is_time and attribute.type != "DATE"
        for refined in (False, True):
            wanted = [requirement for requirement in requirements if requirement.others_known is refined]
            if wanted:
                self._judge(replace(subject, known=others) if refined else subject, attribute, wanted)

    def refuse_absent(self) -> None:
        """Note the values named that no row has: one that is misspelt would be protected by nothing."""
        for place, named in self._named.items():
            (wanted, sensitive, _), columns = named[0], [counted for _, _, counted in named]
            key, before = f"require.{place}.{wanted.name}", len(self._steps.doubts)
            self._steps.refuse_any(partial(_absent, key), _ABSENT_TEMPLATE, columns=columns, named=len(wanted.named))
            self._tell(sensitive if len(columns) == 1 else "", before)

    def text(self) -> str:
        """The statement."""
        return self._steps.text(_TEMPLATE, judged=self._judged, doubts=self._open, labels=self._labels)

    def _judge(self, subject: Subject, attribute: Attribute, requirements: Sequence[Requirement]) -> None:
        before = len(self._steps.doubts)
        counts = count_values(self._steps, subject, attribute.name)
        if subject.pair is not None:
            self._refuse_pair(subject, counts, attribute.name)
        numbered = number_classes(self._steps, subject, counts, attribute.name)
        refuse_unlisted(self._steps, attribute.name, requirements, numbered.classes.totals)
        sensitive = Value(attribute.name or None)
        for requirement in requirements:
            measures = measure_table(self._steps, requirement, numbered.classes)
            judged = {"requirement": Value(requirement.label), "sensitive": sensitive}
            self._judged.append({**judged, "measures": measures, "classes": numbered.listed})
            if requirement.named and not requirement.absent:
                values = [*enumerate(requirement.named)]
                members = self._steps.load("named", {"place": "INTEGER", "value": "VARCHAR"}, values)
                counted = (requirement, attribute.name, {"members": members, "counts": counts})
                self._named.setdefault(requirement.place, []).append(counted)
        self._tell(attribute.name, before)

    def _tell(self, sensitive: str, before: int) -> None:
        """Add the doubts about an attribute, from number `before` on, to the statement."""
        doubts = self._steps.doubts[before:]
        about = {"sensitive": Value(sensitive or None)}
        self._open += [{"problem": Value(f"open: {d.problem}"), "count": d.count, **about} for d in doubts]

    def _refuse_pair(self, subject: Subject, counts: Relation, sensitive: str) -> None:
        """Note what makes two tables no pair: groups of other numbers of rows, and counts below 0."""
        template, params = count_unmatched(subject, counts, sensitive)
        self._steps.refuse_any(lambda found: Problem("group", f"{found} groups differ in size"), template, **params)
        self._steps.refuse_any(
            lambda found: Problem("count", f"{found} counts are negative"), "auditing/count_negative", counts=counts
        )

    def _read(self, attribute: Attribute, others: Sequence[str]) -> Subject:
        """The subject with a table in which values are one that `check` holds to be one, as far as the dialect says."""
        settings, subject, pair = self._request.sensitive, self._subject, self._subject.pair
        exact = bool(TRAITS[self._steps.dialect].by_bytes) and pair is None
        same = {name: tuple(settings[name].same or ()) for name in [attribute.name, *others] if name in settings}
        if not (exact or any(same.values())):
            return subject
        own = [*subject.open_columns, *([subject.person] if subject.person else [])]
        beside = [pair.group, *([pair.count] if pair.count else [])] if pair else own
        texts = (
            {*same} - {attribute.name if attribute.type != "VARCHAR" else ""} if self._steps.dialect == DIALECT else {}
        )
        columns = [
            {"name": Identifier(n), "apart": exact and n in beside, "is_text": n in texts, "same": same.get(n, ())}
            for n in [*beside, *same]
        ]
        table = pair.table if pair else subject.table
        read = self._steps.materialise("read", "auditing/statement/read_as_one", published=table, columns=columns)
        return replace(subject, pair=replace(pair, table=read)) if pair else replace(subject, table=read)


def _refuse_people(subject: Subject, requirements: Sequence[Requirement]) -> None:
    """Raise PolicyError for what is not judged on people, or not by one statement: shares ask for a common multiple."""
    refuse_people(requirements, subject.suppressed, bool(subject.pair and subject.person))
    shares = [requirement.label for requirement in requirements if requirement.on_people == "shares"]
    what = "compares shares of people, which are known only once people are counted"
    if shares:
        raise PolicyError([Problem("require", f"{label} {what}", "judge it with `ldiv check`") for label in shares])


def _absent(key: str, found: str) -> Problem:
    return Problem(key, f"{found} of the values named are in no row", "`absent: allow` beside them allows it")


def _columns(engine: Engine, sensitive: Iterable[str], types: Mapping[str, str]) -> list[Column]:
    """The sensitive columns with their types; raises PolicyError for what is no type, and for other columns."""
    names = {name.lower(): name for name in sensitive}
    problems = [Problem("type", f"{name!r} is not sensitive") for name in types if name.lower() not in names]
    found = dict.fromkeys(names, "VARCHAR")
    for name, kind in types.items():
        known = type_named(engine, kind)
        found[name.lower()] = known or ""
        problems += [] if known else [Problem("type", f"{kind!r} of {name} is not a type of DuckDB")]
    refuse(problems)
    return [Column(name, found[lower]) for lower, name in names.items()]


def _heading(table: Table, requirements: Mapping[str, Sequence[Requirement]]) -> list[str]:
    lines = [f"A row for every class of {table} that violates a requirement; no row if there is none. Required:"]
    for name, wanted in requirements.items():
        for requirement in wanted:
            about = f"{requirement.label}{f' on {name}' if name else ''}: {requirement.definition}"
            lines += wrap(about, WIDTH, initial_indent="  ", subsequent_indent="    ")
    lines.append("Columns of a step that nothing here reads are left out.")
    return [f"-- {' '.join(line.split()) if i == 0 else line}" for i, line in enumerate(lines)]
