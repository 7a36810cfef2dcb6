"""`python -m tests.benchmarks.attackers tables|rows|population`: figures of the page on attacks.

They know somebody's row in two tables, several rows of a person, or only that the rows are a sample of a population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer

import ldiv_db

app = typer.Typer(add_completion=False)
_CLINIC = """
    CREATE TABLE patients AS SELECT i AS nr, 20 + i * 37 % 60 AS age, 'w' || i % 5 AS ward,
    'd' || i * i % 997 % 15 AS diagnosis FROM range(600) AS r(i);
    CREATE TABLE claims AS SELECT nr, (nr * 53) % 97 AS zip, (nr * 29) % 12 AS month, diagnosis FROM patients;
    CREATE VIEW people AS SELECT p.nr, age, ward, zip, month FROM patients AS p JOIN claims USING (nr);
    CREATE SCHEMA alone; CREATE SCHEMA published
"""
_STAYS = (
    "CREATE TABLE stays AS SELECT i * i % 4849 AS patient, 20 + patient * 37 % 60 + i % 2 AS age,"
    " 'w' || patient % 7 AS ward, 'd' || i * 31 % 101 % 29 AS diagnosis FROM range(4000) AS r(i)"
)
_AGE_AND_WARD = {"age": {"numeric": True}, "ward": {"taxonomy": {"flat": True}}}
#: How the rows of a patient are published, and the further columns of the release.
KEPT: dict[str, tuple[str, dict[str, Any]]] = {
    "apart": ("apart", {}),
    "together": ("together", {}),
    "with a pseudonym": ("together", {"person": "patient_no"}),
}


def two_tables() -> tuple[Mapping[str, Any], Sequence[Any]]:
    """What two tables tell together that are each published alone, and the attacks on both as one release."""
    keys = {"patients": _AGE_AND_WARD, "claims": {"zip": {"numeric": True}, "month": {"numeric": True}}}
    required = {"require": [{"frequency": 3}, {"k": 4}], "algorithm": "topdown", "seed": 1}
    with duckdb.connect() as con:
        con.execute(_CLINIC)
        alone, tables = {}, {}
        for name, found in keys.items():
            columns = {"source": name, "quasi_identifiers": found, "sensitive": ["diagnosis"]}
            alone[name] = {"target": f"alone.{name}", "identifiers": ["nr"], **columns, **required}
            tables[name] = {"target": f"published.{name}", "person": "nr", **columns}
            ldiv_db.run(con, alone[name])
        knows: dict[str, Any] = {"known": "people", "also": "alone.claims", "also_policies": [alone["claims"]]}
        first = ldiv_db.attack(con, "alone.patients", policy=alone["patients"], **knows)
        (both,) = [attack for attack in first.attacks if attack.name == "composition"]
        together = {"individual": "nr", "tables": tables, "over_time": "independent", **required}
        ldiv_db.run(con, together)
        return both.figures, ldiv_db.attack(con, policy=together).attacks


def several_rows(kept: str) -> Any:
    """The attack by who knows several rows of a patient."""
    rows, output = KEPT[kept]
    policy: dict[str, Any] = {
        "source": "stays",
        "target": "published",
        "quasi_identifiers": _AGE_AND_WARD,
        "sensitive": "diagnosis",
    }
    policy |= {"require": [{"frequency": 4}], "algorithm": "topdown", "seed": 1, "output": output}
    asked = policy | {"individual": {"column": "patient", "rows": rows}}
    with duckdb.connect() as con:
        con.execute(_STAYS)
        ldiv_db.run(con, asked)
        (several,) = [
            one for one in ldiv_db.attack(con, "published", policy=asked).attacks if one.name == "several rows"
        ]
        return several


@app.command()
def tables() -> None:
    """Two tables of one clinic, published one by one and as one release."""
    alone, attacks = two_tables()
    print(alone)
    for attack in attacks:
        print(attack.title, attack.sensitive, [gain.gain for gain in attack.gains])


@app.command()
def rows() -> None:
    """Two, three and all rows of a patient."""
    for kept in KEPT:
        found = several_rows(kept)
        print(kept, [gain.gain for gain in found.gains], found.figures)


@app.command()
def population(
    database: Annotated[Path, typer.Argument(help="What `ldiv demo --directory` keeps.")] = Path("adult/adult.duckdb"),
) -> None:
    """How many people of Adult are unique, as samples of it tell."""
    with duckdb.connect(str(database), read_only=True) as con:
        for percent in (1, 5, 10, 20, 50):
            con.execute(
                "CREATE OR REPLACE TEMP TABLE drawn AS"
                f" SELECT * FROM adult ORDER BY md5(CAST(rowid AS VARCHAR)) LIMIT {30_162 * percent // 100}"
            )
            names = [name for (name, *_) in con.execute("DESCRIBE drawn").fetchall() if name != "occupation"]
            found = ldiv_db.profile(con, "drawn", qi=names, population_size=30_162).as_dict()["uniqueness"]
            estimates = {name: one["unique_people"] for name, one in found["population"]["estimates"].items()}
            print(percent, found["unique_rows"], estimates, found["population"]["model"])


if __name__ == "__main__":
    app()
