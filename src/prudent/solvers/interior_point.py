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

Slack is balls of moments. A ball of radius ``r`` leaves ``s = (r^2 - |x|^2) / 2r`` to moments with offset ``x`` from
its centre, and has a dual ``y``: multipliers are ``y x / r``, and the products ``s y`` tend to zero. An interval is the
ball of one moment. Exact moments have no offset.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.arrays.chunks import keep_freed_memory
from prudent.progress import tell
from prudent.solvers.game import Game
from prudent.solvers.moment_system import DefiniteSystem, MomentSystem
from prudent.solvers.row_newton import START, RowGames, RowNewton, RowStep, centered_pairs, first_pairs

_MOST_ITERATIONS = 250
_TARGET = 1e-10
_GOOD = 1e-7  # past this, do not insist when progress stalls
_PATIENCE = 8
_CENTRALITY = 0.05  # no product of a pair falls below this share of the mean
_CORRECTORS = 4  # most centrality corrections of a step
_DELICATE = 1e-4  # below this merit the blocks of rows are so uneven that solutions need refinement


@frozen
class Iterate:
    """Strictly positive pairs of every row, and the multipliers; rows come last.

    Attributes
    ----------
    s, z : arrays of shape (c, n)
        Slacks of the constraints and their duals, see :mod:`prudent.solvers.row_newton`.
    nu : array of shape (n,)
        Multiplier of the simplex's sum.
    multipliers : array of shape (K,)
    slack : SlackBarrier
    """

    s: FloatArray
    z: FloatArray
    nu: FloatArray
    multipliers: FloatArray
    slack: SlackBarrier

    def warm_start(self, game: Game, system: MomentSystem, forecasts: FloatArray, mu: float) -> Iterate:
        """Go on with other rows, each on the central path for these multipliers."""
        games = RowGames.of_game(game, forecasts)
        with np.errstate(all="ignore"):
            pairs = centered_pairs(games, system.tilts(self.multipliers), mu)
        return Iterate(*pairs, self.multipliers, SlackBarrier.centered(system, self.multipliers, mu))


@frozen
class InteriorPoint:
    """Where the iteration ended: reduced multipliers, a nearly feasible world, mixtures.

    Attributes
    ----------
    multipliers : array of shape (K,)
        Of the reduced moments.
    beliefs : array of shape (n, d)
        Strictly inside the space; moments nearly right.
    mixtures : array of shape (n, m)
    best : Iterate
        Where they come from; a warm start.
    merit : float
        Complementarity and residuals of the proposal, in units of the utility range.
    """

    multipliers: FloatArray
    beliefs: FloatArray
    mixtures: FloatArray
    best: Iterate
    merit: float


def interior_point(
    game: Game,
    system: MomentSystem,
    forecasts: FloatArray,
    patience: int = _PATIENCE,
    target: float = _TARGET,
    start: Iterate | None = None,
) -> InteriorPoint:
    """Solve the adversary's program, given in natural units.

    Ends at the target merit, by default near the precision of floats, or
    after ``patience`` iterations without progress.
    """
    keep_freed_memory()
    games = RowGames.of_game(game, forecasts)
    with np.errstate(all="ignore"):  # a step that leaves the range of floats ends the iteration, see merit
        now = _first_iterate(games, system) if start is None else start
        best_merit, stalled = np.inf, 0
        best = now
        for iteration in range(_MOST_ITERATIONS):
            newton = _Newton(games, system, now, refinements=2 if target <= _TARGET else 1)
            merit = newton.merit
            tell(f"step {iteration + 1} on {len(forecasts):,} rows, {merit:.0e} of the utility range to go")
            if not np.isfinite(merit) or newton.complementarity <= 0:  # left the cone by rounding
                break
            stalled = 0 if merit < 0.98 * best_merit else stalled + 1
            if merit < best_merit:
                best_merit, best = merit, now
            if merit <= target or stalled >= (2 if best_merit <= _GOOD else patience):
                break
            try:
                now = newton.next_iterate()
            except np.linalg.LinAlgError:  # a block became singular in floats; keep the best iterate
                break
    m, d = games.m, games.d
    beliefs, mixtures = best.s[m : m + d].T.copy(), best.z[:m].T.copy()
    return InteriorPoint(best.multipliers, beliefs, mixtures, best, best_merit)


def _first_iterate(games: RowGames, system: MomentSystem) -> Iterate:
    """Start near the forecasts with multipliers zero."""
    multipliers = np.zeros(system.size)
    pairs = first_pairs(games, system.tilts(multipliers))
    return Iterate(*pairs, multipliers, SlackBarrier.centered(system, multipliers, START))


@frozen
class _Direction:
    rows: RowStep
    multipliers: FloatArray
    slack: SlackStep


