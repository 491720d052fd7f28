"""What the paper says in one sentence or draws by hand, computed: other parameters, more tests, more slack.

Each function looks at one split of one of the paper's two data sets and
returns lists of plain records. Policies are fitted on calibration forecasts
and judged on test forecasts, as in the table; the two pictures of theorems
(:func:`interpolation` and :func:`transition`) fit on the test forecasts, where
the theorems hold exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from prudent.adversary import worst_case
from prudent.arrays import FloatArray
from prudent.guarantees import Bins, FromFunctions, FullyCalibrated, Nothing, Polynomial, SelfOrthogonal
from prudent.guarantees.base import Guarantee
from prudent.policies import PlugInPolicy, RobustPolicy
from prudent.problem import DecisionProblem
from reproduction.cases import ALPHA, Case, paper_problem
from reproduction.forecasters import Forecasts
from reproduction.policies_of_the_paper import (
    best_response_to_worst_belief,
    minimax_regret_rule,
    regret_under_bounded_error,
)
from reproduction.table_one import MIXED, PAPER_FIRST, PAPER_LAST, PLUG_IN, expected_utility

__all__ = [
    "belief_curves",
    "bins",
    "bounded_error",
    "interpolation",
    "other_parameters",
    "slackened",
    "transition",
]

Record = dict[str, Any]


def other_parameters(
    case: Case, data: Forecasts, alphas: Sequence[float], cost_factors: Sequence[float]
) -> list[Record]:
    """Vary the benefit ``alpha`` and scale all costs; ``H = {v}``."""
    found = []
    for alpha in alphas:
        for factor in cost_factors:
            problem = paper_problem(case.name, alpha, factor)
            fitted = RobustPolicy(problem, SelfOrthogonal()).fit(data.calibration.forecasts)
            best = RobustPolicy(problem, SelfOrthogonal()).fit(data.test.forecasts)
            forecasts = data.test.forecasts
            mixtures = {
                PLUG_IN: PlugInPolicy(problem).predict_proba(forecasts),
                PAPER_FIRST: best_response_to_worst_belief(fitted, forecasts, "first"),
                PAPER_LAST: best_response_to_worst_belief(fitted, forecasts, "last"),
                MIXED: fitted.predict_proba(forecasts),
            }
            found.append(
                {
                    "alpha": alpha,
                    "cost_factor": factor,
                    "published": alpha == ALPHA and factor == 1.0,
                    "optimum": best.certificate_.lower,
                    "own_worst": {
                        name: worst_case(mixture, forecasts, problem=problem, guarantee=SelfOrthogonal()).value
                        for name, mixture in mixtures.items()
                    },
                    "iid": {
                        name: expected_utility(problem, mixture, data.test.outcomes)
                        for name, mixture in mixtures.items()
                    },
                }
            )
    return found


def bins(case: Case, data: Forecasts, counts: Sequence[int]) -> list[Record]:
    """Refine bins: from one global action to best responding."""
    return [
        {"bins": count, **_on_test(case, data, Bins(count), fitted_on=data.calibration.forecasts)} for count in counts
    ]


def slackened(case: Case, data: Forecasts, radii: Sequence[float]) -> list[Record]:
    """Let ``H = {v}`` hold only up to a slack, in outcome units: what robustness guarantees and what it costs."""
    return [
        {"slack": radius, **_on_test(case, data, SelfOrthogonal(), radius, fitted_on=data.calibration.forecasts)}
        for radius in radii
    ]


def interpolation(case: Case, data: Forecasts, degrees: Sequence[int], counts: Sequence[int]) -> Record:
    """Let ``H`` grow from nothing to everything along two nested chains: polynomials and halved bins."""
    chain: list[tuple[str, int, Guarantee]] = [
        ("nothing", 0, Nothing()),
        ("{v}", 1, SelfOrthogonal()),
        ("{1, v}", 2, SelfOrthogonal(intercept=True)),
        *((f"degree {degree}", degree + 1, Polynomial(degree)) for degree in degrees),
        ("everything", -1, FullyCalibrated()),
    ]
    halved: list[tuple[str, int, Guarantee]] = [
        ("nothing", 0, Nothing()),
        *((f"{count} bins" if count > 1 else "1 bin", count, Bins(count)) for count in counts),
        ("everything", -1, FullyCalibrated()),
    ]
    return {
        name: [
            {"name": label, "tests": tests, **_on_test(case, data, guarantee, fitted_on=data.test.forecasts)}
            for label, tests, guarantee in members
        ]
        for name, members in (("polynomials", chain), ("bins", halved))
    }


def transition(case: Case, data: Forecasts) -> list[Record]:
    """Add the indicators of the decision regions one by one, then more tests.

    The tests are handed over as plain functions, so that nothing but the general solver can find out that best
    responding has become optimal.
    """
    regions = [(f"+ region {action}", _region(case.problem, i)) for i, action in enumerate(case.problem.actions)]
    more = [("+ v", _power(1)), ("+ v^2", _power(2)), ("+ v^3", _power(3))]
    found = [{"name": "nothing", **_on_test(case, data, Nothing(), fitted_on=data.test.forecasts)}]
    functions: list[Callable[[FloatArray], FloatArray]] = []
    for name, function in [*regions, *more]:
        functions.append(function)
        guarantee = FromFunctions(functions)
        found.append({"name": name, **_on_test(case, data, guarantee, fitted_on=data.test.forecasts)})
    return found


def belief_curves(case: Case, data: Forecasts, points: int) -> Record:
    """Worst belief and mixture along the forecast, for ``{v}`` and ``{1, v}``."""
    grid = np.linspace(0.0, 1.0, points)
    curves: Record = {"forecasts": grid.tolist()}
    for name, guarantee in (("{v}", SelfOrthogonal()), ("{1, v}", SelfOrthogonal(intercept=True))):
        policy = RobustPolicy(case.problem, guarantee).fit(data.calibration.forecasts)
        curves[name] = {
            "beliefs": policy.worst_case_belief(grid)[:, 0].tolist(),
            "mixtures": policy.predict_proba(grid).tolist(),
        }
    return curves


def bounded_error(case: Case, data: Forecasts, errors: Sequence[float]) -> list[Record]:
    """Vary the bound on the calibration error that the minimax-regret rule is given."""
    problem, forecasts = case.problem, data.test.forecasts
    plug_in = PlugInPolicy(problem).predict_proba(forecasts)
    found = []
    for error in errors:
        rule = minimax_regret_rule(problem, forecasts, error)
        found.append(
            {
                "error": error,
                "iid": expected_utility(problem, rule, data.test.outcomes),
                "own_worst": worst_case(rule, forecasts, problem=problem, guarantee=case.guarantees["{1, v}"]).value,
                "regret": regret_under_bounded_error(problem, rule, forecasts, error),
                "regret_of_plug_in": regret_under_bounded_error(problem, plug_in, forecasts, error),
            }
        )
    return found


def _on_test(case: Case, data: Forecasts, guarantee: Guarantee, slack: float = 0.0, *, fitted_on: FloatArray) -> Record:
    """Judge the robust policy and plug-in on the test forecasts."""
    problem, forecasts = case.problem, data.test.forecasts
    policy = RobustPolicy(problem, guarantee, slack=slack).fit(fitted_on)
    mixture = policy.predict_proba(forecasts)
    plug_in = PlugInPolicy(problem).predict_proba(forecasts)
    same = fitted_on is forecasts
    best = policy if same else RobustPolicy(problem, guarantee, slack=slack).fit(forecasts)

    def worst(mixtures: FloatArray) -> float:
        return worst_case(mixtures, forecasts, problem=problem, guarantee=guarantee, slack=slack).value

    record: Record = {
        "optimum": best.certificate_.lower,
        "own_worst": best.certificate_.lower if same else worst(mixture),
        "plug_in_worst": worst(plug_in),
        "nominal": expected_utility(problem, mixture, forecasts),
        "plug_in_nominal": expected_utility(problem, plug_in, forecasts),
        "iid": expected_utility(problem, mixture, data.test.outcomes),
        "distance": float(np.abs(mixture - plug_in).sum(axis=1).mean() / 2),
    }
    if case.sizes:
        record["mean_action"] = float((mixture @ np.array(case.sizes)).mean())
        record["plug_in_mean_action"] = float((plug_in @ np.array(case.sizes)).mean())
    return record


def _region(problem: DecisionProblem, action: int) -> Callable[[FloatArray], FloatArray]:
    def indicator(forecasts: FloatArray) -> FloatArray:
        return (problem.best_actions(forecasts) == action).astype(np.float64)

    return indicator


def _power(exponent: int) -> Callable[[FloatArray], FloatArray]:
    def power(forecasts: FloatArray) -> FloatArray:
        result: FloatArray = forecasts[:, 0] ** exponent
        return result

    return power
