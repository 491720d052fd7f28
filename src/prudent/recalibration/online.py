"""Decision calibration online, for outcomes in any order, even chosen by an adversary.

After Noarov, Ramalingam, Roth and Xie. For every event "this problem's best
response to the prediction is action a" the signed error is summed up, and with
a base forecast also for every event "this problem's best response to the base
forecast is action a". The sums give a slope ``s(p)``: what errors ``y - p`` cost
at the prediction ``p``. Predictions are drawn from a mixture of points with
``max_y E[s(p) . (y - p)]`` small, found by column generation. A slope pulls
towards the base forecast, or towards the middle of the space; why every sum
still grows no faster than the root of the number of predictions plus all their
delays: docs/theory.md, section 9.

Errors count in units of the space, in which a box is [0, 1] in every coordinate.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.optimize import linprog

from prudent.arrays import FloatArray, IntArray
from prudent.errors import FileFormatError, InputError
from prudent.files import Document, Record, Saved
from prudent.formatting import Printable
from prudent.problem import DecisionProblem
from prudent.recalibration.decision import read_problems
from prudent.recalibration.ledger import FIELDS as LEDGER_FIELDS
from prudent.recalibration.ledger import Ledger, Point, read_ids, read_outcomes

_FIELDS = (
    *("problems", "random_state", "errors", "n_predictions", "n_steps", "n_unsolved"),
    *("points", "probabilities", *LEDGER_FIELDS),
)
_ROUNDING = 1e-6  # steps
_MOST_PROGRAMS = 512  # linear programs per prediction; mostly few or none are needed
_REPEATS = 20  # of best response and shift, until they agree

Distribution = tuple[FloatArray, FloatArray]  # points (n, d) and their probabilities (n,)


class OnlineDecisionCalibrator(Printable, Saved):
    """Predict outcomes in the order of time so that every decision maker may best respond.

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
    n_predictions_, n_steps_, n_waiting_ : int
        Predictions made, predictions whose outcome was learnt, and ids whose outcome is awaited.
    n_repeated_, n_conflicting_, n_unknown_ : int
        Outcomes left out: those that came again, those that differ from the first one of their id, and those of ids
        that were never predicted.
    n_unsolved_ : int
        Predictions for which the gain was not small enough after 512 linear programs; they loosen the bound.

    Notes
    -----
    The state holds prediction and outcome of every id, so that retries and repeated outcomes are recognised.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> calibrator = prudent.recalibration.OnlineDecisionCalibrator(problem, random_state=0)
    >>> for step in range(500):
    ...     prediction = calibrator.predict([step])
    ...     points, weights = calibrator.distribution_
    ...     _ = calibrator.update([step], [weights @ points[:, 0] < 0.5])   # an adversary: the other side
    >>> bool(np.abs(calibrator.errors_[0]).max() < 3 * np.sqrt(500))
    True
    """

    _format = "prudent-online-calibrator"
    _version = 2
    _shown = (
        *("n_predictions_", "n_steps_", "n_waiting_"),
        *("n_repeated_", "n_conflicting_", "n_unknown_", "n_unsolved_"),
    )

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
        self.n_predictions_ = self.n_steps_ = self.n_unsolved_ = 0
        self.distribution_ = np.zeros((0, shape[2])), np.zeros(0)
        self._ledger = Ledger(early=False)  # a forecast is the prediction, and the base forecast if there was one

    @property
    def errors_(self) -> list[FloatArray]:
        """Sums of errors by the best response to the prediction."""
        return self._by_problem(0)

    @property
    def base_errors_(self) -> list[FloatArray]:
        """Sums of errors by the best response to the base forecast."""
        return self._by_problem(1)

    @property
    def n_waiting_(self) -> int:
        """Ids whose outcome is awaited."""
        return len(self._ledger.awaiting(1))

    @property
    def n_repeated_(self) -> int:
        """Outcomes that came again."""
        return self._ledger.n_repeated

    @property
    def n_conflicting_(self) -> int:
        """Outcomes that differ from the first one of their id."""
        return self._ledger.n_conflicting

    @property
    def n_unknown_(self) -> int:
        """Outcomes of ids that were never predicted."""
        return self._ledger.n_unknown

    def predict(self, ids: Any, forecasts: Any = None) -> FloatArray:
        """Predict the next outcomes, shape ``(n, d)``; an id that was predicted before gets the same prediction.

        Parameters
        ----------
        ids : sequence of length n
            Names of the rows, in the order of time: strings or whole numbers. How rows are divided into calls does not
            matter, only which outcomes are known.
        forecasts : array of shape (n,) or (n, d), optional
            Base forecasts. A prediction is the base forecast, or the middle of the space, shifted by what the sums of
            errors say of the best responses to the base forecast and to the prediction. Shifts become finer with time;
            a sum that exceeds a multiple of the root of the number of predictions all the same overrules the base
            forecast.
        """
        names, rows = read_ids(ids), self._ledger.rows
        bases: list[list[Point]] = [[] for _ in names]
        if forecasts is not None:
            bases = [[point] for point in self.space.place(forecasts, "forecasts")[0].tolist()]
        if len(bases) != len(names):
            raise InputError(f"forecasts must have one row per id, {len(names)}; got {len(bases)}.")
        for name, base in zip(names, bases, strict=True):
            if name not in rows:
                rows[name] = self._draw(base), None
        drawn = [(rows[name][0] or [])[0] for name in names]
        return np.array(drawn).reshape(-1, self.space.dimension)

    def _draw(self, base: list[Point]) -> list[Point]:
        """Draw the next prediction; return it, and the base forecast behind it."""
        points, weights = self._predictions(np.array(base) if base else None)
        self.distribution_ = np.clip(points, *self.space.bounds), weights  # in spite of rounding
        uniform = np.random.default_rng([self.random_state, self.n_predictions_]).random()
        self.n_predictions_ += 1
        drawn: Point = self.distribution_[0][np.searchsorted(np.cumsum(weights[:-1]), uniform)].tolist()
        return [drawn, *base]

    def _predictions(self, base: FloatArray | None) -> Distribution:
        """Points against which no outcome gains much, less a pull towards the base forecast or the middle."""
        width = self.space.widths
        active = len(self.problems) * (1 if base is None else 2)
        root = np.sqrt(active) * np.sqrt(self.n_predictions_ + 1.0)
        pace, beyond = 0.5 / root, 2 * root
        sums = self._errors / width
        shifts = (pace * sums + np.sign(sums) * np.maximum(np.abs(sums) - beyond, 0.0)) * width
        moved = self.space.middle if base is None else base
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

    def update(self, ids: Any, outcomes: Any) -> "OnlineDecisionCalibrator":
        """Learn outcomes of predictions by their ids: in any order, late, in parts.

        Of an id that comes again the first outcome counts. One that comes with another outcome, or that was never
        predicted, is counted and named in a warning.
        """
        names = read_ids(ids)
        batch = self._ledger.match(
            names, None, read_outcomes(self.space, outcomes, len(names), "leave these ids out until they are known")
        )
        for forecast, outcome in batch.pairs:
            self._learn(forecast, outcome)
        self._ledger.note(batch)
        return self

    def _learn(self, forecast: list[Point], outcome: Point) -> None:
        error = np.subtract(outcome, forecast[0])
        for errors, point in zip(self._errors, forecast, strict=False):  # some have no base forecast
            errors[np.arange(len(errors)), self._best(np.array([point]))] += error
        self.n_steps_ += 1

    def __str__(self) -> str:
        left_out = self.n_repeated_, self.n_conflicting_, self.n_unknown_
        return (
            f"{self.n_predictions_:,} predictions, {self.n_steps_:,} outcomes, {self.n_waiting_:,} awaited; left out: "
            f"{left_out[0]:,} repeated, {left_out[1]:,} conflicting, {left_out[2]:,} unknown"
        )

    def _content(self) -> Document:
        points, probabilities = self.distribution_
        return {
            "problems": [problem.to_dict() for problem in self.problems],
            "random_state": self.random_state,
            "errors": self._errors.tolist(),
            "n_predictions": self.n_predictions_,
            "n_steps": self.n_steps_,
            "n_unsolved": self.n_unsolved_,
            "points": points.tolist(),
            "probabilities": probabilities.tolist(),
            **self._ledger.to_dict(),
        }

    @classmethod
    def _rebuild(cls, content: Document) -> Self:
        record = Record(content, "calibrator", *_FIELDS)
        problems = [DecisionProblem.from_dict(problem) for problem in record.typed("problems", list)]
        calibrator = cls(problems, random_state=record.count("random_state"))
        space, errors = calibrator.space, calibrator._errors
        calibrator.n_predictions_, calibrator.n_unsolved_ = record.count("n_predictions"), record.count("n_unsolved")
        calibrator.n_steps_ = record.count("n_steps", calibrator.n_predictions_)
        errors[:] = record.array("errors", *errors.shape)
        if (np.abs(errors) > (calibrator.n_steps_ + _ROUNDING) * space.widths).any():
            raise FileFormatError(f"sums of errors must not exceed what {calibrator.n_steps_} steps can add up to.")
        points = record.array("points", None, space.dimension)
        if len(points):
            probabilities = record.array("probabilities", len(points))
            calibrator.distribution_ = space.place(points, "points")[0], probabilities
        calibrator._ledger = Ledger.from_record(record, space, early=False)
        return calibrator
