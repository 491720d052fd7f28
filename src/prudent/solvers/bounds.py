"""Certificates: bounds that hold in exact arithmetic, whatever produced the multipliers and the world.

Lower: for *any* multipliers and *any* mixtures, weak duality gives
``worst(pi) >= sum_i w_i [c.pi_i + min_p p.(R^T pi_i + s_i) - s_i.v_i] - sigma_S(L)``
(docs/theory.md, section 2). Upper: any world ``q`` in the ambiguity set holds every policy to ``E val(q)``.

Rounding. Every sum over rows is taken in blocks of at most 131,072 rows, in whatever order NumPy and BLAS choose, and
blocks are added exactly (``fsum``). A sum of ``n`` products of ``k`` factors errs by at most ``(n + k) epsilon`` of the
sum of their absolute values, so :func:`_rounding` times that sum is a margin; no bound depends on a luckier order.
Outcomes are measured from the lower corner of the space and utilities from their mean there, so that a far-away origin
costs only the digits that it takes away from the numbers themselves. Weights, mixtures and probabilities count as
divided by their exact sums, a centre of exact tests as summing to zero over the classes, and a combination of exact
tests as zero that on every row is below two epsilon of what it is made of.

A world in floats misses the moments it must have by rounding. It counts only if an exactly allowed world is proven to
lie next to it: see :func:`_distance_to_set`. Otherwise a bound that needs no proof stands in for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import fsum
from typing import TypeVar

import numpy as np

from prudent.arrays import EPSILON, BoolArray, FloatArray, IntArray, sums_of_rows
from prudent.arrays.chunks import over_rows
from prudent.cases.memory_rows import Ambiguity
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import SlackSet
from prudent.solvers.game import Game, LocalGame, local_game
from prudent.solvers.orthonormal_tests import accurate_combination, gram_of_movements, orthonormal_basis, two_sum

Result = TypeVar("Result")

_BLOCK = 1 << 17
_SHARES = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)  # of a world that is known to be allowed
# Careful proofs take long, so little shares are tried without.
_ATTEMPTS = [*((share, False) for share in _SHARES[:3]), *((share, True) for share in _SHARES)]
_TIES = 1e-12
_MOST_PRODUCTS = 1 << 27  # of tests that are written out for an orthonormal basis


def certified_lower(game: Game, ambiguity: Ambiguity, multipliers: FloatArray, local: LocalGame) -> float:
    """Compute the dual value ``G(L)`` with the mixtures that will be played, rounded down."""
    low, width = game.space.bounds[0], game.space.widths
    moved, common = game.from_corner

    def guaranteed(part: slice) -> tuple[float, float, float]:
        rows = ambiguity.take(part)
        tilts = rows.tests.tilts(multipliers)
        distances = rows.forecasts - low if low.any() else rows.forecasts
        mixtures = (local if game.shared else local_game(game.take(part))).mixtures(tilts, rows.forecasts)
        rewards, worst = moved.take(part).mixed(mixtures)
        worst += moved.space.support_minimum(rewards + tilts)
        worst -= sums_of_rows(tilts * distances)
        tilted = float((rows.weights @ np.abs(tilts)) @ width)
        return float(rows.weights @ worst), tilted, rows.tests.reach(multipliers, rows.weights, width)

    total, tilted, reach = map(fsum, zip(*_in_blocks(guaranteed, ambiguity), strict=True))
    margin = _rounding(ambiguity, game) * (game.largest_utility + 2 * tilted)
    # Tilts and penalties may cancel, so what they are made of counts at full size; a row's tilt errs by its own terms.
    terms = (ambiguity.tests.n_moments + 4) * EPSILON
    margin += terms * 2 * (reach + ambiguity.slack.support_size(multipliers))
    margin += tilted * float((_forecast_error(ambiguity) / width).max()) + _corner_error(game)
    if ambiguity.merged > 1 and game.dimension > 1:  # rows may break ties another way than their mean does
        margin += _TIES * (game.largest_utility + tilted)
    return rounded_down(total - ambiguity.slack.support(multipliers) - margin, common)


def certified_upper(game: Game, ambiguity: Ambiguity, beliefs: FloatArray) -> tuple[float, FloatArray]:
    """Compute ``E val(q)`` for an allowed world next to this one, rounded up; and that world in floats.

    Where no allowed world is proven to be there, as next to a corner of the space, one is looked for on the way to the
    forecasts, if they are allowed, or to outcomes that are. Where there is none the largest utility stands in.
    """
    low, high = game.space.bounds
    common = game.from_corner[1]
    anchor = ambiguity.forecasts if ambiguity.slack.contains_zero else ambiguity.member
    beliefs = beliefs if game.space.contains(beliefs) else game.space.project(beliefs)
    for share, careful in [(0.0, True)] if anchor is None else _ATTEMPTS:
        world = beliefs if anchor is None or share == 0.0 else anchor
        if 0.0 < share < 1.0:
            world = np.clip(beliefs + share * (world - beliefs), low, high)
        distance = _distance_to_set(ambiguity, world, careful)
        if distance is not None:
            break
    margin = _margin(game, ambiguity)
    if distance is None:
        return rounded_up(game.largest_utility + margin, common), beliefs

    largest = game.largest_rewards
    if game.space.is_simplex:
        margin += float(largest.max()) * float(distance.max() + 2 * _off_one(world).max())
    else:
        margin += float(largest @ distance)
    return rounded_up(_expected_best(game, ambiguity, world) + margin, common), world


def certified_value(game: Game, ambiguity: Ambiguity) -> tuple[float, float]:
    """Compute ``E val(v)``, the value where the forecasts are the only world, rounded down and up."""
    value, common = _expected_best(game, ambiguity, ambiguity.forecasts), game.from_corner[1]
    margin = _margin(game, ambiguity)
    return rounded_down(value - margin, common), rounded_up(value + margin, common)


def _margin(game: Game, ambiguity: Ambiguity) -> float:
    """By how much the expected utility of a world may be off: its sum, the game and the forecasts are rounded."""
    error = _rounding(ambiguity, game) * game.largest_utility + _corner_error(game)
    return error + float(game.largest_rewards @ _forecast_error(ambiguity))


def _expected_best(game: Game, ambiguity: Ambiguity, world: FloatArray) -> float:
    """Compute ``E val(q)`` with utilities measured from their mean at the lower corner."""
    moved, low = game.from_corner[0], game.space.bounds[0]

    def expected(part: slice) -> float:
        return float(ambiguity.weights[part] @ moved.take(part).best_utilities(world[part] - low))

    return fsum(_in_blocks(expected, ambiguity))


def certified_mean(shares: Sequence[float], lower: Sequence[float], upper: Sequence[float]) -> tuple[float, float]:
    """Combine the bounds of groups of rows by their shares of the weight, sums in pairs, rounded down and up."""
    ends = []
    for sign, bounds in ((1.0, lower), (-1.0, upper)):
        parts = [sign * share * bound for share, bound in zip(shares, bounds, strict=True)]
        ends.append(sign * (fsum(parts) - 64 * EPSILON * fsum(map(abs, parts))))
    return ends[0], ends[1]


def rounded_down(value: float, common: float) -> float:
    """Add what was taken away from all utilities, rounded down."""
    return value + common - 4 * EPSILON * (abs(value) + abs(common))


def rounded_up(value: float, common: float) -> float:
    """Add what was taken away from all utilities, rounded up."""
    return -rounded_down(-value, -common)


def _in_blocks(function: Callable[[slice], Result], ambiguity: Ambiguity, numbers: int = 0) -> list[Result]:
    """Apply a function to blocks of rows, the shorter the more numbers it makes of a row."""
    return over_rows(function, ambiguity.n_rows, max(1, _BLOCK // numbers) if numbers else None)


def _rounding(ambiguity: Ambiguity, game: Game | None = None) -> float:
    """Relative rounding of sums over rows: the longest block, the factors of a product, and rows that were merged."""
    terms, factors = min(ambiguity.n_rows, _BLOCK) * ambiguity.space.dimension, ambiguity.merged + 8
    factors += 0 if game is None else game.n_actions + game.dimension
    return (0.5 * terms + factors) * EPSILON  # an operation errs by at most half an epsilon


def _forecast_error(ambiguity: Ambiguity) -> FloatArray:
    """By how much forecasts may be off, ``(d,)``: means of merged rows, and probabilities whose sum is not one.

    Means add up distances from the lower corner one by one.
    """
    low, high = ambiguity.space.bounds
    error = np.zeros(low.size)
    if ambiguity.merged > 1:
        error += EPSILON * ((ambiguity.merged + 4) * (high - low) + np.maximum(np.abs(low), np.abs(high)))
    if ambiguity.space.is_simplex:
        error += _off_one(ambiguity.forecasts).max()
    return error


def _off_one(points: FloatArray) -> FloatArray:
    """By how much the sum of each row may differ from one."""
    return np.abs(sums_of_rows(points) - 1.0) + (0.5 * points.shape[1] + 1) * EPSILON


def _corner_error(game: Game) -> float:
    """Rounding of the game itself, and of utilities at the lower corner, which are computed in twice the precision."""
    moved, common = game.from_corner
    sizes = float(game.largest_rewards @ np.abs(game.space.bounds[0])) + abs(common)
    sizes += float(np.abs(game.offsets).max())
    return game.rounding + EPSILON * float(np.abs(moved.offsets).max()) + (game.dimension + 4) ** 2 * EPSILON**2 * sizes


def _distance_to_set(ambiguity: Ambiguity, beliefs: FloatArray, careful: bool) -> FloatArray | None:
    """Bound how far, on average, an exactly allowed world is from this one, ``(d,)``; None where none is proven.

    Moments that are not inside their slack for sure are *pinned* to a point of it. The allowed world is
    ``q_i - D_i B_i c`` with ``D_i`` the distance of ``q_i`` to the boundary (on the simplex ``diag(m) - m m^T / sum m``
    for the part ``m`` of ``q_i`` that may move), so no row leaves the space as long as ``|B_i c| <= 1/2``. Its
    coefficients solve ``A c = miss`` with ``A = sum_i w_i B_i^T D_i B_i``. With an approximate inverse ``X`` and
    ``a = |I - X A| < 1``, rounding included, there is exactly one solution, ``|c| <= |X miss| / (1 - a)`` (Rump). A
    ``careful`` proof also tries tests in an orthonormal basis.
    """
    tests, slack = ambiguity.tests, ambiguity.slack
    pinned, moved = np.zeros(tests.n_moments, dtype=bool), np.zeros(ambiguity.space.dimension)
    if pinned.size == 0:
        return moved
    moments, error = _moments(ambiguity, beliefs, tests)
    sizes = np.append(tests.sizes, 0.0)[tests.source]
    for _ in range(4):
        outside = _outside(slack, moments, error + sizes @ moved) & ~pinned
        if not outside.any():
            return moved
        pinned = pinned | outside
        target = _points_inside(slack, moments)
        chosen = _independent(ambiguity, beliefs, pinned, target)
        target = target[chosen]
        unsure = error[chosen] + 4 * EPSILON * (np.abs(moments[chosen]) + np.abs(target))
        given = replace(tests, source=tests.source[chosen])
        found = _correction(ambiguity, beliefs, given, moments[chosen] - target, unsure, False)
        for still in (False, True) if careful else ():
            if found is None:
                system = _in_basis(ambiguity, beliefs, chosen, target, still)
                found = None if system is None else _correction(ambiguity, beliefs, *system, still)
        if found is None:
            return None
        moved = found
    return None


def _independent(ambiguity: Ambiguity, beliefs: FloatArray, pinned: BoolArray, target: FloatArray) -> IntArray:
    """Number the pinned moments; on the simplex, where those of all classes sum to zero, without one class."""
    tests, slack, d = ambiguity.tests, ambiguity.slack, ambiguity.space.dimension
    chosen = np.flatnonzero(pinned)
    if not (tests.scalar and ambiguity.space.is_simplex):
        return chosen
    heaviest = int(np.argmax(ambiguity.weights @ beliefs))
    by_test = target.reshape(-1, d)
    implied, error = by_test.copy(), np.zeros_like(by_test)
    implied[:, heaviest] = by_test[:, heaviest] - by_test.sum(axis=1)
    error[:, heaviest] = (d + 4) * EPSILON * np.abs(by_test).sum(axis=1)
    follows = ~_outside(slack, implied.reshape(-1), error.reshape(-1)) | (slack.radius_of_moments == 0)
    whole = pinned.reshape(-1, d).all(axis=1) & follows.reshape(-1, d)[:, heaviest]
    return chosen[~(whole[chosen // d] & (chosen % d == heaviest))]


def _moments(
    ambiguity: Ambiguity, beliefs: FloatArray, tests: EvaluatedTests, own_error: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Moments of a world, and by how much they may be off; tests may have an error of their own."""

    def sums(part: slice) -> tuple[FloatArray, FloatArray]:
        some, weights = tests.take(part), ambiguity.weights[part]
        residuals, unsure = _residuals(ambiguity, beliefs, part)
        off = some.with_rows(np.abs(some.table)).moments(unsure, weights)
        return some.moments(residuals, weights), off + own_error * float((weights @ np.abs(residuals)).sum())

    found = _in_blocks(sums, ambiguity, ambiguity.tests.table.shape[1])
    added, unsure = (np.array([part[i] for part in found]) for i in (0, 1))
    return np.array([fsum(column) for column in added.T]), unsure.sum(axis=0) * (1 + 1e-9)


