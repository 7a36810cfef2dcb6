"""Runs, releases, plans and variants as a screen shows them: lines, and tables of counts.

Each form yields its lines and tables in their order; `forms.py` enters them. Seeds are shown to whoever asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ldiv_db.database.errors import count_phrase, people_phrase, rows_phrase
from ldiv_db.display import Part, facts_of, table_of
from ldiv_db.policy.quasi_identifiers import written
from ldiv_db.policy.sensitive import asked_l
from ldiv_db.publishing import ledger
from ldiv_db.publishing.result import CLASSES_MADE, DISTINCT_CLASSES, Example, Result
from ldiv_db.reporting.table_text import (
    answers_in_words,
    class_size_of,
    notes_text,
    number_or_dash,
    sizes_in_words,
    tables_of,
    told_in_words,
    verdicts_text,
    yes_or_no,
)
from ldiv_db.running.estimate import about, size
from ldiv_db.running.preview import describe_plan, sent

if TYPE_CHECKING:  # of what is shown, which is there
    from ldiv_db.database.templates import Statement
    from ldiv_db.publishing.inference import Inference
    from ldiv_db.reporting.verification import Verification
    from ldiv_db.requirements import Requirement
    from ldiv_db.running.exploring.outcomes import Exploration, VariantOutcome
    from ldiv_db.running.preparation import Preparation
    from ldiv_db.running.tables import PreparedTables
    from ldiv_db.running.tables_apart import PlansApart


def result_text(
    result: Result, show_seed: bool = False, statements: Sequence[Statement] | None = None
) -> Iterator[Part]:
    """What a run lost and inferred, its audit's verdicts, what releases reveal together, notes, and SQL if given."""
    facts = [*(_night_facts(result.figures) if result.figures else _result_facts(result))]
    seed = [("seed", str(result.seed))] if show_seed else []
    yield facts_of(f"{result.source} → {result.target}", [*facts, *seed])
    yield from examples_text(result.examples)
    if noise := result.figures.get("noise"):
        yield table_of("what was lost to noise", _NOISE, [_noise(one) for one in noise])
    if result.bound:
        yield from notes_text(result.bound.said(result.comparable_loss))
    if result.tables:
        yield tables_of([one.as_dict() for one in result.tables])
    yield from inferred_text(result.figures.get("inferred", [inferred.as_dict() for inferred in result.inferred]))
    yield from verdicts_text(result.audits)
    if result.inference:
        yield from inference_text(result.inference)
    yield from notes_text(result.said)
    yield from _statements_text(statements)


def examples_text(examples: Sequence[Example]) -> Iterator[Part]:
    """A few rows side by side, each cell as it was and, where that is another text, as it is published."""
    if examples:
        heads = ("column", *(f"row {n}" for n, _ in enumerate(examples[0].before, 1)))
        pairs = [(one.column, zip(one.before, one.after, strict=True)) for one in examples]
        rows = [(name, *(was if was == now else f"{was} → {now}" for was, now in cells)) for name, cells in pairs]
        yield table_of("the same rows before → after", heads, rows)


def _result_facts(result: Result) -> Iterator[tuple[str, str]]:
    loss = result.loss
    yield "algorithm", result.algorithm + l_in_words(found.requirement for a in result.audits for found in a.verdicts)
    if result.expand:
        yield "view of rows with weights", result.expand
    yield "rows published", f"{loss.rows_published:,}"
    yield "rows suppressed", f"{loss.rows_suppressed:,}"
    if loss.cells_suppressed:
        yield "sensitive cells left blank", f"{loss.cells_suppressed:,}"
    yield DISTINCT_CLASSES, f"{loss.classes:,}"
    if loss.classes_made is not None:
        alike = "" if loss.classes_made == loss.classes else "; readers see those with equal labels as one"
        yield CLASSES_MADE, f"{loss.classes_made:,}{alike}"
    if result.tables:  # whose rows lie in several
        yield "people of a class", f"{loss.smallest_class} to {loss.largest_class}"
    else:
        yield class_size_of(any(audit.of_people for audit in result.audits)), sizes_in_words(loss)
    yield from told_in_words(loss.precision, most=3)
    yield from answers_in_words(loss, result.answers)
    if (told := loss.precision) and not result.tables:  # tables have different numbers of rows
        kept, lost = (100 * sum(of) / len(told) for of in ([p.exact for p in told], [1 - p.told for p in told]))
        yield "of 100 cells", f"{kept:.0f} keep their exact value, {lost:.0f} tell nothing"
    terms = f"LM {loss.lm_mean:.4f}, NCP {loss.ncp_mean:.4f}"
    yield "information lost", f"{loss.lm_mean:.1%} of a cell, on average ({terms})"
    yield from ((f"  {name}", f"{value:.1%}") for name, value in loss.lm_by_column.items())
    if loss.kl is not None:
        yield "KL divergence", loss.divergence
    yield from (_similar(vars(attack)) for attack in result.similarity)
    yield "seconds", f"{result.seconds:.2f}"
    yield "run", result.run_id


