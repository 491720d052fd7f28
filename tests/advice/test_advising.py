"""Advice: one rule, one verdict, and claims that depend on the decision and on the cases, not on their wording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import prudent
from prudent.advice.past_cases import PastCases
from prudent.cases.cases import Cases
from prudent.errors import InputError

Array = np.ndarray

ACT = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"], unit="EUR")
FRESH = np.random.default_rng(99).random(400)

TRUTHS: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda v: v,
    "squared": lambda v: v**2,
    "over-confident": lambda v: 0.35 + 0.3 * v,
    "reversed": lambda v: 1 - v,
}


def draw(n: int, truth: str = "squared", seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < TRUTHS[truth](forecasts)).astype(float)


def random_problem(seed: int) -> prudent.DecisionProblem:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 5))
    return prudent.DecisionProblem(rng.normal(size=m), rng.normal(size=m) / 2, actions=[f"a{k}" for k in range(m)])


SITUATIONS = [
    (seed, truth, n) for seed, (truth, n) in enumerate((truth, n) for truth in TRUTHS for n in (8, 60, 400, 3_000))
]


def situation(seed: int, truth: str, n: int) -> tuple[prudent.DecisionProblem, Array, Array]:
    return (random_problem(seed), *draw(n, truth, seed))


def labels(policy: Any, forecasts: Array) -> list[Any]:
    return policy.predict(forecasts).tolist()


def best_labels(problem: prudent.DecisionProblem, forecasts: Array) -> list[Any]:
    """Best responses to forecasts of one coordinate, in the test's own arithmetic."""
    utilities = forecasts.reshape(-1, 1) * problem.rewards[:, 0] - problem.costs
    return [problem.actions[k] for k in utilities.argmax(axis=1)]


# -- The rule that is played is the rule that the verdict names --


@pytest.mark.parametrize(("seed", "truth", "n"), SITUATIONS)
def test_the_rule_is_the_one_that_the_verdict_names(seed: int, truth: str, n: int) -> None:
    problem, forecasts, outcomes = situation(seed, truth, n)
    advice = prudent.advise(problem, forecasts, outcomes)
    kind = advice.verdict.kind.value
    if kind == "repair":
        name = advice.menu.names[int(advice.menu.lower.argmax())]
        fits = {
            "isotonic": prudent.recalibration.IsotonicCalibrator,
            "bias": lambda: prudent.recalibration.ScalingCalibrator("bias"),
            "platt": lambda: prudent.recalibration.ScalingCalibrator("platt"),
        }
        moved = fits[name]().fit(forecasts, outcomes).transform(FRESH)
        assert labels(advice.policy, FRESH) == best_labels(problem, moved)
    else:
        assert kind in ("follow", "not_enough_data")
        assert labels(advice.policy, FRESH) == best_labels(problem, FRESH)
        assert advice.gain.estimate == advice.gain.lower == 0.0
    assert advice.verdict.sentence.startswith({"follow": "Follow", "repair": "Repair"}.get(kind, "Not enough data"))


def test_all_verdicts_come_up() -> None:
    kinds = [prudent.advise(*situation(*each)).verdict.kind.value for each in SITUATIONS]
    assert set(kinds) == {"follow", "repair", "not_enough_data"}


@pytest.mark.parametrize(("seed", "truth", "n"), SITUATIONS)
def test_no_rule_is_played_that_is_certain_of_less_than_the_rule_in_use(seed: int, truth: str, n: int) -> None:
    problem, forecasts, outcomes = situation(seed, truth, n)
    advice = prudent.advise(problem, forecasts, outcomes)
    cases = Cases(forecasts, outcomes)
    past = PastCases.read(problem, cases, cases.on(problem.space), {}, None)
    assert advice.certificate.lower >= past.claim(past.in_use, 0.05)[1] - 1e-12
    if advice.verdict.kind.value == "repair":
        assert advice.menu.lower.max() > 0
        assert advice.gain.estimate == pytest.approx(advice.menu.estimates[int(advice.menu.lower.argmax())])


