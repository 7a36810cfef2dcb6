"""Requirements at each position of people's rows, held against what a plain count of the release finds there."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import oracle
import pytest
from hypothesis import reject
from strategies import search, seeds, some

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError
from ldiv_db.database import dbt_macros, templates
from ldiv_db.database.errors import AuditError
from ldiv_db.require import Entropy
from ldiv_db.running import tables, tasks
from tests.running import schemas, test_aligned

pytestmark = pytest.mark.usefixtures("no_remedies")

EACH = ({"distinct": 3}, {"entropy": 2.2}, {"recursive": {"c": 2, "l": 2}}, {"frequency": 2})
NAMES = ("patients", "stays", "labs")
#: Each reading, broken so that rows at all positions are one class.
FIRST = (templates, "auditing/tables/join_rows.sql.j2", "CAST(p.{{ position }} AS VARCHAR)", "'1'")
SECOND = (
    templates,
    "auditing/tables/list_paths.sql.j2",
    "CAST({{ table.alias }}.{{ table.position }} AS VARCHAR)",
    "'1'",
)


def classes_at(shown: Mapping[Any, list[tuple[Any, ...]]]) -> dict[Any, list[str]]:
    """The values at each position of each class: of sequences (…, label, value) by whose they are."""
    found = defaultdict(list)
    for rows in shown.values():
        labels = tuple(label for *_, label, _ in rows)
        for position, (*path, _, value) in enumerate(rows):
            found[labels, tuple(path), position].append(value)
    return found


def sequences_of(release: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    shown = defaultdict(list)
    for _, *labels, value, person, _ in sorted(release, key=lambda row: row[-1]):
        shown[person].append((tuple(labels), value))
    return shown


@pytest.mark.parametrize("algorithm", some(["topdown", "mondrian", "peel", "stratified", "auto", "fast"]))
@search(1, seed=seeds)
def test_every_position_of_a_class_is_good(con: Any, algorithm: str, seed: int) -> None:
    rng = random.Random(seed)
    rows, asked = test_aligned.visits(rng, rng.randrange(10, 20)), rng.choice(EACH)
    require = [{**asked, "each": "position"}, *rng.choice([[], [{"k": 3}], [{"frequency": 2}]])]
    try:
        release, result = test_aligned.published(con, rows, require=require, algorithm=algorithm)
    except InfeasibleError:
        reject()
    ((name, argument),) = asked.items()
    found = classes_at(sequences_of(release))
    assert all(oracle.class_is_good(values, name, argument) for values in found.values())
    (verdict,) = (v for a in result.audits for v in a.verdicts if v.requirement.each)
    assert (verdict.violating_classes, verdict.second) == (0, 0)
    assert verdict.classes == len(found)


def test_all_values_of_a_person_together_do_not_imply_it() -> None:
    """Four people have six values, of which the first rows have two."""
    rows = [(i, i // 2, 30, "n1", "acadbebf"[i], i % 2) for i in range(8)]
    con = duckdb.connect(config={"threads": 1})
    release, _ = test_aligned.published(con, rows, require=[{"distinct": 3}])
    assert {len(set(values)) for values in classes_at(sequences_of(release)).values()} == {2, 4}


def values_of(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The rows of all tables of somebody in their places: (path, label, value), '' of a table without values."""
    for name in sorted(tree):
        for place, (_, label, value, below) in enumerate(tree[name]):
            yield (*path, name, place), label, value
            yield from values_of(below, (*path, name, place))


def clinic(seed: int) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": 1})
    people = schemas.drawn(random.Random(seed), NAMES, 30, values="abcdefghij")
    for tree in people.values():  # laboratory values are in no order: equal ones say nothing of it
        for *_, below in tree["stays"]:
            for number, (no, age, _, none) in enumerate(below["labs"]):
                below["labs"][number] = (no, age, below["labs"][0][2], none)
    schemas.fill(con, NAMES, people)
    return con


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(4)))
def test_positions_of_several_tables_are_good_by_themselves(seed: int) -> None:
    con, asked = clinic(seed), {"entropy": 2.2, "each": "position"}
    require = [{"k": 3}, {"frequency": 2, "sensitive": "labs.value"}, {**asked, "sensitive": "stays.value"}]
    result = ldiv_db.run(con, schemas.policy_of(NAMES, require=require))
    shown = {who: list(values_of(tree)) for who, tree in schemas.published(con, NAMES).items()}
    found = {key: values for key, values in classes_at(shown).items() if key[1][0][-2] == "stays"}
    assert found
    assert all(oracle.class_is_good(values, "entropy", 2.2) for values in found.values())
    (verdict,) = (v for a in result.audits for v in a.verdicts if v.requirement.each)
    assert (verdict.classes, verdict.violating_classes, verdict.second) == (len(found), 0, 0)
    for holds in (True, False):
        audits = ldiv_db.check(con, policy=schemas.policy_of(NAMES, require=require))
        assert [audit.holds for audit in audits if audit.sensitive == "stays.value"] == [holds]
        con.execute("UPDATE published.stays SET value = 'a' WHERE position = 1")


