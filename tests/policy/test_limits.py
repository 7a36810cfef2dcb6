"""What does not go together: every pair of features plans, or is refused by name with a way out that plans."""

import contextlib
import copy
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import reject

import ldiv_db
from ldiv_db.policy.limits import FEATURES, LIMITS, Limit
from ldiv_db.policy.parts import Problems, unreported
from ldiv_db.policy.reading import load_policy
from ldiv_db.policy.resolve import Findings
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sources import DECOMPOSITIONS
from ldiv_db.running.policy_algorithm import judge_algorithm
from ldiv_db.running.there import unsupported
from tests.strategies import draws, search

#: What is said of each table where there are several.
OF_TABLES = ("source", "target", "identifiers", "quasi_identifiers", "sensitive")
#: What a policy does not tell: where it runs, and what its algorithm does.
OUTSIDE = {"a warehouse", "a warehouse without locks", "a global recoding"}
LINKED = {"linked rows", "rows together", "rows aligned", "person"}
BSGI = {"transparent", "another select", "another residue"}
POPULATIONS = {"population", "presence"}


def plain() -> dict:
    return {
        "source": "stays",
        "target": {"table": "pub"},
        "identifiers": ["stay", "day", "who"],
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [10, 30]}}, "zip": {"taxonomy": {"prefix": [5, 3]}}},
        "sensitive": {"dx": {}},
        "keep": ["note"],
        "require": [{"frequency": 2}],
        "seed": 1,
    }


def part(document: dict) -> dict:
    """Where columns and the target of the stays are said."""
    return document["tables"]["stays"] if "tables" in document else document


def unlist(document: dict, column: str) -> None:
    for key in ("identifiers", "keep"):
        part(document)[key] = [name for name in part(document).get(key, ()) if name != column]


def over_time(document: dict) -> None:
    document["key"] = "stay"
    if "tables" not in document:
        unlist(document, "stay")


def grouped(name: str, document: dict) -> None:
    """By a decomposition, whose requirements stand with the attributes."""
    document.pop("require", None)
    document["algorithm"] = name
    document["target"] = {"prefix": "pub"}
    for setting in document["sensitive"].values():
        setting["l"] = 2


def of_person(rows: str, document: dict) -> None:
    document["individual"] = {"column": "who", "rows": rows} | ({"order": "day"} if rows == "aligned" else {})
    unlist(document, "who")


def numbers(document: dict, **settings) -> None:
    known = part(document)["quasi_identifiers"]["age"]
    known.pop("taxonomy", None)
    known.update({"numeric": True} | settings)


def by_means(document: dict) -> None:
    numbers(document)
    document.setdefault("output", {})["age"] = "mean"


def in_lists(document: dict) -> None:
    part(document)["quasi_identifiers"]["zip"]["recode"] = "set"
    document.setdefault("output", {})["zip"] = "list"


def in_bounds(document: dict) -> None:
    numbers(document)
    document.setdefault("output", {})["bounds"] = True


def counted(document: dict) -> None:
    document |= {"source": "counted", "weight": "n", "identifiers": []}


def notes(document: dict) -> None:
    document["sensitive"]["note"] = {}
    unlist(document, "note")


def under(algorithm: Any, document: dict) -> None:
    if "require" in document:
        document["algorithm"] = algorithm


def held(require, document: dict) -> None:
    document["require"] = [require]


def of_population(document: dict) -> None:
    document["require"] = [{"frequency": 2}, {"k_map": {"k": 2, "population": "pop"}}]


def in_prefix(document: dict) -> None:
    over_time(document)
    document["target"] = {"prefix": "pub"}


def into(document: dict, **place: str) -> None:
    """Another database or a file, in which a decomposition has its prefix, and of flat files a folder."""
    target, is_flat = document["target"], place.get("file") in ("pub.parquet", "pub.csv")
    if is_flat and document.get("algorithm") in DECOMPOSITIONS:
        document["target"] = {"file": f"out/{place['file']}"}
        return
    is_named = "prefix" in target or not is_flat
    document["target"] = place | (
        {key: target[key] for key in ("table", "prefix") if key in target} if is_named else {}
    )


def known_method(document: dict) -> None:
    document["transparent"] = True


def linked(document: dict) -> None:
    of_person("together", document)
    document.setdefault("output", {})["person"] = "nr"


