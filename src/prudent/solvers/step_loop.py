"""A whole step of the interior point, as a loop to be compiled: what :mod:`prudent.solvers.interior_point` says.

On a thousand cells one of NumPy's operations takes longer to call than to do, and a step has hundreds of them. Loops
over rows are those of :mod:`prudent.solvers.row_loops`; arrays are named as in
:class:`~prudent.solvers.interior_point.Iterate`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.solvers.ball_loops import CALLED as BALLS_CALLED
from prudent.solvers.ball_loops import aim_ball, longest_in_cone, scale_ball
from prudent.solvers.row_factor_loop import factor_rows
from prudent.solvers.row_loops import (
    advance_rows,
    correct_gaps,
    measure_rows,
    move_rows,
    products_after,
    push_rows,
    widen_gaps,
)

__all__ = ["CALLED", "CENTRALITY", "CORRECTORS", "DELICATE", "Place", "Program", "View", "look", "take_step"]

#: Most centrality corrections of a step.
CORRECTORS = 4
#: Below this merit the rows' blocks are so uneven that their solutions need refinement.
DELICATE = 1e-4
#: No pair's product falls below this share of the mean.
CENTRALITY = 0.05


class Program(NamedTuple):
    """What stays the same from step to step."""

    rewards: FloatArray  # (m, d)
    simplex: bool
    forecasts: FloatArray  # (d, n)
    own: FloatArray  # (d, n) rewards that act like a tilt, or (d, 0)
    values: FloatArray  # (k, n)
    weights: FloatArray  # (n,)
    combination: FloatArray  # (k d, K): how moments are made of those of the tests
    free: FloatArray  # (k d,): one where adding a constant to a test's multipliers changes nothing
    interval: IntArray  # moments with slack of their own
    center: FloatArray  # (K,)
    balls: IntArray  # (g, d) moments with round slack
    ball_radius: FloatArray  # (g,)


class Place(NamedTuple):
    """Where the iteration is."""

    room: FloatArray
    price: FloatArray
    nu: FloatArray
    multipliers: FloatArray
    sigma: FloatArray
    room_up: FloatArray
    room_down: FloatArray
    push_up: FloatArray
    push_down: FloatArray
    height: FloatArray


class View(NamedTuple):
    """What the equations miss there."""

    to_zero: FloatArray
    dual_residual: FloatArray
    sum_residual: FloatArray
    residual: FloatArray
    cone_complement: float
    complement: float
    merit: float


class Factors(NamedTuple):
    """The linearised equations, solved for everything but the multipliers; and the system that is left for those."""

    per_room: FloatArray
    ratio: FloatArray
    total: FloatArray
    mean: FloatArray
    metric: FloatArray
    flow: FloatArray
    stiffness: FloatArray
    points: FloatArray  # (2, g, 1 + d): the balls' primal and dual points
    middle: FloatArray  # (g, 1 + d) of their scaling
    stretch: FloatArray  # (g,) its size
    size: FloatArray
    scaled: FloatArray
    triangle: FloatArray


class Aim(NamedTuple):
    """Gaps of the products that a step should close, of rows and of both ends of intervals; right sides of balls."""

    gaps: FloatArray
    up: FloatArray
    down: FloatArray
    right: FloatArray


class Move(NamedTuple):
    """A step, and how far it may go on either side."""

    room: FloatArray
    price: FloatArray
    nu: FloatArray
    multipliers: FloatArray
    sigma: FloatArray
    up: FloatArray
    down: FloatArray
    height: FloatArray
    primal: float
    dual: float


def look(program: Program, place: Place) -> View:
    """Compute what the equations miss, and how much that is."""
    m, d = program.rewards.shape
    n = place.nu.size
    tilts = _tilts(program, place.multipliers)
    for j in range(d):
        for i in range(program.own.shape[1]):
            tilts[j, i] += program.own[j, i]
    to_zero, dual_residual, sum_residual = np.empty_like(place.room), np.empty((d, n)), np.empty(n)
    measure_rows(
        0,
        n,
        program.rewards,
        program.simplex,
        place.room,
        place.price,
        place.nu,
        tilts,
        to_zero,
        dual_residual,
        sum_residual,
    )
    cone = 0.0
    for p in range(program.interval.size):
        cone += place.push_up[p] * place.room_up[p] + place.push_down[p] * place.room_down[p]
    for g in range(len(program.balls)):
        cone += program.ball_radius[g] * place.height[g]
        for k in program.balls[g]:
            cone -= (place.sigma[k] - program.center[k]) * place.multipliers[k]
    complement, merit = cone, 0.0
    for a in range(to_zero.shape[0]):
        for i in range(n):
            complement -= program.weights[i] * to_zero[a, i]
    residuals = np.empty((d, n))
    for j in range(d):
        for i in range(n):
            merit += program.weights[i] * abs(dual_residual[j, i])
            residuals[j, i] = place.room[m + j, i] - program.forecasts[j, i]
    residual = _moments(program, residuals)
    for k in range(residual.size):
        residual[k] -= place.sigma[k]
        merit += abs(residual[k]) * (1.0 + abs(place.multipliers[k]))
    merit += complement
    return View(to_zero, dual_residual, sum_residual, residual, cone, complement, merit)


def take_step(program: Program, place: Place, view: View, refinements: int) -> tuple[bool, Place]:
    """Take one predictor-corrector step after Mehrotra, with Gondzio's correctors; False if the system is singular."""
    definite, factors = _factor(program, place)
    if not definite:
        return False, place
    n, pairs = place.nu.size, place.room.shape[0] + 2 * program.interval.size + len(program.balls)
    mu = view.complement / pairs
    target, careful = 0.0, 0
    aim = _aim_at_zero(program, place, view, factors)
    wanted, step = aim, _no_move(place)
    for turn in range(2 + CORRECTORS):  # a forecast, the step, and corrections of it; so there is one call to compile
        found = _direction(program, place, view, factors, wanted, careful)
        if turn > 1 and min(found.primal, found.dual) < 1.1 * min(step.primal, step.dual):
            break
        aim, step = wanted, found
        if turn > 0 and min(step.primal, step.dual) >= 1.0:
            break
        gaps = np.empty_like(aim.gaps)
        if turn == 0:
            predicted = _after(program, place, view, step, min(step.primal, 1.0), min(step.dual, 1.0), pairs)[0]
            share = (predicted / mu) ** 3
            target, careful = mu * min(max(share, 1e-8), 1.0), 0 if view.merit > DELICATE else refinements
            correct_gaps(0, n, aim.gaps, step.room, step.price, target, gaps)
            up, down = aim.up.copy(), aim.down.copy()
            for p in range(up.size):
                move = step.sigma[program.interval[p]]
                up[p] += target + step.up[p] * move
                down[p] += target - step.down[p] * move
            wanted = Aim(gaps, up, down, _aim_balls(program, factors, target, step))
        else:
            # Aim at a longer step, and give way where it would leave the neighbourhood of the path.
            primal, dual = min(1.0, 1.1 * step.primal + 0.2), min(1.0, 1.1 * step.dual + 0.2)
            widen_gaps(0, n, aim.gaps, place.room, place.price, step.room, step.price, primal, dual, target, gaps)
            wanted = Aim(gaps, aim.up, aim.down, aim.right)
    damp, primal, dual = min(max(0.9, 1.0 - mu), 0.9995), step.primal, step.dual
    if len(program.balls):  # round cones lose their centre near the boundary and when the two sides move apart
        primal = dual = min(primal, dual)
        damp = 0.9
    primal, dual = min(1.0, damp * primal), min(1.0, damp * dual)
    for _ in range(10):  # shorter, until no product is far below the mean: such a pair would block the steps to come
        mean, least = _after(program, place, view, step, primal, dual, pairs)
        if least >= CENTRALITY * mean:
            break
        primal, dual = 0.9 * primal, 0.9 * dual
    return True, _advanced(program, place, step, primal, dual)


