"""Specimens of every family of guarantees, each with decision problems that it can be stated for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import prudent
from prudent import guarantees

INTERVAL = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7], actions=["low", "mid", "high"])
CLASSES = prudent.DecisionProblem.from_payoffs([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]])
BOX = prudent.DecisionProblem([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]], [0.0, 0.1, 0.0], space=prudent.Box([0, 0], [2, 4]))

NUMBERS = prudent.DecisionProblem.from_utility(lambda a, y: 3 * min(a, y) - a, [0, 2, 4], [0, 1, 3, 4])

SPECIMENS: dict[str, list[tuple[guarantees.Guarantee, prudent.DecisionProblem]]] = {
    "Bins": [(guarantees.Bins(*given), INTERVAL) for given in ([[0, 0.3, 1]], [3], [3, "quantile"])],
    "Classwise": [(guarantees.Classwise(3), CLASSES), (guarantees.Classwise(3), BOX)],
    "Cumulative": [(guarantees.Cumulative(*given), p) for given in ([], [True]) for p in (CLASSES, NUMBERS)],
    "DecisionCalibrated": [(guarantees.DecisionCalibrated([p]), p) for p in (INTERVAL, CLASSES, BOX)],
    "FromFunctions": [(guarantees.FromFunctions([_square := lambda v: v[:, 0] ** 2]), p) for p in (INTERVAL, CLASSES)],
    "FullyCalibrated": [(guarantees.FullyCalibrated(), CLASSES)],
    "LogOdds": [(guarantees.LogOdds(), CLASSES), (guarantees.LogOdds(), INTERVAL)],
    "Nothing": [(guarantees.Nothing(), p) for p in (INTERVAL, CLASSES, BOX)],
    "Partition": [(guarantees.Partition(_argmax := lambda v: v.argmax(axis=1)), CLASSES)],
    "Polynomial": [(guarantees.Polynomial(2), p) for p in (INTERVAL, CLASSES, BOX)],
    "SelfOrthogonal": [(guarantees.SelfOrthogonal(intercept=True), p) for p in (INTERVAL, CLASSES, BOX)],
    "Temperature": [(guarantees.Temperature(), CLASSES), (guarantees.Temperature(), INTERVAL)],
    "TopLabel": [(guarantees.TopLabel(2), CLASSES)],
    "TopLabelPooled": [(guarantees.TopLabelPooled(3), CLASSES)],
    "Unbiased": [(guarantees.Unbiased(), p) for p in (INTERVAL, CLASSES, BOX)],
    "UtilityCalibrated": [(guarantees.UtilityCalibrated([p]), p) for p in (INTERVAL, CLASSES, BOX)],
    "Within": [
        (guarantees.Within("region", "self-orthogonal"), INTERVAL),
        (guarantees.Within({"age": [30, 60]}, guarantees.Bins(3, "quantile")), INTERVAL),
        (guarantees.Within(["night", "region"], guarantees.Polynomial(2)), CLASSES),
        (guarantees.Within({"region": None, "age": [50]}, guarantees.UtilityCalibrated([BOX])), BOX),
        (guarantees.Within("machine", guarantees.Unbiased() & guarantees.TopLabel(2)), CLASSES),
        (guarantees.Within("region", guarantees.Temperature()), INTERVAL),
    ],
}
JOINED = {
    "And": [
        (guarantees.Unbiased() & guarantees.Classwise(2), CLASSES),
        (guarantees.Unbiased() & guarantees.Within("region", guarantees.Bins(2)), INTERVAL),
    ]
}


def families(base: type = guarantees.Guarantee) -> Iterator[str]:
    """Names of all families of the library, found as subclasses; those that are only shared parts begin with ``_``."""
    for family in base.__subclasses__():
        if family.__module__.startswith("prudent.") and not family.__name__.startswith("_"):
            yield family.__name__
        yield from families(family)


def sample(problem: prudent.DecisionProblem, n: int = 30) -> np.ndarray:
    rng = np.random.default_rng(5)
    if isinstance(problem.space, prudent.Simplex):
        return rng.dirichlet(np.ones(problem.dimension), size=n)
    low, high = problem.space.bounds
    return low + (high - low) * rng.uniform(0.01, 0.99, size=(n, problem.dimension))


def context_of(n: int = 30) -> dict[str, np.ndarray]:
    """What else is known of every row: text that has to be quoted, numbers, whole numbers and truth values."""
    rng = np.random.default_rng(6)
    return {
        "region": rng.choice(["north", "d'en haut", 'the "low" end'], size=n),
        "age": rng.integers(0, 90, size=n).astype(float),
        "machine": rng.integers(-1, 2, size=n),
        "night": rng.random(n) < 0.5,
    }
