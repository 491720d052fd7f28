"""Results of the library as the numbers that the page draws; maps of policies over two coordinates or three classes."""

from typing import Any

import numpy as np
from scipy.stats import binned_statistic_2d

from prudent.advice.sentences import Words
from prudent.arrays import FloatArray
from prudent.formatting import format_number
from prudent.plots.policy import map_cells
from prudent.policies import Policy, RecalibratedPolicy, RobustPolicy
from prudent.report import Report
from prudent.studio.schemas import Case, Question
from prudent.studio.session import Session, about

Answer = dict[str, Any]


def answer_policy(session: Session, question: Question) -> Answer:
    """Say what to do, and what it earns: the advised rule, or the robust policy for a guarantee that was picked."""
    report, (cases, left_out) = session.report(question), session.rows(question)
    problem, policy = report.problem, report.policy
    weights, played = report.rows.weights, [rule.on_rows(report.rows) for rule in (policy, report.following)]
    cards = _advice_cards(report) if report.chosen else _robust_cards(report, played)
    shares = weights @ played[0]
    return {
        "rows": len(cases),
        "left_out": left_out,
        "cards": cards + _capacity_cards(report, shares),
        "actions": [str(action) for action in problem.actions],
        "shares": shares,
        "shares_best_respond": weights @ played[1],
        "context": {name: _values(report, name) for name in policy.columns},
        "regions": region_map(report),
        **_line(report),
    }


def answer_verdict(session: Session, question: Question) -> Answer:
    """Say what to do with the forecasts in this decision, whatever guarantee is explored."""
    return session.report(question).advice.to_dict()


def answer_stress(session: Session, question: Question) -> Answer:
    """Show three policies in all worlds."""
    return session.report(question).stress.to_dict()


def answer_ladder(session: Session, question: Question) -> Answer:
    """Show what each guarantee is worth."""
    ladder = session.report(question).ladder
    return {"best": ladder.best.name, **ladder.to_dict()}


def answer_explanation(session: Session, case: Case) -> Answer:
    """Say why this action at this forecast."""
    policy = session.report(case.question).policy
    with about("forecast"):
        told = policy.explain(case.forecast, context=case.context)
    return {"story": str(told), "probabilities": told.probabilities}


def _advice_cards(report: Report) -> list[Answer]:
    """Numbers of the advice."""
    advice: Any = report.advice  # from outcomes: it has a gain and a promise
    words, gain, promise = Words(report.problem.unit, advice.confidence, follows=True), advice.gain, advice.promise
    span = f"on average between {words.amount(promise.lower)} and {words.amount(promise.upper)}"
    return [
        _card("This rule earns at least", advice.certificate.lower, f"a case on average, with {words.level}"),
        _card("Gain over following the forecast", gain.estimate, f"a case; at least {words.amount(gain.lower)}"),
        _card("Following the forecast earned", promise.realised, span),
        _card("Worth of the forecast", advice.stakes, "a case over the best single action, by its own promise"),
    ]


def _robust_cards(report: Report, played: list[FloatArray]) -> list[Answer]:
    """Numbers of the robust policy for the guarantee that is explored."""
    rows, certificate = report.rows, report.robust.certificate_
    nominal, best = report.problem.expected_utilities(played, [rows.forecasts], rows.weights)[:, 0].tolist()
    proven = "proven: no policy guarantees more" if certificate.status == "optimal" else "not proven optimal"
    return [
        _card("Guaranteed", certificate.lower, report.contradiction or "in every world that the guarantee allows"),
        _card("If forecasts are right", nominal, f"following them would earn {format_number(best, 4)}"),
        _card("Best possible guarantee", certificate.upper, proven),
        _card("Cost of caution", best - nominal, "given up if forecasts are right"),
    ]


def _capacity_cards(report: Report, shares: FloatArray) -> list[Answer]:
    """What one more place is worth, and how many the rule uses."""
    cards, actions = [], report.problem.actions
    for (name, price), limit in zip(report.shadow_prices.items(), (report.capacity or {}).values(), strict=True):
        used = f"the rule gives it to {shares[actions.index(name)]:.1%}, of at most {limit:.1%}"
        cards.append(_card(f"One more place for {name}", price, used))
    return cards


def _values(report: Report, name: str) -> list[Any]:
    """Values of a column of context that rules tell apart."""
    values, _, large = report.rows.values(name)
    return [value for value, alone in zip(values, large, strict=True) if alone]


def _card(title: str, value: float, hint: str) -> Answer:
    return {"title": title, "value": value, "hint": hint}


def _line(report: Report) -> Answer:
    """The policy on forecasts of one coordinate, and how often they occur."""
    if not report.bands:
        return {}
    points, policy, (counts, edges) = report.points, report.policy, report.histogram
    return {
        "curve": {
            "forecast": points,
            "shares": policy.predict_proba(points).T,
            "belief": policy.worst_case_belief(points)[:, 0],
            "acts_on": _acts_on(policy),
        },
        "bands": [{"first": band.first, "last": band.last, "played": str(band)} for band in report.bands],
        "histogram": {"edges": edges, "counts": counts},
    }


def _acts_on(policy: Policy) -> str:
    if isinstance(policy, RobustPolicy) and not policy.guarantee_.full:
        return "worst case"
    return "recalibrated" if isinstance(policy, RecalibratedPolicy) else "forecast"


_STEPS = {"plane": 28, "triangle": 40}
_BINS = 14
_EXAMPLES = 4
_DIGITS = 9


def region_map(report: Report) -> dict[str, Any] | None:
    """Play a policy in the middle of small cells, and at a few examples; None where no plane shows it.

    With two coordinates cells are rectangles, along the second coordinate first. With three classes they are triangles:
    those that point up, with ``i`` steps of the first class and ``j`` of the second at least, then those that point
    down, again along ``j`` first.
    """
    space, policy = report.problem.space, report.policy
    if space.free_dimension != 2 or policy.columns:
        return None
    kind = "triangle" if space.is_simplex else "plane"
    middles, _ = space.place(map_cells(space, _STEPS[kind]).mean(axis=1), "forecasts")  # removes rounding errors
    shares = policy.predict_proba(middles)
    points = np.unique(map_cells(space, _EXAMPLES).reshape(-1, space.dimension), axis=0)
    return {
        "kind": kind,
        "steps": _STEPS[kind],
        "likeliest": shares.argmax(axis=1),
        "hundredths": (100 * shares.max(axis=1)).round().astype(np.int64),
        "crowds": report.rows.cache.get("density", lambda: _density(report)),
        "examples": {"forecasts": points.round(_DIGITS), "shares": policy.predict_proba(points)},
    }


def _density(report: Report) -> list[dict[str, Any]]:
    """Bin forecasts: the mean forecast of each bin that has any, and its share of the weight."""
    rows = report.rows
    ends: Any = np.stack(report.problem.space.bounds, axis=1)[:2]
    across, up = rows.forecasts.T[:2]
    weighted = [rows.weights, *(rows.weights * rows.forecasts.T)]
    totals, *sums = binned_statistic_2d(across, up, weighted, "sum", _BINS, ends).statistic.reshape(len(weighted), -1)
    used = totals > 0
    means = (np.stack(sums, axis=1)[used] / totals[used, None]).round(_DIGITS)
    return [{"at": at, "share": share} for at, share in zip(means, totals[used], strict=True)]
