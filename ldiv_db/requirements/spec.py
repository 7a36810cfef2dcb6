"""Requirements as they are written, in a policy or on the command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ldiv_db.database.errors import Problem, nearest
from ldiv_db.requirements.base import REQUIREMENTS, Requirement
from ldiv_db.requirements.guarantees import Distribution
from ldiv_db.requirements.parameters import AUTO
from ldiv_db.requirements.values import ROWS_ALONE, Attribute

#: How people publish their rows: in their order, or one is known of whoever is sought; empty is neither.
RowsOf = Literal["", "order", "known"]


@dataclass(frozen=True)
class RequirementSpec:
    """A requirement as written: its name and its argument, with `auto` not yet resolved.

    `sensitive` names the attributes that it is for, none for all of them; `each` is `position`, `row`, or empty.
    """

    name: str
    argument: Any
    sensitive: tuple[str, ...] = ()
    others_known: bool = False
    each: str = ""

    @property
    def kind(self) -> type[Requirement]:
        """The class of that name; of what is none, which `problems` tells, a requirement without anything."""
        return REQUIREMENTS.get(self.name, Requirement)

    @property
    def written(self) -> dict[str, Any]:
        """The requirement as a policy writes it."""
        return self.rewritten({self.name: self.argument}, self.sensitive)

    def rewritten(self, written: Mapping[str, Any], sensitive: Sequence[str]) -> dict[str, Any]:
        """The requirement as a policy writes it, with another name and argument, and for these attributes."""
        beside = {"sensitive": list(sensitive), "others_known": self.others_known, "each": self.each}
        return {**written, **{key: said for key, said in beside.items() if said}}

    @property
    def is_auto(self) -> bool:
        """True if a parameter waits for the distribution of the source; false where it is written wrongly."""
        return self.name in REQUIREMENTS and self.kind.needs_source(self.argument)

    @property
    def by_name(self) -> dict[Any, Any]:
        """Its parameters by name, as they are written; raises ValueError where they are not what it takes."""
        return self.kind.by_name(self.argument)

    @property
    def counts_people(self) -> bool:
        """True if it asks for people of a population whom classes cover."""
        return isinstance(self.argument, Mapping) and "population" in self.argument

    def concerns(self, attribute: str) -> bool:
        """True if it is for the sensitive attribute."""
        return not self.sensitive or attribute.lower() in {name.lower() for name in self.sensitive}

    def problems(self, key: str, attribute: Attribute | None = None) -> list[Problem]:
        """Its problems; none if `resolve` will work for this attribute (or for none in particular)."""
        if self.name not in REQUIREMENTS:
            return [Problem(key, f"no requirement {self.name!r}", nearest(self.name, sorted(REQUIREMENTS)))]
        try:
            self.kind.read(self.argument, auto=2)
            if attribute is not None:
                self.provisional(attribute)
        except ValueError as error:
            about = f" ({attribute.name})" if attribute else ""
            return [Problem(f"{key}.{self.name}", f"{error}{about}")]
        return []

    def problems_among(self, key: str, sensitive: Collection[str], rows: RowsOf) -> list[Problem]:
        """Its problems in a policy of these sensitive attributes."""
        known = {name.lower() for name in sensitive}
        unknown = [
            Problem(f"{key}.sensitive", f"{name!r} is not sensitive", nearest(name, sensitive))
            for name in self.sensitive
            if name.lower() not in known
        ]
        return [*self.problems(key), *self.problems_of_each(key, rows), *unknown]

    def problems_of_each(self, key: str, rows: RowsOf) -> list[Problem]:
        """Why it cannot be asked at each position, or of each row, if it is, of people who publish `rows` so."""
        by_row, bounds = self.each == "row", self.kind.bounds_shares and self.kind.on_people == "counts"
        refused = (
            (not by_row and rows != "order", "goes with rows in their order", "`rows: aligned` and `order: COLUMN`"),
            (by_row and rows != "known", "of a row is of who knows one", "known: 1"),
            (self.kind.rows_only, "asks nothing of values, and people are the same at each position", "leave it out"),
            (self.kind.compares_with_table, "compares classes with people who lack some positions", "leave it out"),
            (by_row and not bounds, "of a row is a bound on how often people have a value", "frequency, or threshold"),
        )
        return [Problem(f"{key}.each", what, way_out) for is_so, what, way_out in refused if self.each and is_so][:1]

    def settled(self, parameters: Mapping[str, Any]) -> RequirementSpec:
        """The same with what `auto` was found to stand for, by the name of each parameter."""
        automatic = {name: parameters[name] for name, said in self.by_name.items() if said == AUTO}
        return replace(self, argument=self.by_name | automatic)

    def provisional(self, attribute: Attribute) -> Requirement:
        """The requirement on an attribute with 2 in place of `auto`: it names the same values."""
        return self._built(2, attribute)

    def resolve(self, distribution: Distribution | None, attribute: Attribute = ROWS_ALONE) -> Requirement:
        """The requirement on an attribute; `auto` becomes the largest l that its distribution allows, at least 2."""
        return self._built(distribution.auto_l if distribution else None, attribute)

    def _built(self, auto: int | None, attribute: Attribute) -> Requirement:
        values = self.kind.read(self.argument, auto)
        found = self.kind.build(values, attribute, self.others_known).exempting(attribute.harmless)
        return replace(found, each=self.each)


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
    kind = REQUIREMENTS.get(name, Requirement)
    return RequirementSpec(name, kind.parse(argument), (column,) if column else ())
