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
    ax = plots.plot_audit(result)
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1]
    bars = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 2]
    np.testing.assert_array_equal([float(dot.get_xdata()[0]) for dot in dots], result.estimates)
    np.testing.assert_array_equal([bar.get_xdata() for bar in bars], result.intervals)
    assert result.rejected
    assert {dot.get_marker() for dot in dots} == {"X"}
    reach = [patch.get_x() + patch.get_width() for patch in ax.patches]
    np.testing.assert_allclose(reach, result.slack[:, 0])
    assert "violated" in ax.get_title(loc="left")


def test_the_ladder_shows_what_is_guaranteed_and_nominal() -> None:
    result = prudent.guarantee_ladder(LINE, FORECASTS, WRONG)
    ax = plots.plot_ladder(result)
    shown = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_array_equal(shown["guaranteed"], [rung.guaranteed for rung in result.rungs])
    np.testing.assert_array_equal(shown["if the forecasts are right"], [rung.nominal for rung in result.rungs])
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
    ax = plots.plot_stress_test(result)
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, -1)
    worlds = {name: values for name, values in result.columns.items() if name != "policy"}
    np.testing.assert_array_equal(widths, np.array(list(worlds.values())).T)
    assert [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()] == list(worlds)
