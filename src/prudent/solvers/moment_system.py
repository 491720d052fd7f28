"""Reduced tests with the slack they carry: tilts, moments and Gram matrices of all rows.

Rows come last in every array: sums over tests and coordinates then run over
long contiguous vectors.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from prudent.arrays import FloatArray, IntArray, frozen
from prudent.arrays.chunks import over_rows

_MOST_PAIRS = 100
_MOST_KEPT = 1 << 19  # numbers of a table that is kept from one iteration to the next
_PART_ELEMENTS = 1 << 17
_ELEMENTS_FOR_THREADS = 1 << 19


@frozen
class MomentSystem:
    """Reduced tests with the slack they carry.

    Attributes
    ----------
    values : array of shape (k, n) for scalar tests and columns, else (K, d, n)
    weights : array of shape (n,)
    back : array of shape (K of the ambiguity, K)
        Maps reduced flat multipliers to those of the original tests.
    center : array of shape (K,)
    exact, interval : arrays of indices
        Moments fixed at the centre; moments in ``center +- radius``.
    radius : array
        Of the interval moments.
    balls : array of indices of shape (g, d)
        Moments that lie together in an l2 ball.
    ball_radius : array of shape (g,)
    gauge : bool
        True if adding a constant to an exact test's multipliers changes nothing (simplex).
    """

    values: FloatArray
    weights: FloatArray
    dimension: int
    back: FloatArray
    center: FloatArray
    exact: IntArray
    interval: IntArray
    radius: FloatArray
    balls: IntArray
    ball_radius: FloatArray
    gauge: bool

    @property
    def size(self) -> int:
        """Number of reduced moments."""
        return int(self.center.size)

    def part(self, rows: slice) -> MomentSystem:
        """Look at some rows, with the weights that they have among all."""
        return replace(self, values=self.values[..., rows], weights=self.weights[rows])

    def sample(self, rows: IntArray) -> MomentSystem:
        """Keep some rows, which stand for all."""
        weights = self.weights[rows]
        return replace(self, values=self.values[..., rows], weights=weights / weights.sum())

    def tilts(self, multipliers: FloatArray) -> FloatArray:
        """Compute ``B_i L`` for every row, shape ``(d, n)``."""
        if self.values.ndim == 2:
            return multipliers.reshape(-1, self.dimension).T @ self.values
        return np.tensordot(multipliers, self.values, axes=1)

    def moments(self, residuals: FloatArray) -> FloatArray:
        """Compute ``sum_i w_i B_i^T x_i`` for ``x`` of shape ``(d, n)``, shape ``(K,)``."""
        if self.values.ndim == 2 and self.values.size <= _MOST_KEPT:
            return (self._weighted @ residuals.T).reshape(-1)
        if self.values.ndim == 3:
            return np.tensordot(self.values, self.weights * residuals, axes=2)
        parts = over_rows(
            lambda part: self.values[:, part] @ (self.weights[part] * residuals[:, part]).T,
            self.weights.size,
            *parts_for_threads(self.values[:, 0].size),
        )
        return np.sum(parts, axis=0).reshape(-1)

    def nearest_inside(self, offsets: FloatArray, share: float = 1.0) -> FloatArray:
        """Return the nearest points to moments, both measured from the centre, in this share of the slack."""
        result, parts = np.zeros_like(offsets), offsets[self.balls]
        result[self.interval] = np.clip(offsets[self.interval], -share * self.radius, share * self.radius)
        norms = np.sqrt((parts**2).sum(axis=1))
        result[self.balls] = parts * np.minimum(1.0, share * self.ball_radius / np.maximum(norms, 1e-300))[:, None]
        return result

    @cached_property
    def _weighted(self) -> FloatArray:
        """Weighted scalar tests."""
        return self.values * self.weights

    @cached_property
    def _products(self) -> FloatArray:
        """Weighted products of each pair of scalar tests."""
        return self._products_of(slice(None))

    def _products_of(self, part: slice) -> FloatArray:
        first, second = _pairs_of(self.values.shape[0])
        values = self.values[:, part]
        products: FloatArray = values[first]
        products *= values[second]
        products *= self.weights[part]
        return products

    def gram(self, metric: FloatArray) -> FloatArray:
        """Compute ``sum_i w_i B_i^T P_i B_i`` for symmetric ``P``, given by upper triangles ``(d (d + 1) / 2, n)``."""
        d = self.dimension
        one, other = _pairs_of(d)
        if self.values.ndim == 3:
            whole = np.empty((d, d, metric.shape[1]))
            whole[one, other] = whole[other, one] = metric * self.weights
            half = np.einsum("kdn,den->ken", self.values, whole)
            return np.tensordot(half, self.values, axes=([1, 2], [1, 2]))
        k = self.values.shape[0]
        blocks = np.empty((k, d, k, d))
        if k * (k + 1) // 2 <= _MOST_PAIRS:
            first, second = _pairs_of(k)
            for a, b, column in zip(one, other, self._products_times(metric).T, strict=True):
                block = np.empty((k, k))
                block[first, second] = block[second, first] = column
                blocks[:, a, :, b] = blocks[:, b, :, a] = block
        else:
            for a, b, entry in zip(one, other, metric, strict=True):
                block = (self.values * (self.weights * entry)) @ self.values.T
                blocks[:, a, :, b] = blocks[:, b, :, a] = block
        result = blocks.reshape(k * d, k * d)
        if self.gauge and self.exact.size:
            # On the simplex metric @ 1 = 0; fill that direction so that the system is definite.
            ones = np.kron(np.eye(k), np.full((d, d), 1.0 / d))
            fixed = np.zeros(k * d)
            fixed[self.exact] = 1.0
            diagonal = max(float(np.trace(result)) / max(k * d, 1), 1e-300)
            result += diagonal * ones * fixed[:, None] * fixed[None, :]
        return result

    def _products_times(self, metric: FloatArray) -> FloatArray:
        """Sum up products of tests times a metric, one matrix product for all entries of the Gram matrix."""
        first, _ = _pairs_of(self.values.shape[0])
        if first.size * self.weights.size <= _MOST_KEPT:
            return self._products @ metric.T
        parts = over_rows(
            lambda part: self._products_of(part) @ metric[:, part].T, self.weights.size, *parts_for_threads(first.size)
        )
        return np.sum(parts, axis=0)


def upper_triangles(metric: FloatArray) -> FloatArray:
    """Upper triangles ``(d (d + 1) / 2, n)`` of symmetric matrices ``(d, d, n)``, row by row."""
    return metric[_pairs_of(len(metric))]


@cache
def _pairs_of(count: int) -> tuple[IntArray, IntArray]:
    """Indices of all pairs, each once; asked for in every iteration."""
    return np.triu_indices(count)


def parts_for_threads(numbers: int) -> tuple[int, int]:
    """Rows of a part and number of rows from which threads pay, the fewer the more numbers a row has."""
    width = max(1, numbers)
    return max(1, _PART_ELEMENTS // width), _ELEMENTS_FOR_THREADS // width


def no_moments(n: int, d: int) -> MomentSystem:
    """Write the system of rows that nothing couples."""
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    balls = np.zeros((0, d), dtype=np.int64)
    weights = np.full(n, 1.0 / n)
    return MomentSystem(
        np.zeros((0, n)), weights, d, np.zeros((0, 0)), nothing, none, none, nothing, balls, nothing, gauge=False
    )


class DefiniteSystem:
    """A symmetric positive definite system, scaled, with a little help where it is nearly singular."""

    def __init__(self, matrix: FloatArray) -> None:
        self.size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        self.scaled = matrix / (self.size[:, None] * self.size[None, :])
        self.factor: FloatArray | None = None
        for shift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
            factor, failed = dpotrf(self.scaled + shift * np.eye(self.size.size), lower=True)
            if not failed:
                self.factor = factor
                return

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve for one right side, refined."""
        if right.size == 0:
            return right
        goal = right / self.size
        if self.factor is None:
            return np.linalg.lstsq(self.scaled, goal, rcond=1e-14)[0] / self.size
        solution = dpotrs(self.factor, goal, lower=True)[0]
        for _ in range(2):
            solution += dpotrs(self.factor, goal - self.scaled @ solution, lower=True)[0]
        result: FloatArray = solution / self.size
        return result
