"""The ladder of guarantees as one picture."""

from __future__ import annotations

from typing import Any, Self

from prudent.auditing import GuaranteeLadder, guarantee_ladder
from prudent.errors import InputError, MissingExtraError
from prudent.writing import written

__all__ = ["LadderDisplay"]

_GUARANTEED, _CHOSEN, _NOMINAL = "#7f9fc4", "#1f4e87", "#d1682c"


class LadderDisplay:
    """What every guarantee on a ladder is worth.

    Parameters
    ----------
    ladder : GuaranteeLadder

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import LadderDisplay
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts).astype(float)
    >>> display = LadderDisplay.from_predictions(forecasts, outcomes, problem)
    >>> display.ax_.get_xlabel()
    'expected utility'
    """

    def __init__(self, ladder: GuaranteeLadder) -> None:
        if not isinstance(ladder, GuaranteeLadder):
            raise InputError(f"ladder must come from guarantee_ladder; got {type(ladder).__name__}.")
        self.ladder = ladder

    @classmethod
    def from_predictions(cls, forecasts: Any, outcomes: Any, problem: Any, *, ax: Any = None, **options: Any) -> Self:
        """Make the ladder and draw it; options go to :func:`prudent.guarantee_ladder`."""
        return cls(guarantee_ladder(forecasts, outcomes, problem, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw bars of guaranteed utility, dots of what the same policy gets if forecasts are right."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise MissingExtraError("matplotlib", "plots", "plot") from error
        rungs, best = self.ladder.rungs, self.ladder.best
        if ax is None:
            _, ax = plt.subplots(figsize=(7.5, 0.55 * len(rungs) + 1.6), layout="constrained")
        places = range(len(rungs))
        colors = [_CHOSEN if rung is best else _GUARANTEED for rung in rungs]
        names = [rung.name if rung.holds else f"{rung.name} (violated)" for rung in rungs]
        plug_in = best.nominal + best.given_up
        start = self._frame(ax, [value for rung in rungs for value in (rung.guaranteed, rung.nominal)] + [plug_in])
        lengths = [rung.guaranteed - start for rung in rungs]
        ax.barh(places, lengths, left=start, color=colors, height=0.6)
        ax.plot([rung.nominal for rung in rungs], places, "o", color=_NOMINAL, label="if the forecasts are right")
        ax.axvline(plug_in, color=_NOMINAL, linestyle=":", linewidth=1, label="best responding, if they are right")
        for place, rung in zip(places, rungs, strict=True):
            ax.annotate(
                written(rung.guaranteed, 3),
                (max(rung.guaranteed, start), place),
                textcoords="offset points",
                xytext=(-4, 0),
                ha="right",
                va="center",
                color="white",
                fontsize=9,
            )
        ax.set_yticks(list(places), names)
        for label, rung in zip(ax.get_yticklabels(), rungs, strict=True):
            label.set_fontweight("bold" if rung is best else "normal")
        ax.set_xlabel("expected utility")
        ax.set_title(
            f"What each guarantee is worth: stand on {best.name!r}\n"
            f"bars: guaranteed with {100 * self.ladder.confidence:g}% confidence, {self.ladder.n_rows:,} rows",
            fontsize=10,
            loc="left",
        )
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _frame(ax: Any, values: list[float]) -> float:
        """Show bars from zero where that leaves differences visible, else from a little below the least."""
        least, most = min(values), max(values)
        room = max(most - least, 1e-12)
        start = 0.0 if 0 <= least <= 3 * room else least - 0.25 * room
        ax.set_xlim(start, most + 0.08 * room)
        ax.margins(y=0.02)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return start