def _aim_at_zero(program: Program, place: Place, view: View, factors: Factors) -> Aim:
    up, down = np.empty_like(place.room_up), np.empty_like(place.room_down)
    for p in range(up.size):
        up[p], down[p] = -place.push_up[p] * place.room_up[p], -place.push_down[p] * place.room_down[p]
    return Aim(view.to_zero, up, down, _aim_balls(program, factors, 0.0, _no_move(place)))


def _aim_balls(program: Program, factors: Factors, target: float, step: Move) -> FloatArray:
    """Right sides of all balls, corrected for what a step neglected, if it moves."""
    right = np.empty_like(factors.middle)
    dx, dy = np.zeros(right.shape[1]), np.zeros(right.shape[1])
    moves = step.primal > 0.0
    for g in range(len(right)):
        if moves:
            _ball_step(program, step, g, dx, dy)
        x, y = factors.points[0, g], factors.points[1, g]
        aim_ball(x, y, factors.middle[g], factors.stretch[g], target, dx, dy, right[g])
    return right


def _ball_step(program: Program, step: Move, g: int, dx: FloatArray, dy: FloatArray) -> None:
    """Write the steps of a ball's two points."""
    dx[0], dy[0] = 0.0, step.height[g]
    for i in range(1, dx.size):
        k = program.balls[g, i - 1]
        dx[i], dy[i] = step.sigma[k], -step.multipliers[k]


