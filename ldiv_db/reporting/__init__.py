"""Results in words, tables and charts: the evidence on a release, and the forms of all that calls return."""

from __future__ import annotations

from collections.abc import Mapping

from ldiv_db.display import Form, Printed


def enter_forms() -> None:
    """Let what calls return find its forms."""
    Printed.forms = _forms


def _forms() -> Mapping[str, Form]:
    from ldiv_db.reporting.forms import FORMS  # noqa: PLC0415 - what is written as JSON needs none

    return FORMS
