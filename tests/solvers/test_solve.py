"""Algorithms agree wherever two of them apply, and the dispatcher says which one it took."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.errors import InputError
from prudent.solvers import METHODS, Game, SolverOptions, solve
from prudent.solvers.solve import REASONS
from solutions import build_ambiguity, solution_of

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
    (LINE, guarantees.Bins([0, 0.2, 0.7, 1]), 0.0, "separated rows"),
    (LINE, guarantees.Unbiased() & guarantees.Unbiased(), 0.0, "separated rows"),
    (PLANE, guarantees.Unbiased(), 0.0, "separated rows"),
    (PLANE, guarantees.DecisionCalibrated(prudent.DecisionProblem([[1.0, -1.0], [-1.0, 1.0]])), 0.0, "separated rows"),
    (LINE, guarantees.Bins([0, 0.2, 0.7, 1]), 0.01, "interior point"),
    (LINE, guarantees.Unbiased(), 0.03, "scalar"),
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
    assert REASONS[method] in special.certificate.message
    general = solve(game, ambiguity, options=SolverOptions("interior point"))
    assert general.method == "interior point"
    unit = problem.utility_range
    assert special.certificate.gap <= (1e-6 if method == "interior point" else 1e-9) * unit
    assert general.certificate.gap <= 1e-6 * unit
    # Both brackets contain the optimum, so they overlap.
    assert special.lower <= general.upper
    assert general.lower <= special.upper


def test_one_bin_agrees_between_separated_rows_and_one_multiplier() -> None:
    """One bin is zero bias: separated rows and one multiplier both apply."""
    ambiguity = build_ambiguity(LINE, guarantees.Unbiased(), FORECASTS[1], WEIGHTS, 0.0)
    game = Game.of_problem(LINE)
    values = [solve(game, ambiguity, options=SolverOptions(method)).lower for method in ("separated rows", "scalar")]
    np.testing.assert_allclose(values, values[0], atol=1e-12)


def test_row_clusters_agree_with_the_general_solver() -> None:
    rng = np.random.default_rng(1)
    forecasts = rng.beta(2, 3, size=(21_000, 1))
    weights = rng.random(21_000)
    weights /= weights.sum()
    for guarantee, slack in [
        (guarantees.SelfOrthogonal(intercept=True), 0.0),
        (guarantees.Polynomial(4) & guarantees.Bins([0, 0.3, 0.4, 1]), 0.0),
        (guarantees.Polynomial(3), 0.01),
    ]:
        ambiguity = build_ambiguity(LINE, guarantee, forecasts, weights, slack)
        game = Game.of_problem(LINE)
        clusters = solve(game, ambiguity)
        assert clusters.method == "row clusters"
        rows = solve(game, ambiguity, options=SolverOptions("interior point"))
        assert clusters.certificate.gap <= 1e-6 * LINE.utility_range
        assert clusters.lower <= rows.upper
        assert rows.lower <= clusters.upper
        assert abs(ambiguity.tests.moments(clusters.beliefs - ambiguity.forecasts, ambiguity.weights)).max() <= (
            slack or 1e-12
        ) * (1 + 1e-9)


def test_full_calibration_is_its_own_method() -> None:
    ambiguity = build_ambiguity(LINE, guarantees.FullyCalibrated(), FORECASTS[1], WEIGHTS, 0.0)
    solution = solve(Game.of_problem(LINE), ambiguity)
    assert solution.method == "full"
    assert 0 <= solution.certificate.gap <= 1e-13 * LINE.utility_range


def test_best_responding_that_is_optimal_under_slack_is_free_of_rounding() -> None:
    """The interior point finds the world, but its multipliers would be off by 1e-9, and all rows would mix actions."""
    ambiguity = build_ambiguity(LINE, guarantees.DecisionCalibrated(LINE), FORECASTS[1], WEIGHTS, 0.001)
    solution = solve(Game.of_problem(LINE), ambiguity)
    assert solution.method == "interior point"
    assert solution.certificate.gap <= 1e-9 * LINE.utility_range
    np.testing.assert_array_equal(
        solution.multipliers, np.where(ambiguity.tests.seen, ambiguity.plug_in_multipliers, 0.0)
    )


def test_a_method_that_does_not_apply_is_refused() -> None:
    ambiguity = build_ambiguity(PLANE, guarantees.SelfOrthogonal(), FORECASTS[2], WEIGHTS, 0.0)
    for method in (
        "scalar",
        "separated rows",
        "no tests",
        "plug-in regions",
        "row clusters",
        "magic",
    ):
        with pytest.raises(ValueError, match="does not apply here"):
            solve(Game.of_problem(PLANE), ambiguity, options=SolverOptions(method))


def test_every_method_has_a_reason() -> None:
    assert set(METHODS) < set(REASONS)


def test_rows_with_rewards_of_their_own() -> None:
    """The solver contract keeps a row axis: equal rewards per row give the shared solution."""
    for problem, guarantee in [(LINE, guarantees.SelfOrthogonal(intercept=True)), (PLANE, guarantees.SelfOrthogonal())]:
        forecasts = FORECASTS[problem.dimension][:40]
        weights = np.full(40, 1 / 40)
        ambiguity = build_ambiguity(problem, guarantee, forecasts, weights, 0.0)
        shared = Game.of_problem(problem)
        own = Game(np.repeat(shared.rewards, 40, axis=0), np.repeat(shared.offsets, 40, axis=0), problem.space, False)
        one, other = solve(shared, ambiguity), solve(own, ambiguity)
        assert other.certificate.gap <= 1e-6 * problem.utility_range
        assert one.lower <= other.upper
        assert other.lower <= one.upper


UP_OR_DOWN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


@pytest.mark.parametrize("radius", [1e-12, 1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("simplex", [True, False])
def test_tiny_slack_converges(radius: float, norm: str, simplex: bool) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 6))
        space = prudent.Simplex(d) if simplex else None
        problem = prudent.DecisionProblem(rng.normal(size=(5, d)), 0.3 * rng.normal(size=5), space=space)
        forecasts = rng.dirichlet(np.ones(d), size=20) if simplex else rng.random((20, d))
        policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack=prudent.Slack(radius, norm))
        certificate = policy.fit(forecasts).certificate_
        assert certificate.gap <= 1e-6 * problem.utility_range
        exact = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(forecasts).certificate_
        assert certificate.lower <= exact.upper


def test_many_rows_in_several_dimensions_converge() -> None:
    rng = np.random.default_rng(4)
    problem = prudent.DecisionProblem(rng.normal(size=(5, 5)), 0.2 * rng.normal(size=5))
    for slack in (0.0, 0.01):
        policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True), slack=slack)
        assert policy.fit(rng.random((2000, 5))).certificate_.gap <= 1e-6 * problem.utility_range


def test_weights_may_differ_by_ten_orders() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        problem = prudent.DecisionProblem(rng.normal(size=(4, 3)), 0.3 * rng.normal(size=4))
        weights = 10.0 ** rng.uniform(-10, 0, size=20)
        policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True))
        certificate = policy.fit(rng.random((20, 3)), sample_weight=weights).certificate_
        assert certificate.gap <= 1e-6 * problem.utility_range


def test_a_large_common_cost_changes_nothing_but_the_level() -> None:
    forecasts = np.linspace(0.1, 0.9, 9)
    plain = prudent.RobustPolicy(UP_OR_DOWN, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts)
    dear = prudent.DecisionProblem([1.0, -1.0], [1e8, 1e8 - 1])
    policy = prudent.RobustPolicy(dear, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts)
    assert policy.certificate_.status == prudent.solvers.Status.OPTIMAL
    assert policy.certificate_.lower + 1e8 == pytest.approx(plain.certificate_.lower, abs=1e-6)


def test_bounds_allow_for_tilts_that_cancel() -> None:
    """Nearly equal tests have huge multipliers of opposite sign; checked in exact rational arithmetic."""
    from fractions import Fraction

    forecasts = np.linspace(0.05, 0.95, 19)
    for size in (1e-8, 1e-10):
        tests = [lambda v: v[:, 0], lambda v, s=size: v[:, 0] + s * np.sin(9 * v[:, 0]), lambda v: np.ones(len(v))]
        policy = prudent.RobustPolicy(UP_OR_DOWN, guarantees.FromFunctions(tests)).fit(forecasts)
        values = np.stack([test(forecasts[:, None]) for test in tests], axis=1)
        mixtures = policy.predict_proba(forecasts)
        total = Fraction(0)
        for row in range(19):
            tilt = sum(
                Fraction(float(h)) * Fraction(float(m))
                for h, m in zip(values[row], policy.multipliers_[:, 0], strict=True)
            )
            share = [Fraction(float(p)) for p in mixtures[row]]
            slope = share[0] - share[1] + tilt
            total += share[1] + min(slope, Fraction(0)) - tilt * Fraction(float(forecasts[row]))
        assert Fraction(policy.certificate_.lower) <= total / 19


@pytest.mark.parametrize("size", [1e-170, 1e160])
def test_tests_of_absurd_size_are_refused(size: float) -> None:
    guarantee = guarantees.FromFunctions([lambda v: size * v[:, 0], lambda v: np.ones(len(v))])
    with pytest.raises(InputError, match="sizes between 1e-100 and 1e100"):
        prudent.RobustPolicy(UP_OR_DOWN, guarantee).fit(np.linspace(0.1, 0.9, 9))


def test_two_actions_that_differ_in_the_last_digits_cost_no_guarantee() -> None:
    """The chord between two lines of nearly one slope must not be extrapolated from rounded offsets."""
    problem = prudent.DecisionProblem([0.25, 0.25 + 2.0**-53, 4.25], [-0.5, -(0.5 - 2.0**-54), 2.5 + 2.0**-50])
    without = prudent.DecisionProblem([0.25, 4.25], [-0.5, 2.5])
    forecasts = (np.arange(1000) + 0.5) / 1000
    value, plain = (
        prudent.RobustPolicy(item, guarantees.SelfOrthogonal()).fit(forecasts).certificate_.lower
        for item in (problem, without)
    )
    assert value == pytest.approx(plain, abs=1e-9)


def test_tests_that_mean_nothing_on_the_simplex_are_no_tests_for_many_rows_either() -> None:
    problem = prudent.DecisionProblem.from_payoffs([[1.0, 0.0, 0.2], [0.1, 0.9, 0.3]])
    forecasts = np.random.default_rng(0).dirichlet(np.ones(3), size=4_500)
    equal = guarantees.FromFunctions([lambda v: v[:, [0, 0, 0]]])
    policy = prudent.RobustPolicy(problem, equal).fit(forecasts)
    safe = prudent.RobustPolicy(problem, guarantees.Nothing()).fit(forecasts)
    assert policy.certificate_.lower == pytest.approx(safe.certificate_.lower, abs=1e-6)


def test_a_single_action_with_many_rows_goes_through_clusters() -> None:
    problem = prudent.DecisionProblem([[1.0, -0.5]], [0.2])
    forecasts = np.random.default_rng(0).random((5_000, 2))
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(forecasts)
    assert solution_of(policy, forecasts).method == "row clusters"
    exact = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True)).fit(forecasts)
    nominal = float((forecasts @ [1.0, -0.5]).mean() - 0.2)
    assert exact.certificate_.lower == pytest.approx(nominal, abs=1e-6)
    assert policy.certificate_.lower <= nominal
