"""The context of a release, which no table tells: who receives it, whose data it is, what could harm them, who signs.

It is a block of the policy, or a file of its own. Titles and descriptions of its keys are those of the template of such
a file, of the options and of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from ldiv_db.database.documents import read_document
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.parts import PolicyPart, problem_of

#: How a release is made available (ISO/IEC 27559): to anybody, to who signed a contract, in the owner's own rooms.
ReleaseModel = Literal["public", "shared", "internal"]
Guideline = Literal["iso_27559", "ico", "ema_health_canada", "hipaa", "tehdas2"]
Text = Annotated[str | None, AfterValidator(lambda text: (text or "").strip() or None)]


def _filled(given: Any) -> Any:
    return (
        {key: text for key, text in given.items() if text}
        if isinstance(given, Mapping)
        else given
        if given is not None
        else {}
    )


Texts = BeforeValidator(_filled)


def _said(title: str, description: str, public: bool = False) -> Any:
    """A text; one that is `public` stands in a report for anybody as well."""
    return Field(default=None, title=title, description=description, json_schema_extra={"public": public})


class ReleaseContext(PolicyPart):
    """Texts of people on a release, every one of them for the report."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    recipient: Text = _said("Recipient", "Who receives the release.", True)
    purpose: Text = _said("Purpose", "What the release is for.", True)
    release_model: ReleaseModel | None = _said(
        "Release model",
        "How it is made available: public (to anybody), shared (under conditions), internal (within the owner's"
        " organisation).",
        True,
    )
    security: Text = _said("Recipient's security", "How the recipient keeps the data: access, training, audits.")
    motives: Text = _said("Motives", "Why the recipient, or anybody else, could want to re-identify people.")
    capacity: Text = _said("Capacity", "What skills, means and other data they have for that.")
    principals: Text = _said("Data principals", "Whose data it is, and whether some of them are vulnerable.")
    data_type: Text = _said("Data type", "What the rows are: a cross-section, events over time, a survey.")
    sampling_fraction: Text = _said("Sampling fraction", "What share of the population the data has.")
    population: Text = _said("Population", "All people who could be in the data, and how many there are.")
    threshold_reason: Text = _said("Reason of the threshold", "Why a risk up to the threshold is accepted.")
    why: Text = _said("Reason of the policy", "Why this policy was chosen.", True)
    harms: Text = _said("Harms", "What could happen to people who are recognised, or about whom a value is learnt.")
    stakeholders: Text = _said("Stakeholders", "Who was informed and consulted, including people in the data.")
    contract: Text = _said("Contract", "The agreement with the recipient, or why there is none.")
    prohibition: Text = _said("Re-identification", "How the recipient is forbidden to re-identify people.")
    incidents: Text = _said("Incidents", "Who does what if somebody is re-identified or the data is lost.")
    expert: Text = _said("Expert", "Who judged the risk, with qualifications and experience.")
    review: Text = _said("Review", "The date by which the release is reviewed.", True)
    roles: Annotated[dict[str, str], Texts] = Field(
        default_factory=dict, title="Roles", description="Who is responsible for what: role and name of each."
    )
    reasons: Annotated[dict[str, str], Texts] = Field(
        default_factory=dict,
        title="Reasons by column",
        description="Why each identifier and quasi-identifier is treated as it is.",
    )
    not_applicable: Annotated[dict[Guideline, str], Texts] = Field(
        default_factory=dict,
        title="Guidelines that do not apply",
        description=f"Why one of these does not apply: {', '.join(get_args(Guideline))}.",
    )

    def blanks(self, columns: Iterable[str]) -> list[str]:
        """The keys that are still blank, `reasons` for each of the `columns`."""
        keys = [key for key in type(self).model_fields if key not in ("reasons", "not_applicable")]
        reasoned = {name.lower() for name, reason in self.reasons.items() if reason.strip()}
        lacking = [f"reasons.{name}" for name in columns if name.lower() not in reasoned]
        return [key for key in keys if not getattr(self, key)] + lacking

    @classmethod
    def asks(cls, key: str) -> str:
        """What a key, or a key within it, asks for."""
        return cls.model_fields[key.partition(".")[0]].description or ""

    def public(self) -> ReleaseContext:
        """What of it anybody may read: who else reads a report learns nothing of the source and of those who sign."""
        extras = {key: field.json_schema_extra for key, field in type(self).model_fields.items()}
        shown = {key for key, extra in extras.items() if isinstance(extra, dict) and extra.get("public")}
        return ReleaseContext(**{key: getattr(self, key) for key in shown})

    def with_texts(self, other: ReleaseContext) -> ReleaseContext:
        """The same, with what the other says in place of its own."""
        return self.model_copy(update={key: said for key in type(self).model_fields if (said := getattr(other, key))})


#: A context as a caller gives it: built, as a mapping, or the name of a file.
GivenContext = ReleaseContext | Mapping[str, Any] | str | Path | None


def read_context(given: GivenContext) -> ReleaseContext:
    """The context in a mapping, or in the YAML file of that name; raises PolicyError with all that is wrong with it."""
    if isinstance(given, ReleaseContext):
        return given
    found = read_document(Path(given), "context", [()]) if isinstance(given, str | Path) else given
    try:
        return ReleaseContext.model_validate({} if found is None else found)
    except ValidationError as error:
        problems = [problem_of(item, ReleaseContext) for item in error.errors()]
    raise PolicyError(Problem(f"context.{problem.key}", problem.what, problem.hint) for problem in problems)


def context_template() -> str:
    """A file of context to be filled in: every key blank, under what it asks for."""
    lines = ["# The context of a release, for `ldiv report --context FILE`."]
    examples = {"roles": "Data controller: …", "reasons": "age: …", "not_applicable": "hipaa: …"}
    for key, field in ReleaseContext.model_fields.items():
        lines += ["", *wrap(f"{field.description}", 110, initial_indent="# ", subsequent_indent="# ")]
        lines += [f"{key}:", *([f"#  {examples[key]}"] if key in examples else [])]
    return "\n".join(lines)
