"""The JSON Schema of policies: the models of `ldiv_db/policy/` by pydantic, requirements, the options of algorithms.

`python -m tests.docs.reference` writes it beside the pages, whence a wheel takes it. Its descriptions are what the page
on policies says of each key. It says what one part of a policy takes; what does not go together, `ldiv policy check`
tells.
"""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.algorithms.decomposition.grouping import DecompositionOptions
from ldiv_db.policy.document import Policy
from ldiv_db.policy.schema import _OF_EACH
from ldiv_db.policy.sources import DECOMPOSITIONS
from ldiv_db.requirements import REQUIREMENTS
from ldiv_db.requirements.frequency import Threshold
from ldiv_db.requirements.nearness import distance_of
from ldiv_db.requirements.parameters import _AUTOMATIC, AUTO, DIGITS, LARGEST, Reader, share, whole
from ldiv_db.requirements.risk import AVERAGE, MAX, POPULATION, RISK, probability, table

Schema = dict[str, Any]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "policy.md"
#: As SchemaStore names the schemas that it keeps, where editors find them by the names of files.
ID = "https://json.schemastore.org/ldiv-policy.json"
NULL: Schema = {"type": "null"}
#: The headings of the page under which the keys of a part are described.
SECTIONS = {
    "Policy": ("Keys",),
    "Target": ("Forms of a target",),
    "QuasiIdentifier": ("Of a quasi-identifier", "How a quasi-identifier is read"),
    "Individual": ("`individual`",),
    "PolicyTable": ("`tables`", "Keys"),
    "Output": ("`output`",),
    "Sensitive": ("Of a sensitive column",),
    "TaxonomySpec": ("Taxonomies",),
}


def either(*found: Schema) -> Schema:
    return {"anyOf": list(found)}


def one_key(keys: Sequence[str], **how: Schema) -> Schema:
    """Exactly one of the keys, with a value."""
    return {"oneOf": [given(key, **how) for key in keys]}


def given(key: str, **how: Schema) -> Schema:
    """An object in which the key has a value."""
    return {"required": [key], "properties": {key: how.get(key, {"not": NULL})}}


def when(condition: Schema, then: Schema, otherwise: Schema | None = None) -> Schema:
    return {"if": condition, "then": then, **({"else": otherwise} if otherwise else {})}


# -- requirements ------------------------------------------------------------------------------------


def parameter(name: str, read: Reader) -> Schema:
    """What a parameter takes, by the bounds of its reader; numbers may be written as texts, which keep their digits."""
    held: Mapping[str, Any] = inspect.getclosurevars(read).nonlocals
    if "words" in held:
        return {"enum": [*held["words"], *(int(word) for word in held["words"] if word.isdecimal())]}
    automatic = [{"const": AUTO}] if name in _AUTOMATIC else []
    if "smallest" in held:
        bounds = {"minimum": float(held["smallest"]), "maximum": held["largest"]}
        some = "(?=.*[1-9])" if bounds["minimum"] else ""
        text = {"type": "string", "pattern": rf"^{some}\d+(\.\d{{1,{DIGITS}}})?$"}
        return either({"type": "number", **bounds}, text, *automatic)
    if read is whole:
        text = {"type": "string", "pattern": r"^[1-9]\d*$"}
        return either({"type": "integer", "minimum": 1, "maximum": LARGEST}, text, *automatic)
    if read is probability:
        return either(*parameter(name, share)["anyOf"], {"type": "string", "pattern": r"^\d+ */ *\d+$"})
    if read is distance_of:
        return either({"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\d"})
    assert read is table, name
    return {"type": "string", "pattern": r"\S"}


#: For whom a requirement is: beside its name, or among its parameters.
BESIDE: dict[str, Schema] = {
    "sensitive": {
        **either({"type": "string"}, {"type": "array", "items": {"type": "string"}}),
        "description": "The sensitive columns that it is for.",
    },
    "others_known": {"type": "boolean", "description": "Whether it holds against who knows the other columns."},
    "each": {
        "enum": ["position", "row"],
        "description": "Asked at each position of people's rows in their order, or, with `known: 1`, of each row.",
    },
}


