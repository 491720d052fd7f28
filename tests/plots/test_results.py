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
    order = result.p_values.argsort(kind="stable")
    bars = [part[:, 0] for lines in ax.collections for part in lines.get_segments()]
    np.testing.assert_array_equal(bars, result.intervals[order])
    shown = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(shown["not zero"].get_xdata(), result.estimates[order])
    assert len(result.rejected) == len(result.moment_names)
    assert shown["not zero"].get_marker() == "X"
    assert shown["may be zero"].get_xdata().size == 0
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
    assert repr(result.best.name) in ax.get_title(loc="left").replace("\n", "")
    assert any(not rung.holds for rung in result.rungs)


def test_bars_are_the_table() -> None:
    result = prudent.stress_test(POLICIES, FORECASTS, WRONG, guarantee=GUARANTEE)
    ax = plots.plot_stress_test(result)
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(3, -1)
    np.testing.assert_array_equal(widths, [result.nominal, result.realised, result.worst])
    assert [label.get_text() for label in ax.get_yticklabels()] == list(result.names)
