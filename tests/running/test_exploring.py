"""What is varied: levels left out of a taxonomy, widths of ranges; and a page of the most variants there may be."""

import random
from types import SimpleNamespace

import pytest

from ldiv_db.database.errors import PolicyError
from ldiv_db.policy.parts import TaxonomySpec
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.settings import QuasiIdentifier
from ldiv_db.recoding.loss import Loss
from ldiv_db.reporting.exploration_page import page
from ldiv_db.running.exploring.outcomes import Exploration, Risk, VariantOutcome
from ldiv_db.running.exploring.question import MOST_VARIANTS
from ldiv_db.running.exploring.variants import Variant, coarser
from ldiv_db.taxonomies.taxonomy import Tree, number


def paths(taxonomy):
    """From the root to each leaf, by labels."""
    by_node = {node.node: node for node in taxonomy.nodes}
    found = {}
    for leaf in taxonomy.leaves:
        way, at = [], leaf
        while at is not None:
            way.insert(0, at)
            at = by_node.get(at.parent)
        assert [node.depth for node in way] == list(range(len(way)))
        assert all(node.low <= leaf.low <= leaf.high <= node.high for node in way)
        found[leaf.label] = (leaf.low, [node.label for node in way])
    return found


def some_tree(drawn, depth, name="n"):
    below = drawn.randrange(0 if depth < 4 else 1, 4) if depth else 0
    return Tree(name, [some_tree(drawn, depth - 1, f"{name}.{i}") for i in range(below)])


def height(tree):
    return max((height(child) + 1 for child in tree.children), default=0)


def test_levels_that_are_left_out():
    drawn = random.Random(5)
    for _ in range(60):
        tree = some_tree(drawn, 4)
        taxonomy, heights = number(tree, "made up"), {}

        def look(branch, heights=heights):
            heights[branch.label] = height(branch)
            for child in branch.children:
                look(child)

        look(tree)
        assert taxonomy.skippable == max(height(tree) - 1, 0)
        for levels in range(taxonomy.skippable + 1):
            expected = {
                leaf: (low, [label for label in way if label in (tree.label, leaf) or heights[label] > levels])
                for leaf, (low, way) in paths(taxonomy).items()
            }
            found = taxonomy.skipping(levels)
            assert paths(found) == expected
            assert [node.node for node in found.nodes] == list(range(len(found.nodes)))


def column(kind, taxonomy=None):
    of = SimpleNamespace(is_time=kind == "DATE", is_number=kind in ("INTEGER", "DOUBLE"), type=kind,
                         is_integer=kind == "INTEGER")  # fmt: skip
    return SimpleNamespace(column=of, hierarchy=SimpleNamespace(taxonomy=taxonomy))


def of(kind, settings, bounds=(0, 0), taxonomy=None):
    found = coarser(QuasiIdentifier.model_validate(settings), column(kind, taxonomy), lambda column: bounds)
    if found is not None:
        assert not QuasiIdentifier.model_validate(found).problems("x")
    return found


@pytest.mark.parametrize(
    ("kind", "bounds", "widths"),
    [
        ("INTEGER", (17, 90), [1, 10]),
        ("INTEGER", (0, 100), [1, 10]),
        ("INTEGER", (0, 101), [1, 20]),
        ("INTEGER", (-5, 6), [1, 2]),
        ("INTEGER", (0, 10), None),
        ("INTEGER", (4, 4), None),
        ("INTEGER", (0, 3_000_000), [5000, 500_000]),
        ("DOUBLE", (0.0, 1.0), [0.001, 0.1]),
        ("DOUBLE", (-3.5, 700.25), [1, 100]),
        ("DOUBLE", (2.5, 2.5), None),
        ("DOUBLE", (0.0, float("inf")), None),
        ("VARCHAR", (0, 0), None),
    ],
)
def test_numbers_in_ranges_of_one_width(kind, bounds, widths):
    expected = None if widths is None else {"weight": 3, "taxonomy": {"ranges": widths}}
    assert of(kind, {"numeric": True, "weight": 3}, bounds) == expected


