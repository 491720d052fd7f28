"""What a policy plays over all forecasts, as bands, a map or a triangle of classes."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.formatting import format_number
from prudent.plots.style import axes, filling, finish, require, wrapped
from prudent.policies import Policy
from prudent.spaces import Space

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
_POINTS, _SIDE = 1001, 90


def plot_policy(policy: Policy, forecasts: Any = None, ax: Any = None) -> Any:
    """Draw which actions are played at which forecast.

    One coordinate gives bands whose heights are probabilities; two a map; three classes a triangle, with one class per
    corner. Where actions are mixed their colours are mixed.

    Parameters
    ----------
    policy : Policy
    forecasts : array, optional
        A sample, shown as a histogram or as dots; the share of mixtures is counted on it.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
    >>> forecasts = np.random.default_rng(0).beta(2, 3, size=2000)
    >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal()).fit(forecasts)
    >>> prudent.plots.plot_policy(policy, forecasts).get_ylabel()
    'probability'
    """
    require(policy, Policy, "policy must be a policy of this library")
    check_is_fitted(policy)
    problem = policy._problem
    sample = None if forecasts is None else problem.space.place(forecasts, "forecasts")[0]
    freedom = problem.space.free_dimension
    if freedom > 2:
        raise InputError(
            f"a policy map needs one or two coordinates or two or three classes; this problem has {problem.dimension}. "
            f"Draw the forecasts' actions against a coordinate of your choice instead."
        )
    labels = wrapped(problem.actions)
    draw, height = (_bands, 3.6) if freedom == 1 else (_map, 5.0)
    ax = axes(ax, height, labels)
    played, what, shown = draw(ax, policy, sample, labels), "the forecast range gets", ""
    if sample is not None:
        played, what, shown = policy.predict_proba(forecasts), "forecasts get", f"{len(sample):,} forecasts"
    share = float((played.max(axis=1) < 1 - 1e-9).mean())
    finding = f"Hedge: {format_number(100 * share, 3)}% of {what} a mixture of actions"
    return finish(ax, finding if share else "Every forecast gets one action for certain", shown)


def _bands(ax: Any, policy: Policy, sample: FloatArray | None, labels: list[str]) -> FloatArray:
    space = policy._problem.space
    # Middles of equal parts, strictly inside: tests may take logarithms.
    shares = (np.arange(_POINTS)[:, None] + 0.5) / _POINTS
    points = np.hstack([shares, 1 - shares]) if space.is_simplex else space.bounds[0] + space.widths * shares
    mixtures, x = policy._mixtures(points), points[:, 0]
    tops = mixtures.cumsum(axis=1)
    for action in np.flatnonzero(mixtures.any(axis=0)):
        top, look = tops[:, action], filling(int(action))
        ax.fill_between(x, top - mixtures[:, action], top, step="mid", label=labels[action], **look)
    if sample is not None:
        counts, edges = np.histogram(sample[:, 0], bins=60, range=space.interval)
        heights = 0.3 * counts / counts.max()
        ax.stairs(
            heights, edges, fill=True, facecolor=(1, 1, 1, 0.75), edgecolor="black", linewidth=1, label="how often"
        )
    across = "forecast" if space.dimension == 1 else space.coordinate_names[0]
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1), xlabel=across, ylabel="probability")
    return mixtures


def _map(ax: Any, policy: Policy, sample: FloatArray | None, labels: list[str]) -> FloatArray:
    """Colour small cells by what is played in their middles."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    space, classes = policy._problem.space, policy._problem.space.is_simplex
    cells, corners = map_cells(space, _SIDE), _CORNERS if classes else np.eye(2)
    mixtures = policy._mixtures(cells.mean(axis=1))
    flat: Any = cells @ corners
    colors = [to_rgb(filling(action)["facecolor"]) for action in range(len(labels))]
    shades = np.clip(mixtures @ np.array(colors), 0, 1)
    ax.add_collection(PolyCollection(flat, facecolors=shades, edgecolors="face", linewidths=0.3))
    for action in np.flatnonzero(mixtures.any(axis=0)):  # for the legend
        ax.fill(np.nan, np.nan, facecolor=colors[action], edgecolor="white", linewidth=0, label=labels[action])
    if sample is not None:  # evenly spaced rows, few enough to see through
        some = sample[:: -(-len(sample) // 1500)]
        ax.plot(*(some @ corners).T, ".", color="black", markersize=2, alpha=0.5)
    if classes:
        ax.plot(*_CORNERS[[0, 1, 2, 0]].T, color="0.25", linewidth=0.8)
        for (x, y), name in zip(_CORNERS, wrapped([name[2:-1] for name in space.coordinate_names], 18), strict=True):
            ax.text(x, 1.1 * y - 0.04, name, ha="center", va="top" if y == 0 else "bottom", fontweight="bold")
        ax.set(xlim=(-0.1, 1.1), ylim=(-0.14, 1.0), aspect="equal")
        ax.set_axis_off()
    else:
        x, y = (f"forecast of {name}" for name in space.coordinate_names)
        (left, bottom), (right, top) = space.bounds
        ax.set(xlim=(left, right), ylim=(bottom, top), xlabel=x, ylabel=y)
    return mixtures


def map_cells(space: Space, side: int) -> FloatArray:
    """Cut the rectangle of two coordinates, or the triangle of three classes, into ``side**2`` equal ones.

    Returns their corners, shape (., 4, 2) along the second coordinate first, or (., 3, 3): those that point up, then
    those that point down.
    """
    if not space.is_simplex:
        lower_left = np.indices((side, side)).reshape(2, -1).T[:, None]
        return space.bounds[0] + space.widths * (lower_left + np.array([[0, 0], [1, 0], [1, 1], [0, 1]])) / side
    upward, downward = (
        np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]).reshape(-1, 1, 3)
        for n in (side - 1, side - 2)
    )
    return np.concatenate([upward + np.eye(3), downward + 1 - np.eye(3)]) / side
