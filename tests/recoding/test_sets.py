"""Sets in place of the lowest common ancestor: what is published, what it loses, and that it can be read back."""

import json
import tempfile
from pathlib import Path

import duckdb
import oracle
import pytest
from strategies import search, seeded, some
from tables import fill

import ldiv_db
from ldiv_db.database.errors import AuditError
from ldiv_db.recoding.loss import lost_by_column
from ldiv_db.solving import improve

#: Labels that a careless way of writing would confuse with each other, with a set, or with NULL.
NASTY = [
    "", " ", "a", "a, b", "a,b", "b", ", ", "{", "}", "{}", "{a}", "{a, b}", '"', '""', '"a"', 'a", "b', "NULL", "null",
    " NULL", "a ", " a", "'", "';--", "\\", '\\"', "é", "中, 文", "\n", "\t", "%", "*a", "[1 .. 2]", "🙂",
]  # fmt: skip
COLUMNS = {"town": "VARCHAR", "secret": "VARCHAR", "rid": "INTEGER"}


def policy(**changes):
    base = {
        "source": "source", "target": "released", "sensitive": ["secret"], "keep": ["rid"], "recode": "set",
        "quasi_identifiers": {"town": {"taxonomy": {"file": "town.json"}}}, "require": [{"unique_distinct": 2}],
        "algorithm": {"name": "bsgi", "select": "bisect"}, "seed": 0,
    }  # fmt: skip
    return base | changes


def release(con, folder, tree, towns, table="released", **changes):
    """The result, and the published rows (class_id, town, secret, rid), of rows in these towns."""
    (folder / "town.json").write_text(json.dumps(tree, ensure_ascii=False), encoding="utf-8")
    fill(con, "source", COLUMNS, [(town, f"s{i}", i) for i, town in enumerate(towns)])
    result = ldiv_db.run(con, policy(**changes), folder=folder)
    return result, con.execute(f"SELECT * FROM {table} ORDER BY rid").fetchall()


def classes(rows, towns):
    """The published town and the original towns of every class."""
    found = {}
    for class_id, town, _, rid in rows:
        found.setdefault(class_id, (set(), []))
        found[class_id][0].add(town)
        found[class_id][1].append(towns[rid])
    assert all(len(labels) == 1 for labels, _ in found.values())
    return [(labels.pop(), originals) for labels, originals in found.values()]


# -- by hand ---------------------------------------------------------------------------------------------

EUROPE = {"*": {"Europe": {"Norway": {}, "Italy": {}, "Spain": {}}, "Asia": {"Japan": {}, "Korea": {}}, "Peru": {}}}


@pytest.mark.parametrize(
    ("towns", "published", "leaves"),
    some([
        pytest.param(["Italy", "Norway"], "{Norway, Italy}", 2),  # in the order of the tree
        pytest.param(["Japan", "Korea"], "Asia", 2),  # all of Asia's leaves: the set loses as much
        pytest.param(["Norway", "Italy", "Peru"], "{Norway, Italy, Peru}", 3),
        pytest.param([None, "Norway"], "{Norway, NULL}", 2),
        pytest.param(["Norway", "Korea"], "{Norway, Korea}", 2),
        pytest.param(["Norway", "Norway"], "Norway", 1),
        pytest.param(["Norway", "Italy", "Spain"], "Europe", 3),
        pytest.param(["Norway", "Italy", "Spain", "Japan", "Korea", "Peru"], "*", 6),
        pytest.param([None, None], None, 1),
        pytest.param([None, "Norway", "Italy", "Spain", "Japan", "Korea", "Peru"], "*", 7),
    ], 2),
)  # fmt: skip
def test_a_set_is_published_where_it_loses_less(con, tmp_path, towns, published, leaves):
    """NULL is one more leaf."""
    result, rows = release(con, tmp_path, EUROPE, towns, require=[{"unique_distinct": len(towns)}])
    assert {row[1] for row in rows} == {published}
    whole = 6 + (None in towns)
    assert result.loss.lm_mean == pytest.approx((leaves - 1) / (whole - 1))
    if None not in towns:
        assert result.loss.ncp_mean == pytest.approx(leaves / whole if leaves > 1 else 0)


