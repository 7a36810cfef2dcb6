"""A doctor's visit to a database: the smallest policies of all kinds, on a few people that were made up.

Each release is held against that of the same runs here. What an error says is told in the words of the database itself,
which can quote nobody: its user reports them to us.
"""

from __future__ import annotations

import platform
import sys
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.attach import takes_database
from ldiv_db.database.connections import open_database
from ldiv_db.database.context import Listener
from ldiv_db.database.counted import open_planned
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, LdivError, PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.display import Part, Printed, fields_of, table_of
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.publishing.ledger import PUBLISHED, runs
from ldiv_db.publishing.ledger_there import LedgerThere
from ldiv_db.running.doctor_beds import CHANGING, COLUMNS, PEOPLE, RELEASED, ROWS, SERIES, Schema, Transaction

Bed = Schema | Transaction

#: The most that is told of an error, in characters.
_LONGEST = 1_000
_NUMERIC = {"numeric": True}
_BASE: dict[str, Any] = {
    "quasi_identifiers": {"age": _NUMERIC, "town": {}, "dose": _NUMERIC}, "sensitive": ["illness"],
    "require": [{"k": 2}], "algorithm": "topdown", "seed": 1, "target": {"table": RELEASED, "if_exists": "replace"},
}  # fmt: skip
_NUMBERED = {"algorithm": "bsgi", "require": [{"distinct": 2}], "output": {"class_id": True, "bounds": True}}
_NUMBERS = {"age": _NUMERIC, "dose": _NUMERIC}
#: The smallest policies of all kinds, by what they say beside the base; each release takes the place of the one before.
KINDS: dict[str, dict[str, Any]] = {
    "classes": {},
    "kept columns": _NUMBERED | {"keep": ["number", "seen", "entered", "cost", "smokes"]},
    "one rule for all rows": {"algorithm": "cuts", "require": [{"threshold": 0.6}], "quasi_identifiers": _NUMBERS},
    "people with several rows": {"individual": "person"},
    "a series": {"key": "number", "over_time": "independent", "target": {"table": SERIES}},
}


@dataclass(frozen=True)
class Check:
    """What was tried, in how many seconds, and the problem if there was one, with the statement that it came of."""

    name: str
    seconds: float
    problem: str = ""
    statement: str = ""


@dataclass(frozen=True)
class Visit(Printed):
    """What a doctor found; `caution` says what we never executed."""

    service: str
    versions: Mapping[str, str]
    checks: Sequence[Check]
    caution: str = ""

    @property
    def holds(self) -> bool:
        """True if nothing failed."""
        return not any(check.problem for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        own = fields_of(self, "service", "versions", "caution", "holds")
        return own | {"checks": [vars(check) for check in self.checks]}

    def text(self, **how: Any) -> Iterator[Part]:
        yield ", ".join([self.service, *(f"{name} {number}" for name, number in self.versions.items())])
        rows = [(c.name, "failed" if c.problem else "good", f"{c.seconds:.1f}") for c in self.checks]
        yield table_of("", ("check", "holds", "seconds"), rows)
        for check in self.checks:
            if check.problem:
                yield "\n".join([f"{check.name}: {check.problem}", *filter(None, [check.statement])])
        if self.caution:
            yield f"{self.caution}: please report this to us, good or not. It holds no rows of yours; {_READ}"


_READ = "an error's words may name your server, user or project"


@takes_database(read_only=False, of_warehouse=open_planned)
def doctor(
    connection: Any, schema: str | None = None, dialect: str | None = None, listener: Listener | None = None
) -> Visit | Any:
    """Try the smallest policies of all kinds in a database, on people that were made up, and leave nothing there.

    `connection` is what `run` takes. With DuckDB, or what it attaches, each check is a transaction that is rolled back.
    In a warehouse all lies in a `schema`: one that is made and dropped, or an empty one, which stays. The Visit has
    `holds` and `checks`; a check that fails raises nothing.
    """
    tell = (listener or Listener()).on_stage
    name = schema or f"doctor_of_ldiv_{uuid.uuid4().hex[:8]}"
    if not isinstance(connection, Warehouse):
        bed = Transaction(name, connection)
        return Visit(bed.kind.name, _versions(), list(_checks(bed, tell)))
    traits, found = connection.traits, _versions(connection)
    return Visit(traits.name, found, list(_checks(Schema(name, connection), tell)), traits.caution)


def _checks(bed: Bed, tell: Callable[[str], None]) -> Iterator[Check]:
    begun = time.perf_counter()

    def checked(name: str, check: Callable[[Any], str]) -> Check:
        tell(f"trying {name}")
        return _checked(name, check, bed)

    try:
        with bed.opened():
            if isinstance(bed, Schema):
                yield Check("a schema with people", time.perf_counter() - begun)
                yield checked("reading the ledger in ldiv", _read_ledger)
            for name, more in KINDS.items():
                if "key" not in more or isinstance(bed, Transaction) or bed.there.traits.holds_off:
                    yield checked(name, partial(_compare, more))
            if isinstance(bed, Schema):
                yield checked("a run that fails", _fail)
            yield checked("the ledger, and rows behind others", _enter)
    except PolicyError:
        raise
    except LdivError as error:
        yield Check("a schema with people", time.perf_counter() - begun, *_told(error))


def _checked(name: str, check: Callable[[Any], str], bed: Bed) -> Check:
    begun, found = time.perf_counter(), ("", "")
    try:
        with bed.trial():
            found = check(bed), ""
    except Exception as error:  # a driver that nobody tried may raise any
        found = _told(error)
    return Check(name, time.perf_counter() - begun, *found)


def _told(error: BaseException) -> tuple[str, str]:
    """What an error says, with the driver's own words, and the statement that it came of, if one is known."""
    words, cause = str(error), error
    while isinstance(cause, LdivError) and cause.__context__ is not None:
        cause = cause.__context__
    if cause is not error:
        words = f"{words}: {type(cause).__name__}: {cause}"
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(cause.__traceback__)]
    statements = [sql for local in frames if isinstance(sql := local.get("sql"), str)]
    return words[:_LONGEST], statements[-1][:_LONGEST] if statements else ""


