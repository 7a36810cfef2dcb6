"""A caller's settings change no figure of what is judged, measured and attacked; releases are among the promises."""

from __future__ import annotations

import json
import random
import re

import duckdb
import pytest
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.policy.reading import parse_policy
from ldiv_db.recoding import statement as recode_sql
from tests.promises.homes import be_hostile

KEYS = {
    "age": {"numeric": True},
    "town": {"taxonomy": {"prefix": [3, 2, 1]}},
    "seen": {"numeric": True},
    "born": {"taxonomy": {"dates": ["day", "month", "quarter", "year", "decade"]}},
}
COLUMNS = {
    "id": "INTEGER", "age": "INTEGER", "town": "VARCHAR", "seen": "TIMESTAMPTZ", "born": "TIMESTAMPTZ",
    "s": "VARCHAR", "u": "TIMESTAMPTZ", "label": "VARCHAR",
}  # fmt: skip
FIGURES_APART = {"run_id", "seconds", "versions", "released_at", "source_hash"}


def place(con):
    """A table with NULL, ties, and instants about midnight, when days differ from zone to zone."""
    draw = random.Random(7)
    rows = []
    for i in range(40):
        instants = [
            f"20{draw.randrange(10, 13)}-0{draw.randrange(1, 4)}-0{draw.randrange(1, 4)} 23:30:00+00" for _ in "ab"
        ]
        town = draw.choice([None, "a" + str(draw.randrange(100, 103)), "B" + str(draw.randrange(100, 102))])
        secret = "xyzvw"[i % 5] if i % 13 else None
        rows.append((i, draw.choice([None, *range(12)]), town, *instants, secret, f"2020-01-0{1 + i % 3} 23:59:59+00",
                     draw.choice(["yes", "no", None])))  # fmt: skip
    fill(con, "source", COLUMNS, rows)


def policy_of(target, algorithm, require, **more):
    return {
        "source": "source", "target": target, "quasi_identifiers": KEYS, "sensitive": ["s"], "keep": ["label", "u"],
        "identifiers": ["id"], "nulls_sensitive": "suppress", "require": require, "algorithm": algorithm, "seed": 3,
        "over_time": "independent", **more,
    }  # fmt: skip


def trees(names):
    return {name: KEYS[name] for name in names}


RUNS = {
    "refine": ({"name": "bsgi"}, [{"distinct": 3}], {}),
    "greedy": ({"name": "bsgi", "select": "greedy"}, [{"k": 3}], {"recode": "set", "output": {"class_id": True}}),
    "instants": ({"name": "topdown"}, [{"t_closeness": {"t": 0.6, "distance": "ordered"}}, {"distinct": 2}],
                 {"sensitive": ["u"], "keep": ["s"], "identifiers": ["id", "label"]}),
    "mondrian": ({"name": "mondrian", "split": "relaxed"}, [{"recursive": {"c": 3, "l": 2}}], {}),
    "stratified": ({"name": "stratified"}, [{"t_closeness": 0.4}], {}),
    "tp": ({"name": "tp"}, [{"frequency": 2}], {}),
    "tp_plus": ({"name": "tp_plus"}, [{"frequency": 2}], {}),
    "hilbert": ({"name": "hilbert"}, [{"frequency": 2}], {}),
    "incognito": ({"name": "incognito"}, [{"distinct": 3}], {"trees": ["town", "born"]}),
    "tds": ({"name": "tds"}, [{"distinct": 3}], {"trees": ["town", "born"]}),
    "annealing": ({"name": "annealing", "steps": 10}, [{"frequency": 2}], {"trees": ["town", "born"]}),
    "vioRec": ({"name": "cuts"}, [{"threshold": {"base": 0.5}}], {"trees": ["town", "born"]}),
    "vioSA": ({"name": "cuts", "scheme": "vioSA"}, [{"frequency": 2}], {"trees": ["town", "born"]}),
    "majority": ({"name": "cuts", "metric": "CM", "class": "label"}, [{"frequency": 2}], {"trees": ["town", "born"]}),
    "csv": ({"name": "bsgi"}, [{"distinct": 2}], {"target": {"file": "released.csv", "if_exists": "replace"}}),
}  # fmt: skip


