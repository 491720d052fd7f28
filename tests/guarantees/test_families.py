"""Every guarantee's tests, names and scales, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import Box, InputError, Simplex, guarantees

UNIT = Box(0, 1)
V = np.array([[0.0], [0.25], [0.5], [0.75], [1.0]])
WEIGHTS = np.full(5, 0.2)


def test_nothing_has_no_moments() -> None:
    tests = guarantees.Nothing().evaluate(V, UNIT)
    assert tests.values.shape == (5, 0)
    assert tests.names == ()
    assert tests.multiplier_shape == (0, 1)


def test_unbiased_is_the_constant() -> None:
    tests = guarantees.Unbiased().evaluate(np.tile(V, 2), Box([0, 0], [1, 1]))
    assert (tests.values == 1).all()
    assert tests.names == ("1 x y[0]", "1 x y[1]")


def test_self_orthogonal_is_scaled_to_outcome_units() -> None:
    tests = guarantees.SelfOrthogonal(intercept=True).evaluate(np.array([[-3.0], [2.0]]), Box(-3, 2))
    np.testing.assert_array_equal(tests.values, [[1, -3], [1, 2]])
    assert tests.scales.tolist() == [1.0, 3.0]
    assert tests.names == ("1", "v")


def test_polynomial_counts_monomials_in_normalised_coordinates() -> None:
    tests = guarantees.Polynomial(2).evaluate(np.array([[10.0, 4.0]]), Box([0, 0], [20, 4]))
    np.testing.assert_allclose(tests.values, [[1, 0.5, 1.0, 0.25, 0.5, 1.0]])
    assert tests.names[::2] == tuple(f"{n} x y[0]" for n in ("1", "z[0]", "z[1]", "z[0]^2", "z[0] z[1]", "z[1]^2"))
    assert guarantees.Polynomial(0).evaluate(V, UNIT).values.shape == (5, 1)


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    tests = guarantees.Binned([0, 0.5, 1]).evaluate(V, UNIT)
    np.testing.assert_array_equal(tests.values.argmax(axis=1), [0, 0, 1, 1, 1])
    assert tests.names == ("v in [0, 0.5)", "v in [0.5, 1]")


def test_forecasts_outside_all_bins_are_refused() -> None:
    with pytest.raises(InputError, match=r"within the bins \[0.1, 0.9\]; rows 0, 4 do not"):
        guarantees.Binned([0.1, 0.9]).evaluate(V, UNIT)


def test_uniform_bins_take_the_space() -> None:
    resolved = guarantees.Binned.uniform(4).resolve(V * 40, WEIGHTS, Box(0, 40))
    assert resolved == guarantees.Binned([0, 10, 20, 30, 40])


def test_quantile_bins_take_the_sample_merge_duplicates_and_cover_the_space() -> None:
    sample = np.array([[0.2], [0.2], [0.2], [0.6], [0.8]])
    resolved = guarantees.Binned.quantiles(5).resolve(sample, WEIGHTS, UNIT)
    assert resolved == guarantees.Binned([0, 0.2, 0.6, 1])
    weighted = guarantees.Binned.quantiles(2).resolve(V, np.array([0.1, 0.1, 0.1, 0.6, 0.1]), UNIT)
    assert weighted == guarantees.Binned([0, 0.75, 1])


def test_quantile_bins_are_stored_in_the_policy() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    policy = prudent.RobustPolicy(problem, guarantees.Binned.quantiles(3)).fit([0.1, 0.4, 0.5, 0.9])
    assert isinstance(policy.guarantee_, guarantees.Binned)
    assert policy.predict([0.0, 1.0]).shape == (2,)


def test_partition_remembers_the_cells_it_saw() -> None:
    cells = guarantees.Partition(lambda v: np.where(v[:, 0] < 0.5, "low", "high"))
    resolved = cells.resolve(V[:2], WEIGHTS[:2], UNIT)
    assert resolved.cells == ("low",)
    np.testing.assert_array_equal(resolved.evaluate(V, UNIT).values, [[1], [1], [0], [0], [0]])
    with pytest.raises(InputError, match=r"one cell per row, shape \(5,\)"):
        guarantees.Partition(lambda v: v[:1, 0]).evaluate(V, UNIT)


def test_unseen_cells_get_the_safety_mixture() -> None:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    policy = prudent.RobustPolicy(problem, guarantees.Binned([0, 0.5, 1])).fit([0.1, 0.2])
    np.testing.assert_allclose(policy.predict_proba([0.9]), [[0.5, 0.5]])
    assert policy.multipliers_[1, 0] == 0


def test_decision_regions_are_a_partition_by_the_first_declared() -> None:
    problem = prudent.DecisionProblem([1.0, 2.0], [0.0, 0.5], actions=["one", "two"])
    tests = guarantees.DecisionCalibrated(problem).evaluate(V, UNIT)
    np.testing.assert_array_equal(tests.values.argmax(axis=1), [0, 0, 0, 1, 1])  # the tie at 0.5 goes to "one"
    assert (tests.values.sum(axis=1) == 1).all()
    assert tests.names == ("best response one", "best response two")


def test_unseen_regions_keep_minus_the_reward() -> None:
    problem = prudent.DecisionProblem([1.0, 2.0], [0.0, 0.5])
    policy = prudent.RobustPolicy(problem, guarantees.DecisionCalibrated(problem)).fit([0.1, 0.2])
    np.testing.assert_array_equal(policy.multipliers_, [[-1], [-2]])
    np.testing.assert_array_equal(policy.predict_proba([0.9]), [[0, 1]])


def test_problems_of_other_spaces_are_refused() -> None:
    problem = prudent.DecisionProblem([1.0, 2.0], space=Box(0, 7))
    for family in (guarantees.DecisionCalibrated, guarantees.UtilityCalibrated):
        with pytest.raises(InputError, match="all problems must share one space"):
            family(problem).evaluate(V, UNIT)
        with pytest.raises(InputError, match="non-empty list"):
            family([])
        with pytest.raises(InputError, match="non-empty list"):
            family(["problem"])


def test_utility_calibration_is_the_reward_of_the_best_response() -> None:
    problem = prudent.DecisionProblem([[1.0, 2.0], [3.0, 0.0]])
    tests = guarantees.UtilityCalibrated(problem).evaluate(np.array([[0.1, 0.9], [0.9, 0.1]]), problem.space)
    np.testing.assert_array_equal(tests.values[:, 0], [[1, 2], [3, 0]])
    assert tests.multiplier_shape == (1,)


def test_top_label_confidence_and_classwise() -> None:
    forecasts = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    top = guarantees.TopLabel(2).evaluate(forecasts, Simplex(3))
    assert top.values.shape == (2, 6, 3)
    assert top.values[0, 1].tolist() == [1, 0, 0]
    assert top.values[1, 5].tolist() == [0, 0, 1]
    assert top.values.sum() == 2
    confidence = guarantees.Confidence(2).evaluate(forecasts, Simplex(3))
    np.testing.assert_array_equal(confidence.values, top.values.reshape(2, 3, 2, 3).sum(axis=1))
    classwise = guarantees.Classwise(2).evaluate(forecasts, Simplex(3))
    assert classwise.values.sum() == 6
    for family in (guarantees.TopLabel, guarantees.Confidence):
        with pytest.raises(InputError, match="needs a Simplex"):
            family(2).evaluate(V, UNIT)


def test_log_odds_and_temperature() -> None:
    forecasts = np.array([[0.5, 0.3, 0.2]])
    odds = guarantees.LogOdds().evaluate(forecasts, Simplex(3, classes=["a", "b", "c"]))
    np.testing.assert_allclose(odds.values, [[1, np.log(2.5), np.log(1.5)]])
    assert odds.names[3:6] == ("log-odds a:c x y[a]", "log-odds a:c x y[b]", "log-odds a:c x y[c]")
    heat = guarantees.Temperature().evaluate(forecasts, Simplex(3))
    np.testing.assert_allclose(heat.values[:, 0], np.log(forecasts))
    single = guarantees.LogOdds(intercept=False).evaluate(np.array([[0.2]]), UNIT)
    np.testing.assert_allclose(single.values, [[np.log(0.25)]])
    with pytest.raises(InputError, match="strictly inside the space; row 1 are not"):
        guarantees.LogOdds().evaluate(np.array([[0.5, 0.5], [1.0, 0.0]]), Simplex(2))
    with pytest.raises(InputError, match="Simplex or a box of one coordinate"):
        guarantees.LogOdds().evaluate(np.array([[0.5, 0.5]]), Box([0, 0], [1, 1]))


def test_functions_may_be_scalar_or_vector() -> None:
    guarantee = guarantees.FromFunctions([lambda v: v[:, 0] ** 2, lambda v: v[:, ::-1]], names=["square", "flip"])
    tests = guarantee.evaluate(np.array([[0.5, 0.2]]), Box([0, 0], [1, 1]))
    np.testing.assert_allclose(tests.values[0], [[0.25, 0], [0, 0.25], [0.2, 0.5]])
    assert tests.names == ("square x y[0]", "square x y[1]", "flip")
    assert tests.groups.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: v[:2, 0], r"must return shape \(5,\) or \(5, 1\); got \(2,\)"),
        (lambda v: np.full(5, np.nan), "'h1' must be finite"),
        (lambda v: ["a"] * 5, "'h1' must be numbers"),
    ],
)
def test_bad_functions_are_refused(function: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        guarantees.FromFunctions([function]).evaluate(V, UNIT)


def test_declared_bounds_are_checked_and_scale() -> None:
    guarantee = guarantees.FromFunctions([lambda v: 4 * v[:, 0]], bounds=[4.0])
    assert guarantee.evaluate(V, UNIT).scales.tolist() == [4.0]
    with pytest.raises(InputError, match="reaches 4, above its declared bound 2"):
        guarantees.FromFunctions([lambda v: 4 * v[:, 0]], bounds=[2.0]).evaluate(V, UNIT)
    for arguments in ({"functions": []}, {"functions": [1]}, {"functions": [np.sin], "names": ["a", "b"]}):
        with pytest.raises(InputError):
            guarantees.FromFunctions(**arguments)
    with pytest.raises(InputError, match="bounds must be 1 positive numbers"):
        guarantees.FromFunctions([np.sin], bounds=[-1])


def test_functions_cannot_change_the_forecasts() -> None:
    values = V.copy()

    def vandal(v: np.ndarray) -> np.ndarray:
        v[:] = 0.5
        return v[:, 0]

    guarantees.FromFunctions([vandal]).evaluate(values, UNIT)
    np.testing.assert_array_equal(values, V)


def test_and_joins_names_and_mixes_scalar_with_vector() -> None:
    problem = prudent.DecisionProblem([[1.0, 2.0], [3.0, 0.0]])
    both = guarantees.Unbiased() & guarantees.Unbiased() & guarantees.UtilityCalibrated(problem)
    assert len(both.parts) == 3
    tests = both.evaluate(np.array([[0.1, 0.9]]), problem.space)
    assert tests.names == ("1 x y[0]", "1 x y[1]", "1 x y[0] (2)", "1 x y[1] (2)", "utility")
    assert tests.values.shape == (1, 5, 2)
    assert tests.groups.tolist() == [0, 0, 1, 1, 2]
    with pytest.raises(TypeError):
        guarantees.Unbiased() & "something"


@pytest.mark.parametrize("make", [guarantees.Polynomial, guarantees.TopLabel, guarantees.Binned.uniform])
@pytest.mark.parametrize("count", [-1, 2.5, "3", True])
def test_counts_must_be_whole(make: object, count: object) -> None:
    with pytest.raises(InputError, match="must be a whole number"):
        make(count)


@pytest.mark.parametrize("edges", [[0], [0, 0, 1], [1, 0], [0, np.nan], [[0, 1]]])
def test_bad_edges_are_refused(edges: list) -> None:
    with pytest.raises(InputError, match="edges must be"):
        guarantees.Binned(edges)


def test_binned_is_for_one_coordinate() -> None:
    with pytest.raises(InputError, match="Use Classwise, TopLabel, Confidence or Partition"):
        guarantees.Binned([0, 1]).evaluate(np.array([[0.5, 0.5]]), Simplex(2))


def test_full_calibration_cannot_be_evaluated_but_absorbs() -> None:
    with pytest.raises(InputError, match="infinitely many tests"):
        guarantees.FullyCalibrated().evaluate(V, UNIT)
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    guarantee = guarantees.Unbiased() & guarantees.FullyCalibrated()
    policy = prudent.RobustPolicy(problem, guarantee).fit(V)
    assert policy.multipliers_ is None
    np.testing.assert_array_equal(policy.predict_proba(V), prudent.PlugInPolicy(problem).predict_proba(V))
    np.testing.assert_array_equal(policy.worst_case_belief(V), V)
    with pytest.raises(InputError, match="slack has no meaning for FullyCalibrated"):
        prudent.RobustPolicy(problem, guarantee, slack=0.1).fit(V)
