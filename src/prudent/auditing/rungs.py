"""The ladder of guarantees: what each is worth on these data, and on which rung to stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.ambiguity import Slack
from prudent.arrays import Backend, data_frame, probability
from prudent.auditing.evidence import Evidence
from prudent.auditing.inspection import lay_out
from prudent.auditing.labelled_table import read_evidence
from prudent.errors import InputError
from prudent.guarantees import (
    Binned,
    Classwise,
    DecisionCalibrated,
    Nothing,
    SelfOrthogonal,
    Unbiased,
    UtilityCalibrated,
)
from prudent.guarantees.base import Guarantee
from prudent.policies import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.writing import written

__all__ = ["GuaranteeLadder", "Rung", "climb", "guarantee_ladder", "usual_guarantees"]


@dataclass(frozen=True, eq=False)
class Rung:
    """One guarantee on the ladder.

    Attributes
    ----------
    name : str
    guarantee : Guarantee
    p_value : float
        Adjusted for all moments of this rung and for the number of rungs.
    holds : bool
        No violation is found.
    slack : float
        The largest measured radius, in the guarantee's units of slack.
    guaranteed : float
        What the best policy under this guarantee, with its measured slack, gets in its worst world.
    nominal : float
        What that policy gets if the forecasts are right.
    given_up : float
        Nominal utility lost against best responding.
    realised : float
        What that policy got on these outcomes.
    policy : RobustPolicy
    """

    name: str
    guarantee: Guarantee
    p_value: float
    holds: bool
    slack: float
    guaranteed: float
    nominal: float
    given_up: float
    realised: float
    policy: RobustPolicy


@dataclass(frozen=True, eq=False)
class GuaranteeLadder:
    """Guarantees from weak to strong, each with what it is worth here; ``best`` is the rung to stand on.

    That is the rung with the highest utility guaranteed under its measured
    slack. A stronger guarantee that merely was not rejected has a large slack
    on a small sample, and so a low guarantee.
    """

    rungs: tuple[Rung, ...]
    confidence: float
    n_rows: int

    @property
    def best(self) -> Rung:
        """The rung with the highest guaranteed utility; of equal ones the first."""
        return self.rungs[int(np.argmax([rung.guaranteed for rung in self.rungs]))]

    @property
    def rung_confidence(self) -> float:
        """Confidence of each rung's slack alone, so high that all hold at once with ``confidence``."""
        return _rung_confidence(self.confidence, [rung.guarantee for rung in self.rungs])

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown."""
        return {
            "guarantee": [rung.name for rung in self.rungs],
            "holds": ["yes" if rung.holds else "no" for rung in self.rungs],
            "p-value": [rung.p_value for rung in self.rungs],
            "slack": [rung.slack for rung in self.rungs],
            "guaranteed": [rung.guaranteed for rung in self.rungs],
            "nominal": [rung.nominal for rung in self.rungs],
            "given up": [rung.given_up for rung in self.rungs],
            "realised": [rung.realised for rung in self.rungs],
        }

    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return one row per rung as a data frame ("pandas", "polars" or "pyarrow")."""
        return data_frame(self.columns, backend)

    def __str__(self) -> str:
        best = self.best
        return (
            f"{lay_out(self.columns, range(len(self.rungs)))}\n"
            f"Stand on {best.name!r}: it guarantees {written(best.guaranteed, 4)} and gives up "
            f"{written(best.given_up, 2)} if the "
            f"forecasts are right.\n"
            f"{self.n_rows:,} rows; all slacks hold at once with {100 * self.confidence:g}% confidence."
        )


