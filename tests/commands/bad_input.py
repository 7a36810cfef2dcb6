"""Bad policies, taxonomies, sources, targets, catalogs and options, drawn at random; and what may become of them.

A draw begins with a policy that holds and spoils one to three things. It may end in a result, which `tests/promises`
holds against what was published, or in one clear line for each problem: nothing else, and nothing written.
"""

from __future__ import annotations

import copy
import math
import os
import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import yaml
from bad_pools import (
    ALGORITHM_OPTIONS,
    ALGORITHMS,
    CALLS,
    CATALOGS,
    EXPRESSIONS,
    NAMES,
    OPTIONS,
    REQUIREMENTS,
    SETTINGS,
    SOURCE_FILES,
    SOURCES,
    TARGETS,
    TAXONOMIES,
    TAXONOMY_KINDS,
    VALUES,
    WORDS,
)

Draw = random.Random
#: What algorithms of levels take, and these.
LEVELS = {"age": {"taxonomy": {"ranges": [10, 20]}}, "country": {"taxonomy": {"file": "country.csv"}}}
OF_LEVELS = ("cuts", "incognito", "tds", "annealing")
#: Exit codes of a call that did what it was asked for, or says why not.
CODES = (0, 1, 2, 3)
#: What no message may have in it: a traceback, or a statement of ours.
FORBIDDEN = re.compile(
    r"Traceback|in template [\w/()]+( in)?:\n|^ +\d+  |\bSELECT\b"
    r"|\bCREATE (OR REPLACE )?(TEMP )?TABLE\b|\bINSERT INTO\b",
    re.MULTILINE,
)
#: Commands whose verdict, on stdout, is told by the exit code 1.
VERDICTS = ("check", "attack", "taxonomy", "release")


@dataclass
class Drawn:
    """A call: what is made in the folder first, the policy's text, and the words of the command."""

    document: dict[str, Any]
    sql: list[str] = field(default_factory=list)
    files: dict[str, bytes | str] = field(default_factory=dict)
    text: str | None = None
    words: list[str] = field(default_factory=lambda: ["run", "{database}", "{policy}", "--threads", "1", "--json"])

    @property
    def policy(self) -> str:
        return yaml.safe_dump(self.document, sort_keys=False) if self.text is None else self.text


def valid(draw: Draw) -> Drawn:
    """A call that may well do what it says."""
    algorithm, requirement = draw.choice(ALGORITHMS), draw.choice(REQUIREMENTS)
    quasi = LEVELS | {"age": {"numeric": True}}
    if (algorithm["name"] if isinstance(algorithm, dict) else algorithm) in OF_LEVELS:
        quasi, requirement = LEVELS, {"frequency": 2}
    document = {
        "source": "main.patients",
        "target": "published.patients",
        "identifiers": ["name"],
        "quasi_identifiers": quasi,
        "sensitive": ["disease"],
        "keep": ["ward"],
        "require": [requirement],
        "algorithm": algorithm,
        "seed": 1,
    }
    if draw.random() < 0.1:
        document |= {"target": {"prefix": "published.patients"}, "key": "name", "identifiers": []}
        document |= {"algorithm": {"name": "bsgi"}, "require": [{"unique_distinct": 2}]}
    return Drawn(copy.deepcopy(document))


# -- what is spoilt ----------------------------------------------------------------------------------


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value within a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, part in inner for found in [(*way, key), *places(part, (*way, key))]]


def spoil_value(draw: Draw, drawn: Drawn) -> None:
    """Another value somewhere in the policy, or a key that goes, comes, or has another name."""
    *way, last = draw.choice(places(drawn.document))
    owner: Any = drawn.document
    for key in way:
        owner = owner[key]
    how = draw.choice(["value", "value", "value", "gone", "more", "renamed"])
    if how == "value":
        owner[last] = copy.deepcopy(draw.choice(VALUES))
    elif how == "gone":
        owner.pop(last)
    elif isinstance(owner, list):
        owner += [copy.deepcopy(owner[last])] if how == "more" else [draw.choice(VALUES)]
    else:
        owner[draw.choice(NAMES)] = copy.deepcopy(draw.choice(VALUES)) if how == "more" else owner.pop(last)


def spoil_settings(draw: Draw, drawn: Drawn) -> None:
    """A setting at its limits, or beyond."""
    key = draw.choice([*SETTINGS, "weight"])
    if key != "weight":
        drawn.document[key] = draw.choice([*SETTINGS[key], draw.choice(VALUES)])
        return
    for setting in as_dict(drawn.document.get("quasi_identifiers")).values():
        if isinstance(setting, dict):
            setting["weight"] = draw.choice([0, 1e6, 1e7, 1e-9, math.nan])


