"""A hospital whose columns, values and texts are as hostile as they come, and its release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ldiv_db.policy.context import ReleaseContext

#: A column and values that would break out of a page, or be seen in it.
HOSTILE = "<script>alert('x')</script> \"&\u202e"
MARKS = ("zzflu", "zzcancer", "zzasthma", "zz<b>hep</b>")
SEED = 918273645
SECRET = "zzsecret"
#: How much a report tries, and what is said of the release.
FEW = {"queries": 1, "tries": 10}
SAID = {"recipient": HOSTILE, "purpose": "care", "release_model": "shared", "why": HOSTILE, "review": "2030"}


def fill_hospital(con: Any, rows: int = 48) -> None:
    """The table `patients`: two quasi-identifiers, one of them with a hostile name and with NULLs, a disease."""
    con.execute(f"CREATE TABLE patients (name VARCHAR, age INTEGER, {quoted(HOSTILE)} VARCHAR, disease VARCHAR)")
    places = [f"zzn{i}" for i in range(4)]
    con.executemany(
        "INSERT INTO patients VALUES (?, ?, ?, ?)",
        [
            (f"P{i}", 20 + i * 7 % 41, None if i % 12 == 5 else places[i % 4], MARKS[(i * 5 // 2) % 4])
            for i in range(rows)
        ],
    )


@contextmanager
def undone(con: Any) -> Iterator[None]:
    """What is done to the tables is undone."""
    con.execute("BEGIN")
    try:
        yield
    finally:
        con.execute("ROLLBACK")


def whole_context(**changes: Any) -> dict[str, Any]:
    """A context without a blank, each of its texts a mark that is seen wherever it stands."""
    texts = {key: f"{SECRET} {key}" for key, field in ReleaseContext.model_fields.items() if field.default is None}
    columns = {name: f"{SECRET} {number}" for number, name in enumerate(("name", "age", HOSTILE))}
    return texts | {"release_model": "shared", "roles": {"Owner": f"{SECRET} owner"}, "reasons": columns} | changes


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def hospital_policy(**changes: Any) -> dict[str, Any]:
    """A policy that the hospital meets; None takes a key out."""
    document = {
        "source": "patients",
        "target": {"table": "published", "if_exists": "replace"},
        "identifiers": ["name"],
        "quasi_identifiers": {"age": {"numeric": True}, HOSTILE: {"taxonomy": {"flat": True}}},
        "sensitive": ["disease"],
        "require": [{"frequency": 2}, {"k": 3}],
        "algorithm": "mondrian",
        "seed": SEED,
    } | changes
    return {key: value for key, value in document.items() if value is not None}
