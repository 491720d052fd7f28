"""The search for patches: what a decision calibrator adds to forecasts, and in which order.

A sweep looks at promises first: best responding to a forecast promises a
utility, and one number per decision problem says how far the promise is off.
That number has the least sampling error of all, so what it corrects need not
be learnt region by region, where noise flatters the actions it favours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from prudent.arrays import FloatArray, IntArray
from prudent.problem import DecisionProblem
from prudent.progress import ProgressLine
from prudent.recalibration.base import Pairs
from prudent.spaces import Simplex

__all__ = ["CURRENT", "Patch", "PatchSearch", "sources_of"]

CURRENT = -1
_FEW_ROWS = 30.0
_FALSE_PATCHES = 0.2  # probability of any in the first sweep, if nothing were wrong
_MOST_DEVIATIONS = 2.5
_NO_WORSE = 1e-4


@dataclass(frozen=True, eq=False)
class Patch:
    """Shift forecasts by a constant on each region where one action is the best response.

    Attributes
    ----------
    problem : int
        Position of the decision problem.
    source : int
        Whose best response: -1 for the forecasts as patched so far, else a position among the original ones.
    shifts : array of shape (m, d)
    """

    problem: int
    source: int
    shifts: FloatArray


class PatchSearch:
    """The search for patches: fitting rows find them, held-out rows follow."""

    def __init__(
        self,
        problems: tuple[DecisionProblem, ...],
        tolerance: float | None,
        fitting: Pairs,
        held_out: Pairs,
        start: Any,
    ) -> None:
        self.problems, self.tolerance, self.fitting, self.held_out = problems, tolerance, fitting, held_out
        self.sources = sources_of(fitting.forecasts, start)
        self.held_out_sources = sources_of(held_out.forecasts, start)
        self.current, self.followed = self.sources[-1], self.held_out_sources[-1]
        self.patches: list[Patch] = []
        self.fitting_errors = [fitting.squared_error(self.current)]
        self.held_out_errors = [held_out.squared_error(self.followed)]
        self.skipped: set[str] = set()
        self.rounds = 0
        moments = sum(problem.n_actions for problem in problems) * problems[0].dimension * (1 + len(self.sources))
        self.region_deviations, self.promise_deviations = _deviations(moments), _deviations(len(problems))
        self.few = _FEW_ROWS * float((fitting.weights**2).sum())  # as a share of the weight

    def run(self, rounds: int, line: ProgressLine) -> bool:
        """Sweep until nothing is left to patch; False if interrupted."""
        try:
            for _ in range(rounds):
                before = len(self.patches)
                self._keep_promises(rounds)
                for number in range(len(self.problems)):
                    for source in range(CURRENT, len(self.sources)):
                        self._patch_regions(number, source)
                    line.show(
                        self.rounds * len(self.problems) + number + 1,
                        rounds * len(self.problems),
                        f"{len(self.patches)} patches, held-out squared error {self.held_out_errors[-1]:.5f}",
                    )
                self.rounds += 1
                if len(self.patches) == before:
                    break
        except KeyboardInterrupt:
            return False
        return True

    def best_length(self) -> int:
        """Patches to keep: as many as possible with the least held-out error."""
        errors = np.array(self.held_out_errors)
        return int(np.flatnonzero(errors <= errors.min() * (1 + _NO_WORSE))[-1])

    def _keep_promises(self, rounds: int) -> None:
        """Go on until no promise is broken: keeping one may break another."""
        for _ in range(rounds):
            before = len(self.patches)
            for number in range(len(self.problems)):
                self._keep_promise(number)
            if len(self.patches) == before:
                return

    def _keep_promise(self, number: int) -> None:
        """Shift forecasts along the rewards of their best responses, if these promise too much or too little."""
        problem = self.problems[number]
        regions = problem.best_actions(self.current)
        rewards = problem.rewards
        if isinstance(problem.space, Simplex):
            rewards = rewards - rewards.mean(axis=1, keepdims=True)  # errors of probabilities sum to zero
        weights = self.fitting.weights
        owed = ((self.fitting.outcomes - self.current) * rewards[regions]).sum(axis=1)
        length = float(weights @ (rewards[regions] ** 2).sum(axis=1))
        if self.tolerance is None:
            limit = self.promise_deviations * float(np.sqrt((weights**2 * owed**2).sum()))
        else:
            limit = self.tolerance * float(np.abs(rewards).sum(axis=1).max())
        if abs(weights @ owed) > limit and length > 0:
            self._add(number, CURRENT, regions, rewards * (weights @ owed / length))

    def _patch_regions(self, number: int, source: int) -> None:
        """Patch the regions of one problem whose mean error cannot be chance."""
        problem = self.problems[number]
        regions = problem.best_actions(self.current if source == CURRENT else self.sources[source])
        size = problem.n_actions
        weights, errors = self.fitting.weights, self.fitting.outcomes - self.current
        mass = _sums(regions, weights[:, None], size)[:, 0]
        moments = _sums(regions, weights[:, None] * errors, size)
        many = mass >= self.few
        for action in np.flatnonzero(~many):
            self.skipped.add(f"problem {number + 1}: best response {problem.actions[action]}")
        if self.tolerance is None:
            squares = _sums(regions, (weights[:, None] * errors) ** 2, size)
            limits: Any = self.region_deviations * np.sqrt(squares)
        else:
            limits = self.tolerance
        wrong = many & (np.abs(moments) > limits).any(axis=1)
        if wrong.any():
            shifts: FloatArray = np.zeros(moments.shape)
            shifts[wrong] = moments[wrong] / mass[wrong, None]
            self._add(number, source, regions, shifts)

    def _add(self, number: int, source: int, regions: IntArray, shifts: FloatArray) -> None:
        """Take a patch unless squared error on the fitting rows would rise; held-out rows follow."""
        problem = self.problems[number]
        moved = problem.space.project(self.current + shifts[regions])
        error = self.fitting.squared_error(moved)
        if error >= self.fitting_errors[-1]:
            return
        theirs = problem.best_actions(self.followed if source == CURRENT else self.held_out_sources[source])
        self.current = moved
        self.followed = problem.space.project(self.followed + shifts[theirs])
        self.patches.append(Patch(number, source, shifts))
        self.fitting_errors.append(error)
        self.held_out_errors.append(self.held_out.squared_error(self.followed))


def sources_of(forecasts: FloatArray, start: Any) -> list[FloatArray]:
    """The original forecasts, and after them what the repair starts from."""
    if start is None:
        return [forecasts]
    return [forecasts, np.asarray(start.transform(forecasts), dtype=np.float64).reshape(forecasts.shape)]


def _sums(regions: IntArray, columns: FloatArray, size: int) -> FloatArray:
    """Sum each column within each region, shape ``(size, columns)``."""
    sums = [np.bincount(regions, weights=column, minlength=size) for column in columns.T]
    return np.stack(sums, axis=1).astype(np.float64)


def _deviations(moments: int) -> float:
    """Standard errors that so many moments of nothing but chance seldom exceed."""
    return min(_MOST_DEVIATIONS, float(-ndtri(_FALSE_PATCHES / (2 * moments))))
