"""A real shift, and outcomes that come late: ``python -m benchmarks.online [--data-dir DIR]``.

Daily bike counts: a linear regression is fitted on 2011 (mean 3,406) and decides on 2012 (mean 5,600). What rules earn
there, on which day a monitor raises its alarm, and how sums of errors grow with the delay of outcomes against an
adversary. The result goes to ``results/online.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_predict

import prudent
from benchmarks.environment import describe_environment
from benchmarks.repair_cases import Array, bike_data
from benchmarks.repair_online import online

__all__ = ["DELAYS", "Shift", "alarms", "bikes", "earned", "growth", "problems", "write"]

RESULTS = Path(__file__).parent / "results" / "online.md"
DELAYS = (0, 1, 7)
_DAYS_2011 = 365
_LARGEST = 8_714.0  # the space ends at the largest count

_HEAD = """# A real shift, and outcomes that come late

`python -m benchmarks.online --data-dir DIR`, {seconds:.0f} s in all.
{environment}.
"""
_EARNED = """
## Bikes: utility per day of 2012

Linear regression on season, month, weekday, holiday, working day, weather, both temperatures, humidity and wind.
*Online*: `OnlineDecisionCalibrator` next to these forecasts, outcomes so many days late. *28-day mean*: the mean error
of the last 28 days is added. *Advice*: `prudent.advise` on the last 60 days, or on all days so far, asked anew on the
first of every month; for 2011 it hears cross-fitted forecasts. *Best*: the action that is best for the count itself.

| setting | follow | online, 0 days | 1 day | 7 days | 28-day mean | advice, 60 days | advice, all | best |
|---|---|---|---|---|---|---|---|---|"""
_SETTINGS = """
Rewards per bike and costs (the actions of a setting in order):

{}

Staffing has the payoffs of the paper on the scale of the largest count. Demand hurts is of the same kind as one of the
field trial, whose payoffs are not known; the others are its payoffs."""
_ALARMS = """
## Bikes: day of the first alarm

Monitors with 95% confidence over all looks, told every count on its day. Tolerance: a tenth of what the forecasts of
2011 promise over the best single action. *Moments* are watched on both sides, *utility* on one; "-": no alarm in 366
days, because the shift helps. A robust policy (`"unbiased"`, slack of 100 bikes) promises averages over forecasts only,
so that stakes must not depend on the forecast; the last column is the first of all its alarms, forecast drift included:
winter days promise less than a year.

| setting | tolerance | follow: moments | utility | robust: moments | utility | first |
|---|---|---|---|---|---|---|"""
_GROWTH = """
## Adversaries: largest sum of errors over sqrt(T (1 + D)), outcomes D predictions late

*Other side*: one problem of two actions; the outcome opposite to the mean prediction. *Sums*: five problems on five
classes; the class that adds most to the largest sum that is known.

