"""Releases over time: rows keep their groups, nobody waits without need, and comparing tells nothing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from functools import partial

import pytest
import sequences
from refusals import refuses
from strategies import draws, search, seeds
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.publishing import ledger
from ldiv_db.publishing.earlier_releases import check_series
from ldiv_db.publishing.inference import Release, check_releases
from ldiv_db.publishing.pairings import limits_of, promised_limits
from ldiv_db.requirements.guarantees import Guarantee


def groups_of(con, tables):
    return dict(con.execute(f"SELECT person, group_id FROM {tables[0]}").fetchall())


def values_of(con, tables, names):
    found = defaultdict(Counter)
    for group, *row in con.execute(f"SELECT group_id, {', '.join(names)} FROM {tables[1]}").fetchall():
        found[group][tuple(row)] += 1
    return found


@pytest.mark.slow
@search(2, seed=seeds)
def test_an_attacker_learns_nothing_by_comparing(con, seed):
    """Nobody changes groups, no group its values, and no value is of more than 1/l of a group."""
    con.execute("DROP SCHEMA IF EXISTS pub CASCADE; DROP SCHEMA IF EXISTS ldiv CASCADE")
    found = sequences.random_sequence(seed)
    policy, groups, values = found.policy(starvation=1, combinations="first"), {}, {}
    for number in range(found.draw.randint(2, 3)):
        if number:
            found.step()
        found.place(con)
        result = ldiv_db.run(con, policy)
        tables = result.figures["tables"]
        now, standing = groups_of(con, tables), values_of(con, tables, found.names)
        assert all(now[person] == groups[person] for person in now if person in groups)
        assert all(standing[group] == values[group] for group in values)
        assert {person for person in groups if person in found.rows} <= set(now) <= set(found.rows)
        groups |= now
        values = standing
        for i, l in enumerate(found.ls):
            for rows in values.values():
                shown = Counter()
                for row, count in rows.items():
                    shown[row[i]] += count
                assert max(shown.values()) * l <= shown.total()
        assert result.inference.holds
        assert result.figures["counterfeits"] == len(set(groups) - set(found.rows))
        require_no_needless_wait(con, found, result, groups)


def require_no_needless_wait(con, found, result, groups):
    """Of the rows that have waited too long none could join a new group without noise."""
    if not result.figures["rows_starving"]:
        return
    new = set(range(result.figures["groups"] - result.figures["groups_new"] + 1, result.figures["groups"] + 1))
    members = defaultdict(list)
    for person, group in groups.items():
        if group in new:
            members[group].append(found.rows[person][1:])
    waiting = dict(con.execute("SELECT key_hash, release FROM ldiv.release_member WHERE group_id IS NULL").fetchall())
    assert waiting
    left = [row[1:] for person, row in found.rows.items() if person not in groups]
    starving = result.figures["rows_starving"]
    fitting = sum(any(_fits(found.ls, rows, row) for rows in members.values()) for row in left)
    assert fitting <= len(left) - starving


def _fits(ls, rows, row):
    grown = [*rows, row]
    if row[0] in {member[0] for member in rows}:
        return False
    return all(max(Counter(m[i] for m in grown).values()) * l <= len(grown) for i, l in enumerate(ls))


# -- classes of one table --------------------------------------------------------------------------------

BY_LEDGER = """SELECT m.group_id, p.person FROM ldiv.release_member AS m JOIN ldiv.series_secret AS s USING (series)
    JOIN people AS p ON m.key_hash = sha256(concat(s.secret, ':', p.id)) WHERE m.group_id IS NOT NULL AND series = ?"""


def see_classes(con, table, names):
    """The people and the values of each class, as who knows everybody's class sees them."""
    people, values = defaultdict(set), {}
    for group, person in con.execute(BY_LEDGER, [table.rpartition("_")[0]]).fetchall():
        people[group].add(person)
    for group, *row in con.execute(f"SELECT class_id, {', '.join(names)} FROM {table}").fetchall():
        for counter, value in zip(values.setdefault(group, [Counter() for _ in names]), row, strict=True):
            counter[value] += 1
    return people, values


