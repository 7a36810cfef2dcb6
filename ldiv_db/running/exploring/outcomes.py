"""Outcomes of variants: what each would lose and tell, the frontier of the best, and findings in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import fmean
from typing import Any, Literal

from ldiv_db.attacking.gains import Attack
from ldiv_db.display import Printed, fields_of
from ldiv_db.measuring.answers import Answer
from ldiv_db.recoding.groups import GroupLoss
from ldiv_db.recoding.loss import CountErrors, Loss, Precision
from ldiv_db.running.exploring.question import Objective
from ldiv_db.running.exploring.variants import Variant

#: What became of a variant: it was rehearsed, the data cannot meet it, its policy is refused, its release failed the
#: audit, the database failed, or there was no time for it.
Status = Literal["done", "infeasible", "refused", "failed", "error", "interrupted"]
#: What may stand against risk: what they lose (LM), and how far counts, or the policy's queries, are off.
Axis = Literal["loss", "counts", "answers"]
#: Sentences on a variant in a line.
_SAID = 3
#: What of a policy no page shows: passwords may stand in the one, and who has the other can run the program again.
SECRET = ("databases", "seed")


@dataclass(frozen=True)
class Risk:
    """The largest and the mean gain of attackers who find somebody's class.

    `posterior` is the largest share of a class that a sensitive value has which is not harmless, None without a
    sensitive attribute, and its mean over rows; `prosecutor` is 1 / the rows of the smallest class, and classes / rows.
    All are those of an attack on the table that would be published.
    """

    posterior: float | None
    posterior_mean: float | None
    prosecutor: float | None
    prosecutor_mean: float | None

    @property
    def largest(self) -> float:
        """The number that variants are compared by: the posterior, without a sensitive attribute the prosecutor's."""
        return next((risk for risk in (self.posterior, self.prosecutor) if risk is not None), 0.0)


def risk_of(attacks: Iterable[Attack]) -> Risk:
    """The risks among the attacks, of several sensitive attributes the largest."""
    by_name: dict[str, list[Attack]] = {}
    for attack in attacks:
        by_name.setdefault(attack.name, []).append(attack)
    return Risk(
        # Where some values are harmless the last gain is that of the others.
        posterior=_largest(attack.gains[-1].gain for attack in by_name.get("posterior", ())),
        posterior_mean=_largest(attack.figures["mean"] for attack in by_name.get("posterior", ())),
        prosecutor=_largest(attack.gains[0].gain for attack in by_name["prosecutor"]),
        prosecutor_mean=_largest(attack.figures["mean"] for attack in by_name["prosecutor"]),
    )


def _largest(found: Iterable[float | None]) -> float | None:
    return max((number for number in found if number is not None), default=None)


