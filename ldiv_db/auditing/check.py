"""`ldiv check`: the audit of any published table, or of an anatomised pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from os.path import splitext
from pathlib import Path
from typing import Any

from ldiv_db.auditing.audit import Audit, CountPeople, Judging, Observer, audit_each
from ldiv_db.auditing.centres import require_within
from ldiv_db.auditing.kept import warn_of_release
from ldiv_db.auditing.numbering import count_values
from ldiv_db.auditing.people_names import people_warning
from ldiv_db.auditing.set_sizes import require_few
from ldiv_db.auditing.subject import Pair, Subject, Suppressed, pair_of
from ldiv_db.database.catalog import Column, columns_of, missing_columns
from ldiv_db.database.context import Listening
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Reading, read_as_one
from ldiv_db.database.errors import Problem, nearest, refuse, refused
from ldiv_db.database.requests import asked
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import GivenRequirement, names_of, of_one_table, read_requirements, read_sensitive
from ldiv_db.policy.sensitive import absent_values, of_groups, read_attributes, resolve_all
from ldiv_db.policy.sources import COUNT, DECOMPOSITIONS, GROUP_ID
from ldiv_db.policy.targets import TARGET_FILES
from ldiv_db.requirements import ROWS_ALONE, Attribute, Requirement, RequirementSpec, Verdict

#: What is shown of an audit.
AUDITING = "auditing the table"
#: What is said of a table whose policy names people, where no column says whose its rows are,
UNTOLD = "rows were counted, but the policy protects people: name the column that identifies the person (`individual`)"
#: and of one whose policy counts them, which no count of rows can judge.
NOT_JUDGED = (
    "nothing is judged: the policy counts people, and no column identifies the person. Name one (`--individual"
    " COLUMN`), or publish a pseudonym (`output: {person: NAME}`, where `rows: together`); the run itself counted"
    " people, and the"
    " ledger has its audit"
)
#: The same where they are counted beside rows, of which a class must be good as well.
NO_PEOPLE = (
    "rows are judged alone, so that what they violate is violated: the policy counts people as well, and no column"
    " identifies the person (`--individual COLUMN`); the run itself counted people, and the ledger has its audit"
)


@dataclass(frozen=True, kw_only=True)
class WhoCounts:
    """Whose the rows of a published table are, and whether requirements are on people."""

    #: The column of the table that says whose a row is: people are counted in place of rows.
    individual: str | None = None
    #: The column by which a person's rows are in their order, where the labels of all of them are one class.
    position: str | None = None
    #: Whether the policy of the table names people, and whether its requirements are on them.
    protects_people: bool = False
    counts_people: bool = False
    #: Whether its classes must be good by their rows as well as by their people.
    by_rows: bool = False

    @property
    def is_open(self) -> bool:
        """True if requirements are on people, and no column identifies the person: rows then prove no class good."""
        return self.counts_people and self.individual is None


@dataclass(frozen=True)
class CheckRequest(WhoCounts):
    """A table's columns, and what must hold of it.

    `sensitive` maps each sensitive column to its categories, weights and taxonomy, if any. `class_column`
    names a column of class ids; classes are then told apart by it as well. `people` counts those of populations.
    """

    quasi_identifiers: Sequence[str]
    sensitive: Mapping[str, Sensitive]
    require: Sequence[RequirementSpec]
    class_column: str | None = None
    suppressed: Suppressed = "judge"
    pair: Pair | None = None
    folder: Path = field(default_factory=Path)
    people: CountPeople | None = None
    #: The columns that the policy of the table keeps, None if there is none: then all that are not named are kept.
    kept: Sequence[str] | None = None
    #: Whether the verdicts are held against a second reading.
    twice: bool = False
    #: Columns by the policy: means and medians, each with that of its ranges; lists; and the most values of sets.
    centres: Mapping[str, str] = field(default_factory=dict)
    lists: Sequence[str] = ()
    most: Mapping[str, int] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The columns of class ids."""
        return [self.class_column] if self.class_column else []

    @property
    def told_apart_by(self) -> list[tuple[str, str]]:
        """The columns by which classes are told apart, each with the key that names it."""
        return [*(("qi", name) for name in self.quasi_identifiers), *(("class", name) for name in self.ids)]

    @property
    def same(self) -> dict[str, Reading]:
        """How values of sensitive columns are read as one, by their names."""
        return {name: setting.reading for name, setting in self.sensitive.items()}

    def subject(self, table: Table) -> Subject:
        """The table as it is audited."""
        return Subject(
            table,
            self.quasi_identifiers,
            self.ids,
            suppressed=self.suppressed,
            pair=self.pair,
            same=self.same,
            person=self.individual,
            by_rows=self.by_rows,
            position=self.position,
        )

    def requirements(
        self, engine: Engine, columns: Sequence[Column]
    ) -> tuple[Mapping[str, Attribute], dict[str, list[Requirement]]]:
        """The sensitive attributes among the columns, or rows alone, and what is required of each."""
        attributes = read_attributes(engine, self.sensitive, columns, self.folder) or {ROWS_ALONE.name: ROWS_ALONE}
        return attributes, resolve_all(engine, self.require, attributes)