def work(con, folder, names):
    """What a caller may ask of us, as a mapping of what was asked to tables and figures."""
    found = {}
    for name in names:
        algorithm, require, more = RUNS[name]
        found |= run(con, folder, policy_of(f"out.{name}", algorithm, require), dict(more), name)
    if len(names) == len(RUNS):
        found |= judge(con)
    found["profile"] = figures(ldiv_db.profile(con, "source", ["age", "town", "born"], ["s", "u"]).as_dict())
    return found


def run(con, folder, policy, more, name):
    """A run, its table in the order of its rows, and what `measure` and `ldiv sql recode` make of it."""
    names = more.pop("trees", None)
    if names:
        apart = [column for column in KEYS if column not in names]
        policy |= {"quasi_identifiers": {column: KEYS[column] for column in names}, "identifiers": ["id", *apart]}
    policy |= more
    result = ldiv_db.run(con, policy, folder)
    shown = (folder / "released.csv").read_text() if name == "csv" else rows(con, policy["target"])
    found = {name: figures(result.as_dict()), f"{name}: rows": shown}
    if name in ("refine", "vioSA"):
        wanted = {"queries": 5, "class_label": "label"}
        found[f"{name}: measured"] = figures(ldiv_db.measure(con, policy["target"], policy, **wanted).as_dict())
    if names and name not in ("majority", "vioRec"):
        engine = Engine(con)
        params = recode_sql.recoding_params(
            engine, recode_sql.find_run(engine, result.run_id), policy=parse_policy(policy)
        )
        found[f"{name}: recoded"] = rows(con, engine.materialise("recoded", recode_sql.TEMPLATE, **params).sql())
        engine.close_scratch()
    return found


def judge(con):
    """Every requirement and every attack, of releases that fail and of the source itself."""
    require = [
        {"k": 4}, {"distinct": 4}, {"unique_distinct": 4}, {"entropy": 3}, {"recursive": {"c": 1, "l": 3}},
        {"frequency": 3}, {"threshold": {"default": 0.3, "x": 0.2}}, {"alpha_k": {"alpha": 0.3, "k": 3}},
        {"p_sensitive": {"p": 4, "k": 4}}, {"t_closeness": 0.2}, {"t_closeness": {"t": 0.1, "distance": "ordered"}},
    ]  # fmt: skip
    keys = ["age", "town", "seen", "born"]
    found = {
        f"check of {table}": [audit.as_dict() for audit in ldiv_db.check(con, table, keys, "s", require)]
        for table in ("out.refine", "source")
    }
    found["check of instants"] = [a.as_dict() for a in ldiv_db.check(con, "source", keys, "u", [{"distinct": 2}])]
    threshold = [{"threshold": {"default": 0.5, "2020-01-01 23:59:59+00": 0.1}}]
    found["threshold of an instant"] = [a.as_dict() for a in ldiv_db.check(con, "source", ["label"], "u", threshold)]
    policy = policy_of("out.none", "auto", [{"distinct": 2}])
    for table in ("out.refine", "out.greedy"):
        people = dict.fromkeys(("known", "population", "definetti"), "source")
        people |= {"also": "out.greedy", "counting": True}
        attacked = ldiv_db.attack(con, table, policy=policy, **people, show_values=True)
        found[f"attack on {table}"] = figures(attacked.as_dict())
    return found


def figures(document):
    """The figures without what differs from run to run, which the names of runs do, as text."""
    kept = {key: value for key, value in document.items() if key not in FIGURES_APART}
    return json.loads(re.sub("[0-9a-f]{32}", "run", json.dumps(kept, default=str)))


def rows(con, table):
    """The rows as they lie, instants as numbers."""
    names = [(row[0], row[1]) for row in con.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]
    shown = ", ".join(f'epoch_us("{n}")' if t == "TIMESTAMP WITH TIME ZONE" else f'"{n}"' for n, t in names)
    return [names, con.execute(f"SELECT {shown} FROM {table} ORDER BY rowid ASC").fetchall()]


