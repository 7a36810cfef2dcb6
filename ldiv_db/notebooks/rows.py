"""What is returned as rows of a frame: a row a run, a requirement, a column or an attacker's gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.auditing.audit import Audit
from ldiv_db.measuring.measure import Measurement
from ldiv_db.measuring.profile import Profile
from ldiv_db.publishing.result import Released, Result
from ldiv_db.running.preparation import Preparation
from ldiv_db.running.preview import describe_plan

Row = Mapping[str, Any]


def result_rows(result: Result) -> list[Row]:
    """One row, so that runs are compared by putting their frames together."""
    return [_figures(result.as_dict())]


def measurement_rows(measurement: Measurement) -> list[Row]:
    """One row, with the columns that a result has."""
    return [_figures(measurement.as_dict())]


def released_rows(released: Released) -> list[Row]:
    """One row a release."""
    return [_figures(released.figures)]


def plan_rows(ready: Preparation) -> list[Row]:
    """One row, with the columns that a result has where both have them."""
    return [_figures(describe_plan(ready))]


def audit_rows(audits: Sequence[Audit]) -> Iterator[Row]:
    """A row a requirement of a sensitive attribute."""
    for audit in audits:
        for verdict in audit.verdicts:
            found = verdict.as_dict()
            del found["parameters"], found["worst_class"]
            yield {"sensitive": audit.sensitive or None, **found, "name": str(verdict.requirement)}


def profile_rows(profile: Profile) -> list[Row]:
    """A row a column of the table."""
    return list(profile.as_dict()["columns"])


def attack_rows(attacks: Attacks) -> Iterator[Row]:
    """A row a gain of an attacker; rows of the data, which an attack may hold for those who asked, are not there."""
    for attack in attacks.attacks:
        for gain in attack.gains:
            yield {
                "attack": attack.name,
                "sensitive": attack.sensitive,
                **gain.as_dict(),
                "finished": attack.untried is None,
            }


def _figures(document: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers and texts of a document, and those of its loss; the loss of a column is `lm.<column>`.

    The seed is not among them: who has it can replay the run, and frames are shown around.
    """
    loss = document.get("loss") or {}
    by_column = {f"lm.{name}": lost for name, lost in loss.get("lm_by_column", {}).items()}
    nested = {key: value for key, value in {**document, **loss}.items() if key != "seed"}
    return {
        key: value for key, value in nested.items() if isinstance(value, int | float | str | bool | None)
    } | by_column
