"""The rule with the highest gain over the rule in use in the worst world (docs/theory.md, section 11).

``u(pi, q) - u(pi0, q)`` is the utility of a game in which every row has the rewards and costs of the problem less those
of what the rule in use plays there. So the gain has the same certificates as a utility; it is never below zero, because
the rule in use is a policy, too.
"""

from dataclasses import replace

import numpy as np

from prudent.arrays import EPSILON, FloatArray
from prudent.cases.ambiguity import Ambiguity
from prudent.policies.base import Policy
from prudent.problem import DecisionProblem
from prudent.solvers import Game, Solution, local_game, pure_actions, solve
from prudent.solvers.bounds import certified_lower
from prudent.solvers.solve import certificate_of

#: Gains up to this share of the utility range are none.
_NO_GAIN = 1e-9
_ROUNDING = 1e-6


def game_of_gains(problem: DecisionProblem, against: Policy, forecasts: FloatArray) -> Game:
    """Write what every action gains over a rule, row by row."""
    played = against._mixtures(forecasts)
    rewards = problem.rewards - (played @ problem.rewards)[:, None]
    offsets = (played @ problem.costs)[:, None] - problem.costs
    far = np.maximum(*(np.abs(bound) for bound in problem.space.bounds))
    size = 2 * float((np.abs(problem.rewards) @ far + np.abs(problem.costs)).max())
    return Game(rewards, offsets, problem.space, shared=False, rounding=(problem.n_actions + 3) * EPSILON * size)


def improve(
    problem: DecisionProblem,
    against: Policy,
    follow: Policy,
    forecasts: FloatArray,
    worlds: Ambiguity,
    *,
    randomize: bool,
) -> tuple[Solution, Policy]:
    """Find multipliers of the rule with the highest certain gain, and the rule that it is tilted from.

    Without a gain the solution has no multipliers, and the rule in use is the answer; where the forecast is the only
    world, it is to ``follow`` it if that gains.
    """
    game = game_of_gains(problem, against, forecasts)
    solution = solve(game, worlds)
    if solution.multipliers is not None:
        # Multipliers that are zero but for a solver's rounding would mix actions where nothing is to be gained.
        rounded = np.where(
            np.abs(solution.multipliers) <= _ROUNDING * np.abs(problem.rewards).max(), 0.0, solution.multipliers
        )
        lower = certified_lower(game, worlds, rounded, local_game(game))
        if lower >= solution.lower - _NO_GAIN * game.scale:
            certificate = certificate_of(lower, solution.upper, game.scale, solution.certificate.message)
            solution = replace(solution, multipliers=rounded, certificate=certificate)
    certificate = solution.certificate
    if solution.multipliers is not None and not randomize:
        tilts = worlds.tests.tilts(solution.multipliers)
        base = against._mixtures(forecasts) @ problem.rewards
        rule = game.against(np.eye(problem.n_actions)[pure_actions(Game.of_problem(problem), tilts - base)])
        lower = certified_lower(rule, worlds, solution.multipliers, local_game(rule))
        certificate = certificate_of(lower, solution.upper, game.scale, certificate.message)
    if solution.multipliers is None:  # the forecast is the only world, so best responses gain most
        return solution, follow if certificate.lower > _NO_GAIN * game.scale else against
    if certificate.lower <= 0.0 or certificate.upper <= _NO_GAIN * game.scale:
        certificate = replace(certificate, lower=0.0, upper=max(certificate.upper, 0.0))
        return replace(solution, multipliers=None, certificate=certificate), against
    return replace(solution, certificate=certificate), against
