"""Where the paper must not be followed literally: docs/theory.md, section 3, item by item, with its numbers.

Every claim about the worst case of a rule is computed twice, by the library and
by the independent programs of ``reference``, from test tensors written out here.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize_scalar
from scipy.stats import beta
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

import prudent
import reference
from prudent import guarantees
from reference import Allowed, World
from solutions import solution_of

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])  # u = (p, 1 - p)
BIKE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])


def midpoints(n):
    return (np.arange(n) + 0.5) / n


def world_of(forecasts, tests, kind="exact", radius=0.0, center=0.0, *, low=0.0, high=1.0, simplex=False):
    """Write a sample for the reference; ``tests`` is (n, k) for scalar tests, (n, K, d) for vector tests."""
    forecasts = np.asarray(forecasts, dtype=float).reshape(len(forecasts), -1)
    n, d = forecasts.shape
    if tests.ndim == 2:
        groups = np.repeat(np.arange(tests.shape[1]), d)
        tests = np.einsum("nk,ij->nkij", tests, np.eye(d)).reshape(n, -1, d)
    else:
        groups = np.arange(tests.shape[1])
    size = tests.shape[1]
    radii = np.full(groups.max(initial=-1) + 1 if kind == "ball" else size, radius, dtype=float)
    allowed = Allowed(kind, np.full(size, center, dtype=float), radii, groups)
    bounds = np.full(d, low), np.full(d, high)
    return World(*bounds, simplex, forecasts, np.full(n, 1 / n), tests, allowed)


def accuracy(world):
    """Say how far the reference itself may be off: HiGHS about 1e-8, Clarabel on round sets about 1e-6."""
    return 3e-6 if world.allowed.kind == "ball" else 1e-7


def agreed_value(problem, world, guarantee, slack=0.0):
    """Return V* of the reference and the library's policy, after checking that its bounds bracket V*."""
    value = reference.robust_value(problem.rewards, problem.costs, world)
    policy = prudent.RobustPolicy(problem, guarantee, slack=slack).fit(world.forecasts)
    assert policy.certificate_.gap <= 1e-6 * problem.utility_range
    assert policy.certificate_.lower == pytest.approx(value, abs=accuracy(world) + 1e-6 * problem.utility_range)
    return value, policy


def agreed_worst_case(problem, mixtures, world, guarantee, slack=0.0):
    """Return the worst case of a rule by the reference, after checking that the library finds the same."""
    value = reference.worst_case(problem.rewards, problem.costs, mixtures, world)
    found = prudent.worst_case(mixtures, world.forecasts, problem=problem, guarantee=guarantee, slack=slack)
    assert found.certificate.gap <= 1e-6 * problem.utility_range
    assert found.value == pytest.approx(value, abs=accuracy(world) + 1e-6 * problem.utility_range)
    return value


def worst_belief(problem, world):
    """Find a minimiser q* of ``E val(q)`` under exact scalar tests of one coordinate, by a plain linear program."""
    n, m = len(world.forecasts), problem.n_actions
    rows = sparse.kron(sparse.eye(n), np.ones((m, 1)))
    utilities = sparse.kron(sparse.eye(n), problem.rewards)
    moments = (world.weights[:, None] * world.tests[:, :, 0]).T
    result = linprog(
        np.concatenate([np.zeros(n), world.weights]),
        A_ub=sparse.hstack([utilities, -rows]),
        b_ub=np.tile(problem.costs, n),
        A_eq=np.hstack([moments, np.zeros((len(moments), n))]),
        b_eq=moments @ world.forecasts[:, 0],
        bounds=[(world.low[0], world.high[0])] * n + [(None, None)] * n,
    )
    assert result.status == 0
    return result.x[:n]


def tied_best_responses(problem, beliefs):
    """Best respond twice: ties to the first action, ties to the last."""
    utilities = problem.utility(beliefs)
    tied = utilities >= utilities.max(axis=1, keepdims=True) - 1e-7
    eye = np.eye(problem.n_actions)
    return eye[tied.argmax(axis=1)], eye[problem.n_actions - 1 - tied[:, ::-1].argmax(axis=1)]


def plug_in(problem, forecasts):
    utilities = np.reshape(forecasts, (len(forecasts), -1)) @ problem.rewards.T - problem.costs
    return np.eye(problem.n_actions)[utilities.argmax(axis=1)]


# 3.1 Ties are the rule, mixing is needed


def test_3_1_best_response_to_worst_belief_is_ambiguous():
    """Both ways of best responding to q* follow the paper; they guarantee 0.4226 and 0.001 of the possible 0.5918."""
    forecasts = midpoints(400)
    world, guarantee = world_of(forecasts, forecasts[:, None]), guarantees.SelfOrthogonal()
    value, policy = agreed_value(COIN, world, guarantee)
    assert value == pytest.approx(1 - 1 / np.sqrt(6), abs=1e-5)

    belief = worst_belief(COIN, world)
    assert world.weights @ COIN.value(belief) == pytest.approx(value, abs=1e-7)
    assert abs(world.moments(belief[:, None])[0]) <= 1e-9
    kink = forecasts < np.sqrt(2 / 3) - 0.005
    np.testing.assert_allclose(belief[kink], 0.5, atol=1e-7)  # a whole interval on the kink
    np.testing.assert_allclose(solution_of(policy, forecasts).beliefs[kink, 0], 0.5, atol=1e-7)

    first, second = tied_best_responses(COIN, belief)
    assert agreed_worst_case(COIN, first, world, guarantee) == pytest.approx(0.4226, abs=5e-5)
    assert agreed_worst_case(COIN, second, world, guarantee) == pytest.approx(0.001, abs=5e-4)
    assert agreed_worst_case(COIN, plug_in(COIN, forecasts), world, guarantee) == pytest.approx(0.2362, abs=5e-5)
    mixture = policy.predict_proba(forecasts)
    assert agreed_worst_case(COIN, mixture, world, guarantee) == pytest.approx(value, abs=1e-6)


