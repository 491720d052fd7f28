"""Rules within a capacity, against a program that shares no code; and everything else that knows about capacity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import prudent
import reference
from instances import Instance, random_instance
from prudent.errors import InputError
from prudent.policies.capacity import within

CASES = 500


def random_capacity(rng: np.random.Generator, problem: prudent.DecisionProblem, used: np.ndarray) -> dict:
    """One to three resources; some bind and some do not, and some rule keeps to all."""
    m, count = problem.n_actions, int(rng.integers(1, 4))
    uses = rng.random((count, m)).round(2) if rng.random() < 0.5 else (rng.random((count, m)) < 0.5) * 1.0
    uses[:, rng.integers(m)] = 0.0 if rng.random() < 0.7 else uses.min(axis=1)
    share = rng.choice([0.0, 0.3, 0.7, 0.95, 1.5], p=[0.05, 0.25, 0.3, 0.3, 0.1], size=count)
    mixture = rng.dirichlet(np.ones(m))
    limits = np.maximum(uses @ used * share, np.minimum(uses @ mixture, uses @ used))
    if count == 1:
        limits = np.maximum(uses @ used * share, uses.min(axis=1))
    names = [f"resource {j}" for j in range(count)]
    return {
        name: (dict(zip(problem.actions, use.tolist(), strict=True)), float(limit))
        for name, use, limit in zip(names, uses, limits, strict=True)
    }


def matrices(problem: prudent.DecisionProblem, capacity: dict) -> tuple[np.ndarray, np.ndarray]:
    uses = [[use[action] for action in problem.actions] for use, _ in capacity.values()]
    return np.array(uses), np.array([limit for _, limit in capacity.values()])


def check(instance: Instance, capacity: dict, criterion: str) -> bool:
    """Compare with the reference; return whether a capacity binds."""
    world, problem, unit = instance.world, instance.problem, instance.range
    given = {"guarantee": instance.guarantee, "slack": instance.slack, "criterion": criterion}
    policy = prudent.RobustPolicy(problem, capacity=capacity, **given)
    policy.fit(world.forecasts, instance.outcomes, sample_weight=world.weights)
    uses, limits = matrices(problem, capacity)
    in_use = None
    if criterion == "improvement":
        follow = prudent.RobustPolicy(problem, "fully-calibrated", capacity=capacity)
        in_use = follow.fit(world.forecasts, sample_weight=world.weights).predict_proba(world.forecasts)
        assert (uses @ (world.weights @ in_use) <= limits + 1e-9).all()
    value, _ = reference.capacity_value(instance.rewards, instance.costs, world, uses, limits, in_use)
    found, accuracy = policy.certificate_, 2e-7 * unit
    assert found.lower <= value + accuracy, instance.label
    assert found.upper >= value - accuracy, instance.label
    assert found.gap <= 1e-6 * unit, f"{instance.label}: {found}"
    played = policy.predict_proba(world.forecasts)
    used, prices = uses @ (world.weights @ played), np.array(list(policy.shadow_prices_.values()))
    assert (used <= limits + 1e-9).all(), instance.label
    assert np.abs(used - limits)[prices > 1e-6 * unit].max(initial=0.0) <= 1e-9 or found.upper <= 1e-8 * unit
    gained = played if in_use is None else played - in_use
    secured = reference.worst_case(instance.rewards, instance.costs, gained, world)
    assert secured >= found.lower - accuracy, instance.label
    if criterion == "utility":
        for number, price in enumerate(prices.tolist()):
            check_price(instance, uses, limits, number, value, price)
    return bool((prices > 0).any())


def check_price(
    instance: Instance, uses: np.ndarray, limits: np.ndarray, number: int, value: float, price: float
) -> None:
    """Where both slopes of the value in a limit are the same, the price is that slope."""
    step = 1e-4 * max(float(np.ptp(uses[number])), 1e-3)
    always = (uses <= uses.min(axis=1, keepdims=True)).all(axis=0).any()  # one action uses least of everything
    if limits[number] - step < uses[number].min() or np.ptp(uses[number]) == 0 or not always:
        return
    moved = step * np.eye(len(limits))[number]
    above, below = (
        reference.capacity_value(instance.rewards, instance.costs, instance.world, uses, limits + side * moved)[0]
        for side in (1, -1)
    )
    slopes = np.array([above - value, value - below]) / step
    accuracy = 1e-2 * instance.range
    assert slopes.min() - accuracy <= price <= slopes.max() + accuracy, instance.label
    if abs(slopes[0] - slopes[1]) <= 1e-3 * instance.range:
        assert abs(price - slopes.mean()) <= 2e-3 * instance.range, instance.label


def case(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = random_instance(int(rng.integers(1 << 30)))
    while instance.rewards.shape[1] > 3 or len(instance.costs) == 1:
        instance = random_instance(int(rng.integers(1 << 30)))
    free = prudent.RobustPolicy(instance.problem, instance.guarantee, slack=instance.slack)
    free.fit(instance.world.forecasts, instance.outcomes, sample_weight=instance.world.weights)
    used = instance.world.weights @ free.predict_proba(instance.world.forecasts)
    capacity = random_capacity(rng, instance.problem, used)
    criterion = "utility" if free.multipliers_ is None or rng.random() < 0.6 else "improvement"
    check(instance, capacity, criterion)


@pytest.mark.parametrize("seed", range(48))
def test_random_capacities_agree_with_the_reference(seed: int) -> None:
    case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(48, CASES))
def test_more_random_capacities_agree_with_the_reference(seed: int) -> None:
    case(seed)


TREAT = prudent.DecisionProblem([0.0, 1.0, 0.6], [0.0, 0.4, 0.15], actions=["wait", "treat", "call"], unit="EUR")
CARE = prudent.DecisionProblem.from_payoffs(
    [[0, -10, -4], [-1, -1, -2], [-2, -1.5, 0]], actions=["leave", "treat", "refer"]
)


def cases_of(problem: prudent.DecisionProblem, n: int = 3000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.beta(2, 3, size=n) if problem is TREAT else rng.dirichlet([2, 2, 2], size=n)


def frame_of(problem: prudent.DecisionProblem, forecasts: np.ndarray) -> tuple[pl.DataFrame, list[str]]:
    columns = forecasts.reshape(len(forecasts), -1).T
    names = [f"v{j}" for j in range(len(columns))]
    return pl.DataFrame({"id": np.arange(len(forecasts)), **dict(zip(names, columns, strict=True))}), names


def moments_of_shifted(problem: prudent.DecisionProblem, forecasts: np.ndarray) -> np.ndarray:
    """What the tests ``v`` have as moments if outcomes are two thirds nearer to the first corner than forecasts."""
    points = forecasts.reshape(len(forecasts), -1)
    corner = np.eye(points.shape[1])[0] if problem is CARE else np.zeros(1)
    return points.T @ ((corner - points) * 2 / 3) / len(points)


def make(problem: prudent.DecisionProblem, guarantee: str, criterion: str = "utility") -> prudent.RobustPolicy:
    slack: Any = 0.0
    if criterion == "improvement":
        slack = prudent.Slack(0.002, "linf", center=moments_of_shifted(problem, cases_of(problem)))
    return prudent.RobustPolicy(problem, guarantee, criterion=criterion, slack=slack, capacity={"treat": 0.1})


SITUATIONS = [
    pytest.param(problem, guarantee, criterion, id=f"{name}-{guarantee}-{criterion}")
    for name, problem in (("one coordinate", TREAT), ("three classes", CARE))
    for guarantee, criterion in (
        ("self-orthogonal", "utility"),
        ("fully-calibrated", "utility"),
        ("self-orthogonal", "improvement"),
    )
]


@pytest.mark.parametrize("problem", [TREAT, CARE])
@pytest.mark.parametrize("guarantee", ["self-orthogonal", "unbiased+self-orthogonal", "fully-calibrated"])
def test_use_is_exactly_the_capacity_on_thousands_of_rows(problem: prudent.DecisionProblem, guarantee: str) -> None:
    forecasts = cases_of(problem, 6000)
    policy = make(problem, guarantee).fit(forecasts)
    assert policy.certificate_.status == "optimal"
    assert policy.predict_proba(forecasts)[:, 1].mean() == pytest.approx(0.1, abs=1e-9)
    price = policy.shadow_prices_["treat"]
    assert price > 0
    assert "one more unit is worth" in str(policy.certificate_)
    more = prudent.RobustPolicy(problem, guarantee, capacity={"treat": 0.101}).fit(forecasts)
    assert (more.certificate_.lower - policy.certificate_.lower) / 0.001 == pytest.approx(price, rel=0.05)


def test_a_capacity_that_does_not_bind_changes_nothing() -> None:
    forecasts = cases_of(TREAT)
    policy = prudent.RobustPolicy(TREAT, "self-orthogonal", capacity={"treat": 1.7}).fit(forecasts)
    free = prudent.RobustPolicy(TREAT, "self-orthogonal").fit(forecasts)
    np.testing.assert_array_equal(policy.predict_proba(forecasts), free.predict_proba(forecasts))
    assert policy.shadow_prices_ == {"treat": 0.0}
    assert free.shadow_prices_ == {}


def test_nobody_gets_an_action_without_capacity() -> None:
    forecasts = cases_of(TREAT)
    policy = prudent.RobustPolicy(TREAT, "self-orthogonal", capacity={"treat": 0}).fit(forecasts)
    without = prudent.DecisionProblem([0.0, 0.6], [0.0, 0.15])
    bound = prudent.RobustPolicy(without, "self-orthogonal").fit(forecasts).certificate_
    assert (policy.predict_proba(forecasts)[:, 1] == 0).all()
    assert policy.certificate_.lower == pytest.approx(bound.lower, abs=1e-7)


def test_following_the_forecast_fills_places_in_the_order_of_what_they_are_worth() -> None:
    forecasts = np.random.default_rng(1).permutation(np.repeat(np.linspace(0.005, 0.995, 100), 3))
    two = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "treat"])
    policy = prudent.RobustPolicy(two, "fully-calibrated", capacity={"treat": 20 / 300}).fit(forecasts)
    played = policy.predict_proba(forecasts)[:, 1]
    order = np.sort(np.unique(forecasts))[::-1]
    np.testing.assert_allclose([played[forecasts == value].mean() for value in order[:6]], 1.0, atol=1e-9)
    np.testing.assert_allclose(played[forecasts == order[6]], 2 / 3, atol=1e-9)  # three rows tie for two places
    np.testing.assert_allclose(played[forecasts < order[6]], 0.0, atol=1e-9)
    assert policy.shadow_prices_["treat"] == pytest.approx(order[6] - 0.4)
    assert [str(band) for band in policy.bands()] == ["wait", "wait 33%, treat 67%", "treat"]


@pytest.mark.parametrize(("problem", "guarantee", "criterion"), SITUATIONS)
def test_files_sql_and_tables_agree(
    problem: prudent.DecisionProblem, guarantee: str, criterion: str, tmp_path: Path
) -> None:
    forecasts = cases_of(problem, 2500)
    frame, names = frame_of(problem, forecasts)
    policy = make(problem, guarantee, criterion).fit(forecasts)
    played = policy.predict_proba(forecasts)
    assert policy.certificate_.lower > 0.001 or criterion == "utility"  # or the rule in use would be all there is

    policy.save(tmp_path / "policy.json")
    loaded = prudent.load(tmp_path / "policy.json")
    np.testing.assert_array_equal(loaded.predict_proba(forecasts), played)
    assert loaded.shadow_prices_ == policy.shadow_prices_
    assert loaded.certify(forecasts).lower == policy.certify(forecasts).lower
    assert loaded.capacity == {"treat": ({action: float(action == "treat") for action in problem.actions}, 0.1)}

    written = policy.to_sql("duckdb", names, output="probabilities")
    columns = ", ".join(f'{sql} AS "{action}"' for action, sql in written.items())
    found = duckdb.sql(f"SELECT {columns} FROM frame").fetchnumpy()
    np.testing.assert_array_equal(np.column_stack(list(found.values())), played)

    for table in (duckdb.sql("SELECT * FROM frame"), frame.lazy()):
        cases = prudent.scan(table, names, ids="id")
        other = make(problem, guarantee, criterion).fit(cases)
        scale = 1e-6 * problem.utility_range
        assert other.certificate_.lower == pytest.approx(policy.certificate_.lower, abs=scale)
        assert other.certificate_.upper == pytest.approx(policy.certificate_.upper, abs=scale)
        assert other.predict_proba(forecasts)[:, 1].mean() <= 0.1 + 1e-9
        assert policy.certify(cases).lower == pytest.approx(policy.certify(forecasts).lower, abs=scale)


@pytest.mark.parametrize("criterion", ["utility", "improvement"])
def test_certificates_of_other_cases_hold(criterion: str) -> None:
    policy = make(TREAT, "self-orthogonal", criterion).fit(cases_of(TREAT))
    fresh = cases_of(TREAT, 60, seed=5)
    found, played = policy.certify(fresh), policy.predict_proba(fresh)
    assert f"uses {played[:, 1].mean():.4g} of 'treat'" in found.message
    box = reference.Allowed("box", moments_of_shifted(TREAT, cases_of(TREAT))[0], np.array([0.002]), np.array([0]))
    exact = reference.Allowed("exact", np.zeros(1), np.zeros(1), np.array([0]))
    rows, tests = fresh[:, None], fresh[:, None, None]
    allowed = exact if criterion == "utility" else box
    world = reference.World(np.zeros(1), np.ones(1), False, rows, np.full(60, 1 / 60), tests, allowed)
    gained = played if criterion == "utility" else played - policy.fitted_.against.predict_proba(fresh)
    worst = reference.worst_case(TREAT.rewards, TREAT.costs, gained, world)
    assert worst - 0.05 <= found.lower <= worst + 1e-9
    assert found.upper >= found.lower


def test_several_resources_and_general_uses() -> None:
    forecasts = cases_of(CARE)
    hours = ({"treat": 2.0, "refer": 0.5}, 0.3)
    policy = prudent.RobustPolicy(CARE, "self-orthogonal", capacity={"hours": hours, "refer": 0.2}).fit(forecasts)
    shares = policy.predict_proba(forecasts).mean(axis=0)
    assert shares @ [0.0, 2.0, 0.5] == pytest.approx(0.3, abs=1e-9)
    assert shares[2] == pytest.approx(0.2, abs=1e-9)
    assert list(policy.shadow_prices_) == ["hours", "refer"]
    assert min(policy.shadow_prices_.values()) > 0
    with pytest.raises(InputError, match="one resource, of which every action uses one unit or none"):
        policy.predict(forecasts, keys=range(len(forecasts)), exact=True)


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ({}, "capacity must be a mapping"),
        (0.2, "capacity must be a mapping"),
        ({"threat": 0.2}, "actions among"),
        ({"hours": 0.2}, "actions among"),
        ({"hours": ({"threat": 1.0}, 0.2)}, "actions among"),
        ({"hours": (2.0, 0.2)}, "actions among"),
        ({"treat": -0.1}, "at least 0"),
        ({"treat": float("nan")}, "finite"),
        ({"treat": "20%"}, "numbers"),
        ({"hours": ({"treat": -1.0}, 0.2)}, "at least 0"),
        ({"hours": ({"wait": 1.0, "treat": 2.0, "call": 1.0}, 0.9)}, "every action uses at least 1 of it"),
        ({"wait": 0.3, "treat": 0.3, "call": 0.3}, "cannot be kept by any rule at once"),
    ],
)
def test_impossible_capacities_are_refused(capacity: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.RobustPolicy(TREAT, "self-orthogonal", capacity=capacity).fit([0.2, 0.8])


@pytest.mark.parametrize(
    ("parameters", "given", "message"),
    [
        ({"randomize": False}, {}, "randomize=True"),
        ({}, {"costs": np.zeros((2, 3))}, "no rewards or costs of rows"),
        ({"criterion": "improvement", "guarantee": "fully-calibrated"}, {}, "leaves more worlds than one"),
        (
            {"criterion": "improvement", "against": prudent.FixedRule(TREAT, thresholds=[0.1, 0.9])},
            {},
            "against must keep to the capacity; it uses 1 of 'treat', of which there is 0.1",
        ),
    ],
)
def test_what_does_not_go_with_capacity_is_refused(parameters: dict, given: dict, message: str) -> None:
    policy = prudent.RobustPolicy(TREAT, **{"guarantee": "unbiased", **parameters}, capacity={"treat": 0.1})
    with pytest.raises(InputError, match=message):
        policy.fit([0.2, 0.8], **given)


def test_exact_numbers_in_a_thousand_batches() -> None:
    """The number is what probabilities add up to, rounded up or down, and every row keeps its own probability."""
    batch = cases_of(TREAT, 41, seed=3)
    policy = prudent.RobustPolicy(TREAT, "self-orthogonal", capacity={"treat": 0.13}).fit(batch)
    mixtures = policy.predict_proba(batch)
    total = mixtures[:, 1].sum()
    counts, drawn = [], np.zeros_like(mixtures)
    for number in range(1000):
        actions = policy.predict(batch, keys=[f"{number}/{row}" for row in range(41)], exact=True)
        counts.append(int((actions == "treat").sum()))
        drawn += actions[:, None] == np.array(TREAT.actions)
    assert set(counts) == {int(np.floor(total)), int(np.ceil(total))}
    assert np.mean(counts) == pytest.approx(total, abs=0.06)
    error = np.sqrt(mixtures * (1 - mixtures) / 1000)
    assert (np.abs(drawn / 1000 - mixtures) <= 4 * error + 1e-9).all()


def test_whole_places_are_all_taken_and_draws_can_be_repeated() -> None:
    forecasts = cases_of(TREAT, 1000)
    policy = prudent.RobustPolicy(TREAT, "self-orthogonal", capacity={"treat": 0.1}, random_state=0).fit(forecasts)
    keys = [f"case {row}" for row in range(1000)]
    drawn = policy.predict(forecasts, keys=keys, exact=True)
    assert (drawn == "treat").sum() == 100
    order = np.random.default_rng(0).permutation(1000)
    shuffled = policy.predict(forecasts[order], keys=[keys[row] for row in order], exact=True)
    np.testing.assert_array_equal(shuffled, drawn[order])
    streamed = [policy.predict(forecasts, exact=True) for _ in range(3)]
    assert [int((actions == "treat").sum()) for actions in streamed] == [100, 100, 100]
    assert (streamed[0] != streamed[1]).any()


def test_exact_numbers_need_a_capacity_and_rows_in_memory() -> None:
    with pytest.raises(InputError, match="needs a policy with a capacity"):
        prudent.PlugInPolicy(TREAT).predict([0.2], exact=True)
    policy = make(TREAT, "self-orthogonal").fit([0.2, 0.8])
    frame, names = frame_of(TREAT, cases_of(TREAT, 5))
    with pytest.raises(InputError, match="in memory"):
        policy.predict(prudent.scan(frame.lazy(), names, ids="id"), exact=True)


def test_measured_slack_and_own_rows_of_a_sample() -> None:
    """Prices are looked for on few rows that stand for all, with the slack that was measured on all."""
    forecasts = cases_of(TREAT, 8000)
    outcomes = (np.random.default_rng(1).random(8000) < forecasts**1.3) * 1.0
    policy = prudent.RobustPolicy(TREAT, "unbiased+self-orthogonal", slack="audit", capacity={"treat": 0.02})
    policy.fit(forecasts, outcomes)
    assert policy.certificate_.status == "optimal"
    assert "measured" in policy.certificate_.message
    assert policy.predict_proba(forecasts)[:, 1].mean() <= 0.02 + 1e-9
    assert "guards against" in str(policy.explain(0.7))


def test_policies_are_fitted_anew_to_keep_to_a_capacity() -> None:
    forecasts = cases_of(TREAT, 500)
    rows = prudent.Cases(forecasts).on(TREAT.space)
    shift = prudent.recalibration.ScalingCalibrator("shift").fit([0.2, 0.6], [0.25, 0.65])
    for policy in (
        prudent.PlugInPolicy(TREAT),
        prudent.RecalibratedPolicy(shift, prudent.PlugInPolicy(TREAT)),
        prudent.RobustPolicy(TREAT, "self-orthogonal").fit(forecasts),
        make(TREAT, "self-orthogonal", "improvement").fit(forecasts),
    ):
        assert within(policy, rows, None) is policy
        rationed = within(policy, rows, {"treat": 0.05})
        assert rationed.predict_proba(forecasts)[:, 1].mean() <= 0.05 + 1e-9
    with pytest.raises(InputError, match="a SafetyPolicy cannot keep to a capacity"):
        within(prudent.SafetyPolicy(TREAT), rows, {"treat": 0.05})
