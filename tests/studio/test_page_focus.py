"""The keyboard alone: a change does not move the focus."""

from __future__ import annotations

from typing import Any

import pytest

from studio_page import Watched, answered, settled

pytestmark = pytest.mark.page


def focused(page: Any) -> str:
    """What has the focus, as a screen reader names it."""
    return page.evaluate(
        "(({tagName, ariaLabel, labels, textContent}) => "
        "`${tagName} ${ariaLabel ?? labels?.[0]?.textContent.trim() ?? textContent.trim()}`)(document.activeElement)"
    )


def test_controls_keep_the_focus_when_they_are_drawn_anew(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    for label in ("Right on average", "Right within bins", "set by hand", "the advised rule"):
        page.get_by_label(label).focus()
        page.keyboard.press("Space")
        assert focused(page) == f"INPUT {label}"
        answered(page)
        assert focused(page) == f"INPUT {label}"
    for _ in range(2):
        page.get_by_role("button", name="Add an action").focus()
        page.keyboard.press("Enter")
        assert focused(page) == "BUTTON Add an action"
    page.get_by_label("Remove action 4").focus()
    page.keyboard.press("Enter")
    assert focused(page) == "BUTTON Remove action 5"
    page.keyboard.press("Enter")
    assert focused(page) == "BUTTON Remove 1.2x"
    assert settled(page)["problem"]["actions"] == ["0.8x", "1.0x", "1.2x"]
    page.get_by_label("Outcome", exact=True).focus()
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("SELECT Outcome")


def test_the_slack_slider_moves_by_keys(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    page.get_by_label("set by hand").check()
    slider = page.locator("input[aria-label^='Slack slider']")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(60)
    assert slider.input_value() == "5"
    assert focused(page).startswith("INPUT Slack slider")
    slack = settled(page)["slack"]
    assert slack == pytest.approx(0.5 * 0.005**2)
    assert float(page.get_by_label("Slack", exact=True).input_value()) == slack


def test_a_class_is_renamed_and_left_by_tab(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=triage]")
    answered(page)
    name = page.get_by_label("Class 1, as the file writes it")
    name.fill("light")
    name.press("Tab")
    assert focused(page) == "INPUT Class 2, as the file writes it"
    assert page.locator("#decision table.edit th").nth(1).inner_text() == "if light"
    assert page.get_by_label("observe: if light").count() == 1
    assert page.get_by_label("Probability of light").count() >= 1
    assert settled(page)["problem"]["classes"] == ["light", "moderate", "severe"]
