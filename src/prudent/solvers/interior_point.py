"""Structured interior point: any dimension, any tests, any slack (docs/theory.md, section 6).

The adversary's program ``min sum_i w_i val(q_i)`` over ``q_i in P`` with
``M(q) in S`` couples rows only through the moments. A primal-dual Newton step
eliminates each row's small block, with ``K_i`` the weighted covariance of the
action rewards (computed centred, or it cancels) plus the bounds' barriers;
what is left is one ``K x K`` system ``sum_i w_i B_i^T K_i^-1 B_i``. Steps are
Mehrotra's predictor and corrector with Gondzio's centrality corrections; it
takes tens of iterations, slowly more with the number of rows.

The result is only a proposal: bounds are certified elsewhere from the
multipliers and the world alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from prudent.arrays import FloatArray
from prudent.solvers.cones import SlackCones, SlackStep, longest_step
from prudent.solvers.game import Game
from prudent.solvers.moment_system import MomentSystem
from prudent.spaces import Simplex

__all__ = ["Proposal", "interior_point"]

_MOST_ITERATIONS = 250
_TARGET = 1e-10
_GOOD = 1e-7  # past this, do not insist when progress stalls
_PATIENCE = 8
_CORRECTORS = 2
_START = 0.1


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where the iteration ended: reduced multipliers, a nearly feasible world, mixtures.

    Attributes
    ----------
    multipliers : array of shape (K,)
        Of the reduced moments.
    beliefs : array of shape (n, d)
        Strictly inside the space; moments nearly right.
    mixtures : array of shape (n, m)
    last : array of shape (K,)
        Multipliers of the last iterate; where no world is allowed they diverge along a proof of it.
    iterations : int
    """

    multipliers: FloatArray
    beliefs: FloatArray
    mixtures: FloatArray
    last: FloatArray
    iterations: int


def interior_point(game: Game, system: MomentSystem, forecasts: FloatArray, patience: int = _PATIENCE) -> Proposal:
    """Solve the adversary's program, given in natural units, to near the precision of floats.

    Ends after ``patience`` iterations without progress.
    """
    rows = _Rows(game.rewards, game.offsets, forecasts, isinstance(game.space, Simplex))
    with np.errstate(all="ignore"):  # a step that leaves the range of floats ends the iteration, see merit
        return _iterate(rows, system, patience)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows in natural units: utility range one, outcomes in the unit box or the simplex."""

    rewards: FloatArray  # (1 or n, m, d)
    offsets: FloatArray  # (1 or n, m)
    forecasts: FloatArray  # (n, d)
    simplex: bool

    def utilities(self, q: FloatArray) -> FloatArray:
        if self.rewards.shape[0] == 1:
            return q @ self.rewards[0].T + self.offsets
        return np.einsum("nmd,nd->nm", self.rewards, q) + self.offsets

    def mix(self, pi: FloatArray) -> FloatArray:
        if self.rewards.shape[0] == 1:
            return pi @ self.rewards[0]
        return np.einsum("nm,nmd->nd", pi, self.rewards)


class _State:
    """Iterate: beliefs q and their distances to the constraints, mixtures pi, multipliers of the bounds."""

    def __init__(self, rows: _Rows, system: MomentSystem) -> None:
        n, d = rows.forecasts.shape
        m = rows.rewards.shape[1]
        middle = 1.0 / d if rows.simplex else 0.5
        self.q = 0.9 * rows.forecasts + 0.1 * middle
        utilities = rows.utilities(self.q)
        # Distances to the constraints are variables of their own: recomputing them would cancel near the end.
        self.room = utilities.max(axis=1, keepdims=True) + 0.3 - utilities
        self.up = 1.0 - self.q
        self.pi = (1.0 / self.room) / (1.0 / self.room).sum(axis=1, keepdims=True)
        self.multipliers = np.zeros(system.size)
        slope = rows.mix(self.pi)
        start = _START
        if rows.simplex:
            self.nu = start - slope.min(axis=1)
            self.alpha = slope + self.nu[:, None]
            self.beta = np.zeros((n, d))
        else:
            self.nu = np.zeros(n)
            self.alpha = np.maximum(slope, 0.0) + start
            self.beta = np.maximum(-slope, 0.0) + start
        self.pairs = m + d * (1 if rows.simplex else 2)

    def dual_residual(self, rows: _Rows, system: MomentSystem) -> FloatArray:
        """How far each row's stationarity condition is from zero, shape ``(n, d)``."""
        tilts = system.tilts(self.multipliers)
        return -(rows.mix(self.pi) + tilts - self.alpha + self.beta + self.nu[:, None])


