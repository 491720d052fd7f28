"""The page in a real browser, served by the real command."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prudent
from prudent.demo import demonstration_sample
from prudent.policies import policy_text
from studio_page import Watched, answered, settled, watching

pytestmark = pytest.mark.page


@pytest.fixture
def real_file(tmp_path: Path) -> Path:
    _, forecasts, outcomes = demonstration_sample()
    path = tmp_path / "patients.csv"
    rows = [f"{i},{f},{y}" for i, (f, y) in enumerate(zip(forecasts.tolist(), outcomes.tolist(), strict=True))]
    path.write_text("\n".join(["id,forecast,outcome", *rows]) + "\n")
    return path


def describe(page: Any, problem: prudent.DecisionProblem) -> None:
    for i, (action, reward, cost) in enumerate(zip(problem.actions, problem.rewards[:, 0], problem.costs, strict=True)):
        cells = page.locator("#decision table.edit tbody tr").nth(i).locator("input")
        for position, value in enumerate((action, reward, cost)):
            cells.nth(position).fill(str(value))
    low, high = (float(bound[0]) for bound in problem.space.bounds)
    page.get_by_label("Outcome, lower bound").fill(str(low))
    page.get_by_label("Outcome, upper bound").fill(str(high))


def taken(page: Any, name: str) -> str:
    with page.expect_download() as download:
        page.click(f"[data-file={name}]")
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_five_steps_with_a_real_file(tabs: Watched, real_file: Path) -> None:
    described, forecasts, outcomes = demonstration_sample()
    # The page knows no unit.
    problem = prudent.DecisionProblem(
        described.rewards, described.costs, actions=described.actions, space=described.space
    )
    page = tabs.open()
    page.set_input_files("#file", real_file)
    page.wait_for_selector("#data-summary .summary")
    assert "442 rows" in page.inner_text("#data-summary")
    assert page.get_by_label("Forecast", exact=True).input_value() == "forecast"
    assert page.get_by_label("Outcome", exact=True).input_value() == "outcome"
    describe(page, problem)
    answered(page)
    report = prudent.Report(problem, forecasts, outcomes)
    verdict = str(report.advice.verdict).partition(": ")[2]
    assert verdict[1:] in page.inner_text("#verdict")
    assert float(page.get_attribute("#policy", "data-guaranteed")) == report.advice.certificate.lower
    page.locator("#ladder [data-rung=self-orthogonal] input").check()
    answered(page)
    chosen = prudent.guarantees.SelfOrthogonal(intercept=True)
    report = prudent.Report(problem, forecasts, outcomes, guarantee=chosen)
    assert float(page.get_attribute("#policy", "data-guaranteed")) == report.policy.certificate_.lower
    page.hover("#policy svg.chart >> nth=0", position={"x": 200, "y": 60})
    page.wait_for_selector("#story:has-text('At the forecast')")
    assert taken(page, "policy") == policy_text(report.policy)
    assert taken(page, "sql") == report.policy.to_sql("duckdb", "forecast", key="id") + "\n"
    assert "usual_guarantees" in taken(page, "python")
    assert verdict_of(report) in taken(page, "report")


def verdict_of(report: prudent.Report) -> str:
    return str(report.advice.verdict).partition(": ")[2][1:120]


def test_an_edit_in_the_decision_table_changes_the_verdict(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=patients]")
    answered(page)
    before = page.inner_text("#verdict p")
    lines = page.locator("#utility-lines path").first.get_attribute("d")
    page.get_by_label("clinic: cost").fill("150")
    assert page.get_attribute("#verdict", "data-current") == "false"
    answered(page)
    problem, forecasts, outcomes = demonstration_sample()
    changed = prudent.DecisionProblem(problem.rewards, [0, 130, 150], actions=problem.actions, space=problem.space)
    expected = str(prudent.advise(changed, forecasts, outcomes).verdict).partition(": ")[2]
    assert page.inner_text("#verdict p") != before
    assert expected[1:] in page.inner_text("#verdict")
    assert page.locator("#utility-lines path").first.get_attribute("d") != lines


def test_the_ladder_waits_for_the_policy_that_is_found_on_it_and_else_for_nobody(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    page.wait_for_selector("#ladder[data-current=true]:not(.stale)")
    held: list[Any] = []
    page.route("**/api/policy", lambda route: held.append(route))
    cost = page.get_by_label("1.2x: cost")
    cost.fill("0.5")
    page.wait_for_selector("#stress[data-current=true]:not(.stale)")
    page.wait_for_timeout(300)
    assert page.get_attribute("#ladder", "data-current") == "false"
    held.pop().continue_()
    page.wait_for_selector("#ladder[data-current=true]:not(.stale)")
    page.unroute("**/api/policy")
    page.locator("#ladder [data-rung=self-orthogonal] input").check()
    answered(page)
    page.wait_for_selector("#ladder[data-current=true]:not(.stale)")
    page.route("**/api/policy", lambda route: held.append(route))
    cost.fill("0.6")
    page.wait_for_selector("#ladder[data-current=true]:not(.stale)")
    assert "stale" in page.get_attribute("#policy", "class")
    held.pop().continue_()
    page.wait_for_selector("#policy[data-current=true]:not(.stale)")


def test_an_answer_to_older_inputs_is_never_current(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=staffing]")
    answered(page)
    held: list[Any] = []
    page.route("**/api/policy", lambda route: held.append(route) if not held else route.continue_())
    cost = page.get_by_label("1.2x: cost")
    later = [url for url in tabs.requests if "/api/ladder" in url]
    cost.fill("0.5")
    page.wait_for_timeout(300)
    assert len(held) == 1
    # The ladder waits for the answer, and the one on screen is grey.
    assert [url for url in tabs.requests if "/api/ladder" in url] == later
    assert "stale" in page.get_attribute("#ladder", "class")
    cost.fill("0.6")
    page.wait_for_timeout(300)
    assert page.get_attribute("#policy", "data-current") == "false"
    assert "stale" in page.get_attribute("#policy", "class")
    with page.expect_response("**/api/policy"):
        held[0].continue_()
    answered(page)
    question = settled(page)
    assert question["problem"]["costs"][2] == 0.6
    sent = {"data": question["data"]["id"], **{k: question[k] for k in ("columns", "problem", "guarantee", "slack")}}
    answer = page.request.post(tabs.address + "api/policy", data=sent).json()
    assert float(page.get_attribute("#policy", "data-guaranteed")) == answer["cards"][0]["value"]
    page.wait_for_selector("#ladder[data-current=true]:not(.stale)")
    cost.fill("")
    page.wait_for_timeout(200)
    assert page.get_attribute("#policy", "data-current") == "false"
    assert "number is missing" in page.inner_text("#answer-state")


def test_bad_files_and_bad_rows_are_shown(tabs: Watched, tmp_path: Path) -> None:
    page = tabs.open()
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b"\xff\xfef\0o\0")
    page.set_input_files("#file", broken)
    page.wait_for_selector("#data-error:not([hidden])")
    assert "UTF-16" in page.inner_text("#data-error")
    rows = tmp_path / "rows.csv"
    rows.write_text("forecast,y\n0.2,0\n0.3,1\n0.4,0\nlow,1\n0.5,\n0.9,1\n")
    page.set_input_files("#file", rows)
    page.wait_for_selector("#data-error table")
    text = page.inner_text("#data-error")
    assert "'low' is not a number" in text
    assert "the cell is empty" in text
    assert page.locator("#data-error tbody tr").count() == 2
    page.click("#go-on")
    answered(page)
    said = page.inner_text("#left-out")
    assert said.startswith("2 of 6 rows left out because 'forecast' is empty or not a finite number (1);")
    assert page.is_hidden("#data-error")
    assert settled(page)["skip"] is True
    page.reload()
    answered(page)
    assert page.inner_text("#left-out") == said
    page.click("#skip-rows")
    page.wait_for_selector("#data-error table")


def test_two_outcome_columns_have_a_map(tabs: Watched, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    forecasts = rng.random((300, 2)).round(4)
    outcomes = np.clip(forecasts + rng.normal(0, 0.1, (300, 2)), 0, 1).round(4)
    path = tmp_path / "two.csv"
    lines = [",".join(map(str, [*f, *y])) for f, y in zip(forecasts, outcomes, strict=True)]
    path.write_text("\n".join(["rain,wind,rain seen,wind seen", *lines, ""]))
    page = tabs.open()
    page.set_input_files("#file", path)
    page.get_by_role("button", name="Add an outcome column").click()
    for label, column in (("Forecast 1", "rain"), ("Forecast 2", "wind")):
        page.get_by_label(label, exact=True).first.select_option(column)
    for label, column in (("Outcome 1", "rain seen"), ("Outcome 2", "wind seen")):
        page.get_by_label(label, exact=True).select_option(column)
    for i, numbers in enumerate(([0, 0, 0], [1, 0.3, 0.5], [0.2, 1, 0.6])):
        cells = page.locator("#decision table.edit tbody tr").nth(i).locator("input[type=number]")
        for position, value in enumerate(numbers):
            cells.nth(position).fill(str(value))
    page.locator("#ladder [data-rung=self-orthogonal] input").check()
    answered(page)
    problem = prudent.DecisionProblem(
        [[0, 0], [1, 0.3], [0.2, 1]],
        [0, 0.5, 0.6],
        actions=settled(page)["problem"]["actions"],
        space=prudent.Box([0, 0], [1, 1]),
    )
    report = prudent.Report(problem, forecasts, outcomes, guarantee=prudent.guarantees.SelfOrthogonal(intercept=True))
    assert float(page.get_attribute("#policy", "data-guaranteed")) == report.policy.certificate_.lower
    check_map(page, "Policy map over the forecasts rain and wind", 784, 25)
    page.hover("#policy svg.chart >> nth=0", position={"x": 300, "y": 150})
    page.wait_for_function("document.querySelector('#story').textContent.startsWith('At the forecast')")
    at = [float(box.input_value()) for box in page.locator("#explain .fields input").all()]
    assert 0 < at[0] < 1
    assert 0 < at[1] < 1


def test_three_classes_have_a_triangle(tabs: Watched) -> None:
    page = tabs.open()
    page.click("[data-example=triage]")
    answered(page)
    check_map(page, "Policy map over the probabilities of mild, moderate, severe", 1_600, 15)
    box = page.locator("#policy svg.chart").first.bounding_box()
    page.hover("#policy svg.chart >> nth=0", position={"x": box["width"] / 2, "y": box["height"] * 0.6})
    page.wait_for_function("document.querySelector('#story').textContent.startsWith('At the forecast')")
    at = [float(box.input_value()) for box in page.locator("#explain .fields input").all()]
    assert sum(at) == pytest.approx(1, abs=1e-3)
    assert at[0] == pytest.approx(at[1], abs=0.02)


def check_map(page: Any, label: str, cells: int, examples: int) -> None:
    """Colours, names in the regions, circles for forecasts, and the same in words."""
    chart = page.locator("#policy svg.chart").first
    assert chart.get_attribute("aria-label").startswith(label)
    outlines = chart.locator("path.cell").evaluate_all("paths => paths.map((path) => path.getAttribute('d')).join('')")
    assert outlines.count("M") == cells
    assert chart.locator("circle.crowd").count() > 20
    named = set(chart.locator("text.region").all_text_contents())
    legend = page.locator("#policy figure >> nth=0").locator(".legend li").all_text_contents()
    assert named <= {name.strip() for name in legend}
    assert len(named) >= 2
    words = page.locator("#policy details", has_text="The map as a table")
    assert words.locator("tbody tr").count() == examples
    check_colours(page, words)


def likeliest(told: str) -> str:
    """Of "walk 30.0%, run 70.0%" the one that is played most."""
    shares = {name: float(share) for name, share in re.findall(r"(?:^|, )(.+?) ([0-9.]+)%", told)}
    return max(shares, key=shares.get) if shares else told


def check_colours(page: Any, words: Any) -> None:
    """At most forecasts of the table, which come on another way, the map has the colour of the action."""
    found = words.locator("tbody tr").evaluate_all(
        """(rows) => {
          const svg = document.querySelector("#policy svg.chart"), names = {};
          for (const item of document.querySelector("#policy figure .legend").children)
            names[item.querySelector("rect").getAttribute("fill")] = item.textContent.trim();
          const all = rows.map((row) => Array.from(row.children, (cell) => cell.textContent));
          const mean = (j) => all.reduce((sum, row) => sum + Number(row[j]), 0) / all.length;
          const middle = all[0].slice(0, -1).map((_, j) => mean(j));
          return all.map((row) => {
            svg.point(middle.map((value, j) => 0.99 * Number(row[j]) + 0.01 * value));
            const spot = svg.querySelector("circle.spot"), at = svg.createSVGPoint();
            [at.x, at.y] = ["cx", "cy"].map((name) => Number(spot.getAttribute(name)));
            const cell = Array.from(svg.querySelectorAll("path.cell")).find((path) => path.isPointInFill(at));
            return [row.at(-1), names[cell?.getAttribute("fill")]];
          });
        }"""
    )
    right = [coloured for told, coloured in found if likeliest(told) == coloured]
    assert len(right) >= 0.8 * len(found)
    assert len(set(right)) >= 2


def test_reload_link_back_and_forward_restore_the_state(tabs: Watched, real_file: Path) -> None:
    page = tabs.open()
    page.set_input_files("#file", real_file)
    answered(page)
    settled(page)
    page.locator("table.edit tbody tr").nth(1).locator("input").nth(2).fill("77")
    answered(page)
    state = settled(page)
    assert state["problem"]["costs"][1] == 77
    verdict = page.inner_text("#verdict")
    page.reload()
    answered(page)
    assert page.inner_text("#verdict") == verdict
    linked = tabs.elsewhere().open("#" + page.url.partition("#")[2])
    answered(linked)
    assert linked.inner_text("#verdict") == verdict
    assert settled(linked) == state
    cost = page.locator("table.edit tbody tr").nth(1).locator("input").nth(2)
    page.go_back()
    answered(page)
    assert cost.input_value() != "77"
    page.go_forward()
    answered(page)
    assert cost.input_value() == "77"
    assert page.inner_text("#verdict") == verdict


def test_a_saved_state_opens_again_and_lost_data_are_asked_for(tabs: Watched, real_file: Path, tmp_path: Path) -> None:
    page = tabs.open()
    page.set_input_files("#file", real_file)
    answered(page)
    with page.expect_download() as download:
        page.click("#save-state")
    state = json.loads(Path(download.value.path()).read_text())
    state["data"]["id"] = "0" * 32
    saved = tmp_path / "state.json"
    saved.write_text(json.dumps(state))
    page.set_input_files("#state-file", saved)
    page.wait_for_selector("#data-error:not([hidden])")
    assert "Choose the file again" in page.inner_text("#data-error")
    page.set_input_files("#file", real_file)
    answered(page)
    assert settled(page)["problem"] == state["problem"]
    saved.write_text('{"version": 1, "data": 3}')
    page.set_input_files("#state-file", saved)
    page.wait_for_selector("#notice:not([hidden])")
    assert "not a saved state" in page.inner_text("#notice")


def test_two_tabs_do_not_disturb_each_other(tabs: Watched) -> None:
    first, second = tabs.open(), tabs.open()
    first.click("[data-example=staffing]")
    second.click("[data-example=triage]")
    answered(first)
    answered(second)
    guaranteed = second.get_attribute("#policy", "data-guaranteed")
    first.get_by_label("1.2x: cost").fill("0.7")
    answered(first)
    assert settled(second)["data"]["example"] == "triage"
    assert second.get_attribute("#policy", "data-guaranteed") == guaranteed
    assert settled(first)["problem"]["costs"][2] == 0.7


def test_the_slider_bends_the_policy_and_the_keyboard_is_enough(tabs: Watched) -> None:
    page = tabs.open()
    page.locator("[data-example=staffing]").focus()
    page.keyboard.press("Enter")
    answered(page)
    page.get_by_label("set by hand").focus()
    page.keyboard.press("Space")
    page.wait_for_selector("input[type=range][aria-label^=Slack]")
    answered(page)
    exact = float(page.get_attribute("#policy", "data-guaranteed"))
    page.locator("input[type=range][aria-label^=Slack]").focus()
    page.keyboard.press("End")
    answered(page)
    loose = float(page.get_attribute("#policy", "data-guaranteed"))
    assert loose < exact


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("example", ["patients", "triage"])
def test_no_serious_accessibility_issue_and_no_sideways_scrolling(
    address: str, scheme: str, example: str, axe: Callable[[Any], list[str]]
) -> None:
    with watching(address, color_scheme=scheme) as watched:
        page = watched.open()
        assert axe(page) == []
        page.click(f"[data-example={example}]")
        answered(page)
        page.wait_for_timeout(400)
        assert axe(page) == []
        for width in (360, 1024, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.set_viewport_size({"width": 360, "height": 900})
        assert axe(page) == []


@pytest.fixture(scope="module")
def axe() -> Callable[[Any], list[str]]:
    """Checks by axe-core, as a development dependency carries it, or by another version of it at AXE_CORE."""
    package = find_spec("axe_playwright_python")
    places = [Path(folder) / "axe.min.js" for folder in (package and package.submodule_search_locations) or []]
    if "AXE_CORE" in os.environ:
        places.insert(0, Path(os.environ["AXE_CORE"]))
    script = next((place for place in places if place.is_file()), None)
    if script is None:
        pytest.skip("axe-core is not here; pip install axe-playwright-python, or AXE_CORE=path/to/axe.min.js")
    source = script.read_text(encoding="utf-8")

    def check(page: Any) -> list[str]:
        page.evaluate(source)
        found = page.evaluate("axe.run()")["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {node['html'][:200]}" for one in serious for node in one["nodes"]]

    return check


def test_periods_are_picked_and_the_next_one_is_spoken_of(tabs: Watched, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    forecasts = rng.random(600)
    outcomes = (rng.random(600) < forecasts).astype(int)
    days = [str(np.datetime64("2011-01-01") + int(k)) for k in rng.integers(0, 240, 600)]
    lines = [f"{f!r},{y},{day}" for f, y, day in zip(forecasts.tolist(), outcomes.tolist(), days, strict=True)]
    path = tmp_path / "days.csv"
    path.write_text("\n".join(["forecast,outcome,day", *lines]) + "\n")
    page = tabs.open()
    page.set_input_files("#file", path)
    answered(page)
    assert page.locator("#next-period").count() == 0
    page.get_by_label("Period (day, month, site)").select_option("day")
    page.get_by_label("Where it is a date: every").select_option("month")
    page.wait_for_selector("#next-period")
    answered(page)
    columns = settled(page)["columns"]
    assert (columns["period"], columns["every"]) == ("day", "month")
    shown = page.locator("#next-period").inner_text()
    assert shown.startswith("In the next period this rule earns at least")
    page.get_by_label("Period (day, month, site)").select_option("")
    page.wait_for_selector("#next-period", state="detached")
    assert not tabs.complaints