def _similar(attack: Mapping[str, Any]) -> tuple[str, str]:
    shown = f"of {rows_phrase(attack['rows_after'])}, of {attack['rows_before']:,} in the source"
    return f"category of {attack['sensitive']} revealed", shown


def l_in_words(requirements: Iterable[Requirement]) -> str:
    """What is added to the name of an algorithm: the l that is asked for, if any is."""
    l = asked_l(requirements)
    return "" if l is None else f", l = {l}"


def inferred_text(inferred: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """How quasi-identifiers generalise of which the policy does not say it, by their entries in a result."""
    if inferred:
        rows = [(one["column"], written(one["as"]), one["why"]) for one in inferred]
        yield table_of("inferred", ("column", "as", "why"), rows)


#: The figures of a release that are shown to people, and what they are called.
_FIGURES = {
    "rows_in": "rows of the source",
    "rows_of_table": "rows of the table",
    "rows_published": "rows of the source that are published",
    "rows_first_published": "  for the first time",
    "rows_placed": "  left over, put into a group",
    "rows_waiting": "rows waiting for a later release",
    "longest_wait": "  longest wait, in releases",
    "rows_changed": "published rows whose values have changed",
    "counterfeits": "values of deleted rows that stay (counterfeits)",
    "groups": "groups",
    "groups_new": "  new",
    "seconds": "seconds",
}
#: What they are called where rows wait before they join a group.
_FIGURES_OF_PLUS = _FIGURES | {"rows_placed": "  put into a group after waiting too long"}
_NOISE = ("attribute", "values", "changed to noise", "mean distance", "of random noise")


def _noise(lost: Mapping[str, Any]) -> tuple[str, ...]:
    counts, distances = (f"{lost[name]:,}" for name in ("values", "changed")), ("distance", "random_distance")
    return lost["attribute"], *counts, *(f"{lost[name]:.3f}" for name in distances)


def _night_facts(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, words in (_FIGURES_OF_PLUS if figures["algorithm"] == "decomposition_plus" else _FIGURES).items():
        if name in figures:
            value = figures[name]
            yield words, f"{value:.2f}" if isinstance(value, float) else f"{value:,}"
    if figures.get("loss_new"):
        yield "information lost by new rows", f"{figures['loss_new']['lm_mean']:.1%} of a cell (LM)"
    yield from map(_similar, figures.get("similarity", ()))


def inference_text(found: Inference) -> Iterator[Part]:
    """What comparing releases reveals of each attribute, and by which channels."""
    rows = [
        (name, str(limit), "by people" if best is None else f"{best:.4f}", yes_or_no(found.keeps(name)))
        for name, limit in found.limits.items()
        for best in [found.best_of(name)]
    ]
    title = f"what {len(found.releases)} releases reveal" if len(found.releases) > 1 else "what the release reveals"
    yield table_of(title, ("attribute", "at most", "best probability", "holds"), rows)
    yield from map(str, found.channels)
    yield from notes_text(f"{channel}, as the policy allows" for channel in found.allowed)
    if found.altered:
        yield f"{', '.join(found.altered)}: what was published is no longer what was audited by people"
    if found.ordered:
        yield f"{', '.join(found.ordered)}: {ledger.ORDERED}; {ledger.WITHDRAW}"


# -- plans, variants, and reports held against tables ------------------------------------------------


def plan_text(ready: Preparation, statements: Sequence[Statement] | None = None) -> Iterator[Part]:
    """The plan as tables, then the notes and the SQL if it is there."""
    document = describe_plan(ready)
    yield facts_of(f"{document['source']} → {document['target']}", _plan_facts(document))
    rows = [(c["column"], c["role"], c["generalised_by"] or "") for c in document["columns"]]
    yield table_of("columns", ("column", "role", "generalised by"), rows)
    yield from inferred_text(document["inferred"])
    if ready.bound:
        yield from notes_text(ready.bound.said())
    yield "a plan: nothing was written"
    yield from notes_text(document["notes"])
    yield from _statements_text(statements)


def tables_plan_text(ready: PreparedTables, statements: Sequence[Statement] | None = None) -> Iterator[Part]:
    """The plan of several tables: what is known of people, the rows of each table, then the notes."""
    document = describe_plan(ready)
    facts = [("algorithm", document["algorithm"]), ("people", f"{document['people']:,}")]
    facts.append((CLASSES_MADE, f"up to {document['classes_made']:,}"))
    for requirement in document["requirements"]:
        parameters = ", ".join(f"{name} = {value}" for name, value in requirement["parameters"].items())
        of = requirement["sensitive"] or "people without a sensitive value"
        facts.append(("requirement", f"{of}: {requirement['name']}: {parameters}"))
    yield facts_of(f"{document['source']} → {document['target']}", facts)
    yield tables_of(document["tables"])
    yield from inferred_text(document["inferred"])
    yield "a plan: nothing was written"
    yield from notes_text(document["notes"])
    yield from _statements_text(statements)


def plans_apart_text(ready: PlansApart, statements: Sequence[Statement] | None = None) -> Iterator[Part]:
    """The plan of each table, one after the other, then the SQL if it is there."""
    for plan in ready.plans.values():
        yield from plan_text(plan)
    yield from _statements_text(statements)


def _statements_text(statements: Sequence[Statement] | None) -> Iterator[str]:
    for statement in sent(statements or ()):
        yield f"\n-- {statement['template']}\n{statement['sql']};"


def _plan_facts(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    options = ", ".join(f"{name}: {value}" for name, value in document["options"].items())
    yield "algorithm", f"{document['algorithm']} ({options})"
    if "expand" in document:
        yield "view of rows with weights", document["expand"]
    if document["tries"]:
        yield "tries", ", ".join(document["tries"])
    if document["largest_l"] is not None:
        asked = "" if document["l"] is None else f"{document['l']}; "
        yield "l", f"{asked}up to {document['largest_l']} is feasible without suppression"
    people = f", of {people_phrase(document['people'])}; requirements count people" if "people" in document else ""
    different = f", {document['rows_different']:,} of them different" if "rows_different" in document else ""
    yield "rows of the source", f"{document['rows_in']:,}{different}{people}"
    most = "" if document["most_suppressed"] is None else f"; up to {document['most_suppressed']:,} are allowed"
    yield "rows suppressed", f"{document['rows_suppressed']:,}{most}"
    yield CLASSES_MADE, f"up to {document['classes_made']:,}"
    needs = document["needs"]
    efforts = {name: about(seconds) for name, seconds in document.get("efforts", {}).items()}
    told = ", ".join(f"{name} {time}" for name, time in efforts.items()) if len({*efforts.values()}) > 1 else ""
    yield "time", about(needs["seconds"]) + (f"; by effort: {told}" if told else "")
    yield "memory", f"about {size(needs['memory_bytes'])}; {size(needs['memory_limit_bytes'])} are allowed"
    yield "the release", f"about {size(needs['release_bytes'])}"
    for requirement in document["requirements"]:
        parameters = ", ".join(f"{name} = {value}" for name, value in requirement["parameters"].items())
        of = f"{requirement['sensitive']}: " if requirement["sensitive"] else ""
        strictest = f"; all rows as one class reach {requirement['strictest']}" if requirement["strictest"] else ""
        yield "requirement", f"{of}{requirement['name']}: {parameters}{strictest}"


#: What the risks of a variant are called.
_RISKS = {"posterior": "largest share", "prosecutor": "1 / smallest class"}


def exploration_text(found: Exploration) -> Iterator[Part]:
    """The variants that were rehearsed as a table, by risk and loss, then the others with their reasons."""
    from ldiv_db.running.exploring.outcomes import findings  # noqa: PLC0415 - which who has an exploration has imported

    if found.done:
        risks = ["posterior", "prosecutor"] if found.sensitive else ["prosecutor"]
        named = [_RISKS[risk] for risk in risks]
        headings = ("variant", "*", found.compared, *named, DISTINCT_CLASSES, "algorithm", "rows left out")
        title = f"{found.source}: {count_phrase(len(found.done), 'variant', 'variants')}, {rows_phrase(found.rows)}"
        best = {outcome.variant.number for outcome in found.frontier}
        rows = [_variant(found, one, risks, one.variant.number in best) for one in found.ranked]
        yield table_of(title, headings, rows)
    for outcome in found.outcomes:
        if outcome.loss is None:
            yield f"{outcome.variant.label}: {outcome.status}: {outcome.reason}"
    yield from findings(found)


def _variant(found: Exploration, outcome: VariantOutcome, risks: Sequence[str], is_best: bool) -> list[str]:
    loss = outcome.loss
    assert loss is not None  # noqa: S101 - it was rehearsed
    return [
        outcome.variant.label,
        "*" if is_best else "",
        f"{found.loss_of(outcome):.4f}",
        *(number_or_dash(getattr(outcome.risk, risk)) for risk in risks),
        f"{loss.classes:,}",
        outcome.algorithm,
        f"{loss.rows_suppressed:,}",
    ]


#: The differences that are listed on a screen.
_LISTED = 20


def verification_text(found: Verification, table: str = "the table") -> Iterator[Part]:
    """What was worked out again, what only the report's own code can tell, and the first differences."""
    if found.holds:
        yield f"the report is of {table}: {found.figures:,} figures recomputed, all equal"
    elif found.same_release:
        differ = f"{len(found.differences):,} of {found.figures:,} figures differ"
        yield f"the rows of {table} are those of the report, but {differ}"
    else:
        yield f"the report is not of {table}: its rows are different"
    if found.same_release:
        alone = ", ".join(f"{section} ({count:,})" for section, count in found.same_code.items())
        yield (
            f"{found.plain:,} of them were also computed by plain SQL on the release and the source; only the"
            f" program's own code checked the numbers of: {alone}"
        )
    for name, (old, new) in found.versions.items():
        yield f"note: {name} was {old}, and is {new}"
    if found.differences:
        rows = [(one.where, one.reported, one.found) for one in found.differences[:_LISTED]]
        listed = f"the first {_LISTED} of {len(found.differences):,}" if len(found.differences) > _LISTED else "all"
        yield table_of(f"differences, {listed}", ("figure", "in the report", "worked out again"), rows)
