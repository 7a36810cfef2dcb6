"""`same`: texts that are one after some steps count as one value, and every row is published with its own."""

from __future__ import annotations

import random
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import oracle
import pytest
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.requirements.values import folded

pytestmark = pytest.mark.usefixtures("no_remedies")

BOTH = ["trim", "casefold"]
TEXTS = ["Flu", "flu ", "\tFLU", "HIV", "hiv\u00a0", "Cold", "cold", "É", "e\u0301", "Lupus", None]
#: Others that people take for one: by dashes, blanks within, and what is not seen.
TYPED = [
    "COVID-19", "covid\u201319", "Lyme disease", "Lyme\u00a0 disease", "Ly\u200bme disease", "\ufeffflu", "f\u00adlu",
]  # fmt: skip
ALGORITHMS = ["topdown", "bsgi", "mondrian", "peel", "tp"]


def after(value: str | None, steps: Any = BOTH) -> str | None:
    """The steps in plain Python."""
    if value is not None and "trim" in steps:
        seen = "".join(letter for letter in value if unicodedata.category(letter) != "Cf")
        dashed = "".join(
            "-" if unicodedata.category(letter) == "Pd" or letter == "\u2212" else letter for letter in seen
        )
        value = " ".join(dashed.split())
    if value is not None and "casefold" in steps:
        value = unicodedata.normalize("NFC", "".join(letter.lower() for letter in value))
    return value


def rows_of(seed: Any, count: int = 40, texts: Sequence[str | None] = TEXTS) -> list[tuple[int, int, str | None]]:
    draw = random.Random(seed)
    return [(i, draw.randint(0, 40), draw.choice(texts)) for i in range(count)]


def fill(con: Any, rows: list[tuple[Any, ...]], kind: str = "VARCHAR") -> None:
    con.execute(f"CREATE OR REPLACE TABLE t (id INTEGER, age INTEGER, disease {kind})")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)


def policy_of(*require: Any, same: Any = BOTH, **changes: Any) -> dict[str, Any]:
    base = {"source": "t", "target": {"table": "o", "if_exists": "replace"}, "keep": ["id"], "seed": 1}
    base |= {"quasi_identifiers": {"age": {"numeric": True}}, "sensitive": {"disease": {"same": same}}}
    return base | {"require": list(require), "nulls_sensitive": "value", "output": {"class_id": True}} | changes


@pytest.mark.parametrize("algorithm", some(ALGORITHMS))
def test_classes_are_judged_by_values_and_rows_keep_their_own(con: Any, algorithm: str) -> None:
    rows = rows_of(algorithm, texts=TEXTS + TYPED)
    fill(con, rows)
    result = ldiv_db.run(con, policy_of({"distinct": 2}, {"frequency": "1.5"}, algorithm=algorithm))
    released = con.execute("SELECT class_id, id, disease FROM o").fetchall()
    assert sorted((i, disease) for _, i, disease in released) == [(i, disease) for i, _, disease in rows]
    classes = [(key, after(disease)) for key, _, disease in released]
    assert not oracle.violations(classes, "distinct", 2) and not oracle.violations(classes, "frequency", "1.5")
    found = {verdict["name"]: verdict for verdict in result.requirements}
    assert found["distinct"]["worst"] == min(len(set(values)) for values in oracle.group(classes).values())
    assert not [note for note in result.as_dict()["notes"] if "case, blanks" in note]


@pytest.mark.parametrize("ending", some(["csv", "parquet", "duckdb"]))
def test_files_are_audited_so(con: Any, tmp_path: Path, ending: str) -> None:
    rows = rows_of(ending, 30)
    fill(con, rows)
    target = {"file": str(tmp_path / f"o.{ending}")} | ({"table": "o"} if ending == "duckdb" else {})
    result = ldiv_db.run(con, policy_of({"distinct": 3}, algorithm="topdown", target=target))
    if ending == "duckdb":
        con.execute(f"ATTACH '{target['file']}' AS f (READ_ONLY)")
    where = "f.o" if ending == "duckdb" else f"'{target['file']}'"
    released = con.execute(f"SELECT class_id, id, disease FROM {where}").fetchall()
    assert Counter(disease for *_, disease in released) == Counter(disease for *_, disease in rows)
    classes = oracle.group([(key, after(disease)) for key, _, disease in released])
    assert result.requirements[0]["worst"] == min(len(set(values)) for values in classes.values())