def split(document: dict) -> None:
    """The people in a table of their own."""
    if "tables" in document:
        return
    if "require" not in document:
        ungrouped(document["algorithm"], document)
    own = {key: document.pop(key) for key in OF_TABLES} | {"person": "who", "order": "day"}
    own["identifiers"] = [name for name in own["identifiers"] if name not in ("who", "day", document.get("key"))]
    own["identifiers"] += [document["key"]] if "key" in document else []
    beside = copy.deepcopy(own["target"])
    if "table" in beside:
        beside["table"] = "pub_p"
    if beside.get("file") and beside["file"] != "pub.duckdb":
        own["target"]["file"], beside["file"] = "out/pub" + beside["file"][3:], "out/pub_p" + beside["file"][3:]
    people = {"source": "patients", "person": "who", "quasi_identifiers": {"sex": {}}, "target": beside}
    own["keep"] = document.pop("keep")
    document.setdefault("individual", "who")
    document["tables"] = {"patients": people, "stays": own}


def split_apart(document: dict) -> None:
    """The same, of which nothing links the tables."""
    of_person("apart", document)
    split(document)
    own = document["tables"]["stays"]
    own["identifiers"] = [*own["identifiers"], own.pop("order")]


def one_known(document: dict) -> None:
    """The people in a table of their own, of whose other rows one is known."""
    split(document)
    own = document["tables"]["stays"]
    own["identifiers"] = [*own["identifiers"], *([own.pop("order")] if "order" in own else [])]
    document["known"] = 1


#: What gives a plain policy a feature, in the order in which two of them are put together.
GIVEN = {
    "weight": counted,
    "individual": lambda d: of_person("apart", d),
    "people of all nights": lambda d: (of_person("apart", d), under("topdown", d)),
    "rows apart": lambda d: (of_person("apart", d), under("topdown", d)),
    "linked rows": lambda d: of_person("together", d),
    "rows together": lambda d: of_person("together", d),
    "rows aligned": lambda d: of_person("aligned", d),
    "person": linked,
    "releases over time": over_time,
    "several attributes": notes,
    "set": lambda d: d["sensitive"]["dx"].update(set=","),
    "same": lambda d: d["sensitive"]["dx"].update(same=["casefold"]),
    "harmless": lambda d: d["sensitive"]["dx"].update(harmless=["a"]),
    "comparisons": lambda d: held({"t_closeness": {"t": 0.9}}, d),
    "population": of_population,
    "presence": lambda d: held({"delta_presence": {"max": 1, "population": "pop"}}, d),
    "auto": lambda d: held({"frequency": "auto"}, d),
    "rows of one value": lambda d: held({"unique_distinct": 2}, d),
    "suppression": lambda d: d.update(suppression=0.5),
    "suppressed": lambda d: d.update(suppressed="ignore"),
    "nulls: suppress": lambda d: d.update(nulls="suppress"),
    "nulls_sensitive: suppress": lambda d: d.update(nulls_sensitive="suppress"),
    "means and medians": by_means,
    "lists": in_lists,
    "expand": lambda d: d.update(expand="weighted"),
    "bounds": in_bounds,
    "open ends": lambda d: numbers(d, top=50),
    "values to read": lambda d: d["quasi_identifiers"]["zip"].update(null_values=["NA"]),
    "class_id": lambda d: d.setdefault("output", {}).update(class_id=True),
    "preserve": lambda d: d.update(preserve=["SELECT count(*) FROM source"]),
    "not of unions": lambda d: held({"unique_distinct": 2}, d),
    "databases": lambda d: d.update(databases={"other": "other.duckdb"}),
    "decomposition": lambda d: grouped("decomposition_plus", d),
    "anatomy": lambda d: grouped("anatomy", d),
    "if_exists: append": lambda d: d["target"].update(if_exists="append"),
    "a prefix": in_prefix,
    "flat files": lambda d: into(d, file="pub.parquet"),
    "a CSV file": lambda d: into(d, file="pub.csv"),
    "a file": lambda d: into(d, file="pub.duckdb"),
    "another database": lambda d: (into(d, database="other"), d.update(databases={"other": "other.duckdb"})),
    "other algorithms": lambda d: under("topdown", d),
    "a global recoding": lambda d: under("cuts", d),
    "blanked values": lambda d: under({"name": "cuts", "scheme": "vioSA"}, d),
    "transparent": known_method,
    "another select": lambda d: under({"name": "bsgi", "select": "greedy"}, d),
    "another residue": lambda d: under({"name": "bsgi", "residue": "suppress"}, d),
    "tables": split,
    "linked tables": split,
    "tables apart": split_apart,
    "limited sets": lambda d: d.update(recode={"set": 2}),
    "known: 1": one_known,
    "another algorithm": lambda d: under("peel", d),
    "tables_of": lambda d: d.update(tables_of=[["zip"]]),
    "algorithms across cells": lambda d: under({"name": "tp_plus", "form": "ranges"}, d),
    "residue: suppress": lambda d: under({"name": "auto", "residue": "suppress"}, d),
    "a warehouse": lambda d: None,
}
#: Refused by what an algorithm or a requirement can do, as its class says, or by how a policy is written.
BESIDE = (
    (
        {"rows of one value", "suppressed"},
        {*LINKED, "set", "rows apart", "people of all nights"},
        "about rows of one value",
    ),
    (BSGI, {*LINKED, "set"}, "takes one sensitive value a"),
    ({"several attributes"}, POPULATIONS, "takes one sensitive attribute"),
    ({"harmless"}, {"rows of one value"}, "is about all values of a class"),
    ({"harmless"}, BSGI - {"transparent"}, "protects every value alike"),
    ({"comparisons"}, BSGI, "cannot promise"),
    ({"rows of one value"}, {"a global recoding", "other algorithms", "weight"}, "cannot promise"),
    ({"a prefix"}, {"flat files", "a CSV file"}, "the names of files"),
    (
        POPULATIONS,
        {*BSGI, "a global recoding", "blanked values", "other algorithms", "rows apart", "people of all nights"},
        "does not know which people",
    ),
    ({"presence"}, {"suppressed"}, "counts all rows"),
    ({"decomposition", "anatomy", "a prefix"}, {"if_exists: append"}, "does not go with a prefix"),
    ({"blanked values"}, {"comparisons", "auto", "several attributes", "set", "rows of one value"}, "mends shares"),
    ({"tables"}, BSGI, "takes one sensitive value a"),
    ({"tables_of"}, {"lists"}, "is published as a set"),
)


