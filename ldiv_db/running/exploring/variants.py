"""Variants of a policy: other parameters, other algorithms, a column left out, a level of a taxonomy less.

Values and `*` of a coarser quasi-identifier stay what they are, so that losses keep their measure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ldiv_db.database.errors import refuse, refused
from ldiv_db.policy.changes import changed, requiring
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import TaxonomySpec
from ldiv_db.policy.resolve import QuasiColumn, Resolved
from ldiv_db.policy.settings import QuasiIdentifier
from ldiv_db.requirements.risk import RISK, bounded_risk
from ldiv_db.running.exploring.question import MOST_VARIANTS, ExploreRequest

#: A column of numbers has about so many of the ranges, and each of them so many of the narrowest where those are not
#: single numbers.
_RANGES, _NARROW = 10, 100
#: Up to this range whole numbers are told apart by themselves.
_WHOLE_NUMBERS = 10_000
#: How long stretches of time are where dates were published as ranges.
_STRETCHES = ["day", "month", "year"]

#: The smallest and the largest number of a column.
Bounds = Callable[[QuasiColumn], tuple[float, float]]


def coarser(qi: QuasiIdentifier, column: QuasiColumn, bounds: Bounds) -> dict[str, Any] | None:
    """The settings of the quasi-identifier by one level less, as a policy writes them; None if it has none to spare.

    Of plain numbers these are ranges of one width, of dates months and years.
    """
    settings = qi.model_dump(exclude_unset=True, exclude={"numeric", "taxonomy", "top", "bottom"})
    taxonomy = _ranges(qi, column, bounds) if qi.numeric else _without_lowest_level(qi.taxonomy, column)
    return settings | {"taxonomy": taxonomy} if taxonomy else None


def _without_lowest_level(spec: TaxonomySpec | None, column: QuasiColumn) -> dict[str, Any] | None:
    if spec is None:
        return None
    written = spec.model_dump(exclude_unset=True)
    if column.hierarchy.taxonomy is not None:
        return written | {"skip": spec.skip + 1} if column.hierarchy.taxonomy.skippable else None
    for key in ("prefix", "dates", "ranges"):
        levels = getattr(spec, key)
        if levels is not None and len(levels) > 1:
            return written | {key: [levels[0], *levels[2:]]}
    return None


def _ranges(qi: QuasiIdentifier, column: QuasiColumn, bounds: Bounds) -> dict[str, Any] | None:
    if column.column.is_time:
        return {"dates": _STRETCHES} if column.column.type == "DATE" else None
    if not column.column.is_number:
        return None
    smallest, largest = bounds(column)
    widths = _widths(Decimal(str(largest)) - Decimal(str(smallest)), column.column.is_integer)
    return {"ranges": widths, **qi.model_dump(include={"top", "bottom"}, exclude_none=True)} if widths else None


def _widths(domain: Decimal, whole: bool) -> Sequence[int | float]:
    """The widths of ranges for numbers of that domain, narrowest first; none if they are too few."""
    if not domain.is_finite() or domain <= 0:
        return []
    least = domain / _RANGES
    power = Decimal(1).scaleb(least.adjusted())
    wide = next(power * step for step in (1, 2, 5, 10) if power * step >= least)
    if whole and wide < 2:
        return []
    narrow = Decimal(1) if whole and domain <= _WHOLE_NUMBERS else wide / _NARROW
    return [_plain(narrow), _plain(wide)]


def _plain(width: Decimal) -> int | float:
    return int(width) if width == int(width) else float(width)


#: The l that are tried where nothing is asked for.
DEFAULT_L = (2, 3, 4, 5, 6, 7)


@dataclass(frozen=True)
class Variant:
    """A variant by its number from 1: what is varied, and the keys of the policy as they are in it.

    `varied` has `risk`, `l`, `k`, `algorithm`, `without` or `coarser`, a column each; nothing of the policy as written.
    """

    number: int
    policy: Policy
    varied: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The parameters that are varied, in a few words."""
        words = {"l": "l = {}", "k": "k = {}", "algorithm": "{}", "without": "without {}", "coarser": "coarser {}"}
        words[RISK] = "risk {}"
        return ", ".join(words[key].format(value) for key, value in self.varied.items()) or "as written"


#: What is varied, and the keys of a policy that say so.
Change = tuple[dict[str, Any], dict[str, Any]]


