"""Displays show the numbers of their results, in the axes they are given."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import prudent
from prudent import guarantees, plots

LINE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
CLASSES = prudent.DecisionProblem.from_payoffs(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]], actions=["a", "b", "c", "ask"], classes=["sun", "rain", "snow"]
)
BOX = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]], [0.0, 0.1, 0.0], space=prudent.Box([0, 0], [2, 4]))
RNG = np.random.default_rng(0)
FORECASTS = RNG.beta(2, 3, size=800)
OUTCOMES = RNG.binomial(1, FORECASTS)
GUARANTEE = guarantees.SelfOrthogonal()
POLICY = prudent.RobustPolicy(LINE, GUARANTEE).fit(FORECASTS)
HABITS = {"plug-in": prudent.PlugInPolicy(LINE), "robust": POLICY}

MAKERS: dict[str, Callable[..., Any]] = {
    "AuditDisplay": lambda **o: plots.AuditDisplay.from_predictions(FORECASTS, OUTCOMES, GUARANTEE, **o),
    "BeliefDisplay": lambda **o: plots.BeliefDisplay.from_policy(POLICY, **o),
    "LadderDisplay": lambda **o: plots.LadderDisplay.from_predictions(FORECASTS, OUTCOMES, LINE, **o),
    "PolicyDisplay": lambda **o: plots.PolicyDisplay.from_policy(POLICY, FORECASTS, **o),
    "RobustnessPriceDisplay": lambda **o: plots.RobustnessPriceDisplay.from_predictions(
        LINE, GUARANTEE, FORECASTS, slacks=[0, 0.1], **o
    ),
    "StressTestDisplay": lambda **o: plots.StressTestDisplay.from_policies(HABITS, FORECASTS, guarantee=GUARANTEE, **o),
    "TransitionDisplay": lambda **o: plots.TransitionDisplay.from_predictions(LINE, FORECASTS[:200], **o),
}


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def test_every_display_is_checked() -> None:
    assert set(plots.__all__) == set(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
class TestEveryDisplay:
    def test_draws_into_the_axes_given(self, name: str) -> None:
        _, ax = plt.subplots()
        display = MAKERS[name](ax=ax)
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert ax.get_title(loc="left")
        before = len(plt.get_fignums())
        assert display.plot().ax_ is not ax
        assert len(plt.get_fignums()) == before + 1

    def test_says_what_to_install_without_matplotlib(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        display = MAKERS[name]()
        load = builtins.__import__

        def without(module: str, *rest: Any) -> Any:
            if module.startswith("matplotlib"):
                raise ImportError(module)
            return load(module, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(prudent.MissingExtraError, match=r"prudent\[plots\]"):
            display.plot()

    def test_can_be_saved(self, name: str, tmp_path: Any) -> None:
        MAKERS[name]().figure_.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 5000


def test_bands_are_the_probabilities() -> None:
    display = plots.PolicyDisplay.from_policy(POLICY, FORECASTS)
    np.testing.assert_array_equal(display.mixtures, POLICY.predict_proba(display.points))
    shares = POLICY.predict_proba(FORECASTS)
    assert display.mixed_share == (shares.max(axis=1) < 1 - 1e-9).mean()
    assert f"{100 * display.mixed_share:.0f}% of forecasts" in display.ax_.get_title(loc="left")
    bands = [c for c in display.ax_.collections if type(c).__name__ in ("PolyCollection", "FillBetweenPolyCollection")]
    assert len(bands) == 3
    top = bands[0].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(display.mixtures[:, 0].max())


def test_policies_fitted_on_named_columns_are_drawn_without_warnings() -> None:
    frame = pd.DataFrame({"risk": FORECASTS})
    policy = prudent.RobustPolicy(LINE, GUARANTEE).fit(frame)
    assert plots.PolicyDisplay.from_policy(policy, frame).mixed_share > 0
    plots.BeliefDisplay.from_policy(policy)


def test_deterministic_policies_say_so() -> None:
    display = plots.PolicyDisplay.from_policy(prudent.PlugInPolicy(LINE))
    assert "one action for certain" in display.ax_.get_title(loc="left")


@pytest.mark.parametrize(
    ("problem", "count"), [(BOX, 241**2), (CLASSES, 90**2)], ids=["two coordinates", "three classes"]
)
def test_maps(problem: prudent.DecisionProblem, count: int) -> None:
    low, high = problem.space.bounds
    forecasts = RNG.dirichlet([1, 1, 1], 200) if problem is CLASSES else low + (high - low) * RNG.random((200, 2))
    policy = prudent.RobustPolicy(problem, GUARANTEE).fit(forecasts)
    display = plots.PolicyDisplay.from_policy(policy, forecasts)
    assert display.points.shape == (count, problem.dimension)
    problem.space.place(display.points, "points")
    np.testing.assert_array_equal(display.mixtures, policy.predict_proba(display.points))
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    played = [str(a) for a, used in zip(problem.actions, display.mixtures.any(axis=0), strict=True) if used]
    assert legend == [*played, "mixture"]
    if problem is CLASSES:
        texts = {text.get_text() for text in display.ax_.texts}
        assert texts == {"sun", "rain", "snow"}
    else:
        (image,) = display.ax_.get_images()
        pixel = image.get_array()[0, 0]
        first = display.mixtures[0] @ np.array(plots.style.action_colors(problem.n_actions))
        np.testing.assert_allclose(pixel, first)


def test_a_policy_of_many_coordinates_has_no_map() -> None:
    problem = prudent.DecisionProblem(np.eye(4))
    with pytest.raises(prudent.InputError, match="one or two coordinates"):
        plots.PolicyDisplay.from_policy(prudent.PlugInPolicy(problem))
    with pytest.raises(prudent.InputError, match="one coordinate"):
        plots.BeliefDisplay.from_policy(prudent.PlugInPolicy(problem))


def test_beliefs_are_those_of_the_policy() -> None:
    display = plots.BeliefDisplay.from_policy(POLICY)
    line = next(line for line in display.ax_.lines if line.get_label() == "worst-case belief")
    np.testing.assert_array_equal(line.get_ydata(), POLICY.worst_case_belief(line.get_xdata())[:, 0])
    np.testing.assert_allclose(display.best[:, 0], [0, 1 / 6, 5 / 18], atol=1e-3)


def test_the_forest_shows_estimates_and_intervals() -> None:
    wrong = RNG.binomial(1, np.clip(1.4 * FORECASTS, 0, 1))
    result = prudent.audit(FORECASTS, wrong, guarantees.SelfOrthogonal(intercept=True))
    ax = plots.AuditDisplay(result).plot().ax_
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1]
    bars = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 2]
    np.testing.assert_array_equal([float(dot.get_xdata()[0]) for dot in dots], result.estimates)
    np.testing.assert_array_equal([bar.get_xdata() for bar in bars], result.intervals)
    assert result.rejected
    assert {dot.get_marker() for dot in dots} == {"X"}
    reach = [patch.get_x() + patch.get_width() for patch in ax.patches]
    np.testing.assert_allclose(reach, result.slack[:, 0])
    assert "violated" in ax.get_title(loc="left")


def test_prices_are_drawn_and_computed() -> None:
    result = prudent.price_of_robustness(LINE, GUARANTEE, FORECASTS, [0, 0.02, 0.1])
    for slack, guaranteed, worst in zip(result.slacks, result.guaranteed, result.plug_in, strict=True):
        policy = prudent.RobustPolicy(LINE, GUARANTEE, slack=slack).fit(FORECASTS)
        assert guaranteed == policy.value_
        plug_in = prudent.worst_case(prudent.PlugInPolicy(LINE), FORECASTS, guarantee=GUARANTEE, slack=slack)
        assert worst == plug_in.value
    assert (result.guaranteed >= result.plug_in - 1e-9).all()
    assert (np.diff(result.guaranteed) <= 1e-9).all()
    assert (result.price >= -1e-12).all()
    assert result.to_frame().shape == (3, 5)
    lines = {line.get_label(): line for line in plots.RobustnessPriceDisplay(result).plot().ax_.lines}
    np.testing.assert_array_equal(lines["robust, guaranteed"].get_ydata(), result.guaranteed)
    np.testing.assert_array_equal(lines["robust, if forecasts are right"].get_ydata(), result.nominal)
    np.testing.assert_array_equal(lines["plug-in, guaranteed"].get_ydata(), result.plug_in)
    for bad in ([0.1, 0.05], [-1.0], []):
        with pytest.raises(prudent.InputError, match="increasing"):
            prudent.price_of_robustness(LINE, GUARANTEE, FORECASTS, bad)


def test_the_transition_ends_in_best_responding() -> None:
    result = prudent.sharp_transition(LINE, FORECASTS)
    assert len(result.names) == 3 + LINE.n_actions
    assert (np.diff(result.guaranteed) >= -1e-9).all()
    assert (result.guaranteed >= result.plug_in - 1e-9).all()
    assert result.guaranteed[-1] == pytest.approx(result.ceiling, abs=1e-9)
    assert result.plug_in[-1] == pytest.approx(result.ceiling, abs=1e-9)
    assert result.reached is not None
    assert result.guaranteed[0] == pytest.approx(prudent.SafetyPolicy(LINE).value_)
    display = plots.TransitionDisplay(result).plot()
    lines = {line.get_label(): line for line in display.ax_.lines}
    np.testing.assert_array_equal(lines["best policy"].get_ydata(), result.guaranteed)
    np.testing.assert_array_equal(lines["best responding"].get_ydata(), result.plug_in)
    twin = next(ax for ax in display.figure_.axes if ax is not display.ax_)
    np.testing.assert_array_equal([bar.get_height() for bar in twin.patches], result.distance)
    own = prudent.sharp_transition(LINE, FORECASTS, [guarantees.Nothing(), GUARANTEE], names=["none", "own"])
    assert own.names == ("none", "own")
    assert own.reached is None
    with pytest.raises(prudent.InputError, match="one entry per guarantee"):
        prudent.sharp_transition(LINE, FORECASTS, [GUARANTEE], names=["a", "b"])


def test_bars_are_the_table() -> None:
    result = prudent.stress_test(HABITS, FORECASTS, OUTCOMES, guarantee=GUARANTEE)
    ax = plots.StressTestDisplay(result).plot().ax_
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, -1)
    np.testing.assert_array_equal(widths, np.array(list(result.columns.values())).T)
    assert [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()] == list(result.columns)


@pytest.mark.parametrize(
    "display", [plots.AuditDisplay, plots.RobustnessPriceDisplay, plots.TransitionDisplay, plots.StressTestDisplay]
)
def test_other_results_are_refused(display: Any) -> None:
    with pytest.raises(prudent.InputError, match="result must come from"):
        display("a result")
