"""Decision calibration: one forecaster to which every decision maker may simply best respond.

On every region where an action is the best response to the current or to the
original forecasts, the mean error is subtracted, and before that the error of
the utility that these best responses promise (docs/theory.md, section 9;
`patches` has the order). Where both promises hold, no decision maker's realised
utility falls: ``E u(BR_F, Y) = E u(BR_F, G) <= E val(G) = E u(BR_G, Y)``. They
hold up to the noise of the sample, and so does the inequality.

For any finite guarantee Newton steps along its own tests do the same, until its moments vanish.
"""

import warnings
from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import _clone_parametrized
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from prudent.arrays import Context, FloatArray, positive_integer
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import FileFormatError, InputError
from prudent.files import Record
from prudent.guarantees import DecisionCalibrated
from prudent.guarantees.base import Guarantee, count_moments, guarantee_from_dict
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.names import read_guarantee
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator, residual_moments, squared_error
from prudent.recalibration.patches import CURRENT, Patch, PatchSearch, Problems, with_patches
from prudent.recalibration.segmented import best_recalibrator
from prudent.spaces import Space

_HELD_OUT = 0.25  # share of the rows that decides where to stop and measures what is left


class DecisionCalibrator(Recalibrator):
    """Repair forecasts until best responding is right, for one decision problem or for hundreds at once.

    Parameters
    ----------
    problems : DecisionProblem or sequence of them
        With one outcome space.
    max_rounds : int
        Sweeps over all problems. A region or a promise is patched where it is off by more than 2 to 2.5 standard
        errors, the more the more there are.
    start : "auto", fitted recalibrator or None
        Begin with its output, and keep every decision maker at least as well off as with it, up to the noise of the
        sample. It is copied, and clones keep it fitted. "auto" takes the best of the usual recalibrations, such as
        Platt or temperature scaling, if one lowers squared error on the held-out rows; None begins with the forecasts.
    random_state : int, RandomState or None
        For the split.

    Attributes
    ----------
    guarantee_ : DecisionCalibrated
        What the output satisfies, up to ``residuals_``.
    residuals_ : MomentEstimates
        Moments of that guarantee on the held-out rows, a quarter of all, with simultaneous 95% intervals;
        ``residuals_before_`` those of the forecasts as they were.
    patches_ : list of Patch
    squared_error_before_, squared_error_after_ : float
        On the held-out rows.
    fitting_errors_ : list of float
        On the fitting rows, before and after every patch; never rising.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = rng.random(4000)
    >>> outcomes = (rng.random(4000) < 0.35 + 0.3 * forecasts).astype(float)
    >>> calibrator = prudent.recalibration.DecisionCalibrator(problem, random_state=0).fit(forecasts, outcomes)
    >>> repaired = calibrator.transform(forecasts)
    >>> prudent.audit(problem, repaired, outcomes, guarantee=calibrator.guarantee_).rejected
    ()
    """

    _kind = "decision"
    _fields = ("problems", "start", "patches")

    def __init__(
        self,
        problems: Any,
        *,
        max_rounds: int = 20,
        start: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.problems = problems
        self.max_rounds = max_rounds
        self.start = start
        self.random_state = random_state

    def _fit(self, rows: MemoryRows) -> None:
        """Find patches on one part of the rows; the other part says where to stop."""
        problems, _ = read_problems(self.problems)
        rounds = positive_integer(self.max_rounds, "max_rounds")
        n = len(rows.forecasts)
        order, size = check_random_state(self.random_state).permutation(n), max(2, round(_HELD_OUT * n))
        if n - size < 2:
            raise InputError(f"forecasts must have enough rows to hold some out; got {n} sample(s).")
        fitting, held_out = (rows.take(np.sort(part)) for part in (order[size:], order[:size]))
        automatic = isinstance(self.start, str) and self.start == "auto"
        start = best_recalibrator(fitting, held_out) if automatic else _fitted_start(self.start, self.space_)
        search = PatchSearch(problems, fitting, held_out, start, rounds)
        search.run()
        steps, (before, after) = search.steps, search.followers[CURRENT - 1 :]
        self._set(problems, [step.patch for step in steps[1:]], start)
        self.residuals_before_, self.residuals_ = (
            residual_moments(held_out, forecasts, self.guarantee_) for forecasts in (before, after)
        )
        self.fitting_errors_ = [step.fitting_error for step in steps]
        self.squared_error_before_, self.squared_error_after_ = steps[0].held_out_error, steps[-1].held_out_error

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does, but keep ``start`` fitted: it is data, not a recipe."""
        twin: Self = _clone_parametrized(self)
        twin.start = self.start
        return twin

    def intended_space(self, width: int) -> Space:  # the problems have it
        """The space of the problems."""
        return read_problems(self.problems)[1]

    def _set(self, problems: Problems, patches: list[Patch], start: Any) -> None:
        self.problems_, self.patches_, self.start_ = problems, patches, start
        self.guarantee_ = DecisionCalibrated(problems)

    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        return with_patches(forecasts, self.problems_, self.start_, self.patches_)[CURRENT]

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        contents = record.typed("problems", list)
        problems, shared = read_problems([DecisionProblem.from_dict(content) for content in contents])
        if not shared.same_as(space):
            raise FileFormatError("space must be that of the problems.")
        start = None if record["start"] is None else _fitted_start(cls._rebuild(record["start"]), space)
        patches = []
        for content in record.typed("patches", list):
            patch = Record(content, "patch", "problem", "source", "shifts")
            patch.number("source", CURRENT, start is not None)
            shape = problems[patch.count("problem", len(problems) - 1)].rewards.shape
            patches.append(Patch(patch["problem"], patch.typed("source", int), patch.array("shifts", *shape)))
        calibrator = cls(problems, start=start)
        calibrator.space_ = space
        calibrator._set(problems, patches, start)
        return calibrator


def _fitted_start(start: Any, space: Space) -> Any:
    """A copy of the recalibrator to start from, so that fitting it again changes nothing here."""
    if start is None:
        return None
    if not hasattr(start, "transform"):
        raise InputError(f"start must be a fitted recalibrator; got {type(start).__name__}.")
    known = getattr(start, "space_", space)
    if not space.same_as(known):
        raise InputError(
            f"start must be fitted for the outcome space of the problems, {space!r}; its space is {known!r}. Give it "
            f"space={space!r}."
        )
    return deepcopy(start)


def read_problems(problems: Any) -> tuple[Problems, Space]:
    """Read one problem or several, and the outcome space that they share: one that names its classes, if any does."""
    members = DecisionCalibrated(problems).problems
    spaces = [member.space for member in members]
    shared = next((space for space in spaces if space.classes is not None), spaces[0])
    for space in spaces:
        if not space.same_as(shared):
            raise InputError(f"problems must share one outcome space; got {shared!r} and {space!r}.")
    return members, shared


_VANISHING = 1e-8  # where rounding hides whether squared error falls
_PINNINGS = 3  # of forecasts at a bound, until the step agrees with them


class GuaranteeCalibrator(Recalibrator):
    """Make forecasts satisfy a guarantee, by least squares on its tests, round by round.

    Each round adds the combination of the tests that makes all moments vanish
    if nothing else changes, returns to the outcome space, and evaluates the
    tests at the forecasts as they are then. Squared error on the fitting rows
    never rises. Where tests jump (bins, decision regions) some moments may stay
    a little off.

    Parameters
    ----------
    guarantee : Guarantee or str
        Any finite one: ``"unbiased"`` shifts forecasts until they are right on average, ``"bins:10"`` within each
        bin. What depends on a sample is fixed on the first forecasts.
    space : Box or Simplex, optional
        [0, 1] by default, per column.
    max_rounds : int

    Attributes
    ----------
    guarantee_ : Guarantee
        Resolved; what the output satisfies.
    residuals_ : MomentEstimates
        What is left on rows held out in turn: each fold is moved by rounds found on the others. With simultaneous 95%
        intervals; None with fewer than ten rows.
    n_rounds_ : int
    converged_ : bool
        Every moment on the fitting rows is below 1e-8 of its largest possible size; else a warning says what is left.
    squared_error_before_, squared_error_after_ : float

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < 0.3 + 0.4 * forecasts).astype(float)
    >>> guarantee = prudent.guarantees.SelfOrthogonal(intercept=True)
    >>> calibrator = prudent.recalibration.GuaranteeCalibrator(guarantee).fit(forecasts, outcomes)
    >>> prudent.audit(None, calibrator.transform(forecasts), outcomes, guarantee=guarantee).rejected
    ()
    """

    _kind = "guarantee"
    _fields = ("guarantee", "coefficients")

    def __init__(self, guarantee: Guarantee | str, *, space: Space | None = None, max_rounds: int = 100) -> None:
        self.guarantee = guarantee
        self.space = space
        self.max_rounds = max_rounds

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, context: Any = None) -> Self:
        """Find the rounds' coefficients."""
        read_guarantee(self.guarantee, finite=True)
        super().fit(X, y, sample_weight=sample_weight, context=context)
        if not self.converged_:
            warnings.warn(
                f"after {self.n_rounds_} round(s) a moment of {self._left:.2g} of its largest possible size is left on "
                f"the fitting rows: the guarantee holds up to that. More rounds (max_rounds) help where the tests are "
                f"continuous.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @property
    def n_rounds_(self) -> int:
        """Rounds that were taken."""
        return len(self.coefficients_)

    @property
    def converged_(self) -> bool:
        """Whether every moment on the fitting rows vanishes."""
        return self._left <= _VANISHING

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the guarantee."""
        return self.guarantee_.context_columns

    def _fit(self, rows: MemoryRows) -> None:
        """Take Newton steps with a line search."""
        most, space, current = positive_integer(self.max_rounds, "max_rounds"), self.space_, rows.forecasts
        known = getattr(self, "guarantee_", self.guarantee)  # folds use what all rows have resolved
        self.guarantee_ = rows.resolve(read_guarantee(known))
        self.coefficients_: list[FloatArray] = []
        self.squared_error_before_ = self.squared_error_after_ = squared_error(rows, current)
        while True:
            tests = self.guarantee_.evaluate(current, space, rows.context)
            step, self._left = _newton_step(tests, rows, current)
            if self.converged_ or self.n_rounds_ == most:
                return
            for _ in range(30):
                moved = space.project(current + tests.tilts(step))
                error = squared_error(rows, moved)
                if error < self.squared_error_after_:
                    break
                step = step * 0.5
            else:
                return  # no step along the tests lowers the error: what is left is due to the bounds of the space
            current, self.squared_error_after_ = moved, error
            self.coefficients_.append(step)

    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        for step in self.coefficients_:
            tests = self.guarantee_.evaluate(forecasts, self.space_, context)
            forecasts = self.space_.project(forecasts + tests.tilts(step))
        return forecasts

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        guarantee = guarantee_from_dict(record["guarantee"])
        found = list(record.array("coefficients", None, count_moments(guarantee, space)))
        calibrator = cls(guarantee)
        calibrator.space_, calibrator.guarantee_, calibrator.coefficients_ = space, guarantee, found
        return calibrator


def _newton_step(tests: EvaluatedTests, rows: MemoryRows, current: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients whose shift makes all moments vanish, were nothing else to change; and the largest moment.

    Forecasts at a bound that the shift would push further out do not move, so the others have to make up for them.
    Their errors have the other sign, so squared error falls all the same.
    """
    moments = tests.moments(rows.known_outcomes - current, rows.weights)
    d, space = tests.dimension, rows.space
    low, high = space.bounds
    if tests.scalar:  # the coordinates are separate problems with one table
        table, weights, right = tests.values, rows.weights, moments.reshape(-1, d).T
    else:
        table = tests.values.transpose(0, 2, 1).reshape(-1, tests.n_moments)
        weights, right = np.repeat(rows.weights, d), moments[None]
    free = np.ones_like(current, dtype=bool)
    for _ in range(_PINNINGS + 1):
        masks = free.reshape(len(weights), -1).T
        grams = [table.T @ ((weights * mask)[:, None] * table) for mask in masks]
        # Tests may add up to one another, so a Gram matrix need not have full rank.
        solved = [np.linalg.lstsq(gram, side, rcond=1e-10)[0] for gram, side in zip(grams, right, strict=True)]
        step = np.stack(solved, axis=1).reshape(-1)
        shifted = current + tests.tilts(step)
        moving = (space.project(shifted) != current) | (shifted == current) | ((current > low) & (current < high))
        if (free == moving).all():
            break
        free = moving
    reach = np.sqrt(np.repeat(weights @ table**2, len(right))) * space.widths.max()
    return step, float(np.max(np.abs(moments[reach > 0]) / reach[reach > 0], initial=0.0))