def argument(name: str, kind: Any) -> Schema:
    """The argument of a requirement: its parameters by name, or the only one that it needs alone."""
    if kind is Threshold:
        one = parameter("share", share)
        words = {"absent": {"enum": ["allow", "error"]}, "values": either({"type": "object", **others(one)}, one)}
        both = {"not": {"required": ["base", "default"]}}
        return either(one, {"type": "object", "properties": words, "minProperties": 1, **others(one), **both})
    fields = {field: parameter(field, read) for field, read in kind.fields.items()}
    needed = [field for field in fields if field not in kind.optional]
    words = {**fields, **BESIDE}
    whole_one = {"type": "object", "properties": words, "required": needed, "additionalProperties": False}
    if name == RISK:
        return either(
            fields[MAX], {**whole_one, **one_key([MAX, AVERAGE], **fields), "not": {"required": [AVERAGE, POPULATION]}}
        )
    return either(fields[needed[0]], whole_one) if len(needed) == 1 else whole_one


def others(found: Schema) -> Schema:
    return {"additionalProperties": found}


def requirement() -> Schema:
    """One requirement of a policy: `name: argument`, and for whom it is."""
    named = {name: argument(name, kind) for name, kind in REQUIREMENTS.items()}
    for name, kind in REQUIREMENTS.items():
        named[name]["description"] = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    return {
        "type": "object",
        "properties": {**named, **BESIDE},
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name in named],
    }


# -- algorithms --------------------------------------------------------------------------------------


def algorithm() -> Schema:
    """An algorithm with its options; `auto` may come to be `bsgi`, whose options it takes too."""
    own = {name: _properties(algorithm_of(name).options_type) for name in ALGORITHMS}
    own |= {name: _properties(DecompositionOptions) for name in DECOMPOSITIONS}
    own["auto"] = {**own["bsgi"], **own["auto"]}
    named = [
        when(
            {"properties": {"name": {"const": name}}, "required": [] if name == "auto" else ["name"]},
            {"properties": {"name": {}, **options}, "additionalProperties": False},
        )
        for name, options in own.items()
    ]
    return {
        "type": "object",
        "properties": {"name": {"enum": list(own), "default": "auto", "description": "its name"}},
        "allOf": named,
    }


def _properties(options: Any) -> Schema:
    return dict(options.model_json_schema(by_alias=True).get("properties", {}))


# -- descriptions ------------------------------------------------------------------------------------


def said(part: str, keys: Sequence[str]) -> dict[str, str]:
    """What the page says of the keys of a part: the first row or item of its sections whose beginning names a key."""
    found: dict[str, str] = {}
    for beginning, rest in _entries(SECTIONS.get(part, ())):
        for word in re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", beginning))):
            if word in keys:
                found.setdefault(word, rest)
    return found


