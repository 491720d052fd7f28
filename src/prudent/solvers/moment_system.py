"""Reduced tests with the slack they carry: tilts, moments and Gram matrices of all rows.

Rows come last in every array: sums over tests and coordinates then run over
long contiguous vectors.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen
from prudent.arrays.chunks import over_rows
from prudent.cases.memory_rows import Ambiguity
from prudent.errors import InfeasibleError
from prudent.solvers.orthonormal_tests import orthonormal_basis

_MOST_PAIRS = 100
_MOST_KEPT = 1 << 19  # numbers of a table that is kept from one iteration to the next
_PART_ELEMENTS = 1 << 17
_ELEMENTS_FOR_THREADS = 1 << 19


@frozen
class MomentSystem:
    """Reduced tests with the slack they carry.

    Attributes
    ----------
    values : array of shape (c, n)
        Columns that tests are made of.
    weights : array of shape (n,)
    parts : array of shape (K, c, d) or None
        How much of each column is in each coordinate of a moment's test; None where every column is a scalar test,
        with one moment per coordinate.
    back : array of shape (K of the ambiguity, K)
        Maps reduced flat multipliers to those of the original tests.
    center : array of shape (K,)
    groups : array of shape (K,)
        The l2 ball around the centre in which each moment lies, alone or with others; -1 where it is exact.
    radius : array of shape (g,)
        Of the balls.
    gauge : bool
        True if adding a constant to an exact test's multipliers changes nothing (simplex).
    """

    values: FloatArray
    weights: FloatArray
    dimension: int
    parts: FloatArray | None
    back: FloatArray
    center: FloatArray
    groups: IntArray
    radius: FloatArray
    gauge: bool

    @property
    def size(self) -> int:
        """Number of reduced moments."""
        return int(self.center.size)

    @property
    def flat_parts(self) -> FloatArray:
        """How much of each column and coordinate is in each moment, ``(K, c d)``."""
        return (
            np.eye(self.size)
            if self.parts is None
            else self.parts.reshape(self.size, self.dimension * len(self.values))
        )

    def take(self, rows: slice) -> MomentSystem:
        """Look at some rows, with the weights that they have among all."""
        return replace(self, values=self.values[:, rows], weights=self.weights[rows])

    def sample(self, rows: IntArray) -> MomentSystem:
        """Keep some rows, which stand for all."""
        weights = self.weights[rows]
        return replace(self, values=self.values[:, rows], weights=weights / weights.sum())

    def tilts(self, multipliers: FloatArray) -> FloatArray:
        """Compute ``B_i L`` for every row, shape ``(d, n)``."""
        factors = multipliers if self.parts is None else np.tensordot(multipliers, self.parts, axes=1)
        return factors.reshape(-1, self.dimension).T @ self.values

    def moments(self, residuals: FloatArray) -> FloatArray:
        """Compute ``sum_i w_i B_i^T x_i`` for ``x`` of shape ``(d, n)``, shape ``(K,)``."""
        if self.values.size <= _MOST_KEPT:
            sums = self._weighted @ residuals.T
        else:
            parts = over_rows(
                lambda part: self.values[:, part] @ (self.weights[part] * residuals[:, part]).T,
                self.weights.size,
                *parts_for_threads(self.values[:, 0].size),
            )
            sums = np.sum(parts, axis=0)
        return sums.reshape(-1) if self.parts is None else self.flat_parts @ sums.reshape(-1)

    def nearest_inside(self, offsets: FloatArray) -> FloatArray:
        """Return the nearest points of the slack to moments, both measured from the centre."""
        return offsets * self.of_moments(np.minimum(1.0, self.radius / np.maximum(self.lengths(offsets), 1e-300)))

    @property
    def exact(self) -> BoolArray:
        """Which moments are fixed at the centre."""
        return self.groups < 0

    def of_moments(self, numbers: FloatArray) -> FloatArray:
        """Give every moment the number of its ball, and zero where it is exact."""
        return np.append(numbers, 0.0)[self.groups]

    def sums(self, offsets: FloatArray) -> FloatArray:
        """Add up the numbers of the moments of every ball."""
        return np.asarray(np.bincount(self.groups + 1, offsets, self.radius.size + 1)[1:], dtype=np.float64)

    def lengths(self, offsets: FloatArray) -> FloatArray:
        """Length of every ball's part of a vector."""
        return np.sqrt(self.sums(offsets**2))

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
        d, k, parts = self.dimension, len(self.values), self.parts
        few = k * (k + 1) // 2 <= _MOST_PAIRS
        products = self._products_times(metric).T if few else metric
        # The columns that are in some moment's coordinate.
        inside = np.ones((k, d)) if few or parts is None else np.abs(parts).sum(axis=0)
        used = [np.flatnonzero(column) for column in inside.T]
        result = np.zeros((self.size, self.size))
        for a, b, entry in zip(*_pairs_of(d), products, strict=True):
            if few:
                block = np.empty((k, k))
                first, second = _pairs_of(k)
                block[first, second] = block[second, first] = entry
            else:
                block = (self.values[used[a]] * (self.weights * entry)) @ self.values[used[b]].T
            if parts is None:
                result[a::d, b::d] = result[b::d, a::d] = block
            else:
                block = parts[:, used[a], a] @ block @ parts[:, used[b], b].T
                result += block if a == b else block + block.T
        if self.gauge and self.exact.any():
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
    weights = np.full(n, 1.0 / n)
    return MomentSystem(np.zeros((0, n)), weights, d, None, np.zeros((0, 0)), nothing, none, nothing, gauge=False)


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


