"""Moments in coordinates that are safe to compute in.

Rows come last in every array: sums over tests and coordinates then run over
long contiguous vectors.

Collinear, constant, empty and duplicated tests are ordinary input. Moments
that must vanish exactly only matter through their span, so they are
orthonormalised in the weighted inner product and null directions dropped.
Moments with slack depend on the basis, so they are only rescaled. Multipliers
map back by one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.errors import InfeasibleError
from prudent.guarantees.evaluated import write_out
from prudent.solvers.remembering import remembered, remembered_for_arrays
from prudent.spaces import Simplex

__all__ = ["EMPTY", "MomentSystem", "reduce_moments", "upper_triangles"]

_MOST_PAIRS = 100
_MOST_KEPT = 1 << 19  # numbers of a table that is kept from one iteration to the next
_PART_ELEMENTS = 1 << 17
_ELEMENTS_FOR_THREADS = 1 << 19
_FAR_FROM_COLLINEAR = 1e-6

EMPTY = (
    "no world satisfies the guarantee with this slack: the moments it is centred at cannot be attained by any "
    "outcomes in the space. Center the slack at moments measured on this sample, or widen its radius."
)


@dataclass(frozen=True, eq=False)
class MomentSystem:
    """Reduced tests with the slack they carry.

    Attributes
    ----------
    values : array of shape (k, n) for scalar tests, else (K, d, n)
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
            *_for_threads(self.values[:, 0].size),
        )
        return np.sum(parts, axis=0).reshape(-1)

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
            lambda part: self._products_of(part) @ metric[:, part].T, self.weights.size, *_for_threads(first.size)
        )
        return np.sum(parts, axis=0)


def upper_triangles(metric: FloatArray) -> FloatArray:
    """Upper triangles ``(d (d + 1) / 2, n)`` of symmetric matrices ``(d, d, n)``, row by row."""
    return metric[_pairs_of(len(metric))]


@cache
def _pairs_of(count: int) -> tuple[IntArray, IntArray]:
    """Indices of all pairs, each once; asked for in every iteration."""
    return np.triu_indices(count)


@remembered
def reduce_moments(ambiguity: Ambiguity) -> MomentSystem:
    """Orthonormalise exact moments, rescale the others, and sort them by their kind of slack."""
    tests, slack, d = ambiguity.tests, ambiguity.slack, ambiguity.tests.dimension
    radius = slack.radius[tests.groups] if slack.ball else slack.radius
    free = radius > 0
    if tests.scalar or d == 1:
        per_test = free.reshape(-1, d)
        loose = np.asarray(per_test.any(axis=1))
        if np.array_equal(loose, per_test.all(axis=1)):
            return _with_slack(ambiguity, loose, radius, scalar=True)
    return _with_slack(ambiguity, free, radius, scalar=False)


def _with_slack(ambiguity: Ambiguity, free: NDArray[np.bool_], radius: FloatArray, scalar: bool) -> MomentSystem:
    """Put the slack around reduced tests."""
    tests, slack, weights = ambiguity.tests, ambiguity.slack, ambiguity.weights
    d, simplex = tests.dimension, isinstance(ambiguity.space, Simplex)
    block = d if scalar else 1  # moments per test that is reduced
    form = "scalar" if tests.scalar and scalar else "column" if scalar else "written out" if tests.scalar else "vector"
    groups = tuple(slack.groups.tolist()) if slack.ball and not scalar else None
    found = _reduce(tests.values, weights, tuple(free.tolist()), d, form, simplex, groups)
    norms, fixed, loose, transform = found.norms, found.fixed, found.loose, found.transform
    center = slack.center.reshape(-1, block)
    _refuse_empty(center[norms == 0], radius.reshape(-1, block)[norms == 0])
    scaled = center[fixed] / norms[fixed, None]
    leftover = found.null @ scaled
    if leftover.size and np.abs(leftover).max() > 1e-9 * (1.0 + np.abs(scaled).max()):
        raise InfeasibleError(EMPTY)
    new_center = (transform.T @ center).reshape(-1)
    back = np.kron(transform, np.eye(block)).astype(np.float64)
    first_loose = (transform.shape[1] - loose.size) * block
    exact = np.arange(first_loose)
    if simplex and scalar and exact.size:
        drift = np.abs(new_center[exact].reshape(-1, d).sum(axis=1)).max()
        if drift > 1e-9 * (1.0 + np.abs(new_center).max()):
            raise InfeasibleError(EMPTY)
    loose_moments = first_loose + np.arange(loose.size * block)
    loose_radius = (radius.reshape(-1, block)[loose] / norms[loose, None]).reshape(-1)
    loose_groups = slack.groups.reshape(-1, block)[loose].reshape(-1)
    interval, balls, ball_radius = _sort_loose(loose_moments, loose_radius, loose_groups, slack.ball, d)
    position = np.full(new_center.size, -1)
    position[loose_moments] = np.arange(loose_moments.size)
    return MomentSystem(
        found.values,
        weights,
        d,
        back,
        new_center,
        exact,
        interval,
        loose_radius[position[interval]],
        balls,
        ball_radius,
        gauge=simplex and scalar,
    )


