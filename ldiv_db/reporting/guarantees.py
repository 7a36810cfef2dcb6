"""Against whom a release protects, by the algorithm that made it, in words to sign.

It is the table of docs/explanation/guarantees.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.policy.policy import Policy

_PROVED, _BOUND = "at most 1/l, proved", "what each requirement promises of a class, proved by the audit"
_NO_BOUND = "nothing: no bound is known"
_SHOWN = "nothing: in a counterexample somebody's value becomes certain"
_NOTHING, _OPEN = "nothing", "nothing: no counterexample is known where shares are bounded, and no proof"
_SERIES = "what the inference check of the series allows, against who knows people and policy"


@dataclass(frozen=True)
class Protection:
    """What is kept from each attacker; each knows what the one before him knows, and nobody's sensitive value."""

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
    """What the release keeps from whom if its audit `holds`; what the audit proves, if its making is not known."""
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
    """Whether a search for the best cut leaves nothing out: as the policy says, or as more than shares is asked."""
    shares_alone = len(policy.sensitive) == 1 and all(spec.kind.of_shares for spec in policy.require)
    return (policy.algorithm.options.get("scheme") or ("vioRec" if shares_alone else "none")) == "none"


def _has_taxonomies(policy: Policy) -> bool:
    """Whether every quasi-identifier is known to have a taxonomy: which intervals of numbers are best tells more."""
    return all(one.taxonomy is not None for one in policy.quasi_identifiers.values())
