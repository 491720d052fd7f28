"""Bins of the forecast and of the top label's probability, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import Box, Simplex, guarantees
from prudent.errors import InputError

UNIT = Box(0, 1)
V = np.array([[0.0], [0.25], [0.5], [0.75], [1.0]])
WEIGHTS = np.full(5, 0.2)


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    tests = guarantees.Bins([0, 0.5, 1]).evaluate(V, UNIT)
    np.testing.assert_array_equal(tests.values.argmax(axis=1), [0, 0, 1, 1, 1])
    assert tests.names == ("v in [0, 0.5)", "v in [0.5, 1]")


def test_bins_that_leave_out_forecasts_are_refused() -> None:
    with pytest.raises(InputError, match=r"edges must cover the outcome space, \[0.0, 1.0\]; got \[0.1, 0.9\]"):
        guarantees.Bins([0.1, 0.9]).evaluate(V, UNIT)


def test_uniform_bins_take_the_space() -> None:
    resolved = guarantees.Bins(4).resolve(V * 40, WEIGHTS, Box(0, 40))
    assert resolved == guarantees.Bins([0, 10, 20, 30, 40])


def test_quantile_bins_take_the_sample_merge_duplicates_and_cover_the_space() -> None:
    sample = np.array([[0.2], [0.2], [0.2], [0.6], [0.8]])
    resolved = guarantees.Bins(5, "quantile").resolve(sample, WEIGHTS, UNIT)
    assert resolved == guarantees.Bins([0, 0.2, 0.6, 1])
    weighted = guarantees.Bins(2, "quantile").resolve(V, np.array([0.1, 0.1, 0.1, 0.6, 0.1]), UNIT)
    assert weighted == guarantees.Bins([0, 0.75, 1])


def test_quantile_bins_are_stored_in_the_policy() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    policy = prudent.RobustPolicy(problem, guarantees.Bins(3, "quantile")).fit([0.1, 0.4, 0.5, 0.9])
    assert isinstance(policy.guarantee_, guarantees.Bins)
    assert policy.predict([0.0, 1.0]).shape == (2,)


def test_unseen_cells_get_the_safety_mixture() -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    policy = prudent.RobustPolicy(problem, guarantees.Bins([0, 0.5, 1])).fit([0.1, 0.2])
    np.testing.assert_allclose(policy.predict_proba([0.9]), [[0.5, 0.5]])
    assert policy.multipliers_[1, 0] == 0


def test_top_label_confidence_and_classwise() -> None:
    forecasts = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    top = guarantees.TopLabel(2).evaluate(forecasts, Simplex(3))
    assert top.values.shape == (2, 6, 3)
    assert top.values[0, 1].tolist() == [1, 0, 0]
    assert top.values[1, 5].tolist() == [0, 0, 1]
    assert top.values.sum() == 2
    confidence = guarantees.TopLabelPooled(2).evaluate(forecasts, Simplex(3))
    np.testing.assert_array_equal(confidence.values, top.values.reshape(2, 3, 2, 3).sum(axis=1))
    classwise = guarantees.Classwise(2).evaluate(forecasts, Simplex(3))
    assert classwise.values.sum() == 6
    for family in (guarantees.TopLabel, guarantees.TopLabelPooled):
        with pytest.raises(InputError, match="needs a Simplex"):
            family(2).evaluate(V, UNIT)


def test_bins_are_written_as_they_are_given() -> None:
    for given in ("Bins(4)", "Bins(4, 'quantile')", "Bins([0.0, 0.3, 1.0])"):
        assert repr(eval(given, {"Bins": guarantees.Bins})) == given


def test_spacing_is_that_of_a_number_of_bins() -> None:
    with pytest.raises(InputError, match="spacing must be 'width' or 'quantile'; got 'quantiles'"):
        guarantees.Bins(4, "quantiles")
    with pytest.raises(InputError, match="spacing='quantile' is for a number of bins; got the edges"):
        guarantees.Bins([0, 0.5, 1], "quantile")
    with pytest.raises(InputError, match=r"Bins\(4, 'quantile'\) has no edges before it is resolved on a sample"):
        guarantees.Bins(4, "quantile").stated(UNIT)


@pytest.mark.parametrize("edges", [[0], [0, 0, 1], [1, 0], [0, np.nan], [[0, 1]]])
def test_bad_edges_are_refused(edges: list) -> None:
    with pytest.raises(InputError, match="edges must be"):
        guarantees.Bins(edges)


def test_bins_are_for_one_coordinate() -> None:
    with pytest.raises(InputError, match="Use Classwise, TopLabel, TopLabelPooled or Partition"):
        guarantees.Bins([0, 1]).evaluate(np.array([[0.5, 0.5]]), Simplex(2))
