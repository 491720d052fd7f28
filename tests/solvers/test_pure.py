"""The best deterministic rule against trying them all, and its dual along a line against every breakpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
import reference
from prudent import guarantees
from prudent.cases.memory_rows import Ambiguity
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.slack import SlackSet
from prudent.solvers import Game, pure_actions
from prudent.solvers.pure import best_multiplier, pure_envelope
from solutions import solution_of


def tiny_world(seed: int, d: int, simplex: bool, n: int, m: int, k: int):
    rng = np.random.default_rng(seed)
    rewards, costs = rng.normal(size=(m, d)), 0.4 * rng.normal(size=m)
    forecasts = rng.dirichlet(np.ones(d), size=n) if simplex else rng.random((n, d))
    weights = rng.random(n) + 0.2
    weights /= weights.sum()
    tests = rng.normal(size=(40, d))

    def vector_test(j: int):
        return lambda v: np.sin(3 * v @ tests[j])[:, None] * tests[j + 10]

    guarantee = guarantees.FromFunctions([vector_test(j) for j in range(k)])
    tensor = np.stack([vector_test(j)(forecasts) for j in range(k)], axis=1)
    allowed = reference.Allowed("exact", np.zeros(k), np.zeros(k), np.arange(k))
    world = reference.World(np.zeros(d), np.ones(d), simplex, forecasts, weights, tensor, allowed)
    problem = prudent.DecisionProblem(rewards, costs, space=prudent.Simplex(d) if simplex else None)
    return problem, guarantee, rewards, costs, world


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=() if seed < 4 else pytest.mark.slow) for seed in range(12)])
def test_one_multiplier_of_one_coordinate_is_exact(seed: int) -> None:
    problem, guarantee, rewards, costs, world = tiny_world(seed, 1, False, n=4, m=3, k=1)
    rule = prudent.RobustPolicy(problem, guarantee, randomize=False).fit(world.forecasts, sample_weight=world.weights)
    best = reference.best_pure_value(rewards, costs, world)
    assert rule.certificate_.status == prudent.solvers.Status.OPTIMAL
    assert rule.certificate_.lower == pytest.approx(best, abs=1e-7)
    played = rule.predict_proba(world.forecasts)
    assert reference.worst_case(rewards, costs, played, world) == pytest.approx(best, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "k"), [([(1, False), (2, False), (3, True)], 3), ([(2, False), (3, True)], 1)])
def test_other_searches_are_certified_and_nearly_always_best(kinds: list[tuple[int, bool]], k: int) -> None:
    """Never above the best rule, always what the rule secures; the search finds the best in nearly all."""
    found = 0
    for seed in range(15):
        d, simplex = kinds[seed % len(kinds)]
        problem, guarantee, rewards, costs, world = tiny_world(seed, d, simplex, n=4, m=3, k=k)
        rule = prudent.RobustPolicy(problem, guarantee, randomize=False).fit(
            world.forecasts, sample_weight=world.weights
        )
        best = reference.best_pure_value(rewards, costs, world)
        secured = reference.worst_case(rewards, costs, rule.predict_proba(world.forecasts), world)
        assert rule.certificate_.lower == pytest.approx(secured, abs=1e-6)
        assert rule.certificate_.lower <= best + 1e-6
        if rule.certificate_.status == prudent.solvers.Status.OPTIMAL:
            assert rule.certificate_.lower == pytest.approx(best, abs=1e-5)
        found += rule.certificate_.lower >= best - 1e-6
    assert found >= 12


def test_slack_and_weights_with_one_multiplier() -> None:
    rng = np.random.default_rng(4)
    problem = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
    forecasts, weights = rng.random((5, 1)), rng.random(5) + 0.1
    weights /= weights.sum()
    for slack in (0.01, 0.1, 0.5):
        rule = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack=slack, randomize=False)
        rule.fit(forecasts, sample_weight=weights)
        allowed = reference.Allowed("box", np.zeros(1), np.array([slack]), np.zeros(1, dtype=int))
        world = reference.World(np.zeros(1), np.ones(1), False, forecasts, weights, forecasts[:, None, :], allowed)
        best = reference.best_pure_value(problem.rewards, problem.costs, world)
        assert rule.certificate_.lower == pytest.approx(best, abs=1e-7)


def test_where_mixing_is_not_needed_the_rule_is_proven_best() -> None:
    problem = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
    forecasts = np.random.default_rng(0).random(200)
    rule = prudent.RobustPolicy(problem, guarantees.Bins(5), randomize=False).fit(forecasts)
    assert rule.certificate_.status == prudent.solvers.Status.OPTIMAL
    assert rule.certificate_.gap < 1e-9
    assert "needs no mixing" in rule.certificate_.message


def test_status_is_honest_where_nothing_is_proven() -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    forecasts = (np.arange(200) + 0.5) / 200
    rule = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True), randomize=False).fit(forecasts)
    assert rule.certificate_.status == prudent.solvers.Status.NOT_PROVEN
    assert "is not" in rule.certificate_.message
    assert rule.certificate_.upper > rule.certificate_.lower


def test_actions_are_the_best_ones_where_there_are_many() -> None:
    points = np.linspace(0, 1, 40)
    game = Game.of_problem(prudent.DecisionProblem(2 * points - 0.5, points**2))
    tilts = np.random.default_rng(0).normal(size=(300, 1))
    direct = (game.offsets + game.space.support_minimum(game.rewards + tilts[:, None, :])).argmax(axis=1)
    assert pure_actions(game, tilts).tolist() == direct.tolist()


def test_a_deterministic_rule_for_a_nearly_flat_action_has_an_allowed_world() -> None:
    problem = prudent.DecisionProblem([0.1 + 0.2 - 0.3, 1.0], [0.0, 0.6])
    forecasts = np.random.default_rng(0).random(20_000)
    rule = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), randomize=False).fit(forecasts)
    moment = float((forecasts * (solution_of(rule, forecasts).beliefs[:, 0] - forecasts)).mean())
    assert abs(moment) <= 1e-11


def test_a_batch_and_its_rows_play_the_same_deterministic_rule() -> None:
    """Long and short batches sum in one order, so that ties fall the same way."""
    rng = np.random.default_rng(1)
    problem = prudent.DecisionProblem(rng.normal(size=(6, 4)), 0.3 * rng.normal(size=6))
    forecasts = rng.random((400, 4))
    rule = prudent.RobustPolicy(problem, guarantees.Unbiased(), slack=0.01, randomize=False).fit(forecasts)
    together = rule.predict_proba(forecasts)
    alone = np.vstack([rule.predict_proba(forecasts[i : i + 1]) for i in range(400)])
    np.testing.assert_array_equal(together, alone)


def build(box, rewards, offsets, forecasts, tests, weights=None, center=0.0, radius=0.0, vector=False):
    rewards, offsets, forecasts, tests = (np.asarray(a, dtype=float) for a in (rewards, offsets, forecasts, tests))
    weights = np.ones(tests.size) if weights is None else np.asarray(weights, dtype=float)
    space = prudent.Box(*box)
    if vector:
        evaluated = EvaluatedTests.vector_layout(["b"], np.ones((1, 1))).with_rows(tests[:, None])
    else:
        evaluated = EvaluatedTests.scalar_layout(["b"], space).with_rows(tests[:, None])
    slack = SlackSet(np.array([center]), np.array([radius]), np.zeros(1, dtype=np.int64))
    game = Game(rewards[None, :, None], offsets[None], space, shared=True)
    return game, Ambiguity(space, forecasts[:, None], weights / weights.sum(), evaluated, slack)


def best_pure_multiplier(game, ambiguity):
    envelope = pure_envelope(game)
    return best_multiplier(envelope.concave, envelope.convex, ambiguity)


def dual(game, ambiguity, positions):
    """The pure dual from its definition: the worse end of the box, then the best action, row by row."""
    rewards, offsets = game.rewards[0, :, 0], game.offsets[0]
    ends = np.array([bound[0] for bound in game.space.bounds])
    utilities = offsets[:, None] + rewards[:, None] * ends  # (m, 2)
    values = []
    for x in np.atleast_1d(positions):
        tilts = x * ambiguity.tests.values.reshape(-1)
        moved = utilities + tilts[:, None, None] * (ends - ambiguity.forecasts)[:, None, :]  # (n, m, 2)
        penalty = ambiguity.slack.center[0] * x + ambiguity.slack.radius[0] * abs(x)
        values.append(float(ambiguity.weights @ moved.min(axis=2).max(axis=1)) - penalty)
    return np.array(values)


def breakpoints(game, ambiguity):
    tests = ambiguity.tests.values.reshape(-1)
    tests = tests[tests != 0]
    return np.unique(np.append(-game.rewards[0] / tests, 0.0))


def assert_highest(game, ambiguity):
    found = best_pure_multiplier(game, ambiguity)
    candidates = breakpoints(game, ambiguity)
    best = dual(game, ambiguity, candidates)
    low, high = (float(bound[0]) for bound in game.space.bounds)
    reach = (high - low) * np.abs(game.rewards).max() + np.abs(game.offsets + low * game.rewards[:, :, 0]).max()
    farthest = max(abs(found), abs(candidates[best.argmax()]))
    reach += (high - low) * farthest * float(ambiguity.weights @ np.abs(ambiguity.tests.values.reshape(-1)))
    assert dual(game, ambiguity, found)[0] >= best.max() - 1e-13 * reach
    return found


def random_instance(seed: int):
    rng = np.random.default_rng(seed)
    n, m = int(rng.choice([1, 2, 5, 30, 150])), int(rng.choice([1, 2, 3, 6, 15]))
    low, high = [(0, 1), (-3, 1000), (10, 10.5), (-1, 1), (-2, 0)][rng.integers(5)]
    rewards = [rng.normal(size=m), rng.integers(-2, 3, m), np.full(m, rng.normal())][rng.integers(3)] / (high - low)
    offsets = [0.4 * rng.normal(size=m), rng.integers(-2, 3, m) / 2, np.zeros(m)][rng.integers(3)] - rewards * low
    shares = [rng.random(n), rng.integers(0, 5, n) / 4, rng.integers(0, 2, n), rng.beta(0.1, 0.1, n)][rng.integers(4)]
    forecasts = np.clip(low + (high - low) * shares, low, high)
    wild = rng.normal(size=n) * 10.0 ** rng.integers(-8, 3, n)
    tests = [forecasts, rng.normal(size=n), rng.integers(-2, 3, n), np.ones(n), wild][rng.integers(5)]
    weights = [None, rng.random(n) + 0.01, 10.0 ** rng.integers(-9, 1, n)][rng.integers(3)]
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    outcomes = rng.uniform(low, high, n)
    center = float((share * tests) @ (outcomes - forecasts)) if rng.random() < 0.4 else 0.0
    radius = float(rng.random() * 0.1 * (share @ np.abs(tests)) * (high - low)) if rng.random() < 0.4 else 0.0
    return build((low, high), rewards, offsets, forecasts, tests, weights, center, radius, rng.random() < 0.3)


@pytest.mark.parametrize("seed", range(60))
def test_no_breakpoint_is_higher(seed: int) -> None:
    assert_highest(*random_instance(seed))


@pytest.mark.parametrize("seed", range(6))
def test_no_breakpoint_is_higher_among_many(seed: int) -> None:
    """More breakpoints than are looked at before the first bound: most of them are never evaluated."""
    rng = np.random.default_rng(seed)
    n, m = 1100, 4
    tests = [rng.normal(size=n), rng.random(n), rng.integers(1, 400, n) / 7][seed % 3]
    weights = [None, rng.random(n) + 0.01][seed % 2]
    steps = np.linspace(0, 1, m)
    assert_highest(*build((0, 1), 2 * steps - 0.5, -(steps**2), rng.random(n), tests, weights))


quarters = st.integers(-8, 8).map(lambda k: k / 4)
shares = st.integers(0, 4).map(lambda k: k / 4)


@settings(deadline=None, max_examples=150)
@given(
    actions=st.lists(st.tuples(quarters, quarters), min_size=1, max_size=6),
    rows=st.lists(st.tuples(shares, quarters, st.sampled_from([1, 1, 2, 7])), min_size=1, max_size=8),
    box=st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (-3.0, 1000.0)]),
    radius=st.sampled_from([0.0, 0.0, 0.125]),
    world=st.one_of(st.none(), st.lists(shares, min_size=8, max_size=8)),
)
def test_ties_everywhere(actions, rows, box, radius, world) -> None:
    """Coarse numbers make repeated and dominated actions, repeated rows, kinks at zero and level peaks."""
    low, high = box
    rewards, offsets = np.array(actions).T
    part, tests, weights = np.array(rows).T
    center = 0.0 if world is None else float(weights / weights.sum() * tests @ (world[: len(rows)] - part))
    ready = build(box, rewards, offsets, low + (high - low) * part, tests, weights, center * (high - low), radius)
    assert_highest(*ready)
    game = ready[0]
    tilts = np.concatenate([np.arange(-20, 21) / 8, -rewards])[:, None]
    values = game.offsets + game.space.support_minimum(game.rewards + tilts[:, None, :])
    if high == 1.0:  # widths are powers of two and nothing is rounded; an action may be best at a single tilt
        played = np.take_along_axis(values, pure_actions(game, tilts)[:, None], axis=1)[:, 0]
        assert played.tolist() == values.max(axis=1).tolist()


@pytest.mark.parametrize("seed", range(40))
def test_actions_are_best_at_every_tilt(seed: int) -> None:
    game, _ = random_instance(seed)
    envelope = pure_envelope(game)
    reach = 1 + np.abs(game.rewards).max()
    near = [np.nextafter(envelope.thresholds, side) for side in (-np.inf, np.inf)]
    tilts = np.concatenate(
        [np.linspace(-2 * reach, 2 * reach, 500), envelope.thresholds, *near, envelope.concave, [0.0]]
    )
    utilities = game.offsets[0] + game.space.support_minimum(game.rewards + tilts[:, None, None])
    played = utilities[np.arange(tilts.size), pure_actions(game, tilts[:, None])]
    assert played == pytest.approx(utilities.max(axis=1), abs=1e-12 * np.abs(utilities).max())


@pytest.mark.parametrize("seed", range(6))
def test_many_kinks_at_the_same_breakpoints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    side = [-1, 1][seed % 2]
    rewards, offsets = -np.sort(side * 0.1 * np.arange(1, 31)), np.cumsum(rng.random(30)) * 0.05
    tests, forecasts = 0.1 * rng.integers(1, 60, size=60) * rng.choice([-1, 1], size=60), rng.random(60)
    center = float(tests @ (rng.random(60) - forecasts)) / 60
    assert_highest(*build((0, 1), rewards, offsets, forecasts, tests, center=center))


def test_a_level_top_is_searched_to_the_end() -> None:
    """Kinks of both kinds cancel here: a third of all rows lie under a top that is level up to noise."""
    n = 1000
    tests = 1 / (1 / 0.3 - (1 / 0.3 - 1) * (np.arange(n) + 0.5) / n)
    ready = build((0, 1), [-1.0, -3.0], [0.0, 1.0], np.full(n, 0.5), tests)
    slope = np.diff(dual(*ready, [2.1, 2.9]))[0] / 0.8
    found = assert_highest(*build((0, 1), [-1.0, -3.0], [0.0, 1.0], np.full(n, 0.5), tests, center=slope))
    assert 1.99 < found < 3.01


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_of_equal_peaks_the_nearest_is_taken(side: float) -> None:
    game, ambiguity = build((0, 1), [-1.0, -3.0], [0.0, 1.0], [0.5], [side])
    assert dual(game, ambiguity, [0.0, side, 3 * side]).tolist() == [-1.0, -0.5, -0.5]
    assert best_pure_multiplier(game, ambiguity) == side


def test_tests_of_very_different_size() -> None:
    """Breakpoints beyond the range of floats are no reason to warn or fail."""
    tests = np.array([1e60, 1.0, -1e-60, 5e-324, 0.0])
    game, ambiguity = build((0, 1), [1.0, -1.0], [0.0, 1.0], [0.2, 0.7, 0.4, 0.9, 0.5], tests)
    found = best_pure_multiplier(game, ambiguity)
    reachable = [-1e-60, 0.0, 1e-60]
    assert dual(game, ambiguity, found)[0] >= dual(game, ambiguity, reachable).max() - 1e-12


@pytest.mark.parametrize("tests", [np.zeros(3), np.array([0.0, 0.0, 1.0])])
def test_tests_that_vanish(tests) -> None:
    ready = build((0, 1), [1.0, -1.0], [0.0, 1.0], [0.2, 0.7, 0.4], tests)
    found = assert_highest(*ready)
    assert found == 0.0 or tests.any()


def test_equal_weights_are_weights() -> None:
    """Counting rows, adding up equal weights and a read-only view of one number are the same."""
    rng = np.random.default_rng(3)
    forecasts = rng.random(500)
    game, plain = build((0, 1), [0.2, 0.9, 1.4], [0.0, -0.3, -0.7], forecasts, forecasts)
    view = Ambiguity(plain.space, plain.forecasts, np.broadcast_to(1 / 500, 500), plain.tests, plain.slack)
    nearly = plain.weights * np.where(np.arange(500) == 7, 1 + 1e-14, 1.0)
    added = Ambiguity(plain.space, plain.forecasts, nearly, plain.tests, plain.slack)
    assert best_pure_multiplier(game, view) == best_pure_multiplier(game, plain)
    assert best_pure_multiplier(game, added) == best_pure_multiplier(game, plain)


def test_the_policy_guarantees_what_the_dual_promises() -> None:
    rng = np.random.default_rng(5)
    forecasts, weights = rng.uniform(-3, 1000, size=2000), rng.random(2000)
    problem = prudent.DecisionProblem([0.002, 0.009, 0.014], [0.0, 3.0, 7.0], space=prudent.Box(-3, 1000))
    for slack in (0.0, 5.0):
        rule = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack=slack, randomize=False)
        rule.fit(forecasts, sample_weight=weights)
        game, ambiguity = build(
            (-3, 1000), problem.rewards[:, 0], -problem.costs, forecasts, forecasts, weights, 0.0, slack * 1000
        )
        best = dual(game, ambiguity, breakpoints(game, ambiguity)[::7]).max()
        promised = dual(game, ambiguity, rule.multipliers_.ravel())[0]
        assert promised >= best - 1e-9
        assert rule.certificate_.lower == pytest.approx(promised, abs=1e-9)
        assert rule.certificate_.lower <= promised + 1e-9
