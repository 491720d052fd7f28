"""Other defaults of advice on two halves of the sources: ``python -m benchmarks.field.defaults --data-dir DIR``.

A default is to be changed only for what is better on both halves by more than the noise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import prudent
from benchmarks.environment import describe_environment
from benchmarks.field import protocol
from benchmarks.field.__main__ import read_sources
from benchmarks.field.decision import CONFIDENCE, Decision, advised
from benchmarks.field.decision import follow as followed
from benchmarks.field.forecaster import Forecaster, Rows
from benchmarks.field.report import signed
from benchmarks.field.summary import Mean, difference, summarise
from prudent.advice import advising, past_cases
from prudent.advice.past_cases import PastCases
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.recalibration import DecisionCalibrator, base
from prudent.recalibration.segmented import usual_recalibrators

DEFAULT = "as it is: 90%, a tenth of the stakes, five folds, three recalibrations, eras"

_LATEST = 12  # eras


@contextmanager
def constant(module: Any, name: str, value: Any) -> Iterator[None]:
    """Let a constant of the library have another value for a while."""
    before = vars(module)[name]
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def with_constant(module: Any, name: str, value: Any, past: Rows, now: Rows, problem: Any) -> Decision:
    """Advice with another constant."""
    with constant(module, name, value):
        return advised(past, now, problem, periods=True)


def with_folds(count: int, past: Rows, now: Rows, problem: Any) -> Decision:
    """Advice with more or fewer folds; on rows of their own, since folds are remembered."""
    with constant(base, "FOLDS", count), constant(past_cases, "FOLDS", count):
        return advised(replace(past), now, problem, periods=True)


def by_rows(past: Rows, now: Rows, problem: Any) -> Decision:
    """Advice with rows as units."""
    return advised(past, now, problem, periods=False)


def with_menu(choose: Callable[..., dict[str, Any]], past: Rows, now: Rows, problem: Any) -> Decision:
    """Advice with another menu."""
    usual = list(usual_recalibrators(past.by_eras.on(problem.space)).items())
    entries = {f"{name} alone": each for name, each in choose(problem, usual)}
    advice = prudent.advise(problem, past.by_eras, usual=False, menu=entries, confidence=CONFIDENCE)
    return _with_promise(advice, past, now)


def _with_promise(advice: prudent.Advice, past: Rows, now: Rows) -> Decision:
    promise = None
    if len(set(past.eras.tolist())) >= FEWEST_PERIODS:
        promise = advice.for_cases(now.forecasts, horizon="next period", realised=True).lower
    return Decision(advice.policy.predict_proba(now.forecasts), promise, advice.verdict.kind.value)


def best_estimate(past: Rows, now: Rows, problem: Any) -> Decision:
    """Of the entries that are proven to gain, the one with the highest estimate and not with the highest bound."""
    advice = prudent.advise(problem, past.by_eras, confidence=CONFIDENCE)
    proven = [k for k in range(len(advice.menu.names)) if advice.menu.lower[k] > 0]
    if advice.verdict.kind.value != "repair" or not proven:
        return _with_promise(advice, past, now)
    name = advice.menu.names[max(proven, key=lambda k: float(advice.menu.estimates[k]))]
    forecasts = now.by_rows.on(problem.space).forecasts
    return followed(problem, advice.recalibrators[name]().transform(forecasts))


def _positive_stakes(past: PastCases) -> float:
    """Stakes that are never zero, so that forecasts that change no action are judged like others."""
    return max(past.promised - float(past.constant.max()), 1e-9 * float(np.abs(past.hoped).max()))


VARIANTS: dict[str, Callable[[Rows, Rows, Any], Decision | None]] = {
    DEFAULT: partial(advised, periods=True),
    "rows as units": by_rows,
    "chosen at 70%": partial(with_constant, advising, "CHOICE", 0.7),
    "chosen at 80%": partial(with_constant, advising, "CHOICE", 0.8),
    "chosen at 95%": partial(with_constant, advising, "CHOICE", 0.95),
    "tolerance: a twentieth of the stakes": partial(with_constant, advising, "TOLERATED", 0.05),
    "tolerance: a fifth of the stakes": partial(with_constant, advising, "TOLERATED", 0.2),
    "three folds": partial(with_folds, 3),
    "ten folds": partial(with_folds, 10),
    "highest estimate of those proven": best_estimate,
    "forecasts that change no action are judged, too": partial(
        with_constant, PastCases, "stakes", property(_positive_stakes)
    ),
    "first recalibration alone": partial(with_menu, lambda _, usual: usual[:1]),
    "second recalibration alone": partial(with_menu, lambda _, usual: usual[1:2]),
    "isotonic alone": partial(with_menu, lambda _, usual: usual[2:]),
    "without isotonic": partial(with_menu, lambda _, usual: usual[:2]),
    "and a decision calibrator": partial(
        with_menu, lambda problem, usual: [*usual, ("decisions", DecisionCalibrator(problem))]
    ),
}


def measure(one: Forecaster) -> list[protocol.Result]:
    """All variants on one forecaster."""
    chosen: Any = [SimpleNamespace(NAME=name, decide=decide) for name, decide in VARIANTS.items()]
    return [result for results in protocol.play(one, chosen, _LATEST).values() for result in results]


def table(results: pd.DataFrame) -> Iterator[str]:
    """One line per variant: gain over the default in both halves, eras harmed, promises kept."""
    names = sorted(results["source"].unique())
    halves = [results[results["source"].isin(names[start::2])] for start in (0, 1)]
    for title, number in (("First", 0), ("Second", 1)):
        yield f"{title} half: {', '.join(names[number::2])}."
    yield from ("", "| advice | gain over the default: first half | second half | eras harmed | | kept | |")
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name in dict.fromkeys(results["method"]):
        apart, harmed, kept = [], [], []
        for half in halves:
            own = summarise(half[half["method"] == name])
            gain = difference(half, name, DEFAULT)
            if name == DEFAULT:
                gain = own["gain"]
            assert isinstance(gain, Mean)  # noqa: S101  # for the type
            what = "in all " if name == DEFAULT else ""
            apart.append(f"{what}{signed(gain.mean, 4)} ± {gain.error:.4f}")
            harmed.append(f"{own['harmed']:.1%}")
            kept.append(f"{own['kept']:.1%}" if "kept" in own else "")
        yield f"| {name} | {' | '.join([*apart, *harmed, *kept])} |"


def main(arguments: list[str] | None = None) -> int:
    """Measure all variants and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="the folder that holds field/")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/field-defaults.md"))
    options = parser.parse_args(arguments)
    everything, missing = read_sources(options.data_dir / "field")
    found: list[protocol.Result] = []
    tasks = (delayed(measure)(one) for one in everything)
    for count, results in enumerate(Parallel(n_jobs=options.jobs, return_as="generator")(tasks), start=1):
        found += results
        print(f"{count} of {len(everything)}", file=sys.stderr, flush=True)
    lines = [
        "# Other defaults of advice, in units of the cost",
        "",
        "`python -m benchmarks.field.defaults --data-dir DIR`. "
        + ", ".join(f"{name} {value}" for name, value in describe_environment().items())
        + ".",
        "",
        f"The latest {_LATEST} eras; ± one standard error over eras, as in field.md.",
        *missing,
        "",
        *table(pd.DataFrame(found)),
    ]
    options.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
