"""Pictures of results show their numbers."""

from __future__ import annotations

import numpy as np

import prudent
from prudent import guarantees, plots

LINE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
RNG = np.random.default_rng(0)
FORECASTS = RNG.beta(2, 3, size=800)
WRONG = RNG.binomial(1, np.clip(1.4 * FORECASTS, 0, 1))
GUARANTEE = guarantees.SelfOrthogonal()
POLICIES = {
    "plug-in": prudent.PlugInPolicy(LINE),
    "robust": prudent.RobustPolicy(LINE, GUARANTEE).fit(FORECASTS),
}


def test_the_forest_shows_estimates_and_intervals() -> None:
    result = prudent.audit(None, FORECASTS, WRONG, guarantee=guarantees.SelfOrthogonal(intercept=True))
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


def test_bars_end_at_the_guaranteed_utility() -> None:
    result = prudent.guarantee_ladder(LINE, FORECASTS, WRONG)
    ax = plots.LadderDisplay(result).plot().ax_
    np.testing.assert_allclose(
        [bar.get_x() + bar.get_width() for bar in ax.patches], [r.guaranteed for r in result.rungs]
    )
    dots = next(line for line in ax.lines if line.get_label() == "if the forecasts are right")
    np.testing.assert_array_equal(dots.get_xdata(), [rung.nominal for rung in result.rungs])
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == [
        rung.name if rung.holds else f"{rung.name} (violated)" for rung in result.rungs
    ]
    bold = [label.get_text() for label in labels if label.get_fontweight() == "bold"]
    assert len(bold) == 1
    assert bold[0].startswith(result.best.name)
    assert any(not rung.holds for rung in result.rungs)


def test_bars_are_the_table() -> None:
    result = prudent.stress_test(POLICIES, FORECASTS, WRONG, guarantee=GUARANTEE)
    ax = plots.StressTestDisplay(result).plot().ax_
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, -1)
    worlds = {name: values for name, values in result.columns.items() if name != "policy"}
    np.testing.assert_array_equal(widths, np.array(list(worlds.values())).T)
    assert [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()] == list(worlds)


def test_bars_of_negative_utilities_grow_with_them() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem.from_payoffs([[0.0, -10.0], [-3.0, -3.0]])
    q = rng.random(500)
    ladder = prudent.guarantee_ladder(problem, np.column_stack([1 - q, q]), (rng.random(500) < q).astype(int))
    bars = plots.LadderDisplay(ladder).plot().ax_.patches
    lengths = [bar.get_width() for bar in bars]
    assert int(np.argmax(lengths)) == [rung is ladder.best for rung in ladder.rungs].index(True)
    assert min(lengths) > 0