def test_3_1_ties_to_the_second_action_guarantee_nothing_in_the_limit():
    """The worst case of that rule tends to zero as the forecasts fill the interval."""
    worst = []
    for n in (50, 200, 800):
        forecasts = midpoints(n)
        world = world_of(forecasts, forecasts[:, None])
        second = tied_best_responses(COIN, worst_belief(COIN, world))[1]
        worst.append(agreed_worst_case(COIN, second, world, guarantees.SelfOrthogonal()))
    assert worst[0] > worst[1] > worst[2]
    assert worst[2] < 1e-3


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 4), (3, 3)])
def test_3_1_naive_rule_loses_with_the_bike_utilities(shape):
    """With the paper's own utilities and H = {v}, neither tie-break reaches what mixing does."""
    forecasts = beta.ppf(midpoints(150), *shape)
    world, guarantee = world_of(forecasts, forecasts[:, None]), guarantees.SelfOrthogonal()
    value, policy = agreed_value(BIKE, world, guarantee)
    for rule in tied_best_responses(BIKE, worst_belief(BIKE, world)):
        assert agreed_worst_case(BIKE, rule, world, guarantee) < value - 1e-3
    mixture = policy.predict_proba(forecasts)
    assert agreed_worst_case(BIKE, mixture, world, guarantee) == pytest.approx(value, abs=1e-6)


def test_3_1_naive_rule_often_falls_below_plug_in_with_an_intercept():
    """With H = {1, v} best responding to q* is worse than trusting the forecast in a good part of all shapes."""
    below = []
    for shape in [(0.6, 3), (1, 1), (1, 3), (1, 4), (1, 1.4), (2, 2), (3, 2), (4, 1)]:
        forecasts = beta.ppf(midpoints(120), *shape)
        world = world_of(forecasts, np.stack([np.ones(120), forecasts], axis=1))
        guarantee = guarantees.SelfOrthogonal(intercept=True)
        value, policy = agreed_value(BIKE, world, guarantee)
        naive = tied_best_responses(BIKE, worst_belief(BIKE, world))[0]
        loss = agreed_worst_case(BIKE, naive, world, guarantee)
        trusting = agreed_worst_case(BIKE, plug_in(BIKE, forecasts), world, guarantee)
        below.append(loss < trusting - 1e-4)
        mixture = policy.predict_proba(forecasts)
        assert agreed_worst_case(BIKE, mixture, world, guarantee) == pytest.approx(value, abs=1e-6)
    assert np.mean(below) >= 0.5


# 3.2 Determinism costs


def test_3_2_dithering_along_the_forecast_guarantees_only_a_third():
    """A deterministic rule that follows the mixture's frequencies along v is visible to the adversary: about 0.34."""
    forecasts = midpoints(400)
    world, guarantee = world_of(forecasts, forecasts[:, None]), guarantees.SelfOrthogonal()
    value, policy = agreed_value(COIN, world, guarantee)
    mixture = policy.predict_proba(forecasts)
    golden = np.arange(400) * 0.6180339887498949 % 1
    dithered = np.eye(2)[(golden >= mixture[:, 0]).astype(int)]
    assert abs(dithered.mean(axis=0) - mixture.mean(axis=0)).max() <= 0.005  # it does play the right frequencies
    worst = agreed_worst_case(COIN, dithered, world, guarantee)
    assert worst == pytest.approx(0.34, abs=0.01)
    assert worst < 1 - 1 / np.sqrt(3) < value


def test_3_2_a_hash_of_the_forecast_is_no_seed_and_a_hash_of_the_record_is():
    """Keys made of v leave one action per forecast; keys of records give back the mixture and its guarantee."""
    forecasts = midpoints(100)
    world, guarantee = world_of(forecasts, forecasts[:, None]), guarantees.SelfOrthogonal()
    value, policy = agreed_value(COIN, world, guarantee)
    records, times = np.arange(100 * 400), 400
    repeated = np.repeat(forecasts, times)
    played = {}
    for name, keys in {"forecast": repeated, "record": records}.items():
        actions = policy.predict(repeated, keys=keys).reshape(100, times)
        played[name] = np.stack([(actions == action).mean(axis=1) for action in COIN.actions], axis=1)
    assert set(np.unique(played["forecast"])) == {0.0, 1.0}
    assert agreed_worst_case(COIN, played["forecast"], world, guarantee) < 0.4226
    assert agreed_worst_case(COIN, played["record"], world, guarantee) > 0.55
    np.testing.assert_allclose(played["record"], policy.predict_proba(forecasts), atol=0.1)
    assert value == pytest.approx(0.5918, abs=1e-3)


