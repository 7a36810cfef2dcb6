"""A run's recoding as one SELECT on its source, to be run where the table lies.

What a class that violates its thresholds loses is worked out by that SELECT, on the rows that it finds; so it keeps the
thresholds also where the table has changed. Of a run that suppresses nothing it leaves out classes that violate them or
have too few rows or values; other requirements it names. A value without a label drops its row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog, migrate
from ldiv_db.database.catalog import catalog_table, named_table
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.dialects import written
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, refused
from ldiv_db.database.names import DIALECT, Relation, Value
from ldiv_db.database.queries import Where
from ldiv_db.database.templates import render
from ldiv_db.policy.document import Policy
from ldiv_db.policy.sensitive import resolve_all
from ldiv_db.recoding.branches import own_value, written_columns
from ldiv_db.recoding.rules import (
    KEEP,
    QUASI_IDENTIFIER,
    SENSITIVE,
    WEIGHT,
    GlobalRecoding,
    RecodedColumn,
    fetch_recoding,
)
from ldiv_db.requirements import HARMLESS, REQUIREMENTS, Attribute, Requirement
from ldiv_db.requirements.guarantees import Guarantee, together

#: The template of the recoding.
TEMPLATE = "recoding/statement/select_recoded"
#: Multiples of thresholds beyond this would not fit an integer together with counts of rows.
_FINEST = 10**9
#: The SELECT's comment on a requirement that it does not keep.
_NOT_KEPT = "-- {} is not kept on a table that has changed since the run: audit the result, e.g. with `ldiv check`."


@dataclass(frozen=True)
class Weight:
    """A threshold: its numerator over the common denominator, and a common multiple of all these over it."""

    weight: int
    spread: int
    value: Value = Value(None)  # noqa: RUF009 - frozen
    own: tuple[Weight, ...] = ()

    @property
    def is_null(self) -> bool:
        """True if it is that of NULL."""
        return self.value.value is None


@dataclass(frozen=True)
class Run:
    """A run of the ledger."""

    run_id: str
    algorithm: str
    source: str


def find_run(engine: Engine, start: str) -> Run:
    """The run whose id begins with `start`; raises PolicyError if there is none, or more than one."""
    found = []
    if "run" in migrate.held(engine) and start:
        rows = engine.columns(catalog_table(engine, "run"), "run_id", "algorithm", "source")
        found = [Run(*row) for row in rows if row[0].startswith(start)]
    if len(found) != 1:
        what = f"{len(found):,} runs begin with {start!r}" if found else f"no run {start!r} in the ledger"
        raise refused("RUN", what, "its id is in the result of `ldiv run` and in ldiv.run")
    return found[0]


def recoding_sql(
    engine: Engine, run: Run, dialect: str, source: str | None = None, policy: Policy | None = None
) -> str:
    """The SELECT in a dialect; `source` names the table there, `policy` is that of the run.

    The policy is needed only where values have thresholds of their own, which are not in the ledger. Raises
    PolicyError for a run whose recoding no such SELECT expresses. Comments before it name the requirements that hold
    on the table of the run alone.
    """
    text = written(render(TEMPLATE, recoding_params(engine, run, source, policy, dialect)), dialect)
    lost = {name for name, met in _met(engine, run) if not _kind(name).kept_by_select or "population" in met}
    comments = [_NOT_KEPT.format(name) for name in sorted(lost)]
    return "\n".join([*comments, text])


def recoding_params(
    engine: Engine, run: Run, source: str | None = None, policy: Policy | None = None, dialect: str = DIALECT
) -> dict[str, Any]:
    """Parameters of the template of the recoding; arguments and errors as of `recoding_sql`."""
    recoding = _fetch(engine, run)
    if any(HARMLESS in parameters for _, parameters in _met(engine, run)):
        what = "has harmless values, of which the ledger has only the number: no SELECT keeps what it promised"
        raise refused("RUN", what, "leave `harmless` out of the policy, and run it")
    thresholds = _thresholds(engine, run, policy, recoding)
    weights, common = _weights(thresholds, _sensitive(recoding), dialect) if thresholds else (None, 1)
    rows, values = (_least(engine, run, bound) for bound in ("rows", "values"))
    return {
        "source": _source(engine, run, recoding, source),
        "columns": written_columns(recoding, QUASI_IDENTIFIER, "q", dialect),
        "sensitive": written_columns(recoding, SENSITIVE, "s", dialect),
        "kept": written_columns(recoding, KEEP, "k", dialect),
        "thresholds": weights,
        "common": common,
        "least_rows": rows,
        "least_values": values,
        "scheme": recoding.scheme,
    }


def _fetch(engine: Engine, run: Run) -> GlobalRecoding:
    """The recoding of the run; raises PolicyError, saying why, if it has none."""
    if not catalog.table_exists(engine, catalog_table(engine, "run_recoding")):
        pending = bool(migrate.pending(engine))
        raise refused("RUN", "was made before recodings were kept", "run it again" if pending else "")
    recoding = fetch_recoding(engine, run.run_id)
    if recoding is None:
        what = (
            f"{run.algorithm} left nothing to write as a SELECT: what a value is published as depends on the rows of"
            " its class, as under every local recoding, or which rows are left out depends on more than thresholds and"
            " sizes of classes (CM with vioRec; allRec), or there are several sensitive columns, or"
            " values of one are read as one (`set`, `same`), or intervals of numbers that are not whole or have open"
            " ends, or bounds in two columns, or the run was made"
            " before recodings were kept"
        )
        raise refused("RUN", what, "cuts, incognito and tds recode globally")
    return recoding


def _source(engine: Engine, run: Run, recoding: GlobalRecoding, given: str | None) -> Relation:
    """The table of the rows; raises PolicyError for a file, and if none is given where the run had counts alone."""
    if given is None and any(column.role == WEIGHT for column in recoding.columns):
        what = f"the run was planned from counts, {run.source}"
        raise refused("--source", what, "name the table of the rows that were counted")
    name = given or run.source
    if FileRelation.of(name) is not None and not name.startswith('"'):
        raise refused("--source", f"{Path(name).name} is a file", "say what the table is called")
    return named_table(name, "--source")


# -- thresholds --------------------------------------------------------------------------------------


def _met(engine: Engine, run: Run) -> list[tuple[str, dict[str, Any]]]:
    """The requirements that the run met, by name, with their parameters as the ledger has them."""
    table, of_run = catalog_table(engine, "run_requirement"), [Where("run_id", run.run_id)]
    rows = sorted(engine.find(table, "requirement", "parameters", where=of_run))
    return [(name, json.loads(text)) for name, text in rows]


def _kind(name: str) -> type[Requirement]:
    """The class of a requirement in the ledger; a requirement without anything if no policy may ask for it."""
    return REQUIREMENTS.get(name, Requirement)


def _least(engine: Engine, run: Run, bound: str) -> int | None:
    """The most `rows` or `values` that a requirement of the run asks of a class; None if none asks for any."""
    met = [(_kind(name).bounds_below.get(bound), parameters) for name, parameters in _met(engine, run)]
    found = [int(parameters[name]) for name, parameters in met if name in parameters]
    return max(found, default=None)


def _thresholds(engine: Engine, run: Run, policy: Policy | None, recoding: GlobalRecoding) -> Guarantee | None:
    """The shares that the requirements of the run allow, each the least; None if none of them says any."""
    found: list[Guarantee] = []
    for name, parameters in _met(engine, run):
        if "base" in parameters:
            raise _from_base("RUN")
        if (share := _kind(name).recorded_share(parameters)) is not None:
            found.append(Guarantee(share=share))
    found += [requirement.promise() for requirement in _own(engine, run, policy, recoding)]
    return together(found) if found else None


def _own(engine: Engine, run: Run, policy: Policy | None, recoding: GlobalRecoding) -> list[Requirement]:
    """The requirements that give values thresholds of their own, out of the policy, which must be that of the run."""
    wanted = [(name, found) for name, found in _met(engine, run) if found.get("own_thresholds")]
    if not wanted:
        return []
    if policy is None:
        what = "values have thresholds of their own, which are not in the ledger"
        raise refused("--policy", what, "name the file of the run's policy")
    column = _sensitive(recoding)
    wanted_specs = [spec for spec in policy.require if spec.name in dict(wanted)]
    specs = resolve_all(engine, wanted_specs, {column.name: Attribute(column.name, type=column.type)})[column.name]
    found = [requirement for requirement in specs if requirement.named]
    if any("base" in requirement.shown for requirement in specs):
        raise _from_base("--policy")
    if sorted(_sorted(one.shown) for one in found) != sorted(_sorted(parameters) for _, parameters in wanted):
        raise refused("--policy", "has other thresholds than the run")
    return found


def _sensitive(recoding: GlobalRecoding) -> RecodedColumn:
    (column,) = [column for column in recoding.columns if column.role == SENSITIVE]
    return column


def _from_base(key: str) -> PolicyError:
    what = "thresholds from a base follow from the rows that the run had, which are not in the ledger"
    return refused(key, what, "write the thresholds out in the policy, and run it")


def _sorted(parameters: Mapping[str, Any]) -> str:
    return json.dumps({name: float(value) for name, value in parameters.items()}, sort_keys=True)


def _weights(thresholds: Guarantee, column: RecodedColumn, dialect: str) -> tuple[Weight, int]:
    """The thresholds over their common denominator, and that; raises PolicyError if products would overflow."""
    of_values = dict(thresholds.shares)
    every = [thresholds.share, *of_values.values()]
    common = lcm(*(theta.denominator for theta in every))
    multiple = lcm(*(int(theta * common) for theta in every))
    if max(common, multiple) > _FINEST:
        raise refused("RUN", "has thresholds of so many digits that their products would overflow")

    def weight(theta: Fraction, value: Value = Value(None)) -> Weight:  # noqa: B008 - frozen
        number = int(theta * common)
        return Weight(number, multiple // number, value)

    written = {name: Value(None) if name is None else own_value(column, name, dialect) for name in of_values}
    own = [weight(of_values[name], value) for name, value in written.items() if value is not None]
    return replace(weight(thresholds.share), own=tuple(own)), common
