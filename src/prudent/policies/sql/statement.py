"""Write a fitted policy as SQL: columns of forecasts in, an action or its probabilities out."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from prudent.arrays import listed
from prudent.errors import InputError
from prudent.policies.base import Policy, require_salt
from prudent.policies.sql.dialects import ROW, Dialect, dialect_named
from prudent.policies.sql.formulas import Pipeline
from prudent.policies.sql.rules import Rule, rule_of
from prudent.spaces import ROUNDING, SNAP_TOLERANCE, Label, Space

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
    """Write a policy; see :meth:`prudent.policies.Policy.to_sql`."""
    check_is_fitted(policy)
    if getattr(policy, "fitted_", None) is not None and policy.fitted_.per_row:
        raise InputError(
            "a policy with rewards or costs per row cannot be written as SQL, since every row plays a game of its own; "
            "predict in Python."
        )
    engine = dialect_named(dialect)
    if output not in ("action", "probabilities"):
        raise InputError(f"output must be 'action' or 'probabilities'; got {output!r}.")
    if invalid not in ("error", "null"):
        raise InputError(f"invalid must be 'error' or 'null'; got {invalid!r}.")
    columns = [_column(engine, name, table, "forecast") for name in _forecast_names(policy, forecast)]
    problem = policy._problem
    names, rule = _begun(policy, engine, columns, strict=invalid == "error")
    if output == "probabilities":
        bodies = dict(zip(problem.actions, rule.probabilities(), strict=True))
        return _checked({label: names.close(body) for label, body in bodies.items()})
    labels = _labels(engine, problem.actions)
    if rule.mixed:
        if key is None:
            raise InputError(
                "this policy plays mixtures, and an action is drawn by a key of the record, never by the forecast: "
                "pass key='the id column', or ask for output='probabilities', or fit with randomize=False, which needs "
                "no key."
            )
        column = _column(engine, key, table, "key")
        salt = require_salt(getattr(policy, "salt", ""))
        names.source["u"] = engine.uniform(f"{salt}\0".encode(), column)
        names.source["known"], names.source["key"] = engine.usable_key(column), engine.as_text(column)
        message = "keys must not be missing, and must be text or whole numbers (cast others to text); got "
        names.demand(f"{ROW}.known", message, f"{ROW}.key")
    return _checked({"": names.close(rule.action(labels, f"{ROW}.u"))})[""]


def spark_probabilities(policy: Policy, forecast: Sequence[str], fields: Sequence[str]) -> str:
    """Write a generator of one row for Spark that has all probabilities, NULL where the policy refuses the forecast.

    Spark copies an expression into every place where its column is used, and a policy in several coordinates is long.
    What a generator makes it computes once.
    """
    check_is_fitted(policy)
    engine = dialect_named("spark")
    columns = [_column(engine, name, None, "forecast") for name in _forecast_names(policy, list(forecast))]
    names, rule = _begun(policy, engine, columns, strict=False)
    pairs = zip(fields, rule.probabilities(), strict=True)
    struct = ", ".join(f"'{field}', {engine.as_double(body)}" for field, body in pairs)
    text = f"inline(array({names.close(f'named_struct({struct})')}))"
    return _checked({"": text})[""]


def _begun(policy: Policy, engine: Dialect, columns: list[str], *, strict: bool) -> tuple[Pipeline, Rule]:
    """Place the forecast on the space, and find what is played there."""
    space = policy._problem.space
    raw = [f"{ROW}.r{j + 1}" for j in range(len(columns))]
    source = {f"r{j + 1}": engine.as_double(column) for j, column in enumerate(columns)}
    names = Pipeline(engine, source, strict=strict)
    shown = " || ', ' || ".join(engine.as_text(column) for column in raw)
    names.demand(_accepted(space, names, raw), f"forecasts must lie in {space!r}; got ", shown)
    v = _placed(space, names, raw)
    return names, rule_of(policy, names, v, shown)


def _accepted(space: Space, names: Pipeline, raw: list[str]) -> str:
    """Write the condition under which Python takes the forecast; NULL and NaN never meet it."""
    number = names.dialect.number
    if space.is_simplex:
        return f"-{_least(raw)} <= {number(SNAP_TOLERANCE)} AND {_off(raw, names)} <= {number(SNAP_TOLERANCE)}"
    return " AND ".join(
        f"GREATEST({number(low)} - {column}, {column} - {number(high)}) / {number(high - low)}"
        f" <= {number(SNAP_TOLERANCE)}"
        for column, low, high in _with_bounds(raw, space)
    )


def _placed(space: Space, names: Pipeline, raw: list[str]) -> list[str]:
    """Name the coordinates of the forecast on the space."""
    number = names.dialect.number
    if not space.is_simplex:
        clipped = [
            f"LEAST(GREATEST({column}, {number(low)}), {number(high)})"
            for column, low, high in _with_bounds(raw, space)
        ]
        return names.bind("v", clipped)
    zero, one, rounding = number(0.0), number(1.0), number(ROUNDING)
    positive = names.bind("w", [f"GREATEST({column}, {zero})" for column in raw])
    off = f"-{_least(raw)} > {rounding} OR {_off(raw, names)} > {rounding}"
    (total,) = names.bind("total", [f"CASE WHEN {off} THEN {' + '.join(positive)} ELSE {one} END"])
    return names.bind("v", [f"{column} / {total}" for column in positive])


def _with_bounds(raw: list[str], space: Space) -> Iterator[tuple[str, float, float]]:
    return zip(raw, *(bound.tolist() for bound in space.bounds), strict=True)


def _least(raw: list[str]) -> str:
    return f"LEAST({', '.join(raw)})"


def _off(raw: list[str], names: Pipeline) -> str:
    return f"ABS({' + '.join(raw)} - {names.dialect.number(1.0)})"


def _checked(texts: dict[Label, str]) -> dict[Label, str]:
    """Refuse expressions that engines would choke on."""
    longest = max(len(text) for text in texts.values())
    if longest > _MOST_CHARACTERS:
        raise InputError(
            f"this policy takes {longest:,} characters of SQL, more than the {_MOST_CHARACTERS:,} that engines are "
            f"asked to parse here. Decide in Python, or use fewer tests, actions or coordinates."
        )
    return texts


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
