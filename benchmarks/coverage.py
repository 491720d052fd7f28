"""What confidence statements are worth, by simulation: ``python -m benchmarks.coverage``.

Four tables: simultaneous coverage of audited moments, how often confidence
certificates and audited guarantees hold, false alarms of the monitor, and its
delay. Everything is drawn from fixed seeds, so the tables are the same every
time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

import prudent
from prudent import Box, guarantees
from prudent.cases.moment_sums import estimate_moments, means_of_moments

__all__ = [
    "SITUATIONS",
    "Coverage",
    "Situation",
    "audited_guarantees_that_hold",
    "certificates_that_hold",
    "compared",
    "delays",
    "false_alarms",
    "simulate",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Situation:
    """Who forecasts, and what then happens: ``draw(rng, means)`` gives outcomes with these means."""

    name: str
    forecasts: Callable[[Array], Array]  # from uniforms
    truth: Callable[[Array], Array]
    draw: Callable[[np.random.Generator, Array], Array]


@dataclass(frozen=True)
class Coverage:
    """One row of the first table: shares of samples with all moments in their intervals, and mean lengths.

    Beside ours: Student's t alone. Lengths are in units of the best possible: the normal interval with the true
    variance.
    """

    situation: str
    tests: str
    n: int
    covered: float
    length: float
    student_covered: float
    student_length: float


def _yes_or_no(rng: np.random.Generator, means: Array) -> Array:
    return (rng.random(means.shape) < means).astype(np.float64)


def _continuous(rng: np.random.Generator, means: Array) -> Array:
    return rng.beta(8 * means + 1e-9, 8 * (1 - means) + 1e-9)


_CLAIMS = 0.001


def _rare_claims(rng: np.random.Generator, means: Array) -> Array:
    """A small cost, and in one case of a thousand a large claim."""
    cost, claim = rng.uniform(0.0, 0.02, means.shape), rng.uniform(0.5, 0.99, means.shape)
    return np.where(rng.random(means.shape) < _CLAIMS, claim, cost)


SITUATIONS = (
    Situation("yes or no, calibrated", lambda u: u, lambda v: v, _yes_or_no),
    Situation("yes or no, biased", lambda u: u, lambda v: 0.1 + 0.8 * v**2, _yes_or_no),
    Situation("rare events, calibrated", lambda u: 0.2 * u**3, lambda v: v, _yes_or_no),
    Situation("hardly ever, forecast too high", lambda u: 0.3 + 0.4 * u, lambda v: 0.02 + 0 * v, _yes_or_no),
    Situation("continuous, calibrated", lambda u: u, lambda v: v, _continuous),
    Situation(
        "rare claims, calibrated",
        lambda u: 0.745 * _CLAIMS + 0.01 * (1 - _CLAIMS) + 0 * u,
        lambda v: v,
        _rare_claims,
    ),
    Situation("two in a thousand, calibrated", lambda u: 0.002 + 0 * u, lambda v: v, _yes_or_no),
)

_TESTS = {
    "powers": lambda k: guarantees.Polynomial(k - 1),
    "bins": lambda k: guarantees.Bins(k),
    "log-odds": lambda _: guarantees.LogOdds(),  # without a bound
}
_COMPARED = ((1, "powers"), (6, "powers"), (6, "bins"), (30, "bins"))
_PROBLEM = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
_PROMISE = guarantees.SelfOrthogonal()


def simulate(situation: Situation, tests: str, moments: int, n: int, samples: int) -> Coverage:
    """Draw samples and count how often every moment is in its interval."""
    space = Box(0.0, 1.0)
    grid = situation.forecasts((np.arange(200_000) + 0.5) / 200_000)[:, None]
    even = np.full(len(grid), 1 / len(grid))
    guarantee = _TESTS[tests](moments).resolve(grid, even, space)
    evaluated = guarantee.evaluate(grid, space)
    true = evaluated.moments(situation.truth(grid) - grid, even)
    rng = np.random.default_rng([n, moments, len(situation.name), len(tests)])
    spread = np.sqrt(n) * _deviations(evaluated.values, situation.draw(rng, situation.truth(grid)) - grid)
    error = 0.05 / 2 / len(true)
    best = 2 * float(-ndtri(error) * spread.mean() / n)
    hits, lengths = np.zeros(2), np.zeros(2)
    for _ in range(samples):
        forecasts = situation.forecasts(rng.random(n))[:, None]
        outcomes = situation.draw(rng, situation.truth(forecasts))
        means = means_of_moments(guarantee, space, forecasts, outcomes, np.full(n, 1 / n))
        ours = estimate_moments(evaluated.without_rows(), means, 0.95)
        student = -stdtrit(n - 1, error) * means.deviations
        for k, (below, above) in enumerate([(ours.below, ours.above), (student, student)]):
            off = means.means - true
            hits[k] += bool(((off <= below + 1e-15) & (-off <= above + 1e-15)).all())
            lengths[k] += float((below + above).mean())
    (covered, by_student), (length, students) = hits / samples, lengths / samples / best
    named = tests if tests == "log-odds" else f"{moments} {tests}"
    return Coverage(situation.name, named, n, covered, length, by_student, students)


def _deviations(values: Array, errors: Array) -> Array:
    """Standard deviations of ``Z``, one per test."""
    deviations: Array = (values * errors).std(axis=0)
    return deviations


def certificates_that_hold(n: int, splits: int) -> float:
    """Share of splits whose certificate is below what the policy gets in its worst world.

    The population is a finite list of forecasts, so that the worst world is computed exactly.
    """
    rng = np.random.default_rng(n)
    population = rng.beta(2.0, 3.0, size=2_000)
    held = 0
    for _ in range(splits):
        policy = prudent.RobustPolicy(_PROBLEM, _PROMISE).fit(rng.choice(population, n))
        fresh = rng.choice(population, n)
        certificate = prudent.confidence_certificate(policy, fresh, assume_fresh=True)
        worst = prudent.worst_case(policy, population, guarantee=_PROMISE)
        held += certificate.lower <= worst.certificate.upper
    return held / splits


def audited_guarantees_that_hold(n: int, samples: int) -> float:
    """Share of samples on which the audited policy gets what it guarantees in the true world."""
    rng = np.random.default_rng(n)
    held = 0
    for _ in range(samples):
        forecasts = rng.random(n)
        truth = 0.1 + 0.8 * forecasts**2
        policy = prudent.RobustPolicy(_PROBLEM, guarantees.SelfOrthogonal(intercept=True), slack="audit")
        policy.fit(forecasts, _yes_or_no(rng, truth))
        true = (policy.predict_proba(forecasts) * _PROBLEM.utility(truth)).sum(axis=1).mean()
        held += policy.certificate_.lower <= true
    return held / samples


def false_alarms(situation: str, looks: int, streams: int) -> float:
    """Share of streams in which the monitor ever raises an alarm although nothing beyond its tolerance happened.

    "calibrated": the forecaster keeps its promise. "at the limit": it breaks it by just what is tolerated, which for
    this policy the moment reaches before utility does.
    """
    rng = np.random.default_rng(looks)
    policy = prudent.RobustPolicy(_PROBLEM, _PROMISE).fit((np.arange(5_000) + 0.5) / 5_000)
    tolerance = 0.02
    price = abs(float(policy.multipliers_[0, 0])) / float(np.ptp(_PROBLEM.rewards))
    shift = 0.0 if situation == "calibrated" else price * _shift(policy, tolerance)
    alarms = 0
    for _ in range(streams):
        forecasts = rng.random(looks)
        monitor = prudent.PolicyMonitor(policy, tolerance=tolerance)
        monitor.update(forecasts, _shifted(rng, forecasts, shift))
        alarms += bool(monitor.alarms)
    return alarms / streams


def delays(drift: float, before: int, streams: int) -> list[int]:
    """Rows from the begin of a drift (in utility) to the alarm, per stream; -1 where none came in 20,000."""
    rng = np.random.default_rng(before)
    policy = prudent.RobustPolicy(_PROBLEM, _PROMISE).fit((np.arange(5_000) + 0.5) / 5_000)
    shift = _shift(policy, drift)
    found = []
    for _ in range(streams):
        forecasts = rng.random(before + 20_000)
        outcomes = np.concatenate([_yes_or_no(rng, forecasts[:before]), _shifted(rng, forecasts[before:], shift)])
        alarms = prudent.PolicyMonitor(policy, tolerance=0.02).update(forecasts, outcomes).alarms
        found.append(alarms[0].row - before if alarms else -1)
    return found


def _shift(policy: prudent.RobustPolicy, drift: float) -> float:
    """How far continuous outcomes must be shifted, by a multiple of v (1 - v), to move ``E s(Y - v)`` by a drift."""
    v = (np.arange(100_000) + 0.5) / 100_000
    return float(drift / (policy.multipliers_[0, 0] * v * v * (1 - v)).mean())


def _shifted(rng: np.random.Generator, forecasts: Array, shift: float) -> Array:
    return _yes_or_no(rng, forecasts + shift * forecasts * (1 - forecasts))


def compared(situation: Situation) -> tuple[tuple[int, str], ...]:
    """Numbers and kinds of tests; of constant forecasts only the mean can be tested, with and without a bound."""
    constant = np.ptp(situation.forecasts(np.array([0.1, 0.9]))) == 0
    return ((1, "powers"), (1, "log-odds")) if constant else _COMPARED


def _table(samples: int) -> Iterator[Coverage]:
    for situation in SITUATIONS:
        for n in (100, 500, 5_000):
            for moments, tests in compared(situation):
                yield simulate(situation, tests, moments, n, samples)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, row by row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000, help="per row; streams of the monitor are twice as many")
    samples = parser.parse_args(arguments).samples
    error = 200 * np.sqrt(0.0475 / samples)
    print(f"# Simulated coverage\n\nNominal 95%; two standard errors are {error:.1f} points ({samples:,} samples).\n")
    print(
        "## All moments in their intervals at once\n\nLengths are in units of the best possible: the normal interval "
        "with the true variance.\n"
    )
    print("| situation | tests | n | covered | length | Student's t: covered | length |")
    print("|---|---|---|---|---|---|---|")
    for row in _table(samples):
        student = f"{row.student_covered:.1%} | {row.student_length:.2f}"
        print(
            f"| {row.situation} | {row.tests} | {row.n:,} | {row.covered:.1%} | {row.length:.2f} | {student} |",
            flush=True,
        )
    print("\n## Certificates and guarantees that hold\n\n| statement | n | holds |\n|---|---|---|")
    for n in (100, 500):
        print(f"| certificate below the worst world | {n} | {certificates_that_hold(n, samples):.1%} |", flush=True)
    for n in (500, 2_000):
        share = audited_guarantees_that_hold(n, samples)
        print(f"| audited guarantee in the true world | {n:,} | {share:.1%} |", flush=True)
    print(f"\n## Monitor: false alarms in {2 * samples:,} streams of 10,000 looks\n\n| world | alarms |\n|---|---|")
    for situation in ("calibrated", "at the limit"):
        print(f"| {situation} | {false_alarms(situation, 10_000, 2 * samples):.2%} |", flush=True)
    print(
        "\n## Monitor: rows to an alarm, tolerance 0.02\n\n| drift | rows before it | median | 90% |\n|---|---|---|---|"
    )
    for drift in (0.05, 0.1):
        for before in (0, 2_000, 10_000):
            rows = np.array(delays(drift, before, max(20, samples // 10)), dtype=float)
            rows[rows < 0] = np.inf
            print(f"| {drift} | {before:,} | {np.median(rows):,.0f} | {np.quantile(rows, 0.9):,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
