"""Rows 8 to 15 and 17 to 19: single operations, timed side by side with a NumPy primitive where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import prudent
from benchmarks.cases import FAMILIES, smooth_tests
from benchmarks.child import READY, run_in_child
from benchmarks.expert import epigraph_vertices
from benchmarks.race import Settings
from benchmarks.results import Row
from benchmarks.stopwatch import PeakMemory, seconds_of, side_by_side
from prudent import guarantees

__all__ = ["PRIMITIVES", "Primitive", "measure"]

Work = Callable[[int, int], Iterator[dict[str, Any]]]


@dataclass(frozen=True)
class Primitive:
    """A row: its work gets a number of rows and of repeats, and yields READY and then the quantity."""

    number: int
    what: str
    work: Work
    size: int
    quick_size: int
    unit: str
    goal: float | None
    at_most: bool = True
    repeats: int = 5


def measure(primitive: Primitive, settings: Settings) -> Row:
    """Take one row in a child of its own."""
    n = primitive.quick_size if settings.quick else primitive.size
    repeats = max(3, primitive.repeats // 3) if settings.quick else primitive.repeats
    reply = run_in_child(primitive.work, (n, repeats), settings.limit)
    answer = dict(reply.answer)
    return Row(
        primitive.number,
        primitive.what,
        n,
        primitive.unit,
        primitive.at_most,
        reply.outcome,
        reply.note,
        value=answer.pop("value", None),
        goal=answer.pop("goal", primitive.goal),
        details=answer,
    )


def _ratio(
    make: Callable[[np.ndarray], Callable[[], Any]], reference: Callable[[np.ndarray], Any], n: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Time a call on the forecasts of case 1 against a primitive on the same array."""
    forecasts = FAMILIES[1].forecasts(n)[:, 0]
    call = make(forecasts)
    yield READY
    seconds, reference_seconds = side_by_side(call, lambda: reference(forecasts), repeats)
    yield {"value": seconds / reference_seconds, "seconds": seconds, "reference_seconds": reference_seconds}


