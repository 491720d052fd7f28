"""Bounds of bounded means hold by exact enumeration, and depend on nothing that they should not depend on."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from prudent.cases.mean_bounds import Means

ERRORS = (0.2, 0.05, 0.01)


def means_of(values: np.ndarray, weights: np.ndarray | None = None, units: np.ndarray | None = None) -> Means:
    weights = np.ones(len(values)) if weights is None else weights
    return Means.of_rows(np.asarray(values, dtype=float), weights / weights.sum(), 0.0, 1.0, units)


def without_totals(means: Means) -> Means:
    return replace(means, totals=None)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("totals", [True, False])
def test_coverage_of_coins_by_enumeration(n: int, error: float, totals: bool) -> None:
    found = [means_of(np.arange(n) < heads) for heads in range(n + 1)]
    found = found if totals else [without_totals(each) for each in found]
    lower = np.array([each.means[0] - each.radii(error)[0] for each in found])
    upper = np.array([each.means[0] + each.radii(error, below=False)[0] for each in found])
    assert (lower >= -1e-12).all()
    assert (upper <= 1 + 1e-12).all()
    for share in [*np.linspace(0, 1, 201), *np.clip(lower - 1e-6, 0, 1), *np.clip(upper + 1e-6, 0, 1)]:
        chances = stats.binom.pmf(np.arange(n + 1), n, share)
        assert chances[lower > share + 1e-9].sum() <= error + 1e-12, share
        assert chances[upper < share - 1e-9].sum() <= error + 1e-12, share


@pytest.mark.parametrize("error", ERRORS)
def test_coverage_by_enumeration_with_unequal_weights_and_three_values(error: float) -> None:
    values, weights = np.array([0.0, 0.3, 1.0]), np.array([5.0, 1.0, 1.0, 2.0, 3.0, 0.5])
    samples = [np.array(each) for each in product(range(3), repeat=6)]
    found = [means_of(values[each], weights) for each in samples]
    lower = np.array([each.means[0] - each.radii(error)[0] for each in found])
    upper = np.array([each.means[0] + each.radii(error, below=False)[0] for each in found])
    for chances in ([0.2, 0.2, 0.6], [0.9, 0.05, 0.05], [0.0, 0.5, 0.5], [0.05, 0.0, 0.95], [0.6, 0.39, 0.01]):
        mean = float(values @ chances)
        probabilities = np.array([np.prod(np.array(chances)[each]) for each in samples])
        assert probabilities.sum() == pytest.approx(1)
        assert probabilities[lower > mean + 1e-9].sum() <= error
        assert probabilities[upper < mean - 1e-9].sum() <= error


def test_independent_values_need_no_common_mean() -> None:
    shares, error = np.array([0.1, 0.9, 0.5, 0.0, 1.0, 0.3, 0.7, 0.05]), 0.05
    mean, missed = shares.mean(), 0.0
    for sample in product((0.0, 1.0), repeat=8):
        chance = float(np.prod(np.where(np.array(sample) == 1, shares, 1 - shares)))
        found = means_of(np.array(sample))
        missed += chance * (found.means[0] - found.radii(error)[0] > mean + 1e-9)
    assert missed <= error


samples = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n = int(rng.choice([2, 5, 12, 40, 150]))
    values = rng.random(n)
    if rng.random() < 0.7:
        values = np.where(rng.random(n) < rng.choice([0.5, 0.05]), values, 0.01 * values).round(3)
    return values, np.ones(n) if rng.random() < 0.5 else rng.random(n) + 0.01


@given(samples)
@settings(max_examples=60, deadline=None)
def test_bounds_grow_with_confidence(rng: np.random.Generator) -> None:
    means = means_of(*draw(rng))
    for below in (True, False):
        radii = [means.radii(error, below=below)[0] for error in np.geomspace(1e-6, 0.5, 25)]
        assert (np.diff(radii) <= 1e-6).all()


@given(samples)
@settings(max_examples=60, deadline=None)
def test_sums_alone_are_never_shorter_than_values(rng: np.random.Generator) -> None:
    means = means_of(*draw(rng))
    for error, below in product(ERRORS, (True, False)):
        alone = without_totals(means).radii(error, below=below)[0]
        assert alone >= means.radii(error, below=below)[0] - 1e-6


@given(samples)
@settings(max_examples=40, deadline=None)
def test_order_side_and_scale_do_not_matter(rng: np.random.Generator) -> None:
    values, weights = draw(rng)
    order = rng.permutation(len(values))
    radius = means_of(values, weights).radii(0.05)[0]
    assert means_of(values[order], weights[order]).radii(0.05)[0] == pytest.approx(radius, rel=1e-5)
    assert means_of(1 - values, weights).radii(0.05, below=False)[0] == pytest.approx(radius, rel=1e-5)
    moved = Means.of_rows(100 * values - 30, weights / weights.sum(), -30.0, 70.0)
    assert moved.radii(0.05)[0] == pytest.approx(100 * radius, rel=1e-4)


def test_rows_of_a_unit_count_once() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(30)
    together = means_of(np.repeat(values, 7), units=np.repeat(np.arange(30), 7))
    alone = means_of(values)
    assert together.n_units == 30
    assert together.means[0] == pytest.approx(alone.means[0])
    # Student's t and what a period that was not seen can change; rows alone are bet on.
    student = stats.t(29).ppf(0.95) * values.std(ddof=1) / np.sqrt(30)
    assert together.radii(0.05)[0] == pytest.approx(student + np.log(20) / 30, rel=1e-6)
    assert together.radii(0.05)[0] >= alone.radii(0.05)[0]
    assert means_of(np.repeat(values, 7)).radii(0.05)[0] < 0.6 * alone.radii(0.05)[0]


def test_many_values_have_students_bound_and_what_is_unseen() -> None:
    values = np.random.default_rng(1).random(4_000)
    student = stats.t(3_999).ppf(0.95) * values.std(ddof=1) / np.sqrt(4_000)
    assert means_of(values).radii(0.05)[0] == pytest.approx(student + np.log(20) / 4_000, rel=1e-9)


def test_equal_values_leave_room_for_what_was_not_seen() -> None:
    for n in (5, 100, 10_000):
        means = means_of(np.zeros(n))
        assert means.radii(0.05)[0] == 0.0
        # Nothing smaller would do: values of one with the probability 1 - 0.05^(1/n) stay away with a chance of 5%.
        assert means.radii(0.05, below=False)[0] >= 1 - 0.05 ** (1 / n)


@given(samples)
@settings(max_examples=40, deadline=None)
def test_p_values_are_where_bounds_reach_zero(rng: np.random.Generator) -> None:
    values, weights = draw(rng)
    means = Means.of_rows(values - rng.uniform(0.1, 0.5), weights / weights.sum(), -0.5, 1.0)
    below, size = bool(means.means[0] > 0), abs(float(means.means[0]))
    found = float(means.p_values()[0])
    assert 0 <= found <= 1
    if 1e-9 < found < 0.8:
        assert means.radii(0.48 * found, below=below)[0] >= size - 1e-9
        assert means.radii(0.52 * found, below=below)[0] <= size + 1e-9