| T | {} |
|---|{}|"""


@dataclass(frozen=True, eq=False)
class Shift:
    """Forecasts and counts of both years; forecasts of 2011 are cross-fitted."""

    old_forecasts: Array
    old_counts: Array
    forecasts: Array
    counts: Array
    months: Array  # 0 to 11, of every day of 2012


def problems() -> dict[str, prudent.DecisionProblem]:
    """Settings by name."""
    space = prudent.Box(0, _LARGEST)
    payoffs = {
        "staffing": ([0.72, 0.90, 1.08], [0.02 * _LARGEST, 0.05 * _LARGEST, 0.10 * _LARGEST]),
        "depot": ([0.0, 1.0], [0.0, 4000.0]),
        "maintenance": ([0.0, -1.0], [0.0, -4000.0]),
        "bet at 4500": ([-1.0, 1.0], [-4500.0, 4500.0]),
        "four levels": ([1.0, 2.0, 3.0, 4.0], [0.0, 3000.0, 7500.0, 13_500.0]),
        "demand hurts": ([-2.0, -1.0, 0.0], [0.0, 3500.0, 8500.0]),
    }
    return {name: prudent.DecisionProblem(*pair, space=space) for name, pair in payoffs.items()}


def bikes(directory: Path) -> Shift:
    """Fit on 2011, forecast 2012."""
    features, counts = bike_data(directory)
    old, new = slice(_DAYS_2011), slice(_DAYS_2011, None)
    crossed = cross_val_predict(LinearRegression(), features[old], counts[old], cv=5)
    fitted = LinearRegression().fit(features[old], counts[old]).predict(features[new])
    first = np.datetime64("2012-01-01")
    months = (first + np.arange(len(fitted))).astype("datetime64[M]").astype(int) - first.astype(
        "datetime64[M]"
    ).astype(int)
    return Shift(crossed.clip(0, _LARGEST), counts[old], fitted.clip(0, _LARGEST), counts[new], months)


def earned(problem: prudent.DecisionProblem, shift: Shift) -> list[float]:
    """Mean utility of every rule of the table."""
    utilities, days = problem.utility(shift.counts), np.arange(len(shift.counts))

    def mean(forecasts: Array) -> float:
        return float(utilities[days, problem.best_response(forecasts)].mean())

    late = [mean(_online(problem, shift, delay)) for delay in DELAYS]
    errors = np.concatenate([[0.0], np.cumsum(shift.counts - shift.forecasts)])
    since = np.maximum(days - 28, 0)
    shifts = (errors[days] - errors[since]) / np.maximum(days - since, 1)
    advised = [_advised(problem, shift, window) for window in (60, None)]
    return [
        mean(shift.forecasts),
        *late,
        mean((shift.forecasts + shifts).clip(0, _LARGEST)),
        *(float((played * utilities).sum(axis=1).mean()) for played in advised),
        float(utilities.max(axis=1).mean()),
    ]


def _online(problem: prudent.DecisionProblem, shift: Shift, delay: int) -> Array:
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(problem)
    predicted = []
    for day, forecast in enumerate(shift.forecasts):
        predicted.append(calibrator.predict([day], [forecast])[0])
        if day >= delay:
            calibrator.update([day - delay], shift.counts[[day - delay]])
    return np.array(predicted)


def _advised(problem: prudent.DecisionProblem, shift: Shift, window: int | None) -> Array:
    """Mixtures that advice plays, asked on the first of every month about the days before it."""
    forecasts = np.concatenate([shift.old_forecasts, shift.forecasts])
    counts = np.concatenate([shift.old_counts, shift.counts])
    played = np.empty((len(shift.counts), problem.n_actions))
    for month in np.unique(shift.months):
        days = np.flatnonzero(shift.months == month)
        known = slice(0 if window is None else days[0] + _DAYS_2011 - window, days[0] + _DAYS_2011)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            advice = prudent.advise(problem, forecasts[known], counts[known])
        played[days] = advice.policy.predict_proba(shift.forecasts[days])
    return played


def alarms(problem: prudent.DecisionProblem, shift: Shift) -> tuple[float, list[int | None]]:
    """The tolerance; days of the first alarms of following, and of a robust policy with the first of all its alarms."""
    promised = problem.utility(shift.old_forecasts)
    tolerance = 0.1 * float(promised.max(axis=1).mean() - promised.mean(axis=0).max())
    found: list[int | None] = []
    robust = prudent.RobustPolicy(problem, "unbiased", slack=100.0).fit(shift.old_forecasts)
    for policy in (prudent.PlugInPolicy(problem), robust):
        raised = prudent.PolicyMonitor(policy, tolerance=tolerance).update(shift.forecasts, shift.counts).alarms
        rows = {alarm.stream: alarm.row for alarm in raised}
        found += [rows.get("moments"), rows.get("utility")]
    return tolerance, [*found, min(rows.values(), default=None)]


def growth(delay: int, steps: list[int]) -> Iterator[tuple[float, float]]:
    """Largest sums over ``sqrt(T (1 + D))`` after some steps: against the other side, and against "sums"."""
    scale = np.sqrt(1 + delay)
    coin, chosen, ratios = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0]), {}, []
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(coin)
    for step in range(max(steps)):
        calibrator.predict([step])
        points, weights = calibrator.distribution_
        chosen[step] = float(weights @ points[:, 0] < 0.5)
        if step >= delay:
            calibrator.update([step - delay], [chosen[step - delay]])
        if step + 1 in steps:
            ratios.append(float(np.abs(calibrator.errors_[0]).max() / np.sqrt(step + 1) / scale))
    for ratio, (_, largest, _) in zip(ratios, online("sums", steps, delay=delay), strict=True):
        yield ratio, largest / scale


def write(directory: Path | None, steps: list[int]) -> Iterator[str]:
    """Lines of all tables."""
    if directory is not None:
        shift = bikes(directory)
        yield _EARNED
        for name, problem in problems().items():
            yield f"| {name} | {' | '.join(f'{value:,.0f}' for value in earned(problem, shift))} |"
        yield _SETTINGS.format("; ".join(_described(name, problem) for name, problem in problems().items()))
        yield _ALARMS
        for name, problem in problems().items():
            tolerance, rows = alarms(problem, shift)
            yield f"| {name} | {tolerance:,.1f} | {' | '.join('-' if row is None else str(row) for row in rows)} |"
    delays = (*DELAYS, 30)
    kinds = [f"{kind}, D = {delay}" for kind in ("other side", "sums") for delay in delays]
    yield _GROWTH.format(" | ".join(kinds), "|".join("---" for _ in kinds))
    found = [list(growth(delay, steps)) for delay in delays]
    for number, step in enumerate(steps):
        cells = [f"{table[number][kind]:.2f}" for kind in (0, 1) for table in found]
        yield f"| {step:,} | {' | '.join(cells)} |"


def _described(name: str, problem: prudent.DecisionProblem) -> str:
    rewards, costs = (", ".join(f"{value:,g}" for value in values) for values in (problem.rewards[:, 0], problem.costs))
    return f"{name} ({rewards}; {costs})"


def main(arguments: list[str] | None = None) -> int:
    """Write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.online", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="with bike_sharing_day.csv; without it there are no bikes")
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 1_000, 4_000], help="against adversaries")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    environment = ", ".join(f"{name} {value}" for name, value in describe_environment().items())
    start, lines = time.perf_counter(), []
    for line in write(options.data_dir, options.steps):
        print(line, flush=True)
        lines.append(line)
    head = _HEAD.format(seconds=time.perf_counter() - start, environment=environment)
    options.output.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
