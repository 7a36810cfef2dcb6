"""What the release itself shows, and who has it can work out too: its audit, its classes, attacks without knowledge."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ldiv_db.attacking.populations import with_people
from ldiv_db.auditing.audit import Audit, counted
from ldiv_db.auditing.check import Question, question_of
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.templates import FileRelation, Relation, Value
from ldiv_db.policy.given import names_of, read_requirements, read_sensitive
from ldiv_db.reporting.asked import Asked
from ldiv_db.requirements import Requirement

Table = Relation | FileRelation
#: Bins of class sizes at most, and bins of shares: a bound of 1/2, 1/4, 1/5 or 1/10 stands between two of these.
SIZE_BINS, SHARE_BINS = 24, 20
#: The audit as SQL is printed up to so many characters.
MOST_SQL = 200_000


def question_about(engine: Engine, table: Table, asked: Asked) -> Question:
    """What is asked of the table; class ids count where it has them."""
    if asked.policy is None:
        require, sensitive = read_requirements(asked.require), read_sensitive(asked.sensitive)
        return Question(names_of(list(asked.qi)), sensitive, require, asked.class_column, folder=asked.folder)
    question = replace(question_of(asked.policy), folder=asked.folder)
    ids = asked.policy.released.class_ids_among([column.name for column in columns_of(engine, table)])
    return with_people(engine, table, replace(question, class_column=next(iter(ids), None)), asked.policy)


def audit_document(audits: Sequence[Audit]) -> dict[str, Any]:
    """The audits as a report has them: each requirement with its bound, worst class and margin."""
    return {"holds": all(found.holds for found in audits), "attributes": [_attribute(found) for found in audits]}


def _attribute(found: Audit) -> dict[str, Any]:
    words = [{"requirement": str(v.requirement), "means": _meaning(v.requirement)} for v in found.verdicts]
    whole = found.as_dict()
    requirements = [{**said, **one} for said, one in zip(words, whole.pop("requirements"), strict=True)]
    return {**whole, "requirements": requirements}


def _meaning(requirement: Requirement) -> str:
    """What the requirement asks of a class, as it says itself."""
    said, _, _ = (inspect.getdoc(type(requirement)) or "").partition("\n\n")
    return " ".join(said.replace("`", "").split())


def classes_of(engine: Engine, table: Table, question: Question) -> dict[str, Any]:
    """How large classes are, and the largest share of a value in each, by sensitive attribute: counts alone."""
    ids = [question.class_column] if question.class_column else []
    same = {name: setting.same for name, setting in question.sensitive.items()}
    subject = Subject(table, question.quasi_identifiers, ids, suppressed=question.suppressed, same=same)
    sizes: dict[str, Any] = {}
    shares = {}
    for name in question.sensitive or [""]:
        with counted(engine, subject, name) as counts:
            sizes = sizes or _sizes(engine, counts.listed)
            if name:
                holes = {"summary": counts.classes.summary, "bins": Value(SHARE_BINS)}
                rows = dict(engine.rows("reporting/count_largest_shares", **holes))
                shares[name] = [rows.get(place, 0) for place in range(SHARE_BINS)]
    return {"sizes": sizes, "largest_shares": shares}


def _sizes(engine: Engine, classes: Relation) -> dict[str, Any]:
    """The histogram of class sizes, in bins of equal width from the least size on."""
    bounds = engine.record("reporting/bound_sizes", classes=classes)
    least, most = int(bounds["least"] or 0), int(bounds["most"] or 0)
    width = max(1, -(-(most - least + 1) // SIZE_BINS))
    holes = {"least": Value(least), "width": Value(width)}
    rows = engine.rows("reporting/count_sizes", classes=classes, **holes)
    bins = [{"from": least + bin_ * width, "classes": int(n), "rows": int(r)} for bin_, n, r in rows]
    return {"least": least, "most": most, "width": width, "bins": bins}


def audit_sql(engine: Engine, table: Table, question: Question, name: str) -> dict[str, Any]:
    """The audit as one SELECT of a table of that name, or why there is none."""
    types = {column.name: column.type for column in columns_of(engine, table)}
    of_sensitive: Mapping[str, str] = {name: types[name] for name in question.sensitive if name in types}
    try:
        sql = check_statement(engine, question, Relation(tuple(name.split("."))), "duckdb", of_sensitive)
    except PolicyError as error:
        return {"sql": None, "why_not": "; ".join(problem.what for problem in error.problems)}
    return {"sql": sql if len(sql) <= MOST_SQL else None, "why_not": None if len(sql) <= MOST_SQL else "it is too long"}
