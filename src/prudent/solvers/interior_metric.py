"""Directions in which worlds may move: ``D(q) s`` vanishes where ``q`` meets the boundary, so no row leaves the space.

``D`` is the distance to the nearer bound on a box and ``diag(q) - q q^T`` on the simplex. It is never written out for
all rows: in ten dimensions it has a hundred numbers a row.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray
from prudent.chunks import over_rows
from prudent.solvers.moment_system import MomentSystem
from prudent.spaces import Simplex, Space

__all__ = ["InteriorMetric"]

_ROWS_AT_ONCE = 1 << 13


class InteriorMetric:
    """The metric at points ``(d, n)`` of a space."""

    def __init__(self, points: FloatArray, space: Space) -> None:
        low, high = (bound[:, None] for bound in space.bounds)
        self._simplex = isinstance(space, Simplex)
        self._points = points
        self._room = points if self._simplex else np.minimum(points - low, high - points)

    def gram(self, system: MomentSystem) -> FloatArray:
        """Inner products of tests, ``sum_i w_i B_i^T D_i B_i``."""
        first, second = np.triu_indices(len(self._points))

        def inner_products(part: slice) -> FloatArray:
            points = self._points[:, part]
            upper = -points[first] * points[second] if self._simplex else np.zeros((first.size, points.shape[1]))
            upper[first == second] += self._room[:, part]
            return system.part(part).gram(upper)

        gram: FloatArray = np.sum(over_rows(inner_products, self._points.shape[1], _ROWS_AT_ONCE), axis=0)
        return gram

    def apply(self, tilts: FloatArray) -> FloatArray:
        """Compute ``D_i s_i`` for tilts ``(d, n)``."""
        if self._simplex:
            tilts = tilts - np.einsum("dn,dn->n", self._points, tilts)
        return self._room * tilts
