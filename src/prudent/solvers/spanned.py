"""One action per row whose rewards are a combination of the tests: the moments alone say what it gets.

If ``r(v) = -s(v)`` for a tilt ``s`` with multipliers ``L``, then ``E r(f).q = E r(f).f - <L, M(q)>`` in every world,
so the worst one has the moments of ``S`` that lie furthest along ``L``. Best responding is such a game where its
utility is a test (docs/theory.md, section 4), a constant mixture where the constant is. A world with given moments is
``q = v + D(v) s_c(v)``, where ``D`` vanishes at the boundary and ``c`` solves one small linear system; if it leaves the
space, another algorithm has to look for one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prudent.ambiguity import Ambiguity, SlackSet
from prudent.arrays import FloatArray
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.solvers.game import Game
from prudent.solvers.interior_metric import InteriorMetric
from prudent.solvers.moment_reduction import plain_system
from prudent.solvers.moment_system import MomentSystem, upper_triangles
from prudent.spaces import Simplex

__all__ = ["spanned_rewards"]

_MOST_BYTES = 1 << 26
_SOME_ROWS = 1_000
_ROUNDING = 1e-11
_UNUSED = 1e-8
_RANK = 1e-13


def spanned_rewards(game: Game, ambiguity: Ambiguity) -> tuple[FloatArray, FloatArray] | None:
    """Return multipliers and a worst world; None if rewards are no combination of tests, or no world was found."""
    tests = ambiguity.tests
    if game.n_actions != 1 or tests.nbytes > _MOST_BYTES:
        return None
    multipliers = _combination(game.rewards[:, 0], ambiguity)
    if multipliers is None:
        return None
    world = _world(ambiguity, *_furthest(ambiguity.slack, multipliers))
    return None if world is None else (multipliers, world)


def _combination(rewards: FloatArray, ambiguity: Ambiguity) -> FloatArray | None:
    """Write ``-rewards`` as a tilt that leaves nothing: the known one of best responding, or by least squares."""
    tests, weights = ambiguity.tests, ambiguity.weights
    wanted = np.broadcast_to(rewards, ambiguity.forecasts.shape)
    if ambiguity.plug_in_multipliers is not None:
        known = np.where(tests.seen, ambiguity.plug_in_multipliers, 0.0)
        if _leaves_nothing(tests, wanted, known):
            return known
    if isinstance(ambiguity.space, Simplex) and tests.scalar and not ambiguity.slack.exact:
        # A constant that is added to a test's multipliers changes nothing but the price of its slack, and the
        # cheapest one is not looked for here.
        return None
    some = slice(None, None, max(1, tests.n_rows // _SOME_ROWS))
    if tests.n_rows > 2 * _SOME_ROWS and _fitted(tests.take(some), weights[some], wanted[some]) is None:
        return None
    return _fitted(tests, weights, wanted)


def _fitted(tests: EvaluatedTests, weights: FloatArray, wanted: FloatArray) -> FloatArray | None:
    """Write ``-wanted`` as a tilt, by weighted least squares that leave nothing."""
    if tests.scalar:
        weighted = (tests.values * weights[:, None]).T
        gram, right = weighted @ tests.values, -(weighted @ wanted)
    else:
        system = plain_system(tests, weights)
        one = upper_triangles(np.repeat(np.eye(tests.dimension)[:, :, None], tests.n_rows, axis=2))
        gram, right = system.gram(one), -system.moments(wanted.T)[:, None]
    found = _solve(gram, right)
    # Tests that only rounding brought in would be held at the wrong end of their slack.
    sizes = np.abs(found).max(axis=1) * np.sqrt(np.diag(gram))
    used = np.flatnonzero(sizes > _UNUSED * sizes.max(initial=0.0))
    multipliers = np.zeros_like(found)
    multipliers[used] = _solve(gram[np.ix_(used, used)], right[used])
    return multipliers.reshape(-1) if _leaves_nothing(tests, wanted, multipliers.reshape(-1)) else None


def _leaves_nothing(tests: EvaluatedTests, wanted: FloatArray, multipliers: FloatArray) -> bool:
    left = wanted + tests.tilts(multipliers)
    return bool(np.abs(left).max() <= _ROUNDING * np.abs(wanted).max())


def _furthest(slack: SlackSet, multipliers: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Allowed moments that lie furthest along the multipliers; and which moments those say something about."""
    if not slack.ball:
        return slack.center + slack.radius * np.sign(multipliers), multipliers != 0
    norms = np.sqrt(np.bincount(slack.groups, weights=multipliers**2, minlength=slack.radius.size))[slack.groups]
    along = np.divide(multipliers, norms, out=np.zeros_like(multipliers), where=norms > 0)
    return slack.center + slack.radius[slack.groups] * along, norms > 0


def _world(ambiguity: Ambiguity, moments: FloatArray, held: NDArray[np.bool_]) -> FloatArray | None:
    """Find a world with these moments where they are held, and allowed others; None if it would leave the space."""
    forecasts, system = np.ascontiguousarray(ambiguity.forecasts.T), plain_system(ambiguity.tests, ambiguity.weights)
    metric = InteriorMetric(forecasts, ambiguity.space)
    way = _shortest_way(metric, system, ambiguity.slack, moments, held)
    low, high = (bound[:, None] for bound in ambiguity.space.bounds)
    world = forecasts + way
    inside = np.clip(world, low, high)
    if np.abs(world - inside).max() > _ROUNDING * float((high - low).max()):
        return None
    return np.ascontiguousarray(inside.T)


def _shortest_way(
    metric: InteriorMetric, system: MomentSystem, slack: SlackSet, moments: FloatArray, held: NDArray[np.bool_]
) -> FloatArray:
    """Go from the forecasts to the moments that are held, which takes the others along, as far as they may go."""
    if held.sum() == 1:
        along = metric.apply(system.tilts(held.astype(np.float64)))
        taken_along = system.moments(along)
        length = moments[held].item() / max(taken_along[held].item(), 1e-300)
        taken_along = np.where(held, moments, length * taken_along)
        if (slack.project(taken_along) == taken_along)[~held].all():
            return along * length
    gram = metric.gram(system)
    taken_along = gram[:, held] @ _solve(gram[np.ix_(held, held)], moments[held])
    moments = np.where(held, moments, slack.project(taken_along))
    return metric.apply(system.tilts(_solve(gram, moments)))


def _solve(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a system of inner products, each test in its own unit; collinear tests share."""
    size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    shaped = size.reshape(-1, *[1] * (right.ndim - 1))
    solution: FloatArray = np.linalg.lstsq(gram / (size[:, None] * size), right / shaped, rcond=_RANK)[0] / shaped
    return solution