@pytest.mark.parametrize(("seed", "truth", "n"), SITUATIONS)
def test_follow_means_that_nothing_on_the_menu_is_worth_more_than_the_tolerance(seed: int, truth: str, n: int) -> None:
    advice = prudent.advise(*situation(seed, truth, n))
    assert advice.tolerance == pytest.approx(0.1 * advice.stakes)
    if advice.stakes > 0:
        could = advice.menu.upper.max(initial=-np.inf) <= advice.tolerance
        assert (advice.verdict.kind.value == "follow") == bool(could and advice.menu.names)


def test_the_tolerance_is_where_following_ends() -> None:
    forecasts, outcomes = draw(2_000, "calibrated")
    could = float(prudent.advise(ACT, forecasts, outcomes).menu.upper.max())
    for share, kind in ((1.0, "follow"), (1.01, "follow"), (0.99, "not_enough_data"), (0.0, "not_enough_data")):
        advice = prudent.advise(ACT, forecasts, outcomes, tolerance=share * could)
        assert advice.tolerance == share * could
        assert advice.verdict.kind.value == kind


# -- Outcomes that are given are used --


@pytest.mark.parametrize(("seed", "truth", "n"), SITUATIONS)
def test_claims_do_not_contradict_the_outcomes(seed: int, truth: str, n: int) -> None:
    problem, forecasts, outcomes = situation(seed, truth, n)
    advice = prudent.advise(problem, forecasts, outcomes)
    utilities = outcomes[:, None] * problem.rewards[:, 0] - problem.costs
    hoped = forecasts[:, None] * problem.rewards[:, 0] - problem.costs
    realised = utilities[np.arange(n), hoped.argmax(axis=1)].mean()
    assert advice.promise.promised == pytest.approx(hoped.max(axis=1).mean())
    assert advice.stakes == pytest.approx(hoped.max(axis=1).mean() - hoped.mean(axis=0).max(), abs=1e-12)
    assert advice.promise.realised == pytest.approx(realised)
    assert advice.promise.lower <= realised <= advice.promise.upper
    assert advice.certificate.lower <= realised + advice.gain.estimate + 1e-12
    assert advice.gain.lower <= advice.gain.estimate + 1e-12
    shares = np.bincount(hoped.argmax(axis=1), minlength=problem.n_actions) / n
    assert [before for before, _ in advice.actions.values()] == pytest.approx(shares.tolist())


def test_claims_shrink_with_confidence() -> None:
    forecasts, outcomes = draw(300)
    found = [prudent.advise(ACT, forecasts, outcomes, confidence=level) for level in (0.5, 0.8, 0.95, 0.999)]
    lower = [each.certificate.lower for each in found]
    assert lower == sorted(lower, reverse=True)
    assert lower[0] > lower[-1]
    assert all(each.menu.lower.tolist() == found[0].menu.lower.tolist() for each in found)


# -- The wording of a decision does not matter --


def told(advice: prudent.Advice, scale: float = 1.0) -> tuple[Any, ...]:
    """What must not depend on the wording, in units of utility."""
    numbers = [*advice.menu.estimates, *advice.menu.lower, *advice.menu.upper, advice.gain.estimate, advice.stakes]
    return advice.verdict.kind, advice.menu.names, [number / scale for number in numbers]


