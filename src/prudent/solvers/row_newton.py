"""The rows' side of a Newton step: complementary pairs, residuals, and what a push does to every row.

Rows know each other only through the moments. Given the tilts that the
moments' multipliers make, every row is a small program of its own, and these
are its equations, for all rows at once (rows come last).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers.game import Game
from prudent.solvers.moment_system import upper_triangles
from prudent.solvers.recentring_loop import MOST_RECENTRING
from prudent.solvers.row_blocks import RowBlocks
from prudent.spaces import Simplex

__all__ = ["START", "Pairs", "RightSide", "RowNewton", "RowStep", "Rows", "first_pairs", "recentred", "row_newton"]

#: Prices of the bounds where an iteration starts.
START = 0.1

#: Rooms, prices and the multipliers of the simplex's sum.
Pairs = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in natural units: utility range one, outcomes in the unit box or the simplex."""

    rewards: FloatArray  # (m, d), or (m, d, n) where rows have their own
    offsets: FloatArray  # (m, 1 or n)
    forecasts: FloatArray  # (d, n)
    simplex: bool
    many: bool = False  # there are so many rows that loops are worth compiling, now or after cells were split
    own: FloatArray | None = None  # (d, n) rewards of rows with one action each, which act like a tilt

    @classmethod
    def of_game(cls, game: Game, forecasts: FloatArray, many: bool = False) -> Rows:
        """Turn a game around: rows last."""
        own = game.rewards.shape[0] > 1
        offsets, points = np.ascontiguousarray(game.offsets.T), np.ascontiguousarray(forecasts.T)
        simplex = isinstance(game.space, Simplex)
        if own and game.n_actions == 1:  # nothing is mixed, so rows share an action that earns nothing
            rewards = np.zeros((1, game.dimension))
            return cls(rewards, offsets, points, simplex, many, np.ascontiguousarray(game.rewards[:, 0].T))
        rewards = np.ascontiguousarray(np.moveaxis(game.rewards, 0, -1)) if own else game.rewards[0]
        return cls(rewards, offsets, points, simplex, many)

    def tilted(self, tilts: FloatArray) -> FloatArray:
        """Add rewards that act like a tilt to those that moments' multipliers make, ``(d, n)``."""
        return tilts if self.own is None else tilts + self.own

    @property
    def m(self) -> int:
        """Number of actions."""
        return int(self.rewards.shape[0])

    @property
    def d(self) -> int:
        """Number of outcome coordinates."""
        return int(self.rewards.shape[1])

    def slopes(self, q: FloatArray) -> FloatArray:
        """Rewards times beliefs, ``(m, n)``."""
        if self.rewards.ndim == 2:
            return self.rewards @ q
        return np.einsum("mdn,dn->mn", self.rewards, q)

    def mix(self, pi: FloatArray) -> FloatArray:
        """Mean rewards of mixtures, ``(d, n)``."""
        if self.rewards.ndim == 2:
            return self.rewards.T @ pi
        return np.einsum("mn,mdn->dn", pi, self.rewards)

    def spread(self, mean: FloatArray) -> FloatArray:
        """Rewards seen from their mean, ``(m, d, n)``."""
        rewards = self.rewards[:, :, None] if self.rewards.ndim == 2 else self.rewards
        return rewards - mean


