"""Rules on means and medians beside ranges, and on ranges with open ends: what their proofs do not cover."""

from __future__ import annotations

from ldiv_db.database.errors import nearest
from ldiv_db.policy.rule import PolicyRule, within

_ALONE, _LEAVE = "leave them out of `output`", "leave it out"
_TWICE, _WHOSE = "those of two releases tell who came and went", "they would tell whose rows are left out"
#: All of them.
CENTRE_RULES: tuple[PolicyRule, ...] = (
    *within(
        lambda p: bool(p.output.centres),
        "does not go with means and medians: ",
        (lambda p: p.decomposes, "algorithm.name", "{algorithm} publishes no ranges for them to lie in"),
        (lambda p: p.is_series, "key", _TWICE, _ALONE),
        (lambda p: p.target.if_exists == "append", "target.if_exists", _TWICE, _ALONE),
        (lambda p: p.transparent, "transparent", "its proof is about labels alone", _ALONE),
        (
            lambda p: p.individual is not None and p.individual.rows != "apart",
            "individual.rows",
            "they would tell how many rows each person has",
            "rows: apart",
        ),
        (lambda p: p.suppression is not None, "suppression", _WHOSE, _ALONE),
        (lambda p: p.nulls == "suppress", "nulls", _WHOSE, "nulls: value"),
        (lambda p: p.output.bounds, "output.bounds", "they stand beside a label", _LEAVE),
        (
            lambda p: [(n,) for n, spec in enumerate(p.require) if spec.counts_people],
            "require.{}",
            "people of a population are counted by ranges alone",
            _ALONE,
        ),
        (
            lambda p: [(n,) for n, qi in p.quasi_identifiers.items() if n in p.output.centres and qi.has_ends],
            "quasi_identifiers.{}",
            "they would tell numbers beyond `bottom` and `top`",
            _ALONE,
        ),
    ),
    PolicyRule(
        lambda p: [(n, nearest(n, p.quasi_identifiers)) for n in p.output.centres if n not in p.quasi_identifiers],
        "output.{}",
        "is no key, and no quasi-identifier of which it could be",
        "{1}",
    ),
    PolicyRule(
        lambda p: p.output.bounds and [(name,) for name, qi in p.quasi_identifiers.items() if qi.has_ends],
        "output.bounds",
        "does not go with the open ends of {}: two columns of numbers have none",
        _LEAVE,
    ),
)
