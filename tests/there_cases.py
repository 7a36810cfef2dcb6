"""Random tables of types that a server has, with policies of every kind: what runs in warehouses are tried on."""

from __future__ import annotations

import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from recoded import KEYS, NAMED, OTHERS, TREE, Case, without_last
from servers import TYPES, DuckDB, comparable

import ldiv_db

#: The types whose values SQLite gives back as they were put in.
LITE = ("text", "integer", "double")
#: Algorithms, and the requirements that each of a family takes.
LOCAL = ("auto", "fast", "topdown", "mondrian", "peel", "stratified")
CUTS = ("cuts", "annealing")
#: Those that may publish sets of values.
SETS = (*LOCAL, "bsgi")
REQUIRE: dict[tuple[str, ...], list[list[dict[str, Any]]]] = {
    LOCAL: [
        [{"k": 4}], [{"risk": 0.2}], [{"distinct": 2}, {"k": 3}], [{"frequency": 2}], [{"entropy": 1.5}],
        [{"recursive": {"c": 2, "l": 2}}], [{"alpha_k": {"alpha": 0.7, "k": 3}}], [{"p_sensitive": {"p": 2, "k": 4}}],
        [{"threshold": {"default": 0.6}}], [{"t_closeness": 0.4}], [{"beta_likeness": 1}],
    ],
    ("bsgi",): [[{"distinct": 2}], [{"frequency": 2}], [{"unique_distinct": 2}, {"k": 2}], [{"entropy": 2}]],
    ("tp", "tp_plus", "hilbert"): [[{"frequency": 2}]],
    CUTS: [[{"threshold": {"default": 0.6}}], [{"threshold": {"default": 0.81}}, {"frequency": 1.2}]],
    ("incognito", "tds"): [
        [{"k": 3}], [{"distinct": 2}, {"k": 2}], [{"alpha_k": {"alpha": 0.8, "k": 2}}], [{"t_closeness": 0.5}],
    ],
}  # fmt: skip
#: Those that take a requirement on rows alone.
ROWS_ALONE = (*LOCAL, "incognito", "tds")
#: What a policy may say beside: how labels are written, and what becomes of NULLs.
FORMS: dict[str, list[Any]] = {
    "output": [{}, {}, {"class_id": True}, {"bounds": True}, {"types": "text"}],
    "nulls": ["value", "suppress"],
    "nulls_sensitive": ["value", "suppress"],
}


def random_people(seed: Any, types: Collection[str] = TYPES) -> Case:
    """A table of columns of these types and a policy of any kind; the run may be infeasible."""
    draw = random.Random(f"people {seed}")
    family = draw.choice([LOCAL, LOCAL, *REQUIRE])
    names = draw.sample([name for name, (kind, *_) in KEYS.items() if kind in types], draw.choice([1, 2, 3]))
    keys = {name: _entry(draw, name, is_local=family in (LOCAL, ("bsgi",))) for name in names}
    others = [kind for kind in OTHERS if kind in types]
    several = family == LOCAL and draw.random() < 0.2
    secrets = {name: draw.choice(others) for name in ("group", "state")[: 1 + several]}
    columns = {name: KEYS[name][0] for name in names} | secrets | {'o"k': draw.choice(others), "rid": "integer"}
    missing = draw.choice([0, 0.1, 0.3])

    def one(values: list[Any], share: float) -> Any:
        return None if draw.random() < share else draw.choice(values)

    rows = [
        (
            *(one(KEYS[name][1], missing) for name in names),
            *(one(OTHERS[kind], missing / 3) for kind in secrets.values()),
            one(OTHERS[columns['o"k']], 0.2),
            number,
        )
        for number in range(draw.choice([16, 30, 50]))
    ]
    algorithm = _algorithm(draw, draw.choice(family))
    policy = {
        "source": '"my source"', "target": {"table": "released", "if_exists": "replace"}, "quasi_identifiers": keys,
        "sensitive": [*secrets], "keep": ['o"k'], "identifiers": ["rid"], "seed": draw.randint(0, 99),
        "algorithm": algorithm, "require": draw.choice(REQUIRE[family]),
        "over_time": "independent",
    } | {part: draw.choice(choices) for part, choices in FORMS.items()}  # fmt: skip
    whole = [name for name, key in keys.items() if key.get("numeric") and KEYS[name][0] == "integer"]
    if any("top" in key for key in keys.values()):
        policy["output"] = {}
    elif whole and draw.random() < 0.5:  # beside the ranges of whole numbers
        policy |= {"output": {whole[0]: draw.choice(["mean", "median"])}, "nulls": "value"}
    if algorithm["name"] in SETS:
        policy["recode"] = draw.choice(["tree", "set"])
    if algorithm.get("scheme") in ("vioSA", "allSA"):  # they publish NULL for what they suppress
        policy["nulls_sensitive"] = "suppress"
    _read_otherwise(draw, policy, columns)
    return Case(columns, rows, policy, {"tree.json": TREE, "named.json": NAMED})


