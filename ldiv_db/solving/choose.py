"""Candidates: the algorithms that may suit a task, in order of promise, and the work that each is.

Requirements on a population are for TDS alone, which knows whom its nodes of taxonomies cover. Individuals whose rows
must stay apart are for BSGI alone, and so are requirements that are not monotone, where classes of different values
keep them. Where shares are what makes classes large, its classes of different values are the smallest that will do, and
lost least, unless most rows stand in cells that are good as they are, or have such neighbours. Where classes are
compared with the whole table, those that keep its shares lost least. Peeling lost least where rows alone are counted,
the top-down specialisation under every other requirement that was measured (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ldiv_db.algorithms import algorithm_of
from ldiv_db.algorithms.base import Algorithm, Feasibility, Task
from ldiv_db.algorithms.eligibility import LEAVES, class_size
from ldiv_db.algorithms.local.limits import passes_on
from ldiv_db.algorithms.neighbours.passes import PRIME, stride_of
from ldiv_db.database.errors import InfeasibleError, PolicyError, SuppressionError

#: From so many rows on algorithms are tried on a sample.
LARGE = 500_000
#: From so many rows on it is asked how often near rows have the same value, where shares decide.
NEAR = 50_000
#: From so many rows on that differ nothing is tried: the fastest runs.
MANY_ROWS = 5_000_000
#: The work of each a cell, in that of the quickest: as measured on Adult, rounded up.
WORK = {"bsgi": 1, "mondrian": 1, "topdown": 4, "stratified": 6, "peel": 8}


@dataclass(frozen=True)
class Candidate:
    """An algorithm with its options, and why it may be the one."""

    algorithm: Algorithm
    why: str
    #: What the counts say of it, once they do not rule it out.
    feasible: Feasibility | None = None

    @property
    def name(self) -> str:
        return self.algorithm.name

    @property
    def work(self) -> int:
        """Its work as a multiple of the quickest one; counted, not timed, so that a run can be repeated."""
        return WORK[self.name]

    @property
    def reason(self) -> str:
        """The note for the user where it is the only candidate."""
        return f"algorithm {self.name}: {self.why}"


def _candidate(name: str, why: str, **options: Any) -> Candidate:
    return Candidate(algorithm_of(name)(options), why)


def candidates_of(task: Task, suppress: bool) -> list[Candidate]:
    """Those that may suit the task, the most promising first; they leave rows out only if they may `suppress` them."""
    residue = {"residue": "suppress"} if suppress else {}
    if alone := _alone(task, residue):
        return [alone]
    bsgi = _candidate("bsgi", "its classes of different values are the smallest that keep shares bounded")
    many = task.encoded.size >= MANY_ROWS
    listed = fast_candidates(task) if many else _promising(task, bsgi, residue)
    return _fitting(task, [*listed, *([leaving()] if suppress else [])])


def leaving() -> Candidate:
    """The one that leaves rows out where no other can do the task."""
    return _candidate("bsgi", LEAVES, residue="suppress")


def _promising(task: Task, bsgi: Candidate, residue: Mapping[str, Any]) -> list[Candidate]:
    """All in their order: for peeling where it leaves rows out, what is left decides what it loses.

    Of many rows no node is cut by shares: every cut that is tried costs a pass.
    """
    peel = _candidate("peel", "it looks for the cheapest of many ways to generalise", **residue)
    topdown = _candidate("topdown", "it specialises as far as the requirements allow, all of which larger classes keep")
    if residue or all(requirement.rows_only for requirement in task.requirements):
        return [peel, bsgi, topdown]
    listed = [bsgi, topdown, peel] if shares_come_first(task) else [topdown, bsgi, peel]
    if task.encoded.row_count >= LARGE:
        return listed
    stratified = _candidate("stratified", "its classes keep the shares that they are compared with")
    if task.compares_with_table:
        return [peel, stratified, topdown, bsgi] if passes_on(task) else [stratified, *listed]
    return [*listed, stratified]


def fast_candidates(task: Task) -> list[Candidate]:
    """As `candidates_of`, the quickest first: one of those whose work is that of the quickest."""
    if alone := _alone(task):
        return [alone]
    bsgi = _candidate("bsgi", "it is quick, and its classes are the smallest that keep shares bounded")
    mondrian = _candidate("mondrian", "it is the quickest")
    return _fitting(task, [bsgi, mondrian] if shares_decide(task) else [mondrian, bsgi])


def _fitting(task: Task, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that can take what the policy has at all; the first, which says why not, if none can."""
    return [found for found in candidates if not found.algorithm.unfit(task)] or [*candidates[:1]]


