"""A report held against the table that it is said to be of.

Every number is worked out again by the code that made the report, which finds what was changed, in the report or in the
table, and no mistake of that code. So what plain counts of the release and the source can tell is counted as well
(`plainly`), and the sections are named of which numbers have no such second source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.policy import Policy
from ldiv_db.reporting.asked import QUERIES, TEXTS, Asked, Audience, ReleaseModel
from ldiv_db.reporting.evidence import FORM, Document, Hear, document_of, opened
from ldiv_db.reporting.plainly import counted_plainly
from ldiv_db.reporting.written import read_again, written_policy

#: What other versions and another name may change, and no number of the release does.
_NOT_COMPARED = (("annex", "versions"), ("statement", "table"), ("statement", "run"))
#: What a copy of the release in another place may have otherwise: what the ledger knows, and the order of its rows.
_OF_THE_PLACE = (("annex", "audit"), ("algorithm", "name"), ("algorithm", "protection"))
#: Sums of doubles may differ in their last digits between versions and machines; a cell's loss has nine digits.
_NEAR, _NEAR_PLAIN = 1e-9, 1e-6


class _Quoted(BaseModel):
    """The question as a report has it, whoever may have changed it since."""

    model_config = ConfigDict(extra="forbid", strict=True)

    qi: list[str]
    sensitive: list[str] | dict[str, Any]
    require: list[str | dict[str, Any]]
    class_column: str | None
    threshold: str
    audience: Audience
    source: str | None = None
    known: str | None = None
    population: str | None = None
    control: str | None = None
    queries: int = QUERIES
    tries: int = 0
    seed: int = 0
    recipient: str | None
    purpose: str | None
    release_model: ReleaseModel | None
    why: str | None
    review: str | None


@dataclass(frozen=True)
class Difference:
    """A number or word of the report that the table does not give."""

    where: str
    reported: Any
    found: Any

    def as_dict(self) -> dict[str, Any]:
        return {"where": self.where, "reported": self.reported, "found": self.found}


@dataclass(frozen=True)
class Verification:
    """What became of a report: `same_release` by the hash of its rows, and everything that differs.

    `figures` is how many numbers and words were compared, `plain` how many of them plain counts gave too, `same_code`
    the other numbers by section, which only the code gave that made the report. `versions` are those of report and
    verification where these differ.
    """

    same_release: bool
    figures: int
    plain: int
    same_code: Mapping[str, int]
    differences: tuple[Difference, ...]
    versions: Mapping[str, tuple[str, str]]

    @property
    def holds(self) -> bool:
        return self.same_release and not self.differences

    def as_dict(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "same_release": self.same_release,
            "figures": self.figures,
            "plain": self.plain,
            "same_code": dict(self.same_code),
            "differences": [difference.as_dict() for difference in self.differences],
            "versions": {name: list(both) for name, both in self.versions.items()},
        }


def verify(
    engine: Engine, reported: Document, table: str, given: Asked, plain: Callable[[Document], Document], hear: Hear
) -> Verification:
    """The report worked out again from `table`, by its own question.

    `given` may bring the policy and its folder, `plain` writes a document as the report is written.

    Raises PolicyError for what is no report, and for a policy that is not the report's.
    """
    asked = question_again(reported, given)
    with opened(engine, table, asked) as subject:
        if reported.get("source") and subject.source is None:
            raise PolicyError([Problem("source", f"is not there: {subject.why_not}", "give --policy")])
        found = plain(document_of(subject, hear))
        hear("counting plainly")
        counted = counted_plainly(subject, found)
    in_place = all(reported["statement"].get(key) == found["statement"][key] for key in ("table", "run"))
    compared = list(_pairs(_comparable(reported, in_place), _comparable(found, in_place)))
    differences = [Difference(where, one, other) for where, one, other in compared if not _equal(one, other)]
    both = [(where, one, counted[where]) for where, one, _ in compared if where in counted]
    known = {difference.where for difference in differences}
    differences += [
        Difference(where, one, other)
        for where, one, other in both
        if where not in known and not _equal(one, other, _NEAR_PLAIN)
    ]
    same_code = Counter(_section(where) for where, _, other in compared if where not in counted and _is_number(other))
    versions = {
        name: (str(old), str(new))
        for name, old, new in _pairs(reported["annex"].get("versions", {}), found["annex"]["versions"])
        if old != new
    }
    same = reported["annex"].get("release") == found["annex"]["release"]
    return Verification(same, len(compared), len(both), dict(same_code), tuple(differences), versions)


def question_again(reported: Document, given: Asked) -> Asked:
    """The question that the report answers; raises PolicyError for what is no report of ours."""
    known = isinstance(reported, dict) and reported.get("form") == FORM
    if not known or not all(isinstance(reported.get(key), dict) for key in ("asked", "annex", "statement")):
        raise PolicyError([Problem("verify", f"is no report ({FORM})", "give what `ldiv report --json` printed")])
    try:
        texts = {key: reported["statement"][key] for key in TEXTS}
        quoted = _Quoted.model_validate(reported["asked"] | texts).model_dump(exclude_unset=True)
    except (KeyError, ValidationError):
        raise PolicyError([Problem("verify", "is a report that lacks parts of its question")]) from None
    asked = Asked(**quoted, folder=given.folder)
    return replace(asked, policy=_policy(reported, given.policy, asked.is_public))


def _policy(reported: Document, given: Policy | None, public: bool) -> Policy | None:
    """The policy of the report: the one that is given, which must be the same, or the one that it quotes."""
    quoted = reported.get("policy")
    if given is None or quoted is None:
        if given is not None:
            raise PolicyError([Problem("policy", "the report was made without one", "leave it out")])
        return None if quoted is None else read_again(quoted)
    if written_policy(given, public) != quoted:
        raise PolicyError([Problem("policy", "is not the one that the report quotes")])
    return given


def _comparable(document: Document, in_place: bool) -> Document:
    """The document without what need not be the same; `in_place` if both are of the same run's table of one name."""
    parts = {key: value for key, value in document.items() if key not in ("asked", "form", "policy")}
    for section, key in (*_NOT_COMPARED, *(() if in_place else _OF_THE_PLACE)):
        held = parts.get(section)
        parts[section] = {k: v for k, v in held.items() if k != key} if isinstance(held, dict) else held
    if not in_place:
        attacks = parts.get("attacks") or {}
        listed = [one for one in attacks.get("attacks") or [] if one.get("attack") != "form"]
        parts |= {"earlier": None, "attacks": {**attacks, "attacks": listed}}
    return parts


def _pairs(one: Any, other: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every number and word of either, with its place, beside what stands there in the other."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            yield from _pairs(one.get(key), other.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _pairs(left, right, f"{where}[{place}]")
    else:
        yield where, one, other


def _equal(one: Any, other: Any, near: float = _NEAR) -> bool:
    if _is_number(one) and isinstance(other, float | int):
        return one == other or bool(abs(one - other) <= near * max(abs(one), abs(other)))
    return bool(one == other)


def _is_number(figure: Any) -> bool:
    return isinstance(figure, float | int) and not isinstance(figure, bool)


def _section(where: str) -> str:
    """The section of a place, of the source its part: `source.utility.queries`."""
    parts = re.sub(r"\[\d+\]", "", where).split(".")
    return ".".join(parts[: 3 if parts[:2] == ["source", "utility"] else 2 if parts[0] == "source" else 1])