def _no_move(place: Place) -> Move:
    """Something that has the type of a step."""
    return Move(
        place.room,
        place.price,
        place.nu,
        place.multipliers,
        place.sigma,
        place.push_up,
        place.push_down,
        place.height,
        0.0,
        0.0,
    )


def _advanced(program: Program, place: Place, step: Move, primal: float, dual: float) -> Place:
    """Go as far as these lengths."""
    room, price, nu = np.empty_like(place.room), np.empty_like(place.price), np.empty_like(place.nu)
    multipliers, sigma = np.empty_like(place.multipliers), np.empty_like(place.sigma)
    room_up, room_down = np.empty_like(place.room_up), np.empty_like(place.room_down)
    push_up, push_down, height = np.empty_like(place.push_up), np.empty_like(place.push_down), place.height.copy()
    advance_rows(0, nu.size, place.room, place.price, step.room, step.price, primal, dual, room, price)
    for i in range(nu.size):
        nu[i] = place.nu[i] + dual * step.nu[i]
    for k in range(sigma.size):
        multipliers[k] = place.multipliers[k] + dual * step.multipliers[k]
        sigma[k] = place.sigma[k] + primal * step.sigma[k]
    for p in range(room_up.size):
        move = primal * step.sigma[program.interval[p]]
        room_up[p], room_down[p] = place.room_up[p] - move, place.room_down[p] + move
        push_up[p] = place.push_up[p] + dual * step.up[p]
        push_down[p] = place.push_down[p] + dual * step.down[p]
    for g in range(height.size):
        height[g] += dual * step.height[g]
    return Place(room, price, nu, multipliers, sigma, room_up, room_down, push_up, push_down, height)


def _tilts(program: Program, multipliers: FloatArray) -> FloatArray:
    """Tilts of all rows, ``(d, n)``."""
    d, n = program.forecasts.shape
    tilts = np.zeros((d, n))
    for t in range(program.values.shape[0]):
        test = program.values[t]
        for j in range(d):
            factor, tilt = 0.0, tilts[j]
            for k in range(multipliers.size):
                factor += program.combination[t * d + j, k] * multipliers[k]
            for i in range(n):
                tilt[i] += factor * test[i]
    return tilts


def _moments(program: Program, residuals: FloatArray) -> FloatArray:
    """Moments of residuals ``(d, n)``, ``(K,)``."""
    d, n = residuals.shape
    moments = np.zeros(program.combination.shape[1])
    weighted = np.empty(n)
    for j in range(d):
        residual = residuals[j]
        for i in range(n):
            weighted[i] = program.weights[i] * residual[i]
        for t in range(program.values.shape[0]):
            test, total = program.values[t], 0.0
            for i in range(n):
                total += test[i] * weighted[i]
            for k in range(moments.size):
                moments[k] += program.combination[t * d + j, k] * total
    return moments


