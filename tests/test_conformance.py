"""Every exported guarantee and policy is found and put through the same named checks.

A new family that is not listed here fails the build, so it cannot arrive
without being tested.
"""

from __future__ import annotations

import inspect
import pickle
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import prudent
from guarantee_specimens import JOINED, SPECIMENS, families, sample
from prudent import guarantees
from prudent.guarantees.base import And, count_moments, guarantee_from_dict

GUARANTEES = [
    pytest.param(*pair, id=f"{name}-{i}")
    for name, pairs in (SPECIMENS | JOINED).items()
    for i, pair in enumerate(pairs)
]
POLICIES = ["RobustPolicy", "PlugInPolicy", "SafetyPolicy"]
DETERMINISTIC = [f"{name} without draws" for name in ("RobustPolicy", "SafetyPolicy")]


def exported(module: object, base: type) -> set[str]:
    members = ((name, getattr(module, name)) for name in module.__all__)
    return {name for name, value in members if inspect.isclass(value) and issubclass(value, base) and value is not base}


def make_policy(
    name: str, problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee
) -> prudent.policies.Policy:
    family, _, deterministic = name.partition(" ")
    options = {"randomize": False} if deterministic else {}
    promise = (guarantee,) if family == "RobustPolicy" else ()
    return getattr(prudent, family)(problem, *promise, **options)


def test_every_guarantee_has_a_specimen() -> None:
    assert exported(guarantees, guarantees.Guarantee) == set(SPECIMENS)
    assert set(families()) == set(SPECIMENS | JOINED)


def test_every_policy_is_checked() -> None:
    assert exported(prudent, prudent.policies.Policy) == set(POLICIES)


def test_every_public_name_has_a_docstring_and_every_class_an_example() -> None:
    for name in [*prudent.__all__, *(f"guarantees.{n}" for n in guarantees.__all__)]:
        value = prudent
        for part in name.split("."):
            value = getattr(value, part)
        assert inspect.getdoc(value), name
    for name in exported(guarantees, guarantees.Guarantee):
        assert ">>>" in inspect.getdoc(getattr(guarantees, name)), name


def test_every_public_name_is_in_the_reference_page() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in [*prudent.__all__, *guarantees.__all__]:
        assert f"`{name}" in page, name


@pytest.mark.parametrize(("guarantee", "problem"), GUARANTEES)
class TestEveryGuarantee:
    def test_is_a_frozen_value(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        again = deepcopy(guarantee)
        assert again == guarantee
        assert hash(again) == hash(guarantee)
        assert type(guarantee).__name__ in repr(guarantee) or isinstance(guarantee, And)
        with pytest.raises(AttributeError):
            guarantee.something = 1

    def test_names_every_moment_once(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        if guarantee.full:
            pytest.skip("full calibration has no finite list of moments")
        forecasts = sample(problem)
        tests = guarantee.resolve(forecasts, np.full(30, 1 / 30), problem.space).evaluate(forecasts, problem.space)
        assert len(set(tests.names)) == len(tests.names) == tests.n_moments
        assert tests.scales.shape == tests.groups.shape == (tests.n_moments,)
        assert (tests.scales > 0).all()
        assert np.isfinite(tests.values).all()

    def test_is_counted_before_it_is_evaluated(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem
    ) -> None:
        forecasts = sample(problem)
        resolved = guarantee.resolve(forecasts, np.full(30, 1 / 30), problem.space)
        if guarantee.full:
            with pytest.raises(prudent.errors.InputError, match="infinitely many tests"):
                count_moments(resolved, problem.space)
        else:
            assert count_moments(resolved, problem.space) == resolved.evaluate(forecasts, problem.space).n_moments

    def test_scales_bound_the_tests(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        unscaled = (guarantees.LogOdds, guarantees.Temperature, guarantees.FromFunctions, guarantees.UtilityCalibrated)
        if guarantee.full or isinstance(guarantee, unscaled):
            pytest.skip("taken as they are")
        forecasts = sample(problem)
        tests = guarantee.resolve(forecasts, np.full(30, 1 / 30), problem.space).evaluate(forecasts, problem.space)
        assert (np.abs(tests.as_vector().values).max(axis=(0, 2), initial=0) <= tests.scales + 1e-12).all()

    def test_rows_are_evaluated_alone(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        if guarantee.full:
            pytest.skip("full calibration has no finite list of moments")
        forecasts = sample(problem)
        resolved = guarantee.resolve(forecasts, np.full(30, 1 / 30), problem.space)
        together = resolved.evaluate(forecasts, problem.space).values
        alone = np.concatenate([resolved.evaluate(row[None], problem.space).values for row in forecasts])
        np.testing.assert_array_equal(together, alone)

    def test_survives_a_file_or_says_why_not(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem, tmp_path: Path
    ) -> None:
        policy = prudent.RobustPolicy(problem, guarantee).fit(sample(problem))
        path = tmp_path / "policy.json"
        if not guarantee.savable:
            with pytest.raises(prudent.errors.InputError, match="contains Python functions"):
                policy.save(path)
            assert not path.exists()
            return
        assert guarantee_from_dict(guarantee.to_dict()) == guarantee
        policy.save(path)
        again = prudent.load(path)
        fresh = sample(problem, 200)
        np.testing.assert_array_equal(policy.predict_proba(fresh), again.predict_proba(fresh))
        assert again.certificate_ == policy.certificate_
        assert again.guarantee_ == policy.guarantee_

    def test_more_is_guaranteed_than_by_nothing_and_less_than_by_everything(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem
    ) -> None:
        forecasts = sample(problem)
        value = prudent.RobustPolicy(problem, guarantee).fit(forecasts).certificate_.lower
        least = prudent.RobustPolicy(problem, guarantees.Nothing()).fit(forecasts).certificate_.lower
        most = prudent.RobustPolicy(problem, guarantees.FullyCalibrated()).fit(forecasts).certificate_.lower
        assert least - 1e-9 <= value <= most + 1e-9

    @pytest.mark.parametrize("name", POLICIES + DETERMINISTIC)
    def test_every_policy_takes_it(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem, name: str
    ) -> None:
        forecasts = sample(problem)
        before = forecasts.copy()
        policy = clone(make_policy(name, problem, guarantee)).fit(forecasts)
        mixtures = policy.predict_proba(forecasts)
        assert mixtures.shape == (30, problem.n_actions)
        assert mixtures.min() >= 0
        np.testing.assert_allclose(mixtures.sum(axis=1), 1, atol=1e-12)
        assert set(policy.predict(forecasts, keys=range(30)).tolist()) <= set(problem.actions)
        beliefs = policy.worst_case_belief(forecasts)
        problem.space.place(beliefs, "beliefs")
        worst = prudent.worst_case(policy, forecasts, guarantee=guarantee)
        if name.startswith("RobustPolicy"):
            assert worst.value == pytest.approx(policy.certificate_.lower, abs=1e-6)
            assert policy.certificate_.lower <= policy.certificate_.upper
        np.testing.assert_array_equal(forecasts, before)

    def test_policies_can_be_pickled(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        if not guarantee.savable:
            pytest.skip("lambdas cannot be pickled")
        forecasts = sample(problem)
        policy = prudent.RobustPolicy(problem, guarantee).fit(forecasts)
        again = pickle.loads(pickle.dumps(policy))
        np.testing.assert_array_equal(policy.predict_proba(forecasts), again.predict_proba(forecasts))
