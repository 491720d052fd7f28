"""What is solved to fit a robust policy: for its utility, for its gain over the rule in use, group by group.

A gain ``u(pi, q) - u(pi0, q)`` (docs/theory.md, section 11) is the utility of a game in which every row has the rewards
and costs of the problem less those of what the rule in use plays there. So it has the same certificates as a utility;
it is never below zero, because the rule in use is a policy, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.cases.memory_rows import Ambiguity
from prudent.guarantees import Guarantee, Within
from prudent.policies.fitted import FittedPolicy, GroupCertificates
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Game, Solution, local_game, pure_actions, solve
from prudent.solvers.bounds import certified_lower, certified_mean
from prudent.solvers.solve import best_policy, certificate_of

if TYPE_CHECKING:
    from prudent.policies.base import Policy
    from prudent.policies.robust import RobustPolicy

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


def find_rule(
    policy: RobustPolicy,
    problem: DecisionProblem,
    rows: Any,
    resolved: Guarantee,
    against: Policy | None,
    in_use: FloatArray | None,
    own: dict[str, FloatArray] | None = None,
) -> FittedPolicy:
    """Solve with the payoffs of a problem for what a resolved guarantee allows, group by group where it is within.

    ``in_use`` is what the rule in use plays on rows, ``own`` are rewards and costs of rows, if they have such.
    """
    slack = Slack.read(policy.slack)
    game = Game.of_problem(problem)
    if own:
        game = Game.of_rows(problem, *problem.of_rows(len(rows.forecasts), **own))

    def solve_on(rows: Any, guarantee: Guarantee, slack: Slack, which: Any = slice(None)) -> FittedPolicy:
        mine = game.take(which) if own else game
        worlds, rule = rows.worlds(problem, guarantee, slack, float(policy.confidence)), against
        if own or against is not None:
            # The plug-in regions of the problem are not those of gains, nor of rows with rewards of their own.
            worlds = replace(worlds, plug_in_multipliers=None)
        if in_use is not None:
            solution = improve(mine, in_use[which], worlds, randomize=policy.randomize)
            if worlds.full and solution.lower > NO_GAIN * problem.utility_range:
                rule = follow(problem)  # the forecast is the only world
        elif own:
            solution = solve(mine, worlds)
        else:
            solution = best_policy(problem, worlds, randomize=policy.randomize)
        multipliers, cost, tests, slack = None, 0.0, worlds.tests, worlds.allowance
        if solution.multipliers is not None:
            cost, multipliers = worlds.slack.support(solution.multipliers), solution.multipliers
            if worlds.plug_in_multipliers is not None:
                # Decision regions without rows keep -r_a: nothing on the sample changes, and there one best responds.
                multipliers = np.where(tests.seen, multipliers, worlds.plug_in_multipliers)
            multipliers = multipliers.reshape(tests.multiplier_shape)
        certificate = solution.certificate.measured(slack.confidence if tests.names else None)
        return FittedPolicy(
            problem,
            guarantee,
            guarantee,
            slack,
            policy.randomize,
            (),
            multipliers,
            tests.without_rows(),
            cost,
            certificate.on_grid(problem.discretization, rule is not None and multipliers is not None),
            rows.some(),
            worlds.n_snapped,
            rule,
            None if worlds.measured is None else worlds.measured.past(),
        )

    if not isinstance(resolved, Within) or resolved.full:
        return solve_on(rows, resolved, slack)
    pooled = solve_on(rows, resolved.guarantee, slack) if policy.unseen == "pooled" else None
    # Worlds of all rows are worlds of the groups, so utilities and bounds add up by share. A group without multipliers,
    # because nothing is sure to be gained there or it has no rows, has zeros.
    past, tests, inner = None, rows.layout(resolved), resolved.guarantee
    if slack.audited:  # all groups at once
        measured = rows.measure(resolved, float(policy.confidence)).estimates
        slack, past = measured.slack(), measured.past()
    slack.resolve(tests, np.zeros(tests.n_moments))  # refuses what does not fit

    def share_of(place: int, share: float) -> Slack:
        """The slack of a group alone: moments of its rows are those of all rows over its share of the weight."""

        def part_of(given: Any) -> Any:
            held = np.asarray(given)
            if held.ndim == 1 and held.size == tests.n_moments > tests.n_tests:
                held = held.reshape(tests.multiplier_shape)
            return (resolved.blocks(held)[place] if held.ndim else held) / share

        center = slack.center if isinstance(slack.center, str) else part_of(slack.center)
        return replace(slack, radius=part_of(slack.radius), center=center)

    known = (*inner.context_columns, *(() if against is None else against.columns))
    places, counts, shares, found = zip(
        *(
            (place, n, share, solve_on(mine, inner, share_of(place, share), which))
            for place, n, share, mine, which in rows.groups(resolved, known)
        ),
        strict=True,
    )
    first, certificates = found[0], tuple(each.certificate for each in found)
    idle, names = np.zeros(first.tests.multiplier_shape), resolved.names
    multipliers, centers, played = [idle] * len(names), [idle] * len(names), False
    for place, share, each in zip(places, shares, found, strict=True):
        if each.multipliers is not None:
            multipliers[place], played = each.multipliers, True
        if slack.center == "measured":
            centers[place] = np.reshape(each.slack.center, idle.shape) * share
    if slack.center == "measured":
        slack = replace(slack, center=resolved.joined(centers))
    message = f"Solved group by group, {len(found)} of them. The first: {certificates[0].message}"
    ends = certified_mean(shares, [each.lower for each in certificates], [each.upper for each in certificates])
    unseen = None if pooled is None else idle if pooled.multipliers is None else pooled.multipliers
    return replace(
        first,
        guarantee=resolved,
        slack=slack,
        multipliers=resolved.joined(multipliers) if played else None,
        tests=tests,
        slack_cost=sum(each.slack_cost * share for each, share in zip(found, shares, strict=True)),
        certificate=certificate_of(*ends, problem.utility_range or 1.0, message),
        examples=rows.some(),
        n_snapped=sum(each.n_snapped for each in found),
        past=past,
        groups=GroupCertificates(tuple(names[place] for place in places), counts, shares, certificates),
        unseen=unseen if played else None,
    )


def follow(problem: DecisionProblem) -> Policy:
    """Return the rule that is in use if nothing is said."""
    from prudent.policies.reference import PlugInPolicy  # late: it builds on these

    return PlugInPolicy(problem)
