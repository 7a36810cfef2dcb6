"""Replay against brute force: the program itself is run on every assignment of the values, whole runs each."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from typing import Any

import pytest
import tables
from strategies import draws, search, some

import ldiv_db
from ldiv_db import Replay
from ldiv_db.attacking.replay import arrange, consistent_worlds, count_arrangements
from ldiv_db.database.errors import PolicyError

pytestmark = pytest.mark.usefixtures("no_remedies")

TREE = {"taxonomy": {"ranges": [10, 20, 40, 80], "origin": 0}}
NUMBER = {"numeric": True}


def policy_of(algorithm: Any, require: dict[str, int] | None, qi: Any = NUMBER, **more: Any) -> dict[str, Any]:
    """A policy for a table of ages and values; without requirements one of an anatomised release."""
    name = algorithm if isinstance(algorithm, str) else algorithm["name"]
    document = {"source": "people", "seed": 5, "algorithm": algorithm, **more}
    if require is None:
        sensitive = {"value": {"l": 2}}
        return document | {
            "target": {"prefix": name},
            "key": "id",
            "quasi_identifiers": ["age"],
            "sensitive": sensitive,
        }
    target = {"table": "release", "if_exists": "replace"}
    columns = {"identifiers": ["id"], "quasi_identifiers": {"age": qi}, "sensitive": ["value"]}
    return document | columns | {"target": target, "require": [require]}


def fill(con: Any, ages: list[int], values: tuple[str, ...]) -> None:
    columns = {"id": "INTEGER", "age": "INTEGER", "value": "VARCHAR"}
    tables.fill(con, "people", columns, [*zip(range(len(ages)), ages, values, strict=True)])


def tables_of(policy: dict[str, Any]) -> list[str]:
    if "table" in policy["target"]:
        return ["release"]
    suffixes = ["qit", "st"] if policy["algorithm"] == "anatomy" else ["qid", "sa"]
    return [f"{policy['target']['prefix']}_1_{suffix}" for suffix in suffixes]


def publish(con: Any, policy: dict[str, Any]) -> None:
    ldiv_db.run(con, policy | {"over_time": "independent"})


def release_of(con: Any, ages: list[int], values: tuple[str, ...], policy: dict[str, Any]) -> str | None:
    """What the program publishes of an assignment, None if nothing; nothing of it stays."""
    fill(con, ages, values)
    con.begin()
    try:
        publish(con, policy)
        return repr([sorted(con.execute(f"FROM {table}").fetchall(), key=repr) for table in tables_of(policy)])
    except ldiv_db.InfeasibleError:
        return None
    finally:
        con.rollback()


def replayed(con: Any, policy: dict[str, Any], **options: Any) -> Any:
    """What the attack says of the table's own release."""
    publish(con, policy)
    found = ldiv_db.attack(con, tables_of(policy)[0], policy=policy, replay=Replay(**options))
    (attack,) = [attack for attack in found.attacks if attack.name == "replay"]
    return attack


def expected(worlds: list[tuple[str, ...]], promised: float) -> dict[str, Any]:
    """The posteriors where these assignments are left, equally likely."""
    likeliest = [max(values.count(v) for v in values) / len(worlds) for values in zip(*worlds, strict=True)]
    return {
        "worlds_left": len(worlds),
        "people": len(likeliest),
        "mean": sum(likeliest) / len(likeliest),
        "largest": max(likeliest),
        "people_certain": sum(share == 1 for share in likeliest),
        "people_above": sum(share > promised for share in likeliest),
    }


