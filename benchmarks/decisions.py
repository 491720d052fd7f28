"""Decisions next to what people use today, on held-out rows: ``python -m benchmarks.decisions [--data-dir DIR]``.

For each data set and several random splits, every method is fitted on one half
and looked at on the other: the utility that it realises there, and what it
is certified to earn there at least. The certificate is the same for all: the
forecasts of the method's own model are audited on the held-out rows, and the
policy's worst case is computed under each guarantee of the ladder with its
measured slack; the best of these bounds holds with 95% confidence.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.naive_bayes import GaussianNB

import prudent
from benchmarks.repair_cases import bike_data
from prudent.evidence.ladder import usual_guarantees

__all__ = ["METHODS", "Case", "cases", "certified", "measure"]

Array = NDArray[Any]

_HEAD = """# Decisions on held-out rows

Mean over {splits} random halves, with the standard deviation over splits. Realised: utility per held-out row.
Certified: what the method earns at least, with 95% confidence, in every world that its model's audited
guarantees allow.

| data | method | realised | certified worst case |
|---|---|---|---|"""


@dataclass(frozen=True)
class Case:
    """A data set, a model and a decision."""

    name: str
    problem: prudent.DecisionProblem
    features: Array
    target: Array
    model: Any
    methods: tuple[str, ...]


def cases(directory: Path | None) -> Iterator[Case]:
    """Digits with a way out, a binary decision with unequal costs, and staffing by forecast demand."""
    features, labels = load_digits(return_X_y=True)
    payoffs = np.vstack([np.eye(10), np.full((1, 10), 0.7)])
    actions = [*map(str, range(10)), "ask a human"]
    classifiers = (*(name for name in METHODS if name != "tuned threshold"),)
    digits = prudent.DecisionProblem.from_payoffs(payoffs, actions=actions)
    yield Case("digits, naive Bayes", digits, features, labels, GaussianNB(), classifiers)
    features, labels = load_breast_cancer(return_X_y=True)
    treat = prudent.DecisionProblem.from_payoffs([[0.0, 1.0], [0.8, 0.0]], actions=["leave", "treat"])
    yield Case("tumours, naive Bayes", treat, features, labels, GaussianNB(), (*classifiers, "tuned threshold"))
    if directory is not None:
        features, counts = bike_data(directory)
        demand = (counts - counts.min()) / (counts.max() - counts.min())
        staff = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
        model = HistGradientBoostingRegressor(random_state=0)
        yield Case("bikes, boosting", staff, features, demand, model, ("robust", "as it is"))


@dataclass(frozen=True)
class Fitted:
    """Forecasts and mixtures of a method on held-out rows."""

    forecasts: Array
    mixtures: Array


def _robust(method: str | None = None, *, recalibrate: bool = False) -> Callable[[Case, Array, Array, Array], Fitted]:
    def fit(case: Case, features: Array, target: Array, fresh: Array) -> Fitted:
        recalibrator = prudent.recalibration.DecisionCalibrator(case.problem, random_state=0) if recalibrate else None
        model = case.model if method is None else CalibratedClassifierCV(case.model, method=method, cv=5)
        maker = prudent.RobustDecisionMaker(
            model, case.problem, recalibrator=recalibrator, outside="clip", random_state=0
        ).fit(features, target)
        return Fitted(maker.forecast(fresh), maker.decide_proba(fresh))

    return fit


def _best_respond(method: str | None) -> Callable[[Case, Array, Array, Array], Fitted]:
    def fit(case: Case, features: Array, target: Array, fresh: Array) -> Fitted:
        model = case.model if method is None else CalibratedClassifierCV(case.model, method=method, cv=5)
        model.fit(features, target)
        forecasts = model.predict_proba(fresh) if hasattr(model, "predict_proba") else model.predict(fresh)[:, None]
        forecasts = case.problem.space.project(np.asarray(forecasts, dtype=np.float64))
        return Fitted(forecasts, prudent.PlugInPolicy(case.problem).predict_proba(forecasts))

    return fit


def _tuned_threshold(case: Case, features: Array, target: Array, fresh: Array) -> Fitted:
    utilities = case.problem.rewards - case.problem.costs[:, None]

    def utility(truth: Array, decided: Array) -> float:
        return float(utilities[decided, truth].mean())

    # Its positive class is "leave": deciding for class 1 is the action that pays when the truth is 1.
    model = TunedThresholdClassifierCV(
        case.model, scoring=make_scorer(lambda truth, decided: utility(truth, 1 - decided)), cv=5, random_state=0
    ).fit(features, target)
    return Fitted(model.estimator_.predict_proba(fresh), np.eye(2)[1 - model.predict(fresh)])


METHODS: dict[str, Callable[[Case, Array, Array, Array], Fitted]] = {
    "robust": _robust(),
    "robust, decision calibrated": _robust(recalibrate=True),
    "robust, isotonic": _robust("isotonic"),
    "sigmoid": _best_respond("sigmoid"),
    "isotonic": _best_respond("isotonic"),
    "temperature": _best_respond("temperature"),
    "as it is": _best_respond(None),
    "tuned threshold": _tuned_threshold,
}
_TITLES = {
    "robust": "`RobustDecisionMaker`",
    "robust, decision calibrated": "`RobustDecisionMaker` with `DecisionCalibrator`",
    "robust, isotonic": "`RobustDecisionMaker` on `CalibratedClassifierCV(isotonic)`",
    "sigmoid": "`CalibratedClassifierCV(sigmoid)`, best response",
    "isotonic": "`CalibratedClassifierCV(isotonic)`, best response",
    "temperature": "`CalibratedClassifierCV(temperature)`, best response",
    "as it is": "the model as it is, best response",
    "tuned threshold": "`TunedThresholdClassifierCV`",
}


def certified(problem: prudent.DecisionProblem, forecasts: Array, outcomes: Array, mixtures: Array) -> float:
    """The best lower bound of a policy over the ladder's guarantees, each with its measured slack."""
    ladder = prudent.guarantee_ladder(problem, forecasts, outcomes, guarantees=usual_guarantees(problem))
    return max(
        prudent.worst_case(
            mixtures, forecasts, problem=problem, guarantee=rung.guarantee, slack=rung.policy.slack_
        ).certificate.lower
        for rung in ladder.rungs
    )


def measure(case: Case, method: str, split: int) -> tuple[float, float]:
    """Realised utility and certified worst case of a method on the held-out half."""
    stratify = case.target if hasattr(case.model, "predict_proba") else None
    features, fresh, target, later = train_test_split(
        case.features, case.target, test_size=0.5, random_state=split, stratify=stratify
    )
    fitted = METHODS[method](case, features, target, fresh)
    realised = float((case.problem.utility(later) * fitted.mixtures).sum(axis=1).mean())
    return realised, certified(case.problem, fitted.forecasts, later, fitted.mixtures)


def main(arguments: list[str] | None = None) -> int:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="with bike_sharing_day.csv")
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args(arguments)
    print(_HEAD.format(splits=options.splits))
    for case in cases(options.data_dir):
        for method in case.methods:
            found = np.array([measure(case, method, split) for split in range(options.splits)])
            (realised, worst), (spread, around) = found.mean(axis=0), found.std(axis=0, ddof=1)
            print(
                f"| {case.name} | {_TITLES[method]} | {realised:.4f} ± {spread:.4f} | {worst:.4f} ± {around:.4f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