def test_3_2_the_best_pure_policy_is_constant():
    """Best pure policy 1 - 1/sqrt(3) = 0.4226, always the first action."""
    forecasts = midpoints(400)
    world, guarantee = world_of(forecasts, forecasts[:, None]), guarantees.SelfOrthogonal()
    policy = prudent.RobustPolicy(COIN, guarantee, randomize=False).fit(forecasts)
    rule = policy.predict_proba(forecasts)
    np.testing.assert_array_equal(rule, np.tile([1.0, 0.0], (400, 1)))
    assert agreed_worst_case(COIN, rule, world, guarantee) == pytest.approx(1 - 1 / np.sqrt(3), abs=1e-5)
    assert policy.certificate_.lower == pytest.approx(1 - 1 / np.sqrt(3), abs=1e-5)
    assert policy.certificate_.status == prudent.solvers.Status.OPTIMAL


def test_3_2_the_best_pure_policy_by_trying_all_of_them():
    """No deterministic rule of the 2^7 on seven forecasts beats the constant one, nor what the library reports."""
    forecasts = midpoints(7)
    world, guarantee = world_of(forecasts, forecasts[:, None]), guarantees.SelfOrthogonal()
    best = reference.best_pure_value(COIN.rewards, COIN.costs, world)
    constant = agreed_worst_case(COIN, np.tile([1.0, 0.0], (7, 1)), world, guarantee)
    assert constant == pytest.approx(best, abs=1e-7)
    assert prudent.RobustPolicy(COIN, guarantee, randomize=False).fit(forecasts).certificate_.lower == pytest.approx(
        best, abs=1e-7
    )
    assert best < agreed_value(COIN, world, guarantee)[0] - 0.1


# 3.3 Safety without information


def test_3_3_safety_is_mixed_too():
    """Without any tests the mixture secures 1/2 and every pure action 0."""
    forecasts = midpoints(6)
    world, guarantee = world_of(forecasts, np.zeros((6, 0))), guarantees.Nothing()
    value, policy = agreed_value(COIN, world, guarantee)
    assert value == pytest.approx(0.5, abs=1e-9)
    np.testing.assert_allclose(policy.predict_proba(forecasts), 0.5, atol=1e-12)
    mixed, pure = prudent.SafetyPolicy(COIN), prudent.SafetyPolicy(COIN, randomize=False)
    np.testing.assert_allclose(mixed.predict_proba(forecasts), 0.5, atol=1e-12)
    assert mixed.certificate_.lower == pytest.approx(0.5, abs=1e-12)
    assert pure.certificate_.lower == pytest.approx(0.0, abs=1e-12)
    assert prudent.RobustPolicy(COIN, guarantee, randomize=False).fit(forecasts).certificate_.lower == pytest.approx(
        0.0, abs=1e-12
    )
    assert agreed_worst_case(COIN, mixed.predict_proba(forecasts), world, guarantee) == pytest.approx(0.5, abs=1e-9)
    assert reference.best_pure_value(COIN.rewards, COIN.costs, world) == pytest.approx(0.0, abs=1e-9)


# 3.4 Decision regions must be a partition


