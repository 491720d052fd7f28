"""Decision calibration: one forecaster to which every decision maker may simply best respond.

On every region where an action is the best response, of the forecasts as they
are and of the forecasts as they were, the mean error is taken out, and before
that the error of what these best responses promise (docs/theory.md, section 9;
`patches` has the order). Where both promises hold, no decision maker's realised
utility falls: ``E u(BR_F, Y) = E u(BR_F, G) <= E val(G) = E u(BR_G, Y)``. They
hold up to the noise of the sample, and so does the inequality.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from prudent.arrays import FloatArray, IntArray, finite_array, non_negative, probability
from prudent.errors import InputError
from prudent.guarantees import DecisionCalibrated, UtilityCalibrated
from prudent.guarantees.base import Guarantee, positive_integer
from prudent.moments import MomentEstimates, estimate_moments
from prudent.problem import DecisionProblem
from prudent.progress import ProgressLine
from prudent.recalibration.base import (
    Pairs,
    Recalibrator,
    read_pairs,
    recalibrator_from_dict,
    recalibrator_to_dict,
)
from prudent.recalibration.decision_makers import decision_makers
from prudent.recalibration.patches import CURRENT, Patch, PatchSearch, patched, sources_of
from prudent.spaces import Space

__all__ = ["DecisionCalibrator", "require_problems", "shared_space"]


class DecisionCalibrator(Recalibrator):
    """Repair forecasts until best responding is right, for one decision problem or for hundreds at once.

    Parameters
    ----------
    problems : DecisionProblem or sequence of them
        With one outcome space.
    tolerance : "auto" or float
        A region is patched where its moment exceeds this, in outcome units, and a promise where it is off by more than
        this times the largest reward; "auto": 2 to 2.5 standard errors, the more the more there are.
    max_rounds : int
        Sweeps over all problems.
    validation_fraction : float
        Part of the rows that decides where to stop and measures what is left.
    start : fitted recalibrator, optional
        Begin with its output, and keep every decision maker at least as well off as with it, up to the noise of the
        sample. It is copied, and clones keep it fitted.
    random_state : int, RandomState or None
        For the split.
    verbose : bool
        Show progress in a terminal. Ctrl-C keeps the best state so far.

    Attributes
    ----------
    guarantee_ : DecisionCalibrated
        What the output satisfies, up to ``residuals_``.
    residuals_ : MomentEstimates
        Moments of that guarantee on the held-out rows, with simultaneous 95% intervals; ``residuals_before_`` those
        of the forecasts as they were.
    decision_makers_ : DecisionMakers
        Utility before and after, and what best responding can still lose.
    patches_ : list of Patch
    n_rounds_ : int
        Sweeps that left a patch.
    squared_error_before_, squared_error_after_ : float
        On the held-out rows.
    fitting_errors_ : list of float
        On the fitting rows, before and after every patch; never rising.
    skipped_ : tuple of str
        Regions that were not patched and have too few rows to be: fewer than 30, or weights that are worth fewer.
    interrupted_ : bool

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = rng.random(4000)
    >>> outcomes = (rng.random(4000) < 0.35 + 0.3 * forecasts).astype(float)
    >>> calibrator = prudent.DecisionCalibrator(problem, random_state=0).fit(forecasts, outcomes)
    >>> repaired = calibrator.transform(forecasts)
    >>> prudent.audit(repaired, outcomes, calibrator.guarantee_, problem=problem).verdict.kind
    <VerdictKind.TRUST: 'trust'>
    """

    _kind = "decision"

    def __init__(
        self,
        problems: Any,
        *,
        tolerance: Any = "auto",
        max_rounds: int = 20,
        validation_fraction: float = 0.25,
        start: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.problems = problems
        self.tolerance = tolerance
        self.max_rounds = max_rounds
        self.validation_fraction = validation_fraction
        self.start = start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Find patches on one part of the rows; the other part says where to stop."""
        problems = require_problems(self.problems)
        rounds = positive_integer(self.max_rounds, "max_rounds")
        tolerance = _tolerance(self.tolerance)
        space = shared_space(problems)
        start = _fitted_start(self.start, space)
        pairs = read_pairs(X, y, sample_weight, space)
        fitting, held_out = (pairs.take(rows) for rows in self._split(len(pairs.forecasts)))
        repair = PatchSearch(problems, space, tolerance, fitting, held_out, start)
        line = ProgressLine("decision calibration", bool(self.verbose))
        try:
            interrupted = not repair.run(rounds, line)
            line.show(1, 1, "measuring what is left")
            skipped = repair.skipped()
            measured = _measured(problems, space, repair.patches, start, held_out)
        finally:
            line.close()
        # Only now, so that an interrupt while measuring leaves nothing half fitted.
        self._set(space, problems, repair.patches, start)
        self.interrupted_, self.skipped_ = interrupted, skipped
        self.n_rounds_, self.fitting_errors_ = repair.rounds_with_patches, repair.fitting_errors
        for name, value in measured.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does, but keep ``start`` fitted: it is data, not a recipe."""
        parameters = self.get_params(deep=False)
        start = parameters.pop("start")
        twin = type(self)(**{name: clone(value, safe=False) for name, value in parameters.items()}, start=start)
        for name in ("_metadata_request", "_sklearn_output_config"):  # what else scikit-learn carries over
            if hasattr(self, name):
                setattr(twin, name, deepcopy(getattr(self, name)))
        return twin

    def intended_space(self, columns: int) -> Space:  # noqa: ARG002  # the problems have it
        """The space of the problems."""
        return shared_space(require_problems(self.problems))

    def _split(self, n: int) -> tuple[IntArray, IntArray]:
        share = probability(self.validation_fraction, "validation_fraction")
        order = check_random_state(self.random_state).permutation(n)
        held_out = max(2, round(share * n))
        if n - held_out < 2:
            raise InputError(f"forecasts must have enough rows to hold some out; got {n} sample(s).")
        return np.sort(order[held_out:]), np.sort(order[:held_out])

    def _set(self, space: Space, problems: tuple[DecisionProblem, ...], patches: list[Patch], start: Any) -> None:
        self.space_, self.problems_, self.patches_, self.start_ = space, problems, patches, start
        self.guarantee_ = DecisionCalibrated(problems)
        self.n_features_in_ = space.dimension

    def _moved(self, forecasts: FloatArray) -> FloatArray:
        return patched(self.problems_, self.space_, self.patches_, sources_of(forecasts, self.start_, self.space_))

    def _describe(self) -> dict[str, Any]:
        start = None
        if self.start_ is not None:
            if not isinstance(self.start_, Recalibrator):
                raise InputError("start must be one of the library's recalibrators to be saved.")
            start = recalibrator_to_dict(self.start_)
        return {
            "problems": [problem.to_dict() for problem in self.problems_],
            "start": start,
            "patches": [
                {"problem": patch.problem, "source": patch.source, "shifts": patch.shifts.tolist()}
                for patch in self.patches_
            ],
        }

    @classmethod
    def _rebuild(cls, content: dict[str, Any], space: Space) -> Self:
        problems = tuple(DecisionProblem.from_dict(problem) for problem in content["problems"])
        start = None if content["start"] is None else recalibrator_from_dict(content["start"])
        patches = []
        for patch in content["patches"]:
            number, source = int(patch["problem"]), int(patch["source"])
            shifts = finite_array(patch["shifts"], "shifts")
            if not 0 <= number < len(problems) or not CURRENT <= source <= (start is not None):
                raise ValueError("a patch must name one of the problems and sources.")
            if shifts.shape != problems[number].rewards.shape:
                raise ValueError("a patch must have one shift per action and coordinate.")
            patches.append(Patch(number, source, shifts))
        calibrator = cls(problems, start=start)
        calibrator._set(space, require_problems(problems), patches, start)
        return calibrator


def _measured(
    problems: tuple[DecisionProblem, ...], space: Space, patches: list[Patch], start: Any, rows: Pairs
) -> dict[str, Any]:
    """What a fit says of held-out rows, by the names of its attributes."""
    sources = sources_of(rows.forecasts, start, space)
    baseline, moved = sources[-1], patched(problems, space, patches, sources)

    def moments(guarantee: Guarantee, forecasts: FloatArray) -> MomentEstimates:
        return estimate_moments(guarantee, space, forecasts, rows.outcomes, rows.weights, confidence=0.95)

    regions = DecisionCalibrated(problems)
    promise = moments(UtilityCalibrated(problems), moved)
    return {
        "squared_error_before_": rows.squared_error(baseline),
        "squared_error_after_": rows.squared_error(moved),
        "residuals_before_": moments(regions, baseline),
        "residuals_": moments(regions, moved),
        "decision_makers_": decision_makers(problems, rows, baseline, moved, promise),
    }


def _fitted_start(start: Any, space: Space) -> Any:
    """A copy of the recalibrator to start from, so that fitting it again changes nothing here."""
    from sklearn.frozen import FrozenEstimator

    while isinstance(start, FrozenEstimator):
        start = start.estimator
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


def require_problems(problems: Any) -> tuple[DecisionProblem, ...]:
    """Read one problem or several that share an outcome space."""
    members = (problems,) if isinstance(problems, DecisionProblem) else problems
    members = tuple(members) if isinstance(members, Iterable) and not isinstance(members, str) else ()
    if not members or not all(isinstance(member, DecisionProblem) for member in members):
        raise InputError(f"problems must be a DecisionProblem or a non-empty list of them; got {problems!r}.")
    shared = shared_space(members)
    for position, member in enumerate(members):
        if not member.space.same_as(shared):
            raise InputError(
                f"problems must share one outcome space; one has {shared!r}, number {position + 1} has "
                f"{member.space!r}."
            )
    return members


def shared_space(problems: tuple[DecisionProblem, ...]) -> Space:
    """The space of the first problem that names its classes: with the others unnamed spaces agree, whoever is first."""
    named = (member.space for member in problems if getattr(member.space, "classes", None) is not None)
    return next(named, problems[0].space)


def _tolerance(tolerance: Any) -> float | None:
    if isinstance(tolerance, str):
        if tolerance != "auto":
            raise InputError(f"tolerance must be 'auto' or a number of at least 0; got {tolerance!r}.")
        return None
    return non_negative(tolerance, "tolerance")
