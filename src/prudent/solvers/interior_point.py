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

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from prudent.arrays import FloatArray
from prudent.chunks import keep_freed_memory
from prudent.progress import tell
from prudent.solvers.cones import SlackAim, SlackCones, SlackStep, step_length
from prudent.solvers.definite import DefiniteSystem
from prudent.solvers.game import Game
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.row_newton import START, Rows, RowStep, first_pairs, recentred, row_newton
from prudent.solvers.step_loop import CENTRALITY, CORRECTORS, DELICATE

__all__ = ["Iterate", "Linearised", "Proposal", "interior_point"]

_MOST_ITERATIONS = 250
_TARGET = 1e-10
_GOOD = 1e-7  # past this, do not insist when progress stalls
_PATIENCE = 8


@dataclass(frozen=True, eq=False)
class Iterate:
    """Strictly positive pairs of every row, and the multipliers; rows come last.

    Attributes
    ----------
    room : array of shape (c, n)
        Distances to the constraints: of the epigraph's height to each action's
        utility, of the belief to the lower bounds and, on a box, to the upper.
    price : array of shape (c, n)
        Their complements: the mixture, then the bounds' multipliers.
    nu : array of shape (n,)
        Multiplier of the simplex's sum.
    multipliers : array of shape (K,)
    cones : SlackCones
    """

    room: FloatArray
    price: FloatArray
    nu: FloatArray
    multipliers: FloatArray
    cones: SlackCones

    def resumed(self, game: Game, system: MomentSystem, forecasts: FloatArray, mu: float, many: bool) -> Iterate:
        """Go on with other rows, each on the central path for these multipliers."""
        rows = Rows.of_game(game, forecasts, many)
        tilts = rows.tilted(system.tilts(self.multipliers))
        with np.errstate(all="ignore"):
            pairs = recentred(rows, tilts, mu, first_pairs(rows, tilts))
        return Iterate(*pairs, self.multipliers, self.cones.recentered(system, self.multipliers, mu))


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
    best : Iterate
        Where they come from; a good place to go on.
    last : Iterate
        The last iterate; where no world is allowed its multipliers diverge along a proof of it.
    merit : float
        Complementarity and residuals of the proposal, in units of the utility range.
    iterations : int
    """

    multipliers: FloatArray
    beliefs: FloatArray
    mixtures: FloatArray
    best: Iterate
    last: Iterate
    merit: float
    iterations: int


def interior_point(
    game: Game,
    system: MomentSystem,
    forecasts: FloatArray,
    patience: int = _PATIENCE,
    target: float = _TARGET,
    start: Iterate | None = None,
    many: bool = False,
    long: bool = False,
) -> Proposal:
    """Solve the adversary's program, given in natural units.

    Ends at the target merit, by default near the precision of floats, or
    after ``patience`` iterations without progress. ``many`` rows, or cells
    that stand for many, are worth compiled loops, and these, or few rows
    that are all that is left of a ``long`` table, compiled steps where such
    are prepared. (A short table gives the same, to the last bit, everywhere.)
    """
    keep_freed_memory()
    rows = Rows.of_game(game, forecasts, many)
    with np.errstate(all="ignore"):  # a step that leaves the range of floats ends the iteration, see merit
        begin = _begin(rows, system) if start is None else start
        return _iterate(rows, system, begin, patience, target, many or long)


def _begin(rows: Rows, system: MomentSystem) -> Iterate:
    """Start near the forecasts with multipliers zero."""
    multipliers = np.zeros(system.size)
    room, price, nu = first_pairs(rows, rows.tilted(system.tilts(multipliers)))
    q = room[rows.m : rows.m + rows.d]
    return Iterate(room, price, nu, multipliers, SlackCones.begin(system, system.moments(q - rows.forecasts), START))


def _iterate(rows: Rows, system: MomentSystem, now: Iterate, patience: int, target: float, long: bool) -> Proposal:
    best_merit, stalled = np.inf, 0
    best, best_iteration = now, 0
    linearise = _lineariser(rows, system, 2 if target <= _TARGET else 1, long)
    for iteration in range(_MOST_ITERATIONS):
        newton = linearise(now)
        merit = newton.merit
        tell(f"step {iteration + 1} on {rows.forecasts.shape[1]:,} rows, {merit:.0e} of the utility range to go")
        if not np.isfinite(merit) or newton.complement <= 0:  # left the cone by rounding
            break
        stalled = 0 if merit < 0.98 * best_merit else stalled + 1
        if merit < best_merit:
            best_merit, best, best_iteration = merit, now, iteration
        if merit <= target or stalled >= (2 if best_merit <= _GOOD else patience):
            break
        try:
            now = newton.next_iterate()
        except np.linalg.LinAlgError:  # a block became singular in floats; keep the best iterate
            break
    m, d = rows.m, rows.d
    beliefs, mixtures = best.room[m : m + d].T.copy(), best.price[:m].T.copy()
    return Proposal(best.multipliers, beliefs, mixtures, best, now, best_merit, best_iteration)


class Linearised(Protocol):
    """One linearisation of the equations.

    Attributes
    ----------
    complement : float
        Sum of the products of all pairs.
    merit : float
        That, and what the equations miss.
    """

    complement: float
    merit: float

    def next_iterate(self) -> Iterate:
        """Take one step."""
        ...


def _lineariser(rows: Rows, system: MomentSystem, refinements: int, long: bool) -> Callable[[Iterate], Linearised]:
    """Say how to linearise: compiled where a table is long and that is prepared."""
    from prudent.solvers.compiled_step import CompiledStep, program_of  # late: it builds on this file

    program = program_of(rows, system) if long else None

    def linearise(now: Iterate) -> Linearised:
        plain = partial(_Newton, rows, system, now, refinements)
        return plain() if program is None else CompiledStep(program, now, refinements, plain)

    return linearise


@dataclass(frozen=True, eq=False)
class _Direction:
    rows: RowStep
    multipliers: FloatArray
    slack: SlackStep


class _Newton:
    """One linearisation: factor once, solve for the predictor and the correctors."""

    def __init__(self, rows: Rows, system: MomentSystem, now: Iterate, refinements: int) -> None:
        tilts = rows.tilted(system.tilts(now.multipliers))
        self.rows = row_newton(rows, now.room, now.price, now.nu, tilts)
        self.system, self.now, self.refinements = system, now, refinements
        m, d = rows.m, rows.d
        self.pairs = now.room.shape[0] + now.cones.pairs
        self.cone_complement = now.cones.complementarity(now.multipliers)
        self.complement = self.cone_complement - float((self.rows.to_zero @ system.weights).sum())
        self.residual = system.moments(now.room[m : m + d] - rows.forecasts) - now.cones.sigma
        self.merit = self.complement + float((np.abs(self.rows.dual_residual) @ system.weights).sum())
        self.merit += float(np.abs(self.residual) @ (1.0 + np.abs(now.multipliers)))

    def next_iterate(self) -> Iterate:
        """Take one predictor-corrector step after Mehrotra, with Gondzio's correctors."""
        now, cones, mu, rows = self.now, self.now.cones, self.complement / self.pairs, self.rows
        rows.factor()
        self.slack = cones.newton(now.multipliers)
        self.coupling = DefiniteSystem(self.system.gram(rows.metric) + self.slack.matrix)
        predictor = self._direction(rows.to_zero, self.slack.aimed(0.0, None), rough=True)
        primal, dual = (min(length, 1.0) for length in self._longest(predictor))
        predicted = self._after(predictor, primal, dual)[0]
        target = mu * float(np.clip((predicted / mu) ** 3, 1e-8, 1.0))
        gaps = rows.corrected(predictor.rows, target)
        aim = self.slack.aimed(target, predictor.slack)
        # Rows' blocks get ever more uneven; the predictor was only a forecast, and early steps may be rough.
        rough = self.merit > DELICATE
        step = self._direction(gaps, aim, rough)
        primal, dual = self._longest(step)
        for _ in range(CORRECTORS):
            # Aim at a longer step, and give way where it would leave the neighbourhood of the path.
            aim_primal, aim_dual = min(1.0, 1.1 * primal + 0.2), min(1.0, 1.1 * dual + 0.2)
            wider = rows.widened(gaps, step.rows, aim_primal, aim_dual, target)
            corrected = self._direction(wider, aim, rough)
            lengths = self._longest(corrected)
            if min(lengths) < 1.1 * min(primal, dual):
                break
            gaps, step, (primal, dual) = wider, corrected, lengths
            if min(lengths) >= 1.0:
                break
        damp = min(max(0.9, 1.0 - mu), 0.9995)
        if self.system.balls.size:  # round cones lose their centre near the boundary and when the two sides move apart
            primal = dual = min(primal, dual)
            damp = 0.9
        primal, dual = self._stay_central(step, min(1.0, damp * primal), min(1.0, damp * dual))
        pairs = rows.advanced(step.rows, primal, dual)
        return Iterate(*pairs, now.multipliers + dual * step.multipliers, cones.advanced(step.slack, primal, dual))

    def _direction(self, gaps: FloatArray, aim: SlackAim, rough: bool) -> _Direction:
        """Solve the Newton system for given gaps of the products and aim of the slack cones."""
        right = self.rows.right_side(gaps)
        load = self.residual + self.system.moments(right.image) - aim.constant
        d_multipliers = self.coupling.solve(load)
        moves = self.rows.moves(right, self.system.tilts(d_multipliers), 0 if rough else self.refinements)
        return _Direction(moves, d_multipliers, self.slack.step(aim, d_multipliers))

    def _after(self, step: _Direction, primal: float, dual: float) -> tuple[float, float]:
        """Mean product of pairs after a step, the slack cones at first order; and the least product of rows."""
        total, least = self.rows.after(step.rows, primal, dual, self.system.weights)
        cones = self.cone_complement * (1.0 - min(primal, dual))
        return (total + cones) / self.pairs, least

    def _stay_central(self, step: _Direction, primal: float, dual: float) -> tuple[float, float]:
        """Shorten a step until no product is far below the mean: such a pair would block the steps to come."""
        for _ in range(10):
            mean, least = self._after(step, primal, dual)
            if least >= CENTRALITY * mean:
                break
            primal, dual = 0.9 * primal, 0.9 * dual
        return primal, dual

    def _longest(self, step: _Direction) -> tuple[float, float]:
        """Longest primal and dual steps that keep every pair positive."""
        slack = self.slack.longest_steps(step.slack)
        return min(slack[0], step_length(step.rows.fall_room)), min(slack[1], step_length(step.rows.fall_price))