APART, TWINS = [22, 31, 40, 53, 61, 70], [22, 22, 40, 53, 53, 70]
HALF = {"frequency": 2}
CASES = {
    "mondrian": (policy_of("mondrian", HALF), TWINS[:4], "AABB"),
    "greedy": (policy_of({"name": "bsgi", "select": "greedy"}, {"unique_distinct": 2}), APART[:5], "AABBC"),
    "refine": (policy_of("bsgi", {"unique_distinct": 2}), TWINS, "AAABBB"),
    "left out": (policy_of({"name": "bsgi", "residue": "suppress"}, {"unique_distinct": 2}), APART[:5], "AAABB"),
    "sets": (policy_of("bsgi", {"unique_distinct": 2}, TREE, recode="set"), TWINS[:4], "AABC"),
    "topdown": (policy_of("topdown", HALF, TREE), APART[:4], "AABC"),
    "stars": (policy_of("tp_plus", HALF), TWINS[:4], "AABC"),
    "blanked": (policy_of({"name": "cuts", "scheme": "vioSA"}, HALF, TREE, suppressed="unknown"), APART, "AAABBB"),
    "intervals": (policy_of({"name": "cuts", "scheme": "none"}, HALF), APART[:5], "AABBC"),
    "anatomy": (policy_of("anatomy", None), TWINS[:4], "AABC"),
    "decomposition_plus": (policy_of("decomposition_plus", None), APART[:4], "AABC"),
}


@pytest.mark.parametrize("name", some(CASES))
def test_posteriors_are_those_of_running_the_program_on_every_assignment(name: str, con: Any) -> None:
    policy, ages, values = CASES[name]
    left = defaultdict(list)
    for world in sorted(set(itertools.permutations(values))):
        left[release_of(con, ages, world, policy)].append(world)
    left.pop(None, None)
    by_size = sorted(left.values(), key=lambda worlds: (len(worlds), worlds))
    for worlds in by_size[-1:]:
        fill(con, ages, worlds[0])
        attack = replayed(con, policy) if "table" in policy["target"] else anatomised(con, policy)
        found = {**attack.figures, "largest": attack.gains[0].gain}
        wanted = expected(worlds, 0.5)
        assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=1e-8)
        assert (found["tried"], found["promised_without_replay"]) == ("all worlds", 0.5)
        assert found["worlds"] >= found["worlds_left"]
        assert (attack.gains[0].bound, attack.holds) == (None, None)


def anatomised(con: Any, policy: dict[str, Any]) -> Any:
    """The same of a release with a place in a ledger, which is taken back."""
    con.begin()
    try:
        return replayed(con, policy)
    finally:
        con.rollback()


@pytest.mark.slow
def test_without_the_seed_a_method_that_draws_nothing_tells_the_same(con: Any) -> None:
    fill(con, APART[:4], tuple("ABAB"))
    policy = policy_of("mondrian", {"distinct": 2})
    known, secret = replayed(con, policy).figures, replayed(con, policy, tries=13).figures
    assert secret["runs"] == 13 * known["worlds"] and secret["runs_left"] == 13 * known["worlds_left"]
    same = ("worlds", "worlds_left", "mean", "people_certain", "people")
    assert [secret[name] for name in same] == [known[name] for name in same]


@pytest.mark.slow
def test_coins_protect_anatomised_groups_from_who_lacks_the_seed(con: Any) -> None:
    fill(con, [20, 30, 40, 50], tuple("AABC"))
    policy = policy_of("anatomy", None) | {"seed": 6}
    publish(con, policy)
    known, secret = (
        ldiv_db.attack(con, table, policy=policy, replay=Replay(tries=tries)).attacks[0]
        for table, tries in (("anatomy", 0), ("anatomy_1_st", 16))
    )
    assert known.figures["people_above"] > 0
    # Each of the four worlds gives the release by about half of its seeds.
    assert secret.figures["worlds_left"] == 4 and 16 <= secret.figures["runs_left"] <= 48
    assert secret.figures["people_above"] == 0 and secret.gains[0].gain < 0.8


