"""Requirements as they are written, in a policy or on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.errors import Problem, nearest
from ldiv_db.requirements.base import Attribute, Distribution, Requirement
from ldiv_db.requirements.closeness import TCloseness
from ldiv_db.requirements.counts import (
    AlphaK,
    DistinctL,
    EntropyL,
    FrequencyL,
    KAnonymity,
    PSensitiveK,
    RecursiveCL,
    UniqueDistinctL,
)
from ldiv_db.requirements.named import Named, read_named
from ldiv_db.requirements.threshold import ABSENT, BASE, DEFAULT, VALUES, Threshold
from ldiv_db.requirements.weighted import DistinctAlpha, EntropyAlpha, RecursiveAlpha

AUTO = "auto"
#: A part of thresholds on the command line: commas within double quotes are the value's own.
_THRESHOLD = re.compile(r'\s*"(?:[^"]|"")*"\s*=[^,]*|[^,]+')
#: The parameters that `auto` may stand for.
_AUTOMATIC = ("k", "l", "p")
REQUIREMENTS: dict[str, type[Requirement]] = {
    kind.name: kind
    for kind in (
        KAnonymity,
        DistinctL,
        UniqueDistinctL,
        EntropyL,
        RecursiveCL,
        FrequencyL,
        Threshold,
        AlphaK,
        PSensitiveK,
        DistinctAlpha,
        EntropyAlpha,
        RecursiveAlpha,
        TCloseness,
    )
}


@dataclass(frozen=True)
class RequirementSpec:
    """A requirement as written: its name and its argument, with `auto` not yet resolved.

    `sensitive` names the attributes that it is for, none for all of them.
    """

    name: str
    argument: Any
    sensitive: tuple[str, ...] = ()
    others_known: bool = False

    @property
    def is_auto(self) -> bool:
        """Whether a parameter waits for the distribution of the source; not, where it is written wrongly."""
        if self.name == Threshold.name:
            return isinstance(self.argument, Mapping) and BASE in self.argument
        try:
            return AUTO in [str(v) for k, v in self._written().items() if k in _AUTOMATIC]
        except (KeyError, ValueError):
            return False

    def concerns(self, attribute: str) -> bool:
        """Whether it is for the sensitive attribute."""
        return not self.sensitive or attribute.lower() in {name.lower() for name in self.sensitive}

    def problems(self, key: str, attribute: Attribute | None = None) -> list[Problem]:
        """What is wrong with it; empty if `resolve` will work for this attribute (or for none in particular)."""
        if self.name not in REQUIREMENTS:
            return [Problem(key, f"no requirement {self.name!r}", nearest(self.name, REQUIREMENTS))]
        try:
            values = self._values(auto=2)
            if attribute is not None or self.name == Threshold.name:
                REQUIREMENTS[self.name].build(values, attribute or Attribute(""), self.others_known)
        except ValueError as error:
            about = f" ({attribute.name})" if attribute else ""
            return [Problem(f"{key}.{self.name}", f"{error}{about}")]
        return []

    def resolve(self, distribution: Distribution | None, attribute: Attribute | None = None) -> Requirement:
        """The requirement on an attribute; `auto` becomes the largest l that its distribution allows, at least 2."""
        values = self._values(auto=distribution.auto_l if distribution else None)
        return REQUIREMENTS[self.name].build(values, attribute or Attribute(""), self.others_known)

    def _written(self) -> dict[str, Any]:
        """The parameters by name, as they are written; raises ValueError if one is missing or unknown."""
        kind = REQUIREMENTS[self.name]
        if kind is Threshold:
            return dict(self.argument) if isinstance(self.argument, Mapping) else {DEFAULT: self.argument}
        needed = [name for name in kind.fields if name not in kind.optional]
        if not isinstance(self.argument, Mapping):
            if len(needed) > 1:
                raise ValueError(f"takes {', '.join(needed)}, not {self.argument!r}")
            return {needed[0]: self.argument}
        unknown = [str(name) for name in self.argument if name not in kind.fields]
        if unknown:
            raise ValueError(f"has no parameter {unknown[0]!r} ({nearest(unknown[0], kind.fields)})")
        missing = [name for name in needed if name not in self.argument]
        if missing:
            raise ValueError(f"lacks {', '.join(missing)}")
        return dict(self.argument)

    def _values(self, auto: int | None) -> dict[str, Any]:
        """The parameters read and checked."""
        kind, written = REQUIREMENTS[self.name], self._written()
        if kind is Threshold:
            return written
        if self.is_auto and auto is None:
            raise ValueError("auto needs the distribution of the source")
        given = {k: auto if k in _AUTOMATIC and v == AUTO else v for k, v in written.items()}
        return {name: read(given[name]) for name, read in kind.fields.items() if name in given}


def parse_requirement(text: str) -> RequirementSpec:
    """A requirement from the command line: `distinct:3`, `recursive:c=2,l=3`, `threshold:0.5,HIV=0.1,null=0.2`.

    A value in double quotes is a text, whatever it means without: `threshold:0.5,"null"=0.1,"a, b"=0.2`. With `column=`
    before its name it is for that sensitive attribute alone: `disease=distinct:3`. Raises ValueError if it has no
    `name:argument` form.
    """
    name, colon, argument = text.partition(":")
    if not colon or not argument:
        raise ValueError(f"{text!r}: a requirement is written name:value, e.g. distinct:3")
    column, _, name = name.rpartition("=")
    sensitive = (column,) if column else ()
    if name == Threshold.name:
        return RequirementSpec(name, _thresholds(argument), sensitive)
    if "=" not in argument:
        return RequirementSpec(name, argument, sensitive)
    parameters: dict[str, str] = {}
    for part in argument.split(","):
        key, equals, value = part.rpartition("=")
        parameters[key.strip() if equals else _unnamed(name)] = value
    return RequirementSpec(name, parameters, sensitive)


def _thresholds(text: str) -> dict[str, Any]:
    """The words and values of thresholds; what is given twice is an error."""
    words: dict[str, str] = {}
    values: dict[Named, str] = {}
    for part in _THRESHOLD.findall(text):
        name, equals, theta = part.rpartition("=")
        word = name.strip() if equals else DEFAULT
        value = read_named(name)
        is_word = word in (DEFAULT, BASE, ABSENT)
        if word in words or (value in values and not is_word):
            raise ValueError(f"threshold: {part!r} is given twice")
        if is_word:
            words[word] = theta
        else:
            values[value] = theta
    return {**words, VALUES: values} if values else {**words}


def _unnamed(name: str) -> str:
    """The parameter that stands without its name among others: the threshold of all values, or the first."""
    kind = REQUIREMENTS.get(name)
    return next(iter(kind.fields), "default") if kind else "default"
