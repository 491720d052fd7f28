"""What a policy plays is drawn as the policy plays it."""

from __future__ import annotations

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
GUARANTEE = guarantees.SelfOrthogonal()
POLICY = prudent.RobustPolicy(LINE, GUARANTEE).fit(FORECASTS)


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
    with pytest.raises(prudent.errors.InputError, match="one or two coordinates"):
        plots.PolicyDisplay.from_policy(prudent.PlugInPolicy(problem))


def test_two_classes_are_bands_over_the_probability_of_the_first() -> None:
    problem = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1], [0.6, 0.6]], classes=["no", "yes"])
    forecasts = RNG.dirichlet([1, 1], 200)
    policy = prudent.RobustPolicy(problem, GUARANTEE).fit(forecasts)
    display = plots.PolicyDisplay.from_policy(policy, forecasts)
    assert display.ax_.get_xlabel() == "y[no]"
    np.testing.assert_array_equal(display.mixtures, policy.predict_proba(display.points))


def test_triangles_cover_the_classes_once() -> None:
    display = plots.PolicyDisplay.from_policy(prudent.PlugInPolicy(CLASSES), resolution=4)
    assert len(np.unique(display.points.round(12), axis=0)) == 16
    np.testing.assert_allclose(display.points.mean(axis=0), 1 / 3)
    assert len(plots.PolicyDisplay.from_policy(prudent.PlugInPolicy(CLASSES), resolution=1).points) == 1


def test_beliefs_are_those_of_the_policy() -> None:
    display = plots.BeliefDisplay.from_policy(POLICY)
    line = next(line for line in display.ax_.lines if line.get_label() == "worst-case belief")
    np.testing.assert_array_equal(line.get_ydata(), POLICY.worst_case_belief(line.get_xdata())[:, 0])
    np.testing.assert_allclose([band.first for band in display.best], [0, 1 / 6, 5 / 18])
    assert [band.actions for band in display.best] == [("0.8x",), ("1.0x",), ("1.2x",)]


def test_beliefs_of_many_coordinates_have_no_line() -> None:
    with pytest.raises(prudent.errors.InputError, match="one coordinate"):
        plots.BeliefDisplay.from_policy(prudent.PlugInPolicy(prudent.DecisionProblem(np.eye(4))))
