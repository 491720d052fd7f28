"""What repairs do, on fresh rows: ``python -m benchmarks.repair [--data-dir DIR]``.

Three tables. Batch: decision-region moments, broken promises and squared
error before and after a repair, for several forecasters. Per decision maker:
the gain of realised utility, and what best responding guarantees against the
optimum, before and after. Online: the largest sum of errors against an adversary that
knows the distribution of each prediction. Bike sharing and housing need their
files in a directory.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import prudent
from prudent import guarantees
from prudent.moments import MomentEstimates, estimate_moments

__all__ = [
    "Case",
    "Each",
    "bike_data",
    "cases",
    "classifier_cases",
    "each",
    "measure",
    "naive_mean",
    "online",
    "regression_cases",
    "synthetic_case",
]

Array = NDArray[np.float64]

_HEAD = """# Repairs, on fresh rows

## Batch

Before → after. A moment is off zero if its simultaneous 95% interval is, on held-out rows of the repair and on fresh
rows. Where fresh rows are as many as those that fitted the patches, the patches' own sampling error shows there.
Broken promises: decision makers whose utility on fresh rows differs from what best responding promises, beyond the
simultaneous 95% interval. Shortfall: how far it may fall below the promise, the largest of all decision makers, with
95% confidence. Gains of realised utility there: the least, with its 95% margin, and the mean.

| forecaster | largest held-out moment | off zero, held out | off zero, fresh | squared error | broken promises | \
shortfall | least gain | mean gain |
|---|---|---|---|---|---|---|---|---|"""

_HEAD_EACH = """
## Per decision maker

On fresh rows (the first three decision makers). Gain of realised utility with its paired 95% interval. What best
responding guarantees and the optimum: in the worst world that decision calibration with its audited slack allows,
before → after. Their difference is at most the last column, the sum of slack x rewards after the repair.

| forecaster | decision maker | gain | best responding | optimum | difference | at most |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Case:
    """Forecasts with outcomes: rows to repair on, and fresh ones."""

    name: str
    problems: tuple[prudent.DecisionProblem, ...]
    forecasts: Array
    outcomes: Array
    fresh_forecasts: Array
    fresh_outcomes: Array


@dataclass(frozen=True)
class Measured:
    """One row of the first table: largest region moments and how many are off zero; gains of utility on fresh rows."""

    name: str
    held_out_before: float
    held_out_after: float
    rejected_before: int
    rejected_after: int
    fresh_before: int
    fresh_after: int
    error_before: float
    error_after: float
    gains: Array
    margins: Array
    broken_before: int
    broken_after: int
    shortfall_before: float
    shortfall_after: float


def _payoff_problems(classes: int, count: int, actions: int, seed: int) -> tuple[prudent.DecisionProblem, ...]:
    rng = np.random.default_rng(seed)
    return tuple(prudent.DecisionProblem.from_payoffs(rng.normal(size=(actions, classes))) for _ in range(count))


def synthetic_case(problems: int = 20, n: int = 50_000, seed: int = 0) -> Case:
    """Five classes, a forecaster that is too sure and biased."""
    rng = np.random.default_rng(seed)
    logits = 1.2 * rng.normal(size=(2 * n, 5))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sharp = np.exp(2 * logits + np.array([0.3, 0.0, 0.0, -0.3, 0.0]))
    forecasts = sharp / sharp.sum(axis=1, keepdims=True)
    outcomes = np.eye(5)[(rng.random((2 * n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 4)]
    decisions = _payoff_problems(5, problems, 10, seed)
    return Case(f"5 classes, {problems} problems", decisions, forecasts[:n], outcomes[:n], forecasts[n:], outcomes[n:])


def classifier_cases(seed: int = 0) -> Iterator[Case]:
    """Digits by naive Bayes, which is far too sure; as it is, and after scikit-learn's recalibrations."""
    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    features, labels = features[order], labels[order]
    fit, repair, fresh = slice(0, 500), slice(500, 1_150), slice(1_150, None)
    model = GaussianNB().fit(features[fit], labels[fit])
    payoffs = np.vstack([np.eye(10), np.full((1, 10), 0.7)])  # name the digit, or ask somebody
    decisions = (prudent.DecisionProblem.from_payoffs(payoffs), *_payoff_problems(10, 2, 4, seed))
    models = {"digits, naive Bayes": model}
    for method in ("sigmoid", "isotonic", "temperature"):
        # Half of the rows to repair on go to the baseline, so that the repair sees honest forecasts.
        half = slice(500, 825)
        calibrated = CalibratedClassifierCV(FrozenEstimator(model), method=method).fit(features[half], labels[half])
        models[f"digits, after {method}"] = calibrated
    for name, forecaster in models.items():
        rows = repair if name == "digits, naive Bayes" else slice(825, 1_150)
        yield Case(
            name,
            decisions,
            forecaster.predict_proba(features[rows]),
            np.eye(10)[labels[rows]],
            forecaster.predict_proba(features[fresh]),
            np.eye(10)[labels[fresh]],
        )


def regression_cases(directory: Path, seed: int = 0) -> Iterator[Case]:
    """Bike sharing and housing, outcomes scaled to [0, 1], by a tree that is too sure and by boosting."""
    for name, (features, target) in (("bike", bike_data(directory)), ("housing", _housing(directory))):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(target))
        features, target = features[order], (target[order] - target.min()) / (target.max() - target.min())
        third = len(target) // 3
        decisions = (
            prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10]),
            prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4]),
            prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.25, 0.6]),
        )
        for label, model in (
            ("tree", DecisionTreeRegressor(random_state=0)),
            ("boosting", HistGradientBoostingRegressor(random_state=0)),
        ):
            model.fit(features[:third], target[:third])
            forecasts = np.clip(model.predict(features), 0, 1)[:, None]
            outcomes = target[:, None]
            yield Case(
                f"{name}, {label}",
                decisions,
                forecasts[third : 2 * third],
                outcomes[third : 2 * third],
                forecasts[2 * third :],
                outcomes[2 * third :],
            )


