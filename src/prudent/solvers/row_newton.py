"""The rows' side of a Newton step (docs/theory.md, section 6); rows come last in every array.

Given the tilts that the moments' multipliers make, every row is a small program of its own:
``min t`` over ``t >= r_a.q + c_a`` and ``q`` in the space. Its constraints have slacks ``s`` and duals ``z``:
those of the actions first (``z`` is the mixture), then the lower bounds of ``q``, then, on a box, the upper bounds.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.solvers.game import Game
from prudent.solvers.moment_system import upper_triangles

#: Duals of the bounds where an iteration starts.
START = 0.1
_MOST_CENTERING = 25  # Newton steps to the central path

#: Slacks ``s``, duals ``z`` and the multipliers of the simplex's sum.
Pairs = tuple[FloatArray, FloatArray, FloatArray]


@frozen
class RowGames:
    """The games of all rows in natural units: utility range one, outcomes in the unit box or the simplex."""

    rewards: FloatArray  # (m, d), or (m, d, n) where rows have their own
    offsets: FloatArray  # (m, 1 or n)
    forecasts: FloatArray  # (d, n)
    simplex: bool

    @classmethod
    def of_game(cls, game: Game, forecasts: FloatArray) -> RowGames:
        """Put rows last."""
        own = game.rewards.shape[0] > 1
        offsets, points = np.ascontiguousarray(game.offsets.T), np.ascontiguousarray(forecasts.T)
        rewards = np.ascontiguousarray(np.moveaxis(game.rewards, 0, -1)) if own else game.rewards[0]
        return cls(rewards, offsets, points, game.space.is_simplex)

    @property
    def m(self) -> int:
        """Number of actions."""
        return int(self.rewards.shape[0])

    @property
    def d(self) -> int:
        """Number of outcome coordinates."""
        return int(self.rewards.shape[1])

    def values(self, q: FloatArray) -> FloatArray:
        """Rewards times beliefs, ``(m, n)``."""
        if self.rewards.ndim == 2:
            return self.rewards @ q
        return np.einsum("mdn,dn->mn", self.rewards, q)

    def mix(self, mixtures: FloatArray) -> FloatArray:
        """Mean rewards of mixtures, ``(d, n)``."""
        if self.rewards.ndim == 2:
            return self.rewards.T @ mixtures
        return np.einsum("mn,mdn->dn", mixtures, self.rewards)


def first_pairs(games: RowGames, tilts: FloatArray) -> Pairs:
    """Start at beliefs near the forecasts, pushed off the boundary, with dual residual zero."""
    q = 0.9 * games.forecasts + 0.1 * (1.0 / games.d if games.simplex else 0.5)
    utilities = games.values(q) + games.offsets
    heights = utilities.max(axis=0) + 0.3 - utilities
    mixtures = 1.0 / heights
    mixtures /= mixtures.sum(axis=0)
    slope = games.mix(mixtures) + tilts
    nu = np.zeros(q.shape[1])
    # Slacks are variables of their own: recomputing them from the beliefs would cancel near the end.
    if games.simplex:
        nu = START - slope.min(axis=0)
        return np.concatenate([heights, q]), np.concatenate([mixtures, slope + nu]), nu
    bounds = [np.maximum(slope, 0.0) + START, np.maximum(-slope, 0.0) + START]
    return np.concatenate([heights, q, 1.0 - q]), np.concatenate([mixtures, *bounds]), nu


def centered_pairs(games: RowGames, tilts: FloatArray, mu: float) -> Pairs:
    """Bring rows with given tilts to the central path: multipliers fixed, every row with a step length of its own."""
    s, z, nu = first_pairs(games, tilts)
    for _ in range(_MOST_CENTERING):
        newton = RowNewton(games, s, z, nu, tilts)
        off = np.abs(newton.complementarity / mu - 1.0).max(initial=0.0)
        if off < 0.5 and float(np.abs(newton.dual_residual).max(initial=0.0)) < 0.1 * mu:
            break
        newton.factor()
        target = np.maximum(0.1 * newton.complementarity.mean(axis=0), mu)
        step = newton.step(newton.rhs(target - newton.complementarity), np.zeros_like(tilts), refinements=0)
        primal = np.minimum(1.0, -0.95 / np.minimum((step.s / s).min(axis=0), -1e-9))
        dual = np.minimum(1.0, -0.95 / np.minimum((step.z / z).min(axis=0), -1e-9))
        s, z, nu = s + primal * step.s, z + dual * step.z, nu + dual * step.nu
    return s, z, nu


@frozen
class RowRhs:
    """Right side of the rows' Newton equations.

    Attributes
    ----------
    products : array of shape (c, n)
        What the products ``s z`` are to change by.
    height : array of shape (n,)
        Right side of the mixtures' sums, after elimination.
    load : array of shape (d, n)
        Right side of the beliefs' equations, after elimination.
    solved : array of shape (d, n)
        Step of the beliefs at unchanged tilts.
    """

    products: FloatArray
    height: FloatArray
    load: FloatArray
    solved: FloatArray


@frozen
class RowStep:
    """Steps of all pairs."""

    s: FloatArray
    z: FloatArray
    nu: FloatArray


class RowNewton:
    """The rows' part of one linearisation: residuals, factored blocks, steps."""

    def __init__(self, games: RowGames, s: FloatArray, z: FloatArray, nu: FloatArray, tilts: FloatArray) -> None:
        self.games, self.s, self.z, self.nu = games, s, z, nu
        m, d = games.m, games.d
        self.complementarity = s * z
        stationarity = games.mix(z[:m]) + tilts - z[m : m + d] + nu
        self.dual_residual = -stationarity if games.simplex else -(stationarity + z[m + d :])
        self.sum_residual = 1.0 - z[:m].sum(axis=0)

    def factor(self) -> None:
        """Factor every row's block: the covariance of the rewards, weighted by ``z / s``, plus the bounds' barriers."""
        games, m, d = self.games, self.games.m, self.games.d
        self.ratio = self.z / self.s
        theta = self.ratio[:m]
        self.total = theta.sum(axis=0)
        self.mean = games.mix(theta / self.total)
        barrier = self.ratio[m : m + d]
        if not games.simplex:
            barrier = barrier + self.ratio[m + d :]
        rewards = games.rewards[:, :, None] if games.rewards.ndim == 2 else games.rewards
        self.blocks = RowBlocks((rewards - self.mean) * np.sqrt(theta)[:, None], barrier, games.simplex)
        self.metric = upper_triangles(self.blocks.inverse)

    def rhs(self, products: FloatArray) -> RowRhs:
        """Eliminate everything but the beliefs."""
        games, m, d = self.games, self.games.m, self.games.d
        scaled = products / self.s
        height = scaled[:m].sum(axis=0) - self.sum_residual
        load = self.dual_residual + scaled[m : m + d] - (games.mix(scaled[:m]) - self.mean * height)
        if not games.simplex:
            load -= scaled[m + d :]
        return RowRhs(products, height, load, self.blocks.apply(load))

    def step(self, rhs: RowRhs, tilts: FloatArray, refinements: int) -> RowStep:
        """Steps for a right side and a change of tilts."""
        games, m, d = self.games, self.games.m, self.games.d
        d_q, d_nu = self.blocks.solve(rhs.load - tilts, refinements)
        d_height = np.einsum("dn,dn->n", self.mean, d_q) + rhs.height / self.total
        d_s = np.empty_like(self.s)
        d_s[:m] = d_height - games.values(d_q)
        d_s[m : m + d] = d_q
        if not games.simplex:
            d_s[m + d :] = -d_q
        d_z = rhs.products / self.s
        d_z -= self.ratio * d_s
        return RowStep(d_s, d_z, d_nu)

    def products_after(self, step: RowStep, primal: float, dual: float) -> FloatArray:
        """Products ``s z`` after a step of these lengths."""
        s, z = step.s * primal, step.z * dual
        s += self.s
        z += self.z
        s *= z
        return s