def _read_otherwise(draw: random.Random, policy: dict[str, Any], columns: dict[str, str]) -> None:
    """Have some policies read values otherwise than they are written, or publish rows that no counts tell."""
    texts = [name for name in policy["sensitive"] if columns[name] == "text"]
    is_local = policy["algorithm"]["name"] in SETS
    numbers = [name for name in policy["sensitive"] if columns[name] in ("integer", "decimal")]
    extra = draw.choice(["", "", "same", "set", "null_values", "transparent", "range", "rows alone"])
    if extra == "range" and numbers and policy["algorithm"]["name"] in LOCAL:
        policy["require"] = [{"range": {"k": 2, "e": 1}, "sensitive": numbers[0]}]
    elif extra == "rows alone" and policy["algorithm"]["name"] in ROWS_ALONE:
        policy |= {"sensitive": [], "identifiers": ["rid", *policy["sensitive"]], "require": [{"k": 3}]}
    elif extra in ("same", "set") and texts and is_local:
        said = {"same": ["casefold"]} if extra == "same" else {"set": "'"}
        policy["sensitive"] = {name: said if name == texts[0] else {} for name in policy["sensitive"]}
    elif extra == "null_values":
        for name, entry in policy["quasi_identifiers"].items():
            if columns[name] == "text" and entry:
                entry["null_values"] = [draw.choice(KEYS[name][1])]
    elif extra == "transparent" and policy["algorithm"]["name"] == "bsgi":
        policy |= {"transparent": True, "nulls": "value", "nulls_sensitive": "value", "output": {}}
        policy["algorithm"] = {"name": "bsgi"}


def _entry(draw: random.Random, name: str, is_local: bool) -> dict[str, Any]:
    """How a quasi-identifier is generalised; only algorithms that form classes take one without a taxonomy."""
    kind, _, taxonomies = KEYS[name]
    entries: list[dict[str, Any]] = [{"taxonomy": taxonomy} for taxonomy in taxonomies]
    if is_local:
        entries += [{}] if kind in ("text", "boolean") else [{"numeric": True}] * 3
        entries += [{"numeric": True, "bottom": 1, "top": 3}] if kind in ("integer", "decimal", "double") else []
    return draw.choice(entries)


def _algorithm(draw: random.Random, name: str) -> dict[str, Any]:
    """An algorithm with some of its options."""
    options: dict[str, Any] = {"name": name}
    if name in CUTS:
        options |= {"scheme": draw.choice(["none", "vioSA", "allSA", "allRec"])}
    if name in ("cuts", "tds") and draw.random() < 0.3:  # by what is kept beside
        options |= {"class": 'o"k'}
        options |= {"metric": "CM", "scheme": draw.choice(["none", "allRec"])} if name == "cuts" else {}
    if name == "annealing":
        options |= {"steps": 5}
    if name == "bsgi":
        options |= {"residue": draw.choice(["incorporate", "suppress"]), "select": draw.choice(["refine", "bisect"])}
    if name == "tp":
        options |= draw.choice([{}, {"coarsen": "auto"}])
    return options


@dataclass(frozen=True)
class Embedded:
    """A run in DuckDB: its case, and the result with the rows of the release and what `check` says, or the error.

    `numbered` says whether the release has numbers of classes, which some requirements need.
    """

    case: Case
    result: Any = None
    release: Counter[tuple[Any, ...]] | None = None
    numbered: bool = False
    checked: Any = None
    error: type[Exception] | None = None

    def assert_same(self, rows: Iterable[tuple[Any, ...]], result: Any, checked: Any) -> None:
        """A run elsewhere publishes the same rows, and the same is said of them.

        Which of the rows that are equal but for what is kept beside them is where is up to the server, and so are the
        numbers of classes with the same labels, which are in the order of that here.
        """
        assert self.release is not None
        release = comparable(rows)
        if self.numbered:
            assert _classes(release) == _classes(self.release)
        else:
            assert without_last(release) == without_last(self.release)
        if not self.result.loss.rows_suppressed:
            assert _pairs(release) == _pairs(self.release)
        assert abs(result.loss.lm_mean - self.result.loss.lm_mean) < 1e-9
        assert result.algorithm == self.result.algorithm
        assert checked == self.checked
        assert [audit.as_dict() for audit in result.audits] == [audit.as_dict() for audit in self.result.audits]


def _classes(release: Counter[tuple[Any, ...]]) -> Counter[frozenset[Any]]:
    """The classes, each by its rows without its number and what is kept beside."""
    found: dict[Any, Counter[Any]] = defaultdict(Counter)
    for (number, *shown, _), count in release.items():
        found[number][tuple(shown)] += count
    return Counter(frozenset(rows.items()) for rows in found.values())


def _pairs(release: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The values of the last sensitive and of the kept column, with their counts."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row, count in release.items():
        found[row[-2:]] += count
    return found


def checks(connection: Any, table: str, policy: dict[str, Any], folder: Path) -> Any:
    """What `check` says of a release by its policy, or why it does not; of what it keeps a warehouse says nothing."""
    try:
        audits = ldiv_db.check(connection, table, policy=policy | {"keep": []}, folder=folder)
        return [audit.as_dict() for audit in audits]
    except ldiv_db.PolicyError as error:
        return str(error)


@cache
def embedded(seed: int, types: tuple[str, ...] = TYPES, plain_names: bool = False) -> Embedded:
    """The random case of a seed, run in DuckDB."""
    case, server = random_people(seed, types), DuckDB()
    if plain_names:
        case.rename()
    with tempfile.TemporaryDirectory() as folder:
        case.place(server, Path(folder))
        try:
            result = ldiv_db.run(server.connection, case.policy, folder)
        except ldiv_db.LdivError as error:
            return Embedded(case, error=type(error))
        checked = checks(server.connection, "released", case.policy, Path(folder))
    numbered = "class_id" in server.connection.table("released").columns
    return Embedded(case, result, comparable(server.query("SELECT * FROM released")), numbered, checked)
