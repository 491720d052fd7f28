"""A whole step of the interior point, as a loop to be compiled: what :mod:`prudent.solvers.interior_point` says.

On a thousand cells one of NumPy's operations takes longer to call than to do, and a step has hundreds of them. Loops
over rows are those of :mod:`prudent.solvers.row_loops`.
"""

from __future__ import annotations

import numpy as np

from prudent.arrays import FloatArray
from prudent.solvers import ball_loops, coupling_loop
from prudent.solvers.ball_loops import aim_ball, longest_in_cone, scale_ball
from prudent.solvers.coupling_loop import couple_moments, factor_definite, moments_of, solve_definite, tilts_of
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
from prudent.solvers.step_state import Aim, Factors, Move, Place, Program, View

__all__ = ["CALLED", "CENTRALITY", "CORRECTORS", "DELICATE", "look", "take_step"]

#: Most centrality corrections of a step.
CORRECTORS = 4
#: Below this merit the rows' blocks are so uneven that their solutions need refinement.
DELICATE = 1e-4
#: No pair's product falls below this share of the mean.
CENTRALITY = 0.05


def look(program: Program, place: Place) -> View:
    """Compute what the equations miss, and how much that is."""
    m, d = program.rewards.shape
    n = place.nu.size
    tilts = tilts_of(program, place.multipliers)
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
    residual = moments_of(program, residuals)
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


def _factor(program: Program, place: Place) -> tuple[bool, Factors]:
    """Eliminate the rows, and factor what is left; False if that is singular."""
    d, n = program.forecasts.shape
    shape = place.room.shape
    per_room, ratio, total, mean = np.empty(shape), np.empty(shape), np.empty(n), np.empty((d, n))
    metric, flow = np.empty((d * (d + 1) // 2, n)), np.empty((d if program.simplex else 0, n))
    factor_rows(
        0, n, program.rewards, program.simplex, place.room, place.price, per_room, ratio, total, mean, metric, flow
    )
    stiffness, scaled = np.empty(program.interval.size), couple_moments(program, metric)
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
        definite, triangle = factor_definite(scaled, shift)
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
    sigma, multipliers = np.zeros(place.sigma.size), moments_of(program, image)
    for p in range(interval.size):
        ends = aim.down[p] / place.room_down[p] - aim.up[p] / place.room_up[p]
        sigma[interval[p]] = ends / factors.stiffness[p]
    for g in range(len(aim.right)):
        _give_way(program, factors, g, aim.right[g, 1:], sigma)
    for k in range(sigma.size):
        multipliers[k] += view.residual[k] - sigma[k]
    solve_definite(factors, multipliers)
    tilts = tilts_of(program, multipliers)
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
    _factor,
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
    *ball_loops.CALLED,
    *coupling_loop.CALLED,
    advance_rows,
    correct_gaps,
    factor_rows,
    measure_rows,
    move_rows,
    products_after,
    push_rows,
    widen_gaps,
)