@dataclass(frozen=True, eq=False)
class _Reduction:
    """Tests in new coordinates, without their slack: orthonormal ones first, rescaled ones behind.

    Slack of other sizes around the same tests is edited often, and has the same reduction.
    """

    values: FloatArray  # rows last
    norms: FloatArray
    fixed: IntArray  # tests that must vanish exactly
    loose: IntArray  # tests with slack
    null: FloatArray  # combinations of scaled exact tests that are zero on every row
    transform: FloatArray  # from given tests to reduced ones


@remembered_for_arrays
def _reduce(
    given: FloatArray,
    weights: FloatArray,
    pattern: tuple[bool, ...],
    d: int,
    form: str,
    simplex: bool,
    groups: tuple[int, ...] | None,
) -> _Reduction:
    """Reduce tests of which a pattern says which are free to be off; ``groups`` have round slack."""
    values, scalar, free = given, form in ("scalar", "column"), np.array(pattern, dtype=bool)
    if form == "column":
        values = given[:, :, 0]
    elif form == "written out":
        values = write_out(given, d)
    if simplex and not scalar and not free.all():
        # Residuals on the simplex sum to zero, so only the centred part of an exact test matters.
        centered = values - values.mean(axis=2, keepdims=True)
        centered[np.abs(centered) <= 1e-14 * np.abs(values).max(axis=2, keepdims=True)] = 0.0
        values = np.where(free[None, :, None], values, centered)
    gram = _weighted_gram(values, weights) if scalar else None
    norms = np.sqrt(np.einsum("nkd,nkd,n->k", values, values, weights) if gram is None else np.diag(gram))
    if groups is not None:  # one scale for all moments of a ball, or it would not stay round
        numbers = np.array(groups, dtype=np.int64)
        largest = np.zeros(int(numbers.max(initial=-1)) + 1)
        np.maximum.at(largest, numbers, norms)
        norms = np.where(free, largest[numbers], norms)
    fixed, loose = np.flatnonzero(~free & (norms > 0)), np.flatnonzero(free & (norms > 0))
    basis, null, factors = np.zeros((fixed.size, 0)), np.zeros((0, fixed.size)), None
    if fixed.size:
        inner = None if gram is None else gram[np.ix_(fixed, fixed)]
        basis, null, factors = _orthonormal(values, fixed, weights, norms[fixed], inner)
    reduced = np.empty((basis.shape[1] + loose.size, *([d] if not scalar else []), len(weights)))
    _write(reduced, values, weights, fixed, basis, factors, loose, norms[loose])
    transform = np.zeros((values.shape[1], basis.shape[1] + loose.size))
    transform[fixed, : basis.shape[1]] = basis
    transform[loose, basis.shape[1] + np.arange(loose.size)] = 1 / norms[loose]
    return _Reduction(reduced, norms, fixed, loose, null, transform)


