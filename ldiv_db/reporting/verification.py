"""A report held against the table that it is said to be of.

Every number is worked out again by the code that made the report, which finds changes in the report or in the table,
but no mistake of that code. So plain counts of the release and the source check what they can reach: they use no
template, code or reading of labels of audits, attacks and measures (equal texts of a sensitive column are read by the
policy, as everywhere). The verification names the sections whose numbers have no such second source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Listener, working_engine
from ldiv_db.database.data_files import Table
from ldiv_db.database.equality import members_of, read_as_one, read_exactly
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier
from ldiv_db.display import Printed
from ldiv_db.measuring.uniqueness import RARE
from ldiv_db.policy.context import ReleaseContext
from ldiv_db.policy.reading import Policy
from ldiv_db.policy.settings import QuasiIdentifier
from ldiv_db.reporting.evidence import FORM, Document, document_of
from ldiv_db.reporting.request import OF_THE_SOURCE, QUOTED, ReportQuestion, read_again, written_policy
from ldiv_db.reporting.subject import Reported, ReportSubject, opened

Figures = Iterator[tuple[str, Any]]
_PROSECUTOR = "identifiability.risks[0]"


def counted_plainly(subject: Reported, document: Document) -> dict[str, Any]:
    """The figures by their places in the document, which says how they are laid out (bins); of several tables rows."""
    if not isinstance(subject, ReportSubject):
        return dict(_rows_of_tables(subject, document))
    with ExitStack() as stack:
        counting = _Counting(subject, document, stack)
        return dict(counting.figures())


def _rows_of_tables(subject: Reported, document: Document) -> Figures:
    counts = {name: subject.engine.count(rows) for name, rows in subject.targets.items()}
    members = [name for name in counts if not document["policy"]["tables"][name].get("public")]
    people = sum(counts[name] for name in members)
    yield from {"statement.rows": people, "attacks.rows": people, "annex.release.rows": sum(counts.values())}.items()
    for number, rows in enumerate(counts.values()):
        yield f"annex.release.tables[{number}].rows", rows
    if subject.sources is None:
        return
    before = {name: subject.engine.count(rows) for name, rows in subject.sources.items()}
    yield "source.content.rows", sum(before.values())
    for number, name in enumerate(members):
        place = f"source.utility.tables[{number}]"
        yield f"{place}.rows_in", before[name]
        yield f"{place}.rows_published", counts[name]
        yield f"{place}.rows_suppressed", max(0, before[name] - counts[name])


class _Counting:
    def __init__(self, subject: ReportSubject, document: Document, stack: ExitStack):
        self._subject, self._document, self._engine, self._stack = subject, document, subject.engine, stack
        self._same = subject.question.same
        self._release = self._read(subject.table)
        self._flow = EngineFlow(subject.engine, "reporting/plainly", release=self._release)
        self._flow.know(rare=RARE, threshold=subject.asked.high)

    def _read(self, table: Table) -> Table:
        """The table with texts that are one as one, compared by bytes."""
        read = self._stack.enter_context(read_as_one(self._engine, table, self._same))
        return self._stack.enter_context(read_exactly(self._engine, read))

    def figures(self) -> Figures:
        question = self._subject.question
        classes = [*question.quasi_identifiers, *question.ids]
        released = self._groups(self._release, classes)
        yield from _of_release(released)
        if question.position is None:  # else classes are of sequences of rows
            whose = self._groups(self._release, classes, question.individual)
            yield "statement.classes", whose["groups"]
            yield from _of_groups(_PROSECUTOR, whose)
            yield "statement.largest_risk", 1 / whose["least"] if whose["least"] else None
        if question.suppressed == "judge" and question.individual is None:
            yield from self._shares(classes)
            yield "classes.sizes.least", released["least"] or 0
            yield "classes.sizes.most", released["most"] or 0
        if self._subject.people is not None and self._document["source"]:
            yield from self._of_source(self._read(self._subject.people), released)

    @property
    def _quasi_identifiers(self) -> Mapping[str, QuasiIdentifier]:
        policy = self._subject.asked.policy
        return policy.quasi_identifiers if policy else {}

    def _groups(self, table: Table, names: Sequence[str], person: str | None = None) -> dict[str, int]:
        return self._flow.record("count_groups", source=table, columns=names, person=person and Identifier(person))

    def _shares(self, classes: Sequence[str]) -> Figures:
        for name, bins in self._document["classes"]["largest_shares"].items():
            sets = members_of(self._same[name]) is not None
            rows = self._flow.rows("count_frequent", columns=classes, sensitive=name, bins=len(bins), sets=sets)
            found = dict(rows)
            for place in range(len(bins)):
                yield f"classes.largest_shares.{name}[{place}]", found.get(place, 0)

    # -- the source ------------------------------------------------------------------------------------

    def _of_source(self, source: Table, released: Mapping[str, int]) -> Figures:
        names = list(self._quasi_identifiers)
        found = self._groups(source, names)
        if self._subject.question.individual is None:
            yield from _of_groups("source.risk_before", found)
        for key, of in {"rows": "rows", "combinations": "groups", "unique_rows": "", "rare_rows": ""}.items():
            yield f"source.uniqueness.{key}", found[of or key]
        for name in self._document["source"]["uniqueness"]["unique_without"]:
            without = self._groups(source, [other for other in names if other.lower() != name.lower()])
            yield f"source.uniqueness.unique_without.{name}", without["unique_rows"]
        suppressed = max(0, found["rows"] - released["rows"])
        utility = "source.utility"
        yield "source.content.rows", found["rows"]
        yield f"{utility}.rows_in", found["rows"]
        yield f"{utility}.rows_suppressed", suppressed
        yield f"{utility}.rows_added", max(0, released["rows"] - found["rows"])
        yield f"{utility}.loss.dm", released["squares"] + suppressed * found["rows"]
        if found["rows"] == released["rows"] and not self._document["source"]["utility"]["cells_suppressed"]:
            yield from self._of_columns(source, found["rows"])

    def _of_columns(self, source: Table, rows: int) -> Figures:
        """The columns of a release that has all rows of its source, and all their sensitive values."""
        kinds = {column.name.lower(): column for column in columns_of(self._engine, source)}
        published = {column.name.lower() for column in columns_of(self._engine, self._release)}
        for number, spread in enumerate(self._document["source"]["utility"]["spreads"]):
            column, place = kinds[spread["column"].lower()], f"source.utility.spreads[{number}]"
            if spread["role"] == "sensitive":
                for bin_, before, after, differing in self._bins(source, spread, by_frequency=True):
                    yield f"{place}.before[{bin_}]", before
                    if not differing:  # else it matters which of two values of the same frequency is the first
                        yield f"{place}.after[{bin_}]", after
            elif self._quasi_identifiers[spread["column"]].numeric:
                for bin_, before, *_ in self._bins(source, spread, by_frequency=False):
                    yield f"{place}.before[{bin_}]", before
                if column.name.lower() in published and (column.is_number or column.kind == "date"):
                    yield from self._ranges(source, spread["column"], column.kind == "date", rows)

    def _bins(self, source: Table, spread: Mapping[str, Any], by_frequency: bool) -> list[tuple[Any, ...]]:
        edges = spread["edges"]
        bins = [(i, edges[i], edges[i + 1] - 1) for i in range(len(edges) - 1)]
        loaded = self._engine.load("bins", {"bin": "INTEGER", "low": "BIGINT", "high": "BIGINT"}, bins)
        how = {"column": spread["column"], "by_frequency": by_frequency}
        return self._flow.rows("count_values", bins=loaded, source=source, **how)

    def _ranges(self, source: Table, name: str, days: bool, rows: int) -> Figures:
        """The loss of a column of numbers or days, if all its labels can be read."""
        loss = self._flow.record("sum_ranges", source=source, column=name, days=days)["loss"]
        if loss is not None:
            yield f"source.utility.loss.lm_by_column.{name}", loss / rows


def _of_release(found: Mapping[str, int]) -> Figures:
    for place in ("statement.rows", "attacks.rows", "annex.release.rows", "source.utility.rows_published"):
        yield place, found["rows"]
    yield "source.utility.classes", found["groups"]
    yield "source.utility.avg_class_size", found["rows"] / found["groups"] if found["groups"] else 0


def _of_groups(place: str, found: Mapping[str, int]) -> Figures:
    """The risk of people known by their quasi-identifiers to be in the table: one of the rows of their group."""
    yield f"{place}.largest", 1 / found["least"] if found["least"] else None
    yield f"{place}.mean", found["groups"] / found["rows"] if found["rows"] else None
    yield f"{place}.rows_above", found["rows_above"]


#: What other versions and another name may change, and no number of the release does.
_NOT_COMPARED = (("annex", "versions"), ("statement", "table"), ("statement", "run"))
#: What a copy of the release in another place may have otherwise: what the ledger knows, and the order of its rows.
_OF_THE_PLACE = (("annex", "audit"), ("algorithm", "name"), ("algorithm", "protection"))
#: Attacks that follow from what the ledger knows, seeds and releases before, and from the order of rows.
_BY_THE_LEDGER = ("replay", "composition")
_BY_THE_PLACE = ("form", *_BY_THE_LEDGER)
#: Sums of doubles may differ in their last digits between versions and machines; a cell's loss has nine digits.
_NEAR, _NEAR_PLAIN = 1e-9, 1e-6


_TYPES = get_type_hints(ReportQuestion)
_QUOTED: dict[str, Any] = {
    **{key: (_TYPES[key], getattr(ReportQuestion, key) if key in OF_THE_SOURCE else ...) for key in QUOTED},
    "audience": (Literal["internal", "public"], ...),
}
#: The question as a report has it, whoever may have changed it since.
_QuotedRequest = create_model("_QuotedRequest", __config__=ConfigDict(extra="forbid", strict=True), **_QUOTED)


@dataclass(frozen=True)
class Difference:
    """A number or word of the report that the table does not give."""

    where: str
    reported: Any
    found: Any


@dataclass(frozen=True)
class Verification(Printed):
    """The result of verifying a report: `same_release` by the hash of its rows, and everything that differs.

    `figures` is how many numbers and words were compared, `plain` how many of them plain counts gave too, `same_code`
    the other numbers by section, which only the code gave that made the report. `versions` are those of report and
    verification where these differ.
    """

    same_release: bool
    figures: int
    plain: int
    same_code: Mapping[str, int]
    differences: tuple[Difference, ...]
    versions: Mapping[str, tuple[str, str]]

    @property
    def holds(self) -> bool:
        return not self.differences  # of which another release's hash is one

    def as_dict(self) -> dict[str, Any]:
        """The verification as JSON has it: its fields, and the verdict."""
        return {"holds": self.holds, **vars(self), "differences": list(map(vars, self.differences))}


def verify_report(
    connection: Any,
    reported: Document,
    asked: ReportQuestion,
    listener: Listener | None = None,
    catalog: str | None = None,
) -> Verification:
    """The report worked out again by its own question, as `question_again` has it; raises PolicyError."""
    listener = listener or Listener()
    working = working_engine(connection, listener, catalog)
    with working as engine, opened(engine, listener, asked.table, asked) as subject:
        if reported.get("source") and subject.why_not is not None:
            raise PolicyError([Problem("source", f"is not there: {subject.why_not}", "give --policy")])
        found = document_of(subject)
        listener.on_stage("counting plainly")
        counted = counted_plainly(subject, found)
    in_place = all(reported["statement"].get(key) == found["statement"][key] for key in ("table", "run"))
    compared = list(_pairs(_comparable(reported, in_place), _comparable(found, in_place)))
    differences = [Difference(where, one, other) for where, one, other in compared if not _equal(one, other)]
    both = [(where, one, counted[where]) for where, one, _ in compared if where in counted]
    known = {difference.where for difference in differences}
    differences += [
        Difference(where, one, other)
        for where, one, other in both
        if where not in known and not _equal(one, other, _NEAR_PLAIN)
    ]
    same_code = Counter(_section(where) for where, _, other in compared if where not in counted and _is_number(other))
    versions = {
        name: (str(old), str(new))
        for name, old, new in _pairs(reported["annex"].get("versions", {}), found["annex"]["versions"])
        if old != new
    }
    same = reported["annex"].get("release") == found["annex"]["release"]
    return Verification(same, len(compared), len(both), dict(same_code), tuple(differences), versions)


def question_again(
    reported: Document, table: str | None, given: Policy | None = None, folder: Path = Path()
) -> ReportQuestion:
    """The question that the report answers, about `table`.

    `folder` has its taxonomies, and perhaps its policy is `given` again. Raises PolicyError for what is not a report of
    ours, and for a policy that is not the report's.
    """
    known = isinstance(reported, dict) and reported.get("form") == FORM
    if not known or not all(isinstance(reported.get(key), dict) for key in ("asked", "annex", "statement")):
        raise PolicyError([Problem("verify", f"is not a report ({FORM})", "give what `ldiv report --json` printed")])
    try:
        quoted = _QuotedRequest.model_validate(reported["asked"]).model_dump(exclude_unset=True)
        context = ReleaseContext.model_validate(reported.get("context"))
    except ValidationError:
        raise PolicyError([Problem("verify", "is a report that lacks parts of its question")]) from None
    public = quoted.pop("audience") == "public"
    policy = _policy(reported, given, public)
    return ReportQuestion(table, **quoted, public=public, context=context, folder=folder, policy=policy)


def _policy(reported: Document, given: Policy | None, public: bool) -> Policy | None:
    """The policy of the report: the one that is given, which must be the same, or the one that it quotes."""
    quoted = reported.get("policy")
    if given is None or quoted is None:
        if given is not None:
            raise PolicyError([Problem("policy", "the report was made without one", "leave it out")])
        return None if quoted is None else read_again(quoted)
    if written_policy(given, public) != quoted:
        raise PolicyError([Problem("policy", "is not the one that the report quotes")])
    return given


def _comparable(document: Document, in_place: bool) -> Document:
    """The document without what need not be the same; `in_place` if both are of the same run's table of one name."""
    parts = {key: value for key, value in document.items() if key not in ("asked", "form", "policy")}
    for section, key in (*_NOT_COMPARED, *(() if in_place else _OF_THE_PLACE)):
        held = parts.get(section)
        parts[section] = {k: v for k, v in held.items() if k != key} if isinstance(held, dict) else held
    parts |= {} if in_place else {"earlier": None}
    left_out = _BY_THE_PLACE if not in_place else () if document["statement"].get("run") else _BY_THE_LEDGER
    attacks = parts.get("attacks") or {}
    listed = [one for one in attacks.get("attacks") or [] if one.get("attack") not in left_out]
    judged = [one for one in parts.get("verdicts") or [] if one.get("attack") not in left_out]
    parts |= {"attacks": {**attacks, "attacks": listed}, "verdicts": judged}
    return parts


def _pairs(one: Any, other: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every number and word of either, with its place, beside what stands there in the other."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            yield from _pairs(one.get(key), other.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _pairs(left, right, f"{where}[{place}]")
    else:
        yield where, one, other


def _equal(one: Any, other: Any, near: float = _NEAR) -> bool:
    if _is_number(one) and isinstance(other, float | int):
        return one == other or bool(abs(one - other) <= near * max(abs(one), abs(other)))
    return bool(one == other)


def _is_number(figure: Any) -> bool:
    return isinstance(figure, float | int) and not isinstance(figure, bool)


def _section(where: str) -> str:
    parts = re.sub(r"\[\d+\]", "", where).split(".")
    if parts[:3] == ["source", "utility", "spreads"]:  # counts of values are plain, what their rows lose is not
        return ".".join(parts[:4])
    return ".".join(parts[: 3 if parts[:2] == ["source", "utility"] else 2 if parts[0] == "source" else 1])
