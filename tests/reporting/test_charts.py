"""Charts: marks stand where the numbers say, names cannot break out, and nothing overlaps."""

import itertools
import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import strategies as st
from strategies import search

from ldiv_db.reporting.charts import Axes, Bar, Bin, Later, Mark, Point, bar_chart, histogram, scatter
from ldiv_db.reporting.drawing import CHART_STYLE, WIDTH, number, scale, short, shortened, standalone, text_width

AXES = Axes("x", "y")
HOSTILE = ["<script>alert(1)</script>", "\"'&<>", "]]>", "名前\u202e", "a\x00b\x1bc", "", "x" * 500, "\ud7ff\uffff"]
floats = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


def drawn(chart):
    return ElementTree.fromstring(str(chart))


def of(root, name):
    return [one for one in root.iter() if one.tag == name]


def bars_of(root, kind="s1"):
    return [one for one in of(root, "rect") if one.get("class") == kind]


# -- scales --------------------------------------------------------------------------------------------


@search(12, values=st.lists(floats, min_size=1, max_size=8), most=st.integers(2, 8), whole=st.booleans())
def test_ticks_are_round_even_and_within(values, most, whole):
    found = scale(values, 0.0, 100.0, most=most, whole=whole)
    room = (found.high - found.low) * 1e-6
    assert found.low <= min(values) + room and max(values) <= found.high + room
    steps = [b - a for a, b in itertools.pairwise(found.ticks)]
    if steps:
        assert max(steps) == pytest.approx(min(steps), rel=1e-3)
    assert len(found.ticks) <= most + 3


@search(12, values=st.lists(floats, min_size=2, max_size=8), other=floats)
def test_a_scale_keeps_order_and_stays_inside(values, other):
    found = scale(values, 10.0, 90.0)
    places = [found(value) for value in sorted([*values, other])]
    assert places == sorted(places)
    assert all(10.0 <= place <= 90.0 for place in places)


def test_scales_of_nothing_and_of_one_value():
    for values in ([], [0.0], [5.0], [-3.0], [math.nan, math.inf], [0.0, 5e-324]):
        found = scale(values, 0.0, 1.0)
        assert found.high > found.low


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.25, "0.25"), (30162, "30,162"), (None, "–"), (1 / 3, "0.3333"), (math.inf, "∞"), (-2.5, "−2.5"), (0.0, "0")],
)
def test_numbers(value, written):
    assert number(value) == written


@pytest.mark.parametrize(
    ("value", "written"), [(2000, "2k"), (1500, "1500"), (25_000, "25k"), (3e6, "3M"), (0.1, "0.1")]
)
def test_short_numbers(value, written):
    assert short(value) == written


@search(8, text=st.text(max_size=60), width=st.floats(min_value=20, max_value=400))
def test_shortened_texts_fit(text, width):
    assert text_width(shortened(text, width, 12), 12) <= max(width, text_width("…", 12))


# -- bars ----------------------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_values():
    root = drawn(bar_chart("t", [Bar("a", (0.5,)), Bar("b", (0.25,)), Bar("c", (0.0,))], "share"))
    wide = [float(bar.get("width")) for bar in bars_of(root)]
    assert wide[0] == pytest.approx(2 * wide[1], abs=0.02)
    assert wide[2] == 0


def test_a_bound_is_a_line_at_its_value():
    root = drawn(bar_chart("t", [Bar("a", (0.4,), 0.4)], "share"))
    (bar,), (bound,) = bars_of(root), [one for one in of(root, "line") if one.get("class") == "bound"]
    assert float(bound.get("x1")) == pytest.approx(float(bar.get("x")) + float(bar.get("width")), abs=0.02)
    assert "bound 0.4" in root.get("aria-label")


def test_series_have_a_legend_and_a_bar_each():
    root = drawn(bar_chart("t", [Bar("a", (1.0, 0.5)), Bar("b", (None, 0.1))], "share", ("before", "after")))
    assert len(bars_of(root, "s1")) == 2 and len(bars_of(root, "s2")) == 3  # one of them in the legend
    assert {"before", "after"} <= {one.text for one in of(root, "text")}
    assert "a: before 1, after 0.5; b: before –, after 0.1" in root.get("aria-label")


