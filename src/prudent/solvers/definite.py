"""Symmetric positive definite systems of a Newton step, which may be singular up to rounding."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from prudent.arrays import FloatArray

__all__ = ["DefiniteSystem"]


class DefiniteSystem:
    """A symmetric positive definite system, scaled, with a little help where it is nearly singular."""

    def __init__(self, matrix: FloatArray) -> None:
        self.size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        self.scaled = matrix / (self.size[:, None] * self.size[None, :])
        self.factor: FloatArray | None = None
        for shift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
            factor, failed = dpotrf(self.scaled + shift * np.eye(self.size.size), lower=True)
            if not failed:
                self.factor = factor
                return

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve for one right side, refined."""
        if right.size == 0:
            return right
        goal = right / self.size
        if self.factor is None:
            return np.linalg.lstsq(self.scaled, goal, rcond=1e-14)[0] / self.size
        solution = dpotrs(self.factor, goal, lower=True)[0]
        for _ in range(2):
            solution += dpotrs(self.factor, goal - self.scaled @ solution, lower=True)[0]
        result: FloatArray = solution / self.size
        return result
