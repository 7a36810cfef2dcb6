"""Taxonomies: what they are read from, and every way in which they can be wrong."""

import datetime
import json
from math import prod

import oracle
import pytest

from ldiv_db.database import migrate
from ldiv_db.database.documents import read_lines
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.taxonomies import taxonomy
from ldiv_db.taxonomies.making import date_levels, from_ranges, from_values
from ldiv_db.taxonomies.readers import from_edges, read_edges, read_taxonomy


def nested(tax):
    """The taxonomy as nested mappings."""
    below = {node.node: {} for node in tax.nodes}
    for node in tax.nodes[1:]:
        below[node.parent][node.label] = below[node.node]
    return {tax.nodes[0].label: below[0]}


def assert_numbered(tax):
    """Leaves count up in tree order, and a node's interval is that of the leaves below it."""
    parents = {node.parent for node in tax.nodes}
    leaves = [node for node in tax.nodes if node.node not in parents]
    assert [leaf.low for leaf in leaves] == [leaf.high for leaf in leaves] == list(range(len(leaves)))
    assert (tax.nodes[0].low, tax.nodes[0].high) == (0, len(leaves) - 1)
    for node in tax.nodes:
        below = [child for child in tax.nodes if child.parent == node.node]
        assert all(child.depth == node.depth + 1 for child in below)
        if below:
            assert (node.low, node.high) == (min(c.low for c in below), max(c.high for c in below))


def write(path, text):
    path.write_text(text)
    return path


def problems(call, *arguments):
    with pytest.raises(PolicyError) as caught:
        call(*arguments)
    return "\n".join(map(str, caught.value.problems))


def test_a_file_with_many_faults_has_ten_of_them_named(tmp_path):
    for name, line in (("empty.csv", "v{0};;*"), ("twice.csv", "v{0};g{1};h{2};*")):
        (tmp_path / name).write_text("".join(f"{line.format(i, i % 40, i % 3)}\n" for i in range(120)))
        with pytest.raises(PolicyError) as caught:
            read_taxonomy(tmp_path / name)
        assert len(caught.value.problems) == 11
        left = 110 if name == "empty.csv" else 30
        assert caught.value.problems[-1].what == f"and {left} more problems like these"


def test_blanks_are_of_a_cell_only_within_its_quotes():
    for line, levels in (
        ('a;" b"', ["a", " b"]),
        ('a; "b" ;*', ["a", "b", "*"]),
        ('" a ";b ; *', [" a ", "b", "*"]),
        (' "a;x" ;b', ["a;x", "b"]),
    ):
        assert list(read_lines(line)) == [(1, levels)]


def test_level_file(tmp_path):
    tax = read_taxonomy(write(tmp_path / "x.csv", "a;L;*\nc;R;*\n\nb;L;*\nd;d;*\n"))
    assert nested(tax) == {"*": {"L": {"a": {}, "b": {}}, "R": {"c": {}}, "d": {}}}
    assert_numbered(tax)


def test_level_file_of_several_roots_gets_one(tmp_path):
    assert nested(read_taxonomy(write(tmp_path / "x.csv", "a;L\nb;R\n"))) == {"*": {"L": {"a": {}}, "R": {"b": {}}}}


def test_level_file_problems_all_at_once(tmp_path):
    text = problems(read_taxonomy, write(tmp_path / "x.csv", "a;L;*\na;R;*\nb;;*\n"))
    assert "'a' has two places (line 2)" in text and "line 3 has an empty level" in text


def test_duplicate_labels_are_named(tmp_path):
    text = problems(read_taxonomy, write(tmp_path / "x.csv", "a;L;*\nb;a;*\nc;d;*\nd;e;*\n"))
    assert "'a' stands for more than one node" in text and "'d' stands for" in text


@pytest.mark.parametrize("name", ["x.csv", "x.yml", "x.json"])
def test_empty_file(tmp_path, name):
    assert "empty" in (text := problems(read_taxonomy, write(tmp_path / name, ""))) or "no value" in text


def test_missing_file(tmp_path):
    assert f"no file x.csv in {tmp_path.resolve()}" in problems(read_taxonomy, tmp_path / "x.csv")


