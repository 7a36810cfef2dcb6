"""A policy to start from on disk: beside its level files, and never over what is there."""

from __future__ import annotations

import os
from pathlib import Path

from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.profiling.starter_policy import Skeleton


def policy_source(table: str, relation: Relation | FileRelation, folder: Path) -> str:
    """What a policy that lies in `folder` calls the table: a file's path is relative to the policy."""
    if isinstance(relation, Relation) or os.path.isabs(table):
        return table
    return Path(os.path.relpath(table, folder)).as_posix()


def refuse_folder(policy: Path) -> None:
    """Raise PolicyError if no file can be written there, because its folder is none."""
    if not policy.parent.is_dir():
        raise PolicyError([Problem("policy", f"there is no folder {policy.parent}", "make it, or name another")])


def write_skeleton(skeleton: Skeleton, policy: Path) -> list[Path]:
    """Write the policy and its level files beside it; returns their paths.

    Raises PolicyError, before anything is written, if one of them exists.
    """
    texts = {policy: skeleton.text, **{policy.parent / name: text for name, text in skeleton.files.items()}}
    if len(texts) <= len(skeleton.files):
        raise PolicyError([Problem("policy", f"{policy} is the name of a taxonomy's file", "name another")])
    there = [path for path in texts if os.path.lexists(path)]
    if there:
        raise PolicyError(Problem("policy", f"{path} exists", "name another folder or file") for path in there)
    for path, text in texts.items():
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    return list(texts)