ALIGNED_FIRST = (templates, "auditing/sign_rows.sql.j2", "    s.place AS {{ position }},", "    1 AS {{ position }},")
ALIGNED_SECOND = (
    dbt_macros,
    "dbt/macros/requirements/violations.sql",
    "n.who, n.nobody, n.turn",
    "n.who, n.nobody, 1 as turn",
)


@pytest.mark.parametrize("which", some([(ALIGNED_FIRST,), (ALIGNED_SECOND,)]))
def test_a_wrong_plan_of_one_table_is_found_by_each_reading(broken: Any, monkeypatch: Any, which: Any) -> None:
    con = duckdb.connect(config={"threads": 1})
    monkeypatch.setattr(tasks, "asking_each", lambda rows, specs: rows)
    broken(*which)
    rows = [(i, i // 2, 30 + i // 8, "n1", "acadbebf"[i % 8], i % 2) for i in range(16)]
    with pytest.raises(AuditError, match="one of the two is wrong"):
        test_aligned.published(con, rows, require=[{"k": 4}, {"distinct": 3, "each": "position"}])


@pytest.fixture(scope="module")
def released() -> duckdb.DuckDBPyConnection:
    """A clinic with a release, which no run that fails changes."""
    con = clinic(4)
    ldiv_db.run(con, schemas.policy_of(NAMES, require=OF_STAYS))
    return con


OF_STAYS = [{"k": 3}, {"distinct": 3, "sensitive": "stays.value"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "found"),
    some(
        [
            pytest.param(FIRST, "one of the two is wrong"),
            pytest.param(SECOND, "one of the two is wrong"),
            pytest.param(None, "distinct l=3, each=position on"),
        ]
    ),
)
def test_a_wrong_plan_is_found_by_each_reading(
    broken: Any, snapshot: Any, monkeypatch: Any, released: Any, which: Any, found: str
) -> None:
    """A plan that does not look at positions, which a broken reading overlooks and the other does not."""
    before = snapshot(released)
    monkeypatch.setattr(tables, "asking_each", lambda rows, specs: rows)
    if which:
        broken(*which)
    with pytest.raises(AuditError, match=found):
        ldiv_db.run(released, schemas.policy_of(NAMES, require=[OF_STAYS[0], OF_STAYS[1] | {"each": "position"}]))
    assert snapshot(released) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"individual": {"column": "person", "rows": "together"}}, "require.0.each: goes with rows in their order"),
        ({"require": [{"k": 3, "each": "position"}]}, "require.0.each: asks nothing of values"),
        ({"require": [{"t_closeness": 0.5, "each": "position"}]}, "compares classes with people who lack some"),
        ({"require": [{"unique_distinct": 2, "each": "position"}]}, "is about rows of one value"),
        ({"require": [{"distinct": 3, "each": "row"}]}, "of a row is of who knows one"),
    ],
)
def test_what_does_not_go_with_it_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    con = duckdb.connect(config={"threads": 1})
    test_aligned.fill(con, test_aligned.visits(random.Random(1), 30))
    with pytest.raises(PolicyError, match=message):
        ldiv_db.run(con, test_aligned.POLICY | {"require": [{"distinct": 3, "each": "position"}]} | change)
    with pytest.raises(PolicyError, match="each: goes with rows in their order"):
        ldiv_db.check(con, "visits", "age", "value", {"distinct": 3, "each": "position"})


def test_it_is_written_as_it_was_asked() -> None:
    spec = Entropy(3, each="position", sensitive="value")
    assert spec.written == {"entropy": 3, "sensitive": ["value"], "each": "position"}
    assert spec.resolve(None).label == "entropy l=3, each=position"
