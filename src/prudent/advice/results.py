"""The answer: verdict, rule, what is certain, and the numbers behind them."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import Any

import numpy as np

from prudent.adversary import StressTest, stress_test, worst_case
from prudent.advice.sentences import Words
from prudent.arrays import FloatArray, frozen
from prudent.cases.mean_bounds import PastErrors
from prudent.errors import InputError
from prudent.evidence.audits import Audit, GuaranteeLadder, audit, guarantee_ladder
from prudent.formatting import Printable, Table, format_number, format_table
from prudent.guarantees import Guarantee
from prudent.policies import PlugInPolicy, Policy, RobustPolicy, SafetyPolicy
from prudent.policies.horizons import UtilityBound, given_own, utility_bound
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator
from prudent.solvers import Certificate

_BY_SEGMENT = (
    *("segment", "cases", "gain", "gain at least", "best", "best gain", "best at least"),
    *("promised", "earned", "earned from", "to"),
)


class VerdictKind(Enum):
    """What to do with a forecast."""

    FOLLOW = "follow"
    KEEP = "keep"
    REPAIR = "repair"
    HEDGE = "hedge"
    NOT_ENOUGH_DATA = "not_enough_data"

    @property
    def exit_code(self) -> int:
        """Of a command that ends with this verdict."""
        return {"repair": 20, "hedge": 10, "not_enough_data": 30}.get(self.value, 0)


@frozen
class Verdict(Printable):
    """What the evidence comes to; ``str()`` is the sentence."""

    kind: VerdictKind
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@frozen
class Gain(Printable):
    """What the advised rule earned over the rule in use, per case.

    Attributes
    ----------
    estimate : float
        On rows that had no part in fitting the rule.
    lower : float
        The mean gain is at least this, with ``confidence``; negative where that is not certain.
    confidence : float
    """

    estimate: float
    lower: float
    confidence: float


@frozen
class Promise(Printable):
    """What following the forecast promises per case, what it earned, and the interval of its mean."""

    promised: float
    realised: float
    lower: float
    upper: float


@frozen
class Menu(Table):
    """What could be done instead of the rule in use.

    Attributes
    ----------
    names : tuple of str
    estimates : array of shape (K,)
        Gains over the rule in use per case, on rows that had no part in fitting.
    lower : array of shape (K,)
        All gains are at least these at once, with 90% confidence: the highest one is adopted if it is positive.
    upper : array of shape (K,)
        No gain is larger, at once with the stated confidence.
    """

    _shown = ("columns",)

    names: tuple[str, ...] = field(repr=False)
    estimates: FloatArray = field(repr=False)
    lower: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column: one row per entry."""
        return {
            "rule": list(self.names),
            "gain": self.estimates,
            "at least (90%)": self.lower,
            "at most": self.upper,
        }

    def __str__(self) -> str:
        if not self.names:
            return "no entries"
        rounding = 1e-12 * float(max(np.abs(each).max() for each in (self.estimates, self.lower, self.upper)))
        return format_table(
            self.columns, number=lambda value: "0" if abs(value) <= rounding else format_number(value, 3)
        )


