"""The rule with the highest gain over the rule in use in the worst world (docs/theory.md, section 11).

``u(pi, q) - u(pi0, q)`` is the utility of a game in which every row has the rewards and costs of the problem less those
of what the rule in use plays there. So the gain has the same certificates as a utility; it is never below zero, because
the rule in use is a policy, too.
"""

from dataclasses import replace

import numpy as np

from prudent.arrays import FloatArray
from prudent.cases.ambiguity import Ambiguity
from prudent.solvers import Game, Solution, local_game, pure_actions, solve
from prudent.solvers.bounds import certified_lower
from prudent.solvers.solve import certificate_of

#: Gains up to this share of the utility range are none.
NO_GAIN = 1e-9
_ROUNDING = 1e-6


def improve(game: Game, played: FloatArray, worlds: Ambiguity, *, randomize: bool) -> Solution:
    """Find multipliers of the rule with the highest certain gain over mixtures ``(n, m)``.

    Without a gain the solution has no multipliers, and none where the forecast is the only world.
    """
    gains = game.gains_over(played)
    solution = solve(gains, worlds)
    if solution.multipliers is None:  # the forecast is the only world, so best responses gain most
        return solution

    found, multipliers = solution.certificate, solution.multipliers
    # Multipliers that are zero but for a solver's rounding would mix actions where nothing is to be gained.
    rounded = np.where(np.abs(multipliers) <= _ROUNDING * game.largest_rewards.max(), 0.0, multipliers)
    if (rounded != multipliers).any():
        lower = certified_lower(gains, worlds, rounded, local_game(gains))
        if lower >= found.lower - NO_GAIN * gains.scale:
            multipliers, found = rounded, certificate_of(lower, found.upper, gains.scale, found.message)
    if not randomize:
        tilts = worlds.tests.tilts(multipliers) - game.mixed(played)[0]
        rule = gains.against(np.eye(game.n_actions)[pure_actions(game, tilts)])
        lower = certified_lower(rule, worlds, multipliers, local_game(rule))
        found = certificate_of(lower, found.upper, gains.scale, found.message)
    if found.lower <= 0.0 or found.upper <= NO_GAIN * gains.scale:
        found = replace(found, lower=0.0, upper=max(found.upper, 0.0))
        return replace(solution, multipliers=None, certificate=found)
    return replace(solution, multipliers=multipliers, certificate=found)
