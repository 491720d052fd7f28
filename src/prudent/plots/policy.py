"""What a policy plays, over all forecasts: bands, a map, or a triangle of classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.plots.style import (
    HATCHES,
    action_colors,
    axes,
    legend_beside,
    legend_height,
    percent,
    tidy,
    title,
    wrapped,
)
from prudent.policies import Policy
from prudent.problem import DecisionProblem
from prudent.spaces import Simplex

__all__ = ["PolicyDisplay"]

_MIXED = 1e-9
_HEIGHT = np.sqrt(3) / 2
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, _HEIGHT]])


class PolicyDisplay:
    """A map from forecasts to actions.

    One coordinate gives bands whose heights are probabilities; two a map; three classes a triangle, with one class per
    corner. Where actions are mixed their colours are mixed, and maps are hatched.

    Parameters
    ----------
    problem : DecisionProblem
    points : array of shape (g, d)
        Forecasts at which the policy was asked: increasing, a square grid row by row, or the middles of the triangles.
    mixtures : array of shape (g, m)
    forecasts : array of shape (n, d) or None
        A sample, for the histogram or dots.
    mixed_share : float
        Share of the sample (without one, of the points) that gets a mixture.

    Attributes
    ----------
    ax_, figure_

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import PolicyDisplay
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
    >>> forecasts = np.random.default_rng(0).beta(2, 3, size=2000)
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal()).fit(forecasts)
    >>> PolicyDisplay.from_policy(policy, forecasts).ax_.get_ylabel()
    'probability'
    """

    def __init__(
        self,
        problem: DecisionProblem,
        points: FloatArray,
        mixtures: FloatArray,
        forecasts: FloatArray | None,
        mixed_share: float,
    ) -> None:
        self.problem = problem
        self.points = points
        self.mixtures = mixtures
        self.forecasts = forecasts
        self.mixed_share = mixed_share

    @classmethod
    def from_policy(
        cls,
        policy: Policy,
        forecasts: Any = None,
        *,
        resolution: int | None = None,
        name: str = "forecast",
        ax: Any = None,
    ) -> Self:
        """Ask a policy everywhere and draw what it says.

        Parameters
        ----------
        policy : Policy
        forecasts : array, optional
            A sample to show, and to count mixtures on.
        resolution : int, optional
            Points per axis.
        name : str
            What a forecast is, for the axis of one coordinate.
        """
        if not isinstance(policy, Policy):
            raise InputError(f"policy must be a policy of this library; got {type(policy).__name__}.")
        check_is_fitted(policy)
        problem = policy._problem
        points = _points(problem, resolution)
        mixtures = policy._mixtures(points)
        sample = None if forecasts is None else problem.space.place(forecasts, "forecasts")[0]
        asked = mixtures if sample is None else policy.predict_proba(forecasts)
        share = float((asked.max(axis=1) < 1 - _MIXED).mean())
        return cls(problem, points, mixtures, sample, share).plot(ax=ax, name=name)

    def plot(self, ax: Any = None, *, name: str = "forecast") -> Self:
        """Draw the map."""
        simplex, d = isinstance(self.problem.space, Simplex), self.problem.dimension
        tall = legend_height(wrapped(self.problem.actions))
        ax = axes(ax, (8.0, max(3.6, tall)) if d == 1 else (7.6, max(5.0, tall)))
        self._handles(ax)
        if simplex and d == 3:
            self._triangle(ax)
        elif d == 2:
            self._map(ax)
        else:
            self._bands(ax, name)
        what = "forecasts get" if self.forecasts is not None else "the forecast range gets"
        if self.mixed_share > 0:
            finding = f"Hedge: {percent(self.mixed_share)} of {what} a mixture of actions"
        else:
            finding = "Every forecast gets one action for certain"
        shown = "" if self.forecasts is None else f"{len(self.forecasts):,} forecasts"
        title(ax, finding, shown)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _handles(self, ax: Any) -> None:
        """Put the actions that are ever played into the legend."""
        from matplotlib.patches import Patch

        colors = action_colors(self.problem.n_actions)
        played = [a for a in range(self.problem.n_actions) if self.mixtures[:, a].any()]
        line = self.problem.dimension == 1
        patches = [
            Patch(facecolor=colors[a], hatch=_hatch(a) if line else "", edgecolor="white", label=label)
            for a, label in zip(played, wrapped([self.problem.actions[a] for a in played]), strict=True)
        ]
        if not line and (self.mixtures.max(axis=1) < 1 - _MIXED).any():
            patches.append(Patch(facecolor="none", hatch="///", edgecolor="0.25", label="mixture"))
        legend_beside(ax, patches, heading="action")

    def _bands(self, ax: Any, name: str) -> None:
        x = self.points[:, 0]
        floor = np.zeros(len(x))
        for a, color in enumerate(action_colors(self.problem.n_actions)):
            if self.mixtures[:, a].any():
                top = floor + self.mixtures[:, a]
                ax.fill_between(
                    x, floor, top, facecolor=color, hatch=_hatch(a), edgecolor="white", linewidth=0, step="mid"
                )
                floor = top
        if self.forecasts is not None:
            low, high = (float(bound[0]) for bound in self.problem.space.bounds)
            counts, edges = np.histogram(self.forecasts[:, 0], bins=60, range=(low, high))
            heights = 0.3 * counts / counts.max()
            ax.stairs(heights, edges, fill=True, color="white", alpha=0.75)
            ax.stairs(heights, edges, color="black", linewidth=1.0)
            ax.annotate(
                "how often",
                (edges[counts.argmax()], 0.3),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize=8,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )
        ax.set(xlim=(x[0], x[-1]), ylim=(0, 1), xlabel=name, ylabel="probability")

    def _map(self, ax: Any) -> None:
        side = int(np.sqrt(len(self.points)))
        low, high = self.points[0], self.points[-1]
        extent = (low[0], high[0], low[1], high[1])
        image = (self.mixtures @ np.array(action_colors(self.problem.n_actions))).reshape(side, side, 3)
        ax.imshow(np.clip(image, 0, 1), origin="lower", extent=extent, aspect="auto", interpolation="nearest")
        x, y = np.linspace(low[0], high[0], side), np.linspace(low[1], high[1], side)
        certain = self.mixtures.max(axis=1).reshape(side, side)
        if (certain < 1 - _MIXED).any():
            ax.contourf(x, y, certain, levels=[0, 1 - 1e-6], colors="none", hatches=["///"])
        if self.forecasts is not None:
            ax.plot(*_some(self.forecasts).T, ".", color="black", markersize=2, alpha=0.5)
        names = self.problem.space.coordinate_names
        ax.set(xlim=extent[:2], ylim=extent[2:], xlabel=f"forecast of {names[0]}", ylabel=f"forecast of {names[1]}")
        tidy(ax)

    def _triangle(self, ax: Any) -> None:
        from matplotlib.collections import PolyCollection

        side = int(np.sqrt(len(self.points)))
        triangles = _triangles(side)
        colors = np.clip(self.mixtures @ np.array(action_colors(self.problem.n_actions)), 0, 1)
        flat = [triangle @ _CORNERS for triangle in triangles]
        ax.add_collection(PolyCollection(flat, facecolors=colors, edgecolors=colors, linewidths=0.3))
        mixed = self.mixtures.max(axis=1) < 1 - _MIXED
        if mixed.any():
            area = [triangle for triangle, open_ in zip(flat, mixed, strict=True) if open_]
            ax.add_collection(PolyCollection(area, facecolors="none", edgecolors="0.25", linewidths=0, hatch="///"))
        if self.forecasts is not None:
            ax.plot(*(_some(self.forecasts) @ _CORNERS).T, ".", color="black", markersize=2, alpha=0.5)
        ax.plot(*np.vstack([_CORNERS, _CORNERS[:1]]).T, color="0.25", linewidth=0.8)
        classes = wrapped([name[2:-1] for name in self.problem.space.coordinate_names], 18)
        places = [("left", "top", -6), ("right", "top", -6), ("center", "bottom", 5)]
        for corner, label, (across, up, shift) in zip(_CORNERS, classes, places, strict=True):
            ax.annotate(
                label, corner, xytext=(0, shift), textcoords="offset points", ha=across, va=up, fontweight="bold"
            )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.12, _HEIGHT + 0.1), aspect="equal")
        ax.set_axis_off()


def _points(problem: DecisionProblem, resolution: int | None) -> FloatArray:
    space, d = problem.space, problem.dimension
    if isinstance(space, Simplex):
        if d == 2:
            share = _strictly_inside(np.zeros(1), np.ones(1), resolution or 1001)
            return np.hstack([share, 1 - share])
        if d == 3:
            return _triangles(resolution or 90).mean(axis=1)
    elif d == 1:
        return _strictly_inside(*space.bounds, resolution or 1001)
    elif d == 2:
        low, high = space.bounds
        axis = [_strictly_inside(low[j : j + 1], high[j : j + 1], resolution or 241)[:, 0] for j in range(2)]
        first, second = np.meshgrid(*axis)
        return np.column_stack([first.ravel(), second.ravel()])
    raise InputError(
        f"a policy map needs one or two coordinates or two or three classes; this problem has {d}. Draw the forecasts' "
        f"actions against a coordinate of your choice instead."
    )


def _strictly_inside(low: FloatArray, high: FloatArray, count: int) -> FloatArray:
    """Return an even grid of cell middles, which tests with logarithms take, too."""
    return low + (high - low) * ((np.arange(count) + 0.5) / count)[:, None]


def _triangles(side: int) -> FloatArray:
    """Cut the triangle of three classes into ``side**2`` equal ones, in class probabilities, shape (., 3, 3)."""
    cells = []
    for i in range(side):
        for j in range(side - i):
            k = side - 1 - i - j
            cells.append([[i + 1, j, k], [i, j + 1, k], [i, j, k + 1]])
            if k > 0:
                cells.append([[i + 1, j + 1, k - 1], [i + 1, j, k], [i, j + 1, k]])
    return np.array(cells, dtype=np.float64) / side


def _some(forecasts: FloatArray, most: int = 1500) -> FloatArray:
    """Return evenly spaced rows, few enough to see through."""
    return forecasts[:: max(1, -(-len(forecasts) // most))]


def _hatch(action: int) -> str:
    return HATCHES[action % len(HATCHES)]