def _residuals(ambiguity: Ambiguity, beliefs: FloatArray, part: slice) -> tuple[FloatArray, FloatArray]:
    """Beliefs minus forecasts, and how much rounding there is in their moments; what is at its forecast is exact.

    On the simplex the other probabilities of a row count as scaled to the sum that is left for them.
    """
    own, forecasts = beliefs[part], ambiguity.forecasts[part]
    residuals = own - forecasts
    moving, unsure = residuals != 0, _rounding(ambiguity) * np.abs(residuals)
    if ambiguity.merged > 1:  # a mean is exact where all are zero
        distances = forecasts - ambiguity.space.bounds[0]
        share = EPSILON * ((ambiguity.merged + 4) * distances + np.abs(forecasts))
        unsure += np.where(moving, share, 0.0)
    if ambiguity.space.is_simplex:
        free = np.where(moving, own, 0.0)
        total, off = sums_of_rows(free)[:, None], (_off_one(own) + _off_one(forecasts))[:, None]
        # Where too little moves to take up the difference, the whole row does.
        few = (total < 4 * off) & moving.any(axis=1)[:, None]
        shares = np.where(few, 1.0, free / np.maximum(total, 1e-300))
        unsure += np.where(moving | few, off * (shares + forecasts), 0.0)
    return residuals, unsure


