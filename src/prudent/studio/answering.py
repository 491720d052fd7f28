"""Results of the library as the numbers that the page draws; nothing is decided here."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.policies import Band, Policy, SafetyPolicy, action_bands
from prudent.studio.answers import (
    Bars,
    Curve,
    DecisionBand,
    ExplanationAnswer,
    LadderAnswer,
    Moment,
    PolicyAnswer,
    RungAnswer,
    StressAnswer,
    StressRow,
    VerdictAnswer,
)
from prudent.studio.mapping import region_map
from prudent.studio.questions import Case, Question
from prudent.studio.workshop import QuestionError, Workshop

__all__ = ["answer_explanation", "answer_ladder", "answer_policy", "answer_stress", "answer_verdict"]

_POINTS = 241
_MOMENTS = 12
# A verdict is about these data, whatever guarantee or slack was picked for the policy, so its numbers are others.
_BELOW = "The numbers below hold for the guarantee and the slack chosen, which may allow larger or smaller errors."


def answer_policy(workshop: Workshop, question: Question, inputs: str) -> PolicyAnswer:
    """Say what to do, and what it guarantees."""
    start = perf_counter()
    weighed, fitted, believing = workshop.weighed(question), workshop.policy(question), workshop.believing(question)
    sample, policy, problem = weighed.sample, fitted.policy, workshop.problem(question)
    played = workshop.played(question)
    nominal = problem.expected_utility(played, sample.forecasts, weighed.weights)
    flat = weighed.histogram is not None
    bands = action_bands(policy) if flat else ()
    certificate = policy.certificate_
    return PolicyAnswer(
        inputs=inputs,
        rows=len(sample.forecasts),
        left_out=weighed.left_out,
        snapped=policy.n_snapped_,
        rungs=fitted.rungs,
        slack=float(np.max(policy.slack_.radius, initial=0.0)),
        guaranteed=certificate.lower,
        best_possible=certificate.upper,
        proven=certificate.status == "optimal",
        certificate=str(certificate),
        nominal=nominal,
        best_respond=believing.utility,
        cost_of_caution=believing.utility - nominal,
        play_safe=SafetyPolicy(problem).certificate_.lower,
        actions=[str(action) for action in problem.actions],
        shares=(weighed.weights @ played).tolist(),
        shares_best_respond=believing.shares.tolist(),
        fit_seconds=fitted.seconds,
        curve=_curve(policy, bands) if flat else None,
        bands=[DecisionBand(first=band.first, last=band.last, played=str(band)) for band in bands],
        regions=None if weighed.kind is None else region_map(policy, weighed.kind, weighed.crowds),
        histogram=None if weighed.histogram is None else _histogram(*weighed.histogram),
        seconds=perf_counter() - start,
    )


def answer_verdict(workshop: Workshop, question: Question, inputs: str) -> VerdictAnswer:
    """Say whether to believe the forecasts in this decision."""
    start = perf_counter()
    found = workshop.audit(question)
    columns = found.columns
    moments = [
        Moment(
            name=str(columns["moment"][position]),
            estimate=float(columns["estimate"][position]),
            lower=float(columns["lower"][position]),
            upper=float(columns["upper"][position]),
            p_value=float(columns["p-value"][position]),
        )
        for position in found.p_values.argsort(kind="stable")[:_MOMENTS]
    ]
    return VerdictAnswer(
        inputs=inputs,
        kind=found.verdict.kind.value,
        sentence=f"{found.verdict} {_BELOW}",
        confidence=found.confidence,
        moments=moments,
        seconds=perf_counter() - start,
    )


def answer_stress(workshop: Workshop, question: Question, inputs: str) -> StressAnswer:
    """Show three policies in all worlds."""
    start = perf_counter()
    stress = workshop.stress(question)
    rows = [
        StressRow(
            policy=name,
            nominal=float(stress.nominal[i]),
            realised=None if stress.realised is None else float(stress.realised[i]),
            worst=float(stress.worst[i]),
            under=stress.under[i].tolist(),
        )
        for i, name in enumerate(stress.names)
    ]
    optimum = stress.optimum
    return StressAnswer(
        inputs=inputs, policies=rows, lower=optimum.lower, upper=optimum.upper, seconds=perf_counter() - start
    )


def answer_ladder(workshop: Workshop, question: Question, inputs: str) -> LadderAnswer:
    """Show what each guarantee is worth."""
    start = perf_counter()
    ladder = workshop.ladder(question)
    fields = ("name", "holds", "p_value", "slack", "guaranteed", "nominal", "given_up", "realised")
    rungs = [RungAnswer(**{field: getattr(rung, field) for field in fields}) for rung in ladder.rungs]
    return LadderAnswer(
        inputs=inputs,
        rungs=rungs,
        best=ladder.best.name,
        confidence=ladder.confidence,
        seconds=perf_counter() - start,
    )


def answer_explanation(workshop: Workshop, case: Case, inputs: str) -> ExplanationAnswer:
    """Say why this action at this forecast."""
    start = perf_counter()
    policy = workshop.policy(case.question).policy
    try:
        told = policy.explain(case.forecast)
    except ValueError as error:
        raise QuestionError(str(error), "forecast") from error
    return ExplanationAnswer(
        inputs=inputs,
        story=str(told),
        actions=[str(action) for action in told.actions],
        probabilities=list(told.probabilities),
        belief=list(told.belief),
        utility_at_forecast=list(told.utility_at_forecast),
        utility_at_belief=list(told.utility_at_belief),
        seconds=perf_counter() - start,
    )


def _curve(policy: Policy, bands: tuple[Band, ...]) -> Curve:
    """Evenly spaced forecasts, and both sides of every threshold, so that jumps stand upright."""
    low, high = (float(bound[0]) for bound in policy._problem.space.bounds)
    ends = [end for band in bands for end in (band.first, band.last)]
    points: Any = np.unique(np.concatenate([np.linspace(low, high, _POINTS), ends]))
    return Curve(
        forecast=points.tolist(),
        shares=policy.predict_proba(points).T.tolist(),
        belief=policy.worst_case_belief(points)[:, 0].tolist(),
    )


def _histogram(counts: FloatArray, edges: FloatArray) -> Bars:
    return Bars(edges=edges.tolist(), counts=counts.tolist())