def test_numbers_of_bars_do_not_leave_the_chart():
    root = drawn(bar_chart("t", [Bar("a", (123456.789,), 123456.0)], "rows"))
    assert max(float(one.get("x")) for one in of(root, "text") if one.get("class") == "tick") + 60 <= WIDTH + 8


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_texts(name):
    charts = [
        bar_chart(name, [Bar(name, (1.0,), 0.5)], name),
        histogram(name, [Bin(0, 1, 1, name)], Axes(name, name), [Mark(1, name)]),
        scatter(name, [Point(1, 2, name, name, name)], name, name),
    ]
    for chart in charts:
        root = drawn(chart)
        assert not of(root, "script")
        assert all(text_width(one.text or "", 12) <= WIDTH for one in of(root, "text"))


def test_charts_are_the_same_again():
    def draw():
        return bar_chart("t", [Bar("a", (1 / 3,), 0.5)], "u") + histogram("t", [Bin(0, 1, 1 / 7, "x")], AXES)

    assert draw() == draw()


# -- histograms ----------------------------------------------------------------------------------------


def test_columns_are_as_high_as_their_counts_and_few_are_seen():
    bins = [Bin(3.5, 4.5, 1000, "4 rows"), Bin(4.5, 5.5, 500, "5 rows"), Bin(5.5, 6.5, 1, "6"), Bin(6.5, 7.5, 0, "7")]
    high = [float(bar.get("height")) for bar in bars_of(drawn(histogram("sizes", bins, Axes("x", "y", whole=True))))]
    assert high[0] == pytest.approx(2 * high[1], abs=0.02)
    assert high[2:] == [1, 0]


def test_marks_stand_at_their_places_with_room_for_their_names():
    bins = [Bin(0, 1, 5, "a")]
    root = drawn(histogram("t", bins, AXES, [Mark(0.5, "half"), Mark(1.0, "whole")]))
    lines = [float(one.get("x1")) for one in of(root, "line") if one.get("class") == "bound dashed"]
    assert lines == [200.0, 356.0]
    names = {one.text: float(one.get("y")) for one in of(root, "text")}
    assert names["whole"] - names["half"] >= 14


def test_the_second_distribution_is_a_line():
    bins = [Bin(i, i + 1, i, str(i)) for i in range(4)]
    root = drawn(histogram("t", bins, AXES, later=Later(bins[::-1], ("before", "after"))))
    assert len(of(root, "path")) == 1


def test_numbers_below_the_axis_do_not_overlap():
    bins = [Bin(i * 12345, (i + 1) * 12345, i, str(i)) for i in range(60)]
    root = drawn(histogram("t", bins, AXES))
    ticks = [(float(one.get("x")), len(one.text)) for one in of(root, "text") if one.get("text-anchor") == "middle"]
    for (x, length), (next_x, next_length) in itertools.pairwise(ticks):
        assert next_x - x >= (length + next_length) / 2 * 11 * 0.6


def test_an_empty_histogram_says_so():
    assert "nothing" in drawn(histogram("t", [], AXES)).get("aria-label")


# -- scatters ------------------------------------------------------------------------------------------


def test_points_stand_where_they_should_and_lead_somewhere():
    points = [Point(0, 0, "a", "one", "v1"), Point(1, 1, "b", "one"), Point(0.5, 0.5, "c", "one")]
    root = drawn(scatter("t", points, "loss", "risk", points[:2]))
    circles = [(float(one.get("cx")), float(one.get("cy"))) for one in of(root, "circle")][1:]  # the legend's first
    assert circles[2] == pytest.approx([(a + b) / 2 for a, b in zip(*circles[:2], strict=True)], abs=0.02)
    assert [one.get("href") for one in of(root, "a")] == ["#v1"]
    assert len(of(root, "path")) == 1


def test_points_of_the_frontier_are_named_where_there_is_room():
    points = [Point(0, 1, "a", mark="l 2"), Point(0.01, 0.99, "b", mark="l 3"), Point(1, 0, "c", mark="l 4")]
    root = drawn(scatter("t", [*points, Point(2, 2, "d", mark="k 9")], "x", "y", points))
    assert [one.text for one in of(root, "text") if one.text[0] in "lk"] == ["l 2", "l 4"]


def test_many_groups_have_different_looks():
    root = drawn(scatter("t", [Point(i, i, str(i), f"g{i}") for i in range(12)], "x", "y"))
    legend = [one for one in root.iter() if (one.get("class") or "").startswith("point")][:12]
    assert len({(one.tag, one.get("class"), len(one.get("points") or "")) for one in legend}) == 12


def test_a_chart_by_itself_has_its_style_once():
    found = str(standalone(scatter("t", [Point(1, 1, "a")], "x", "y")))
    assert found.count("<style>") == 1 and str(CHART_STYLE) in found
