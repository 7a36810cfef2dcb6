"""The risk-utility map in a browser: a click or Enter on a mark shows its variant; all can be read on any screen."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import chromium
import pytest
from test_report import CONTRASTS, OVERLAPS, SCREENS

from ldiv_db.policy.reading import parse_policy
from ldiv_db.recoding.loss import CountErrors, Loss
from ldiv_db.reporting.exploration_page import page
from ldiv_db.running.exploring.outcomes import Exploration, Risk, VariantOutcome
from ldiv_db.running.exploring.variants import Variant

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(chromium.installed() is None, reason="Chromium is not installed"),
]
NAMES = ("age", "a column of a very long name, ünïcode and <b>tags</b>", "zip")
MARKS = "[...document.querySelectorAll('#maps svg a')].filter(one => one.getClientRects().length)"
SHOWN = "[...document.querySelectorAll('article')].filter(one => one.getClientRects().length).map(one => one.id)"
CURRENT = "[...document.querySelectorAll('#maps a[aria-current]')].map(one => one.getAttribute('href'))"


def outcome(number, varied, risk, lost):
    policy = parse_policy({"source": "t", "target": "r", "quasi_identifiers": list(NAMES), "require": [{"k": 2}]})
    keys = {"require": [{"k": number}]}
    columns = dict(zip(NAMES, (lost, lost / 2, lost / 3), strict=True))
    mean = sum(columns.values()) / 3
    loss = Loss(900 // number, 900, 0, 0, number, number + 3, mean * 2700, mean, mean * 2700, mean, 900, columns, 12)
    loss = replace(loss, counts=CountErrors(100, lost / 4, lost))
    found = Risk(risk, risk / 2, 1 / number, 1 / (number + 1))
    return VariantOutcome(Variant(number, policy, varied, keys), "done", "", "bsgi", number, loss, found)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The page of a dozen variants, of which one was refused."""
    outcomes = [outcome(l, {"l": l}, 1 / l, 0.1 * l) for l in range(2, 9)]
    outcomes += [outcome(20 + i, {"without": name}, 0.3, 0.6 + i / 9) for i, name in enumerate(NAMES)]
    outcomes.append(
        VariantOutcome(Variant(40, outcomes[0].variant.policy, {"l": 40}), "infeasible", "too few values\nof x")
    )
    document = {"source": "main.people", "target": "r", "require": [{"k": 2}], "sensitive": ["disease"], "seed": 3}
    found = tmp_path_factory.mktemp("map") / "map.html"
    text = page(Exploration("main.people", 900, NAMES, ("disease",), outcomes, True, document=document))
    found.write_text(text, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def browser():
    with chromium.launched(chromium.installed()) as found:
        yield found


def opened(browser, path, width=1024, dark=False):
    tab = browser.tab()
    tab.open(path, width, dark)
    return tab


def click(tab, element):
    """A click of the mouse in the middle of an element."""
    tab.value(f"{element}.scrollIntoView({{block: 'center'}})")
    box = tab.value(f"(b => [b.left + b.width / 2, b.top + b.height / 2])({element}.getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        where = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        tab.call("Input.dispatchMouseEvent", type=kind, **where)


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_a_screen(browser, path, width, dark):
    tab = opened(browser, path, width, dark)
    if folder := os.environ.get("LDIV_SCREENSHOTS"):
        tab.screenshot(Path(folder) / f"map-{width}-{'dark' if dark else 'light'}.png")
    assert tab.messages == [] and tab.requests == [path.as_uri()]
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value(f"{MARKS}.length") == 2 * 10
    assert tab.value(OVERLAPS) == []
    assert tab.value(CONTRASTS) == []


def test_a_click_on_a_mark_shows_its_variant(browser, path):
    tab = opened(browser, path)
    assert tab.value(SHOWN) == ["v2"]  # the policy as it is written
    for number in (1, 12):
        mark = f"{MARKS}[{number}]"
        href = tab.value(f"{mark}.getAttribute('href')")
        click(tab, mark)
        assert tab.comes(SHOWN, [href[1:]]) and tab.value(CURRENT) == [href] * 4
        assert tab.value("document.activeElement.id") == href[1:]
    assert tab.messages == []


def test_enter_on_a_mark_shows_its_variant(browser, path):
    tab = opened(browser, path)
    mark = f"{MARKS}[4]"
    tab.value(f"{mark}.focus()")
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, **key)
    assert tab.comes(SHOWN, [tab.value(f"{mark}.getAttribute('href')")[1:]])


def test_another_axis_is_chosen(browser, path):
    tab = opened(browser, path)
    shown = "[...document.querySelectorAll('#maps figure')].filter(one => one.getClientRects().length)"
    assert tab.value(f"{shown}.map(one => one.className)") == ["loss", "loss"]
    click(tab, "document.querySelector('label[for=axis-counts]')")
    assert tab.comes(f"{shown}.map(one => one.className)", ["counts", "counts"])
    assert "median error of a count" in tab.value(f"{shown}[0].textContent")
    click(tab, f"{MARKS}[1]")
    assert tab.comes(f"{CURRENT}.length", 4)  # in the charts of both axes


def test_the_policy_is_copied(browser, path):
    tab = opened(browser, path)
    click(tab, "document.querySelector('#v2 button')")
    assert "- k: 2" in tab.value("String(getSelection())").splitlines()
    assert "seed: 3" not in tab.value("document.body.textContent")


def test_without_scripts_all_is_there(browser, path):
    tab = browser.tab()
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(path, 1024)
    assert len(tab.value(SHOWN)) == 10 and tab.value("document.querySelectorAll('button').length") == 0


def test_it_prints(browser, path):
    """All variants are on paper, also those that the screen does not show."""
    tab = opened(browser, path, dark=True)
    made = tab.pdf()
    assert made.startswith(b"%PDF") and made.count(b"/Type /Page") > 4
