"""The columns of a published table that attackers see, as a caller names them or by a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ldiv_db.attacking.covering import LabelAxis
from ldiv_db.attacking.matching import people_counter
from ldiv_db.auditing.check import CheckRequest
from ldiv_db.auditing.subject import Pair
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.database.names import Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems, Sensitive
from ldiv_db.policy.quasi_identifiers import collect_hierarchies, infer, open_columns
from ldiv_db.policy.reading import of_one_table
from ldiv_db.policy.release_columns import published_columns
from ldiv_db.policy.settings import AlgorithmSpec

Table = Relation | FileRelation


@dataclass(frozen=True)
class Columns:
    """The columns of a published table that attackers see.

    `labels` and `ids` (of classes) make a class; `quasi_identifiers` are those of the labels that people may be known
    by, each with its label's column or its two bounds, and how it covers values (by a policy only). `sensitive` maps
    each sensitive column to what is known of it; taxonomies lie in `folder`. Of a `pair`, an anatomised table, classes
    are the groups, and labels the quasi-identifiers as they are. `algorithm` is the policy's. `kept` are the columns
    that the policy keeps, None without one.

    If requirements count people (`counts_people`), perhaps rows as well (`by_rows`), the risk is that of a person:
    `person` says whose a row is, `position` the place of a row among theirs.
    """

    labels: Sequence[str]
    ids: Sequence[str]
    sensitive: Mapping[str, Sensitive]
    quasi_identifiers: Sequence[LabelAxis] = ()
    folder: Path = field(default_factory=Path)
    pair: Pair | None = None
    algorithm: AlgorithmSpec = field(default_factory=AlgorithmSpec)
    kept: Sequence[str] | None = None
    counts_people: bool = False
    by_rows: bool = False
    person: str | None = None
    position: str | None = None

    @property
    def on_people(self) -> bool:
        """True if requirements bound no share of rows, as a class may have several rows of one person."""
        return self.counts_people and not self.by_rows

    @property
    def is_open(self) -> bool:
        """True if requirements count people, and no column says whose a row is."""
        return self.counts_people and self.person is None


def columns_asked(
    engine: Engine,
    table: Table,
    quasi_identifiers: Sequence[str],
    sensitive: Mapping[str, Sensitive],
    class_column: str | None,
    folder: Path,
    pair: Pair | None = None,
) -> Columns:
    """The columns that a caller names; raises PolicyError for those that the table lacks, and if there are none."""
    ids = [class_column] if class_column else []
    asked, classes = [("qi", name) for name in quasi_identifiers], [("class", name) for name in ids]
    secrets = [("sensitive", name) for name in sensitive]
    if pair is None:
        problems = missing_columns(engine, table, [*asked, *secrets, *classes], "table")
        problems += [] if quasi_identifiers or ids else [Problem("qi", "is missing", "or give a policy")]
    else:
        group = ("group", pair.group)
        secrets += [group, *([("count", pair.count)] if pair.count else [])]
        problems = missing_columns(engine, table, [*asked, group, *classes], "table")
        problems += missing_columns(engine, pair.table, secrets, "sensitive table")
        problems += [Problem("class", "does not go with --group: the classes of a pair are its groups") for _ in ids]
    problems += (
        [Problem("sensitive", "is missing: name the sensitive column of the pair")] if pair and not sensitive else []
    )
    refuse(problems)
    return Columns(quasi_identifiers, ids, sensitive, folder=folder, pair=pair)


def columns_by_policy(engine: Engine, table: Table, policy: Policy, folder: Path) -> Columns:
    """The columns of a release under a policy: a quasi-identifier is a column of its name, or its two bounds.

    What the policy leaves open of quasi-identifiers is inferred from its source; raises PolicyError if there is none.
    """
    policy = _settled(engine, of_one_table(policy), folder)
    problems = Problems()
    hierarchies = collect_hierarchies(engine, policy.quasi_identifiers, folder, problems)
    problems.refuse()
    names = [column.name for column in columns_of(engine, table)]
    cited = published_columns(policy.released, names, {})[: len(hierarchies)]
    sets = {name for name, form in policy.released.forms.items() if form == "set"}
    axes = [
        LabelAxis(name, (column.column, *([column.high] if column.high else [])), hierarchies[name], name in sets)
        for name, column in zip(policy.quasi_identifiers, cited, strict=True)
    ]
    trees = [axis.name for axis in axes if len(axis.columns) > 1 and not axis.hierarchy.by_range]
    if trees:
        what = "is published as two bounds, and its taxonomy is of labels"
        raise PolicyError([Problem(f"quasi_identifiers.{name}", what) for name in trees])
    labels = [column.name for axis in axes for column in axis.columns]
    ids = policy.released.class_ids_among(names)
    ids += [name for name in policy.released.centres if name.lower() in map(str.lower, names)]
    found = Columns(labels, ids, policy.sensitive, axes, folder, algorithm=policy.algorithm, kept=policy.keep)
    known = {name.lower(): name for name in names}
    person, position = (known.get((name or "").lower()) for name in (policy.released.person, policy.released.position))
    found = replace(found, counts_people=policy.counts_people, by_rows=policy.by_rows)
    return replace(found, person=person, position=position if person else None)


def _settled(engine: Engine, policy: Policy, folder: Path) -> Policy:
    """The policy with how its quasi-identifiers generalise, inferred from the source where it does not say it."""
    names = [name for name, qi in policy.quasi_identifiers.items() if qi.is_open]
    if policy.decomposes or not names:
        return policy
    try:
        source = open_columns(engine, policy, folder)
    except PolicyError as error:
        what = f"how {', '.join(names)} generalise is inferred from the source"
        raise PolicyError(
            [*error.problems, Problem("quasi_identifiers", what, "say it in the policy where there is no source")]
        ) from error
    return infer(engine, policy, source, columns_of(engine, source))[0]


def with_people(
    engine: Engine, table: Relation | FileRelation, question: CheckRequest, policy: Policy | None
) -> CheckRequest:
    """The question with who counts the people of populations, if it asks for any and there is a policy.

    Raises PolicyError for a policy by which labels cannot be read, and for other quasi-identifiers than it has.
    """
    if policy is None or not any(spec.counts_people for spec in question.require):
        return question
    columns = columns_by_policy(engine, table, policy, question.folder)
    asked, labels = ({name.lower() for name in names} for names in (question.quasi_identifiers, columns.labels))
    if asked != labels:
        what = "are not the policy's quasi-identifiers, by which people of a population are counted"
        raise PolicyError([Problem("qi", f"{', '.join(question.quasi_identifiers)} {what}", ", ".join(columns.labels))])
    people = people_counter(columns.quasi_identifiers, question.folder)
    return replace(question, quasi_identifiers=columns.labels, people=people)
