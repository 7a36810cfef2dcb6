"""The attacks of a report: all that the program knows and that can be tried, and why the others are not.

Nothing is defined here: gains come from `attacking`, replays from `running`. Work is bounded by counts, not by the
clock, so that a report is the same again: `budget` bounds each attack, and a replay, which is asked for, runs the
program on so many worlds.

Attacks that recognise people are held against the report's threshold. Those that learn sensitive values are held
against the largest share of a value that the requirements allow in a class: a threshold of recognition says nothing of
what half of all people have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ldiv_db.attacking.attacks import ATTACKER_OF, ATTACKERS, Attacks, attack_published, attack_table
from ldiv_db.attacking.base import NOTHING, Attacker
from ldiv_db.attacking.columns import Columns, columns_asked, columns_by_policy
from ldiv_db.attacking.gains import Attack
from ldiv_db.attacking.question import AttackRequest, Knowledge, Replay, refuse_replay
from ldiv_db.database.data_files import Table
from ldiv_db.database.errors import InfeasibleError, PolicyError, in_words
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.reading import Policy
from ldiv_db.reporting.subject import Reported, ReportSubject, TablesSubject
from ldiv_db.running.attack import replay
from ldiv_db.running.replay_methods import ReplaySubject

NOT_TRIED = "not tried"
#: The attacks that a report has a verdict on, in its order.
REPORTED = sorted((kind for kind in ATTACKERS if kind.place), key=lambda kind: kind.place)
_REFINEMENT = (
    "the refinement of Chhillar et al. (2025), without any other data, reads the choices of ARX's local recoding"
    " backwards (ldiv attack --refine); what the choices of this program tell is tried by replay"
)
_NOT_PROMISED = "no requirement bounds the share of a value"
_OF_PEOPLE = "the requirements promise for people, and attacks count rows"
#: Of more quasi-identifiers some attacks take minutes, even on a hundred rows.
MOST_COLUMNS = 20
_NO_POLICY = "needs a policy, which says what labels stand for"
_ON_ONE = "is made on one table alone"


@dataclass(frozen=True)
class Attempts:
    """The attacks on a release, and of those that were not tried the reason, by their names.

    `no_bound` says why a sensitive value has no bound where it has none.
    """

    found: Attacks
    why_not: Mapping[str, str] = field(default_factory=dict)
    no_bound: str = _NOT_PROMISED


def attempts_on(subject: Reported) -> Attempts:
    """All attacks that can be tried; of a public report those alone that need nothing but the release.

    Risks of recognition are those of people, where requirements count these; who knows people looks for rows. Of
    several tables attackers know one, or all; other attacks need one value a row of one table.
    """
    if isinstance(subject, TablesSubject):
        found = attack_published(
            subject.released, Knowledge(AttackRequest(listener=subject.listener), threshold=subject.asked.high)
        )
        made = {attack.name for attack in found.attacks}
        return Attempts(found, {name: _ON_ONE for kind in REPORTED for name in kind.names if name not in made})
    assert isinstance(subject, ReportSubject)  # noqa: S101 - a release has one table or several
    engine, table, question, asked = subject.engine, subject.table, subject.question, subject.asked
    if asked.policy is None or asked.public:
        found = attack_table(engine, table, columns_asked(engine, table, question), Knowledge(threshold=asked.high))
        return Attempts(found, {name: _NO_POLICY for kind in REPORTED for name in kind.names})
    columns = columns_by_policy(engine, table, asked.policy, asked.folder).counting(question)
    given = {key: getattr(asked, key) for key in ("known", "population", "control")}
    named = {key: resolve_source(engine, name, Path(), key) for key, name in given.items() if name}
    of_people = ("known", "definetti", "targets", *([] if columns.position else ["population"]))
    of_source = {key: named.get(key) or subject.people for key in of_people}
    people = {key: one for key, one in {**named, **of_source}.items() if one is not None}
    reasons = {kind: why for kind in REPORTED if (why := _why_not(kind, columns, people))}
    keys = {kind.key for kind in REPORTED if kind not in reasons}
    beside = {"population", *(["control"] if "targets" in keys else [])}
    request = AttackRequest(
        counting="counting" in keys,
        downcoding="downcoding" in keys,
        tries=asked.tries,
        seed=asked.seed,
        budget=asked.budget,
        listener=subject.listener,
    )
    people = {key: one for key, one in people.items() if key in keys | beside}
    whose = asked.policy.individual.column if asked.policy.individual else None
    found = attack_table(engine, table, columns, Knowledge(request, people, asked.high, person=whose))
    why_not = {name: why for kind, why in reasons.items() for name in kind.names}
    if not question.sensitive:
        return Attempts(found, why_not)
    more: list[Attack] = []
    for name, attacks in (
        ("composition", _composition(subject, asked.policy, columns, people.get("known"))),
        ("replay", _replay(subject, asked.policy, columns)),
    ):
        if isinstance(attacks, str):
            why_not[name] = attacks
        else:
            more += attacks
    no_bound = _OF_PEOPLE if columns.counts_people else _NOT_PROMISED
    return Attempts(replace(found, attacks=(*found.attacks, *more)), why_not, no_bound)


def _why_not(kind: type[Attacker], columns: Columns, people: Mapping[str, Table]) -> str | None:
    """Why an attack is not tried, if it is not; composition and replay, of no people of their own, say more."""
    if kind.of_values and not columns.sensitive:
        return "no attribute is named as sensitive"
    if kind.key in ("also", "replay"):
        return None
    if kind.slow_if_wide and len(columns.axes) > MOST_COLUMNS:
        return f"takes long with more than {MOST_COLUMNS} quasi-identifiers (ldiv attack)"
    if kind.one_value and any(setting.set for setting in columns.sensitive.values()):
        return "takes one value a row, and there are sets"
    return kind.lacking if kind.lacking and kind.people not in people else None


def _composition(
    subject: ReportSubject, policy: Policy, columns: Columns, known: Table | None
) -> Iterable[Attack] | str:
    """The attack by this release and all earlier ones of the ledger together, or why it is not tried."""
    engine, asked = subject.engine, subject.asked
    if policy.key is not None:
        return "the inference check of the series holds each release against those before it"
    names = subject.earlier_tables()
    if not names:
        return "the ledger knows of no earlier release of this source that is still there"
    if known is None:
        return "needs people of the source"
    try:
        tables = [resolve_source(engine, name, Path(), "also") for name in names]
        others = [(one, columns_by_policy(engine, one, policy, asked.folder)) for one in tables]
        alone = Knowledge(AttackRequest(budget=asked.budget), {"known": known}, asked.high, others)
        found = attack_table(engine, subject.table, replace(columns, require=[]), alone)
    except PolicyError as error:
        return f"this policy cannot read an earlier release: {in_words(error)} (ldiv attack --also --also-policy)"
    return [attack for attack in found.attacks if attack.name == "composition"]


def _replay(subject: ReportSubject, policy: Policy, columns: Columns) -> Iterable[Attack] | str:
    """The attack by who runs the program again, or why it is not tried."""
    engine, asked = subject.engine, subject.asked
    if subject.people is None:
        return "needs the source"
    if asked.worlds < 2:
        return "runs the program for each world, and no worlds were asked for (ldiv report --worlds 25)"
    if asked.source is not None:
        policy = policy.with_source(asked.source)
    wanted = Replay(limit=asked.worlds)
    try:
        refuse_replay(wanted, policy)
        replayed = ReplaySubject(engine, asked.folder, subject.noted.table, subject.table, policy, columns.axes)
        return replay(replayed, wanted, subject.question.require, asked.budget, subject.listener).attacks
    except (PolicyError, InfeasibleError) as error:
        return in_words(error)


# -- verdicts ------------------------------------------------------------------------------------------


def verdicts(tried: Attempts, threshold: float) -> list[dict[str, Any]]:
    """Every known attack with what it reached and what that is held against, or why it has no verdict."""
    attacks = tried.found.attacks
    bounds = {(one.sensitive, one.of_people): one.gains[0].bound for one in attacks if one.name == "posterior"}
    rows = []
    for attack in attacks:
        if (kind := ATTACKER_OF[attack.name]).place:
            promised = bounds.get((attack.sensitive, attack.of_people))
            found = kind.verdict(attack, promised, tried.no_bound, threshold)
            gained = {"measure": found.gain.measure, "number": found.gain.gain, "threshold": found.threshold}
            rows.append(_row(attack.name, found.verdict, found.why, sensitive=attack.sensitive, **gained))
    rows += [_row(name, NOT_TRIED, why) for name, why in tried.why_not.items()]
    order, there = [name for kind in REPORTED for name in kind.names], {row["attack"] for row in rows}
    rows += [_row(name, NOTHING) for name in order if name not in there]
    return [*sorted(rows, key=lambda row: order.index(row["attack"])), _row("refinement", NOT_TRIED, _REFINEMENT)]


def _row(name: str, verdict: str, why: str | None = None, **gained: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("sensitive", "measure", "number", "threshold"))
    return {"attack": name, **empty, **gained, "verdict": verdict, "why": why}