def spoil_algorithm(draw: Draw, drawn: Drawn) -> None:
    """An option of an algorithm, right or wrong."""
    key = draw.choice(list(ALGORITHM_OPTIONS))
    names, values = ALGORITHM_OPTIONS[key]
    name = draw.choice(names.split())
    if name in OF_LEVELS:
        drawn.document |= {"quasi_identifiers": copy.deepcopy(LEVELS), "require": [{"frequency": 2}]}
    drawn.document["algorithm"] = {"name": name, key: draw.choice([*values, draw.choice(VALUES)])}
    if name.startswith(("dec", "ana")) and draw.random() < 0.8:
        drawn.document |= {"target": {"prefix": "published.x"}, "key": "name", "identifiers": []}
        drawn.document |= {"sensitive": {"disease": {"l": 2}}, "quasi_identifiers": ["age", "country"]}
        drawn.document.pop("require", None)


def spoil_requirement(draw: Draw, drawn: Drawn) -> None:
    """Another requirement with a parameter that may be wrong."""
    spec = copy.deepcopy(
        draw.choice([*REQUIREMENTS, {"distinct_alpha": {"l": 2, "alpha": 1}}, {"threshold": {"base": 0.3}}])
    )
    ((name, argument),) = spec.items()
    limits = [0, 1, 1.0000000001, 2, 24, 25, 10**9, 10**10, 10**30, 1e-9, 1e308, "auto", "3", draw.choice(VALUES)]
    if isinstance(argument, dict):
        argument[draw.choice(list(argument))] = draw.choice(limits)
    else:
        spec[name] = draw.choice(limits)
    drawn.document["require"] = [spec, *([copy.deepcopy(draw.choice(REQUIREMENTS))] if draw.random() < 0.3 else [])]
    if draw.random() < 0.4:
        named, listed = [{"sensitivity": 2}, {"sensitivity": 1e9}], [[0, 1], [0, "1e-999999999"], ["1/0", 1]]
        weights = draw.choice([None, "uniform", *named, *listed, draw.choice(VALUES)])
        many = [[f"c{i}"] for i in range(1_200)]
        groups = draw.choice([[["Flu"], ["Cancer", "Hepatitis", "Asthma"]], [[], []], [["Flu"], ["Flu"]], many])
        drawn.document["sensitive"] = {"disease": {"categories": groups, "weights": weights}}


def spoil_taxonomy(draw: Draw, drawn: Drawn) -> None:
    """A taxonomy that is none, or another kind of one."""
    spec: Any
    if draw.random() < 0.6:
        name = draw.choice(list(TAXONOMIES))
        drawn.files[name], spec = TAXONOMIES[name], {"file": name}
    else:
        limits = [draw.choice(VALUES), draw.choice(VALUES)]
        kind = draw.choice(["name", *TAXONOMY_KINDS])
        spec = {kind: draw.choice([*TAXONOMY_KINDS.get(kind, NAMES), limits])}
        if kind == "ranges":
            spec["origin"] = draw.choice([0, 1e300, -1e30, math.nan])
    column = draw.choice(["country", "country", "age", "disease"])
    if column == "disease":
        drawn.document["sensitive"] = {"disease": {"taxonomy": spec}}
        drawn.document["require"] = [
            {"t_closeness": {"t": 0.9, "distance": draw.choice(["hierarchical", "ordered", "equal"])}}
        ]
    else:
        drawn.document["quasi_identifiers"] = {
            **as_dict(drawn.document.get("quasi_identifiers")),
            column: {"taxonomy": spec},
        }


def spoil_source(draw: Draw, drawn: Drawn) -> None:
    """A source of another kind, or a column of one."""
    how = draw.random()
    if how < 0.5:
        column = draw.choice(["name", "age", "country", "disease", "ward"])
        replaced = f"SELECT * EXCLUDE (i) REPLACE ({draw.choice(EXPRESSIONS)} AS {column})"
        drawn.sql.append(
            f"CREATE OR REPLACE TABLE w AS {replaced} FROM (SELECT *, row_number() OVER () AS i FROM patients)"
        )
        drawn.document["source"] = "w"
        kinds = [{"dates": ["day", "year"]}, {"prefix": [3, 1]}, {"prefix": [3, 1]}, {"ranges": [5, 10]}]
        if column in ("age", "country") and draw.random() < 0.6:
            quasi = as_dict(drawn.document.get("quasi_identifiers"))
            drawn.document["quasi_identifiers"] = {**quasi, column: {"taxonomy": draw.choice(kinds)}}
        if draw.random() < 0.3:
            drawn.document["nulls_sensitive"] = "value"
        if draw.random() < 0.3:
            drawn.words = ["run", "{database}", "{policy}", "--kl", "--json"]
    elif how < 0.8:
        name, sql = draw.choice(list(SOURCES.values()))
        drawn.sql.append(sql)
        drawn.document["source"] = name
    else:
        name = draw.choice(
            [*SOURCE_FILES, *SOURCE_FILES, "folder.csv", "pipe.csv", "/dev/null", "/dev/zero.csv", "no.csv", "*.csv"]
        )
        drawn.document["source"] = name
        if name in SOURCE_FILES:
            drawn.files[name] = SOURCE_FILES[name]


def spoil_target(draw: Draw, drawn: Drawn) -> None:
    drawn.document["target"] = draw.choice(TARGETS)
    drawn.files["text.duckdb"] = "no database"


def spoil_catalog(draw: Draw, drawn: Drawn) -> None:
    drawn.sql.append(draw.choice(CATALOGS))