def test_3_4_closed_overlapping_regions_break_the_theorem():
    """E val(f) = 0.5833, with closed regions V* = 0.5, with a partition by the other tie-break plug-in has 0.4167."""
    problem = prudent.DecisionProblem([1.0, 2.0], [0.0, 0.5])  # u = (p, 2 p - 0.5), a tie at one half
    forecasts = np.array([0.25, 0.5, 0.75])
    trusting = plug_in(problem, forecasts)
    np.testing.assert_array_equal(trusting.argmax(axis=1), [0, 0, 1])
    assert problem.value(forecasts).mean() == pytest.approx(0.5833, abs=5e-5)

    closed = world_of(forecasts, np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    overlap = guarantees.FromFunctions([lambda v: (v[:, 0] <= 0.5) * 1.0, lambda v: (v[:, 0] >= 0.5) * 1.0])
    assert agreed_value(problem, closed, overlap)[0] == pytest.approx(0.5, abs=1e-9)
    assert agreed_worst_case(problem, trusting, closed, overlap) <= 0.5 + 1e-9

    other = world_of(forecasts, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    other_tie = guarantees.Partition(lambda v: v[:, 0] >= 0.5)
    assert agreed_worst_case(problem, trusting, other, other_tie) == pytest.approx(0.4167, abs=5e-5)

    same = world_of(forecasts, np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    decision = guarantees.DecisionCalibrated(problem)
    assert agreed_value(problem, same, decision)[0] == pytest.approx(0.5833, abs=5e-5)
    assert agreed_worst_case(problem, trusting, same, decision) == pytest.approx(0.5833, abs=5e-5)


# 3.5 "The tilt vanishes, q* = v"


def test_3_5_the_worst_world_under_decision_calibration_is_not_unique():
    """Both q = v and q = mean of the region are worst worlds; extra tests forbid the second and not the first."""
    forecasts = midpoints(30)
    regions = plug_in(BIKE, forecasts)
    means = regions @ ((regions.T @ forecasts) / np.maximum(regions.sum(axis=0), 1))
    assert abs(means - forecasts).max() > 0.1
    decision = guarantees.DecisionCalibrated(BIKE)
    alone = world_of(forecasts, regions)
    value, _ = agreed_value(BIKE, alone, decision)
    for beliefs in (forecasts, means):
        assert BIKE.value(beliefs).mean() == pytest.approx(value, abs=1e-7)
        assert abs(alone.moments(beliefs[:, None])).max() <= 1e-12

    richer = world_of(forecasts, np.hstack([regions, forecasts[:, None]]))
    assert agreed_value(BIKE, richer, decision & guarantees.SelfOrthogonal())[0] == pytest.approx(value, abs=1e-7)
    assert abs(richer.moments(forecasts[:, None])).max() <= 1e-12
    assert abs(richer.moments(means[:, None])).max() > 1e-3


# 3.6 Slack


def test_3_6_slack_depends_on_the_basis_and_not_on_the_span():
    """Two indicators, or their sum and difference: the same exact guarantee, another slackened one."""
    forecasts = midpoints(20)
    upper = forecasts >= 0.5
    indicators = np.stack([~upper, upper], axis=1) * 1.0
    rotated = indicators @ np.array([[1.0, 1.0], [1.0, -1.0]])
    cells = guarantees.Partition(lambda v: v[:, 0] >= 0.5)
    turned = guarantees.FromFunctions(
        [lambda v: np.ones(len(v)), lambda v: np.where(v[:, 0] >= 0.5, -1.0, 1.0)], bounds=[1.0, 1.0]
    )
    values = {}
    for epsilon in (0.0, 0.05):
        kind = "ball" if epsilon else "exact"
        one = agreed_value(BIKE, world_of(forecasts, indicators, kind, epsilon), cells, epsilon)[0]
        other = agreed_value(BIKE, world_of(forecasts, rotated, kind, epsilon), turned, epsilon)[0]
        values[epsilon] = one, other
    assert values[0.0][0] == pytest.approx(values[0.0][1], abs=1e-7)
    assert abs(values[0.05][0] - values[0.05][1]) > 0.01


def test_3_6_scaling_a_test_scales_its_slack_unless_its_bound_is_declared():
    """The test 2 v says the same as v exactly, and twice as much under the same slack taken as it is."""
    forecasts = midpoints(25)
    plain = guarantees.FromFunctions([lambda v: v[:, 0]])
    doubled = guarantees.FromFunctions([lambda v: 2 * v[:, 0]])
    bounded = guarantees.FromFunctions([lambda v: 2 * v[:, 0]], bounds=[2.0])
    once, twice = forecasts[:, None], 2 * forecasts[:, None]
    exact = [agreed_value(COIN, world_of(forecasts, t), g)[0] for t, g in ((once, plain), (twice, doubled))]
    assert exact[0] == pytest.approx(exact[1], abs=1e-7)
    loose = agreed_value(COIN, world_of(forecasts, once, "box", 0.05), plain, 0.05)[0]
    tight = agreed_value(COIN, world_of(forecasts, twice, "box", 0.05), doubled, 0.05)[0]
    same = agreed_value(COIN, world_of(forecasts, twice, "box", 0.1), bounded, 0.05)[0]
    assert tight > loose + 0.01
    assert same == pytest.approx(loose, abs=1e-7)


def norm_bound(problem, used, epsilon, norm):
    """Sum of ``epsilon * ||r_a||`` over the actions that plug-in uses; on the simplex the least over ``r_a - t 1``."""
    rows = problem.rewards[used]
    if isinstance(problem.space, prudent.Simplex):
        middle = rows.mean(axis=1) if norm == "l2" else np.median(rows, axis=1)
        rows = rows - middle[:, None]
    return epsilon * np.linalg.norm(rows, 2 if norm == "l2" else 1, axis=1).sum()


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("simplex", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_3_6_plug_in_is_nearly_optimal_under_slack(norm, simplex, seed):
    """Per action: ``||r_a||_2`` for round slack, ``||r_a||_1`` for square, on the simplex least over ``r_a - t 1``."""
    rng = np.random.default_rng(seed)
    n, d, m, epsilon = 15, 3, 4, 0.02
    forecasts = rng.dirichlet(np.ones(d), size=n) if simplex else rng.random((n, d))
    space = prudent.Simplex(d) if simplex else prudent.Box(0, 1)
    problem = prudent.DecisionProblem(rng.normal(size=(m, d)) + 3.0 * simplex, 0.3 * rng.normal(size=m), space=space)
    trusting = plug_in(problem, forecasts)
    used = np.flatnonzero(trusting.any(axis=0))
    kind = "ball" if norm == "l2" else "box"
    slack = prudent.Slack(epsilon, norm)
    extra = rng.random() < 0.5
    tests = np.hstack([trusting, forecasts]) if extra else trusting
    guarantee = guarantees.DecisionCalibrated(problem)
    guarantee = guarantee & guarantees.SelfOrthogonal() if extra else guarantee
    world = world_of(forecasts, tests, kind, epsilon, simplex=simplex)
    value, _ = agreed_value(problem, world, guarantee, slack)
    worst = agreed_worst_case(problem, trusting, world, guarantee, slack)
    gap = value - worst
    assert -accuracy(world) <= gap <= norm_bound(problem, used, epsilon, norm) + accuracy(world)
    largest = np.linalg.norm(problem.rewards, axis=1).max()
    if norm == "l2":
        assert norm_bound(problem, used, epsilon, norm) <= m * largest * epsilon  # the paper's m L epsilon follows


def test_3_6_square_slack_needs_the_sum_norm():
    """One forecast, two nearly tied actions: under square slack plug-in loses more than ``epsilon ||r||_2``."""
    epsilon, edge = 0.05, 1e-4
    problem = prudent.DecisionProblem([[1.0, 1.0], [0.0, 0.0]], [0.0, -1.0 + edge])
    forecasts = np.array([[0.5, 0.5]])
    guarantee = guarantees.DecisionCalibrated(problem)
    trusting = plug_in(problem, forecasts)
    gaps = {}
    for norm, kind in (("l2", "ball"), ("linf", "box")):
        world, slack = world_of(forecasts, trusting, kind, epsilon), prudent.Slack(epsilon, norm)
        value, _ = agreed_value(problem, world, guarantee, slack)
        gaps[norm] = value - agreed_worst_case(problem, trusting, world, guarantee, slack)
    assert gaps["l2"] == pytest.approx(epsilon * np.sqrt(2) - edge, abs=1e-5)
    assert gaps["linf"] == pytest.approx(epsilon * 2 - edge, abs=1e-6)
    assert gaps["linf"] > epsilon * np.linalg.norm(problem.rewards[0])


def test_3_6_on_the_simplex_a_common_payoff_costs_nothing():
    """Adding the same number to all payoffs of an action leaves the gap, and the bound with ``min_t``, as they are."""
    epsilon, edge = 0.05, 1e-4
    forecasts = np.array([[0.5, 0.5]])
    for common in (0.0, 10.0):
        payoffs = np.array([[1.0, 0.0], [0.5 - edge, 0.5 - edge]]) + common
        problem = prudent.DecisionProblem.from_payoffs(payoffs)
        guarantee = guarantees.DecisionCalibrated(problem)
        trusting = plug_in(problem, forecasts)
        world = world_of(forecasts, trusting, "ball", epsilon, simplex=True)
        value, _ = agreed_value(problem, world, guarantee, epsilon)
        gap = value - agreed_worst_case(problem, trusting, world, guarantee, epsilon)
        assert gap == pytest.approx(epsilon / np.sqrt(2) - edge, abs=1e-5)  # min_t ||(1, 0) - t 1|| = 1 / sqrt(2)


def test_3_6_centred_slack_voids_the_bound():
    """Around a measured moment the forecast itself may be impossible, and plug-in loses far more than the bound."""
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.6])
    forecasts, epsilon = np.array([0.5]), 0.01
    trusting = plug_in(problem, forecasts)
    guarantee = guarantees.DecisionCalibrated(problem)
    tests, center = trusting, [0.3, 0.0]
    world = world_of(forecasts, tests, "box", epsilon, center)
    slack = prudent.Slack(epsilon, "linf", [[0.3], [0.0]])
    value, _ = agreed_value(problem, world, guarantee, slack)
    worst = agreed_worst_case(problem, trusting, world, guarantee, slack)
    assert value == pytest.approx(0.19, abs=1e-7)
    assert worst == pytest.approx(0.0, abs=1e-9)
    assert value - worst > norm_bound(problem, [0], epsilon, "linf") + 0.1
    assert world.allowed.violation(world.moments(forecasts[:, None])) > 0.2


def test_3_6_bins_with_slack_stay_inside_the_space():
    """The interval around a bin mean is cut at the bounds of the space, not as in the paper."""
    problem = prudent.DecisionProblem([1.0, 0.5], [0.0, 0.0])
    forecasts, epsilon = np.array([0.02, 0.06, 0.9, 0.94]), 0.1
    cells = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    world = world_of(forecasts, cells, "ball", epsilon)
    value, policy = agreed_value(problem, world, guarantees.Bins([0, 0.5, 1]), epsilon)
    np.testing.assert_allclose(solution_of(policy, forecasts).beliefs[:, 0], [0.0, 0.0, 0.72, 0.72], atol=1e-9)
    inside = 0.5 * 0.0 + 0.5 * (0.92 - epsilon / 0.5)
    uncut = 0.5 * 0.5 * (0.04 - epsilon / 0.5) + 0.5 * (0.92 - epsilon / 0.5)
    assert value == pytest.approx(inside, abs=3e-6)
    assert value > uncut + 0.03


def test_3_6_best_response_to_a_slackened_bin_belief_is_ambiguous():
    """At the kink both actions tie; each alone guarantees epsilon less than their mixture."""
    forecasts, epsilon = np.array([0.4, 0.6]), 0.1
    world, guarantee = world_of(forecasts, np.ones((2, 1)), "box", epsilon), guarantees.Unbiased()
    value, policy = agreed_value(COIN, world, guarantee, epsilon)
    assert value == pytest.approx(0.5, abs=1e-7)
    mixture = policy.predict_proba(forecasts)
    assert agreed_worst_case(COIN, mixture, world, guarantee, epsilon) == pytest.approx(0.5, abs=1e-6)
    for action in np.eye(2):
        constant = np.tile(action, (2, 1))
        assert agreed_worst_case(COIN, constant, world, guarantee, epsilon) == pytest.approx(0.5 - epsilon, abs=1e-7)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_3_6_scaling_units_is_harmless_and_shifting_them_is_not(norm):
    """In units 40 times as large slack scales along; in shifted units {v} spans something else, {1, v} does not."""
    forecasts, epsilon = midpoints(30), 0.03

    def value(scale, shift, guarantee, tests, slack):
        low, high = shift, shift + scale
        moved = shift + scale * forecasts
        rewards = BIKE.rewards[:, 0] / scale
        problem = prudent.DecisionProblem(rewards, BIKE.costs + rewards * shift, space=prudent.Box(low, high))
        columns = tests(moved)
        radius = slack * np.abs(tests(np.array([low, high]))).max(axis=0)
        world = world_of(moved, columns, "box" if slack else "exact", radius, low=low, high=high)
        return agreed_value(problem, world, guarantee, prudent.Slack(slack, norm))[0]

    alone = guarantees.SelfOrthogonal(), lambda v: v[:, None]
    both = guarantees.SelfOrthogonal(intercept=True), lambda v: np.stack([np.ones(len(v)), v], axis=1)
    for family in (alone, both):
        for slack in (0.0, epsilon):
            assert value(40.0, 0.0, *family, 40 * slack) == pytest.approx(value(1.0, 0.0, *family, slack), abs=1e-6)
    assert value(1.0, 1.0, *alone, 0.0) > value(1.0, 0.0, *alone, 0.0) + 0.01
    assert value(1.0, 1.0, *both, 0.0) == pytest.approx(value(1.0, 0.0, *both, 0.0), abs=1e-6)


# 3.7 Forecasts outside the space


def test_3_7_forecasts_outside_the_space_are_refused_by_row():
    """A linear head leaves the interval; every entry names the rows, and nothing is clipped on the way."""
    forecasts = np.array([0.2, 0.5, 1.3, 0.9, -0.1, 0.4])
    guarantee = guarantees.SelfOrthogonal()
    fitted = prudent.RobustPolicy(BIKE, guarantee).fit(midpoints(20))
    entries = [
        lambda: prudent.RobustPolicy(BIKE, guarantee).fit(forecasts),
        lambda: prudent.RobustPolicy(BIKE, guarantee, randomize=False).fit(forecasts),
        lambda: fitted.predict_proba(forecasts),
        lambda: fitted.predict(forecasts, keys=range(6)),
        lambda: prudent.PlugInPolicy(BIKE).predict(forecasts),
        lambda: prudent.worst_case(plug_in(BIKE, forecasts), forecasts, problem=BIKE, guarantee=guarantee),
        lambda: prudent.stress_test({"plug-in": prudent.PlugInPolicy(BIKE)}, forecasts, guarantee=guarantee),
    ]
    for entry in entries:
        with pytest.raises(prudent.errors.OutsideSpaceError, match="rows 2, 4 do not") as refusal:
            entry()
        assert refusal.value.rows == (2, 4)
    with pytest.raises(prudent.errors.OutsideSpaceError) as refusal:
        prudent.PlugInPolicy(prudent.DecisionProblem.from_payoffs(np.eye(2))).predict([[0.5, 0.5], [0.7, 0.7]])
    assert refusal.value.rows == (1,)


def test_3_7_with_forecasts_outside_there_may_be_no_world_at_all():
    """Forecasts 1.2 and 1.1 with H = {1}: the mean belief would have to exceed 1, so Q is empty."""
    empty = linprog([0.0, 0.0], A_eq=[[0.5, 0.5]], b_eq=[1.15], bounds=[(0, 1), (0, 1)])
    assert empty.status == 2
    with pytest.raises(prudent.errors.OutsideSpaceError):
        prudent.RobustPolicy(BIKE, guarantees.Unbiased()).fit([1.2, 1.1])


def test_3_7_clipping_breaks_the_guarantee_of_a_linear_head():
    """Least squares is self-orthogonal to rounding; its clipped forecasts fit the space and are not."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(300, 2))
    outcomes = (features @ [1.0, -1.0] + 0.3 * rng.normal(size=300) > 0) * 1.0
    forecasts = LinearRegression().fit(features, outcomes).predict(features)
    outside = np.flatnonzero((forecasts < 0) | (forecasts > 1))
    with pytest.raises(prudent.errors.OutsideSpaceError) as refusal:
        prudent.RobustPolicy(BIKE, guarantees.SelfOrthogonal()).fit(forecasts)
    assert refusal.value.rows == tuple(outside)
    clipped = np.clip(forecasts, 0, 1)
    assert abs(np.mean(forecasts * (outcomes - forecasts))) <= 1e-12
    assert abs(np.mean(clipped * (outcomes - clipped))) > 1e-3
    assert prudent.RobustPolicy(BIKE, guarantees.SelfOrthogonal()).fit(clipped).fitted_.n_snapped == 0


# 3.8 Which training gives which tests


def moments_of(guarantee, forecasts, outcomes, space):
    """Sample moments ``mean B(v) . (y - v)`` of a guarantee's tests."""
    tests = guarantee.evaluate(forecasts, space).as_vector().values
    return np.einsum("nkd,nd->k", tests, outcomes - forecasts) / len(forecasts)


def regression_sample(seed=3):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(400, 4))
    outcomes = 0.5 + features @ [0.1, -0.05, 0.02, 0.0] + 0.05 * rng.normal(size=400)
    return features, outcomes


def test_3_8_weight_decay_early_stopping_and_clipping_break_self_orthogonality():
    """Stationarity of an unregularised head is needed: ridge, few gradient steps or clipping leave a clear moment."""
    features, outcomes = regression_sample()
    wide = prudent.Box(-5, 5)
    guarantee = guarantees.SelfOrthogonal(intercept=True)

    def largest(forecasts):
        return abs(moments_of(guarantee, forecasts[:, None], outcomes[:, None], wide)).max()

    stationary = LinearRegression().fit(features, outcomes).predict(features)
    assert largest(stationary) <= 1e-12
    assert largest(np.clip(stationary, 0.3, 0.6)) > 1e-3
    assert largest(Ridge(alpha=200.0).fit(features, outcomes).predict(features)) > 1e-3
    design = np.hstack([np.ones((400, 1)), features])
    weights, moments = np.zeros(5), []
    for step in range(2000):
        if step in (5, 1999):
            moments.append(largest(design @ weights))
        weights += 0.2 * design.T @ (outcomes - design @ weights) / 400
    assert moments[0] > 1e-3
    assert moments[1] <= 1e-12


def softmax_sample(seed=11):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(600, 3))
    scores = np.stack([features[:, 0], np.abs(features[:, 1]), 0.5 * features[:, 2] ** 2], axis=1)
    labels = (scores + rng.gumbel(size=(600, 3))).argmax(axis=1)
    return features, labels, np.eye(3)[labels]


