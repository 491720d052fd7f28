"""The paper's table for one split: policies fitted on calibration forecasts, judged on test forecasts.

Definitions are those of docs/theory.md, section 8. Adversaries live on the
test sample ``T``: its forecasts, equal weights, the guarantee held exactly.
Mixed policies are scored by expectation. Where the adversary is not unique a
column is a range over all of them (see :mod:`reproduction.ranges`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.cases.cases import Cases
from prudent.cases.memory_rows import Ambiguity
from prudent.guarantees.base import Guarantee
from prudent.policies import PlugInPolicy, RobustPolicy, SafetyPolicy
from prudent.policies.play import play
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Game, local_game, solve
from prudent.solvers.bounds import certified_lower
from reproduction.cases import Case
from reproduction.forecasters import Forecasts
from reproduction.optimal_policies import most_of_optimal_policies
from reproduction.policies_of_the_paper import (
    best_response_to_worst_belief,
    minimax_regret_rule,
    regret_under_bounded_error,
)
from reproduction.ranges import Range, WorstWorlds, worst_worlds_of_all, worst_worlds_of_policy

__all__ = [
    "COLUMNS",
    "MIXED",
    "MIXED_ON_TEST",
    "PAPER_FIRST",
    "PAPER_LAST",
    "PLUG_IN",
    "PURE",
    "REGRET",
    "SAFETY",
    "expected_utility",
    "table_of_split",
]

#: The columns of every table and how they are called.
COLUMNS = {
    "iid": "i.i.d.",
    "worst_for_robust": "worst case for robust",
    "worst_for_plug_in": "worst case for plug-in",
    "own_worst": "own worst case",
}
PLUG_IN = "plug-in"
PAPER_FIRST = "paper's rule, ties to the first action"
PAPER_LAST = "paper's rule, ties to the last action"
PURE = "Prudent, pure"
MIXED = "Prudent, mixed"
MIXED_ON_TEST = "Prudent, mixed, fitted on the test forecasts"
SAFETY = "safety"
REGRET = "minimax regret (bounded error)"


def table_of_split(case: Case, name: str, guarantee: Guarantee, data: Forecasts) -> dict[str, Any]:
    """Fill one table: a row per policy, the optimum ``V*_T``, and what the theorems compare.

    Returns
    -------
    dict
        ``policies``: per policy ``iid``, ``nominal``, ``own_worst``, and ``[low, high]`` of ``worst_for_robust`` and
        ``worst_for_plug_in``. ``optimum``: certified bounds of ``V*_T``. ``range_feasibility``: of the linear
        programs behind the ranges. ``dual_of_mixed``: ``G_T`` at the multipliers fitted on calibration forecasts.
        ``value_on_calibration``: what the mixed policy guarantees there. ``most_of_optimal``: where one of the
        paper's rules is ahead of the optimal policy in plug-in's worst case, the most that any policy with the best
        own worst case gets in one of plug-in's worst worlds; else None.
    """
    problem, forecasts = case.problem, data.test.forecasts
    fitted = RobustPolicy(problem, guarantee).fit(data.calibration.forecasts)
    sample = Cases(forecasts).on(problem.space)
    worlds = sample.worlds(problem, fitted.guarantee_, Slack(0.0))
    game = Game.of_problem(problem)
    optimum = solve(game, worlds)
    mixtures = _mixtures(case, name, guarantee, fitted, data)
    played = play(list(mixtures.values()), sample, problem)
    worst = {policy: played.worst(number, worlds).certificate for number, policy in enumerate(mixtures)}
    saddle = worst_worlds_of_all(problem, worlds, optimum.upper)
    against_plug_in = worst_worlds_of_policy(problem, worlds, mixtures[PLUG_IN], worst[PLUG_IN].upper)
    rows: dict[str, dict[str, Any]] = {}
    ranges = [_Ranges(saddle), _Ranges(against_plug_in)]
    for policy, mixture in mixtures.items():
        rows[policy] = {
            "iid": expected_utility(problem, mixture, data.test.outcomes),
            "nominal": expected_utility(problem, mixture, forecasts),
            "own_worst": worst[policy].lower,
            "worst_for_robust": ranges[0].of(mixture),
            "worst_for_plug_in": ranges[1].of(mixture),
        }
        if case.error:
            rows[policy]["regret"] = regret_under_bounded_error(problem, mixture, forecasts, case.error)
    multipliers = np.zeros(0) if fitted.multipliers_ is None else fitted.multipliers_.reshape(-1)
    return {
        "policies": rows,
        "optimum": [optimum.lower, optimum.upper],
        "range_feasibility": max(one.feasibility for ends in ranges for one in ends.known.values()),
        "dual_of_mixed": certified_lower(game, worlds, multipliers, local_game(game)),
        "value_on_calibration": fitted.certificate_.lower,
        "most_of_optimal": _most_of_optimal(rows, against_plug_in, worlds, optimum.lower, mixtures),
    }


def _most_of_optimal(
    rows: dict[str, dict[str, Any]],
    worlds: WorstWorlds,
    ambiguity: Ambiguity,
    optimum: float,
    mixtures: dict[str, FloatArray],
) -> float | None:
    """The most of all optimal policies in the world of plug-in's worst that leaves least to one of them."""
    cells = {policy: row["worst_for_plug_in"][0] for policy, row in rows.items()}
    if max(cells[PAPER_FIRST], cells[PAPER_LAST]) <= cells[MIXED_ON_TEST]:
        return None
    world = worlds.worst_for(mixtures[MIXED_ON_TEST])
    return most_of_optimal_policies(worlds.problem, ambiguity, optimum, world)


def expected_utility(problem: DecisionProblem, mixtures: FloatArray, points: FloatArray) -> float:
    """Average ``u(pi, p)`` over rows of equal weight."""
    return float((mixtures * problem.linear_utility(points)).sum(axis=1).mean())


def _mixtures(
    case: Case, name: str, guarantee: Guarantee, fitted: RobustPolicy, data: Forecasts
) -> dict[str, FloatArray]:
    """Every policy's mixtures on the test forecasts; those that learn do so on the calibration forecasts."""
    problem, forecasts = case.problem, data.test.forecasts
    found = {
        PLUG_IN: PlugInPolicy(problem).predict_proba(forecasts),
        PAPER_FIRST: best_response_to_worst_belief(fitted, forecasts, "first"),
        PAPER_LAST: best_response_to_worst_belief(fitted, forecasts, "last"),
    }
    if name not in case.slow_pure:
        pure = RobustPolicy(problem, guarantee, randomize=False).fit(data.calibration.forecasts)
        found[PURE] = pure.predict_proba(forecasts)
    found[MIXED] = fitted.predict_proba(forecasts)
    found[SAFETY] = SafetyPolicy(problem).predict_proba(forecasts)
    if case.error:
        found[REGRET] = minimax_regret_rule(problem, forecasts, case.error)
    found[MIXED_ON_TEST] = RobustPolicy(problem, fitted.guarantee_).fit(forecasts).predict_proba(forecasts)
    return found


@dataclass(eq=False)
class _Ranges:
    """Ranges over one set of worlds; policies that play the same are asked for once."""

    worlds: WorstWorlds
    known: dict[bytes, Range] = field(default_factory=dict)

    def of(self, mixture: FloatArray) -> list[float]:
        """Return ``[low, high]``."""
        key = mixture.tobytes()
        if key not in self.known:
            self.known[key] = self.worlds.utilities(mixture)
        return [self.known[key].low, self.known[key].high]