def test_threads_collations_and_the_order_of_rows_change_nothing() -> None:
    rows, found = rows_of("order", 30), []
    for threads, order, kind in ((1, 1, "VARCHAR"), (2, -1, "VARCHAR COLLATE NOCASE")):
        with duckdb.connect(config={"threads": threads}) as con:
            fill(con, rows[::order], kind)
            ldiv_db.run(con, policy_of({"distinct": 2}, algorithm={"name": "bsgi", "select": "bisect"}))
            found.append(con.execute("SELECT COLUMNS(*)::VARCHAR FROM o").fetchall())
    assert found[0] == found[1]


@pytest.mark.parametrize("steps", some([BOTH, "casefold", ["trim"], ["casefold"]], 2), ids=str)
def test_a_check_takes_the_steps(con: Any, steps: Any) -> None:
    rows = [(i % 4, i % 4, text) for i, text in enumerate((TEXTS + TYPED) * 2)]
    fill(con, rows)
    (audit,) = ldiv_db.check(con, "t", ["age"], {"disease": {"same": steps}}, ["distinct:2", "frequency:3"])
    classes = oracle.group([(age, after(disease, steps)) for _, age, disease in rows])
    worst = [verdict.worst for verdict in audit.verdicts]
    assert worst[0] == min(len(set(values)) for values in classes.values())
    shares = [len(values) / max(Counter(values).values()) for values in classes.values()]
    assert worst[1] == pytest.approx(min(shares))


def test_named_values_are_taken_so(con: Any) -> None:
    fill(con, rows_of("named"))
    thresholds = {"threshold": {"default": 0.9, " FLU": 0.4}}
    result = ldiv_db.run(con, policy_of(thresholds, algorithm="topdown"))
    assert result.requirements[0]["parameters"] == {"default": 0.9, "flu": 0.4}
    released = [(key, after(disease)) for key, disease in con.execute("SELECT class_id, disease FROM o").fetchall()]
    assert not oracle.violations(released, "threshold", {"default": 0.9, "flu": 0.4})
    with pytest.raises(PolicyError, match=r"names one value twice: 'FLU ', 'Flu'"):
        ldiv_db.plan(con, policy_of({"threshold": {"default": 0.9, "Flu": 0.4, "FLU ": 0.5}}))
    with pytest.raises(PolicyError, match="in no row: 'ague'"):
        ldiv_db.check(con, "t", ["age"], {"disease": {"same": BOTH}}, ["threshold:0.9,ague=0.1"])
    categories = [["hiv", "LUPUS"], ["FLU", "cold"], ["é"]]
    weighed = {"disease": {"same": BOTH, "categories": categories}}
    ldiv_db.plan(con, policy_of({"distinct_alpha": {"l": 2, "alpha": 0.5}}, algorithm="topdown", sensitive=weighed))


def test_who_knows_the_others_reads_them_so(con: Any) -> None:
    """Other sensitive columns split classes by their values, not by spellings."""
    con.execute("CREATE TABLE t AS SELECT 1 AS q, unnest(['a', 'A', 'b']) AS s, unnest(['x', 'X ', 'x']) AS u")
    both = {"s": {"same": BOTH}, "u": {"same": BOTH}}
    require = [{"distinct": 2, "sensitive": "s", "others_known": True}]
    (of_s, _) = ldiv_db.check(con, "t", ["q"], both, require)
    assert of_s.verdicts[0].holds and of_s.verdicts[0].classes == 1
    (of_s, _) = ldiv_db.check(con, "t", ["q"], {"s": {}, "u": {}}, require)
    assert not of_s.verdicts[0].holds