_NEARLY_COLLINEAR = 5e4  # in epsilon: what a coarse reduction leaves out

EMPTY = (
    "no world satisfies the guarantee with this slack: the moments it is centred at cannot be attained by any "
    "outcomes in the space. Center the slack at moments measured on this sample, or widen its radius."
)

# The least eigenvalue of a Gram matrix, as a share of the largest, from which on it loses nothing that matters.
_FAR_FROM_COLLINEAR = 1e-6


def reduce_moments(ambiguity: Ambiguity, coarse: bool = False) -> MomentSystem:
    """Orthonormalise exact moments, rescale the others behind them, and sort these by their kind of slack.

    A ``coarse`` reduction leaves out tests that are nearly combinations of others: multipliers stay small.
    """
    tests, slack, weights = ambiguity.tests, ambiguity.slack, ambiguity.weights
    d, simplex, radius = tests.dimension, ambiguity.space.is_simplex, slack.radius_of_moments
    free = radius > 0
    # Scalar tests stay scalar if the moments of each are all exact or all have slack.
    scalar = d == 1 or (tests.scalar and bool((free.reshape(-1, d) == free[::d, None]).all()))
    block = d if scalar else 1  # moments per test that is reduced
    free, radius, center = free[::block], radius.reshape(-1, block), slack.center.reshape(-1, block)
    gram, parts = _weighted_gram(tests.table, weights), None
    squares = np.diag(gram)
    if not scalar:
        parts = np.moveaxis(np.eye(gram.shape[0] + 1)[tests.source], 1, 2)[:, :-1]
        squares = np.einsum("kcd,c->k", parts, squares)
        if simplex:  # residuals sum to zero, so only differences between classes matter in an exact test
            parts = np.where(free[:, None, None], parts, parts - parts[:, :, -1:])
        gram = np.tensordot(np.tensordot(parts, gram, axes=(1, 0)), parts, axes=([1, 2], [2, 1]))
    norms = np.sqrt(np.maximum(np.diag(gram), 0.0))
    cancelled = np.flatnonzero(~free & (norms**2 <= _FAR_FROM_COLLINEAR * squares))
    if cancelled.size:
        norms[cancelled] = np.sqrt(weights @ (_written(ambiguity, cancelled, scalar) ** 2).sum(axis=1))
    if not scalar:  # all moments of a ball have one scale, or it would not stay round
        largest = np.zeros(slack.radius.size)
        np.maximum.at(largest, slack.groups, norms)
        norms = np.where(free, largest[slack.groups], norms)
    if (np.abs(center) > radius + 1e-12)[norms == 0].any():
        raise InfeasibleError(EMPTY)
    fixed = np.flatnonzero(~free & (norms > 0))
    # Slack that nothing can use up never binds. Left in, it would spoil the scale of everything.
    idle = np.asarray(_out_of_reach(ambiguity).reshape(-1, block).all(axis=1))
    loose = np.flatnonzero(free & (norms > 0) & ~idle)

    basis, written, direct = np.zeros((0, 0)), None, True
    if fixed.size:  # tests that are far from collinear: the Gram matrix loses nothing that matters
        sizes, axes = np.linalg.eigh(gram[np.ix_(fixed, fixed)] / (norms[fixed, None] * norms[fixed]))
        basis = (axes / np.sqrt(np.maximum(sizes, 1e-300))) / norms[fixed, None]
        direct = sizes[0] > _FAR_FROM_COLLINEAR * sizes[-1]
    if not direct or np.isin(cancelled, fixed).any():
        basis, written = _written_basis(ambiguity, center, fixed, scalar, coarse)
    rank = basis.shape[1]
    transform = np.zeros((norms.size, rank + loose.size))  # from given tests to reduced ones
    transform[fixed, :rank] = basis
    transform[loose, rank + np.arange(loose.size)] = 1 / norms[loose]
    values = tests.table.T
    if parts is None:
        scaled = np.empty((rank + loose.size, len(weights)))

        def write(part: slice) -> None:
            columns = tests.table[part].T
            scaled[:rank, part] = basis.T @ columns[fixed] if written is None else written[:, part]
            scaled[rank:, part] = columns[loose] / norms[loose, None]

        over_rows(write, len(weights), *parts_for_threads(norms.size))
        values = scaled
    else:
        parts = np.tensordot(transform.T, parts, axes=1)
        if written is not None:  # columns of their own, one for each coordinate of each exact test
            parts[:rank] = 0.0
            own = np.eye(len(parts), rank)[:, :, None, None] * np.eye(d)
            parts = np.concatenate([own.reshape(len(parts), rank * d, d), parts], axis=1)
            values = np.concatenate([written, values])
        if simplex:
            parts[:rank] -= parts[:rank].mean(axis=2, keepdims=True)
    new_center = (transform.T @ center).reshape(-1)
    if simplex and scalar and rank:
        drift = np.abs(new_center[: rank * d].reshape(-1, d).sum(axis=1)).max()
        if drift > 1e-9 * (1.0 + np.abs(new_center).max()):
            raise InfeasibleError(EMPTY)
    groups = slack.groups.reshape(-1, block)[loose].reshape(-1)
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    return MomentSystem(
        np.ascontiguousarray(values),
        weights,
        d,
        parts,
        np.kron(transform, np.eye(block)).astype(np.float64),
        new_center,
        np.concatenate([np.full(rank * block, -1), numbers]),
        (radius[loose] / norms[loose, None]).reshape(-1)[first],
        gauge=simplex and scalar,
    )