def softmax_head(features, labels, strength):
    return LogisticRegression(C=strength, tol=1e-10, max_iter=10000, solver="newton-cg").fit(features, labels)


def test_3_8_a_softmax_head_gives_the_log_odds_and_not_the_forecasts():
    """Cross-entropy is stationary in {1, log-odds} and in the features; in v itself errors stay correlated."""
    features, labels, outcomes = softmax_sample()
    head = softmax_head(features, labels, 1e12)
    forecasts, space = head.predict_proba(features), prudent.Simplex(3)
    assert abs(moments_of(guarantees.LogOdds(), forecasts, outcomes, space)).max() <= 1e-6
    assert abs(moments_of(guarantees.Temperature(), forecasts, outcomes, space)).max() <= 1e-6
    assert abs(moments_of(guarantees.SelfOrthogonal(), forecasts, outcomes, space)).max() > 1e-3
    assert abs(features.T @ (outcomes - forecasts)).max() / 600 <= 1e-6

    log_odds = np.log(forecasts[:, :2] / forecasts[:, 2:])
    by_hand = np.hstack([np.ones((600, 1)), log_odds]).T @ (outcomes - forecasts) / 600
    found = moments_of(guarantees.LogOdds(), forecasts, outcomes, space).reshape(3, 3)
    np.testing.assert_allclose(found, by_hand, atol=1e-12)