def _policy(bed: Bed, more: dict[str, Any], source: str = PEOPLE) -> dict[str, Any]:
    asked = _BASE | more
    named = [*asked["quasi_identifiers"], "illness", *asked.get("keep", []), asked.get("individual"), asked.get("key")]
    target = asked["target"] | {"table": str(bed.named(asked["target"]["table"]))}
    identifiers = [name for name in COLUMNS if name not in named]
    return asked | {"source": str(bed.named(source)), "target": target, "identifiers": identifiers}


def _publish(bed: Bed, more: dict[str, Any]) -> Counter[tuple[Any, ...]]:
    """The rows of the release of a policy, as text; of a series those of two."""
    for _ in range(2 if "key" in more else 1):
        bed.run(_policy(bed, more))
    return _rows(bed, SERIES if "key" in more else RELEASED)


def _rows(bed: Bed, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(_plain, row)) for row in bed.read(name))


def _plain(value: Any) -> str | None:
    """A value as text, whatever type a driver has for it: some hand on decimals as texts."""
    with suppress(TypeError, ValueError):
        return str(float(value))
    return value if value is None else str(value.replace(tzinfo=None) if isinstance(value, datetime) else value)


def _compare(more: dict[str, Any], bed: Bed) -> str:
    """What a release has in place of the rows of the same run here."""
    found = _publish(bed, more)
    with open_database(MEMORY) as connection, (here := Transaction("here", connection)).trial():
        expected = _publish(here, more)
    others, gone = [*(found - expected)], [*(expected - found)]
    return f"{len(others)} rows are others, as {others[:1]} in place of {gone[:1]}" if others or gone else ""


def _read_ledger(bed: Schema) -> str:
    with bed.there.moment(), open_database(MEMORY) as connection:
        LedgerThere(bed.there).bring(Engine(connection), ("run",))
    return ""


def _fail(bed: Schema) -> str:
    """What a run leaves that fails once its release is staged."""
    before = _rows(bed, RELEASED)

    def refuse(staged: Relation) -> None:
        raise AuditError("made up")

    bed.there.accept = refuse
    try:
        with suppress(AuditError):
            bed.run(_policy(bed, {"over_time": "independent"}))
    finally:
        del bed.there.accept
    if _rows(bed, RELEASED) != before:
        return "the release that was there is another one"
    with bed.there.moment():
        left = [name for name in bed.there.tables(bed.named(RELEASED)) if name.lower().startswith("ldiv_")]
    return f"tables are left: {', '.join(left)}" if left else ""


def _enter(bed: Bed) -> str:
    """What is wrong with the ledger: it knows an unchanged source, stops a changed one, and has what was published."""
    first, released = bed.run(_policy(bed, {}, CHANGING)), _rows(bed, RELEASED)
    again = bed.run(_policy(bed, {"target": {"table": RELEASED, "if_exists": "append"}}, CHANGING))
    if again.as_dict()["unchanged"] != first.run_id or _rows(bed, RELEASED) != released + released:
        return "an unchanged source gave another release, or not behind the first"
    bed.add(CHANGING, ROWS[:1])
    try:
        bed.run(_policy(bed, {}, CHANGING))
    except PolicyError:
        with bed.ledger() as engine:
            statuses = [run["status"] for run in runs(engine) if run["source"] == str(bed.named(CHANGING))]
        return "" if statuses == [PUBLISHED] * 2 else f"of two runs the ledger says: {', '.join(statuses) or 'nothing'}"
    return "changed rows were published again without a word"


def _versions(there: Warehouse | None = None) -> dict[str, str]:
    """The versions of all that takes part, by name."""
    found = {**versions(), "python": platform.python_version(), "sqlglot": sys.modules["sqlglot"].__version__}
    if there is None:
        return found
    parts = type(getattr(there, "session", None) or there.connection).__module__.split(".")
    modules = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    driver = [(name, n) for name in modules if (n := getattr(sys.modules.get(name), "__version__", None))][:1]
    with suppress(LdivError, IndexError), there.moment():
        found["server"] = str(there.rows(there.traits.version)[0][0]).split(" on ")[0]
    return found | dict(driver)
