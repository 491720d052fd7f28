"""Charts of a report: every result is drawn where it belongs, and said in words."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.report.charts import Axis, charts

STAFFING = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
SVG = re.compile(r'<svg [^>]*role="img".*?</svg>', flags=re.DOTALL)


@pytest.fixture(scope="module")
def staffing() -> prudent.Report:
    rng = np.random.default_rng(0)
    forecasts = rng.beta(2, 2, 800)
    outcomes = np.clip(0.8 * forecasts + rng.normal(0, 0.1, 800), 0, 1)
    return prudent.Report(STAFFING, forecasts, outcomes, guarantee=guarantees.Bins(5))


@pytest.fixture(scope="module")
def classes() -> prudent.Report:
    rng = np.random.default_rng(1)
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3), actions=["a", "b", "a very long name of an action, cut"])
    forecasts = rng.dirichlet(np.ones(3), 300)
    return prudent.Report(problem, forecasts, rng.integers(0, 3, 300).tolist(), guarantee=guarantees.TopLabel(2))


def drawn(report: prudent.Report) -> dict[str, ET.Element]:
    """The charts of a page by the start of their description."""
    pictures = [ET.fromstring(found) for found in SVG.findall(report.to_html())]  # noqa: S314  (our own text)
    return {str(picture.get("aria-label")).split()[0]: picture for picture in pictures}


def notes(picture: ET.Element) -> list[str]:
    return [str(title.text) for title in picture.iter("title")]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.11, 0.003), (25.0, 346.0), (1e-9, 3e-9), (-5e6, 1.2e7)])
def test_ticks_are_few_and_inside(low: float, high: float) -> None:
    ticks = Axis(low, high, 0, 100).ticks
    assert 2 <= len(ticks) <= 6
    assert low - 1e-9 * (high - low) <= min(ticks)
    assert max(ticks) <= high + 1e-9 * (high - low)
    assert not any(np.signbit(tick) for tick in ticks if tick == 0)


def test_every_result_has_a_chart(staffing: prudent.Report, classes: prudent.Report) -> None:
    assert set(charts(staffing)) == set(charts(classes)) == {"policy", "audit", "ladder", "stress"}
    assert set(drawn(staffing)) == {"Which", "Moments", "Utility", "Expected"}
    assert set(drawn(classes)) == {"How", "Moments", "Utility", "Expected"}


def test_bars_are_as_long_as_utilities(staffing: prudent.Report) -> None:
    stress = staffing.stress
    picture = drawn(staffing)["Expected"]
    lengths = [
        float(end) - float(start)
        for shape in picture.iter("path")
        if shape.get("stroke-width") == "11"
        for start, end in [re.findall(r"[\d.]+", str(shape.get("d")))[::2]]
    ]
    values = np.column_stack([stress.nominal, stress.realised, stress.worst]).ravel()
    np.testing.assert_allclose(np.array(lengths) / max(lengths), values / values.max(), atol=2e-3)
    assert f"robust, in its own worst world: {stress.worst[1]:.4g}" in notes(picture)


def test_intervals_and_violations_are_named(staffing: prudent.Report) -> None:
    audit = staffing.audit
    said = notes(drawn(staffing)["Moments"])
    for name, estimate, (low, high) in zip(audit.moment_names, audit.estimates, audit.intervals, strict=True):
        finding = "not zero" if name in audit.rejected else "may be zero"
        assert f"{name}, {finding}: {estimate:.4g}, from {low:.4g} to {high:.4g}" in said


def test_the_policy_is_read_off_at_every_forecast(staffing: prudent.Report) -> None:
    said = notes(drawn(staffing)["Which"])
    assert len(said) == 60
    assert sum(int(re.findall(r"([\d,]+) rows", note)[0].replace(",", "")) for note in said) == 800
    first = staffing.policy.predict(np.array([0.5 / 60]))[0]
    assert said[0].startswith(f"forecast 0 to 0.01667: {first} 100%")
    areas = [shape for shape in drawn(staffing)["Which"].iter("path") if str(shape.get("d")).endswith("Z")]
    assert len([shape for shape in areas if shape.get("fill") != "transparent"]) == 3


def test_long_names_are_cut_and_said_in_full(classes: prudent.Report) -> None:
    picture = drawn(classes)["How"]
    names = [(text.text, text.find("title")) for text in picture.iter("text") if text.find("title") is not None]
    assert [full.text for _, full in names] == list(classes.problem.actions)
    assert names[2][0] == "a very long name of an action, …"