def assert_same(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert one[:2] == other[:2]
    assert one[2] == pytest.approx(other[2], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("seed", "truth", "n"), SITUATIONS)
def test_the_wording_of_the_problem_does_not_matter(seed: int, truth: str, n: int) -> None:
    problem, forecasts, outcomes = situation(seed, truth, n)
    rewards, costs, actions = problem.rewards[:, 0], problem.costs, list(problem.actions)
    plain = prudent.advise(problem, forecasts, outcomes)

    def worded(rewards: Any, costs: Any, **how: Any) -> prudent.DecisionProblem:
        return prudent.DecisionProblem(rewards, costs, **{"actions": actions, **how})

    absurd = worded([*rewards, 2.0], [*costs, 1e6], actions=[*actions, "absurd"])
    for other in (
        worded(rewards, costs, space=prudent.Box(-3, 20)),
        absurd,
        worded(rewards + 3, costs),
        worded(rewards, costs - 7),
    ):
        advice = prudent.advise(other, forecasts, outcomes)
        assert_same(told(plain), told(advice))
        assert labels(advice.policy, FRESH) == labels(plain.policy, FRESH)
    cents = prudent.advise(worded(100 * rewards, 100 * costs), forecasts, outcomes)
    assert_same(told(plain), told(cents, 100))
    assert labels(cents.policy, FRESH) == labels(plain.policy, FRESH)
    assert cents.certificate.lower == pytest.approx(100 * plain.certificate.lower, rel=1e-4, abs=1e-6)
    scaled = prudent.advise(worded(rewards / 50, costs, space=prudent.Box(0, 50)), 50 * forecasts, 50 * outcomes)
    assert_same(told(plain), told(scaled))
    assert labels(scaled.policy, 50 * FRESH) == labels(plain.policy, FRESH)


@pytest.mark.parametrize(("seed", "truth", "n"), SITUATIONS)
def test_two_classes_are_one_coordinate(seed: int, truth: str, n: int) -> None:
    problem, forecasts, outcomes = situation(seed, truth, n)
    payoffs = np.column_stack([-problem.costs, problem.rewards[:, 0] - problem.costs])
    classes = prudent.DecisionProblem.from_payoffs(payoffs, actions=list(problem.actions))
    plain = prudent.advise(problem, forecasts, outcomes)
    other = prudent.advise(classes, np.column_stack([1 - forecasts, forecasts]), outcomes.astype(int))
    assert_same(told(plain), told(other))
    assert labels(other.policy, np.column_stack([1 - FRESH, FRESH])) == labels(plain.policy, FRESH)
    assert other.certificate.lower == pytest.approx(plain.certificate.lower, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("seed", "truth", "n"), [each for each in SITUATIONS if each[2] >= 60])
@pytest.mark.parametrize("grouped", ["rows", "weights", "periods", "ids", "own"])
def test_the_order_of_rows_does_not_matter(seed: int, truth: str, n: int, grouped: str) -> None:
    problem, forecasts, outcomes = situation(seed, truth, n)
    rng = np.random.default_rng(seed)
    if grouped == "ids":  # many rows are equal, so that ties must not matter either
        forecasts = forecasts.round(1)
    columns: dict[str, Any] = {
        "rows": {},
        "weights": {"weights": rng.random(n)},
        "periods": {"periods": rng.integers(0, 12, n)},
        "ids": {"ids": rng.integers(0, n // 2, n)},
        "own": {"costs": problem.costs + 0.1 * rng.random((n, problem.n_actions))},
    }[grouped]

    def asked(order: Any) -> prudent.Advice:
        some = {name: np.asarray(column)[order] for name, column in columns.items()}
        own = {"costs": some.pop("costs")} if "costs" in some else {}
        return prudent.advise(problem, Cases(forecasts[order], outcomes[order], **some), **own)

    plain, mixed = asked(np.arange(n)), asked(rng.permutation(n))
    assert_same(told(plain), told(mixed))
    assert mixed.certificate.lower == pytest.approx(plain.certificate.lower, rel=1e-4, abs=1e-6)
    if grouped != "own":
        assert labels(mixed.policy, FRESH) == labels(plain.policy, FRESH)


def test_weights_are_repeated_rows_where_no_error_is_involved() -> None:
    forecasts, outcomes = draw(200)
    counts = np.random.default_rng(1).integers(1, 4, 200)
    weighted = prudent.advise(ACT, forecasts, outcomes, weights=counts)
    repeated = prudent.advise(ACT, np.repeat(forecasts, counts), np.repeat(outcomes, counts))
    assert weighted.stakes == pytest.approx(repeated.stakes)
    assert weighted.promise.promised == pytest.approx(repeated.promise.promised)
    assert weighted.promise.realised == pytest.approx(repeated.promise.realised)
    scaled = prudent.advise(ACT, forecasts, outcomes, weights=7 * counts)
    assert_same(told(weighted), told(scaled))


def test_rows_of_weight_zero_take_no_part() -> None:
    forecasts, outcomes = draw(300)
    present = np.arange(300) % 3 > 0
    assert_same(
        told(prudent.advise(ACT, forecasts, outcomes, weights=present)),
        told(prudent.advise(ACT, forecasts[present], outcomes[present])),
    )


# -- Cases that leave little to decide --


@pytest.mark.parametrize(
    ("problem", "forecasts"),
    [
        (prudent.DecisionProblem([1.0], actions=["only"]), np.linspace(0, 1, 50)),
        (ACT, np.full(50, 0.7)),
        (ACT, np.linspace(0, 0.39, 50)),
        (prudent.DecisionProblem([1.0, 1.0], [0.0, 1.0]), np.linspace(0, 1, 50)),
    ],
    ids=["one action", "constant forecast", "one action in use", "dominated"],
)
def test_without_stakes_the_forecast_is_followed(problem: prudent.DecisionProblem, forecasts: Array) -> None:
    advice = prudent.advise(problem, forecasts, np.arange(50) % 2)
    assert advice.verdict.kind.value == "follow"
    assert advice.stakes == 0.0
    assert advice.menu.names == ()
    assert "never changes" in str(advice.verdict)
    assert labels(advice.policy, forecasts) == best_labels(problem, forecasts)


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_outcomes_that_are_all_equal(outcome: float) -> None:
    advice = prudent.advise(ACT, FRESH, np.full(400, outcome))
    assert advice.verdict.kind.value == "repair"
    assert set(labels(advice.policy, FRESH)) == {"act" if outcome else "wait"}


def test_a_class_that_never_came() -> None:
    rng = np.random.default_rng(0)
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3), actions=["a", "b", "c"])
    forecasts = rng.dirichlet(np.ones(3), 600)
    for seen in (2, 1):
        advice = prudent.advise(problem, forecasts, rng.integers(0, seen, 600))
        assert advice.verdict.kind.value == "repair"
        assert "c" not in labels(advice.policy, forecasts)


@pytest.mark.parametrize(
    ("columns", "n", "message"),
    [
        ({}, 9, "at least 10 cases with outcomes are needed; there are 9"),
        ({"periods": np.arange(60) % 3}, 60, "at least 4 periods with outcomes are needed; there are 3"),
        ({"ids": np.arange(60) % 3}, 60, "at least 4 distinct ids with outcomes are needed; there are 3"),
        ({"ids": ["the same"] * 60}, 60, "at least 4 distinct ids with outcomes are needed; there are 1"),
        ({"ids": [1, 1, 2, 3, 4, 5]}, 6, "at least 10 cases with outcomes are needed; there are 6"),
    ],
)
def test_too_few_units(columns: dict[str, Any], n: int, message: str) -> None:
    forecasts, outcomes = draw(n, "reversed")
    advice = prudent.advise(ACT, Cases(forecasts, outcomes, **columns))
    assert advice.verdict.kind.value == "not_enough_data"
    assert message in str(advice.verdict)
    assert advice.menu.names == ()
    assert labels(advice.policy, FRESH) == best_labels(ACT, FRESH)


def test_units_are_periods_or_ids_and_not_their_rows() -> None:
    forecasts, outcomes = draw(300)
    copies = [np.repeat(each, 20) for each in (forecasts, outcomes)]
    alone = prudent.advise(ACT, forecasts, outcomes)
    numbers = np.repeat(np.arange(300), 20)
    for columns in ({"periods": numbers}, {"ids": numbers}):
        together = prudent.advise(ACT, Cases(*copies, **columns))
        assert together.certificate.lower == pytest.approx(alone.certificate.lower, rel=1e-4)
        assert together.menu.upper - together.menu.estimates == pytest.approx(
            alone.menu.upper - alone.menu.estimates, rel=0.3
        )
    assert prudent.advise(ACT, *copies).certificate.lower > alone.certificate.lower + 0.01
    once = prudent.advise(ACT, Cases(forecasts, outcomes, ids=np.arange(300)))
    assert_same(told(once), told(alone))


# -- Other rules in use, other fallbacks, own stakes --


def test_another_rule_in_use_is_kept_or_left() -> None:
    forecasts, outcomes = draw(6_000, "squared")
    good = prudent.FixedRule(ACT, thresholds=[np.sqrt(0.4)])
    kept = prudent.advise(ACT, forecasts, outcomes, against=good)
    assert kept.verdict.kind.value == "keep"
    assert kept.verdict.kind.exit_code == 0
    assert kept.policy.get_params() == good.get_params()
    assert str(kept.verdict).startswith("Keep the rule in use")
    for bad in (prudent.FixedRule(ACT, thresholds=[0.1]), ["act"] * 6_000, np.repeat("act", 6_000)):
        left = prudent.advise(ACT, forecasts, outcomes, against=bad)
        assert left.verdict.kind.value == "repair"
        assert left.verdict.kind.exit_code == 20
        assert left.gain.lower > 0
    played = np.where(forecasts >= 0.1, 1.0, 0.0)
    repaired = np.array(labels(left.policy, forecasts)) == "act"
    assert left.gain.estimate == pytest.approx(((repaired - 1.0) * (outcomes - 0.4)).mean(), abs=0.01)
    assert played.any()


def test_what_was_done_is_listed_for_rows_without_outcome_too() -> None:
    forecasts, outcomes = draw(300)
    done = np.where(np.arange(300) % 2, "act", "wait")
    unknown = outcomes.copy()
    unknown[::5] = np.nan
    known = ~np.isnan(unknown)
    dropped = prudent.advise(ACT, forecasts, unknown, against=done, missing="drop")
    plain = prudent.advise(ACT, forecasts[known], outcomes[known], against=done[known])
    assert_same(told(dropped), told(plain))
    assert (dropped.n_rows, dropped.n_dropped) == (240, 60)


def test_the_safety_policy_may_be_the_fallback() -> None:
    forecasts, outcomes = draw(9, "reversed")
    advice = prudent.advise(ACT, forecasts, outcomes, fallback="safety")
    assert advice.verdict.kind.value == "not_enough_data"
    np.testing.assert_array_equal(advice.policy.predict_proba(FRESH), prudent.SafetyPolicy(ACT).predict_proba(FRESH))
    followed = prudent.advise(ACT, *draw(20_000, "calibrated"), fallback="safety")
    assert followed.verdict.kind.value == "follow"
    assert labels(followed.policy, FRESH) == best_labels(ACT, FRESH)


def test_rewards_and_costs_of_rows_count() -> None:
    forecasts, outcomes = draw(400, "squared")
    amounts = np.random.default_rng(3).lognormal(0, 1, 400)
    rewards, costs = np.column_stack([0 * amounts, amounts]), np.column_stack([0 * amounts, 0.3 + 0.2 * amounts])
    advice = prudent.advise(ACT, forecasts, outcomes, rewards=rewards, costs=costs)
    hoped = forecasts * amounts - costs[:, 1]
    realised = np.where(hoped > 0, outcomes * amounts - costs[:, 1], 0).mean()
    assert advice.promise.promised == pytest.approx(np.maximum(hoped, 0).mean())
    assert advice.promise.realised == pytest.approx(realised)
    assert advice.stakes == pytest.approx(np.maximum(hoped, 0).mean() - max(hoped.mean(), 0))
    same = prudent.advise(ACT, forecasts, outcomes, rewards=np.tile([0.0, 1.0], (400, 1)), costs=[[0.0, 0.4]] * 400)
    assert_same(told(same), told(prudent.advise(ACT, forecasts, outcomes)))
    against = prudent.advise(ACT, forecasts, outcomes, rewards=rewards, costs=costs, against=prudent.PlugInPolicy(ACT))
    assert against.menu.estimates == pytest.approx(advice.menu.estimates)
    for rule in (prudent.SafetyPolicy(ACT), prudent.FixedRule(ACT, thresholds=[0.5])):
        menu = prudent.advise(ACT, forecasts, outcomes, rewards=rewards, costs=costs, menu={"mine": rule}).menu
        played = rule.predict_proba(forecasts)[:, 1] - (hoped > 0)
        assert menu.estimates[-1] == pytest.approx((played * (outcomes * amounts - costs[:, 1])).mean())


def test_a_hedge_may_be_adopted() -> None:
    forecasts, outcomes = draw(2_000, "reversed")
    opposite = prudent.FixedRule(ACT, thresholds=[0.6], actions=["act", "wait"])
    advice = prudent.advise(ACT, forecasts, outcomes, menu={"the opposite": opposite})
    assert advice.verdict.kind.value == "hedge"
    assert advice.verdict.kind.exit_code == 10
    assert advice.policy.get_params() == opposite.get_params()
    assert "the opposite" in str(advice.verdict)


def test_a_robust_policy_on_the_menu_is_cross_fitted() -> None:
    forecasts, outcomes = draw(600, "over-confident")
    robust = prudent.RobustPolicy(ACT, "bins:5", slack="audit")
    advice = prudent.advise(ACT, forecasts, outcomes, menu=[robust])
    assert advice.menu.names[-1] == "RobustPolicy 1"
    assert getattr(robust, "fitted_", None) is None


def test_without_outcomes_there_is_a_guarantee() -> None:
    advice = prudent.advise(ACT, FRESH, guarantee="unbiased")
    robust = prudent.RobustPolicy(ACT, "unbiased").fit(FRESH)
    assert advice.verdict.kind.value == "hedge"
    np.testing.assert_array_equal(advice.policy.predict_proba(FRESH), robust.predict_proba(FRESH))
    assert advice.certificate.lower == robust.certificate_.lower
    assert (advice.gain, advice.promise) == (None, None)
    full = prudent.advise(ACT, FRESH, guarantee="decision-calibrated")
    assert full.verdict.kind.value == "follow"
    assert labels(full.policy, FRESH) == best_labels(ACT, FRESH)


def test_units_of_utility_are_in_the_sentences() -> None:
    text = str(prudent.advise(ACT, *draw(3_000)))
    assert "EUR" in text
    assert "3,000 cases" in text
    assert "act" in text


# -- Everything invalid is refused before anything is fitted --

OTHER = prudent.DecisionProblem([0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"problem": "act"}, "problem"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"tolerance": -0.1}, "tolerance must be a number of at least 0"),
        ({"fallback": "pray"}, "fallback must be one of 'rule in use', 'safety'; got 'pray'"),
        ({"guarantee": "nonsense"}, "guarantee"),
        ({"missing": "guess"}, "missing must be 'refuse' or 'drop'"),
        ({"outcomes": [0.0, 1.0]}, "outcomes must have one row per forecast"),
        ({"outcomes": np.full(60, 1.5)}, "outcomes must"),
        ({"forecasts": np.full(60, 1.5)}, "forecasts must"),
        ({"weights": np.zeros(60)}, "zero"),
        ({"periods": [1, 2]}, "periods must have one row per forecast"),
        ({"outcomes": None}, "outcomes must be given"),
        ({"outcomes": None, "guarantee": "unbiased", "against": ["act"] * 60}, "outcomes must be given"),
        ({"outcomes": None, "guarantee": "unbiased", "costs": np.zeros((60, 2))}, "need outcomes"),
        ({"outcomes": None, "guarantee": "unbiased", "menu": [prudent.PlugInPolicy(ACT)]}, "need outcomes"),
        ({"against": prudent.PlugInPolicy(OTHER)}, "against must be a rule for the same problem"),
        ({"against": ["act"] * 59}, "labels must be one per forecast, 60; got 59"),
        ({"against": ["act"] * 59 + ["jump"]}, "labels must be among the actions .* got 'jump'"),
        ({"against": [["act"]] * 60}, "labels must be among the actions"),
        ({"against": "act"}, "labels must be a list or array"),
        ({"rewards": np.zeros((60, 3))}, "rewards must have shape"),
        ({"costs": np.zeros((59, 2))}, "costs must have shape"),
        ({"menu": [3]}, "menu must hold recalibrators and policies"),
        ({"menu": "platt"}, "menu must be a list or array"),
        ({"menu": {"platt": prudent.PlugInPolicy(ACT)}}, "other names than the usual"),
        ({"menu": [prudent.PlugInPolicy(OTHER)]}, "policies for the same problem"),
        ({"menu": [prudent.RobustPolicy(OTHER, "unbiased")]}, "policies for the same problem"),
        ({"menu": [prudent.recalibration.ScalingCalibrator("nothing")]}, "method must be one of"),
        ({"menu": [prudent.recalibration.ScalingCalibrator("vector")]}, "method 'vector' does not fit"),
        ({"menu": [prudent.recalibration.IsotonicCalibrator(space=prudent.Box(0, 2))]}, "on another space"),
        (
            {"menu": [prudent.RobustPolicy(ACT, "unbiased")], "costs": np.zeros((60, 2))},
            "policies that are fitted where rows have rewards or costs",
        ),
    ],
)
def test_invalid_arguments_are_refused(changed: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for fitted in (prudent.recalibration.IsotonicCalibrator, prudent.recalibration.ScalingCalibrator):
        monkeypatch.setattr(fitted, "_fit", lambda *_: pytest.fail("something was fitted"))
    forecasts, outcomes = draw(60)
    given = {"problem": ACT, "forecasts": forecasts, "outcomes": outcomes} | changed
    with pytest.raises(InputError, match=message):
        prudent.advise(given.pop("problem"), given.pop("forecasts"), given.pop("outcomes"), **given)


# -- Capacity --


def test_following_within_a_capacity_takes_the_best_rows() -> None:
    forecasts, outcomes = draw(3_000)
    assert prudent.advise(ACT, forecasts, outcomes).verdict.kind.value == "repair"
    advice = prudent.advise(ACT, forecasts, outcomes, capacity={"act": 0.2})
    assert advice.verdict.kind.value == "follow"  # recalibration keeps the order, so the same rows get the places
    assert advice.actions["act"] == pytest.approx((0.2, 0.2), abs=1e-9)
    assert advice.promise.promised == pytest.approx(np.sort(forecasts - 0.4)[-600:].sum() / 3_000)
    assert advice.stakes == pytest.approx(advice.promise.promised - 0.2 * (forecasts.mean() - 0.4))
    price = advice.policy.shadow_prices_["act"]
    assert np.sort(forecasts)[-601] - 0.4 - 1e-9 <= price <= np.sort(forecasts)[-600] - 0.4 + 1e-9
    assert "One more unit of capacity for 'act' is worth" in str(advice)
    assert (advice.policy.predict(forecasts, keys=range(3_000), exact=True) == "act").sum() == 600


def test_repairing_within_a_capacity() -> None:
    forecasts, outcomes = draw(3_000)
    advice = prudent.advise(ACT, forecasts, outcomes, capacity={"act": 0.5})
    assert advice.verdict.kind.value == "repair"
    before, after = advice.actions["act"]
    assert before == pytest.approx(0.5, abs=1e-9)
    assert after < 0.45  # forecasts are too high, so not all places are worth taking
    assert advice.policy.policy.shadow_prices_ == {"act": 0.0}


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_a_recalibrated_policy_of_the_menu_promises_at_the_forecasts_that_it_acts_on(power: float) -> None:
    rng = np.random.default_rng(0)
    forecasts = rng.random(4_000)
    outcomes = (rng.random(4_000) < forecasts**power).astype(float)
    recalibrator = prudent.recalibration.ScalingCalibrator("platt").fit(forecasts, outcomes)
    mine = prudent.RecalibratedPolicy(recalibrator, prudent.PlugInPolicy(ACT))
    adopted = prudent.advise(ACT, forecasts, outcomes, menu={"mine": mine}, usual=False)
    assert adopted.policy.recalibrator is recalibrator
    kept = prudent.advise(ACT, forecasts, outcomes, against=mine, usual=False)
    bound = adopted.for_cases(forecasts).lower
    assert bound == pytest.approx(kept.for_cases(forecasts).lower)
    assert 0 < (mine.predict_proba(forecasts) * ACT.utility(outcomes)).sum(axis=1).mean() - bound < 0.02


def test_without_outcomes_the_robust_policy_keeps_to_a_capacity() -> None:
    forecasts, _ = draw(500)
    advice = prudent.advise(ACT, forecasts, guarantee="self-orthogonal", capacity={"act": 0.1})
    assert advice.actions["act"] == pytest.approx((0.1, 0.1), abs=1e-9)
    first = np.sort(forecasts)[-50:]
    assert advice.stakes == pytest.approx(0.1 * (first.mean() - forecasts.mean()))  # both act in a tenth of the cases


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"against": prudent.FixedRule(ACT, thresholds=[0.3])}, "against must keep to the capacity; it uses"),
        ({"menu": {"mine": prudent.FixedRule(ACT, thresholds=[0.3])}}, "mine must keep to the capacity"),
        ({"fallback": "safety"}, "may not keep to it"),
        ({"costs": np.zeros((300, 2))}, "takes no rewards or costs of rows"),
    ],
)
def test_what_does_not_keep_to_a_capacity_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prudent.advise(ACT, *draw(300), capacity={"act": 0.1}, **given)
