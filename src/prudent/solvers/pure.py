"""The best deterministic rule (docs/theory.md, section 3.2).

``V_pure = max_L sum_i w_i [ max_a { c_a + min_p p.(r_a + s_i) } - s_i.v_i ] - sigma_S(L)``,
attained by that argmax. Not concave, but only as wide as there are moments:
with one multiplier an exact sweep finds the maximum (in one coordinate without
visiting most of the breakpoints); with more, alternation (multipliers to
actions, actions to their worst-case multipliers) and exact line sweeps climb
from many starts, and optimality is proven only where the mixed optimum is
reached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prudent.ambiguity import Ambiguity
from prudent.arrays import FloatArray, IntArray
from prudent.solvers.dispatch import TOLERANCE, certified, solve
from prudent.solvers.game import Game
from prudent.solvers.line import best_on_line
from prudent.solvers.pure_scalar import best_pure_multiplier, staircase
from prudent.solvers.scalar import scalar_world
from prudent.solvers.solution import Certificate, Solution, Status

__all__ = ["explain_pure", "pure_actions", "solve_pure"]

_RANDOM_PROBES = 64
_STARTS = 6
_WORK = 2e7
_NEGLIGIBLE = 1e-10
_ROUNDING = 1e-12


def pure_actions(game: Game, tilts: FloatArray) -> IntArray:
    """Return ``argmax_a { c_a + min_p p.(r_a + s) }`` for each tilt; ties go to the first declared."""
    if game.shared and game.dimension == 1:
        return staircase(game).best_actions(tilts[:, 0])
    return _pure_values(game, tilts).argmax(axis=1).astype(np.int64)


def solve_pure(game: Game, ambiguity: Ambiguity, mixed: Solution) -> Solution:
    """Find the best deterministic rule, given the mixed optimum on the same rows.

    The certificate's ``lower`` is what the rule guarantees, its ``upper`` what
    no policy, mixed or not, can exceed.
    """
    if mixed.multipliers is None:  # full calibration: best responding is deterministic already
        return mixed
    search = _Search(game, ambiguity, mixed)
    size = ambiguity.tests.n_moments
    scalar = size == 1 and game.shared and game.dimension == 1
    if size == 0:
        multipliers, exact = np.zeros(0), True
    elif scalar:
        multipliers, exact = best_pure_multiplier(game, ambiguity), True
    elif size == 1:
        multipliers, exact = search.sweep(np.zeros(1), np.ones(1)), True
    else:
        multipliers, exact = search.climb(), False
    tilts = ambiguity.tests.tilts(multipliers)
    actions = pure_actions(game, tilts)
    rule = _fixed(game, actions)
    if scalar:
        # The rule's own dual lies below the pure dual and touches it here: its worst case is at the same multiplier.
        played = certified(rule, ambiguity, multipliers, scalar_world(rule, ambiguity, float(multipliers[0])))
        if played.gap > _NEGLIGIBLE * game.scale or not _allowed(ambiguity, played.beliefs):
            played = solve(rule, ambiguity)  # by rounding, a row's action or jump fell on the other side
    else:
        played = solve(rule, ambiguity)
    lower, upper = played.lower, mixed.upper
    if not scalar or played.gap > _NEGLIGIBLE * game.scale:  # else the dual adds no more than a pass over all rows
        lower = max(lower, search.value(multipliers))
    lower = min(lower, upper)
    reached = (upper - lower) <= TOLERANCE * game.scale
    status = Status.OPTIMAL if exact or reached else Status.NOT_PROVEN
    return Solution(
        multipliers, played.beliefs, Certificate(lower, upper, status, explain_pure(exact, reached)), "pure"
    )


def explain_pure(exact: bool, reached: bool) -> str:
    """Say what is proven of a deterministic rule: that it is best, that mixing gains nothing, or neither."""
    if reached:
        return "The best mixed policy needs no mixing here, so this deterministic rule is optimal among all policies."
    if exact:
        return (
            "Best deterministic rule: no other value of its one multiplier guarantees more; "
            "the gap to the upper bound is what giving up mixing costs."
        )
    return (
        "Best deterministic rule found by alternation and line sweeps from many starts; "
        "what it guarantees is certified, that no other deterministic rule guarantees more is not."
    )


def _allowed(ambiguity: Ambiguity, beliefs: FloatArray) -> bool:
    """True if a world's moments are right up to rounding."""
    moments = ambiguity.moments(beliefs)
    low, high = ambiguity.space.bounds
    size = float(ambiguity.tests.sizes.max()) * float((high - low).max())
    return bool(np.abs(moments - ambiguity.slack.project(moments)).max(initial=0.0) <= _ROUNDING * size)


