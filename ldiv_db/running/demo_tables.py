"""The demonstration of several tables: a made-up clinic, its release, and what joins of both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import load_policy
from ldiv_db.running.demo import POLICY_NAME, PUBLIC_SEED, Demo, Rows, TableRows, kept_in
from ldiv_db.running.run import run

DATABASE_NAME = "clinic.duckdb"
PATIENTS = 1_500
#: Patients that are shown, and rows of each other table.
_SHOWN, _SHOWN_ROWS = 4, 6
#: The columns of each table that are shown, the first of which links it to the table before; and those that its release
#: has beside them.
_COLUMNS = {
    "patients": ("patient_nr", "birth", "sex", "zip"),
    "stays": ("patient_nr", "admitted", "ward", "diagnosis", "nights", "stay_id"),
    "labs": ("stay_id", "finding"),
}
_ADDED = {"stays": ("position",)}


def demonstrate_tables(directory: Path | None = None, listener: Listener | None = None) -> Demo:
    """Publish the clinic in a database of its own, which is gone on return unless `directory` is given.

    Raises PolicyError if the directory holds a demonstration already.
    """
    text = (resource_folder("fixtures") / "clinic" / POLICY_NAME).read_text(encoding="utf-8")
    policy = load_policy(yaml.safe_load(text) | {"seed": PUBLIC_SEED})
    with (
        kept_in(directory, DATABASE_NAME) as folder,
        open_database(folder / DATABASE_NAME, create=True, settings=Settings()) as connection,
    ):
        (folder / POLICY_NAME).write_text(text, encoding="utf-8")
        flow = EngineFlow(Engine(connection), "running/demo")
        sources = {name: Relation.parse(str(table.source)) for name, table in policy.tables.items()}
        _make_clinic(flow, sources)
        result = run(connection, policy, folder, listener, show_values=True)  # made-up data
        one = run(connection, load_policy(_knowing_one(yaml.safe_load(text))), folder, listener, show_values=True)
        attackers = {"all rows of everybody (`known: all`)": result, "one row of a patient (`known: 1`)": one}
        releases = {name: Relation.parse(table.target.table or "") for name, table in policy.tables.items()}
        limit, by = _SHOWN, [Identifier(name) for name in policy.tables["patients"].quasi_identifiers]
        some = flow.rows("list_rows", rows=sources["patients"], columns=_named("patients"), limit=limit)
        alike = {"keys": by, "sensitive": Identifier("patient_nr"), "classes": Value([1])}
        together = flow.rows("list_classes", rows=releases["patients"], columns=_named("patients"), **alike)
        before, after = _linked(flow, sources, some), _linked(flow, releases, together[:limit], _ADDED)
        counts = [flow.record("count_joined", **tables) for tables in (sources, releases)]
        joins = {"stays": "patients and stays", "labs": "patients, stays and labs"}
        joined = {said: (counts[0][name], counts[1][name]) for name, said in joins.items()}
        return Demo(policy, result, list(before), list(after), directory, DATABASE_NAME, joined, attackers)


def _knowing_one(document: dict[str, Any]) -> dict[str, Any]:
    """The policy against who knows one row of the patient sought, with targets of its own."""
    tables = {
        name: {key: said for key, said in table.items() if key != "order"}
        | {"target": {"table": f"one_row.{name}", "if_exists": "replace"}}
        for name, table in document["tables"].items()
    }
    beside = {"seed": PUBLIC_SEED, "known": 1, "over_time": "independent"}
    return {key: said for key, said in document.items() if key != "algorithm"} | beside | {"tables": tables}


def _make_clinic(flow: EngineFlow, sources: dict[str, Relation]) -> None:
    flow.know(people=Value(PATIENTS), **sources)
    for name, table in sources.items():
        flow.engine.create(table, flow.path(f"draw_{name}"), **flow.params(f"draw_{name}"))


def _named(table: str, added: Sequence[str] = ()) -> list[Identifier]:
    return [Identifier(name) for name in (*_COLUMNS[table], *added)]


def _linked(
    flow: EngineFlow, tables: dict[str, Relation], patients: Rows, added: Mapping[str, Sequence[str]] | None = None
) -> Iterator[TableRows]:
    """Patients, their stays and what was found in these."""
    yield "patients", _COLUMNS["patients"], patients
    keys = [row[0] for row in patients]
    for name in ("stays", "labs"):
        link, more = _COLUMNS[name][0], (added or {}).get(name, ())
        columns = (link, *more, *_COLUMNS[name][1:])
        params = {"columns": [Identifier(column) for column in columns], "link": Identifier(link)}
        limits = {"keys": Value([str(key) for key in keys]), "limit": _SHOWN_ROWS}
        rows = flow.rows("list_linked", rows=tables[name], **params, **limits)
        yield name, columns, rows
        keys = [row[-1] for row in rows]
