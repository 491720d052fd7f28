"""The search for patches: what a decision calibrator adds to forecasts, and in which order.

A sweep looks at promises first: best responding to a forecast promises a
utility, and one number per decision problem says how far the promise is off.
That number has the least sampling error of all, so what it corrects need not
be learnt region by region, where noise flatters the actions it favours. The
same number for the best responses to the forecasts as they were, and to those
of a start, is what keeps anybody from losing by the repair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError
from prudent.problem import DecisionProblem
from prudent.progress import ProgressLine
from prudent.recalibration.base import Pairs
from prudent.spaces import Simplex, Space

__all__ = ["CURRENT", "Patch", "PatchSearch", "patched", "sources_of"]

CURRENT = -1
_FEW_ROWS = 30.0
# How many standard errors are beyond chance: so many that any patch of the first sweep is false with this probability
# if nothing is wrong, but not more than the most. With many regions some are then false, but none of the true ones is
# missed for their sake; the held-out rows decide.
_FALSE_PATCHES = 0.2
_LEAST_DEVIATIONS, _MOST_DEVIATIONS = 2.0, 2.5
_ROUNDING = 1e-9
_NO_WORSE = 1e-4
# At the end promises are kept more closely: one number per decision maker fits little noise, and their owners' utility
# depends on it.
_CLOSE = 0.5  # standard errors
_CLOSING = 10  # times through all of them
_LITTLE_WORSE = 1e-3


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
        space: Space,
        tolerance: float | None,
        fitting: Pairs,
        held_out: Pairs,
        start: Any,
    ) -> None:
        self.problems, self.space, self.tolerance = problems, space, tolerance
        self.fitting, self.held_out = fitting, held_out
        self.sources = sources_of(fitting.forecasts, start, space)
        self.held_out_sources = sources_of(held_out.forecasts, start, space)
        self.current, self.followed = self.sources[-1], self.held_out_sources[-1]
        self.patches: list[Patch] = []
        self.fitting_errors = [fitting.squared_error(self.current)]
        self.held_out_errors = [held_out.squared_error(self.followed)]
        self._sweeps: list[int] = []  # per patch, from 1
        self._regions: list[IntArray] = []  # per patch, the actions whose regions it patches; none for a promise
        self.rounds = 0
        kinds = 1 + len(self.sources)
        moments = sum(problem.n_actions for problem in problems) * problems[0].dimension * kinds
        self.region_deviations, self.promise_deviations = _deviations(moments), _deviations(len(problems) * kinds)

    def run(self, rounds: int, line: ProgressLine) -> bool:
        """Sweep until nothing is left to patch, go back to where held-out rows liked it best, and keep promises there.

        False if interrupted; what was found so far is kept all the same.
        """
        finished = False
        try:
            for _ in range(rounds):
                before = len(self.patches)
                self._keep_promises(rounds, line)
                for number in range(len(self.problems)):
                    for source in range(CURRENT, len(self.sources)):
                        self._patch_regions(number, source)
                    self._show(line, rounds, number + 1)
                self.rounds += 1
                if len(self.patches) == before:
                    break
            finished = True
        except KeyboardInterrupt:
            pass  # the best state so far is what was asked for
        self._cut(0, _NO_WORSE)
        if not finished or not self.patches:
            return finished  # where nothing was wrong, forecasts stay as they are
        try:
            kept = len(self.patches)
            self.promise_deviations = min(self.promise_deviations, _CLOSE)
            self._keep_promises(min(rounds, _CLOSING), line)
            self._cut(kept, _LITTLE_WORSE)
        except KeyboardInterrupt:
            finished = False
        return finished

    @property
    def rounds_with_patches(self) -> int:
        """Sweeps up to the last that left a patch; the closer keeping of promises counts as one."""
        return self._sweeps[-1] if self._sweeps else 0

    def _show(self, line: ProgressLine, rounds: int, number: int) -> None:
        line.show(
            self.rounds * len(self.problems) + number,
            rounds * len(self.problems),
            f"{len(self.patches)} patches, held-out squared error {self.held_out_errors[-1]:.5f}",
        )

    def _cut(self, least: int, worse: float) -> None:
        """Keep as many patches as possible with nearly the least held-out error, and not fewer than given."""
        errors = np.array(self.held_out_errors[least:])
        length = least + int(np.flatnonzero(errors <= errors.min() * (1 + worse))[-1])
        if length == len(self.patches):
            return
        kept = self.patches[:length]
        del self.patches[length:], self.fitting_errors[length + 1 :], self.held_out_errors[length + 1 :]
        del self._sweeps[length:], self._regions[length:]
        self.rounds = self._sweeps[-1] if kept else 0
        self.current = patched(self.problems, self.space, kept, self.sources)
        self.followed = patched(self.problems, self.space, kept, self.held_out_sources)

    def skipped(self) -> tuple[str, ...]:
        """Name the regions with few rows that no patch is for."""
        done = {
            (patch.problem, patch.source, int(action))
            for patch, actions in zip(self.patches, self._regions, strict=True)
            for action in actions
        }
        names = ("the repaired forecasts", "the original forecasts", "the forecasts of start")
        found = []
        for number, problem in enumerate(self.problems):
            for source in range(CURRENT, len(self.sources)):
                _, many = self._rows(self._best(number, source), problem.n_actions)
                found += [
                    f"problem {number + 1}: best response {problem.actions[action]} to {names[source + 1]}"
                    for action in np.flatnonzero(~many)
                    if (number, source, int(action)) not in done
                ]
        return tuple(found)

    def _best(self, number: int, source: int) -> IntArray:
        return self.problems[number].best_actions(self.current if source == CURRENT else self.sources[source])

    def _rows(self, regions: IntArray, size: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The weight of each region, and whether it is worth enough rows of equal weight."""
        weights = self.fitting.weights
        mass, squares = _sums(regions, np.stack([weights, weights**2], axis=1), size).T
        return mass, (mass > 0) & (mass**2 >= _FEW_ROWS * squares * (1 - _ROUNDING))

    def _keep_promises(self, rounds: int, line: ProgressLine) -> None:
        """Go on until no promise is broken: keeping one may break another."""
        for _ in range(rounds):
            before = len(self.patches)
            for number in range(len(self.problems)):
                for source in range(CURRENT, len(self.sources)):
                    self._keep_promise(number, source)
                self._show(line, rounds, 0)
            if len(self.patches) == before:
                return

    def _keep_promise(self, number: int, source: int) -> None:
        """Shift forecasts along the rewards of some best responses, if forecasts promise too much or too little there.

        The promise of the forecasts' own best responses makes trust right; those of the best responses as they were
        keep their owners from losing.
        """
        problem = self.problems[number]
        regions = self._best(number, source)
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
            self._add(number, source, regions, rewards * (weights @ owed / length), np.zeros(0, dtype=np.int64))

    def _patch_regions(self, number: int, source: int) -> None:
        """Patch the regions of one problem whose mean error cannot be chance."""
        size = self.problems[number].n_actions
        regions = self._best(number, source)
        weights, errors = self.fitting.weights, self.fitting.outcomes - self.current
        mass, many = self._rows(regions, size)
        moments = _sums(regions, weights[:, None] * errors, size)
        if self.tolerance is None:
            squares = _sums(regions, (weights[:, None] * errors) ** 2, size)
            limits: Any = self.region_deviations * np.sqrt(squares)
        else:
            limits = self.tolerance
        wrong = many & (np.abs(moments) > limits).any(axis=1)
        if wrong.any():
            shifts: FloatArray = np.zeros(moments.shape)
            shifts[wrong] = moments[wrong] / mass[wrong, None]
            self._add(number, source, regions, shifts, np.flatnonzero(wrong))

    def _add(self, number: int, source: int, regions: IntArray, shifts: FloatArray, actions: IntArray) -> None:
        """Take a patch unless squared error on the fitting rows would rise; held-out rows follow."""
        moved = self.space.project(self.current + shifts[regions])
        error = self.fitting.squared_error(moved)
        if error >= self.fitting_errors[-1]:
            return
        theirs = self.problems[number].best_actions(
            self.followed if source == CURRENT else self.held_out_sources[source]
        )
        self.current = moved
        self.followed = self.space.project(self.followed + shifts[theirs])
        self.patches.append(Patch(number, source, shifts))
        self._sweeps.append(self.rounds + 1)
        self._regions.append(actions)
        self.fitting_errors.append(error)
        self.held_out_errors.append(self.held_out.squared_error(self.followed))


