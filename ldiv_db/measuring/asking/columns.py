"""The columns of a question, held against a published table and what of its policy is public.

The policy says which columns are labels, and of what. What it leaves open is read off the labels: ranges if there are
any, or else texts that stand for themselves. The source is never opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step
from ldiv_db.database.errors import Problem, nearest, refuse, refused
from ldiv_db.database.names import Identifier
from ldiv_db.database.questions import KEY, Question
from ldiv_db.policy.document import Policy
from ldiv_db.policy.limits import FEATURES
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.quasi_identifiers import Hierarchy, collect_hierarchies
from ldiv_db.policy.release_columns import columns_as
from ldiv_db.policy.schema import members_of
from ldiv_db.recoding.labels import LabelAxis
from ldiv_db.taxonomies.making import Level


@dataclass(frozen=True)
class Exact:
    """A column that is published as it is; a NULL of one that may be `blank` may stand for any value."""

    column: Column
    blank: bool = False

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Labelled:
    """A column of labels; `open` ones are ranges if there are any, which nothing says, or else of its hierarchy."""

    axis: LabelAxis
    open: bool = False

    @property
    def name(self) -> str:
        return self.axis.name


def flat(name: str, same: Sequence[Step] = ()) -> Hierarchy:
    """Values that stand for themselves."""
    return Hierarchy(levels=(Level(Identifier("level_1"), same=tuple(same)),), origin=f"of the values of {name}")


def policy_of_table(policy: Policy, table: str) -> Policy:
    """The policy of a published table, of one of several by where it is; raises PolicyError for what has no labels."""
    if policy.tables:
        places = {str(member.target).lower(): member for member in members_of(policy).values()}
        if table.lower() not in places:
            raise refused("table", f"is none of those that the policy publishes: {policy.places}", "name one of them")
        policy = places[table.lower()]
    if policy.decomposes:
        what = f"a pair of tables ({policy.algorithm.name}) links values to groups, not to rows"
        raise refused("policy", what, "join the pair by its group: quasi-identifiers are as they were")
    return policy


def crossed_columns(question: Question, policy: Policy | None) -> list[str]:
    """The columns of the policy's cross-tables, in lower case, if the question names one of them."""
    crossed = dict.fromkeys(name.lower() for table in (policy.tables_of if policy else []) for name in table)
    return [*crossed] if any(name.lower() in crossed for name in question.columns) else []


def columns_asked(
    engine: Engine, table: Table, names: Sequence[str], policy: Policy | None, folder: Path
) -> tuple[dict[str, Exact | Labelled], list[str]]:
    """The columns of these names by them in lower case, and notes on how they were read.

    Raises PolicyError for columns that the table or the policy lacks.
    """
    published = {column.name.lower(): column for column in columns_of(engine, table)}
    if policy is None:
        return _by_types(names, published)
    hierarchies = _hierarchies(engine, names, policy, folder)
    exact = {name.lower(): name in policy.sensitive for name in (*policy.sensitive, *policy.keep)}
    blanks = bool(FEATURES["blanked values"].when(policy))
    forms = {name.lower(): (name, form) for name, form in policy.released.forms.items()}
    found: dict[str, Exact | Labelled] = {}
    problems, unsaid = [], []
    for name in names:
        lower = name.lower()
        if lower in forms:
            own, form = forms[lower]
            columns = _columns_of(own, published, form == "bounds")
            setting = policy.quasi_identifiers[own]
            is_open = own not in hierarchies and not (setting.same or setting.refuses_ranges)
            hierarchy = hierarchies.get(own) or flat(own, tuple(setting.same))
            found[lower] = Labelled(LabelAxis(own, columns, hierarchy, form == "set"), is_open)
            problems += [] if columns else [_lacking(name, published)]
            unsaid += [own] if is_open and len(columns) == 1 else []
        elif lower in exact and lower in published:
            found[lower] = Exact(published[lower], blanks and exact[lower])
        elif lower in exact:
            problems.append(_lacking(name, published))
        else:
            known = [*policy.quasi_identifiers, *policy.sensitive, *policy.keep]
            problems.append(Problem(KEY, f"the policy publishes no column {name}", nearest(name, known)))
    refuse(problems)
    note = f"the policy does not say how {', '.join(unsaid)} generalises: texts are read as values, ranges, sets or *"
    return found, [note] if unsaid else []


def _hierarchies(engine: Engine, names: Sequence[str], policy: Policy, folder: Path) -> dict[str, Hierarchy]:
    """The hierarchies of the columns of a question, where the policy says them."""
    asked = {name.lower() for name in names}
    told = {n: qi for n, qi in policy.quasi_identifiers.items() if n.lower() in asked and not qi.is_open}
    problems = Problems()
    found = collect_hierarchies(engine, told, folder, problems)
    problems.refuse()
    return found


def _by_types(names: Sequence[str], published: dict[str, Column]) -> tuple[dict[str, Exact | Labelled], list[str]]:
    found: dict[str, Exact | Labelled] = {}
    problems, texts = [], []
    for name in names:
        column, columns = published.get(name.lower()), _columns_of(name, published, name.lower() not in published)
        if column is not None and column.type != "VARCHAR":
            found[name.lower()] = Exact(column)
        elif columns:
            found[name.lower()] = Labelled(LabelAxis(name, columns, flat(name), sets_first=True), True)
            texts.append(name)
        else:
            problems.append(_lacking(name, published))
    refuse(problems)
    note = f"without a policy texts of {', '.join(texts)} are read as values, ranges, sets or *, not as nodes of a tree"
    return found, [note] if texts else []


def _columns_of(name: str, published: dict[str, Column], bounded: bool) -> tuple[Identifier, ...]:
    """The columns of a column's labels, none if the table lacks them."""
    ends = [end.lower() for end in columns_as(name, "bounds")]
    has_both = all(end in published for end in ends)
    if has_both and (bounded or name.lower() not in published):
        return tuple(Identifier(published[end].name) for end in ends)
    return (Identifier(published[name.lower()].name),) if name.lower() in published else ()


def _lacking(name: str, published: dict[str, Column]) -> Problem:
    return Problem(
        KEY, f"the published table has no column {name}", nearest(name, [c.name for c in published.values()])
    )
