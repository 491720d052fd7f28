"""What runs inside a child: one contestant on one instance, warmed up, timed and weighed.

Prudent and its competitors get the same treatment: imports and a fit of 20 rows before the clock starts; the first
full run gives the peak memory; the time is the least of that run and of repeats within a small budget.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arrays import Arrays
from benchmarks.cases import FAMILIES
from benchmarks.child import READY, NoAnswerError
from benchmarks.competitors import COMPETITORS
from benchmarks.stopwatch import PeakMemory, best_of

__all__ = ["run_competitor", "run_prudent"]

_WARM_UP_ROWS = 20


def run_prudent(number: int, path: Path, budget: float) -> Iterator[dict[str, Any]]:
    """Fit the robust policy of a family to the forecasts in a file."""
    family = FAMILIES[number]
    forecasts = np.load(path)
    family.policy().fit(forecasts[:_WARM_UP_ROWS])
    policy = family.policy()
    yield READY
    with PeakMemory() as memory:
        start = time.perf_counter()
        policy.fit(forecasts)
        first = time.perf_counter() - start
    certificate = policy.certificate_
    answer = {
        "seconds": first,
        "extra_bytes": memory.extra_bytes,
        "lower": certificate.lower,
        "upper": certificate.upper,
        "status": str(certificate.status),
        "method": certificate.message.removeprefix("Method: ").split(",")[0],
    }
    yield answer
    mean_mixture = policy.predict_proba(forecasts[:10_000]).mean(axis=0)
    del policy
    best = best_of(lambda: _fit_of(family.policy(), forecasts), first, budget)
    yield answer | {"seconds": best, "actions_used": int((mean_mixture > 1e-3).sum())}


def run_competitor(name: str, path: Path, budget: float) -> Iterator[dict[str, Any]]:
    """Solve the instance in a file with a competitor."""
    competitor, arrays = COMPETITORS[name], Arrays.load(path)
    with suppress(NoAnswerError):  # the race is run on all rows, whatever happens on these
        competitor.solve(arrays.first_rows(_WARM_UP_ROWS))
    yield READY
    with PeakMemory() as memory:
        start = time.perf_counter()
        try:
            found = competitor.solve(arrays)
        except NoAnswerError as error:
            raise NoAnswerError(f"{error} after {time.perf_counter() - start:.3g} s") from error
        first = time.perf_counter() - start
    answer = {
        "seconds": first,
        "solver_seconds": found.solver_seconds,
        "extra_bytes": memory.extra_bytes,
        "lower": found.value,
        "upper": found.value,
    }
    yield answer
    best = best_of(lambda: lambda: competitor.solve(arrays), first, budget)
    yield answer | {"seconds": best}


def _fit_of(policy: Any, forecasts: np.ndarray) -> Any:
    return lambda: policy.fit(forecasts)
