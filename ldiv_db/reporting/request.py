"""The request for a report: the table, its columns, what must hold, and what else is known; and the policy it quotes.

A quoted policy has one form however it was written, without secrets or where the data is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.attacking.known import AttackWork, KnownPeople
from ldiv_db.attacking.question import read_threshold
from ldiv_db.database.context import Listening
from ldiv_db.database.errors import Problem, nearest, refuse, refused
from ldiv_db.database.requests import asked
from ldiv_db.measuring.measure import AgainstSource
from ldiv_db.policy.context import ReleaseContext, read_context
from ldiv_db.policy.reading import Policy, names_of, parse_policy, said_of_one_table
from ldiv_db.policy.schema import as_one
from ldiv_db.policy.sources import Frame, PolicySource, SourceQuery
from ldiv_db.reporting.context_asked import DataContext, Governance, RecipientContext
from ldiv_db.requirements.parameters import LARGEST
from ldiv_db.requirements.risk import HIGH

#: Random counts by which the error of an analyst's queries is estimated.
QUERIES = 300

_PEOPLE, _WORK = ("source", "known", "population", "control"), ("queries", "tries", "seed", "budget", "worlds")
#: Parts of a question that a public report leaves out, and all that others quote.
OF_THE_SOURCE = (*_PEOPLE, *_WORK)
QUOTED = ("qi", "sensitive", "require", "class_column", "individual", *_PEOPLE, "threshold", *_WORK)


@dataclass(frozen=True)
class ReportRequest(KnownPeople, AgainstSource, AttackWork, RecipientContext, DataContext, Governance, Listening):
    """The question of a report as a caller asks it.

    Only a policy of several tables may leave the `table` out. Without a `policy` the columns are `qi`, `sensitive` and
    `class_column`, and what must hold is `require`. The last keys are those of a context, each in place of what
    `context` and the policy say.
    """

    table: str | None = None
    policy: Policy | Mapping[str, Any] | None = None
    _: KW_ONLY
    qi: str | Sequence[str] = ()
    sensitive: str | Sequence[str] | Mapping[str, Any] = ()
    require: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = ()
    class_column: str | None = asked(None, name="class")
    individual: str | None = asked(None, "The column that identifies the person: count people, not rows.")
    queries: int = asked(QUERIES, "Random COUNT queries to answer; fewer of large tables.", least=0, most=100_000)
    worlds: int = asked(0, "Replay the release on so many worlds, each by a run.", least=0, most=LARGEST)
    public: bool = asked(False, "Leave out what the release itself does not reveal.")
    folder: str | Path | None = None

    def question(self) -> ReportQuestion:
        """The question with its policy and context read; raises PolicyError for what cannot be read."""
        policy = None if self.policy is None else parse_policy(self.policy)
        beside = policy.path.parent if policy and policy.path else Path()
        texts = {key: getattr(self, key) for key in ReleaseContext.model_fields if key != "population"}
        context = ReleaseContext() if policy is None else policy.context
        read = {
            "policy": policy,
            "qi": names_of(self.qi),
            "sensitive": self.sensitive if isinstance(self.sensitive, Mapping) else names_of(self.sensitive),
            "require": [self.require] if isinstance(self.require, str | Mapping) else list(self.require),
            "threshold": None if self.threshold is None else str(self.threshold),
            "context": context.with_texts(read_context(self.context)).with_texts(read_context(texts)),
            "folder": beside if self.folder is None else Path(self.folder),
        }
        return ReportQuestion(**vars(self) | read)


@dataclass(frozen=True, kw_only=True)
class ReportQuestion(ReportRequest):
    """The question of a report with its policy and context read; reports quote it, so that it can be asked again."""

    policy: Policy | None = None
    qi: Sequence[str] = ()
    sensitive: Sequence[str] | Mapping[str, Any] = ()
    require: Sequence[str | Mapping[str, Any]] = ()
    threshold: str | None = None
    context: ReleaseContext = field(default_factory=ReleaseContext)
    folder: Path = field(default_factory=Path)

    @property
    def high(self) -> Decimal:
        """The threshold as a number; raises PolicyError if it is none."""
        return read_threshold(self.threshold or HIGH)

    @property
    def described(self) -> Policy | None:
        """The policy with the columns of all its tables as of one."""
        return None if self.policy is None else as_one(self.policy)

    @property
    def reasoned(self) -> list[str]:
        """The identifiers and quasi-identifiers, whose treatment is to be given a reason for."""
        policy = self.described
        return list(self.qi) if policy is None else [*identifiers_of(policy), *policy.quasi_identifiers]

    def refuse(self) -> None:
        """Raise PolicyError with everything that is wrong with the question."""
        refuse(list(self._problems()))
        if self.policy is not None and self.policy.tables:
            refuse(said_of_one_table(self, but=["table"]))
        elif self.table is None:
            raise refused("table", "is required", "a policy of several tables alone names them itself")

    def _problems(self) -> Iterator[Problem]:
        yield from self._problems_of_columns()
        known = {name.lower() for name in self.reasoned}
        for name in self.context.reasons:
            if name.lower() not in known:
                what = "is neither an identifier nor a quasi-identifier"
                yield Problem(f"context.reasons.{name}", what, nearest(name, self.reasoned))
        for key in self.context.blanks(self.reasoned) if self.final else ():
            yield Problem(f"context.{key}", "is blank", ReleaseContext.asks(key))

    def _problems_of_columns(self) -> Sequence[Problem]:
        columns = {"qi": self.qi, "sensitive": self.sensitive, "require": self.require, "class": self.class_column}
        if self.policy is None:
            needed = [key for key in ("qi", "require") if not columns[key]]
            found = [Problem(key, "is required where no policy is given") for key in needed]
            people = {"known": self.known, "population": self.population, "control": self.control}
            what = "needs a policy, which says what labels stand for"
            return found + [Problem(key, what, "give --policy") for key, given in people.items() if given]
        found = [Problem(key, "is in the policy: leave this out") for key, given in columns.items() if given]
        if self.policy.decomposes:
            what = "publishes several tables, and a report is of one"
            found.append(Problem("algorithm.name", what, "check and attack take a pair"))
        return found

    def as_dict(self) -> dict[str, Any]:
        """What a report quotes of its question, and for whom it is; a public one leaves out what is of the source."""
        left_out = OF_THE_SOURCE if self.public else ()
        quoted = {key: _plain(getattr(self, key)) for key in QUOTED if key not in left_out}
        return quoted | {"audience": "public" if self.public else "internal"}


def identifiers_of(policy: Policy) -> list[str]:
    """The columns that say whose or which a row is, and are not published."""
    return [column for key, column in policy.roles() if key in ("identifiers", "individual", "key")]


#: Never shown: who has the seed can repeat the run, addresses may hold passwords, and the context has its own section.
_SECRET = ("seed", "databases", "context")
#: What says where the data is and who is in it, which is no business of those outside.
_INTERNAL = ("source", "target", "identifiers", "individual", "key", "weight", "preserve")
#: The same of one of several tables, whose links are published as numbers.
_INTERNAL_OF_TABLE = ("source", "target", "identifiers", "order")
#: A policy may hold whole taxonomies; so much of it is printed.
MOST_TEXT = 60_000


def written_policy(policy: Policy, public: bool = False) -> dict[str, Any]:
    """The policy as a mapping that reads as the same policy; of a frame as source only that it is one."""
    left_out = {*_SECRET, *(_INTERNAL if public else ())}
    found = policy.model_dump(exclude_unset=True, exclude=left_out | {"source", "require", "tables"})
    source = {} if "source" in left_out or policy.tables else {"source": _source(policy.source)}
    if policy.tables:
        source["tables"] = {
            name: ({} if public else {"source": _source(table.source)})
            | table.model_dump(exclude_unset=True, exclude={"source", *(_INTERNAL_OF_TABLE if public else ())})
            for name, table in policy.tables.items()
        }
    require = [spec.written for spec in policy.require]
    return {str(key): _plain(value) for key, value in {**source, **found, "require": require}.items()}


def policy_hash(document: Mapping[str, Any]) -> str:
    """SHA-256 of a written policy, the same for any order of its keys but those of columns."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def policy_text(document: Mapping[str, Any]) -> str:
    """The policy as YAML, cut if it is very long."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n… {len(text) - MOST_TEXT:,} characters more"


def read_again(document: Mapping[str, Any]) -> Policy:
    """The policy of a report; raises PolicyError if it is none, or has no source, as in a public report."""
    if any("source" not in one for one in document.get("tables", {"": document}).values()):
        what = "is needed: a public report leaves out where the data is, and a frame has no name"
        raise refused("policy", what, "give --policy")
    return parse_policy(dict(document))


def _source(source: PolicySource) -> Any:
    if isinstance(source, Frame):
        return "(a frame)"
    return {"query": source.query} if isinstance(source, SourceQuery) else source


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
