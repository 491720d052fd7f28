"""Every row's small Newton block, factored for all rows at once.

``K_i = X_i^T X_i + diag(b_i)`` with ``X_i`` of shape ``(m, d)``. A row that may
still move along an edge has one tiny direction among huge ones; forming the
sum would lose it, so the stacked factor is triangularised by Householder
reflections. Rows come last: each reflection is a few operations on long
vectors, and no row ever meets a LAPACK call of its own.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray

__all__ = ["RowBlocks"]


class RowBlocks:
    """Inverses of the rows' blocks; on the simplex within the directions whose coordinates sum to zero.

    Attributes
    ----------
    metric : array of shape (d, d, n)
        ``K_i^-1``, or its projection.
    """

    def __init__(self, factor: FloatArray, diagonal: FloatArray, simplex: bool) -> None:
        self.factor, self.diagonal, self.simplex = factor, diagonal, simplex
        inverse = _inverse_triangle(*_triangle(factor, diagonal))
        d = len(diagonal)
        self.metric = np.empty_like(inverse)
        for j in range(d):  # only what the triangle leaves nonzero, and one half of what is symmetric
            np.einsum("ikn,kn->in", inverse[: j + 1, j:], inverse[j, j:], out=self.metric[: j + 1, j])
            self.metric[j, :j] = self.metric[:j, j]
        if simplex:
            image = self.metric.sum(axis=1)
            self.flow = image / image.sum(axis=0)
            self.metric -= image[:, None] * self.flow[None]

    def apply(self, push: FloatArray) -> FloatArray:
        """Multiply by the inverses: solves ``K x + nu 1 = push`` up to rounding."""
        return np.einsum("ijn,jn->in", self.metric, push)

    def solve(self, push: FloatArray, refinements: int) -> tuple[FloatArray, FloatArray]:
        """Solve ``K x + nu 1 = push`` in every row (``nu = 0`` on a box), refined against the factor."""
        x = self.apply(push)
        nu = self._level(push)
        for _ in range(refinements):
            if self.simplex:
                x -= x.mean(axis=0)
            image = np.einsum("mdn,dn->mn", self.factor, x)
            left = push - nu - np.einsum("mdn,mn->dn", self.factor, image) - self.diagonal * x
            more = self._level(left)
            x += self.apply(left - more)
            nu += more
        return x, nu

    def _level(self, push: FloatArray) -> FloatArray:
        """Multiplier of the sum of coordinates."""
        return np.einsum("dn,dn->n", self.flow, push) if self.simplex else np.zeros(push.shape[1])


def _triangle(factor: FloatArray, diagonal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the upper triangle R of each stacked factor, and the column sizes that it was scaled by."""
    _, d, n = factor.shape
    size = np.sqrt(np.einsum("mdn,mdn->dn", factor, factor) + diagonal)
    remaining = factor * (1.0 / size)
    corner = np.maximum(np.sqrt(diagonal) / size, 1e-13)
    triangle = np.zeros((d, d, n))
    for j in range(d):
        # Reflect (corner_j, column j) onto its first entry; the first row of what follows is still zero.
        column = remaining[:, j]
        length = np.sqrt(corner[j] ** 2 + np.einsum("mn,mn->n", column, column))
        head = corner[j] + length
        triangle[j, j] = -length
        if j + 1 < d:
            share = np.einsum("mn,mkn->kn", column, remaining[:, j + 1 :]) / (length * head)
            triangle[j, j + 1 :] = -head * share
            remaining[:, j + 1 :] -= column[:, None] * share
    return triangle, size


def _inverse_triangle(triangle: FloatArray, size: FloatArray) -> FloatArray:
    """Invert the upper triangles and undo the scaling of columns."""
    d = triangle.shape[0]
    inverse = np.zeros_like(triangle)
    for j in range(d):
        inverse[j, j] = 1.0 / triangle[j, j]
        if j:
            above = np.einsum("ikn,kn->in", inverse[:j, :j], triangle[:j, j])
            inverse[:j, j] = -above * inverse[j, j]
    return inverse / size[:, None]
