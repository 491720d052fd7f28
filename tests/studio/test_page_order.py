"""What comes late: nothing on screen belongs to other inputs than those that are visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from studio_page import Watched, answered, settled

pytestmark = pytest.mark.page


def hold(page: Any, pattern: str) -> list[Any]:
    """Keep requests back until they are continued."""
    held: list[Any] = []
    page.route(pattern, lambda route: held.append(route))
    return held


def explained(page: Any) -> None:
    page.wait_for_selector("#explain:not(.stale) #story:has-text('At the forecast')")


def test_an_explanation_of_older_inputs_is_not_told(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    explained(page)
    story = page.inner_text("#story")
    held = hold(page, "**/api/explain")
    page.locator("#explain-slider").fill("0.9")
    page.wait_for_timeout(150)
    assert len(held) == 1
    page.get_by_label("1.2x: cost").fill("")
    page.wait_for_selector("#policy.stale")
    with page.expect_response("**/api/explain"):
        held[0].continue_()
    page.wait_for_timeout(150)
    assert page.inner_text("#story") == story
    assert "stale" in page.get_attribute("#explain", "class")


def test_the_note_under_the_ladder_is_as_old_as_the_ladder(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    page.wait_for_selector("#ladder-note:not(.stale):has-text('is worth most')")
    held = hold(page, "**/api/ladder")
    page.get_by_label("1.2x: cost").fill("0.7")
    page.wait_for_selector("#ladder-note.stale")
    answered(page)
    assert "stale" in page.get_attribute("#ladder-note", "class")
    held[0].fulfill(status=422, json={"message": "no ladder", "where": "columns", "rows": []})
    page.wait_for_selector("#ladder-note:not(.stale):has-text('no ladder')")
    page.get_by_label("Outcome", exact=True).select_option("")
    page.wait_for_selector("#ladder-note:not(.stale):has-text('Without outcomes')")


def test_the_last_choice_of_data_wins(tabs: Watched) -> None:
    page = tabs.open()
    held = hold(page, "**/api/examples/patients")
    page.click("[data-example=patients]")
    page.click("[data-example=triage]")
    answered(page)
    release(page, held, "**/api/examples/patients")
    assert "triage.csv" in page.inner_text("#data-summary")
    assert settled(page)["data"]["example"] == "triage"


@pytest.mark.parametrize("instead", ["example", "back", "another"])
def test_a_slow_upload_does_not_overwrite_what_was_chosen_since(tabs: Watched, instead: str) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    settled(page, "staffing")
    page.click("[data-example=triage]")
    answered(page)
    settled(page, "triage")
    held = hold(page, "**/api/data?name=slow.csv")
    page.set_input_files("#file", a_file("slow.csv"))
    page.wait_for_selector("#notice:has-text('Reading slow.csv')")
    expected = {"example": "patients.csv", "back": "staffing.csv", "another": "quick.csv"}[instead]
    do: Callable[[], Any] = {
        "example": lambda: page.click("[data-example=patients]"),
        "back": page.go_back,
        "another": lambda: page.set_input_files("#file", a_file("quick.csv")),
    }[instead]
    do()
    page.wait_for_selector(f"#data-summary:has-text('{expected}')")
    assert page.get_attribute("#drop", "aria-busy") is None
    assert page.is_hidden("#notice")
    release(page, held, "**/api/data?name=slow.csv")
    assert expected in page.inner_text("#data-summary")
    assert settled(page)["data"]["name"] == expected


def a_file(name: str) -> dict[str, Any]:
    return {"name": name, "mimeType": "text/csv", "buffer": b"forecast,outcome\n0.2,0\n0.4,1\n0.7,1\n0.5,0\n"}


def release(page: Any, held: list[Any], pattern: str) -> None:
    with page.expect_response(pattern):
        held[0].continue_()
    page.wait_for_timeout(200)


def test_what_returns_to_the_question_on_screen_is_current_again(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    explained(page)
    said = page.inner_text("#answer-state")
    assert said.startswith("Computed on")
    cost = page.get_by_label("1.0x: cost")
    cost.fill("")
    page.wait_for_selector("#answer-state:has-text('number is missing')")
    page.wait_for_timeout(400)
    cost.fill("0.28")
    explained(page)
    answered(page)
    assert page.inner_text("#answer-state") == said
    assert page.get_attribute("#answer-state", "class") == "timing"


def test_a_long_computation_says_that_it_computes(tabs: Watched) -> None:
    page = tabs.open()
    held = hold(page, "**/api/policy")
    page.click("[data-example=staffing]")
    page.wait_for_selector("#answer-state:has-text('Computing')")
    held[0].continue_()
    page.wait_for_selector("#answer-state:has-text('Computed on')")
    page.get_by_label("1.0x: cost").fill("0.3")
    page.wait_for_selector("#answer-state:has-text('Computing')")
    page.get_by_label("1.0x: cost").fill("")
    page.wait_for_selector("#answer-state:has-text('number is missing')")
    page.wait_for_timeout(400)
    assert "number is missing" in page.inner_text("#answer-state")
    held[1].fulfill(status=422, json={"message": "never", "where": "problem", "rows": []})
    page.get_by_label("1.0x: cost").fill("0.31")
    page.wait_for_selector("#answer-state:has-text('Computing')")
    held[2].fulfill(status=422, json={"message": "cannot be", "where": "problem", "rows": []})
    page.wait_for_selector("#answer-state:has-text('There is no answer')")
