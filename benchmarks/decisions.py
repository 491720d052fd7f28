"""Decisions next to what people use today, on held-out rows: ``python -m benchmarks.decisions [--data-dir DIR]``.

Every method learns from the same rows, decides on the same fresh ones, and is judged by what it earns there. Advice
hears the model's cross-fitted forecasts and plays its rule on the forecasts of the model fitted to all rows. The
result goes to ``results/decisions.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.decision_cases import Case, cases, learning_curve
from benchmarks.decision_methods import ADVICE, METHODS, SAME_MODEL, Played, Remembered, play
from benchmarks.environment import describe_environment

__all__ = ["Result", "measure", "write"]

RESULTS = Path(__file__).parent / "results" / "decisions.md"
TARGET_ROWS = 400

_HEAD = """# Decisions on held-out rows

`python -m benchmarks.decisions --data-dir DIR`, {splits} splits of every data set, twice as many for the learning
curve, {seconds:.0f} s in all.
{environment}.

Mean utility per fresh row, with its standard error over splits. *Advice* is `prudent.advise` on cross-fitted forecasts
(`cross_val_predict`, five folds); its rule is played on the forecasts of the model fitted to all rows. *Sigmoid*,
*isotonic* and *temperature* are `CalibratedClassifierCV`, which then follows the forecast: with `ensemble=False`, or
with `ensemble=True`, which averages five models that were each fitted to four fifths of the rows and is another model.
Everything is fitted to the same folds of the same rows.

## Advice next to the best of the others on the same model

*Behind* is the mean utility of the best other method without an ensemble less that of the advice, with the standard
error of that difference over splits. The best is picked after the fact among up to six, so it is a little lucky.
Target: from {target_rows} rows on, advice is at most one standard error (of its own mean) behind. *Certificate* and
*gain* count splits in which the mean of the fresh rows is not below what was claimed with 95% confidence; gains are
claimed where a rule is adopted. Fresh halves of small data sets have as much noise as the rows that a bound was
computed on: of bounds that are right in 95% about 88% pass such a test.

| decision | rows | advice | best other | behind | target | verdicts | certificate | gain | seconds |
|---|---|---|---|---|---|---|---|---|---|"""

_METHODS_HEAD = """
## Every method

| decision | {titles} |
|---|{lines}|"""

_CURVE_HEAD = """
## Learning curve

A logistic regression where that is the truth, costs of ten to one, {fresh:,} fresh rows each time.

| rows | {titles} |
|---|{lines}|"""


@dataclass(frozen=True)
class Result:
    """What methods earned in every split of a case."""

    case: Case
    played: dict[str, list[Played]]

    def utilities(self, method: str) -> np.ndarray:
        """One number per split."""
        return np.array([each.utility for each in self.played[method]])

    @property
    def best_other(self) -> str:
        """The method with the highest mean among those with the same model."""
        return max((name for name in SAME_MODEL if name in self.played), key=lambda name: self.utilities(name).mean())

    @property
    def behind(self) -> tuple[float, float]:
        """How much the best other method earns more than advice, and the standard error of that."""
        return _mean(self.utilities(self.best_other) - self.utilities(ADVICE))

    @property
    def meets_target(self) -> bool:
        """Whether advice is at most one standard error behind."""
        return self.behind[0] <= _mean(self.utilities(ADVICE))[1]


def measure(case: Case, splits: int, jobs: int = 1) -> Result:
    """Play every method on every split."""
    found = Parallel(n_jobs=jobs)(delayed(_split)(case, number) for number in range(splits))
    return Result(case, {name: [each[name] for each in found] for name in found[0]})


def _split(case: Case, number: int) -> dict[str, Played]:
    split = case.split(number)
    Remembered.fits.clear()
    names = [name for name in METHODS if case.classifies or name in (ADVICE, "as it is", "best single action")]
    with threadpool_limits(1):
        return {name: play(case, split, name) for name in names if name != "tuned threshold" or case.binary}


def _mean(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def write(results: Iterable[Result], curve: Iterable[Result]) -> Iterator[str]:
    """The rows of all tables."""
    results, curve = list(results), list(curve)
    yield from (_summary(result) for result in [*results, *curve])
    titles = {"titles": " | ".join(METHODS), "lines": "|".join("---" for _ in METHODS)}
    yield _METHODS_HEAD.format(**titles)
    yield from (_row(result.case.name, result) for result in results)
    yield _CURVE_HEAD.format(fresh=len(curve[0].case.split(0).later), **titles)
    yield from (_row(f"{result.case.n_rows:,}", result) for result in curve)


def _summary(result: Result) -> str:
    advice = result.played[ADVICE]
    counts = Counter(each.verdict.replace("_", " ") for each in advice)
    verdicts = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    kept = sum(each.utility >= each.certain for each in advice)
    adopted = [each for each in advice if each.verdict == "repair"]
    gained = f"{sum(each.gain >= each.certain_gain for each in adopted)} of {len(adopted)}" if adopted else "-"
    target = "-" if result.case.n_rows < TARGET_ROWS else "met" if result.meets_target else "**missed**"
    own, behind = (f"{mean:.4f} ± {error:.4f}" for mean, error in (_mean(result.utilities(ADVICE)), result.behind))
    best = f"{result.best_other} {result.utilities(result.best_other).mean():.4f}"
    seconds = np.mean([each.seconds for each in advice])
    return (
        f"| {result.case.name} | {result.case.n_rows:,} | {own} | {best} | {behind} | {target} | {verdicts} "
        f"| {kept} of {len(advice)} | {gained} | {seconds:.2f} |"
    )


def _row(name: str, result: Result) -> str:
    cells = []
    for method in METHODS:
        if method in result.played:
            mean, error = _mean(result.utilities(method))
            seconds = np.mean([each.seconds for each in result.played[method]])
            cells.append(f"{mean:.4f} ± {error:.4f} ({seconds:.2f} s)")
        else:
            cells.append("-")
    return f"| {name} | {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """Write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="with bike_sharing_day.csv")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    environment = ", ".join(f"{name} {value}" for name, value in describe_environment().items())
    start, groups = time.perf_counter(), []
    for group, splits in ((cases(options.data_dir), options.splits), (learning_curve(), 2 * options.splits)):
        groups.append([])
        for case in group:
            groups[-1].append(measure(case, splits, options.jobs))
            print(_summary(groups[-1][-1]), flush=True)
    rows = list(write(*groups))
    if options.data_dir is None:
        rows.append("\nThe decision about bikes is left out: its data were not given (`--data-dir`).")
    seconds = time.perf_counter() - start
    head = _HEAD.format(splits=options.splits, seconds=seconds, environment=environment, target_rows=TARGET_ROWS)
    options.output.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
