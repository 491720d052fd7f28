"""Expressions of :mod:`prudent.guarantees.expressions` in SQL, and the tilt ``s(v)`` that is made of them.

One SQL expression has several steps: names for values, and demands that rows must meet. Steps follow each other and
are not nested in each other: engines evaluate nested steps in time exponential in their number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, listed
from prudent.errors import InputError
from prudent.guarantees.base import Term
from prudent.guarantees.expressions import Arithmetic, BackEnd, Chebyshev, Group
from prudent.guarantees.expressions import Label as RowLabel
from prudent.policies.base import Policy, require_salt
from prudent.policies.sql.dialects import DIALECTS, ROW, Dialect
from prudent.policies.sql.rules import Rule, rule_of
from prudent.spaces import ROUNDING, SNAP_TOLERANCE, Label, Space


@dataclass
class Pipeline:
    """Named values of one row, each step using the names of those before it.

    Attributes
    ----------
    source : dict
        The only expressions that see the caller's columns; nothing later can be mistaken for one of them.
    strict : bool
        Whether a demand that is not met stops the query or gives NULL.
    """

    dialect: Dialect
    source: dict[str, str]
    strict: bool
    steps: list[dict[str, str] | str] = field(default_factory=list)
    count: int = 0

    def bind(self, prefix: str, expressions: list[str]) -> list[str]:
        """Name expressions, and return what stands for them from now on."""
        names = [f"{prefix}{self.count + number}" for number in range(1, len(expressions) + 1)]
        self.count += len(expressions)
        self.steps.append(dict(zip(names, expressions, strict=True)))
        return [f"{ROW}.{name}" for name in names]

    def demand(self, condition: str, message: str, shown: str) -> None:
        """Go on only with rows that meet a condition; NULL does not."""
        otherwise = self.dialect.failure(message, shown) if self.strict else "FALSE"
        self.steps.append(f"CASE WHEN {condition} THEN TRUE ELSE {otherwise} END")

    def close(self, body: str) -> str:
        """Write all steps that a body depends on, and the body."""
        texts = [step if isinstance(step, str) else " ".join(step.values()) for step in self.steps]
        dialect, known, needed = self.dialect, list(self.source), _names(" ".join([*texts, body]))
        text = dialect.array([dialect.row({name: self.source[name] for name in known if name in needed})])
        for place, step in enumerate(self.steps, start=1):
            if isinstance(step, str):
                text = dialect.keep(text, step)
                continue
            needed = _names(" ".join([*texts[place:], body]))
            if needed.isdisjoint(step):
                continue
            fields = {**{name: f"{ROW}.{name}" for name in known}, **step}
            text = dialect.transform(text, dialect.row({name: fields[name] for name in fields if name in needed}))
            known += step
        return dialect.first(dialect.transform(text, body))


class Formulas(BackEnd):
    """SQL: expressions of the forecast ``v``; what is used more than once gets a name. Labels count from one."""

    def __init__(self, names: Pipeline, v: list[str], context: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__()
        self.names, self.v, self.context = names, v, context

    def constant(self, value: float) -> str:
        """A literal."""
        return self.names.dialect.number(value)

    def coordinate(self, index: int) -> str:
        """A coordinate of the forecast."""
        return self.v[index]

    def arithmetic(self, expression: Arithmetic) -> str:
        """A sum, difference, product or quotient, in brackets, so that SQL computes it in the same order."""
        return f"({self(expression.left)} {expression.operator} {self(expression.right)})"

    def logarithm(self, value: str) -> str:
        """A natural logarithm."""
        return f"ln({value})"

    def chebyshev(self, expression: Chebyshev) -> str:
        """A Chebyshev polynomial, with a name, as the variable it is a polynomial of."""
        if isinstance(expression.of, Arithmetic):
            self.known[expression.of] = self._named("x", self(expression.of))
        return self._named("t", self(expression.expansion))

    def largest(self, values: list[str]) -> str:
        """The largest of several values."""
        return self._named("largest", f"GREATEST({', '.join(values)})")

    def bin(self, value: str, edges: tuple[float, ...]) -> str:
        """The number of a bin, with a name."""
        below = [f"{value} < {self.names.dialect.number(edge)}" for edge in edges[1:-1]]
        return self._named("bin", case(below, [str(number) for number in range(1, len(edges))]))

    def first_largest(self, scores: list[str]) -> str:
        """The place of the first largest score."""
        return self.first_extreme(scores, "max")

    def first_extreme(self, scores: list[str], extreme: str) -> str:
        """Name the place of the first smallest or largest score."""
        dialect = self.names.dialect
        return self._named("place", dialect.position(self._named("scores", dialect.array(scores)), extreme))

    def group(self, label: Group) -> str:
        """The number of the row's group, with a name; NULL for no known one, unless there is a place for them."""
        number, written = self.names.dialect.number, self.names.dialect.label
        branches = []
        for place, conditions in enumerate(label.conditions(), start=1):
            met = []
            for name, value in conditions:
                column = self.context[name]
                if isinstance(value, tuple):
                    column = self.names.dialect.as_double(column)
                    met += [f"{column} >= {number(value[0])}", f"{column} < {number(value[1])}"]
                else:
                    met.append(f"{column} = {written(value)}")
            branches.append(f"WHEN {' AND '.join(met)} THEN {place}")
        others = f" ELSE {label.n_labels}" if label.rest else ""
        return self._named("group", f"CASE {' '.join(branches)}{others} END")

    def pair(self, first: str, second: str, count: int) -> str:
        """Two labels as one."""
        return self._named("pair", f"({first} - 1) * {count} + {second}")

    def telling_apart(self, label: RowLabel | None) -> list[str]:
        """Write conditions, each implied by the one before: the label of a row is the first whose condition holds."""
        return [] if label is None else self.up_to(self(label), label.n_labels)

    def up_to(self, place: str, count: int) -> list[str]:
        """Write conditions that tell ``count`` places apart."""
        return [f"{place} <= {number}" for number in range(1, count)]

    def tilt(self, terms: list[Term], dimension: int) -> list[str]:
        """Write a tilt, coordinate by coordinate, with the sums of :meth:`EvaluatedTests.tilts`."""
        number = self.names.dialect.number

        def written(term: Term, column: FloatArray) -> str:
            if term.factor is not None and term.label is None:
                return str(self(term.factor * column[0]))
            chosen = case(self.telling_apart(term.label), list(map(number, column)))
            return chosen if term.factor is None else f"({chosen}) * {self(term.factor)}"

        sums = ([written(term, term.table[:, j]) for term in terms if term.table[:, j].any()] for j in range(dimension))
        return [" + ".join(parts) or number(0.0) for parts in sums]

    def _named(self, prefix: str, text: str) -> str:
        (name,) = self.names.bind(prefix, [text])
        return name


def case(conditions: list[str], outcomes: list[str]) -> str:
    """Write the first outcome whose condition holds, the last if none does; each condition implies the next one."""
    kept = [place for place in range(len(conditions)) if outcomes[place] != outcomes[place + 1]]
    if not kept:
        return outcomes[-1]
    branches = " ".join(f"WHEN {conditions[place]} THEN {outcomes[place]}" for place in kept)
    return f"CASE {branches} ELSE {outcomes[-1]} END"


def _names(text: str) -> set[str]:
    """Find the names that an expression uses; literals are cut out first, so that no label looks like a name."""
    return set(re.findall(rf"\b{ROW}\.([a-z]+[0-9]*)\b", re.sub(r"'(?:[^']|'')*'", "", text)))


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