@search(1, seed=seeds)
def test_an_attacker_learns_nothing_by_comparing_classes(con, seed):
    """Classes stay as they are, label for label; new ones hold new people, all values different, and cover them."""
    con.execute("DROP SCHEMA IF EXISTS pub CASCADE; DROP SCHEMA IF EXISTS ldiv CASCADE")
    found = sequences.random_sequence(seed)
    policy, before, ever, l = found.policy_of_classes(), [], {}, found.ls[0]
    for number in range(found.draw.randint(2, 3)):
        if number:
            found.step()
        found.place(con)
        result = ldiv_db.run(con, policy)
        (table,) = result.figures["tables"]
        rows = con.execute(f"FROM {table}").fetchall()
        assert rows[: len(before)] == before
        last = before[-1][0] if before else 0
        members, values = see_classes(con, table, policy["sensitive"])
        for group, people in members.items():
            assert people >= {person for person, g in ever.items() if g == group and person in found.rows}
            ever |= dict.fromkeys(people, group)
        for group, counters in values.items():
            assert all(len(counter) == counter.total() >= l for counter in counters)
            if group > last:
                assert len(members[group]) == counters[0].total()
                require_covered(rows, group, {p: found.rows[p][0] for p in members[group]})
        published = {person for people in members.values() for person in people}
        figures = result.figures
        assert (figures["rows_published"], figures["rows_waiting"]) == (
            len(published), len(found.rows) - len(published))  # fmt: skip
        assert len(rows) == len(published) + figures["counterfeits"]
        assert figures["counterfeits"] == len(set(ever) - set(found.rows))
        if len(policy["sensitive"]) == 1:  # as many classes as counts allow: none can be made of those who wait
            waiting = Counter(row[1] for person, row in found.rows.items() if person not in published)
            assert len(waiting) < l
        assert result.inference.holds
        before = rows


def require_covered(rows, group, towns):
    """The labels of a class are the ranges of its people and their towns."""
    labels = {row[1:3] for row in rows if row[0] == group}
    assert labels == {tuple(_range(list(values)) for values in (towns, towns.values()))}


def _range(values):
    low, high = min(values), max(values)
    return f"[{low} .. {high}]" if low < high else str(low)


@pytest.mark.slow
def test_a_series_goes_on_from_labels_of_an_older_version(con):
    """Classes keep labels with a dash, new ones have dots; all of them are read as the same ranges are."""
    found = sequences.random_sequence(3, 24)
    policy = {
        "source": "people", "target": "out", "key": "id", "quasi_identifiers": {"town": {"numeric": True}},
        "identifiers": ["person", *found.names[1:]], "sensitive": ["s1"], "require": [{"distinct": 2}],
        "algorithm": "mondrian", "seed": 1,
    }  # fmt: skip
    found.place(con)
    ldiv_db.run(con, policy)
    assert con.execute("SELECT count(*) FROM out WHERE contains(town, ' .. ')").fetchone()[0]
    con.execute("UPDATE out SET town = replace(town, ' .. ', '-')")
    before = con.execute("FROM out").fetchall()
    found.add(24)
    found.place(con)
    result = ldiv_db.run(con, policy)
    after = con.execute("FROM out").fetchall()
    assert after[: len(before)] == before and result.inference.holds
    ranges = {row[1] for row in after[len(before) :] if row[1].startswith("[")}
    assert ranges and all(" .. " in label for label in ranges)
    con.execute("CREATE TABLE anew AS SELECT * REPLACE (regexp_replace(town, '([0-9])-', '\\1 .. ') AS town) FROM out")
    options = {"policy": policy, "known": "people", "downcoding": True}
    for call in (partial(ldiv_db.attack, **options), partial(ldiv_db.measure, policy=policy)):
        old, new = (call(con, table).as_dict() for table in ("out", "anew"))
        assert old | {"published": "", "table": ""} == new | {"published": "", "table": ""}