@frozen
class Segments(Table):
    """What following the forecast and other rules earned per case in every segment of the context.

    Segments come first in which following forgoes most; all bounds hold at once with the stated confidence. Values in
    fewer than 30 rows, or four periods, are pooled as ``other``.

    Attributes
    ----------
    rows : list of tuples
        Segment, number of rows; gain of the advised rule and its lower bound; the entry of the menu with the highest
        gain in the segment, this gain and its lower bound; what following promised, what it earned, and its bounds.
    """

    _shown = ("columns",)

    rows: list[tuple[Any, ...]] = field(repr=False)

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column: one row per segment."""
        return dict(zip(_BY_SEGMENT, map(list, zip(*self.rows, strict=True)), strict=True))


@frozen
class Advice(Printable):
    """What to do with a forecast, and what is certain; ``str()`` says it in words.

    Attributes
    ----------
    verdict : Verdict
        ``verdict.kind``, and the sentence as ``str(verdict)``.
    policy : Policy
        The rule that the verdict names; it takes forecasts as they come from the forecaster.
    gain : Gain or None
        Over the rule in use; None without outcomes.
    certificate : UtilityBound or Certificate
        What the rule earns per case: a confidence bound from outcomes, or the worst case of the guarantee without any.
    promise : Promise or None
        None without outcomes.
    next_period : UtilityBound or None
        What the rule earns in the next period on cases like these; None without four periods of outcomes.
    stakes : float
        What the forecast promises to be worth per case over the best single action.
    tolerance : float
        Gains up to this do not matter: a tenth of the stakes unless told otherwise.
    menu : Menu
    actions : dict
        For every action the share of cases that the rule in use gives it, and that the advised rule does.
    n_rows, n_dropped : int
        Rows that took part, and rows left out because their outcome is missing.
    more_outcomes : int or None
        About so many more would settle it, where data are not enough.
    rule_in_use : str
        What gains are measured against.
    capacity : mapping or None
        What all rules keep to.
    past : PastErrors or None
        What the rule earned beyond what it promised, for :meth:`for_cases`; None without outcomes.
    """

    verdict: Verdict
    policy: Policy = field(repr=False)
    gain: Gain | None
    certificate: UtilityBound | Certificate
    promise: Promise | None
    stakes: float
    tolerance: float
    menu: Menu
    actions: Mapping[str, tuple[float, float]]
    n_rows: int
    n_dropped: int
    more_outcomes: int | None
    problem: DecisionProblem = field(repr=False)
    cases: Any = field(repr=False)
    guarantee: Guarantee | None = field(repr=False)
    slack: Any = field(repr=False)
    confidence: float
    rule_in_use: str
    capacity: Any = field(repr=False)
    past: PastErrors | None = field(repr=False, default=None)
    next_period: UtilityBound | None = None
    by_segment: Segments | None = None
    recalibrators: Mapping[str, Callable[[], Recalibrator]] = field(repr=False, default_factory=dict)

    def __repr__(self) -> str:
        rule = type(self.policy).__name__
        return f"Advice(verdict={self.verdict.kind.value!r}, policy={rule}, gain={self.gain!r}, n_rows={self.n_rows})"

    def __str__(self) -> str:
        words, promise = Words(self.problem.unit, self.confidence), self.promise
        lines = [str(self.verdict)]
        if isinstance(self.certificate, Certificate):
            lines.append(f"No rule is sure of more than {words.amount(self.certificate.upper, 4)}.")
        if promise is not None:
            span = f"between {words.amount(promise.lower)} and {words.amount(promise.upper)}"
            lines.append(
                f"This rule earns at least {words.amount(self.certificate.lower)} a case on average ({words.level})."
            )
            if self.next_period is not None:
                lines.append(
                    f"In the next period it earns at least {words.amount(self.next_period.lower)} a case "
                    f"({words.level}; {self.past.n_units if self.past else 0:,} periods)."
                )
            lines.append(
                f"The forecasts promise {words.amount(promise.promised)} a case; following them earned "
                f"{words.amount(promise.realised)}, on average {span}."
            )
        lines.append(
            f"The forecasts promise {words.amount(self.stakes)} a case more than the best single action; gains up to "
            f"{words.amount(self.tolerance, 2)} do not matter."
        )
        prices = getattr(getattr(self.policy, "policy", self.policy), "shadow_prices_", {})
        for name, price in prices.items():
            lines.append(f"One more unit of capacity for {name!r} is worth {words.amount(price)}.")
        before, after = ([f"{shares[k]:.1%}" for shares in self.actions.values()] for k in (0, 1))
        table = {"action": list(self.actions), "in use": before, "advised": after}
        lines += ["", format_table(table)]
        if self.menu.names:
            lines += ["", "Gains a case over the rule in use, on cases that had no part in fitting:", str(self.menu)]
        if self.by_segment is not None:
            lines += ["", f"By segment, a case of it; all bounds hold at once ({words.level}):", str(self.by_segment)]
        dropped = f", {self.n_dropped:,} without outcome left out" if self.n_dropped else ""
        return "\n".join([*lines, "", f"{self.n_rows:,} cases{dropped}."])

    def for_cases(
        self,
        forecasts: Any,
        *,
        context: Any = None,
        horizon: str = "average",
        realised: bool = False,
        weights: Any = None,
        rewards: Any = None,
        costs: Any = None,
    ) -> UtilityBound | Certificate:
        """Bound what the advised rule earns on these cases from below, without their outcomes.

        The certificate speaks of cases like those of the past; this speaks of cases with forecasts of their own.

        Parameters
        ----------
        forecasts : array of shape (n,) or (n, d), or Cases
        context : frame or mapping of columns, optional
            Where the rule looks at more than forecasts.
        horizon : {"average", "next period"}
            Whether the bound is for the mean over many periods, or for the one that comes next.
        realised : bool
            Whether it is for the mean that will be realised, which varies by chance, or for the expected one.
        weights : array of shape (n,), optional
        rewards, costs : arrays, optional
            Of every row, where each case has its own.

        Examples
        --------
        >>> import numpy as np, prudent
        >>> rng = np.random.default_rng(0)
        >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.4], actions=["wait", "act"])
        >>> forecasts, months = rng.random(4000), np.arange(4000) // 200
        >>> outcomes = (rng.random(4000) < forecasts).astype(float)
        >>> advice = prudent.advise(problem, forecasts, outcomes, periods=months)
        >>> print(advice.for_cases(rng.random(200), horizon="next period", realised=True))
        at least 0.1273 a case in the next period, realised over 200 cases (95% confidence)
        """
        own = given_own(rewards, costs)
        given: dict[str, Any] = {"horizon": horizon, "realised": realised, "context": context}
        if self.past is not None:
            return utility_bound(self.policy, self.past, forecasts, weights=weights, own=own, **given)
        # The certificate is that of a guarantee.
        if isinstance(self.policy, RobustPolicy):
            return self.policy.certify(forecasts, sample_weight=weights, **given, **own)
        if horizon != "average" or realised:
            raise InputError("horizon and realised need advice from outcomes.")
        known: dict[str, Any] = {"guarantee": self.guarantee, "slack": self.slack, "weights": weights}
        return worst_case(self.policy, forecasts, context=context, **known).certificate

    def segments(self) -> Segments:
        """Return what every segment of the context gains: by the advised rule, and by the best of the menu within it.

        Those come first in which following the forecast forgoes most.
        """
        if self.by_segment is None:
            raise InputError("segments need outcomes and columns that are known at decision time: advise(context=...).")
        return self.by_segment

    def ladder(self, guarantees: Any = None) -> GuaranteeLadder:
        """Compare what the usual guarantees, or others, are worth on these cases."""
        return guarantee_ladder(self.problem, self.cases, guarantees=guarantees, confidence=self.confidence)

    def audit(self, guarantee: Guarantee | str | None = None) -> Audit:
        """Measure whether a guarantee holds on these cases."""
        promised = guarantee or self.guarantee or "unbiased"
        return audit(self.problem, self.cases, guarantee=promised, confidence=self.confidence)

    def stress_test(self, guarantee: Guarantee | str | None = None, slack: Any = None) -> StressTest:
        """Compare the advised rule with the plug-in and safety policies in each other's worst worlds.

        Worlds are those that a guarantee allows: the one given here or to :func:`advise`, or the best of the ladder.
        """
        problem, promised = self.problem, guarantee or self.guarantee
        allowed = self.slack if slack is None else slack
        if promised is None:
            best = self.ladder().best
            promised, allowed = best.guarantee, best.policy.slack_
        policies = {"plug-in": PlugInPolicy(problem), "advised": self.policy, "safety": SafetyPolicy(problem)}
        return stress_test(policies, self.cases, guarantee=promised, slack=allowed, confidence=self.confidence)

    def best_recalibrator(self) -> tuple[str, Recalibrator]:
        """Return the recalibration of the menu with the highest lower bound of its gain, fitted on all cases."""
        if not self.recalibrators:
            raise InputError("no recalibration was compared: there are too few cases, or the forecast never matters.")
        best = max(self.recalibrators, key=dict(zip(self.menu.names, self.menu.lower, strict=True)).__getitem__)
        return best, self.recalibrators[best]()

    def report(self, path: Any) -> None:
        """Write one page that a manager can read."""
        import prudent  # late: reports build on advice

        page = prudent.Report(self.problem, self.cases, confidence=self.confidence, capacity=self.capacity, advice=self)
        page.save(path)
