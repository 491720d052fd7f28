"""Moments in coordinates that are safe to compute in.

Collinear, constant, empty and duplicated tests are ordinary input. Moments
that must vanish exactly only matter through their span, so they are
orthonormalised in the weighted inner product and null directions dropped.
Moments with slack depend on the basis, so they are only rescaled. Multipliers
map back by one matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.errors import InfeasibleError
from prudent.guarantees.column_tests import ColumnTests
from prudent.guarantees.evaluated import EvaluatedTests, write_out
from prudent.remembering import remembered, remembered_for_arrays
from prudent.solvers.column_reduction import (
    FAR_FROM_COLLINEAR,
    Reduction,
    reduce_columns,
    round_norms,
    weighted_gram,
)
from prudent.solvers.moment_system import MomentSystem, parts_for_threads
from prudent.spaces import Simplex

__all__ = ["EMPTY", "plain_system", "reduce_moments"]

_MANY_ROWS = 4_000  # few ones are cheap to write out

EMPTY = (
    "no world satisfies the guarantee with this slack: the moments it is centred at cannot be attained by any "
    "outcomes in the space. Center the slack at moments measured on this sample, or widen its radius."
)


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
    groups = tuple(slack.groups.tolist()) if slack.ball and not scalar else None
    found = None
    if isinstance(tests, ColumnTests) and tests.n_rows >= _MANY_ROWS:
        values, found = tests.rows_last, reduce_columns(tests, weights, free, simplex, groups)
    if found is None:
        kind = ("scalar" if scalar else "written out") if tests.scalar else ("column" if scalar else "vector")
        values, found = _reduce(tests.values, weights, tuple(free.tolist()), d, kind, simplex, groups)
    norms, fixed, loose, transform, combination = (
        found.norms,
        found.fixed,
        found.loose,
        found.transform,
        found.combination,
    )
    idle = np.asarray(_out_of_reach(ambiguity).reshape(-1, block).all(axis=1))[loose]
    if idle.any():
        # They never bind. Left in, slack that is far beyond what they reach would spoil the scale of everything.
        loose, kept = loose[~idle], np.append(np.ones(transform.shape[1] - idle.size, dtype=bool), ~idle)
        transform = transform[:, kept]
        values, combination = (values[kept], None) if combination is None else (values, combination[:, kept])
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
        values,
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
        combination=combination,
    )


def _out_of_reach(ambiguity: Ambiguity) -> NDArray[np.bool_]:
    """Which moments have slack that no world can use up, ``(K,)``."""
    tests, slack = ambiguity.tests, ambiguity.slack
    low, high = ambiguity.space.bounds
    reach, off = tests.moment_sizes(high - low), np.abs(slack.center)
    if not slack.ball:
        return np.asarray(slack.radius - off >= reach)
    reach, off = (np.sqrt(np.bincount(slack.groups, weights=sizes**2)) for sizes in (reach, off))
    return np.asarray(slack.radius - off >= reach)[slack.groups]


def plain_system(tests: EvaluatedTests, weights: FloatArray) -> MomentSystem:
    """Tests as they are, all of which must vanish: for sums over rows."""
    combination = None
    if isinstance(tests, ColumnTests):
        values, combination = tests.rows_last, tests.combination
    else:
        values = tests.values.T if tests.scalar else np.moveaxis(tests.values, 0, -1)
    nothing, none = np.zeros(0), np.zeros(0, dtype=np.int64)
    count, d = tests.n_moments, tests.dimension
    balls = np.zeros((0, d), dtype=np.int64)
    back, exact = np.eye(count), np.arange(count)
    return MomentSystem(
        values,
        weights,
        d,
        back,
        np.zeros(count),
        exact,
        none,
        nothing,
        balls,
        nothing,
        gauge=False,
        combination=combination,
    )


@remembered_for_arrays
def _reduce(
    given: FloatArray,
    weights: FloatArray,
    pattern: tuple[bool, ...],
    d: int,
    kind: str,
    simplex: bool,
    groups: tuple[int, ...] | None,
) -> tuple[FloatArray, Reduction]:
    """Reduce tests of which a pattern says which are free to be off; ``groups`` have round slack. Rows come last."""
    values, scalar, free = given, kind in ("scalar", "column"), np.array(pattern, dtype=bool)
    if kind == "column":
        values = given[:, :, 0]
    elif kind == "written out":
        values = write_out(given, d)
    if simplex and not scalar and not free.all():
        # Residuals on the simplex sum to zero, so only the centred part of an exact test matters.
        centered = values - values.mean(axis=2, keepdims=True)
        centered[np.abs(centered) <= 1e-14 * np.abs(values).max(axis=2, keepdims=True)] = 0.0
        values = np.where(free[None, :, None], values, centered)
    gram = weighted_gram(values, weights) if scalar else None
    norms = np.sqrt(np.einsum("nkd,nkd,n->k", values, values, weights) if gram is None else np.diag(gram))
    norms = round_norms(norms, free, groups)
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
    return reduced, Reduction(norms, fixed, loose, null, transform, None)


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
        if sizes[0] > FAR_FROM_COLLINEAR * sizes[-1]:
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

    over_rows(fill, len(weights), *parts_for_threads(values[0].size))


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