def _fit_one_test(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    return _ratio(lambda forecasts: lambda: FAMILIES[1].policy().fit(forecasts), np.sort, n, repeats)


def _fit_memory(n: int, repeats: int) -> Iterator[dict[str, Any]]:  # noqa: ARG001  # a peak needs one run
    forecasts = FAMILIES[1].forecasts(n)[:, 0]
    FAMILIES[1].policy().fit(forecasts[:50])
    policy = FAMILIES[1].policy()
    yield READY
    with PeakMemory() as memory:
        policy.fit(forecasts)
    yield {"value": memory.extra_bytes / forecasts.nbytes, "extra_bytes": memory.extra_bytes}


def _fit_five_tests(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    problem, guarantee = FAMILIES[1].problem(), smooth_tests(5)
    return _ratio(
        lambda forecasts: lambda: prudent.RobustPolicy(problem, guarantee).fit(forecasts), np.sort, n, repeats
    )


def _predict_one_coordinate(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    policy = FAMILIES[1].policy().fit(FAMILIES[1].forecasts(10_000))
    breakpoints = np.linspace(0.0, 1.0, policy.problem.n_actions + 1)[1:-1]

    def reference(forecasts: np.ndarray) -> Any:
        return np.searchsorted(breakpoints, forecasts)

    return _ratio(lambda forecasts: lambda: policy.predict_proba(forecasts), reference, n, repeats)


def _predict_five_coordinates(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    family = FAMILIES[4]
    policy = family.policy().fit(family.forecasts(2_000))
    forecasts = family.forecasts(n)
    table = np.ascontiguousarray(epigraph_vertices(family.arrays(1))[0].T)
    yield READY
    seconds, product = side_by_side(lambda: policy.predict_proba(forecasts), lambda: forecasts @ table, repeats)
    rate, product_rate = n / seconds / 1e6, n / product / 1e6
    yield {
        "value": rate,
        "goal": min(2.0, product_rate),
        "seconds": seconds,
        "reference_seconds": product,
        "vertices": float(table.shape[1]),
    }


def _predict_one_row(number: int, repeats: int) -> Iterator[dict[str, Any]]:
    family = FAMILIES[number]
    policy, row = family.policy().fit(family.forecasts(1_000)), family.forecasts(1)
    for _ in range(20):
        policy.predict(row)
    yield READY
    seconds = np.array([seconds_of(lambda: policy.predict(row)) for _ in range(100 * repeats)])
    yield {"value": float(np.median(seconds)) * 1e6, "best": float(seconds.min()) * 1e6}


def _one_row_one_coordinate(_: int, repeats: int) -> Iterator[dict[str, Any]]:
    return _predict_one_row(1, repeats)


def _one_row_five_coordinates(_: int, repeats: int) -> Iterator[dict[str, Any]]:
    return _predict_one_row(4, repeats)


def _fit_rationed(
    space: prudent.Box | prudent.Simplex, guarantee: str, n: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Allow half of what one action gets without a capacity; every repeat makes its problem and its rows anew."""
    rng = np.random.default_rng(0)
    if isinstance(space, prudent.Simplex):
        payoffs = [[0.0, -10.0, -4.0], [-1.0, -1.0, -2.0], [-2.0, -1.5, 0.0]]
        problem, forecasts = prudent.DecisionProblem.from_payoffs(payoffs), rng.dirichlet([2, 2, 2], size=n)
    else:
        problem = prudent.DecisionProblem([0.0, 1.0, 0.6], [0.0, 0.4, 0.15])
        forecasts = rng.beta(2, 3, size=n)[:, None]
    used = prudent.RobustPolicy(problem, guarantee).fit(forecasts).predict_proba(forecasts).mean(axis=0)
    capacity = {1: float(used[1] / 2)}
    found = prudent.RobustPolicy(problem, guarantee, capacity=capacity).fit(forecasts)
    yield READY
    seconds, reference_seconds = side_by_side(
        lambda: prudent.RobustPolicy(problem, guarantee, capacity=capacity).fit(forecasts),
        lambda: prudent.RobustPolicy(problem, guarantee).fit(forecasts),
        repeats,
    )
    yield {
        "value": seconds / reference_seconds,
        "seconds": seconds,
        "reference_seconds": reference_seconds,
        "gap": found.certificate_.gap / problem.utility_range,
    }


def _capacity_of_one_test(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    return _fit_rationed(prudent.Box(0.0, 1.0), "self-orthogonal", n, repeats)


def _capacity_of_two_tests(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    return _fit_rationed(prudent.Box(0.0, 1.0), "unbiased+self-orthogonal", n, repeats)


def _capacity_of_classes(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    return _fit_rationed(prudent.Simplex(3), "unbiased+self-orthogonal", n, repeats)


def _import_time(_: int, repeats: int) -> Iterator[dict[str, Any]]:
    code = (
        "import time, numpy, scipy.optimize, sklearn.base; start = time.perf_counter(); "
        # Names are imported when they are asked for, so ask for what every user needs.
        "from prudent import DecisionProblem, RobustPolicy, guarantees; print(time.perf_counter() - start)"
    )
    _fresh_interpreter(code)  # writes the bytecode, which an installed package has
    yield READY
    seconds = [_fresh_interpreter(code)[0] for _ in range(repeats)]
    yield {"value": float(np.median(seconds)) * 1e3, "best": min(seconds) * 1e3}


def _fresh_process(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Time whole processes, from their start to their end: one that decides, and one that only imports."""
    imports = "import numpy, scipy.optimize, sklearn.base"
    code = (
        "import numpy, prudent; problem = prudent.DecisionProblem([0.0, 1.0, 1.8], [0.0, 0.4, 1.0]); "
        f"forecasts = numpy.random.default_rng(0).random({n}); "
        "policy = prudent.RobustPolicy(problem, prudent.guarantees.SelfOrthogonal(), random_state=0); "
        "policy.fit(forecasts).predict(forecasts)"
    )
    yield READY
    seconds, reference_seconds = side_by_side(
        lambda: _fresh_interpreter(code), lambda: _fresh_interpreter(imports), repeats
    )
    yield {"value": seconds - reference_seconds, "seconds": seconds, "reference_seconds": reference_seconds}


def _worst_case(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    policy, guarantee = prudent.PlugInPolicy(FAMILIES[1].problem()), guarantees.SelfOrthogonal()
    return _ratio(
        lambda forecasts: lambda: prudent.worst_case(policy, forecasts, guarantee=guarantee), np.argsort, n, repeats
    )


def _fit_pure(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    problem, guarantee = FAMILIES[1].problem(), guarantees.SelfOrthogonal()
    return _ratio(
        lambda forecasts: lambda: prudent.RobustPolicy(problem, guarantee, randomize=False).fit(forecasts),
        np.sort,
        n,
        repeats,
    )


def _fit_within(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Fit fifty groups against the fit of all rows together."""
    problem, forecasts = FAMILIES[1].problem(), FAMILIES[1].forecasts(n)[:, 0]
    context = {"region": np.random.default_rng(0).integers(0, 50, size=n)}
    yield READY
    seconds, reference_seconds = side_by_side(
        lambda: prudent.RobustPolicy(problem, "within:region:self-orthogonal").fit(forecasts, context=context),
        lambda: prudent.RobustPolicy(problem, "self-orthogonal").fit(forecasts),
        repeats,
    )
    yield {"value": seconds / reference_seconds, "seconds": seconds, "reference_seconds": reference_seconds}


def _audit(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Audit thirty moments against one pass that only computes them."""
    space, guarantee = prudent.Box(0.0, 1.0), guarantees.Polynomial(29)
    rng = np.random.default_rng(0)
    forecasts = rng.random((n, 1))
    outcomes = (rng.random((n, 1)) < forecasts).astype(np.float64)
    weights = np.full(n, 1.0 / n)
    yield READY
    seconds, reference_seconds = side_by_side(
        lambda: prudent.audit(None, forecasts, outcomes, guarantee=guarantee),
        lambda: guarantee.evaluate(forecasts, space).moments(outcomes - forecasts, weights),
        repeats,
    )
    yield {"value": seconds / reference_seconds, "seconds": seconds, "reference_seconds": reference_seconds}


def _fresh_interpreter(code: str) -> list[float]:
    """Run code in a new interpreter and read the numbers it prints."""
    # Without bytecode an import is several times slower, and no installed package is without it.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(  # noqa: S603  # our own interpreter and our own code
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
        env=variables,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return [float(word) for word in done.stdout.split()]


_MILLION, _TEN_MILLION = 1_000_000, 10_000_000

PRIMITIVES = (
    Primitive(8, "fit d=1, k=1", _fit_one_test, _TEN_MILLION, _MILLION, "x np.sort", 4.0),
    Primitive(8, "fit d=1, k=1: extra peak memory", _fit_memory, _TEN_MILLION, _MILLION, "x the input", 3.0),
    Primitive(9, "fit d=1, k=5", _fit_five_tests, _TEN_MILLION, 200_000, "x np.sort", 40.0, repeats=3),
    Primitive(10, "predict_proba d=1", _predict_one_coordinate, _TEN_MILLION, _MILLION, "x np.searchsorted", 6.0),
    Primitive(
        11, "predict_proba d=5", _predict_five_coordinates, 200_000, 50_000, "million rows/s", 1.5, at_most=False
    ),
    Primitive(12, "predict one row, d=1", _one_row_one_coordinate, 1, 1, "µs", 150.0, repeats=20),
    Primitive(12, "predict one row, d=5", _one_row_five_coordinates, 1, 1, "µs", 150.0, repeats=20),
    Primitive(
        13,
        "import for a fit, after numpy, scipy.optimize, sklearn.base",
        _import_time,
        0,
        0,
        "ms",
        60.0,
        repeats=11,
    ),
    Primitive(14, "worst_case of the plug-in policy, d=1, k=1", _worst_case, _MILLION, 100_000, "x np.argsort", 6.0),
    Primitive(15, "pure fit d=1, k=1", _fit_pure, _MILLION, 100_000, "x np.sort", 20.0),
    Primitive(
        17,
        "fresh process: import, fit and predict d=1, k=1",
        _fresh_process,
        100_000,
        100_000,
        "s more than importing numpy, scipy.optimize, sklearn.base",
        0.15,
        repeats=11,
    ),
    Primitive(18, "audit of 30 moments", _audit, _MILLION, 100_000, "x one pass of moments", 10.0),
    Primitive(19, "fit with capacity, d=1, k=1", _capacity_of_one_test, 100_000, 20_000, "x fit without", 4.0),
    Primitive(19, "fit with capacity, d=1, k=2", _capacity_of_two_tests, 100_000, 20_000, "x fit without", 4.0),
    Primitive(19, "fit with capacity, 3 classes, k=2", _capacity_of_classes, 100_000, 20_000, "x fit without", 4.0),
    Primitive(20, "fit within 50 groups, d=1, k=1", _fit_within, _MILLION, _MILLION, "x the pooled fit", 3.0),
)
