"""Simulated coverage of simultaneous intervals: ``python -m benchmarks.coverage``.

Every cell is the share of samples in which all true moments lie in their
intervals at once; nominal is 95%. Forecasters and worlds are drawn from a
fixed seed, so the table is the same every time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prudent import Box, guarantees
from prudent.moments import METHODS, estimates_from_sums, moment_sums

__all__ = ["SITUATIONS", "Coverage", "Situation", "simulate"]

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
    """One row of the table."""

    situation: str
    tests: str
    n: int
    covered: dict[str, float]
    radius: dict[str, float]
    samples: int

    @property
    def error(self) -> float:
        """Two standard errors of a share near 95%."""
        return 2 * float(np.sqrt(0.95 * 0.05 / self.samples))


def _yes_or_no(rng: np.random.Generator, means: Array) -> Array:
    return (rng.random(means.shape) < means).astype(np.float64)


def _continuous(rng: np.random.Generator, means: Array) -> Array:
    return rng.beta(8 * means + 1e-9, 8 * (1 - means) + 1e-9)


SITUATIONS = (
    Situation("yes or no, calibrated", lambda u: u, lambda v: v, _yes_or_no),
    Situation("yes or no, biased", lambda u: u, lambda v: 0.1 + 0.8 * v**2, _yes_or_no),
    Situation("rare events, calibrated", lambda u: 0.2 * u**3, lambda v: v, _yes_or_no),
    Situation("continuous, calibrated", lambda u: u, lambda v: v, _continuous),
)

_TESTS = {"powers": lambda k: guarantees.Polynomial(k - 1), "bins": lambda k: guarantees.Binned.uniform(k)}


def simulate(
    situation: Situation, tests: str, moments: int, n: int, samples: int, methods: tuple[str, ...] = METHODS
) -> Coverage:
    """Draw samples and count how often every moment is covered."""
    space = Box(0.0, 1.0)
    grid = situation.forecasts((np.arange(200_000) + 0.5) / 200_000)[:, None]
    guarantee = _TESTS[tests](moments).resolve(grid, np.full(len(grid), 1 / len(grid)), space)
    evaluated = guarantee.evaluate(grid, space)
    true = evaluated.moments(situation.truth(grid) - grid, np.full(len(grid), 1 / len(grid)))
    rng = np.random.default_rng([n, moments, len(situation.name), len(tests)])
    hits = dict.fromkeys(methods, 0)
    sizes = dict.fromkeys(methods, 0.0)
    for _ in range(samples):
        forecasts = situation.forecasts(rng.random(n))[:, None]
        outcomes = situation.draw(rng, situation.truth(forecasts))
        sums = moment_sums(guarantee, space, forecasts, outcomes, np.full(n, 1 / n), products="bootstrap" in methods)
        for method in methods:
            found = estimates_from_sums(sums, 0.95, method)
            hits[method] += bool((np.abs(found.estimates - true) <= found.radii + 1e-15).all())
            sizes[method] += float(found.radii.mean()) / samples
    shares = {method: hits[method] / samples for method in methods}
    return Coverage(situation.name, f"{moments} {tests}", n, shares, sizes, samples)


def table(samples: int) -> Iterator[Coverage]:
    """All rows, one by one."""
    for situation in SITUATIONS:
        for n in (100, 500, 5_000):
            for moments, tests in ((1, "powers"), (6, "powers"), (6, "bins"), (30, "bins")):
                yield simulate(situation, tests, moments, n, samples)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000)
    options = parser.parse_args(arguments)
    print("| situation | tests | n | " + " | ".join(METHODS) + " | radius of auto over normal |")
    print("|---|---|---|" + "---|" * (len(METHODS) + 1))
    for row in table(options.samples):
        cells = " | ".join(f"{100 * row.covered[method]:.1f}%" for method in METHODS)
        ratio = row.radius["auto"] / row.radius["normal"]
        print(f"| {row.situation} | {row.tests} | {row.n:,} | {cells} | {ratio:.2f} |", flush=True)
    print(f"\nTwo standard errors of a share of 95%: {200 * np.sqrt(0.0475 / options.samples):.1f} points.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