def check_request(policy: Policy | None, **given: Any) -> CheckRequest:
    """The request of a caller: what is `given`, and what the policy of the release asks instead of the rest.

    The release's pseudonym says whose a row is. Raises PolicyError if the policy leaves open what its columns are.
    """
    given = {name: value for name, value in given.items() if value}
    if policy is None:
        return replace(CheckRequest([], {}, []), **given)
    if of_one_table(policy).decomposes:
        if not given.get("pair"):
            what = f"publishes a pair of tables ({policy.algorithm.name})"
            raise refused("policy", what, "name the table of people, or both tables and their group")
        folder = policy.path.parent if policy.path else Path()
        return replace(CheckRequest([], policy.sensitive, of_groups(policy), folder=folder, kept=policy.keep), **given)
    open_columns = [name for name, qi in policy.quasi_identifiers.items() if qi.is_open and not qi.refuses_ranges]
    if policy.output.bounds and open_columns:
        what = f"publishes bounds, and only its release shows whether {open_columns[0]} has them"
        raise refused("policy", what, "`numeric: true` in the policy says so")
    request = CheckRequest(
        policy.released.identifying,
        policy.sensitive,
        policy.require,
        next(iter(policy.released.class_ids), None),
        policy.suppressed,
        folder=policy.path.parent if policy.path else Path(),
        individual=policy.released.person,
        position=policy.released.position,
        kept=policy.keep,
        protects_people=policy.individual is not None,
        counts_people=policy.counts_people,
        by_rows=policy.by_rows,
        centres=policy.released.centres,
        lists=policy.released.lists,
        most=policy.released.most,
    )
    return replace(request, **given)


def asked_pair(asked: Any, policy: Policy | None, open_table: Callable[[Any, str], Table]) -> Pair | None:
    """The pair of tables that is named, or that which a policy publishes; raises PolicyError for half of one."""
    suffixes = DECOMPOSITIONS.get(policy.algorithm.name, ()) if policy else ()
    is_whole, (named, ending) = not (asked.sensitive_table or asked.group or asked.count), splitext(str(asked.table))
    named, ending = (named, ending) if ending.lower() in TARGET_FILES else (str(asked.table), "")
    if is_whole and suffixes and named.endswith(f"_{suffixes[0]}"):
        values = open_table(named.removesuffix(suffixes[0]) + suffixes[1] + ending, "sensitive-table")
        return Pair(values, GROUP_ID, COUNT if policy and policy.algorithm.name == "anatomy" else None)
    return pair_of(asked.sensitive_table, asked.group, asked.count, open_table)


@dataclass(frozen=True)
class NamedTable:
    """A published table and its columns, as a caller names them."""

    table: Any = None
    qi: str | Sequence[str] = ()
    sensitive: str | Sequence[str] | Mapping[str, Any] = ()


