"""The public face: calls for Python programs on a connection of their own, and all that `ldiv_db` gives out.

Those that are defined here end no transaction: they read what the caller's connection sees, inside its
transaction if one is open, and leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.attacking.columns import with_people
from ldiv_db.attacking.matching import BUDGET
from ldiv_db.attacking.question import TRIES, Replay
from ldiv_db.auditing.audit import Audit, Audits
from ldiv_db.auditing.check import CheckRequest, check_request
from ldiv_db.auditing.check import check as check_table
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.subject import Suppressed
from ldiv_db.database.attach import named_databases, takes_database
from ldiv_db.database.catalog import named_table
from ldiv_db.database.connections import open_database
from ldiv_db.database.context import Listener, working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, DatabaseError, InfeasibleError, LdivError, PolicyError, refuse
from ldiv_db.database.frames import take_for_table
from ldiv_db.database.requests import number_problems
from ldiv_db.measuring.measure import Measurement, MeasureRequest, measure_table, policy_of_source
from ldiv_db.measuring.profile import Profile, profile_table
from ldiv_db.policy.context import GivenContext
from ldiv_db.policy.document import Target
from ldiv_db.policy.parts import Sensitive, TaxonomySpec
from ldiv_db.policy.reading import (
    GivenRequirement,
    Policy,
    counted_there,
    described_policy,
    names_of,
    parse_policy,
    read_policy,
    read_requirements,
    read_sensitive,
)
from ldiv_db.policy.resolve import describe
from ldiv_db.policy.sensitive import as_published
from ldiv_db.policy.settings import QuasiIdentifier
from ldiv_db.policy.sources import given_name, open_given, open_source
from ldiv_db.publishing.result import Released, Result
from ldiv_db.recoding.counting import counting_sql
from ldiv_db.reporting.forms import enter_forms
from ldiv_db.reporting.report import Report, make_report
from ldiv_db.reporting.request import QUERIES, WORLDS, ReportRequest, context_of
from ldiv_db.running.attack import attack
from ldiv_db.running.exploring.explore import explore
from ldiv_db.running.exploring.outcomes import Exploration
from ldiv_db.running.run import plan, run

__all__ = [
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
    "Released",
    "Replay",
    "Report",
    "Result",
    "Sensitive",
    "Target",
    "TaxonomySpec",
    "attack",
    "check",
    "check_sql",
    "counts_sql",
    "explore",
    "measure",
    "parse_policy",
    "plan",
    "profile",
    "read_policy",
    "report",
    "run",
]

enter_forms()


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
def check(
    con: Any,
    table: Any = None,
    qi: str | Sequence[str] = (),
    sensitive: str | Sequence[str] | Mapping[str, Any] = (),
    require: GivenRequirement | Iterable[GivenRequirement] = (),
    class_column: str | None = None,
    suppressed: Suppressed | None = None,
    *,
    policy: Policy | Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    twice: bool = False,
    individual: str | None = None,
) -> Audits:
    """Audit a table, view, data file or frame: do all its classes meet `require`? One Audit per sensitive column.

    A class is the rows with equal `qi`, NULL being a value, and with equal `class_column` if that is given. A
    requirement is written `"distinct:3"` or as in a policy, `{"distinct": 3, "sensitive": "disease"}`. Without a
    sensitive column there is one audit, of requirements on rows alone (`k`); its `sensitive` is empty.

    `sensitive` may be a mapping to `categories`, `weights` and `taxonomy`, as in a policy. `suppressed` says how to
    treat rows whose `qi` are all `*` or NULL, or whose sensitive value is NULL; by default they are judged. The
    `policy` of the release supplies what is not given, and what labels stand for; `folder` holds relative files.
    `individual`, or a policy's pseudonym, is the column that identifies the person: people are then counted. If the
    policy counts people and there is no such column, `holds` is None. `twice` adds a second reading, by the tests of
    the dbt package: each verdict has its `second`, or why it is read `once`.

    Every Audit has `holds`, `classes`, `rows` and `verdicts`; a failed requirement raises nothing. Raises PolicyError
    for a table, columns or requirements that do not exist, DatabaseError if the database refuses.
    """
    parsed = None if policy is None else parse_policy(policy)
    where = None if folder is None else Path(folder)
    given = {"class_column": class_column, "suppressed": suppressed, "individual": individual}
    question = _question(parsed, qi, sensitive, require, folder=where, twice=twice, **given)
    with working_engine(con) as engine:
        relation = open_given(engine, table, "table")
        return Audits(check_table(engine, relation, with_people(engine, relation, question, parsed)))


def _question(policy: Policy | None, qi: Any, sensitive: Any, require: Any, **given: Any) -> CheckRequest:
    specs = read_requirements(require) if require or policy is None else ()
    names, attributes = names_of(qi), read_sensitive(sensitive)
    return check_request(policy, quasi_identifiers=names, sensitive=attributes, require=specs, **given)


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
    `margin` are NULL, the row says what leaves a verdict open. Arguments are those of `check`; `types` are the
    DuckDB types of sensitive columns that are not text. Raises PolicyError for what `check` would refuse without
    looking at rows, or leave open, and for what the dialect cannot express.
    """
    parsed = None if policy is None else parse_policy(policy)
    given = {"class_column": class_column, "suppressed": suppressed, "individual": individual}
    question = _question(parsed, qi, sensitive, require, **given)
    with open_database(":memory:") as con:
        return check_statement(Engine(con), question, named_table(table, "table"), dialect, types, labels)


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
def profile(
    con: Any,
    table: Any = None,
    qi: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] = (),
    *,
    population_size: int | None = None,
    hipaa: bool = False,
) -> Profile:
    """Count how identifying the columns of a table, view or data file are.

    Without `qi` the quasi-identifiers are guessed. The Profile has `rows`, `columns`, `uniqueness` (None without a
    quasi-identifier) and `sensitive`, one entry a sensitive column; `as_dict()` adds shares (0..1) and entropy (bits).
    No value of the table is in it. Raises PolicyError for a table or columns that do not exist, InfeasibleError for an
    empty table, DatabaseError if the database refuses.

    `population_size` is the size of the population of which the rows are a random sample: `uniqueness.population` then
    estimates how many are unique in it, by the `chosen` model (`uniques`, `share`) and by all (`estimates`). With
    `hipaa`, columns generalise as HIPAA's Safe Harbor requires, or are identifiers.
    """
    with working_engine(con) as engine:
        relation = open_given(engine, table, "table")
        names = None if qi is None else names_of(qi)
        found = profile_table(engine, relation, names, names_of(sensitive), population=population_size, hipaa=hipaa)
        return replace(found, table=given_name(table, relation))


