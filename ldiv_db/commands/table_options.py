"""Options of commands that take a published table: its columns, its sensitive attributes, and what must hold of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.auditing.check import AuditRequest
from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text
from ldiv_db.database.errors import refused
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import Policy, read_policy, read_requirements, read_sensitive
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.values import read_named


@dataclass(frozen=True)
class AskedTable:
    """A published table: what must hold of it, and its columns, or the policy that says both."""

    require: Annotated[
        list[str] | None, typer.Option(help="A requirement as name:value, e.g. distinct:3; may be repeated.")
    ] = None
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="A sensitive attribute; may be repeated, and left out if only k is required."),
    ] = None
    qi: Annotated[list[str] | None, typer.Option(help="Quasi-identifiers, comma-separated or repeated.")] = None
    policy: Annotated[
        Path | None,
        typer.Option(help="The policy of the release: options that are not given, and what labels stand for."),
    ] = None

    @property
    def written(self) -> Policy | None:
        """The policy as it is read from its file."""
        return None if self.policy is None else read_policy(self.policy)


@dataclass(frozen=True)
class Attributes:
    """Settings of sensitive attributes; a text may start with the name of its attribute."""

    categories: Annotated[
        list[str] | None,
        typer.Option(
            help="Sensitive values by category, most sensitive first: a YAML list of lists, or a file of one."
            " With several sensitive attributes COLUMN=…."
        ),
    ] = None
    weights: Annotated[
        list[str] | None, typer.Option(help="Weights of the categories: uniform, {sensitivity: 2} or [0, .2, 1].")
    ] = None
    taxonomy: Annotated[
        list[str] | None, typer.Option(help="The taxonomy of the sensitive values: a name in the catalog, or a file.")
    ] = None
    harmless: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=VALUE: a sensitive value that needs no protection; its rows count. May be repeated. NULL is"
            ' null, the text null is "null".'
        ),
    ] = None
    same: Annotated[
        list[str] | None, typer.Option(help="Compare texts after these steps: trim, casefold, or both.")
    ] = None

    set: Annotated[
        list[str] | None,
        typer.Option(help='Count the members of sets: true for a list, of a text what stands between them: dx=",".'),
    ] = None

    def of(self, sensitive: Sequence[str]) -> dict[str, Sensitive]:
        """The settings of each sensitive attribute; raises PolicyError for what is said of none of them."""
        documents: dict[str, dict[str, Any]] = {name: {} for name in sensitive}
        for option in ("categories", "weights", "taxonomy", "harmless", "same", "set"):
            for text in getattr(self, option) or ():
                name, rest = _addressed(text, sensitive, option)
                documents[name][option] = _setting(option, rest, documents[name].get(option))
        return read_sensitive(documents)


@dataclass(frozen=True)
class Judged(Attributes, AskedTable):
    """Options for judging a table: its columns and sensitive attributes, and what attackers know of these."""

    others_known: Annotated[
        bool, typer.Option("--others-known", help="Take the other sensitive attributes as known to the attacker.")
    ] = False

    def request(self, table: str | None, qi: Sequence[str], asked: Mapping[str, Any]) -> AuditRequest:
        """What is asked of the table, whose columns `qi` are; raises PolicyError if nothing is."""
        return AuditRequest(table, qi, self.of(self.sensitive or []), self._requirements(), **asked)

    def _requirements(self) -> list[RequirementSpec]:
        if not self.require and self.policy is None:
            raise refused("require", "is missing", "say what must hold, e.g. distinct:3, or name a --policy")
        specs = read_requirements(self.require) if self.require else []
        return [replace(spec, others_known=spec.others_known or self.others_known) for spec in specs]


def _setting(option: str, text: str, earlier: Any) -> Any:
    """The option's text as a policy would hold it; harmless values are collected."""
    match option:
        case "categories":
            return _yaml(text, option, [()])  # all its scalars are texts
        case "weights":
            return _yaml(text, option)
        case "taxonomy":
            return {"file": text} if Path(text).is_file() else text
        case "set":
            return text.strip().lower() == "true" or text
        case "harmless":
            return [*(earlier or []), read_named(text)]
        case _:
            return [step.strip() for step in text.split(",")]


def _addressed(text: str, sensitive: Sequence[str], option: str) -> tuple[str, str]:
    for name in sensitive:
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    if not sensitive:
        raise refused(option, "is about a sensitive attribute", "name it")
    if len(sensitive) > 1:
        raise refused(option, "say for which sensitive attribute", f"e.g. {sensitive[0]}=…")
    return sensitive[0], text


def _yaml(text: str, option: str, texts: Sequence[Sequence[str]] = ()) -> Any:
    try:
        return parse_document(read_text(Path(text), POLICY_BYTES) if _is_path(text) else text, texts)
    except (OSError, ValueError) as error:
        raise refused(option, f"is neither YAML nor a file of YAML: it {error}") from error


def _is_path(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or with a character that no name has
        return False
