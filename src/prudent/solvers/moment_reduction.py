"""Moments in coordinates that are safe to compute in.

Collinear, constant, empty and duplicated tests are ordinary input. Moments
that must vanish exactly only matter through their span, so they are
orthonormalised in the weighted inner product and null directions dropped.
Moments with slack depend on the basis, so they are only rescaled. Multipliers
map back by one matrix.
"""

import numpy as np

from prudent.arrays import BoolArray, FloatArray
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
    values = tests.table if scalar else tests.vectors
    if simplex and not scalar:
        # Residuals on the simplex sum to zero, so only differences between classes matter in an exact test.
        values = np.where(free[None, :, None], values, values - values[:, :, -1:])
    gram = _weighted_gram(values, weights) if scalar else None
    norms = np.sqrt(np.einsum("nkd,nkd,n->k", values, values, weights) if gram is None else np.diag(gram))
    if slack.ball and not scalar:  # all moments of a ball have one scale, or it would not stay round
        largest = np.zeros(slack.radius.size)
        np.maximum.at(largest, slack.groups, norms)
        norms = np.where(free, largest[slack.groups], norms)
    if (np.abs(center) > radius + 1e-12)[norms == 0].any():
        raise InfeasibleError(EMPTY)
    fixed = np.flatnonzero(~free & (norms > 0))
    # Slack that nothing can use up never binds. Left in, it would spoil the scale of everything.
    idle = np.asarray(_out_of_reach(ambiguity).reshape(-1, block).all(axis=1))
    loose = np.flatnonzero(free & (norms > 0) & ~idle)

    basis, written = None, None
    if gram is not None and fixed.size:  # tests that are far from collinear: the Gram matrix loses nothing that matters
        sizes, axes = np.linalg.eigh(gram[np.ix_(fixed, fixed)] / (norms[fixed, None] * norms[fixed]))
        if sizes[0] > _FAR_FROM_COLLINEAR * sizes[-1]:
            basis = (axes / np.sqrt(sizes)) / norms[fixed, None]
    if basis is None:
        flat, of_rows = np.moveaxis(values[:, fixed], 1, -1), np.repeat(weights, d // block)
        found = orthonormal_basis(
            flat.reshape(of_rows.size, fixed.size), of_rows, *([_NEARLY_COLLINEAR] if coarse else [])
        )
        basis, written = found.transform, found.values.reshape(*flat.shape[:-1], found.transform.shape[1])
        left = np.abs(found.null @ center[fixed]).max(initial=0.0)
        if left > 1e-9 * (1.0 + np.abs(center[fixed] / norms[fixed, None]).max(initial=0.0)):
            raise InfeasibleError(EMPTY)

    rank = basis.shape[1]
    transform = np.zeros((values.shape[1], rank + loose.size))  # from given tests to reduced ones
    transform[fixed, :rank] = basis
    transform[loose, rank + np.arange(loose.size)] = 1 / norms[loose]
    reduced = np.empty((rank + loose.size, *values.shape[2:], len(weights)))

    def write(part: slice) -> None:
        columns = np.moveaxis(values[part], 0, -1)
        if written is None:
            reduced[:rank, ..., part] = np.tensordot(basis.T, columns[fixed], axes=1)
        else:
            reduced[:rank, ..., part] = np.moveaxis(written[part], (0, -1), (-1, 0))
        reduced[rank:, ..., part] = columns[loose] / norms[loose].reshape(-1, *[1] * (columns.ndim - 1))

    over_rows(write, len(values), *parts_for_threads(values[0].size))
    if simplex and not scalar:
        reduced[:rank] -= reduced[:rank].mean(axis=1, keepdims=True)
    new_center = (transform.T @ center).reshape(-1)
    if simplex and scalar and rank:
        drift = np.abs(new_center[: rank * d].reshape(-1, d).sum(axis=1)).max()
        if drift > 1e-9 * (1.0 + np.abs(new_center).max()):
            raise InfeasibleError(EMPTY)
    behind = np.arange(rank * block, new_center.size)
    loose_radius = (radius[loose] / norms[loose, None]).reshape(-1)
    groups = slack.groups.reshape(-1, block)[loose].reshape(-1)
    single = np.bincount(groups)[groups] == 1 if slack.ball else np.ones(groups.size, dtype=bool)  # else in a ball
    return MomentSystem(
        reduced,
        weights,
        d,
        np.kron(transform, np.eye(block)).astype(np.float64),
        new_center,
        np.arange(rank * block),
        behind[single],
        loose_radius[single],
        behind[~single].reshape(-1, d),
        loose_radius[~single][::d],
        gauge=simplex and scalar,
    )


def _weighted_gram(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Inner products of scalar tests."""

    def inner(part: slice) -> FloatArray:
        return np.asarray((values[part] * weights[part, None]).T @ values[part])

    return np.asarray(np.sum(over_rows(inner, len(weights), *parts_for_threads(values[0].size)), axis=0))


def _out_of_reach(ambiguity: Ambiguity) -> BoolArray:
    """Which moments have slack that no world can use up, ``(K,)``."""
    tests, slack = ambiguity.tests, ambiguity.slack
    reach, off = tests.moment_sizes(ambiguity.space.widths), np.abs(slack.center)
    if not slack.ball:
        return np.asarray(slack.radius - off >= reach)
    reach, off = (np.sqrt(np.bincount(slack.groups, weights=sizes**2)) for sizes in (reach, off))
    return np.asarray(slack.radius - off >= reach)[slack.groups]