def test_nested_file(tmp_path):
    for text in (
        "Any: {L: {a: , b: }, R: [c, d]}",
        "Any:\n  L: [a, b]\n  R:\n    - c\n    - d",
        '{"Any": {"L": {"a": {}, "b": {}}, "R": ["c", "d"]}}',
    ):
        tax = read_taxonomy(write(tmp_path / "x.yml", text))
        assert nested(tax) == {"Any": {"L": {"a": {}, "b": {}}, "R": {"c": {}, "d": {}}}}
        assert_numbered(tax)


def test_yaml_values_stay_text(tmp_path):
    tax = read_taxonomy(write(tmp_path / "x.yml", "Any: [no, 010, 1.50, 2020-01-01, true]"))
    assert [leaf.label for leaf in tax.leaves] == ["no", "010", "1.50", "2020-01-01", "true"]


def test_in_quotes_nothing_and_null_are_values(tmp_path):
    for text in ('Any: ["", "null", a, null, ~, ]', '{"Any": ["", "null", "a", null]}'):
        assert [leaf.label for leaf in read_taxonomy(write(tmp_path / "x.yml", text)).leaves] == ["", "null", "a"]
    assert [leaf.label for leaf in read_taxonomy(write(tmp_path / "x.yml", 'Any: {a: "", b: }')).leaves] == ["a", "b"]


def test_nested_duplicates_are_named(tmp_path):
    assert "'a' stands for" in problems(read_taxonomy, write(tmp_path / "x.yml", "Any: {L: [a], R: [a]}"))
    assert "'L' stands for" in problems(read_taxonomy, write(tmp_path / "x.json", '{"Any": {"L": ["a"], "L": ["b"]}}'))


def test_one_tree_of_several(tmp_path):
    path = write(tmp_path / "x.yml", "sex: {'*': [F, M]}\nrace: {'*': [x]}")
    assert nested(read_taxonomy(path, "sex")) == {"*": {"F": {}, "M": {}}}
    assert "no tree 'age'" in problems(read_taxonomy, path, "age")


def test_no_yaml(tmp_path):
    assert "not YAML" in problems(read_taxonomy, write(tmp_path / "x.yml", "a: [b"))


def test_parent_child_table(engine, con):
    con.execute(
        "CREATE TABLE e AS SELECT * FROM (VALUES ('L', 'Any'), ('a', 'L'), ('b', 'L'), ('c', 'Any'), ('Any', NULL)) v(c, p)"  # noqa: E501
    )
    tax = read_edges(engine, Relation.parse("e"), "c", "p")
    assert nested(tax) == {"Any": {"L": {"a": {}, "b": {}}, "c": {}}}
    assert_numbered(tax)


def test_edges_with_two_parents_and_cycles_are_all_named():
    text = problems(
        from_edges, [("a", "L"), ("a", "R"), ("x", "y"), ("y", "z"), ("z", "x"), ("w", "w"), ("tail", "x")], "e"
    )
    assert "'a' has two parents" in text
    assert all(f"'{value}' is its own ancestor" in text for value in "xyzw")
    assert "'L'" not in text and "'R'" not in text


def test_no_edges():
    assert "empty" in problems(from_edges, [], "e")


@pytest.mark.parametrize(
    ("widths", "origin", "low", "high", "integers", "leaves"),
    [
        ([5, 10], 0, 3, 17, True, ["[0 .. 4]", "[5 .. 9]", "[10 .. 14]", "[15 .. 19]"]),
        ([5, 10], 0, -12, 3, True, ["[-15 .. -11]", "[-10 .. -6]", "[-5 .. -1]", "[0 .. 4]"]),
        ([1, 2], 0, -1, 1, True, ["-1", "0", "1"]),
        ([10], 7, 8, 8, True, ["[7 .. 16]"]),
        ([0.5, 1], 0, -0.7, 0.2, False, ["[-1 .. -0.5)", "[-0.5 .. 0)", "[0 .. 0.5)"]),
        ([0.1, 0.3], 0.1, 0.3, 0.5, False, ["[0.3 .. 0.4)", "[0.4 .. 0.5)", "[0.5 .. 0.6)"]),
    ],
)
def test_ranges(widths, origin, low, high, integers, leaves):
    tax = from_ranges(widths, origin, low, high, integers)
    assert [leaf.label for leaf in tax.leaves] == leaves
    assert_numbered(tax)
    for node in tax.nodes:
        if node.min_value is not None:
            assert (node.min_value, node.max_value) == (
                tax.leaves[node.low].min_value,
                tax.leaves[node.high].max_value,
            ) or (
                node.min_value <= tax.leaves[node.low].min_value and node.max_value >= tax.leaves[node.high].max_value
            )
    for first, second in zip(tax.leaves, tax.leaves[1:], strict=False):
        assert first.max_value == second.min_value, "no gap and no overlap"
    assert tax.leaves[0].min_value <= low and tax.leaves[-1].max_value > high


