"""`python -m tests.benchmarks.refine`: what refinement concludes of k-anonymous classes, and how often it is wrong.

Adult's 30,162 training rows, with age, education and marital status along trees, published by several algorithms under
`k`, and by other tools: `--write FILE` writes the rows for these, numbered by a column `id`, and `--release NAME=FILE`
(repeatable) takes what they publish, with the column. Conclusions about a class are held against its rows' true values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer

import ldiv_db
from ldiv_db.attacking.refinement import Nodes, conclude, tree_of
from ldiv_db.database.templates import resource_folder
from ldiv_db.taxonomies.readers import read_taxonomy
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Taxonomy
from tests.benchmarks.command import AsJson, Columns, command_of, show

COLUMNS = ("age", "education", "marital_status")
#: What is published by ours: the algorithm and what else a policy says.
OURS: dict[str, dict[str, Any]] = {
    "mondrian": {"algorithm": "mondrian"},
    "topdown": {"algorithm": "topdown"},
    "auto": {"algorithm": {"name": "auto", "effort": "quick"}},
    "cuts": {"algorithm": "cuts"},
    "bsgi, transparent": {"algorithm": "bsgi", "transparent": True},
}


def main(
    k: Annotated[int, typer.Option(min=2, help="The least rows of a class.")] = 5,
    write: Annotated[Path | None, typer.Option(help="Write the rows to this CSV file, and stop.")] = None,
    release: Annotated[list[str] | None, typer.Option(help="A CSV file of another tool, as NAME=FILE.")] = None,
    budget: Annotated[int, typer.Option(min=1, help="The budget of each attack.")] = 20_000_000,
    json: AsJson = False,
) -> None:
    folder = resource_folder("fixtures") / "adult"
    with duckdb.connect() as con:
        con.execute(
            f"CREATE TABLE adult AS SELECT row_number() OVER () - 1 AS id, {', '.join(COLUMNS)}, occupation"
            f" FROM (FROM '{folder / 'adult.parquet'}' WHERE COLUMNS(*) IS NOT NULL LIMIT 30162)"
        )
        if write:
            con.execute(f"COPY adult TO '{write}'")
            return
        for name, file in (one.split("=", 1) for one in release or []):
            con.execute(f"CREATE TABLE \"{name}\" AS FROM read_csv('{file}', all_varchar = true)")
        names = [one.split("=", 1)[0] for one in release or []]
        for name, how in OURS.items():
            with suppress(ldiv_db.InfeasibleError):  # occupations are too few for large transparent classes
                ldiv_db.run(con, _policy(name, k) | how, folder=folder)
                names.append(name)
        trees = {column: read_taxonomy(folder / "taxonomies" / f"{column}.csv") for column in COLUMNS}
        found = []
        for name in names:
            truth = truth_of(con, name, "adult", "id", trees)
            if truth is None:
                raise typer.BadParameter(f"{name} has labels of no taxonomy", param_hint="--release")
            found.append({"release": name} | held_against_truth(truth, k, budget))
    columns: Columns = {
        "release": "{release}",
        "coarse cells": "{coarse}",
        "values": lambda one: f"{one['values'] / one['coarse']:.1f}" if one["coarse"] else "",
        "narrowed to": lambda one: f"{one['possible'] / one['coarse']:.1f}" if one["coarse"] else "",
        "cells narrowed": "{narrowed}",
        "wrong": "{wrong}",
        "rows contradicted": "{contradicted}",
        "rows untried": "{untried}",
    }
    show(f"Refinement of k = {k}", json, found, columns)


def _policy(name: str, k: int) -> dict[str, Any]:
    trees = {column: {"taxonomy": {"file": f"taxonomies/{column}.csv"}} for column in COLUMNS}
    asked = {"source": "adult", "target": name, "quasi_identifiers": trees, "keep": ["id"], "seed": 1}
    if "transparent" in OURS.get(name, {}):
        return asked | {"sensitive": ["occupation"], "require": [{"distinct": k}]}
    return asked | {"sensitive": [], "identifiers": ["occupation"], "require": [{"k": k}]}


@dataclass(frozen=True)
class Truth:
    """The classes of a release, each with the rows of the source that it has and how many are alike, as nodes."""

    taxonomies: Sequence[Taxonomy]
    members: Mapping[Nodes, Sequence[tuple[Nodes, int]]]

    def cells_not_least(self) -> int:
        """The cells whose label is not the least node above all rows of its class."""
        found = 0
        for box, rows in self.members.items():
            for axis, taxonomy in enumerate(self.taxonomies):
                common = set.intersection(*(_above(taxonomy, row[axis]) for row, _ in rows))
                least = max(common, key=lambda node: taxonomy.nodes[node].depth, default=0)
                found += sum(alike for _, alike in rows) * (least != box[axis])
        return found


def truth_of(
    con: duckdb.DuckDBPyConnection, release: str, source: str, key: str, taxonomies: Mapping[str, Taxonomy]
) -> Truth | None:
    """The classes of a release and their rows; None if a label is no node of its column's taxonomy."""
    nodes_of = [{ROOT_LABEL: 0} | {node.label: node.node for node in one.nodes} for one in taxonomies.values()]
    labels, values = (", ".join(f'CAST({of}."{column}" AS VARCHAR)' for column in taxonomies) for of in "rs")
    joined = f'FROM "{release}" AS r JOIN "{source}" AS s ON s."{key}" = CAST(r."{key}" AS BIGINT)'
    members: dict[Nodes, list[tuple[Nodes, int]]] = defaultdict(list)
    for *texts, rows in con.execute(f"SELECT {labels}, {values}, count(*) {joined} GROUP BY ALL").fetchall():
        parts = texts[: len(nodes_of)], texts[len(nodes_of) :]
        if any(text not in of for part in parts for of, text in zip(nodes_of, part, strict=True)):
            return None
        box, row = (tuple(of[text] for of, text in zip(nodes_of, part, strict=True)) for part in parts)
        members[box].append((row, rows))
    return Truth(list(taxonomies.values()), members)


