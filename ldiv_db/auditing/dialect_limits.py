"""What a dialect does not express of the audit: it is refused by name, never left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ldiv_db.database.dialects import DIALECTS
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.requirements import Attribute, Requirement

#: Types whose values every database writes alike.
_WRITTEN_ALIKE = ("VARCHAR", "DATE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT")
#: Databases whose windows do not reach as far as an exact decimal does.
_NO_DECIMAL_FRAMES = ("clickhouse",)
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


def refuse_dialect(
    dialect: str,
    tables: Sequence[Relation | FileRelation],
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
            problems.append(Problem(f"{key}.same", f"{dialect} has other letters and blanks", "fold them in a view"))
        if _names_values(attribute, requirements[name]) and attribute.type not in _WRITTEN_ALIKE:
            what = f"values of type {attribute.type} are named, which {dialect} writes otherwise"
            problems.append(Problem(key, what, "give texts, dates or whole numbers in a view"))
        if dialect == "clickhouse" and attribute.type in ("FLOAT", "DOUBLE"):
            problems.append(Problem(key, "0.0 and -0.0 are two values in clickhouse", "give decimals in a view"))
        for requirement in requirements[name]:
            problems += _distance_problems(dialect, attribute, requirement)
    if problems:
        raise PolicyError(problems)


def _names_values(attribute: Attribute, requirements: Sequence[Requirement]) -> bool:
    """Whether the statement compares values with texts."""
    named = any(requirement.named or requirement.listed for requirement in requirements)
    return bool(named or attribute.harmless or attribute.taxonomy)


def _distance_problems(dialect: str, attribute: Attribute, requirement: Requirement) -> list[Problem]:
    """What is wrong with distances of values in the dialect: they are compared exactly, or not at all."""
    if requirement.of_distances and not requirement.monotone and dialect in _NO_DECIMAL_FRAMES:
        what = f"{dialect} has no window from a decimal below a value to one above it"
        return [Problem(f"require.{requirement.name}", what, "judge it with `ldiv check`")]
    if not requirement.of_distances or attribute.type == "DATE" or attribute.type in _WHOLE:
        return []
    if attribute.is_time:
        what = f"points in time are compared by {dialect} in its own way"
    elif dialect == "sqlite":
        what = "sqlite has no exact decimals"
    else:
        return []
    return [Problem(f"require.{requirement.name}", what, "give days or whole numbers in a view")]