def remove(name: str, document: dict) -> None:
    """Leave the part out that gives a policy the feature."""
    keys = FEATURES[name].key.split(".")
    output = document.get("output", {})
    if name in ("means and medians", "lists"):
        output.pop("age" if name == "means and medians" else "zip")
    elif keys[0] == "sensitive":
        for setting in part(document)["sensitive"].values():
            setting.pop(keys[-1], None)
    elif name == "releases over time":
        document.pop("key", None)
        part(document)["identifiers"].append("stay")
        (to_tables if "tables" in document else to_table)(document)
    elif name == "individual":
        document.pop("individual")
        part(document)["identifiers"] += ["who", *(["day"] if "day" not in part(document)["identifiers"] else [])]
        output.pop("person", None)
    elif name.startswith("another s") or name.startswith("another r"):
        document["algorithm"] = "bsgi"
    elif keys[0] == "{0}":
        document["target"].pop(keys[1])
    elif keys[0] == "output":
        output.pop(keys[1])
    else:
        document.pop(keys[0])


def by_rows(document: dict) -> None:
    """On the rows in place of their counts."""
    document.pop("weight")
    linked = {"who", "day"} if "tables" in document else set()
    part(document).update(source="stays", identifiers=[c for c in ("stay", "day", "who") if c not in linked])
    if isinstance(document.get("individual"), dict):
        unlist(document, "who")
        unlist(document, document["individual"].get("order", ""))
    if "key" in document:
        unlist(document, "stay")


def apart(algorithm: str | None, document: dict) -> None:
    """A person's rows in any classes, by the algorithm, or what there is."""
    document["individual"] = {"column": "who", "rows": "apart"}
    document.get("output", {}).pop("person", None)
    if "day" not in part(document)["identifiers"]:
        part(document)["identifiers"].append("day")
    if algorithm:
        document["algorithm"] = algorithm


