"""The JSON Schema of what every command prints with `--json`, made from the fields of results where JSON has these.

`python -m tests.docs.reference` writes it beside the pages, whence a wheel takes it. What is written leaves objects
open: a program that reads them is to pass over keys that it does not know. Tests close them, so that no key lacks its
place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from ldiv_db.attacking.gains import Gain
from ldiv_db.auditing.audit import Audit
from ldiv_db.commands import cli as commands
from ldiv_db.commands.telling import SCHEMA_VERSION
from ldiv_db.database.errors import Problem
from ldiv_db.measuring.answers import Answer
from ldiv_db.measuring.least_loss.bounds import LossBound
from ldiv_db.measuring.measure import Measurement
from ldiv_db.measuring.population_uniqueness import PopulationUniqueness
from ldiv_db.measuring.resolve import Spread
from ldiv_db.measuring.tables import JoinedCounts, TablesMeasurement
from ldiv_db.measuring.utility import QueryErrors
from ldiv_db.policy.quasi_identifiers import Inferred
from ldiv_db.publishing.inference import Inference
from ldiv_db.publishing.pairings import Channel, CombinationsDecision
from ldiv_db.publishing.people_over_time import Persisting
from ldiv_db.publishing.result import Result, Similarity
from ldiv_db.recoding.loss import CountErrors, Loss, Precision
from ldiv_db.reporting.verification import Difference, Verification
from ldiv_db.requirements.verdict import Verdict
from ldiv_db.running.doctor import Check, Visit
from ldiv_db.running.exploring.outcomes import Exploration, Risk, VariantOutcome
from ldiv_db.taxonomies.taxonomy import Node

Schema = dict[str, Any]
ANY: Schema = {}
COUNT, NUMBER, TEXT, FLAG = ({"type": kind} for kind in ("integer", "number", "string", "boolean"))
NULL: Schema = {"type": "null"}
TEXTS: Schema = {"type": "array", "items": TEXT}
OPEN: Schema = {"type": "object"}


def maybe(found: Schema) -> Schema:
    return {"anyOf": [found, NULL]}


def many(found: Schema) -> Schema:
    return {"type": "array", "items": found}


def each(found: Schema) -> Schema:
    """An object whose keys are names of the user's."""
    return {"type": "object", "additionalProperties": found}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def obj(always: Mapping[str, Schema], sometimes: Mapping[str, Schema] | None = None) -> Schema:
    """An object with keys that it always has, and others."""
    return {"type": "object", "properties": {**always, **(sometimes or {})}, "required": list(always)}


def of(thing: Any, *names: str) -> dict[str, Schema]:
    """The fields of a result that JSON has as they are, all of them if none is named."""
    hints = get_type_hints(thing)
    return {name: _plain(hints[name]) for name in names or [field.name for field in fields(thing)]}


def _plain(hint: Any) -> Schema:
    """The schema of a type, where a tuple is a list of any length as well."""
    found = TypeAdapter(hint).json_schema()
    for name in ("title", "default", "format", "maxItems", "minItems"):
        found.pop(name, None)
    return found


