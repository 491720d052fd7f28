"""Decision calibration online, for outcomes in any order, even chosen by an adversary.

After Noarov, Ramalingam, Roth and Xie. For every event "this problem's best
response to the prediction is action a" the signed error is summed up, and with
a base forecast also for every event "this problem's best response to the base
forecast is action a". The sums say at which slope errors cost; `mixtures` finds
predictions against which no outcome gains much. How far a slope may carry the
prediction away from a base forecast, and why every sum still grows no faster
than the root of the number of steps: docs/theory.md, section 9.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from prudent.arrays import FloatArray, IntArray, finite_array
from prudent.errors import FileFormatError, InputError
from prudent.files import read_document, write_document
from prudent.guarantees.base import positive_integer
from prudent.problem import DecisionProblem
from prudent.recalibration.decision import require_problems, shared_space
from prudent.recalibration.mixtures import gain, mixture_of
from prudent.recalibration.stacked import StackedProblems

__all__ = ["OnlineDecisionCalibrator"]

_FORMAT = "prudent-online-calibrator"
_VERSION = 1
_REPEATS = 20  # of best response and shift, until they agree
_HALVINGS = 40


class OnlineDecisionCalibrator:
    """Predict one outcome after the other so that every decision maker may best respond.

    Parameters
    ----------
    problems : DecisionProblem or sequence of them
        With one outcome space.
    max_steps : int
        Cuts per prediction; mostly few or none are needed.
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
        Predictions for which the gain was not small enough after ``max_steps``; they loosen the bound.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> calibrator = prudent.OnlineDecisionCalibrator(problem, random_state=0)
    >>> for step in range(500):
    ...     prediction = calibrator.predict_one()
    ...     points, weights = calibrator.distribution_
    ...     _ = calibrator.update(1.0 if weights @ points[:, 0] < 0.5 else 0.0)   # an adversary: the other side
    >>> bool(np.abs(calibrator.errors_[0]).max() < 3 * np.sqrt(500))
    True
    """

    def __init__(self, problems: Any, *, max_steps: int = 512, random_state: int = 0) -> None:
        self.problems = require_problems(problems)
        self.max_steps = positive_integer(max_steps, "max_steps")
        if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
            raise InputError(f"random_state must be a whole number of at least 0; got {random_state!r}.")
        self.random_state = int(random_state)
        self.space = shared_space(self.problems)
        self.errors_ = [np.zeros(problem.rewards.shape) for problem in self.problems]
        self.base_errors_ = [np.zeros(problem.rewards.shape) for problem in self.problems]
        self.n_steps_ = self.n_unsolved_ = 0
        self.distribution_ = np.zeros((0, self.space.dimension)), np.zeros(0)
        self._waiting: FloatArray | None = None
        self._waiting_base: FloatArray | None = None
        self._random = check_random_state(self.random_state)
        self._events = StackedProblems(self.problems)

    def predict_one(self, context_forecast: Any = None) -> FloatArray:
        """Predict the next outcome, shape ``(d,)``.

        With a base forecast the prediction is the base forecast, shifted by what the sums of errors say of its best
        responses and of the prediction's own. Shifts become finer with time; a sum that exceeds a multiple of the root
        of the number of steps all the same overrules the base forecast.
        """
        if self._waiting is not None:
            raise InputError("update must be called with the outcome of the last prediction before the next one.")
        base = None if context_forecast is None else self._read_base(context_forecast)
        self.distribution_ = self._without_base() if base is None else self._near(base)
        points, weights = self.distribution_
        draw = int(np.searchsorted(np.cumsum(weights), self._random.random_sample()))
        self._waiting, self._waiting_base = points[min(draw, len(points) - 1)], base
        return self._waiting.copy()

    def _without_base(self) -> tuple[FloatArray, FloatArray]:
        """Points against which no outcome adds much to the sum of squared sums."""
        events, tilts = self._events, self._events.in_units(self.errors_)
        points, weights = self.distribution_
        d = self.space.dimension
        middle = np.full(d, 1.0 / d if events.simplex else 0.5)
        enough = len(self.problems) * events.diagonal**2 / 2

        def slope(unit: FloatArray) -> FloatArray:
            return events.active(tilts, events.best(events.outcome(unit)))

        units = [events.unit(point) for point in points]
        # The middle, then the mixture of the step before, which mostly still does.
        for candidates, shares in (([middle], np.ones(1)), (units, weights)):
            if len(candidates):
                slopes = np.array([slope(unit) for unit in candidates])
                if gain(events.simplex, np.array(candidates), slopes, shares) <= enough:
                    return np.array([events.outcome(unit) for unit in candidates]), shares
        found, shares, solved = mixture_of(events.simplex, slope, [*units, middle], enough, self.max_steps)
        self.n_unsolved_ += not solved
        return np.array([events.outcome(unit) for unit in found]), shares

    def _near(self, base: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points near a base forecast against which no outcome gains much, less a pull towards the base forecast."""
        events, time = self._events, np.sqrt(self.n_steps_ + 1.0)
        active = 2 * len(self.problems)
        pace, beyond = 0.5 / (np.sqrt(active) * time), 2 * np.sqrt(active) * time

        def tilt(sums: FloatArray) -> FloatArray:
            return pace * sums + np.sign(sums) * np.maximum(np.abs(sums) - beyond, 0.0)

        own, its = (tilt(events.in_units(errors)) for errors in (self.errors_, self.base_errors_))
        origin = events.unit(base)
        towards = origin + events.active(its, events.best(base))

        def shifted(best: IntArray) -> FloatArray:
            return events.unit(self.space.project(events.outcome_beyond(towards + events.active(own, best))[None])[0])

        def slope(unit: FloatArray) -> FloatArray:
            return towards + events.active(own, events.best(events.outcome(unit))) - unit

        tries, best = [origin], events.best(base)
        for _ in range(_REPEATS):
            tries.append(shifted(best))
            following = events.best(events.outcome(tries[-1]))
            if (following == best).all():
                return events.outcome(tries[-1])[None], np.ones(1)
            best = following
        enough = pace * active * events.diagonal**2 / 8
        tries = [*self._border(tries[-1], tries[-2]), *tries[-2:]]
        found, shares, solved = mixture_of(events.simplex, slope, tries, enough, self.max_steps)
        self.n_unsolved_ += not solved
        return np.array([events.outcome(unit) for unit in found]), shares

    def _border(self, one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Two points between two others, next to each other, with different best responses."""
        events = self._events
        there = events.best(events.outcome(one))
        for _ in range(_HALVINGS):
            middle = (one + other) / 2
            if (events.best(events.outcome(middle)) == there).all():
                one = middle
            else:
                other = middle
        return one, other

    def update(self, outcome: Any) -> OnlineDecisionCalibrator:
        """Learn what happened after the last prediction."""
        if self._waiting is None:
            raise InputError("predict_one must be called before update: an outcome belongs to a prediction.")
        error = self._read_outcome(outcome) - self._waiting
        sums = [(self.errors_, self._waiting)]
        if self._waiting_base is not None:
            sums.append((self.base_errors_, self._waiting_base))
        for errors, forecast in sums:
            for i, action in enumerate(self._events.best(forecast)):
                errors[i][action] += error
        self.n_steps_ += 1
        self._waiting = self._waiting_base = None
        return self

    def predict_and_update(self, outcomes: Any, context_forecasts: Any = None) -> FloatArray:
        """Go through rows in order: predict each before its outcome is looked at; return the predictions ``(n, d)``."""
        known = self.space.place_outcomes(outcomes)
        contexts = None
        if context_forecasts is not None:
            contexts = self.space.place(context_forecasts, "context_forecasts")[0]
            if len(contexts) != len(known):
                raise InputError(f"context_forecasts must have one row per outcome, {len(known)}; got {len(contexts)}.")
        predictions = np.empty_like(known)
        for i, outcome in enumerate(known):
            predictions[i] = self.predict_one(None if contexts is None else contexts[i])
            self.update(outcome)
        return predictions

    def _read_base(self, context_forecast: Any) -> FloatArray:
        row = finite_array(context_forecast, "context_forecast").reshape(1, -1)
        return self.space.place(row, "context_forecast")[0][0]

    def _read_outcome(self, outcome: Any) -> FloatArray:
        """One outcome: a label or number, alone or as an array of no or one dimension, or a row of coordinates."""
        held = outcome.to_numpy() if hasattr(outcome, "to_numpy") else outcome
        if not isinstance(held, (list, tuple, np.ndarray)) or np.ndim(held) == 0:
            held = [held.item() if isinstance(held, (np.ndarray, np.generic)) else held]
        if np.ndim(held) == 1 and len(held) == self.space.dimension > 1:
            held = [held]
        known = self.space.place_outcomes(held, "outcome")
        if len(known) != 1:
            raise InputError(f"outcome must be one outcome; got {len(known)}.")
        return known[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one JSON file, whole or not at all."""
        kind, keys, position, has_gauss, cached = self._random.get_state()
        content = {
            "problems": [problem.to_dict() for problem in self.problems],
            "max_steps": self.max_steps,
            "random_state": self.random_state,
            "errors": [errors.tolist() for errors in self.errors_],
            "base_errors": [errors.tolist() for errors in self.base_errors_],
            "n_steps": self.n_steps_,
            "n_unsolved": self.n_unsolved_,
            "distribution": [values.tolist() for values in self.distribution_],
            "waiting": None if self._waiting is None else self._waiting.tolist(),
            "waiting_base": None if self._waiting_base is None else self._waiting_base.tolist(),
            "random": [kind, keys.tolist(), position, has_gauss, cached],
        }
        write_document(path, _FORMAT, _VERSION, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OnlineDecisionCalibrator:
        """Read a calibrator that was saved; it goes on where the other stopped."""
        content = read_document(path, _FORMAT, _VERSION)
        try:
            problems = [DecisionProblem.from_dict(problem) for problem in content["problems"]]
            calibrator = cls(problems, max_steps=content["max_steps"], random_state=content["random_state"])
            for name in ("errors", "base_errors"):
                errors = [finite_array(values, name) for values in content[name]]
                if [values.shape for values in errors] != [values.shape for values in calibrator.errors_]:
                    raise ValueError(f"{name} must have one row per action and problem.")
                setattr(calibrator, f"{name}_", errors)
            calibrator.n_steps_, calibrator.n_unsolved_ = int(content["n_steps"]), int(content["n_unsolved"])
            points, weights = (finite_array(values, "distribution") for values in content["distribution"])
            if points.size:
                points = calibrator.space.place(points, "distribution")[0]
                if weights.shape != (len(points),):
                    raise ValueError("distribution must have one weight per point.")
                calibrator.distribution_ = points, weights
            for name in ("waiting", "waiting_base"):
                if content[name] is not None:
                    setattr(calibrator, f"_{name}", calibrator.space.place([content[name]], name)[0][0])
            kind, keys, position, has_gauss, cached = content["random"]
            calibrator._random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise FileFormatError(f"{str(path)!r} has a field with a wrong value: {error}") from error
        return calibrator
