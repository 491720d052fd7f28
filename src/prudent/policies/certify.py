"""The certificate of a robust policy for cases that it was not fitted on, at the multipliers that were fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InfeasibleError, InputError
from prudent.policies.horizons import own_of_rows, play_rule
from prudent.solvers import Certificate, Status, local_game, solve
from prudent.solvers.bounds import certified_lower, certified_value
from prudent.solvers.solve import certificate_of

if TYPE_CHECKING:
    from prudent.policies.robust import RobustPolicy


def certify_cases(
    policy: RobustPolicy, cases: Any, horizon: str, realised: bool, rewards: Any, costs: Any
) -> Certificate:
    """Certify a policy on cases; arguments as in :meth:`RobustPolicy.certify`."""
    fitted = policy._fitted
    own = policy._require_own(rewards, costs)
    rows = cases.on(fitted.problem.space)
    multipliers, special = fitted.multipliers, fitted.rationing or fitted.against or fitted.guarantee.context_columns
    if not isinstance(rows, MemoryRows) and (special or not fitted.randomize or multipliers is None):
        cases = rows.in_memory()
        rows = cases.on(fitted.problem.space)
    if fitted.rationing is not None:
        from prudent.policies.capacity import certify_within

        return certify_within(policy, cases, rows, horizon=horizon, realised=realised)
    slack = fitted.slack_for(horizon, _effective_rows(cases, rows) if realised else None)
    worlds = rows.worlds(fitted.problem, fitted.guarantee, slack)
    if not isinstance(rows, MemoryRows) and multipliers is not None:
        from prudent.solvers.table_solver import certify_on_table

        return certify_on_table(fitted.problem, worlds, multipliers)
    game = fitted.game
    if own:
        game = policy._own_game(fitted.problem, len(rows.everything), rewards, costs).take(rows.used)
    if fitted.against is not None:
        known = {"rewards": rewards, "costs": costs}
        own_values = own_of_rows(fitted.problem, rows, {name: known[name] for name in fitted.per_row})
        game = game.gains_over(play_rule(fitted.against, rows, own_values))
    message = "Lower: the fitted multipliers on these cases. Upper: what the best policy for them guarantees."
    if worlds.full:
        return Certificate(*certified_value(game, worlds), Status.OPTIMAL, message)
    lower = 0.0  # where the rule in use is played, it gains nothing over itself
    if fitted.multipliers is not None:
        if own:
            played = policy.predict_proba(rows.everything, rewards=rewards, costs=costs)[rows.used]
        else:
            played = policy.on_rows(rows)
        rule = game.against(played)
        lower = certified_lower(rule, worlds, fitted.multipliers.reshape(-1), local_game(rule))
    try:
        upper = solve(game, worlds).upper
    except InfeasibleError:  # no world of these cases has the moments that others had
        upper = float(-(game.space.support_minimum(-game.rewards) - game.offsets).min())
    return certificate_of(lower, upper, game.scale, message).measured(fitted.slack.confidence)


def _effective_rows(cases: Any, rows: Any) -> float:
    """So many rows of equal weight vary by chance as much as these."""
    if isinstance(rows, MemoryRows):
        return 1 / float(rows.weights @ rows.weights)
    if cases.weights is not None:
        raise InputError("realised=True needs cases of equal weight in a table.")
    return float(len(cases))
