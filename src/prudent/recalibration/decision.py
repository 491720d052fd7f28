"""Decision calibration: one forecaster to which every decision maker may simply best respond.

On every region where an action is the best response, of the forecasts as they
are and of the forecasts as they were, the mean error is taken out (docs/theory.md,
section 9; `patches` has the order). With both, no decision maker's realised utility falls:
``E u(BR_F, Y) = E u(BR_F, G) <= E val(G) = E u(BR_G, Y)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from prudent.arrays import Backend, FloatArray, IntArray, data_frame, finite_array, non_negative, probability
from prudent.errors import InputError
from prudent.guarantees import DecisionCalibrated, UtilityCalibrated
from prudent.guarantees.base import positive_integer
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
from prudent.recalibration.patches import CURRENT, Patch, PatchSearch, sources_of
from prudent.spaces import Space

__all__ = ["DecisionCalibrator", "DecisionMakers", "require_problems", "shared_space"]

_TOLERATED = 0.05  # share of a problem's utility range


@dataclass(frozen=True, eq=False)
class DecisionMakers:
    """What a repair did for every decision maker, on held-out rows.

    Attributes
    ----------
    before, after : arrays of shape (p,)
        Realised utility of best responding to the forecasts as they were, and as they are.
    margin : array of shape (p,)
        Half the width of a 95% interval of the difference, for each decision maker alone.
    shortfall : array of shape (p,)
        Best responding may fall short of what it promises, and so of any policy, by at most this: measured slack of
        utility calibration, for all decision makers at once with 95% confidence.
    tolerance : array of shape (p,)
        5% of each problem's utility range.
    """

    before: FloatArray
    after: FloatArray
    margin: FloatArray
    shortfall: FloatArray
    tolerance: FloatArray

    @property
    def justified(self) -> Any:
        """Where to just best respond is justified: nothing that matters can be lost."""
        return self.shortfall <= self.tolerance

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column."""
        return {
            "decision maker": list(range(len(self.before))),
            "before": self.before,
            "after": self.after,
            "margin": self.margin,
            "shortfall": self.shortfall,
            "just best respond": self.justified,
        }

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return one row per decision maker as a data frame ("pandas", "polars" or "pyarrow")."""
        return data_frame(self.columns, backend)

    def __str__(self) -> str:
        gain = self.after - self.before
        return (
            f"{int(self.justified.sum())} of {gain.size} decision makers may just best respond. Realised utility "
            f"changed by {gain.min():+.3g} to {gain.max():+.3g}, on average by {gain.mean():+.3g} (95% margins up to "
            f"{self.margin.max():.2g}); best responding can fall short of its promise by at most "
            f"{self.shortfall.max():.3g}."
        )


class DecisionCalibrator(Recalibrator):
    """Repair forecasts until best responding is right, for one decision problem or for hundreds at once.

    Parameters
    ----------
    problems : DecisionProblem or sequence of them
        With one outcome space.
    tolerance : "auto" or float
        A region is patched where its moment exceeds this, in outcome units; "auto": 2 to 2.5
        standard errors, the more the more regions there are.
    max_rounds : int
        Sweeps over all problems.
    validation_fraction : float
        Part of the rows that decides where to stop and measures what is left.
    start : fitted recalibrator, optional
        Begin with its output, and keep every decision maker at least as well off as with it.
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
    squared_error_before_, squared_error_after_ : float
        On the held-out rows.
    fitting_errors_ : list of float
        On the fitting rows, after every patch; never rising.
    skipped_ : tuple of str
        Regions with too few rows to be patched.
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
        if self.start is not None and not hasattr(self.start, "transform"):
            raise InputError(f"start must be a fitted recalibrator; got {type(self.start).__name__}.")
        pairs = read_pairs(X, y, sample_weight, space)
        fitting, held_out = self._split(len(pairs.forecasts))
        repair = PatchSearch(problems, tolerance, pairs.take(fitting), pairs.take(held_out), self.start)
        line = ProgressLine("decision calibration", bool(self.verbose))
        try:
            self.interrupted_ = not repair.run(rounds, line)
        finally:
            line.close()
        patches = repair.patches[: repair.best_length()]
        self._set(space, problems, patches, self.start)
        self.n_rounds_, self.fitting_errors_ = repair.rounds, repair.fitting_errors
        self.skipped_ = tuple(sorted(repair.skipped))
        self._assess(pairs.take(held_out))
        return self

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
        sources = sources_of(forecasts, self.start_)
        current = sources[-1]
        for patch in self.patches_:
            regions = self.problems_[patch.problem].best_actions(current if patch.source < 0 else sources[patch.source])
            current = self.space_.project(current + patch.shifts[regions])
        return current

    def _assess(self, rows: Pairs) -> None:
        moved = self._moved(rows.forecasts)
        baseline = sources_of(rows.forecasts, self.start_)[-1]
        self.squared_error_before_ = rows.squared_error(baseline)
        self.squared_error_after_ = rows.squared_error(moved)
        self.residuals_before_, self.residuals_ = (
            estimate_moments(self.guarantee_, self.space_, forecasts, rows.outcomes, rows.weights, confidence=0.95)
            for forecasts in (baseline, moved)
        )
        promise = estimate_moments(
            UtilityCalibrated(self.problems_), self.space_, moved, rows.outcomes, rows.weights, confidence=0.95
        )
        self.decision_makers_ = _decision_makers(self.problems_, rows, baseline, moved, promise)

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


def _decision_makers(
    problems: tuple[DecisionProblem, ...],
    rows: Pairs,
    baseline: FloatArray,
    moved: FloatArray,
    promise: MomentEstimates,
) -> DecisionMakers:
    table = np.empty((3, len(problems)))
    for number, problem in enumerate(problems):
        utilities = problem.linear_utility(rows.outcomes)
        each = np.arange(len(utilities))
        old, new = (utilities[each, problem.best_actions(forecasts)] for forecasts in (baseline, moved))
        gain = new - old
        spread = np.sqrt((rows.weights**2 * (gain - rows.weights @ gain) ** 2).sum())
        table[:, number] = rows.weights @ old, rows.weights @ new, -ndtri(0.025) * spread
    shortfall = np.abs(promise.estimates) + promise.radii
    tolerance = np.array([_TOLERATED * problem.utility_range for problem in problems])
    return DecisionMakers(table[0], table[1], table[2], shortfall, tolerance)


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
