"""Every exported guarantee and policy is found and put through the same named checks.

A new family that is not listed here fails the build, so it cannot arrive
without being tested.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import prudent
from guarantee_specimens import BOX, CLASSES, INTERVAL, JOINED, SPECIMENS, context_of, families, sample
from prudent import guarantees
from prudent.guarantees.base import And, count_moments, guarantee_from_dict

GUARANTEES = [
    pytest.param(*pair, id=f"{name}-{i}")
    for name, pairs in (SPECIMENS | JOINED).items()
    for i, pair in enumerate(pairs)
]
POLICIES = ["RobustPolicy", "PlugInPolicy", "SafetyPolicy", "FixedRule", "RecalibratedPolicy"]
DETERMINISTIC = [f"{name} without draws" for name in ("RobustPolicy", "SafetyPolicy")]


def exported(module: object, base: type) -> set[str]:
    members = ((name, getattr(module, name)) for name in module.__all__)
    return {name for name, value in members if inspect.isclass(value) and issubclass(value, base) and value is not base}


def policy_classes(base: type = prudent.policies.Policy) -> set[type]:
    """Every policy of the library, wherever it is defined, that is not a base of others."""
    for module in pkgutil.walk_packages(prudent.__path__, "prudent."):
        importlib.import_module(module.name)
    children = {child for child in base.__subclasses__() if child.__module__.startswith("prudent.")}
    found = children.union(*map(policy_classes, children))
    return {kind for kind in found if not any(each.__module__.startswith("prudent.") for each in kind.__subclasses__())}


def make_policy(
    name: str, problem: prudent.DecisionProblem, guarantee: guarantees.Guarantee
) -> prudent.policies.Policy:
    family, _, deterministic = name.partition(" ")
    if family == "FixedRule":
        if problem.dimension == 1:
            return prudent.FixedRule(problem, [0.4], actions=problem.actions[:2])
        return prudent.FixedRule(problem, function=lambda forecasts: [problem.actions[0]] * len(forecasts))
    if family == "RecalibratedPolicy":
        isotonic = prudent.recalibration.IsotonicCalibrator(space=problem.space)
        rows = sample(problem)
        return prudent.RecalibratedPolicy(isotonic.fit(rows, rows[::-1]), prudent.PlugInPolicy(problem))
    options = {"randomize": False} if deterministic else {}
    promise = (guarantee,) if family == "RobustPolicy" else ()
    return getattr(prudent, family)(problem, *promise, **options)


def test_every_guarantee_has_a_specimen() -> None:
    assert exported(guarantees, guarantees.Guarantee) == set(SPECIMENS)
    assert set(families()) == set(SPECIMENS | JOINED)


def test_every_policy_is_checked() -> None:
    assert {kind.__name__ for kind in policy_classes()} == exported(prudent, prudent.policies.Policy) == set(POLICIES)


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


def evaluated(guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem, forecasts: np.ndarray) -> Any:
    """The tests of a guarantee on the rows that it is resolved on."""
    given = problem.space, context_of(len(forecasts))
    return guarantee.resolve(forecasts, np.full(30, 1 / 30), *given).evaluate(forecasts, *given)


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
        tests = evaluated(guarantee, problem, forecasts)
        assert len(set(tests.names)) == len(tests.names) == tests.n_moments
        assert tests.scales.shape == tests.groups.shape == (tests.n_moments,)
        assert (tests.scales > 0).all()
        assert np.isfinite(tests.values).all()

    def test_is_counted_before_it_is_evaluated(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem
    ) -> None:
        forecasts = sample(problem)
        resolved = guarantee.resolve(forecasts, np.full(30, 1 / 30), problem.space, context_of())
        if guarantee.full:
            with pytest.raises(prudent.errors.InputError, match="infinitely many tests"):
                count_moments(resolved, problem.space)
        else:
            assert (
                count_moments(resolved, problem.space)
                == resolved.evaluate(forecasts, problem.space, context_of()).n_moments
            )

    def test_scales_bound_the_tests(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        unscaled = (guarantees.LogOdds, guarantees.Temperature, guarantees.FromFunctions, guarantees.UtilityCalibrated)
        if guarantee.full or isinstance(getattr(guarantee, "guarantee", guarantee), unscaled):
            pytest.skip("taken as they are")
        forecasts = sample(problem)
        tests = evaluated(guarantee, problem, forecasts)
        assert (np.abs(tests.as_vector().values).max(axis=(0, 2), initial=0) <= tests.scales + 1e-12).all()

    def test_rows_are_evaluated_alone(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        if guarantee.full:
            pytest.skip("full calibration has no finite list of moments")
        forecasts = sample(problem)
        resolved = guarantee.resolve(forecasts, np.full(30, 1 / 30), problem.space, context_of())
        together = resolved.evaluate(forecasts, problem.space, context_of()).values
        alone = [
            resolved.evaluate(row[None], problem.space, {name: column[[i]] for name, column in context_of().items()})
            for i, row in enumerate(forecasts)
        ]
        np.testing.assert_array_equal(together, np.concatenate([tests.values for tests in alone]))

    def test_survives_a_file_or_says_why_not(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem, tmp_path: Path
    ) -> None:
        policy = prudent.RobustPolicy(problem, guarantee).fit(sample(problem), context=context_of())
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
        np.testing.assert_array_equal(
            policy.predict_proba(fresh, context=context_of(200)), again.predict_proba(fresh, context=context_of(200))
        )
        assert again.certificate_ == policy.certificate_
        assert again.guarantee_ == policy.guarantee_

    def test_more_is_guaranteed_than_by_nothing_and_less_than_by_everything(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem
    ) -> None:
        forecasts = sample(problem)
        value = prudent.RobustPolicy(problem, guarantee).fit(forecasts, context=context_of()).certificate_.lower
        least = (
            prudent.RobustPolicy(problem, guarantees.Nothing()).fit(forecasts, context=context_of()).certificate_.lower
        )
        most = (
            prudent.RobustPolicy(problem, guarantees.FullyCalibrated())
            .fit(forecasts, context=context_of())
            .certificate_.lower
        )
        assert least - 1e-9 <= value <= most + 1e-9

    @pytest.mark.parametrize("name", POLICIES + DETERMINISTIC)
    def test_every_policy_takes_it(
        self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem, name: str
    ) -> None:
        forecasts = sample(problem)
        before = forecasts.copy()
        policy = clone(make_policy(name, problem, guarantee)).fit(forecasts, context=context_of())
        mixtures = policy.predict_proba(forecasts, context=context_of())
        assert mixtures.shape == (30, problem.n_actions)
        assert mixtures.min() >= 0
        np.testing.assert_allclose(mixtures.sum(axis=1), 1, atol=1e-12)
        assert set(policy.predict(forecasts, keys=range(30), context=context_of()).tolist()) <= set(problem.actions)
        beliefs = policy.worst_case_belief(forecasts, context=context_of())
        problem.space.place(beliefs, "beliefs")
        worst = prudent.worst_case(policy, forecasts, guarantee=guarantee, context=context_of())
        if name.startswith("RobustPolicy"):
            assert worst.value == pytest.approx(policy.certificate_.lower, abs=1e-6)
            assert policy.certificate_.lower <= policy.certificate_.upper
        np.testing.assert_array_equal(forecasts, before)

    def test_policies_can_be_pickled(self, guarantee: guarantees.Guarantee, problem: prudent.DecisionProblem) -> None:
        if not guarantee.savable:
            pytest.skip("lambdas cannot be pickled")
        forecasts = sample(problem)
        policy = prudent.RobustPolicy(problem, guarantee).fit(forecasts, context=context_of())
        again = pickle.loads(pickle.dumps(policy))
        np.testing.assert_array_equal(
            policy.predict_proba(forecasts, context=context_of()), again.predict_proba(forecasts, context=context_of())
        )


OWN = {"": (), " with costs per row": ("costs",), " with rewards and costs per row": ("rewards", "costs")}
FITTED = [*POLICIES, *DETERMINISTIC, *(f"RobustPolicy{words}" for words in OWN if words)]


@pytest.mark.parametrize("problem", [INTERVAL, CLASSES, BOX], ids=["interval", "classes", "box"])
@pytest.mark.parametrize("name", FITTED)
class TestEveryPolicy:
    def fitted(self, name: str, problem: prudent.DecisionProblem) -> tuple[Any, np.ndarray, dict[str, np.ndarray]]:
        """A fitted policy, forecasts, and what rows have of their own."""
        forecasts, rng = sample(problem), np.random.default_rng(2)
        given = {
            "rewards": problem.rewards + 0.1 * rng.normal(size=(30, *problem.rewards.shape)),
            "costs": problem.costs + 0.1 * rng.normal(size=(30, problem.n_actions)),
        }
        own = {part: given[part] for words, parts in OWN.items() if words and name.endswith(words) for part in parts}
        made = make_policy("RobustPolicy" if own else name, problem, guarantees.SelfOrthogonal())
        return made.fit(forecasts, **own), forecasts, own

    def test_survives_a_file(self, name: str, problem: prudent.DecisionProblem, tmp_path: Path) -> None:
        policy, forecasts, own = self.fitted(name, problem)
        if getattr(policy, "function", None) is not None:
            with pytest.raises(prudent.errors.InputError, match="cannot be saved"):
                policy.save(tmp_path / "policy.json")
            return
        policy.save(tmp_path / "policy.json")
        again = prudent.load(tmp_path / "policy.json")
        assert type(again) is type(policy)
        assert prudent.policies.policy_to_dict(again) == prudent.policies.policy_to_dict(policy)
        keys = range(30)
        np.testing.assert_array_equal(
            again.predict(forecasts, keys=keys, **own), policy.predict(forecasts, keys=keys, **own)
        )

    def test_explains_a_case_and_shows_its_bands(self, name: str, problem: prudent.DecisionProblem) -> None:
        policy, forecasts, own = self.fitted(name, problem)
        case = {part: rows[3] for part, rows in own.items()}
        played = policy.predict_proba(forecasts, **own)[3]
        np.testing.assert_allclose(policy.explain(forecasts[3], **case).probabilities, played, atol=1e-6)
        if problem.dimension > 1:
            with pytest.raises(prudent.errors.InputError, match="one coordinate"):
                policy.bands(**case)
            return
        band = next(band for band in policy.bands(**case) if band.first <= forecasts[3, 0] <= band.last)
        assert [problem.actions[a] for a in np.flatnonzero(played > 1e-6)] == list(band.actions)
        if own:
            with pytest.raises(prudent.errors.InputError, match="per row; got none"):
                policy.explain(forecasts[3])

    def test_writes_sql_or_says_why_not(self, name: str, problem: prudent.DecisionProblem) -> None:
        policy, forecasts, own = self.fitted(name, problem)
        columns = [f"c{j}" for j in range(problem.dimension)]
        if own or getattr(policy, "function", None) is not None:
            with pytest.raises(prudent.errors.InputError, match=r"cannot be written (as|in) SQL"):
                policy.to_sql("duckdb", columns, key="id")
            return
        cases = pd.DataFrame(forecasts, columns=columns).assign(id=range(30))  # noqa: F841  # DuckDB finds it by name
        text = policy.to_sql("duckdb", columns, key="id")
        actions = [action for (action,) in duckdb.sql(f"SELECT {text} FROM cases ORDER BY id").fetchall()]
        assert actions == policy.predict(forecasts, keys=range(30)).tolist()