@takes_database(read_only=True, of_frame=take_for_table, of_warehouse=counted_there)
def measure(
    con: Any,
    published: Any = None,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    source: Any = None,
    qi: str | Sequence[str] | Mapping[str, Any] | None = None,
    sensitive: str | Sequence[str] = (),
    folder: str | Path = ".",
    l: int | None = None,
    class_column: str | None = None,
    class_label: str | None = None,
    queries: int = 0,
    seed: int = 0,
    kl: bool = True,
    catalog: str | None = None,
    show_values: bool = False,
) -> Measurement:
    """Measure what any published table, view or data file lost against its source.

    The columns are those of `policy`, or `qi` (names, or column to settings, as in a policy) and `sensitive`. `source`
    is the policy's by default; `folder` holds relative files. `l` is for CAVG (the policy's by default), `class_label`
    a published column for CM, `class_column` one of class ids. `seed` draws `queries` random COUNT queries. `answers`
    are those to the policy's `preserve`, or else means and correlations. `catalog` is the attached database with the
    taxonomies; with `show_values` errors name values that a taxonomy lacks. Raises PolicyError for what does not exist,
    does not fit or cannot be read, InfeasibleError for an empty source.
    """
    asked = parse_policy(policy) if policy is not None else described_policy(source, qi, sensitive)
    preserve = tuple(asked.preserve)
    wanted = MeasureRequest(l, class_column, class_label, queries, seed, kl, counts=True, preserve=preserve)
    where, named = Path(folder), source is None
    with working_engine(con, None, catalog) as engine, named_databases(engine, asked.databases, where):
        original = open_source(engine, asked.source, where) if named else open_given(engine, source, "source")
        relation = open_given(engine, published, "published")
        refuse(number_problems(wanted))
        policy_of = policy_of_source(engine, asked, original, source)
        described = describe(engine, policy_of, original, where)
        relation = as_published(engine, relation, policy_of)
        found = measure_table(engine, relation, described, wanted, show_values)
        read = asked.source if named else source
        return replace(found, published=given_name(published, relation), source=given_name(read, original))