@pytest.mark.slow
def test_attacks_take_the_steps(con: Any) -> None:
    fill(con, [(i, i // 4, text) for i, text in enumerate(["Flu", "flu", "FLU", " flu", "Cold", "HIV", "hiv", "Flu"])])
    gains = {}
    for same in ([], BOTH):
        found = ldiv_db.attack(con, "t", ["age"], {"disease": {"same": same}}, ["distinct:2"])
        gains[bool(same)] = {attack.name: attack.gains[0].gain for attack in found.attacks}["homogeneity"]
    assert gains == {False: 0, True: 0.5}
    con.execute("CREATE TABLE people AS SELECT age, upper(disease) AS disease FROM t")
    fill(con, rows_of("attacked"))
    policy = policy_of({"distinct": 2}, algorithm="topdown")
    ldiv_db.run(con, policy)
    ldiv_db.attack(con, "o", policy=policy, definetti="people", targets="people", tries=10)
    with refuses("replay"):
        ldiv_db.attack(con, "o", policy=policy, replay=ldiv_db.Replay(tries=1))


def test_what_compares_values_as_they_are_written_is_refused(con: Any) -> None:
    fill(con, rows_of("refused"))
    age: dict[str, Any] = {"sensitive": {"age": {"same": BOTH}}, "keep": [], "identifiers": ["disease"]}
    for changes, problem in (
        ({"same": ["upper"]}, r"sensitive\.disease\.same"),
        (age | {"quasi_identifiers": {"id": {"numeric": True}}}, "same: makes texts one, and age is of type INTEGER"),
    ):
        with pytest.raises(PolicyError, match=problem):
            ldiv_db.plan(con, policy_of({"distinct": 2}, **changes))


def test_views_and_templates_take_the_same_steps(engine: Engine, con: Any) -> None:
    draw = random.Random("steps")
    letters = [" ", "\t", "\u00a0", "\n", "a", "A", "É", "é", "e\u0301", "ß", "Ω", "Σ", "'", "%", "\\",
               "-", "\u2013", "\u2011", "\u2212", "\u200b", "\u00ad", "\ufeff", "\u3000", "\u2009"]  # fmt: skip
    texts = sorted({"".join(draw.choices(letters, k=draw.randint(0, 6))) for _ in range(300)})
    con.execute("CREATE TABLE v (s VARCHAR)")
    con.executemany("INSERT INTO v VALUES (?)", [(text,) for text in texts])
    for steps in (["trim"], ["casefold"], BOTH):
        expected = {text: after(text, steps) for text in texts}
        assert folded(engine, {text: text for text in texts}, steps) == expected
        with read_as_one(engine, Relation(("v",)), {"S": steps}) as view:
            assert Counter(con.execute(f"SELECT s FROM {view.sql()}").fetchall()) == Counter(
                (text,) for text in expected.values()
            )


@pytest.mark.parametrize("algorithm", some(["topdown", "stratified"]))
def test_a_taxonomy_s_leaves_are_read_so(con: Any, tmp_path: Path, algorithm: str) -> None:
    """As of values and leaves that were written alike before, by the run and by an audit that is told the steps."""
    groups = {"Lung": ["Flu", "FLU", "Cold"], "Blood": ["HIV", "Lupus"], "É": ["e\u0301"]}
    lines = [f"{leaf};{group};*" for group, leaves in groups.items() for leaf in leaves]
    (tmp_path / "tree.csv").write_text("\n".join(lines))
    folded_lines = {f"{after(leaf)};{group};*" for group, leaves in groups.items() for leaf in leaves}
    (tmp_path / "alike.csv").write_text("\n".join(sorted(folded_lines)))
    fill(con, rows_of(algorithm))
    of_tree = {"disease": {"taxonomy": {"file": "tree.csv"}, "same": BOTH}}
    closeness = {"t_closeness": {"t": 0.3, "distance": "hierarchical"}}
    policy = policy_of(closeness, {"distinct": 2}, sensitive=of_tree, algorithm=algorithm)
    result = ldiv_db.run(con, policy, tmp_path)
    (audit,) = ldiv_db.check(con, "o", policy=policy, folder=tmp_path)
    released = con.execute("SELECT age, class_id, id, disease FROM o").fetchall()
    assert {disease for *_, disease in released} >= {"Flu", "flu ", "\tFLU"}
    con.execute("CREATE TABLE alike AS FROM o")
    alike = [(after(value), number) for *_, number, value in released]
    con.executemany("UPDATE alike SET disease = ? WHERE id = ?", alike)
    plain = policy | {"sensitive": {"disease": {"taxonomy": {"file": "alike.csv"}}}}
    (other,) = ldiv_db.check(con, "alike", policy=plain, folder=tmp_path)
    assert [verdict.as_dict() for verdict in audit.verdicts] == [verdict.as_dict() for verdict in other.verdicts]
    assert [one["worst"] for one in result.requirements] == [verdict.worst for verdict in other.verdicts]
    assert 0 < other.verdicts[0].worst <= 0.3


def test_leaves_that_become_one_elsewhere_are_refused(con: Any, tmp_path: Path) -> None:
    fill(con, rows_of("refused"))
    (tmp_path / "tree.csv").write_text("Flu;Lung;*\nFLU;Blood;*\n")
    of_tree = {"disease": {"taxonomy": {"file": "tree.csv"}, "same": BOTH}}
    with pytest.raises(PolicyError, match="'flu' stands for more than one node"):
        ldiv_db.plan(con, policy_of({"t_closeness": 0.3}, sensitive=of_tree), tmp_path)
