"""Which class has which form."""

from __future__ import annotations

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.auditing.audit import Audit, Audits
from ldiv_db.display import FORMS, Form
from ldiv_db.measuring.measure import Measurement
from ldiv_db.measuring.profile import Profile
from ldiv_db.notebooks import lines, pages, rows
from ldiv_db.publishing.result import Released, Result
from ldiv_db.running.preparation import Preparation


def enter_forms() -> None:
    """Have what is returned look as it does here."""
    FORMS[Result] = Form(lines.result_line, rows.result_rows, pages.result_page)
    FORMS[Released] = Form(lines.released_line, rows.released_rows, pages.released_page)
    FORMS[Measurement] = Form(lines.measurement_line, rows.measurement_rows, pages.measurement_page)
    FORMS[Profile] = Form(lines.profile_line, rows.profile_rows, pages.profile_page)
    FORMS[Attacks] = Form(lines.attacks_line, rows.attack_rows, pages.attacks_page)
    FORMS[Preparation] = Form(lines.plan_line, rows.plan_rows, pages.plan_page)
    FORMS[Audits] = Form(lines.audits_line, rows.audit_rows, pages.audits_page)
    FORMS[Audit] = Form(
        lambda audit: lines.audits_line([audit]),
        lambda audit: rows.audit_rows([audit]),
        lambda audit: pages.audits_page([audit]),
    )
