"""Moments in coordinates that are safe to compute in.

Collinear, constant, empty and duplicated tests are ordinary input. Moments
that must vanish exactly only matter through their span, so they are
orthonormalised in the weighted inner product and null directions dropped.
Moments with slack depend on the basis, so they are only rescaled. Multipliers
map back by one matrix.
"""

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen
from prudent.arrays.chunks import over_rows
from prudent.cases.ambiguity import Ambiguity
from prudent.errors import InfeasibleError
from prudent.solvers.moment_system import MomentSystem, parts_for_threads
from prudent.solvers.orthonormal_tests import orthonormal_basis

_NEARLY_COLLINEAR = 5e4  # in epsilon: what a coarse reduction leaves out

EMPTY = (
    "no world satisfies the guarantee with this slack: the moments it is centred at cannot be attained by any "
    "outcomes in the space. Center the slack at moments measured on this sample, or widen its radius."
)

#: The least eigenvalue of a Gram matrix, as a share of the largest, from which on it loses nothing that matters.
FAR_FROM_COLLINEAR = 1e-6


@frozen
class Reduction:
    """Tests in new coordinates, without their slack: orthonormal ones first, rescaled ones behind.

    Slack of other sizes around the same tests is edited often, and has the same reduction.
    """

    norms: FloatArray
    fixed: IntArray  # tests that must vanish exactly
    loose: IntArray  # tests with slack
    null: FloatArray  # combinations of scaled exact tests that are zero on every row
    transform: FloatArray  # from given tests to reduced ones


def round_norms(norms: FloatArray, free: BoolArray, groups: IntArray | None) -> FloatArray:
    """Give all moments of a ball, which ``groups`` tell apart, one scale, or it would not stay round."""
    if groups is None:
        return norms
    largest = np.zeros(int(groups.max(initial=-1)) + 1)
    np.maximum.at(largest, groups, norms)
    return np.where(free, largest[groups], norms)