def sources_of(forecasts: FloatArray, start: Any, space: Space) -> list[FloatArray]:
    """The original forecasts, and after them what the repair starts from."""
    if start is None:
        return [forecasts]
    begun = start.transform(forecasts)
    shape = np.shape(begun)
    if shape != forecasts.shape and not (len(shape) == forecasts.shape[1] == 1 and len(forecasts) == shape[0]):
        raise InputError(f"start's forecasts must have shape {forecasts.shape}, one row per forecast; got {shape}.")
    return [forecasts, space.place(begun, "start's forecasts")[0]]


def patched(
    problems: tuple[DecisionProblem, ...], space: Space, patches: list[Patch], sources: list[FloatArray]
) -> FloatArray:
    """Move the forecasts that a repair starts from."""
    current = sources[-1]
    for patch in patches:
        regions = problems[patch.problem].best_actions(current if patch.source == CURRENT else sources[patch.source])
        current = space.project(current + patch.shifts[regions])
    return current


def _sums(regions: IntArray, columns: FloatArray, size: int) -> FloatArray:
    """Sum each column within each region, shape ``(size, columns)``."""
    sums = [np.bincount(regions, weights=column, minlength=size) for column in columns.T]
    return np.stack(sums, axis=1).astype(np.float64)


def _deviations(moments: int) -> float:
    """Standard errors that a moment of nothing but chance seldom exceeds, the more the more of them there are."""
    return float(np.clip(-ndtri(_FALSE_PATCHES / (2 * moments)), _LEAST_DEVIATIONS, _MOST_DEVIATIONS))
