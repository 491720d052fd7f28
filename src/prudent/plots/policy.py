"""What a policy plays over all forecasts, as bands, a map or a triangle of classes, and what it guards against."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.formatting import format_number
from prudent.plots.style import Display, action_colors, axes, filling, legend_height, wrapped
from prudent.policies import Band, PlugInPolicy, Policy
from prudent.problem import DecisionProblem

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


@dataclass(eq=False)
class PolicyDisplay(Display):
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

    problem: DecisionProblem
    points: FloatArray
    mixtures: FloatArray
    forecasts: FloatArray | None
    mixed_share: float

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
        problem = _fitted_problem(policy)
        points = _points(problem, resolution)
        mixtures = policy._mixtures(points)
        sample = None if forecasts is None else problem.space.place(forecasts, "forecasts")[0]
        asked = mixtures if sample is None else policy.predict_proba(forecasts)
        share = float(_mixed(asked).mean())
        return cls(problem, points, mixtures, sample, share).plot(ax=ax, name=name)

    def plot(self, ax: Any = None, *, name: str = "forecast") -> Self:
        """Draw the map."""
        problem, labels, line = self.problem, wrapped(self.problem.actions), _freedom(self.problem) == 1
        width, height = (8.0, 3.6) if line else (7.6, 5.0)
        ax = axes(ax, (width, max(height, legend_height(labels))))
        played = np.flatnonzero(self.mixtures.any(axis=0)).tolist()
        if line:
            self._bands(ax, {action: labels[action] for action in played})
            ax.set_xlabel(name if problem.dimension == 1 else problem.space.coordinate_names[0])
        else:
            colors, mixed = action_colors(problem.n_actions), _mixed(self.mixtures)
            draw = self._triangle if problem.space.is_simplex else self._map
            draw(ax, np.clip(self.mixtures @ np.array(colors), 0, 1), mixed)
            for action in played:  # for the legend
                ax.fill(np.nan, np.nan, facecolor=colors[action], edgecolor="white", linewidth=0, label=labels[action])
            if mixed.any():
                ax.fill(np.nan, np.nan, facecolor="none", hatch="///", edgecolor="0.25", label="mixture")
        what, shown = "the forecast range gets", ""
        if self.forecasts is not None:
            what, shown = "forecasts get", f"{len(self.forecasts):,} forecasts"
        finding = "Every forecast gets one action for certain"
        if self.mixed_share > 0:
            finding = f"Hedge: {_percent(self.mixed_share)} of {what} a mixture of actions"
        return self._finished(ax, finding, shown, heading="action")

    def _bands(self, ax: Any, labels: dict[int, str]) -> None:
        x, tops = self.points[:, 0], self.mixtures.cumsum(axis=1)
        for action, label in labels.items():
            top, look = tops[:, action], filling(action, self.problem.n_actions)
            ax.fill_between(x, top - self.mixtures[:, action], top, step="mid", label=label, **look)
        if self.forecasts is not None:
            counts, edges = np.histogram(self.forecasts[:, 0], bins=60, range=self.problem.space.interval)
            heights = 0.3 * counts / counts.max()
            ax.stairs(heights, edges, fill=True, facecolor=(1, 1, 1, 0.75), edgecolor="black", linewidth=1.0)
            ax.annotate(
                "how often",
                (edges[counts.argmax()], 0.3),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize=8,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )
        ax.set(xlim=(x[0], x[-1]), ylim=(0, 1), ylabel="probability")

    def _map(self, ax: Any, colors: FloatArray, mixed: Any) -> None:
        side = int(np.sqrt(len(self.points)))
        extent = tuple(self.points[[0, -1]].T.ravel())
        where = {"origin": "lower", "extent": extent}
        ax.imshow(colors.reshape(side, side, 3), aspect="auto", interpolation="nearest", **where)
        if mixed.any():
            ax.contourf(mixed.reshape(side, side), levels=[0.5, 1], colors="none", hatches=["///"], **where)
        self._dots(ax, np.eye(2))
        ax.axis(extent)
        across, up = self.problem.space.coordinate_names
        ax.set(xlabel=f"forecast of {across}", ylabel=f"forecast of {up}")

    def _triangle(self, ax: Any, colors: FloatArray, mixed: Any) -> None:
        from matplotlib.collections import PolyCollection

        flat = triangles(int(np.sqrt(len(self.points)))) @ _CORNERS
        ax.add_collection(PolyCollection(flat, facecolors=colors, edgecolors="face", linewidths=0.3))
        ax.add_collection(PolyCollection(flat[mixed], facecolors="none", edgecolors="0.25", linewidths=0, hatch="///"))
        self._dots(ax, _CORNERS)
        ax.plot(*np.vstack([_CORNERS, _CORNERS[:1]]).T, color="0.25", linewidth=0.8)
        classes = wrapped([name[2:-1] for name in self.problem.space.coordinate_names], 18)
        places = 1.04 * _CORNERS - 0.04 * _CORNERS.mean(axis=0)
        for (x, y), label, ha in zip(places, classes, ("left", "right", "center"), strict=True):
            ax.text(x, y, label, ha=ha, va="bottom" if y > 0 else "top", fontweight="bold")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.12, _CORNERS[2, 1] + 0.1), aspect="equal")
        ax.set_axis_off()

    def _dots(self, ax: Any, corners: FloatArray) -> None:
        """Draw evenly spaced rows of the sample, few enough to see through."""
        if self.forecasts is not None:
            some = self.forecasts[:: -(-len(self.forecasts) // 1500)]
            ax.plot(*(some @ corners).T, ".", color="black", markersize=2, alpha=0.5)


@dataclass(eq=False)
class BeliefDisplay(Display):
    """Worst-case beliefs against forecasts, over bands of the action that is best at each belief.

    Parameters
    ----------
    problem : DecisionProblem
        With one coordinate.
    forecasts, beliefs : array of shape (g,)
    best : tuple of Band
        Beliefs between which an action is best.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import BeliefDisplay
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"])
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal())
    >>> BeliefDisplay.from_policy(policy.fit(np.linspace(0, 1, 200))).ax_.get_xlabel()
    'forecast'
    """

    problem: DecisionProblem
    forecasts: FloatArray
    beliefs: FloatArray
    best: tuple[Band, ...]

    @classmethod
    def from_policy(cls, policy: Policy, forecasts: Any = None, *, name: str = "forecast", ax: Any = None) -> Self:
        """Ask a policy for its beliefs, at forecasts or on an even grid, and draw them."""
        problem = _fitted_problem(policy)
        if problem.dimension != 1:
            raise InputError(f"beliefs are drawn for one coordinate; this problem has {problem.dimension}.")
        points = _points(problem, None)
        if forecasts is not None:
            points = np.sort(problem.space.place(forecasts, "forecasts")[0], axis=0)
        best = PlugInPolicy(problem).bands()
        return cls(problem, points[:, 0], policy._beliefs(points)[:, 0], best).plot(ax=ax, name=name)

    def plot(self, ax: Any = None, *, name: str = "forecast") -> Self:
        """Draw beliefs, the diagonal, and the bands."""
        labels = wrapped([f"best: {action}" for action in self.problem.actions])
        ax = axes(ax, (7.6, max(4.6, legend_height(labels))))
        ends = self.problem.space.interval
        for band in self.best:
            action = int(band.at_first.argmax())
            look = filling(action, self.problem.n_actions)
            ax.axhspan(band.first, band.last, alpha=0.3, label=labels[action], **look)
        ax.plot(ends, ends, color="0.3", linestyle=":", linewidth=1.2, label="the forecast itself")
        ax.plot(self.forecasts, self.beliefs, color="black", linewidth=2, label="worst-case belief")
        ax.set(xlim=ends, ylim=ends, xlabel=name, ylabel="belief")
        apart = float(np.abs(self.beliefs - self.forecasts).mean())
        return self._finished(
            ax,
            f"The policy guards against beliefs {format_number(apart, 2)} away from the forecast on average",
            "one worst belief per forecast; where several are equally bad, their middle",
        )


def _mixed(mixtures: FloatArray) -> Any:
    return mixtures.max(axis=1) < 1 - 1e-9


def _freedom(problem: DecisionProblem) -> int:
    """Return how many coordinates a forecast may choose."""
    return problem.dimension - problem.space.is_simplex


def _points(problem: DecisionProblem, resolution: int | None) -> FloatArray:
    space, freedom = problem.space, _freedom(problem)
    if freedom > 2:
        raise InputError(
            f"a policy map needs one or two coordinates or two or three classes; this problem has {problem.dimension}. "
            f"Draw the forecasts' actions against a coordinate of your choice instead."
        )
    if space.dimension == 3:
        return triangles(resolution or 90).mean(axis=1)
    # Middles of equal cells are strictly inside: tests may take logarithms.
    count = resolution or (1001, 241)[freedom - 1]
    grid = np.meshgrid(*[(np.arange(count) + 0.5) / count] * freedom)
    shares = np.column_stack([axis.ravel() for axis in grid])
    return np.hstack([shares, 1 - shares]) if space.is_simplex else space.bounds[0] + space.widths * shares


def triangles(side: int) -> FloatArray:
    """Cut the triangle of three classes into ``side**2`` equal ones, in class probabilities, shape (., 3, 3)."""
    upward, downward = (
        np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]).reshape(-1, 1, 3)
        for n in (side - 1, side - 2)
    )
    return np.concatenate([upward + np.eye(3), downward + 1 - np.eye(3)]) / side


def _percent(share: float) -> str:
    """Write a share so that 0% and 100% mean none and all."""
    if 0 < share < 0.01:
        return "under 1%"
    if 0.99 < share < 1:
        return "over 99%"
    return f"{100 * share:.0f}%"


def _fitted_problem(policy: Policy) -> DecisionProblem:
    """Return the problem of a fitted policy."""
    if not isinstance(policy, Policy):
        raise InputError(f"policy must be a policy of this library; got {type(policy).__name__}.")
    check_is_fitted(policy)
    return policy._problem
