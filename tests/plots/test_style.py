"""What all displays have in common."""

from __future__ import annotations

import builtins
from collections.abc import Callable
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

MAKERS: dict[str, Callable[..., Any]] = {
    "AuditDisplay": lambda **o: plots.AuditDisplay.from_predictions(FORECASTS, OUTCOMES, GUARANTEE, **o),
    "BeliefDisplay": lambda **o: plots.BeliefDisplay.from_policy(POLICY, **o),
    "LadderDisplay": lambda **o: plots.LadderDisplay.from_predictions(FORECASTS, OUTCOMES, LINE, **o),
    "PolicyDisplay": lambda **o: plots.PolicyDisplay.from_policy(POLICY, FORECASTS, **o),
    "StressTestDisplay": lambda **o: plots.StressTestDisplay.from_policies(HABITS, FORECASTS, guarantee=GUARANTEE, **o),
}


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
        with pytest.raises(prudent.errors.MissingExtraError, match=r"prudent\[plots\]"):
            display.plot()

    def test_can_be_saved(self, name: str, tmp_path: Any) -> None:
        MAKERS[name]().figure_.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 5000


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"BeliefDisplay", "PolicyDisplay"}))
def test_other_results_are_refused(name: str) -> None:
    with pytest.raises(prudent.errors.InputError, match="result must come from"):
        getattr(plots, name)("a result")


@pytest.mark.parametrize("display", [plots.BeliefDisplay, plots.PolicyDisplay])
def test_other_policies_are_refused(display: Any) -> None:
    with pytest.raises(prudent.errors.InputError, match="policy must be a policy of this library"):
        display.from_policy("a policy")