def _factor(program: Program, place: Place) -> tuple[bool, Factors]:
    """Eliminate the rows, and factor what is left; False if that is singular."""
    d, n = program.forecasts.shape
    shape = place.room.shape
    per_room, ratio, total, mean = np.empty(shape), np.empty(shape), np.empty(n), np.empty((d, n))
    metric, flow = np.empty((d * (d + 1) // 2, n)), np.empty((d if program.simplex else 0, n))
    factor_rows(
        0, n, program.rewards, program.simplex, place.room, place.price, per_room, ratio, total, mean, metric, flow
    )
    stiffness, scaled = np.empty(program.interval.size), _coupling(program, metric)
    for p in range(stiffness.size):
        stiffness[p] = place.push_up[p] / place.room_up[p] + place.push_down[p] / place.room_down[p]
        scaled[program.interval[p], program.interval[p]] += 1.0 / stiffness[p]
    points, middle, stretch = _scale_balls(program, place)
    for g in range(len(middle)):
        for i in range(1, middle.shape[1]):
            for j in range(1, middle.shape[1]):
                scaled[program.balls[g, i - 1], program.balls[g, j - 1]] += _give(middle[g], stretch[g], i, j)
    size = np.empty(len(scaled))
    for k in range(size.size):
        size[k] = np.sqrt(max(scaled[k, k], 1e-300))
    for k in range(size.size):
        for other in range(size.size):
            scaled[k, other] /= size[k] * size[other]
    definite, triangle = False, scaled
    for shift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):  # a little help where it is nearly singular
        definite, triangle = _cholesky(scaled, shift)
        if definite:
            break
    return definite, Factors(
        per_room, ratio, total, mean, metric, flow, stiffness, points, middle, stretch, size, scaled, triangle
    )


def _scale_balls(program: Program, place: Place) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Primal and dual points of all balls, and their scalings."""
    count, d = program.balls.shape
    points, middle, stretch = np.empty((2, count, 1 + d)), np.empty((count, 1 + d)), np.empty(count)
    for g in range(count):
        points[0, g, 0], points[1, g, 0] = program.ball_radius[g], place.height[g]
        for i in range(1, 1 + d):
            k = program.balls[g, i - 1]
            points[0, g, i], points[1, g, i] = place.sigma[k] - program.center[k], -place.multipliers[k]
        stretch[g] = scale_ball(points[0, g], points[1, g], middle[g])
    return points, middle, stretch


def _give(middle: FloatArray, stretch: float, i: int, j: int) -> float:
    """How much moment ``i`` of a ball gives way to multiplier ``j``: an entry of the inverse of its stiffness."""
    length = 0.0
    for k in range(1, middle.size):
        length += middle[k] * middle[k]
    same = 1.0 if i == j else 0.0
    return stretch * stretch * (same - 2.0 * middle[i] * middle[j] / (1.0 + 2.0 * length))


def _coupling(program: Program, metric: FloatArray) -> FloatArray:
    """Moments' responses to their multipliers, ``(K, K)``."""
    k, n = program.values.shape
    d = program.forecasts.shape[0]
    size, moments = program.combination.shape
    blocks = np.zeros((size, size))
    product = np.empty(n)
    for t in range(k):
        for s in range(t, k):
            one, other = program.values[t], program.values[s]
            for i in range(n):
                product[i] = one[i] * other[i] * program.weights[i]
            for a in range(d):
                for b in range(a, d):
                    entry, total = metric[a * (2 * d - a - 1) // 2 + b], 0.0
                    for i in range(n):
                        total += product[i] * entry[i]
                    blocks[t * d + a, s * d + b] = blocks[t * d + b, s * d + a] = total
                    blocks[s * d + a, t * d + b] = blocks[s * d + b, t * d + a] = total
    trace, ones = 0.0, 0.0
    for a in range(size):
        trace += blocks[a, a]
        ones += program.free[a]
    if ones > 0:
        # On the simplex the metric is zero along ones; fill that direction so that the system is definite.
        diagonal = max(trace / size, 1e-300)
        for t in range(k):
            for a in range(t * d, (t + 1) * d):
                for b in range(t * d, (t + 1) * d):
                    blocks[a, b] += diagonal / d * program.free[a] * program.free[b]
    half, whole = np.zeros((size, moments)), np.zeros((moments, moments))
    for a in range(size):
        for b in range(size):
            for c in range(moments):
                half[a, c] += blocks[a, b] * program.combination[b, c]
    for a in range(size):
        for c in range(moments):
            for e in range(moments):
                whole[c, e] += program.combination[a, c] * half[a, e]
    return whole


def _cholesky(matrix: FloatArray, shift: float) -> tuple[bool, FloatArray]:
    """Lower triangle of a factorisation; False if the matrix is not definite."""
    size = matrix.shape[0]
    triangle = np.zeros((size, size))
    for j in range(size):
        pivot = matrix[j, j] + shift
        for k in range(j):
            pivot -= triangle[j, k] * triangle[j, k]
        if not pivot > 0.0:
            return False, triangle
        triangle[j, j] = np.sqrt(pivot)
        for i in range(j + 1, size):
            rest = matrix[i, j]
            for k in range(j):
                rest -= triangle[i, k] * triangle[j, k]
            triangle[i, j] = rest / triangle[j, j]
    return True, triangle


def _solve(factors: Factors, right: FloatArray) -> None:
    """Solve for the multipliers, refined, in place of the right side."""
    size = right.size
    solution, rest = np.zeros(size), np.empty(size)
    for _ in range(3):
        for i in range(size):
            rest[i] = right[i] / factors.size[i]
            for j in range(size):
                rest[i] -= factors.scaled[i, j] * solution[j]
        for i in range(size):
            for j in range(i):
                rest[i] -= factors.triangle[i, j] * rest[j]
            rest[i] /= factors.triangle[i, i]
        for i in range(size - 1, -1, -1):
            for j in range(i + 1, size):
                rest[i] -= factors.triangle[j, i] * rest[j]
            rest[i] /= factors.triangle[i, i]
        for i in range(size):
            solution[i] += rest[i]
    for i in range(size):
        right[i] = solution[i] / factors.size[i]


def _direction(program: Program, place: Place, view: View, factors: Factors, aim: Aim, refinements: int) -> Move:
    """Solve the Newton system for gaps of the products."""
    d, n = program.forecasts.shape
    interval = program.interval
    surplus, push, image = np.empty(n), np.empty((d, n)), np.empty((d, n))
    push_rows(
        0,
        n,
        program.rewards,
        program.simplex,
        aim.gaps,
        factors.per_room,
        factors.mean,
        view.dual_residual,
        view.sum_residual,
        factors.metric,
        surplus,
        push,
        image,
    )
    sigma, multipliers = np.zeros(place.sigma.size), _moments(program, image)
    for p in range(interval.size):
        ends = aim.down[p] / place.room_down[p] - aim.up[p] / place.room_up[p]
        sigma[interval[p]] = ends / factors.stiffness[p]
    for g in range(len(aim.right)):
        _give_way(program, factors, g, aim.right[g, 1:], sigma)
    for k in range(sigma.size):
        multipliers[k] += view.residual[k] - sigma[k]
    _solve(factors, multipliers)
    tilts = _tilts(program, multipliers)
    for j in range(d):
        for i in range(n):
            push[j, i] -= tilts[j, i]
    room, price, nu = np.empty_like(place.room), np.empty_like(place.price), np.empty(n)
    fall_room, fall_price = move_rows(
        0,
        n,
        program.rewards,
        program.simplex,
        factors.per_room,
        factors.ratio,
        factors.total,
        factors.mean,
        factors.metric,
        factors.flow,
        aim.gaps,
        surplus,
        push,
        refinements,
        room,
        price,
        nu,
    )
    up, down = np.empty(interval.size), np.empty(interval.size)
    for p in range(interval.size):
        sigma[interval[p]] += multipliers[interval[p]] / factors.stiffness[p]
        move = sigma[interval[p]]
        up[p] = (aim.up[p] + place.push_up[p] * move) / place.room_up[p]
        down[p] = (aim.down[p] - place.push_down[p] * move) / place.room_down[p]
        fall_room = min(fall_room, -move / place.room_up[p], move / place.room_down[p])
        fall_price = min(fall_price, up[p] / place.push_up[p], down[p] / place.push_down[p])
    primal = np.inf if fall_room >= 0 else -1.0 / fall_room
    dual = np.inf if fall_price >= 0 else -1.0 / fall_price
    height, dx, dy = np.empty(len(aim.right)), np.empty(1 + d), np.empty(1 + d)
    step = Move(room, price, nu, multipliers, sigma, up, down, height, primal, dual)
    for g in range(height.size):
        middle, stretch = factors.middle[g], factors.stretch[g]
        for i in range(1, 1 + d):
            dy[i] = multipliers[program.balls[g, i - 1]]
        _give_way(program, factors, g, dy[1:], sigma)
        height[g] = aim.right[g, 0]
        for i in range(1, 1 + d):
            height[g] += 2.0 * middle[0] * middle[i] / (stretch * stretch) * sigma[program.balls[g, i - 1]]
        _ball_step(program, step, g, dx, dy)
        primal = min(primal, longest_in_cone(factors.points[0, g], dx))
        dual = min(dual, longest_in_cone(factors.points[1, g], dy))
    return Move(room, price, nu, multipliers, sigma, up, down, height, primal, dual)


def _give_way(program: Program, factors: Factors, g: int, pushes: FloatArray, sigma: FloatArray) -> None:
    """Add to the steps of a ball's moments what pushes do to them."""
    for i in range(pushes.size):
        for j in range(pushes.size):
            give = _give(factors.middle[g], factors.stretch[g], i + 1, j + 1)
            sigma[program.balls[g, i]] += give * pushes[j]


def _after(
    program: Program, place: Place, view: View, step: Move, primal: float, dual: float, pairs: int
) -> tuple[float, float]:
    """Mean product of pairs after a step, the slack's at first order; and the least product of rows."""
    total, least = products_after(
        0, place.nu.size, place.room, place.price, step.room, step.price, primal, dual, program.weights
    )
    return (total + view.cone_complement * (1.0 - min(primal, dual))) / pairs, least


#: Functions that these loops call, and that are compiled along with them.
CALLED = (
    _tilts,
    _moments,
    _factor,
    _coupling,
    _cholesky,
    _solve,
    _direction,
    _after,
    _aim_at_zero,
    _aim_balls,
    _ball_step,
    _no_move,
    _advanced,
    _scale_balls,
    _give,
    _give_way,
    *BALLS_CALLED,
    advance_rows,
    correct_gaps,
    factor_rows,
    measure_rows,
    move_rows,
    products_after,
    push_rows,
    widen_gaps,
)