def guarantee_ladder(
    forecasts: Any,
    outcomes: Any,
    problem: DecisionProblem,
    guarantees: Sequence[Guarantee] | Mapping[str, Guarantee] | None = None,
    *,
    confidence: float = 0.95,
    method: str = "auto",
    center: str = "zero",
    sample_weight: Any = None,
    groups: Any = None,
    missing: str = "refuse",
    progress: Callable[[str], None] | None = None,
) -> GuaranteeLadder:
    """Audit a ladder of guarantees and compare what they are worth for a decision.

    Parameters
    ----------
    forecasts, outcomes : arrays
        Or Columns of a lazy table and None.
    problem : DecisionProblem
    guarantees : sequence or mapping of name to Guarantee, optional
        By default: nothing, unbiased, self-orthogonal, bins, utility-calibrated, decision-calibrated.
    confidence : float
        With which the slacks of all rungs hold at once.
    method, sample_weight, groups, missing
        As in :func:`prudent.audit`.
    center : {"zero", "measured"}
        Where the measured slack is centred.
    progress : callable, optional
        Called with the name of each rung before it is worked on.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts = rng.random(5000)
    >>> outcomes = (rng.random(5000) < forecasts).astype(float)
    >>> prudent.guarantee_ladder(forecasts, outcomes, problem).best.name
    'utility-calibrated'
    """
    if not isinstance(problem, DecisionProblem):
        raise InputError(f"problem must be a DecisionProblem; got {type(problem).__name__}.")
    if center not in ("zero", "measured"):
        raise InputError(f"center must be 'zero' or 'measured'; got {center!r}.")
    named = _named(guarantees, problem)
    sample = read_evidence(
        forecasts,
        outcomes,
        problem=problem,
        space=None,
        sample_weight=sample_weight,
        groups=groups,
        missing=missing,
    )
    return climb(sample, problem, named, probability(confidence, "confidence"), method, center, progress)


def climb(
    sample: Evidence,
    problem: DecisionProblem,
    named: Mapping[str, Guarantee],
    confidence: float,
    method: str = "auto",
    center: str = "zero",
    progress: Callable[[str], None] | None = None,
) -> GuaranteeLadder:
    """Make the ladder on rows that were read before."""
    each = _rung_confidence(confidence, named.values())

    def rung(name: str) -> tuple[Rung, int]:
        if progress is not None:
            progress(name)
        return _rung(name, named[name], problem, sample, each, method, center, confidence)

    rungs, n_rows = zip(*map(rung, named), strict=True)
    return GuaranteeLadder(rungs, confidence, n_rows[-1])


def _rung(
    name: str,
    guarantee: Guarantee,
    problem: DecisionProblem,
    sample: Evidence,
    confidence: float,
    method: str,
    center: str,
    joint: float,
) -> tuple[Rung, int]:
    """Work out one rung, and say how many rows it rests on."""
    resolved = sample.resolve(guarantee)
    measurement = sample.measure(resolved, confidence, method)
    measured = measurement.estimates
    slack = Slack("audit", center=center).measure(measured, joint).settle(measured.tests, measured.estimates)
    policy = sample.fit(RobustPolicy(problem, resolved, slack=slack))
    utilities = sample.utilities(policy)
    rung = Rung(
        name,
        resolved,
        min(1.0, (1 - joint) / (1 - confidence) * float(measured.p_values.min(initial=1.0))),
        not (measured.p_values < 1 - confidence).any(),
        float(np.max(slack.radius, initial=0.0)),
        policy.value_,
        utilities.nominal,
        utilities.best - utilities.nominal,
        utilities.realised,
        policy,
    )
    return rung, measurement.n_rows


def usual_guarantees(problem: DecisionProblem) -> dict[str, Guarantee]:
    """Return the rungs of a ladder that nobody specified, weak to strong; only the last two know the decision."""
    bins: Guarantee = Binned.uniform(10) if problem.dimension == 1 else Classwise(5)
    return {
        "nothing": Nothing(),
        "unbiased": Unbiased(),
        "self-orthogonal": SelfOrthogonal(intercept=True),
        "bins": bins,
        "utility-calibrated": UtilityCalibrated((problem,)),
        "decision-calibrated": DecisionCalibrated((problem,)),
    }


def _rung_confidence(confidence: float, guarantees: Iterable[Guarantee]) -> float:
    """Share the error between all rungs that measure something."""
    return 1 - (1 - confidence) / max(1, sum(not isinstance(guarantee, Nothing) for guarantee in guarantees))


def _named(
    guarantees: Sequence[Guarantee] | Mapping[str, Guarantee] | None, problem: DecisionProblem
) -> dict[str, Guarantee]:
    if guarantees is None:
        return usual_guarantees(problem)
    named = (
        {str(name): guarantee for name, guarantee in guarantees.items()}
        if isinstance(guarantees, Mapping)
        else {repr(guarantee): guarantee for guarantee in guarantees}
    )
    if not named or len(named) < len(guarantees):
        raise InputError("guarantees must be a non-empty collection of different guarantees.")
    for guarantee in named.values():
        if not isinstance(guarantee, Guarantee) or guarantee.full:
            raise InputError(f"guarantees must be finite guarantees from prudent.guarantees; got {guarantee!r}.")
    return named
