"""Written by `python -m tests.require_stub`: the calls of `require.py`, with their types."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from ldiv_db.requirements import RequirementSpec

Number = int | float | str | Decimal

def builder_name(name: str) -> str: ...
def TCloseness(
    t: Number,
    distance: str | None = None,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def BetaLikeness(
    beta: Number,
    kind: str | None = None,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def DeltaDisclosure(
    delta: Number,
    log: str | None = None,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def K(
    k: int | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Distinct(
    l: int | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def UniqueDistinct(
    l: int | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def PSensitive(
    p: int | Literal["auto"],
    k: int | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Entropy(
    l: Number | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Recursive(
    c: Number,
    l: int | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Threshold(
    default: Number | None = None,
    base: Number | None = None,
    absent: Literal["allow", "error"] | None = None,
    values: Mapping[Any, Number] | None = None,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Frequency(
    l: Number | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def AlphaK(
    alpha: Number,
    k: int | Literal["auto"],
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Range(
    k: int | Literal["auto"],
    e: Number,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Proximity(
    epsilon: Number,
    m: int,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def KMap(
    k: int | Literal["auto"],
    population: str,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def DeltaPresence(
    max: Number,
    population: str,
    min: Number | None = None,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def Risk(
    max: Number | None = None,
    average: Number | None = None,
    population: str | None = None,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def DistinctAlpha(
    l: int | Literal["auto"],
    alpha: Number,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def EntropyAlpha(
    l: Number | Literal["auto"],
    alpha: Number,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
def RecursiveAlpha(
    c: Number,
    l: int | Literal["auto"],
    alpha: Number,
    *,
    sensitive: str | Sequence[str] = (),
    others_known: bool = False,
    each: Literal["", "position"] = "",
) -> RequirementSpec: ...
