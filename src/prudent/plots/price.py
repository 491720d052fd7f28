"""Guaranteed and nominal utility against slack: what robustness costs and what it buys."""

from __future__ import annotations

from typing import Any, Self

from prudent.errors import InputError
from prudent.plots.style import COLORS, axes, legend_beside, tidy, title
from prudent.price import RobustnessPrice, price_of_robustness
from prudent.writing import written

__all__ = ["RobustnessPriceDisplay"]


class RobustnessPriceDisplay:
    """The robust policy and best responding as slack grows.

    Parameters
    ----------
    result : RobustnessPrice

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import RobustnessPriceDisplay
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    >>> forecasts = np.random.default_rng(0).random(300)
    >>> display = RobustnessPriceDisplay.from_predictions(problem, prudent.guarantees.SelfOrthogonal(), forecasts)
    >>> display.ax_.get_ylabel()
    'expected utility'
    """

    def __init__(self, result: RobustnessPrice) -> None:
        if not isinstance(result, RobustnessPrice):
            raise InputError(f"result must come from price_of_robustness; got {type(result).__name__}.")
        self.result = result

    @classmethod
    def from_predictions(cls, problem: Any, guarantee: Any, forecasts: Any, *, ax: Any = None, **options: Any) -> Self:
        """Compute and draw; options go to :func:`prudent.price_of_robustness`."""
        return cls(price_of_robustness(problem, guarantee, forecasts, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw four lines and the floor."""
        result = self.result
        ax = axes(ax, (8.0, 4.2))
        x = result.slacks
        few = "o" if len(x) <= 20 else ""
        ax.plot(x, result.nominal, color=COLORS[0], marker=few, linestyle="--", label="robust, if forecasts are right")
        ax.plot(x, result.guaranteed, color=COLORS[0], marker=few, linewidth=2, label="robust, guaranteed")
        ax.axhline(result.plug_in_nominal, color=COLORS[5], linestyle="--", label="plug-in, if forecasts are right")
        ax.plot(x, result.plug_in, color=COLORS[5], marker="s" if few else "", linewidth=2, label="plug-in, guaranteed")
        ax.axhline(result.safety, color="0.4", linestyle=":", label="no forecast at all, guaranteed")
        ax.set(xlabel="slack of the guarantee (outcome units)", ylabel="expected utility")
        gained = float(result.guaranteed[0] - result.plug_in[0])
        paid = float(result.price[0])
        at = "without slack" if x[0] == 0 else f"at slack {written(x[0], 3)}"
        if gained <= 1e-9:
            finding = f"Robustness buys nothing {at}: best responding is already safe"
        else:
            finding = (
                f"Robustness buys {written(gained, 3)} of guaranteed utility for {written(paid, 3)} of "
                f"nominal utility {at}"
            )
        title(ax, finding, f"{result.guarantee!r:.80}")
        tidy(ax)
        legend_beside(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
