"""k-anonymity without a sensitive attribute: classes are counted again here, from what was published."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from strategies import search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError

pytestmark = pytest.mark.usefixtures("no_remedies")

COLUMNS = {"age": "INTEGER", "zip": "VARCHAR", "note": "VARCHAR"}
ABLE = ("topdown", "auto", "peel", "mondrian", "stratified", "incognito", "tds", "cuts", "annealing")
UNABLE = ("bsgi", "tp", "tp_plus", "hilbert", "matching")


def people(draw: random.Random) -> list[tuple[Any, ...]]:
    """A few people, of some of whom something is not known."""
    zips = [None, *(f"{one}{two}" for one in "12" for two in "ab")]
    return [(draw.choice([None, *range(20, 40)]), draw.choice(zips), f"n{i}") for i in range(draw.randint(6, 40))]


def policy(k: int, algorithm: Any, **more: Any) -> dict[str, Any]:
    return {
        "source": "people", "target": {"table": "published", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [5, 10]}}, "zip": {"taxonomy": {"prefix": [2, 1]}}},
        "identifiers": ["note"], "require": [{"k": k}], "algorithm": algorithm, "seed": 3, **more,
    }  # fmt: skip


def published(con: Any) -> list[tuple[Any, ...]]:
    return con.execute("SELECT * FROM published").fetchall()


@pytest.mark.parametrize("algorithm", some(ABLE, 1))
@search(1, case=seeds)
def test_every_class_of_a_release_has_k_rows(con: Any, algorithm: str, case: int) -> None:
    draw = random.Random(f"{algorithm} {case}")
    rows = people(draw)
    k = draw.randint(2, min(6, len(rows)))
    fill(con, "people", COLUMNS, rows)
    said = draw.choice([{}, {"sensitive": {}}, {"sensitive": []}])
    kept: dict[str, Any] = draw.choice([{}, {"identifiers": [], "keep": ["note"], "output": {"class_id": True}}])
    asked = policy(k, algorithm, **said, **kept)
    result = ldiv_db.run(con, asked)
    release = published(con)
    labels = [row[1:3] if kept else row for row in release]
    sizes = Counter(labels)
    assert len(release) == len(rows) == result.loss.rows_published
    assert min(sizes.values()) >= k
    assert (result.loss.classes, result.loss.smallest_class) == (
        (len({row[0] for row in release}) if kept else len(sizes)),
        min(Counter(row[0] for row in release).values()) if kept else min(sizes.values()),
    )
    if kept:
        assert sorted(row[-1] for row in release) == sorted(row[-1] for row in rows)
    (verdict,) = result.requirements
    assert (verdict["name"], verdict["sensitive"], verdict["holds"]) == ("k", None, True)


@search(2, case=seeds)
def test_a_check_counts_classes_and_no_values(con: Any, case: int) -> None:
    draw = random.Random(case)
    fill(con, "people", COLUMNS, people(draw))
    k = draw.randint(1, 5)
    sizes = Counter(con.execute("SELECT zip FROM people").fetchall())
    (audit,) = ldiv_db.check(con, "people", ["zip"], require=[f"k:{k}"])
    (verdict,) = audit.verdicts
    assert (audit.sensitive, audit.as_dict()["sensitive"]) == ("", None)
    assert (audit.classes, audit.rows) == (len(sizes), sum(sizes.values()))
    assert verdict.worst == min(sizes.values())
    assert verdict.violating_rows == sum(size for size in sizes.values() if size < k)
    assert audit.holds == (min(sizes.values()) >= k)


def test_an_attack_recognises_rows_and_tells_no_values_and_a_measure_has_the_loss_of_the_run(con: Any) -> None:
    fill(con, "people", COLUMNS, [row for row in people(random.Random(5)) if None not in row])
    asked = policy(3, "topdown")
    lost = ldiv_db.run(con, asked).loss.lm_mean
    assert ldiv_db.measure(con, "published", asked, kl=False).loss.lm_mean == pytest.approx(lost)
    sizes = Counter(published(con))
    found = ldiv_db.attack(con, "published", policy=asked, population="people", downcoding=True)
    gains = {attack.name: attack.gains for attack in found.attacks}
    assert set(gains) == {"prosecutor", "marketer", "form", "journalist", "presence", "downcoding"}
    assert gains["prosecutor"][0].gain == pytest.approx(1 / min(sizes.values()))
    assert gains["prosecutor"][0].bound == pytest.approx(1 / 3)
    assert gains["marketer"][0].gain == pytest.approx(len(sizes) / sum(sizes.values()))
    assert found.holds is True
    broken = ldiv_db.attack(con, "published", ["age", "zip"], require=[f"k:{min(sizes.values()) + 1}"])
    assert broken.holds is False
    assert ldiv_db.attack(con, "published", ["age", "zip"]).holds is None
    for what in ("known", "definetti", "targets"):
        with pytest.raises(PolicyError, match=f"{what}: needs a sensitive attribute"):
            ldiv_db.attack(con, "published", policy=asked, **{what: "people"})
    with pytest.raises(PolicyError, match="replay: needs a sensitive attribute"):
        ldiv_db.attack(con, "published", policy=asked, replay=ldiv_db.Replay())


@pytest.mark.parametrize("algorithm", some(UNABLE, 1))
def test_algorithms_that_need_values_say_so(con: Any, algorithm: str) -> None:
    fill(con, "people", COLUMNS, people(random.Random(8)))
    with pytest.raises(PolicyError, match=f"{algorithm} needs a sensitive attribute .*auto, topdown, peel"):
        ldiv_db.plan(con, policy(2, algorithm))


def test_requirements_on_values_need_some(con: Any) -> None:
    fill(con, "people", COLUMNS, people(random.Random(9)))
    with pytest.raises(PolicyError, match=r"sensitive: is required \(distinct is about its values; k needs none"):
        ldiv_db.plan(con, policy(2, "peel", require=[{"k": 2}, {"distinct": 2}]))
    for name in ("anatomy", "decomposition", "decomposition_plus"):
        with pytest.raises(PolicyError, match="sensitive: is required"):
            ldiv_db.plan(con, policy(2, name, require=[]))
    with pytest.raises(PolicyError, match="sensitive: is required"):
        ldiv_db.plan(con, policy(2, "bsgi", key="note", identifiers=[]))
    with pytest.raises(PolicyError, match="sensitive: is missing: requirements are about its values"):
        ldiv_db.check(con, "people", ["age"], require=["frequency:2"])


def test_more_rows_than_there_are_cannot_be_had(con: Any) -> None:
    fill(con, "people", COLUMNS, people(random.Random(10)))
    rows = con.execute("SELECT count(*) FROM people").fetchone()[0]
    with pytest.raises(InfeasibleError, match=f"k k={rows + 1} fails even in the whole table.*nearest.*k: {rows}"):
        ldiv_db.plan(con, policy(rows + 1, "peel"))


def test_nulls_may_be_left_out(con: Any) -> None:
    rows = people(random.Random(11))
    fill(con, "people", COLUMNS, rows)
    result = ldiv_db.run(con, policy(2, "topdown", nulls="suppress"))
    assert result.loss.rows_suppressed == sum(None in row[:2] for row in rows) > 0
    assert all(None not in row for row in published(con))