def _alone(task: Task, residue: dict[str, Any] | None = None) -> Candidate | None:
    """The candidate besides which no other can do the task; None if others can."""
    if task.cross:
        return _candidate("topdown", "it specialises every cell of `tables_of` by itself, in the time of one")
    if population := next((r.named_population for r in task.requirements if r.named_population), ""):
        return _candidate("tds", f"it knows whom of {population} its classes cover")
    why = "it keeps the rows of an individual apart" if task.encoded.individual else ""
    promised = [requirement for requirement in task.requirements if requirement.unique_class_size() is not None]
    if lone := [requirement.name for requirement in promised if not requirement.monotone]:
        why = f"{lone[0]} is not kept when classes are put together or split"
    return _candidate("bsgi", why, **(residue or {})) if why else None


def shares_decide(task: Task) -> bool:
    """True if BSGI can meet the policy with classes as large as bounds of shares make them, three rows or more.

    Of two rows with different values there is no smaller class, but larger ones may hold equal rows.
    """
    bound = max((requirement.share_size for requirement in task.requirements), default=0)
    try:
        bsgi = algorithm_of("bsgi")({})
        if bound < 3 or bsgi.unfit(task) or class_size(task) != bound:
            return False
        bsgi.check(task)
    except (InfeasibleError, PolicyError):
        return False
    return True


def shares_come_first(task: Task) -> bool:
    """True if BSGI is the most promising: where shares decide, and neither equal nor near rows keep to them already."""
    return shares_decide(task) and not _is_settled(task) and not _differ_nearby(task)


def _is_settled(task: Task) -> bool:
    """True if at least half of the rows stand in cells that bounds of shares allow as they are."""
    size = max(found.share_size for found in task.requirements)
    encoded, find = task.encoded, partial(_count_settled, task, size)
    settled = task.engine.remembered(encoded.counted, find, encoded.axes, encoded.sensitive, size)
    return 2 * settled >= encoded.row_count


def _differ_nearby(task: Task) -> bool:
    """True if as many near rows of a large table as a class must have differ at least as often as not.

    Top-down classes are about as small then. Where three neighbours differed in 63 % of 50,000 rows and in 59 % of
    300,000 they lost .048 and .033 in place of .061 and .036; where in 42 % to 30 % of 50,000 to 200,000, .072 to .075
    in place of .052 to .067, and where four did in 38 % of 300,000, .086 in place of .055. It follows from how often
    two are alike.
    """
    if task.encoded.row_count < NEAR:
        return False
    size = max(found.share_size for found in task.requirements)
    encoded, rows = task.encoded, task.engine.count(task.encoded.counted)
    find = partial(_count_alike, task)
    alike = task.engine.remembered(encoded.counted, find, "alike", encoded.axes, encoded.sensitive)
    pairs = size * (size - 1) // 2
    return bool(2 * (rows - alike) ** pairs >= rows**pairs)


def _count_alike(task: Task) -> int:
    """The rows whose sensitive value is that of the row before, in the order of the codes, the coarsest first."""
    engine, encoded = task.engine, task.encoded
    codes = [axis.code for axis in sorted(encoded.axes, key=lambda axis: engine.count(axis.dictionary))]
    params = {"rows": encoded.counted, "codes": codes, "sensitive": encoded.sensitive, "stride": stride_of(0)}
    return int(engine.scalar("solving/count_alike", **params, prime=PRIME))


def _count_settled(task: Task, size: int) -> int:
    """The rows in cells that bounds of shares by one sensitive attribute allow, of the one that allows the fewest."""
    engine, encoded, settled = task.engine, task.encoded, list[int]()
    codes = [axis.code for axis in encoded.axes]
    for attribute in encoded.sensitive:
        counts = encoded.count_cells(engine, attribute.code.name)
        settled.append(engine.scalar("solving/count_settled", counts=counts, codes=codes, size=size))
        engine.drop(counts)
    return min(settled)


def checked_within(task: Task, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that the counts do not rule out, one of each algorithm.

    Where none is left it is the one that leaves rows out, if the policy has a budget of these. Raises what the first
    candidate says, or SuppressionError where the budget does not suffice.
    """
    found: list[Candidate] = []
    refused: list[InfeasibleError | PolicyError] = []
    for candidate in candidates:
        if candidate.name in [earlier.name for earlier in found]:
            continue
        try:
            found.append(replace(candidate, feasible=candidate.algorithm.checked(task)))
        except (InfeasibleError, PolicyError) as error:
            refused.append(error)
    if found:
        return found
    last = leaving()
    if task.suppression is None or last.algorithm.unfit(task):
        raise refused[0]
    try:
        return [replace(last, feasible=last.algorithm.checked(task))]
    except SuppressionError:
        raise
    except (InfeasibleError, PolicyError):
        raise refused[0] from None
