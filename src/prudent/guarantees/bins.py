"""Guarantees that hold within bins of the forecast: of a single coordinate, of each, or of the top label's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from prudent.arrays import Context, FloatArray, finite_array, positive_integer
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, SymbolicTests, forecast_names
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.expressions import Bin, Coordinate, Indicator, Label, Largest, LargestCoordinate, Pair
from prudent.spaces import Space


class Bins(Guarantee):
    """Forecasts are right on average within each bin of a single coordinate.

    Bins are ``[e_i, e_{i+1})``, the last one closed; together they cover the outcome space.

    Parameters
    ----------
    n_or_edges : int or sequence of float
        The number of bins, or their edges in increasing order.
    spacing : {"width", "quantile"}
        Whether a number of bins has equal widths on the outcome space, or equal weights on the fitting sample, where
        equal edges merge and the outer edges are those of the space.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Bins(10), guarantees.Bins(10, "quantile"), guarantees.Bins([0, 0.3, 1])
    (Bins(10), Bins(10, 'quantile'), Bins([0.0, 0.3, 1.0]))
    """

    n_or_edges: int | Sequence[float]
    spacing: str = "width"

    name = "bins:N"

    def __post_init__(self) -> None:
        if self.spacing not in ("width", "quantile"):
            raise InputError(f"spacing must be 'width' or 'quantile'; got {self.spacing!r}.")
        given: Any = self.n_or_edges
        if isinstance(given, str) or not isinstance(given, Iterable):
            given = positive_integer(given, "n_or_edges")
        else:
            edges = finite_array(given, "edges")
            if edges.ndim != 1 or edges.size < 2 or not (np.diff(edges) > 0).all():
                raise InputError(f"edges must be at least two increasing numbers; got {edges.tolist()}.")
            if self.of_sample:
                raise InputError(f"spacing='quantile' is for a number of bins; got the edges {edges.tolist()}.")
            given = tuple(edges.tolist())
        object.__setattr__(self, "n_or_edges", given)

    def __repr__(self) -> str:
        given = self.n_or_edges if isinstance(self.n_or_edges, int) else list(self.n_or_edges)
        return f"Bins({given}, 'quantile')" if self.of_sample else f"Bins({given})"

    @property
    def of_sample(self) -> bool:
        """True if the edges are quantiles of a sample that is not yet known."""
        return self.spacing == "quantile"

    def resolve(
        self, forecasts: FloatArray, weights: FloatArray, space: Space, context: Context | None = None
    ) -> Guarantee:
        count = self.n_or_edges
        if not self.of_sample or not isinstance(count, int):  # edges have no spacing by quantiles
            return Bins(self._edges(space))
        _require_one_coordinate(space)
        order = np.argsort(forecasts[:, 0], kind="stable")
        cumulative = np.cumsum(weights[order])
        found = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, count) / count)
        cuts = forecasts[order, 0][np.minimum(found, len(order) - 1)]
        lower, upper = space.bounds
        # The outer edges are those of the space: tomorrow's forecasts may exceed the sample's.
        inner = cuts[(cuts > lower[0]) & (cuts < upper[0])]
        return Bins(tuple(np.unique(np.concatenate([lower, inner, upper])).tolist()))

    def stated(self, space: Space) -> SymbolicTests:
        edges = self._edges(space)
        names = [f"v in {text}" for text in _bin_names(edges)]
        layout = EvaluatedTests.scalar_layout(names, space, disjoint=True)
        return SymbolicTests(_indicators(Bin(Coordinate(0), edges)), layout)

    def n_moments(self, space: Space) -> int:
        given = self.n_or_edges
        return given if isinstance(given, int) else len(given) - 1

    def _edges(self, space: Space) -> tuple[float, ...]:
        _require_one_coordinate(space)
        if self.of_sample:
            raise InputError(f"{self!r} has no edges before it is resolved on a sample.")
        given, (low, high) = self.n_or_edges, space.interval
        if isinstance(given, int):
            return _equal_edges(space, 0, given)
        if given[0] > low or given[-1] < high:
            raise InputError(f"edges must cover the outcome space, [{low}, {high}]; got [{given[0]}, {given[-1]}].")
        return tuple(given)


class _NumberOfBins(Guarantee):
    """A guarantee that is stated for a number of bins."""

    n_bins: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", positive_integer(self.n_bins, "n_bins"))

    def n_moments(self, space: Space) -> int:
        return self.n_bins * space.dimension


class TopLabel(_NumberOfBins):
    """The predicted class is right as often as its probability says, per class and confidence bin.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.TopLabel(10)
    TopLabel(n_bins=10)
    """

    name = "top-label:N"

    def stated(self, space: Space) -> SymbolicTests:
        columns, texts = _top_label(self, space)
        names = [f"top {name[1:]}, {text}" for name in space.coordinate_names for text in texts]
        return _of_coordinates(columns, names, space)


class TopLabelPooled(_NumberOfBins):
    """The predicted class is right as often as its probability says, per confidence bin, pooled over classes.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.TopLabelPooled(15)
    TopLabelPooled(n_bins=15)
    """

    name = "top-label-pooled:N"

    def stated(self, space: Space) -> SymbolicTests:
        columns, texts = _top_label(self, space)
        ordered = [column for number in range(self.n_bins) for column in columns[number :: self.n_bins]]
        bounds = np.ones((self.n_bins, space.dimension))
        layout = EvaluatedTests.vector_layout([f"top {text}" for text in texts], bounds, disjoint=True)
        return SymbolicTests(ordered, layout)

    def n_moments(self, space: Space) -> int:
        return self.n_bins


class Classwise(_NumberOfBins):
    """Each coordinate is right on average within bins of that coordinate.

    Examples
    --------
    >>> from prudent import guarantees
    >>> guarantees.Classwise(5)
    Classwise(n_bins=5)
    """

    name = "classwise:N"

    def stated(self, space: Space) -> SymbolicTests:
        columns, names = [], []
        for j, name in enumerate(forecast_names(space)):
            edges = _equal_edges(space, j, self.n_bins)
            columns += _indicators(Bin(Coordinate(j), edges))
            names += [f"{name} in {text}" for text in _bin_names(edges)]
        return _of_coordinates(columns, names, space)


def _top_label(guarantee: TopLabel | TopLabelPooled, space: Space) -> tuple[list[Indicator], list[str]]:
    """Indicators of every class and bin of its probability, where that class is the most probable one."""
    if not space.is_simplex:
        raise InputError(
            f"{type(guarantee).__name__} speaks of the most probable class and needs a Simplex; got {space!r}."
        )
    d, edges = space.dimension, _equal_edges(space, 0, guarantee.n_bins)
    label = Pair(LargestCoordinate(d), Bin(Largest(d), edges))
    return _indicators(label), [f"confidence in {text}" for text in _bin_names(edges)]


def _of_coordinates(columns: list[Indicator], names: list[str], space: Space) -> SymbolicTests:
    """State disjoint tests that are indicators in one coordinate each, as many in each, and zero in the others."""
    own = np.repeat(np.eye(space.dimension), len(names) // space.dimension, axis=0)
    source = np.where(own > 0, np.arange(len(names))[:, None], -1)
    return SymbolicTests(columns, EvaluatedTests.vector_layout(names, own, source, disjoint=True))


def _indicators(label: Label) -> list[Indicator]:
    return [Indicator(label, index) for index in range(label.n_labels)]


def _equal_edges(space: Space, j: int, n_bins: int) -> tuple[float, ...]:
    """Edges of bins of equal width along a coordinate."""
    lower, upper = space.bounds
    return tuple(np.linspace(lower[j], upper[j], n_bins + 1).tolist())


def _bin_names(edges: Sequence[float]) -> list[str]:
    last = len(edges) - 2
    return [f"[{edges[i]:.6g}, {edges[i + 1]:.6g}{']' if i == last else ')'}" for i in range(last + 1)]


def _require_one_coordinate(space: Space) -> None:
    if space.dimension != 1:
        raise InputError(
            f"Bins is for a single coordinate; got {space!r}. Use Classwise, TopLabel, TopLabelPooled or Partition."
        )
