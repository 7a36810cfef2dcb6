"""A sample of a task: some of its rows, drawn by the seed, as a task of their own.

Which algorithm loses least is a matter of how values are distributed, and a sample has that too; how much it loses is
not, as classes are narrower where there are more rows.

Candidates: the algorithms that may suit a task, in order of promise, and the work that each is.

Requirements on a population are for TDS alone, which knows whom its nodes of taxonomies cover. Individuals whose rows
must stay apart are for BSGI alone, and so are requirements that are not monotone, where classes of different values
keep them. Where shares are what makes classes large, its classes of different values are the smallest that will do, and
lost least, unless most rows stand in cells that are good as they are. Where classes are compared with the whole table,
those that keep its shares lost least. Peeling lost least where rows alone are counted, the top-down specialisation
under every other requirement that was measured (docs/benchmarks.md).

From counts: the algorithm for a source that only counts its rows, where the policy leaves it open.

A global recoding where every quasi-identifier has a taxonomy, since it can then be had as SQL that runs where the rows
are: `cuts` as long as its cuts can all be gone through, else `annealing`, and `tds` for more sensitive values than
these count. Otherwise `tp_plus`: numbers without a taxonomy, sets, and texts that are the same after some steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task, Traits, class_size
from ldiv_db.algorithms.baselines.annealing import Annealing
from ldiv_db.algorithms.baselines.tds import Tds
from ldiv_db.algorithms.bsgi.bsgi import LEAVES, Bsgi
from ldiv_db.algorithms.cuts.cuts import Cuts
from ldiv_db.algorithms.cuts.problem import MOST_COLUMNS
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.algorithms.local.peel import Peel
from ldiv_db.algorithms.local.stratified import Stratified
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.algorithms.tp.tp import TpPlus
from ldiv_db.database.errors import InfeasibleError, PolicyError, SuppressionError
from ldiv_db.database.templates import Value
from ldiv_db.recoding.axes import among

#: From so many rows on algorithms are tried on a sample, and the rows that it has.
LARGE, SAMPLE = 500_000, 50_000


def sampled(task: Task, most: int) -> Task:
    """The task of `most` rows, the same for any order of rows and number of threads; keys are compared as in all rows.

    For tasks without an individual.
    """
    params = {"rows": task.encoded.rows, "seed": Value(task.seed), "most": Value(most)}
    rows = task.engine.materialise("sample", "solving/draw_sample", **params)
    return replace(task, encoded=among(task.engine, task.encoded, rows), units=None)


#: From so many rows on that differ nothing is tried: the fastest runs.
MANY_ROWS = 5_000_000
#: The work of each a cell, in that of the quickest: as measured on Adult, rounded up.
WORK = {"bsgi": 1, "mondrian": 1, "topdown": 4, "stratified": 6, "peel": 8}


@dataclass(frozen=True)
class Candidate:
    """An algorithm with its options, and why it may be the one."""

    algorithm: Algorithm
    why: str

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


@dataclass(frozen=True)
class Checked:
    """A candidate that the counts do not rule out, and what they say of it."""

    candidate: Candidate
    feasible: Feasibility


def candidates_of(task: Task, suppress: bool) -> list[Candidate]:
    """Those that may suit the task, the most promising first; they leave rows out only if they may `suppress` them."""
    residue = {"residue": "suppress"} if suppress else {}
    if alone := _alone(task, residue):
        return [alone]
    bsgi = Candidate(Bsgi({}), "its classes of different values are the smallest that keep shares bounded")
    many = task.encoded.size >= MANY_ROWS
    listed = fast_candidates(task) if many else _promising(task, bsgi, Peel(residue))
    return _fitting(task, [*listed, *([leaving()] if suppress else [])])


def leaving() -> Candidate:
    """The one that leaves rows out where no other can do the task."""
    return Candidate(Bsgi({"residue": "suppress"}), LEAVES)


def _promising(task: Task, bsgi: Candidate, peeling: Peel) -> list[Candidate]:
    """All in their order: for peeling where it leaves rows out, what is left decides what it loses.

    Of many rows no node is cut by shares: every cut that is tried costs a pass.
    """
    peel = Candidate(peeling, "it looks for the cheapest of many ways to generalise")
    topdown = Candidate(
        TopDown({}), "it specialises as far as the requirements allow, all of which larger classes keep"
    )
    if peeling.options.residue == "suppress" or all(requirement.rows_only for requirement in task.requirements):
        return [peel, bsgi, topdown]
    is_first = shares_decide(task) and not _is_settled(task)
    listed = [bsgi, topdown, peel] if is_first else [topdown, bsgi, peel]
    if task.encoded.row_count >= LARGE:
        return listed
    stratified = Candidate(Stratified({}), "its classes keep the shares that they are compared with")
    compared = any(requirement.compares_with_table for requirement in task.requirements)
    return [stratified, *listed] if compared else [*listed, stratified]


def fast_candidates(task: Task) -> list[Candidate]:
    """As `candidates_of`, the quickest first: one of those whose work is that of the quickest."""
    if alone := _alone(task):
        return [alone]
    bsgi = Candidate(Bsgi({}), "it is quick, and its classes are the smallest that keep shares bounded")
    mondrian = Candidate(Mondrian({}), "it is the quickest")
    return _fitting(task, [bsgi, mondrian] if shares_decide(task) else [mondrian, bsgi])


def _fitting(task: Task, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that can take what the policy has at all; the first, which says why not, if none can."""
    return [found for found in candidates if not found.algorithm.unfit(task)] or [*candidates[:1]]


