"""`sql/<algorithm>/steps.md`: the statements that an algorithm sends for the small tables of its paper, step by step.

`python -m tests.sql.steps` writes them; `test_steps.py` makes them again and compares.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import yaml

import ldiv_db
from ldiv_db.database.queries import Step
from ldiv_db.database.templates import Statement, header, resource_folder

PAPERS = resource_folder("fixtures") / "papers"
TREES = {
    "gender": {"*": {"F": {}, "M": {}}},
    "postcode": {"*": {"1007*": {"10075": {}, "10076": {}, "10077": {}}}},
    "age": {"*": {"20-39": {"20": {}, "25": {}, "30": {}}, "40-59": {"40": {}, "50": {}}}},
}


@dataclass(frozen=True)
class Case:
    """An algorithm's options, what is required, and the folders of templates whose steps are told."""

    algorithm: dict[str, Any]
    require: list[Any]
    folders: tuple[str, ...]
    #: The table: seven people of the BSGI paper, or eight of Decomposition+'s.
    table: str = "bsgi_table1"
    #: What else the policy says.
    more: dict[str, Any] = field(default_factory=dict)


CASES = {
    "bsgi": Case({"name": "bsgi"}, [{"unique_distinct": 2}], ("bsgi", "neighbours")),
    "transparent": Case(
        {"name": "bsgi"}, [{"unique_distinct": 2}], ("transparent", "neighbours"), more={"transparent": True}
    ),
    "local/topdown": Case({"name": "topdown"}, [{"entropy": 2}], ("local", "neighbours")),
    "local/mondrian": Case({"name": "mondrian"}, [{"distinct": 2}], ("local", "neighbours")),
    "local/stratified": Case({"name": "stratified"}, [{"entropy": 2}], ("local", "neighbours")),
    "local/peel": Case({"name": "peel"}, [{"distinct": 2}], ("local", "neighbours")),
    "cuts": Case({"name": "cuts", "scheme": "vioRec"}, [{"frequency": 2}], ("cuts",)),
    "tp": Case({"name": "tp_plus"}, [{"frequency": 2}], ("tp",)),
    "decomposition": Case(
        {"name": "decomposition_plus", "primary": "occupation"}, [], ("decomposition",), "decomposition_table1"
    ),
    "baselines/incognito": Case({"name": "incognito"}, [{"distinct": 2}], ("baselines/incognito",)),
    "baselines/tds": Case({"name": "tds"}, [{"distinct": 2}], ("baselines/tds",)),
}
PEOPLE = {
    "bsgi_table1": {
        "identifiers": ["no", "name"],
        "quasi_identifiers": {name: {"taxonomy": {"file": f"{name}.yml"}} for name in TREES},
        "sensitive": ["disease"],
    },
    "decomposition_table1": {
        "identifiers": ["name"],
        "key": "tuple",
        "quasi_identifiers": {name: {} for name in ("gender", "zipcode", "birthday")},
        "sensitive": {"occupation": {"l": 4}, "salary": {"l": 4}},
    },
}


@dataclass
class Told:
    """A template that was sent, and the rows that it made each time; None where it was read and made no table."""

    template: str
    rows: list[int | None] = field(default_factory=list)


def listen(case: Case) -> list[Told]:
    """What the run of a case sends, each template where it is first sent."""
    told: dict[str, Told] = {}
    sent: list[Statement] = []

    def on_statement(statement: Statement) -> None:
        for step in statement.parts or [statement]:
            sent.append(step)
            told.setdefault(step.template, Told(step.template)).rows.append(None)

    def on_step(step: Step) -> None:
        told[sent[-1].template].rows[-1] = step.rows

    with duckdb.connect(config={"threads": 1}) as con, tempfile.TemporaryDirectory() as folder:
        path = PAPERS / f"{case.table}.csv"
        con.execute("CREATE TABLE people AS SELECT * FROM read_csv(?, all_varchar = true)", [str(path)])
        for name, tree in TREES.items():
            (Path(folder) / f"{name}.yml").write_text(yaml.safe_dump(tree))
        policy = {"source": "people", "seed": 1, "algorithm": case.algorithm} | PEOPLE[case.table] | target_of(case)
        policy |= case.more | ({"require": case.require} if case.require else {})
        ldiv_db.run(con, policy, folder=folder, listener=ldiv_db.Listener(on_statement=on_statement, on_step=on_step))
    return [step for step in told.values() if step.template.startswith(tuple(f"{name}/" for name in case.folders))]


def target_of(case: Case) -> dict[str, Any]:
    """A table, or the tables that an anatomised release has."""
    return {"target": {"prefix": "people"} if case.table == "decomposition_table1" else "published.people"}


def page(name: str, case: Case) -> str:
    """The text of `sql/<name>/steps.md`."""
    options = ", ".join(f"{key}: {value}" for key, value in (case.algorithm | case.more).items())
    required = ", ".join(f"{key} {value}" for item in case.require for key, value in item.items()) or "l = 4"
    return "\n".join(
        [
            f"# The steps of `{case.algorithm['name']}`",
            "",
            f"On `fixtures/papers/{case.table}.csv`, with {{{options}}} and {required}. Templates stand where they are",
            "first sent; rows are those that each sending made, `-` where no table was made: the answer was",
            "read, or another template read it in the same statement.",
            "Written by `python -m tests.sql.steps`.",
            "",
            "| | template | what it returns | rows |",
            "|---|---|---|---|",
            *lines(case),
            "",
        ]
    )


def lines(case: Case) -> Iterator[str]:
    """A line of the page for each template."""
    for place, step in enumerate(listen(case), 1):
        returns = str(header(step.template)["returns"]).split(";")[0].replace("|", "\\|").replace("*", "\\*")
        counts = ["-" if rows is None else str(rows) for rows in step.rows]
        shown = ", ".join(counts[:6]) + (f" … ({len(counts)} times)" if len(counts) > 6 else "")
        yield f"| {place} | `{step.template}` | {returns} | {shown} |"


def main() -> None:
    for name, case in CASES.items():
        (resource_folder("sql") / name / "steps.md").write_text(page(name, case), encoding="utf-8")


if __name__ == "__main__":
    main()
