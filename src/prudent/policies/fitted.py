"""Everything that a fit finds, in one frozen record: what a policy plays by, and what its file holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.arrays import Context, FloatArray, frozen
from prudent.cases.mean_bounds import PastErrors
from prudent.errors import InputError
from prudent.formatting import Printable, Table, format_table
from prudent.guarantees import Guarantee
from prudent.guarantees.base import Term, symbolic_tests
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import BestResponse
from prudent.guarantees.within import Within
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate, Game, LocalGame, local_game, pure_actions

if TYPE_CHECKING:
    from prudent.policies.base import Policy
    from prudent.policies.capacity import Rationing

#: What a file holds of a certificate.
CERTIFICATE_FIELDS = ("lower", "upper", "status", "message")


@frozen
class GroupCertificates(Table):
    """What is guaranteed within each group of rows, and what no policy can beat there.

    Attributes
    ----------
    names : tuple of str
    rows : tuple of int
        How many the fitting sample has.
    shares : tuple of float
        Of the weight: the certificate of all rows is the mean of these with these shares.
    certificates : tuple of Certificate
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    shares: tuple[float, ...]
    certificates: tuple[Certificate, ...]

    @property
    def columns(self) -> dict[str, Any]:
        """The table by column, in the order shown."""
        found = {name: tuple(getattr(each, name) for each in self.certificates) for name in CERTIFICATE_FIELDS[:3]}
        return {"group": self.names, "rows": self.rows, "share": self.shares} | found

    def __str__(self) -> str:
        return format_table(self.columns, range(len(self.names)))


