"""What repairs do, on fresh rows: ``python -m benchmarks.repair [--data-dir DIR]``.

Batch: decision-region moments, broken promises and squared error before and
after a repair, for several forecasters. Per decision maker: the gain of realised
utility, and what best responding guarantees against the optimum, before and
after. "From" names what the repair was started from (``start=``); before is then
that baseline. Online: the largest sum of errors against adversaries that know
the distribution of each prediction, and utility next to a base forecast. Bike
sharing and housing need their files in a directory.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtri

import prudent
from benchmarks.repair_cases import Array, Case, cases, synthetic_case
from benchmarks.repair_online import next_to_base, online
from prudent import guarantees
from prudent.cases.moment_sums import MomentEstimates

__all__ = ["Each", "Measured", "each", "measure"]

_ROWS_EACH = 5_000

_HEAD = """# Repairs, on fresh rows

## Batch

Before → after. A moment is off zero if its simultaneous 95% interval is, on held-out rows of the repair and on fresh
rows. Where fresh rows are as many as those that fitted the patches, the patches' own sampling error shows there.
Broken promises: decision makers whose utility on fresh rows differs from what best responding promises, beyond the
simultaneous 95% interval. Shortfall: how far it may fall below the promise, the largest of all decision makers, with
95% confidence. Gains of realised utility there: the least against its margin, and the mean. Margins of gains are half
widths of paired 95% intervals that hold for all {makers} decision makers of this table at once.

| forecaster | largest held-out moment | off zero, held out | off zero, fresh | squared error | broken promises | \
shortfall | least gain | mean gain |
|---|---|---|---|---|---|---|---|---|"""

_HEAD_EACH = """
## Per decision maker

Every one, on fresh rows. Gain of realised utility with its margin, as above; true gain: the same with the true
probabilities instead of outcomes, where they are known. What best responding guarantees and the optimum: in the worst
world that decision calibration with its audited slack allows, on the first {rows:,} fresh rows, before → after. Their
difference is at most the last column, the sum of slack x rewards after the repair. "From" names the baseline that was
given as start: the gain is over best responding to the same baseline.

| forecaster | decision maker | gain | true gain | best responding | optimum | difference | at most |
|---|---|---|---|---|---|---|---|"""

_HEAD_ONLINE = """
## Online: largest sum of errors / root of steps

Four decision makers, five classes. The adversary knows the distribution of each prediction, and aims at the largest sum
or at the utility of the first decision maker.

| steps | calibrator, aim at sums | running mean | calibrator, aim at utility | running mean |
|---|---|---|---|---|"""

_HEAD_BASE = """
## Online: next to a base forecast

{:,} independent outcomes. Expected utility of best responding (the mean of all decision makers) and squared error to
the true probabilities: of the base forecast → of the calibrated prediction.