def weighted_gram(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Inner products of scalar tests."""

    def inner(part: slice) -> FloatArray:
        return np.asarray((values[part] * weights[part, None]).T @ values[part])

    return np.asarray(np.sum(over_rows(inner, len(weights), *parts_for_threads(values[0].size)), axis=0))


def reduce_moments(ambiguity: Ambiguity, coarse: bool = False) -> MomentSystem:
    """Orthonormalise exact moments, rescale the others, and sort them by their kind of slack.

    A ``coarse`` reduction leaves out tests that are nearly combinations of others: multipliers stay small.
    """
    tests, slack, d = ambiguity.tests, ambiguity.slack, ambiguity.tests.dimension
    radius = slack.radius_of_moments
    free = radius > 0
    if tests.scalar or d == 1:
        per_test = free.reshape(-1, d)
        loose = np.asarray(per_test.any(axis=1))
        if np.array_equal(loose, per_test.all(axis=1)):
            return _with_slack(ambiguity, loose, radius, scalar=True, coarse=coarse)
    return _with_slack(ambiguity, free, radius, scalar=False, coarse=coarse)


def _with_slack(ambiguity: Ambiguity, free: BoolArray, radius: FloatArray, scalar: bool, coarse: bool) -> MomentSystem:
    """Put the slack around reduced tests."""
    tests, slack, weights = ambiguity.tests, ambiguity.slack, ambiguity.weights
    d, simplex = tests.dimension, ambiguity.space.is_simplex
    block = d if scalar else 1  # moments per test that is reduced
    groups = slack.groups if slack.ball and not scalar else None
    values, found = _reduce(tests.table if scalar else tests.vectors, weights, free, simplex, groups, coarse)
    norms, fixed, loose, transform = found.norms, found.fixed, found.loose, found.transform
    idle = np.asarray(_out_of_reach(ambiguity).reshape(-1, block).all(axis=1))[loose]
    if idle.any():
        # They never bind. Left in, slack that is far beyond what they reach would spoil the scale of everything.
        loose, kept = loose[~idle], np.append(np.ones(transform.shape[1] - idle.size, dtype=bool), ~idle)
        transform, values = transform[:, kept], values[kept]
    center = slack.center.reshape(-1, block)
    if (np.abs(center) > radius.reshape(-1, block) + 1e-12)[norms == 0].any():  # of tests that are zero everywhere
        raise InfeasibleError(EMPTY)
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
    )


def _out_of_reach(ambiguity: Ambiguity) -> BoolArray:
    """Which moments have slack that no world can use up, ``(K,)``."""
    tests, slack = ambiguity.tests, ambiguity.slack
    reach, off = tests.moment_sizes(ambiguity.space.widths), np.abs(slack.center)
    if not slack.ball:
        return np.asarray(slack.radius - off >= reach)
    reach, off = (np.sqrt(np.bincount(slack.groups, weights=sizes**2)) for sizes in (reach, off))
    return np.asarray(slack.radius - off >= reach)[slack.groups]


def _reduce(
    values: FloatArray,
    weights: FloatArray,
    free: BoolArray,
    simplex: bool,
    groups: IntArray | None,
    coarse: bool,
) -> tuple[FloatArray, Reduction]:
    """Reduce tests of which some are free to be off; ``groups`` have round slack. Rows come last."""
    scalar = values.ndim == 2
    if simplex and not scalar and not free.all():
        # Residuals on the simplex sum to zero, so only differences between classes matter in an exact test.
        values = np.where(free[None, :, None], values, values - values[:, :, -1:])
    gram = weighted_gram(values, weights) if scalar else None
    norms = np.sqrt(np.einsum("nkd,nkd,n->k", values, values, weights) if gram is None else np.diag(gram))
    norms = round_norms(norms, free, groups)
    fixed, loose = np.flatnonzero(~free & (norms > 0)), np.flatnonzero(free & (norms > 0))
    basis, null, written = np.zeros((fixed.size, 0)), np.zeros((0, fixed.size)), None
    if fixed.size:
        inner = None if gram is None else gram[np.ix_(fixed, fixed)]
        basis, null, written = _orthonormal(values, fixed, weights, norms[fixed], inner, coarse)
    reduced = np.empty((basis.shape[1] + loose.size, *values.shape[2:], len(weights)))
    _write(reduced, values, fixed, basis, written, loose, norms[loose])
    if simplex and not scalar:
        exact = reduced[: basis.shape[1]]
        exact -= exact.mean(axis=1, keepdims=True)
    transform = np.zeros((values.shape[1], basis.shape[1] + loose.size))
    transform[fixed, : basis.shape[1]] = basis
    transform[loose, basis.shape[1] + np.arange(loose.size)] = 1 / norms[loose]
    return reduced, Reduction(norms, fixed, loose, null, transform)


def _orthonormal(
    values: FloatArray,
    fixed: IntArray,
    weights: FloatArray,
    norms: FloatArray,
    gram: FloatArray | None,
    coarse: bool,
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Orthonormalise tests that must vanish exactly.

    Returns the basis, the combinations of scaled tests that are zero on every row and, if known, the tests written in
    the basis.
    """
    if gram is not None:  # tests that are far from collinear: their Gram matrix loses nothing that matters
        sizes, axes = np.linalg.eigh(gram / (norms[:, None] * norms))
        if sizes[0] > FAR_FROM_COLLINEAR * sizes[-1]:
            return (axes / np.sqrt(sizes)) / norms[:, None], np.zeros((0, norms.size)), None
    chosen = values[:, fixed]
    flat = chosen if chosen.ndim == 2 else chosen.transpose(0, 2, 1).reshape(-1, fixed.size)
    of_rows = weights if chosen.ndim == 2 else np.repeat(weights, chosen.shape[2])
    found = orthonormal_basis(flat, of_rows, *([_NEARLY_COLLINEAR] if coarse else []))
    written = found.values.reshape(len(chosen), *chosen.shape[2:], found.transform.shape[1])
    return found.transform, found.null * norms, written


def _write(
    reduced: FloatArray,
    values: FloatArray,
    fixed: IntArray,
    basis: FloatArray,
    written: FloatArray | None,
    loose: IntArray,
    scale: FloatArray,
) -> None:
    """Write the reduced tests with rows last: orthonormalised ones first, rescaled ones behind."""
    rank = basis.shape[1]

    def fill(part: slice) -> None:
        columns = np.moveaxis(values[part], 0, -1)
        if written is not None:
            reduced[:rank, ..., part] = np.moveaxis(written[part], (0, -1), (-1, 0))
        else:
            reduced[:rank, ..., part] = np.tensordot(basis.T, columns[fixed], axes=1)
        reduced[rank:, ..., part] = columns[loose] / scale.reshape(-1, *[1] * (columns.ndim - 1))

    over_rows(fill, len(values), *parts_for_threads(values[0].size))


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