def test_3_8_weight_decay_breaks_the_log_odds_too():
    """A regularised softmax head keeps the test 1, from its free bias, and loses the log-odds."""
    features, labels, outcomes = softmax_sample()
    forecasts = softmax_head(features, labels, 0.01).predict_proba(features)
    found = moments_of(guarantees.LogOdds(), forecasts, outcomes, prudent.Simplex(3)).reshape(3, 3)
    assert abs(found[0]).max() <= 1e-6
    assert abs(found[1:]).max() > 1e-3


def test_3_8_temperature_scaling_gives_one_vector_test():
    """Scaling an overconfident head by one number makes ``E[log v . (Y - v)]`` zero, and nothing else."""
    features, labels, outcomes = softmax_sample()
    logits = 3 * softmax_head(features, labels, 1e12).decision_function(features) + [0.5, 0.0, -0.5]

    def scaled(inverse):
        exponent = inverse * logits - (inverse * logits).max(axis=1, keepdims=True)
        return np.exp(exponent) / np.exp(exponent).sum(axis=1, keepdims=True)

    def loss(inverse):
        return -np.log((scaled(inverse) * outcomes).sum(axis=1)).mean()

    best = minimize_scalar(loss, bounds=(0.01, 3), method="bounded", options={"xatol": 1e-12}).x
    space = prudent.Simplex(3)
    before, after = scaled(1.0), scaled(best)
    assert abs(moments_of(guarantees.Temperature(), before, outcomes, space)[0]) > 0.1
    assert abs(moments_of(guarantees.Temperature(), after, outcomes, space)[0]) <= 1e-6
    assert abs(np.mean((np.log(after) * (outcomes - after)).sum(axis=1))) <= 1e-6
    assert abs(moments_of(guarantees.LogOdds(), after, outcomes, space)).max() > 1e-3