def test_one_level_less():
    three = number(Tree("*", [Tree("a", [Tree("b", [Tree("c")])])]), "made up")
    assert of("DATE", {"numeric": True}) == {"taxonomy": {"dates": ["day", "month", "year"]}}
    assert of("DATE", {"taxonomy": {"dates": ["day", "month", "year"]}}) == {"taxonomy": {"dates": ["day", "year"]}}
    assert of("DATE", {"taxonomy": {"dates": ["day"]}}) is None
    assert of("VARCHAR", {"taxonomy": {"prefix": [5, 3, 1]}}) == {"taxonomy": {"prefix": [5, 1]}}
    assert of("INTEGER", {"taxonomy": {"ranges": [5, 10], "origin": 2}}) == {"taxonomy": {"ranges": [5], "origin": 2}}
    assert of("VARCHAR", {"taxonomy": {"flat": True}}) is None
    assert of("VARCHAR", {"taxonomy": "x"}, taxonomy=three) == {"taxonomy": {"name": "x", "skip": 1}}
    skipped = {"taxonomy": {"file": "x.csv", "skip": 1}}
    assert of("VARCHAR", skipped, taxonomy=three.skipping(1)) == {"taxonomy": {"file": "x.csv", "skip": 2}}
    assert of("VARCHAR", skipped, taxonomy=three.skipping(2)) is None


def test_what_skips_levels_in_a_policy():
    assert not TaxonomySpec(file="x.csv", skip=1).problems("taxonomy")
    for other in ({"prefix": [3, 1]}, {"ranges": [1, 5]}, {"flat": True}, {"dates": ["day", "year"]}):
        (problem,) = TaxonomySpec(**other, skip=1).problems("taxonomy")
        assert problem.key == "taxonomy.skip"


def test_more_levels_than_there_are(con, table, tmp_path):
    import ldiv_db  # noqa: PLC0415

    (tmp_path / "city.csv").write_text("Rome;Italy;*\nOslo;Norway;*\n")
    table("t", {"city": "VARCHAR", "s": "VARCHAR"}, [("Rome", "a"), ("Oslo", "b")])
    policy = {"source": "t", "target": "r", "sensitive": "s", "require": [{"distinct": 2}], "algorithm": "mondrian"}
    for skip, error in ((1, ""), (2, "skip: the taxonomy has 1 level between its values and its root")):
        policy["quasi_identifiers"] = {"city": {"taxonomy": {"file": "city.csv", "skip": skip}}}
        if error:
            with pytest.raises(PolicyError, match=error):
                ldiv_db.plan(con, policy, tmp_path)
        else:
            assert ldiv_db.run(con, policy, tmp_path).loss.lm_mean == 1


@pytest.mark.slow
def test_a_page_of_the_most_variants_is_small():
    names = [f"column_{i:02}_of_a_long_name" for i in range(20)]
    policy = parse_policy({"source": "t", "target": "r", "quasi_identifiers": names, "require": [{"k": 2}]})
    outcomes = []
    for i in range(MOST_VARIANTS):
        lost = {name: (i % 17) / 40 + j / 100 for j, name in enumerate(names)}
        loss = Loss(9, 99, 1, 0, 3, 5, 1.0, 0.5, 1.0, 0.5, 99, lost, 7)
        variant = Variant(i + 1, policy, {"coarser": f"{names[i % 20]}"}, {"require": [{"k": i}]})
        outcomes.append(VariantOutcome(variant, "done", "", "bsgi", 3, loss, Risk(1 / (i + 1), 0.01, 0.5, 0.1)))
    document = {"source": "t", "quasi_identifiers": {name: {"taxonomy": {"file": f"{name}.csv"}} for name in names}}
    text = page(Exploration("t", 100, names, ("s",), outcomes, True, document=document))
    assert 50 < text.count("<article") < MOST_VARIANTS and len(text.encode()) <= 1_000_000
    assert text.count("<tr") == MOST_VARIANTS + 1
