"""Maps of policies over two coordinates or three classes: cells to colour, density of forecasts, examples."""

from typing import Any

import numpy as np
from scipy.stats import binned_statistic_2d

from prudent.arrays import FloatArray
from prudent.plots.policy import map_cells
from prudent.report import Report

_STEPS = {"plane": 28, "triangle": 40}
_BINS = 14
_EXAMPLES = 4
_DIGITS = 9


def region_map(report: Report) -> dict[str, Any] | None:
    """Play a policy in the middle of small cells, and at a few examples; None if forecasts do not fit into a plane.

    With two coordinates cells are rectangles, along the second coordinate first. With three classes they are triangles:
    those that point up, with ``i`` steps of the first class and ``j`` of the second at least, then those that point
    down, again along ``j`` first.
    """
    space, policy = report.problem.space, report.policy
    if space.free_dimension != 2:
        return None
    kind = "triangle" if space.is_simplex else "plane"
    middles, _ = space.place(map_cells(space, _STEPS[kind]).mean(axis=1), "forecasts")  # removes rounding errors
    shares = policy.predict_proba(middles)
    points = np.unique(map_cells(space, _EXAMPLES).reshape(-1, space.dimension), axis=0)
    actions = [str(action) for action in report.problem.actions]
    played = [_mixture_text(mixture, actions) for mixture in policy.predict_proba(points)]
    return {
        "kind": kind,
        "steps": _STEPS[kind],
        "likeliest": shares.argmax(axis=1),
        "hundredths": (100 * shares.max(axis=1)).round().astype(np.int64),
        "crowds": report.rows.cache.get("density", lambda: _density(report)),
        "examples": [
            {"forecast": point, "played": text} for point, text in zip(points.round(_DIGITS), played, strict=True)
        ],
    }


def _density(report: Report) -> list[dict[str, Any]]:
    """Bin forecasts: the mean forecast of each bin that has any, and its share of the weight."""
    rows = report.rows
    ends: Any = np.stack(report.problem.space.bounds, axis=1)[:2]
    across, up = rows.forecasts.T[:2]
    weighted = [rows.weights, *(rows.weights * rows.forecasts.T)]
    totals, *sums = binned_statistic_2d(across, up, weighted, "sum", _BINS, ends).statistic.reshape(len(weighted), -1)
    used = totals > 0
    means = (np.stack(sums, axis=1)[used] / totals[used, None]).round(_DIGITS)
    return [{"at": at, "share": share} for at, share in zip(means, totals[used], strict=True)]


def _mixture_text(mixture: FloatArray, actions: list[str]) -> str:
    """Name the actions that are played, with their probabilities where there are several."""
    likely = np.flatnonzero(mixture >= 0.0005)
    if likely.size == 1:
        return actions[likely[0]]
    return ", ".join(f"{actions[i]} {mixture[i]:.1%}" for i in likely)
