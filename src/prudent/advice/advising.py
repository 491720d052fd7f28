"""From cases to one answer (docs/theory.md, section 12)."""

from collections.abc import Callable
from copy import copy
from typing import Any, cast

import numpy as np
from scipy.special import stdtrit

from prudent.adversary import worst_case
from prudent.advice.past_cases import Entry, PastCases, content_folds, play_entry, require_choices, require_menu
from prudent.advice.results import Advice, Gain, Menu, Promise, Segments, Verdict, VerdictKind
from prudent.advice.sentences import Words
from prudent.arrays import IntArray, non_negative, probability
from prudent.arrays.chunks import one_blas_thread
from prudent.cases.cases import read_cases
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.errors import InputError
from prudent.guarantees import Guarantee
from prudent.guarantees.names import read_guarantee
from prudent.policies import Policy, RobustPolicy, SafetyPolicy, require_problem
from prudent.policies.horizons import UtilityBound, given_own, play_rule
from prudent.problem import DecisionProblem
from prudent.recalibration.segmented import usual_recalibrators
from prudent.slack import Slack

#: The share of the stakes that matters.
TOLERATED = 0.1
#: An entry is adopted if its gain is positive with this confidence, over the whole menu at once.
CHOICE = 0.9


@one_blas_thread()
def advise(
    problem: DecisionProblem,
    forecasts: Any,
    outcomes: Any = None,
    *,
    against: Any = None,
    menu: Any = (),
    usual: bool = True,
    guarantee: Guarantee | str | None = None,
    slack: Any = "audit",
    weights: Any = None,
    periods: Any = None,
    context: Any = None,
    rewards: Any = None,
    costs: Any = None,
    confidence: float = 0.95,
    tolerance: float | None = None,
    fallback: str = "rule in use",
    missing: str = "refuse",
    capacity: Any = None,
    progress: Callable[[str], None] | None = None,
) -> Advice:
    """Say what to do with a forecast, and what is certain.

    Outcomes do not depend on actions, so past cases show what every rule would have earned. The rule in use, which is
    to follow the forecast, is left only for one that earned more on cases that it was not fitted on, with 90%
    confidence over the whole menu of recalibrations; what is claimed about it holds with ``confidence``.

    Parameters
    ----------
    problem : DecisionProblem
    forecasts, outcomes : arrays, or Cases
        Of cases that the forecaster was not fitted on. Without outcomes a guarantee is needed, and the advice is the
        robust policy for it, unless following the forecast guarantees as much.
    against : Policy, or sequence of one action per row, optional
        The rule in use; following the forecast by default.
    menu : sequence or mapping of recalibrators and policies
        To be considered beside the usual recalibrations.
    usual : bool
        False considers nothing but ``menu``.
    guarantee : Guarantee or str, optional
        What the forecaster promises, for advice without outcomes, ``stress_test()`` and ``audit()``.
    slack : as in RobustPolicy
        Of that guarantee; without outcomes "audit" is exact.
    weights, periods : arrays of shape (n,), optional
        Rows of one period depend on each other; periods do not.
    context : frame or mapping of columns, optional
        What else is known at decision time. The menu then has one more entry, shifts within the values of all columns,
        and ``segments()`` shows every value; a guarantee and entries of the menu may look at it, too.
    rewards, costs : arrays, optional
        Of every row, where each case has its own, as in :meth:`RobustPolicy.fit`.
    confidence : float
        Of everything that is claimed.
    tolerance : float, optional
        Gains up to this do not matter; by default a tenth of what the forecast promises over the best single action.
    fallback : {"rule in use", "safety"}
        What is advised where data are not enough.
    missing : {"refuse", "drop"}
        What to do with rows whose outcome is missing.
    capacity : mapping, optional
        How much may be used on average, as in :class:`RobustPolicy`. Following the forecast, raw or recalibrated, is
        then best responding at the prices that meet it.
    progress : callable, optional
        Is told what is worked on.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"])
    >>> forecasts = rng.random(4000)
    >>> outcomes = (rng.random(4000) < forecasts**2).astype(float)
    >>> advice = prudent.advise(problem, forecasts, outcomes)
    >>> advice.verdict.kind.value
    'repair'
    >>> advice.policy.predict([0.5, 0.7]).tolist()
    ['wait', 'act']
    """
    require_problem(problem)
    level = probability(confidence, "confidence")
    require_fallback(fallback)
    promised = None if guarantee is None else read_guarantee(guarantee, problem)
    added = require_choices(menu)
    cases = read_cases(forecasts, outcomes, weights=weights, periods=periods, context=context, missing=missing)
    cases = cases.in_memory(problem.space)
    rows, own = cases.on(problem.space), given_own(rewards, costs)
    if not cases.has_outcomes and (promised is None or against is not None):
        raise InputError(
            "outcomes must be given: without them nothing is known about a rule in use, and about forecasts only "
            "what a guarantee says (guarantee=)."
        )
    if not cases.has_outcomes and (own or added):
        raise InputError("rewards, costs and menu need outcomes.")
    if capacity is not None and (own or fallback == "safety"):
        raise InputError("capacity takes no rewards or costs of rows, and fallback='safety' may not keep to it.")
    past = PastCases.read(problem, cases, rows, own, against, capacity)
    matters = TOLERATED * past.stakes if tolerance is None else non_negative(tolerance, "tolerance")
    words = Words(problem.unit, level, past.follows)
    known: dict[str, Any] = {"problem": problem, "cases": cases, "guarantee": promised, "confidence": level}
    known |= {"rule_in_use": words.used, "capacity": capacity}
    if not cases.has_outcomes:
        name = guarantee if isinstance(guarantee, str) else repr(promised)
        return _without_outcomes(known, past, name, Slack.read(slack), matters, words)
    require_menu(added, problem, rows, past.own)
    segments = rows.segments(rows.segment_columns)
    choices = (usual_recalibrators(rows) if usual else {}) | added
    entries, units = [], past.needed_units
    if past.stakes > 0.0 and units[0] >= units[1]:
        folds = content_folds(rows, list(past.own.values()), past.units)
        for name, choice in choices.items():
            if progress is not None:
                progress(name)
            entries.append(play_entry(name, choice, problem, rows, folds, past.own, capacity))
    verdict, chosen, compared, more = _judge(past, entries, matters, words, segments, nothing=not choices)
    policy, mixtures, beliefs = past.policy, past.in_use, None
    if chosen is not None:
        policy, mixtures, beliefs = chosen.policy(), chosen.mixtures, chosen.beliefs
    elif verdict.kind is VerdictKind.NOT_ENOUGH_DATA and fallback == "safety":
        policy = SafetyPolicy(problem)
        mixtures = policy.on_rows(rows)
    if beliefs is None:
        beliefs = policy.acts_on(rows.forecasts, rows.context)
    gained, certain, _ = past.claim(mixtures, 1 - level, over_rule_in_use=True)
    errors, earned = past.errors(mixtures, beliefs, level), past.claim(mixtures, 1 - level)
    soon: UtilityBound | None = None
    if errors.between is not None and errors.n_units >= FEWEST_PERIODS:
        soon = UtilityBound(earned[0] - float(errors.radii_for("next period")[0]), level, "next period")
    if not isinstance(policy, RobustPolicy):
        policy = copy(policy)  # the caller's own stays as it was
        policy.past_ = errors
    return Advice(
        verdict,
        policy,
        Gain(gained, certain, level),
        UtilityBound(earned[1], level),
        Promise(past.promised, *past.claim(past.followed, (1 - level) / 2)),
        past.stakes,
        matters,
        compared,
        _shares(past, policy),
        len(rows.forecasts),
        rows.n_dropped,
        more,
        slack=slack,
        past=errors,
        next_period=soon,
        by_segment=Segments(past.by_segment(entries, mixtures, segments, level)) if segments else None,
        recalibrators={entry.name: entry.recalibrator for entry in entries if entry.recalibrator is not None},
        **known,
    )


