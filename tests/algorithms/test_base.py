"""What is true of every algorithm: the release is the same for any order of rows and number of threads."""

import random

import duckdb
import pytest
from strategies import some
from tables import fill

import ldiv_db

COLUMNS = {"id": "INTEGER", "number": "INTEGER", "town": "VARCHAR", "s": "VARCHAR", "u": "VARCHAR"}
TREES = {"number": {"numeric": True}, "town": {"taxonomy": {"file": "town.csv"}}}
LEVELS = TREES | {"number": {"taxonomy": {"ranges": [5, 10, 20]}}}
DISTINCT = [{"unique_distinct": 3}]
#: What is other than a plain policy; the first is of every pass: `promises/` asks it of other families.
CASES = {
    "cuts": {"algorithm": {"name": "cuts", "scheme": "vioRec", "top": 3}, "require": [{"frequency": 2}]},
    "tp plus": {"algorithm": "tp_plus", "require": [{"frequency": 2}]},
    "decomposition plus": {"algorithm": "decomposition_plus"},
    "refine": {"algorithm": {"name": "bsgi", "select": "refine", "exchange": 6}, "require": DISTINCT},
    "several": {"algorithm": {"name": "bsgi", "select": "bisect", "residue": "suppress"}, "sensitive": ["s", "u"],
                "keep": [], "require": [{"unique_distinct": 2}], "individual": "id"},
    "limits": {"algorithm": "peel", "require": [{"t_closeness": 0.4}]},
    "greedy": {"algorithm": {"name": "bsgi", "select": "greedy"}, "require": DISTINCT, "recode": "set"},
    "topdown": {"algorithm": "topdown", "suppression": 0.1},
    "stratified": {"algorithm": "stratified", "require": [{"frequency": 2}]},
    "tds": {"algorithm": "tds", "quasi_identifiers": LEVELS},
    "mondrian": {"algorithm": {"name": "mondrian", "split": "relaxed"}},
    "annealing": {"algorithm": {"name": "annealing", "steps": 20}, "require": [{"frequency": 2}]},
    "parts": {"algorithm": {"name": "mondrian"}, "part_rows": 20},
    "peel": {"algorithm": "peel"},
    "auto": {"algorithm": "auto", "require": [{"distinct": 3}]},
    "bisect": {"algorithm": {"name": "bsgi", "select": "bisect"}, "require": DISTINCT},
    "transparent": {"transparent": True, "require": DISTINCT},
    "parts of classes": {"algorithm": {"name": "bsgi"}, "require": DISTINCT, "part_rows": 20},
    "intervals": {"algorithm": {"name": "cuts", "scheme": "allRec"}, "quasi_identifiers": TREES},
    "incognito": {"algorithm": "incognito", "quasi_identifiers": LEVELS},
    "strict": {"algorithm": {"name": "mondrian", "split": "strict"}},
    "tp": {"algorithm": "tp", "require": [{"frequency": 2}]},
    "hilbert": {"algorithm": "hilbert", "require": [{"frequency": 2}]},
    "decomposition": {"algorithm": "decomposition"},
    "anatomy": {"algorithm": "anatomy", "sensitive": {"s": {"l": 3}}, "keep": []},
    "thorough": {"algorithm": {"name": "auto", "effort": "thorough"}, "require": [{"k": 4}]},
    "sparing": {"algorithm": "mondrian", "suppression": 0.1, "part_rows": 40, "require": [{"k": 7}]},
    "spellings": {"algorithm": "bsgi", "require": [{"distinct": 2}], "sensitive": {"s": {"same": "casefold"}}},
}  # fmt: skip
OVER_GROUPS = ("decomposition", "anatomy")


def people(draw, count):
    towns = ["a1", "a2", "a3", "b1", "b2"]
    return [(i, draw.randrange(40), draw.choice(towns), "vwxyz"[i % 5], draw.choice("klmno")) for i in range(count)]


@pytest.mark.parametrize("name", some(CASES))
def test_the_release_is_the_same_for_any_order_and_number_of_threads(name, tmp_path):
    (tmp_path / "town.csv").write_text("a1;A;*\na2;A;*\na3;A;*\nb1;B;*\nb2;B;*\n")
    policy = {
        "source": "people", "target": "released", "quasi_identifiers": LEVELS if name == "cuts" else TREES,
        "sensitive": ["s"], "identifiers": ["u"], "keep": ["id"], "require": [{"distinct": 2}, {"k": 3}], "seed": 3,
    } | CASES[name]  # fmt: skip
    policy["identifiers"] = [] if "u" in policy["sensitive"] else ["u"]
    if str(policy.get("algorithm")).startswith(OVER_GROUPS):
        policy |= {"target": {"prefix": "released"}, "key": "id", "quasi_identifiers": ["number", "town"], "keep": []}
        policy |= {"sensitive": {"s": {"l": 3}}, "require": []}
    rows, draw = people(random.Random(1), 48 if "part_rows" in policy else 24), random.Random(2)
    if name == "annealing":
        policy["quasi_identifiers"] = LEVELS
    found = []
    for threads, order in ((1, rows), (2, draw.sample(rows, len(rows)))):
        with duckdb.connect(config={"threads": threads}) as con:
            fill(con, "people", COLUMNS, order)
            result = ldiv_db.run(con, {key: value for key, value in policy.items() if value}, folder=tmp_path)
            tables = result.figures["tables"] if "prefix" in policy["target"] else ["released"]
            found.append([con.execute(f"FROM {table}").fetchall() for table in tables])
            assert found[-1][0]
    assert found[0] == found[1]