@dataclass(frozen=True)
class VariantOutcome:
    """The outcome of a variant: `loss`, `risk` and `l` if it was rehearsed, else the `reason`; `algorithm` made it."""

    variant: Variant
    status: Status
    reason: str = ""
    algorithm: str = ""
    l: int | float | None = None
    loss: Loss | None = None
    risk: Risk | None = None
    #: The answers to the queries that the policy is to preserve.
    answers: tuple[Answer, ...] = ()
    #: Who pays: what groups of rows lose.
    groups: tuple[GroupLoss, ...] = ()

    @property
    def answers_error(self) -> float:
        """How far the answers are off on average, each by its whole size at most."""
        errors = [min(answer.error, 1.0) for answer in self.answers if answer.error is not None]
        return fmean(errors) if errors else 0.0

    def counts_error(self, columns: int) -> float:
        """How far counts over two columns are off (median); of so many quasi-identifiers one left out counts as 1."""
        assert self.loss is not None  # noqa: S101 - it was rehearsed
        told = min(self.loss.counts.median, 1.0) if self.loss.counts else 1.0
        return _of_all(len(self.loss.lm_by_column) * told, self.loss, columns)

    def total_loss(self, columns: int) -> float:
        """The mean LM of a cell of so many quasi-identifiers; those that are left out are lost wholly."""
        assert self.loss is not None  # noqa: S101 - it was rehearsed
        if self.variant.policy.tables:  # of which columns have different numbers of cells
            return self.loss.lm_mean
        return _of_all(sum(self.loss.lm_by_column.values()), self.loss, columns)

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON has it."""
        variant = self.variant
        found = fields_of(variant, "number", "label")
        found |= {"varied": dict(variant.varied), "change": dict(variant.keys), "status": self.status}
        if self.loss is None or self.risk is None:
            return found | {"reason": self.reason}
        loss = self.loss
        return found | {
            **fields_of(self, "algorithm", "l"),
            "risk": dict(vars(self.risk)),
            **fields_of(loss, "lm_mean", "lm_by_column", "classes", "smallest_class", "largest_class"),
            "avg_class_size": loss.average_class_size,
            **fields_of(loss, "rows_published", "rows_suppressed", "cells_suppressed", "stars"),
            "precision": [one.as_dict() for one in loss.precision],
            "answers": [answer.as_dict() for answer in self.answers],
            "error": self.answers_error if self.answers else None,
            "counts": loss.counts and loss.counts.as_dict(),
            "groups": [group.as_dict() for group in self.groups],
        }


def _of_all(lost: float, loss: Loss, columns: int) -> float:
    """The mean over so many quasi-identifiers of what is lost in those that are published; the others lose 1 each."""
    return (lost + columns - len(loss.lm_by_column)) / columns


@dataclass(frozen=True)
class Exploration(Printed):
    """The outcomes of variants of a policy on a source of `rows` rows, in the order of the variants' numbers.

    `columns` are the quasi-identifiers of the policy as written. If it was `interrupted`, some variants were not tried.
    """

    source: str
    rows: int
    columns: Sequence[str]
    sensitive: Sequence[str]
    outcomes: Sequence[VariantOutcome]
    seed_is_written: bool
    interrupted: bool = False
    seconds: float = 0.0
    #: The policy's document, if it was given as one: what the keys of a variant are put into.
    document: Mapping[str, Any] | None = field(default=None, repr=False)
    #: Whether the policy's requirements are on people; risks are of rows all the same.
    of_people: bool = False
    #: What variants are compared by beside risk: what they lose (LM), or how far answers or counts are off.
    by: Objective = "loss"

    @property
    def done(self) -> list[VariantOutcome]:
        """The outcomes that were rehearsed."""
        return [outcome for outcome in self.outcomes if outcome.loss is not None]

    @property
    def ranked(self) -> list[VariantOutcome]:
        """The outcomes that were rehearsed, by risk, then by loss."""
        return sorted(self.done, key=lambda one: (*self._place(one), one.variant.number))

    @property
    def frontier(self) -> list[VariantOutcome]:
        """The rehearsed outcomes of which no other is better on both loss and risk."""
        places = [self._place(one) for one in self.done]
        return [one for one in self.ranked if not is_beaten(self._place(one), places)]

    @property
    def least(self) -> list[tuple[Any, VariantOutcome | None]]:
        """For each largest risk asked for, the outcome that loses least within it, None if there is none."""
        asked = dict.fromkeys(one.variant.varied["risk"] for one in self.outcomes if "risk" in one.variant.varied)
        return [(bound, min(self._within(bound), key=self.loss_of, default=None)) for bound in asked]

    def _within(self, bound: Any) -> list[VariantOutcome]:
        least = 1 / Fraction(str(bound))
        return [one for one in self.ranked if one.loss is not None and one.loss.smallest_class >= least]

    @property
    def compared(self) -> str:
        """What they are compared by, in a word."""
        return {"loss": "loss", "utility": "error"}[self.by]

    def loss_of(self, outcome: VariantOutcome) -> float:
        """What variants are compared by: the mean LM of a cell of the policy's quasi-identifiers, or the error.

        A quasi-identifier that is left out is lost wholly.
        """
        return self.measured(outcome, self.axes[0])

    @property
    def axes(self) -> list[Axis]:
        """What can be held against risk, first what variants are compared by."""
        asked: list[Axis] = ["answers"] if any(one.answers for one in self.outcomes) else []
        asked += ["counts"] if any(one.loss and one.loss.counts for one in self.outcomes) else []
        return [*asked, "loss"] if self.by == "utility" else ["loss", *asked]

    def measured(self, outcome: VariantOutcome, axis: Axis) -> float:
        """The outcome's place on an axis, from 0 to 1."""
        if axis == "answers":
            return outcome.answers_error
        columns = len(self.columns)
        return outcome.counts_error(columns) if axis == "counts" else outcome.total_loss(columns)

    @property
    def costs(self) -> list[tuple[str, float, float]]:
        """The cost of each column left out: the mean LM of the others with it and without, largest saving first.

        Empty where the policy that they are compared with could not be met.
        """
        reference = self.outcomes[0].loss if self.outcomes else None
        if reference is None:
            return []
        lost, bound = reference.lm_by_column, self.outcomes[0].variant.varied.get("risk")
        found = [
            (name, (sum(lost.values()) - lost[name]) / (len(lost) - 1), outcome.loss.lm_mean)
            for outcome in self.outcomes
            for name in [outcome.variant.varied.get("without")]
            if name is not None and outcome.loss is not None and outcome.variant.varied.get("risk") == bound
        ]
        return sorted(found, key=lambda cost: (cost[2] - cost[1], cost[0]))

    def _place(self, outcome: VariantOutcome) -> tuple[float, float]:
        return (outcome.risk.largest if outcome.risk else 0.0, self.loss_of(outcome))

    def as_dict(self) -> dict[str, Any]:
        """The exploration as JSON has it."""
        best = {outcome.variant.number for outcome in self.frontier}
        return {
            "source": self.source,
            "rows": self.rows,
            "quasi_identifiers": list(self.columns),
            "sensitive": list(self.sensitive),
            "risk": "posterior" if self.sensitive else "prosecutor",
            **fields_of(self, "by", "interrupted", "seed_is_written"),
            "least_loss": [{"risk": bound, "number": one and one.variant.number} for bound, one in self.least],
            "costs": [{"column": name, "with": before, "without": after} for name, before, after in self.costs],
            "seconds": self.seconds,
            "variants": [
                one.as_dict() | self._compared(one, best) | {"policy": self.policy_of(one)} for one in self.outcomes
            ],
        }

    def _compared(self, outcome: VariantOutcome, best: Set[int]) -> dict[str, Any]:
        if outcome.loss is None:
            return {}
        loss, by = self.measured(outcome, "loss"), self.loss_of(outcome)
        return {"loss": loss, "compared_by": by, "frontier": outcome.variant.number in best}

    def policy_of(self, outcome: VariantOutcome) -> dict[str, Any]:
        """The policy of the variant without its secrets if the document is known, else what changes in it."""
        whole = {**(self.document or {}), **outcome.variant.keys}
        return {key: value for key, value in whole.items() if key not in SECRET}

    @property
    def kept_back(self) -> list[str]:
        """The keys of the policy that are secret, and so in no page."""
        return [key for key in SECRET if key in (self.document or {})]


