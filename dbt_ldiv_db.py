"""What dbt finds of us: methods of adapters, which the materialization `anonymized` calls.

Jinja reaches no Python but what an adapter says is available. dbt-core imports each installed module whose name begins
with `dbt_`, and makes its plugins before any adapter (`dbt.plugins.manager`); this one adds methods to adapters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dbt.adapters.base import BaseAdapter
from dbt.plugins import dbtPlugin
from dbt_common.exceptions import DbtRuntimeError


class AnonymizedModels(dbtPlugin):
    """Makes the methods available to the Jinja of all adapters."""

    def initialize(self) -> None:
        methods = {method.__name__: method for method in (anonymized_here, publish_anonymized, no_rows_anonymized)}
        for name, method in methods.items():
            setattr(BaseAdapter, name, method)
        for adapter in _with_subclasses(BaseAdapter):  # those that come later have what their bases have
            adapter._available_ |= {*methods}


plugins = [AnonymizedModels]


def _with_subclasses(adapter: type[Any]) -> Iterator[type[Any]]:
    yield adapter
    for subclass in adapter.__subclasses__():
        yield from _with_subclasses(subclass)


@contextmanager
def _in_dbts_words() -> Iterator[None]:
    """Within, our errors are raised as dbt's, remedies with them: dbt reports these without a traceback."""
    from ldiv_db.database.errors import LdivError  # noqa: PLC0415 - dbt imports this module whenever it starts

    try:
        yield
    except LdivError as error:
        raise DbtRuntimeError(str(error)) from None


def anonymized_here(adapter: Any, step: str, settings: str) -> Any:
    """A step of a model on dbt-duckdb's connection: `prepare`, `publish`, `no_rows` or `end` of `dbt_model`.

    `settings` are a `Model` as JSON. Raises DbtRuntimeError in the words of the reason.
    """
    from ldiv_db.running import dbt_model  # noqa: PLC0415

    with _in_dbts_words():
        return getattr(dbt_model, step)(adapter.connections.get_thread_connection().handle.cursor(), settings)


@contextmanager
def _dropping(adapter: Any, source: str) -> Iterator[None]:
    """The same; after an error the view of the model's rows is dropped by the statement `source`."""
    try:
        with _in_dbts_words():
            yield
    except BaseException:
        with suppress(Exception):  # the first error is the one to report
            adapter.execute(source)
            _commit(adapter.connections.get_thread_connection().handle)
        raise


def no_rows_anonymized(adapter: Any, settings: str, source: str) -> dict[str, str]:
    """The SELECT of no rows for each table of a model's release, in a warehouse; raises DbtRuntimeError.

    `source` is the statement that drops the view of the model's rows, which is run after an error.
    """
    from ldiv_db.running.dbt_model import no_rows_there  # noqa: PLC0415

    with _dropping(adapter, source):
        found = no_rows_there(_committed(adapter), adapter.type(), settings)
    _begin(adapter)
    return found


def publish_anonymized(adapter: Any, settings: str, source: str, contract: str | None = None) -> dict[str, Any]:
    """Anonymize, audit and publish a model where its rows lie, by the adapter's connection; returns what was done.

    `settings` are a `Model` as JSON. `source` is the statement that drops the view of the model's rows, which is run
    whatever happens. `contract` is a SELECT of the columns that the release must have. What was begun on the connection
    is committed before. Raises DbtRuntimeError if nothing was published, in the words of the reason.
    """
    from ldiv_db.running.dbt_model import publish_there  # noqa: PLC0415

    with _dropping(adapter, source):
        name_of_type = adapter.connections.data_type_code_to_name
        outcome = publish_there(_committed(adapter), adapter.type(), settings, contract, name_of_type)
    adapter.execute(source)
    _commit(adapter.connections.get_thread_connection().handle)
    _begin(adapter)
    return outcome


def _committed(adapter: Any) -> Any:
    """The connection as runs take it, which has no transaction open: what was begun on it is committed."""
    connection = adapter.connections.get_thread_connection()
    if connection.transaction_open:
        adapter.connections.commit()
    _commit(connection.handle)
    return _as_runs_take_it(adapter.type(), connection.handle)


def _begin(adapter: Any) -> None:
    """A transaction for what dbt does after, which it commits; Spark ends none."""
    if not adapter.connections.get_thread_connection().transaction_open:
        adapter.connections.begin()


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
