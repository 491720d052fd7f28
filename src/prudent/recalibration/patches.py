"""The search for patches: what a decision calibrator adds to forecasts, and in which order.

A sweep looks at promises first: best responding to a forecast promises a
utility, and one number per decision problem says how far the promise is off.
That number has the least sampling error of all, so what it corrects need not
be learnt region by region, where noise flatters the actions it favours. The
same number for the best responses to the original forecasts, and to those of
a start, keeps every decision maker from losing by the repair.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from prudent.arrays import BoolArray, FloatArray, IntArray, frozen
from prudent.errors import InputError
from prudent.files.records import Document
from prudent.problem import DecisionProblem
from prudent.progress import ProgressLine
from prudent.recalibration.base import Pairs
from prudent.spaces import Space

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


def with_start(forecasts: FloatArray, space: Space, start: Any) -> list[FloatArray]:
    """Forecasts of some rows: the original ones, those of a start if there is one, and the current ones."""
    if start is None:
        return [forecasts, forecasts]
    begun = start.transform(forecasts)
    n, d = forecasts.shape
    if np.shape(begun) not in ((n, d), (n,) if d == 1 else (n, d)):
        raise InputError(f"start's forecasts must have shape {(n, d)}, one row per forecast; got {np.shape(begun)}.")
    placed, _ = space.place(begun, "start's forecasts")
    return [forecasts, placed, placed]


def patched(forecasts: list[FloatArray], problems: tuple[DecisionProblem, ...], patch: Patch) -> FloatArray:
    """Where a patch moves the current forecasts."""
    problem = problems[patch.problem]
    regions = problem.best_actions(forecasts[patch.source])
    return problem.space.project(forecasts[CURRENT] + patch.shifts[regions])


class _Step(NamedTuple):
    """A patch, the sweep that found it, the actions whose regions it is for (none for a promise), squared errors."""

    patch: Any  # None before the first one
    sweep: int
    actions: list[int]
    fitting_error: float
    held_out_error: float


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
        self.problems, self.tolerance = problems, tolerance
        self.fitting, self.held_out = fitting, held_out
        space = problems[0].space
        self.rows, self.followers = (with_start(pairs.forecasts, space, start) for pairs in (fitting, held_out))
        errors = fitting.squared_error(self.rows[CURRENT]), held_out.squared_error(self.followers[CURRENT])
        self.steps = [_Step(None, 0, [], *errors)]
        self.sweeps = 0
        self._sources = range(CURRENT, len(self.rows) - 1)
        moments = sum(problem.n_actions for problem in problems) * space.dimension * len(self._sources)
        self._region_deviations = standard_errors_beyond_chance(moments)
        self._promise_deviations = standard_errors_beyond_chance(len(problems) * len(self._sources))

    def run(self, rounds: int, line: ProgressLine) -> bool:
        """Sweep until nothing is left to patch, go back to where held-out rows liked it best, and keep promises there.

        False if interrupted; what was found so far is kept all the same.
        """
        kept, worse, finished = 1, _NO_WORSE, False
        try:
            for _ in range(rounds):
                before = len(self.steps)
                self._keep_promises(rounds, line)
                self._visit(self._patch_regions, 1, rounds, line)
                self.sweeps += 1
                if len(self.steps) == before:
                    break
            self._cut(kept, worse)
            if len(self.steps) > 1:  # where nothing was wrong, forecasts stay as they are
                kept, worse = len(self.steps), _LITTLE_WORSE
                self._promise_deviations = min(self._promise_deviations, _CLOSE)
                self._keep_promises(min(rounds, _CLOSING), line)
            finished = True
        except KeyboardInterrupt:
            pass  # the best state so far is what was asked for
        self._cut(kept, worse)
        return finished

    def skipped(self) -> tuple[str, ...]:
        """Name the regions with few rows that no patch is for."""
        done = {(step.patch.problem, step.patch.source, action) for step in self.steps for action in step.actions}
        names = ("the repaired forecasts", "the original forecasts", "the forecasts of start")
        return tuple(
            f"problem {number + 1}: best response {problem.actions[action]} to {names[source + 1]}"
            for number, problem in enumerate(self.problems)
            for source in self._sources
            for action in np.flatnonzero(~self._regions(number, source)[2]).tolist()
            if (number, source, action) not in done
        )

    def _visit(self, patch: Callable[[int, int], None], progress: int, rounds: int, line: ProgressLine) -> None:
        """Patch what is wrong with each problem's best responses to each of the forecasts."""
        count = len(self.problems)
        for number in range(count):
            for source in self._sources:
                patch(number, source)
            found = f"{len(self.steps) - 1} patches, held-out squared error {self.steps[-1].held_out_error:.5f}"
            line.show(self.sweeps * count + progress * (number + 1), rounds * count, found)

    def _cut(self, least: int, worse: float) -> None:
        """Keep as many steps as possible with nearly the least held-out error, and not fewer than given."""
        errors = np.array([step.held_out_error for step in self.steps[least - 1 :]])
        del self.steps[least + int(np.flatnonzero(errors <= errors.min() * (1 + worse))[-1]) :]
        self.sweeps = self.steps[-1].sweep
        for forecasts in (self.rows, self.followers):
            forecasts[CURRENT] = forecasts[CURRENT - 1]
            for step in self.steps[1:]:
                forecasts[CURRENT] = patched(forecasts, self.problems, step.patch)

    def _regions(self, number: int, source: int) -> tuple[IntArray, FloatArray, BoolArray]:
        """Rows by best response, the weight of each region, and whether it is worth enough rows of equal weight."""
        problem, weights = self.problems[number], self.fitting.weights
        regions = problem.best_actions(self.rows[source])
        mass, squares = _sums(regions, np.stack([weights, weights**2], axis=1), problem.n_actions).T
        return regions, mass, (mass > 0) & (mass**2 >= _FEW_ROWS * squares * (1 - 1e-9))

    def _keep_promises(self, rounds: int, line: ProgressLine) -> None:
        """Go on until no promise is broken: keeping one may break another."""
        for _ in range(rounds):
            before = len(self.steps)
            self._visit(self._keep_promise, 0, rounds, line)
            if len(self.steps) == before:
                return

    def _keep_promise(self, number: int, source: int) -> None:
        """Shift forecasts along the rewards of some best responses, if forecasts promise too much or too little there.

        The promise of the forecasts' own best responses makes trust right; those of the original best responses keep
        their owners from losing.
        """
        problem, weights = self.problems[number], self.fitting.weights
        rewards = problem.rewards
        if problem.space.is_simplex:
            rewards = rewards - rewards.mean(axis=1, keepdims=True)  # errors of probabilities sum to zero
        chosen = rewards[problem.best_actions(self.rows[source])]
        owed = ((self.fitting.outcomes - self.rows[CURRENT]) * chosen).sum(axis=1)
        length = float(weights @ (chosen**2).sum(axis=1))
        if self.tolerance is None:
            limit = self._promise_deviations * float(np.sqrt((weights**2 * owed**2).sum()))
        else:
            limit = self.tolerance * float(np.abs(rewards).sum(axis=1).max())
        if abs(weights @ owed) > limit and length > 0:
            self._add(Patch(number, source, rewards * (weights @ owed / length)), [])

    def _patch_regions(self, number: int, source: int) -> None:
        """Patch the regions of one problem whose mean error cannot be chance."""
        regions, mass, many = self._regions(number, source)
        errors = self.fitting.weights[:, None] * (self.fitting.outcomes - self.rows[CURRENT])
        moments = _sums(regions, errors, mass.size)
        limits: Any = self.tolerance
        if limits is None:
            limits = self._region_deviations * np.sqrt(_sums(regions, errors**2, mass.size))
        wrong = many & (np.abs(moments) > limits).any(axis=1)
        if wrong.any():
            shifts: FloatArray = np.zeros(moments.shape)
            shifts[wrong] = moments[wrong] / mass[wrong, None]
            self._add(Patch(number, source, shifts), np.flatnonzero(wrong).tolist())

    def _add(self, patch: Patch, actions: list[int]) -> None:
        """Take a patch unless squared error on the fitting rows would rise; held-out rows follow."""
        moved = patched(self.rows, self.problems, patch)
        error = self.fitting.squared_error(moved)
        if error < self.steps[-1].fitting_error:
            self.rows[CURRENT], self.followers[CURRENT] = moved, patched(self.followers, self.problems, patch)
            held_out = self.held_out.squared_error(self.followers[CURRENT])
            self.steps.append(_Step(patch, self.sweeps + 1, actions, error, held_out))


def standard_errors_beyond_chance(moments: int) -> float:
    """Standard errors that a moment of nothing but chance seldom exceeds, the more the more of them there are."""
    return float(np.clip(-ndtri(_FALSE_PATCHES / (2 * moments)), _LEAST_DEVIATIONS, _MOST_DEVIATIONS))


def _sums(regions: IntArray, columns: FloatArray, size: int) -> FloatArray:
    """Sum each column within each region, shape ``(size, columns)``."""
    return np.stack([np.bincount(regions, weights=column, minlength=size) for column in columns.T], axis=1)
