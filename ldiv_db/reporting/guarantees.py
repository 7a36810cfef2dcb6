"""Against whom a release protects, by the algorithm that made it: the table of docs/guarantees.md, in words to sign."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.policy.policy import Policy

_PROVED, _BOUND, _NO_BOUND = "at most 1/l, proved", "as required, proved by the audit", "no bound is known"
_SHOWN = "a counterexample is known: somebody's value can become certain"
_NOTHING, _OPEN = "nothing", "no counterexample is known, and no proof"
_SERIES = "the inference check of a series bounds what people and policy tell"


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
    _BOUND, "nothing beyond what the algorithm chosen keeps: the choice itself tells", _NOTHING, _NOTHING
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
    "cuts": Protection(_BOUND, _SHOWN, _SHOWN, _NOTHING),
    "tp": _SUPPRESSING,
    "tp_plus": _SUPPRESSING,
    "hilbert": _SUPPRESSING,
    "mondrian": _GLOBAL,
    "incognito": _GLOBAL,
    "tds": _GLOBAL,
}
_TRANSPARENT = Protection(_PROVED, _PROVED, _NOTHING, "nothing; a second release of the same people is refused")
_UNKNOWN = Protection(_BOUND, "not known: the release was made by another program", "not known", _NOTHING)


def protection_of(algorithm: str | None, policy: Policy | None) -> Protection:
    """What the release keeps from whom; of a table whose making is not known what its audit proves."""
    if algorithm is None:
        return _UNKNOWN
    if policy is not None and policy.transparent:
        return _TRANSPARENT
    if policy is not None and algorithm == "cuts" and policy.algorithm.options.get("scheme") == "none":
        return _GLOBAL
    found = PROTECTION.get(algorithm, Protection(_BOUND, _NO_BOUND, _NO_BOUND, _NOTHING))
    if policy is not None and policy.key is not None and algorithm in ("bsgi", "auto", "fast"):
        return Protection(found.people, found.method, found.seed, _SERIES)
    return found
