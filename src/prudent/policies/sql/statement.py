"""Write a fitted policy as SQL: columns of forecasts in, an action or its probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, listed
from prudent.errors import InputError
from prudent.policies.base import Policy, require_salt
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy
from prudent.policies.sql.pipeline import Pipeline
from prudent.policies.sql.dialects import ROW, Dialect, dialect_named
from prudent.policies.sql.placing import accepted, placed
from prudent.policies.sql.rules import Finite, Rule, band_rule, splits
from prudent.policies.sql.tilts import Cells, Formula, Tilt, best_response, tilt_of
from prudent.policies.sql.vertices import vertex_rule
from prudent.solvers import Game
from prudent.solvers.envelope import Envelope
from prudent.solvers.pure import pure_actions
from prudent.solvers.pure_scalar import staircase
from prudent.solvers.vertices import VertexGame
from prudent.spaces import Label

__all__ = ["policy_to_sql"]

Output = Literal["action", "probabilities"]

_MOST_CHARACTERS = 2_000_000


def policy_to_sql(
    policy: Policy,
    dialect: str,
    forecast: str | Sequence[str] | None,
    *,
    output: Output,
    key: str | None,
    table: str | None,
    invalid: Literal["error", "null"],
) -> str | dict[Label, str]:
    """Write a policy; see :meth:`prudent.Policy.to_sql`."""
    check_is_fitted(policy)
    engine = dialect_named(dialect)
    if output not in ("action", "probabilities"):
        raise InputError(f"output must be 'action' or 'probabilities'; got {output!r}.")
    if invalid not in ("error", "null"):
        raise InputError(f"invalid must be 'error' or 'null'; got {invalid!r}.")
    columns = [_column(engine, name, table, "forecast") for name in _forecast_names(policy, forecast)]
    problem = policy._problem
    raw = [f"{ROW}.r{j + 1}" for j in range(len(columns))]
    source = {f"r{j + 1}": engine.as_double(column) for j, column in enumerate(columns)}
    names = Pipeline(engine, source, strict=invalid == "error")
    shown = " || ', ' || ".join(engine.as_text(column) for column in raw)
    names.demand(accepted(problem.space, names, raw), f"forecasts must lie in {problem.space!r}; got ", shown)
    v = placed(problem.space, names, raw)
    rule = _rule(policy, names, v, shown)
    if output == "probabilities":
        bodies = dict(zip(problem.actions, rule.probabilities(), strict=True))
        return _checked({label: names.close(body) for label, body in bodies.items()})
    labels = _labels(engine, problem.actions)
    if rule.mixed:
        if key is None:
            raise InputError(
                "this policy plays mixtures, and an action is drawn by a key of the record, never by the forecast: pass "
                "key='the id column', or ask for output='probabilities', or fit a PureRobustPolicy, which needs no key."
            )
        column = _column(engine, key, table, "key")
        salt = require_salt(getattr(policy, "salt", ""))
        source["u"] = engine.uniform(f"{salt}\0".encode(), column)
        source["known"], source["key"] = engine.usable_key(column), engine.as_text(column)
        message = "keys must not be missing, and must be text or whole numbers (cast others to text); got "
        names.demand(f"{ROW}.known", message, f"{ROW}.key")
    return _checked({"": names.close(rule.action(labels, f"{ROW}.u"))})[""]


def _checked(texts: dict[Label, str]) -> dict[Label, str]:
    """Refuse expressions that engines would choke on."""
    longest = max(len(text) for text in texts.values())
    if longest > _MOST_CHARACTERS:
        raise InputError(
            f"this policy takes {longest:,} characters of SQL, more than the {_MOST_CHARACTERS:,} that engines are "
            f"asked to parse here. Decide in Python, or use fewer tests, actions or coordinates."
        )
    return texts


def _rule(policy: Policy, names: Pipeline, v: list[str], shown: str) -> Rule:
    problem = policy._problem
    everything = np.eye(problem.n_actions)
    if isinstance(policy, SafetyPolicy):
        somewhere = problem.space.support_minimizer(np.ones((1, problem.dimension)))
        return _constant(names, policy.predict_proba(somewhere))
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
        cells = next((term for term in tilt.used if isinstance(term, Cells)), None)
        return _constant(names, mixtures) if cells is None else _finite(names, cells, mixtures)
    return _tilted(policy, tilt, names, v)


def _tilted(policy: RobustPolicy | PureRobustPolicy, tilt: Tilt, names: Pipeline, v: list[str]) -> Rule:
    """Write the rule for a tilt that takes more than finitely many values."""
    problem = policy._problem
    game = Game.of_problem(problem)

    def tilt_at(forecast: float) -> float:
        tilts = policy._tilts(np.array([[forecast]]))
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
            return band_rule(
                policy._local, dialect, s, v[0], tilt_at if tilt.monotone else None, np.array([low, high])
            )
        return _constant(names, np.ones((1, 1)))
    if isinstance(policy, PureRobustPolicy):
        s = names.bind("s", tilt.write(names))
        return _best_of(policy, names, s)
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
    from prudent.policies.sql.tilts import first_extreme

    problem, number = policy._problem, names.dialect.number
    low, high = problem.space.bounds
    simplex = not hasattr(problem.space, "lower")
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
    if len(varying) > 1 or any(isinstance(term, Formula) for term in varying):
        return None
    tilts = np.zeros((len(varying[0].table) if varying else 1, tilt.dimension))
    for term in tilt.used:
        tilts += term.table if isinstance(term, Cells) else term.multipliers
    if isinstance(policy, PureRobustPolicy):
        return np.eye(policy._problem.n_actions)[pure_actions(Game.of_problem(policy._problem), tilts)]
    if isinstance(policy._local, VertexGame) and not policy._local.settled(tilts):
        return None
    return policy._local.mixtures(tilts)


def _constant(names: Pipeline, mixtures: FloatArray) -> Finite:
    return Finite(names.dialect, lambda outcomes: outcomes[0], mixtures)


def _finite(names: Pipeline, cells: Cells, mixtures: FloatArray) -> Finite:
    return Finite(names.dialect, lambda outcomes: cells.pick(names.dialect, outcomes), mixtures)


def _forecast_names(policy: Policy, forecast: Any) -> list[str]:
    d = policy._problem.dimension
    if forecast is None:
        if not hasattr(policy, "feature_names_in_"):
            raise InputError("forecast must name the column of forecasts: this policy was fitted without column names.")
        forecast = policy.feature_names_in_.tolist()
    names = [forecast] if isinstance(forecast, str) else listed(forecast, "forecast")
    if len(names) != d:
        raise InputError(f"forecast must name {d} column(s), one per coordinate of the outcome space; got {names}.")
    if len(set(names)) < d:
        raise InputError(f"forecast must name distinct columns; got {names}.")
    return names


def _column(engine: Dialect, name: Any, table: Any, argument: str) -> str:
    """Quote a column, with its table if one is named."""
    for value, what in ((name, argument), (table, "table")):
        if not (isinstance(value, str) and value) and not (what == "table" and value is None):
            raise InputError(f"{what} must be a name, as text; got {value!r}.")
        if isinstance(value, str) and value.lower() == ROW:
            raise InputError(f"{what} must not be {value!r}: the expression uses this name itself.")
    quoted = engine.identifier(name)
    return quoted if table is None else f"{engine.identifier(table)}.{quoted}"


def _labels(engine: Dialect, actions: tuple[Label, ...]) -> list[str]:
    kinds = {type(action).__name__ for action in actions}
    if len(kinds) > 1:
        raise InputError(
            f"actions must be labels of one type to fill a column; got {', '.join(sorted(kinds))}. Rename them in the "
            f"problem, or ask for output='probabilities'."
        )
    return [engine.label(action) for action in actions]