def test_3_8_a_sigmoid_head_gives_one_and_the_log_odds():
    """Binary logistic regression in a box of one coordinate: the tests {1, log(v / (1 - v))}, not v."""
    rng = np.random.default_rng(13)
    features = rng.normal(size=(600, 1))
    outcomes = (np.maximum(features[:, 0], 0) ** 2 > rng.exponential(size=600)) * 1.0
    forecasts = softmax_head(features, outcomes, 1e12).predict_proba(features)[:, 1:]
    space = prudent.Box(0, 1)
    assert abs(moments_of(guarantees.LogOdds(), forecasts, outcomes[:, None], space)).max() <= 1e-6
    assert abs(moments_of(guarantees.SelfOrthogonal(), forecasts, outcomes[:, None], space)).max() > 1e-3


# 3.9 Binary forecasts in a box or on the simplex


def as_simplex(problem):
    """Write a problem on the probability of an event as payoffs for (no event, event)."""
    payoffs = np.stack([-problem.costs, problem.rewards[:, 0] - problem.costs], axis=1)
    return prudent.DecisionProblem.from_payoffs(payoffs)


def binary_values(problem, forecasts):
    """V* under self-orthogonality in the box, and on the simplex of the same forecasts."""
    rows = np.stack([1 - forecasts, forecasts], axis=1)
    guarantee = guarantees.SelfOrthogonal()
    boxed = agreed_value(problem, world_of(forecasts, forecasts[:, None]), guarantee)[0]
    on_simplex = agreed_value(as_simplex(problem), world_of(rows, rows, simplex=True), guarantee)[0]
    return boxed, on_simplex