def test_ranges_group_by_the_next_width():
    assert nested(from_ranges([5, 10, 40], -3, -13, 11, True)) == {
        "*": {
            "[-43 .. -4]": {"[-13 .. -4]": {"[-13 .. -9]": {}, "[-8 .. -4]": {}}},
            "[-3 .. 36]": {"[-3 .. 6]": {"[-3 .. 1]": {}, "[2 .. 6]": {}}, "[7 .. 16]": {"[7 .. 11]": {}}},
        }
    }


def test_ranges_that_do_not_nest():
    for widths, integers, what in (
        ([5, 12], True, "12 is not a multiple of 5"),
        ([10, 5], True, "rising widths"),
        ([5, 5], True, "rising widths"),
        ([0], True, "above 0"),
        ([-5], True, "above 0"),
        ([], True, "rising widths"),
        ([2.5], True, "whole widths"),
        ([1e-9], False, "more than 1,000,000 leaves"),
    ):
        assert what in problems(from_ranges, widths, 0, 0, 100, integers)


CUTS = {"default": 356_440_500, "coarse": 152_685_000, "medium": 6_943_460_940, "fine": 431_934_597_900}


def test_cuts_of_the_trees_of_adult_and_of_figure_1(fixtures):
    for name, cuts in CUTS.items():
        path = fixtures / "adult" / "cuts" / f"{name}.json"
        assert prod(read_taxonomy(path, tree).cuts for tree in json.loads(path.read_text())) == cuts
    path = fixtures / "papers" / "l_plus_figure1.json"
    assert [read_taxonomy(path, tree).cuts for tree in ("education", "country")] == [5, 5]


def test_cuts_of_a_leaf_and_of_a_chain(tmp_path):
    assert read_taxonomy(write(tmp_path / "x.yml", "only")).cuts == 1
    assert read_taxonomy(write(tmp_path / "y.yml", "A: {B: {C: }}")).cuts == 3


ADULT = {"age": (100, 4), "education": (16, 3), "income": (2, 1), "marital_status": (7, 2), "native_country": (41, 2),
         "occupation": (14, 2), "race": (5, 1), "sex": (2, 1), "workclass": (8, 2)}  # fmt: skip


def test_adult_hierarchies(fixtures):
    for name, shape in ADULT.items():
        tax = read_taxonomy(fixtures / "adult" / "taxonomies" / f"{name}.csv")
        assert (len(tax.leaves), tax.height) == shape
        assert_numbered(tax)


@pytest.mark.parametrize("tree", [{"*": {"a": {}, "b": {}}}, {"Any": {"L": {"a": {}}, "b": {}}}, {"a": {}}])
def test_null_is_one_more_leaf_under_the_root(tmp_path, tree):
    tax = read_taxonomy(write(tmp_path / "x.json", json.dumps(tree))).with_null()
    assert_numbered(tax)
    assert tax.nodes[0].label == "*" and tax.leaves[-1].parent == 0
    assert len(tax.leaves) == oracle.Tree(tree, True).root_leaves
    ((root, below),) = tree.items()
    assert nested(tax) == {"*": (below if root == "*" else {root: below}) | {"NULL": {}}}


