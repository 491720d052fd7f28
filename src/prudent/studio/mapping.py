"""Policies over two coordinates or three classes: cells to colour, crowds of forecasts, and a table of examples."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from prudent.arrays import FloatArray
from prudent.policies import Policy
from prudent.spaces import Box, Simplex, Space
from prudent.studio.answers import Crowd, PlayedAt, RegionMap

__all__ = ["find_crowds", "map_kind", "region_map"]

_STEPS = {"plane": 28, "triangle": 40}
_CROWDS = 14
_EXAMPLES = 4
_DIGITS = 9


def map_kind(space: Space) -> Literal["plane", "triangle"] | None:
    """Say which picture a space has, if forecasts fit into two dimensions."""
    if isinstance(space, Simplex):
        return "triangle" if space.n_classes == 3 else None
    return "plane" if isinstance(space, Box) and space.dimension == 2 else None


def find_crowds(space: Space, forecasts: FloatArray, weights: FloatArray) -> list[Crowd]:
    """Gather forecasts that lie close together: where they are on average, and what share of the weight they have."""
    low, high = space.bounds
    steps = ((forecasts[:, :2] - low[:2]) / (high - low)[:2] * _CROWDS).astype(np.int64).clip(0, _CROWDS - 1)
    cell = steps @ [_CROWDS, 1]
    totals = np.bincount(cell, weights, minlength=_CROWDS**2)
    sums = [np.bincount(cell, weights * column, minlength=_CROWDS**2) for column in forecasts.T]
    used = np.flatnonzero(totals)
    means = np.stack([column[used] / totals[used] for column in sums], axis=1)
    return [Crowd(at=at.round(_DIGITS).tolist(), share=float(totals[k])) for at, k in zip(means, used, strict=True)]


def region_map(policy: Policy, kind: Literal["plane", "triangle"], crowds: list[Crowd]) -> RegionMap:
    """Play the policy in the middle of small cells, and at a few examples."""
    problem = policy._problem
    shares = policy.predict_proba(_middles(kind, problem.space))
    points = _lattice(kind, problem.space)
    played = policy.predict_proba(points)
    actions = [str(action) for action in problem.actions]
    return RegionMap(
        kind=kind,
        steps=_STEPS[kind],
        likeliest=shares.argmax(axis=1).tolist(),
        hundredths=(100 * shares.max(axis=1)).round().astype(np.int64).tolist(),
        crowds=crowds,
        examples=[
            PlayedAt(forecast=point, played=_told(mixture, actions))
            for point, mixture in zip(points.round(_DIGITS).tolist(), played, strict=True)
        ],
    )


@lru_cache(maxsize=8)
def _middles(kind: Literal["plane", "triangle"], space: Space) -> FloatArray:
    """Middles of all cells, in the order in which the page draws them; every answer about a space has the same."""
    steps = _STEPS[kind]
    middles = _triangles(steps) if kind == "triangle" else _squares(steps)
    low, high = space.bounds
    return space.place(low + middles * (high - low), "forecasts")[0]  # inside but for rounding, which goes


def _squares(steps: int) -> FloatArray:
    """Middles of the cells of a square, shape ``(steps^2, 2)``."""
    corners = np.stack(np.meshgrid(np.arange(steps), np.arange(steps), indexing="ij"), axis=-1).reshape(-1, 2)
    return (corners + 0.5) / steps


def _triangles(steps: int) -> FloatArray:
    """Middles of the cells of a triangle, shape ``(steps^2, 3)``: those that point up, then those down."""
    up = np.array([(i, j, steps - 1 - i - j) for i in range(steps) for j in range(steps - i)])
    down = np.array([(i, j, steps - 2 - i - j) for i in range(steps - 1) for j in range(steps - 1 - i)])
    return np.concatenate([up + 1 / 3, down + 2 / 3]) / steps


def _lattice(kind: Literal["plane", "triangle"], space: Space) -> FloatArray:
    if kind == "triangle":
        steps = range(_EXAMPLES + 1)
        return np.array([(i, j, _EXAMPLES - i - j) for i in steps for j in steps if i + j <= _EXAMPLES]) / _EXAMPLES
    low, high = space.bounds
    line = np.linspace(0.0, 1.0, _EXAMPLES + 1)
    return low + np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2) * (high - low)


def _told(mixture: FloatArray, actions: list[str]) -> str:
    """Name the actions that are played, with their probabilities where there are several."""
    likely = np.flatnonzero(mixture >= 0.0005)
    if likely.size == 1:
        return actions[likely[0]]
    return ", ".join(f"{actions[i]} {mixture[i]:.1%}" for i in likely)
