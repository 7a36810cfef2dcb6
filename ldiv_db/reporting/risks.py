"""The risks of a release: against whom it protects, and before and after, in numbers and in words to sign.

The words stand in `risks.yml`, each said where it applies. Nothing is defined here: gains come from `attacking`, losses
from `measuring`. Everything worked out from the source is for internal eyes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from ldiv_db.attacking.article29 import PeopleTrial
from ldiv_db.attacking.attacks import Attacks
from ldiv_db.attacking.base import held_against
from ldiv_db.attacking.columns import columns_by_policy
from ldiv_db.attacking.covering import known_axes, list_cells
from ldiv_db.attacking.exposure import prosecutor
from ldiv_db.attacking.gains import UNIT, Attack, mean_of
from ldiv_db.attacking.question import Knowledge
from ldiv_db.auditing.check import CheckRequest
from ldiv_db.auditing.counting import counted
from ldiv_db.auditing.kept import warn_of_source
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import refuse
from ldiv_db.database.requests import number_problems
from ldiv_db.database.sources import resolve_source
from ldiv_db.display import fields_of
from ldiv_db.measuring.measure import Besides, MeasureRequest, measure_table
from ldiv_db.measuring.tables import TablesMeasurement, measure_tables
from ldiv_db.measuring.uniqueness import RARE, measure_uniqueness, summarise
from ldiv_db.policy.reading import Policy
from ldiv_db.policy.resolve import describe
from ldiv_db.reporting.subject import Reported, ReportSubject
from ldiv_db.reporting.table_text import words_in


def _said() -> dict[str, Any]:
    return words_in("risks.yml")


def protection_of(algorithm: str | None, policy: Policy | None, holds: bool | None) -> dict[str, str]:
    """The protection by attackers; where the making is unknown, what the audit proves if it `holds`."""
    said = _said()
    others = said["otherwise"]
    series = policy is not None and policy.key is not None and algorithm in ("bsgi", "auto", "fast")
    if not holds:
        found = others["open" if holds is None else "failed"]
    elif algorithm is None:
        found = others["unknown"]
    elif policy is not None and policy.transparent:
        found = others["transparent"]
    else:
        is_global = policy is not None and algorithm == "cuts" and _is_global(policy)
        found = others["global"] if is_global else said["algorithms"].get(algorithm, others["other"])
        found = [*found[:-1], "series"] if series else found
    return dict(zip(said["attackers"], map(said["words"].get, found), strict=True))


def _is_global(policy: Policy) -> bool:
    """Return True if a search for the best cut leaves nothing out: by the policy, or as more than shares is asked.

    Every quasi-identifier is then known to have a taxonomy: the choice of number intervals reveals more.
    """
    if any(one.taxonomy is None for one in policy.quasi_identifiers.values()):
        return False
    shares_alone = len(policy.sensitive) == 1 and all(spec.kind.shares_only for spec in policy.require)
    return (policy.algorithm.options.get("scheme") or ("vioRec" if shares_alone else "none")) == "none"


def people_counted(policy: Policy | None) -> dict[str, str]:
    """A sentence on whom requirements count, if these are people."""
    if policy is None or policy.individual is None or not policy.counts_people:
        return {}
    bounded = {
        "apart": "and rows as well: they bound what one row of a person reveals",
        "together": "not rows: they bound what all rows of a person reveal",
        "aligned": "not rows: they bound what all published rows of a person, and how many there are, reveal",
    }
    return {"people": f"Requirements count people, {bounded[policy.individual.rows]}."}


def residual_risks(question: CheckRequest, policy: Policy | None) -> list[str]:
    """Against what the release does not protect."""
    return [*_said()["always"], *_by_attribute(question), *(_by_policy(policy) if policy else ())]


def _by_attribute(question: CheckRequest) -> Iterator[str]:
    if not question.sensitive:
        yield "No attribute is named as sensitive: nothing is promised about values other than quasi-identifiers."
    if len(question.sensitive) > 1 and not any(spec.others_known for spec in question.require):
        yield (
            "Each sensitive attribute is judged by itself. Whoever knows one of them of a person may learn another"
            " (the requirement `others_known` takes that into account)."
        )
    for name, setting in question.sensitive.items():
        if setting.categories is None and setting.taxonomy is None:
            what = "that mean much the same count as different: a class may tell what they have in common"
            yield f"Values of {name} {what}."
        if setting.harmless:
            yield f"Nothing is promised about the harmless values of {name}: {len(setting.harmless)} are named."
    if question.suppressed != "judge":
        taken = {"ignore": "left out of the audit", "unknown": "counted in their classes alone"}[question.suppressed]
        yield f"Suppressed rows are {taken}."


def _by_policy(policy: Policy) -> Iterator[str]:
    if policy.keep:
        yield (
            f"Columns are published as they are beside the sensitive values: {', '.join(policy.keep)}. To anybody who"
            " knows them about a person they are quasi-identifiers, against which nothing is promised."
        )
    if policy.individual is None and policy.key is None:
        yield "Each row is taken for a different person. For a person with several rows the bounds do not hold."
    elif policy.individual is not None:
        yield _said()["of_people"][policy.individual.rows]
        if any(spec.kind.on_people == "shares" for spec in policy.require):
            yield _said()["of_people"]["shares"]


def not_tried(subject: Reported) -> Iterator[str]:
    """The attacks that were not tried, and what they need."""
    if not isinstance(subject, ReportSubject):
        yield "Attacks by people known from elsewhere, and by who runs the program again, are made on one table."
        return
    question, asked, has_source = subject.question, subject.asked, subject.people is not None
    if asked.public:
        yield "Attacks by people known from elsewhere were tried, if at all, in a report that is not public."
    elif asked.policy is None:
        yield "Attacks that know people need a policy, which says what labels stand for."
    else:
        if not has_source and question.sensitive:
            yield "Singling out, linkability and inference need people of the source."
        if has_source and asked.control is None and question.sensitive:
            people = "people like those in the release who are not in it"
            yield f"Without a control, {people}, the risk of these three is bounded from above only."
        if asked.population is None:
            taken = "The source is taken for the population: a larger one lowers the journalist's and the marketer's"
            needed = "The journalist's risk needs a population (--population), or the source."
            yield f"{taken} risk." if has_source and question.position is None else needed
    if question.is_open:
        yield "People cannot be counted, as no column says whose a row is: a person is recognised at least as surely."
    if question.counts_people:
        yield "Attackers who know people look for rows; the requirements promise for people, and bound none of these."


#: What is shown of work on the source.
READING_SOURCE, MEASURING_LOSS = "counting and hashing the source", "measuring what was lost"
#: What the form of a table says of the database that it lies in, and not of the release.
_OF_THE_DATABASE = ("other_tables", "free_bytes")


def attack_documents(found: Attacks) -> list[dict[str, Any]]:
    """The attacks as a report has them."""
    documents = [attack.as_dict() for attack in found.attacks]
    for document in documents:
        document["figures"] = {k: v for k, v in document["figures"].items() if k not in _OF_THE_DATABASE}
    return documents


def identifiability(found: Attacks, threshold: float) -> list[dict[str, Any]]:
    """Prosecutor, journalist and marketer risk: the largest and the mean, each against the threshold."""
    attacks = {attack.name: attack for attack in found.attacks}
    matched = attacks["marketer"]
    marketer = matched.gains[0]
    rows = [_risk("prosecutor", attacks["prosecutor"], attacks["prosecutor"].figures["mean"], threshold)]
    if "journalist" in attacks:
        rows.append(_risk("journalist", attacks["journalist"], marketer.gain, threshold))
    mean = {"largest": None, "mean": marketer.gain, "bound": marketer.bound, "rows_above": None}
    return [*rows, {"risk": "marketer", **mean, "verdict": held_against(matched, marketer, threshold).verdict}]


def _risk(name: str, attack: Attack, mean: float | None, threshold: float) -> dict[str, Any]:
    gain = attack.gains[0]
    figures = {"largest": gain.gain, "mean": mean, "bound": gain.bound}
    above = attack.figures["rows_above_threshold"]
    return {"risk": name, **figures, "rows_above": above, "verdict": held_against(attack, gain, threshold).verdict}


def three_risks(found: Attacks, threshold: float) -> list[dict[str, Any]]:
    """Singling out, linkability and inference, as they were tried; empty if they were not."""
    return [_trial_document(attack, threshold) for attack in found.attacks if attack.name in PeopleTrial.names]


def _trial_document(attack: Attack, threshold: float) -> dict[str, Any]:
    figures, controlled, gain = attack.figures, len(attack.gains) > 1, attack.gains[-1]
    by_chance = figures["random_successes"] / figures["random_attempts"] if figures["random_attempts"] else None
    return {
        "risk": attack.name,
        "sensitive": attack.sensitive,
        "measure": gain.measure,
        "number": gain.gain,
        "interval": figures["risk_interval"] if controlled else figures["interval"],
        "success_rate": attack.gains[0].gain,
        "by_chance": by_chance,
        "control": controlled,
        "verdict": PeopleTrial.verdict(attack, None, "", threshold).verdict,
    }


def source_document(subject: Reported) -> dict[str, Any] | None:
    """What the source's rows are before, what was lost, and the hash of the source; None without one.

    Of several tables, what each, and counts over two that are joined, lost.
    """
    asked, sources, policy = subject.asked, subject.sources, subject.asked.policy
    if sources is None or policy is None:
        return None
    tell = subject.listener.on_stage
    tell(READING_SOURCE)
    if isinstance(subject, ReportSubject):
        of_people = subject.question.individual is not None
        found = before(subject.engine, sources[""], policy, asked.high, of_people)
        found["risk_before_of_population"] = _risk_before_of_population(subject, sources[""], policy)
    else:
        found = _before_of_tables(subject.engine, sources, policy)
    found["content"] = subject.content(sources)
    tell(MEASURING_LOSS)
    wanted = MeasureRequest(
        folder=asked.folder, queries=asked.queries, seed=asked.seed, kl=False, listener=subject.listener
    )
    refuse(number_problems(wanted))
    if isinstance(subject, ReportSubject):
        return found | {"utility": _utility(subject, sources[""], policy, wanted)}
    return found | {"utility": _utility_of_tables(measure_tables(subject.engine, policy, wanted, spreads=True))}


def _before_of_tables(engine: Engine, sources: Mapping[str, Table], policy: Policy) -> dict[str, Any]:
    """How many rows of each table are unique, and what its kept columns tell."""
    unique, kept = list[dict[str, Any]](), list[str]()
    for name, rows in sources.items():
        names = list(policy.tables[name].quasi_identifiers)
        unique.append({"table": name, "uniqueness": uniqueness_of(engine, rows, names) if names else None})
        kept += (f"{name}: {line}" for line in warn_of_source(engine, rows, policy.tables[name].keep, names))
    unknown = dict.fromkeys(("uniqueness", "risk_before", "risk_before_of_population"))
    return {**unknown, "tables": unique, "kept": kept}


def before(engine: Engine, source: Table, policy: Policy, threshold: Decimal, of_people: bool = True) -> dict[str, Any]:
    """What the source's rows are before: how many are unique, their risk or that of people, what kept columns tell.

    The rows of a source of counts are not people.
    """
    names, is_counted = list(policy.quasi_identifiers), policy.weight is not None
    whose = policy.individual if of_people and policy.counts_people else None
    told = (whose.column, whose.order) if whose else (None, None)
    read = Subject(source, names, person=told[0], position=told[1])
    return {
        "uniqueness": None if is_counted else uniqueness_of(engine, source, names),
        "risk_before": None if is_counted else _risk_before(engine, read, threshold),
        "kept": warn_of_source(engine, source, policy.keep, names),
    }


def _risk_before(engine: Engine, source: Subject, threshold: Decimal) -> dict[str, Any]:
    """Prosecutor risk of the source, as of the release: the largest, the mean, and those above the threshold."""
    with engine.scope():
        if source.person is None:  # counts of rows do: nothing asks for their classes
            with read_exactly(engine, source.table) as read:
                sizes = engine.count_groups("sizes", read, *source.labels)
            found = prosecutor(engine, engine.select("classes", sizes, ("rows", "class_rows")), threshold, None)
        else:
            with counted(engine, source, "") as counts:
                found = prosecutor(engine, counts.listed, threshold, None)
    above = found.figures["rows_above_threshold"]
    return {"largest": found.gains[0].gain, "mean": found.figures["mean"], "rows_above": above}


def _risk_before_of_population(subject: ReportSubject, source: Table, policy: Policy) -> dict[str, Any] | None:
    """Journalist's largest and marketer's risk of the source's rows as they are; None without a population.

    People are alike by the quasi-identifiers that the population has.
    """
    engine, asked = subject.engine, subject.asked
    if not asked.population:
        return None
    population = resolve_source(engine, asked.population, Path(), "population")
    axes = columns_by_policy(engine, subject.table, policy, asked.folder).axes
    shared = {axis.name for axis in known_axes(axes, columns_of(engine, population), "population")}
    axes = [axis for axis in axes if axis.name in shared]
    individual = policy.individual if subject.question.individual else None
    whose = Knowledge(person=individual.column if individual else None)
    with engine.scope():
        both = {}
        for name, people in (("sample", source), ("population", population)):
            columns = columns_of(engine, people)
            known = known_axes(axes, columns, "population")
            both[name] = list_cells(engine, known, people, whose.person_among(columns))
        found = engine.record("reporting/match_population", axes=known, unit=UNIT, **both)
    mean = mean_of(found["mean_units"], found["rows"])
    return {"largest": 1 / found["least"] if found["least"] else None, "mean": mean}


def uniqueness_of(engine: Engine, source: Table, names: Sequence[str]) -> dict[str, Any] | None:
    """How many rows have a combination of these columns that no other row has, or few; None without columns."""
    rows = engine.count(source)
    wanted = {name.lower() for name in names}
    columns = [column for column in columns_of(engine, source) if column.name.lower() in wanted]
    with read_exactly(engine, source) as read:
        found = measure_uniqueness(engine, read, [summarise(engine, read, column, rows) for column in columns])
    if found is None:
        return None
    counted_rows = fields_of(found, "combinations", "unique_rows", "rare_rows")
    return {"rows": rows, **counted_rows, "rare": RARE, "unique_without": found.unique_without}


def _utility(subject: ReportSubject, source: Table, policy: Policy, wanted: MeasureRequest) -> dict[str, Any]:
    described = describe(subject.engine, policy, source, subject.asked.folder)
    besides = Besides(counts=True, spreads=True, preserve=policy.preserve, fewer=True)
    found = measure_table(subject.engine, subject.table, described, wanted, besides)
    return _unnamed(found.as_dict())


def _utility_of_tables(found: TablesMeasurement) -> dict[str, Any]:
    document = found.as_dict()
    measured = {name: _unnamed(one) for name, one in document["measured"].items()}
    joins = [{**one.as_dict(), "text": str(one.counts) if one.counts else None} for one in found.joins]
    return {**document, "measured": measured, "joins": joins}


def _unnamed(measured: Mapping[str, Any]) -> dict[str, Any]:
    """A measurement without the names of its two tables."""
    return {key: value for key, value in measured.items() if key not in ("published", "source")}