@pytest.mark.parametrize(("default", "own"), some([("tree", "set"), ("set", "tree")]))
def test_one_quasi_identifier_alone_may_have_sets(con, tmp_path, default, own):
    """The policy's `recode` is the default, a quasi-identifier's own comes first."""
    (tmp_path / "town.json").write_text(json.dumps(EUROPE))
    fill(con, "source", {"a": "VARCHAR", "b": "VARCHAR", "secret": "VARCHAR"},
         [("Norway", "Norway", "x"), ("Korea", "Korea", "y")])  # fmt: skip
    tree = {"taxonomy": {"file": "town.json"}}
    keys = {"a": {**tree, "recode": own}, "b": tree}
    ldiv_db.run(con, policy(recode=default, keep=[], quasi_identifiers=keys), folder=tmp_path)
    found = con.execute("SELECT DISTINCT a, b FROM released").fetchall()
    assert found == ([("{Norway, Korea}", "*")] if own == "set" else [("*", "{Norway, Korea}")])


# -- labels of any characters ------------------------------------------------------------------------------


def nasty_tree(draw):
    """A tree with some of the nasty labels, and the leaves that a row may have."""
    labels = draw.sample(NASTY, draw.randint(4, len(NASTY)))
    inner, leaves = labels[: len(labels) // 4], labels[len(labels) // 4 :]
    branches = {}
    for label in inner:
        some = [leaves.pop() for _ in range(min(len(leaves) - 2, draw.randint(1, 4)))]
        if some:
            branches[label] = {leaf: {} for leaf in some}
    tree = {"*": {**branches, **{leaf: {} for leaf in leaves}}}
    return tree, leaves + [leaf for below in branches.values() for leaf in below]


@search(1, draw=seeded)
def test_what_is_published_reads_back_as_the_values_of_its_class(draw):
    tree, leaves = nasty_tree(draw)
    params = draw.choice([0, 0.2])
    towns = [None if draw.random() < params else draw.choice(leaves) for _ in range(draw.randint(4, 30))]
    scale = oracle.Tree(tree, None in towns)
    scale.sets, scale.most = True, draw.choice([None, 2, 3])
    recode = "set" if scale.most is None else {"set": scale.most}
    require = [{"unique_distinct": draw.choice([2, 2, 3, 4])}]
    select = {"name": "bsgi", "select": draw.choice(["bisect", "refine"])}
    with duckdb.connect(config={"threads": 1}) as con, tempfile.TemporaryDirectory() as folder:
        result, rows = release(con, Path(folder), tree, towns, require=require, algorithm=select, recode=recode)
    meanings = {}
    for label, originals in classes(rows, towns):
        members = scale.members(originals)
        if members is not None:
            assert oracle.parse_set(label) == members
            meaning = tuple(members)
        else:
            node = scale.label(originals)
            # A set of one stands for a node whose own label begins like a set.
            assert oracle.parse_set(label) == [node] if node and node.startswith("{") else label == node
            meaning = (node,)
        assert all(scale.covers(label, original) for original in originals if members is not None)
        assert meanings.setdefault(label, meaning) == meaning, "one label, one meaning"
    expected = sum(len(originals) * scale.lm(originals) for _, originals in classes(rows, towns))
    assert result.loss.lm == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("label", some(NASTY))
def test_every_nasty_label_survives_in_a_set_and_alone(con, tmp_path, label):
    others = [other for other in ("x", "y", "z") if other != label]
    tree = {"*": {label: {}, **{other: {} for other in others}}}
    _, rows = release(con, tmp_path, tree, [label, "x"])
    assert oracle.parse_set(rows[0][1]) == [label, "x"]
    con.execute("DROP TABLE released")
    _, rows = release(con, tmp_path, tree, [label, label])
    assert oracle.parse_set(rows[0][1]) == [label] if label.startswith("{") else rows[0][1] == label


def test_ranges_and_prefixes_have_sets(con):
    rows = [(age, zipcode, f"s{i}") for i, (age, zipcode) in enumerate([(3, "12345"), (27, "12999"), (28, "99000")])]
    fill(con, "source", {"age": "INTEGER", "zip": "VARCHAR", "secret": "VARCHAR"}, rows)
    keys = {"age": {"taxonomy": {"ranges": [5, 10]}}, "zip": {"taxonomy": {"prefix": [3, 1]}}}
    ldiv_db.run(con, policy(quasi_identifiers=keys, keep=[], require=[{"unique_distinct": 3}]))
    assert con.execute("SELECT DISTINCT age, zip FROM released").fetchall() == [("{[0 .. 4], [25 .. 29]}", "*")]


def test_an_audit_finds_a_set_of_more_values_than_it_may_have(con, tmp_path):
    towns = ["Norway", "Korea", "Italy", "Peru"]
    asked = {"recode": {"set": 2}, "require": [{"unique_distinct": 2}]}
    _, rows = release(con, tmp_path, EUROPE, towns, **asked)
    assert {len(oracle.parse_set(row[1])) for row in rows} == {2}
    ldiv_db.check(con, "released", policy=policy(**asked))
    con.execute("UPDATE released SET town = '{Norway, \"Korea\", NULL}' WHERE rid < 2")
    with pytest.raises(AuditError, match="town: 1 label has more than the 2 values"):
        ldiv_db.check(con, "released", policy=policy(**asked))


# -- less is lost ----------------------------------------------------------------------------------------


def test_sets_change_labels_and_losses_alone(con, tmp_path):
    towns = ["Norway", "Spain", "Japan", "Peru", "Italy", "Korea", "Norway", "Japan", None, "Peru", "Spain", "Italy"]
    found = {}
    for recode in ("tree", "set"):
        result, rows = release(con, tmp_path, EUROPE, towns, recode=recode, target=recode, table=f'"{recode}"')
        members = oracle.group((class_id, rid) for class_id, *_, rid in rows)
        found[recode] = result.loss, sorted(members.values())
    assert found["set"][1] == found["tree"][1] and len(found["set"][1]) == found["set"][0].classes
    assert found["set"][0].lm_mean < found["tree"][0].lm_mean


def test_a_trial_loses_what_would_be_published_of_its_sets(con, tmp_path, monkeypatch):
    """Without labels, by how many values each class has: of sets of any number of values, and of few."""
    asked, priced = [], improve._lost

    def measured(task, plan):
        with task.engine.scope():
            published = lost_by_column(task.engine, task.encoded, improve.recode(task, plan))
        assert priced(task, plan) == pytest.approx(published, rel=1e-12)
        asked.append(published)
        return priced(task, plan)

    monkeypatch.setattr(improve, "_lost", measured)
    (tmp_path / "town.json").write_text(json.dumps(EUROPE))
    towns = [*NASTY[:5], *list("vwxyz"), None]
    rows = [(towns[i * i % 11], [*EUROPE["*"]["Europe"], "Korea", "Peru", None][i % 6], f"s{i % 5}") for i in range(33)]
    fill(con, "source", {"any": "VARCHAR", "few": "VARCHAR", "secret": "VARCHAR"}, rows)
    keys = {"any": {}, "few": {"taxonomy": {"file": "town.json"}, "recode": {"set": 2}}}
    changes = {"quasi_identifiers": keys, "keep": [], "require": [{"frequency": 3}]}
    changes["algorithm"] = {"name": "auto", "effort": "quick"}
    result = ldiv_db.run(con, policy(**changes), folder=tmp_path)
    assert asked and {name: lost / 33 for name, lost in min(asked, key=lambda of: sum(of.values())).items()} == (
        pytest.approx(result.loss.lm_by_column)
    )
