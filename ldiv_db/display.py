"""Forms in which people look at what is returned: a line, a frame, and in a notebook a page with charts.

How each class looks is said above (`reporting/forms.py`), which enters it in `FORMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class Form:
    """The forms of a class's objects: in a line, as rows of a frame (column to value), and as HTML."""

    line: Callable[[Any], str]
    records: Callable[[Any], Iterable[Mapping[str, Any]]]
    page: Callable[[Any], Markup]


#: The forms by class.
FORMS: dict[type, Form] = {}


class Shown:
    """An object with a form. None holds a row of the data, or a value that the policy does not name."""

    def to_frame(self) -> Any:
        """The figures as a frame of pandas'."""
        from pandas import DataFrame  # noqa: PLC0415 - takes long

        return DataFrame(list(self._form.records(self)))

    def __repr__(self) -> str:
        return self._form.line(self)

    def _repr_html_(self) -> str:
        return str(self._form.page(self))

    @property
    def _form(self) -> Form:
        return next(FORMS[kind] for kind in type(self).__mro__ if kind in FORMS)
