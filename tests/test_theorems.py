"""The statements of the paper, corrected where docs/theory.md says so, one named test each.

Values and worst cases come from the independent programs of ``reference`` and
from small programs written here; the library has to agree with them.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LinearRegression

import prudent
import reference
from prudent import guarantees
from reference import Allowed, World
from solutions import solution_of

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])  # u = (p, 1 - p)
BIKE = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
KINDS = ("interval", "box", "simplex")
BOTH = guarantees.SelfOrthogonal(intercept=True)


def random_problem(kind, seed, actions=4):
    """Draw utilities tangent to a convex bowl, so that every action is the best one somewhere."""
    rng = np.random.default_rng(seed)
    space = prudent.Simplex(3) if kind == "simplex" else prudent.Box(0, 1)
    touching = random_forecasts(kind, 500 + seed, n=actions)
    slopes = 4 * (touching - touching.mean(axis=0))
    costs = (slopes * touching).sum(axis=1) - (slopes**2).sum(axis=1) / 8
    return prudent.DecisionProblem(slopes + 0.5 * rng.normal(size=slopes.shape[1]), costs, space=space)


def random_forecasts(kind, seed, n=20):
    rng = np.random.default_rng(1000 + seed)
    if kind == "simplex":
        return rng.dirichlet(np.ones(3), size=n)
    return rng.random((n, 1 if kind == "interval" else 2))


def world_of(problem, forecasts, tests, epsilon=0.0, weights=None):
    """Write a sample for the reference with scalar tests (n, k) and per-test l2 slack."""
    forecasts = np.asarray(forecasts, dtype=float).reshape(len(forecasts), -1)
    n, d = forecasts.shape
    k = tests.shape[1]
    tensor = np.einsum("nk,ij->nkij", tests, np.eye(d)).reshape(n, k * d, d)
    kind = "ball" if np.any(epsilon) else "exact"
    allowed = Allowed(kind, np.zeros(k * d), np.full(k, epsilon, dtype=float), np.repeat(np.arange(k), d))
    low, high = problem.space.bounds
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    return World(
        low, high, isinstance(problem.space, prudent.Simplex), forecasts, weights / weights.sum(), tensor, allowed
    )


def one_and_v(forecasts):
    forecasts = np.reshape(forecasts, (len(forecasts), -1))
    return np.hstack([np.ones((len(forecasts), 1)), forecasts])


def fit(problem, world, guarantee, slack=0.0):
    policy = prudent.RobustPolicy(problem, guarantee, slack=slack)
    return policy.fit(world.forecasts, sample_weight=world.weights)


def accuracy(problem, world):
    """Say how far both sides together may be off: the reference on round sets 3e-6, the library 1e-6 of the range."""
    return (3e-6 if world.allowed.kind == "ball" else 1e-9) + 1e-6 * problem.utility_range


def robust_value(problem, world):
    return reference.robust_value(problem.rewards, problem.costs, world)


def worst_case(problem, mixtures, world):
    return reference.worst_case(problem.rewards, problem.costs, mixtures, world)


def utilities(problem, points):
    return np.reshape(points, (len(points), -1)) @ problem.rewards.T - problem.costs


def plug_in(problem, forecasts):
    return np.eye(problem.n_actions)[utilities(problem, forecasts).argmax(axis=1)]


def mean_value(problem, world, beliefs=None):
    """``E val(q)``, by default at the forecasts."""
    return float(world.weights @ utilities(problem, world.forecasts if beliefs is None else beliefs).max(axis=1))


def extreme_points(problem):
    if isinstance(problem.space, prudent.Simplex):
        return np.eye(problem.dimension)
    return np.array(list(itertools.product(*zip(*problem.space.bounds, strict=True))))


def tilted_game(problem, tilts):
    """Solve the tilted local games as matrix games against the extreme points; return mixtures and values."""
    corners, m = extreme_points(problem), problem.n_actions
    mixtures, values = [], []
    for tilt in tilts:
        payoffs = utilities(problem, corners) + (corners @ tilt)[:, None]
        result = linprog(
            [*np.zeros(m), -1.0],
            A_ub=np.hstack([-payoffs, np.ones((len(corners), 1))]),
            b_ub=np.zeros(len(corners)),
            A_eq=[[*np.ones(m), 0.0]],
            b_eq=[1.0],
            bounds=[(0, None)] * m + [(None, None)],
        )
        assert result.status == 0
        mixtures.append(result.x[:m])
        values.append(result.x[m])
    return np.array(mixtures), np.array(values)


def tilts_of(world, multipliers):
    return np.einsum("nkd,k->nd", world.tests, np.reshape(multipliers, -1))


def dual_objective(world, values, multipliers):
    """``G`` with its slack penalty, from the values of the tilted games."""
    linear = (tilts_of(world, multipliers) * world.forecasts).sum(axis=1)
    return float(world.weights @ (values - linear)) - world.allowed.penalty(np.reshape(multipliers, -1))


def dual_optimum(problem, world, reach=None):
    """Maximise the dual over mixtures and multipliers; with ``reach`` find the smallest multipliers attaining it."""
    n, size = world.tests.shape[:2]
    mixtures, multipliers = cp.Variable((n, problem.n_actions), nonneg=True), cp.Variable(size)
    tilts = cp.vstack([world.tests[i].T @ multipliers for i in range(n)])
    slopes = mixtures @ problem.rewards + tilts
    if world.simplex:
        least = cp.min(slopes, axis=1)
    else:
        ones = np.ones((n, 1))
        least = cp.sum(
            cp.minimum(cp.multiply(ones * world.low, slopes), cp.multiply(ones * world.high, slopes)), axis=1
        )
    linear = cp.sum(cp.multiply(tilts, world.forecasts), axis=1)
    allowed = world.allowed
    norms = [cp.norm(multipliers[np.flatnonzero(allowed.groups == g)], 2) for g in range(allowed.groups.max() + 1)]
    penalty = sum(r * norm for r, norm in zip(allowed.radius, norms, strict=True)) if allowed.kind == "ball" else 0.0
    objective = world.weights @ (least - mixtures @ problem.costs - linear) - penalty
    constraints = [cp.sum(mixtures, axis=1) == 1]
    if reach is None:
        program = cp.Problem(cp.Maximize(objective), constraints)
    else:
        program = cp.Problem(cp.Minimize(sum(norms)), [*constraints, objective >= reach])
    program.solve(solver=cp.CLARABEL)
    assert program.status == cp.OPTIMAL
    return float(program.value)


# Section 2: the interpolating property


@pytest.mark.parametrize("kind", KINDS)
def test_interpolation_without_tests_the_robust_policy_is_safety(kind):
    """Interpolating property, H empty: one constant maximin mixture, whatever the forecasts."""
    problem, forecasts = random_problem(kind, 1), random_forecasts(kind, 1)
    world = world_of(problem, forecasts, np.zeros((20, 0)))
    policy, safety = fit(problem, world, guarantees.Nothing()), prudent.SafetyPolicy(problem)
    secured = tilted_game(problem, np.zeros((1, problem.dimension)))[1][0]
    played = policy.predict_proba(forecasts)
    assert np.ptp(played, axis=0).max() <= 1e-12
    np.testing.assert_allclose(played, safety.predict_proba(forecasts), atol=1e-9)
    for value in (
        policy.certificate_.lower,
        safety.certificate_.lower,
        robust_value(problem, world),
        worst_case(problem, played, world),
    ):
        assert value == pytest.approx(secured, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["full", "indicators", "polynomials"])
def test_interpolation_with_all_tests_the_robust_policy_is_plug_in(kind, name):
    """Interpolating property, H everything or rich enough to tell the forecasts apart: best respond to the forecast."""
    problem, forecasts = random_problem(kind, 2), random_forecasts(kind, 2, n=6)
    guarantee = {
        "full": guarantees.FullyCalibrated(),
        "indicators": guarantees.Partition(lambda v: np.round(1e6 * v[:, 0])),
        "polynomials": guarantees.Polynomial(5 if kind == "interval" else 2),
    }[name]
    world = world_of(problem, forecasts, np.eye(6))
    policy = fit(problem, world, guarantee)
    nominal = mean_value(problem, world)
    assert policy.certificate_.lower == pytest.approx(nominal, abs=1e-6)
    assert robust_value(problem, world) == pytest.approx(nominal, abs=1e-7)
    np.testing.assert_allclose(policy.predict_proba(forecasts), plug_in(problem, forecasts), atol=1e-6)
    np.testing.assert_allclose(solution_of(policy, forecasts, weights=world.weights).beliefs, forecasts, atol=1e-6)
    assert nominal > prudent.SafetyPolicy(problem).certificate_.lower + 0.02  # the two ends are apart


# Section 3: characterisation of the robust policy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_3_1_mixed_saddle_point(kind, epsilon, seed):
    """Theorem 3.1 and its form with slack, corrected: the *mixed* policy and q* are a saddle (KKT)."""
    problem, forecasts = random_problem(kind, seed), random_forecasts(kind, seed)
    weights = np.random.default_rng(seed).integers(1, 4, size=20)
    tests = forecasts if kind == "simplex" else one_and_v(forecasts)
    guarantee = guarantees.SelfOrthogonal() if kind == "simplex" else BOTH
    world = world_of(problem, forecasts, tests, epsilon, weights)
    policy = fit(problem, world, guarantee, epsilon)
    tolerance = accuracy(problem, world)
    mixtures, beliefs = policy.predict_proba(forecasts), solution_of(policy, forecasts, weights=world.weights).beliefs
    multipliers = policy.multipliers_

    # The policy's worst case is E val(q*), and q* is an allowed world: neither side can do better.
    value = robust_value(problem, world)
    assert worst_case(problem, mixtures, world) == pytest.approx(value, abs=tolerance)
    assert mean_value(problem, world, beliefs) == pytest.approx(value, abs=tolerance)
    assert world.allowed.violation(world.moments(beliefs)) <= 1e-10
    assert (beliefs >= -1e-12).all()
    assert (beliefs <= 1 + 1e-12).all()
    if world.simplex:
        np.testing.assert_allclose(beliefs.sum(axis=1), 1.0, atol=1e-9)

    # q*(v) minimises val(p) + s(v).p at every forecast.
    tilts = tilts_of(world, multipliers)
    values = tilted_game(problem, tilts)[1]
    excess = utilities(problem, beliefs).max(axis=1) + (tilts * beliefs).sum(axis=1) - values
    assert excess.min() >= -1e-7
    assert world.weights @ excess <= tolerance
    assert dual_objective(world, values, multipliers) == pytest.approx(value, abs=tolerance)

    # Only best responses to q* are played, and q* lies where the tilted slope allows.
    regret = utilities(problem, beliefs).max(axis=1)[:, None] - utilities(problem, beliefs)
    assert world.weights @ (mixtures * regret).sum(axis=1) <= tolerance
    slopes = mixtures @ problem.rewards + tilts
    if world.simplex:
        pull = beliefs * (slopes - slopes.min(axis=1, keepdims=True))
    else:
        pull = np.where(slopes > 0, (beliefs - world.low) * slopes, (beliefs - world.high) * slopes)
    assert pull.min() >= -1e-9
    assert world.weights @ pull.sum(axis=1) <= tolerance

    # The multipliers are normal to the slack set at the moments of q*.
    flat = multipliers.reshape(-1)
    assert 0 <= world.allowed.penalty(flat) - flat @ world.moments(beliefs) + 1e-9 <= tolerance + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_theorem_3_1_strong_duality(kind):
    """V* = min E val(q) = max G, the primal and the dual as two separate programs."""
    problem, forecasts = random_problem(kind, 5), random_forecasts(kind, 5)
    world = world_of(problem, forecasts, one_and_v(forecasts))
    value = robust_value(problem, world)
    assert dual_optimum(problem, world) == pytest.approx(value, abs=3e-6)
    assert fit(problem, world, BOTH).certificate_.lower == pytest.approx(value, abs=accuracy(problem, world))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_theorem_of_tilts_any_multipliers_prove_their_guarantee(kind, epsilon):
    """docs/theory.md, section 2, (ii) and (iii): for arbitrary multipliers the tilted policy secures at least G."""
    rng = np.random.default_rng(8)
    problem, forecasts = random_problem(kind, 8), random_forecasts(kind, 8, n=12)
    world = world_of(problem, forecasts, one_and_v(forecasts), epsilon, rng.random(12) + 0.1)
    value = robust_value(problem, world)
    secured = []
    for scale in (0.1, 0.5, 1.0, 3.0):
        multipliers = scale * rng.normal(size=world.tests.shape[1])
        tilts = tilts_of(world, multipliers)
        mixtures, values = tilted_game(problem, tilts)
        bound = dual_objective(world, values, multipliers)
        worst = worst_case(problem, mixtures, world)
        found = prudent.worst_case(
            mixtures, forecasts, problem=problem, guarantee=BOTH, slack=epsilon, weights=world.weights
        )
        assert found.value == pytest.approx(worst, abs=accuracy(problem, world))
        assert bound <= worst + accuracy(problem, world)
        assert worst <= value + accuracy(problem, world)
        secured.append(bound)
        points = random_forecasts(kind, 99, n=30)
        played = mixtures @ utilities(problem, points).T
        assert (played >= values[:, None] - tilts @ points.T - 1e-8).all()
    assert max(secured) - min(secured) > 0.1  # the multipliers do differ in what they prove


# Section 4.1: decision calibration


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_theorem_4_1_decision_calibration_makes_plug_in_optimal(kind, seed):
    """Theorem 4.1: with the plug-in regions as tests V* = E val(f) = worst(plug-in), and plug-in is what is played."""
    problem, forecasts = random_problem(kind, seed), random_forecasts(kind, seed, n=30)
    trusting = plug_in(problem, forecasts)
    assert trusting.any(axis=0).sum() >= 2
    world = world_of(problem, forecasts, trusting, weights=np.arange(1, 31))
    policy = fit(problem, world, guarantees.DecisionCalibrated(problem))
    nominal = mean_value(problem, world)
    assert robust_value(problem, world) == pytest.approx(nominal, abs=1e-7)
    assert worst_case(problem, trusting, world) == pytest.approx(nominal, abs=1e-7)
    assert policy.certificate_.lower == pytest.approx(nominal, abs=1e-9)
    np.testing.assert_allclose(policy.predict_proba(forecasts), trusting, atol=1e-9)
    # The multipliers of the proof: minus the reward of each region's action.
    proven = reference.dual_value(problem.rewards, problem.costs, trusting, -problem.rewards.reshape(-1), world)
    assert proven == pytest.approx(nominal, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_theorem_4_2_decision_calibration_with_extra_tests(kind, seed):
    """Theorem 4.2: whatever else is in H, plug-in stays optimal; the extra tests alone would not make it so."""
    problem, forecasts = random_problem(kind, seed), random_forecasts(kind, seed, n=30)
    trusting = plug_in(problem, forecasts)
    waves = np.sin(9 * forecasts[:, :1])
    extra = BOTH & guarantees.FromFunctions([lambda v: np.sin(9 * v[:, 0])])
    tests = np.hstack([one_and_v(forecasts), waves])
    world = world_of(problem, forecasts, np.hstack([trusting, tests]))
    nominal = mean_value(problem, world)
    for guarantee in (guarantees.DecisionCalibrated(problem) & extra, extra & guarantees.DecisionCalibrated(problem)):
        policy = fit(problem, world, guarantee)
        assert policy.certificate_.lower == pytest.approx(nominal, abs=1e-9)
        np.testing.assert_allclose(policy.predict_proba(forecasts), trusting, atol=1e-9)
    assert robust_value(problem, world) == pytest.approx(nominal, abs=1e-7)
    assert worst_case(problem, trusting, world) == pytest.approx(nominal, abs=1e-7)

    without = world_of(problem, forecasts, tests)
    value = robust_value(problem, without)
    assert fit(problem, without, extra).certificate_.lower == pytest.approx(value, abs=accuracy(problem, without))
    assert value < nominal - 1e-3
    assert worst_case(problem, trusting, without) < value - 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("richer", [False, True])
def test_corollary_4_3_several_decision_problems_at_once(kind, richer):
    """Corollary 4.3: with the regions of all problems in H each of them may best respond; a stranger may not."""
    problems = [random_problem(kind, 20 + j, actions=2 + j) for j in range(3)]
    forecasts = random_forecasts(kind, 20, n=40)
    tests = np.hstack([plug_in(problem, forecasts) for problem in problems])
    guarantee = guarantees.DecisionCalibrated(problems)
    if richer:
        tests, guarantee = np.hstack([tests, forecasts]), guarantee & guarantees.SelfOrthogonal()
    for problem in problems:
        world = world_of(problem, forecasts, tests)
        policy, trusting = fit(problem, world, guarantee), plug_in(problem, forecasts)
        nominal = mean_value(problem, world)
        assert robust_value(problem, world) == pytest.approx(nominal, abs=1e-7)
        assert worst_case(problem, trusting, world) == pytest.approx(nominal, abs=1e-7)
        assert policy.certificate_.lower == pytest.approx(nominal, abs=1e-9)
        np.testing.assert_allclose(policy.predict_proba(forecasts), trusting, atol=1e-9)
    stranger = random_problem(kind, 77, actions=6)
    world = world_of(stranger, forecasts, tests)
    value = robust_value(stranger, world)
    assert fit(stranger, world, guarantee).certificate_.lower == pytest.approx(value, abs=accuracy(stranger, world))
    assert worst_case(stranger, plug_in(stranger, forecasts), world) < value - 1e-4


def test_no_swap_regret_is_weaker_than_minimax_optimality():
    """After Theorem 4.1: best responding without swap regret can still be beaten, even in the same world.

    Forecasts are uniform, u = (p, 1 - p), and all that is promised is
    E[f (Y - f)] = 0. Among the worlds with that promise in which best
    responding has no swap regret (no map from its actions to actions gains
    anything) take the one where it earns least. Every policy that sees actions
    only through the best response is then no better, but the robust policy
    sees the forecast: it earns more in this very world, and guarantees more in
    all of them.
    """
    n = 60
    forecasts = (np.arange(n) + 0.5) / n
    world = world_of(COIN, forecasts, forecasts[:, None])
    trusting = plug_in(COIN, forecasts)
    gains = []  # what playing b wherever a is played gains, as an affine function of the world
    for a, b in ((0, 1), (1, 0)):
        share = trusting[:, a] / n
        slope = share * (COIN.rewards[b, 0] - COIN.rewards[a, 0])
        gains.append((slope, -share.sum() * (COIN.costs[b] - COIN.costs[a])))
    result = linprog(
        trusting @ COIN.rewards[:, 0] / n,
        A_ub=[slope for slope, _ in gains],
        b_ub=[-constant for _, constant in gains],
        A_eq=[forecasts / n],
        b_eq=[forecasts @ forecasts / n],
        bounds=[(0, 1)] * n,
    )
    assert result.status == 0
    beliefs = result.x[:, None]
    assert abs(world.moments(beliefs)).max() <= 1e-9
    earned = utilities(COIN, beliefs)
    for swap in itertools.product(range(2), repeat=2):
        swapped = trusting @ np.eye(2)[list(swap)]
        assert (swapped * earned).sum() / n <= (trusting * earned).sum() / n + 1e-9

    policy = fit(COIN, world, guarantees.SelfOrthogonal())
    mixtures = policy.predict_proba(forecasts)
    robust, trustful = (mixtures * earned).sum() / n, (trusting * earned).sum() / n
    assert robust > trustful + 0.05
    guaranteed = worst_case(COIN, mixtures, world)
    assert guaranteed == pytest.approx(robust_value(COIN, world), abs=1e-6)
    assert guaranteed > worst_case(COIN, trusting, world) + 0.3


# Section 4.2: guarantees that come from training and recalibration


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dimension", [1, 3])
def test_proposition_self_orthogonality_of_a_linear_head(bias, dimension):
    """Proposition 4.4: least squares on any representation is orthogonal to features and forecasts; a bias adds 1."""
    rng = np.random.default_rng(40 + dimension)
    features = np.tanh(rng.normal(size=(250, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=6))
    outcomes = 0.5 + 0.3 * np.sin(features @ rng.normal(size=(6, dimension))) + 0.1 * rng.normal(size=(250, dimension))
    forecasts = LinearRegression(fit_intercept=bias).fit(features, outcomes).predict(features)
    errors = outcomes - forecasts
    assert abs(features.T @ errors).max() / 250 <= 1e-12
    assert abs(forecasts.T @ errors).max() / 250 <= 1e-12

    low, high = forecasts.min(axis=0) - 1, forecasts.max(axis=0) + 1
    space = prudent.Box(low.tolist(), high.tolist())
    tests = BOTH.evaluate(forecasts, space).values
    moments = tests.T @ errors / 250
    assert abs(moments[1:]).max() <= 1e-12
    if bias:
        assert abs(moments[0]).max() <= 1e-12
    else:
        assert abs(moments[0]).max() > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_proposition_bin_wise_calibration(kind):
    """Proposition 4.5: q* is the bin mean, the action one best response per bin, V* = sum P_j val(m_j)."""
    problem, forecasts = random_problem(kind, 31), random_forecasts(kind, 31, n=40)
    if kind == "interval":
        forecasts[:2, 0] = 0.3, 0.7  # an edge belongs to the bin above it
        guarantee, cell = guarantees.Bins([0, 0.3, 0.7, 1]), np.searchsorted([0.3, 0.7], forecasts[:, 0], "right")
    elif kind == "box":
        guarantee = guarantees.Partition(lambda v: 2 * (v[:, 0] > 0.5) + (v[:, 1] > 0.4))
        cell = 2 * (forecasts[:, 0] > 0.5) + (forecasts[:, 1] > 0.4)
    else:
        guarantee, cell = guarantees.Partition(lambda v: v.argmax(axis=1)), forecasts.argmax(axis=1)
    cells = np.eye(cell.max() + 1)[cell]
    world = world_of(problem, forecasts, cells, weights=np.arange(1, 41))
    mass = cells.T @ world.weights
    means = (cells.T @ (world.weights[:, None] * forecasts)) / mass[:, None]
    expected = float(mass @ utilities(problem, means).max(axis=1))
    policy = fit(problem, world, guarantee)
    assert robust_value(problem, world) == pytest.approx(expected, abs=1e-7)
    assert policy.certificate_.lower == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(solution_of(policy, forecasts, weights=world.weights).beliefs, means[cell], atol=1e-9)
    rule = plug_in(problem, means)[cell]
    np.testing.assert_allclose(policy.predict_proba(forecasts), rule, atol=1e-9)
    assert worst_case(problem, rule, world) == pytest.approx(expected, abs=1e-7)
    assert worst_case(problem, plug_in(problem, forecasts), world) < expected - 1e-3


def test_proposition_bin_wise_calibration_with_a_tie_at_the_mean():
    """Proposition 4.5 with care: any action tied at the bin mean will do if it is constant on the bin."""
    forecasts = np.array([0.2, 0.4, 0.6, 0.8])
    world = world_of(COIN, forecasts, np.ones((4, 1)))
    policy = fit(COIN, world, guarantees.Unbiased())
    assert policy.certificate_.lower == pytest.approx(0.5, abs=1e-12)
    for rule in (np.tile([1.0, 0.0], (4, 1)), np.tile([0.0, 1.0], (4, 1)), policy.predict_proba(forecasts)):
        assert worst_case(COIN, rule, world) == pytest.approx(0.5, abs=1e-7)
    changing = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # each a best response to the belief 1/2
    assert worst_case(COIN, changing, world) == pytest.approx(0.0, abs=1e-7)


def test_refining_bins_leads_from_one_global_action_to_plug_in():
    """After Proposition 4.5: along nested bins the value never falls, from val(mean) to E val(f)."""
    forecasts = np.sort(np.random.default_rng(6).beta(1.5, 2.5, size=60))
    values = []
    for bins in (1, 2, 4, 8, 16, 64, 1024):
        cell = np.clip((forecasts * bins).astype(int), 0, bins - 1)
        occupied = np.unique(cell)
        world = world_of(BIKE, forecasts, (cell[:, None] == occupied) * 1.0)
        policy = fit(BIKE, world, guarantees.Bins(bins))
        value = robust_value(BIKE, world)
        assert policy.certificate_.lower == pytest.approx(value, abs=1e-7)
        values.append(value)
        if bins == 1:
            assert np.unique(policy.predict(forecasts)).size == 1
            assert value == pytest.approx(utilities(BIKE, [forecasts.mean()]).max(), abs=1e-7)
    assert np.diff(values).min() >= -1e-8
    assert values[-1] == pytest.approx(mean_value(BIKE, world), abs=1e-7)
    np.testing.assert_array_equal(policy.predict_proba(forecasts), plug_in(BIKE, forecasts))
    assert values[-1] > values[0] + 1e-3


# Appendix: approximate calibration


@pytest.mark.parametrize("kind", KINDS)
def test_appendix_penalised_dual_equals_the_slackened_value(kind):
    """Theorem B.1 as an equality: max {G - epsilon sum ||lambda_i||} = V_epsilon."""
    problem, forecasts = random_problem(kind, 50), random_forecasts(kind, 50)
    for epsilon in (0.01, 0.05):
        world = world_of(problem, forecasts, one_and_v(forecasts), epsilon)
        value = robust_value(problem, world)
        assert dual_optimum(problem, world) == pytest.approx(value, abs=5e-6)
        policy = fit(problem, world, BOTH, epsilon)
        assert policy.certificate_.lower == pytest.approx(value, abs=accuracy(problem, world))
        values = tilted_game(problem, tilts_of(world, policy.multipliers_))[1]
        assert dual_objective(world, values, policy.multipliers_) == pytest.approx(value, abs=accuracy(problem, world))


@pytest.mark.parametrize("kind", KINDS)
def test_appendix_slack_costs_at_most_epsilon_times_the_multipliers(kind):
    """Theorem B.1: 0 <= V_0 - V_epsilon <= epsilon sum ||lambda_i|| at any dual optimum, so at the smallest one."""
    problem, forecasts = random_problem(kind, 51), random_forecasts(kind, 51)
    exact = world_of(problem, forecasts, one_and_v(forecasts))
    value = robust_value(problem, exact)
    policy = fit(problem, exact, BOTH)
    own = np.linalg.norm(policy.multipliers_, axis=1).sum()
    smallest = dual_optimum(problem, exact, reach=value - 1e-6)
    assert smallest <= own + 1e-4
    losses = []
    for epsilon in (0.001, 0.01, 0.05):
        world = world_of(problem, forecasts, one_and_v(forecasts), epsilon)
        slackened = robust_value(problem, world)
        assert fit(problem, world, BOTH, epsilon).certificate_.lower == pytest.approx(
            slackened, abs=accuracy(problem, world)
        )
        losses.append(value - slackened)
        assert -3e-6 <= losses[-1] <= epsilon * smallest + 5e-6
    assert losses[-1] > 1e-3
    assert losses[0] > 0.5 * 0.001 * smallest  # the bound is the right order: to first order it is attained


@pytest.mark.parametrize("kind", ["interval", "box"])
def test_appendix_bin_wise_slack(kind):
    """Proposition B.3, with the ball cut at the space: V_epsilon = sum P_j min val, and its bounds by J L epsilon."""
    problem, forecasts = random_problem(kind, 60), random_forecasts(kind, 60, n=30)
    cell = np.searchsorted([0.25, 0.6], forecasts[:, 0], "right")
    cells = np.eye(3)[cell]
    if kind == "interval":
        guarantee = guarantees.Bins([0, 0.25, 0.6, 1])
    else:
        guarantee = guarantees.Partition(lambda v: np.searchsorted([0.25, 0.6], v[:, 0], "right"))
    for epsilon in (0.01, 0.04, 0.15):
        world = world_of(problem, forecasts, cells, epsilon)
        mass = cells.T @ world.weights
        means = (cells.T @ (world.weights[:, None] * forecasts)) / mass[:, None]
        least = []
        for share, mean in zip(mass, means, strict=True):
            point = cp.Variable(problem.dimension)
            near = [cp.norm(point - mean, 2) <= epsilon / share, point >= 0, point <= 1]
            program = cp.Problem(cp.Minimize(cp.max(problem.rewards @ point - problem.costs)), near)
            least.append(program.solve(solver=cp.CLARABEL))
        expected = float(mass @ np.array(least))
        value = robust_value(problem, world)
        assert value == pytest.approx(expected, abs=5e-6)
        policy = fit(problem, world, guarantee, epsilon)
        assert policy.certificate_.lower == pytest.approx(expected, abs=accuracy(problem, world))
        assert worst_case(problem, policy.predict_proba(forecasts), world) == pytest.approx(expected, abs=1e-5)
        centre = float(mass @ utilities(problem, means).max(axis=1))
        largest = np.linalg.norm(problem.rewards, axis=1).max()
        assert centre - 3 * largest * epsilon - 5e-6 <= value <= centre + 5e-6
    assert centre - value > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("richer", [False, True])
def test_appendix_plug_in_is_nearly_optimal_under_slack(kind, richer):
    """Theorem B.2: with the regions in H up to epsilon no policy guarantees m L epsilon more than plug-in."""
    problem, forecasts = random_problem(kind, 70), random_forecasts(kind, 70, n=25)
    trusting = plug_in(problem, forecasts)
    tests, guarantee = trusting, guarantees.DecisionCalibrated(problem)
    if richer:
        tests, guarantee = np.hstack([tests, forecasts]), guarantee & guarantees.SelfOrthogonal()
    rng = np.random.default_rng(71)
    largest = np.linalg.norm(problem.rewards, axis=1).max()
    for epsilon in (0.005, 0.05):
        world = world_of(problem, forecasts, tests, epsilon)
        policy = fit(problem, world, guarantee, epsilon)
        assert policy.certificate_.lower == pytest.approx(robust_value(problem, world), abs=accuracy(problem, world))
        own = worst_case(problem, trusting, world)
        found = prudent.worst_case(
            prudent.PlugInPolicy(problem), forecasts, guarantee=guarantee, slack=epsilon, weights=world.weights
        )
        assert found.value == pytest.approx(own, abs=accuracy(problem, world))
        others = [
            policy.predict_proba(forecasts),
            rng.dirichlet(np.ones(4), size=25),
            np.eye(4)[rng.integers(4, size=25)],
            prudent.SafetyPolicy(problem).predict_proba(forecasts),
        ]
        for mixtures in others:
            assert own >= worst_case(problem, mixtures, world) - problem.n_actions * largest * epsilon - 1e-5
        assert own >= mean_value(problem, world) - problem.n_actions * largest * epsilon - 1e-5


# What must hold for any guarantee: order, units, weights


def assert_same_mixtures(one, other, epsilon, *policies):
    """Compare what two fits play: as sharply as their certificates close, or to the root of that under slack.

    A linear program moves its multipliers by a multiple of what its gap leaves open, a flat one by its root.
    """
    open_share = sum(policy.certificate_.gap / policy.problem.utility_range for policy in policies)
    np.testing.assert_allclose(one, other, atol=np.sqrt(1e-6) if epsilon else 1e-9 + 1e3 * open_share)


@pytest.mark.parametrize("kind", KINDS)
def test_more_guarantees_never_lower_the_value(kind):
    """Q shrinks as H grows, from safety to full calibration."""
    problem, forecasts = random_problem(kind, 80), random_forecasts(kind, 80, n=25)
    ladder = [
        guarantees.Nothing(),
        guarantees.Unbiased(),
        BOTH,
        guarantees.Polynomial(2),
        guarantees.Polynomial(2) & guarantees.Classwise(3),
        guarantees.Polynomial(2) & guarantees.Classwise(3) & guarantees.UtilityCalibrated(problem),
        guarantees.FullyCalibrated(),
    ]
    certificates = [prudent.RobustPolicy(problem, guarantee).fit(forecasts).certificate_ for guarantee in ladder]
    tolerance = 1e-6 * problem.utility_range
    for weaker, stronger in itertools.pairwise(certificates):
        assert weaker.lower <= stronger.upper + 1e-9
        assert weaker.gap <= tolerance
    assert certificates[-1].lower > certificates[0].upper + 0.05
    assert certificates[-2].lower == pytest.approx(certificates[-1].lower, abs=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_more_slack_never_raises_the_value(kind, norm):
    """Q grows with the slack, from the exact value to safety."""
    problem, forecasts = random_problem(kind, 81), random_forecasts(kind, 81, n=25)
    certificates = [
        prudent.RobustPolicy(problem, BOTH, slack=prudent.Slack(radius, norm)).fit(forecasts).certificate_
        for radius in (0.0, 0.001, 0.01, 0.1, 0.5, 2.0)
    ]
    tolerance = 1e-6 * problem.utility_range
    for tighter, looser in itertools.pairwise(certificates):
        assert looser.lower <= tighter.upper + 1e-9
        assert looser.gap <= tolerance
    assert certificates[0].lower > certificates[2].upper
    assert certificates[-1].lower == pytest.approx(prudent.SafetyPolicy(problem).certificate_.lower, abs=tolerance)


@pytest.mark.parametrize("epsilon", [0.0, 0.03])
def test_rescaled_outcome_units_change_nothing_but_the_units(epsilon):
    """Outcomes in units seven times as large, slack with them: same value and mixtures."""
    problem, forecasts = random_problem("box", 90), random_forecasts("box", 90)
    scaled = prudent.DecisionProblem(problem.rewards / 7, problem.costs, space=prudent.Box(0, 7))
    base = prudent.RobustPolicy(problem, BOTH, slack=epsilon).fit(forecasts)
    policy = prudent.RobustPolicy(scaled, BOTH, slack=7 * epsilon).fit(7 * forecasts)
    assert policy.certificate_.lower == pytest.approx(base.certificate_.lower, abs=1e-7 * problem.utility_range)
    world = world_of(problem, forecasts, one_and_v(forecasts), epsilon)
    assert policy.certificate_.lower == pytest.approx(robust_value(problem, world), abs=accuracy(problem, world))
    assert_same_mixtures(policy.predict_proba(7 * forecasts), base.predict_proba(forecasts), epsilon, policy, base)


@pytest.mark.parametrize(
    ("scale", "shift"),
    [
        ([40.0, 0.1], [0.0, 0.0]),
        ([1.0, 1.0], [1000.0, -1000.0]),
        ([1e6, 0.01], [0.0, 0.0]),  # a count next to a rate
        ([1.0, 1.0], [1e6, 1e6]),  # a narrow range far from zero
    ],
)
def test_each_outcome_coordinate_may_have_its_own_units(scale, shift):
    """With {1, v} as tests any change of units, coordinate by coordinate, leaves value and guarantee as they are."""
    problem, forecasts = random_problem("box", 90), random_forecasts("box", 90)
    world = world_of(problem, forecasts, one_and_v(forecasts))
    value = robust_value(problem, world)
    rewards = problem.rewards / scale
    space = prudent.Box(shift, np.add(shift, scale).tolist())
    changed = prudent.DecisionProblem(rewards, problem.costs + rewards @ shift, space=space)
    policy = prudent.RobustPolicy(changed, BOTH).fit(np.array(shift) + forecasts * scale)
    played = policy.predict_proba(np.array(shift) + forecasts * scale)
    assert worst_case(problem, played, world) == pytest.approx(value, abs=accuracy(problem, world))
    assert policy.certificate_.lower == pytest.approx(value, abs=accuracy(problem, world))
    assert policy.certificate_.gap <= 1e-6 * problem.utility_range


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, 0.03])
def test_positive_affine_utilities_give_the_affine_value_and_the_same_mixtures(kind, epsilon):
    """With a u + b for u, a > 0, the value becomes a V + b and the policy stays."""
    problem, forecasts = random_problem(kind, 91), random_forecasts(kind, 91)
    factor, offset = 250.0, -17.0
    changed = prudent.DecisionProblem(factor * problem.rewards, factor * problem.costs - offset, space=problem.space)
    base = prudent.RobustPolicy(problem, BOTH, slack=epsilon).fit(forecasts)
    policy = prudent.RobustPolicy(changed, BOTH, slack=epsilon).fit(forecasts)
    world = world_of(changed, forecasts, one_and_v(forecasts), epsilon)
    assert policy.certificate_.lower == pytest.approx(
        factor * base.certificate_.lower + offset, abs=1e-7 * changed.utility_range
    )
    assert robust_value(changed, world) == pytest.approx(
        policy.certificate_.lower, abs=factor * accuracy(problem, world)
    )
    assert_same_mixtures(policy.predict_proba(forecasts), base.predict_proba(forecasts), epsilon, policy, base)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, 0.03])
def test_weights_are_repeated_rows(kind, epsilon):
    """A row of weight three is three equal rows, and a row of weight zero is none."""
    problem, forecasts = random_problem(kind, 92), random_forecasts(kind, 92)
    counts = np.random.default_rng(92).integers(0, 4, size=20)
    weighted = prudent.RobustPolicy(problem, BOTH, slack=epsilon).fit(forecasts, sample_weight=counts)
    repeated = prudent.RobustPolicy(problem, BOTH, slack=epsilon).fit(np.repeat(forecasts, counts, axis=0))
    equal = prudent.RobustPolicy(problem, BOTH, slack=epsilon).fit(forecasts)
    world = world_of(problem, forecasts[counts > 0], one_and_v(forecasts[counts > 0]), epsilon, counts[counts > 0])
    assert weighted.certificate_.lower == pytest.approx(repeated.certificate_.lower, abs=1e-7 * problem.utility_range)
    assert weighted.certificate_.lower == pytest.approx(robust_value(problem, world), abs=accuracy(problem, world))
    assert_same_mixtures(
        weighted.predict_proba(forecasts), repeated.predict_proba(forecasts), epsilon, weighted, repeated
    )
    assert abs(weighted.certificate_.lower - equal.certificate_.lower) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, 0.03])
def test_permuting_rows_changes_nothing(kind, epsilon):
    """The sample is a distribution: its order carries no information."""
    problem, forecasts = random_problem(kind, 93), random_forecasts(kind, 93)
    rng = np.random.default_rng(93)
    order, weights = rng.permutation(20), rng.random(20)
    one = prudent.RobustPolicy(problem, BOTH, slack=epsilon).fit(forecasts, sample_weight=weights)
    other = prudent.RobustPolicy(problem, BOTH, slack=epsilon).fit(forecasts[order], sample_weight=weights[order])
    world = world_of(problem, forecasts, one_and_v(forecasts), epsilon, weights)
    shuffled = replace(world, forecasts=world.forecasts[order], weights=world.weights[order], tests=world.tests[order])
    assert other.certificate_.lower == pytest.approx(one.certificate_.lower, abs=1e-7 * problem.utility_range)
    assert other.certificate_.lower == pytest.approx(robust_value(problem, shuffled), abs=accuracy(problem, world))
    assert_same_mixtures(other.predict_proba(forecasts), one.predict_proba(forecasts), epsilon, other, one)
