"""The report in a browser: nothing is asked for, nothing overlaps, all can be read, on screens of every width."""

from __future__ import annotations

import os
import re
from pathlib import Path

import chromium
import duckdb
import pytest
from hospitals import FEW, HOSTILE, fill_hospital, hospital_policy

import ldiv_db
from ldiv_db.reporting import page as pdf
from tests.strategies import some

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(chromium.installed() is None, reason="Chromium is not installed"),
]
#: Widths of screens, and whether they are dark.
SCREENS = some([(360, True), (1920, False), (1024, False), (1024, True), (360, False), (1920, True)], first=2)
#: Pairs of texts that lie on one another by more than two pixels each way.
OVERLAPS = """
(() => {
  const found = [], boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.textContent.trim() || node.parentElement.closest('title, .skip')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width > 1) boxes.push([node, box]);
  }
  boxes.sort((a, b) => a[1].top - b[1].top);
  boxes.forEach(([node, box], place) => {
    for (const [other, next] of boxes.slice(place + 1)) {
      if (next.top > box.bottom) break;
      const wide = Math.min(box.right, next.right) - Math.max(box.left, next.left);
      const high = Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top);
      // Lines of a text have room above and below their letters.
      if (other !== node && wide > 2 && high > 0.3 * Math.min(box.height, next.height))
        found.push([node.textContent.trim().slice(0, 40), other.textContent.trim().slice(0, 40)]);
    }
  });
  return found;
})()
"""
#: Texts and marks whose colour is too near to what is behind them (WCAG 2.2: 4.5, of large texts and of marks 3).
CONTRASTS = """
(() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const style = getComputedStyle(element), inChart = element.closest('svg');
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    const mark = inChart && ['rect', 'polygon', 'circle'].includes(element.tagName);
    if (!mark && (!own || element.tagName === 'title')) continue;
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const seen = ratio(parse(inChart ? style.fill : style.color), behind(mark ? inChart : element));
    if (seen < (mark || large ? 3 : 4.5)) found.push([element.tagName, element.textContent.slice(0, 40), seen]);
  }
  return found;
})()
"""
MARKS = """
[...document.querySelectorAll('svg.chart')].map(chart => [...chart.querySelectorAll('rect, path')].filter(mark => {
  const box = mark.getBoundingClientRect();
  return box.width > 0.5 && box.height > 0.5;
}).length)
"""


@pytest.fixture(scope="module")
def browser():
    with chromium.launched(chromium.installed()) as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    with duckdb.connect(config={"threads": 1}) as con:
        fill_hospital(con)
        ldiv_db.run(con, hospital_policy())
        ldiv_db.report(con, "published", hospital_policy(), **FEW, recipient=HOSTILE).save(path)
    return path


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_a_screen(browser, page, width, dark):
    tab = browser.tab()
    tab.open(page, width, dark)
    if folder := os.environ.get("LDIV_SCREENSHOTS"):
        tab.screenshot(Path(folder) / f"report-{width}-{'dark' if dark else 'light'}.png")
    assert tab.messages == []
    assert tab.requests == [page.as_uri()]
    assert tab.value("document.documentElement.scrollWidth") <= width
    marks = tab.value(MARKS)
    assert len(marks) >= 7 and min(marks) > 0
    assert tab.value(OVERLAPS) == []
    assert tab.value(CONTRASTS) == []
    assert tab.value("matchMedia('(prefers-color-scheme: dark)').matches") is dark


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_the_verdict_is_on_the_first_screen(browser, page, width, height):
    tab = browser.tab()
    tab.open(page, width)
    facts = "[...document.querySelectorAll('header .facts dd')]"
    assert tab.value(f"{facts}.length") == 4
    assert tab.value(f"Math.max(...{facts}.map(one => one.getBoundingClientRect().bottom))") <= height


def test_what_is_looked_for_is_found(browser, tmp_path):
    """The tests above can fail: a page that asks, shouts, overlaps and cannot be read."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<!doctype html><body style='width:3000px'><p style='margin:0;color:#999'>first text</p>"
        "<p style='margin:-1.2em 0 0'>second text</p><img src='missing.png'><script>console.log('x')</script>"
    )
    tab = browser.tab()
    tab.open(path, 1024)
    assert tab.messages and len(tab.requests) == 2
    assert tab.value("document.documentElement.scrollWidth") > 1024
    assert [sorted(pair) for pair in tab.value(OVERLAPS)] == [["first text", "second text"]]
    assert [found[1] for found in tab.value(CONTRASTS)] == ["first text"]


def test_tables_too_wide_are_reached_by_the_keyboard(browser, page):
    tab = browser.tab()
    tab.open(page, 360)
    wide = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)"
    assert tab.value(f"{wide}.length") > 0
    assert tab.value(f"{wide}.every(one => one.tabIndex === 0)")


def test_it_prints(browser, page):
    tab = browser.tab()
    tab.open(page, 1024, dark=True)
    made = tab.pdf()
    assert made.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", made)) >= 5


def test_the_converter_makes_a_pdf(page, tmp_path):
    assert pdf.converter()
    target = tmp_path / "report.pdf"
    pdf.write_pdf(page.read_text(), target)
    assert target.read_bytes().startswith(b"%PDF")
