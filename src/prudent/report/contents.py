"""What a report says: everything is computed here, and ``page.html.j2`` shows it."""

import hashlib
import platform
from collections.abc import Callable
from functools import cached_property
from importlib import metadata
from typing import Any, TypeVar

import numpy as np

from prudent.adversary import StressTest, stress_test
from prudent.advice import Advice, Backtest, advise, backtest
from prudent.arrays import FloatArray, probability
from prudent.cases.cases import read_cases
from prudent.cases.mean_bounds import FEWEST_PERIODS
from prudent.errors import InputError, MissingExtraError
from prudent.evidence.audits import Audit, GuaranteeLadder, audit, guarantee_ladder
from prudent.files import PathLike, write_text
from prudent.formatting import format_number
from prudent.guarantees import Guarantee, Nothing
from prudent.guarantees.names import read_guarantee
from prudent.policies import Band, PlugInPolicy, Policy, RobustPolicy, SafetyPolicy, require_problem
from prudent.policies.capacity import within
from prudent.problem import DecisionProblem
from prudent.slack import Slack

Result = TypeVar("Result")

_VERSIONS_OF = ("prudent", "numpy", "scipy", "scikit-learn")


class Report:
    """Advice about one decision and what else can be learned from the same cases, as one HTML file.

    Parameters
    ----------
    problem : DecisionProblem
    forecasts, outcomes : arrays, or Cases
        A sample that the forecaster was not fitted on. Without outcomes a guarantee must be named.
    guarantee : "auto", Guarantee or str
        "auto" explores the guarantee of the ladder with the highest utility guaranteed under its measured slack, and
        the policy of the page is the advised one. Under a guarantee that is named it is the robust policy for that.
    slack : "audit", or as in RobustPolicy
        "audit" measures it around the measured moments.
    confidence : float
    tolerance : float, optional
        Gains that do not matter, as in :func:`prudent.advise`.
    capacity : mapping, optional
        What rules keep to, as in :func:`prudent.advise`; audit and ladder do not know it.
    weights : array of shape (n,), optional
    advice : Advice, optional
        Of :func:`prudent.advise` for the same cases; by default it is asked for without further options.
    title : str
    command : str, optional
        What to run to get this report again; by default a few lines of Python.
    source : str, optional
        Where the data come from.

    Attributes
    ----------
    advice, policy, audit, ladder, stress, bands
        The results that the page shows, each computed when it is first asked for.
    fingerprint : str
        SHA-256 of forecasts, outcomes and weights.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts = rng.random(5000)
    >>> outcomes = (rng.random(5000) < forecasts).astype(float)
    >>> report = prudent.Report(problem, forecasts, outcomes)
    >>> report.advice.verdict.kind
    <VerdictKind.FOLLOW: 'follow'>
    """

    def __init__(
        self,
        problem: DecisionProblem,
        forecasts: Any,
        outcomes: Any = None,
        *,
        guarantee: Guarantee | str = "auto",
        slack: Any = "audit",
        confidence: float = 0.95,
        tolerance: float | None = None,
        capacity: Any = None,
        weights: Any = None,
        advice: Advice | None = None,
        title: str = "What to do with the forecast",
        command: str | None = None,
        source: str | None = None,
    ) -> None:
        self.problem = require_problem(problem)
        self.cases = read_cases(forecasts, outcomes, weights=weights).in_memory(problem.space)
        self.rows = self.cases.on(problem.space)
        self.slack, self.tolerance, self.capacity = Slack.read(slack), tolerance, capacity
        self.confidence = probability(confidence, "confidence")
        if advice is not None:
            self.advice = advice
        self.title, self.command, self.source = str(title), command, source
        self.chosen = guarantee == "auto"
        self._promised = None if self.chosen else read_guarantee(guarantee, problem)
        if self.chosen and not self.slack.audited:
            raise InputError(
                f"slack must be 'audit' with guarantee='auto', which compares guarantees by their audited slack; "
                f"got {slack!r}."
            )

    @cached_property
    def advice(self) -> Advice:
        """What to do, from past outcomes."""
        return self._cached(advise, confidence=self.confidence, tolerance=self.tolerance, capacity=self.capacity)

    @cached_property
    def ladder(self) -> GuaranteeLadder:
        """What each of the usual guarantees is worth."""
        return self._cached(guarantee_ladder, confidence=self.confidence)

    @cached_property
    def policy(self) -> Policy:
        """The advised rule, or the robust policy for a guarantee that was named."""
        return self.advice.policy if self.chosen else self.robust

    @cached_property
    def robust(self) -> RobustPolicy:
        """The best policy for the guarantee."""
        if self.chosen and self.capacity is None:
            return self.ladder.best.policy
        slack = self.ladder.best.policy.slack_ if self.chosen else self.slack
        given: Any = self.problem, self.guarantee
        policy = RobustPolicy(*given, capacity=self.capacity, slack=slack, confidence=self.confidence)
        key = "policy", *given, repr(self.capacity), slack, self.confidence
        return self.rows.cache.get(key, lambda: policy.fit_rows(self.rows))

    @cached_property
    def following(self) -> Policy:
        """Following the forecast, within the capacity."""
        key = "following", self.problem, repr(self.capacity)
        return self.rows.cache.get(key, lambda: within(PlugInPolicy(self.problem), self.rows, self.capacity))

    @property
    def shadow_prices(self) -> dict[Any, float]:
        """What one more place of each capacity is worth to the policy of the page."""
        return getattr(getattr(self.policy, "policy", self.policy), "shadow_prices_", {})

    @cached_property
    def audit(self) -> Audit:
        """Whether the guarantee holds."""
        return self._cached(audit, guarantee=self.guarantee, confidence=self.rung_confidence)

    @property
    def contradiction(self) -> str:
        """Say that outcomes contradict the guarantee with the slack that was given; empty if they do not."""
        promised = self._promised
        if promised is None or promised.full or self.rows.outcomes is None or self.slack.needs_outcomes:
            return ""
        if not self.robust.slack_.contradicted(self.audit.measured).any():
            return ""
        return "The outcomes contradict the guarantee with this slack, so this number does not hold: measure the slack."

    @cached_property
    def stress(self) -> StressTest:
        """Following the forecast, the advised and the robust policy, and safety, each in the others' worst world."""
        problem, robust = self.problem, self.robust
        advised, safety = {"advised": self.policy} if self.chosen else {}, SafetyPolicy(problem)
        if self.capacity is not None:
            safety = RobustPolicy(problem, Nothing(), capacity=self.capacity).fit_rows(self.rows)
        policies = {"plug-in": self.following, **advised, "robust": robust, "safety": safety}
        key = "stress", problem, self.chosen, robust.guarantee_, robust.slack_, repr(self.capacity)
        return self.rows.cache.get(
            key, lambda: stress_test(policies, self.cases, guarantee=robust.guarantee_, slack=robust.slack_)
        )

    @cached_property
    def backtest(self) -> Backtest | None:
        """What advice would have come to, where rows have enough periods; it knows no capacity."""
        walked = self.capacity is None and self.cases.periods is not None and self.rows.outcomes is not None
        if not walked or self.rows.n_units <= FEWEST_PERIODS:
            return None
        return self._cached(backtest, confidence=self.confidence, tolerance=self.tolerance)

    @cached_property
    def bands(self) -> tuple[Band, ...]:
        """Thresholds, for forecasts of one coordinate that the rule looks at alone; else empty."""
        return self.policy.bands() if self.problem.dimension == 1 and not self.policy.columns else ()

    @property
    def points(self) -> FloatArray:
        """Forecasts of one coordinate: evenly spaced, and both sides of every threshold to draw jumps upright."""
        ends = [end for band in self.bands for end in (band.first, band.last)]
        return np.unique([*np.linspace(*self.problem.space.interval, 241), *ends])

    @property
    def histogram(self) -> tuple[FloatArray, FloatArray]:
        """How many rows have forecasts of one coordinate in each of sixty bins, by weight; and the edges."""
        rows, ends = self.rows, self.problem.space.interval
        shares, edges = rows.cache.get(
            "histogram", lambda: np.histogram(rows.forecasts[:, 0], bins=60, range=ends, weights=rows.weights)
        )
        return shares * len(self.cases), edges

    @property
    def guarantee(self) -> Guarantee:
        """What is relied on."""
        return self.ladder.best.guarantee if self._promised is None else self._promised

    @property
    def guarantee_name(self) -> str:
        """How the page calls the guarantee: the rung's name, or what was asked for."""
        return self.ladder.best.name if self.chosen else repr(self.robust.guarantee_)

    @property
    def rung_confidence(self) -> float:
        """Confidence of the guarantee's own audit: higher where it was chosen among several that hold at once."""
        return self.ladder.rung_confidence if self.chosen else self.confidence

    @property
    def fingerprint(self) -> str:
        """SHA-256 of forecasts, outcomes and weights: of the numbers, so that a file's format does not matter."""
        rows = self.rows
        numbers = np.column_stack([rows.forecasts, rows.known_outcomes, rows.weights]).astype("<f8")
        return hashlib.sha256(f"{numbers.shape}".encode() + numbers.tobytes()).hexdigest()

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what computed the numbers."""
        return {"python": platform.python_version(), **{name: metadata.version(name) for name in _VERSIONS_OF}}

    def to_html(self) -> str:
        """Return the page."""
        from prudent.report.charts import charts

        try:
            import jinja2
        except ImportError:
            raise MissingExtraError("jinja2", "report", "a report") from None
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("prudent.report", ""),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
        )
        environment.filters["number"] = _number
        return environment.get_template("page.html.j2").render(
            report=self,
            charts=charts(self),
            format_number=format_number,
            moments=self.audit.p_values.argsort(kind="stable")[:12],
            best=self.ladder.best,
            confidence=f"{100 * self.rung_confidence:g}%",
        )

    def save(self, path: PathLike) -> None:
        """Write the page to one file that needs no network, whole or not at all."""
        write_text(path, self.to_html())

    def _cached(self, ask: Callable[..., Result], **options: Any) -> Result:
        """Keep the answer about these cases with the rows, for other reports about them."""
        given = (repr(each) if isinstance(each, dict) else each for each in options.values())
        key = ask, self.problem, *given
        return self.rows.cache.get(key, lambda: ask(self.problem, self.cases, **options))


def _number(value: float) -> str:
    """Four digits; what is left of zero after rounding is zero."""
    return "0" if abs(value) < 1e-9 else format_number(value, 4)
