"""What all recalibrators promise: their guarantee holds, files keep everything, scikit-learn's conventions are kept.

Most checks of scikit-learn bring features of some width and a target of one column. A recalibrator takes forecasts and
outcomes of one and the same width, so a check either passes or is told about the width, but for the exceptions below.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import prudent
from prudent import guarantees
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import FileFormatError, InputError

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
    "mean": (prudent.recalibration.GuaranteeCalibrator("unbiased"), overconfident),
    "histogram": (prudent.recalibration.GuaranteeCalibrator("bins:8"), overconfident),
    "isotonic": (prudent.recalibration.IsotonicCalibrator(), overconfident),
    "scaling": (prudent.recalibration.ScalingCalibrator("affine"), overconfident),
    "scaling, classes": (
        prudent.recalibration.ScalingCalibrator("temperature", space=prudent.Simplex(3)),
        overconfident_classes,
    ),
    "guarantee": (prudent.recalibration.GuaranteeCalibrator(guarantees.Polynomial(3)), overconfident),
    "guarantee, classes": (
        prudent.recalibration.GuaranteeCalibrator(guarantees.SelfOrthogonal(), space=prudent.Simplex(3)),
        overconfident_classes,
    ),
    "decision": (prudent.recalibration.DecisionCalibrator(COIN, random_state=0), overconfident),
    "decision, classes": (prudent.recalibration.DecisionCalibrator(CLASSES, random_state=0), overconfident_classes),
}


def outcomes_of(calibrator: prudent.recalibration.Recalibrator, labels: np.ndarray) -> np.ndarray:
    return calibrator.space_.place_outcomes(labels)


@pytest.mark.parametrize("name", SPECIMENS)
def test_output_satisfies_its_guarantee_on_fresh_rows(name: str) -> None:
    calibrator, draw = SPECIMENS[name]
    calibrator = clone(calibrator).fit(*draw(6_000))
    fresh, outcomes = draw(6_000, seed=1)
    moved = calibrator.transform(fresh)
    result = prudent.audit(calibrator.space_, moved, outcomes, guarantee=calibrator.guarantee_, confidence=0.999)
    assert result.rejected == (), str(result)
    raw = prudent.audit(calibrator.space_, fresh, outcomes, guarantee=calibrator.guarantee_, confidence=0.999)
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
    loaded = prudent.recalibration.Recalibrator.load(path)
    fresh, _ = draw(500, seed=2)
    np.testing.assert_array_equal(loaded.transform(fresh), calibrator.transform(fresh))
    assert loaded.guarantee_ == calibrator.guarantee_
    text = path.read_text()
    path.write_text(text[:-20])
    with pytest.raises(FileFormatError):
        prudent.recalibration.Recalibrator.load(path)


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


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_never_exceed_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forecasts = np.eye(3)[rng.integers(0, 3, 300)] * (1 + 1e-12 * rng.random((300, 1)))
    labels = rng.integers(0, 3, 300)
    space = prudent.Simplex(3)
    for calibrator in (
        prudent.recalibration.DecisionCalibrator(CLASSES, random_state=0),
        prudent.recalibration.GuaranteeCalibrator(guarantees.Nothing(), space=space),
    ):
        assert calibrator.fit(forecasts, labels).transform(forecasts).max() <= 1.0


SPACE = prudent.Box(-1e6, 1e6)


PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, 0.5], space=SPACE)


MAKERS: dict[str, Callable[[], prudent.recalibration.Recalibrator]] = {
    "DecisionCalibrator": lambda: prudent.recalibration.DecisionCalibrator(PROBLEM, random_state=0),
    "GuaranteeCalibrator": lambda: prudent.recalibration.GuaranteeCalibrator(guarantees.SelfOrthogonal(), space=SPACE),
    "IsotonicCalibrator": lambda: prudent.recalibration.IsotonicCalibrator(space=SPACE),
    "ScalingCalibrator": lambda: prudent.recalibration.ScalingCalibrator("affine", space=SPACE),
    "SegmentedCalibrator": lambda: prudent.recalibration.SegmentedCalibrator(
        [], prudent.recalibration.ScalingCalibrator("affine", space=SPACE), space=SPACE
    ),
}


WIDTH = "must have 1 column"


EXCEPTIONS = {
    "check_array_api_input": "scikit-learn itself skips it unless SCIPY_ARRAY_API is set",
    "check_fit1d": "forecasts of one coordinate may come as a plain vector",
    # Their own message hides the one about the width.
    "check_estimators_nan_inf": "the test below has NaN and infinities",
    "check_positive_only_tag_during_fit": "the test below has negative forecasts",
    "check_sample_weights_pandas_series": "the test below has weights as a series",
}


def sample(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    forecasts = rng.normal(size=(n, 1))
    return forecasts, 0.5 + 0.5 * forecasts + rng.normal(size=(n, 1))


def test_every_recalibrator_is_listed() -> None:
    named = vars(prudent.recalibration)
    public = {
        name
        for name, value in named.items()
        if isinstance(value, type)
        and issubclass(value, prudent.recalibration.Recalibrator)
        and value is not prudent.recalibration.Recalibrator
    }
    assert public == set(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
def test_scikit_learn_checks(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # several checks warn about their own data
        results = check_estimator(MAKERS[name](), on_fail=None, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 15
    for result in results:
        if result["status"] != "passed" and result["check_name"] not in EXCEPTIONS:
            assert WIDTH in str(result["exception"]), result


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_demands_on_data_of_their_width(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    forecasts, outcomes = sample()
    copies = forecasts.copy(), outcomes.copy()
    recalibrator = MAKERS[name]()
    parameters = recalibrator.get_params()
    assert recalibrator.fit(forecasts, outcomes) is recalibrator
    assert recalibrator.get_params() == parameters
    np.testing.assert_array_equal(forecasts, copies[0])
    np.testing.assert_array_equal(outcomes, copies[1])
    moved = recalibrator.transform(forecasts)
    assert moved.shape == forecasts.shape
    assert recalibrator.n_features_in_ == 1
    for twin in (
        clone(recalibrator).fit(forecasts, outcomes),  # fitting again
        recalibrator.fit(forecasts, outcomes),
        pickle.loads(pickle.dumps(recalibrator)),
        clone(recalibrator).fit(forecasts.tolist(), outcomes.tolist()),
        clone(recalibrator).fit(np.asfortranarray(forecasts), outcomes[:, 0]),
        clone(recalibrator).fit(pandas.DataFrame(forecasts), pandas.Series(outcomes[:, 0])),
        clone(recalibrator).fit(forecasts, outcomes, sample_weight=pandas.Series(np.full(len(forecasts), 2.0))),
    ):
        np.testing.assert_allclose(twin.transform(forecasts), moved, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(recalibrator.transform(forecasts[::-1])[::-1], moved)
    np.testing.assert_array_equal(recalibrator.transform(forecasts[3:4]), moved[3:4])
    for bad in (np.nan, np.inf):
        broken = forecasts.copy()
        broken[7] = bad
        with pytest.raises(prudent.errors.InputError, match="forecasts"):
            clone(recalibrator).fit(broken, outcomes)
        with pytest.raises(prudent.errors.InputError, match="forecasts"):
            recalibrator.transform(broken)
    with pytest.raises(prudent.errors.InputError, match="zero"):
        clone(recalibrator).fit(forecasts, outcomes, sample_weight=np.zeros(len(forecasts)))
    with pytest.raises(prudent.errors.InputError, match="sample_weight"):
        clone(recalibrator).fit(forecasts, outcomes, sample_weight=np.ones(3))


class Interrupted(prudent.recalibration.Recalibrator):
    """Ctrl-C comes when the first rows that were held out are moved."""

    _kind, _fields, space = "interrupted", (), None

    def _fit(self, rows: MemoryRows) -> None:
        self.guarantee_ = guarantees.Unbiased()

    def _moved(self, forecasts: np.ndarray, context: object = None) -> np.ndarray:
        raise KeyboardInterrupt

    @classmethod
    def _restored(cls, record: object, space: object) -> Interrupted:
        raise NotImplementedError


def test_an_interrupt_while_measuring_leaves_nothing_half_fitted() -> None:
    calibrator = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        calibrator.fit(*overconfident(2_000))
    assert not any(name.endswith("_") for name in vars(calibrator))