def _iterate(rows: _Rows, system: MomentSystem, patience: int) -> Proposal:
    state = _State(rows, system)
    weights = system.weights
    cones = SlackCones(system, system.moments(state.q - rows.forecasts), _START)
    best_merit, stalled, last = np.inf, 0, state.multipliers
    best = Proposal(state.multipliers, state.q, state.pi, state.multipliers, 0)
    for iteration in range(_MOST_ITERATIONS):
        products = _dot(state.pi, state.room) + _dot(state.alpha, state.q)
        if not rows.simplex:
            products += _dot(state.beta, state.up)
        complement = float(weights @ products) + cones.complementarity(state.multipliers)
        mu = complement / (state.pairs + cones.pairs)
        residual = system.moments(state.q - rows.forecasts) - cones.sigma
        infeasible = state.dual_residual(rows, system)
        merit = complement + float(weights @ np.abs(infeasible).sum(axis=1))
        merit += float(np.abs(residual) @ (1.0 + np.abs(state.multipliers)))
        if not np.isfinite(merit) or complement <= 0:  # left the cone by rounding
            break
        last = state.multipliers
        stalled = 0 if merit < 0.98 * best_merit else stalled + 1
        if merit < best_merit:
            best_merit = merit
            best = Proposal(state.multipliers, state.q, state.pi, state.multipliers, iteration)
        if merit <= _TARGET or stalled >= (2 if best_merit <= _GOOD else patience):
            break
        try:
            _step(rows, system, state, cones, residual, infeasible, mu)
        except np.linalg.LinAlgError:  # a block became singular in floats; keep the best iterate
            break
    return replace(best, last=last)


def _step(
    rows: _Rows,
    system: MomentSystem,
    state: _State,
    cones: SlackCones,
    residual: FloatArray,
    infeasible: FloatArray,
    mu: float,
) -> None:
    """Take one predictor-corrector step after Mehrotra."""
    newton = _Newton(rows, system, state, cones, residual, infeasible)
    predictor = newton.direction(newton.gaps(0.0, None), 0.0, None)
    primal, dual = (min(length, 1.0) for length in newton.longest(predictor))
    predicted = newton.complement_after(predictor, primal, dual) / (state.pairs + cones.pairs)
    target = mu * float(np.clip((predicted / mu) ** 3, 1e-8, 1.0))
    gaps = newton.gaps(target, predictor)
    step = newton.direction(gaps, target, predictor)
    primal, dual = newton.longest(step)
    for _ in range(_CORRECTORS):
        # Gondzio: aim at a longer step, and give way where it would leave the neighbourhood of the path.
        aim_primal, aim_dual = min(1.0, 1.1 * primal + 0.2), min(1.0, 1.1 * dual + 0.2)
        wider = newton.toward_path(gaps, step, aim_primal, aim_dual, target)
        corrected = newton.direction(wider, target, predictor)
        lengths = newton.longest(corrected)
        if min(lengths) < 1.1 * min(primal, dual):
            break
        gaps, step, (primal, dual) = wider, corrected, lengths
        if min(lengths) >= 1.0:
            break
    damp = min(max(0.9, 1.0 - mu), 0.9995)
    if system.balls.size:  # round cones lose their centre near the boundary and when the two sides move apart
        primal = dual = min(primal, dual)
        damp = 0.9
    newton.advance(step, min(1.0, damp * primal), min(1.0, damp * dual))


@dataclass(frozen=True, eq=False)
class _Gaps:
    """How much the products of complementary pairs are to change."""

    pi: FloatArray
    alpha: FloatArray
    beta: FloatArray


@dataclass(frozen=True, eq=False)
class _Direction:
    q: FloatArray
    pi: FloatArray
    alpha: FloatArray
    beta: FloatArray
    nu: FloatArray
    multipliers: FloatArray
    room: FloatArray
    slack: SlackStep