def test_stored_and_fetched(engine, tmp_path):
    migrate.migrate(engine)
    tax = from_ranges([0.5, 1], 0, -0.7, 0.2, False)
    taxonomy.store(engine, "it's", tax)
    assert taxonomy.fetch(engine, "it's") == tax and taxonomy.fetch(engine, "other") is None
    assert "exists" in problems(taxonomy.store, engine, "it's", tax)
    other = from_edges([("a", "b")], "e")
    taxonomy.store(engine, "it's", other, overwrite=True)
    assert taxonomy.fetch(engine, "it's") == other and list(taxonomy.stored(engine)) == ["it's"]


def test_no_catalog_holds_no_taxonomy(engine):
    assert taxonomy.stored(engine) == {} and taxonomy.fetch(engine, "x") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "Surgery;Surgery;*\nTrauma;Surgery;*\nHeart;Inner;*\nInner;Inner;*\nLab;Lab;*\n"),
        ("x.yml", "'*': {Surgery: [Surgery, Trauma], Inner: [Heart, Inner], Lab: }"),
    ],
)
def test_a_group_with_the_name_of_its_value_has_a_star(tmp_path, name, text):
    tax = read_taxonomy(write(tmp_path / name, text))
    groups = {"Surgery*": {"Surgery": {}, "Trauma": {}}, "Inner*": {"Heart": {}, "Inner": {}}, "Lab": {}}
    assert nested(tax) == {"*": groups}
    assert_numbered(tax)


def test_the_star_of_a_root_is_no_value(tmp_path):
    tax = read_taxonomy(write(tmp_path / "x.csv", "a;*\n*;*\nb;*\n"))
    assert nested(tax) == {"*": {"a": {}, "b": {}}}
    assert "stands for more than one" in problems(read_taxonomy, write(tmp_path / "x.yml", "'*': {'*': , a: }"))
    assert "'a*' stands for" in problems(read_taxonomy, write(tmp_path / "x.csv", "a;a;*\nb;a;*\na*;*;*\n"))


def test_blanks_in_quotes_are_of_a_value(tmp_path):
    text = '" a ";"G ";*\n"b;c" ; "G "; *\n plain ;G;*\n"say ""hi"" ";G;*\n"two\nlines ";G;*\n'
    leaves = [leaf.label for leaf in read_taxonomy(write(tmp_path / "x.csv", text)).leaves]
    assert leaves == [" a ", "b;c", "plain", 'say "hi" ', "two\nlines "]
    by_commas = read_taxonomy(write(tmp_path / "x.csv", '" a",L,*\nb\t,L,*\n'))
    assert [leaf.label for leaf in by_commas.leaves] == [" a", "b"]


def test_leaves_that_become_one_are_one_below_the_same_group(tmp_path):
    tax = read_taxonomy(write(tmp_path / "x.csv", "Flu;Lung;*\nflu ;Lung;*\nGout;Joint;*\n"))
    folded = tax.with_leaves({leaf.label: leaf.label.strip().lower() for leaf in tax.leaves})
    assert nested(folded) == {"*": {"Lung": {"flu": {}}, "Joint": {"gout": {}}}}
    assert_numbered(folded)
    apart = read_taxonomy(write(tmp_path / "x.csv", "Flu;Lung;*\nflu;Joint;*\n"))
    assert "'flu' stands for more than one" in problems(apart.with_leaves, {"Flu": "flu", "flu": "flu"})


def test_weeks_nest_in_years_and_decades_of_iso_8601(con):
    """Every day of 12 years is where Python's calendar has it: whatever decade its own year is of."""
    first, days = datetime.date(1997, 12, 1), 4_400
    con.execute("CREATE TABLE t AS SELECT CAST($first AS DATE) + CAST(range AS INTEGER) AS d FROM range($days)",
                {"first": first, "days": days})  # fmt: skip
    levels = date_levels(["day", "week", "iso_year", "decade"])
    made = nested(from_values(Engine(con), Relation(("t",)), Identifier("d"), levels, "weeks"))
    expected = {}
    for day in (first + datetime.timedelta(i) for i in range(days)):
        year, week, _ = day.isocalendar()
        below = expected
        for label in (f"ISO {year // 10}0s", f"ISO {year}", f"{year}-W{week:02}", str(day)):
            below = below.setdefault(label, {})
    assert made == {"*": expected}