def test_3_9_binary_forecasts_are_worth_strictly_more_on_the_simplex():
    """On the simplex {v, 1 - v} contains 1: 0.5918 in the box becomes the value of {1, v}."""
    forecasts = midpoints(100)
    boxed, on_simplex = binary_values(COIN, forecasts)
    assert boxed == pytest.approx(0.5918, abs=1e-4)
    with_one = world_of(forecasts, np.stack([np.ones(100), forecasts], axis=1))
    assert on_simplex == pytest.approx(reference.robust_value(COIN.rewards, COIN.costs, with_one), abs=1e-6)
    assert on_simplex > boxed + 0.05


@pytest.mark.parametrize("seed", range(6))
def test_3_9_binary_forecasts_are_never_worth_less_on_the_simplex(seed):
    """The simplex only adds a test, so the value cannot fall."""
    rng = np.random.default_rng(seed)
    problem = prudent.DecisionProblem(rng.normal(size=4), 0.3 * rng.normal(size=4))
    boxed, on_simplex = binary_values(problem, rng.beta(2, 2, size=30))
    assert on_simplex >= boxed - 1e-6


# 3.10 Decision calibration is not the minimal threshold


@pytest.mark.parametrize("space", [prudent.Box(0, 1), prudent.Simplex(3)])
def test_3_10_one_scalar_moment_suffices_for_plug_in(space):
    """Utility calibration is a single moment, and with it best responding already attains ``E val(f)``."""
    rng = np.random.default_rng(5)
    simplex = isinstance(space, prudent.Simplex)
    forecasts = rng.dirichlet(np.ones(3), size=25) if simplex else rng.random((25, 3))
    problem = prudent.DecisionProblem(rng.normal(size=(4, 3)), 0.2 * rng.normal(size=4), space=space)
    trusting = plug_in(problem, forecasts)
    assert (trusting.sum(axis=0) > 0).sum() >= 2
    world = world_of(forecasts, (trusting @ problem.rewards)[:, None, :], simplex=simplex)
    assert world.tests.shape[1] == 1
    guarantee = guarantees.UtilityCalibrated(problem)
    nominal = problem.value(forecasts).mean()
    assert agreed_value(problem, world, guarantee)[0] == pytest.approx(nominal, abs=1e-7)
    assert agreed_worst_case(problem, trusting, world, guarantee) == pytest.approx(nominal, abs=1e-6)
    assert reference.dual_value(problem.rewards, problem.costs, trusting, np.array([-1.0]), world) == pytest.approx(
        nominal, abs=1e-12
    )


def test_3_10_under_slack_plug_in_is_within_the_slack_of_optimal():
    """With utility calibration up to epsilon, in units of utility, plug-in loses at most epsilon."""
    forecasts = midpoints(40)
    trusting = plug_in(BIKE, forecasts)
    tests = (trusting @ BIKE.rewards)[:, None, :]
    for epsilon in (0.005, 0.05):
        world = world_of(forecasts, tests, "box", epsilon)
        guarantee = guarantees.UtilityCalibrated(BIKE)
        value, _ = agreed_value(BIKE, world, guarantee, epsilon)
        worst = agreed_worst_case(BIKE, trusting, world, guarantee, epsilon)
        assert worst == pytest.approx(BIKE.value(forecasts).mean() - epsilon, abs=1e-6)
        assert -1e-7 <= value - worst <= epsilon + 1e-7


def test_3_10_decision_calibration_is_strictly_stronger():
    """A world in which one region is too high and another too low, while utility is right on average."""
    forecasts = np.array([0.05, 0.22, 0.9])
    trusting = plug_in(BIKE, forecasts)
    np.testing.assert_array_equal(trusting, np.eye(3))
    beliefs = forecasts + np.array([0.1 / 0.72, 0.0, -0.1 / 1.08])
    utility = world_of(forecasts, (trusting @ BIKE.rewards)[:, None, :])
    decision = world_of(forecasts, trusting)
    assert ((beliefs >= 0) & (beliefs <= 1)).all()
    assert utility.allowed.violation(utility.moments(beliefs[:, None])) <= 1e-12
    assert decision.allowed.violation(decision.moments(beliefs[:, None])) > 0.02
    # So a constant action, which decision calibration holds to its mean forecast, may get less here.
    constant = np.tile([1.0, 0.0, 0.0], (3, 1))
    held = agreed_worst_case(BIKE, constant, decision, guarantees.DecisionCalibrated(BIKE))
    loose = agreed_worst_case(BIKE, constant, utility, guarantees.UtilityCalibrated(BIKE))
    assert loose < held - 0.005