def list_variants(
    policy: Policy, asked: ExploreRequest, coarser_columns: Callable[[], Iterable[Change]]
) -> list[Variant]:
    """The variants, the policy as it is written first; raises PolicyError for what it has nothing of to vary.

    Where algorithms or risks are named, the first takes the place of the policy's. Each column is varied alone.
    """
    refuse(asked.problems())
    found: list[Variant] = []
    bases = _bases(policy, asked.risk)
    changes = (one for base in bases for one in _changes(changed(policy, base[1]), asked, coarser_columns, base))
    for varied, keys in changes:
        variant = Variant(len(found) + 1, changed(policy, keys), varied, keys)
        same = [number for number, earlier in enumerate(found) if variant.policy == earlier.policy]
        if not same:
            found.append(variant)
        elif not found[same[0]].varied:
            found[same[0]] = replace(found[same[0]], varied=varied)
        if len(found) > MOST_VARIANTS:
            raise refused("explore", f"these are more than {MOST_VARIANTS:,} variants", "ask for fewer")
    return found


def _bases(policy: Policy, risks: Iterable[Any]) -> Sequence[Change]:
    """The policy with each largest risk in place of its own, or as it is where none is asked for."""
    others = [spec.written for spec in policy.require if bounded_risk([spec]) is None]
    return [({RISK: bound}, {"require": [*others, {RISK: bound}]}) for bound in risks] or [({}, {})]


def _changes(
    policy: Policy, asked: ExploreRequest, coarser_columns: Callable[[], Iterable[Change]], base: Change
) -> Iterator[Change]:
    algorithms = [_merged(base, _algorithm(policy, name)) for name in asked.algorithms] or [base]
    by_default = DEFAULT_L if not asked.varies and _requiring(policy, "l", 2) else ()
    ls = _parameters(policy, "l", asked.l or by_default)
    ks = _parameters(policy, "k", asked.k)
    yield algorithms[0]
    for algorithm in algorithms:
        for values in _crossed(policy, ls, ks):
            yield _merged(algorithm, values)
    if "columns" in asked.vary:
        yield from (_merged(algorithms[0], change) for change in _left_out(policy))
    if "taxonomy" in asked.vary:
        yield from (_merged(algorithms[0], change) for change in coarser_columns())


def _merged(first: Change, second: Change) -> Change:
    return {**first[0], **second[0]}, {**first[1], **second[1]}


def _algorithm(policy: Policy, name: str) -> Change:
    """Another algorithm; the policy's own keeps its options, and is no change."""
    if policy.algorithm.name == name and policy.names_algorithm:
        return {}, {}
    return {"algorithm": name}, {"algorithm": name}


def _requiring(policy: Policy, name: str, value: int) -> list[dict[str, Any]] | None:
    return requiring(policy, lambda spec: spec.kind.l_parameter if name == "l" else name, value)


def _parameters(policy: Policy, name: str, given: Iterable[int]) -> list[int]:
    """The values of a parameter; raises PolicyError if no requirement has it."""
    values = list(dict.fromkeys(given))
    if values and _requiring(policy, name, values[0]) is None:
        asked = ", ".join(dict.fromkeys(spec.name for spec in policy.require)) or "nothing"
        hint = "vary k" if name == "l" and _requiring(policy, "k", 2) else "add a requirement that has one"
        raise refused(name, f"the policy requires {asked}, which has no {name}", hint)
    return values


def _crossed(policy: Policy, ls: Sequence[int], ks: Sequence[int]) -> Iterator[Change]:
    named = [[(name, value) for value in values] for name, values in (("l", ls), ("k", ks)) if values]
    for varied in map(dict, itertools.product(*named)):
        asking, keys = policy, dict[str, Any]()
        for name, value in varied.items():
            keys = {"require": _requiring(asking, name, value)}
            asking = changed(asking, keys)
        yield varied, keys


def _left_out(policy: Policy) -> Iterator[Change]:
    written = {name: qi.model_dump(exclude_unset=True) for name, qi in policy.quasi_identifiers.items()}
    for name in written if len(written) > 1 else ():
        others = {other: settings for other, settings in written.items() if other != name}
        keys = {"quasi_identifiers": others, "identifiers": [*policy.identifiers, name]}
        yield {"without": name}, keys


def coarser_by_one(resolved: Resolved, bounds: Bounds) -> Iterator[Change]:
    """Each quasi-identifier that has a level to spare with one fewer."""
    keys = resolved.policy.quasi_identifiers
    written = {name: qi.model_dump(exclude_unset=True) for name, qi in keys.items()}
    inferred = {one.column: one.settings for one in resolved.inferred}
    for column in resolved.source.quasi_identifiers:
        qi: QuasiIdentifier = keys[column.name].settled(**inferred.get(column.name, {}))
        settings = coarser(qi, column, bounds)
        if settings is not None:
            yield {"coarser": column.name}, {"quasi_identifiers": {**written, column.name: settings}}
