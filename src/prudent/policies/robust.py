"""The minimax-optimal policy for what a guarantee allows: mixed (the saddle), or the best deterministic rule."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import Context, FloatArray, probability, truth
from prudent.cases.cases import read_cases
from prudent.cases.mean_bounds import PastErrors
from prudent.cases.memory_rows import MemoryRows, first_rows
from prudent.errors import InputError
from prudent.guarantees import Guarantee
from prudent.guarantees.names import read_guarantee
from prudent.guarantees.within import Within
from prudent.policies.base import Policy, require_problem, require_salt
from prudent.policies.fitted import FittedPolicy, GroupCertificates
from prudent.policies.fitting import find_rule, follow
from prudent.policies.horizons import certify_cases, own_of_rows, play_rule
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate, Game, local_game
from prudent.spaces import Label


class RobustPolicy(Policy):
    """The policy with the highest expected utility in the worst world that a guarantee allows.

    It plays the maximin mixture of the game tilted by ``s(v) = h(v) @ multipliers_``, or, without randomising, the one
    action that is best there.

    Parameters
    ----------
    problem : DecisionProblem
    guarantee : Guarantee or str
        What the forecaster promises, from ``prudent.guarantees``.
    criterion : {"utility", "improvement"}
        What is highest in the worst world: the expected utility, or what it gains over the rule in use. Certificates
        are then about that gain. Where no rule is sure to gain, the rule in use is what is played, exactly.
    against : Policy, optional
        The rule in use, for "improvement": following the forecast by default.
    randomize : bool
        False for the best deterministic rule: ``certificate_.lower`` is what the rule guarantees,
        ``certificate_.upper`` what the best mixed policy does; the status says whether the rule is proven best among
        deterministic ones.
    slack : float, array, Slack or "audit"
        How far the promise may be off; zero is exact. "audit" measures it on the outcomes given to ``fit``: a set
        centred at the measured moments.
    confidence : float
        Confidence level, between 0 and 1, of slack that is measured; slack given as numbers does not use it.
    unseen : {"refuse", "pooled"}
        What happens to rows of groups of :class:`~prudent.guarantees.Within` that the fitting sample did not have:
        they are refused, or played as if groups were not told apart, without a certificate.
    salt : str
        Mixed into keyed draws, so that two policies draw independently.
    random_state : int, RandomState or None
        For draws without keys. With an integer the sequence of all draws after a fit is reproducible.
    capacity : mapping, optional
        What may be used on average: ``{"treat": 0.2}`` is an action and its largest share of the rows' weight,
        ``{"hours": ({"treat": 2.0, "call": 0.5}, 0.3)}`` what actions use of a resource, and its limit.

    Attributes
    ----------
    certificate_ : Certificate
        On the fitting sample: ``lower``, ``upper``, ``gap``, ``status``, ``message``.
    multipliers_ : array of shape (k, d) or (K,), or None
        Of the unscaled tests; None under full calibration.
    guarantee_ : Guarantee
        With everything fixed that depends on the sample.
    slack_ : Slack
        In numbers, also where it was measured.
    groups_ : GroupCertificates or None
        Certificates of the groups of :class:`~prudent.guarantees.Within`, where it is the whole guarantee.
    shadow_prices_ : dict
        By resource, what one more unit of its capacity would add to the utility per unit of weight.
    fitted_ : FittedPolicy
        The same and all else that the policy plays by, in one record.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> forecasts = (np.arange(1000) + 0.5) / 1000
    >>> policy = prudent.RobustPolicy(problem, "self-orthogonal").fit(forecasts)
    >>> round(policy.certificate_.lower, 4)   # 1 - 1/sqrt(6)
    0.5918
    >>> rule = prudent.RobustPolicy(problem, "self-orthogonal", randomize=False).fit(forecasts)
    >>> round(rule.certificate_.lower, 4)   # 1 - 1/sqrt(3)
    0.4226
    """

    fitted_: FittedPolicy

    def __init__(
        self,
        problem: DecisionProblem,
        guarantee: Guarantee | str,
        *,
        criterion: str = "utility",
        against: Policy | None = None,
        randomize: bool = True,
        slack: Any = 0.0,
        confidence: float = 0.95,
        unseen: str = "refuse",
        salt: str = "",
        random_state: Any = None,
        capacity: Any = None,
    ) -> None:
        self.problem = problem
        self.guarantee = guarantee
        self.criterion = criterion
        self.against = against
        self.randomize = randomize
        self.slack = slack
        self.confidence = confidence
        self.unseen = unseen
        self.salt = salt
        self.random_state = random_state
        self.capacity = capacity

    @property
    def shadow_prices_(self) -> dict[Label, float]:
        """What one more unit of each capacity would add to the utility; empty without capacity."""
        found = self._fitted.rationing
        return {} if found is None else dict(zip(found.resources.names, found.prices.tolist(), strict=True))

    @property
    def certificate_(self) -> Certificate:
        """What is guaranteed on the fitting sample."""
        return self._fitted.certificate

    @property
    def multipliers_(self) -> FloatArray | None:
        """Multipliers of the unscaled tests; None under full calibration."""
        return self._fitted.multipliers

    @property
    def guarantee_(self) -> Guarantee:
        """The guarantee, with everything fixed that depends on the sample."""
        return self._fitted.guarantee

    @property
    def slack_(self) -> Slack:
        """The slack in numbers."""
        return self._fitted.slack

    @property
    def groups_(self) -> GroupCertificates | None:
        """Certificates by group, where groups share no slack and have no test in common."""
        return self._fitted.groups

    @property
    def _fitted(self) -> FittedPolicy:
        check_is_fitted(self)
        return self.fitted_

    @property
    def deterministic(self) -> bool:
        """True if nothing is drawn: a deterministic rule, or full calibration, where best responding is optimal."""
        return not self.randomize or self._fitted.deterministic

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        context: Any = None,
        periods: Any = None,
        rewards: Any = None,
        costs: Any = None,
    ) -> Self:
        """Find the optimal policy for a sample of forecasts.

        Parameters
        ----------
        X : array of shape (n,) or (n, d), or Cases
            Forecasts. Those of a table (:func:`prudent.scan`) stay in their engine.
        y : array, optional
            Outcomes; where the slack is measured they are its source, else a warning says if they contradict it.
        sample_weight : array of shape (n,), optional
            Non-negative, not all zero.
        context : frame or mapping of columns, optional
            What else is known at decision time.
        periods : array of shape (n,), optional
            Rows of one period depend on each other; used only where the slack is measured.
        rewards : array of shape (n, m, d), or (n, m) where d = 1, optional
            Rewards of every row; a frame is matched by the names of the actions. What is not given is the problem's.
        costs : array of shape (n, m), optional
            Costs of every row.
        """
        cases = read_cases(X, y, weights=sample_weight, context=context, periods=periods)
        rows = cases.on(self.require_parameters()[0].space)
        found = self._find(rows, rewards=rewards, costs=costs)
        if cases.has_outcomes and not Slack.read(self.slack).needs_outcomes:
            self._warn_of_contradictions(rows, found)
        self._remember(X)
        self.fitted_ = found  # last: a fit that fails leaves the policy as it was
        return self

    def _warn_of_contradictions(self, rows: Any, found: FittedPolicy) -> None:
        """Say where outcomes that were given contradict the guarantee with the slack that was given."""
        if found.guarantee.full or rows.n_units < 2:  # one row, or one period, contradicts nothing
            return
        measured = rows.measure(found.guarantee, float(self.confidence)).estimates
        off = found.slack.contradicted(measured)
        if off.any():
            worst = int(np.flatnonzero(off)[np.argmin(measured.p_values[off])])
            warnings.warn(
                f"the outcomes given contradict the guarantee: the moment {measured.tests.names[worst]!r} is "
                f"{measured.estimates[worst]:.3g}, give or take {measured.radii[worst]:.2g}, so the certificate does "
                f"not hold for them. Measure the slack (slack='audit'), or ask prudent.advise what to do.",
                stacklevel=3,
            )

    def fit_rows(self, rows: Any) -> Self:
        """Fit to cases that were placed before, :meth:`prudent.Cases.on`."""
        found = self._find(rows)
        self._remember(None)
        self.fitted_ = found
        return self

    def _find(self, rows: Any, **given: Any) -> FittedPolicy:
        """Solve for what the guarantee allows on these rows; nothing of the policy changes."""
        problem, guarantee = self.require_parameters()
        per_row = tuple(name for name, values in given.items() if values is not None)
        special = guarantee.full or guarantee.context_columns or not self.randomize or self.capacity
        if not isinstance(rows, MemoryRows) and (special or self.criterion == "improvement"):
            rows = rows.in_memory().on(problem.space)
        resolved = rows.resolve(guarantee)
        if per_row and (not isinstance(rows, MemoryRows) or not self.randomize or guarantee.full):
            raise InputError(
                "rewards and costs per row need rows in memory, randomize=True and a guarantee with tests."
            )
        if self.unseen == "pooled" and (not isinstance(resolved, Within) or self.capacity is not None):
            raise InputError(
                f"unseen='pooled' needs a guarantee Within(...), nothing beside it and no capacity; got {guarantee!r}."
            )
        if self.capacity is not None:
            if per_row:
                raise InputError("capacity takes no rewards or costs of rows.")
            from prudent.policies.capacity import fit_within  # late: it builds on this file

            return replace(fit_within(self, rows, resolved), specified=guarantee)
        own, against, in_use = own_of_rows(problem, rows, given), None, None
        if self.criterion == "improvement":
            against = follow(problem) if self.against is None else self.against
            in_use = play_rule(against, rows, own)
        found = find_rule(self, problem, rows, resolved, against, in_use, own)
        return replace(found, specified=guarantee, per_row=per_row)

    def require_parameters(self) -> tuple[DecisionProblem, Guarantee]:
        """Check the parameters before any work."""
        problem = require_problem(self.problem)
        guarantee = read_guarantee(self.guarantee, problem)
        require_salt(self.salt)
        Slack.read(self.slack)
        probability(self.confidence, "confidence")
        truth(self.randomize, "randomize")
        if self.unseen not in ("refuse", "pooled"):
            raise InputError(f"unseen must be 'refuse' or 'pooled'; got {self.unseen!r}.")
        if self.criterion not in ("utility", "improvement"):
            raise InputError(f"criterion must be 'utility' or 'improvement'; got {self.criterion!r}.")
        if self.against is not None and (
            self.criterion == "utility" or not isinstance(self.against, Policy) or self.against._problem != problem
        ):
            raise InputError(
                f"against must be a policy for the same problem, with criterion='improvement'; got {self.against!r}. "
                f"Actions that were taken are FixedRule(problem, labels=...)."
            )
        if self.capacity is not None and not self.randomize:
            raise InputError("capacity needs randomize=True: where rows tie for the last place a draw decides.")
        return problem, guarantee

    def predict_proba(self, X: Any, *, context: Any = None, rewards: Any = None, costs: Any = None) -> FloatArray:
        """Return the mixture played at each forecast, shape ``(n, m)``; rows lie on the simplex.

        Parameters
        ----------
        X : array of shape (n,) or (n, d), or Cases
            Forecasts.
        context : frame or mapping of columns, optional
            Where the guarantee looks at more than forecasts.
        rewards, costs : arrays, optional
            Of every row, where the policy was fitted with such.
        """
        forecasts, known = self._rows(X, context)
        own = self._require_own({"rewards": rewards, "costs": costs})
        if not own:
            return self._mixtures(forecasts, known)
        fitted, base = self._fitted, None
        game, rule = Game.of_rows(fitted.problem, *fitted.problem.of_rows(len(forecasts), **own)), fitted.against
        if rule is not None:
            in_use = rule.predict_proba(forecasts, **({} if rule.blind else {"context": known, **own}))
            if fitted.multipliers is None:
                return in_use
            base = game.mixed(in_use)[0]
        tilts = fitted.tilts(forecasts, known, base=base)
        assert tilts is not None  # noqa: S101  # only full calibration has none, and takes no rewards of rows
        return local_game(game).mixtures(tilts, forecasts)

    @property
    def past_(self) -> PastErrors | None:  # type: ignore[override]  # other policies are given theirs
        """Past errors in the moments, where slack was measured."""
        return self._fitted.past

    def certify(
        self,
        X: Any,
        *,
        context: Any = None,
        horizon: str = "average",
        realised: bool = False,
        sample_weight: Any = None,
        **own: Any,
    ) -> Certificate:
        """Certify what the policy guarantees on these cases, at the multipliers that were fitted.

        A certificate of the fitting sample does not speak of cases with other forecasts; this one does, without
        outcomes. ``upper`` holds for every policy. ``own`` are rewards and costs of rows, where the fit had such. The
        slack is that of the fit, for the long run. Where it was measured, ``realised=True`` allows for what moments
        vary by chance in so many cases; where that was on periods, ``horizon="next period"`` for what they vary from
        one to the next.

        Examples
        --------
        >>> import numpy as np, prudent
        >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
        >>> policy = prudent.RobustPolicy(problem, "self-orthogonal").fit((np.arange(1000) + 0.5) / 1000)
        >>> round(policy.certify(np.linspace(0.4, 0.6, 11)).lower, 4)
        0.5049
        """
        cases, fitted = read_cases(X, weights=sample_weight, context=context), self._fitted
        found = certify_cases(self, cases, horizon, realised, own)
        gains = fitted.against is not None and fitted.multipliers is not None
        return found.on_grid(self._problem.discretization, gains)

    def at_row(self, **own: Any) -> RobustPolicy:
        """Return the policy of one case with its own rewards ``(m, d)`` or costs ``(m,)``, for a problem with these."""
        problem, alone = self._problem, {name: np.asarray(each)[None] for name, each in self._require_own(own).items()}
        if not alone:
            return self
        (rewards,), (costs,) = problem.of_rows(1, **alone)
        case = DecisionProblem(rewards, costs, actions=problem.actions, space=problem.space)
        found, rule = copy(self), self._fitted.against
        if rule is not None:
            rule = clone(rule)
            rule.set_params(**{name: case for name in rule.get_params() if name.split("__")[-1] == "problem"})
        found.problem, found.fitted_ = case, replace(self._fitted, problem=case, per_row=(), against=rule)
        return found

    def _require_own(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return rewards and costs of rows, which must be given where those of the fit had such."""
        own, fitted = {name: each for name, each in given.items() if each is not None}, self._fitted.per_row
        if set(own) != set(fitted):
            wanted = f"{' and '.join(fitted)} per row" if fitted else "no rewards or costs per row"
            raise InputError(f"this policy was fitted with {wanted}; got {' and '.join(own) or 'none'}.")
        return own

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the guarantee and the rule in use."""
        fitted = self._fitted
        own = () if fitted.multipliers is None else fitted.guarantee.context_columns
        return tuple(dict.fromkeys((*own, *(() if fitted.against is None else fitted.against.columns))))

    def _beliefs(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        return self._fitted.beliefs(forecasts, context)

    def _mixtures(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        self._require_own({})
        return self._in_chunks(self._fitted.play, forecasts, context)

    def on_rows(self, rows: MemoryRows) -> FloatArray:
        """Return the mixture played at each row, by the tests that are cached with the rows."""
        fitted = self._fitted
        if fitted.per_row or fitted.multipliers is None or self.columns:
            return self._mixtures(rows.forecasts, rows.context)
        tests, plain = rows.evaluate(fitted.guarantee), fitted.against is None and fitted.rationing is None
        if fitted.randomize and plain and tests.cells is not None:  # equal tests have equal tilts
            count, index = tests.cells
            few = tests.take(first_rows(index, count)).tilts(fitted.multipliers)
            if fitted.local.settled(few):
                return fitted.mixtures(few).take(index, axis=0)
        return fitted.play(rows.forecasts, None, tests)