def ungrouped(algorithm: str, document: dict) -> None:
    """One table, under `require`."""
    document |= {"algorithm": algorithm, "require": [{"frequency": 2}], "target": {"table": "pub"}}
    if "key" in document:
        part(document)["identifiers"].append(document.pop("key"))
    for setting in document["sensitive"].values():
        setting.pop("l")


def without_means(document: dict) -> None:
    document["output"].pop("age")


def no_set(document: dict) -> None:
    part(document)["sensitive"]["dx"].pop("set")


def one_sensitive(document: dict) -> None:
    del document["sensitive"]["note"]
    document["keep"] = ["note"]


def to_table(document: dict) -> None:
    """A table, but for a decomposition, which has several."""
    if "tables" in document:
        to_tables(document)
    elif "require" in document:
        document["target"] = {"table": "pub"}


def to_tables(document: dict) -> None:
    targets = {name: {"table": f"pub_{name}"} for name in document["tables"]}
    for name, target in targets.items():
        document["tables"][name]["target"] = target


def replacing(document: dict) -> None:
    for target in [one["target"] for one in document.get("tables", {"": document}).values()]:
        target["if_exists"] = "replace"


def in_a_file(document: dict) -> None:
    """In a DuckDB file, by table or by prefix."""
    target = {key: said for key, said in document["target"].items() if key == "prefix"} or {"table": "pub"}
    document["target"] = {"file": "pub.duckdb"} | target


def beside_the_ledger(document: dict) -> None:
    document["target"].pop("database")


def algorithms(*names: str) -> list:
    return [lambda d, name=name: under(name, d) for name in names]


def joined(document: dict) -> None:
    """The stays alone."""
    own = document.pop("tables")["stays"]
    document.pop("known", None)
    document |= {key: own[key] for key in OF_TABLES} | {"keep": own["keep"]}
    document["identifiers"] = [*dict.fromkeys([*document["identifiers"], "day"])]


def in_folder(document: dict) -> None:
    for name, table in document["tables"].items():
        table["target"] = {"file": f"out/{name}.parquet"}


def linked_again(document: dict) -> None:
    """Tables whose rows are in their order, each with what says which row is which."""
    document["individual"] = {"column": "who", "rows": "aligned", "order": "day"}


def all_known(document: dict) -> None:
    document.pop("known")
    document["tables"]["stays"]["order"] = "day"
    unlist(document, "day")


#: What each way out that is printed has somebody write; those of a list are tried one by one.
WAYS = {
    "give the rows": [by_rows],
    "give a column of one value a row in a view": [no_set],
    "a DuckDB file holds what the next release goes on with": [in_a_file],
    "give a prefix beside the ledger, or a file": [beside_the_ledger, in_a_file],
    "give a table beside the ledger, or a file": [beside_the_ledger, in_a_file],
    "algorithm: auto or topdown publishes one table, under `require`, in which some are harmless": [
        lambda d: ungrouped("auto", d),
        lambda d: ungrouped("topdown", d),
    ],
    "or use decomposition_plus": [lambda d: d.update(algorithm="decomposition_plus")],
    "require frequency or entropy": [lambda d: held({"frequency": 2}, d), lambda d: held({"entropy": 2}, d)],
    "give a number": [lambda d: held({"frequency": 2}, d)],
    "nights: apart": [lambda d: d.update(nights="apart")],
    "recode: set": [lambda d: d.update(recode="set")],
    "rows: apart, with algorithm: auto": [lambda d: apart("auto", d)],
    "rows: apart": [lambda d: apart(None, d)],
    "rows: together": [lambda d: of_person("together", d)],
    "rows: aligned": [linked_again],
    "algorithm: auto, topdown, mondrian, peel or bsgi": [
        lambda d, name=name: (under if "require" in d else ungrouped)(name, d)
        for name in ("auto", "topdown", "mondrian", "peel", "bsgi")
    ],
    "algorithm: auto, topdown, peel or mondrian": algorithms("auto", "topdown", "peel", "mondrian"),
    "take bsgi, decomposition_plus, decomposition, anatomy": [
        lambda d: under("bsgi", d),
        *(lambda d, name=name: grouped(name, d) for name in ("decomposition_plus", "decomposition", "anatomy")),
    ],
    "name one, and leave out the others": [one_sensitive],
    "leave it out where everybody has one row": [lambda d: remove("individual", d)],
    "publish one release": [lambda d: remove("releases over time", d)],
    "give a table of its own": [lambda d: d["target"].pop("if_exists")],
    "nulls: value": [lambda d: d.update(nulls="value")],
    "nulls: value, or a query as the source": [lambda d: d.update(nulls="value")],
    "nulls_sensitive: value": [lambda d: d.update(nulls_sensitive="value")],
    "coalesce(…) in a query as the source gives NULL a value": [lambda d: d.pop("nulls_sensitive")],
    "give a row for each member in a view, with `individual`": [no_set],
    "replace, or a table of its own": [replacing, lambda d: d["target"].pop("if_exists")],
    "replace": [replacing],
    "leave them out of `output`": [without_means],
    "leave out `bounds`, or the ends": [lambda d: d["output"].pop("bounds"), lambda d: numbers(d, top=None)],
    "scheme: vioRec or allRec": [
        lambda d, scheme=scheme: under({"name": "cuts", "scheme": scheme}, d) for scheme in ("vioRec", "allRec")
    ],
    "judge": [lambda d: d.update(suppressed="judge")],
    "frequency": [lambda d: held({"frequency": 2}, d)],
    "frequency, or k": [lambda d: held({"frequency": 2}, d), lambda d: held({"k": 2}, d)],
    "publish that table by itself": [joined],
    "name a table, or FOLDER/NAME.parquet": [to_tables, in_folder],
    "name the table of the rows, and leave it out": [by_rows],
    "run it on a DuckDB file, or on what DuckDB attaches": [lambda d: None],
    "name a table": [to_table],
    "known: all": [all_known],
    "individual: COLUMN": [lambda d: d.update(individual="who")],
    "algorithm: auto": [lambda d: d.pop("algorithm")],
}


