"""`python -m tests.benchmarks.judge FOLDER`: what releases of other tools, and of ours, lose, promise and reveal.

`--prepare CHECKOUT` writes the cases (`tests.benchmarks.cases`) and `--publish` our releases of them. Each other tool
writes `releases/CASE/TOOL.csv`, with the case's columns and `;` between values; `tests/benchmarks/peers` drives those
that have no command of their own. Nothing here knows who made a release: labels alone are judged, all by one policy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer
import yaml

import ldiv_db
from ldiv_db.attacking.downcoding import SINGLED_OUT
from ldiv_db.taxonomies.readers import read_taxonomy
from tests.benchmarks.cases import CASES, KEY, open_case, publish_ours, write_cases
from tests.benchmarks.command import AsJson, Columns, command_of, refuse_unknown, show
from tests.benchmarks.refine import held_against_truth, truth_of


def main(
    folder: Annotated[Path, typer.Argument(help="Of the cases and releases.")],
    prepare: Annotated[Path | None, typer.Option(help="Write the cases, from a checkout of k-anonymity.")] = None,
    publish: Annotated[bool, typer.Option("--publish", help="Write our releases that are not there yet.")] = False,
    case: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(CASES)}; may be repeated.")] = None,
    budget: Annotated[int, typer.Option(min=1, help="The budget of each attack.")] = 10_000_000,
    json: AsJson = False,
) -> None:
    refuse_unknown("--case", case or (), list(CASES))
    if prepare:
        write_cases(prepare, folder)
    found = []
    for name in case or CASES:
        home = folder / "data" / name
        if not (home / "policy.yml").is_file():
            raise typer.BadParameter(f"has no case {name}: give --prepare", param_hint="FOLDER")
        if publish:
            publish_ours(folder, name, lambda line: typer.echo(line, err=True))
        with open_case(home) as con:
            for release in sorted((folder / "releases" / name).glob("*.csv")):
                typer.echo(f"{name}: {release.stem}", err=True)
                found.append({"case": name, "release": release.stem, **judged(con, home, release, budget)})
    columns: Columns = {
        "case": "{case}",
        "release": "{release}",
        "rows": "{rows:,}",
        "loss": "{lm_mean:.4f}",
        "breaks": lambda one: f"{one['breaks']} ({one['violating_rows']:,} rows)" if one["breaks"] else "",
        "certain": "{certain:.1%}",
        "largest posterior": "{posterior:.2f}",
        "narrowed": lambda one: _narrowed(one["refined"]),
        "singled out": _singled_out,
    }
    show("Releases judged", json, found, columns)


def judged(con: duckdb.DuckDBPyConnection, home: Path, release: Path, budget: int) -> dict[str, Any]:
    """What a release of the case lost, breaks and reveals; `con` has its `source`."""
    policy = yaml.safe_load((home / "policy.yml").read_text(encoding="utf-8"))
    trees = policy["quasi_identifiers"]
    columns = ", ".join(f'"{column}"' for column in (KEY, *trees, *policy["sensitive"]))
    con.execute(
        f"CREATE OR REPLACE TABLE release AS SELECT {columns} FROM read_csv($path, delim = ';', all_varchar = true)",
        {"path": str(release)},
    )
    asked: dict[str, Any] = {"policy": policy, "folder": home}
    broken = [one for audit in ldiv_db.check(con, "release", **asked) for one in audit.verdicts if not one.holds]
    measured: Any = ldiv_db.measure(con, "release", kl=False, **asked)
    taxonomies = {name: read_taxonomy(home / tree["taxonomy"]["file"]) for name, tree in trees.items()}
    truth, k = truth_of(con, "release", "source", KEY, taxonomies), policy["require"][0].get("k")
    if truth is None:  # ranges and sets, which attackers read without a tree of numbers
        ranged = (con.execute(f"FROM release WHERE \"{name}\" LIKE '[% .. %]'").fetchone() for name in trees)
        names = [name for name, row in zip(trees, ranged, strict=True) if row or name in CASES[home.name].numbers]
        numbers = {column: {"numeric": True} for column in names}
        asked["policy"] = policy | {"quasi_identifiers": trees | numbers}
    attacks = ldiv_db.attack(con, "release", population="source", downcoding=True, budget=budget, **asked)
    gains = {attack.name: attack for attack in attacks.attacks}
    return {
        "rows": measured.loss.rows_published,
        "lm_mean": measured.loss.lm_mean,
        "breaks": ", ".join(one.requirement.name for one in broken),
        "violating_rows": max((one.violating_rows for one in broken), default=0),
        "certain": gains["homogeneity"].gains[0].gain,
        "posterior": gains["posterior"].gains[0].gain,
        "singled_out": next((g.gain for g in gains["downcoding"].gains if g.measure == SINGLED_OUT), None),
        "downcoding": gains["downcoding"].figures,
        "not_least": None if truth is None else truth.cells_not_least(),
        "refined": None if truth is None or k is None else held_against_truth(truth, k, budget),
    }


def _narrowed(refined: dict[str, int] | None) -> str:
    """The share of cells that refinement narrows, and what of these is wrong."""
    if refined is None:
        return "-"
    return f"{refined['narrowed'] / refined['cells']:.2%}, {refined['wrong']} wrong"


def _singled_out(one: dict[str, Any]) -> str:
    """The share of rows singled out, and the cells whose labels are not the least, of which that may be wrong."""
    if one["singled_out"] is None:
        return "-"
    return f"{one['singled_out']:.1%}" + (f", {one['not_least']:,} not least" if one["not_least"] else "")


app = command_of(main)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.judge")
