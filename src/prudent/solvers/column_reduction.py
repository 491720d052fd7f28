"""Reduce tests that are made of few columns: their Gram matrix says everything, and rows stay as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray
from prudent.chunks import over_rows
from prudent.guarantees.column_tests import ColumnTests
from prudent.remembering import remembered_for_arrays
from prudent.solvers.moment_system import parts_for_threads

__all__ = ["FAR_FROM_COLLINEAR", "Reduction", "reduce_columns", "round_norms", "weighted_gram"]

#: The least eigenvalue of a Gram matrix, as a share of the largest, from which on it loses nothing that matters.
FAR_FROM_COLLINEAR = 1e-6
_SURELY_NOT_ZERO = 1e-10


@dataclass(frozen=True, eq=False)
class Reduction:
    """Tests in new coordinates, without their slack: orthonormal ones first, rescaled ones behind.

    Slack of other sizes around the same tests is edited often, and has the same reduction.
    """

    norms: FloatArray
    fixed: IntArray  # tests that must vanish exactly
    loose: IntArray  # tests with slack
    null: FloatArray  # combinations of scaled exact tests that are zero on every row
    transform: FloatArray  # from given tests to reduced ones
    combination: FloatArray | None  # how reduced tests are made of columns; None where they are written out


def reduce_columns(
    tests: ColumnTests,
    weights: FloatArray,
    free: NDArray[np.bool_],
    simplex: bool,
    groups: tuple[int, ...] | None,
) -> Reduction | None:
    """Reduce tests of which some are free to be off; None where a Gram matrix would lose digits."""
    d, count = tests.dimension, tests.n_moments
    gram = _column_gram(tests.columns, weights)
    given = tests.combination.reshape(-1, d, count)
    raw = _inner(given, gram).diagonal()
    if simplex:
        # Residuals on the simplex sum to zero, so only the centred part of an exact test matters.
        given = np.where(free, given, given - given.mean(axis=1, keepdims=True))
    inner = _inner(given, gram)
    norms = round_norms(np.sqrt(np.maximum(inner.diagonal(), 0.0)), free, groups)
    fixed, loose = np.flatnonzero(~free & (norms > 0)), np.flatnonzero(free & (norms > 0))
    basis = np.zeros((fixed.size, 0))
    if fixed.size:
        sizes, axes = np.linalg.eigh(inner[np.ix_(fixed, fixed)] / (norms[fixed, None] * norms[fixed]))
        clear = (inner.diagonal()[fixed] > _SURELY_NOT_ZERO * raw[fixed]).all()
        if not clear or sizes[0] <= FAR_FROM_COLLINEAR * sizes[-1]:
            return None
        basis = (axes / np.sqrt(sizes)) / norms[fixed, None]
    transform = np.zeros((count, basis.shape[1] + loose.size))
    transform[fixed, : basis.shape[1]] = basis
    transform[loose, basis.shape[1] + np.arange(loose.size)] = 1 / norms[loose]
    null = np.zeros((0, fixed.size))
    return Reduction(norms, fixed, loose, null, transform, given.reshape(-1, count) @ transform)


def _inner(combination: FloatArray, gram: FloatArray) -> FloatArray:
    """Inner products of tests ``(c, d, K)`` from those of the columns."""
    product: FloatArray = np.einsum("cjk,ce,ejl->kl", combination, gram, combination, optimize=True)
    return product


@remembered_for_arrays
def _column_gram(columns: FloatArray, weights: FloatArray) -> FloatArray:
    return weighted_gram(columns, weights)


def round_norms(norms: FloatArray, free: NDArray[np.bool_], groups: tuple[int, ...] | None) -> FloatArray:
    """Give all moments of a ball, which ``groups`` tell apart, one scale, or it would not stay round."""
    if groups is None:
        return norms
    numbers = np.array(groups, dtype=np.int64)
    largest = np.zeros(int(numbers.max(initial=-1)) + 1)
    np.maximum.at(largest, numbers, norms)
    return np.where(free, largest[numbers], norms)


def weighted_gram(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Inner products of scalar tests."""
    equal = weights.strides == (0,)  # equal weights are a view of one number

    def inner(part: slice) -> FloatArray:
        own = values[part]
        product: FloatArray = (own if equal else own * weights[part, None]).T @ own
        return product

    gram: FloatArray = np.sum(over_rows(inner, len(weights), *parts_for_threads(values[0].size)), axis=0)
    return gram * weights[0] if equal else gram
