"""How often promises for the next period are kept by real forecasters, and with rows as units instead of periods.

``python -m benchmarks.promises --data-dir DIR`` walks forward through every cell of the field data: advice
on all earlier periods, a promise for the realised mean utility of the next, and what came. Beside it the same promise
if rows were independent, which they are not: outcomes of one day, season or site share their errors.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import prudent
from benchmarks.environment import describe_environment
from benchmarks.field_sources import Cell, field_cells
from prudent.cases.mean_bounds import FEWEST_PERIODS

_CONFIDENCE = 0.95


def main(arguments: list[str] | None = None) -> int:
    """Walk through all cells and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--most-cells", type=int, default=None, help="of each source")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/promises.md"))
    options = parser.parse_args(arguments)
    found: dict[str, list[tuple[prudent.advice.Backtest, float]]] = defaultdict(list)
    for cell in field_cells(options.data_dir / "field"):
        if options.most_cells is None or len(found[cell.source]) < options.most_cells:
            found[cell.source].append(measure(cell))
            print(cell.source, cell.name, found[cell.source][-1][0].kept, file=sys.stderr, flush=True)
    lines = [
        f"# Promises for the next period, at {_CONFIDENCE:.0%} confidence",
        "",
        ", ".join(f"{name} {value}" for name, value in describe_environment().items()) + ".",
        "",
        "Kept: share of the periods in which the advised rule realised what was promised, or more; mean over cells.",
        "Nominal less sampling error: what independent promises of one cell would fall below with a probability of 5%.",
        "Slack: mean of what was realised less what was promised.",
        "",
        "| source | cells | periods decided | kept | nominal less sampling error | kept, rows as units | slack |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for source, cells in found.items():
        periods = [len(walked.periods) for walked, _ in cells]
        kept, rows = (float(np.mean(column)) for column in zip(*((walked.kept, r) for walked, r in cells), strict=True))
        n = float(np.mean(periods))
        least = _CONFIDENCE - 1.645 * np.sqrt(_CONFIDENCE * (1 - _CONFIDENCE) / n)
        slack = float(np.mean([walked.mean(walked.realised - walked.promised) for walked, _ in cells]))
        lines.append(
            f"| {source} | {len(cells)} | {sum(periods)} | {kept:.1%} | {least:.1%} | {rows:.1%} | {slack:.3g} |"
        )
    every = [cell for cells in found.values() for cell in cells]
    counts = np.array([len(walked.periods) for walked, _ in every])
    overall = [
        float(counts @ np.array(column) / counts.sum()) for column in zip(*((w.kept, r) for w, r in every), strict=True)
    ]
    lines.append(f"| all | {len(every)} | {counts.sum()} | {overall[0]:.1%} | | {overall[1]:.1%} | |")
    options.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


def measure(cell: Cell) -> tuple[prudent.advice.Backtest, float]:
    """Walk through one cell; and the share of promises kept that take rows as units."""
    walked = prudent.backtest(cell.problem, cell.forecasts, cell.outcomes, periods=cell.periods)
    distinct, place = np.unique(cell.periods, return_inverse=True)
    kept = []
    for now in range(FEWEST_PERIODS, len(distinct)):
        before, inside = place < now, place == now
        advice = prudent.advise(cell.problem, cell.forecasts[before], cell.outcomes[before])
        promise = advice.for_cases(cell.forecasts[inside], realised=True).lower
        outcomes = prudent.Cases(cell.forecasts[inside], cell.outcomes[inside]).on(cell.problem.space).known_outcomes
        played = advice.policy.predict_proba(cell.forecasts[inside])
        kept.append((played * cell.problem.linear_utility(outcomes)).sum(axis=1).mean() >= promise)
    return walked, float(np.mean(kept))


if __name__ == "__main__":
    sys.exit(main())