@pytest.mark.slow
def test_transparent_releases_promise_to_who_lacks_the_seed(con: Any) -> None:
    """And keep it; who has the seed is promised nothing."""
    policy = policy_of("bsgi", {"unique_distinct": 2}, transparent=True)
    fill(con, [22, 31, 40, 53], tuple("AABB"))
    publish(con, policy)
    secret, known = replayed(con, policy, tries=16), replayed(con, policy)
    assert secret.gains[0].bound == 0.5 and secret.gains[0].gain is not None and secret.holds
    assert secret.figures["people_above"] == 0
    assert known.gains[0].bound is None


def test_too_few_runs_tell_nothing(con: Any) -> None:
    fill(con, [20, 30, 40, 50], tuple("AABB"))
    policy = policy_of("anatomy", None)
    publish(con, policy)
    (attack,) = ldiv_db.attack(con, "anatomy", policy=policy, replay=Replay(tries=1)).attacks
    assert attack.figures["untold"] == 1 and attack.figures["people"] == 0
    assert attack.gains[0].gain is None


@pytest.mark.slow
def test_of_too_many_worlds_classes_are_drawn_and_all_else_is_known(con: Any) -> None:
    """Who knows everybody else's value tries what the rows of one class could be: brute force does the same."""
    ages, values = list(range(20, 44, 2)), tuple("ABCABCBACCBA")
    policy = policy_of({"name": "bsgi", "select": "bisect"}, {"unique_distinct": 3}, output={"class_id": True})
    fill(con, ages, values)
    attack = replayed(con, policy, limit=24)
    assert attack.figures["tried"] == "drawn classes" and attack.figures["classes_tried"] == 4
    con.execute("CREATE TABLE own AS FROM release")
    own = con.execute("SELECT string_agg(age || value, ',' ORDER BY age, value) FROM own GROUP BY class_id").fetchall()
    shares = []
    for members in classes_of(con):
        left = []
        for world in itertools.permutations(members.values()):
            tried = list(values)
            for place, value in zip(members, world, strict=True):
                tried[place] = value
            fill(con, ages, tuple(tried))
            ldiv_db.run(con, policy)
            if con.execute("SELECT * FROM release EXCEPT ALL FROM own").fetchall() == []:
                left.append(world)
        shares += [max(row.count(v) for v in row) / len(left) for row in zip(*left, strict=True)]
    assert len(own) == 4 and attack.figures["people"] == 12
    assert attack.figures["mean"] == pytest.approx(sum(shares) / 12) and attack.gains[0].gain == max(shares)


def classes_of(con: Any) -> list[dict[int, str]]:
    """The rows of each class (their number in the source, their value): ranges of ages that do not overlap."""
    rows = con.execute("SELECT id, age, value FROM people ORDER BY id").fetchall()
    found = []
    for (label,) in con.execute("SELECT DISTINCT age FROM own").fetchall():
        low, high = map(int, label.strip("[]").split(" .. "))
        found.append({number: value for number, age, value in rows if low <= age <= high})
    assert sorted(number for members in found for number in members) == [row[0] for row in rows]
    return found


# -- bad input -----------------------------------------------------------------------------------------


@pytest.fixture
def released(con: Any) -> dict[str, Any]:
    fill(con, APART[:4], tuple("ABBA"))
    policy = policy_of({"name": "bsgi", "select": "bisect"}, {"unique_distinct": 2})
    publish(con, policy)
    return policy


def refused(con: Any, table: str, policy: Any, **options: Any) -> str:
    with pytest.raises(PolicyError) as caught:
        ldiv_db.attack(con, table, policy=policy, replay=Replay(**options))
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)
    return str(caught.value)


def test_a_replay_needs_source_and_seed(released: dict[str, Any], con: Any) -> None:
    unseeded = {key: value for key, value in released.items() if key != "seed"}
    assert ldiv_db.attack(con, "release", policy=unseeded, replay=Replay()).holds  # the ledger has it
    con.execute("DELETE FROM ldiv.run_requirement; DELETE FROM ldiv.run")
    assert "neither the policy nor the ledger has the seed" in refused(con, "release", unseeded)
    assert "no table or view gone" in refused(con, "release", released | {"source": "gone"})
    con.execute("ALTER TABLE release DROP value")
    assert "has no column value" in refused(con, "release", released)