def _told(outcome: VariantOutcome) -> Sequence[Answer | CountErrors | Precision]:
    loss = outcome.loss
    assert loss is not None  # noqa: S101 - it was rehearsed
    said: list[Answer | CountErrors | Precision] = [*outcome.answers, *([loss.counts] if loss.counts else [])]
    return [*said, *sorted(loss.precision, key=lambda one: -one.nine_tenths)][:_SAID]


def is_beaten(place: tuple[float, float], others: Iterable[tuple[float, float]]) -> bool:
    """Return True if one of the others has no more of either number, and less of one."""
    return any(other[0] <= place[0] and other[1] <= place[1] and other != place for other in others)


def findings(found: Exploration) -> Iterator[str]:
    """Yield remarks on reading the table, and on the scope of its figures."""
    if found.done:
        best = f"{len(found.frontier):,} of {len(found.done):,} are on the frontier (*)"
        yield f"{best}: no other variant is better on both {found.compared} and risk"
        one = min(found.ranked, key=found.loss_of)
        yield f"least {found.compared}: {one.variant.label}; {'; '.join(map(str, _told(one)))}"
    if found.done and found.of_people:
        yield "risks are of rows; requirements count people, and so did the audit of each variant"
    for bound, least in found.least:
        what = f"{found.loss_of(least):.4f}, {least.variant.label}" if least else "no variant meets it"
        yield f"least {found.compared} at a risk of at most {bound}: {what}"
    for name, before, after in found.costs[:1]:
        if after < before:
            yield f"without {name} the mean LM of the other columns falls most, from {before:.4f} to {after:.4f}"
    if not found.seed_is_written:
        yield "the policy has no seed: a run draws its own, and its figures differ a little"
    if found.interrupted:
        left = sum(outcome.status == "interrupted" for outcome in found.outcomes)
        yield f"interrupted: {left:,} of {len(found.outcomes):,} variants were not tried"
