"""Numbers and sentences as people write them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from studio_page import Watched, answered

pytestmark = pytest.mark.page

MINUS, NOTHING = "\N{MINUS SIGN}", "\N{EN DASH}"


def test_large_amounts_are_written_out(tabs: Watched) -> None:
    rows = "".join(f"{1_000 * i},{1_100 * i}\n" for i in range(1, 400))
    page = tabs.open()
    page.set_input_files("#file", upload("money.csv", "forecast,outcome\n" + rows))
    answered(page)
    page.wait_for_selector("#ladder[data-current=true]")
    cards = [
        float(text.replace(",", "").replace(MINUS, "-")) for text in page.locator(".card strong").all_inner_texts()
    ]
    assert cards[0] == pytest.approx(float(page.get_attribute("#policy", "data-guaranteed")), abs=0.5)
    assert cards[0] > 1e5
    assert page.locator("#ladder [data-rung=nothing] .worth").inner_text() == "0"
    for panel in ("#policy", "#stress", "#ladder", "#utility-lines"):
        assert re.findall(rf"\de[-+{MINUS}]?\d", page.inner_text(panel)) == []
    labels = page.locator("#utility-lines svg text").all_text_contents()
    assert "500K" in labels or "400K" in labels
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_numbers_beside_each_other_tell_rounding_from_small(tabs: Watched) -> None:
    page = tabs.open()
    written = page.evaluate(
        """async () => { const { beside, number } = await import("/assets/elements.js"); return [
          beside(1e5, -9.52e-9)(-9.52e-9), beside(2e-10, 5e-11)(5e-11), beside(0, null)(null), beside(0)(0),
          number(-117234.4), number(12345.6), number(2.2e9), number(0.12345), number(0.00012), number(0)]; }"""
    )
    small = ["0", f"5e{MINUS}11", NOTHING, "0"]
    assert written == [*small, f"{MINUS}117,234", "12,346", "2.2e+9", "0.1235", "0.00012", "0"]


def test_probabilities_typed_one_by_one_add_up(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=triage]")
    answered(page)
    page.wait_for_selector("#story:has-text('At the forecast')")
    asked = len([url for url in tabs.requests if url.endswith("/api/explain")])
    first, second, rest = page.locator("#explain .fields input").all()
    first.fill("0.9")
    page.wait_for_selector("#story:has-text('The probabilities add up to 1.233; together they may be 1 at most.')")
    assert rest.input_value() == ""
    first.fill("7")
    page.wait_for_selector("#story:has-text('between 0 and 1')")
    assert len([url for url in tabs.requests if url.endswith("/api/explain")]) == asked
    first.fill("0.5")
    second.fill("0.1")
    page.wait_for_selector("#story:has-text('At the forecast (0.5, 0.1, 0.4)')")
    assert rest.input_value() == "0.4"
    assert not rest.is_editable()


def upload(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