class _Newton:
    """One linearisation: factor once, solve for the predictor and the correctors."""

    def __init__(self, games: RowGames, system: MomentSystem, now: Iterate, refinements: int) -> None:
        self.rows = RowNewton(games, now.s, now.z, now.nu, system.tilts(now.multipliers))
        self.system, self.now, self.refinements = system, now, refinements
        m, d = games.m, games.d
        self.pairs = now.s.shape[0] + now.slack.y.size
        self.slack = SlackNewton(now.slack, now.multipliers)
        self.complementarity = float(now.slack.products.sum() + (self.rows.complementarity @ system.weights).sum())
        self.residual = system.moments(now.s[m : m + d] - games.forecasts) - system.center - now.slack.offsets
        self.merit = self.complementarity + float((np.abs(self.rows.dual_residual) @ system.weights).sum())
        self.merit += float(np.abs(self.residual) @ (1.0 + np.abs(now.multipliers)))
        self.merit += float(np.abs(self.slack.miss) @ system.of_moments(system.radius))

    def next_iterate(self) -> Iterate:
        """Take Mehrotra's predictor-corrector step, with Gondzio's centrality correctors."""
        now, rows = self.now, self.rows
        mu = self.complementarity / self.pairs
        rows.factor()
        self.schur = DefiniteSystem(self.system.gram(rows.metric) + self.slack.matrix)
        predictor = self._direction(-rows.complementarity, self.slack.rhs(0.0, None), rough=True)
        primal, dual = (min(length, 1.0) for length in self._longest(predictor))
        predicted = self._after(predictor, primal, dual)[0]
        target = mu * float(np.clip((predicted / mu) ** 3, 1e-8, 1.0))
        products = target - rows.complementarity - predictor.rows.s * predictor.rows.z
        aim = self.slack.rhs(target, predictor.slack)
        # The predictor was only a forecast, and early steps may be rough.
        rough = self.merit > _DELICATE
        step = self._direction(products, aim, rough)
        primal, dual = self._longest(step)
        for _ in range(_CORRECTORS):
            # Aim at a longer step, and give way where it would leave the neighbourhood of the path.
            aim_primal, aim_dual = min(1.0, 1.1 * primal + 0.2), min(1.0, 1.1 * dual + 0.2)
            after = rows.products_after(step.rows, aim_primal, aim_dual)
            missed = np.maximum(np.clip(after, 0.1 * target, 10.0 * target) - after, -10.0 * target)
            missed += products
            corrected = self._direction(missed, aim, rough)
            lengths = self._longest(corrected)
            if min(lengths) < 1.1 * min(primal, dual):
                break
            products, step, (primal, dual) = missed, corrected, lengths
            if min(lengths) >= 1.0:
                break
        damp = min(max(0.9, 1.0 - mu), 0.9995)
        if self.system.radius.size:  # balls lose their centre near the boundary and when the two sides move apart
            primal = dual = min(primal, dual)
            damp = 0.9
        primal, dual = self._stay_central(step, min(1.0, damp * primal), min(1.0, damp * dual))
        return Iterate(
            now.s + primal * step.rows.s,
            now.z + dual * step.rows.z,
            now.nu + dual * step.rows.nu,
            now.multipliers + dual * step.multipliers,
            now.slack.advanced(step.slack, primal, dual),
        )

    def _direction(self, products: FloatArray, aim: SlackRhs, rough: bool) -> _Direction:
        """Solve the Newton system for given changes of the products and right side of the slack."""
        rhs = self.rows.rhs(products)
        load = self.residual + self.system.moments(rhs.solved) - aim.constant
        d_multipliers = self.schur.solve(load)
        rows = self.rows.step(rhs, self.system.tilts(d_multipliers), 0 if rough else self.refinements)
        return _Direction(rows, d_multipliers, self.slack.step(aim, d_multipliers))

    def _after(self, step: _Direction, primal: float, dual: float) -> tuple[float, float]:
        """Mean and least product of pairs after a step."""
        products = self.rows.products_after(step.rows, primal, dual)
        slack = self.now.slack.advanced(step.slack, primal, dual)
        mean = float(slack.products.sum() + (products @ self.system.weights).sum()) / self.pairs
        least = slack.least_products(self.now.multipliers + dual * step.multipliers)
        return mean, min(float(products.min(initial=np.inf)), float(least.min(initial=np.inf)))

    def _stay_central(self, step: _Direction, primal: float, dual: float) -> tuple[float, float]:
        """Shorten a step until no product is far below the mean: such a pair would block the steps to come."""
        for _ in range(20 if self.system.radius.size else 10):  # balls may ask for shorter steps
            mean, least = self._after(step, primal, dual)
            if least >= _CENTRALITY * mean:
                break
            primal, dual = 0.9 * primal, 0.9 * dual
        return primal, dual

    def _longest(self, step: _Direction) -> tuple[float, float]:
        """Longest primal and dual steps that keep every pair positive."""
        (primal, dual), rows = self.slack.longest_steps(step.slack), step.rows
        return min(primal, step_length(rows.s, self.now.s)), min(dual, step_length(rows.z, self.now.z))