def first_pairs(rows: Rows, tilts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rooms and prices of beliefs near the forecasts, pushed off the boundary, with dual residual zero."""
    middle = 1.0 / rows.d if rows.simplex else 0.5
    q = 0.9 * rows.forecasts + 0.1 * middle
    utilities = rows.slopes(q) + rows.offsets
    heights = utilities.max(axis=0) + 0.3 - utilities
    pi = 1.0 / heights
    pi /= pi.sum(axis=0)
    slope = rows.mix(pi) + tilts
    nu = np.zeros(q.shape[1])
    # Distances to the constraints are variables of their own: recomputing them would cancel near the end.
    if rows.simplex:
        nu = START - slope.min(axis=0)
        return np.concatenate([heights, q]), np.concatenate([pi, slope + nu]), nu
    bounds = [np.maximum(slope, 0.0) + START, np.maximum(-slope, 0.0) + START]
    return np.concatenate([heights, q, 1.0 - q]), np.concatenate([pi, *bounds]), nu


class RowNewton:
    """The rows' part of a Newton step: residuals, blocks, and what a push does to every row."""

    def __init__(self, rows: Rows, room: FloatArray, price: FloatArray, nu: FloatArray, tilts: FloatArray) -> None:
        self.rows, self.room, self.price, self.nu = rows, room, price, nu
        self.measure(tilts)

    def measure(self, tilts: FloatArray) -> None:
        """Compute the gaps of the products to zero and what the rows' equations miss."""
        rows, price = self.rows, self.price
        m, d = rows.m, rows.d
        self.to_zero = -self.room * price
        stationary = rows.mix(price[:m]) + tilts - price[m : m + d] + self.nu
        self.dual_residual = -stationary if rows.simplex else -(stationary + price[m + d :])
        self.sum_residual = 1.0 - price[:m].sum(axis=0)

    def factor(self) -> None:
        """Factor every row's block."""
        rows = self.rows
        m, d = rows.m, rows.d
        self.ratio = self.price / self.room
        theta = self.ratio[:m]
        self.total = theta.sum(axis=0)
        self.mean = rows.mix(theta / self.total)
        barrier = self.ratio[m : m + d]
        if not rows.simplex:
            barrier = barrier + self.ratio[m + d :]
        self.blocks = RowBlocks(rows.spread(self.mean) * np.sqrt(theta)[:, None], barrier, rows.simplex)
        self.metric = upper_triangles(self.blocks.metric)

    def right_side(self, gaps: FloatArray) -> RightSide:
        """Right side of the rows' equations, for gaps of the products."""
        rows = self.rows
        m, d = rows.m, rows.d
        pull = gaps / self.room
        surplus = pull[:m].sum(axis=0) - self.sum_residual
        push = self.dual_residual + pull[m : m + d] - (rows.mix(pull[:m]) - self.mean * surplus)
        if not rows.simplex:
            push -= pull[m + d :]
        return RightSide(gaps, surplus, push, self.blocks.apply(push))

    def moves(self, right: RightSide, tilts: FloatArray, refinements: int) -> RowStep:
        """Steps of rooms, prices and the simplex's multipliers for a right side and a change of tilts."""
        rows = self.rows
        m, d = rows.m, rows.d
        d_q, d_nu = self.blocks.solve(right.push - tilts, refinements)
        d_height = np.einsum("dn,dn->n", self.mean, d_q) + right.surplus / self.total
        d_room = np.empty_like(self.room)
        d_room[:m] = d_height - rows.slopes(d_q)
        d_room[m : m + d] = d_q
        if not rows.simplex:
            d_room[m + d :] = -d_q
        d_price = right.gaps / self.room
        d_price -= self.ratio * d_room
        falls = float((d_room / self.room).min(initial=0.0)), float((d_price / self.price).min(initial=0.0))
        return RowStep(d_room, d_price, d_nu, *falls)

    def after(self, step: RowStep, primal: float, dual: float, weights: FloatArray) -> tuple[float, float]:
        """Weighted sum and least of all products after a step of these lengths."""
        products = self._products_after(step, primal, dual)
        return float((products @ weights).sum()), float(products.min(initial=np.inf))

    def widened(self, gaps: FloatArray, step: RowStep, primal: float, dual: float, target: float) -> FloatArray:
        """Add to gaps what products after a step of these lengths miss of ``[0.1, 10] target``."""
        products = self._products_after(step, primal, dual)
        missed = np.clip(products, 0.1 * target, 10.0 * target)
        missed -= products
        np.maximum(missed, -10.0 * target, out=missed)
        missed += gaps
        return missed

    def corrected(self, step: RowStep, target: float) -> FloatArray:
        """Gaps of the products to a target, less the products of steps that a linearisation neglects."""
        return target + self.to_zero - step.room * step.price

    def advanced(self, step: RowStep, primal: float, dual: float) -> Pairs:
        """Rooms, prices and the simplex's multipliers after a step of these lengths."""
        return self.room + primal * step.room, self.price + dual * step.price, self.nu + dual * step.nu

    def _products_after(self, step: RowStep, primal: float, dual: float) -> FloatArray:
        room = step.room * primal
        room += self.room
        price = step.price * dual
        price += self.price
        room *= price
        return room


@dataclass(frozen=True, eq=False)
class RightSide:
    """Gaps ``(c, n)``, what they leave of the mixtures' sums, the push ``(d, n)`` and what it does alone."""

    gaps: FloatArray
    surplus: FloatArray
    push: FloatArray
    image: FloatArray


@dataclass(frozen=True, eq=False)
class RowStep:
    """Steps of all rows, and the fastest fall of a room and of a price, relative to its size (zero if none falls)."""

    room: FloatArray
    price: FloatArray
    nu: FloatArray
    fall_room: float
    fall_price: float


def row_newton(rows: Rows, room: FloatArray, price: FloatArray, nu: FloatArray, tilts: FloatArray) -> RowNewton:
    """Linearise the rows' equations, compiled where that is worth it."""
    if rows.many and rows.rewards.ndim == 2:
        from prudent.solvers.compiled_newton import compiled_row_newton  # late: it builds on this file

        newton = compiled_row_newton(rows, room, price, nu, tilts)
        if newton is not None:
            return newton
    return RowNewton(rows, room, price, nu, tilts)


def recentred(rows: Rows, tilts: FloatArray, mu: float, start: Pairs) -> Pairs:
    """Bring rows with given tilts to the central path: multipliers fixed, every row with steps of its own."""
    from prudent.solvers.compiled_step import compiled_recentred  # late: it builds on this file

    found = compiled_recentred(rows, tilts, mu, start)
    if found is not None:
        return found
    room, price, nu = start
    for _ in range(MOST_RECENTRING):
        newton = row_newton(rows, room, price, nu, tilts)
        mean = -newton.to_zero.mean(axis=0)
        off = np.abs(newton.to_zero / mu + 1.0).max(initial=0.0)
        if off < 0.5 and float(np.abs(newton.dual_residual).max(initial=0.0)) < 0.1 * mu:
            break
        newton.factor()
        right = newton.right_side(np.maximum(0.1 * mean, mu) + newton.to_zero)
        step = newton.moves(right, np.zeros_like(tilts), refinements=0)
        primal = np.minimum(1.0, -0.95 / np.minimum((step.room / room).min(axis=0), -1e-9))
        dual = np.minimum(1.0, -0.95 / np.minimum((step.price / price).min(axis=0), -1e-9))
        room, price, nu = room + primal * step.room, price + dual * step.price, nu + dual * step.nu
    return room, price, nu
