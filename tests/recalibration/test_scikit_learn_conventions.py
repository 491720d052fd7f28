"""Recalibrators as scikit-learn estimators: its own checks where they can apply, and the same demands where not.

Most of its checks bring features of some width and a target of one column. A
recalibrator takes forecasts and outcomes of one and the same width, so a check
either passes or is told about the width, but for the exceptions below.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import prudent
from prudent import guarantees

SPACE = prudent.Box(-1e6, 1e6)
PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, 0.5], space=SPACE)
MAKERS: dict[str, Callable[[], prudent.Recalibrator]] = {
    "DecisionCalibrator": lambda: prudent.DecisionCalibrator(PROBLEM, random_state=0),
    "GuaranteeCalibrator": lambda: prudent.GuaranteeCalibrator(guarantees.SelfOrthogonal(), space=SPACE),
    "HistogramCalibrator": lambda: prudent.HistogramCalibrator(5, space=SPACE),
    "IsotonicCalibrator": lambda: prudent.IsotonicCalibrator(space=SPACE),
    "MeanCalibrator": lambda: prudent.MeanCalibrator(space=SPACE),
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
    named = {name: getattr(prudent, name) for name in prudent.__all__}  # they are loaded when they are asked for
    public = {
        name
        for name, value in named.items()
        if isinstance(value, type) and issubclass(value, prudent.Recalibrator) and value is not prudent.Recalibrator
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
        with pytest.raises(prudent.InputError, match="forecasts"):
            clone(recalibrator).fit(broken, outcomes)
        with pytest.raises(prudent.InputError, match="forecasts"):
            recalibrator.transform(broken)
    with pytest.raises(prudent.InputError, match="zero"):
        clone(recalibrator).fit(forecasts, outcomes, sample_weight=np.zeros(len(forecasts)))
    with pytest.raises(prudent.InputError, match="sample_weight"):
        clone(recalibrator).fit(forecasts, outcomes, sample_weight=np.ones(3))