@frozen
class FittedPolicy(Printable):
    """What a robust policy plays by.

    Attributes
    ----------
    problem : DecisionProblem
    specified, guarantee : Guarantee
        As it was given, and with everything fixed that depends on the sample.
    slack : Slack
        In numbers, also where it was measured.
    randomize : bool
    per_row : tuple of str
        Which of "rewards" and "costs" every row has of its own.
    multipliers : array of shape (k, d) or (K,), or None
        Of the unscaled tests; None under full calibration.
    tests : EvaluatedTests
        Names, scales and bounds of the tests, without rows.
    slack_cost : float
        What slack costs: its support function at the multipliers that were found.
    certificate : Certificate
        On the fitting sample.
    examples : array
        A few of the forecasts, by which rows that were fitted on are recognised.
    n_snapped : int
        Rows moved onto the space by at most 1e-6 of its width.
    against : Policy or None
        The rule in use, where the gain over it is maximised. Without multipliers that rule itself is played.
    past : PastErrors or None
        Of the moments, where slack was measured.
    groups : GroupCertificates or None
        Where groups share no slack, so that each has a certificate of its own.
    unseen : array or None
        Multipliers for rows of groups that the sample did not have; they have no certificate.
    rationing : Rationing or None
        Where there is a capacity: the parts that are played. ``multipliers`` are then the mean of theirs.
    """

    problem: DecisionProblem = field(repr=False)
    specified: Guarantee
    guarantee: Guarantee = field(repr=False)
    slack: Slack
    randomize: bool
    per_row: tuple[str, ...]
    multipliers: FloatArray | None
    tests: EvaluatedTests = field(repr=False)
    slack_cost: float
    certificate: Certificate = field(repr=False)
    examples: FloatArray = field(repr=False)
    n_snapped: int
    against: Policy | None = field(repr=False, default=None)
    past: PastErrors | None = field(repr=False, default=None)
    groups: GroupCertificates | None = field(repr=False, default=None)
    unseen: FloatArray | None = field(repr=False, default=None)
    rationing: Rationing | None = field(repr=False, default=None)

    def __str__(self) -> str:
        return f"{self.specified!r}: {self.certificate}"

    def tilts(
        self,
        forecasts: FloatArray,
        context: Context | None = None,
        tests: EvaluatedTests | None = None,
        base: FloatArray | None = None,
    ) -> FloatArray | None:
        """Return the tilt at each forecast, ``(n, d)``; None where there are no multipliers.

        Against a rule in use each action counts by what it gains over that, which shifts the tilt by its rewards:
        ``base`` where rows have rewards of their own.
        """
        if self.multipliers is None:
            return None
        rows, rule = (self.multipliers, forecasts, self.problem.space, context), self.against
        if isinstance(self.guarantee, Within):
            found = self.guarantee.tilts(*rows, unseen=self.unseen)
        else:
            found = self.guarantee.tilts(*rows) if tests is None else tests.tilts(self.multipliers)
        if rule is None:
            return found
        return found - (rule._mixtures(forecasts, context) @ self.problem.rewards if base is None else base)

    def terms(self) -> list[Term] | None:
        """The tilt as a sum of expressions; None where that of the rule in use is not known as one."""
        assert self.multipliers is not None  # noqa: S101  # asked for where there are some
        if isinstance(self.guarantee, Within) and self.unseen is not None:
            blocks = [*self.guarantee.blocks(self.multipliers), self.unseen]
            found = self.guarantee.stated(self.problem.space, rest=True).tilt(self.guarantee.joined(blocks))
        else:
            found = symbolic_tests(self.guarantee, self.problem.space).tilt(self.multipliers)
        if self.against is None:
            return found
        if type(self.against).__name__ == "PlugInPolicy":
            return [*found, Term(-self.problem.rewards, BestResponse(self.problem))]
        rule: FittedPolicy | None = getattr(self.against, "fitted_", None)
        if rule is None or not rule.guarantee.full:
            return None
        follows = ((share, part.problem) for share, part in rule.parts)
        return [*found, *(Term(-share * problem.rewards, BestResponse(problem)) for share, problem in follows)]

    def slack_for(self, horizon: str, n_cases: float | None = None) -> Slack:
        """Return the slack of the fit, or a larger one for the next period, or for the realised mean of some cases."""
        if horizon == "average" and n_cases is None:
            return self.slack
        if self.past is None:
            raise InputError(
                "a policy whose slack was promised knows no past outcomes: measure it for other horizons, with "
                "slack='audit' and fit(forecasts, outcomes, periods=...)."
            )
        radius, measured = np.asarray(self.slack.radius), self.past.radii
        longer = self.past.radii_for(horizon, n_cases) / np.where(measured > 0, measured, 1.0)
        return replace(self.slack, radius=radius * np.maximum(longer, 1.0).reshape(radius.shape))

    @cached_property
    def game(self) -> Game:
        """The game that all rows share."""
        return Game.of_problem(self.problem)

    @cached_property
    def local(self) -> LocalGame:
        """The tilted game of a row."""
        return local_game(self.game)

    def mixtures(self, tilts: FloatArray, forecasts: FloatArray | None = None) -> FloatArray:
        """Return what is played at tilts; with ``forecasts`` ties between mixtures are resolved there."""
        if self.randomize:
            return self.local.mixtures(tilts, forecasts)
        return np.eye(self.problem.n_actions).take(pure_actions(self.game, tilts), axis=0)

    @property
    def deterministic(self) -> bool:
        """True if what is played never mixes actions because of how it was found."""
        if self.rationing is not None:
            return len(self.parts) == 1 and self.parts[0][1].deterministic
        rule = self.against if self.multipliers is None else None
        return self.multipliers is None if rule is None else rule.deterministic

    @property
    def parts(self) -> tuple[tuple[float, FittedPolicy], ...]:
        """The rules that use exactly the capacity together, and how often each is played; none without capacity."""
        return () if self.rationing is None else self.rationing.parts

    def beliefs(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        """Return what the policy guards against at each forecast, ``(n, d)``."""
        if self.rationing is not None:
            return sum_of(weight * part.beliefs(forecasts, context) for weight, part in self.parts)
        tilts = self.tilts(forecasts, context)
        return forecasts.copy() if tilts is None else self.local.beliefs(tilts)

    def play(
        self, forecasts: FloatArray, context: Context | None = None, tests: EvaluatedTests | None = None
    ) -> FloatArray:
        """Return what is played at forecasts, ``(n, m)``; their ``tests``, if they are known, save time."""
        if self.rationing is not None:
            return sum_of(weight * part.play(forecasts, context, tests) for weight, part in self.parts)
        tilts = self.tilts(forecasts, context, tests)
        if tilts is None:
            rule = self.against
            return self.problem.best_mixtures(forecasts) if rule is None else rule._mixtures(forecasts, context)
        return self.mixtures(tilts, forecasts)


def sum_of(arrays: Iterable[FloatArray]) -> FloatArray:
    """Add arrays up, in their order."""
    return reduce(np.add, arrays)
