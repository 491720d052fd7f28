"""What a policy plays is drawn as the policy plays it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

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
    ax = plots.plot_policy(POLICY, FORECASTS)
    share = (POLICY.predict_proba(FORECASTS).max(axis=1) < 1 - 1e-9).mean()
    assert f"{100 * share:.3g}% of forecasts" in ax.get_title(loc="left")
    bands = [c for c in ax.collections if type(c).__name__ in ("PolyCollection", "FillBetweenPolyCollection")]
    assert len(bands) == 3
    points = (np.arange(1001) + 0.5) / 1001
    for band, top in zip(bands, POLICY.predict_proba(points).cumsum(axis=1).T, strict=True):
        assert np.isin(top.round(9), band.get_paths()[0].vertices[:, 1].round(9)).all()


def test_policies_fitted_on_named_columns_are_drawn_without_warnings() -> None:
    frame = pd.DataFrame({"risk": FORECASTS})
    policy = prudent.RobustPolicy(LINE, GUARANTEE).fit(frame)
    assert "a mixture of actions" in plots.plot_policy(policy, frame).get_title(loc="left")


def test_deterministic_policies_say_so() -> None:
    ax = plots.plot_policy(prudent.PlugInPolicy(LINE))
    assert "one action for certain" in ax.get_title(loc="left")


@pytest.mark.parametrize("problem", [BOX, CLASSES], ids=["two coordinates", "three classes"])
def test_maps(problem: prudent.DecisionProblem) -> None:
    low, high = problem.space.bounds
    forecasts = RNG.dirichlet([1, 1, 1], 200) if problem is CLASSES else low + (high - low) * RNG.random((200, 2))
    policy = prudent.RobustPolicy(problem, GUARANTEE).fit(forecasts)
    ax = plots.plot_policy(policy, forecasts)
    flat = np.array([path.vertices[:-1].mean(axis=0) for path in ax.collections[0].get_paths()])
    assert len(flat) == 90**2
    points = flat
    if problem is CLASSES:  # from the plane back to class probabilities
        third = flat[:, 1] / (np.sqrt(3) / 2)
        second = flat[:, 0] - third / 2
        points = np.column_stack([1 - second - third, second, third])
    mixtures = policy.predict_proba(points)
    colors = mixtures @ np.array([to_rgb(plots.style.COLORS[action]) for action in range(problem.n_actions)])
    same = np.isclose(ax.collections[0].get_facecolors()[:, :3], colors, atol=1e-6).all(axis=1)
    assert same.mean() > 0.99  # middles are rounded when they are drawn, and some lie on a threshold
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    played = [str(a) for a, used in zip(problem.actions, mixtures.any(axis=0), strict=True) if used]
    assert legend == played
    if problem is CLASSES:
        assert {text.get_text() for text in ax.texts} == {"sun", "rain", "snow"}
    else:
        assert (ax.get_xlim(), ax.get_ylim()) == ((0, 2), (0, 4))


def test_a_policy_of_many_coordinates_has_no_map() -> None:
    problem = prudent.DecisionProblem(np.eye(4))
    with pytest.raises(prudent.errors.InputError, match="one or two coordinates"):
        plots.plot_policy(prudent.PlugInPolicy(problem))


def test_two_classes_are_bands_over_the_probability_of_the_first() -> None:
    problem = prudent.DecisionProblem.from_payoffs([[1, 0], [0, 1], [0.6, 0.6]], classes=["no", "yes"])
    forecasts = RNG.dirichlet([1, 1], 200)
    policy = prudent.RobustPolicy(problem, GUARANTEE).fit(forecasts)
    ax = plots.plot_policy(policy, forecasts)
    assert ax.get_xlabel() == "y[no]"
    assert len(ax.get_legend().get_texts()) == 4  # three actions, and how often


def test_triangles_cover_the_classes_once() -> None:
    middles = plots.policy.map_cells(CLASSES.space, 4).mean(axis=1)
    assert len(np.unique(middles.round(12), axis=0)) == 16
    np.testing.assert_allclose(middles.mean(axis=0), 1 / 3)
    assert len(plots.policy.map_cells(CLASSES.space, 1)) == 1
