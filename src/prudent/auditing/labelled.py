"""Forecasts with their outcomes, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.ambiguity import evaluate_rows
from prudent.arrays import FloatArray, IntArray, cluster_numbers, describe_rows, row_weights
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.moments import MomentEstimates, estimate_moments
from prudent.problem import DecisionProblem
from prudent.spaces import Box, Simplex, Space, place_known_outcomes

__all__ = ["Labelled", "read_labelled"]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows of positive weight: forecasts, outcomes, weights that sum to one, and clusters if there are any."""

    space: Space
    forecasts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    clusters: IntArray | None
    n_dropped: int

    def estimate(self, guarantee: Guarantee, confidence: float, method: str) -> MomentEstimates:
        """Measure the moments of a resolved guarantee."""
        return estimate_moments(
            guarantee,
            self.space,
            self.forecasts,
            self.outcomes,
            self.weights,
            confidence=confidence,
            method=method,
            clusters=self.clusters,
        )

    def evaluate(self, guarantee: Guarantee) -> EvaluatedTests:
        """Evaluate a resolved guarantee."""
        return evaluate_rows(guarantee, self.forecasts, self.space)


def read_labelled(
    forecasts: Any,
    outcomes: Any,
    *,
    problem: DecisionProblem | None,
    space: Space | None,
    sample_weight: Any,
    groups: Any,
    missing: str,
) -> Labelled:
    """Check lengths, spaces, weights, groups and missing outcomes."""
    place = _space(forecasts, problem, space)
    placed, _ = place.place(forecasts, "forecasts")
    if outcomes is None:
        raise InputError("outcomes must be given: without them nothing can be measured.")
    known, kept = _known_outcomes(outcomes, missing, place)
    if len(kept) != len(placed):
        raise InputError(f"outcomes must have one row per forecast, {len(placed)}; got {len(kept)}.")
    weights, used = row_weights(sample_weight, len(placed))
    clusters = None if groups is None else cluster_numbers(groups, len(placed))
    rows = used & kept
    if not rows.any():
        raise InputError("outcomes must be known for at least one row of positive weight.")
    n_dropped = int((~kept).sum())
    if rows.all():
        return Labelled(place, placed, known, weights, clusters, n_dropped)
    weights = weights[rows]
    if clusters is not None:
        clusters = np.unique(clusters[rows], return_inverse=True)[1].astype(np.int64)
    return Labelled(place, placed[rows], known[used[kept]], weights / weights.sum(), clusters, n_dropped)


def _space(forecasts: Any, problem: DecisionProblem | None, space: Space | None) -> Space:
    if problem is not None:
        if not isinstance(problem, DecisionProblem):
            raise InputError(f"problem must be a DecisionProblem; got {type(problem).__name__}.")
        if space is not None and not problem.space.same_as(space):
            raise InputError(f"space {space!r} is not the problem's, {problem.space!r}; give one of them.")
        return problem.space
    if space is None:
        shape: tuple[int, ...] = np.shape(forecasts)
        return Box(0.0, 1.0).with_dimension(shape[1] if len(shape) == 2 and shape[1] else 1)
    if not isinstance(space, (Box, Simplex)):
        raise InputError(f"space must be a Box or a Simplex; got {type(space).__name__}.")
    return space


def _known_outcomes(outcomes: Any, missing: str, space: Space) -> tuple[FloatArray, Any]:
    """Return the outcomes that are known, and which rows they are."""
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing must be 'refuse' or 'drop'; got {missing!r}.")
    known, present = place_known_outcomes(space, outcomes)
    if not len(known):
        raise InputError("outcomes are missing in every row.")
    if missing == "refuse" and not present.all():
        raise InputError(
            f"outcomes are missing in {describe_rows(np.flatnonzero(~present))}. Wait for them, or leave these rows "
            f"out with missing='drop'; if rows with missing outcomes differ from the others, the result does not "
            f"speak of them."
        )
    return known, present
