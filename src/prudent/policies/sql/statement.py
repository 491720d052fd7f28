"""Write a fitted policy as SQL: columns of forecasts in, an action or its probabilities out."""

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from prudent.arrays import listed
from prudent.errors import InputError
from prudent.policies.base import Policy, require_salt
from prudent.policies.sql.formulas import DIALECTS, ROW, Dialect, Formulas, Pipeline
from prudent.policies.sql.rules import Rule, rule_of
from prudent.spaces import ROUNDING, SNAP_TOLERANCE, Label, Space


def policy_to_sql(
    policy: Policy,
    dialect: str,
    forecast: Any,
    output: str,
    key: str | None,
    table: str | None,
    invalid: str,
) -> str | dict[Label, str]:
    """Write a policy; see :meth:`prudent.policies.Policy.to_sql`."""
    if output not in ("action", "probabilities"):
        raise InputError(f"output must be 'action' or 'probabilities'; got {output!r}.")
    if invalid not in ("error", "null"):
        raise InputError(f"invalid must be 'error' or 'null'; got {invalid!r}.")
    names, rule = _begun(policy, dialect, forecast, table, strict=invalid == "error")
    actions, engine = policy._problem.actions, names.dialect
    if output == "probabilities":
        return dict(zip(actions, map(names.close, rule.probabilities), strict=True))
    if len({type(action) for action in actions}) > 1:
        raise InputError(
            f"actions must be labels of one type to fill a column; got {list(actions)}. Rename them in the problem, or "
            f"ask for output='probabilities'."
        )
    if rule.looked_up is None:
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
    return names.close(rule.action([engine.label(action) for action in actions], f"{ROW}.u", engine.number(0.0)))


def probability_columns(policy: Policy, dialect: str, forecast: Sequence[str], fields: Sequence[str]) -> str:
    """Write all probabilities as columns of one expression, NULL where the policy refuses the forecast.

    Engines compute it once. Spark would copy separate columns into every place where they are used, and a policy in
    several coordinates is long.
    """
    names, rule = _begun(policy, dialect, forecast, None, strict=False)
    engine = names.dialect
    row = engine.row(dict(zip(fields, map(engine.as_double, rule.probabilities), strict=True)))
    return engine.columns_template.format(names.close(row))


def _begun(policy: Policy, dialect: str, forecast: Any, table: str | None, *, strict: bool) -> tuple[Pipeline, Rule]:
    """Place the forecast on the space, and find what is played there."""
    check_is_fitted(policy)
    if getattr(policy, "fitted_", None) is not None and policy.fitted_.per_row:
        raise InputError(
            "a policy with rewards or costs per row cannot be written as SQL, since every row plays a game of its own; "
            "predict in Python."
        )
    if dialect not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}; got {dialect!r}.")
    engine = DIALECTS[dialect]
    columns = [_column(engine, name, table, "forecast") for name in _forecast_names(policy, forecast)]
    raw = [f"{ROW}.r{j + 1}" for j in range(len(columns))]
    source = {f"r{j + 1}": engine.as_double(column) for j, column in enumerate(columns)}
    known = {name: f"c{place}" for place, name in enumerate(policy.columns, start=1)}
    source |= {field: _column(engine, name, table, "context") for name, field in known.items()}
    names = Pipeline(engine, source, strict=strict)
    shown = " || ', ' || ".join(engine.as_text(column) for column in raw)
    v = _placed(policy._problem.space, names, raw, shown)
    context = {name: f"{ROW}.{field}" for name, field in known.items()}
    return names, rule_of(policy, Formulas(names, v, context), shown)


def _placed(space: Space, names: Pipeline, raw: list[str], shown: str) -> list[str]:
    """Demand what Python takes, which NULL and NaN never are, and name the coordinates of the forecast on the space."""
    number, bounds = names.dialect.number, zip(raw, *space.bounds, strict=True)
    ends = [(column, number(low), number(high)) for column, low, high in bounds]
    off = [f"-LEAST({', '.join(raw)})", f"ABS({' + '.join(raw)} - {number(1.0)})"]
    if not space.is_simplex:
        pairs = zip(ends, map(number, space.widths), strict=True)
        off = [f"GREATEST({low} - {v}, {v} - {high}) / {width}" for (v, low, high), width in pairs]
    near = " AND ".join(f"{distance} <= {number(SNAP_TOLERANCE)}" for distance in off)
    names.demand(near, f"forecasts must lie in {space!r}; got ", shown)
    if not space.is_simplex:
        return names.bind("v", [f"LEAST(GREATEST({v}, {low}), {high})" for v, low, high in ends])
    positive = names.bind("w", [f"GREATEST({v}, {low})" for v, low, _ in ends])
    far = " OR ".join(f"{distance} > {number(ROUNDING)}" for distance in off)
    (total,) = names.bind("total", [f"CASE WHEN {far} THEN {' + '.join(positive)} ELSE {number(1.0)} END"])
    return names.bind("v", [f"{column} / {total}" for column in positive])


def _forecast_names(policy: Policy, forecast: Any) -> list[str]:
    d = policy._problem.dimension
    if forecast is None:
        if not hasattr(policy, "feature_names_in_"):
            raise InputError("forecast must name the column of forecasts: this policy was fitted without column names.")
        forecast = policy.feature_names_in_.tolist()
    names = [forecast] if isinstance(forecast, str) else listed(forecast, "forecast")
    if len(names) != d or len(set(names)) < d:
        raise InputError(
            f"forecast must name {d} column(s), one per coordinate of the outcome space and all different; got {names}."
        )
    return names


def _column(engine: Dialect, name: Any, table: Any, argument: str) -> str:
    """Quote a column, with its table if one is named."""
    parts = {argument: name} if table is None else {"table": table, argument: name}
    for what, value in parts.items():
        if not isinstance(value, str) or value.lower() in ("", ROW):
            raise InputError(f"{what} must be a name, as text, and not {ROW!r}, which is used here; got {value!r}.")
    return ".".join(map(engine.identifier, parts.values()))
