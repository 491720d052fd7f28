"""Do bounds by periods hold? ``python -m benchmarks.period_simulations`` writes benchmarks/results/periods.md.

Every sample has ``T`` periods of 30 rows, or of sizes drawn from a geometric distribution with that mean, whose means
differ by an effect of a given size (in standard deviations of one row). The lower bound of the long-run mean holds if
it is below the true mean, that of the next period if it is below the realised mean of a new one. Beside them bounds
that take rows as units.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prudent.arrays import FloatArray
from prudent.cases.mean_bounds import Means, PastErrors

_COUNTS = (4, 8, 20, 60)
_EFFECTS = {"none": 0.0, "small": 0.2, "as large as noise": 1.0, "dominating": 2.0}
_SIZE = 30
_TITLES = (
    *("effects of periods", "sizes", "T", "long run, 90%", "95%", "rows as units, 95%", "length"),
    *("next period, 90%", "95%", "rows as units, 95%", "length"),
)
_NOISE = 0.1  # of a row, on outcomes between 0 and 1


@dataclass(frozen=True)
class World:
    """How periods come about."""

    name: str
    effect: float
    equal: bool
    rare: bool = False

    def sizes(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw numbers of rows."""
        return np.full(count, _SIZE) if self.equal else rng.geometric(1 / _SIZE, count)

    def rows(self, rng: np.random.Generator, sizes: FloatArray) -> FloatArray:
        """Draw the rows of periods, one after the other."""
        count, index = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
        if self.rare:  # one in twenty, more often in some periods
            chance = 0.05 * np.exp(self.effect * rng.normal(size=count) - self.effect**2 / 2)
            return (rng.random(index.size) < np.minimum(chance, 1.0)[index]).astype(float)
        off = self.effect * _NOISE * rng.normal(size=count)
        return np.clip(0.5 + off[index] + _NOISE * rng.normal(size=index.size), 0, 1)

    @property
    def mean(self) -> float:
        """The long-run mean."""
        return 0.05 if self.rare else 0.5


def main(arguments: list[str] | None = None) -> int:
    """Simulate all worlds and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/periods.md"))
    options = parser.parse_args(arguments)
    error = 200 * np.sqrt(0.0475 / options.samples)
    lines = [
        "# Lower bounds by periods, in simulations",
        "",
        f"{options.samples:,} samples; two standard errors at 95% are {error:.1f} points.",
        "Length: how far the bound lies below the estimate, over that of rows as units.",
        "",
        "| " + " | ".join(_TITLES) + " |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for world in _worlds():
        for count in _COUNTS:
            lines.append(_line(world, count, simulate(world, count, options.samples)))
            print(lines[-1], flush=True)
    options.output.write_text("\n".join(lines) + "\n")
    return 0


def _worlds() -> Iterator[World]:
    for equal in (True, False):
        for name, effect in _EFFECTS.items():
            yield World(name, effect, equal)
    yield World("rare outcomes, none", 0.0, equal=True, rare=True)
    yield World("rare outcomes, large", 0.7, equal=True, rare=True)


def simulate(world: World, count: int, samples: int) -> dict[str, tuple[float, float]]:
    """Return by statement how often its bound held, and how far it lay below the estimate on average."""
    rng = np.random.default_rng([count, int(100 * world.effect), world.equal, world.rare])
    found: dict[str, list[tuple[bool, float]]] = {}
    for _ in range(samples):
        sizes = world.sizes(rng, count)
        values = world.rows(rng, sizes)
        coming = world.rows(rng, world.sizes(rng, 1))
        weights, units = np.full(values.size, 1 / values.size), np.repeat(np.arange(count), sizes)
        for name, groups in (("periods", units), ("rows", None)):
            means = Means.of_rows(values, weights, 0.0, 1.0, groups)
            for error in (0.1, 0.05):
                past = PastErrors.of_means(means, means.radii(error), error, 1 - error)
                horizon = "average" if groups is None else "next period"
                soon = float(past.radii_for(horizon, coming.size)[0])
                for what, radius, truth in (("long", past.radii[0], world.mean), ("next", soon, coming.mean())):
                    held = bool(means.means[0] - radius <= truth)
                    found.setdefault(f"{what} {name} {error}", []).append((held, float(radius)))
    return {key: (float(np.mean([h for h, _ in v])), float(np.mean([r for _, r in v]))) for key, v in found.items()}


def _line(world: World, count: int, found: dict[str, tuple[float, float]]) -> str:
    cells = [world.name, "equal" if world.equal else "unequal", str(count)]
    for what in ("long", "next"):
        shares = [found[f"{what} {name}"][0] for name in ("periods 0.1", "periods 0.05", "rows 0.05")]
        length = found[f"{what} periods 0.05"][1] / max(found[f"{what} rows 0.05"][1], 1e-300)
        cells += [*(f"{share:.1%}" for share in shares), f"{length:.2g}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
