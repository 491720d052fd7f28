"""Everything that a fit finds, in one frozen record: what a policy plays by, and what its file holds."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from prudent.arrays import FloatArray, frozen
from prudent.guarantees import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate, Game, LocalGame, local_game, pure_actions


@frozen
class FittedPolicy:
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
    """

    problem: DecisionProblem
    specified: Guarantee
    guarantee: Guarantee
    slack: Slack
    randomize: bool
    per_row: tuple[str, ...]
    multipliers: FloatArray | None
    tests: EvaluatedTests
    slack_cost: float
    certificate: Certificate
    examples: FloatArray
    n_snapped: int

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
