"""What dbt finds of us: `adapter.publish_anonymized`, which the materialization `anonymized` calls on every adapter.

Jinja reaches no Python but what an adapter says is available. dbt-core imports each installed module whose name begins
with `dbt_`, and makes its plugins before any adapter (`dbt.plugins.manager`); this one adds a method to adapters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dbt.adapters.base import BaseAdapter
from dbt.plugins import dbtPlugin
from dbt_common.exceptions import DbtRuntimeError


class AnonymizedModels(dbtPlugin):
    """Makes the method available to the Jinja of all adapters."""

    def initialize(self) -> None:
        BaseAdapter.publish_anonymized = publish_anonymized
        for adapter in _with_subclasses(BaseAdapter):  # those that come later have what their bases have
            adapter._available_ |= {publish_anonymized.__name__}


plugins = [AnonymizedModels]


def _with_subclasses(adapter: type[Any]) -> Iterator[type[Any]]:
    yield adapter
    for subclass in adapter.__subclasses__():
        yield from _with_subclasses(subclass)


def publish_anonymized(adapter: Any, settings: str, source: str, contract: str | None = None) -> dict[str, Any]:
    """Anonymize, audit and publish a model where its rows lie, by the adapter's connection; returns what was done.

    `settings` are a `Model` as JSON. `source` is the statement that drops the view of the model's rows, which is run
    whatever happens. `contract` is a SELECT of the columns that the release must have. What was begun on the connection
    is committed before. Raises DbtRuntimeError if nothing was published, in the words of the reason.
    """
    # Here, as dbt imports this module whenever it starts.
    from ldiv_db.database.errors import LdivError  # noqa: PLC0415
    from ldiv_db.running.dbt_model import publish_there  # noqa: PLC0415

    kind, connection = adapter.type(), adapter.connections.get_thread_connection()
    if connection.transaction_open:
        adapter.connections.commit()
    _commit(connection.handle)
    try:
        name_of_type = adapter.connections.data_type_code_to_name
        outcome = publish_there(_as_runs_take_it(kind, connection.handle), kind, settings, contract, name_of_type)
    except BaseException as error:
        with suppress(Exception):  # the first error is the one to report
            adapter.execute(source)
            _commit(connection.handle)
        if isinstance(error, LdivError):
            raise DbtRuntimeError(str(error)) from None
        raise
    adapter.execute(source)
    _commit(connection.handle)
    if not connection.transaction_open:  # for what dbt does after, which it commits; Spark ends none
        adapter.connections.begin()
    return outcome


def _commit(handle: Any) -> None:
    if hasattr(handle, "commit"):  # BigQuery and Spark have no transactions
        handle.commit()


def _as_runs_take_it(kind: str, handle: Any) -> Any:
    """The connection that PEP 249 describes, or a session of Spark's whose settings are ours alone."""
    if kind == "bigquery":
        from google.cloud.bigquery import dbapi  # noqa: PLC0415 - an extra

        return dbapi.connect(handle)
    if kind == "spark":
        from ldiv_db.database.counted import environment_session  # noqa: PLC0415

        return environment_session().newSession()
    return handle