@takes_database(read_only=True, of_warehouse=counted_there)
def report(
    con: Any,
    table: str,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    qi: str | Sequence[str] = (),
    sensitive: str | Sequence[str] | Mapping[str, Any] = (),
    require: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = (),
    class_column: str | None = None,
    individual: str | None = None,
    source: str | None = None,
    known: str | None = None,
    population: str | None = None,
    control: str | None = None,
    threshold: float | str | None = None,
    queries: int = QUERIES,
    tries: int = TRIES,
    seed: int = 0,
    budget: int = BUDGET,
    worlds: int = WORLDS,
    context: GivenContext = None,
    final: bool = False,
    public: bool = False,
    folder: str | Path | None = None,
    catalog: str | None = None,
    **said: str | None,
) -> Report:
    """Report on a release (a table, or the id of a run) for the person who signs it: numbers, words and charts.

    Columns and requirements are those of `policy`, or `qi`, `sensitive`, `require` and `class_column`; `individual` is
    the column that identifies the person. If the policy's source can be read, the report has what was lost, and attacks
    with people of the source, or of `known` and `population`; `control` are people who are not in the release. Risks
    above `threshold` (0..1) are high; by default that is the requirement `risk`, or else 0.2. `budget` bounds the pairs
    of people and classes of each attack, `worlds` how often a replay runs the program. A `public` report leaves out
    what the release itself does not reveal.

    The context is the policy's, overridden by `context` (a mapping or a file), and that by keywords with the names of
    its keys, such as `recipient`. A `final` report is refused while a key is blank.

    The Report has `holds`, `document`, `html()` and `save(path)`; nothing is raised if the audit fails. Raises
    PolicyError for what does not exist or does not fit, DatabaseError if the database refuses.
    """
    parsed = None if policy is None else parse_policy(policy)
    beside = parsed.path.parent if parsed and parsed.path else Path()
    asked = ReportRequest(
        policy=parsed,
        qi=names_of(qi),
        sensitive=sensitive if isinstance(sensitive, Mapping) else names_of(sensitive),
        require=[require] if isinstance(require, str | Mapping) else list(require),
        class_column=class_column,
        individual=individual,
        source=source,
        known=known,
        population=population,
        control=control,
        threshold=None if threshold is None else str(threshold),
        queries=queries,
        tries=tries,
        seed=seed,
        budget=budget,
        worlds=worlds,
        audience="public" if public else "internal",
        context=context_of(parsed, context, said),
        final=final,
        folder=beside if folder is None else Path(folder),
    )
    return make_report(con, table, asked, catalog=catalog)


def counts_sql(policy: Policy | Mapping[str, Any], dialect: str = "duckdb", source: str | None = None) -> str:
    """The SELECT that counts equal rows, which is all that a plan needs: for databases that rows may not leave.

    It returns the columns that a plan reads, named as in the policy, and in the policy's `weight` column, `n` by
    default, how many rows have these values. `source` is the table there, the policy's by default. Raises PolicyError
    for a policy that cannot be planned from counts, a source that is a file, and an unknown dialect.
    """
    return counting_sql(parse_policy(policy), dialect, source)