@frozen
class SlackStep:
    """Newton step of the moments' offsets ``(K,)`` and of the balls' duals."""

    offsets: FloatArray
    y: FloatArray


@frozen
class SlackRhs:
    """Right side of the slack's Newton equations: ``constant (K,)``, and what the products are to change by."""

    constant: FloatArray
    products: FloatArray


@frozen
class SlackBarrier:
    """Offsets ``(K,)`` of the moments from their centre, zero where they are exact, and the balls' duals."""

    system: MomentSystem
    offsets: FloatArray
    y: FloatArray

    @classmethod
    def centered(cls, system: MomentSystem, multipliers: FloatArray, mu: float) -> SlackBarrier:
        """Lie on the central path, where all products are ``mu``, for these multipliers."""
        radius = system.radius
        y = (mu + np.hypot(mu, radius * system.lengths(multipliers))) / radius
        return cls(system, system.of_moments(radius / y) * multipliers, y)

    @cached_property
    def room(self) -> FloatArray:
        """What is left inside every ball, at least a little."""
        radius, length = self.system.radius, self.system.lengths(self.offsets)
        return np.maximum((radius - length) * (radius + length) / (2.0 * radius), 1e-300)

    @property
    def products(self) -> FloatArray:
        """Products of complementary pairs."""
        return self.room * self.y

    def miss(self, multipliers: FloatArray) -> FloatArray:
        """By how much multipliers differ from what offsets and duals say; no matter where moments are exact."""
        return self.system.of_moments(self.y / self.system.radius) * self.offsets - multipliers

    def least_products(self, multipliers: FloatArray) -> FloatArray:
        """Least eigenvalues of the products in the algebra of second-order cones: small far from the central path."""
        return self.products - self.system.radius * self.system.lengths(self.miss(multipliers)) / 2.0

    def advanced(self, step: SlackStep, primal: float, dual: float) -> SlackBarrier:
        """Move by the given lengths."""
        return SlackBarrier(self.system, self.offsets + primal * step.offsets, self.y + dual * step.y)


class SlackNewton:
    """The slack's Newton equations ``d_offsets = matrix @ d_multipliers + constant``.

    The matrix is the same for every right side of one linearisation.
    """

    def __init__(self, now: SlackBarrier, multipliers: FloatArray) -> None:
        self.now, system, radius = now, now.system, now.system.radius
        lengths = system.lengths(now.offsets)
        outward = now.offsets * system.of_moments(1.0 / np.maximum(lengths, 1e-300))
        along = np.outer(outward, outward) * (system.groups[:, None] == system.groups)
        # Outward the ball gives way by this share of what it does sideways.
        share = 2.0 * radius * now.room / (radius**2 + lengths**2)
        moved = np.eye(system.size) - along + system.of_moments(share)[:, None] * along
        self.matrix = system.of_moments(radius / now.y)[:, None] * moved
        self.miss = now.miss(multipliers)

    def rhs(self, target: float, predictor: SlackStep | None) -> SlackRhs:
        """Right side for a centring target; with a predictor, Mehrotra's correction for the products of its steps."""
        now, system, radius = self.now, self.now.system, self.now.system.radius
        products, miss = target - now.products, self.miss
        if predictor is not None:
            bend = system.lengths(predictor.offsets) ** 2 / (2.0 * radius)
            products = products - self._change(predictor.offsets) * predictor.y + (now.y + predictor.y) * bend
            miss = miss + system.of_moments(predictor.y / radius) * predictor.offsets
        pushed = system.of_moments(products / (now.room * radius)) * now.offsets
        return SlackRhs(-self.matrix @ (pushed + miss), products)

    def step(self, rhs: SlackRhs, d_multipliers: FloatArray) -> SlackStep:
        """Recover the steps of the offsets and of the balls' duals."""
        moved = self.matrix @ d_multipliers + rhs.constant
        return SlackStep(moved, (rhs.products - self.now.y * self._change(moved)) / self.now.room)

    def longest_steps(self, step: SlackStep) -> tuple[float, float]:
        """Return the longest primal and dual steps that stay inside."""
        system, room, change = self.now.system, self.now.room, self._change(step.offsets)
        square = system.lengths(step.offsets) ** 2 / system.radius
        longest = 2.0 * room / (np.sqrt(change**2 + 2.0 * square * room) - change)
        return float(longest.min(initial=np.inf)), step_length(step.y, self.now.y)

    def _change(self, moved: FloatArray) -> FloatArray:
        """By how much the room changes, at first order."""
        return -self.now.system.sums(self.now.offsets * moved) / self.now.system.radius


def step_length(step: FloatArray, now: FloatArray) -> float:
    """Return the longest step during which no number falls by more than itself."""
    fall = float((step / now).min(initial=0.0))
    return np.inf if fall >= 0 else -1.0 / fall