LOSS = obj(
    {
        **of(Loss, "lm", "lm_mean", "ncp", "ncp_mean", "dm", "kl", "stars", "lm_by_column"),
        "cavg": maybe(NUMBER),
        "precision": many(ref("precision")),
        "counts": maybe(ref("counts")),
    },
    {"cm": maybe(COUNT)},
)
_VERDICT = {
    "name": TEXT,
    "parameters": each(ANY),
    **of(Verdict, "worst", "classes", "violating_classes", "violating_rows", "worst_class", "margin"),
    "holds": maybe(FLAG),
    "worst_is": TEXT,
    "worst_class_rows": maybe(COUNT),
    "second_reading": maybe(COUNT),
    "read_once": maybe(TEXT),
}
_HALVES = obj({"half": NUMBER, "nine_tenths": NUMBER})
PARTS: dict[str, Schema] = {
    "loss": LOSS,
    "precision": obj(
        {**of(Precision, "column", "exact", "told"), "text": TEXT}, {"within": _HALVES, "values": _HALVES}
    ),
    "counts": obj({**of(CountErrors), "text": TEXT}),
    "answer": obj({**of(Answer), "text": TEXT}, {"query": TEXT}),
    "requirement": obj(_VERDICT, {"sensitive": maybe(TEXT)}),
    "similarity": obj(of(Similarity)),
    "inferred": obj({**of(Inferred, "column", "why"), "as": OPEN}),
    "versions": obj({"ldiv_db": TEXT, "duckdb": TEXT}),
    "attack_found": obj(
        {
            "attack": TEXT,
            "sensitive": maybe(TEXT),
            "holds": maybe(FLAG),
            "finished": FLAG,
            "untried": maybe(obj({"what": TEXT, "tried": COUNT, "of": COUNT})),
            "gains": many(obj(of(Gain))),
            "figures": each(ANY),
        },
        {"shown": many(each(ANY)), "knows": TEXT, **dict.fromkeys(("of_people", "at_least"), FLAG)},
    ),
    "channel": obj(of(Channel)),
    "inference": obj(
        {
            **of(Inference, "releases", "keys_exposed", "ordered", "altered"),
            "holds": FLAG,
            "attributes": each(obj({"l": COUNT, "best": maybe(NUMBER)})),
            "channels": many(ref("channel")),
            "allowed": many(ref("channel")),
        }
    ),
    "needs": obj(
        {
            "seconds": NUMBER,
            **dict.fromkeys(("memory_bytes", "memory_limit_bytes", "overflow_bytes", "release_bytes"), COUNT),
            **dict.fromkeys(("temp_free_bytes", "disk_free_bytes"), maybe(COUNT)),
        }
    ),
    "taxonomy": obj({"name": TEXT, "origin": TEXT, "leaves": COUNT, "height": COUNT}),
    "ledger_run": obj(
        {
            **of(Result, "run_id", "algorithm", "source", "target"),
            "finished_at": TEXT,
            **dict.fromkeys(("rows_in", "rows_published", "rows_suppressed", "classes"), COUNT),
            "lm_mean": NUMBER,
            "status": TEXT,
        },
        {"seed": maybe(TEXT)},
    ),
}

RELEASED = obj(
    {
        **dict.fromkeys(("series", "algorithm", "source"), TEXT),
        "file": maybe(TEXT),
        "tables": TEXTS,
        "l": each(NUMBER),
        "inferred": many(ref("inferred")),
        "versions": ref("versions"),
        "seconds": NUMBER,
        **dict.fromkeys(
            ("release", "rows_in", "rows_left_out", "rows_published", "rows_first_published", "groups", "groups_new"),
            COUNT,
        ),
        **dict.fromkeys(
            ("rows_of_table", "rows_kept", "rows_new", "rows_waiting", "rows_changed", "rows_starving", "counterfeits"),
            COUNT,
        ),
        "longest_wait": maybe(COUNT),
        "requirements": many(ref("requirement")),
        "inference": maybe(ref("inference")),
        "notes": TEXTS,
    },
    {
        "run_id": TEXT,
        "seed": COUNT,
        "loss_new": maybe(ref("loss")),
        "search": OPEN,
        "similarity": many(ref("similarity")),
        "persisting": many(obj(of(Persisting))),
        "primary": TEXT,
        "rows_placed": COUNT,
        "residual": many(COUNT),
        "noise": many(OPEN),
        "refused": many(OPEN),
        "exchanges": many(ANY),
        "combinations": maybe(obj({**of(CombinationsDecision, "option", "published"), "told": many(OPEN)})),
        "statements": many(obj({"template": TEXT, "sql": TEXT})),
    },
)
#: What the ledger adds to what a release told of itself.
_ENTERED = {"status": TEXT, "released_at": TEXT, "warning": maybe(TEXT)}
PARTS["entry"] = obj(
    {name: RELEASED["properties"][name] for name in RELEASED["required"]} | _ENTERED,
    {
        **{name: found for name, found in RELEASED["properties"].items() if name not in RELEASED["required"]},
        "prefix": TEXT,
        "one_table": FLAG,
    },
)
_TABLE = ("rows_published", "rows_suppressed", "lm_mean", "kl")


def _bounded(**more: Schema) -> Schema:
    counts = dict.fromkeys(("rows", "values", "parts"), COUNT)
    return obj({**of(LossBound, "lm_mean", "weaker", "grouped", "interrupted"), **counts, **more})