class RowBlocks:
    """Inverses of ``K_i = X_i^T X_i + diag(b_i)``; on the simplex restricted to directions with sum zero.

    A row that may still move along an edge has one tiny direction among huge ones; forming ``K_i`` would lose it, so
    the stacked factor is triangularised by Householder reflections, each a few operations on long vectors.

    Attributes
    ----------
    inverse : array of shape (d, d, n)
        ``K_i^-1``, or its restriction.
    """

    def __init__(self, factor: FloatArray, diagonal: FloatArray, simplex: bool) -> None:
        self.factor, self.diagonal, self.simplex = factor, diagonal, simplex
        root = _inverse_triangle(*_triangle(factor, diagonal))
        self.inverse = np.empty_like(root)
        for j in range(len(diagonal)):  # only what the triangle leaves nonzero, and one half of what is symmetric
            np.einsum("ikn,kn->in", root[: j + 1, j:], root[j, j:], out=self.inverse[: j + 1, j])
            self.inverse[j, :j] = self.inverse[:j, j]
        if simplex:
            ones = self.inverse.sum(axis=1)
            self.sums = ones / ones.sum(axis=0)
            self.inverse -= ones[:, None] * self.sums[None]

    def apply(self, load: FloatArray) -> FloatArray:
        """Multiply by the inverses."""
        return np.einsum("ijn,jn->in", self.inverse, load)

    def solve(self, load: FloatArray, refinements: int) -> tuple[FloatArray, FloatArray]:
        """Solve ``K x + nu 1 = load`` in every row (``nu = 0`` on a box), refined against the factor."""
        x, nu = self.apply(load), self._nu(load)
        for _ in range(refinements):
            if self.simplex:
                x -= x.mean(axis=0)
            image = np.einsum("mdn,dn->mn", self.factor, x)
            residual = load - nu - np.einsum("mdn,mn->dn", self.factor, image) - self.diagonal * x
            more = self._nu(residual)
            x += self.apply(residual - more)
            nu += more
        return x, nu

    def _nu(self, load: FloatArray) -> FloatArray:
        """Multiplier of the sum of coordinates."""
        return np.einsum("dn,dn->n", self.sums, load) if self.simplex else np.zeros(load.shape[1])


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
