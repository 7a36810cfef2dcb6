"""The policy of a model of dbt's: what its config says, and the sources and targets that are dbt's to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldiv_db.database.documents import read_document
from ldiv_db.database.errors import Problem, nearest, refuse, refused
from ldiv_db.policy.parts import VALUES
from ldiv_db.policy.reading import Policy, load_policy


@dataclass(frozen=True)
class Model:
    """A model as dbt describes it.

    `source` and `target` are names as a policy has them. `policy` is the policy, without source and target, or the name
    of a file with one, looked for in `folders`, the model's own first. A series may begin in a `vacant` table. Of a
    policy of several tables, `tables` has the source and the target of each.
    """

    name: str
    source: str
    target: str
    policy: Mapping[str, Any] | str
    folders: Sequence[str]
    full_refresh: bool = False
    vacant: bool = False
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def policy_of(model: Model) -> tuple[Policy, Path]:
    """A model's policy with its places, and where its relative files lie; raises PolicyError for what no model has."""
    document, folder = read_policy_of(model)
    if document.get("tables") or model.tables:
        return load_policy({**document, "tables": _placed(document.get("tables") or {}, model)}), folder
    # A series goes on in its table, and takes that of nobody else.
    stays = bool(document.get("key")) and not model.vacant
    target = {"table": model.target, "if_exists": "fail" if stays else "replace"}
    policy = load_policy({**document, "source": model.source, "target": target})
    if policy.decomposes:
        what = f"{policy.algorithm.name} publishes several tables, and a model is one"
        raise refused("algorithm.name", what, "`ldiv run` publishes them, outside of dbt")
    if policy.is_series and model.full_refresh:
        what = "a series cannot be restarted: everybody would be published again, in other classes"
        raise refused("full_refresh", what, "say full_refresh: false in the model's config")
    return policy, folder


def _placed(tables: Any, model: Model) -> Any:
    """The tables of a policy, each with the source and the target that models say."""
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        return tables  # which is refused when it is read
    refuse(_misplaced(tables, model.tables))
    return {
        name: {**table, "source": place["source"], "target": {"table": place["target"], "if_exists": "replace"}}
        for name, table in tables.items()
        for place in [model.tables[name]]
    }


def _misplaced(tables: Mapping[str, Any], placed: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    """What models do not say of the tables of a policy, and the policy of models."""
    for name in sorted(placed.keys() - tables.keys()):
        yield Problem("tables", f"there is no {name}, of which a model speaks", nearest(name, tables))
    for name, table in tables.items():
        place = placed.get(name, {})
        if "source" not in place:
            hint = f"its SQL is {{{{ ldiv.release_of({name}=ref('MODEL'), …) }}}}"
            yield Problem(f"tables.{name}", "the model's SQL names no rows of it", hint)
        if "target" not in place:
            hint = "write one of that name: materialized: anonymized_table, {{ ldiv.table_of(ref('THIS_MODEL')) }}"
            yield Problem(f"tables.{name}", "no model is this table", hint)
        yield from _said(f"tables.{name}.", table, "leave it out: models say it")


def read_policy_of(model: Model) -> tuple[Mapping[str, Any], Path]:
    """The policy as it is written, and where its relative files lie; raises PolicyError if it says what dbt says."""
    document: Any = model.policy
    folder = Path(model.folders[0])
    if isinstance(document, str):
        paths = [Path(folder) / document for folder in model.folders]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise refused("policy", f"no file {document} in {' or '.join(model.folders)}")
        document, folder = read_document(path, "policy", VALUES), path.parent
    if not isinstance(document, Mapping):
        raise refused("policy", "is empty" if document is None else "is not a mapping of keys")
    refuse(_said("", document, "leave it out: the source is the model's SQL, the target {{ this }}"))
    return document, folder


def _said(where: str, part: Mapping[str, Any], hint: str) -> list[Problem]:
    """The places that a part of a policy names itself."""
    said = [key for key in ("source", "target") if key in part]
    return [Problem(f"{where}{key}", "is not set by the policy in dbt", hint) for key in said]
