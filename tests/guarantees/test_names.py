"""Guarantees by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import prudent
from prudent import guarantees
from prudent.errors import InputError
from prudent.guarantees.names import GUARANTEE_NAMES, read_guarantee
from prudent.policies import policy_text

PROBLEM = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])


@pytest.mark.parametrize("name", GUARANTEE_NAMES)
def test_every_name_that_is_offered_can_be_read(name: str) -> None:
    text = name.replace("COLUMN:NAME", "region:unbiased").replace("N", "7")
    guarantee = read_guarantee(text, PROBLEM)
    assert isinstance(guarantee, guarantees.Guarantee)


def test_names_are_joined() -> None:
    assert read_guarantee("unbiased + polynomial:2+decision-calibrated", PROBLEM) == (
        guarantees.Unbiased() & guarantees.Polynomial(2) & guarantees.DecisionCalibrated(PROBLEM)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not known; choose among nothing, unbiased, .*, joined by"),
        ("unbiased+", "'' is not known"),
        ("polynomal:2", "did you mean 'polynomial'"),
        ("bins:", "bins needs a whole number, such as bins:10"),
        ("bins:ten", "bins needs a whole number"),
        ("bins:-1", "bins needs a whole number"),
        ("quantile-bins:0", "n_or_edges must be a whole number of at least 1"),
        ("unbiased:3", "unbiased takes no number"),
        ("decision-calibrated:3", "takes no number"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_guarantee(text, PROBLEM)


def test_names_that_need_a_problem_or_say_too_much() -> None:
    with pytest.raises(InputError, match="'utility-calibrated' is stated for a decision problem, and none was given"):
        read_guarantee("unbiased+utility-calibrated")
    with pytest.raises(
        InputError, match=r"must come from prudent.guarantees, .* or be one of the names nothing, .*; got 3"
    ):
        read_guarantee(3)
    with pytest.raises(InputError, match="must be a finite one"):
        read_guarantee("unbiased+fully-calibrated", finite=True)


RNG = np.random.default_rng(0)
FORECASTS = RNG.random(200)
OUTCOMES = (RNG.random(200) < FORECASTS).astype(float)
COSTS = RNG.random((200, 2))
FEATURES = FORECASTS[:, None]
NAME = "unbiased+quantile-bins:3"
PLUG_IN = prudent.PlugInPolicy(PROBLEM)
USES: dict[str, Callable[[Any], Any]] = {
    "policy": lambda given: prudent.RobustPolicy(PROBLEM, given).fit(FORECASTS).multipliers_.tolist(),
    "file": lambda given: policy_text(prudent.RobustPolicy(PROBLEM, given).fit(FORECASTS)),
    "table": lambda given: prudent.RobustPolicy(PROBLEM, given).fit(table()).guarantee_,
    "full": lambda given: prudent.RobustPolicy(PROBLEM, f"fully-calibrated+{NAME}").fit(table()).guarantee_.full,
    "pure": lambda given: prudent.RobustPolicy(PROBLEM, given, randomize=False).fit(FORECASTS).certificate_,
    "rowwise": lambda given: prudent.RobustPolicy(PROBLEM, given).fit(FORECASTS, costs=COSTS).certificate_,
    "audit": lambda given: str(prudent.audit(None, FORECASTS, OUTCOMES, guarantee=given)),
    "worst case": lambda given: prudent.worst_case(PLUG_IN, FORECASTS, guarantee=given).value,
    "worst case of a table": lambda given: prudent.worst_case(PLUG_IN, table(), guarantee=given).value,
    "stress test": lambda given: str(prudent.stress_test({"plug-in": PLUG_IN}, FORECASTS, guarantee=given)),
    "calibrator": lambda given: (
        prudent.recalibration.GuaranteeCalibrator(given).fit_transform(FORECASTS, OUTCOMES).tolist()
    ),
    "decision maker": lambda given: (
        prudent.RobustDecisionMaker(
            LinearRegression(), PROBLEM, policy=prudent.RobustPolicy(PROBLEM, given), outside="clip"
        )
        .fit(FEATURES, OUTCOMES)
        .policy_.guarantee_
    ),
    "report": lambda given: prudent.Report(PROBLEM, FORECASTS, OUTCOMES, guarantee=given).policy.certificate_,
    "ladder": lambda given: prudent.guarantee_ladder(PROBLEM, FORECASTS, OUTCOMES, guarantees={"a": given}).columns,
}


def table() -> prudent.Columns:
    return prudent.scan(pl.LazyFrame({"f": FORECASTS}), "f")


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_name_stands_for_its_guarantee(use: Callable[[Any], Any]) -> None:
    assert use(NAME) == use(guarantees.Unbiased() & guarantees.Bins(3, "quantile"))


def test_estimators_keep_the_name_and_check_it_before_fitting() -> None:
    policy = prudent.RobustPolicy(PROBLEM, NAME)
    assert clone(policy.fit(FORECASTS)).guarantee == NAME
    for estimator in (policy, prudent.RobustPolicy(PROBLEM, NAME), prudent.recalibration.GuaranteeCalibrator(NAME)):
        with pytest.raises(InputError, match="'bin' is not known; did you mean 'bins'"):
            estimator.set_params(guarantee="bin").fit(FORECASTS, OUTCOMES)


def test_a_ladder_of_names() -> None:
    ladder = prudent.guarantee_ladder(
        PROBLEM, FORECASTS, OUTCOMES, guarantees=["nothing", "bins:4", guarantees.Unbiased()]
    )
    assert [rung.name for rung in ladder.rungs] == ["nothing", "bins:4", "Unbiased()"]
    assert [
        rung.name for rung in prudent.guarantee_ladder(PROBLEM, FORECASTS, OUTCOMES, guarantees="bins:4").rungs
    ] == ["bins:4"]
    for wrong in ([], ["bins:4", "bins:4"]):
        with pytest.raises(InputError, match="non-empty collection of different guarantees"):
            prudent.guarantee_ladder(PROBLEM, FORECASTS, OUTCOMES, guarantees=wrong)