| base forecast | utility | squared error | largest sum / root of steps |
|---|---|---|---|"""


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


def measure(case: Case, makers: int) -> Measured:
    """Repair on one part of the rows and look at the fresh part; margins hold for so many decision makers at once."""
    space = case.problems[0].space
    calibrator = _repaired(case)
    moved = calibrator.transform(case.fresh_forecasts)
    before_it = case.fresh_before
    weights = np.full(len(moved), 1 / len(moved))

    def moments(guarantee: guarantees.Guarantee, forecasts: Array) -> MomentEstimates:
        rows = prudent.Cases(forecasts, case.fresh_outcomes, weights=weights).on(space)
        return rows.measure(guarantee, 0.95).estimates

    regions = guarantees.DecisionCalibrated(case.problems)
    promise = guarantees.UtilityCalibrated(case.problems)
    before, after = (moments(regions, forecasts) for forecasts in (before_it, moved))
    held_out = calibrator.residuals_before_, calibrator.residuals_
    owed = [moments(promise, forecasts) for forecasts in (before_it, moved)]
    gains, margins = zip(*(_gain(problem, case, moved, makers) for problem in case.problems), strict=True)
    errors = [float(((forecasts - case.fresh_outcomes) ** 2).sum(axis=1).mean()) for forecasts in (before_it, moved)]
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


def _gain(problem: prudent.DecisionProblem, case: Case, moved: Array, makers: int) -> tuple[float, float]:
    """Mean gain of realised utility on fresh rows, and the margin of its paired interval."""
    gain = _gains(problem, case.fresh_outcomes, case.fresh_before, moved)
    return float(gain.mean()), float(ndtri(1 - 0.025 / makers) * gain.std() / np.sqrt(len(gain)))


def _gains(problem: prudent.DecisionProblem, means: Array, before: Array, after: Array) -> Array:
    """Utility of the best responses after a repair minus that of those before, row by row."""
    utilities, rows = problem.linear_utility(means), np.arange(len(means))
    difference: Array = utilities[rows, problem.best_actions(after)] - utilities[rows, problem.best_actions(before)]
    return difference


@dataclass(frozen=True)
class Each:
    """One row of the second table; pairs are before and after."""

    gain: float
    margin: float
    true_gain: float | None
    plug_in: tuple[float, float]
    optimum: tuple[float, float]
    bound: float


def each(case: Case, makers: int, rows: int = _ROWS_EACH) -> Iterator[Each]:
    """What a repair means for every decision maker, on fresh rows."""
    calibrator = _repaired(case)
    moved = calibrator.transform(case.fresh_forecasts)
    outcomes = case.fresh_outcomes[:rows]
    for problem in case.problems:
        guarantee = guarantees.DecisionCalibrated(problem)
        plug_in, optimum, bound = [], [], 0.0
        for forecasts in (case.fresh_before[:rows], moved[:rows]):
            policy = prudent.RobustPolicy(problem, guarantee, slack="audit").fit(forecasts, outcomes)
            worst = prudent.worst_case(
                prudent.PlugInPolicy(problem), forecasts, guarantee=guarantee, slack=policy.slack_
            )
            plug_in.append(worst.value)
            optimum.append(policy.certificate_.lower)
            bound = float((np.asarray(policy.slack_.radius) * np.abs(problem.rewards)).sum())
        true_gain = None
        if case.fresh_truth is not None:
            true_gain = float(_gains(problem, case.fresh_truth, case.fresh_before, moved).mean())
        gain, margin = _gain(problem, case, moved, makers)
        yield Each(gain, margin, true_gain, (plug_in[0], plug_in[1]), (optimum[0], optimum[1]), bound)


def _repaired(case: Case) -> prudent.recalibration.DecisionCalibrator:
    return prudent.recalibration.DecisionCalibrator(case.problems, start=case.start, random_state=0).fit(
        case.forecasts, case.outcomes
    )


def _print_batch(everything: list[Case], makers: int) -> None:
    print(_HEAD.format(makers=makers))
    for case in everything:
        row = measure(case, makers)
        least = int(row.gains.argmin())
        print(
            f"| {row.name} | {row.held_out_before:.4f} → {row.held_out_after:.4f} | {row.rejected_before} → "
            f"{row.rejected_after} | {row.fresh_before} → {row.fresh_after} | {row.error_before:.4f} → "
            f"{row.error_after:.4f} | {row.broken_before} → {row.broken_after} of {len(row.gains)} | "
            f"{row.shortfall_before:.3f} → {row.shortfall_after:.3f} | {row.gains[least]:+.4f} "
            f"(± {row.margins[least]:.4f}) | {row.gains.mean():+.4f} |",
            flush=True,
        )


def _print_each(everything: list[Case], makers: int) -> None:
    print(_HEAD_EACH.format(rows=_ROWS_EACH))
    for case in everything:
        for number, found in enumerate(each(case, makers), start=1):
            true_gain = "" if found.true_gain is None else f"{found.true_gain:+.4f}"
            gaps = [best - plug for best, plug in zip(found.optimum, found.plug_in, strict=True)]
            print(
                f"| {case.name} | {number} | {found.gain:+.4f} ± {found.margin:.4f} | {true_gain} | "
                f"{found.plug_in[0]:.4f} → {found.plug_in[1]:.4f} | {found.optimum[0]:.4f} → {found.optimum[1]:.4f} | "
                f"{gaps[0]:.4f} → {gaps[1]:.4f} | {found.bound:.4f} |",
                flush=True,
            )


def _print_many() -> None:
    many = synthetic_case(200)
    half = len(many.forecasts) // 2
    forecasts, outcomes = many.forecasts[half:], many.outcomes[half:]
    repaired = prudent.recalibration.DecisionCalibrator(many.problems, random_state=0).fit(
        many.forecasts[:half], many.outcomes[:half]
    )
    moved, rows, changes = repaired.transform(forecasts), np.arange(len(forecasts)), []
    for problem in many.problems:
        utilities = problem.utility(outcomes)
        after, before = (utilities[rows, problem.best_response(each)].mean() for each in (moved, forecasts))
        changes.append(after - before)
    print(f"\n## Many decision makers\n\n{many.name}, 10 actions each, {half:,} rows, and as many fresh ones:")
    print(
        f"On fresh rows utility changed by {min(changes):+.4f} to {max(changes):+.4f}, on average by "
        f"{np.mean(changes):+.4f}. {int((repaired.residuals_before_.p_values < 0.05).sum()):,} of ",
        end="",
    )
    print(f"{repaired.residuals_.p_values.size:,} moments were off zero before, ", end="")
    print(f"{int((repaired.residuals_.p_values < 0.05).sum())} after {len(repaired.patches_):,} patches.", flush=True)


def _print_online(most: int) -> None:
    print(_HEAD_ONLINE)
    steps = [10**power for power in range(2, 9) if 10**power <= most]
    for step, sums, utility in zip(steps, online("sums", steps), online("utility", steps), strict=True):
        print(f"| {step:,} | {sums[1]:.2f} | {sums[2]:.2f} | {utility[1]:.2f} | {utility[2]:.2f} |", flush=True)


def _print_base(steps: int) -> None:
    print(_HEAD_BASE.format(steps))
    for found in next_to_base(steps):
        print(
            f"| {found.name} | {found.utilities[0]:.4f} → {found.utilities[1]:.4f} | {found.errors[0]:.4f} → "
            f"{found.errors[1]:.4f} | {found.ratio:.2f} |",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, row by row."""
    parts = ("batch", "each", "many", "online", "base")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repair", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="with bike_sharing_day.csv and cal_housing.data.gz")
    parser.add_argument("--steps", type=int, default=100_000, help="of the table against adversaries")
    parser.add_argument("--base-steps", type=int, default=10_000, help="of the table next to a base forecast")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="tables to print; all by default")
    options = parser.parse_args(arguments)
    everything = list(cases(options.data_dir)) if {"batch", "each"} & set(options.parts) else []
    makers = sum(len(case.problems) for case in everything)
    if "batch" in options.parts:
        _print_batch(everything, makers)
    if "each" in options.parts:
        _print_each(everything, makers)
    if "many" in options.parts:
        _print_many()
    if "online" in options.parts:
        _print_online(options.steps)
    if "base" in options.parts:
        _print_base(options.base_steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
