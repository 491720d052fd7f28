"""Guarantees that hold within cells of forecasts: bins, top label, class-wise, any partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from prudent.arrays import FloatArray, IntArray, describe_rows, finite_array
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, positive_integer
from prudent.guarantees.column_tests import ColumnTests
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.written import Block, WrittenTests, bin_label, coordinate
from prudent.spaces import Label, Simplex, Space

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["Binned", "Classwise", "Confidence", "Partition", "QuantileBins", "TopLabel", "UniformBins"]

_MOST_LABELS = 1 << 16


@dataclass(frozen=True)
class Binned(Guarantee):
    """Forecasts are right on average within each bin of a single coordinate.

    Bins are ``[e_i, e_{i+1})``, the last one closed; a forecast outside all
    bins is an error. ``Binned.uniform(n)`` and ``Binned.quantiles(n)`` take
    their edges from the space and from the sample when a policy is fitted.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Binned([0, 0.5, 1])
    Binned(edges=(0.0, 0.5, 1.0))
    >>> guarantees.Binned.quantiles(10)
    QuantileBins(n_bins=10)
    """

    edges: tuple[float, ...]

    kind: ClassVar[str] = "binned"

    def __post_init__(self) -> None:
        edges = finite_array(self.edges, "edges")
        if edges.ndim != 1 or edges.size < 2 or not (np.diff(edges) > 0).all():
            raise InputError(f"edges must be at least two increasing numbers; got {edges.tolist()}.")
        object.__setattr__(self, "edges", tuple(edges.tolist()))

    @staticmethod
    def uniform(n_bins: int) -> UniformBins:
        """Take ``n_bins`` bins of equal width over the outcome space."""
        return UniformBins(n_bins)

    @staticmethod
    def quantiles(n_bins: int) -> QuantileBins:
        """Take ``n_bins`` bins of equal weight on the sample; equal edges merge."""
        return QuantileBins(n_bins)

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        _require_one_coordinate(space)
        values, edges = forecasts[:, 0], np.array(self.edges)
        outside = np.flatnonzero((values < edges[0]) | (values > edges[-1]))
        if outside.size:
            raise InputError(
                f"forecasts must lie within the bins [{edges[0]}, {edges[-1]}]; {describe_rows(outside)} do not "
                f"(first: {values[outside[0]]}). Let the edges cover the outcome space."
            )
        return self._tests(_bin_index(values, edges), space)

    def write(self, space: Space) -> WrittenTests:
        import narwhals.stable.v2 as nw

        _require_one_coordinate(space)
        value, edges = nw.col(coordinate(0)), self.edges
        lower, upper = space.bounds
        covered = edges[0] <= lower[0] and edges[-1] >= upper[0]
        block = Block(
            lambda labels, _: self._tests(labels, space),
            label=bin_label(value, edges),
            n_labels=len(edges) - 1,
            cuts=edges[1:-1],
            quick=_equal_bins(value, edges),
            demand=None if covered else (value >= edges[0]) & (value <= edges[-1]),
            refusal=f"forecasts must lie within the bins [{edges[0]}, {edges[-1]}]",
        )
        return WrittenTests((block,))

    def _tests(self, cell: IntArray, space: Space) -> EvaluatedTests:
        names = [f"v in {text}" for text in _bin_names(self.edges)]
        return EvaluatedTests.from_scalar(
            _one_hot(cell, len(names)), names, np.ones(len(names)), space.coordinate_names, disjoint=True
        )


@dataclass(frozen=True)
class UniformBins(Guarantee):
    """Bins of equal width over the outcome space; see :meth:`Binned.uniform`."""

    n_bins: int

    kind: ClassVar[str] = "uniform-bins"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", positive_integer(self.n_bins, "n_bins"))

    def resolve(self, forecasts: FloatArray, weights: FloatArray, space: Space) -> Guarantee:
        _require_one_coordinate(space)
        lower, upper = space.bounds
        return Binned(tuple(np.linspace(lower[0], upper[0], self.n_bins + 1).tolist()))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return self.resolve(forecasts, np.ones(len(forecasts)), space).evaluate(forecasts, space)

    def write(self, space: Space) -> WrittenTests:
        return self.resolve(np.zeros((0, 1)), np.zeros(0), space).write(space)


@dataclass(frozen=True)
class QuantileBins(Guarantee):
    """Bins of equal weight on the fitting sample; see :meth:`Binned.quantiles`."""

    n_bins: int

    kind: ClassVar[str] = "quantile-bins"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", positive_integer(self.n_bins, "n_bins"))

    def resolve(self, forecasts: FloatArray, weights: FloatArray, space: Space) -> Guarantee:
        _require_one_coordinate(space)
        order = np.argsort(forecasts[:, 0], kind="stable")
        cumulative = np.cumsum(weights[order])
        levels = cumulative[-1] * np.arange(1, self.n_bins) / self.n_bins
        cuts = forecasts[order, 0][np.minimum(np.searchsorted(cumulative, levels), len(order) - 1)]
        lower, upper = space.bounds
        # The outer edges are those of the space: tomorrow's forecasts may exceed the sample's.
        inner = cuts[(cuts > lower[0]) & (cuts < upper[0])]
        return Binned(tuple(np.unique(np.concatenate([lower, inner, upper])).tolist()))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return self.resolve(forecasts, np.ones(len(forecasts)), space).evaluate(forecasts, space)


@dataclass(frozen=True)
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
        names = [f"cell {cell}" for cell in cells]
        return EvaluatedTests.from_scalar(
            _one_hot(index, len(names)), names, np.ones(len(names)), space.coordinate_names, disjoint=True
        )

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


@dataclass(frozen=True)
class TopLabel(Guarantee):
    """The predicted class is right as often as its probability says, per class and confidence bin.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.TopLabel(10)
    TopLabel(n_bins=10)
    """

    n_bins: int

    kind: ClassVar[str] = "top-label"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", positive_integer(self.n_bins, "n_bins"))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        top, cell = _top_label_cells(forecasts, space, self.n_bins, "TopLabel")
        return self._tests(top * self.n_bins + cell, space)

    def write(self, space: Space) -> WrittenTests:
        return _written_top_label(self._tests, space, self.n_bins, "TopLabel")

    def _tests(self, label: IntArray, space: Space) -> EvaluatedTests:
        n, d = len(label), space.dimension
        values = np.zeros((n, d * self.n_bins, d))
        values[np.arange(n), label, label // self.n_bins] = 1.0
        texts = _confidence_names(self.n_bins)
        labels = [f"top {name[1:]}, {text}" for name in space.coordinate_names for text in texts]
        own = np.repeat(np.eye(d), self.n_bins, axis=0)
        return EvaluatedTests.from_vector(values, labels, np.ones(len(labels)), own, disjoint=True)


@dataclass(frozen=True)
class Confidence(Guarantee):
    """The predicted class is right as often as its probability says, per confidence bin.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Confidence(15)
    Confidence(n_bins=15)
    """

    n_bins: int

    kind: ClassVar[str] = "confidence"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", positive_integer(self.n_bins, "n_bins"))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        top, cell = _top_label_cells(forecasts, space, self.n_bins, "Confidence")
        return self._tests(top * self.n_bins + cell, space)

    def write(self, space: Space) -> WrittenTests:
        return _written_top_label(self._tests, space, self.n_bins, "Confidence")

    def _tests(self, label: IntArray, space: Space) -> EvaluatedTests:
        values = np.zeros((len(label), self.n_bins, space.dimension))
        values[np.arange(len(label)), label % self.n_bins, label // self.n_bins] = 1.0
        labels = [f"top {text}" for text in _confidence_names(self.n_bins)]
        return EvaluatedTests.from_vector(values, labels, np.ones(self.n_bins), disjoint=True)


@dataclass(frozen=True)
class Classwise(Guarantee):
    """Each coordinate is right on average within bins of that coordinate.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Classwise(5)
    Classwise(n_bins=5)
    """

    n_bins: int

    kind: ClassVar[str] = "classwise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", positive_integer(self.n_bins, "n_bins"))

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        n, d = forecasts.shape
        lower, upper = space.bounds
        columns = np.zeros((d * self.n_bins, n))
        rows, names, labels = np.arange(n), [], np.zeros(n, dtype=np.int64)
        for j in range(d):
            edges = np.linspace(lower[j], upper[j], self.n_bins + 1)
            cell = _bin_index(forecasts[:, j], edges)
            columns[j * self.n_bins + cell, rows] = 1.0
            labels = labels * self.n_bins + cell
            names += [f"v{space.coordinate_names[j][1:]} in {text}" for text in _bin_names(edges)]
        known = labels if self.n_bins**d <= _MOST_LABELS else None
        owners = np.repeat(np.arange(d), self.n_bins)
        return ColumnTests.of_coordinates(columns.T, owners, d, names, disjoint=True, labels=known)

    def write(self, space: Space) -> WrittenTests:
        import narwhals.stable.v2 as nw

        d = space.dimension
        lower, upper = space.bounds
        blocks = []
        for j in range(d):
            edges = np.linspace(lower[j], upper[j], self.n_bins + 1)
            label = bin_label(nw.col(coordinate(j)), edges)
            blocks.append(Block(self._tests_of(j, edges, space), label=label, n_labels=self.n_bins))
        return WrittenTests(tuple(blocks))

    def _tests_of(self, j: int, edges: FloatArray, space: Space) -> Callable[[IntArray, FloatArray], EvaluatedTests]:
        """Tests of one coordinate."""

        def assemble(label: IntArray, _: FloatArray) -> EvaluatedTests:
            values = np.zeros((len(label), self.n_bins, space.dimension))
            values[np.arange(len(label)), label, j] = 1.0
            names = [f"v{space.coordinate_names[j][1:]} in {text}" for text in _bin_names(edges)]
            own = np.repeat(np.eye(space.dimension)[[j]], self.n_bins, axis=0)
            return EvaluatedTests.from_vector(values, names, np.ones(len(names)), own, disjoint=True)

        return assemble


def _top_label_cells(forecasts: FloatArray, space: Space, n_bins: int, name: str) -> tuple[IntArray, IntArray]:
    _require_classes(space, name)
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    return forecasts.argmax(axis=1).astype(np.int64), _bin_index(forecasts.max(axis=1), edges)


def _written_top_label(
    tests: Callable[[IntArray, Space], EvaluatedTests], space: Space, n_bins: int, name: str
) -> WrittenTests:
    """Label rows by the first most probable class and the bin of its probability."""
    import narwhals.stable.v2 as nw

    _require_classes(space, name)
    columns = [nw.col(coordinate(j)) for j in range(space.dimension)]
    most = nw.max_horizontal(*columns)
    top = nw.lit(space.dimension - 1)
    for j in range(space.dimension - 2, -1, -1):
        top = nw.when(columns[j] >= most).then(nw.lit(j)).otherwise(top)
    label = top * n_bins + bin_label(most, np.linspace(0.0, 1.0, n_bins + 1))
    block = Block(lambda labels, _: tests(labels, space), label=label, n_labels=space.dimension * n_bins)
    return WrittenTests((block,))


def _require_classes(space: Space, name: str) -> None:
    if not isinstance(space, Simplex):
        raise InputError(f"{name} speaks of the most probable class and needs a Simplex; got {space!r}.")


def _confidence_names(n_bins: int) -> list[str]:
    return [f"confidence in {text}" for text in _bin_names(np.linspace(0.0, 1.0, n_bins + 1))]


def _bin_index(values: FloatArray, edges: FloatArray) -> IntArray:
    """Find ``[e_i, e_{i+1})``, the last bin closed."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2).astype(np.int64)