def _entries(headings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The beginning, which has code, and the rest of every row and item under these headings."""
    sections = re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.M)
    for heading in headings:
        (text,) = (section for section in sections if section.startswith(f"{heading}\n"))
        for row in re.findall(r"^\| (`.*) \|$", text, re.M):
            first, second, *_ = re.split(r" \|(?: |$)", row)
            yield first, _plain(second)
        for item in re.findall(r"^- (`(?:.|\n(?!-|\n))*)", text, re.M):
            first = re.match(r"((?:,? ?(?:and )?`[^`]+`)+)", item)
            assert first
            yield first[0], _plain(item if first[0].strip("`").isidentifier() else item[first.end() :].lstrip(": "))


def _plain(text: str) -> str:
    """The text without links and the code's marks."""
    return " ".join(re.sub(r"\s*\(\[[^]]*\]\([^)]*\)\)|\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").split())


# -- the whole ---------------------------------------------------------------------------------------


def policy_schema() -> Schema:
    """The whole schema, of a policy in a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the default of a source is no JSON
        found = _untitled(Policy.model_json_schema(ref_template="#/definitions/{model}"))
    parts: dict[str, Schema] = found.pop("$defs")
    parts |= {"RequirementSpec": requirement(), "AlgorithmSpec": algorithm()}
    parts["ReleaseContext"] = _texts(parts["ReleaseContext"])
    for name, part in {"Policy": found, **parts}.items():
        keys = part.get("properties", {})
        for key, text in said(name, list(keys)).items():
            keys[key] = {**keys[key], "description": text}
        part.update(TOGETHER.get(name, {}))
    for key in ("source", "target", "seed", "quasi_identifiers", "algorithm", "context", "output"):
        found["properties"][key].pop("default", None)
    _some(found["properties"]["quasi_identifiers"])
    found["properties"]["algorithm"]["anyOf"][0] = parts["AlgorithmSpec"]["properties"]["name"]
    found.pop("required")
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "$id": ID, "title": "ldiv policy"}
    return {**head, **found, "description": Policy.__doc__.splitlines()[0], "definitions": parts}  # type: ignore[union-attr]


def _untitled(found: Any, names: bool = False) -> Any:
    """Without the titles that pydantic makes of names; `names` says that keys are those of an object."""
    if isinstance(found, list):
        return [_untitled(one) for one in found]
    if not isinstance(found, Mapping):
        return found
    kept = {key: one for key, one in found.items() if names or key not in ("title", "public")}
    return {key: _untitled(one, key in ("properties", "$defs") and not names) for key, one in kept.items()}


def _texts(context: Schema) -> Schema:
    """The context, whose texts are read as they are written: a number, a date or `yes`."""
    scalar = {"type": ["string", "number", "boolean", "null"]}
    for key, field in context["properties"].items():
        field.pop("default", None)
        if "additionalProperties" in field:
            field.update({"additionalProperties": scalar, "type": ["object", "null"]})
        elif key != "release_model":
            field.pop("anyOf")
            field.update(scalar)
    return context


def _some(columns: Schema) -> None:
    """At least one of them, however they are listed."""
    for form in columns["anyOf"]:
        form.update({"array": {"minItems": 1}, "object": {"minProperties": 1}}.get(form["type"], {}))


def _ending(*words: str) -> Schema:
    listed = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in words)
    return {"type": "string", "pattern": rf"\.({listed})$"}


_DECOMPOSES = given(
    "algorithm",
    algorithm=either(
        {"enum": list(DECOMPOSITIONS)},
        {"type": "object", "required": ["name"], "properties": {"name": {"enum": list(DECOMPOSITIONS)}}},
    ),
)
_DUCKDB, _OTHERS = ("duckdb", "db", "ddb"), ("parquet", "csv")
_TABLE = given("table", table={"type": "string", "minLength": 1})
_NO_APPEND: Schema = {"properties": {"if_exists": {"enum": ["fail", "replace"]}}}
_NUMERIC = given("numeric", numeric={"const": True})
_GROUP = either({"type": "string"}, {"type": "array", "minItems": 1})
_SENSITIVITY = {
    **{"type": "object", "required": ["sensitivity"], "additionalProperties": False},
    "properties": {"sensitivity": {"type": "number", "minimum": 1, "maximum": 100}},
}
_KINDS = ("name", "file", "ranges", "prefix", "dates", "flat")
#: What keys of one part take together.
TOGETHER: dict[str, Schema] = {
    "Policy": {
        "allOf": [
            when(
                {"required": ["tables"]},
                {
                    "required": ["require", "individual"],
                    "properties": {
                        **dict.fromkeys(_OF_EACH, False),
                        **{key: {"type": "null"} for key in ("key", "weight")},
                        **{"transparent": {"const": False}, "preserve": {"maxItems": 0}},
                        "databases": {"maxProperties": 0},
                        "individual": either({"type": "string"}, {"type": "object", "maxProperties": 1}),
                        "tables": {"minProperties": 1},
                    },
                },
                {"required": ["source", "target", "quasi_identifiers"]},
            ),
            when(
                _DECOMPOSES,
                {"properties": {"require": {"maxItems": 0}}},
                {"properties": {"require": {"minItems": 1}}, "required": ["require"]},
            ),
        ]
    },
    "Target": {
        "allOf": [
            either(_TABLE, given("file"), given("prefix")),
            when(given("database"), {"allOf": [_TABLE, {"not": given("file")}, _NO_APPEND]}),
            when(
                {"allOf": [given("file"), {"not": given("prefix")}]},
                {
                    "allOf": [
                        given("file", file=_ending(*_DUCKDB, *_OTHERS)),
                        _NO_APPEND,
                        when(given("file", file=_ending(*_DUCKDB)), _TABLE, {"not": _TABLE}),
                    ]
                },
            ),
        ]
    },
    "QuasiIdentifier": {
        "allOf": [
            {"not": {"allOf": [given("taxonomy"), _NUMERIC]}},
            {"not": {"allOf": [given("recode", recode={"not": {"enum": ["tree", None]}}), _NUMERIC]}},
        ]
    },
    "TaxonomySpec": one_key(_KINDS)
    | {"allOf": [when(given("tree"), given("file")), when(given("before"), given("dates"))]},
    "Sensitive": {
        "allOf": [
            when(given("weights"), given("categories")),
            {
                "properties": {
                    "taxonomy": either({"type": "string"}, NULL, {"type": "object", **one_key(("name", "file"))}),
                    "categories": either({"type": "array", "minItems": 2, "maxItems": 1_000, "items": _GROUP}, NULL),
                    "weights": either({"const": "uniform"}, _SENSITIVITY, {"type": "array"}, NULL),
                }
            },
        ]
    },
}


def page() -> str:
    """The schema as it is published."""
    return json.dumps(policy_schema(), indent=1, ensure_ascii=False) + "\n"
