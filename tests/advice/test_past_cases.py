"""What rules would have earned on past cases, and its errors, against plain arithmetic."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit

import prudent
from prudent.advice.past_cases import FOLDS, PastCases, content_folds, play_entry, play_rule, usual_recalibrators
from prudent.cases.cases import Cases
from prudent.cases.mean_bounds import Means

PROBLEM = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.25, 0.55], actions=["low", "mid", "high"])


def past(n: int = 120, *, own: Any = None, against: Any = None, **columns: Any) -> PastCases:
    rng = np.random.default_rng(0)
    forecasts = rng.random(n)
    outcomes = (rng.random(n) < forecasts**2).astype(float)
    cases = Cases(forecasts, outcomes, **columns)
    return PastCases.read(PROBLEM, cases, cases.on(PROBLEM.space), own or {}, against)


def test_utilities_promises_and_stakes() -> None:
    weights = np.random.default_rng(1).random(120)
    found = past(weights=weights)
    shares = weights / weights.sum()
    v, y = found.rows.forecasts[:, 0], found.rows.outcomes[:, 0]
    for a, (reward, cost) in enumerate(zip(PROBLEM.rewards[:, 0], PROBLEM.costs, strict=True)):
        np.testing.assert_allclose(found.utilities[:, a], reward * y - cost)
        np.testing.assert_allclose(found.hoped[:, a], reward * v - cost)
    values = np.maximum(np.maximum(0.2 * v, 0.9 * v - 0.25), 1.4 * v - 0.55)
    assert found.promised == pytest.approx(shares @ values)
    assert found.stakes == pytest.approx(shares @ values - max(found.hoped.T @ shares))
    assert found.follows


def test_the_error_of_a_gain_is_that_of_rows_or_of_units() -> None:
    rng = np.random.default_rng(2)
    mixtures = np.eye(3)[rng.integers(0, 3, 120)]
    rows = past()
    gains = (rows.utilities * (mixtures - rows.in_use)).sum(axis=1)
    found = rows.gain(mixtures)
    assert found == pytest.approx((gains.mean(), gains.std(ddof=1) / np.sqrt(120)))
    units = np.arange(120) // 10  # twelve periods of ten rows
    grouped = past(periods=units).gain(mixtures)
    means = gains.reshape(12, 10).mean(axis=1)
    between = means.std(ddof=1) / np.sqrt(12)
    within = np.sqrt(((gains - means[units]) ** 2).sum() / (120 - 12) / 120)
    assert grouped == pytest.approx((gains.mean(), max(between, within)))


def test_the_error_of_units_is_not_below_that_of_rows() -> None:
    # Alternating gains cancel within every period, so that the means of periods do not differ at all.
    mixtures = np.tile(np.eye(3)[[0, 2]], (60, 1))
    outcomes = np.tile([0.0, 1.0], 60)
    cases = Cases(np.full(120, 0.5), outcomes, periods=np.arange(120) // 10)
    found = PastCases.read(PROBLEM, cases, cases.on(PROBLEM.space), {}, None)
    gains = (found.utilities * (mixtures - found.in_use)).sum(axis=1).reshape(12, 10)
    assert np.ptp(gains.mean(axis=1)) == pytest.approx(0, abs=1e-12)
    assert found.gain(mixtures)[1] == pytest.approx(np.sqrt(gains.var(axis=1).mean() * 10 / 9 / 120))


def test_what_rare_outcomes_could_hide_counts_actions_in_use_only() -> None:
    found = past()
    low, mid = (np.eye(3)[[a] * 120] for a in (0, 1))
    y = found.rows.outcomes[:, 0]
    apart = np.abs((0.2 * y) - (0.9 * y - 0.25)).max()
    assert found.hidden([low, mid]) == pytest.approx(3 * apart / 120)
    assert found.hidden([low]) == 0.0
    assert found.hidden([low, mid, found.in_use]) > found.hidden([low, mid])


@pytest.mark.parametrize("seed", range(5))
def test_ranges_are_those_of_the_vertices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = prudent.Box([-1, 0, 2], [1, 3, 2.5])
    problem = prudent.DecisionProblem(rng.normal(size=(4, 3)), rng.normal(size=4), space=space)
    vertices = np.array(list(product((-1, 1), (0, 3), (2, 2.5))), dtype=float)
    utilities = vertices @ problem.rewards.T - problem.costs
    cases = Cases(vertices, vertices)
    found = PastCases.read(problem, cases, cases.on(space), {}, None)
    assert found.ends(gains=False) == pytest.approx((utilities.min(), utilities.max()))
    widest = np.ptp(utilities, axis=1).max()
    assert found.ends(gains=True) == pytest.approx((-widest, widest))
    own = {"rewards": rng.normal(size=(8, 4, 3)), "costs": rng.normal(size=(8, 4))}
    of_rows = np.einsum("nmd,vd->nvm", own["rewards"], vertices) - own["costs"][:, None]
    found = PastCases.read(problem, cases, cases.on(space), own, None)
    assert found.ends(gains=False) == pytest.approx((of_rows.min(), of_rows.max()))
    assert found.ends(gains=True)[1] == pytest.approx(np.ptp(of_rows, axis=2).max())


def test_claims_are_bounds_of_means_over_units() -> None:
    units = np.arange(120) % 30
    found = past(periods=units)
    earned = (found.utilities * found.in_use).sum(axis=1)
    estimate, lower, upper = found.claim(found.in_use, 0.05)
    means = Means.of_rows(earned, np.full(120, 1 / 120), *found.ends(gains=False), units)
    assert estimate == pytest.approx(earned.mean())
    assert lower == pytest.approx(estimate - means.radii(0.05)[0])
    assert upper == pytest.approx(estimate + means.radii(0.05, below=False)[0])
    assert found.claim(found.in_use, 0.05, over_rule_in_use=True) == (0.0, 0.0, 0.0)


def test_ids_are_units_only_where_they_repeat() -> None:
    assert past(ids=np.arange(120)).units is None
    repeated = past(ids=np.arange(120) // 2)
    assert repeated.units is not None
    assert repeated.needed_units == (60, 4, "distinct ids")
    assert past().needed_units == (120, 10, "cases")
    assert past(periods=np.arange(120) % 7, ids=np.arange(120) // 2).needed_units == (7, 4, "periods")
    assert past(6, ids=[1, 1, 2, 3, 4, 5]).needed_units == (6, 10, "cases")


@pytest.mark.parametrize(
    "against",
    [
        ["low", "mid", "high"] * 40,
        prudent.FixedRule(PROBLEM, thresholds=[0.3, 0.6]),
        prudent.FixedRule(PROBLEM, function=lambda v: np.where(v[:, 0] < 0.5, "low", "high")),
        prudent.SafetyPolicy(PROBLEM),
    ],
)
def test_other_rules_in_use_play_what_they_say(against: Any) -> None:
    found = past(against=against)
    forecasts = found.rows.forecasts
    expected = {
        list: lambda: np.eye(3)[[0, 1, 2] * 40],
        prudent.FixedRule: lambda: against.predict_proba(forecasts),
        prudent.SafetyPolicy: lambda: against.predict_proba(forecasts),
    }[type(against)]()
    np.testing.assert_array_equal(found.in_use, expected)
    assert not found.follows


def test_rules_that_look_at_stakes_are_told_those_of_rows() -> None:
    own = {"costs": np.random.default_rng(4).random((120, 3))}
    found = past(own=own, against=prudent.PlugInPolicy(PROBLEM))
    hoped = found.rows.forecasts * PROBLEM.rewards[:, 0] - own["costs"]
    np.testing.assert_array_equal(found.in_use, np.eye(3)[hoped.argmax(axis=1)])
    safety = prudent.SafetyPolicy(PROBLEM)
    np.testing.assert_array_equal(play_rule(safety, found.rows, found.own), safety.predict_proba(found.rows.forecasts))


Array = np.ndarray
SPACE = prudent.Box(0, 1)


def draw(n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < forecasts**2).astype(float)


def logistic(scores: Array, outcomes: Array, *, slope: bool) -> tuple[float, float]:
    def loss(free: Array) -> float:
        moved = (free[1] if slope else 1.0) * scores + free[0]
        return float(np.mean(np.logaddexp(0, moved) - outcomes * moved))

    found = minimize(loss, np.array([0.0, 1.0] if slope else [0.0]), method="BFGS", options={"gtol": 1e-9}).x
    return (found[1] if slope else 1.0), found[0]


def pooled(forecasts: Array, outcomes: Array) -> tuple[Array, Array]:
    """Pool adjacent violators; every block by its forecasts."""
    order = np.argsort(forecasts)
    blocks: list[list[Any]] = []
    for v, y in zip(forecasts[order], outcomes[order], strict=True):
        blocks.append([y, 1, v, v])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            y2, n2, _, last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + y2, blocks[-1][1] + n2, blocks[-1][2], last]
    edges = [(one[3] + other[2]) / 2 for one, other in pairwise(blocks)]
    return np.array(edges), np.array([block[0] / block[1] for block in blocks])


def moved_by(name: str, forecasts: Array, outcomes: Array, fresh: Array) -> Array:
    if name == "isotonic":
        edges, levels = pooled(forecasts, outcomes)
        return levels[np.searchsorted(edges, fresh, side="right")]
    slope, intercept = logistic(logit(forecasts), outcomes, slope=name == "platt")
    return expit(slope * logit(fresh) + intercept)


@pytest.mark.parametrize("seed", range(6))
def test_gains_are_those_of_plain_arithmetic(seed: int) -> None:
    forecasts, outcomes = draw(250, seed)
    problem = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.25, 0.55])
    advice = prudent.advise(problem, forecasts, outcomes)
    rows = Cases(forecasts, outcomes).on(SPACE)
    folds = content_folds(rows, [], None)
    rewards, costs = problem.rewards[:, 0], problem.costs

    def best(beliefs: Array) -> Array:
        return np.argmax(beliefs[:, None] * rewards - costs, axis=1)

    followed, played, gains, implied = best(forecasts), [], [], []
    for name in ("bias", "platt", "isotonic"):
        moved = np.empty(250)
        for fold in range(FOLDS):
            out = folds == fold
            moved[out] = moved_by(name, forecasts[~out], outcomes[~out], forecasts[out])
        actions = best(moved)
        earned = [rewards[a] * y - costs[a] for a, y in zip(actions, outcomes, strict=True)]
        before = [rewards[a] * y - costs[a] for a, y in zip(followed, outcomes, strict=True)]
        gains.append(np.array(earned) - np.array(before))
        played.append(actions)
        change = rewards[actions] - rewards[followed]
        implied.append(np.sqrt(np.sum(change**2 * moved * (1 - moved))) / 250)
    assert advice.menu.names == ("bias", "platt", "isotonic")
    assert advice.menu.estimates == pytest.approx([gain.mean() for gain in gains], abs=1e-12)
    errors = np.maximum([gain.std(ddof=1) / np.sqrt(250) for gain in gains], implied)
    lower = advice.menu.estimates - stats.t(249).ppf(1 - 0.1 / 3) * errors
    assert advice.menu.lower == pytest.approx(lower)
    used = np.unique([followed, *played])
    at_outcomes = outcomes[:, None] * rewards[used] - costs[used]
    hidden = 3 / 250 * np.ptp(at_outcomes, axis=1).max()
    upper = advice.menu.estimates + stats.t(249).ppf(1 - 0.05 / 3) * errors + hidden
    assert advice.menu.upper == pytest.approx(upper)


def test_rows_have_no_part_in_what_is_played_on_them() -> None:
    forecasts, outcomes = draw(200, 0)
    rows = Cases(forecasts, outcomes).on(SPACE)
    folds = content_folds(rows, [], None)
    assert sorted(np.bincount(folds)) == [40] * 5
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4])
    seen: list[set[float]] = []

    class Watching(prudent.recalibration.Recalibrator):
        _kind, _fields, space = "watching", (), None

        def _fit(self, rows: Any) -> None:
            self.guarantee_, self.known_ = prudent.guarantees.Unbiased(), set(rows.forecasts[:, 0].tolist())

        def _moved(self, forecasts: Array, context: Any = None) -> Array:
            asked = set(forecasts[:, 0].tolist())
            seen.append(asked & self.known_)
            return forecasts

        @classmethod
        def _restored(cls, record: Any, space: Any) -> Any:
            raise NotImplementedError

    prudent.advise(problem, forecasts, outcomes, menu=[Watching()])
    assert seen == [set()] * 5


@pytest.mark.parametrize("grouped", ["periods", "ids"])
def test_rows_of_a_unit_share_a_fold_whatever_their_order(grouped: str) -> None:
    rng = np.random.default_rng(0)
    forecasts, outcomes = draw(300, 1)
    forecasts = forecasts.round(1)
    units = rng.integers(0, 40, 300)
    folds = {}
    for order in (np.arange(300), rng.permutation(300)):
        rows = Cases(forecasts[order], outcomes[order], **{grouped: units[order]}).on(SPACE)
        numbers = np.unique(units[order], return_inverse=True)[1]
        numbers = rng.permutation(40)[numbers]  # units are numbered as they come
        found = content_folds(rows, [], numbers)
        for unit, fold in zip(units[order], found, strict=True):
            assert folds.setdefault(unit, fold) == fold
    assert set(folds.values()) == set(range(FOLDS))


def test_the_order_of_rows_does_not_change_their_fold() -> None:
    rng = np.random.default_rng(0)
    forecasts, outcomes = draw(300, 2)
    own = rng.random((300, 2))
    order = rng.permutation(300)
    plain = content_folds(Cases(forecasts, outcomes).on(SPACE), [own], None)
    mixed = content_folds(Cases(forecasts[order], outcomes[order]).on(SPACE), [own[order]], None)
    np.testing.assert_array_equal(plain[order], mixed)


@pytest.mark.parametrize(
    ("space", "outcomes", "names"),
    [
        (prudent.Box(0, 1), [0.0, 1.0, 1.0], ("bias", "platt", "isotonic")),
        (prudent.Box(-9, 99), [20.0, 80.0, 20.0], ("bias", "platt", "isotonic")),
        (prudent.Box(0, 1), [0.0, 0.5, 1.0], ("shift", "affine", "isotonic")),
        (prudent.Simplex(2), [0, 1, 1], ("bias", "platt", "isotonic")),
        (prudent.Simplex(3), [0, 1, 2], ("temperature", "vector", "isotonic")),
        (prudent.Box([0, 0], [1, 1]), [[0.0, 1.0]] * 3, ("shift", "affine", "isotonic")),
    ],
)
def test_recalibrations_suit_the_outcomes(space: Any, outcomes: Any, names: tuple[str, ...]) -> None:
    forecasts = np.full((3, space.dimension), 1 / space.dimension)
    assert tuple(usual_recalibrators(Cases(forecasts, outcomes).on(space))) == names


def test_classes_are_recalibrated_by_the_same_arithmetic() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(240, 3))
    forecasts = np.exp(log_softmax(2 * scores, axis=1))
    labels = (rng.random((240, 1)) > np.cumsum(np.exp(log_softmax(scores, axis=1)), axis=1)).sum(axis=1).clip(0, 2)
    payoffs = np.vstack([np.eye(3), np.full((1, 3), 0.6)])
    problem = prudent.DecisionProblem.from_payoffs(payoffs)
    advice = prudent.advise(problem, forecasts, labels)
    folds = content_folds(Cases(forecasts, labels).on(problem.space), [], None)
    moved = np.empty_like(forecasts)
    for fold in range(FOLDS):
        out = folds == fold

        def loss(free: Array, out: Array = out) -> float:
            return -float(
                log_softmax(free[0] * np.log(forecasts[~out]), axis=1)[np.arange((~out).sum()), labels[~out]].mean()
            )

        moved[out] = np.exp(log_softmax(minimize(loss, [1.0]).x[0] * np.log(forecasts[out]), axis=1))
    gains = (
        payoffs[(moved @ payoffs.T).argmax(axis=1), labels] - payoffs[(forecasts @ payoffs.T).argmax(axis=1), labels]
    )
    assert advice.menu.names[0] == "temperature"
    assert advice.menu.estimates[0] == pytest.approx(gains.mean(), abs=1e-12)


def test_entries_of_the_user_have_names_of_their_own() -> None:
    forecasts, outcomes = draw(100, 3)
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4])
    entry = prudent.recalibration.GuaranteeCalibrator("bins:4")
    listed = prudent.advise(problem, forecasts, outcomes, menu=[entry, prudent.SafetyPolicy(problem)])
    assert listed.menu.names[3:] == ("GuaranteeCalibrator 1", "SafetyPolicy 2")
    named = prudent.advise(problem, forecasts, outcomes, menu={"four bins": entry})
    assert named.menu.names[3:] == ("four bins",)
    assert named.menu.estimates[3] == listed.menu.estimates[3]
    # More entries, wider bounds: they hold at once.
    assert (listed.menu.upper[:3] > named.menu.upper[:3]).all()
    assert len(listed.menu.columns["rule"]) == 5


def test_recalibrations_are_fitted_once_for_several_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    fit = prudent.recalibration.IsotonicCalibrator._fit
    monkeypatch.setattr(
        prudent.recalibration.IsotonicCalibrator, "_fit", lambda self, rows: (calls.append(1), fit(self, rows))[1]
    )
    cases = Cases(*draw(200, 4))
    for cost in (0.3, 0.4, 0.5):
        prudent.advise(prudent.DecisionProblem([0.0, 1.0], [0.0, cost]), cases)
    assert len(calls) in (FOLDS, FOLDS + 1)


def test_a_policy_that_was_fitted_with_costs_of_rows_alone_is_compared() -> None:
    rng = np.random.default_rng(0)
    forecasts = rng.random(400)
    outcomes = (rng.random(400) < forecasts).astype(float)
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4])
    costs = np.array([0.0, 0.4]) + rng.normal(size=(400, 2)) * 0.01
    robust = prudent.RobustPolicy(problem, "self-orthogonal", slack=0.1).fit(forecasts, outcomes, costs=costs)
    advice = prudent.advise(problem, forecasts, outcomes, costs=costs, menu={"robust": robust})
    earned = (problem.utilities_of_rows(outcomes[:, None], costs=costs)) * (
        robust.predict_proba(forecasts, costs=costs)
        - np.eye(2)[problem.utilities_of_rows(forecasts[:, None], costs=costs).argmax(axis=1)]
    )
    assert advice.menu.estimates[advice.menu.names.index("robust")] == pytest.approx(earned.sum(axis=1).mean())


def test_of_very_many_rows_some_are_learned_from() -> None:
    rng = np.random.default_rng(0)
    forecasts = rng.random(210_000)
    outcomes = (rng.random(210_000) < forecasts**2).astype(float)
    rows, order = Cases(forecasts, outcomes).on(SPACE), rng.permutation(210_000)
    folds = content_folds(rows, [], None)
    np.testing.assert_array_equal(
        content_folds(Cases(forecasts[order], outcomes[order]).on(SPACE), [], None), folds[order]
    )
    learned = folds < FOLDS
    assert learned.sum() == 200_000
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4])
    entry = play_entry("shift", prudent.recalibration.ScalingCalibrator("shift"), problem, rows, folds, {})
    assert entry.recalibrator is not None
    shift = entry.recalibrator().transform([0.5])[0, 0] - 0.5
    assert shift == pytest.approx((outcomes - forecasts)[learned].mean(), abs=1e-9)
    own = folds % FOLDS == 0
    assert entry.beliefs is not None
    inside = (forecasts[own] > 0.4) & (forecasts[own] < 0.9)
    moved = (entry.beliefs[own, 0] - forecasts[own])[inside]
    np.testing.assert_allclose(moved, (outcomes - forecasts)[learned & ~own].mean(), atol=1e-9)