def test_classes_keep_who_waited_longest_and_refuse_what_would_tell(con, people, snapshot):
    """Three values, of the first too many: of them who has waited longest comes first; and bad sequels are refused."""
    con.execute("INSERT INTO people SELECT 20 + i, 20 + i, 'a', 'p' FROM range(4) t(i)")
    wanted = policy(
        quasi_identifiers={"person": {"numeric": True}}, sensitive=["s1"], identifiers=["s2"],
        require=[{"unique_distinct": 3}], algorithm="bsgi",
    )  # fmt: skip
    assert ldiv_db.run(con, wanted).figures["rows_waiting"] == 4
    first = {person for _, person in con.execute(BY_LEDGER, ["pub.p"]).fetchall()}
    con.execute("INSERT INTO people VALUES (30, 30, 'a', 'p'), (31, 31, 'b', 'p'), (32, 32, 'c', 'p')")
    con.execute("UPDATE people SET s1 = 'c' WHERE person = 1")
    second = ldiv_db.run(con, wanted)
    assert (second.figures["groups_new"], second.figures["longest_wait"], second.figures["rows_changed"]) == (1, 1, 1)
    new = {person for _, person in con.execute(BY_LEDGER, ["pub.p"]).fetchall()} - first
    assert {31, 32} < new and 30 not in new
    before = snapshot(con)
    for change in (
        {"sensitive": ["s2"], "identifiers": ["s1"]},
        {"algorithm": "decomposition_plus", "require": [], "sensitive": {"s1": {"l": 3}}},
    ):
        with pytest.raises(ldiv_db.PolicyError):
            ldiv_db.run(con, wanted | change)
    con.execute("UPDATE pub.p_1 SET s1 = 'z' WHERE class_id = 1 AND s1 IN ('a', 'b')")
    with pytest.raises(ldiv_db.AuditError, match="can be inferred with probability 1, more than 1/3, by comp"):
        ldiv_db.run(con, wanted)
    assert set(snapshot(con)) == set(before)


# -- the check ------------------------------------------------------------------------------------------


def test_beside_harmless_values_the_others_keep_their_limit(con):
    """What is left of the first night's class is cough alone, or the harmless value: the first is too much."""
    rows = [(i, i, ["none", "none", "flu", "cough"][i % 4], "p") for i in range(8)]
    fill(con, "people", sequences.COLUMNS, rows)
    wanted = policy(
        quasi_identifiers={"person": {"numeric": True}}, sensitive={"s1": {"harmless": ["none"]}}, identifiers=["s2"],
        require=[{"frequency": 3}], algorithm="topdown",
    )  # fmt: skip
    first = ldiv_db.run(con, wanted)
    assert first.figures["l"] == {"s1": 1} and first.inference.best["s1"] <= 1 / 3
    (report,) = con.execute("SELECT report FROM ldiv.release").fetchone()
    assert "none" not in report and json.loads(report)["limits"]["s1"][0] == "1/3"
    checked = check_series(Engine(con), "pub.p")
    assert checked.holds and "limits" not in ledger.releases(Engine(con))[0].as_dict()
    assert "1/3 (1 value has its own)" in str(checked)
    ldiv_db.run(con, wanted)
    con.execute("CREATE TABLE kept AS FROM pub.p_1")
    others = "UPDATE pub.p_1 SET s1 = concat('was ', rowid) WHERE s1 <> '{0}' AND class_id IN (FROM found)"
    con.execute("CREATE TABLE found AS SELECT class_id FROM pub.p_1 WHERE s1 = 'cough'")
    con.execute(others.format("cough"))
    assert not check_series(Engine(con), "pub.p").holds
    con.execute("DELETE FROM pub.p_1")
    con.execute("INSERT INTO pub.p_1 FROM kept")
    con.execute(others.format("none"))
    assert check_series(Engine(con), "pub.p").holds


# -- the check, against its definition in plain Python ---------------------------------------------------


def share(values):
    return Fraction(max(values.values()), sum(values.values())) if values else Fraction(0)


def shares(values):
    return {value: Fraction(n, sum(values.values())) for value, n in values.items() if n}


def told(releases, attribute):
    """The best probability of every key's values: alone, by intersection, and by what groups have and lack."""
    best = defaultdict(dict)

    def learn(key, found):
        best[key] |= {value: max(best[key].get(value, Fraction(0)), found[value]) for value in found}

    for people, values in releases:
        for key, group in people.items():
            learn(key, shares(values[group][attribute]))
    for key in list(best):
        multisets = [values[people[key]][attribute] for people, values in releases if key in people]
        common = multisets[0]
        for other in multisets[1:]:
            common = common & other
        learn(key, shares(common))
    for i, (people, values) in enumerate(releases):
        for j, (others, theirs) in enumerate(releases):
            if i == j:
                continue
            for group in set(people.values()):
                mine = {key for key in people if people[key] == group}
                for other in {others[key] for key in mine if key in others}:
                    them = {key for key in others if others[key] == other}
                    first, second = values[group][attribute], theirs[other][attribute]
                    common = first & second
                    pool = max(common.total() - len(mine & them), 0)
                    weights = Counter({v: (n - common[v]) * max(common.total(), 1) + common[v] * pool
                                       for v, n in first.items()})  # fmt: skip
                    for key in mine - them if first != second and sum(weights.values()) else ():
                        learn(key, shares(weights))
    return best


