"""The rule that a fitted policy plays, ready to be written."""

from __future__ import annotations

from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.policies.base import Policy
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy
from prudent.policies.sql.pipeline import Pipeline
from prudent.policies.sql.rules import Finite, Rule, band_rule, splits
from prudent.policies.sql.tilts import Cells, Formula, Tilt, best_response, first_extreme, tilt_of
from prudent.policies.sql.vertices import vertex_rule
from prudent.solvers import Game
from prudent.solvers.envelope import Envelope
from prudent.solvers.interior_game import InteriorGame
from prudent.solvers.pure import pure_actions
from prudent.solvers.pure_scalar import staircase
from prudent.solvers.vertices import VertexGame
from prudent.spaces import Simplex

__all__ = ["rule_of"]


def rule_of(policy: Policy, names: Pipeline, v: list[str], shown: str) -> Rule:
    """Find the simplest form of what is played at the forecast ``v``, and demand what its guarantee demands."""
    problem = policy._problem
    everything = np.eye(problem.n_actions)
    if isinstance(policy, SafetyPolicy):
        somewhere = problem.space.support_minimizer(np.ones((1, problem.dimension)))
        return _constant(names, policy._mixtures(somewhere))
    plug_in = isinstance(policy, PlugInPolicy)
    if not plug_in and not isinstance(policy, (RobustPolicy, PureRobustPolicy)):
        raise InputError(f"a {type(policy).__name__} cannot be written in SQL.")
    if plug_in or policy.multipliers_ is None:
        cells = Cells(everything, index=best_response(problem, names, v))
        return _finite(names, cells, everything)
    tilt = tilt_of(policy.guarantee_, policy.multipliers_, problem.space, names, v)
    for condition, reason in tilt.demands:
        names.demand(condition, f"the policy {reason}; got ", shown)
    mixtures = _constant_mixtures(policy, tilt)
    if mixtures is not None:
        cell = next((term for term in tilt.used if isinstance(term, Cells)), None)
        return _constant(names, mixtures) if cell is None else _finite(names, cell, mixtures)
    return _tilted(policy, tilt, names, v)


def _tilted(policy: RobustPolicy | PureRobustPolicy, tilt: Tilt, names: Pipeline, v: list[str]) -> Rule:
    """Write the rule for a tilt that takes more than finitely many values."""
    problem = policy._problem
    game = Game.of_problem(problem)

    def tilt_at(forecast: float) -> float:
        tilts: Any = policy._tilts(np.array([[forecast]]))
        return float(tilts[0, 0])

    dialect = names.dialect
    low, high = (float(bound[0]) for bound in problem.space.bounds)
    if problem.dimension == 1:
        text = tilt.write(names)[0]
        s = text if tilt.monotone else names.bind("s", [text])[0]
        if isinstance(policy, PureRobustPolicy):
            stairs = staircase(game)
            if tilt.monotone:
                pieces, edges = splits(lambda v: int((tilt_at(v) >= stairs.thresholds).sum()), low, high)
                conditions = tuple(f"{v[0]} < {dialect.number(edge)}" for edge in edges)
            else:
                pieces = list(range(len(stairs.actions)))
                conditions = tuple(f"{s} < {dialect.number(threshold)}" for threshold in stairs.thresholds)
            played = np.eye(problem.n_actions)[stairs.actions[pieces]]
            return _finite(names, Cells(played, edges=conditions), played)
        if isinstance(policy._local, Envelope):
            return band_rule(policy._local, dialect, s, v[0], tilt_at if tilt.monotone else None, np.array([low, high]))
        return _constant(names, np.ones((1, 1)))
    if isinstance(policy, PureRobustPolicy):
        return _best_of(policy, names, names.bind("s", tilt.write(names)))
    if isinstance(policy._local, VertexGame):
        return vertex_rule(policy._local, names, tilt.write(names), v)
    if problem.n_actions == 1:
        return _constant(names, np.ones((1, 1)))
    raise InputError(
        "this policy's game has too many vertices to be tabulated, so its mixtures have no SQL form. Decide in Python, "
        "or reduce the number of actions or coordinates."
    )


def _best_of(policy: PureRobustPolicy, names: Pipeline, s: list[str]) -> Rule:
    """Write ``argmax_a { c_a + min_p p.(r_a + s) }`` in several coordinates."""
    problem, number = policy._problem, names.dialect.number
    low, high = problem.space.bounds
    simplex = isinstance(problem.space, Simplex)
    scores = []
    for rewards, cost in zip(problem.rewards, problem.costs, strict=True):
        tilted = [f"({number(reward)} + {tilt})" for reward, tilt in zip(rewards, s, strict=True)]
        if simplex:
            least = f"LEAST({', '.join(tilted)})"
        else:
            ends = zip(tilted, low, high, strict=True)
            least = " + ".join(f"LEAST({number(a)} * {text}, {number(b)} * {text})" for text, a, b in ends)
            least = f"({least})"
        scores.append(f"{number(-cost)} + {least}")
    everything = np.eye(problem.n_actions)
    return _finite(names, Cells(everything, index=first_extreme(scores, names, "max")), everything)


def _constant_mixtures(policy: RobustPolicy | PureRobustPolicy, tilt: Tilt) -> FloatArray | None:
    """Compute what is played in each cell, or once, where the tilt has finitely many values; None elsewhere."""
    varying = [term for term in tilt.used if not (isinstance(term, Formula) and term.expression is None)]
    cells = [term for term in varying if isinstance(term, Cells)]
    if len(varying) > 1 or len(cells) < len(varying):
        return None
    tilts = np.zeros((len(cells[0].table) if cells else 1, tilt.dimension))
    for term in tilt.used:
        tilts += term.table if isinstance(term, Cells) else term.multipliers
    if isinstance(policy, PureRobustPolicy):
        return np.eye(policy._problem.n_actions)[pure_actions(Game.of_problem(policy._problem), tilts)]
    if isinstance(policy._local, InteriorGame):  # an approximation, which may depend on the rows solved together
        return None
    if isinstance(policy._local, VertexGame) and not policy._local.settled(tilts):
        return None
    return policy._local.mixtures(tilts)


def _constant(names: Pipeline, mixtures: FloatArray) -> Finite:
    return Finite(names.dialect, lambda outcomes: outcomes[0], mixtures)


def _finite(names: Pipeline, cells: Cells, mixtures: FloatArray) -> Finite:
    return Finite(names.dialect, lambda outcomes: cells.pick(names.dialect, outcomes), mixtures)