def _outside(slack: SlackSet, moments: FloatArray, error: FloatArray) -> BoolArray:
    """Which moments are not inside their slack for sure; those of a ball are so together."""
    reach = np.abs(moments - slack.center) + error
    reach = np.where(reach > 0, reach + 4 * EPSILON * (np.abs(moments) + np.abs(slack.center)), 0.0)
    reach = slack.norms(reach)[slack.groups]
    return np.asarray((reach > slack.radius_of_moments * (1 - 16 * EPSILON)) & (reach > 0))


def _points_inside(slack: SlackSet, moments: FloatArray) -> FloatArray:
    """Points of the slack set next to moments, in exact arithmetic: away from its boundary, or its centre."""
    off = slack.project(moments) - slack.center
    size, far = slack.norms(off)[slack.groups], slack.norms(slack.center)[slack.groups]
    room = slack.radius_of_moments * (1 - 1e-12) - 8 * EPSILON * (far + slack.radius_of_moments)
    return slack.center + off * np.minimum(1.0, np.maximum(0.0, room) / np.where(size > 0, size, 1.0))


def _correction(
    ambiguity: Ambiguity, beliefs: FloatArray, tests: EvaluatedTests, miss: FloatArray, unsure: FloatArray, still: bool
) -> FloatArray | None:
    """Bound the average movement that makes up for what moments miss; None where that cannot be proven.

    What is ``still`` at its forecast stays there.
    """
    simplex, single = ambiguity.space.is_simplex, bool(((tests.source >= 0).sum(axis=1) == 1).all())
    low, high = ambiguity.space.bounds
    error = _forecast_error(ambiguity)

    def sums(part: slice) -> tuple[FloatArray, FloatArray]:
        points, weights = beliefs[part], ambiguity.weights[part]
        room = points if simplex else np.minimum(points - low, high - points)
        moving = points != ambiguity.forecasts[part]
        # A mean forecast that a row stays at is not known to the last digit.
        room = np.where(moving, room, 0.0 if still else np.maximum(room - error, 0.0))
        return gram_of_movements(tests.take(part), weights, room, simplex, single), weights @ room

    found = _in_blocks(sums, ambiguity, 0 if single else miss.size * low.size)
    gram, room = (np.sum([part[i] for part in found], axis=0) for i in (0, 1))
    sizes = np.append(tests.sizes, 0.0)[tests.source].max(axis=1)
    square = _square_of_movement(gram, miss, unsure, sizes, _rounding(ambiguity), simplex)
    if square is None:
        return None
    # E D|B c| <= sqrt(E D) sqrt(c^T A c) by Cauchy and Schwarz; on the simplex for all coordinates together.
    return np.asarray(np.sqrt(square * (np.ones_like(room) if simplex else room)) * (1 + 1e-9))


