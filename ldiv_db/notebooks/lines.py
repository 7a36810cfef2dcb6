"""What is returned in one line, as `repr` has it."""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.auditing.audit import Audit
from ldiv_db.measuring.measure import Measurement
from ldiv_db.measuring.profile import Profile
from ldiv_db.publishing.result import Released, Result
from ldiv_db.recoding.loss import Loss
from ldiv_db.running.preparation import Preparation


def result_line(result: Result) -> str:
    where = f"{result.source} → {result.target}, {result.algorithm}, l = {result.l}"
    return f"Release of {where}: {_lost(result.loss)}; {_holds(result.audits)}"


def measurement_line(measurement: Measurement) -> str:
    return f"Loss of {measurement.published} against {measurement.source}: {_lost(measurement.loss)}"


def released_line(released: Released) -> str:
    return f"Release {released.figures.get('release', '')}: {_holds(released.audits)}"


def audits_line(audits: Sequence[Audit]) -> str:
    parts = [f"{audit.sensitive or 'rows alone'}: {audit.classes:,} classes, {audit.rows:,} rows" for audit in audits]
    return f"Audit of {'; '.join(parts)}: {_holds(audits)}"


def profile_line(profile: Profile) -> str:
    unique = profile.uniqueness.unique_rows if profile.uniqueness else 0
    return (
        f"Profile of {profile.table}: {len(profile.columns)} columns, {profile.rows:,} rows, {unique:,} of them unique"
    )


def attacks_line(attacks: Attacks) -> str:
    said = {True: "every promise is kept", False: "a promise is broken", None: "nothing is promised"}[attacks.holds]
    if attacks.undecided and attacks.holds is None:
        said = "whether every promise is kept is not known"
    left = "" if attacks.finished else "; not all attacks were finished"
    return f"Attacks on {attacks.classes:,} classes, {attacks.rows:,} rows: {said}{left}"


def plan_line(ready: Preparation) -> str:
    feasible, resolved = ready.feasibility, ready.resolved
    where = f"{resolved.source.name} → {resolved.target}, {ready.algorithm.name}, l = {feasible.l}"
    suppressed = f"{feasible.rows_suppressed:,} of {ready.encoded.rows_in:,} rows suppressed"
    return f"Plan of {where}: up to {feasible.classes:,} classes, {suppressed}; nothing was written"


def _lost(loss: Loss) -> str:
    rows = f"{loss.rows_published:,} rows in {loss.classes:,} classes"
    left_out = f", {loss.rows_suppressed:,} suppressed" if loss.rows_suppressed else ""
    return f"{rows}{left_out}, {loss.lm_mean:.4f} of 1 lost per cell"


def _holds(audits: Sequence[Audit]) -> str:
    return "every requirement holds" if all(audit.holds for audit in audits) else "NOT every requirement holds"