def bike_data(directory: Path) -> tuple[Array, Array]:
    """Read features and daily counts of the bike sharing data."""
    table = np.genfromtxt(directory / "bike_sharing_day.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    columns = ("season", "mnth", "holiday", "weekday", "workingday", "weathersit", "temp", "atemp", "hum", "windspeed")
    return np.column_stack([table[name].astype(float) for name in columns]), table["cnt"].astype(float)


def _housing(directory: Path) -> tuple[Array, Array]:
    with gzip.open(directory / "cal_housing.data.gz", "rt", encoding="utf-8") as stream:
        table = np.loadtxt(stream, delimiter=",")
    return table[:, :-1], table[:, -1]


def cases(directory: Path | None) -> Iterator[Case]:
    """All rows of the first table."""
    yield from classifier_cases()
    yield synthetic_case()
    if directory is not None:
        yield from regression_cases(directory)


def measure(case: Case) -> Measured:
    """Repair on one part of the rows and look at the fresh part."""
    space = case.problems[0].space
    calibrator = prudent.DecisionCalibrator(case.problems, random_state=0).fit(case.forecasts, case.outcomes)
    moved = calibrator.transform(case.fresh_forecasts)
    weights = np.full(len(moved), 1 / len(moved))

    def moments(guarantee: guarantees.Guarantee, forecasts: Array) -> MomentEstimates:
        return estimate_moments(guarantee, space, forecasts, case.fresh_outcomes, weights, confidence=0.95)

    regions = guarantees.DecisionCalibrated(case.problems)
    promise = guarantees.UtilityCalibrated(case.problems)
    before, after = (moments(regions, forecasts) for forecasts in (case.fresh_forecasts, moved))
    held_out = calibrator.residuals_before_, calibrator.residuals_
    owed = [moments(promise, forecasts) for forecasts in (case.fresh_forecasts, moved)]
    gains, margins = zip(*(_gain(problem, case, moved) for problem in case.problems), strict=True)
    errors = [
        float(((forecasts - case.fresh_outcomes) ** 2).sum(axis=1).mean())
        for forecasts in (case.fresh_forecasts, moved)
    ]
    return Measured(
        case.name,
        float(np.abs(calibrator.residuals_before_.estimates).max()),
        float(np.abs(calibrator.residuals_.estimates).max()),
        *(int((found.p_values < 0.05).sum()) for found in held_out),
        *(int((found.p_values < 0.05).sum()) for found in (before, after)),
        *errors,
        np.array(gains),
        np.array(margins),
        *(int((found.p_values < 0.05).sum()) for found in owed),
        *(float((np.abs(found.estimates) + found.radii).max()) for found in owed),
    )


def _gain(problem: prudent.DecisionProblem, case: Case, moved: Array) -> tuple[float, float]:
    """Mean gain of realised utility on fresh rows, and the margin of its paired interval."""
    utilities, rows = problem.linear_utility(case.fresh_outcomes), np.arange(len(moved))
    gain = utilities[rows, problem.best_actions(moved)] - utilities[rows, problem.best_actions(case.fresh_forecasts)]
    return float(gain.mean()), float(1.96 * gain.std() / np.sqrt(len(gain)))


@dataclass(frozen=True)
class Each:
    """One row of the second table; pairs are before and after."""

    gain: float
    margin: float
    plug_in: tuple[float, float]
    optimum: tuple[float, float]
    bound: float


def each(case: Case, rows: int = 5_000) -> Iterator[Each]:
    """What a repair means for the first three decision makers, on fresh rows."""
    calibrator = prudent.DecisionCalibrator(case.problems, random_state=0).fit(case.forecasts, case.outcomes)
    moved = calibrator.transform(case.fresh_forecasts)
    outcomes = case.fresh_outcomes[:rows]
    for problem in case.problems[:3]:
        guarantee = guarantees.DecisionCalibrated(problem)
        plug_in, optimum, bound = [], [], 0.0
        for forecasts in (case.fresh_forecasts[:rows], moved[:rows]):
            policy = prudent.RobustPolicy(problem, guarantee, slack="audit").fit(forecasts, outcomes)
            worst = prudent.worst_case(
                prudent.PlugInPolicy(problem), forecasts, guarantee=guarantee, slack=policy.slack_
            )
            plug_in.append(worst.value)
            optimum.append(policy.value_)
            bound = float((np.asarray(policy.slack_.radius) * np.abs(problem.rewards)).sum())
        yield Each(*_gain(problem, case, moved), (plug_in[0], plug_in[1]), (optimum[0], optimum[1]), bound)


def online(steps: int, seed: int = 0) -> tuple[float, float]:
    """Largest sum of errors over the root of time: the calibrator, and a running mean, against the same adversary."""
    problems = _payoff_problems(5, 4, 5, seed)
    calibrator = prudent.OnlineDecisionCalibrator(problems, random_state=seed)
    for _ in range(steps):
        calibrator.predict_one()
        calibrator.update(_hurt(problems[0], *calibrator.distribution_))
    largest = max(float(np.abs(errors).max()) for errors in calibrator.errors_)
    return largest / np.sqrt(steps), naive_mean(problems, steps) / np.sqrt(steps)


def naive_mean(problems: tuple[prudent.DecisionProblem, ...], steps: int) -> float:
    """Predict the mean of the past, and meet the same adversary."""
    sums = [np.zeros(problem.rewards.shape) for problem in problems]
    seen = np.ones(5) / 5
    for _ in range(steps):
        prediction = seen / seen.sum()
        outcome = _hurt(problems[0], prediction[None], np.ones(1))
        for problem, errors in zip(problems, sums, strict=True):
            errors[problem.best_actions(prediction[None])[0]] += outcome - prediction
        seen = seen + outcome
    return max(float(np.abs(errors).max()) for errors in sums)


def _hurt(problem: prudent.DecisionProblem, points: Array, weights: Array) -> Array:
    """An adversary: the class for which the likeliest best response of one problem pays least."""
    likely = np.bincount(problem.best_actions(points), weights=weights, minlength=problem.n_actions).argmax()
    return np.eye(points.shape[1])[problem.rewards[likely].argmin()]


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, row by row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repair", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="with bike_sharing_day.csv and cal_housing.data.gz")
    parser.add_argument("--steps", type=int, default=100_000, help="of the online table")
    options = parser.parse_args(arguments)
    everything = list(cases(options.data_dir))
    print(_HEAD)
    for case in everything:
        row = measure(case)
        least = int(row.gains.argmin())
        print(
            f"| {row.name} | {row.held_out_before:.4f} → {row.held_out_after:.4f} | {row.rejected_before} → "
            f"{row.rejected_after} | {row.fresh_before} → {row.fresh_after} | {row.error_before:.4f} → "
            f"{row.error_after:.4f} | {row.broken_before} → {row.broken_after} of {len(row.gains)} | "
            f"{row.shortfall_before:.3f} → {row.shortfall_after:.3f} | {row.gains[least]:+.4f} "
            f"(± {row.margins[least]:.4f}) | {row.gains.mean():+.4f} |",
            flush=True,
        )
    print(_HEAD_EACH)
    for case in everything:
        for number, found in enumerate(each(case), start=1):
            gaps = [best - plug for best, plug in zip(found.optimum, found.plug_in, strict=True)]
            print(
                f"| {case.name} | {number} | {found.gain:+.4f} ± {found.margin:.4f} | {found.plug_in[0]:.4f} → "
                f"{found.plug_in[1]:.4f} | {found.optimum[0]:.4f} → {found.optimum[1]:.4f} | {gaps[0]:.4f} → "
                f"{gaps[1]:.4f} | {found.bound:.4f} |",
                flush=True,
            )
    many = synthetic_case(200)
    repaired = prudent.DecisionCalibrator(many.problems, random_state=0, verbose=True).fit(
        many.forecasts, many.outcomes
    )
    print(f"\n## Many decision makers\n\n{many.name}, 10 actions each, {len(many.forecasts):,} rows, on held-out rows:")
    print(f"{repaired.decision_makers_} {int((repaired.residuals_before_.p_values < 0.05).sum()):,} of ", end="")
    print(f"{repaired.residuals_.p_values.size:,} moments were off zero before, ", end="")
    print(f"{int((repaired.residuals_.p_values < 0.05).sum())} after {repaired.n_rounds_} sweeps.", flush=True)
    print("\n## Online: largest sum of errors / root of steps\n\n| steps | calibrator | running mean |\n|---|---|---|")
    steps = 100
    while steps <= options.steps:
        ratio, naive = online(steps)
        print(f"| {steps:,} | {ratio:.2f} | {naive:.2f} |", flush=True)
        steps *= 10
    return 0


if __name__ == "__main__":
    sys.exit(main())
