"""Means and medians of classes beside their ranges: what they are, and what they tell."""

import random
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations
from math import floor, prod

import duckdb
import pytest
from strategies import search, seeds, some

import ldiv_db
from ldiv_db import AuditError, PolicyError
from ldiv_db.recoding import recode

pytestmark = pytest.mark.usefixtures("no_remedies")

WAYS = ["bsgi", "mondrian", "topdown", "peel"]


def mean(numbers):
    return floor(Fraction(sum(numbers), len(numbers)) + Fraction(1, 2))


def median(numbers):
    return sorted(numbers)[(len(numbers) - 1) // 2]


CENTRES = {"mean": mean, "median": median}


def table(rows):
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE people (age INTEGER, disease VARCHAR)")
    con.executemany("INSERT INTO people VALUES (?, ?)", rows)
    return con


def policy(centre, algorithm="mondrian", **more):
    return {
        "source": "people", "target": "published", "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": "disease", "require": [{"frequency": 2}], "algorithm": algorithm, "seed": 3,
        "output": {"age": centre, "class_id": True}, **more,
    }  # fmt: skip


def test_columns_are_called_as_the_audits_own_are():
    names = {"n": "mean", "s": "mean", "known": "median", "centre": "median", "below": "median"}
    con = duckdb.connect(config={"threads": 1})
    columns = ", ".join(f"i AS {name}" for name in names)
    con.execute(f"CREATE TABLE people AS SELECT {columns}, i % 3 AS ill FROM range(12) AS r(i)")
    keys = {name: {"numeric": True} for name in names}
    ldiv_db.run(con, policy("mean") | {"quasi_identifiers": keys, "sensitive": "ill", "output": names})
    assert con.execute("SELECT count(DISTINCT (n_mean, centre_median)) > 1 FROM published").fetchone() == (True,)


def test_they_are_not_taken_for_numbers_of_classes():
    con = table([(age, "abcd"[age % 4]) for age in range(20, 52)])
    asked = policy("mean", output={"age": "mean"})
    ldiv_db.run(con, asked)
    (form,) = (one for one in ldiv_db.attack(con, "published", policy=asked).attacks if one.name == "form")
    assert "numbers_against_labels" not in form.figures


@pytest.mark.slow
@search(2, seed=seeds)
def test_they_are_those_of_the_rows(seed):
    rng = random.Random(seed)
    ages = [None, *range(-9, 40)] if seed % 2 else range(-9, 40)
    rows = [(rng.choice(ages), "abcd"[number % 4]) for number in range(rng.choice([12, 16]))]
    centre = rng.choice(["mean", "median"])
    con, said = table(rows), policy(centre, rng.choice(WAYS))
    ldiv_db.run(con, said)
    published = con.execute(f"SELECT class_id, age, age_{centre}, disease FROM published").fetchall()
    assert con.execute(f"SELECT typeof(age_{centre}) FROM published LIMIT 1").fetchone() == ("BIGINT",)
    classes = defaultdict(list)
    for number, label, found, disease in published:
        classes[number, label, found].append(disease)
    shown = Counter((label, found, tuple(sorted(held))) for (_, label, found), held in classes.items())
    assert shown == as_published(con, said, rows, CENTRES[centre])
    assert ldiv_db.check(con, "published", policy=said).holds
    con.execute(
        f"UPDATE published SET age_{centre} = 99 WHERE age_{centre} = (SELECT max(age_{centre}) FROM published)"
    )
    with pytest.raises(AuditError, match=f"age_{centre} is not in the range age of"):
        ldiv_db.check(con, "published", policy=said)


def as_published(con, said, rows, centre):
    """What the classes of the same run without a mean publish, by the rows that are in each by `keep`."""
    con.execute("DROP TABLE published")
    con.execute("CREATE OR REPLACE TABLE kept AS SELECT *, age AS own FROM people")
    ldiv_db.run(con, said | {"source": "kept", "output": {"class_id": True}, "keep": ["own"]})
    members = defaultdict(list)
    for number, label, own, disease in con.execute("SELECT class_id, age, own, disease FROM published").fetchall():
        members[number, label].append((own, disease))
    con.execute("DROP TABLE published")
    found = Counter()
    for (_, label), held in members.items():
        ages = [age for age, _ in held]
        found[label, None if None in ages else centre(ages), tuple(sorted(d for _, d in held))] += 1
    ldiv_db.run(con, said)
    return found


@pytest.mark.parametrize("right", CENTRES)
def test_a_wrong_one_is_not_published(monkeypatch, right):
    con, (wrong,) = table([(age, "abcd"[age % 4]) for age in (1, 2, 3, 40)]), set(CENTRES) - {right}
    real = recode._centred

    def other(flow, span):
        made = real(flow, recode.replace(span, form=wrong))
        return recode.replace(made, form=right)

    monkeypatch.setattr(recode, "_centred", other)
    with pytest.raises(AuditError, match=f"age_{right} is not that of the numbers behind 1 class"):
        ldiv_db.run(con, policy(right, require=[{"frequency": 4}]))
    assert not con.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'published'").fetchall()


def partitions(items):
    """All ways to part a list into classes."""
    if not items:
        yield []
        return
    first, *rest = items
    for parted in partitions(rest):
        yield [[first], *parted]
        for place, others in enumerate(parted):
            yield [*parted[:place], [first, *others], *parted[place + 1 :]]


def label(ages):
    return str(ages[0]) if min(ages) == max(ages) else f"[{min(ages)} .. {max(ages)}]"


@search(1, seed=seeds)
@pytest.mark.parametrize("centre", CENTRES)
def test_nobody_becomes_more_certain_than_a_class_allows(seed, centre):
    """All worlds of a tiny table: everybody's ages are known, and who is in which class is not."""
    rng = random.Random(seed)
    rows = [(rng.randrange(20, 29), disease) for disease in rng.choice(["aabbcc", "aaabbc", "abcabd"])]
    con = table(rows)
    ldiv_db.run(con, policy(centre, rng.choice(WAYS)))
    classes = defaultdict(list)
    for number, *shown, disease in con.execute(
        "SELECT class_id, age, age_" + centre + ", disease FROM published"
    ).fetchall():
        classes[number, *shown].append(disease)
    release = Counter((*shown, tuple(sorted(held))) for (_, *shown), held in classes.items())
    weights, every = defaultdict(Counter), 0
    for parted in partitions(list(range(len(rows)))):
        described = [(label(sorted(rows[i][0] for i in p)), CENTRES[centre]([rows[i][0] for i in p])) for p in parted]
        for order in set(permutations(release.elements())) if len(parted) == release.total() else ():
            if all(o[:2] == d and len(o[2]) == len(p) for o, d, p in zip(order, described, parted, strict=True)):
                worlds = prod(len(set(permutations(o[2]))) for o in order)
                every += worlds
                for o, part in zip(order, parted, strict=True):
                    for person in part:
                        for value, times in Counter(o[2]).items():
                            weights[person][value] += Fraction(worlds * times, len(part))
    assert every
    assert all(weight <= Fraction(every, 2) for of in weights.values() for weight in of.values())


@pytest.mark.parametrize("kind", ["DOUBLE", "VARCHAR", "DATE"])
def test_they_are_of_whole_numbers(kind):
    con = duckdb.connect(config={"threads": 1})
    con.execute(f"CREATE TABLE people (age {kind}, disease VARCHAR)")
    with pytest.raises(PolicyError, match="a mean is of whole numbers"):
        ldiv_db.run(con, policy("mean", quasi_identifiers=["age"]))


def test_rows_that_are_left_out_are_not_told_by_means():
    con = table([(20, "a"), (21, "a"), (22, "a"), (23, "b"), (24, "a"), (25, "b"), (26, "c")])
    with pytest.raises(AuditError, match="left out, and means and medians would tell whose"):
        ldiv_db.run(con, policy("mean", {"name": "bsgi", "residue": "suppress"}))


@search(1, seed=seeds)
@pytest.mark.parametrize("centre", some(CENTRES))
def test_nobody_becomes_more_certain_where_rows_are_in_their_order(seed, centre):
    """All worlds of people with as many rows: each class's labels and means cover who stands behind it, row by row."""
    rng = random.Random(seed)
    people = [[(rng.randrange(9), rng.choice("abc")) for _ in range(2)] for _ in range(5)]
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("CREATE TABLE people (who INTEGER, day INTEGER, age INTEGER, disease VARCHAR)")
        rows = [(who, day, *row) for who, own in enumerate(people) for day, row in enumerate(own)]
        con.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
        aligned = {"individual": {"column": "who", "rows": "aligned", "order": "day"}, "output": {"age": centre}}
        try:
            ldiv_db.run(con, policy(centre, "topdown", **aligned))
        except ldiv_db.InfeasibleError:
            return
        shown = defaultdict(list)
        listed = con.execute(f"SELECT person, age, age_{centre}, disease FROM published ORDER BY position").fetchall()
    for person, *row in listed:
        shown[person].append(row)
    assert len(shown) == 5 and {len(own) for own in shown.values()} == {2}
    worlds, having = 0, Counter()
    for behind in permutations(people):
        classes = defaultdict(list)
        for own, known in zip(shown.values(), behind, strict=True):
            for place, (said, found, _) in enumerate(own):
                classes[tuple((one, other) for one, other, _ in own), place, said, found].append(known[place][0])
        if all(found == CENTRES[centre](ages) and covers(said, ages) for (_, _, said, found), ages in classes.items()):
            worlds += 1
            for own, known in zip(shown.values(), behind, strict=True):
                having.update({(people.index(known), value) for value in {value for *_, value in own}})
    assert worlds and max(having.values()) * 2 <= worlds


def covers(said, ages):
    low, _, high = said.strip("[]").partition(" .. ")
    return said == "*" or all(int(low) <= age <= int(high or low) for age in ages)
