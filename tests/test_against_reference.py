"""Thousands of random and degenerate problems against an independent LP/SOCP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import prudent
import reference
from instances import Instance, random_instance
from prudent import chunks
from prudent.solvers import Game, dispatch, first_cells, general, moment_reduction, scalar

PER_CASE = 40
CASES = 56
EXACT_METHODS = {"no tests", "plug-in regions", "separated rows", "slackened cells", "scalar", "full"}


def check_instance(instance: Instance, *, pure: bool) -> None:
    world, fresh, unit = instance.world, instance.fresh, instance.range
    rewards, costs = instance.rewards, instance.costs
    policy = prudent.RobustPolicy(instance.problem, instance.guarantee, slack=instance.slack)
    policy.fit(world.forecasts, instance.outcomes, sample_weight=world.weights)
    certificate = policy.certificate_
    value = reference.robust_value(rewards, costs, world)

    # The bounds bracket the optimum and nearly meet. HiGHS is good to about 1e-8, Clarabel on round sets to 1e-6.
    accuracy = 1e-6 if world.allowed.kind == "ball" else 1e-7
    assert certificate.lower <= certificate.upper
    assert certificate.lower <= value + accuracy * unit
    assert certificate.upper >= value - accuracy * unit
    tolerance = 1e-9 if policy.solution_.method in EXACT_METHODS else 1e-6
    assert certificate.gap <= tolerance * unit, certificate

    # What is played guarantees the optimum, by the reference and by plain weak duality.
    mixtures = policy.predict_proba(world.forecasts)
    assert mixtures.min() >= 0
    np.testing.assert_allclose(mixtures.sum(axis=1), 1.0, atol=1e-12)
    assert reference.worst_case(rewards, costs, mixtures, world) >= value - max(accuracy, 1e-6) * unit
    # Tests that are zero on the sample carry what is played in regions never seen; the proof does not need them.
    seen = np.abs(world.tests).max(axis=(0, 2), initial=0.0) > 0
    multipliers = np.where(seen, policy.multipliers_.reshape(-1), 0.0)
    proven = reference.dual_value(rewards, costs, mixtures, multipliers, world)
    assert certificate.lower - 1e-9 * unit <= proven <= certificate.upper + 1e-9 * unit

    # The worst world is in the space, has the right moments, and holds everyone to the upper bound.
    beliefs = policy.solution_.beliefs
    width = world.high - world.low
    assert (beliefs >= world.low - 1e-12 * width).all()
    assert (beliefs <= world.high + 1e-12 * width).all()
    if world.simplex:
        np.testing.assert_allclose(beliefs.sum(axis=1), 1.0, atol=1e-9)
    size = np.abs(world.tests).max(initial=1.0) * width.max()
    assert world.allowed.violation(world.moments(beliefs)) <= 1e-11 * size
    attained = float(world.weights @ (beliefs @ rewards.T - costs).max(axis=1))
    assert attained == pytest.approx(certificate.upper, abs=1e-9 * unit)

    # On fresh forecasts the same multipliers still prove what they say.
    elsewhere = policy.predict_proba(fresh.forecasts)
    np.testing.assert_allclose(elsewhere.sum(axis=1), 1.0, atol=1e-12)
    if world.allowed.kind == "exact" or not np.any(world.allowed.center):
        floor = reference.dual_value(rewards, costs, elsewhere, policy.multipliers_.reshape(-1), fresh)
        assert reference.worst_case(rewards, costs, elsewhere, fresh) >= floor - max(accuracy, 1e-6) * unit

    if pure:
        rule = prudent.PureRobustPolicy(instance.problem, instance.guarantee, slack=instance.slack)
        rule.fit(world.forecasts, instance.outcomes, sample_weight=world.weights)
        played = rule.predict_proba(world.forecasts)
        assert set(np.unique(played)) <= {0.0, 1.0}
        least = reference.worst_case(rewards, costs, played, world)
        assert rule.certificate_.lower == pytest.approx(least, abs=max(accuracy, 1e-6) * unit)
        assert rule.certificate_.lower <= value + accuracy * unit
        assert rule.certificate_.upper == pytest.approx(certificate.upper, abs=1e-12 * unit)


def check_seeds(seeds: Iterable[int], pure_every: int, rows: int | None = None) -> None:
    for seed in seeds:
        instance = random_instance(seed, rows)
        try:
            check_instance(instance, pure=pure_every > 0 and seed % pure_every == 0)
        except Exception as error:
            error.add_note(instance.label)
            raise


@pytest.mark.parametrize("case", range(CASES))
def test_random_problems_agree_with_the_reference(case: int) -> None:
    check_seeds(range(case * PER_CASE, (case + 1) * PER_CASE), pure_every=5)


@pytest.fixture
def few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Send problems of a few hundred rows through the algorithms for many rows, and count which were taken."""
    monkeypatch.setattr(general, "_MANY_ROWS", 50)
    monkeypatch.setattr(general, "_ROWS_PER_MOMENT", 1)
    monkeypatch.setattr(first_cells, "_FEWEST_CELLS", 16)
    monkeypatch.setattr(first_cells, "_FEWEST_NEIGHBOURS", 16)
    monkeypatch.setattr(first_cells, "_MOST_NEIGHBOURS", 16)
    monkeypatch.setattr(moment_reduction, "_MANY_ROWS", 50)
    monkeypatch.setattr(scalar, "_SAMPLE", 16)
    monkeypatch.setattr(scalar, "_FEW", 32)
    monkeypatch.setattr(chunks, "_CHUNK_ROWS", 64)
    taken: Counter[str] = Counter()
    original = dispatch._certificate

    def counted(game: Game, proposal: Any) -> prudent.Certificate:
        taken[proposal.name] += 1
        return original(game, proposal)

    monkeypatch.setattr(dispatch, "_certificate", counted)
    return taken


@pytest.mark.parametrize("case", range(8))
def test_algorithms_for_many_rows_agree_with_the_reference(case: int, few_rows_are_many: Counter[str]) -> None:
    check_seeds(range(200_000 + 12 * case, 200_000 + 12 * (case + 1)), pure_every=0, rows=300)
    assert few_rows_are_many["refined cells"] >= 2, few_rows_are_many


@pytest.mark.parametrize("case", range(2))
def test_the_softened_dual_agrees_with_the_reference(
    case: int, few_rows_are_many: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if there were too many vertices for cells; few rows make a rough dual, so not many are found this way."""
    monkeypatch.setattr(general, "_MOST_VERTICES", 0)
    monkeypatch.setattr(general, "_ROWS_FOR_A_SMOOTH_DUAL", 1)
    check_seeds(range(400_000 + 40 * case, 400_000 + 40 * (case + 1)), pure_every=0, rows=400)
    assert few_rows_are_many["softened dual"] >= 1, few_rows_are_many


@pytest.mark.slow
@pytest.mark.parametrize("case", range(10))
def test_more_random_problems_agree_with_the_reference(case: int) -> None:
    check_seeds(range(100_000 + case * PER_CASE, 100_000 + (case + 1) * PER_CASE), pure_every=2)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(5))
def test_algorithms_for_many_rows_agree_with_the_reference_more_often(
    case: int, few_rows_are_many: Counter[str]
) -> None:
    check_seeds(range(300_000 + 20 * case, 300_000 + 20 * (case + 1)), pure_every=0, rows=400)
    assert few_rows_are_many["refined cells"] >= 1, few_rows_are_many


def test_there_are_at_least_two_thousand() -> None:
    assert CASES * PER_CASE >= 2000