def _fixed(game: Game, actions: IntArray) -> Game:
    if game.shared:
        rewards, offsets = game.rewards[0].take(actions, axis=0), game.offsets[0].take(actions)
    else:
        rows = np.arange(actions.size)
        rewards, offsets = game.rewards[rows, actions], game.offsets[rows, actions]
    return Game(rewards[:, None, :], offsets[:, None], game.space, shared=False)


def _best_values(game: Game, tilts: FloatArray) -> FloatArray:
    if game.shared and game.dimension == 1:
        played = _fixed(game, pure_actions(game, tilts))
        return _pure_values(played, tilts)[:, 0]
    return _pure_values(game, tilts).max(axis=1)


def _pure_values(game: Game, tilts: FloatArray) -> FloatArray:
    return game.offsets + game.space.support_minimum(game.rewards + tilts[:, None, :])


@dataclass(frozen=True, eq=False)
class _Search:
    """The pure dual on one sample, and ways to climb it."""

    game: Game
    ambiguity: Ambiguity
    mixed: Solution

    def value(self, multipliers: FloatArray) -> float:
        """Evaluate the pure dual."""
        tilts = self.ambiguity.tests.tilts(multipliers)
        best = _best_values(self.game, tilts)
        linear = (tilts * self.ambiguity.forecasts).sum(axis=1)
        return float(self.ambiguity.weights @ (best - linear)) - self.ambiguity.slack.support(multipliers)

    def sweep(self, multipliers: FloatArray, direction: FloatArray) -> FloatArray:
        """Maximise along a line: exactly for interval slack, at the bends for balls."""
        tests = self.ambiguity.tests
        with np.errstate(divide="ignore", invalid="ignore"):
            zeros = -multipliers / direction
        positions = best_on_line(
            self.game,
            self.ambiguity.weights,
            self.ambiguity.forecasts,
            tests.tilts(multipliers),
            tests.tilts(direction),
            zeros[np.isfinite(zeros)],
        )
        return max((multipliers + x * direction for x in positions), key=self.value)

    def alternate(self, multipliers: FloatArray) -> FloatArray:
        """Let actions and their worst-case multipliers answer each other until nothing improves."""
        value = self.value(multipliers)
        tests = self.ambiguity.tests
        for _ in range(50):
            actions = pure_actions(self.game, tests.tilts(multipliers))
            answer = self._answer(actions)
            answered = self.value(answer)
            if answered <= value + 1e-10 * self.game.scale:
                return answer if answered > value else multipliers
            multipliers, value = answer, answered
        return multipliers

    def climb(self) -> FloatArray:
        """Climb from many starts and return the best multipliers found."""
        assert self.mixed.multipliers is not None
        center = self.mixed.multipliers
        candidates = [center, np.zeros_like(center), *self._random_probes(center)]
        if self.ambiguity.plug_in_multipliers is not None:
            candidates.append(self.ambiguity.plug_in_multipliers)
        candidates.sort(key=self.value, reverse=True)
        rows, m = self.ambiguity.n_rows, self.game.n_actions
        budget = max(2, int(_WORK / (rows * center.size * 30)))
        starts = candidates[: min(_STARTS, budget)]
        constant = [np.full(rows, action) for action in range(min(m, budget))]
        plug_in = self.game.utilities(self.ambiguity.forecasts).argmax(axis=1)
        respond = self.game.utilities(self.mixed.beliefs).argmax(axis=1)
        starts += [self._answer(actions) for actions in [plug_in, respond, *constant]]
        best, value = center, self.value(center)
        for start in starts:
            found = self.alternate(start)
            if self.value(found) > value:
                best, value = found, self.value(found)
        return self._polish(best, value, budget)

    def _polish(self, best: FloatArray, value: float, budget: int) -> FloatArray:
        """Sweep along every coordinate, alternating after each gain."""
        for _ in range(min(3, budget)):
            before = value
            for direction in np.eye(best.size)[: 4 * budget]:
                moved = self.sweep(best, direction)
                if self.value(moved) > value + 1e-10 * self.game.scale:
                    best = self.alternate(moved)
                    value = self.value(best)
            if value <= before:
                break
        return best

    def _answer(self, actions: IntArray) -> FloatArray:
        """Worst-case multipliers of a fixed rule."""
        answer = solve(_fixed(self.game, actions), self.ambiguity).multipliers
        assert answer is not None
        return answer

    def _random_probes(self, center: FloatArray) -> list[FloatArray]:
        generator = np.random.default_rng(0)  # a fixed search, so that equal input gives equal rules
        count = max(4, min(_RANDOM_PROBES, int(_WORK / (self.ambiguity.n_rows * center.size))))
        size = np.abs(center).max(initial=0.0) or 1.0
        scatter = generator.normal(size=(count, center.size)) * size
        shares = generator.choice([0.1, 0.3, 1.0], size=(count, 1))
        shrink = generator.choice([0.0, 0.5, 1.0], size=(count, 1))
        return list(shrink * center + shares * scatter)