def _square_of_movement(
    gram: FloatArray, miss: FloatArray, unsure: FloatArray, sizes: FloatArray, rounding: float, simplex: bool
) -> float | None:
    """Bound ``c^T A c`` where ``A c = miss``; None if there may be no solution, or one that leaves the space."""
    length = np.sqrt(np.diag(gram))
    free = length > 0
    if (length[free] < 1e-140).any():  # squares next to underflow
        return None
    if (np.abs(miss[~free]) + unsure[~free] > 0).any():  # moments that nothing can move
        return None
    gram, length, miss, unsure, sizes = gram[np.ix_(free, free)], length[free], miss[free], unsure[free], sizes[free]
    count, scaled, steepest = length.size, gram / (length[:, None] * length), sizes / length
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return None
    # Entries are at most one by Cauchy and Schwarz; centring on the simplex rounds numbers of the tests' own size.
    entry_error = 4 * rounding * (1.0 + (float(steepest.max(initial=0.0)) if simplex else 0.0))
    deviation = np.abs(np.eye(count) - inverse @ scaled).sum(axis=1)
    deviation += (np.abs(inverse) @ np.abs(scaled)).sum(axis=1) * (count + 4) * EPSILON
    share = float((deviation + np.abs(inverse).sum(axis=1) * count * entry_error).max(initial=0.0))
    if not share < 0.5:
        return None
    goal, spread = miss / length, (unsure + (count + 4) * EPSILON * np.abs(miss)) / length
    solved = np.abs(inverse @ goal) + np.abs(inverse) @ spread
    largest = float(solved.max(initial=0.0)) * (1 + 1e-9) / (1.0 - share)
    if not largest * float(steepest.sum()) * (2.0 if simplex else 1.0) <= 0.5:
        return None
    return largest * float((np.abs(goal) + spread).sum())


