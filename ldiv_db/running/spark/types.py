"""The columns of a release as Spark has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldiv_db.policy.release_columns import columns_as
from ldiv_db.running.spark.resolve import SparkChoices


def own_types(choices: SparkChoices, fields: Any) -> dict[str, Any]:
    """Spark's type of each column of a release that is no label, by its name in lower case; `fields` are the source's.

    Of labels it is the type that values have which were not generalised.
    """
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    own = {field.name.lower(): field.dataType for field in fields}
    released = choices.resolved.released
    bounds = {
        column.lower(): own[name.lower()]
        for name, form in released.forms.items()
        if form == "bounds"
        for column in columns_as(name, form)
    }
    return {**own, **bounds, **{name: types.LongType() for name in released.class_ids}}


def release_fields(choices: SparkChoices, fields: Any) -> Iterator[tuple[str, Any]]:
    """The columns of a release in which all labels are text, each with its type."""
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    released, own = choices.resolved.released, own_types(choices, fields)
    labels = {name.lower() for name, form in released.forms.items() if form != "bounds"}
    for name in released.all:
        yield name, types.StringType() if name.lower() in labels else own[name.lower()]