@dataclass(frozen=True, kw_only=True)
class NamedPair:
    """The table of values of an anatomised pair, and the columns that join it, as a caller names them."""

    sensitive_table: Any = asked(None)
    group: str | None = asked(None)
    count: str | None = asked(None)


@dataclass(frozen=True)
class AuditRequest(NamedPair, Listening, NamedTable):
    """A published table or pair, and what must hold of it."""

    require: GivenRequirement | Iterable[GivenRequirement] = ()
    class_column: str | None = asked(None, name="class")
    suppressed: Suppressed | None = asked(
        None,
        "How to treat rows with all labels * or NULL, or no sensitive value. By default the policy's, or judge.",
        of=Suppressed | None,
    )
    _: KW_ONLY
    policy: Policy | Mapping[str, Any] | None = None
    folder: str | Path | None = None
    twice: bool = asked(False, "Judge a second time, by the tests of the dbt package.")
    individual: str | None = asked(None, "The column that identifies the person: count people, not rows.")
    position: str | None = asked(
        None, "With --individual: the column that puts a person's rows into their order. A class is a sequence of rows."
    )

    def question(self, policy: Policy | None, open_table: Callable[[Any, str], Table]) -> CheckRequest:
        """The request by what its `policy` says; raises PolicyError if nothing is required, or for half of a pair."""
        return check_request(
            policy,
            quasi_identifiers=names_of(self.qi),
            sensitive=read_sensitive(self.sensitive),
            require=read_requirements(self.require) if self.require or policy is None else (),
            class_column=self.class_column,
            suppressed=self.suppressed,
            individual=self.individual,
            position=self.position,
            pair=asked_pair(self, policy, open_table),
            folder=None if self.folder is None else Path(self.folder),
            twice=self.twice,
        )


def check(engine: Engine, table: Table, request: CheckRequest, watch: Observer | None = None) -> list[Audit]:
    """The audits of any published table, one a sensitive attribute, or one of its rows alone if there is none.

    Where people are asked about and no column identifies the person, they have the figures of rows and no verdict,
    unless rows are asked about as well and violate a requirement.

    Raises PolicyError for columns that the table lacks and for requirements that do not exist or lack what
    they need, AuditError where a mean or median is not in its range, or a set is larger than the policy allows.
    """
    refuse_request(engine, table, request)
    home = request.pair.table if request.pair else table
    attributes, requirements = request.requirements(engine, columns_of(engine, home))
    named = sorted({one.label for wanted in requirements.values() for one in wanted if one.named_population})
    if request.pair is not None:
        what = "is about the people whom labels cover, and a pair publishes values as they are"
        refuse(Problem("require", f"{label} {what}") for label in named)
    elif request.people is None:
        what = "needs a policy, which says what labels stand for"
        refuse(Problem("require", f"{label} {what}", "give --policy") for label in named)
    with read_as_one(engine, home, request.same) as read:
        every = Subject(read, [], same=request.same)
        values = {n: (count_values(engine, every, n), "value") if every.is_set(n) else (read, n) for n in attributes}
        absent_values(engine, requirements, values)
    require_within(engine, home, request.centres)
    require_few(engine, home, request.most)
    subject = request.subject(table)
    audits = audit_each(engine, subject, requirements, Judging(watch, request.people, request.twice))
    if request.individual is None:
        audits = _of_rows(engine, subject, request, audits)
    told = warn_of_release(engine, subject, list(request.sensitive), request.kept)
    return [replace(audits[0], warnings=(*audits[0].warnings, *told)), *audits[1:]]


