"""Walk forward: take advice on the past, promise something for the next period, and look at what came."""

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from prudent.advice.advising import advise
from prudent.advice.past_cases import require_choices
from prudent.arrays import frozen
from prudent.cases.cases import in_time, read_cases
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.errors import InputError
from prudent.formatting import Table, format_number, format_table
from prudent.policies import FixedRule, PlugInPolicy, Policy, RecalibratedPolicy, require_problem
from prudent.policies.horizons import given_own, own_of_rows, play_rule, utility_bound
from prudent.problem import DecisionProblem
from prudent.recalibration.base import some_cases

_SHOWN = 24  # periods


@frozen
class Backtest(Table):
    """What was advised, promised and earned, period by period.

    Attributes
    ----------
    by_period : dict
        The columns, with an entry per period that was decided, in the order of time; advice came from all earlier ones.
        ``promised`` is what the advised rule was certain to realise per case, with ``confidence``, and ``realised``
        what it earned; ``rule_in_use`` and ``best_recalibration`` are what these earned, the latter followed.
    confidence : float
    """

    _shown = ("periods", "kept", "kept_interval", "columns")

    by_period: dict[str, Any] = field(repr=False)
    confidence: float
    unit: str | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        return f"Backtest({len(self.periods)} periods, kept={self.kept:.3g})"

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column: one row per period."""
        return self.by_period

    @property
    def periods(self) -> list[str]:
        """Names of the periods."""
        return list(self.by_period["period"])

    @property
    def kept(self) -> float:
        """Share of the promises that were kept."""
        return float(self.by_period["kept"].mean())

    @property
    def kept_interval(self) -> tuple[float, float]:
        """Where the probability of keeping a promise lies, with 95% confidence (Clopper and Pearson)."""
        from scipy.stats import binomtest  # late: takes long to import

        found = binomtest(int(self.by_period["kept"].sum()), len(self.periods)).proportion_ci()
        return float(found.low), float(found.high)

    @property
    def sentence(self) -> str:
        """What came of it, in words."""
        unit = f" {self.unit}" if self.unit else ""
        table, columns = self.by_period, ("realised", "rule_in_use", "best_recalibration")
        means = (np.average(table[name], weights=table["cases"]) for name in columns)
        earned = [f"{format_number(float(mean), 4)}{unit}" for mean in means]
        (low, high), kept = self.kept_interval, int(table["kept"].sum())
        return (
            f"Over {len(self.periods)} periods the advised rules earned {earned[0]} a case, the rule in use "
            f"{earned[1]}, the best recalibration of the past {earned[2]}. Promises with {100 * self.confidence:g}% "
            f"confidence were kept in {kept} of {len(self.periods)} periods ({self.kept:.0%}; the "
            f"probability lies between {low:.0%} and {high:.0%})."
        )

    def __str__(self) -> str:
        first = max(len(self.periods) - _SHOWN, 0)
        kept = ["yes" if each else "no" for each in self.by_period["kept"]]
        table = format_table({**self.by_period, "kept": kept}, range(first, len(self.periods)))
        left = f"\n({first} earlier periods are not shown.)" if first else ""
        return f"{self.sentence}\n\n{table}{left}"


def backtest(
    problem: DecisionProblem,
    forecasts: Any,
    outcomes: Any = None,
    *,
    periods: Any = None,
    against: Any = None,
    menu: Any = (),
    weights: Any = None,
    context: Any = None,
    rewards: Any = None,
    costs: Any = None,
    confidence: float = 0.95,
    tolerance: float | None = None,
    window: int | None = None,
    missing: str = "refuse",
    progress: Callable[[str], None] | None = None,
) -> Backtest:
    """Decide every period by advice from the periods before it, and compare what was promised with what came.

    Parameters
    ----------
    problem : DecisionProblem
    forecasts, outcomes : arrays, or Cases
    periods : array of shape (n,)
        Of every row; they are taken in the order of their values.
    against, menu, weights, context, rewards, costs, confidence, tolerance, missing
        As in :func:`prudent.advise`.
    window : int, optional
        Take advice on so many latest periods instead of all earlier ones.
    progress : callable, optional
        Is told how many periods are decided.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"])
    >>> forecasts, months = rng.random(2000), np.repeat(np.arange(20), 100)
    >>> outcomes = (rng.random(2000) < forecasts).astype(float)
    >>> prudent.backtest(problem, forecasts, outcomes, periods=months).kept
    0.9375
    """
    require_problem(problem)
    added = require_choices(menu)
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < FEWEST_PERIODS):
        raise InputError(f"window must be a whole number of periods, at least {FEWEST_PERIODS}; got {window!r}.")
    cases = read_cases(forecasts, outcomes, weights=weights, periods=periods, context=context, missing=missing)
    cases = cases.in_memory(problem.space)
    if not cases.has_outcomes or cases.periods is None:
        raise InputError("a backtest needs outcomes and periods (periods=).")
    rows = cases.on(problem.space)
    names, order = in_time(cases.periods, rows.used)
    count = len(names) - FEWEST_PERIODS
    if count <= 0:
        raise InputError(
            f"a backtest needs at least {FEWEST_PERIODS + 1} periods with outcomes; there are {len(names)}."
        )
    rule = against if against is None or isinstance(against, Policy) else FixedRule(problem, labels=against)
    tables: dict[str, Any] = own_of_rows(problem, rows, given_own(rewards, costs))
    in_use, listed = play_rule(rule or PlugInPolicy(problem), rows, tables), getattr(rule, "labels", None) is not None
    taken, found = np.array(problem.actions, dtype=object)[in_use.argmax(axis=1)], list[dict[str, Any]]()
    for now in range(FEWEST_PERIODS, len(names)):
        before, these = (order < now) & (order >= now - (window or now)), order == now
        past, batch = some_cases(rows, before, order[before]), some_cases(rows, these)
        earlier, stakes = ({name: table[part] for name, table in tables.items()} for part in (before, these))
        until = FixedRule(problem, labels=taken[before]) if listed else rule
        advice = advise(problem, past, against=until, menu=added, confidence=confidence, tolerance=tolerance, **earlier)
        policy = advice.policy
        if listed and isinstance(policy, FixedRule):
            policy = FixedRule(problem, labels=taken[these])
        promise = utility_bound(policy, advice.past, batch, horizon="next period", realised=True, own=stakes)
        placed, best = batch.on(problem.space), policy
        utilities = problem.utilities_of_rows(placed.known_outcomes, **stakes)
        if advice.recalibrators:
            best = RecalibratedPolicy(advice.best_recalibrator()[1], PlugInPolicy(problem))
        rules = play_rule(policy, placed, stakes), in_use[these], play_rule(best, placed, stakes)
        earned = [float(placed.weights @ (mixtures * utilities).sum(axis=1)) for mixtures in rules]
        # Sums in another order than the certificate's may differ in the last digits.
        rounding = 1e-12 * (abs(earned[0]) + abs(promise.lower))
        found.append(
            {
                "period": names[now],
                "cases": int(these.sum()),
                "verdict": advice.verdict.kind.value,
                "promised": promise.lower,
                "realised": earned[0],
                "kept": earned[0] >= promise.lower - rounding,
                "rule_in_use": earned[1],
                "best_recalibration": earned[2],
            }
        )
        if progress is not None:
            progress(f"{len(found):,} of {count:,}")
    columns = {name: np.array([row[name] for row in found]) for name in found[0]}
    return Backtest(columns, advice.confidence, problem.unit)
