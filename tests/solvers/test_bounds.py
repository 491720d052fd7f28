"""Bounds hold whatever multipliers and worlds they are given."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import prudent
from exact_arithmetic import ExactProblem, exact, normalised
from prudent import guarantees
from prudent.solvers import Game, local_game, solve
from prudent.solvers.bounds import certified_lower, certified_upper
from solutions import build_ambiguity

RNG = np.random.default_rng(5)
LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
BOX = prudent.DecisionProblem(RNG.normal(size=(4, 2)), RNG.normal(size=4), space=prudent.Box([0.0, -5.0], [10.0, 7.0]))
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(4, 3)))
TESTS = {
    "scalar": lambda problem: guarantees.SelfOrthogonal(intercept=True),
    "beside a vector test": lambda problem: guarantees.Unbiased() & guarantees.UtilityCalibrated(problem),
}


@pytest.mark.parametrize("slack", [0.0, prudent.Slack(0.01), "elsewhere"])
@pytest.mark.parametrize("tests", TESTS)
@pytest.mark.parametrize("problem", [LINE, BOX, CLASSES])
def test_a_world_that_is_not_allowed_proves_nothing(problem: prudent.DecisionProblem, tests: str, slack: Any) -> None:
    rng = np.random.default_rng(6)
    low, high = problem.space.bounds
    simplex = isinstance(problem.space, prudent.Simplex)
    corners = rng.dirichlet(np.ones(problem.dimension), size=200)
    forecasts = corners if simplex else low + (high - low) * rng.random((200, problem.dimension))
    guarantee, weights = TESTS[tests](problem), np.full(200, 1 / 200)
    if slack == "elsewhere":  # around the moments of another world
        exact = build_ambiguity(problem, guarantee, forecasts, weights, 0.0)
        middle = low + 0.5 * (high - low) if not simplex else np.full(problem.dimension, 1 / problem.dimension)
        shape = exact.slack.center.shape
        center = (exact.tests.moments(0.1 * (middle - forecasts), exact.weights) / exact.tests.scales).reshape(shape)
        slack = prudent.Slack(0.01, norm="linf", center=center)
    ambiguity = build_ambiguity(problem, guarantee, forecasts, weights, slack)
    game, local = Game.of_problem(problem), local_game(Game.of_problem(problem))
    solution = solve(game, ambiguity)
    assert solution.multipliers is not None
    point = local.beliefs(np.zeros((1, problem.dimension)))[0]  # where nobody earns more than playing safe does
    worlds = [np.tile(point, (200, 1)), np.where(rng.random((200, 1)) < 0.5, forecasts, point)]
    for multipliers in (np.zeros_like(solution.multipliers), solution.multipliers, -solution.multipliers):
        for world in worlds:
            assert certified_upper(game, ambiguity, world)[0] >= solution.lower
        assert certified_lower(game, ambiguity, multipliers, local) <= solution.upper
    # A world that is allowed up to rounding does prove its bound.
    nearly = solution.beliefs * (1 + 1e-15)
    assert certified_upper(game, ambiguity, nearly)[0] <= solution.upper + 1e-9 * game.scale


def hostile_problem(seed: int) -> tuple[prudent.DecisionProblem, Any, np.ndarray, np.ndarray, Any]:
    """Draw what breaks careless arithmetic; each kind of trouble comes alone or with others."""
    rng = np.random.default_rng([7, seed])
    n, m = int(rng.choice([1, 2, 5, 12, 30])), int(rng.integers(2, 5))
    simplex, d = bool(rng.random() < 0.3), int(rng.choice([1, 1, 2, 3]))
    d = max(d, 2) if simplex else d
    rewards, costs = rng.normal(size=(m, d)), rng.normal(size=m)
    width = 10.0 ** rng.choice([-9, 0, 0, 0, 9])
    far = rng.choice([0.0, 0.0, 1.0, 1e6, 1e8, 1e10, 1e12])
    low = np.full(d, 0.0 if simplex else far * width * rng.choice([-1.0, 1.0]))
    high = np.ones(d) if simplex else low + width
    space = prudent.Simplex(d) if simplex else prudent.Box(low, high)
    if not simplex:
        rewards, costs = rewards / width, costs + (rewards / width) @ low
    problem = prudent.DecisionProblem(rewards, costs, space=space)
    forecasts = rng.dirichlet(np.full(d, rng.choice([0.05, 1.0])), size=n) if simplex else rng.random((n, d))
    if not simplex:
        near = rng.choice(["middle", "middle", "corner", "short"])
        if near == "corner":
            forecasts = np.where(rng.random((n, d)) < 0.5, forecasts * 1e-9, 1 - forecasts * 1e-9)
        elif near == "short":
            forecasts = 0.9 + 0.1 * forecasts
        forecasts = np.clip(low + forecasts * (high - low), low, high)
    weights = 10.0 ** rng.uniform(-12, 0, size=n) if rng.random() < 0.3 else np.full(n, 1.0)
    close, size = 10.0 ** rng.uniform(-15, -3), 10.0 ** rng.choice([-9, 0, 0, 9])

    def place(v: np.ndarray) -> np.ndarray:
        return np.asarray((v[:, 0] - low[0]) / (high[0] - low[0]))

    tests = {
        "nearly equal": [lambda v: size * place(v), lambda v: size * (place(v) + close * np.cos(3 * place(v)))],
        "and the constant": [
            lambda v: np.ones(len(v)),
            lambda v: 1 + close * np.sin(5 * place(v)),
            lambda v: size * place(v),
        ],
        "bins": [lambda v: np.ones(len(v)), lambda v: 1.0 * (place(v) < 0.5), lambda v: 1.0 * (place(v) >= 0.5)],
    }
    kind = str(rng.choice([*tests, "polynomial"]))
    guarantee = (
        guarantees.Polynomial(int(rng.integers(2, 7 if d == 1 else 3)))
        if kind == "polynomial"
        else guarantees.FromFunctions(tests[kind])
    )
    shape = guarantee.evaluate(forecasts, space).multiplier_shape
    slack: Any = 0.0
    if rng.random() < 0.5:
        radius = 10.0 ** rng.uniform(-9, -1, size=shape) * width * (1 if kind == "polynomial" else size)
        radius = np.where(rng.random(shape) < 0.5, 0.0, radius)
        center = 0.9 * radius * rng.uniform(-1, 1, size=shape) * (rng.random() < 0.5)  # the forecasts stay allowed
        slack = prudent.Slack(radius, norm="linf", center=center)
    return problem, guarantee, forecasts, weights / weights.sum(), slack


def delicate_problem(kind: str, seed: int) -> tuple[prudent.DecisionProblem, Any, np.ndarray, np.ndarray, Any]:
    """Draw one kind of trouble that a careful reading of the proof looks for."""
    rng = np.random.default_rng([11, seed])
    n, low, rewards, costs = 12, 0.0, rng.normal(size=3), rng.normal(size=3)
    slack: Any = 0.0
    guarantee: Any = guarantees.Bins(2)
    if kind == "means that round to a corner":  # rows of a bin are merged; some are a last digit away from the corner
        low = float(rng.choice([0.0, 1.0, 1e6]))
        ends = np.array([np.nextafter(low, low + 1), np.nextafter(low + 1, low), low, low + 1])
        forecasts = rng.choice(ends, size=n)
        costs = costs + rewards * low
        slack = prudent.Slack(float(rng.choice([0.0, 1e-3])), norm="linf")
    elif kind == "combinations with slack":  # a test that is the sum of two others, some exact, and a centre off zero
        forecasts = rng.random(n)
        tests = [lambda v: v[:, 0], lambda v: v[:, 0] ** 2, lambda v: v[:, 0] + v[:, 0] ** 2]
        guarantee = guarantees.FromFunctions(tests)
        radius = np.where(rng.random(3) < 0.6, 0.0, 10.0 ** rng.uniform(-12, -2, size=3))
        slack = prudent.Slack(radius, norm="linf", center=0.9 * radius * rng.uniform(-1, 1, size=3))
    elif kind == "next to underflow":
        forecasts = 10.0 ** rng.uniform(-300, -140, size=n)
        forecasts[: n // 3] = rng.random(n // 3)
        guarantee = guarantees.SelfOrthogonal(intercept=bool(rng.random() < 0.5))
    if kind != "classes that hardly occur":
        problem = prudent.DecisionProblem(rewards, costs, space=prudent.Box(low, low + 1))
        return problem, guarantee, forecasts[:, None], np.full(n, 1 / n), slack
    shares = rng.dirichlet(np.ones(3), size=n)
    shares[:, 2] *= 10.0 ** rng.uniform(-16, -8) * (rng.random(n) < 0.3)
    radius = np.where(rng.random((2, 3)) < 0.5, 0.0, 10.0 ** rng.uniform(-12, -2, size=(2, 3)))
    slack = prudent.Slack(radius, norm="linf", center=0.9 * radius * rng.uniform(-1, 1, size=(2, 3)))
    tests = [lambda v: np.ones(len(v)), lambda v: v[:, 0]]
    problem = prudent.DecisionProblem.from_payoffs(rng.normal(size=(3, 3)))
    return (
        problem,
        guarantees.FromFunctions(tests),
        shares / shares.sum(axis=1, keepdims=True),
        np.full(n, 1 / n),
        slack,
    )


def check_in_rational_numbers(seed: int, kind: str | None = None) -> bool:
    """Check both bounds of a problem; return whether they prove optimality."""
    drawn = hostile_problem(seed) if kind is None else delicate_problem(kind, seed)
    problem, guarantee, forecasts, weights, slack = drawn
    guarantee = guarantee.resolve(forecasts, weights, problem.space)
    placed = problem.space.place(forecasts, "forecasts")[0]
    ambiguity = build_ambiguity(problem, guarantee, placed, weights, slack)
    game = Game.of_problem(problem)
    local = local_game(game)
    solution = solve(game, ambiguity, local)
    assert solution.multipliers is not None
    tests, allowed = ambiguity.tests, ambiguity.slack
    low, high = problem.space.bounds
    simplex = isinstance(problem.space, prudent.Simplex)
    columns = tests.as_vector().values
    radius = allowed.radius[allowed.groups]
    exactly = ExactProblem.of(
        *(problem.rewards, problem.costs, low, high, simplex, placed, weights, columns, allowed.center, radius)
    )
    mixtures = local.mixtures(tests.tilts(solution.multipliers), placed)
    proven = exactly.guaranteed(exact(solution.multipliers), normalised(exact(mixtures)))
    assert Fraction(solution.lower) <= proven, f"seed {seed}: lower is too high by {float(solution.lower - proven):.2g}"
    known = exactly.best_known()
    assert known <= Fraction(solution.upper), f"seed {seed}: upper is too low by {float(known - solution.upper):.2g}"
    return solution.status == "optimal"


@pytest.mark.parametrize("portion", range(4))
def test_bounds_hold_in_rational_numbers(portion: int) -> None:
    for seed in range(portion, 100, 4):
        check_in_rational_numbers(seed)


@pytest.mark.parametrize(
    "kind",
    ["means that round to a corner", "combinations with slack", "next to underflow", "classes that hardly occur"],
)
def test_bounds_of_delicate_problems_hold_in_rational_numbers(kind: str) -> None:
    for seed in range(20):
        check_in_rational_numbers(seed, kind)


@pytest.mark.parametrize("kind", ["classes", "combinations"])
def test_moments_that_contradict_each_other_allow_no_world(kind: str) -> None:
    """One class, or one combination of tests, follows from the others; its own slack must hold as well."""
    rng = np.random.default_rng(2)
    if kind == "classes":
        problem, tests = prudent.DecisionProblem.from_payoffs(rng.normal(size=(3, 3))), [lambda v: np.ones(len(v))]
        forecasts, center = rng.dirichlet(np.ones(3), size=20), np.array([[1e-3, 1e-3, -2e-3 + 5e-9]])
        world = forecasts + np.array([1e-3, 1e-3, -2e-3]) * (forecasts[:, 2:] > 0.01)
    else:
        problem, forecasts = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0]), rng.random((20, 1))
        tests = [lambda v: np.ones(len(v)), lambda v: v[:, 0], lambda v: 1 + v[:, 0]]
        center, world = np.array([0.0, 0.0, 1e-3]), forecasts
    slack = prudent.Slack(1e-9, norm="linf", center=center)
    ambiguity = build_ambiguity(problem, guarantees.FromFunctions(tests), forecasts, np.full(20, 1 / 20), slack)
    upper, _ = certified_upper(Game.of_problem(problem), ambiguity, world)
    assert upper >= (problem.rewards @ np.eye(problem.dimension) - problem.costs[:, None]).max()


@pytest.mark.slow
@pytest.mark.parametrize("portion", range(8))
def test_bounds_of_a_thousand_hostile_problems_hold_in_rational_numbers(portion: int) -> None:
    optimal = [check_in_rational_numbers(seed) for seed in range(100 + portion, 1_100, 8)]
    assert np.mean(optimal) >= 0.5


@pytest.mark.parametrize(
    ("interval", "rewards", "costs", "degree", "proven"),
    [((0.9, 1.0), [1.0, 10.0], [0.0, 8.55], 6, 1.090417), ((0.49, 0.51), [1.0, -1.0], [0.0, -1.0], 5, 0.5048005)],
)
def test_polynomials_on_a_short_interval(
    interval: tuple[float, float], rewards: list[float], costs: list[float], degree: int, proven: float
) -> None:
    """Directions of 1e-11 and less were dropped once, and an upper bound lay below what a policy guarantees."""
    rng = np.random.default_rng(0)
    first = np.sort(rng.uniform(0.9, 1, 100))
    forecasts = first if interval == (0.9, 1.0) else np.sort(rng.uniform(*interval, 100))
    problem = prudent.DecisionProblem(rewards, costs)
    certificate = prudent.RobustPolicy(problem, guarantees.Polynomial(degree)).fit(forecasts).certificate_
    assert certificate.upper >= proven
    assert certificate.gap <= 1e-6 * problem.utility_range


@pytest.mark.parametrize("close", [1e-3, 1e-6, 1e-9, 1e-11, 1e-13, 1e-15])
def test_two_tests_that_are_nearly_equal_are_two_tests(close: float) -> None:
    forecasts = np.random.default_rng(3).random(40)
    tests = guarantees.FromFunctions([lambda v: v[:, 0], lambda v: v[:, 0] + close * np.cos(3 * v[:, 0])])
    apart = guarantees.FromFunctions([lambda v: v[:, 0], lambda v: np.cos(3 * v[:, 0])])
    coin = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    value = prudent.RobustPolicy(coin, apart).fit(forecasts).certificate_
    certificate = prudent.RobustPolicy(coin, tests).fit(forecasts).certificate_
    assert certificate.upper >= value.lower - (1e-6 if close > 1e-14 else 0.05)  # rounding is a tenth of 1e-15
    assert certificate.lower <= value.upper + (1e-6 if close > 1e-14 else 0.05)
    if close >= 1e-6:
        assert certificate.status == "optimal"


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e10, 1e12])
def test_boxes_far_from_zero_are_rounded_outward_and_no_more(offset: float) -> None:
    forecasts = offset + np.random.default_rng(4).random(60)
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -2 * offset - 1], space=prudent.Box(offset, offset + 1))
    certificate = prudent.RobustPolicy(problem, guarantees.Unbiased()).fit(forecasts).certificate_
    assert 0 < certificate.gap <= 32 * np.finfo(float).eps * offset
    assert certificate.status == "optimal"


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8, 1e10, 1e12])
def test_rounding_of_a_given_policy_is_counted(offset: float) -> None:
    """Zero bias makes the worst case of mixtures a fractional knapsack, which rationals solve."""
    low, high, share = Fraction(offset), Fraction(offset + 1), Fraction(1, 5)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rewards = rng.normal(size=3)
        costs = rewards * offset + rng.normal(size=3)
        problem = prudent.DecisionProblem(rewards, costs, space=prudent.Box(offset, offset + 1))
        forecasts, mixtures = offset + rng.random(5), rng.dirichlet(np.ones(3), size=5)
        found = prudent.worst_case(mixtures, forecasts, problem=problem, guarantee=guarantees.Unbiased()).certificate
        played = normalised(exact(mixtures))
        slopes = played @ exact(rewards)
        value = share * (slopes * low - played @ exact(costs)).sum()
        left = (exact(forecasts) - low).sum()
        for slope in sorted(slopes):
            value, left = value + share * slope * min(left, high - low), left - min(left, high - low)
        assert Fraction(found.lower) <= value <= Fraction(found.upper)


def test_tests_that_agree_only_on_rows_that_move_are_two_tests() -> None:
    """They differ by one epsilon on half of the rows, and by one on a row that stays at its corner."""
    forecasts = np.concatenate([[0.0], np.linspace(0.35, 0.65, 8)])

    def second(v: np.ndarray) -> np.ndarray:
        return np.where(v[:, 0] == 0, 2.0, np.where(v[:, 0] < 0.5, 1.0 + np.spacing(1.0), 1.0))

    coin = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    tests = guarantees.FromFunctions([lambda v: np.ones(len(v)), second])
    columns = np.stack([np.ones(9), second(forecasts[:, None])], axis=1)[:, :, None]
    problem = ExactProblem.of(
        *(
            coin.rewards,
            coin.costs,
            [0.0],
            [1.0],
            False,
            forecasts[:, None],
            np.full(9, 1 / 9),
            columns,
            *np.zeros((2, 2)),
        )
    )
    # Multipliers of 2^52 price the difference; at the tilt one on the lower half every belief is worth a half.
    multipliers = exact(np.array([0.9 * 2.0**52 - 0.9, -0.9 * 2.0**52]))
    tilts = np.einsum("k,nkd->nd", multipliers, problem.tests)
    second_action = np.clip((tilts[:, 0] + 1) / 2, Fraction(0), Fraction(1))
    proven = problem.guaranteed(multipliers, np.stack([1 - second_action, second_action], axis=1))
    certificate = prudent.RobustPolicy(coin, tests).fit(forecasts).certificate_
    assert proven <= Fraction(certificate.upper)
    assert certificate.upper >= 0.59


@pytest.mark.parametrize(("size", "unit"), [(1e60, 1e-60), (1e90, 1e-80), (1e100, 1e-100)])
def test_round_slack_has_its_price_at_every_scale(size: float, unit: float) -> None:
    rng = np.random.default_rng(0)
    rewards, costs, forecasts = rng.normal(size=(3, 2)), rng.normal(size=3), rng.random((20, 2))

    def fitted(size: float, unit: float) -> prudent.solvers.Certificate:
        problem = prudent.DecisionProblem(rewards * unit, costs * unit)
        tests = [lambda v: size * np.ones(len(v)), lambda v: size * v[:, 0]]
        guarantee = guarantees.FromFunctions(tests, bounds=[size, size])
        return prudent.RobustPolicy(problem, guarantee, slack=0.1).fit(forecasts).certificate_

    found, expected = fitted(size, unit), fitted(1.0, 1.0)
    assert found.lower / unit <= expected.upper
    assert found.upper / unit >= expected.lower
