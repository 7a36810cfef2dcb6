"""The counts of equal rows that a plan needs, as one SELECT that runs where the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldiv_db.database.catalog import named_table
from ldiv_db.database.counted import ColumnThere
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.dialects import written
from ldiv_db.database.errors import PolicyError, Problem, nearest, refuse
from ldiv_db.database.names import DIALECT, Identifier, Relation
from ldiv_db.database.templates import render
from ldiv_db.database.traits_there import DIALECTS, TRAITS
from ldiv_db.policy.document import Policy
from ldiv_db.policy.reading import of_one_table
from ldiv_db.policy.rules import weight_problems
from ldiv_db.policy.sources import PolicySource

#: The template of the counts.
TEMPLATE = "database/count_combinations"
#: The name of the column of counts where the policy gives none.
DEFAULT_WEIGHT = "n"


def counting_sql(policy: Policy, dialect: str = DIALECT, source: str | None = None) -> str:
    """The SELECT in a dialect; `source` names the table there, by default that of the policy.

    Raises PolicyError for a policy that no counts serve, a source that is no table, and a dialect that is none.
    """
    unknown = [] if dialect in DIALECTS else [dialect]
    problems = [Problem("dialect", f"no dialect {name!r}", nearest(name, DIALECTS)) for name in unknown]
    problems += _problems(of_one_table(policy), source)
    refuse(problems)
    return written(render(TEMPLATE, counting_params(policy, source, dialect)), dialect)


def counting_params(policy: Policy, source: str | None = None, dialect: str = DIALECT) -> dict[str, Any]:
    """Parameters of the template of the counts."""
    return {
        "source": _table(source or policy.source),
        "columns": [ColumnThere(Identifier(name), Identifier(name)) for name in counted_columns(policy)],
        "weight": Identifier(weight_of(policy)),
        "hashed": (),
        "counted": None,
        "by_bytes": bool(TRAITS[dialect].by_bytes),
    }


def weight_of(policy: Policy) -> str:
    """The name of the column of counts."""
    return policy.weight or DEFAULT_WEIGHT


def counted_columns(policy: Policy) -> list[str]:
    """The columns that rows are counted by: quasi-identifiers, sensitive ones, those that say whose a row is, where it
    stands among those of its person and which it is, and that which a class column is.
    """
    label = str(policy.algorithm.options.get("class") or "").lower()
    labels = [name for name in policy.keep if name.lower() == label]
    whose = [policy.individual.column, policy.individual.order] if policy.individual else []
    told = [*policy.quasi_identifiers, *policy.sensitive, *filter(None, [*whose, policy.key]), *labels]
    return list({name.lower(): name for name in told}.values())


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