def spoil_text(draw: Draw, drawn: Drawn) -> None:
    """Something in the policy's text itself."""
    text = drawn.policy
    line = draw.randrange(text.count("\n") + 1)
    lines = text.split("\n")
    how = draw.choice(["twice", "cut", "line", "indent", "anchor"])
    if how == "twice":
        lines.insert(line, lines[line])
    elif how == "cut":
        lines = [text[: draw.randrange(len(text))]]
    elif how == "indent":
        lines[line] = " " * draw.randrange(1, 5) + lines[line]
    elif how == "anchor":
        lines.insert(0, "x: &x {a: [1, 2]}\ny: [*x, *x]")
    else:
        odd = [
            *("? [a, b]\n: 1", "\t- x", "<<: *none", "seed: 2024-13-45", "seed: " + "1" * 5_000),
            *("a: &a [*a]", "%YAML 9.9", "---", "\x00", "!!int x: 1", "seed: !!int ''", "1: 2"),
            *("2020-01-01: 1", "~: 1", "keep: !!binary 'x'", "{" * 300, "- " * 300 + "x", "seed: .nan", "? "),
            *("&a", "*a", "!!set {a}", "seed: 1:60", 'source: "\\ud800"', "😀: 1"),
        ]
        lines.insert(line, draw.choice(odd))
    drawn.text = "\n".join(lines)


def spoil_command(draw: Draw, drawn: Drawn) -> None:
    """Another command, with options that may be wrong."""
    drawn.sql.append("CREATE OR REPLACE VIEW v AS SELECT * REPLACE (name::INTEGER AS age) FROM patients")
    drawn.files["ok.csv"] = SOURCE_FILES["ok.csv"]
    odd = str(draw.choice([*NAMES, 0, -1, 10**30, "nan", "1e308"])).replace("\0", "")
    words = {name: draw.choice([*choices, odd]) for name, choices in WORDS.items()} | {"ODD": odd}
    drawn.words = [words.get(word, word) for word in draw.choice(CALLS).split()]


def spoil_option(draw: Draw, drawn: Drawn) -> None:
    drawn.words = [*drawn.words, *draw.choice(OPTIONS)]
    drawn.files["text.duckdb"] = "no database"


SPOILS: list[Callable[[Draw, Drawn], None]] = [
    *(spoil_value, spoil_value, spoil_settings, spoil_algorithm, spoil_requirement, spoil_taxonomy),
    *(spoil_taxonomy, spoil_source, spoil_source, spoil_target, spoil_catalog, spoil_command, spoil_command),
    *(spoil_option,),
]


def as_dict(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def draw_call(seed: int) -> Drawn:
    """A call with one to three things spoilt."""
    draw = random.Random(seed)
    drawn = valid(draw)
    for spoil in draw.sample(SPOILS, draw.choice([1, 1, 1, 2, 3])):
        spoil(draw, drawn)
    if draw.random() < 0.1:
        spoil_text(draw, drawn)
    return drawn


def place(drawn: Drawn, folder: Path) -> list[str]:
    """Make the files and tables of a draw, beside what the folder has; returns the words of its command."""
    for name, content in drawn.files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "folder.csv").mkdir()
    for name in ("pipe", "pipe.csv"):
        os.mkfifo(folder / name)
    os.symlink("/dev/full", folder / "full.csv")
    with duckdb.connect(str(folder / "hospital.duckdb")) as con:
        for sql in filter(None, drawn.sql):
            with suppress(duckdb.CatalogException):  # two things spoilt may want one name
                con.execute(sql)
        con.execute("CHECKPOINT")
    (folder / "policy.yml").write_bytes(drawn.policy.encode("utf-8", "surrogatepass"))
    known = {"{database}": str(folder / "hospital.duckdb"), "{policy}": str(folder / "policy.yml")}
    return [known.get(word, word) for word in drawn.words]


# -- what may become of it -----------------------------------------------------------------------------


def refuse_message(words: list[str], code: int, out: str, err: str) -> None:
    """Assert that a failure says in clear lines what is wrong, and says it on stderr."""
    assert code in CODES, (code, err)
    assert not FORBIDDEN.search(err), err
    if code == 0 or (code == 1 and words[0] in VERDICTS and out):
        return
    assert out == "" or "--json" in words, out
    if err.startswith("Usage: ldiv"):
        lines = [line for line in err.splitlines() if line and not line.startswith(("Usage: ", "Try '"))]
        assert code == 2 and lines and all(re.match(r"Error: |  |\w", line) for line in lines), err
        return
    told = [line for line in err.splitlines() if not re.fullmatch(r"[\w ]+: [\d,]+ rows.*", line)]
    assert told, "a failure without a word"
    problems = [line for line in told if line.startswith("error: ")]
    assert len(err) < 100_000 and problems, err
    # A name may break a line of its own; nothing else does.
    remedy = re.compile(r"a run accepts, the least costly first:|  \d\. ")
    broken = [line for line in told if not line.startswith("error: ") and not remedy.match(line)]
    assert len(broken) <= 2 * len(problems) and not any(
        "LINE 1:" in line or "Possible solutions" in line for line in told
    ), err
