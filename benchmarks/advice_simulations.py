"""What advice is worth where the truth is known, by simulation: ``python -m benchmarks.advice_simulations``.

Forecasts and outcomes are drawn, advice is asked for, and the rule that it gives is judged by its exact mean utility.
A second table is about the bounds of means that all claims rest on. Seeds are fixed; the result goes to
``results/advice_simulations.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks.advice_worlds import CALIBRATED, CONFIDENCE, ERRORS, WORLDS, Row, rows_of
from benchmarks.mean_bound_simulations import HEAD as BOUNDS_HEAD
from benchmarks.mean_bound_simulations import bound_rows

__all__ = ["SIZES", "targets"]

RESULTS = Path(__file__).parent / "results" / "advice_simulations.md"
SIZES = (25, 100, 400, 1_600, 10_000)
_DEVIATIONS = 2.5  # standard errors of a share that the lowest of many may be below the nominal one
_HEAD = """# Advice where the truth is known

`python -m benchmarks.advice_simulations`, {seconds:.0f} s. Seeds are fixed, so the tables are the same every time.

## Targets

| target | found | |
|---|---|---|
{targets}

*Allowed* is the nominal share less 2.5 of its standard errors at that number of samples: the lowest of the
many shares in the table below may well be there.

## Verdicts and claims

Outcomes are yes or no. Staffing: rewards 0.72, 0.90, 1.08, costs 0.02, 0.05, 0.10; forecasts uniform, as for *act at
0.4*. Cost-loss: protection costs a tenth of the loss; damage is rare, forecasts are 0.6 times a cubed uniform.
*Error* says what happens where the forecast is `v`. {calibrated} samples without an error, {repeats} of the others.
*Too few* is the verdict "not enough data". *Worse*: the advised rule truly earns less than following the forecast;
*much worse*: less by more than the tolerance, a tenth of the stakes. *Certificate* and *claim*: the advised rule truly
earns, or gains, at least what is claimed with 95% confidence. *Gain*: its true mean gain; *possible*: that of a rule
that knows the truth.

| decision | error | rows | follow | repair | too few | worse | much worse | certificate | claim | gain | possible |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def targets(rows: list[Row]) -> Iterator[str]:
    """What was aimed at, and whether it was reached."""
    calibrated = [row for row in rows if row.error == CALIBRATED]
    large = [row for row in calibrated if row.n == SIZES[-1]]
    follow = min(row.kinds["follow"] for row in large)
    repair = max(calibrated, key=lambda row: row.kinds["repair"])
    few = max(row.trusted for row in rows if row.n == SIZES[0])
    yield _target("calibrated, 10,000 rows: followed in at least 80%", f"at least {100 * follow:.1f}%", follow >= 0.8)
    where = f"{repair.problem}, {repair.n:,} rows"
    share = repair.kinds["repair"]
    yield _target("calibrated: repaired in at most 10%", f"at most {100 * share:.1f}% ({where})", share <= 0.1)
    yield _target("25 rows are never followed, where the forecast changes actions", f"{100 * few:.1f}%", few == 0.0)
    for name, what in (("certificate_holds", "certificate"), ("gain_holds", "gain claim")):
        least = min(rows, key=lambda row: getattr(row, name) - _allowed(row))
        bound, found = _allowed(least), getattr(least, name)
        where = f"{100 * found:.1f}% ({least.problem}, {least.error}, {least.n:,} rows), allowed {100 * bound:.1f}%"
        yield _target(f"{what} holds in 95%, less sampling error", f"at least {where}", found >= bound)
    worse = max(rows, key=lambda row: row.worse)
    where = f"{worse.problem}, {worse.error}, {worse.n:,} rows"
    yield _target("the advised rule is truly worse", f"at most {100 * worse.worse:.1f}% ({where})", None)


def _allowed(row: Row) -> float:
    """The nominal share less sampling error."""
    return float(CONFIDENCE - _DEVIATIONS * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / row.repeats))


def _target(what: str, found: str, met: bool | None) -> str:
    return f"| {what} | {found} | {'' if met is None else 'met' if met else '**missed**'} |"


def main(arguments: list[str] | None = None) -> int:
    """Write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice_simulations", description=__doc__)
    parser.add_argument("--repeats", type=int, default=150, help="samples per row; four times as many without error")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    situations = [
        (number, error, n, options.repeats * (4 if error == CALIBRATED else 1))
        for number in range(len(WORLDS))
        for error in ERRORS
        for n in SIZES
    ]
    simulated = Parallel(n_jobs=options.jobs)(delayed(rows_of)(*each) for each in situations)
    order = [name for world in WORLDS for name in world.problems]
    rows = sorted((row for found in simulated for row in found), key=lambda row: order.index(row.problem))
    bounds = bound_rows(options.jobs)
    head = _HEAD.format(
        seconds=time.perf_counter() - start,
        targets="\n".join(targets(rows)),
        calibrated=4 * options.repeats,
        repeats=options.repeats,
    )
    options.output.write_text("\n".join([head, *map(str, rows), BOUNDS_HEAD, *bounds]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
