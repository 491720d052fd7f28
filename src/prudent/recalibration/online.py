"""Decision calibration online, for outcomes in any order, even chosen by an adversary.

After Noarov, Ramalingam, Roth and Xie. For every event "this problem's best
response to the prediction is action a" the signed error is summed up, and with
a base forecast also for every event "this problem's best response to the base
forecast is action a". The sums give a slope ``s(p)``: what errors ``y - p`` cost
at the prediction ``p``. Predictions are drawn from a mixture of points with
``max_y E[s(p) . (y - p)]`` small, found by column generation. A slope pulls
towards the base forecast, or towards the middle of the space; why every sum
still grows no faster than the root of the number of steps: docs/theory.md,
section 9.

Errors count in units of the space, in which a box is [0, 1] in every coordinate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.optimize import linprog

from prudent.arrays import FloatArray, IntArray, finite_array
from prudent.errors import FileFormatError, InputError
from prudent.files import Saved
from prudent.files.records import Document, Record
from prudent.problem import DecisionProblem
from prudent.recalibration.decision import read_problems

_FIELDS = (
    *("problems", "random_state", "errors", "n_steps", "n_unsolved"),
    *("points", "probabilities", "waiting", "waiting_base"),
)
_ROUNDING = 1e-6  # steps
_MOST_PROGRAMS = 512  # linear programs per prediction; mostly few or none are needed
_REPEATS = 20  # of best response and shift, until they agree

Distribution = tuple[FloatArray, FloatArray]  # points (n, d) and their probabilities (n,)


class OnlineDecisionCalibrator(Saved):
    """Predict one outcome after the other so that every decision maker may best respond.

    Parameters
    ----------
    problems : DecisionProblem or sequence of them
        With one outcome space.
    random_state : int
        Predictions are drawn at random: an adversary that knows them beforehand cannot be calibrated against.

    Attributes
    ----------
    errors_ : list of arrays of shape (m, d)
        Per problem, the sum of ``y - p`` over the steps in which each action was the best response to the prediction.
    base_errors_ : list of arrays of shape (m, d)
        The same by the best response to the base forecast, over the steps that had one.
    distribution_ : tuple of arrays of shape (k, d) and (k,)
        Points from which the last prediction was drawn, and their probabilities. An adversary may know them, but not
        which one is drawn: against one that does, no forecaster is calibrated.
    n_steps_ : int
    n_unsolved_ : int
        Predictions for which the gain was not small enough after 512 linear programs; they loosen the bound.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> calibrator = prudent.recalibration.OnlineDecisionCalibrator(problem, random_state=0)
    >>> for step in range(500):
    ...     prediction = calibrator.predict_one()
    ...     points, weights = calibrator.distribution_
    ...     _ = calibrator.update(1.0 if weights @ points[:, 0] < 0.5 else 0.0)   # an adversary: the other side
    >>> bool(np.abs(calibrator.errors_[0]).max() < 3 * np.sqrt(500))
    True
    """

    _format = "prudent-online-calibrator"

    def __init__(self, problems: Any, *, random_state: int = 0) -> None:
        self.problems, self.space = read_problems(problems)
        if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
            raise InputError(f"random_state must be a whole number of at least 0; got {random_state!r}.")
        self.random_state = int(random_state)
        # All problems side by side, padded to the same number of actions.
        shape = len(self.problems), max(problem.n_actions for problem in self.problems), self.space.dimension
        self._rewards, self._offsets = np.zeros(shape), np.full(shape[:2], -np.inf)
        for rewards, offsets, problem in zip(self._rewards, self._offsets, self.problems, strict=True):
            rewards[: problem.n_actions], offsets[: problem.n_actions] = problem.rewards, -problem.costs
        self._errors = np.zeros((2, *shape))  # by the best response to the prediction, and to the base forecast
        self.n_steps_ = self.n_unsolved_ = 0
        self.distribution_ = np.zeros((0, shape[2])), np.zeros(0)
        self._waiting: list[FloatArray | None] = [None, None]  # prediction and base forecast, (1, d) each

    @property
    def errors_(self) -> list[FloatArray]:
        """Sums of errors by the best response to the prediction."""
        return self._by_problem(0)

    @property
    def base_errors_(self) -> list[FloatArray]:
        """Sums of errors by the best response to the base forecast."""
        return self._by_problem(1)

    def predict_one(self, context_forecast: Any = None) -> FloatArray:
        """Predict the next outcome, shape ``(d,)``.

        It is the base forecast, or the middle of the space, shifted by what the sums of errors say of the best
        responses to the base forecast and to the prediction. Shifts become finer with time; a sum that exceeds a
        multiple of the root of the number of steps all the same overrules the base forecast.
        """
        if self._waiting[0] is not None:
            raise InputError("update must be called with the outcome of the last prediction before the next one.")
        base = None
        if context_forecast is not None:
            row = finite_array(context_forecast, "context_forecast").reshape(1, -1)
            base, _ = self.space.place(row, "context_forecast")
        points, weights = self._predictions(base)
        self.distribution_ = np.clip(points, *self.space.bounds), weights  # in spite of rounding
        uniform = np.random.default_rng([self.random_state, self.n_steps_]).random()
        drawn = self.distribution_[0][[np.searchsorted(np.cumsum(weights[:-1]), uniform)]]
        self._waiting = [drawn, base]
        return drawn[0].copy()

    def _predictions(self, base: FloatArray | None) -> Distribution:
        """Points against which no outcome gains much, less a pull towards the base forecast or the middle."""
        (low, high), width = self.space.bounds, self.space.widths
        active = len(self.problems) * (1 if base is None else 2)
        root = np.sqrt(active) * np.sqrt(self.n_steps_ + 1.0)
        pace, beyond = 0.5 / root, 2 * root
        sums = self._errors / width
        shifts = (pace * sums + np.sign(sums) * np.maximum(np.abs(sums) - beyond, 0.0)) * width
        moved = self.space.project((low + (high - low) / 2)[None]) if base is None else base
        towards = moved if base is None else base + self._at_best(shifts[1], base)

        def shifted(points: FloatArray) -> FloatArray:
            return towards + self._at_best(shifts[0], points)

        for _ in range(_REPEATS):
            last, moved = moved, self.space.project(shifted(moved))
            if (self._best(last) == self._best(moved)).all():
                return moved, np.ones(1)
        squared_diagonal = 2.0 if self.space.is_simplex else float(width.size)
        return self._mixture(
            lambda points: (shifted(points) - points) / width**2,
            np.vstack([last, moved, self.distribution_[0]]),
            pace * active * squared_diagonal / 8,
        )

    def _mixture(self, slopes: Callable[[FloatArray], FloatArray], points: FloatArray, enough: float) -> Distribution:
        """Mix points so that no outcome gains more than enough, by column generation.

        The linear program over the points so far finds the outcome that gains most against the best mixture of them;
        its dual variables are the mixture. A prediction equal to that outcome leaves it nothing to gain, so it is the
        next point.
        """
        found, weights, costs = points, np.full(len(points), 1 / len(points)), slopes(points)
        d, low, width = self.space.dimension, self.space.bounds[0], self.space.widths
        total = np.append(np.ones(d), 0.0)[None][: self.space.is_simplex]
        for _ in range(_MOST_PROGRAMS):
            scaled = costs * width
            scaled /= max(float(np.abs(scaled).max()), np.finfo(float).tiny)  # the tolerances are absolute
            program: Any = linprog(
                np.append(np.zeros(d), -1.0),
                np.hstack([-scaled, np.ones((len(points), 1))]),
                -(scaled * ((points - low) / width)).sum(axis=1),
                total,
                np.ones(len(total)),
                bounds=[(0.0, 1.0)] * d + [(None, None)],
            )
            if program.status != 0:
                break
            duals = np.maximum(-program.ineqlin.marginals, 0.0)
            kept = duals > 1e-12
            found, weights = points[kept], duals[kept] / duals[kept].sum()
            if self._gain(found, costs[kept], weights) <= enough:
                return found, weights
            middle = weights @ found
            outcome = self.space.project((low + program.x[:d] * width)[None])
            # A point on the way saves programs.
            new = middle + np.array([[0.25], [1.0]]) * (outcome - middle)
            points, costs = np.vstack([points, new]), np.vstack([costs, slopes(new)])
        self.n_unsolved_ += 1
        return found, weights

    def _gain(self, points: FloatArray, slopes: FloatArray, weights: FloatArray) -> float:
        """What the best outcome gains on average against a distribution of predictions."""
        most = -self.space.support_minimum(-(weights @ slopes))
        return float(most - weights @ (slopes * points).sum(axis=1))

    def _best(self, points: FloatArray) -> IntArray:
        """Each problem's best response to each point, ``(n, problems)``, by the sums and ties of ``best_actions``."""
        utilities = np.repeat(self._offsets[None], len(points), axis=0)
        for j in range(self.space.dimension):
            utilities += points[:, j, None, None] * self._rewards[:, :, j]
        return utilities.argmax(axis=2)

    def _at_best(self, table: FloatArray, points: FloatArray) -> FloatArray:
        """Sum over problems what a table ``(problems, actions, d)`` has for the best responses to each point."""
        return table[np.arange(len(table)), self._best(points)].sum(axis=1)

    def _by_problem(self, which: int) -> list[FloatArray]:
        return [sums[: problem.n_actions] for sums, problem in zip(self._errors[which], self.problems, strict=True)]

    def update(self, outcome: Any) -> OnlineDecisionCalibrator:
        """Learn what happened after the last prediction."""
        if self._waiting[0] is None:
            raise InputError("predict_one must be called before update: an outcome belongs to a prediction.")
        error = self._read_outcome(outcome) - self._waiting[0]
        for errors, forecast in zip(self._errors, self._waiting, strict=True):
            if forecast is not None:
                errors[np.arange(len(errors)), self._best(forecast)] += error
        self.n_steps_ += 1
        self._waiting = [None, None]
        return self

    def predict_and_update(self, outcomes: Any, context_forecasts: Any = None) -> FloatArray:
        """Go through rows in order: predict each before its outcome is looked at; return the predictions ``(n, d)``."""
        known = self.space.place_outcomes(outcomes)
        contexts: Any = [None] * len(known)
        if context_forecasts is not None:
            contexts, _ = self.space.place(context_forecasts, "context_forecasts")
        if len(known) != len(contexts):
            raise InputError(f"outcomes must have one row per forecast, {len(contexts)}; got {len(known)}.")
        predictions = np.empty_like(known)
        for i, context in enumerate(contexts):
            predictions[i] = self.predict_one(context)
            self.update(known[i])
        return predictions

    def _read_outcome(self, outcome: Any) -> FloatArray:
        """One outcome, ``(1, d)``, from a label, a number or a row of coordinates."""
        held = np.asarray(outcome)
        return self.space.place_outcomes([held.item() if held.ndim == 0 else held], "outcome")

    def _content(self) -> Document:
        points, probabilities = self.distribution_
        waiting, base = (None if row is None else row[0].tolist() for row in self._waiting)
        return {
            "problems": [problem.to_dict() for problem in self.problems],
            "random_state": self.random_state,
            "errors": self._errors.tolist(),
            "n_steps": self.n_steps_,
            "n_unsolved": self.n_unsolved_,
            "points": points.tolist(),
            "probabilities": probabilities.tolist(),
            "waiting": waiting,
            "waiting_base": base,
        }

    @classmethod
    def _rebuild(cls, content: Document) -> Self:
        record = Record(content, "calibrator", *_FIELDS)
        problems = [DecisionProblem.from_dict(problem) for problem in record.typed("problems", list)]
        calibrator = cls(problems, random_state=record.count("random_state"))
        space, errors = calibrator.space, calibrator._errors
        calibrator.n_steps_, calibrator.n_unsolved_ = record.count("n_steps"), record.count("n_unsolved")
        errors[:] = record.array("errors", *errors.shape)
        if (np.abs(errors) > (calibrator.n_steps_ + _ROUNDING) * space.widths).any():
            raise FileFormatError(f"sums of errors must not exceed what {calibrator.n_steps_} steps can add up to.")
        points = record.array("points", None, space.dimension)
        if len(points):
            probabilities = record.array("probabilities", len(points))
            calibrator.distribution_ = space.place(points, "points")[0], probabilities
        calibrator._waiting = [
            None if record[name] is None else space.place(record.array(name, space.dimension)[None], name)[0]
            for name in ("waiting", "waiting_base")
        ]
        return calibrator
