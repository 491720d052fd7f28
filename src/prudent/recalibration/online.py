"""Decision calibration online, for outcomes in any order, even chosen by an adversary.

After Noarov, Ramalingam, Roth and Xie. For every event "this problem's best
response to the prediction is action a" the signed error is summed up. The sums
``S`` tilt the next prediction: an adversary who sees its distribution gains at
most ``max_y E[s(p) . (y - p)]`` with ``s(p)`` the sum of the events that ``p``
is in, and there always is a distribution of predictions with gain near zero. It
is found from the adversary's side: a prediction equal to its mean outcome gains
it nothing, which cuts that outcome's half of the space away. An ellipsoid around
what is left shrinks until the predictions made on the way, mixed by a small
linear program, leave no more than a constant. The sum of squares of ``S`` then
grows by a constant per step, so every sum grows like the root of the number of
steps.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.optimize import linprog
from sklearn.utils import check_random_state

from prudent.arrays import FloatArray, finite_array
from prudent.errors import FileFormatError, InputError
from prudent.files import read_document, write_document
from prudent.guarantees.base import positive_integer
from prudent.problem import DecisionProblem
from prudent.recalibration.decision import require_problems
from prudent.spaces import Simplex, Space

__all__ = ["OnlineDecisionCalibrator"]

_FORMAT = "prudent-online-calibrator"
_VERSION = 1


class OnlineDecisionCalibrator:
    """Predict one outcome after the other so that every decision maker may best respond.

    Parameters
    ----------
    problems : DecisionProblem or sequence of them
        With one outcome space.
    max_steps : int
        Cuts per prediction; the mixture of the step before is tried first and mostly suffices.
    random_state : int
        Predictions are drawn at random: an adversary that knows them beforehand cannot be calibrated against.

    Attributes
    ----------
    errors_ : list of arrays of shape (m, d)
        Per problem, the sum of ``y - p`` over the steps in which each action was the best response.
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
        self.space = self.problems[0].space
        self.errors_ = [np.zeros(problem.rewards.shape) for problem in self.problems]
        self.n_steps_ = self.n_unsolved_ = 0
        self._waiting: FloatArray | None = None
        self._random = check_random_state(self.random_state)
        self.distribution_ = np.zeros((0, self.space.dimension)), np.zeros(0)
        self._lay_out()

    def _lay_out(self) -> None:
        """Stack all problems, padded to the same number of actions, so that one product answers for all."""
        most = max(problem.n_actions for problem in self.problems)
        d = self.space.dimension
        self._rewards = np.zeros((len(self.problems), most, d))
        self._offsets = np.full((len(self.problems), most), -np.inf)
        for i, problem in enumerate(self.problems):
            self._rewards[i, : problem.n_actions] = problem.rewards
            self._offsets[i, : problem.n_actions] = -problem.costs
        low, high = self.space.bounds
        self._width = float(np.sqrt(2.0)) if isinstance(self.space, Simplex) else float(np.linalg.norm(high - low))
        self._sums = np.zeros((len(self.problems), most, d))
        for i, errors in enumerate(self.errors_):
            self._sums[i, : len(errors)] = errors
        self._tilts = self._sums
        self._numbers = np.arange(len(self.problems))

    def predict_one(self, context_forecast: Any = None) -> FloatArray:
        """Predict the next outcome, shape ``(d,)``.

        A base forecast is predicted as it is while no sum of errors exceeds the root of the number of steps, in units
        of the outcomes' width: that much is chance even if it is right.
        """
        if self._waiting is not None:
            raise InputError("update must be called with the outcome of the last prediction before the next one.")
        self._tilts = self._sums
        if context_forecast is not None:
            low, high = self.space.bounds
            chance = np.sqrt(self.n_steps_) * (high - low)
            self._tilts = np.sign(self._sums) * np.maximum(np.abs(self._sums) - chance, 0.0)
        points, weights = self._search(self._start(context_forecast))
        self.distribution_ = points, weights
        self._waiting = points[
            min(int(np.searchsorted(np.cumsum(weights), self._random.random_sample())), len(points) - 1)
        ]
        return self._waiting.copy()

    def _search(self, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Find points and probabilities that leave any outcome little to gain."""
        enough = len(self.problems) * self._width**2 / 2
        if self._gain(start[None], self._slope(start)[None], np.ones(1)) <= enough:
            return start[None], np.ones(1)
        points, weights = self.distribution_
        slopes = np.array([self._slope(point) for point in points]).reshape(points.shape)
        if len(points) and self._gain(points, slopes, weights) <= enough:
            return points, weights
        cuts = _Cuts(self.space, start)
        for point, slope in zip(points, slopes, strict=True):
            cuts.add(point, slope)
        tried = 0
        for step in range(1, self.max_steps + 1):
            center = cuts.center()
            cuts.add(center, self._slope(center))
            if step >= 2 * tried or step == self.max_steps:
                tried = step
                points, slopes, weights = cuts.mixture()
                if self._gain(points, slopes, weights) <= enough:
                    return points, weights
        self.n_unsolved_ += 1
        return points, weights

    def _gain(self, points: FloatArray, slopes: FloatArray, weights: FloatArray) -> float:
        """What the best outcome gains on average against a distribution of predictions."""
        most = -float(self.space.support_minimum(-(weights @ slopes)[None])[0])
        return most - float(weights @ (slopes * points).sum(axis=1))

    def update(self, outcome: Any) -> OnlineDecisionCalibrator:
        """Learn what happened after the last prediction."""
        if self._waiting is None:
            raise InputError("predict_one must be called before update: an outcome belongs to a prediction.")
        held = outcome if isinstance(outcome, (list, tuple, np.ndarray)) else [outcome]
        rows: Any = [held] if np.ndim(held) == 1 and len(held) == self.space.dimension > 1 else held
        known = self.space.place_outcomes(rows, "outcome")
        if len(known) != 1:
            raise InputError(f"outcome must be one outcome; got {len(known)}.")
        error = known[0] - self._waiting
        best = self._best(self._waiting)
        self._sums[self._numbers, best] += error
        for i, action in enumerate(best):
            self.errors_[i][action] += error
        self.n_steps_ += 1
        self._waiting = None
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one JSON file, whole or not at all."""
        kind, keys, position, has_gauss, cached = self._random.get_state()
        content = {
            "problems": [problem.to_dict() for problem in self.problems],
            "max_steps": self.max_steps,
            "random_state": self.random_state,
            "errors": [errors.tolist() for errors in self.errors_],
            "n_steps": self.n_steps_,
            "n_unsolved": self.n_unsolved_,
            "distribution": [values.tolist() for values in self.distribution_],
            "waiting": None if self._waiting is None else self._waiting.tolist(),
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
            errors = [finite_array(values, "errors") for values in content["errors"]]
            if [values.shape for values in errors] != [values.shape for values in calibrator.errors_]:
                raise ValueError("errors must have one row per action and problem.")
            calibrator.errors_ = errors
            calibrator.n_steps_, calibrator.n_unsolved_ = int(content["n_steps"]), int(content["n_unsolved"])
            points, weights = (finite_array(values, "distribution") for values in content["distribution"])
            if points.size:
                points = calibrator.space.place(points, "distribution")[0]
                if weights.shape != (len(points),):
                    raise ValueError("distribution must have one weight per point.")
                calibrator.distribution_ = points, weights
            if content["waiting"] is not None:
                calibrator._waiting = calibrator.space.place([content["waiting"]], "waiting")[0][0]
            kind, keys, position, has_gauss, cached = content["random"]
            calibrator._random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
            calibrator._lay_out()
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise FileFormatError(f"{str(path)!r} has a field with a wrong value: {error}") from error
        return calibrator

    def _start(self, context_forecast: Any) -> FloatArray:
        low, high = self.space.bounds
        if context_forecast is None:
            return np.full(high.size, 1.0 / high.size) if isinstance(self.space, Simplex) else (low + high) / 2
        row = np.asarray(context_forecast, dtype=np.float64).reshape(1, -1)
        return self.space.place(row, "context_forecast")[0][0]

    def _best(self, point: FloatArray) -> Any:
        """Each problem's best response; the first declared of equal ones."""
        return (self._rewards @ point + self._offsets).argmax(axis=1)

    def _slope(self, point: FloatArray) -> FloatArray:
        total: FloatArray = self._tilts[self._numbers, self._best(point)].sum(axis=0)
        return total


class _Cuts:
    """Outcomes that an adversary may still want: an ellipsoid that each cut shrinks.

    On the simplex the last coordinate follows from the others and is left out.
    """

    def __init__(self, space: Space, start: FloatArray) -> None:
        self.space = space
        self.simplex = isinstance(space, Simplex)
        low, high = space.bounds
        free = start.size - self.simplex
        self._low, self._high = low[:free], high[:free]
        width = self._high - self._low
        # Any outcome is within the box's diagonal of any other, in units of the box's sides.
        self._middle = start[:free].copy()
        self._shape = np.diag(width**2) * free
        self.points: list[FloatArray] = []
        self.slopes: list[FloatArray] = []

    def center(self) -> FloatArray:
        """The middle of what is left, brought into the space by cutting away what lies outside."""
        for _ in range(50 * self._middle.size):
            normal = self._violated()
            if normal is None:
                break
            self._cut(normal)
        point = self._middle
        if self.simplex:
            point = np.append(point, 1.0 - point.sum())
        inside: FloatArray = self.space.project(point[None])[0]
        return inside

    def add(self, point: FloatArray, slope: FloatArray) -> None:
        """Note a prediction, and cut away the outcomes that lose against it."""
        self.points.append(point)
        self.slopes.append(slope)
        normal = slope[:-1] - slope[-1] if self.simplex else slope
        here = point[: self._middle.size]
        # Outcomes with slope.(y - point) <= 0 lose; only a cut through the middle or beyond shrinks the ellipsoid.
        if float(normal @ (self._middle - here)) <= 1e-12:
            self._cut(-normal)

    def mixture(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weigh all predictions so that the best outcome gains least; those without weight are left out."""
        points, slopes = np.array(self.points), np.array(self.slopes)
        paid = (slopes * points).sum(axis=1)
        k, d = points.shape
        if self.simplex:  # variables: weights and the gain; one row per class
            rows = np.hstack([(slopes - paid[:, None]).T, -np.ones((d, 1))])
            objective, limits = np.append(np.zeros(k), 1.0), np.zeros(d)
        else:  # variables: weights and what each coordinate gains at its better end
            low, high = self.space.bounds
            rows = np.vstack([np.hstack([(slopes * end).T, -np.eye(d)]) for end in (low, high)])
            objective, limits = np.append(-paid, np.ones(d)), np.zeros(2 * d)
        equal = np.append(np.ones(k), np.zeros(rows.shape[1] - k))[None]
        bounds = [(0.0, None)] * k + [(None, None)] * (rows.shape[1] - k)
        found = linprog(objective, A_ub=rows, b_ub=limits, A_eq=equal, b_eq=[1.0], bounds=bounds, method="highs")
        solved: Any = found.x if found.status == 0 else None
        weights = np.full(k, 1.0 / k) if solved is None else np.maximum(solved[:k], 0.0)
        kept = weights > 1e-12
        return points[kept], slopes[kept], weights[kept] / weights[kept].sum()

    def _violated(self) -> FloatArray | None:
        """The outward normal of a bound that the middle violates."""
        below, above = self._low - self._middle, self._middle - self._high
        worst = int(np.argmax(np.maximum(below, above)))
        excess = float(max(below[worst], above[worst]))
        if self.simplex and float(self._middle.sum()) - 1.0 > max(excess, 0.0):
            return np.ones(self._middle.size)
        if excess <= 0:
            return None
        normal = np.zeros(self._middle.size)
        normal[worst] = 1.0 if above[worst] > below[worst] else -1.0
        return normal

    def _cut(self, normal: FloatArray) -> None:
        """Keep the half of the ellipsoid against a normal."""
        n = self._middle.size
        through = self._shape @ normal
        size = float(np.sqrt(max(float(normal @ through), 1e-300)))
        step = through / size
        if n == 1:
            self._middle = self._middle - step / 2
            self._shape = self._shape / 4
            return
        self._middle = self._middle - step / (n + 1)
        self._shape = n**2 / (n**2 - 1) * (self._shape - 2 / (n + 1) * np.outer(step, step))
