"""The tilted game of a row with a soft minimum over its vertices (docs/theory.md, section 6).

``phi_mu(s) = -mu log sum_j exp(-(heights_j + s.corners_j) / mu)`` is smooth, concave and at most ``mu log N`` below
``phi``. Its derivative is a belief, the vertices' mean with shares ``exp(-score / mu)``; its second derivative is their
covariance over ``-mu``. Of thousands of vertices few have a share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.compiled import compiled
from prudent.solvers import vertex_loops
from prudent.solvers.vertex_table import VertexTable

__all__ = ["NearVertices", "SoftRows"]

_SCORES_AT_ONCE = 1 << 17  # as many as stay in the cache between the product that writes them and the one that reads
_NEGLIGIBLE = 20.0  # shares below exp(-20), 2e-9, are none
_ROUNDING = 1e-6  # of scores in single precision, generously; listing too many vertices does no harm


@dataclass(frozen=True, eq=False)
class SoftRows:
    """What the softened game gives for rows.

    Attributes
    ----------
    value : array of shape (n,)
        ``phi_mu``.
    excess : array of shape (n,)
        How much the shares' mean score exceeds the least.
    beliefs : array of shape (n, d)
        The vertices' mean.
    spread : array of shape (n, d (d + 1) / 2)
        The vertices' covariance, its upper triangle row by row.
    """

    value: FloatArray
    excess: FloatArray
    beliefs: FloatArray
    spread: FloatArray


class NearVertices:
    """For every row the vertices whose scores are near its least, at given tilts ``(d, n)`` and softening."""

    def __init__(self, table: VertexTable, tilts: FloatArray, mu: float) -> None:
        self._table = table
        n, reach = tilts.shape[1], np.float32(_NEGLIGIBLE * mu + _ROUNDING)
        at_once = max(1, _SCORES_AT_ONCE // table.heights.size)
        scores = np.empty((at_once, table.heights.size), dtype=np.float32)
        # Heights are one more coordinate of the vertices, with tilt one. Half the digits tell which ones are near.
        tilted = np.column_stack([tilts.T, np.ones(n)]).astype(np.float32)
        lifted = np.vstack([table.corners.T, table.heights]).astype(np.float32)
        counts, vertices = [], []
        for first in range(0, n, at_once):
            block = scores[: min(at_once, n - first)]
            np.matmul(tilted[first : first + at_once], lifted, out=block)
            near = block <= block.min(axis=1, keepdims=True) + reach
            counts.append(np.count_nonzero(near, axis=1))
            vertices.append((np.flatnonzero(near) % table.heights.size).astype(np.int32))
        self._starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        self._vertices = np.concatenate(vertices)

    def soften(self, tilts: FloatArray, mu: float) -> SoftRows:
        """Soften the games of the rows, by shares among the listed vertices."""
        d, n = tilts.shape
        rows = SoftRows(np.empty(n), np.empty(n), np.empty((n, d)), np.empty((n, d * (d + 1) // 2)))
        table, results = self._table, (rows.value, rows.excess, rows.beliefs, rows.spread)
        loop = compiled(vertex_loops.soften_rows, self._vertices.size)
        tilted = np.ascontiguousarray(tilts.T)
        soften = _soften if loop is None else loop
        soften(tilted, self._starts, self._vertices, table.corners, table.heights, mu, *results)
        return rows


def _soften(
    tilts: FloatArray,
    starts: IntArray,
    vertices: NDArray[np.int32],
    corners: FloatArray,
    heights: FloatArray,
    mu: float,
    value: FloatArray,
    excess: FloatArray,
    beliefs: FloatArray,
    spread: FloatArray,
) -> None:
    """Do for all rows what the loop of the same name does for each."""
    row = np.repeat(np.arange(len(tilts)), np.diff(starts))
    corners, begin = corners[vertices], starts[:-1]
    scores = heights[vertices] + np.einsum("vd,vd->v", tilts[row], corners)
    least = np.minimum.reduceat(scores, begin)
    above = scores - least[row]
    shares = np.exp(-above / mu)
    total = np.add.reduceat(shares, begin)
    value[:] = least - mu * np.log(total)
    shares /= total[row]
    np.add.reduceat(shares * above, begin, out=excess)
    np.add.reduceat(shares[:, None] * corners, begin, axis=0, out=beliefs)
    centered = corners - beliefs[row]
    first, second = np.triu_indices(corners.shape[1])
    np.add.reduceat(shares[:, None] * centered[:, first] * centered[:, second], begin, axis=0, out=spread)