def _weighted_gram(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Inner products of scalar tests."""
    equal = weights.strides == (0,)  # equal weights are a view of one number

    def inner(part: slice) -> FloatArray:
        own = values[part]
        product: FloatArray = (own if equal else own * weights[part, None]).T @ own
        return product

    gram: FloatArray = np.sum(over_rows(inner, len(weights), *_for_threads(values[0].size)), axis=0)
    return gram * weights[0] if equal else gram


def _for_threads(numbers: int) -> tuple[int, int]:
    """Rows of a part and number of rows from which threads pay, the fewer the more numbers a row has."""
    width = max(1, numbers)
    return max(1, _PART_ELEMENTS // width), _ELEMENTS_FOR_THREADS // width


def _orthonormal(
    values: FloatArray,
    fixed: IntArray,
    weights: FloatArray,
    norms: FloatArray,
    gram: FloatArray | None,
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Orthonormalise tests that must vanish exactly.

    Returns the basis, the combinations of scaled tests that are zero on every row and, if known, the tests written in
    the basis.
    """
    if gram is not None:  # tests that are far from collinear: their Gram matrix loses nothing that matters
        sizes, axes = np.linalg.eigh(gram / (norms[:, None] * norms))
        if sizes[0] > _FAR_FROM_COLLINEAR * sizes[-1]:
            return (axes / np.sqrt(sizes)) / norms[:, None], np.zeros((0, norms.size)), None
    root = np.sqrt(weights)
    flat = values[:, fixed] * (root[:, None] if gram is not None else root[:, None, None])
    flat = flat if gram is not None else flat.transpose(0, 2, 1).reshape(-1, fixed.size)
    left, sizes, rotation = np.linalg.svd(flat / norms, full_matrices=flat.shape[0] < norms.size)
    keep = np.zeros(rotation.shape[0], dtype=bool)
    keep[: sizes.size] = sizes > sizes[0] * 1e-11
    rank = int(keep.sum())
    return (rotation[keep].T / sizes[:rank]) / norms[:, None], rotation[~keep], left[:, :rank]


def _write(
    reduced: FloatArray,
    values: FloatArray,
    weights: FloatArray,
    fixed: IntArray,
    basis: FloatArray,
    factors: FloatArray | None,
    loose: IntArray,
    scale: FloatArray,
) -> None:
    """Write the reduced tests with rows last: orthonormalised ones first, rescaled ones behind."""
    rank = basis.shape[1]
    d = 1 if values.ndim == 2 else values.shape[2]

    def fill(part: slice) -> None:
        if factors is None and values.ndim == 2:
            columns = values[part].T
            np.matmul(basis.T, columns if fixed.size == len(columns) else columns[fixed], out=reduced[:rank, part])
            np.divide(columns[loose], scale[:, None], out=reduced[rank:, part])
            return
        known = None if factors is None else factors[part.start * d : part.stop * d]
        exact = _written_in_basis(values[part][:, fixed], basis, known, np.sqrt(weights[part]))
        reduced[:rank, ..., part] = np.moveaxis(exact, 0, -1)
        free = values[part][:, loose] / (scale if values.ndim == 2 else scale[:, None])
        reduced[rank:, ..., part] = np.moveaxis(free, 0, -1)

    over_rows(fill, len(weights), *_for_threads(values[0].size))


def _written_in_basis(values: FloatArray, basis: FloatArray, left: FloatArray | None, root: FloatArray) -> FloatArray:
    """Write the orthonormalised tests, row by row in the more accurate of two ways.

    Tests times basis cancel where tests are nearly equal; the left factor of
    the decomposition does not, but loses digits in rows of tiny weight.
    """
    if values.ndim == 2:
        product = values @ basis
        if left is None:
            return product
        return np.where(np.abs(values) @ np.abs(basis) * root[:, None] < 1.0, product, left / root[:, None])
    n, _, d = values.shape
    product = np.einsum("nkd,kr->nrd", values, basis)
    if left is None:
        return product
    factor = left.reshape(n, d, -1).transpose(0, 2, 1) / root[:, None, None]
    size = np.einsum("nkd,kr->nrd", np.abs(values), np.abs(basis))
    return np.where(size * root[:, None, None] < 1.0, product, factor)


def _sort_loose(
    moments: IntArray, radius: FloatArray, groups: IntArray, ball: bool, d: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Split moments with slack into intervals and l2 balls; a ball of one moment is an interval."""
    if not ball:
        return moments, np.zeros((0, d), dtype=np.int64), np.zeros(0)
    _, start, counts = np.unique(groups, return_index=True, return_counts=True)
    single = np.isin(np.arange(moments.size), start[counts == 1])
    balls = [moments[begin : begin + d] for begin in start[counts > 1]]
    ball_radius = radius[start[counts > 1]]
    return moments[single], np.array(balls, dtype=np.int64).reshape(-1, d), ball_radius


def _refuse_empty(center: FloatArray, radius: FloatArray) -> None:
    """Refuse slack that excludes zero for a test that is zero on every row."""
    if (np.abs(center) > radius + 1e-12).any():
        raise InfeasibleError(EMPTY)
