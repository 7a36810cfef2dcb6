"""The JSON Schema of policies: it takes what the program takes, and refuses what no part of a policy may be."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_input import (
    spoil_algorithm,
    spoil_requirement,
    spoil_settings,
    spoil_target,
    spoil_taxonomy,
    spoil_value,
    valid,
)

from ldiv_db.commands.policy import problems_in
from ldiv_db.database.errors import Problem
from tests.docs.policy_schema import policy_schema
from tests.strategies import search, seeds

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = policy_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
SPOILS = (spoil_value, spoil_value, spoil_settings, spoil_algorithm, spoil_requirement, spoil_target, spoil_taxonomy)
#: What a schema does not say: that keys exclude or need one another, or name the same column; which order a list has;
#: the bounds and digits of numbers that are written as texts, and of numbers that have no fraction; what files hold.
BEYOND = re.compile(
    r"does not go with|goes with|is required[:( ]+\S+.*|is about its values|is already under|classified already under"
    r"|is not sensitive|publishes .+, not sets|recodes all rows by one rule|with class ids|has no row wait"
    r"|is the name of a column that|can be put into|links the rows of a person|marginals|anatomy (has|protects)"
    r"|takes rising units|takes falling|has a value twice|weights|is more than the|takes `flat:`"
    r"|digits after the point|, not '[\d.]+'|(seed|ranges\.\d|origin|prefix\.\d): takes a (whole )?number( up to .*)?$"
    r"|taxonomy: (no file|.*Errno)|holds a character that no file's name has"
)


def drawn(seed: int) -> dict[str, Any]:
    """A policy as an editor reads it: a good one for every fourth seed, else one with one to three parts spoilt."""
    draw = random.Random(seed)
    while True:
        found = valid(draw)
        for spoil in draw.choices(SPOILS, k=draw.randint(1, 3) if seed % 4 else 0):
            with suppress(AttributeError, IndexError):  # nothing of that kind is left
                spoil(draw, found)
        with suppress(TypeError, ValueError, RecursionError, yaml.YAMLError):  # a date, bytes, no number, no character
            read = yaml.safe_load(yaml.safe_dump(found.document, sort_keys=False))
            json.dumps(read, allow_nan=False, ensure_ascii=False).encode()
            return dict(read)


def told_of(file: Path, document: Any) -> list[Problem]:
    (file.parent / "country.csv").write_text("Norway;*\nItaly;*\nJapan;*\nKorea;*\n")
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    try:
        return problems_in(file)
    except OSError as error:  # of a name that is too long, which no schema knows
        return [Problem("quasi_identifiers", f"taxonomy: {error}")]


@search(10, seed=seeds)
def test_schema_and_program_agree(tmp_path: Path, seed: int) -> None:
    """What the schema refuses the program does, in the same part; what it takes holds, or breaks what is BEYOND it."""
    document = drawn(seed)
    told, errors = told_of(tmp_path / "policy.yml", document), list(VALIDATOR.iter_errors(document))
    if not errors:
        assert [str(one) for one in told if not BEYOND.search(str(one))] == [], document
        return
    places = {str(error.absolute_path[0]) for error in errors if error.absolute_path}
    parts = {problem.key.split(".")[0] for problem in told}
    assert parts and (places & parts or len(places) < len(errors)), (document, errors)


@pytest.mark.parametrize(
    "change",
    [
        *({"suppression": 1}, {"suppression": "0.1"}, {"seed": True}, {"transparent": "no"}, {"part_rows": 1}),
        *({"keep": "ward"}, {"sorce": "t"}, {"require": []}, {"require": [{"k": 2, "distinct": 2}]}),
        *({"require": [{"risk": {"max": 0.1, "average": 0.1}}]}, {"require": [{"recursive": 3}]}),
        *({"algorithm": "bsgy"}, {"algorithm": {"name": "tds", "select": "refine"}}, {"target": {}}),
        *({"target": {"file": "a.txt"}}, {"target": {"file": "a.duckdb"}}, {"output": {"bounds": 1}}),
        *({"quasi_identifiers": []}, {"quasi_identifiers": {"age": {"numeric": True, "taxonomy": "age"}}}),
        *({"quasi_identifiers": {"zip": {"taxonomy": {}}}}, {"sensitive": {"disease": {"harmless": []}}}),
        *({"sensitive": {"disease": {"weights": "uniform"}}}, {"sensitive": {"disease": {"set": "x"}}}),
        *({"individual": {"rows": "apart"}}, {"context": {"release_model": "secret"}}, {"tables": {}}),
        {"tables": {"a": {"source": "a", "target": "b", "person": "p"}}},
    ],
)
def test_both_refuse(tmp_path: Path, change: dict[str, Any]) -> None:
    good = drawn(0) | {"target": "published.patients", "key": None}
    assert told_of(tmp_path / "policy.yml", good | change) and not VALIDATOR.is_valid(good | change)


@pytest.mark.parametrize(
    "asked",
    [
        {"frequency": {"l": 3, "sensitive": "disease"}},
        {"recursive": {"c": 3, "l": 2}, "sensitive": ["disease"]},
        {"k": {"k": 2}},
    ],
)
def test_both_take_whom_a_requirement_is_for_in_either_place(tmp_path: Path, asked: dict[str, Any]) -> None:
    good = drawn(0) | {"require": [asked], "algorithm": "auto", "key": None, "target": "published.patients"}
    assert told_of(tmp_path / "policy.yml", good) == [] == list(VALIDATOR.iter_errors(good))


def test_policies_of_the_repository_are_good() -> None:
    files = [*Path(__file__).parents[2].glob("fixtures/*/policy*.yml")]
    assert files and not [file for file in files if problems_in(file) or not VALIDATOR.is_valid(_read(file))]


def _read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def test_every_key_is_described_and_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    parts = {"Policy": SCHEMA, **SCHEMA["definitions"]}
    keys = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.get("properties", {}).items()}
    assert len(keys) > 120 and [key for key, value in keys.items() if "description" not in value] == []
    assert parts["Policy"]["properties"]["nulls"]["default"] == "value"
    assert "frame" not in json.dumps(SCHEMA["properties"]["source"]["anyOf"])