def _in_basis(
    ambiguity: Ambiguity, beliefs: FloatArray, chosen: IntArray, target: FloatArray, still: bool
) -> tuple[EvaluatedTests, FloatArray, FloatArray] | None:
    """Write tests in an orthonormal basis, with what their moments miss and the error of that.

    Where what is ``still`` at its forecast stays there, only what tests are elsewhere matters.
    """
    tests, weights, d, n = ambiguity.tests, ambiguity.weights, ambiguity.space.dimension, ambiguity.n_rows
    kinds, coordinates, rounded = np.unique(chosen // d), np.unique(chosen % d), False
    if tests.scalar and kinds.size * coordinates.size == chosen.size and not still:
        values, moving = tests.table[:, kinds], np.ones(n, dtype=bool)
        basis = orthonormal_basis(values, weights)
        own: IntArray = np.full((basis.error.size, coordinates.size, d), -1)
        own[:, np.arange(coordinates.size), coordinates] = np.arange(basis.error.size)[:, None]
        written = replace(tests, table=basis.values, source=own.reshape(-1, d), labels=None)
    elif n * d * chosen.size**2 > _MOST_PRODUCTS:
        return None
    else:
        free = beliefs != ambiguity.forecasts if still else np.ones((n, d), dtype=bool)
        vectors = replace(tests, source=tests.source[chosen]).vectors
        if ambiguity.space.is_simplex:  # only differences between classes matter
            reference = np.where(free, beliefs, -1.0).argmax(axis=1)
            vectors, lost = two_sum(vectors, -np.take_along_axis(vectors, reference[:, None, None], axis=2))
            rounded = bool(lost.any())
        values, moving = vectors.transpose(0, 2, 1).reshape(n * d, -1), free.reshape(-1)
        basis = orthonormal_basis(values[moving], np.repeat(weights, d)[moving], 0.0 if still else 2.0)
        spread = np.zeros((n * d, basis.error.size))
        spread[moving] = basis.values
        own = np.arange(d * basis.error.size).reshape(d, -1).T
        written = replace(tests, table=spread.reshape(n, -1), source=own, labels=None)
    goals = target.reshape(values.shape[1], -1)
    reach = np.abs(goals) + (np.abs(values).max(axis=0) * float(ambiguity.space.widths.max()))[:, None]
    exact = (ambiguity.slack.radius_of_moments[chosen] == 0).reshape(goals.shape).all(axis=1)
    for null in basis.null:  # exactly zero, or zero by convention
        left, _ = accurate_combination(goals.T, null)
        by_convention = not still and exact[null != 0].all()
        if by_convention and (np.abs(left) <= 128 * EPSILON * (np.abs(null) @ reach)).all():
            continue
        if left.any() or rounded or accurate_combination(values[moving], null)[0].any():
            return None
    error = basis.error
    if rounded:  # differences between classes are rounded
        error = error + EPSILON * (np.abs(values) @ np.abs(basis.transform)).max(axis=0, initial=0.0)
    moments, unsure = _moments(ambiguity, beliefs, written, np.repeat(error, goals.shape[1]))
    goal = np.array([accurate_combination(goals.T, column)[0] for column in basis.transform.T]).reshape(-1)
    size = (np.abs(basis.transform).T @ np.abs(goals)).reshape(-1)
    unsure = unsure + 4 * EPSILON * (np.abs(moments) + np.abs(goal)) + (len(goals) + 4) ** 2 * EPSILON**2 * size
    return written, moments - goal, unsure
