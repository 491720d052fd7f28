"""What all pictures have in common."""

from __future__ import annotations

import builtins
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import prudent
from prudent import guarantees, plots

LINE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
RNG = np.random.default_rng(0)
FORECASTS = RNG.beta(2, 3, size=800)
OUTCOMES = RNG.binomial(1, FORECASTS)
GUARANTEE = guarantees.SelfOrthogonal()
POLICY = prudent.RobustPolicy(LINE, GUARANTEE).fit(FORECASTS)
HABITS = {"plug-in": prudent.PlugInPolicy(LINE), "robust": POLICY}

AUDIT = prudent.audit(None, FORECASTS, OUTCOMES, guarantee=GUARANTEE)
SHOWN: dict[str, Any] = {
    "plot_audit": AUDIT,
    "plot_backtest": prudent.backtest(LINE, FORECASTS, OUTCOMES, periods=np.arange(800) // 100),
    "plot_ladder": prudent.guarantee_ladder(LINE, FORECASTS, OUTCOMES),
    "plot_policy": POLICY,
    "plot_stress_test": prudent.stress_test(HABITS, FORECASTS, guarantee=GUARANTEE),
}


def test_every_picture_is_checked() -> None:
    assert set(plots.__all__) == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
class TestEveryPicture:
    def test_is_drawn_into_the_axes_given(self, name: str) -> None:
        _, ax = plt.subplots()
        assert getattr(plots, name)(SHOWN[name], ax=ax) is ax
        assert ax.get_title(loc="left")
        before = len(plt.get_fignums())
        assert getattr(plots, name)(SHOWN[name]) is not ax
        assert len(plt.get_fignums()) == before + 1

    def test_says_what_to_install_without_matplotlib(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        load = builtins.__import__

        def without(module: str, *rest: Any) -> Any:
            if module.startswith("matplotlib"):
                raise ImportError(module)
            return load(module, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(prudent.errors.MissingExtraError, match=r"prudent\[plots\]"):
            getattr(plots, name)(SHOWN[name])

    def test_can_be_saved(self, name: str, tmp_path: Any) -> None:
        getattr(plots, name)(SHOWN[name]).figure.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 5000

    def test_refuses_other_things(self, name: str) -> None:
        with pytest.raises(prudent.errors.InputError, match=r"(result must come from|policy must be a policy of this)"):
            getattr(plots, name)("a result")
