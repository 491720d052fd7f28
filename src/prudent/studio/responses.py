"""Results of the library as the numbers that the page draws."""

from typing import Any

from prudent.report import Report
from prudent.studio.policy_map import region_map
from prudent.studio.schemas import Case, Question
from prudent.studio.session import Session, about

Answer = dict[str, Any]

# A verdict is about these data, whatever guarantee or slack was picked for the policy, so its numbers are others.
_BELOW = "The numbers below hold for the guarantee and the slack chosen, which may allow larger or smaller errors."
_RUNG = ("name", "holds", "p_value", "slack", "guaranteed", "nominal", "given_up", "realised")


def answer_policy(session: Session, question: Question) -> Answer:
    """Say what to do, and what it guarantees."""
    report, rows = session.report(question), session.rows(question)
    problem, policy, certificate = report.problem, report.policy, report.policy.certificate_
    forecasts, weights = report.rows.forecasts, report.rows.weights
    played = [policy.on_rows(report.rows), problem.best_mixtures(forecasts)]
    nominal, best = problem.expected_utilities(played, [forecasts], weights)[:, 0]
    return {
        "rows": len(rows.cases),
        "left_out": rows.left_out,
        "rungs": question.rungs or [report.ladder.best.name],
        "guaranteed": certificate.lower,
        "best_possible": certificate.upper,
        "proven": certificate.status == "optimal",
        "nominal": nominal,
        "best_respond": best,
        "cost_of_caution": best - nominal,
        "actions": [str(action) for action in problem.actions],
        "shares": weights @ played[0],
        "shares_best_respond": weights @ played[1],
        "regions": region_map(report),
        **_line(report),
    }


def answer_verdict(session: Session, question: Question) -> Answer:
    """Say whether to follow the forecasts in this decision."""
    found = session.report(question, measured=True).audit
    moments = zip(found.moment_names, found.estimates, found.intervals, found.p_values, strict=True)
    return {
        "kind": found.verdict.kind.value,
        "sentence": f"{found.verdict} {_BELOW}",
        "moments": [
            {"name": name, "estimate": estimate, "lower": lower, "upper": upper, "p_value": p_value}
            for name, estimate, (lower, upper), p_value in sorted(moments, key=lambda moment: float(moment[3]))[:12]
        ],
    }


def answer_stress(session: Session, question: Question) -> Answer:
    """Show three policies in all worlds."""
    stress = session.report(question).stress
    realised = [None] * len(stress.names) if stress.realised is None else stress.realised
    columns = stress.names, stress.nominal, realised, stress.worst, stress.under
    names = "policy", "nominal", "realised", "worst", "under"
    return {"policies": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]}


def answer_ladder(session: Session, question: Question) -> Answer:
    """Show what each guarantee is worth."""
    ladder = session.report(question, measured=True).ladder
    rungs = [{name: getattr(rung, name) for name in _RUNG} for rung in ladder.rungs]
    return {"rungs": rungs, "best": ladder.best.name, "confidence": ladder.confidence}


def answer_explanation(session: Session, case: Case) -> Answer:
    """Say why this action at this forecast."""
    policy = session.report(case.question).policy
    with about("forecast"):
        told = policy.explain(case.forecast)
    return {"story": str(told), "probabilities": told.probabilities}


def _line(report: Report) -> Answer:
    """The policy on forecasts of one coordinate, and how often they occur."""
    if not report.bands:
        return {"curve": None, "bands": [], "histogram": None}
    points, policy, (counts, edges) = report.points, report.policy, report.histogram
    return {
        "curve": {
            "forecast": points,
            "shares": policy.predict_proba(points).T,
            "belief": policy.worst_case_belief(points)[:, 0],
        },
        "bands": [{"first": band.first, "last": band.last, "played": str(band)} for band in report.bands],
        "histogram": {"edges": edges, "counts": counts},
    }
