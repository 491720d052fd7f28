"""What a rule earns on cases at hand, without their outcomes (docs/theory.md, section 13).

What a rule earns is what it promises at its forecasts plus an error, ``u(pi, Y) - u(pi, v)``, which past outcomes show:
its mean, and how much it varies from period to period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import Context, FloatArray, frozen
from prudent.cases.cases import read_cases
from prudent.cases.mean_bounds import FEWEST_PERIODS, PastErrors
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InfeasibleError, InputError
from prudent.formatting import Printable, format_number
from prudent.solvers import Certificate, Game, Status, local_game, solve
from prudent.solvers.bounds import certified_lower, certified_value
from prudent.solvers.solve import certificate_of

if TYPE_CHECKING:
    from prudent.policies.base import Policy
    from prudent.policies.robust import RobustPolicy
    from prudent.problem import DecisionProblem

#: Rows for which rules are certified where files are decided.
MOST_CERTIFIED = 1_000_000


@frozen
class UtilityBound(Printable):
    """A rule earns at least ``lower`` per case, with ``confidence``.

    Attributes
    ----------
    lower : float
    confidence : float
    horizon : {"average", "next period"}
        Over the long run, or in the one period that comes next.
    n_cases : int or None
        For the realised mean of so many cases; None for the expected one.
    """

    lower: float
    confidence: float
    horizon: str = "average"
    n_cases: int | None = None

    def __str__(self) -> str:
        when = "on average" if self.horizon == "average" else "in the next period"
        what = "" if self.n_cases is None else f", realised over {self.n_cases:,} cases"
        return f"at least {format_number(self.lower, 4)} a case {when}{what} ({100 * self.confidence:g}% confidence)"


def given_own(rewards: Any, costs: Any) -> dict[str, Any]:
    """Rewards and costs of rows, where there are any."""
    return {name: own for name, own in (("rewards", rewards), ("costs", costs)) if own is not None}


def own_of_rows(problem: DecisionProblem, rows: MemoryRows, own: dict[str, Any]) -> dict[str, FloatArray]:
    """Read rewards and costs of all rows, and keep those of the rows that take part."""
    if all(values is None for values in own.values()):
        return {}
    tables = problem.of_rows(len(rows.everything), **own)
    return {name: table[rows.used] for name, table in zip(("rewards", "costs"), tables, strict=True) if name in own}


def play_rule(policy: Policy, rows: MemoryRows, own: dict[str, Any]) -> FloatArray:
    """Play a rule on the rows that take part, with their rewards and costs if it looks at them."""
    if policy.blind or not own:
        return policy.on_rows(rows)
    return policy.predict_proba(rows.forecasts, context=rows.context, **own)


def utility_bound(
    policy: Policy,
    past: PastErrors | None,
    cases: Any,
    *,
    horizon: str = "average",
    realised: bool = False,
    own: dict[str, Any],
    **columns: Any,
) -> UtilityBound:
    """Bound what a rule earns on cases, with these columns, from below; ``past`` are its errors in utility."""
    if past is None:
        raise InputError(
            "this rule does not know past outcomes, so nothing is certain about it: take the policy of prudent.advise."
        )
    problem, read = policy._problem, read_cases(cases, **columns)
    placed: Any = read.on(problem.space)
    rows: MemoryRows = placed if isinstance(placed, MemoryRows) else placed.in_memory().on(problem.space)
    own = own_of_rows(problem, rows, own)
    mixtures, points = play_rule(policy, rows, own), policy.acts_on(rows.forecasts, rows.context)
    promised = (mixtures * problem.utilities_of_rows(points, **own)).sum(axis=1)
    # Nothing can be worse than the worst outcome of every case.
    mixed = (mixtures[:, :, None] * own.get("rewards", problem.rewards[None])).sum(axis=1)
    least = problem.space.support_minimum(mixed) - (mixtures * own.get("costs", problem.costs[None])).sum(axis=1)
    n_cases = _effective_rows(read, rows) if realised else None
    error = float(past.estimates[0] - past.radii_for(horizon, n_cases)[0])
    lower = max(float(rows.weights @ promised) + error, float(rows.weights @ least))
    return UtilityBound(lower, past.confidence, horizon, None if n_cases is None else int(n_cases + 1e-9))


def certificates(policy: Policy, parts: list[tuple[FloatArray, Context]]) -> tuple[Any, ...]:
    """What is certain about cases, in parts: on average, and in the next period where periods are known."""
    fitted, past, wanted = getattr(policy, "fitted_", None), policy.past_, [("average", False)]
    if fitted is not None:
        wanted = [] if fitted.unseen is not None or fitted.guarantee.full else wanted
    elif past is None:
        wanted = []
    elif past.between is not None and past.n_units >= FEWEST_PERIODS:
        wanted.append(("next period", True))
    forecasts = np.concatenate([part for part, _ in parts])
    context = {name: np.concatenate([known[name] for _, known in parts]) for name in policy.columns}
    return tuple(
        policy.certify(forecasts, context=context, horizon=horizon, realised=realised) for horizon, realised in wanted
    )


def certify_cases(policy: RobustPolicy, cases: Any, horizon: str, realised: bool, own: dict[str, Any]) -> Certificate:
    """Certify a policy on cases; arguments as in :meth:`RobustPolicy.certify`, rewards and costs of rows in ``own``."""
    fitted, per_row = policy._fitted, policy._require_own(own)
    problem, multipliers, against = fitted.problem, fitted.multipliers, fitted.against
    rows = cases.on(problem.space)
    special = fitted.rationing or against or fitted.guarantee.context_columns or not fitted.randomize
    if not isinstance(rows, MemoryRows) and (special or multipliers is None):
        cases = rows.in_memory()
        rows = cases.on(problem.space)
    if fitted.rationing is not None:
        from prudent.policies.capacity import certify_within

        return certify_within(policy, cases, rows, horizon=horizon, realised=realised)
    slack = fitted.slack_for(horizon, _effective_rows(cases, rows) if realised else None)
    worlds = rows.worlds(problem, fitted.guarantee, slack)
    if not isinstance(rows, MemoryRows) and multipliers is not None:
        from prudent.solvers.table_solver import certify_on_table

        return certify_on_table(problem, worlds, multipliers)
    own, game = own_of_rows(problem, rows, per_row), fitted.game
    if own:
        game = Game.of_rows(problem, *problem.of_rows(len(rows.forecasts), **own))
    if against is not None:
        game = game.gains_over(play_rule(against, rows, own))
    message = "Lower: the fitted multipliers on these cases. Upper: what the best policy for them guarantees."
    if worlds.full:
        return Certificate(*certified_value(game, worlds), Status.OPTIMAL, message)
    lower = 0.0  # where the rule in use is played, it gains nothing over itself
    if multipliers is not None:
        rule = game.against(play_rule(policy, rows, {name: own[name] for name in per_row}))
        lower = certified_lower(rule, worlds, multipliers.reshape(-1), local_game(rule))
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