def require_fallback(fallback: str) -> None:
    """Check what is to be played where data are not enough."""
    if fallback not in ("rule in use", "safety"):
        raise InputError(f"fallback must be one of 'rule in use', 'safety'; got {fallback!r}.")


def _judge(
    past: PastCases,
    entries: list[Entry],
    tolerance: float,
    words: Words,
    segments: list[tuple[str, IntArray]],
    *,
    nothing: bool,
) -> tuple[Verdict, Entry | None, Menu, int | None]:
    """Follow if nothing on the menu could be worth more than the tolerance; else adopt the best that is proven.

    Return the verdict, the entry that it adopts, the menu with all bounds, and how many more outcomes would decide.
    """
    gains = np.array([past.gain(entry.mixtures, entry.beliefs) for entry in entries]).reshape(-1, 2)
    (estimates, errors), hidden = gains.T, past.hidden([past.in_use, *(entry.mixtures for entry in entries)])
    shares = (1 - np.array([CHOICE, words.confidence])) / max(len(entries), 1)
    low, high = stdtrit(max(past.needed_units[0] - 1, 1), shares)
    names = tuple(entry.name for entry in entries)
    menu = Menu(names, estimates, estimates + low * errors, estimates - high * errors + hidden)
    stay = VerdictKind.FOLLOW if past.follows else VerdictKind.KEEP
    kind, entry, more = VerdictKind.NOT_ENOUGH_DATA, None, None
    if past.stakes == 0.0:
        action = past.problem.actions[int(past.constant.argmax())]
        kind, said = (
            stay,
            f"{words.order}: the forecast never changes the best action, which is {action} in every case.",
        )
    elif nothing:
        kind, said = stay, f"{words.order}: nothing else was considered."
    elif not entries:
        n, needed, units = past.needed_units
        said = (
            f"Not enough data: at least {needed} {units} with outcomes are needed; there are {n}. Until then, "
            f"{words.used} stays."
        )
    elif menu.upper.max() <= tolerance:
        kind, said = stay, words.stay(menu, tolerance)
    elif menu.lower.max() > 0:
        entry = entries[int(menu.lower.argmax())]
        claim = past.claim(entry.mixtures, 1 - words.confidence, over_rule_in_use=True)
        kind = VerdictKind.REPAIR if entry.recalibrator is not None else VerdictKind.HEDGE
        changed, weights = [], past.rows.weights
        if entry.beliefs is not None:
            hoped = past.problem.utilities_of_rows(entry.beliefs, **past.own) * (past.in_use - entry.mixtures)
            losses = sorted(
                (float(np.average(hoped[own].sum(axis=1), weights=weights[own])), name) for name, own in segments
            )
            changed = [name for loss, name in losses if loss < -tolerance]
        few = entry.name.startswith("shifts") and 2 * len(changed) < len(segments)
        said = words.adopt(entry.name, kind is VerdictKind.REPAIR, *claim[:2], changed, few=few)
    else:
        more = _more_outcomes(menu, len(past.rows.forecasts), hidden, tolerance)
        said = words.not_enough(menu, tolerance, more)
    return Verdict(kind, said), entry, menu, more