def held_against_truth(truth: Truth, k: int, budget: int) -> dict[str, int]:
    """What is concluded of a release, in cells of rows; wrong are those narrowed whose true value is ruled out."""
    boxes = sorted((box, sum(rows for _, rows in of)) for box, of in truth.members.items())
    published = zip(*truth.members, strict=True)
    trees = [tree_of(one, nodes) for one, nodes in zip(truth.taxonomies, published, strict=True)]
    found = dict.fromkeys(("tried", "contradicted", "coarse", "values", "possible", "narrowed", "wrong"), 0)
    for box, rows, counts in conclude(boxes, trees, k, budget):
        found["tried"] += rows
        found["contradicted"] += 0 if counts else rows
        for axis, ends in enumerate(counts or []):
            possible = sum(most > 0 for _, most in ends)
            found["coarse"] += rows * (len(ends) > 1)
            found["values"] += rows * len(ends) * (len(ends) > 1)
            found["possible"] += rows * possible * (len(ends) > 1)
            found["narrowed"] += rows * (possible < len(ends))
            for row, alike in truth.members[box]:
                above = _above(truth.taxonomies[axis], row[axis])
                places = [span for node, span in trees[axis][box[axis]] if node in above]
                found["wrong"] += alike * (ends[min(places, key=lambda span: span[1] - span[0])[0]][1] == 0)
    rows = sum(rows for _, rows in boxes)
    return {**found, "untried": rows - found["tried"], "cells": rows * len(trees)}


def _above(taxonomy: Taxonomy, node: int | None) -> set[int]:
    """The node and those above it."""
    found = set()
    while node is not None:
        found.add(node)
        node = taxonomy.nodes[node].parent
    return found


app = command_of(main)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.refine")
