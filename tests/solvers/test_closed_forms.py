"""One multiplier by selection: exact whatever the sample that brackets it says."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.solvers import Game, closed_forms, solve
from solutions import build_ambiguity

STYLES = ["plain", "atoms", "heavy tail", "one row outweighs all", "sorted", "nearly all zero"]
LINE = prudent.DecisionProblem([-0.4, 0.2, 0.9, 1.4], [-0.2, 0.0, 0.3, 0.7])


def both_sides(values: np.ndarray) -> guarantees.Guarantee:
    """A test that is positive for some forecasts and negative for others."""
    return guarantees.FromFunctions([lambda v: v.reshape(-1) - float(np.median(values))])


def forecasts(style: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    values, weights = rng.random(n), np.ones(n)
    if style == "atoms":
        values = np.round(values, 2)
    elif style == "heavy tail":
        values = rng.beta(0.2, 6, size=n)
        weights = rng.pareto(1.1, size=n) + 1e-3
    elif style == "one row outweighs all":
        weights[n // 3] = 1e6 * n
    elif style == "sorted":
        values = np.sort(values)
    elif style == "nearly all zero":
        values[: n - 50] = 0.0
    return values[:, None], weights / weights.sum()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("slack", [0.0, 1e-3])
@pytest.mark.parametrize("signed", [False, True])
def test_selection_is_exact_on_many_rows(style: str, slack: float, signed: bool) -> None:
    values, weights = forecasts(style, 60_000)
    guarantee = both_sides(values) if signed else guarantees.SelfOrthogonal()
    ambiguity = build_ambiguity(LINE, guarantee, values, weights, slack)
    game = Game.of_problem(LINE)
    solution = solve(game, ambiguity)
    assert solution.certificate.gap <= 1e-10 * LINE.utility_range
    if solution.method == "scalar":
        multiplier, beliefs = closed_forms.scalar_dual(game, ambiguity)
        moments = ambiguity.tests.moments(beliefs - ambiguity.forecasts, ambiguity.weights)
        assert abs(moments - ambiguity.slack.project(moments)).max() <= 1e-13
        # The dual is concave: no multiplier nearby does better.
        best = dual(values, weights, ambiguity, multiplier)
        for other in (0.999, 1.001):
            assert dual(values, weights, ambiguity, multiplier * other) <= best + 1e-12


def dual(values: np.ndarray, weights: np.ndarray, ambiguity: object, multiplier: np.ndarray) -> float:
    """G by plain arithmetic: the least of val(p) + s p over a fine grid that contains all breakpoints."""
    lines = LINE.rewards[:, 0], LINE.costs
    crossings = [
        (lines[1][b] - lines[1][a]) / (lines[0][b] - lines[0][a]) for a in range(4) for b in range(4) if a != b
    ]
    points = np.array([0.0, 1.0, *[p for p in crossings if 0 <= p <= 1]])
    best = (np.outer(points, lines[0]) - lines[1]).max(axis=1)
    tilts = ambiguity.tests.values[:, 0] * multiplier[0]
    least = (best + np.outer(tilts, points)).min(axis=1)
    penalty = float(ambiguity.slack.radius[0]) * abs(float(multiplier[0]))
    return float(weights @ (least - tilts * values[:, 0])) - penalty


@pytest.mark.parametrize("style", ["plain", "atoms", "heavy tail"])
def test_the_worst_case_of_a_policy_by_selection(style: str) -> None:
    values, weights = forecasts(style, 60_000)
    for guarantee in (guarantees.SelfOrthogonal(), both_sides(values)):
        result = prudent.worst_case(
            prudent.PlugInPolicy(LINE), values, guarantee=guarantee, weights=weights, slack=1e-4
        )
        assert result.certificate.gap <= 1e-10 * LINE.utility_range


@pytest.mark.parametrize("style", STYLES)
def test_the_sample_costs_a_pass_but_not_the_result(style: str) -> None:
    values, weights = forecasts(style, 60_000)
    ambiguity = build_ambiguity(LINE, guarantees.SelfOrthogonal(), values, weights, 1e-3)
    game = Game.of_problem(LINE)
    right = closed_forms.scalar_dual(game, ambiguity)[0]
    for sample in (1, 7, 100_000):
        assert closed_forms.scalar_dual(game, ambiguity, sample=sample)[0] == pytest.approx(right, rel=1e-12)