def _more_outcomes(menu: Menu, n: int, hidden: float, tolerance: float) -> int | None:
    """How many more outcomes would decide, if gains and their spread stay as they are; None if there is no telling."""
    needed, better, room = [], menu.estimates > 0, tolerance - menu.estimates
    if better.any():  # until the lower bound of one of them is positive
        needed.append(n * float(((1 - menu.lower[better] / menu.estimates[better]) ** 2).min()))
    if (room > 0).all():  # until all upper bounds are within the tolerance: the root solves a quadratic equation
        spread = menu.upper - hidden - menu.estimates
        needed.append(n * float((((spread + np.sqrt(spread**2 + 4 * room * hidden)) / (2 * room)) ** 2).max()))
    if not needed or min(needed) > 1e9:
        return None
    more = max(min(needed) - n, 1.0)
    step = 10 ** max(int(np.log10(more)) - 1, 0)
    return int(np.ceil(more / step) * step)


def _without_outcomes(
    known: dict[str, Any], past: PastCases, name: str, slack: Slack, tolerance: float, words: Words
) -> Advice:
    """The robust policy for a guarantee, unless following the forecast guarantees as much."""
    problem, cases, guarantee, confidence, *_ = known.values()
    slack = Slack(0.0) if slack.audited else slack
    robust = RobustPolicy(problem, guarantee, slack=slack, confidence=confidence, capacity=past.capacity).fit(cases)
    worst = worst_case(past.policy, cases, guarantee=robust.guarantee_, slack=robust.slack_)
    kind, policy, certificate = VerdictKind.HEDGE, cast("Policy", robust), robust.certificate_
    said = (
        f"Hedge: if the forecasts keep the promise {name}, and nothing else is known, this rule earns at least "
        f"{words.amount(certificate.lower, 4)} a case; following the forecast could earn as little as "
        f"{words.amount(worst.value, 4)}. Outcomes would say more."
    )
    loss = certificate.upper - worst.value
    if loss <= tolerance:
        kind, policy, certificate = VerdictKind.FOLLOW, past.policy, worst.certificate
        said = (
            f"Follow the forecast: if it keeps the promise {name}, it earns at least "
            f"{words.amount(certificate.lower, 4)} a case, and no rule is sure of more than "
            f"{words.amount(max(loss, 0.0), 2)} on top."
        )
    nothing, n = Menu((), *np.zeros((3, 0))), len(past.rows.forecasts)
    given = past.stakes, tolerance, nothing, _shares(past, policy), n, 0, None
    return Advice(Verdict(kind, said), policy, None, certificate, None, *given, slack=slack, **known)


def _shares(past: PastCases, policy: Policy) -> dict[str, tuple[float, float]]:
    """The share of cases that each action gets by the rule in use, and by the advised one, fitted on all rows."""
    weights, advised = past.rows.weights, play_rule(policy, past.rows, past.own)
    shares = zip(past.problem.actions, weights @ past.in_use, weights @ advised, strict=True)
    return {str(action): (float(old), float(new)) for action, old, new in shares}