ONE_RUN = obj(
    {
        **of(Result, "run_id", "algorithm", "source", "target", "seconds"),
        **dict.fromkeys(("rows_in", "classes"), COUNT),
        **of(Loss, "rows_published", "rows_suppressed", "cells_suppressed", "classes_made"),
        "avg_class_size": NUMBER,
        "loss": ref("loss"),
        "requirements": many(ref("requirement")),
        "similarity": many(ref("similarity")),
        "answers": many(ref("answer")),
        "search": OPEN,
        "inferred": many(ref("inferred")),
        "unchanged": maybe(TEXT),
        "versions": ref("versions"),
        "notes": TEXTS,
    },
    {
        **{
            "seed": COUNT,
            "compared": many(ref("attack_found")),
            "snapshot": COUNT,
            "bound": _bounded(above=maybe(NUMBER)),
        },
        "tables": many(obj({"table": TEXT, **of(Loss, *_TABLE), "rows_in": COUNT})),
    },
)
_PLANNED = obj(
    {
        **of(Result, "source", "target", "algorithm", "l"),
        "options": OPEN,
        "largest_l": maybe(COUNT),
        "rows_in": COUNT,
        "rows_suppressed": COUNT,
        "most_suppressed": maybe(COUNT),
        "classes_made": maybe(COUNT),
        "tries": TEXTS,
        "requirements": many(
            obj({"name": TEXT, "parameters": each(ANY), "sensitive": maybe(TEXT), "strictest": maybe(TEXT)})
        ),
        "columns": many(obj({"column": TEXT, "role": TEXT, "generalised_by": maybe(TEXT)})),
        "inferred": many(ref("inferred")),
        "needs": ref("needs"),
        "unchanged": maybe(TEXT),
        "notes": TEXTS,
    },
    {
        "people": COUNT,
        "rows_different": COUNT,
        "bound": _bounded(),
        "efforts": each(NUMBER),
        "tried": many(OPEN),
        "statements": many(obj({"template": TEXT, "sql": TEXT})),
    },
)
_TABLES_PLANNED = obj(
    {
        **of(Result, "source", "target", "algorithm"),
        **dict.fromkeys(("people", "rows_in", "rows_suppressed", "classes_made"), COUNT),
        "needs": ref("needs"),
        "requirements": many(obj({"name": TEXT, "parameters": each(ANY), "sensitive": maybe(TEXT)})),
        "tables": many(obj({"table": TEXT, "rows_in": COUNT, "rows_published": COUNT})),
        **{"inferred": many(ref("inferred")), "unchanged": maybe(TEXT), "notes": TEXTS},
    }
)
_VARIANT = obj(
    {**dict.fromkeys(("label", "status"), TEXT), "number": COUNT, "varied": OPEN, "change": OPEN, "policy": OPEN},
    {
        "reason": maybe(TEXT),
        **of(VariantOutcome, "algorithm", "l"),
        "risk": obj(of(Risk)),
        **of(Loss, "lm_mean", "lm_by_column", "classes", "smallest_class", "largest_class"),
        **of(Loss, "rows_published", "rows_suppressed", "cells_suppressed", "stars"),
        "avg_class_size": NUMBER,
        "precision": many(ref("precision")),
        "answers": many(ref("answer")),
        "error": maybe(NUMBER),
        "counts": maybe(ref("counts")),
        "loss": NUMBER,
        "compared_by": NUMBER,
        "frontier": FLAG,
    },
)
_UNIQUE = {"combinations": COUNT, "unique_rows": COUNT}
#: What is known of one of several tables beside its profile.
_LINKED = {
    "name": TEXT,
    "link": maybe(
        obj({**dict.fromkeys(("column", "parent", "key", "found_by"), TEXT), "rows_lost": COUNT, "values_lost": COUNT})
    ),
    "people_rows": many(obj({"rows": COUNT, "people": COUNT, "or_more": FLAG})),
}
_PROFILED = {
    "table": TEXT,
    "rows": COUNT,
    "individual": maybe(TEXT),
    "columns": many(
        obj(
            {
                **dict.fromkeys(("column", "type", "role", "reason"), TEXT),
                "forms": TEXTS,
                "distinct": COUNT,
                "nulls": COUNT,
                "largest_share": NUMBER,
            }
        )
    ),
    "uniqueness": maybe(
        obj(
            {
                **_UNIQUE,
                "unique_share": NUMBER,
                "rows_below_5": COUNT,
                "share_below_5": NUMBER,
                "contributions": many(obj({"column": TEXT, "unique_rows_without": COUNT, "explains": COUNT})),
                "few_columns": many(obj({"columns": TEXTS, **_UNIQUE})),
                "population": maybe(
                    obj(
                        {
                            "size": of(PopulationUniqueness, "population")["population"],
                            "sampling_fraction": NUMBER,
                            "model": maybe(TEXT),
                            "unique_people": maybe(NUMBER),
                            "unique_share": maybe(NUMBER),
                            "estimates": each(obj({"unique_people": maybe(NUMBER), "reason": maybe(TEXT)})),
                        }
                    )
                ),
            }
        )
    ),
    "sensitive": many(
        obj(
            {
                **dict.fromkeys(("distinct", "distinct_folded", "nulls", "largest_l", "largest_l_folded"), COUNT),
                "column": TEXT,
                "sets": maybe(TEXT),
                "largest_share": NUMBER,
                "entropy": NUMBER,
                "histogram": many(COUNT),
            }
        )
    ),
}
_AUDIT = obj(
    {
        **of(Audit, "classes", "rows", "suppressed_rows", "ignored_rows", "unmatched_groups", "of_people"),
        "sensitive": maybe(TEXT),
        "least_people": maybe(COUNT),
        "holds": maybe(FLAG),
        "requirements": many(ref("requirement")),
        "warnings": TEXTS,
    }
)
_REPORT_OBJECTS = ("asked", "context", "statement", "data", "algorithm", "audit", "classes", "identifiability")
_SQL = {"dialect": TEXT, "sql": TEXT}

