"""Tests that are Python functions: evaluated in memory, never saved, in no engine and in no SQL."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.arrays import (
    AnyArray,
    Context,
    FloatArray,
    finite_array,
    labels,
    listed,
    require_context,
    require_values,
)
from prudent.arrays.chunks import over_rows
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, name_of
from prudent.guarantees.evaluated import EvaluatedTests, join
from prudent.spaces import Label, Space


class FromFunctions(Guarantee):
    """Any tests: each function gets forecasts ``(n, d)`` and returns ``(n,)`` or ``(n, d)``.

    With ``context`` it gets forecasts and a dictionary of these columns ``(n,)``, known at decision time.

    Parameters
    ----------
    functions : sequence of callables
        ``(n,)`` is a scalar test, ``(n, d)`` a vector test.
    names : sequence of str, optional
        One per function.
    bounds : sequence of float, optional
        The largest ``|h|`` of each test, so that slack is in outcome units;
        without it tests are taken as they are.
    context : str or sequence of str
        Columns of context that all functions look at.

    Notes
    -----
    A test must look at each forecast alone: large samples are handed over in
    parts, possibly by several threads at once. A policy with such a guarantee
    refuses to save: a file cannot hold functions.

    Examples
    --------
    >>> import numpy as np
    >>> from prudent import guarantees
    >>> guarantee = guarantees.FromFunctions([lambda v: np.sin(v[:, 0])], names=["sine"])
    """

    functions: Sequence[Callable[..., Any]]
    names: Sequence[str] = ()
    bounds: Sequence[float] | None = None
    context: str | Sequence[str] = ()

    savable = False

    def __post_init__(self) -> None:
        members = tuple(listed(self.functions, "functions"))
        if not members or not all(callable(function) for function in members):
            raise InputError("functions must be a non-empty list of callables.")
        object.__setattr__(self, "functions", members)
        object.__setattr__(self, "context", column_names(self.context))
        named = labels(self.names, "names") or [f"h{i + 1}" for i in range(len(members))]
        if len(named) != len(members):
            raise InputError(f"names must have {len(members)} entries, one per function; got {len(named)}.")
        object.__setattr__(self, "names", tuple(map(str, named)))
        if self.bounds is not None:
            limits = finite_array(listed(self.bounds, "bounds"), "bounds")
            if limits.shape != (len(members),) or not (limits > 0).all():
                raise InputError(f"bounds must be {len(members)} positive numbers, one per function.")
            object.__setattr__(self, "bounds", tuple(limits.tolist()))

    def __repr__(self) -> str:
        return f"FromFunctions({', '.join(self.names)})"

    def evaluate(self, forecasts: FloatArray, space: Space, context: Context | None = None) -> EvaluatedTests:
        count, given = len(self.functions), _given(context, self.context_columns, len(forecasts))
        return join(
            over_rows(
                lambda part: self._evaluate_one(part.start, forecasts, space, given),
                count,
                1,
                threads_from=2 if len(forecasts) >= 50_000 else count + 1,
            )
        )

    def n_moments(self, space: Space) -> int:
        return self.evaluate(space.middle, space).n_moments

    def _evaluate_one(
        self, position: int, forecasts: FloatArray, space: Space, given: tuple[Context, ...]
    ) -> EvaluatedTests:
        name, (n, d) = self.names[position], forecasts.shape
        values = finite_array(self.functions[position](forecasts.copy(), *given), f"the test {name!r}")
        scalar = values.shape == (n,) or values.shape == (n, 1) == forecasts.shape
        if not scalar and values.shape != (n, d):
            raise InputError(f"the test {name!r} must return shape ({n},) or ({n}, {d}); got {values.shape}.")
        bound = np.inf if self.bounds is None else self.bounds[position]
        largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
        if largest > bound * (1 + 1e-9):
            raise InputError(f"the test {name!r} reaches {largest:.6g}, above its declared bound {bound:.6g}.")
        if scalar:
            layout = EvaluatedTests.scalar_layout([name], space, bounds=np.array([bound]))
        else:
            layout = EvaluatedTests.vector_layout([name], np.full((1, d), bound))
        scales = layout.scales if self.bounds is None else np.full(layout.n_moments, bound)
        return replace(layout, table=values.reshape(n, -1), scales=scales)


class Partition(Guarantee):
    """Forecasts are right on average within each cell that a function assigns, in any dimension.

    ``function`` gets forecasts ``(n, d)`` and returns one cell label per row.
    Cells are those seen when fitting; rows of a cell never seen get the
    safety mixture. A policy with such a guarantee refuses to save. With ``context``, names of columns known at decision
    time, the function gets forecasts and a dictionary of these columns.

    Examples
    --------
    >>> from prudent import guarantees
    >>> cells = guarantees.Partition(lambda v: v.argmax(axis=1))
    """

    function: Callable[..., Any]
    cells: tuple[Label, ...] | None = None
    context: str | Sequence[str] = ()

    savable = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function must be callable; got {type(self.function).__name__}.")
        object.__setattr__(self, "context", column_names(self.context))

    def __repr__(self) -> str:
        return f"Partition({name_of(self.function)})"

    def resolve(
        self, forecasts: FloatArray, weights: FloatArray, space: Space, context: Context | None = None
    ) -> Guarantee:
        if self.cells is not None:
            return self
        try:
            return replace(self, cells=tuple(np.unique(self._assign(forecasts, context)).tolist()))
        except TypeError as error:
            raise InputError("function must return cells of one kind, numbers or strings, none missing.") from error

    def evaluate(self, forecasts: FloatArray, space: Space, context: Context | None = None) -> EvaluatedTests:
        if self.cells is None:
            found = self.resolve(forecasts, np.ones(len(forecasts)), space, context)
            return found.evaluate(forecasts, space, context)
        names, assigned = [f"cell {cell}" for cell in self.cells], self._assign(forecasts, context)
        values = np.array([assigned == cell for cell in self.cells], dtype=np.float64)
        return EvaluatedTests.scalar_layout(names, space, disjoint=True).with_rows(values.T)

    def n_moments(self, space: Space) -> int:
        return super().n_moments(space) if self.cells is None else len(self.cells) * space.dimension

    def _assign(self, forecasts: FloatArray, context: Context | None) -> AnyArray:
        given = _given(context, self.context_columns, len(forecasts))
        assigned = np.asarray(self.function(forecasts.copy(), *given))
        if assigned.shape != (len(forecasts),):
            raise InputError(f"function must return one cell per row, shape ({len(forecasts)},); got {assigned.shape}.")
        return assigned


def column_names(given: Any) -> tuple[str, ...]:
    """Read one name of a column of context, or several."""
    return tuple(map(str, labels([given] if isinstance(given, str) else given, "context")))


def _given(context: Context | None, columns: tuple[str, ...], n: int) -> tuple[Context, ...]:
    """What functions get beside forecasts: the columns that they look at, which must have no missing values."""
    found = require_context(context, columns, n)
    for name, column in found.items():
        require_values(column, name)
    return ({name: column.copy() for name, column in found.items()},) if columns else ()