def _equal_bins(value: nw.Expr, edges: Sequence[float]) -> nw.Expr | None:
    """Write the bin by one multiplication, where all bins have the same width."""
    import narwhals.stable.v2 as nw

    n, first, last = len(edges) - 1, edges[0], edges[-1]
    if not np.array_equal(edges, np.linspace(first, last, n + 1)):
        return None
    # A hair less than n bins, so that the last edge is in the last of them.
    scale = n * (1 - 8 * float(np.finfo(np.float64).eps)) / (last - first)
    return ((value - first) * scale).floor().cast(nw.Int64)


def _bin_names(edges: Sequence[float] | FloatArray) -> list[str]:
    last = len(edges) - 2
    return [f"[{edges[i]:.6g}, {edges[i + 1]:.6g}{']' if i == last else ')'}" for i in range(last + 1)]


def _one_hot(index: IntArray, size: int) -> FloatArray:
    """Indicator columns, the rows of each next to each other; a negative index belongs to no cell."""
    values = np.zeros((size, index.shape[0]))
    known = np.flatnonzero(index >= 0)
    values[index[known], known] = 1.0
    return values.T


def _require_one_coordinate(space: Space) -> None:
    if space.dimension != 1:
        raise InputError(
            f"Binned is for a single coordinate; got {space!r}. Use Classwise, TopLabel, Confidence or Partition."
        )