@pytest.mark.parametrize("own", [{}, {"c": Fraction(1), "a": Fraction(3, 5)}], ids=["one limit", "limits of values"])
@search(3, draw=draws)
def test_the_check_is_what_it_says(con, draw, own):
    engine, releases, listed = Engine(con), [], []
    for number in range(draw.choice([2, 2, 3])):
        keys = draw.sample(range(20), 12)
        people = {key: index // 3 for index, key in enumerate(draw.sample(keys, len(keys)))}
        if number and draw.random() < 0.7:  # mostly as it was, with a few rows moved
            people = dict(list(releases[0][0].items())[draw.randrange(3) :]) | {40 + number: draw.randrange(4)}
        rows = [(key, f"g{group}", draw.choice("abc"), draw.choice("xyz")) for key, group in people.items()]
        if number and draw.random() < 0.5:
            before = {row[0]: row for row in listed[0][1]}
            rows = [(key, group, *before[key][2:]) if key in before else (key, group, *rest)
                    for key, group, *rest in rows]  # fmt: skip
        fill(con, f"t{number}", {"id": "INTEGER", "g": "VARCHAR", "a": "VARCHAR", "b": "VARCHAR"}, rows)
        values = defaultdict(lambda: (Counter(), Counter()))
        for _, group, *row in rows:
            for counter, value in zip(values[group], row, strict=True):
                counter[value] += 1
        releases.append(({key: group for key, group, *_ in rows}, values))
        listed.append((f"t{number}", rows))
    found = check_releases(
        engine,
        [Release(name, Relation.parse(name), ("g",), Relation.parse(name), "id") for name, _ in listed],
        promised_limits(
            {"a": Guarantee(share=Fraction(1, 2), shares=tuple(own.items())), "b": Guarantee(share=Fraction(1, 3))},
            {},
            "s",
        ),
        secret="s",
    )
    exposed = set()
    for i, (name, limit, others) in enumerate([("a", Fraction(1, 2), own), ("b", Fraction(1, 3), {})]):
        best = told(releases, i)
        bounded = [best[key][value] for key in best for value in best[key] if others.get(value, limit) < 1]
        assert abs(found.best[name] - float(max(bounded))) < 1e-12
        over = {key for key in best if any(best[key][value] > others.get(value, limit) for value in best[key])}
        assert found.keeps(name) == (not over)
        exposed |= over
    assert found.keys_exposed == len(exposed)


def assignments(options, rows):
    """Every way to give rows (a Counter of values) to members, who may each have some values; others take the rest."""
    if not options:
        return [()]
    found = []
    for value in sorted(options[0]):
        if rows[value]:
            found += [(value, *rest) for rest in assignments(options[1:], rows - Counter([value]))]
    return found


def possible(releases, attribute):
    """The values that every key may have, group after group until nothing changes; {} if no release leaves any."""
    of = {key: [(people[key], values) for people, values in releases if key in people] for people, _ in releases
          for key in people}  # fmt: skip
    left = {key: set.intersection(*(set(values[group][attribute]) for group, values in of[key])) for key in of}
    before = None
    while before != left:
        before = dict(left)
        for people, values in releases:
            for group in sorted(set(people.values())):
                members = [key for key in sorted(people) if people[key] == group and left[key]]
                ways = assignments([left[key] for key in members], values[group][attribute])
                for i, key in enumerate(members if ways else []):
                    left[key] = {way[i] for way in ways}
    return {key: Counter({v: min(values[group][attribute][v] for group, values in of[key]) for v in left[key]})
            for key in of}  # fmt: skip


@search(3, draw=draws)
def test_all_keys_together_tell_what_brute_force_finds(con, draw):
    """People keep their values and change groups: what no assignment of a group's rows leaves is ruled out."""
    own = {key: draw.choice("abcd") for key in range(10)}
    releases, listed = [], []
    for number in range(draw.choice([2, 3, 3])):
        keys = draw.sample(range(10), draw.choice([8, 10]))
        people = {key: index // draw.choice([2, 3]) for index, key in enumerate(keys)}
        rows = [(key, f"g{group}", own[key]) for key, group in people.items()]
        fill(con, f"t{number}", {"id": "INTEGER", "g": "VARCHAR", "a": "VARCHAR"}, rows)
        values = defaultdict(lambda: (Counter(),))
        for _, group, value in rows:
            values[group][0][value] += 1
        releases.append(({key: group for key, group, _ in rows}, values))
        listed.append(Release(f"t{number}", Relation.parse(f"t{number}"), ("g",), Relation.parse(f"t{number}"), "id"))
    together = check_releases(Engine(con), listed, limits_of([("a", 2)]), combinations="jointly")
    alone, jointly = told(releases, 0), possible(releases, 0)
    best = {key: max(*alone[key].values(), share(jointly[key])) for key in alone}
    assert abs(together.best["a"] - float(max(best.values()))) < 1e-12
    assert together.keys_exposed == sum(probability > Fraction(1, 2) for probability in best.values())


def test_three_groups_tell_what_no_two_do(con):
    """January's 1, 2, 3 with A, B, C, February's 2, 5 with B, C and 3, 6 with B, C: only 1 can have A."""
    fill(con, "jan", {"id": "INTEGER", "g": "INTEGER", "a": "VARCHAR"}, [(1, 1, "A"), (2, 1, "B"), (3, 1, "C")])
    later = [(2, 1, "B"), (5, 1, "C"), (3, 2, "C"), (6, 2, "B")]
    fill(con, "feb", {"id": "INTEGER", "g": "INTEGER", "a": "VARCHAR"}, later)
    listed = [Release(name, Relation.parse(name), ("g",), Relation.parse(name), "id") for name in ("jan", "feb")]
    in_pairs = check_releases(Engine(con), listed, limits_of([("a", 2)]))
    together = check_releases(Engine(con), listed, limits_of([("a", 2)]), combinations="jointly")
    assert in_pairs.holds and in_pairs.best["a"] == 0.5
    assert (together.holds, together.keys_exposed, together.best["a"]) == (False, 1, 1.0)


# -- what may happen between releases --------------------------------------------------------------------


@pytest.fixture
def people(con):
    rows = [(i, i, "abc"[i % 3], "pqr"[i // 3 % 3]) for i in range(9)]
    fill(con, "people", sequences.COLUMNS, rows)


def policy(**changes):
    return sequences.policy_of_pairs(primary="s1", starvation=1) | changes


def test_rows_that_are_gone_changed_and_back(con, people):
    first = ldiv_db.run(con, policy()).figures
    assert (first["groups"], first["rows_waiting"]) == (3, 0)
    before = con.execute("FROM pub.p_1_sa").fetchall()
    con.execute("DELETE FROM people WHERE id = 4")
    con.execute("UPDATE people SET s2 = 'r' WHERE id = 0")
    second = ldiv_db.run(con, policy())
    assert (second.figures["counterfeits"], second.figures["rows_changed"], second.figures["groups_new"]) == (1, 1, 0)
    assert con.execute("FROM pub.p_2_sa").fetchall() == before
    assert con.execute("SELECT count(*) FROM pub.p_2_qid").fetchone() == (8,)
    assert second.notes[:2] == ("1 published row has other sensitive values now; the old ones stay",
                                "1 published row is gone; its values stay in its group")  # fmt: skip
    con.execute("INSERT INTO people VALUES (4, 4, 'b', 'q')")
    third = ldiv_db.run(con, policy()).figures
    assert (third["counterfeits"], third["rows_published"]) == (0, 9)
    assert con.execute("FROM pub.p_3_qid").fetchall() == con.execute("FROM pub.p_1_qid").fetchall()


@pytest.mark.slow
def test_the_longest_waiting_come_first_and_the_starved_join(con, people):
    con.execute("INSERT INTO people VALUES (20, 20, 'a', 'p'), (21, 21, 'a', 'q')")
    first = ldiv_db.run(con, policy()).figures
    assert first["rows_waiting"] == 2
    waiting = set(range(20, 22)) | set(range(9)) - set()
    waiting -= {p for (p,) in con.execute("SELECT person FROM pub.p_1_qid").fetchall()}
    assert len(waiting) == 2
    second = ldiv_db.run(con, policy()).figures  # nothing new: they wait
    assert (second["groups_new"], second["longest_wait"], second["rows_starving"]) == (0, 1, 0)
    con.execute("INSERT INTO people VALUES (30, 30, 'a', 'r'), (31, 31, 'b', 'p'), (32, 32, 'c', 'q')")
    third = ldiv_db.run(con, policy()).figures
    assert third["groups_new"] == 1
    published = {p for (p,) in con.execute("SELECT person FROM pub.p_3_qid WHERE group_id = 4").fetchall()}
    assert {31, 32} < published and len(published & waiting) == 1 and 30 not in published
    # The one that is left has waited too long, and joins a group that lacks its value as soon as there is one.
    con.execute("INSERT INTO people VALUES (41, 41, 'd', 'p'), (42, 42, 'e', 'q'), (43, 43, 'f', 'r')")
    con.execute("DELETE FROM people WHERE id = 30")
    fourth = ldiv_db.run(con, policy()).figures
    assert fourth["rows_waiting"] == 1 or fourth["rows_placed"] == 1
    assert waiting <= {p for (p,) in con.execute("SELECT person FROM pub.p_4_qid").fetchall()}


def test_a_row_that_has_waited_is_not_the_one_too_many(con, people):
    """There are four values for a group of three, and not noise for any three."""
    con.execute("DELETE FROM people")
    con.execute("INSERT INTO people VALUES (1, 1, 'a', 'p'), (2, 2, 'b', 'q'), (3, 3, 'c', 'r'), (4, 4, 'a', 'r')")
    assert ldiv_db.run(con, policy()).figures["rows_waiting"] == 1
    con.execute("INSERT INTO people VALUES (5, 5, 'd', 'p'), (6, 6, 'e', 'p'), (7, 7, 'f', 'q'), (8, 8, 'd', 'q')")
    result = ldiv_db.run(con, policy()).figures
    assert (result["rows_waiting"], result["longest_wait"]) == (2, 0)


@pytest.mark.slow
def test_a_release_that_would_tell_too_much_is_refused(con, people, snapshot):
    ldiv_db.run(con, policy())
    con.execute("INSERT INTO people VALUES (20, 20, 'a', 'p'), (21, 21, 'b', 'q'), (22, 22, 'c', 'r')")
    # Somebody has changed what was published: two releases compared now tell values apart.
    ldiv_db.run(con, policy())
    con.execute("UPDATE pub.p_1_sa SET s1 = 'z' WHERE group_id = 1 AND s1 IN ('a', 'b')")
    before = snapshot(con)
    with pytest.raises(
        ldiv_db.AuditError, match="s1 of 3 keys can be inferred with probability 1, more than 1/3, by comp"
    ):
        ldiv_db.run(con, policy())
    assert snapshot(con) == before


def test_what_a_release_builds_on_must_be_there(con, people):
    ldiv_db.run(con, policy())
    with refuses("algorithm.name"):
        ldiv_db.run(con, policy(algorithm={"name": "decomposition"}))
    with refuses("sensitive"):
        ldiv_db.run(con, policy(sensitive={"s1": {"l": 3}}, identifiers=["s2"]))
    con.execute("ALTER TABLE pub.p_1_sa RENAME TO away")
    with pytest.raises(ldiv_db.PolicyError, match=r"pub.p_1_sa of the last release is gone"):
        ldiv_db.run(con, policy())
    con.execute("ALTER TABLE pub.away RENAME TO p_1_sa")
    ldiv_db.run(con, policy())
    con.execute("DROP TABLE pub.p_1_sa")
    with pytest.raises(ldiv_db.PolicyError, match=r"pub.p_1_sa of release 1 is gone \(a release is compared with"):
        ldiv_db.run(con, policy())


@pytest.mark.slow
def test_a_release_joins_the_callers_transaction(con, people, snapshot):
    before = snapshot(con)
    con.begin()
    ldiv_db.run(con, policy())
    con.rollback()
    assert snapshot(con) == before


def test_no_value_and_no_key_stands_in_the_ledger_and_each_series_hashes_keys_in_its_way(con, people):
    con.execute("UPDATE people SET s1 = concat('secret-', s1), id = id + 700000000")
    ldiv_db.run(con, policy())
    ldiv_db.run(con, policy(target={"prefix": "pub.q"}, over_time="independent"))
    for table in ("series", "release", "release_group", "release_member"):
        text = str(con.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ldiv.{table}").fetchall())
        assert "secret-" not in text and "70000000" not in text
    rows = con.execute("SELECT count(*), count(DISTINCT key_hash) FROM ldiv.release_member").fetchone()
    assert rows == (18, 18)
