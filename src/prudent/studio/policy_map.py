"""Maps of policies over two coordinates or three classes: cells to colour, density of forecasts, examples."""

from typing import Literal

import numpy as np

from prudent.arrays import FloatArray
from prudent.plots.policy import map_cells
from prudent.policies import Policy
from prudent.spaces import Box, Simplex, Space
from prudent.studio.schemas import DensityBin, PlayedAt, RegionMap

_STEPS = {"plane": 28, "triangle": 40}
_BINS = 14
_EXAMPLES = 4
_DIGITS = 9


def map_kind(space: Space) -> Literal["plane", "triangle"] | None:
    """Return the kind of map that a space has; None if forecasts do not fit into two dimensions."""
    if isinstance(space, Simplex):
        return "triangle" if space.n_classes == 3 else None
    return "plane" if isinstance(space, Box) and space.dimension == 2 else None


def density(space: Space, forecasts: FloatArray, weights: FloatArray) -> list[DensityBin]:
    """Bin forecasts: the mean forecast of each bin that has any, and its share of the weight."""
    low, high = space.bounds
    steps = ((forecasts[:, :2] - low[:2]) / (high - low)[:2] * _BINS).astype(np.int64).clip(0, _BINS - 1)
    cell = steps @ [_BINS, 1]
    totals = np.bincount(cell, weights, minlength=_BINS**2)
    sums = [np.bincount(cell, weights * column, minlength=_BINS**2) for column in forecasts.T]
    used = np.flatnonzero(totals)
    means = np.stack([column[used] / totals[used] for column in sums], axis=1)
    return [
        DensityBin(at=at.round(_DIGITS).tolist(), share=float(totals[k])) for at, k in zip(means, used, strict=True)
    ]


def region_map(policy: Policy, kind: Literal["plane", "triangle"], bins: list[DensityBin]) -> RegionMap:
    """Play the policy in the middle of small cells, and at a few examples."""
    problem = policy._problem
    space, steps = problem.space, _STEPS[kind]
    middles, _ = space.place(map_cells(space, steps).mean(axis=1), "forecasts")  # removes rounding errors
    shares = policy.predict_proba(middles)
    points = np.unique(map_cells(space, _EXAMPLES).reshape(-1, space.dimension), axis=0)
    played = policy.predict_proba(points)
    actions = [str(action) for action in problem.actions]
    return RegionMap(
        kind=kind,
        steps=steps,
        likeliest=shares.argmax(axis=1).tolist(),
        hundredths=(100 * shares.max(axis=1)).round().astype(np.int64).tolist(),
        crowds=bins,
        examples=[
            PlayedAt(forecast=point, played=_mixture_text(mixture, actions))
            for point, mixture in zip(points.round(_DIGITS).tolist(), played, strict=True)
        ],
    )


def _mixture_text(mixture: FloatArray, actions: list[str]) -> str:
    """Name the actions that are played, with their probabilities where there are several."""
    likely = np.flatnonzero(mixture >= 0.0005)
    if likely.size == 1:
        return actions[likely[0]]
    return ", ".join(f"{actions[i]} {mixture[i]:.1%}" for i in likely)
