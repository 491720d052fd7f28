"""States from links: broken and hostile ones are refused in words, and nothing leads to a dead end."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from studio_page import Watched, answered, settled

pytestmark = pytest.mark.page

State = dict[str, Any]


def of(**parts: Any) -> Callable[[State], None]:
    return lambda state: state.update(parts)


def inside(name: str, **parts: Any) -> Callable[[State], None]:
    return lambda state: state[name].update(parts)


PAYOFFS = {"kind": "payoffs", "actions": ["a", "b"], "classes": ["x", "y"], "payoffs": [[1, 0], [0, 1]]}
REFUSED: dict[str, tuple[Callable[[State], None], str]] = {
    "a path for an id": (inside("data", id="../examples"), "its data have no name"),
    "the schema for an id": (inside("data", id="../../openapi.json"), "its data have no name"),
    "a path for an example": (inside("data", id="0" * 32, example="../data?name=x"), "its example is unknown"),
    "an object for an example": (inside("data", id="0" * 32, example={"a": 1}), "its example is unknown"),
    "an object for a weight": (inside("columns", weight={"a": 1}), "its columns are no names"),
    "a number for a key": (inside("columns", key=5), "its columns are no names"),
    "an unknown column": (inside("columns", evil="x"), "its columns are no names"),
    "an object for context": (inside("columns", context=[{"a": 1}]), "its columns are no names"),
    "a number for a capacity": (of(capacity=5), "its settings are no settings"),
    "no forecast": (inside("columns", forecast=[]), "its columns are no names"),
    "no columns": (of(columns=None), "its decision is about no columns"),
    "no bounds": (inside("problem", lower=[], upper=[]), "its decision is no table"),
    "a short bound": (inside("problem", upper=[]), "its decision is no table"),
    "ragged rewards": (inside("problem", rewards=[[1], [1, 2], []]), "its decision is no table"),
    "short costs": (inside("problem", costs=[1]), "its decision is no table"),
    "no actions": (inside("problem", actions=[], rewards=[], costs=[]), "its actions are no names"),
    "two bounds": (inside("problem", rewards=[[1, 1]] * 3, lower=[0, 0], upper=[1, 1]), "do not fit its decision"),
    "too few forecasts for classes": (of(problem=PAYOFFS), "its columns do not fit its decision"),
    "ragged payoffs": (of(problem={**PAYOFFS, "payoffs": [[1], [1, 2, 3]]}), "its payoffs are no table"),
    "a rung of every object": (of(guarantee=["toString"], slack=0), "its guarantee is unknown"),
    "another version": (of(version=2), "its version is unknown"),
    "half a character": (inside("problem", actions=["\ud800", "b", "c"]), "its actions are no names"),
}


def test_hostile_links_are_refused_in_words(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    state = settled(page)
    before = len(tabs.requests)
    for name, (change, message) in REFUSED.items():
        hostile = copy.deepcopy(state)
        change(hostile)
        page.evaluate("fragment => { location.hash = fragment }", quote(json.dumps(hostile)))
        page.wait_for_timeout(100)
        assert message in page.inner_text("#notice"), name
    assert [url for url in tabs.requests[before:] if "/api/" in url and "/api/explain" not in url] == []


def test_numbers_of_odd_size_are_refused_in_words(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    page.get_by_label("0.8x: cost").fill("1e308")
    page.get_by_label("1.0x: cost").fill("-1e308")
    page.wait_for_selector("#answer-state:has-text('use other units')")
    assert page.inner_text("#utility-lines") == "Lines appear once all numbers are there."
    page.get_by_label("0.8x: cost").fill("0")
    page.get_by_label("1.0x: cost").fill("0.28")
    answered(page)
    page.get_by_label("set by hand").check()
    page.get_by_label("Slack", exact=True).fill("-1")
    page.wait_for_selector("#answer-state:has-text('The slack must be 0 or more')")
    assert page.is_hidden("#guarantee-error")


def test_data_in_odd_units_say_so_and_a_table_can_be_started(tabs: Watched) -> None:
    page = tabs.open()
    page.set_input_files("#file", a_file("forecast,outcome\n1e15,2e15\n3e14,1e14\n"))
    page.wait_for_selector("#decision-body:has-text('use other units in the file')")
    assert page.inner_text("#answer-state") == "Describe the decision in step 2."
    page.click("[data-example=staffing]")
    answered(page)
    state = settled(page)
    page.evaluate("fragment => { location.hash = fragment }", quote(json.dumps({**state, "problem": None})))
    page.get_by_role("button", name="Start a table of actions").click()
    answered(page)
    assert settled(page)["problem"]["upper"] == [1]


def test_outcomes_that_come_back_are_measured_again(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    outcome = page.get_by_label("Outcome", exact=True)
    outcome.select_option("")
    state = settled(page)
    assert (state["guarantee"], state["slack"]) == (["self-orthogonal"], 0)
    outcome.select_option("demand")
    answered(page)
    state = settled(page)
    assert (state["guarantee"], state["slack"]) == ("auto", "audit")
    outcome.select_option("")
    page.get_by_label("Slack", exact=True).fill("0.1")
    outcome.select_option("demand")
    answered(page)
    state = settled(page)
    assert (state["guarantee"], state["slack"]) == (["self-orthogonal"], 0.1)


def test_a_number_that_was_a_class_for_a_moment_keeps_its_decision(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    before = settled(page)
    page.get_by_label("a class").check()
    page.get_by_label("0.8x: if 1").fill("7")
    page.get_by_label("a number").check()
    answered(page)
    assert settled(page) == before
    page.get_by_label("a class").check()
    assert page.get_by_label("0.8x: if 1").input_value() == "7"
    page.get_by_role("button", name="Add an action").click()
    page.get_by_label("a number").check()
    answered(page)
    assert settled(page)["problem"]["costs"][:3] == before["problem"]["costs"]
    assert len(settled(page)["problem"]["costs"]) == 4


def test_context_and_capacity_are_asked_shown_and_in_the_link(tabs: Watched) -> None:
    rng = np.random.default_rng(3)
    forecasts, regions = rng.uniform(0.1, 0.9, 2_000).round(4), rng.choice(["north", "south"], 2_000)
    outcomes = (rng.random(2_000) < forecasts + np.where(regions == "north", 0.1, -0.1)).astype(int)
    rows = "".join(f"{r},{f},{y}\n" for r, f, y in zip(regions, forecasts, outcomes, strict=True))
    page = tabs.open()
    page.set_input_files("#file", a_file("region,forecast,outcome\n" + rows))
    answered(page)
    page.get_by_label("Known at decision time (region, product)").select_option("region")
    page.wait_for_selector("#verdict[data-current=true] summary:has-text('Segment by segment')")
    assert "region=north" in page.inner_text("#verdict")
    capacity = page.get_by_label("Capacity")
    capacity.fill("do much=20%, do some=500")
    page.wait_for_selector("#policy[data-current=true] .card:has-text('One more place for do some')")
    assert "of at most 25.0%" in page.inner_text("#policy")
    page.wait_for_selector("#explain:not(.stale)")
    page.locator("#explain select").select_option("south")
    page.wait_for_selector("#story:has-text('At the forecast 0.5')")
    state = settled(page)
    assert (state["columns"]["context"], state["capacity"]) == (["region"], "do much=20%, do some=500")
    shown, answer = page.inner_text("#policy"), page.inner_text("#verdict")
    page.reload()
    answered(page)
    assert (page.inner_text("#policy"), page.inner_text("#verdict")) == (shown, answer)
    assert page.get_by_label("Capacity").input_value() == "do much=20%, do some=500"
    page.get_by_label("Capacity").fill("do little=10%, do much=20%, do some=500")
    page.wait_for_selector("#capacity-error:has-text('cannot be kept by any rule at once')")
    page.get_by_label("Capacity").fill("")
    answered(page)
    assert page.is_hidden("#capacity-error")
    page.get_by_label("Known at decision time (region, product)").select_option("")
    answered(page)
    assert settled(page)["columns"]["context"] == []


def test_one_row_is_one_row(tabs: Watched) -> None:
    page = tabs.open()
    page.set_input_files("#file", a_file("forecast,outcome\n0.5,1\n"))
    page.wait_for_selector("#data-summary .summary")
    assert "1 row, 2 columns" in page.inner_text("#data-summary")


def a_file(text: str) -> dict[str, Any]:
    return {"name": "rows.csv", "mimeType": "text/csv", "buffer": text.encode()}