def test_a_release_of_something_else_is_named(con: Any) -> None:
    fill(con, APART[:4], tuple("ABBA"))
    con.execute("CREATE TABLE release AS SELECT '[22 .. 70]' AS age, value FROM people")
    policy = policy_of("mondrian", {"k": 2})
    assert "no world, not even the source's own values, gives this release" in refused(con, "release", policy)


def test_a_series_is_replayed_by_its_first_release_alone(con: Any) -> None:
    fill(con, APART, tuple("AABBCC"))
    policy = policy_of("anatomy", None)
    publish(con, policy)
    assert "is not one of the tables" in refused(con, "people", policy)
    con.execute("INSERT INTO people VALUES (9, 44, 'A'), (10, 45, 'B')")
    publish(con, policy)
    assert "has several releases" in refused(con, "anatomy_1_qit", policy)


def test_people_are_not_replayed_as_rows(con: Any) -> None:
    """Units are not made again, so that no world would give the release, and that would be no finding."""
    policy = policy_of("topdown", {"k": 2}) | {"individual": "id"}
    fill(con, [1, 2, 3, 4], ("a", "b", "a", "b"))
    policy.pop("identifiers")
    con.execute("CREATE TABLE release AS SELECT age, value FROM people")
    with pytest.raises(PolicyError, match="replay: runs the policy on rows, and this one counts people"):
        ldiv_db.attack(con, "release", policy=policy, replay=Replay())


# -- worlds: all that a release leaves open, against all assignments tried one by one -------------------------


def tried(fits, cells):
    """The same by trying: every way to give the cells to the rows, whose payloads are then a world."""
    each = [cell for cell, rows in cells.items() for _ in range(rows)]
    ways = itertools.permutations(each, len(fits))
    return sorted(
        {
            tuple(payload for _, payload in way)
            for way in ways
            if all(place in places for (place, _), places in zip(way, fits, strict=True))
        }
    )


@search(30, draw=draws)
def test_worlds_are_those_that_labels_allow(draw):
    true = [(draw.randrange(3), draw.randrange(3)) for _ in range(draw.randint(1, 6))]
    fits = [{place, *draw.sample(range(3), draw.randint(0, 2))} for place, _ in true]
    cells = Counter(true)
    worlds = consistent_worlds(fits, cells, 10_000)
    assert worlds == tried(fits, cells)
    assert tuple(payload for _, payload in true) in worlds


def test_too_many_worlds_are_none():
    cells = Counter({(0, 1): 4, (0, 2): 4})
    assert len(consistent_worlds([{0}] * 8, cells, 70)) == 70
    assert consistent_worlds([{0}] * 8, cells, 69) is None
    many = Counter({(0, payload): 1 for payload in range(12)})
    assert consistent_worlds([{0}] * 12, many, 2000) is None


@pytest.mark.parametrize("payloads", [(1,), (1, 1), (1, 2, 2), (3, 1, 2, 1), (1, 2, 3, 4)])
def test_few_arrangements_are_all_tried_the_true_one_first(payloads):
    found = arrange(range(len(payloads)), payloads, 64, random.Random(1))
    assert found.worlds[0] == payloads == found.true
    assert sorted(found.worlds) == sorted(set(itertools.permutations(payloads)))
    assert found.weights == [1] * count_arrangements(payloads)


def test_of_many_arrangements_some_are_drawn_which_stand_for_all_but_the_true_one():
    payloads = (1, 2, 3, 4, 5, 6)
    found = arrange(range(6), payloads, 10, random.Random(1))
    assert found.worlds[0] == payloads and len(set(found.worlds)) == 10 < count_arrangements(payloads)
    assert all(sorted(world) == list(payloads) for world in found.worlds)
    first, *others = found.weights
    # The true one stands for one way, the nine others for all other ways.
    assert sum(others) == first * (math.factorial(6) - 1)