def _alone(task: Task, residue: dict[str, Any] | None = None) -> Candidate | None:
    """The candidate besides which no other can do the task; None if others can."""
    if population := next((r.named_population for r in task.requirements if r.named_population), ""):
        return Candidate(Tds({}), f"it knows whom of {population} its classes cover")
    why = _bsgi_alone(task)
    return Candidate(Bsgi(residue or {}), why) if why else None


def _bsgi_alone(task: Task) -> str:
    """The reason why BSGI alone can do the task; empty if others can."""
    promised = [requirement for requirement in task.requirements if requirement.unique_class_size() is not None]
    lone = [requirement.name for requirement in promised if not requirement.monotone]
    if lone:
        return f"{lone[0]} is not kept when classes are put together or split"
    return "it keeps the rows of an individual apart" if task.encoded.individual else ""


def shares_decide(task: Task) -> bool:
    """True if BSGI can meet the policy with classes as large as bounds of shares make them, three rows or more.

    Of two rows with different values there is no smaller class, but larger ones may hold equal rows.
    """
    bound = max((requirement.share_size for requirement in task.requirements), default=0)
    try:
        if bound < 3 or Bsgi({}).unfit(task) or class_size(task) != bound:
            return False
        Bsgi({}).check(task)
    except (InfeasibleError, PolicyError):
        return False
    return True


def _is_settled(task: Task) -> bool:
    """True if at least half of the rows stand in cells that bounds of shares allow as they are."""
    engine, encoded = task.engine, task.encoded
    size, codes = max(found.share_size for found in task.requirements), [axis.code for axis in encoded.axes]
    settled = []
    for attribute in encoded.sensitive:
        counts = encoded.count_cells(engine, attribute.code.name)
        settled.append(engine.scalar("solving/count_settled", counts=counts, codes=codes, size=size))
        engine.drop(counts)
    return bool(2 * min(settled) >= encoded.row_count)


def checked(task: Task, candidates: Sequence[Candidate]) -> list[Checked]:
    """Those that the counts do not rule out, one of each algorithm; raises what the first says if none is left."""
    found: list[Checked] = []
    refused: list[InfeasibleError | PolicyError] = []
    for candidate in candidates:
        if candidate.name in [earlier.candidate.name for earlier in found]:
            continue
        try:
            found.append(Checked(candidate, candidate.algorithm.checked(task)))
        except (InfeasibleError, PolicyError) as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def checked_within(task: Task, candidates: Sequence[Candidate]) -> list[Checked]:
    """As `checked`; where none is left, the one that leaves rows out, if the policy has a budget of these.

    Raises what `checked` does, or SuppressionError where the budget does not suffice.
    """
    try:
        return checked(task, candidates)
    except (InfeasibleError, PolicyError) as error:
        last = leaving()
        if task.suppression is None or last.algorithm.unfit(task):
            raise
        try:
            return checked(task, [last])
        except SuppressionError:
            raise
        except (InfeasibleError, PolicyError):
            raise error from None


#: So many cuts are gone through in seconds: Adult's taxonomies have a third of that.
MOST_CUTS = 10**9


class FromCountsOptions(Options):
    """None."""


class FromCounts(Algorithm):
    """The first of those that plan from counts that can meet the policy; it makes no classes of its own.

    With `sets` quasi-identifiers are published as sets, which no global recoding and no star can be; without
    `as_written` sensitive texts are compared after some steps, which no SELECT of a recoding does.
    """

    name = "auto"
    traits = Traits(counts=True, any_class=True, harmless=True, rows_alone=True)
    options_type: ClassVar[type[FromCountsOptions]] = FromCountsOptions

    def __init__(self, sets: bool = False, as_written: bool = True):
        super().__init__({})
        self._sets = sets
        self._as_written = as_written

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The first candidate that takes the policy, or the last, which says what is wrong; and why."""
        candidates = list(self._candidates(task))
        algorithm, why = next((one for one in candidates if _accepts_policy(one[0], task)), candidates[-1])
        return algorithm, f"algorithm {algorithm.name}: {why}"

    def _candidates(self, task: Task) -> Iterator[tuple[Algorithm, str]]:
        trees = [axis.taxonomy for axis in task.encoded.axes if axis.taxonomy is not None]
        if len(trees) == len(task.encoded.axes) and not self._sets and self._as_written:
            cuts = prod(tree.cuts for tree in trees)
            if all(axis.distribution.distinct <= MOST_COLUMNS for axis in task.encoded.sensitive):
                if cuts <= MOST_CUTS:
                    yield Cuts({}), f"it proves the best of {cuts:,} cuts, and plans from counts"
                else:
                    yield Annealing({}), "there are too many cuts to prove the best, and it plans from counts"
            yield Tds({}), "it takes the requirements that larger classes keep, and plans from counts"
        form = "ranges" if self._sets else "stars"
        yield TpPlus({"form": form}), "it takes what no global recoding can, and plans from counts"

    def check(self, task: Task) -> Feasibility:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].check(task)

    def run(self, task: Task) -> Plan:
        return self.chosen(task)[0].run(task)


def _accepts_policy(algorithm: Algorithm, task: Task) -> bool:
    """True if the algorithm takes the policy, whatever the counts allow."""
    try:
        algorithm.refuse_unfit(task)
        algorithm.check(task)
    except PolicyError:
        return False
    except InfeasibleError:
        return True
    return True
