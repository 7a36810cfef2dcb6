"""Against whom a release protects, by the algorithm that made it, and the risks that remain, in words to sign.

The sentences are those of docs/explanation/guarantees.md and docs/explanation/attacks.md, each where it applies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ldiv_db.auditing.check import CheckRequest
from ldiv_db.policy.reading import Policy
from ldiv_db.reporting.request import ReportRequest

_PROVED, _BOUND = "at most 1/l, proved", "what each requirement promises of a class, proved by the audit"
_NO_BOUND = "nothing: no bound is known"
_SHOWN = "nothing: in a counterexample somebody's value becomes certain"
_NOTHING, _OPEN = "nothing", "nothing: no counterexample is known where shares are bounded, and no proof"
_SERIES = "what the inference check of the series allows, against who knows people and policy"


@dataclass(frozen=True)
class Protection:
    """The protection against each attacker; each knows all that the one before knows, and nobody's sensitive value."""

    people: str
    method: str
    seed: str
    releases: str

    def as_dict(self) -> dict[str, str]:
        return {
            "everybody's quasi-identifiers, and the policy": self.people,
            "the method too: this program, without its seed": self.method,
            "the seed too": self.seed,
            "other releases of the same people": self.releases,
        }


_TRIED = Protection(
    _BOUND, "nothing: which algorithm was chosen may tell more than that algorithm does", _NOTHING, _NOTHING
)
_SUPPRESSING = Protection(_BOUND, _NO_BOUND, _SHOWN, _NOTHING)
_GLOBAL = Protection(_BOUND, _OPEN, _OPEN, _NOTHING)
#: Of algorithms as they are without `transparent: true` and without a key.
PROTECTION = {
    "bsgi": Protection(_PROVED, _NO_BOUND, _SHOWN, _NOTHING),
    "auto": _TRIED,
    "fast": _TRIED,
    "topdown": Protection(_BOUND, _SHOWN, _SHOWN, _NOTHING),
    "peel": Protection(_BOUND, _NO_BOUND, _SHOWN, _NOTHING),
    "stratified": Protection(_BOUND, _NO_BOUND, _SHOWN, _NOTHING),
    "cuts": Protection(_BOUND, _SHOWN, _SHOWN, _NOTHING),
    "tp": _SUPPRESSING,
    "tp_plus": _SUPPRESSING,
    "hilbert": _SUPPRESSING,
    "mondrian": _GLOBAL,
    "incognito": _GLOBAL,
    "tds": _GLOBAL,
}
_TRANSPARENT = Protection(_PROVED, _PROVED, _NOTHING, "nothing: publish the same people once")
_UNKNOWN = Protection(_BOUND, "nothing: how the release was made is not known", _NOTHING, _NOTHING)


_FAILED = Protection(*["nothing: the audit failed"] * 4)


def protection_of(algorithm: str | None, policy: Policy | None, holds: bool) -> Protection:
    """The protection of a release whose audit `holds`; if its making is unknown, only what the audit proves."""
    if not holds:
        return _FAILED
    if algorithm is None:
        return _UNKNOWN
    if policy is not None and policy.transparent:
        return _TRANSPARENT
    if policy is not None and algorithm == "cuts" and _publishes_all(policy) and _has_taxonomies(policy):
        return _GLOBAL
    found = PROTECTION.get(algorithm, Protection(_BOUND, _NO_BOUND, _NO_BOUND, _NOTHING))
    if policy is not None and policy.key is not None and algorithm in ("bsgi", "auto", "fast"):
        return Protection(found.people, found.method, found.seed, _SERIES)
    return found


def _publishes_all(policy: Policy) -> bool:
    """Return True if a search for the best cut leaves nothing out: by the policy, or as more than shares is asked."""
    shares_alone = len(policy.sensitive) == 1 and all(spec.kind.of_shares for spec in policy.require)
    return (policy.algorithm.options.get("scheme") or ("vioRec" if shares_alone else "none")) == "none"


def _has_taxonomies(policy: Policy) -> bool:
    """True if every quasi-identifier is known to have a taxonomy: the choice of number intervals reveals more."""
    return all(one.taxonomy is not None for one in policy.quasi_identifiers.values())


_ALWAYS = (
    "That a person is in the table, and in which class, is not hidden: requirements bound what is told of sensitive"
    " values.",
    "Bounds hold for an attacker to whom all rows of a class are equally likely. Who knows some people's sensitive"
    " values, or holds some values likelier for some people, learns more.",
    "All classes together show which values go with which quasi-identifiers. Who learns that from the release guesses"
    " better than a class alone allows (the attack deFinetti).",
    "Columns that the policy does not name as quasi-identifiers are not known to any attacker here. If one of them is"
    " known after all, the bounds do not hold.",
    "Other tables about the same people, from anybody, may be compared with this one.",
    "Who has the seed of the run can repeat it. It stands in the ledger and perhaps in the policy: both are to be kept"
    " as secret as the source.",
)


def residual_risks(question: CheckRequest, policy: Policy | None) -> list[str]:
    """Against what the release does not protect."""
    return [*_ALWAYS, *_by_attribute(question), *(_by_policy(policy) if policy else ())]


def _by_attribute(question: CheckRequest) -> Iterator[str]:
    if not question.sensitive:
        yield "No attribute is named as sensitive: nothing is promised of any value beside the quasi-identifiers."
    if len(question.sensitive) > 1 and not any(spec.others_known for spec in question.require):
        yield (
            "Each sensitive attribute is judged by itself. Who knows one of them of a person may learn another"
            " (the requirement `others_known` takes that into account)."
        )
    for name, setting in question.sensitive.items():
        if setting.categories is None and setting.taxonomy is None:
            what = "that mean much the same count as different: a class may tell what they have in common"
            yield f"Values of {name} {what}."
        if setting.harmless:
            yield f"Nothing is promised of the harmless values of {name}: {len(setting.harmless)} are named."
    if question.suppressed != "judge":
        taken = {"ignore": "left out of the audit", "unknown": "counted in their classes alone"}[question.suppressed]
        yield f"Suppressed rows are {taken}."


def _by_policy(policy: Policy) -> Iterator[str]:
    if policy.keep:
        yield (
            f"Columns are published as they are beside the sensitive values: {', '.join(policy.keep)}. To who knows"
            " them of a person they are quasi-identifiers, of which nothing is promised."
        )
    if policy.individual is None and policy.key is None:
        yield "Each row is taken for another person. Of a person with several rows the bounds do not hold."


def not_tried(question: CheckRequest, asked: ReportRequest, has_source: bool) -> list[str]:
    """The attacks that were not tried, and what they need."""
    return list(_not_tried(question, asked, has_source))


def _not_tried(question: CheckRequest, asked: ReportRequest, has_source: bool) -> Iterator[str]:
    if asked.is_public:
        yield "Attacks by people known from elsewhere were tried, if at all, in a report that is not public."
        return
    if asked.policy is None:
        yield "Attacks that know people need a policy, which says what labels stand for."
        return
    if not has_source and question.sensitive:
        yield "Singling out, linkability and inference need people of the source."
    if has_source and asked.control is None and question.sensitive:
        people = "people like those in the release who are not in it"
        yield f"Without a control, {people}, the risk of these three is bounded from above only."
    if asked.population is None:
        taken = "The source is taken for the population: a larger one lowers the journalist's and the marketer's risk."
        yield taken if has_source else "The journalist's risk needs a population (--population), or the source."
    yield (
        "Not part of a report: the program run again on other worlds, deFinetti, counting, labels read backwards,"
        " several releases together (`ldiv attack --replay --definetti --counting --downcoding --also`)."
    )
