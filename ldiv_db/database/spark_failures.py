"""What Spark says when it fails, in one sentence: no traces of Java's, and no values that they may quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ldiv_db.database.errors import DatabaseError

_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]\s*(.*)")
#: What stands between the names of exceptions of Java's and what they say.
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error):?\s*")
#: Conditions whose sentences quote values of the data.
_QUOTING = ("CAST_", "INVALID_INPUT", "CANNOT_PARSE", "MALFORMED", "DIVIDE", "ARITHMETIC", "NUMERIC_VALUE", "UDF")


@contextmanager
def plainly(doing: str) -> Iterator[None]:
    """Within, failures of Spark's are raised as DatabaseError: what was being done, and Spark's own short sentence."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise DatabaseError(f"Spark cannot {doing}: {sentence(error)}") from None  # a cause would quote data


def sentence(error: BaseException) -> str:
    """The first sentence of what Spark says, or the name of its condition where that would quote data."""
    text = str(error).strip() or type(error).__name__
    if missing := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
        return (
            f"the Python of its executors has no module {missing[1]}; install ldiv-db there, or set PYSPARK_PYTHON"
            " to one that has it"
        )
    if re.search(r"PYTHON_VERSION_MISMATCH|different .*version.* in worker", text):
        return "its executors have another version of Python than the driver; set PYSPARK_PYTHON"
    if found := _CONDITION.search(text):
        condition, said = found.groups()
        return condition if condition.startswith(_QUOTING) else said.strip() or condition
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in lines if line.startswith("Caused by:")), lines[0] if lines else text)
    return _CLASS.sub("", cause.removeprefix("Caused by:").strip())[:300] or type(error).__name__
