"""Algorithms agree wherever two of them apply, and the dispatcher says which one it took."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.ambiguity import build_ambiguity
from prudent.solvers import METHODS, Game, solve
from prudent.solvers.dispatch import _REASONS

LINE = prudent.DecisionProblem([0.2, 0.9, 1.4, 0.9, -3.0], [0.0, 0.3, 0.7, 0.3, 9.0])
PLANE = prudent.DecisionProblem([[1.0, 0.2], [0.1, 1.1], [0.6, 0.6]], [0.0, 0.1, 0.05])
RNG = np.random.default_rng(8)
FORECASTS = {1: RNG.random((300, 1)), 2: RNG.random((300, 2))}
WEIGHTS = RNG.random(300) + 0.1
WEIGHTS /= WEIGHTS.sum()

CASES = [
    (LINE, guarantees.Nothing(), 0.0, "no tests"),
    (PLANE, guarantees.Nothing(), 0.0, "no tests"),
    (LINE, guarantees.DecisionCalibrated(LINE), 0.0, "plug-in regions"),
    (LINE, guarantees.UtilityCalibrated(LINE), 0.0, "plug-in regions"),
    (PLANE, guarantees.DecisionCalibrated(PLANE) & guarantees.SelfOrthogonal(), 0.0, "plug-in regions"),
    (LINE, guarantees.Binned([0, 0.2, 0.7, 1]), 0.0, "separated rows"),
    (LINE, guarantees.Unbiased() & guarantees.Unbiased(), 0.0, "separated rows"),
    (PLANE, guarantees.Unbiased(), 0.0, "separated rows"),
    (PLANE, guarantees.DecisionCalibrated(prudent.DecisionProblem([[1.0, -1.0], [-1.0, 1.0]])), 0.0, "separated rows"),
    (LINE, guarantees.Binned([0, 0.2, 0.7, 1]), 0.01, "slackened cells"),
    (LINE, guarantees.Unbiased(), 0.03, "slackened cells"),
    (LINE, guarantees.SelfOrthogonal(), 0.0, "scalar"),
    (LINE, guarantees.SelfOrthogonal(), 0.02, "scalar"),
    (LINE, guarantees.Temperature(), 0.0, "scalar"),
    (LINE, guarantees.SelfOrthogonal(intercept=True), 0.0, "interior point"),
    (PLANE, guarantees.SelfOrthogonal(), 0.0, "interior point"),
]


@pytest.mark.parametrize(("problem", "guarantee", "slack", "method"), CASES)
def test_the_special_case_agrees_with_the_general_solver(
    problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee, slack: float, method: str
) -> None:
    forecasts = FORECASTS[problem.dimension]
    ambiguity = build_ambiguity(problem, guarantee, forecasts, WEIGHTS, slack)
    game = Game.of_problem(problem)
    special = solve(game, ambiguity)
    assert special.method == method
    assert _REASONS[method] in special.message
    general = solve(game, ambiguity, method="interior point")
    assert general.method == "interior point"
    unit = problem.utility_range
    assert special.gap <= (1e-6 if method == "interior point" else 1e-9) * unit
    assert general.gap <= 1e-6 * unit
    # Both brackets contain the optimum, so they overlap.
    assert special.lower <= general.upper
    assert general.lower <= special.upper


def test_bins_agree_between_cells_scalar_and_general() -> None:
    """One bin is zero bias: separated rows, one multiplier and general tests are three roads to it."""
    ambiguity = build_ambiguity(LINE, guarantees.Unbiased(), FORECASTS[1], WEIGHTS, 0.0)
    game = Game.of_problem(LINE)
    values = [solve(game, ambiguity, method=method).lower for method in ("separated rows", "slackened cells", "scalar")]
    np.testing.assert_allclose(values, values[0], atol=1e-12)


def test_refined_cells_agree_with_the_general_solver() -> None:
    rng = np.random.default_rng(1)
    forecasts = rng.beta(2, 3, size=(21_000, 1))
    weights = rng.random(21_000)
    weights /= weights.sum()
    for guarantee, slack in [
        (guarantees.SelfOrthogonal(intercept=True), 0.0),
        (guarantees.Polynomial(4) & guarantees.Binned([0, 0.3, 0.4, 1]), 0.0),
        (guarantees.Polynomial(3), 0.01),
    ]:
        ambiguity = build_ambiguity(LINE, guarantee, forecasts, weights, slack)
        game = Game.of_problem(LINE)
        cells = solve(game, ambiguity)
        assert cells.method == "refined cells"
        rows = solve(game, ambiguity, method="interior point")
        assert cells.gap <= 1e-6 * LINE.utility_range
        assert cells.lower <= rows.upper
        assert rows.lower <= cells.upper
        assert abs(ambiguity.moments(cells.beliefs)).max() <= (slack or 1e-12) * (1 + 1e-9)


def test_full_calibration_is_its_own_method() -> None:
    ambiguity = build_ambiguity(LINE, guarantees.FullyCalibrated(), FORECASTS[1], WEIGHTS, 0.0)
    solution = solve(Game.of_problem(LINE), ambiguity)
    assert solution.method == "full"
    assert 0 <= solution.gap <= 1e-13 * LINE.utility_range


def test_a_method_that_does_not_apply_is_refused() -> None:
    ambiguity = build_ambiguity(PLANE, guarantees.SelfOrthogonal(), FORECASTS[2], WEIGHTS, 0.0)
    for method in (
        "scalar",
        "separated rows",
        "slackened cells",
        "no tests",
        "plug-in regions",
        "refined cells",
        "magic",
    ):
        with pytest.raises(ValueError, match="does not apply here"):
            solve(Game.of_problem(PLANE), ambiguity, method=method)


def test_every_method_has_a_reason() -> None:
    assert set(_REASONS) == set(METHODS)


def test_rows_with_rewards_of_their_own() -> None:
    """The solver contract keeps a row axis: equal rewards per row give the shared solution."""
    for problem, guarantee in [(LINE, guarantees.SelfOrthogonal(intercept=True)), (PLANE, guarantees.SelfOrthogonal())]:
        forecasts = FORECASTS[problem.dimension][:40]
        weights = np.full(40, 1 / 40)
        ambiguity = build_ambiguity(problem, guarantee, forecasts, weights, 0.0)
        shared = Game.of_problem(problem)
        own = Game(np.repeat(shared.rewards, 40, axis=0), np.repeat(shared.offsets, 40, axis=0), problem.space, False)
        one, other = solve(shared, ambiguity), solve(own, ambiguity)
        assert other.gap <= 1e-6 * problem.utility_range
        assert one.lower <= other.upper
        assert other.lower <= one.upper