_MEASURED = obj(
    {
        **of(Measurement, "published", "source", "l", "rows_in", "rows_added", "rows_unmatched", "rows_uncovered"),
        **of(Loss, "rows_published", "rows_suppressed", "cells_suppressed", "classes"),
        "avg_class_size": NUMBER,
        "loss": ref("loss"),
        "queries": maybe(obj(of(QueryErrors))),
        "answers": many(ref("answer")),
    },
    {"spreads": many(obj(of(Spread)))},
)
_TABLES_MEASURED = obj(
    {
        **of(TablesMeasurement, "published", "source"),
        "rows_in": COUNT,
        **of(Loss, *_TABLE, "ncp_mean"),
        "tables": many(obj({"table": TEXT, **of(Loss, *_TABLE), "rows_in": COUNT})),
        "measured": each(_MEASURED),
        "joins": many(
            obj({**of(JoinedCounts, "parent", "child", "rows_in", "rows_published"), "counts": maybe(ref("counts"))})
        ),
    }
)

COMMANDS: dict[str, Schema] = {
    "demo": ONE_RUN,
    "profile": {
        "anyOf": [
            obj({**_PROFILED, "policy": maybe(OPEN), "note": TEXT, "run": maybe(ref("needs")), "written": TEXTS}),
            obj(
                {
                    **{"individual": maybe(TEXT), "tables": many(obj({**_PROFILED, **_LINKED})), "notes": TEXTS},
                    **{"policy": maybe(OPEN), "note": TEXT, "written": TEXTS},
                }
            ),
        ]
    },
    "measure": {"anyOf": [_MEASURED, _TABLES_MEASURED]},
    "attack": obj(
        {
            **dict.fromkeys(("rows", "classes"), COUNT),
            "table": TEXT,
            "holds": maybe(FLAG),
            "finished": FLAG,
            "attacks": many(ref("attack_found")),
            "warnings": TEXTS,
        }
    ),
    "report": {
        "anyOf": [
            obj(
                {
                    "form": TEXT,
                    **dict.fromkeys((*_REPORT_OBJECTS, "attacks", "annex"), OPEN),
                    "policy": maybe(OPEN),
                    "risks": many(OPEN),
                    "residual": TEXTS,
                    "not_tried": TEXTS,
                    "source": maybe(OPEN),
                    "earlier": maybe(OPEN),
                },
                {"why_no_source": maybe(TEXT), "verdicts": many(OPEN), "blanks": TEXTS, "guidelines": many(OPEN)},
            ),
            obj(
                {
                    "holds": FLAG,
                    **of(Verification, "same_release", "figures", "plain", "same_code"),
                    "differences": many(obj(of(Difference))),
                    "versions": each(many(TEXT)),
                }
            ),
        ]
    },
    "run": {"anyOf": [ONE_RUN, RELEASED]},
    "plan": {"anyOf": [_PLANNED, _TABLES_PLANNED, RELEASED]},
    "explore": obj(
        {
            **of(Exploration, "source", "rows", "by", "interrupted", "seed_is_written", "seconds"),
            "quasi_identifiers": TEXTS,
            "sensitive": TEXTS,
            "risk": TEXT,
            "least_loss": many(obj({"risk": ANY, "number": maybe(COUNT)})),
            "costs": many(obj({"column": TEXT, "with": NUMBER, "without": NUMBER})),
            "variants": many(_VARIANT),
        }
    ),
    "check": obj({"table": TEXT, "holds": maybe(FLAG), "audits": many(_AUDIT)}, {"violations": many(each(ANY))}),
    "runs list": obj({"runs": many(ref("ledger_run")), "releases": COUNT}),
    "runs withdraw": obj({"run": ref("ledger_run")}),
    "migrate": obj({"applied": TEXTS, "pending": TEXTS}),
    **dict.fromkeys(("taxonomy import", "taxonomy build"), ref("taxonomy")),
    "policy check": obj({"policies": TEXTS}),
    "taxonomy new": obj({"file": TEXT, "column": TEXT, "by": TEXT, "leaves": COUNT}),
    "taxonomy show": obj(
        {**PARTS["taxonomy"]["properties"], "nodes": many(obj(of(Node), {"rows": COUNT}))}, {"rows_missing": COUNT}
    ),
    "taxonomy list": obj({"taxonomies": many(ref("taxonomy"))}),
    "taxonomy check": obj(
        {**dict.fromkeys(("taxonomy", "table", "column"), TEXT), "missing_values": COUNT}, {"missing": many(ANY)}
    ),
    "release list": obj({"releases": many(ref("entry"))}),
    "release show": ref("entry"),
    "release diff": obj(
        {
            "series": TEXT,
            "releases": many(COUNT),
            **dict.fromkeys(("rows_first_published", "rows_first_waiting", "groups_new"), COUNT),
            "figures": each(many(COUNT)),
        }
    ),
    "release check": ref("inference"),
    "sql recode": obj({"run_id": TEXT, **_SQL}),
    "sql check": obj({"table": TEXT, **_SQL}),
    "sql contract": obj({"table": TEXT, "dialect": TEXT, "contract": OPEN}),
    "doctor": obj({**of(Visit, "service", "versions", "caution"), "holds": FLAG, "checks": many(obj(of(Check)))}),
    "sql counts": obj({"columns": TEXTS, "weight": TEXT, **_SQL}),
    "dbt path": obj({"path": TEXT}),
}
ERROR = obj(
    {
        "error": obj(
            {
                "kind": {"enum": ["policy", "infeasible", "audit", "database", "usage", "interrupted", "terminated"]},
                "problems": many(obj({"code": TEXT, **of(Problem)})),
                "remedies": many(obj({"change": maybe(OPEN), "costs": TEXT, "rows": COUNT})),
            }
        )
    }
)