def _written_basis(
    ambiguity: Ambiguity, center: FloatArray, fixed: IntArray, scalar: bool, coarse: bool
) -> tuple[FloatArray, FloatArray]:
    """Orthonormalise exact tests in twice the working precision.

    Returns the combinations that make reduced tests ``(fixed, rank)``, and these written out: ``(rank, n)`` where tests
    are scalar, else ``(rank d, n)``.
    """
    values, weights = _written(ambiguity, fixed, scalar), ambiguity.weights
    d = values.shape[1]
    found = orthonormal_basis(
        values.reshape(-1, fixed.size), np.repeat(weights, d), *([_NEARLY_COLLINEAR] if coarse else [])
    )
    left, sizes = np.abs(found.null @ center[fixed]).max(initial=0.0), np.sqrt(weights @ (values**2).sum(axis=1))
    if left > 1e-9 * (1.0 + np.abs(center[fixed] / sizes[:, None]).max(initial=0.0)):
        raise InfeasibleError(EMPTY)
    rank = found.transform.shape[1]
    return found.transform, found.values.reshape(len(weights), d, rank).transpose(2, 1, 0).reshape(rank * d, -1)


def _written(ambiguity: Ambiguity, chosen: IntArray, scalar: bool) -> FloatArray:
    """Write exact tests out, ``(n, 1, chosen)`` where they are scalar, else ``(n, d, chosen)``."""
    if scalar:
        return ambiguity.tests.table[:, None, chosen]
    values = ambiguity.tests.vectors[:, chosen].transpose(0, 2, 1)
    return values - values[:, -1:] if ambiguity.space.is_simplex else values


def _weighted_gram(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Inner products of scalar tests."""

    def inner(part: slice) -> FloatArray:
        return np.asarray((values[part] * weights[part, None]).T @ values[part])

    return np.asarray(np.sum(over_rows(inner, len(weights), *parts_for_threads(values[0].size)), axis=0))


def _out_of_reach(ambiguity: Ambiguity) -> BoolArray:
    """Which moments have slack that no world can use up, ``(K,)``."""
    slack, reach = ambiguity.slack, ambiguity.tests.moment_sizes(ambiguity.space.widths)
    return np.asarray(slack.radius - slack.norms(slack.center) >= slack.norms(reach))[slack.groups]
