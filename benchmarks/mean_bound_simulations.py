"""Bounds of bounded means by simulation: how often they hold, and how long they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from prudent.cases.mean_bounds import Means

__all__ = ["HEAD", "POPULATIONS", "Population", "bound_rows"]

Array = NDArray[np.float64]
Sample = tuple[Array, Array, NDArray[np.int64] | None]  # values in [0, 1], weights, units

ERROR = 0.05
REPEATS = 1_000

HEAD = f"""
## Bounds of means

`Means.radii` at 95%, one-sided, for values in [0, 1], {REPEATS:,} samples each. *Lower holds*: the true mean is not
below the lower bound; *upper holds*: not above the upper one. Lengths are distances from the measured mean, averaged
over samples and both sides, in units of the shortest possible: 1.645 standard errors with a known variance.
Student's t has no guarantee, and fails where few values carry the mean.

| values | rows | lower holds | upper holds | t: lower | t: upper | length | of Student's t | method |
|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Population:
    """Samples of ``n`` rows, their true mean, and the standard error of the weighted mean of a sample."""

    name: str
    sizes: tuple[int, ...]
    draw: Callable[[np.random.Generator, int], Sample]
    mean: float
    deviation: Callable[[int], float]


def _plain(
    name: str, sizes: tuple[int, ...], values: Callable[[np.random.Generator, int], Array], mean: float, spread: float
) -> Population:
    def draw(rng: np.random.Generator, n: int) -> Sample:
        return values(rng, n), np.full(n, 1 / n), None

    return Population(name, sizes, draw, mean, lambda n: spread / np.sqrt(n))


def _claims(expected: float, n: int) -> Population:
    """A small continuous cost, and rarely a claim between 0.5 and 0.99: so many are expected in a sample."""
    share = expected / n

    def values(rng: np.random.Generator, size: int) -> Array:
        rare = rng.random(size) < share
        return np.where(rare, rng.uniform(0.5, 0.99, size), rng.uniform(0, 0.02, size))

    mean = share * 0.745 + (1 - share) * 0.01
    square = share * (0.745**2 + 0.49**2 / 12) + (1 - share) * (0.01**2 + 0.02**2 / 12)
    return _plain(f"{expected:g} claims expected", (n,), values, mean, np.sqrt(square - mean**2))


def _coin(share: float) -> Population:
    def values(rng: np.random.Generator, n: int) -> Array:
        return (rng.random(n) < share).astype(np.float64)

    return _plain(f"yes or no, {share:g}", (25, 100, 1_000), values, share, np.sqrt(share * (1 - share)))


def _weighted(rng: np.random.Generator, n: int) -> Sample:
    weights = _weights(n)
    return (rng.random(n) < 0.3).astype(np.float64), weights, None


def _weights(n: int) -> Array:
    """The heaviest row has about seven times the average weight at a thousand rows."""
    weights = -np.log((np.arange(n) + 0.5) / n)
    return weights / weights.sum()


_ROWS_OF_PERIOD = 20


def _periods(rng: np.random.Generator, n: int) -> Sample:
    """Periods of twenty rows, each with a level of its own between 0.1 and 0.5."""
    units = np.repeat(np.arange(n // _ROWS_OF_PERIOD), _ROWS_OF_PERIOD)
    levels = rng.uniform(0.1, 0.5, n // _ROWS_OF_PERIOD)[units]
    return (rng.random(n) < levels).astype(np.float64), np.full(n, 1 / n), units


def _periods_deviation(n: int) -> float:
    between = 0.4**2 / 12
    return float(np.sqrt((between + (0.3 * 0.7 - between) / _ROWS_OF_PERIOD) * _ROWS_OF_PERIOD / n))


POPULATIONS = (
    _coin(0.5),
    _coin(0.05),
    _coin(0.005),
    _plain("uniform", (10, 25, 100, 1_000), lambda rng, n: rng.random(n), 0.5, np.sqrt(1 / 12)),
    _plain("beta(2, 8)", (25, 100, 1_000), lambda rng, n: rng.beta(2, 8, n), 0.2, np.sqrt(0.16 / 11)),
    *(_claims(expected, n) for n in (1_000, 5_000) for expected in (0.2, 0.5, 1, 2, 10)),
    Population(
        "unequal weights, yes or no, 0.3",
        (25, 100, 1_000),
        _weighted,
        0.3,
        lambda n: float(np.sqrt(0.21 * _weights(n) @ _weights(n))),
    ),
    Population("periods of 20 rows, yes or no, 0.3", (200, 1_000, 10_000), _periods, 0.3, _periods_deviation),
)


def bound_rows(jobs: int) -> list[str]:
    """The rows of the table."""
    wanted = [(number, n) for number, each in enumerate(POPULATIONS) for n in each.sizes]
    return list(Parallel(n_jobs=jobs)(delayed(_row)(number, n) for number, n in wanted))


def _row(number: int, n: int) -> str:
    population = POPULATIONS[number]
    rng = np.random.default_rng([n, crc32(population.name.encode())])
    found = np.array([_look(population, *population.draw(rng, n)) for _ in range(REPEATS)])
    shares, carried = found[:, :4].mean(axis=0), found[:, 6].mean()
    best = -ndtri(ERROR) * population.deviation(n)
    length, student = found[:, 4:6].mean(axis=0) / best
    method = "t" if carried == 1 else "bets" if carried == 0 else f"t in {100 * carried:.0f}%"
    cells = " | ".join(f"{100 * share:.1f}%" for share in shares)
    return f"| {population.name} | {n:,} | {cells} | {length:.2f} | {student:.2f} | {method} |"


def _look(population: Population, values: Array, weights: Array, units: NDArray[np.int64] | None) -> list[float]:
    means = Means.of_rows(values, weights, 0.0, 1.0, units)
    off = float(means.means[0]) - population.mean
    below, above = (float(means.radii(ERROR, below=side)[0]) for side in (True, False))
    student = -float(stdtrit(means.n_units - 1, ERROR)) * float(means.deviations[0])
    reach = min(student, float(means.means[0])), min(student, 1 - float(means.means[0]))
    return [
        off <= below + 1e-12,
        -off <= above + 1e-12,
        off <= reach[0] + 1e-12,
        -off <= reach[1] + 1e-12,
        (below + above) / 2,
        sum(reach) / 2,
        float(means.carried[0]),
    ]
