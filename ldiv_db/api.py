"""The public face: calls for Python programs on a connection of their own, and all that `ldiv_db` gives out.

Those that are defined here end no transaction: they read what the caller's connection sees, inside its
transaction if one is open, and leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.attacking.columns import with_people
from ldiv_db.attacking.question import Replay
from ldiv_db.auditing.audit import Audit, Audits, Observer
from ldiv_db.auditing.cells import unaudited_cells
from ldiv_db.auditing.check import AUDITING, AuditRequest
from ldiv_db.auditing.check import check as check_table
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.subject import Suppressed
from ldiv_db.auditing.tables import check_tables
from ldiv_db.database.attach import named_databases, takes_database
from ldiv_db.database.catalog import columns_of, named_table
from ldiv_db.database.connections import open_database
from ldiv_db.database.context import Listener, working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, DatabaseError, InfeasibleError, LdivError, PolicyError, refuse
from ldiv_db.database.frames import take_for_table
from ldiv_db.database.requests import asks, number_problems
from ldiv_db.database.stages import timed, work_of
from ldiv_db.database.templates import resource_folder
from ldiv_db.measuring.asking.answer import ANSWERING, Answers, AskRequest
from ldiv_db.measuring.asking.answer import answer as answer_of_table
from ldiv_db.measuring.asking.columns import policy_of_table
from ldiv_db.measuring.measure import Besides, Measurement, MeasureRequest, measure_table, policy_of_source
from ldiv_db.measuring.profile import Profile, ProfileRequest, profile_table
from ldiv_db.measuring.tables import TablesMeasurement, measure_tables
from ldiv_db.policy.limits import publishes_all
from ldiv_db.policy.parts import Sensitive, TaxonomySpec
from ldiv_db.policy.published import asked_of, settled_by, tell_of_each
from ldiv_db.policy.reading import (
    GivenRequirement,
    Policy,
    counted_there,
    described_policy,
    parse_policy,
    read_policy,
)
from ldiv_db.policy.resolve import describe
from ldiv_db.policy.schema import members_of, of_published
from ldiv_db.policy.sensitive import as_published
from ldiv_db.policy.settings import QuasiIdentifier
from ldiv_db.policy.sources import given_name, open_given, open_source
from ldiv_db.policy.targets import Target
from ldiv_db.publishing.found import auto_found, is_recorded, left_out_of, recorded_tables
from ldiv_db.publishing.result import Result
from ldiv_db.recoding.counting import counting_sql
from ldiv_db.reporting import enter_forms
from ldiv_db.reporting.report import Report, report
from ldiv_db.running.attack import attack
from ldiv_db.running.doctor import doctor
from ldiv_db.running.exploring.explore import explore
from ldiv_db.running.exploring.outcomes import Exploration
from ldiv_db.running.run import plan, run
from ldiv_db.running.tables_apart import audits_apart

__all__ = [
    "Answers",
    "Attacks",
    "Audit",
    "AuditError",
    "Audits",
    "DatabaseError",
    "Exploration",
    "InfeasibleError",
    "LdivError",
    "Listener",
    "Measurement",
    "Policy",
    "PolicyError",
    "Profile",
    "QuasiIdentifier",
    "Replay",
    "Report",
    "Result",
    "Sensitive",
    "TablesMeasurement",
    "Target",
    "TaxonomySpec",
    "ask",
    "attack",
    "check",
    "check_sql",
    "counts_sql",
    "doctor",
    "explore",
    "measure",
    "parse_policy",
    "plan",
    "profile",
    "read_policy",
    "register",
    "report",
    "run",
]

enter_forms()


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
@asks(AuditRequest)
def check(con: Any, request: AuditRequest) -> Audits:
    """Audit a table, view, data file or frame: do all its classes meet `require`? One Audit per sensitive column.

    A class is the rows with equal `qi`, NULL being a value, and with equal `class_column` if that is given. A
    requirement is written `"distinct:3"` or as in a policy, `{"distinct": 3, "sensitive": "disease"}`. `sensitive` may
    be a mapping to `categories`, `weights` and `taxonomy`; without it one audit judges requirements on rows alone
    (`k`). The `policy` of the release supplies what is not given, and what labels stand for.

    `individual`, or a policy's pseudonym, identifies the person: people are then counted, and with a `position`, which
    orders their rows, a class is the people whose rows show the same in this order. If the policy counts people and
    there is no such column, `holds` is None. With `twice` each verdict has its `second` reading, or why it is read
    `once`. For an anatomised pair, `table` is joined to its `sensitive_table` by the column `group`, perhaps with a
    column `count`, without `qi`; the policy of a decomposition says all of it where `table` is that of people.

    Every Audit has `holds`, `classes`, `rows` and `verdicts`; a failed requirement raises nothing.
    """
    policy = None if request.policy is None else parse_policy(request.policy)
    with working_engine(con, request.listener, request.catalog) as engine:
        return audit_asked(engine, request, policy)


def audit_asked(engine: Engine, request: AuditRequest, policy: Policy | None, watch: Observer | None = None) -> Audits:
    """The audits that are asked for, of a table or of all tables of a policy; `watch` sees the classes."""
    policy = policy and of_published(policy, request.table)
    if policy is not None and policy.is_apart:
        tell_of_each(engine, request.heard, policy, Path(request.folder or "."), AUDITING)
        each = {name: asked_of(request, name, own) for name, own in members_of(policy).items()}
        return Audits(audits_apart({name: audit_asked(engine, *asked, watch) for name, asked in each.items()}))
    policy = policy and policy.requiring(auto_found(engine, policy.places, policy.require))
    if policy is not None and policy.tables:
        known = recorded_tables(engine, policy.places, policy.is_series, policy.knows_one)
        return Audits(check_tables(engine, policy, request, known, watch))
    relation = open_given(engine, request.table, "table")
    request.heard.on_stage(AUDITING)
    request.heard.on_expected([timed(AUDITING, *work_of(engine, relation))])
    if policy is not None:
        policy = settled_by(policy, (column.name for column in columns_of(engine, relation)))
    question = request.question(policy, partial(open_given, engine))
    audits = check_table(engine, relation, with_people(engine, relation, question, policy), watch)
    told = unaudited_cells(engine, relation, policy, Path(request.folder or ".")) if policy is not None else ""
    return Audits([replace(audits[0], warnings=(*audits[0].warnings, told)), *audits[1:]] if told else audits)


def check_sql(
    table: str,
    qi: str | Sequence[str] = (),
    sensitive: str | Sequence[str] | Mapping[str, Any] = (),
    require: GivenRequirement | Iterable[GivenRequirement] = (),
    *,
    policy: Policy | Mapping[str, Any] | None = None,
    dialect: str = "duckdb",
    class_column: str | None = None,
    suppressed: Suppressed | None = None,
    individual: str | None = None,
    types: Mapping[str, str] | None = None,
    labels: bool = False,
) -> str:
    """The audit of a table as one SELECT in a `dialect`: a row for every violating class.

    Its columns are (requirement, sensitive, rows, reached, margin), and with `labels` the `qi`. If `reached` and
    `margin` are NULL, the row says what leaves a verdict open. Arguments are those of `check`; `types` are the DuckDB
    types of sensitive columns that are not text. Raises PolicyError for what `check` would refuse without looking at
    rows, and for what the dialect cannot express.
    """
    request = AuditRequest(None, qi, sensitive, require, class_column, suppressed, individual=individual)
    question = request.question(None if policy is None else parse_policy(policy), named_table)
    with open_database(":memory:") as con:
        return check_statement(Engine(con), question, named_table(table, "table"), dialect, types, labels)


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
@asks(ProfileRequest)
def profile(con: Any, request: ProfileRequest) -> Profile:
    """Count how identifying the columns of a table, view or data file are.

    Without `qi` the quasi-identifiers are guessed. The Profile has `rows`, `columns`, `uniqueness` (None without a
    quasi-identifier) and `sensitive`, one entry a sensitive column; `as_dict()` adds shares (0..1) and entropy (bits).
    No value of the table is in it. `population_size` is the size of the population of which the rows are a random
    sample: `uniqueness.population` then estimates how many are unique in it, by the `chosen` model (`uniques`, `share`)
    and by all (`estimates`). With `hipaa`, columns generalise as HIPAA's Safe Harbor requires, or are identifiers.
    """
    with working_engine(con) as engine:
        relation = open_given(engine, request.table, "table")
        found = profile_table(engine, relation, request)
        return replace(found, table=given_name(request.table, relation))


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
@asks(MeasureRequest)
def measure(con: Any, request: MeasureRequest) -> Measurement | TablesMeasurement:
    """Measure what any published table, view or data file lost against its source.

    The columns are those of `policy`, or `qi` (names, or column to settings, as in a policy) and `sensitive`; `source`
    is the policy's by default. `seed` draws `queries` random COUNT queries. `answers` are those to the policy's
    `preserve`, or else means and correlations. Of a policy with `tables` each table is measured, and counts over the
    columns of two that are joined.
    """
    source, given = request.source, request.policy
    asked = described_policy(source, request.qi, request.sensitive) if given is None else parse_policy(given)
    asked = of_published(asked, request.published)
    where, named = Path(request.folder), source is None
    working = working_engine(con, request.listener, request.catalog)
    with working as engine, named_databases(engine, asked.databases, where):
        if asked.tables:
            return measure_tables(engine, asked, request)
        original = open_source(engine, asked.source, where) if named else open_given(engine, source, "source")
        relation = open_given(engine, request.published, "published")
        refuse(number_problems(request))
        policy_of = policy_of_source(engine, asked, original, source)
        described = describe(engine, policy_of, original, where)
        relation = as_published(engine, relation, policy_of)
        found = measure_table(
            engine, relation, described, request, Besides(counts=True, preserve=tuple(asked.preserve))
        )
        read = asked.source if named else source
        return replace(found, published=given_name(request.published, relation), source=given_name(read, original))


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
@asks(AskRequest)
def ask(con: Any, request: AskRequest) -> Answers:
    """Ask a published table what its source would answer to a SELECT, with bounds that surely hold it.

    `query` counts rows, sums, averages or takes the median of a column: `SELECT sex, count(*) FROM patients WHERE age
    BETWEEN 30 AND 40 GROUP BY ALL`, whatever name it calls the table by. Conditions compare a column with values (=,
    <>, <, IN, BETWEEN, LIKE, IS NULL), joined by AND, OR and NOT; groups are columns, `floor(x / 10) * 10`,
    `width_bucket` and `date_trunc`. A node of a tree may stand for its leaves. Other clauses raise PolicyError.

    The `policy` of the release says what labels stand for; its source is not read, and the answer says no more than
    the table does. `left_out` is how many rows of the source the table lacks; a ledger in the same database says it
    as well, and so does a policy under which none can be.
    """
    with working_engine(con, request.listener, request.catalog) as engine:
        return answer_asked(engine, request)


def answer_asked(engine: Engine, request: AskRequest, reads_ledger: bool = True) -> Answers:
    """The answer to what is asked; how many rows were left out is looked up unless a ledger is not to be told of."""
    relation = open_given(engine, request.table, "table")
    request.heard.on_expected([timed(ANSWERING, *work_of(engine, relation))])
    name = given_name(request.table, relation)
    written = None if request.policy is None else parse_policy(request.policy)
    policy = None if written is None else policy_of_table(written, str(relation))
    left_out = request.left_out
    refuse(number_problems(request))
    notes: tuple[str, ...] = ()
    if left_out is None and reads_ledger and is_recorded(engine, name):
        left_out = left_out_of(engine, name, relation)
    elif left_out is None and written is not None and publishes_all(written):
        left_out, notes = 0, ("under the policy no row is left out: bounds hold if the table is the whole release",)
    found = answer_of_table(engine, relation, request, policy, left_out, name)
    return replace(found, notes=(*notes, *found.notes))


def counts_sql(policy: Policy | Mapping[str, Any], dialect: str = "duckdb", source: str | None = None) -> str:
    """The SELECT that counts equal rows, which is all that a plan needs: for databases that rows may not leave.

    It returns the columns that a plan reads, and in the policy's `weight` column, `n` by default, how many rows have
    these values. `source` is the table there, the policy's by default. Raises PolicyError for a policy that cannot be
    planned from counts, a source that is a file, and an unknown dialect.
    """
    return counting_sql(parse_policy(policy), dialect, source)


def register(con: Any) -> None:
    """Give a DuckDB connection table macros, of `ldiv.sql`, for as long as it is open.

    `FROM ldiv_check('published.patients', ['age', 'sex'], 'diagnosis', 'frequency', 3)` is then the verdict of `check`
    as a row; `ldiv_classes`, `ldiv_risk` and `ldiv_loss` take a table and columns.
    """
    con.execute((resource_folder("sql") / "ldiv.sql").read_text(encoding="utf-8"))