class _Newton:
    """One linearisation: factor once, solve for the predictor and the corrector."""

    def __init__(
        self,
        rows: _Rows,
        system: MomentSystem,
        state: _State,
        cones: SlackCones,
        residual: FloatArray,
        dual_residual: FloatArray,
    ) -> None:
        self.rows, self.system, self.state, self.cones = rows, system, state, cones
        self.residual, self.dual_residual = residual, dual_residual
        ratio = state.pi / state.room
        self.total = np.einsum("nm->n", ratio)
        self.mean = rows.mix(ratio / self.total[:, None])
        barrier = state.alpha / state.q
        if not rows.simplex:
            barrier = barrier + state.beta / state.up
        d = state.q.shape[1]
        self.barrier = barrier
        if d == 1:
            spread = rows.rewards[:, :, 0] - self.mean
            stiffness = np.einsum("nm,nm,nm->n", ratio, spread, spread) + barrier[:, 0]
            self.metric = (1.0 / stiffness)[:, None, None]
        else:
            spread = (rows.rewards - self.mean[:, None, :]) * np.sqrt(ratio)[:, :, None]
            self.metric = _inverse_gram(spread, barrier)
            self.spread = spread
            if rows.simplex:
                image = self.metric.sum(axis=2)
                self.flow = image / image.sum(axis=1, keepdims=True)
                self.metric = self.metric - image[:, :, None] * self.flow[:, None, :]
        self.metric = (self.metric + self.metric.transpose(0, 2, 1)) / 2
        self.schur = system.gram(self.metric)
        self.sum_residual = 1.0 - np.einsum("nm->n", state.pi)

    def gaps(self, target: float, predictor: _Direction | None) -> _Gaps:
        """Bring every product to a target, with Mehrotra's correction for what a predictor neglected."""
        state = self.state
        gap_pi = target - state.pi * state.room
        gap_alpha = target - state.alpha * state.q
        gap_beta = target - state.beta * state.up
        if predictor is not None:
            gap_pi -= predictor.pi * predictor.room
            gap_alpha -= predictor.alpha * predictor.q
            gap_beta += predictor.beta * predictor.q
        return _Gaps(gap_pi, gap_alpha, gap_beta)

    def toward_path(self, gaps: _Gaps, step: _Direction, primal: float, dual: float, target: float) -> _Gaps:
        """Widen the gaps by what products after a step of these lengths miss of ``[0.1, 10] target``."""
        state = self.state

        def missed(products: FloatArray) -> FloatArray:
            return np.maximum(np.clip(products, 0.1 * target, 10.0 * target) - products, -10.0 * target)

        return _Gaps(
            gaps.pi + missed((state.pi + dual * step.pi) * (state.room + primal * step.room)),
            gaps.alpha + missed((state.alpha + dual * step.alpha) * (state.q + primal * step.q)),
            gaps.beta + missed((state.beta + dual * step.beta) * (state.up - primal * step.q)),
        )

    def direction(self, gaps: _Gaps, target: float, predictor: _Direction | None) -> _Direction:
        """Solve the Newton system for given gaps; the slack cones aim at the target."""
        rows, state, cones = self.rows, self.state, self.cones
        gap_pi, gap_alpha, gap_beta = gaps.pi, gaps.alpha, gaps.beta
        pull = gap_pi / state.room
        ratio = state.pi / state.room
        surplus = np.einsum("nm->n", pull) - self.sum_residual
        right = self.dual_residual + gap_alpha / state.q
        right = right - (rows.mix(pull) - self.mean * surplus[:, None])
        if rows.simplex:
            gap_beta = np.zeros_like(gap_beta)
        else:
            right = right - gap_beta / state.up
        moved = np.einsum("nij,nj->ni", self.metric, right)
        matrix, constant = cones.linearize(state.multipliers, target, None if predictor is None else predictor.slack)
        load = self.residual + self.system.moments(moved) - constant
        d_multipliers = _solve_definite(self.schur + matrix, load)
        d_sigma = matrix @ d_multipliers + constant
        push = right - self.system.tilts(d_multipliers)
        d_q, d_nu = self._row_steps(push)
        d_t = _dot(self.mean, d_q) + surplus / self.total  # of the epigraph's height
        d_room = d_t[:, None] - (rows.utilities(d_q) - rows.offsets)
        d_pi = pull - ratio * d_room
        d_alpha = (gap_alpha - state.alpha * d_q) / state.q
        d_beta = np.zeros_like(d_q) if rows.simplex else (gap_beta + state.beta * d_q) / state.up
        slack = cones.directions(d_sigma, d_multipliers)
        return _Direction(d_q, d_pi, d_alpha, d_beta, d_nu, d_multipliers, d_room, slack)

    def _row_steps(self, push: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve ``K dq + dnu 1 = push`` in every row, refined once against the factored matrix."""
        d_nu = np.zeros(push.shape[0])
        if push.shape[1] == 1:
            return self.metric[:, :, 0] * push, d_nu
        d_q = np.einsum("nij,nj->ni", self.metric, push)
        for _ in range(2):
            if self.rows.simplex:
                d_q -= d_q.mean(axis=1, keepdims=True)
            image = np.einsum("nmd,nd->nm", self.spread, d_q)
            left = push - np.einsum("nmd,nm->nd", self.spread, image) - self.barrier * d_q
            if self.rows.simplex:
                d_nu = (self.flow * left).sum(axis=1)
                left -= d_nu[:, None]
            d_q += np.einsum("nij,nj->ni", self.metric, left)
        return d_q, d_nu

    def longest(self, step: _Direction) -> tuple[float, float]:
        """Longest primal and dual steps that keep every pair positive."""
        state = self.state
        primal = min(longest_step(state.q, step.q), longest_step(state.room, step.room))
        dual = min(longest_step(state.pi, step.pi), longest_step(state.alpha, step.alpha))
        if not self.rows.simplex:
            primal = min(primal, longest_step(state.up, -step.q))
            dual = min(dual, longest_step(state.beta, step.beta))
        slack = self.cones.longest_steps(state.multipliers, step.slack)
        return min(primal, slack[0]), min(dual, slack[1])

    def complement_after(self, step: _Direction, primal: float, dual: float) -> float:
        """Complementarity after a step, the slack cones at first order."""
        state = self.state
        products = _dot(state.pi + dual * step.pi, state.room + primal * step.room)
        products += _dot(state.alpha + dual * step.alpha, state.q + primal * step.q)
        if not self.rows.simplex:
            products += _dot(state.beta + dual * step.beta, state.up - primal * step.q)
        rows = float(self.system.weights @ products)
        cones = self.cones.complementarity(state.multipliers)
        return rows + cones * (1.0 - min(primal, dual))

    def advance(self, step: _Direction, primal: float, dual: float) -> None:
        """Move the state."""
        state = self.state
        state.q = state.q + primal * step.q
        state.room = state.room + primal * step.room
        state.up = state.up - primal * step.q
        state.pi = state.pi + dual * step.pi
        state.alpha = state.alpha + dual * step.alpha
        state.beta = state.beta + dual * step.beta
        state.nu = state.nu + dual * step.nu
        state.multipliers = state.multipliers + dual * step.multipliers
        self.cones.advance(step.slack, primal, dual)


def _inverse_gram(spread: FloatArray, barrier: FloatArray) -> FloatArray:
    """Invert ``spread^T spread + diag(barrier)`` row by row, from the factor.

    Rows that may still move along an edge have one tiny direction among huge
    ones; forming the sum would lose it, a QR of the stacked factor does not.
    """
    n, m, d = spread.shape
    index = np.arange(d)
    factor = np.zeros((n, m + d, d))
    factor[:, :m] = spread
    size = np.sqrt((spread**2).sum(axis=1) + barrier)
    factor[:, m + index, index] = np.maximum(np.sqrt(barrier), 1e-13 * size)
    factor /= size[:, None, :]
    triangle = np.linalg.inv(np.linalg.qr(factor, mode="r")) / size[:, :, None]
    result: FloatArray = triangle @ triangle.transpose(0, 2, 1)
    return result


def _dot(one: FloatArray, other: FloatArray) -> FloatArray:
    """Row-wise inner products; several times faster than a product and a sum over a short axis."""
    return np.einsum("nm,nm->n", one, other)


def _solve_definite(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a symmetric positive definite system, scaled, with a little help where it is nearly singular."""
    if right.size == 0:
        return right
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix / (size[:, None] * size[None, :])
    for shift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        try:
            factor = cho_factor(scaled + shift * np.eye(right.size), lower=True, check_finite=False)
        except LinAlgError:
            continue
        target = right / size
        solution = cho_solve(factor, target, check_finite=False)
        for _ in range(2):
            solution += cho_solve(factor, target - scaled @ solution, check_finite=False)
        result: FloatArray = solution / size
        return result
    return np.linalg.lstsq(scaled, right / size, rcond=1e-14)[0] / size
