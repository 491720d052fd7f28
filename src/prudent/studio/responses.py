"""Results of the library as the numbers that the page draws."""

from typing import Any

import numpy as np

from prudent.formatting import records
from prudent.policies import Band, Policy, SafetyPolicy
from prudent.spaces import Box
from prudent.studio.policy_map import density, map_kind, region_map
from prudent.studio.schemas import (
    Bars,
    Case,
    Curve,
    DecisionBand,
    ExplanationAnswer,
    LadderAnswer,
    Moment,
    PolicyAnswer,
    Question,
    RungAnswer,
    StressAnswer,
    StressRow,
    VerdictAnswer,
)
from prudent.studio.session import Rows, Session, about

# A verdict is about these data, whatever guarantee or slack was picked for the policy, so its numbers are others.
_BELOW = "The numbers below hold for the guarantee and the slack chosen, which may allow larger or smaller errors."


def answer_policy(session: Session, question: Question) -> PolicyAnswer:
    """Say what to do, and what it guarantees."""
    problem, rows, fitted = session.problem(question), session.rows(question), session.policy(question)
    policy, certificate = fitted.policy, fitted.policy.certificate_
    best = problem.best_mixtures(rows.forecasts)
    plug_in = problem.expected_utility(best, rows.forecasts, rows.weights)
    histogram, kind = _histogram(rows), map_kind(problem.space)
    regions = None
    if kind is not None:
        crowds = rows.sample.cache.get("density", lambda: density(problem.space, rows.forecasts, rows.weights))
        regions = region_map(policy, kind, crowds)
    bands = () if histogram is None else policy.bands()
    return PolicyAnswer(
        rows=len(rows.forecasts),
        left_out=rows.table.left_out,
        rungs=fitted.rungs,
        slack=float(np.max(policy.slack_.radius, initial=0.0)),
        guaranteed=certificate.lower,
        best_possible=certificate.upper,
        proven=certificate.status == "optimal",
        certificate=str(certificate),
        nominal=fitted.nominal,
        best_respond=plug_in,
        cost_of_caution=plug_in - fitted.nominal,
        play_safe=SafetyPolicy(problem).certificate_.lower,
        actions=[str(action) for action in problem.actions],
        shares=fitted.shares.tolist(),
        shares_best_respond=(rows.weights @ best).tolist(),
        fit_seconds=fitted.seconds,
        curve=None if histogram is None else _curve(policy, bands),
        bands=[DecisionBand(first=band.first, last=band.last, played=str(band)) for band in bands],
        regions=regions,
        histogram=histogram,
    )


def answer_verdict(session: Session, question: Question) -> VerdictAnswer:
    """Say whether to believe the forecasts in this decision."""
    found = session.audit(question)
    rows = records(found.columns)
    order = found.p_values.argsort(kind="stable")[:12]
    moments = [Moment.model_validate(rows[k] | {"name": rows[k]["moment"]}) for k in order]
    return VerdictAnswer(
        kind=found.verdict.kind.value,
        sentence=f"{found.verdict} {_BELOW}",
        confidence=found.confidence,
        moments=moments,
    )


def answer_stress(session: Session, question: Question) -> StressAnswer:
    """Show three policies in all worlds."""
    stress = session.stress(question)
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
    return StressAnswer(policies=rows, lower=optimum.lower, upper=optimum.upper)


def answer_ladder(session: Session, question: Question) -> LadderAnswer:
    """Show what each guarantee is worth."""
    ladder = session.ladder(question)
    rungs = [RungAnswer.model_validate(rung, from_attributes=True) for rung in ladder.rungs]
    return LadderAnswer(rungs=rungs, best=ladder.best.name, confidence=ladder.confidence)


def answer_explanation(session: Session, case: Case) -> ExplanationAnswer:
    """Say why this action at this forecast."""
    policy = session.policy(case.question).policy
    with about("forecast"):
        told = policy.explain(case.forecast)
    named = {"story": str(told), "actions": [str(action) for action in told.actions]}
    return ExplanationAnswer.model_validate(vars(told) | named)


def _curve(policy: Policy, bands: tuple[Band, ...]) -> Curve:
    """Evenly spaced forecasts, and both sides of every threshold, so that jumps stand upright."""
    low, high = policy._problem.space.interval
    ends = [end for band in bands for end in (band.first, band.last)]
    points: Any = np.unique(np.concatenate([np.linspace(low, high, 241), ends]))
    return Curve(
        forecast=points.tolist(),
        shares=policy.predict_proba(points).T.tolist(),
        belief=policy.worst_case_belief(points)[:, 0].tolist(),
    )


def _histogram(rows: Rows) -> Bars | None:
    """Count forecasts with one coordinate."""
    space = rows.sample.space
    if not isinstance(space, Box) or space.dimension > 1:
        return None

    def compute() -> Bars:
        ends = (space.lower[0], space.upper[0])
        shares, edges = np.histogram(rows.forecasts[:, 0], bins=60, range=ends, weights=rows.weights)
        return Bars(edges=edges.tolist(), counts=(shares * len(rows.weights)).tolist())

    return rows.sample.cache.get("histogram", compute)
