"""The search for patches: what a decision calibrator adds to forecasts, and in which order.

A sweep looks at promises first: best responding to a forecast promises a
utility, and one number per decision problem says how far the promise is off.
That number has the least sampling error of all, so what it corrects need not
be estimated region by region, where the action that noise favours looks too
good. The same number for the best responses to the original forecasts, and to
those of a start, is what keeps realised utility from falling.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import InputError
from prudent.files import Document
from prudent.problem import DecisionProblem
from prudent.recalibration.base import squared_error

Problems = tuple[DecisionProblem, ...]

CURRENT = -1  # among the forecasts of some rows: the original ones, those of a start, and those that patches move
_FEW_ROWS = 30.0
# How many standard errors are beyond chance: so many that any patch of the first sweep is false with this probability
# if nothing is wrong, but not more than the most. With many regions some are then false, but none of the true ones is
# missed for their sake; the held-out rows decide.
_FALSE_PATCHES = 0.2
_LEAST_DEVIATIONS, _MOST_DEVIATIONS = 2.0, 2.5
_NO_WORSE = 1e-4
# At the end promises are kept more closely: one number per decision maker fits little noise, and their utility depends
# on it.
_CLOSE = 0.5  # standard errors
_CLOSING = 10  # times through all of them
_LITTLE_WORSE = 1e-3


@frozen
class Patch:
    """Shift forecasts by a constant on each region where one action is the best response.

    Attributes
    ----------
    problem : int
        Position of the decision problem.
    source : int
        Whose best response: -1 for the forecasts as patched so far, 0 for the original ones, 1 for those of a start.
    shifts : array of shape (m, d)
    """

    problem: int
    source: int
    shifts: FloatArray

    def to_dict(self) -> Document:
        """Describe the patch for a file."""
        return {**vars(self), "shifts": self.shifts.tolist()}


def with_patches(forecasts: FloatArray, problems: Problems, start: Any, patches: Sequence[Patch]) -> list[FloatArray]:
    """Forecasts of some rows: the original ones, those of a start if there is one, and those that patches move."""
    found = [forecasts]
    if start is not None:
        found.append(problems[0].space.place(start.transform(forecasts), "start's forecasts")[0])
        if len(found[1]) != len(forecasts):
            raise InputError(
                f"start's forecasts must have one row per forecast, {len(forecasts)}; got {len(found[1])}."
            )
    found.append(found[-1])
    for patch in patches:
        found[CURRENT] = patched(found, problems, patch)
    return found


def patched(forecasts: list[FloatArray], problems: Problems, patch: Patch) -> FloatArray:
    """Where a patch moves the current forecasts."""
    problem = problems[patch.problem]
    regions = problem.best_actions(forecasts[patch.source])
    return problem.space.project(forecasts[CURRENT] + patch.shifts[regions])


class _Step(NamedTuple):
    """A patch, and squared errors after it."""

    patch: Any  # None before the first one
    fitting_error: float
    held_out_error: float


@dataclass
class PatchSearch:
    """The search for patches: fitting rows find them, held-out rows follow."""

    problems: Problems
    fitting: MemoryRows
    held_out: MemoryRows
    start: Any
    rounds: int

    def __post_init__(self) -> None:
        self.steps: list[_Step] = []
        self._replay()
        self._note(None)
        self._sources = range(CURRENT, len(self.rows) - 1)
        moments = sum(problem.rewards.size for problem in self.problems) * len(self._sources)
        self._region_deviations = standard_errors_beyond_chance(moments)
        self._promise_deviations = standard_errors_beyond_chance(len(self.problems) * len(self._sources))

    def run(self) -> None:
        """Sweep until nothing is left to patch, go back to the least held-out error, and keep promises there."""
        for _ in range(self.rounds):
            before = len(self.steps)
            self._keep_promises(self.rounds)
            self._visit(self._patch_regions)
            if len(self.steps) == before:
                break
        self._cut(1, _NO_WORSE)
        if len(self.steps) > 1:  # where nothing was wrong, forecasts stay as they are
            kept = len(self.steps)
            self._promise_deviations = min(self._promise_deviations, _CLOSE)
            self._keep_promises(min(self.rounds, _CLOSING))
            self._cut(kept, _LITTLE_WORSE)

    def _keep_promises(self, times: int) -> None:
        """Go on until no promise is broken: keeping one may break another."""
        for _ in range(times):
            if not self._visit(self._keep_promise):
                return

    def _visit(self, patch: Callable[[int, int], None]) -> bool:
        """Patch what is wrong with each problem's best responses to each of the forecasts; say whether anything was."""
        before = len(self.steps)
        for number in range(len(self.problems)):
            for source in self._sources:
                patch(number, source)
        return len(self.steps) > before

    def _cut(self, least: int, worse: float) -> None:
        """Keep as many steps as possible with nearly the least held-out error, and not fewer than given."""
        errors = np.array([step.held_out_error for step in self.steps[least - 1 :]])
        del self.steps[least + int(np.flatnonzero(errors <= errors.min() * (1 + worse))[-1]) :]
        self._replay()

    def _replay(self) -> None:
        """Apply the patches of all steps."""
        patches = [step.patch for step in self.steps[1:]]
        self.rows, self.followers = (
            with_patches(rows.forecasts, self.problems, self.start, patches) for rows in (self.fitting, self.held_out)
        )

    def _regions(self, number: int, source: int) -> tuple[IntArray, FloatArray, BoolArray]:
        """Rows by best response, the weight of each region, and whether it is worth enough rows of equal weight."""
        problem, weights = self.problems[number], self.fitting.weights
        regions = problem.best_actions(self.rows[source])
        mass, squares = _sums(regions, np.stack([weights, weights**2], axis=1), problem.n_actions).T
        return regions, mass, (mass > 0) & (mass**2 >= _FEW_ROWS * squares * (1 - 1e-9))

    def _keep_promise(self, number: int, source: int) -> None:
        """Shift forecasts along the rewards of some best responses, if forecasts promise too much or too little there.

        The promise of the forecasts' own best responses makes trust right; those of the original best responses keep
        utility from falling.
        """
        problem, weights = self.problems[number], self.fitting.weights
        rewards = problem.rewards
        if problem.space.is_simplex:
            rewards = rewards - rewards.mean(axis=1, keepdims=True)  # errors of probabilities sum to zero
        chosen = rewards[problem.best_actions(self.rows[source])]
        owed = (self._errors() * chosen).sum(axis=1)
        total, length = weights @ owed, weights @ (chosen**2).sum(axis=1)
        if length > 0 and abs(total) > self._promise_deviations * np.linalg.norm(weights * owed):
            self._add(Patch(number, source, rewards * (total / length)))

    def _patch_regions(self, number: int, source: int) -> None:
        """Patch the regions of one problem whose mean error cannot be chance."""
        regions, mass, many = self._regions(number, source)
        errors = self.fitting.weights[:, None] * self._errors()
        moments, squares = (_sums(regions, columns, mass.size) for columns in (errors, errors**2))
        wrong = many & (np.abs(moments) > self._region_deviations * np.sqrt(squares)).any(axis=1)
        if wrong.any():
            shifts = np.divide(moments, mass[:, None], out=np.zeros_like(moments), where=wrong[:, None])
            self._add(Patch(number, source, shifts))

    def _errors(self) -> FloatArray:
        """Outcomes less the current forecasts of the fitting rows."""
        return self.fitting.known_outcomes - self.rows[CURRENT]

    def _add(self, patch: Patch) -> None:
        """Take a patch unless squared error on the fitting rows would rise; held-out rows follow."""
        moved = patched(self.rows, self.problems, patch)
        if squared_error(self.fitting, moved) < self.steps[-1].fitting_error:
            self.rows[CURRENT], self.followers[CURRENT] = moved, patched(self.followers, self.problems, patch)
            self._note(patch)

    def _note(self, patch: Patch | None) -> None:
        """Add a step to the current forecasts."""
        both = (self.fitting, self.rows), (self.held_out, self.followers)
        self.steps.append(_Step(patch, *(squared_error(rows, forecasts[CURRENT]) for rows, forecasts in both)))


def standard_errors_beyond_chance(moments: int) -> float:
    """Standard errors that a moment of nothing but chance seldom exceeds, the more the more of them there are."""
    return float(np.clip(-ndtri(_FALSE_PATCHES / (2 * moments)), _LEAST_DEVIATIONS, _MOST_DEVIATIONS))


def _sums(regions: IntArray, columns: FloatArray, size: int) -> FloatArray:
    """Sum each column within each region, shape ``(size, columns)``."""
    return np.stack([np.bincount(regions, weights=column, minlength=size) for column in columns.T], axis=1)