def _of_rows(engine: Engine, subject: Subject, request: CheckRequest, audits: list[Audit]) -> list[Audit]:
    """The audits of rows that no column says the owners of: warned of that, and without verdicts that people decide."""
    told = UNTOLD if request.protects_people else people_warning(engine, subject, list(request.sensitive))
    told = (NO_PEOPLE if request.by_rows else NOT_JUDGED) if request.is_open else told
    audits[0] = replace(audits[0], warnings=(*audits[0].warnings, *([told] if told else [])))
    if not request.is_open:
        return audits

    def left_open(verdict: Verdict) -> Verdict:  # unless rows must be good as well and are not
        return replace(verdict, holds=False if request.by_rows and verdict.holds is False else None)

    return [replace(one, verdicts=tuple(map(left_open, one.verdicts))) for one in audits]


def refuse_request(engine: Engine, table: Table, request: CheckRequest, known: Sequence[Problem] = ()) -> None:
    """Raise PolicyError for columns that the table, or a pair, lacks, and for what is wrong with the request.

    With what is `known` to be wrong already.
    """
    pair = request.pair
    main = request.told_apart_by
    sensitive = [("sensitive", name) for name in request.sensitive]
    given = {"individual": request.individual, "position": request.position}
    person = [(key, name) for key, name in given.items() if name]
    named = [*main, *([("group", pair.group)] if pair else sensitive), *person]
    problems = [*known, *missing_columns(engine, table, named, "table")]
    if pair is not None:
        counts = [("count", pair.count)] if pair.count else []
        problems += missing_columns(engine, pair.table, [("group", pair.group), *sensitive, *counts], "sensitive table")
    problems += problems_of(request)
    refuse(problems)


def problems_of(request: CheckRequest) -> list[Problem]:
    """Problems of the request, whatever the table."""
    problems, pair = [], request.pair
    main = request.told_apart_by
    if pair is not None:
        what = "does not go with --group: the classes of a pair are its groups"
        problems += [Problem(key, what) for key in dict.fromkeys(key for key, _ in main)]
        sets = [name for name, setting in request.sensitive.items() if setting.set and pair.count]
        problems += [Problem(f"sensitive.{name}.set", "does not go with --count: values are counted") for name in sets]
        problems += (
            [] if request.sensitive else [Problem("sensitive", "is missing: name the sensitive column of the pair")]
        )
    elif not main:
        problems.append(Problem("qi", "is missing: a class is the rows with equal quasi-identifiers"))
    keys = {name.lower(): key for key, name in [*main, *([("group", pair.group)] if pair else [])]}
    taken = [name for name in request.sensitive if name.lower() in keys]  # every class would have one value of them
    problems += [Problem("sensitive", f"{name!r} is under {keys[name.lower()]} already") for name in taken]
    if request.individual is not None:
        others = {name.lower() for name in [*(name for _, name in main), *request.sensitive]}
        if request.individual.lower() in others:
            problems.append(Problem("individual", f"{request.individual!r} is a quasi-identifier or sensitive already"))
    elif request.position is not None:
        problems.append(Problem("position", "goes with individual: it orders the rows of a person"))
    for spec in request.require:
        problems += spec.problems_of_each("require", "order" if request.position is not None else "")
    return problems + request_problems(request.require, request.sensitive)


def request_problems(require: Sequence[RequirementSpec], sensitive: Mapping[str, Sensitive]) -> list[Problem]:
    """Problems of requirements on a table without a source, and of what is said of its sensitive columns."""
    known = {name.lower() for name in sensitive}
    problems = []
    asking = [] if sensitive else [spec.name for spec in require if not spec.kind.rows_only]
    if asking:
        what = "is missing: requirements are about its values, k alone is not"
        problems.append(Problem("sensitive", what, f"name the column that {asking[0]} is about"))
    for spec in require:
        what, hint = spec.kind.lacks_source
        auto = [Problem("require", f"{spec.name}: {what}", hint)] if spec.is_auto else []
        problems += spec.problems("require") or auto
        problems += [
            Problem("require", f"{spec.name}: {name!r} is not sensitive", nearest(name, sensitive))
            for name in spec.sensitive
            if name.lower() not in known
        ]
    return problems + [p for name, setting in sensitive.items() for p in setting.problems(f"sensitive.{name}")]
