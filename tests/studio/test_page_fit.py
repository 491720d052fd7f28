"""Everything can be read at every width: letters keep their size, and nothing is cut off."""

from __future__ import annotations

from typing import Any

import pytest

from studio_page import Watched, answered

pytestmark = pytest.mark.page

LETTERS = """() => Array.from(document.querySelectorAll("svg.chart text"), (text) => {
  const chart = text.ownerSVGElement, scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
  return parseFloat(getComputedStyle(text).fontSize) * scale;
})"""
CUT = """() => Array.from(document.querySelectorAll("#ladder td")).filter((cell) => {
  const range = document.createRange(), edge = document.querySelector("#guarantee-body").getBoundingClientRect().right;
  range.selectNodeContents(cell);
  const { right } = cell.getBoundingClientRect();
  return right > edge + 1 || range.getBoundingClientRect().right > right + 1;
}).map((cell) => cell.innerText)"""
OUTSIDE = """() => Array.from(document.querySelectorAll("svg.chart text")).filter((text) => {
  const box = text.closest("section").getBoundingClientRect(), own = text.getBoundingClientRect();
  return own.left < box.left || own.right > box.right;
}).map((text) => text.textContent)"""


SIDEWAYS = """() => Array.from(document.querySelectorAll("#stress .scroll, #guarantee-body .scroll"))
  .filter((place) => place.scrollWidth > place.clientWidth + 1).map((place) => place.ariaLabel)"""


def check(page: Any, width: int) -> None:
    page.wait_for_timeout(300)
    sizes = page.evaluate(LETTERS)
    assert len(sizes) > 20
    assert min(sizes) >= 12.5, width
    assert page.evaluate(CUT) == [], width
    assert page.evaluate(OUTSIDE) == [], width
    assert page.evaluate(SIDEWAYS) == [], width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("example", ["staffing", "triage"])
def test_letters_keep_their_size_and_the_ladder_is_whole(tabs: Watched, example: str) -> None:
    page = tabs.open()
    page.click(f"[data-example={example}]")
    answered(page)
    page.wait_for_selector("#ladder[data-current=true]")
    for width in (1280, 1024, 360, 1920):  # the page was drawn at 1280; it must follow the window
        page.set_viewport_size({"width": width, "height": 900})
        check(page, width)
    page.set_viewport_size({"width": 1024, "height": 900})
    page.reload()
    answered(page)
    check(page, 1024)


def test_the_stress_test_stays_a_table_where_its_rows_are_stacked(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    wide = page.locator("#stress table").aria_snapshot()
    assert wide.count("- columnheader") == 8
    assert wide.count("- cell") == 28
    page.set_viewport_size({"width": 360, "height": 900})
    narrow = page.locator("#stress tbody tr").first
    assert narrow.evaluate("row => getComputedStyle(row).display") == "block"
    stacked = page.locator("#stress table").aria_snapshot()
    assert stacked.count("- rowheader") == 4
    assert stacked.count("- columnheader") == 8
    assert stacked.count("- cell") == 28


def test_what_was_opened_stays_open(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    page.get_by_text("Thresholds as a table").click()
    before = page.get_attribute("#policy", "data-guaranteed")
    page.locator("#decision table.edit tbody tr").nth(0).locator("input[type=number]").nth(1).fill("0.01")
    page.wait_for_function("before => document.querySelector('#policy').dataset.guaranteed !== before", arg=before)
    assert page.locator("#policy details").evaluate("details => details.open")
    assert page.locator("#verdict details").evaluate_all("all => all.map((details) => details.open)") == [False, False]


def test_the_map_explains_where_it_is_pointed_at_after_the_window_changed(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    page.set_viewport_size({"width": 1024, "height": 900})
    page.wait_for_timeout(300)
    page.locator("#explain-slider").fill("0.75")
    x = page.locator("#policy svg.chart line.pointer").first.get_attribute("x1")
    width = page.locator("#policy svg.chart").first.evaluate("chart => chart.viewBox.baseVal.width")
    assert float(x) == pytest.approx(50 + 0.75 * (width - 62))
    page.set_viewport_size({"width": 360, "height": 900})
    page.wait_for_timeout(300)
    narrow = page.locator("#policy svg.chart").first.evaluate("chart => chart.viewBox.baseVal.width")
    assert narrow < width
    x = page.locator("#policy svg.chart line.pointer").first.get_attribute("x1")
    assert float(x) == pytest.approx(50 + 0.75 * (narrow - 62))
