"""The demonstration: real data, a real policy, its release and the audit's verdict, in one call."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.context import Listener
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation, Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import Policy, parse_policy
from ldiv_db.publishing.result import Result
from ldiv_db.running.run import run

DATABASE_NAME, POLICY_NAME = "adult.duckdb", "policy.yml"
#: The training half of Adult is the first rows of its file.
TRAINING_ROWS = 32_561
#: The seed of runs on public data, here and in benchmarks: their figures are the same for everybody.
PUBLIC_SEED = 0
#: The l of classes of different values.
_L = 4

Rows = list[tuple[Any, ...]]
#: A table by its name, empty where there is one alone, with some of its columns and rows.
TableRows = tuple[str, Sequence[str], Rows]


@dataclass(frozen=True)
class Demo:
    """The demonstration: rows of each table before and after, and the result; `folder` is where it is kept, if it is.

    Of several tables `joined` has for each join how many rows the sources and the releases have in it, and `attackers`
    the result against each of whom a policy may protect.
    """

    policy: Policy
    result: Result
    before: Sequence[TableRows]
    after: Sequence[TableRows]
    folder: Path | None
    database: str = DATABASE_NAME
    joined: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    attackers: Mapping[str, Result] = field(default_factory=dict)


def demonstrate(
    l: int | None = None,
    select: str | None = None,
    directory: Path | None = None,
    listener: Listener | None = None,
    transparent: bool = False,
) -> Demo:
    """Anonymize Adult in a database of its own, which is gone on return unless `directory` is given.

    `l`, `select` and `transparent` change the policy, as `adult_policy` says. Raises PolicyError if the directory holds
    a demonstration already, InfeasibleError if the data cannot meet `l`; then nothing is kept.
    """
    document = adult_policy(l, select, transparent)
    with kept_in(directory, DATABASE_NAME) as folder:
        _write_policy(folder, {key: value for key, value in document.items() if key != "seed"})
        return _run(folder, parse_policy(document), directory, listener)


@contextmanager
def kept_in(directory: Path | None, database: str) -> Iterator[Path]:
    """A folder that is gone afterwards, or is `directory` where that is given and nothing was raised.

    Raises PolicyError if that has such a database, or a policy, already.
    """
    if directory is not None:
        there = [name for name in (database, POLICY_NAME) if (directory / name).exists()]
        refuse(Problem("directory", f"{directory / name} exists", "name another") for name in there)
    with tempfile.TemporaryDirectory(prefix="ldiv_") as scratch:
        yield Path(scratch)
        if directory is not None:
            shutil.copytree(scratch, directory, dirs_exist_ok=True)


def adult_policy(l: int | None = None, select: str | None = None, transparent: bool = False) -> dict[str, Any]:
    """The policy of the fixtures as a mapping, with another l of `frequency` if one is given.

    With `select` or `transparent` it is that of BSGI's paper: classes of l different values, by default 4, selected in
    that way. It has a seed that everybody knows, which is for public data alone.
    """
    document: dict[str, Any] = yaml.safe_load(_original_policy()) | {"seed": PUBLIC_SEED}
    if select is not None or transparent:
        document["require"] = [{"unique_distinct": l or _L}, {"frequency": l or _L}]
        document["algorithm"] = {"name": "bsgi", "select": select or "refine", "residue": "incorporate"}
    elif l is not None:
        document["require"] = [{"frequency": l} if "frequency" in found else found for found in document["require"]]
    return document | ({"transparent": True} if transparent else {})


def load_adult(engine: Engine, policy: Policy, rows: int = TRAINING_ROWS) -> Relation:
    """The policy's source, made in the database: its columns of Adult's first rows, without NULL."""
    source, columns = Relation.parse(str(policy.source)), [name for _, name in policy.roles()]
    file = FileRelation("read_parquet", str(_fixtures() / "adult.parquet"))
    engine.create(source, "running/demo/select_training", source=file, columns=columns, rows=rows)
    return source


def _fixtures() -> Path:
    return resource_folder("fixtures") / "adult"


def _original_policy() -> str:
    return (_fixtures() / POLICY_NAME).read_text(encoding="utf-8")


def _write_policy(folder: Path, document: dict[str, Any]) -> None:
    """The policy in `folder`, with the taxonomies that it names; the fixtures' own text if nothing was changed."""
    original = _original_policy()
    unchanged = document == yaml.safe_load(original)
    text = original if unchanged else yaml.safe_dump(document, sort_keys=False)
    (folder / POLICY_NAME).write_text(text, encoding="utf-8")
    shutil.copytree(_fixtures() / "taxonomies", folder / "taxonomies")


def _run(folder: Path, policy: Policy, directory: Path | None, listener: Listener | None) -> Demo:
    with open_database(folder / DATABASE_NAME, create=True, settings=Settings()) as connection:
        engine = Engine(connection)
        load_adult(engine, policy)
        result = run(connection, policy, folder, listener, show_values=True)  # public data
        # What is to be protected comes first: on a narrow screen the last columns have no room.
        names = [*policy.sensitive, *policy.quasi_identifiers]
        flow, half = EngineFlow(engine, "running/demo", columns=names), max(result.loss.classes // 2, 1)
        flow.know(keys=list(policy.quasi_identifiers), sensitive=next(iter(policy.sensitive)))
        release = Relation.parse(policy.target.table or "")
        after = flow.rows("list_classes", rows=release, classes=Value([half]))
    return Demo(policy, result, [], [("", names, after)], directory)


def next_steps(demo: Demo) -> list[str]:
    """Commands to try next."""
    if demo.folder is None and demo.joined:
        return ["ldiv demo --tables --directory clinic    keep the database and the policy, to look at and to change"]
    if demo.folder is None:
        return [
            "ldiv demo --directory adult    keep the database and the policy, to look at and to change",
            "ldiv demo --l 6                ask for more, and see what it costs",
            "ldiv --help                    commands for your own data",
        ]
    database, policy = demo.folder / demo.database, demo.folder / POLICY_NAME
    steps = [f"ldiv plan {database} {policy}", f"ldiv run {database} {policy}    (change the policy first)"]
    if demo.joined:
        return steps
    keys = ",".join(demo.policy.quasi_identifiers)
    required = " ".join(f"--require {spec.name}:{spec.argument}" for spec in demo.policy.require)
    return [
        *steps,
        f"ldiv check {database} {demo.policy.target.table} --qi {keys} \\",
        f"    --sensitive {next(iter(demo.policy.sensitive))} {required}",
        f"ldiv report {database} {demo.policy.target.table} --policy {policy} --out {demo.folder / 'report.html'}",
    ]
