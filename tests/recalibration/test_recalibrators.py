"""Batch recalibrators: what they promise of their output holds, squared error never rises, files keep everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import prudent
from prudent import FileFormatError, InputError, guarantees

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
CLASSES = [prudent.DecisionProblem.from_payoffs(np.random.default_rng(i).normal(size=(4, 3))) for i in range(5)]


def overconfident(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < 0.35 + 0.3 * forecasts).astype(float)


def overconfident_classes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sharp = np.exp(2.5 * logits) / np.exp(2.5 * logits).sum(axis=1, keepdims=True)
    return sharp, (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 2)


SPECIMENS = {
    "mean": (prudent.MeanCalibrator(), overconfident),
    "histogram": (prudent.HistogramCalibrator(bins=8), overconfident),
    "isotonic": (prudent.IsotonicCalibrator(), overconfident),
    "guarantee": (prudent.GuaranteeCalibrator(guarantees.Polynomial(3)), overconfident),
    "guarantee, classes": (
        prudent.GuaranteeCalibrator(guarantees.SelfOrthogonal(), space=prudent.Simplex(3)),
        overconfident_classes,
    ),
    "decision": (prudent.DecisionCalibrator(COIN, random_state=0), overconfident),
    "decision, classes": (prudent.DecisionCalibrator(CLASSES, random_state=0), overconfident_classes),
}


def outcomes_of(calibrator: prudent.Recalibrator, labels: np.ndarray) -> np.ndarray:
    return calibrator.space_.place_outcomes(labels)


@pytest.mark.parametrize("name", SPECIMENS)
def test_output_satisfies_its_guarantee_on_fresh_rows(name: str) -> None:
    calibrator, draw = SPECIMENS[name]
    calibrator = clone(calibrator).fit(*draw(6_000))
    fresh, outcomes = draw(6_000, seed=1)
    moved = calibrator.transform(fresh)
    result = prudent.audit(moved, outcomes, calibrator.guarantee_, space=calibrator.space_, confidence=0.999)
    assert result.rejected == (), str(result)
    raw = prudent.audit(fresh, outcomes, calibrator.guarantee_, space=calibrator.space_, confidence=0.999)
    if name != "mean":
        assert raw.rejected, "the forecasts needed no repair"
    target = outcomes_of(calibrator, outcomes)
    before = ((fresh.reshape(moved.shape) - target) ** 2).sum(axis=1).mean()
    assert ((moved - target) ** 2).sum(axis=1).mean() <= before * 1.01


@pytest.mark.parametrize("name", SPECIMENS)
def test_files_keep_what_moves_forecasts(name: str, tmp_path: Path) -> None:
    calibrator, draw = SPECIMENS[name]
    calibrator = clone(calibrator).fit(*draw(2_000))
    path = tmp_path / "calibrator.json"
    calibrator.save(path)
    loaded = prudent.Recalibrator.load(path)
    fresh, _ = draw(500, seed=2)
    np.testing.assert_array_equal(loaded.transform(fresh), calibrator.transform(fresh))
    assert loaded.guarantee_ == calibrator.guarantee_
    text = path.read_text()
    path.write_text(text[:-20])
    with pytest.raises(FileFormatError):
        prudent.Recalibrator.load(path)


@pytest.mark.parametrize("name", SPECIMENS)
def test_bad_input_is_refused(name: str) -> None:
    calibrator, draw = SPECIMENS[name]
    forecasts, outcomes = draw(200)
    for bad, message in (
        ((forecasts, outcomes[:-1]), "one row per forecast"),
        ((forecasts, None), "outcomes must be given"),
        ((np.full_like(forecasts, np.nan), outcomes), "finite"),
        ((forecasts + 7, outcomes), "forecasts must"),
    ):
        with pytest.raises(InputError, match=message):
            clone(calibrator).fit(*bad)
    with pytest.raises(InputError, match="must not be zero for all rows"):
        clone(calibrator).fit(forecasts, outcomes, sample_weight=np.zeros(200))


@pytest.mark.parametrize("kind", [prudent.HistogramCalibrator, prudent.IsotonicCalibrator])
def test_steps_are_means_of_their_rows(kind: type[prudent.HistogramCalibrator]) -> None:
    forecasts, outcomes = overconfident(1_000)
    weights = np.random.default_rng(3).random(1_000)
    calibrator = kind().fit(forecasts, outcomes, sample_weight=weights)
    moved = calibrator.transform(forecasts)[:, 0]
    for level in np.unique(moved):
        rows = moved == level
        assert level == pytest.approx((weights * outcomes)[rows].sum() / weights[rows].sum())
    with pytest.raises(InputError, match="Box of one coordinate"):
        kind(space=prudent.Simplex(3)).fit(np.full((4, 3), 1 / 3), [0, 1, 2, 0])


def test_guarantee_calibrator_reaches_zero_moments() -> None:
    forecasts, outcomes = overconfident(2_000)
    calibrator = prudent.GuaranteeCalibrator(guarantees.SelfOrthogonal(intercept=True)).fit(forecasts, outcomes)
    assert calibrator.converged_
    moved = calibrator.transform(forecasts)
    moments = [((outcomes - moved[:, 0]) * test).mean() for test in (np.ones(2_000), moved[:, 0])]
    assert np.abs(moments).max() < 1e-8
    assert calibrator.residuals_ is not None
    assert 1e-6 < np.abs(calibrator.residuals_.estimates).max() < 0.05  # on rows held out it is not exactly zero
    assert calibrator.squared_error_after_ < calibrator.squared_error_before_
    with pytest.raises(InputError, match="finite one"):
        prudent.GuaranteeCalibrator(guarantees.FullyCalibrated()).fit(forecasts, outcomes)
    functions = prudent.GuaranteeCalibrator(guarantees.FromFunctions([lambda v: v[:, 0] ** 2]))
    with pytest.raises(InputError, match="Python functions"):
        functions.fit(forecasts, outcomes).save("calibrator.json")


def test_squared_error_never_rises_and_nobody_loses() -> None:
    forecasts, labels = overconfident_classes(8_000)
    calibrator = prudent.DecisionCalibrator(CLASSES, random_state=0).fit(forecasts, labels)
    errors = np.array(calibrator.fitting_errors_)
    assert (np.diff(errors) < 0).all()
    assert calibrator.squared_error_after_ < calibrator.squared_error_before_
    fresh, outcomes = overconfident_classes(40_000, seed=1)
    moved = calibrator.transform(fresh)
    for problem in CLASSES:
        utilities = problem.utility(outcomes)
        rows = np.arange(40_000)
        gain = utilities[rows, problem.best_response(moved)] - utilities[rows, problem.best_response(fresh)]
        assert gain.mean() >= -3 * gain.std() / 200
    makers = calibrator.decision_makers_
    assert makers.justified.all()
    assert "5 of 5 decision makers" in str(makers)
    assert len(makers.to_frame()) == 5


def test_the_gap_collapses_for_every_decision_maker() -> None:
    """Before, best responding guarantees less than the optimum; after, the same up to the measured slack."""
    forecasts, labels = overconfident_classes(8_000)
    calibrator = prudent.DecisionCalibrator(CLASSES, random_state=0).fit(forecasts, labels)
    fresh, outcomes = overconfident_classes(3_000, seed=2)
    moved = calibrator.transform(fresh)
    for problem in CLASSES[:3]:
        before = prudent.audit(fresh, outcomes, guarantees.Unbiased(), problem=problem, tolerance=0.25)
        after = prudent.audit(moved, outcomes, guarantees.DecisionCalibrated(problem), problem=problem, tolerance=0.25)
        assert after.verdict.kind is prudent.VerdictKind.TRUST
        assert after.verdict.loss <= after.verdict.bound + 1e-9
        assert after.verdict.bound < before.verdict.bound / 2


def test_starting_from_a_baseline() -> None:
    forecasts, outcomes = overconfident(6_000)
    start = prudent.IsotonicCalibrator().fit(forecasts[:3_000], outcomes[:3_000])
    calibrator = prudent.DecisionCalibrator(COIN, start=start, random_state=0)
    calibrator.fit(forecasts[3_000:], outcomes[3_000:])
    fresh, truth = overconfident(20_000, seed=4)
    moved, base = calibrator.transform(fresh), start.transform(fresh)
    assert ((moved[:, 0] - truth) ** 2).mean() <= ((base[:, 0] - truth) ** 2).mean() * 1.01


def test_regions_with_few_rows_are_left_alone_and_named() -> None:
    forecasts, outcomes = overconfident(400)
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.999], actions=["wait", "go"])  # "go" only above 0.999
    calibrator = prudent.DecisionCalibrator(problem, random_state=0).fit(forecasts, outcomes)
    assert calibrator.skipped_ == (
        "problem 1: best response go to the repaired forecasts",
        "problem 1: best response go to the original forecasts",
    )


def test_a_class_that_never_occurs() -> None:
    forecasts, labels = overconfident_classes(2_000)
    calibrator = prudent.DecisionCalibrator(CLASSES, random_state=0).fit(forecasts, np.minimum(labels, 1))
    moved = calibrator.transform(forecasts)
    assert moved[:, 2].mean() < 0.05
    np.testing.assert_allclose(moved.sum(axis=1), 1.0)


def test_tolerance_and_rounds() -> None:
    forecasts, outcomes = overconfident(2_000)
    lenient = prudent.DecisionCalibrator(COIN, tolerance=0.5, random_state=0).fit(forecasts, outcomes)
    assert lenient.patches_ == []
    np.testing.assert_array_equal(lenient.transform(forecasts)[:, 0], forecasts)
    with pytest.raises(InputError, match="tolerance must be 'auto'"):
        prudent.DecisionCalibrator(COIN, tolerance="none").fit(forecasts, outcomes)
    with pytest.raises(InputError, match="validation_fraction must lie"):
        prudent.DecisionCalibrator(COIN, validation_fraction=1.0).fit(forecasts, outcomes)
    with pytest.raises(InputError, match="share one outcome space"):
        prudent.DecisionCalibrator([COIN, CLASSES[0]]).fit(forecasts, outcomes)
    with pytest.raises(InputError, match="problems must be"):
        prudent.DecisionCalibrator([]).fit(forecasts, outcomes)


def test_interrupting_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from prudent.recalibration.patches import PatchSearch

    visits = iter(range(10_000))
    original = PatchSearch._patch_regions

    def patch_regions(self: PatchSearch, number: int, source: int) -> None:
        if next(visits) == 3:
            raise KeyboardInterrupt
        original(self, number, source)

    monkeypatch.setattr(PatchSearch, "_patch_regions", patch_regions)
    forecasts, labels = overconfident_classes(3_000)
    calibrator = prudent.DecisionCalibrator(CLASSES, random_state=0).fit(forecasts, labels)
    assert calibrator.interrupted_
    assert calibrator.patches_
    assert calibrator.squared_error_after_ <= calibrator.squared_error_before_


def test_projection_onto_the_simplex_is_the_nearest_point() -> None:
    rng = np.random.default_rng(5)
    space = prudent.Simplex(4)
    points = rng.normal(size=(200, 4))
    near = space.project(points)
    np.testing.assert_allclose(near.sum(axis=1), 1.0)
    assert near.min() >= 0
    others = rng.dirichlet(np.ones(4), 500)
    # The angle at a projection onto a convex set is never acute.
    inner = ((points - near)[:, None, :] * (others[None] - near[:, None, :])).sum(axis=2)
    assert inner.max() <= 1e-9


def test_promises_are_kept_before_regions_are_patched() -> None:
    """Too sure in one direction only: one number per problem is off, and one patch along the rewards mends it."""
    rng = np.random.default_rng(3)
    truth = rng.uniform(0.2, 0.8, size=8_000)
    forecasts = 0.5 + 1.6 * (truth - 0.5)
    outcomes = (rng.random(8_000) < truth).astype(float)
    calibrator = prudent.DecisionCalibrator(COIN, random_state=0).fit(forecasts, outcomes)
    first = calibrator.patches_[0]
    np.testing.assert_allclose(first.shifts / first.shifts[0, 0], COIN.rewards / COIN.rewards[0, 0])
    promise = guarantees.UtilityCalibrated(COIN)
    assert prudent.audit(forecasts, outcomes, promise, problem=COIN).rejected
    assert not prudent.audit(calibrator.transform(forecasts), outcomes, promise, problem=COIN).rejected


def test_the_mean_is_met_although_most_forecasts_are_at_a_bound() -> None:
    forecasts = np.r_[np.zeros(980), np.full(20, 0.9)]
    outcomes = np.r_[np.zeros(980), np.tile([0.0, 1.0], 10)]
    calibrator = prudent.MeanCalibrator().fit(forecasts, outcomes)
    assert calibrator.converged_
    assert calibrator.transform(forecasts).mean() == pytest.approx(outcomes.mean(), abs=1e-9)
    rng = np.random.default_rng(0)
    for space in (prudent.Simplex(4), prudent.Box(0, 1).with_dimension(4)):
        classes = np.eye(4)[rng.choice(4, 500, p=[0.7, 0.1, 0.1, 0.1])]
        corners = np.where(
            rng.random((500, 1)) < 0.6, np.eye(4)[rng.integers(0, 4, 500)], rng.dirichlet(np.ones(4), 500)
        )
        calibrator = prudent.MeanCalibrator(space=space).fit(corners, classes)
        np.testing.assert_allclose(calibrator.transform(corners).mean(axis=0), classes.mean(axis=0), atol=1e-8)
        assert calibrator.squared_error_after_ <= calibrator.squared_error_before_


def test_moments_that_are_left_are_warned_of() -> None:
    forecasts, outcomes = overconfident(500)
    calibrator = prudent.GuaranteeCalibrator(guarantees.Polynomial(3), max_rounds=1)
    with pytest.warns(ConvergenceWarning, match="is left on the fitting rows"):
        calibrator.fit(forecasts, outcomes)
    assert not calibrator.converged_


def test_few_rows_have_no_residuals() -> None:
    assert prudent.MeanCalibrator().fit([0.2], [1.0]).residuals_ is None
