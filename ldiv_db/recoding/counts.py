"""The counts of equal rows that a plan needs, as one SELECT that runs where the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldiv_db.database.catalog import named_table
from ldiv_db.database.dialects import DIALECTS, written
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.database.templates import FileRelation, Identifier, Relation, render
from ldiv_db.policy.document import Policy
from ldiv_db.policy.sources import PolicySource
from ldiv_db.policy.weight_checks import weight_problems

#: The template of the counts.
TEMPLATE = "recoding/statement/count_source"
#: What a policy that names no column of counts is given one for.
DEFAULT_WEIGHT = "n"


def counting_sql(policy: Policy, dialect: str = "duckdb", source: str | None = None) -> str:
    """The SELECT in a dialect; `source` names the table there, by default that of the policy.

    Raises PolicyError for a policy that no counts serve, a source that is no table, and a dialect that is none.
    """
    unknown = [] if dialect in DIALECTS else [dialect]
    problems = [Problem("dialect", f"no dialect {name!r}", nearest(name, DIALECTS)) for name in unknown]
    problems += _problems(policy, source)
    if problems:
        raise PolicyError(problems)
    return written(render(TEMPLATE, counting_holes(policy, source)), dialect)


def counting_holes(policy: Policy, source: str | None = None) -> dict[str, Any]:
    """What fills the template of the counts."""
    return {
        "source": _table(source or policy.source),
        "columns": [Identifier(name) for name in counted_columns(policy)],
        "weight": Identifier(weight_of(policy)),
    }


def weight_of(policy: Policy) -> str:
    """What the column of counts is called."""
    return policy.weight or DEFAULT_WEIGHT


def counted_columns(policy: Policy) -> list[str]:
    """The columns that rows are counted by: quasi-identifiers, sensitive ones, and that which a class column is."""
    label = str(policy.algorithm.options.get("class") or "").lower()
    labels = [name for name in policy.keep if name.lower() == label]
    return [*policy.quasi_identifiers, *policy.sensitive, *labels]


def _problems(policy: Policy, source: str | None) -> Iterator[Problem]:
    if policy.weight is not None and source is None:
        what = f"{policy.source} holds the counts already"
        yield Problem("source", what, "name the table of the rows beside the policy: --source")
    weight = weight_of(policy)
    yield from weight_problems(policy.model_copy(update={"weight": weight}))
    if weight.lower() in map(str.lower, counted_columns(policy)):
        yield Problem("weight", f"{weight} is a column of the policy already", "give the counts another name")


def _table(source: PolicySource) -> Relation:
    is_file = isinstance(source, str) and not source.startswith('"') and FileRelation.of(source) is not None
    if not isinstance(source, str) or is_file:
        what = f"{source} is {'a file' if is_file else 'no table'}"
        raise PolicyError([Problem("source", what, "name the table of the rows beside the policy: --source")])
    return named_table(source, "source")
