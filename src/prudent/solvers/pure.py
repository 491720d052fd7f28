"""The best deterministic rule (docs/theory.md, section 3.2).

``V_pure = max_L sum_i w_i [ max_a { c_a + min_p p.(r_a + s_i) } - s_i.v_i ] - sigma_S(L)``,
attained by that argmax. This dual is not concave. With one multiplier and one coordinate, branch and bound
finds its maximum; else alternation (multipliers to actions, actions to their
worst-case multipliers) climbs from many starts, and optimality is proven only where
the mixed optimum is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from prudent.arrays import EPSILON, FloatArray, IntArray, frozen
from prudent.cases.memory_rows import Ambiguity
from prudent.solvers.bounds import certified_lower
from prudent.solvers.game import Game, local_game
from prudent.solvers.solution import Certificate, Solution, Status
from prudent.solvers.solve import TOLERANCE, solve

_PROBES = 64
_STARTS = 6
_WORK = 7e5  # rows times moments that are searched once
_GAIN = 1e-10


def pure_actions(game: Game, tilts: FloatArray) -> IntArray:
    """Return ``argmax_a { c_a + min_p p.(r_a + s) }`` for each tilt; ties go to the first declared."""
    if game.shared and game.dimension == 1:
        envelope = pure_envelope(game)
        return envelope.actions[np.searchsorted(envelope.thresholds, tilts[:, 0], side="right")]
    return _pure_values(game, tilts).argmax(axis=1).astype(np.int64)


def solve_pure(game: Game, ambiguity: Ambiguity, mixed: Solution) -> Solution:
    """Find the best deterministic rule, given the mixed optimum on the same rows.

    The certificate's ``lower`` is what the rule guarantees, its ``upper`` what
    no policy, mixed or not, can exceed.
    """
    if mixed.multipliers is None:  # full calibration: best responding is deterministic already
        return mixed
    multipliers, size = mixed.multipliers, ambiguity.tests.n_moments
    exact = size == 0 or size == game.dimension == 1
    if not exact:
        multipliers = _climb(game, ambiguity, multipliers, mixed.beliefs)
    elif size == 1:
        envelope = pure_envelope(game)
        multipliers = np.array([best_multiplier(envelope.concave, envelope.convex, ambiguity)])
    rule = _fixed(game, pure_actions(game, ambiguity.tests.tilts(multipliers)))
    worst = solve(rule, ambiguity)
    lower = worst.lower
    if worst.certificate.gap > _GAIN * game.scale:
        lower = max(lower, certified_lower(rule, ambiguity, multipliers, local_game(rule)))
    lower = min(lower, mixed.upper)
    if mixed.upper - lower <= TOLERANCE * game.scale:
        exact = True
        message = (
            "The best mixed policy needs no mixing here, so this deterministic rule is optimal among all policies."
        )
    elif exact:
        message = (
            "Best deterministic rule: no other value of its one multiplier guarantees more; "
            "the gap to the upper bound is what giving up mixing costs."
        )
    else:
        message = (
            "Best deterministic rule found by alternation from many starts; "
            "what it guarantees is certified, that no other deterministic rule guarantees more is not."
        )
    status = Status.OPTIMAL if exact else Status.NOT_PROVEN
    return Solution(multipliers, worst.beliefs, Certificate(lower, mixed.upper, status, message), "pure")


@frozen
class PureEnvelope:
    """The value ``max_a { c_a + min_p p (r_a + s) } - lo s`` of the best action on ``[lo, hi]``, by the tilt ``s``.

    Each action rises with slope ``hi - lo`` up to ``s = -r_a`` and is constant from there on.

    Attributes
    ----------
    concave, convex : arrays of shape (J,) and (J - 1,)
        Tilts at which the slope falls to zero, and at which it returns to ``hi - lo``; both increasing.
    thresholds : array of shape (T - 1,)
        Tilts from which on, the tilt itself included, the next action is played.
    actions : array of shape (T,)
        The best action between thresholds; of tied ones the first declared.
    """

    concave: FloatArray
    convex: FloatArray
    thresholds: FloatArray
    actions: IntArray


def pure_envelope(game: Game) -> PureEnvelope:
    """Find the best action at every tilt of a shared game with one coordinate."""
    low, high = game.space.interval
    rewards = game.rewards[0, :, 0]
    levels = game.offsets[0] + rewards * low  # measured from lo, so that a far-away origin costs no digits
    risers = levels + rewards * (high - low)
    order = np.argsort(-rewards, kind="stable")
    # Between two neighbours among the tilts -r_a: the best constant action, and the best rising one.
    level = np.append(-np.inf, np.maximum.accumulate(levels[order]))
    riser = np.append(np.maximum.accumulate(risers[order][::-1])[::-1], -np.inf)
    edges = np.concatenate([[-np.inf], -rewards[order], [np.inf]])
    crossings = np.clip((level - riser) / (high - low), edges[:-1], edges[1:])
    starts = np.column_stack([edges[:-1], crossings]).ravel()
    (pieces,) = np.nonzero(starts < np.append(starts[1:], np.inf))
    starts, rising, interval = starts[pieces], pieces % 2 == 1, pieces[:, None] // 2
    passed = np.argsort(order) < interval  # the action is constant here
    best = np.where(rising[:, None], ~passed & (risers == riser[interval]), passed & (levels == level[interval]))
    actions = best.argmax(axis=1)
    # At the threshold itself both actions are best, and the first declared is played.
    later = np.where(np.diff(actions) > 0, np.nextafter(starts[1:], np.inf), starts[1:])
    changed = np.diff(actions) != 0
    return PureEnvelope(
        starts[1:][rising[:-1] & ~rising[1:]],
        starts[1:][~rising[:-1] & rising[1:]],
        later[changed],
        actions[np.append(True, changed)],
    )


def _fixed(game: Game, actions: IntArray) -> Game:
    """Write the game in which every row plays one given action."""
    rows = 0 if game.shared else np.arange(actions.size)
    return Game(game.rewards[rows, actions][:, None], game.offsets[rows, actions][:, None], game.space, shared=False)


def _pure_values(game: Game, tilts: FloatArray) -> FloatArray:
    return game.offsets + game.space.support_minimum(game.rewards + tilts[:, None, :])


def _pure_dual(game: Game, ambiguity: Ambiguity, multipliers: FloatArray) -> float:
    tilts = ambiguity.tests.tilts(multipliers)
    rows = _pure_values(game, tilts).max(axis=1) - (tilts * ambiguity.forecasts).sum(axis=1)
    return float(ambiguity.weights @ rows) - ambiguity.slack.support(multipliers)


def _climb(game: Game, ambiguity: Ambiguity, center: FloatArray, beliefs: FloatArray) -> FloatArray:
    """Climb the pure dual from many starts and return the best multipliers found."""
    n, size = ambiguity.n_rows, center.size
    budget = max(2, int(_WORK / (n * size)))
    value = partial(_pure_dual, game, ambiguity)
    starts = [center, np.zeros(size), *_random_probes(center)]
    if ambiguity.plug_in_multipliers is not None:
        starts.append(ambiguity.plug_in_multipliers)
    starts = sorted(starts, key=value, reverse=True)[: min(_STARTS, budget)]
    rules = [pure_actions(game, ambiguity.tests.tilts(start)) for start in starts]
    rules += [game.utilities(points).argmax(axis=1) for points in (ambiguity.forecasts, beliefs)]
    rules += [np.full(n, action) for action in range(min(game.n_actions, budget))]
    return max(*starts, *(_alternate(game, ambiguity, actions) for actions in rules), key=value)


def _alternate(game: Game, ambiguity: Ambiguity, actions: IntArray) -> FloatArray:
    """Alternate between actions, their worst-case multipliers and best actions there until nothing improves."""
    best, value = np.zeros(ambiguity.tests.n_moments), -np.inf
    for _ in range(50):
        multipliers = solve(_fixed(game, actions), ambiguity).multipliers
        assert multipliers is not None  # only full calibration has none
        before, value = value, _pure_dual(game, ambiguity, multipliers)
        if value <= before + _GAIN * game.scale:
            break
        best, actions = multipliers, pure_actions(game, ambiguity.tests.tilts(multipliers))
    return best


def _random_probes(center: FloatArray) -> FloatArray:
    generator = np.random.default_rng(0)  # a fixed search, so that equal input gives equal rules
    scatter = generator.normal(size=(_PROBES, center.size)) * (np.abs(center).max() or 1.0)
    shares, shrink = (generator.choice(sizes, size=(_PROBES, 1)) for sizes in ([0.1, 0.3, 1.0], [0.0, 0.5, 1.0]))
    return shrink * center + shares * scatter


_SPLITS = 16
_BATCH = 1 << 10
_COARSE = 1 << 12


def best_multiplier(concave: FloatArray, convex: FloatArray, ambiguity: Ambiguity) -> float:
    """Return the best multiplier for one coordinate and one test.

    The dual is ``sum_i w_i [psi(x b_i) - x b_i (v_i - lo)] - sigma_S(x)``, where all rows share ``psi``. With rows
    sorted by ``b``, prefix sums give it at any ``x``.

    Parameters
    ----------
    concave, convex : arrays
        Tilts at which the slope of ``psi`` falls from ``hi - lo`` to zero, and at which it returns.
    ambiguity : Ambiguity
    """
    low, high = ambiguity.space.interval
    values, weights = ambiguity.tests.values.reshape(-1), ambiguity.weights
    rows = _PrefixSums.of(values, weights)
    width = high - low
    steep = np.count_nonzero(concave < 0) == np.count_nonzero(convex < 0)  # just below the tilt zero
    slope = float((weights * values) @ (steep * width + low - ambiguity.forecasts[:, 0]) - ambiguity.slack.center[0])

    def evaluate(points: FloatArray) -> FloatArray:
        fall, fall_slope = rows.hinges(concave, points)
        rest = width * rows.hinges(convex, points)[0] + slope * points - ambiguity.slack.radius * np.abs(points)
        return np.stack([-width * fall, -width * fall_slope, rest])

    kinks, size = concave[concave != 0], float(weights @ np.abs(values))
    farthest = float(np.abs([*concave, *convex]).max(initial=0.0))
    if size == 0 or kinks.size == 0:
        return 0.0
    rounding = (32 + values.size**0.5) * EPSILON * width
    errors = rounding * farthest, rounding * size
    limit = farthest / (EPSILON * size)  # beyond it rounding outweighs all there is to gain
    stride = 1 + values.size * kinks.size // _COARSE
    with np.errstate(divide="ignore", over="ignore"):
        coarse = np.clip(kinks[:, None] / rows.tests[::stride], -limit, limit)
        place, leaves = _maximize(evaluate, np.append(coarse, [-limit, limit]), errors)
        if stride > 1:
            leaves = np.copysign(leaves, leaves.sum(axis=0))  # zero as seen from the other end
            passed = np.sort([np.searchsorted(rows.tests, kinks[:, None] / edge) for edge in leaves], axis=0)
            ranges = zip(np.repeat(kinks, passed.shape[2]), passed[0].flat, passed[1].flat, strict=True)
            fine = [kink / rows.tests[first:last] for kink, first, last in ranges]
            place = _maximize(evaluate, np.clip(np.concatenate([[place], *fine]), -limit, limit), errors)[0]
    return place


def _maximize(
    evaluate: Callable[[FloatArray], FloatArray], candidates: FloatArray, errors: tuple[float, float]
) -> tuple[float, FloatArray]:
    """Return the highest candidate, zero among them, and intervals between neighbours that may hold more.

    ``evaluate`` maps points ``(P,)`` to the concave part, one of its slopes, and the rest, which is convex on either
    side of zero: ``(3, P)``. Values err by ``errors[0] + errors[1] |x|``; the second term is charged, so that of equal
    maxima the nearest is taken.
    """
    positions = np.sort(np.append(candidates, 0.0)) + 0.0  # no negative zeros
    zero = int(np.searchsorted(positions, 0.0))
    first, last = np.array([0, zero]), np.array([zero, positions.size - 1])
    place, best = 0.0, -np.inf
    leaves: list[FloatArray] = []
    while first.size:
        begin, stop = first[-_BATCH:, None], last[-_BATCH:, None]
        index = begin + (stop - begin) * np.arange(_SPLITS + 1) // _SPLITS
        points = positions[index]
        concave, slope, convex = evaluate(points.ravel()).reshape(3, *points.shape)
        convex -= errors[1] * np.abs(points)
        height = concave + convex
        highest = int(height.argmax())
        if height.flat[highest] > best:
            place, best = float(points.flat[highest]), float(height.flat[highest])
        left, right, length, bend = points[:, :-1], points[:, 1:], np.diff(points), -np.diff(slope)
        drop = np.diff(concave) - slope[:, 1:] * length
        crossing = np.clip(np.divide(drop, bend, out=np.zeros_like(drop), where=bend > 0), 0.0, length)  # of tangents
        chord = np.divide(np.diff(convex), length, out=np.zeros_like(drop), where=length > 0)
        bound = height[:, :-1] + (slope[:, :-1] + chord) * crossing
        # Rounding explains a bound within the error of the nearer end, unless the other is far away.
        near, far = np.sort(np.abs([left, right]), axis=0)
        bound -= errors[0] + errors[1] * (2 * near - far)
        leaf, split = ((bound > best) & more for more in (np.diff(index) == 1, np.diff(index) > 1))
        leaves.append(np.stack([left[leaf], right[leaf], bound[leaf]]))
        first = np.concatenate([first[:-_BATCH], index[:, :-1][split]])
        last = np.concatenate([last[:-_BATCH], index[:, 1:][split]])
    found = np.concatenate(leaves, axis=1)
    return place, found[:2, found[2] > best]


@frozen
class _PrefixSums:
    """Tests in increasing order ``(n,)``; sums of weights and of weight times test before each, ``(n + 1,)``."""

    tests: FloatArray
    weights: FloatArray
    moments: FloatArray

    @classmethod
    def of(cls, values: FloatArray, weights: FloatArray) -> _PrefixSums:
        if weights.min() == weights.max():
            tests = np.sort(values)  # several times faster than what follows
        else:
            order = np.argsort(values)
            tests, weights = values[order], weights[order]
        return cls(tests, *(np.concatenate([[0.0], np.cumsum(sizes)]) for sizes in (weights, weights * tests)))

    def hinges(self, kinks: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum how far the tilts ``x b`` lie beyond each kink, seen from zero, at points ``x``; and a slope in ``x``."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            passed = np.searchsorted(self.tests, kinks[:, None] / points)
        above = (kinks >= 0)[:, None] == (points >= 0)
        weights, moments = self.weights[passed], self.moments[passed]
        weights = np.where(above, self.weights[-1] - weights, weights)
        moment = np.where(above, self.moments[-1] - moments, -moments).sum(axis=0)
        return np.abs(points) * moment - np.abs(kinks) @ weights, np.sign(points) * moment
