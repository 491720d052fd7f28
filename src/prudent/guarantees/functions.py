"""Tests that are Python functions: evaluated in memory, never saved, in no engine and in no SQL."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray, finite_array, labels, listed
from prudent.arrays.chunks import over_rows
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.evaluated import EvaluatedTests, join
from prudent.spaces import Label, Space


class FromFunctions(Guarantee):
    """Any tests: each function gets forecasts ``(n, d)`` and returns ``(n,)`` or ``(n, d)``.

    Parameters
    ----------
    functions : sequence of callables
        ``(n,)`` is a scalar test, ``(n, d)`` a vector test.
    names : sequence of str, optional
        One per function.
    bounds : sequence of float, optional
        The largest ``|h|`` of each test, so that slack is in outcome units;
        without it tests are taken as they are.

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

    functions: Sequence[Callable[[FloatArray], Any]]
    names: Sequence[str] | None = None
    bounds: Sequence[float] | None = None

    def __post_init__(self) -> None:
        members = tuple(listed(self.functions, "functions"))
        if not members or not all(callable(function) for function in members):
            raise InputError("functions must be a non-empty list of callables.")
        object.__setattr__(self, "functions", members)
        if self.names is not None:
            named = labels(self.names, "names")
            if len(named) != len(members):
                raise InputError(f"names must have {len(members)} entries, one per function; got {len(named)}.")
            object.__setattr__(self, "names", tuple(str(name) for name in named))
        if self.bounds is not None:
            limits = finite_array(listed(self.bounds, "bounds"), "bounds")
            if limits.shape != (len(members),) or not (limits > 0).all():
                raise InputError(f"bounds must be {len(members)} positive numbers, one per function.")
            object.__setattr__(self, "bounds", tuple(limits.tolist()))

    @property
    def savable(self) -> bool:
        return False

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        names = self.names or tuple(f"h{i + 1}" for i in range(len(self.functions)))
        alone = len(self.functions) + 1  # a number of functions from which threads would share them: never
        tests = over_rows(
            lambda part: self._evaluate_one(part.start, names[part.start], forecasts, space),
            len(self.functions),
            1,
            threads_from=2 if len(forecasts) >= 50_000 else alone,
        )
        return join(tests)

    def _evaluate_one(self, position: int, name: str, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        n, d = forecasts.shape
        bound = np.inf if self.bounds is None else self.bounds[position]
        scale = np.ones(1) if self.bounds is None else np.array([bound])
        values = finite_array(self.functions[position](forecasts.copy()), f"the test {name!r}")
        largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
        if largest > bound * (1 + 1e-9):
            raise InputError(f"the test {name!r} reaches {largest:.6g}, above its declared bound {bound:.6g}.")
        if values.shape == (n,) or (d == 1 and values.shape == (n, 1)):
            layout = EvaluatedTests.scalar_layout([name], space, scale, np.array([bound]))
            return layout.with_rows(values.reshape(n, 1))
        if values.shape == (n, d):
            return replace(EvaluatedTests.vector_layout([name], np.full((1, d), bound)), table=values, scales=scale)
        raise InputError(f"the test {name!r} must return shape ({n},) or ({n}, {d}); got {values.shape}.")


class Partition(Guarantee):
    """Forecasts are right on average within each cell that a function assigns, in any dimension.

    ``function`` gets forecasts ``(n, d)`` and returns one cell label per row.
    Cells are those seen when fitting; rows of a cell never seen get the
    safety mixture. A policy with such a guarantee refuses to save.

    Examples
    --------
    >>> from prudent import guarantees
    >>> cells = guarantees.Partition(lambda v: v.argmax(axis=1))
    """

    function: Callable[[FloatArray], Any]
    cells: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function must be callable; got {type(self.function).__name__}.")

    @property
    def savable(self) -> bool:
        return False

    def resolve(self, forecasts: FloatArray, weights: FloatArray, space: Space) -> Guarantee:
        if self.cells is not None:
            return self
        return replace(self, cells=tuple(self._assign(forecasts)[0]))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        seen, inverse = self._assign(forecasts)
        cells = self.cells if self.cells is not None else tuple(seen)
        position = {cell: j for j, cell in enumerate(cells)}
        index = np.array([position.get(cell, -1) for cell in seen], dtype=np.int64)[inverse]
        values = np.zeros((len(cells), len(index)))
        known = np.flatnonzero(index >= 0)
        values[index[known], known] = 1.0
        names = [f"cell {cell}" for cell in cells]
        return EvaluatedTests.scalar_layout(names, space, disjoint=True).with_rows(values.T)

    def _assign(self, forecasts: FloatArray) -> tuple[list[Label], IntArray]:
        """Return the distinct cells and each row's place among them."""
        assigned = np.asarray(self.function(forecasts.copy()))
        if assigned.shape != (forecasts.shape[0],):
            raise InputError(
                f"function must return one cell per row, shape ({forecasts.shape[0]},); got {assigned.shape}."
            )
        try:
            seen, inverse = np.unique(assigned, return_inverse=True)
        except TypeError as error:
            raise InputError("function must return cells of one kind, numbers or strings, none missing.") from error
        return seen.tolist(), inverse