def has(name: str, policy: ldiv_db.Policy, given: set[str]) -> bool:
    if name in OUTSIDE:
        return name in given or (name == "a global recoding" and policy.algorithm.name in ("cuts", "tds"))
    said = FEATURES[name].when(policy)
    return said if isinstance(said, bool) else bool(list(said))


def broken_of(document: dict, given: set[str]) -> list[Limit]:
    policy = load_policy(copy.deepcopy(document))
    found = [one for one in LIMITS if has(one.feature, policy, given) and has(one.other, policy, given)]
    return [
        one for one in found if "tables" in one.feature.split() or one.feature == "known: 1"
    ] or found  # what is said of each table comes after


class Beds(NamedTuple):
    here: duckdb.DuckDBPyConnection
    there: sqlite3.Connection
    folder: Path

    def plan(self, document: dict, given: set[str]) -> str:
        """What a plan refuses; empty if it does not."""
        with contextlib.chdir(self.folder):
            try:
                ldiv_db.plan(self.there if "a warehouse" in given else self.here, copy.deepcopy(document), self.folder)
            except ldiv_db.InfeasibleError:  # which another table might meet
                return ""
            except ldiv_db.PolicyError as error:
                return "\n".join(map(str, error.problems))
        return ""


@pytest.fixture(scope="module")
def beds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beds]:
    draw, folder = random.Random(3), tmp_path_factory.mktemp("limits")
    rows = [
        (i, i // 2 if i < 40 else i - 20, i % 7, draw.randrange(60), draw.choice(["10115", "10117", "20095"]),
         draw.choice("abcdefgh"), draw.choice("uvwxyz"))
        for i in range(80)
    ]  # fmt: skip
    people = [(who, "mf"[who % 2]) for who in sorted({row[1] for row in rows})]
    (folder / "out").mkdir()
    duckdb.connect(str(folder / "other.duckdb")).close()
    with duckdb.connect() as con, contextlib.closing(sqlite3.connect(":memory:")) as there:
        for each in (con, there):
            each.execute("CREATE TABLE stays(stay INT, who INT, day INT, age INT, zip TEXT, dx TEXT, note TEXT)")
            each.executemany("INSERT INTO stays VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            each.execute("CREATE TABLE patients(who INT, sex TEXT)")
            each.executemany("INSERT INTO patients VALUES (?, ?)", people)
            each.execute("CREATE TABLE pop AS SELECT DISTINCT age, zip FROM stays")
            each.execute(
                "CREATE TABLE counted AS SELECT age, zip, dx, note, count(*) n FROM stays GROUP BY age, zip, dx, note"
            )
        there.commit()
        yield Beds(con, there, folder)


def together(*names: str) -> dict | None:
    """A plain policy with these features, None if one of them undoes another."""
    document = plain()
    for name, give in GIVEN.items():
        if name in names:
            give(document)
    policy = load_policy(copy.deepcopy(document))
    return document if all(has(name, policy, {"a warehouse"}) for name in names) else None


def told(limit: Limit) -> str:
    """A pattern of what is said of a limit."""
    return (
        r"does not go with .+: "
        + re.sub(r"\\\{\w*\\\}", ".+", re.escape(limit.why))
        + r" \("
        + re.escape(limit.way_out)
    )


def ways_of(limit: Limit) -> list[Callable[[dict], Any]]:
    """What the way out of a limit has somebody change."""
    is_left_out = limit.way_out.startswith("leave it out") and limit.way_out not in WAYS
    return [lambda d: remove(limit.other, d)] if is_left_out else WAYS[limit.way_out]


def mended(document: dict, limit: Limit, way: Callable[[dict], Any], given: set[str]) -> tuple[dict, set[str]]:
    """The policy after a way out, and after those of what else is refused of it."""
    left = copy.deepcopy(document)
    for _ in range(5):
        way(left)
        given = set() if limit.way_out.startswith("run it on") else given
        limits = broken_of(left, given)
        if not limits:
            break
        limit, way = limits[0], ways_of(limits[0])[0]
    return left, given


def checked(document: dict, given: set[str]) -> str:
    """What `ldiv policy check` refuses of a policy by itself, and a run in a warehouse before it counts."""
    policy, problems = load_policy(document), Problems()
    known = problems_of(policy)
    with problems.collected():
        judge_algorithm(Findings(policy, Path()))
    found = [*known, *unreported(problems.found, known), *(unsupported(policy, there()) if given else ())]
    return "\n".join(map(str, found))


def there(holds_off: bool = True) -> Any:
    return SimpleNamespace(dialect="clickhouse", traits=SimpleNamespace(holds_off=holds_off))


def beside(one: str, other: str) -> list[str]:
    """What may be refused of a pair beside the table."""
    return [words for some, others, words in BESIDE if {one, other} & some and {one, other} & others]


@pytest.mark.parametrize("one", GIVEN)
def test_a_pair_is_refused_by_name_or_goes_together(one: str) -> None:
    """What stands in the table is refused in its words, and each way out is taken; so is what does not."""
    for other in list(GIVEN)[list(GIVEN).index(one) :]:
        document, given = together(one, other), {one, other} & {"a warehouse"}
        if document is None:
            continue
        limits, refused = broken_of(document, given), checked(document, given)
        assert limits or not refused or any(words in refused for words in beside(one, other)), (one, other, refused)
        for limit in limits:
            assert re.search(told(limit), refused), (one, other, limit, refused)
            for way in ways_of(limit):
                said = checked(*mended(document, limit, way, given))
                assert not said or any(words in said for words in beside(one, other)), (one, other, limit, said)


@search(2, draw=draws)
def test_a_pair_plans(beds: Beds, draw: random.Random) -> None:
    """What is not in the table, or is no longer by a way out."""
    one, other = draw.choices(list(GIVEN), k=2)
    document, given = together(one, other), {one, other} & {"a warehouse"}
    if document is None:  # they are said in one place
        reject()
    if limits := broken_of(document, given):
        document, given = mended(document, limits[0], draw.choice(ways_of(limits[0])), given)
    refused, words = beds.plan(document, given), beside(one, other)
    assert any(one in refused for one in words) if words and not limits else not refused or words, (one, other, refused)


def test_every_limit_is_one_of_a_pair() -> None:
    pairs = [(one, other) for one in GIVEN for other in GIVEN]
    met = {
        limit for pair in pairs if (found := together(*pair)) for limit in broken_of(found, {*pair} & {"a warehouse"})
    }
    assert {limit for limit in LIMITS if limit.feature != "a warehouse without locks"} - met == set()


def test_two_nights_at_once_need_locks() -> None:
    document = together("releases over time")
    (problem,) = unsupported(load_policy(document), there(holds_off=False))
    assert str(problem).startswith("key: does not go with a warehouse: two nights at once in clickhouse could publish")