def versioned(found: Schema) -> Schema:
    """What a command prints: a result, with the version of its form."""
    if "anyOf" in found:
        return {"anyOf": [versioned(one) for one in found["anyOf"]]}
    if "$ref" in found:
        found = PARTS[found["$ref"].rpartition("/")[2]]
    version = {"schema_version": {"const": SCHEMA_VERSION}}
    return obj(version | found["properties"]) | {"required": ["schema_version", *found["required"]]}


def output_schema() -> Schema:
    """The schema: one definition a command, spaces in its name as underscores, and `error`, which any may print."""
    printed = {name.replace(" ", "_"): versioned(found) for name, found in {**COMMANDS, "error": ERROR}.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What ldiv prints with --json",
        "description": "One definition a command, and `error`, which every command may print in its place.",
        "anyOf": [ref(name) for name in printed],
        "$defs": {**printed, **PARTS},
    }


def page() -> str:
    """The schema as it is published."""
    whole = output_schema()
    parts = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in whole.pop("$defs").items()]
    head = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in whole.items()]
    return "{\n" + ",\n".join([*head, '"$defs": {\n' + ",\n".join(parts) + "\n}"]) + "\n}\n"


@cache
def validators() -> Mapping[str, Any]:
    """What judges the output of each command, by its name; keys that the schema does not name are refused."""
    jsonschema = import_module("jsonschema")
    whole = _closed(output_schema())
    return {
        name: jsonschema.Draft202012Validator({**whole, "anyOf": [ref(name)]})
        for name in (*(command.replace(" ", "_") for command in COMMANDS), "error")
    }


def command_of(words: Sequence[str]) -> str:
    """The command that words call; one of a group is named by two, and that which lists may be left out."""
    first = next(place for place, word in enumerate(words) if word in commands.COMMANDS)
    name, inner = words[first], " ".join(words[first : first + 2])
    return next(found for found in (inner, name, f"{name} list") if found in COMMANDS)


def _closed(found: Any) -> Any:
    if isinstance(found, list):
        return [_closed(one) for one in found]
    if not isinstance(found, Mapping):
        return found
    inner = {key: _closed(one) for key, one in found.items()}
    return {"additionalProperties": False} | inner if "properties" in found and "required" in found else inner


def refuse_unknown(words: Sequence[str], printed: str) -> None:
    """Raise AssertionError unless the output of `ldiv WORDS --json` is what the schema says of that command.

    Without jsonschema, which environments of single packages lack, it judges nothing.
    """
    if find_spec("jsonschema") is None:
        return
    document = json.loads(printed)
    name = "error" if "error" in document else command_of(words).replace(" ", "_")
    wrong = [f"{error.json_path}: {error.message}" for error in validators()[name].iter_errors(document)]
    assert not wrong, (name, wrong)
