"""Write a fitted policy as SQL: columns of forecasts in, an action or its probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, listed
from prudent.errors import InputError
from prudent.policies.base import Policy, require_salt
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy
from prudent.policies.sql.bindings import Bindings
from prudent.policies.sql.dialects import Dialect, dialect_named
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
    names = Bindings(engine)
    raw = [f"x1.r{j + 1}" for j in range(len(columns))]
    inside = Bindings(engine, depth=1)
    v = placed(problem.space, inside, raw)
    written = _rule(policy, inside, v)
    rule = written.rule
    if output == "probabilities":
        results, kind = dict(zip(problem.actions, rule.probabilities(), strict=True)), engine.double
    else:
        results, kind = {}, _label_type(engine, problem.actions)
        if rule.mixed and key is None:
            raise InputError(
                "this policy plays mixtures, and an action is drawn by a key of the record, never by the forecast: pass "
                "key='the id column', or ask for output='probabilities', or fit a PureRobustPolicy, which needs no key."
            )
        results[""] = rule.action([engine.label(action) for action in problem.actions], "x1.u")
    drawn = output == "action" and rule.mixed
    shown = " || ', ' || ".join(engine.as_text(column) for column in raw)

    def finished(body: str) -> str:
        if not body:
            raise AssertionError("a rule wrote nothing")
        for condition, reason in reversed(written.demands):
            body = _guarded(engine, condition, body, f"the policy {reason}; got ", shown, kind, invalid)
        # Demands speak of placed forecasts, and so live inside the layers that name these.
        body = inside.close(body)
        ask = accepted(problem.space, names, raw)
        message = f"forecasts must lie in {problem.space!r}; got "
        body = _guarded(engine, ask, body, message, shown, kind, invalid)
        fields = {f"r{j + 1}": engine.as_double(column) for j, column in enumerate(columns)}
        if not drawn:
            return engine.let("x1", fields, body)
        column = _column(engine, key, table, "key")
        prefix = f"{require_salt(getattr(policy, 'salt', ''))}\0".encode()
        body = engine.let("x1", {**fields, "u": engine.uniform(prefix, column)}, body)
        message = "keys must not be missing, and must be text or whole numbers (cast others to text); got "
        return _guarded(engine, engine.usable_key(column), body, message, engine.as_text(column), kind, invalid)

    texts = {label: finished(body) for label, body in results.items()}
    longest = max(len(text) for text in texts.values())
    if longest > _MOST_CHARACTERS:
        raise InputError(
            f"this policy takes {longest:,} characters of SQL, more than the {_MOST_CHARACTERS:,} that engines are "
            f"asked to parse here. Decide in Python, or use fewer tests, actions or coordinates."
        )
    return texts if output == "probabilities" else texts[""]


@dataclass(frozen=True)
class _Written:
    rule: Rule
    demands: list[tuple[str, str]]


def _rule(policy: Policy, names: Bindings, v: list[str]) -> _Written:
    problem = policy._problem
    everything = np.eye(problem.n_actions)
    if isinstance(policy, SafetyPolicy):
        somewhere = problem.space.support_minimizer(np.ones((1, problem.dimension)))
        return _Written(_constant(names, policy.predict_proba(somewhere)), [])
    plug_in = isinstance(policy, PlugInPolicy)
    if not plug_in and not isinstance(policy, (RobustPolicy, PureRobustPolicy)):
        raise InputError(f"a {type(policy).__name__} cannot be written in SQL.")
    if plug_in or policy.multipliers_ is None:
        cells = Cells(everything, index=best_response(problem, names, v))
        return _Written(_finite(names, cells, everything), [])
    tilt = tilt_of(policy.guarantee_, policy.multipliers_, problem.space, names, v)
    mixtures = _constant_mixtures(policy, tilt)
    if mixtures is not None:
        cells = next((term for term in tilt.used if isinstance(term, Cells)), None)
        rule: Rule = _constant(names, mixtures) if cells is None else _finite(names, cells, mixtures)
        return _Written(rule, tilt.demands)
    return _Written(_tilted(policy, tilt, names, v), tilt.demands)


def _tilted(policy: RobustPolicy | PureRobustPolicy, tilt: Tilt, names: Bindings, v: list[str]) -> Rule:
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


def _best_of(policy: PureRobustPolicy, names: Bindings, s: list[str]) -> Rule:
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


def _constant(names: Bindings, mixtures: FloatArray) -> Finite:
    return Finite(names.dialect, lambda outcomes: outcomes[0], mixtures)


def _finite(names: Bindings, cells: Cells, mixtures: FloatArray) -> Finite:
    return Finite(names.dialect, lambda outcomes: cells.pick(names.dialect, outcomes), mixtures)


def _guarded(engine: Dialect, condition: str, body: str, message: str, shown: str, kind: str, invalid: str) -> str:
    otherwise = f" ELSE {engine.failure(message, shown, kind)}" if invalid == "error" else ""
    return f"CASE WHEN {condition} THEN {body}{otherwise} END"


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
    quoted = engine.identifier(name)
    return quoted if table is None else f"{engine.identifier(table)}.{quoted}"


def _label_type(engine: Dialect, actions: tuple[Label, ...]) -> str:
    kinds = {type(action) for action in actions}
    if len(kinds) > 1:
        found = sorted(kind.__name__ for kind in kinds)
        raise InputError(
            f"actions must be labels of one type to fill a column; got {', '.join(found)}. Rename them in the problem, "
            f"or ask for output='probabilities'."
        )
    types: dict[type, str] = {str: engine.text_type, int: "bigint", float: engine.double, bool: "boolean"}
    return types[kinds.pop()]
