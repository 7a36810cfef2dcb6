"""The attacks of a report: all that the program knows and that can be tried, and why the others are not.

Nothing is defined here: gains come from `attacking`, replays from `running`. Work is bounded by counts, not by the
clock, so that a report is the same again: `budget` bounds each attack, and a replay runs the program on so many worlds.

Attacks that recognise people are held against the report's threshold. Those that learn sensitive values are held
against the largest share of a value that the requirements allow in a class: a threshold of recognition says nothing of
what half of all people have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ldiv_db.attacking.attackers import Attackers, OtherRelease
from ldiv_db.attacking.attacks import Attacks, attack_table
from ldiv_db.attacking.columns import Columns, columns_asked, columns_by_policy
from ldiv_db.attacking.downcoding import SINGLED_OUT
from ldiv_db.attacking.gains import Attack, Gain
from ldiv_db.attacking.question import AttackRequest
from ldiv_db.attacking.replay import Replay
from ldiv_db.attacking.trials import PeopleTrial
from ldiv_db.auditing.check import CheckRequest
from ldiv_db.database.context import Context
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.reading import Policy
from ldiv_db.reporting.release_facts import ReportedTable, Table, earlier_tables
from ldiv_db.reporting.request import ReportRequest
from ldiv_db.running.attack import replay_table
from ldiv_db.running.replay_methods import ReplaySubject

#: All worlds of a replay together have so many rows, some half a minute of work; fewer worlds than these tell little.
REPLAYED_ROWS, FEWEST_WORLDS = 200_000, 10
WITHIN, ABOVE, UNDECIDED, NOTHING = "within the threshold", "above the threshold", "undecided", "nothing to try"
NOT_TRIED, NO_THRESHOLD = "not tried", "no threshold"
#: Attacks on people, on sensitive values, and on labels, in the order in which a report has them.
BY_TRIAL = ("singling out by one column", "singling out by several columns", "linkability", "inference")
_ON_VALUES = ("linking", "counting", "definetti", "replay", "composition")
_REFINEMENT = (
    "the refinement of Chhillar et al. (2025), without any other data, reads the choices of ARX's local recoding"
    " backwards, and is not part of this program; what its own choices tell is tried by replay"
)
_NOT_PROMISED = "no requirement bounds the share of a value"
_OF_PEOPLE = "the requirements promise for people, and attacks count rows"
_OF_SETS = "takes one value a row, and there are sets"
_NO_CONTROL = "without a control nobody can tell how much of the rest is due to being in the release"
#: Of more quasi-identifiers some attacks take minutes, even on a hundred rows.
MOST_COLUMNS = 20
_WIDE = f"takes long with more than {MOST_COLUMNS} quasi-identifiers (ldiv attack)"
_NO_POLICY = "needs a policy, which says what labels stand for"


@dataclass(frozen=True)
class Attempts:
    """The attacks on a release, and of those that were not tried the reason, by their names.

    `no_bound` says why a sensitive value has no bound where it has none.
    """

    found: Attacks
    why_not: Mapping[str, str] = field(default_factory=dict)
    no_bound: str = _NOT_PROMISED


def attempts_on(
    context: Context, table: Table, noted: ReportedTable, question: CheckRequest, asked: ReportRequest, source: Any
) -> Attempts:
    """All attacks that can be tried; of a public report those alone that need nothing but the release.

    They count rows: what is promised of people alone bounds none of them.
    """
    engine = context.engine
    require = list(question.require) if question.bounds_rows else []
    threshold = asked.high
    if asked.policy is None or asked.is_public:
        names = (question.quasi_identifiers, question.sensitive, question.class_column, question.folder)
        columns = columns_asked(engine, table, *names)
        found = attack_table(engine, table, columns, require, Attackers(threshold=threshold))
        return Attempts(found, dict.fromkeys((*BY_TRIAL, *_ON_VALUES, "downcoding"), _NO_POLICY))
    columns = columns_by_policy(engine, table, asked.policy, asked.folder)
    people = {key: _people(engine, getattr(asked, key), key, source) for key in ("known", "population")}
    why_not = dict(_lacking(people["population"], source)) if question.sensitive else {}
    attackers = Attackers(threshold=threshold, population=people["population"], downcoding=True, budget=asked.budget)
    if question.sensitive:
        trial = _trial(engine, asked, source)
        counting = people["population"] is not None
        attackers = replace(attackers, known=people["known"], definetti=source, counting=counting, trial=trial)
    if any(setting.set for setting in columns.sensitive.values()):
        why_not |= dict.fromkeys((*BY_TRIAL, "definetti", "counting"), _OF_SETS)
        attackers = replace(attackers, definetti=None, counting=False, trial=None)
    if len(columns.quasi_identifiers) > MOST_COLUMNS:
        why_not |= dict.fromkeys(("definetti", "counting", "downcoding"), _WIDE)
        attackers = replace(attackers, definetti=None, counting=False, downcoding=False)
    found = attack_table(engine, table, columns, require, attackers)
    if not question.sensitive:
        return Attempts(found, why_not | dict.fromkeys((*BY_TRIAL, *_ON_VALUES), "no attribute is named as sensitive"))
    more: list[Attack] = []
    for name, attacks in (
        ("composition", _composition(engine, table, noted, columns, replace(attackers, trial=None), asked)),
        ("replay", _replay(context, table, noted, columns, question, asked, source)),
    ):
        if isinstance(attacks, str):
            why_not[name] = attacks
        else:
            more += attacks
    no_bound = _NOT_PROMISED if question.bounds_rows else _OF_PEOPLE
    return Attempts(replace(found, attacks=(*found.attacks, *more)), why_not, no_bound)


def _lacking(population: Table | None, source: Table | None) -> Iterator[tuple[str, str]]:
    """The attacks for which people are missing, or a library."""
    if source is None:
        yield from dict.fromkeys(("definetti", *BY_TRIAL, "linking"), "needs people of the source").items()
    if population is None:
        yield "counting", "needs a population (--population), or the source"


def _words(error: PolicyError | InfeasibleError) -> str:
    found = [problem.what for problem in error.problems] if isinstance(error, PolicyError) else [error.message]
    return "; ".join(found)


def _people(engine: Engine, name: str | None, key: str, otherwise: Table | None = None) -> Table | None:
    return resolve_source(engine, name, Path(), key) if name else otherwise


def population_of(engine: Engine, asked: ReportRequest) -> Table | None:
    """The population, if it is another table than the source."""
    return _people(engine, asked.population, "population")


def _trial(engine: Engine, asked: ReportRequest, source: Table | None) -> PeopleTrial | None:
    """The attacks on people of the source, who are in the release, and on a control if there is one."""
    if source is None:
        return None
    return PeopleTrial(source, _people(engine, asked.control, "control"), tries=asked.tries, seed=asked.seed)


def _composition(
    engine: Engine, table: Table, noted: ReportedTable, columns: Columns, attackers: Attackers, asked: ReportRequest
) -> list[Attack] | str:
    """The attack by this release and all earlier ones of the ledger together, or why it is not tried."""
    policy = asked.policy
    assert policy is not None  # noqa: S101 - who knows people has a policy
    if policy.key is not None:
        return "the inference check of the series holds each release against those before it"
    names = earlier_tables(engine, noted, str(policy.source), asked.folder)
    if not names:
        return "the ledger knows of no earlier release of this source that is still there"
    if attackers.known is None:
        return "needs people of the source"
    try:
        others = [_other(engine, name, policy, asked.folder) for name in names]
        alone = replace(attackers, population=None, definetti=None, counting=False, downcoding=False, also=others)
        found = attack_table(engine, table, columns, [], alone)
    except PolicyError as error:
        return f"this policy cannot read an earlier release: {_words(error)} (ldiv attack --also --also-policy)"
    return [attack for attack in found.attacks if attack.name == "composition"]


def _other(engine: Engine, name: str, policy: Policy, folder: Path) -> OtherRelease:
    table = resolve_source(engine, name, Path(), "also")
    return OtherRelease(table, columns_by_policy(engine, table, policy, folder))


def _replay(
    context: Context,
    table: Table,
    noted: ReportedTable,
    columns: Columns,
    question: CheckRequest,
    asked: ReportRequest,
    source: Table | None,
) -> list[Attack] | str:
    """The attack by who runs the program again, as far as it is affordable, or why it is not tried."""
    policy = asked.policy
    if policy is None or source is None:
        return "needs the source"
    if asked.source is not None:
        policy = policy.with_source(asked.source)
    rows = context.engine.count(source)
    worlds = min(asked.worlds, REPLAYED_ROWS // max(rows, 1))
    if worlds < min(asked.worlds, FEWEST_WORLDS) or worlds < 2:
        what = (
            f"each world is a run of the program on {rows:,} rows" if asked.worlds > 1 else "no worlds were asked for"
        )
        return f"{what} (ldiv attack --replay)"
    replay = Replay(limit=worlds)
    try:
        AttackRequest(replay=replay).refuse_replay(policy)
        subject = ReplaySubject(context, noted.table, table, policy, columns.quasi_identifiers)
        return replay_table(subject, replay, question.require, asked.budget)
    except (PolicyError, InfeasibleError) as error:
        return _words(error)


# -- verdicts ------------------------------------------------------------------------------------------


def verdicts(tried: Attempts, risks: Sequence[Mapping[str, Any]], threshold: float) -> list[dict[str, Any]]:
    """Every known attack with what it reached and what that is held against, or why it has no verdict."""
    attacks = tried.found.attacks
    promised = {attack.sensitive: attack.gains[0].bound for attack in attacks if attack.name == "posterior"}
    rows = [_by_trial(risk, threshold) for risk in risks]
    rows += [
        _on_values(attack, promised.get(attack.sensitive), tried.no_bound)
        for attack in attacks
        if attack.name in _ON_VALUES
    ]
    rows += [_downcoding(attack, threshold) for attack in attacks if attack.name == "downcoding"]
    rows += [_row(name, NOT_TRIED, why) for name, why in tried.why_not.items()]
    rows.append(_row("refinement", NOT_TRIED, _REFINEMENT))
    order = (*BY_TRIAL, *_ON_VALUES, "downcoding", "refinement")
    there = {row["attack"] for row in rows}
    rows += [_row(name, NOTHING, None) for name in order if name not in there]
    return sorted(rows, key=lambda row: order.index(row["attack"]))


def _row(name: str, verdict: str, why: str | None, gain: Gain | None = None, **said: Any) -> dict[str, Any]:
    """A row: the attack, what it reached of what, what that is held against, and the verdict."""
    measured = {"measure": gain and gain.measure, "number": gain and gain.gain, "threshold": None}
    return {"attack": name, "sensitive": None, **measured, **said, "verdict": verdict, "why": why}


def _by_trial(risk: Mapping[str, Any], threshold: float) -> dict[str, Any]:
    """An attack that was tried on people, with the interval that decides."""
    within = risk["interval"] if risk["number"] is not None else None
    why = f"95 % interval {within[0]:.3g} to {within[1]:.3g}" if within else None
    said = {key: risk[key] for key in ("sensitive", "measure", "number")}
    return _row(risk["risk"], risk["verdict"], why, **said, threshold=threshold)


def _on_values(attack: Attack, promised: float | None, no_bound: str) -> dict[str, Any]:
    """An attack that learns sensitive values, against the share that is promised of a value in a class."""
    gain = attack.gains[0]
    verdict, why = (NO_THRESHOLD, no_bound) if promised is None else _held(attack, gain.gain, promised)
    if verdict == ABOVE and attack.name == "definetti":  # a rate, of which some would be as high of anybody else
        verdict, why = UNDECIDED, f"{attack.figures['by_shares']:.3g} by the shares of classes alone; {_NO_CONTROL}"
    return _row(attack.name, verdict, why, gain, sensitive=attack.sensitive, threshold=promised)


def _downcoding(attack: Attack, threshold: float) -> dict[str, Any]:
    """People whom labels read backwards single out, against the threshold of recognition."""
    gain, note = attack.gains[-1], attack.figures.get("note")
    if note is None and gain.measure != SINGLED_OUT:
        note = "needs a population (--population), or the source, to tell whom it singles out"
    verdict, why = (NO_THRESHOLD, note) if note else _held(attack, gain.gain, threshold)
    return _row(attack.name, verdict, why, gain, threshold=threshold)


def _held(attack: Attack, reached: float | None, most: float) -> tuple[str, str | None]:
    """The verdict: what was found is enough for a bad one, and only all of it for a good one."""
    if reached is not None and reached > most:
        return ABOVE, None
    if attack.untried is not None:
        return UNDECIDED, str(attack.untried)
    return (NOTHING, None) if reached is None else (WITHIN, None)