@pytest.mark.parametrize("names", some([["refine"], list(RUNS)], 1), ids=len)
def test_settings_of_the_caller_change_nothing(names, tmp_path):
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        place(con)
        usual = work(con, tmp_path, names)
    with duckdb.connect() as con:
        place(con)
        be_hostile(con)
        found = work(con, tmp_path, names)
    assert list(found) == list(usual)
    for what, expected in usual.items():
        assert found[what] == expected, what


REFUSED = {
    "disable_timestamptz_casts": ("true", "disable_timestamptz_casts: is on"),
    "preserve_identifier_case": ("'uppercase'", "preserve_identifier_case: is uppercase"),
}


@pytest.mark.parametrize("setting", REFUSED)
def test_settings_that_no_statement_can_answer_are_refused_by_name(setting, con, snapshot):
    """With `uppercase` a release would have the column `CLASS_ID`."""
    place(con)
    value, message = REFUSED[setting]
    before = snapshot(con)
    try:
        con.execute(f"SET {setting} = {value}")
    except duckdb.Error:
        pytest.skip("this version has no such value")
    policy = policy_of("released", {"name": "bsgi"}, [{"distinct": 2}])
    series = policy | {"target": {"prefix": "p"}, "key": "id", "identifiers": []}
    for ask in (
        lambda: ldiv_db.run(con, policy),
        lambda: ldiv_db.plan(con, policy),
        lambda: ldiv_db.check(con, "source", ["age"], "s", ["k:2"]),
        lambda: ldiv_db.measure(con, "source", policy),
        lambda: ldiv_db.attack(con, "source", ["age"], "s"),
        lambda: ldiv_db.profile(con, "source"),
        lambda: ldiv_db.run(con, series),
    ):
        with pytest.raises(ldiv_db.PolicyError, match=message):
            ask()
    con.execute(f"RESET {setting}")
    assert snapshot(con) == before
    assert ldiv_db.check(con, "source", ["age"], "s", ["k:1"])[0].holds


@pytest.mark.slow
def test_instants_are_in_utc_whatever_the_zone(con):
    """In labels of days and of spans, and where the labels of others have no zone."""
    con.execute("SET TimeZone = 'America/New_York'")
    rows = [("2020-01-01 00:30:00+00", "x"), ("2020-01-01 23:30:00+00", "y"), ("2019-12-31 23:59:59.5+00", "z")]
    fill(con, "source", {"seen": "TIMESTAMPTZ", "s": "VARCHAR"}, rows * 2)
    days = {
        "source": "source", "target": "days", "sensitive": ["s"], "require": [{"frequency": 1}], "algorithm": "cuts",
        "quasi_identifiers": {"seen": {"taxonomy": {"dates": ["day", "month"]}}},
    }  # fmt: skip
    ldiv_db.run(con, days)
    published = con.execute("SELECT DISTINCT seen, s FROM days ORDER BY s").fetchall()
    assert published == [("2020-01-01", "x"), ("2020-01-01", "y"), ("2019-12-31", "z")]
    spans = days | {"quasi_identifiers": {"seen": {"numeric": True}}, "target": "spans", "algorithm": "topdown"}
    ldiv_db.run(con, spans | {"require": [{"distinct": 3}]})
    published = con.execute("SELECT DISTINCT seen FROM spans").fetchall()
    assert published == [("[2019-12-31 23:59:59.5+00 .. 2020-01-01 23:30:00+00]",)]
    ends = {"2019-12-31 23:59:59.5": 1, "2020-01-01": 1, "2020-01-01 00:30:00": 2, "2020-01-01 23:30:00Z": 3}
    for end, people in ends.items():
        con.execute("UPDATE spans SET seen = $label", {"label": f"[2019-12-31 23:59:59.5 .. {end}]"})
        found = ldiv_db.attack(con, "spans", policy=spans, known="source")
        (linked,) = (attack for attack in found.attacks if attack.name == "linking")
        assert linked.figures["one_class"] == 2 * people, end
