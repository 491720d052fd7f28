"""Guarantees that hold within groups of rows, by what is known at decision time (docs/theory.md, section 15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from prudent.arrays import (
    AnyArray,
    Context,
    FloatArray,
    IntArray,
    context_rows,
    describe_rows,
    finite_array,
    missing_rows,
    require_context,
    require_values,
)
from prudent.errors import InputError
from prudent.guarantees.base import Guarantee, SymbolicTests, symbolic_tests
from prudent.guarantees.evaluated import EvaluatedTests, require_few
from prudent.guarantees.expressions import Expression, Group, Indicator, Lookup, Pair
from prudent.problem import DecisionProblem
from prudent.spaces import Space

#: What a row has in the columns: text, whole numbers or truth values; of a column with cuts how many are reached.
Values = tuple[Any, ...]


class Within(Guarantee):
    """A guarantee that holds within each group of rows: for every region, machine or age group on its own.

    Groups are the combinations of values that the fitting sample has. Quantiles and the like of the inner guarantee are
    those of all rows, so that groups have the same tests.

    Parameters
    ----------
    columns : str, sequence of str, or mapping of str to cuts
        Columns of context, of text, whole numbers or truth values. For a column of numbers ``{"age": [30, 60]}`` makes
        three groups: below 30, from 30 to below 60, and from 60 on; ``None`` in place of cuts takes values as they are.
    guarantee : Guarantee or str
    groups : sequence of tuples, optional
        Values of the columns, group by group; those of the sample by default.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent import guarantees
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])   # p or 1 - p
    >>> policy = prudent.RobustPolicy(problem, guarantees.Within("region", "self-orthogonal"))
    >>> region = np.repeat(["north", "south"], 500)
    >>> policy = policy.fit(np.r_[np.linspace(0, 1, 500), np.full(500, 0.6)], context={"region": region})
    >>> print(policy.groups_)
    group         rows  share  lower  upper  status
    region=north   500    0.5  0.592  0.592  optimal
    region=south   500    0.5    0.6    0.6  optimal
    """

    columns: Any
    guarantee: Guarantee
    groups: Sequence[Values] | None = None

    kind = "within"

    def __post_init__(self) -> None:
        from prudent.guarantees.names import read_guarantee  # late: names know this family

        columns, inner = _read_columns(self.columns), read_guarantee(self.guarantee)
        for name, value in (("columns", columns), ("guarantee", inner), ("full", inner.full)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "savable", inner.savable)
        if self.groups is not None:
            groups = tuple(tuple(group) for group in self.groups)
            if len(set(groups)) < len(groups) or {len(columns)} != {len(group) for group in groups}:
                raise InputError(f"groups must be distinct, each with one value of every column; got {self.groups!r}.")
            for (name, cuts), held in zip(columns, zip(*groups, strict=True), strict=True):
                if _odd(held) is not None or (cuts and not set(held) <= set(range(len(cuts) + 1))):
                    raise InputError(f"groups must have values that {name!r} may have; got {held!r}.")
            object.__setattr__(self, "groups", groups)

    def __repr__(self) -> str:
        cuts = {name: [*cuts] or None for name, cuts in self.columns}
        (only, *others), given = cuts, cuts if any(cuts.values()) else [*cuts]
        return f"Within({given if others or cuts[only] else only!r}, {self.guarantee!r})"

    @property
    def context_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(name for name, _ in self.columns), *self.guarantee.context_columns)))

    @property
    def known(self) -> Sequence[Values]:
        """The groups, once they are resolved."""
        if self.groups is None:
            raise InputError(f"{self!r} has no groups before it is resolved on a sample.")
        return self.groups

    @property
    def names(self) -> list[str]:
        """What groups are called."""
        return [", ".join(map(_in_words, self.columns, group)) for group in self.known]

    def resolve(
        self, forecasts: FloatArray, weights: FloatArray, space: Space, context: Context | None = None
    ) -> Guarantee:
        groups = self.groups or tuple(sorted(self.occurring(context, len(forecasts))[0]))
        return Within(self.columns, self.guarantee.resolve(forecasts, weights, space, context), groups)

    def evaluate(self, forecasts: FloatArray, space: Space, context: Context | None = None) -> EvaluatedTests:
        own, n = self.numbers(context, len(forecasts)), len(forecasts)
        inner = self.guarantee.evaluate(forecasts, space, context)
        table = np.zeros((inner.table.shape[1], len(self.known), n))
        table[:, own, np.arange(n)] = inner.table.T
        labels = None if inner.labels is None else inner.labels * len(self.known) + own
        return self.layout(inner, self.names, space).with_rows(table.reshape(-1, n).T, labels)

    def tilts(
        self,
        multipliers: FloatArray,
        forecasts: FloatArray,
        space: Space,
        context: Context | None = None,
        unseen: FloatArray | None = None,
    ) -> FloatArray:
        found, blocks = np.empty_like(forecasts), [*self.blocks(multipliers)]
        for group, rows in self.split(self.numbers(context, len(forecasts), refuse=unseen is None)):
            own = blocks[group] if group >= 0 or unseen is None else unseen
            found[rows] = self.guarantee.tilts(own, forecasts[rows], space, context_rows(context, rows))
        return found

    def stated(self, space: Space, *, rest: bool = False) -> SymbolicTests:
        """State the tests; with ``rest`` rows of no known group are a group of their own, the last one."""
        group = Group(self.columns, tuple(self.known), rest=rest)
        inner, names = symbolic_tests(self.guarantee, space), [*self.names, *["any other"] * rest]
        columns = [_in_group(column, group, place) for column in inner.columns for place in range(group.n_labels)]
        return SymbolicTests(columns, self.layout(inner.layout, names, space), inner.positive)

    def n_moments(self, space: Space) -> int:
        return self.guarantee.n_moments(space) * len(self.known)

    def plug_in_multipliers(self, problem: DecisionProblem) -> FloatArray | None:
        inner = self.guarantee.plug_in_multipliers(problem)
        if inner is None or not self.savable:
            return None
        shape = symbolic_tests(self.guarantee, problem.space).layout.multiplier_shape
        return self.joined([inner.reshape(shape)] * len(self.known)).reshape(-1)

    def blocks(self, multipliers: FloatArray) -> FloatArray:
        """What belongs to every group, of multipliers, radii or the like; in the shape of the inner guarantee's."""
        return np.moveaxis(multipliers.reshape(-1, len(self.known), *multipliers.shape[1:]), 1, 0)

    @staticmethod
    def joined(blocks: Sequence[FloatArray]) -> FloatArray:
        """Put together what belongs to groups."""
        return np.stack(blocks, axis=1).reshape(-1, *blocks[0].shape[1:])

    @staticmethod
    def split(numbers: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Every group that has rows, with these; rows of no group come first, as -1."""
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers + 1))
        for group, rows in enumerate(np.split(order, ends[:-1]), start=-1):
            if rows.size:
                yield group, rows

    def numbers(
        self,
        context: Context | None,
        n: int,
        occurring: tuple[list[Values], IntArray] | None = None,
        *,
        refuse: bool = True,
    ) -> IntArray:
        """The group of every row; -1 for rows of no known group, if they are not refused."""
        places = {group: place for place, group in enumerate(self.known)}
        found, codes = self.occurring(context, n) if occurring is None else occurring
        small = np.min_scalar_type(-len(places) - 1)  # few bytes a row, which sort by their digits
        numbers = np.array([places.get(group, -1) for group in found], dtype=small)[codes]
        unseen = np.flatnonzero(numbers < 0)
        if refuse and unseen.size:
            first = ", ".join(map(_in_words, self.columns, found[codes[unseen[0]]]))
            shown = "; ".join([*self.names[:5], *["..."] * (len(self.names) > 5)])
            raise InputError(
                f"context has groups that the rows fitted on did not have: {describe_rows(unseen)} ({first}); they had "
                f"{shown}. Fit on rows with them, or play for them what all rows together give: "
                f"RobustPolicy(..., unseen='pooled')."
            )
        return numbers

    def require_recurring(self, context: Context, periods: IntArray) -> None:
        """Refuse a column whose every value occurs in one period only: it says when, and not what."""
        for name, cuts in self.columns if len(set(periods.tolist())) > 1 else ():
            distinct, codes = _coded(name, cuts, context[name])
            pairs = np.unique(codes * (int(periods.max()) + 1) + periods).size
            if pairs == len(distinct):
                raise InputError(
                    f"context column {name!r} is no context: each of its values occurs in one period only, so nothing "
                    f"is known about it in the next. Leave it out."
                )

    def occurring(self, context: Context | None, n: int) -> tuple[list[Values], IntArray]:
        """The groups that occur, and the place of every row's among them."""
        own = require_context(context, [name for name, _ in self.columns], n)
        (values, places), *others = [_coded(name, cuts, own[name]) for name, cuts in self.columns]
        groups = [(value,) for value in values]
        for values, codes in others:
            pairs, places = _distinct(places * len(values) + codes)
            groups = [(*groups[pair // len(values)], values[pair % len(values)]) for pair in pairs.tolist()]
        return groups, places

    def layout(self, inner: EvaluatedTests, names: Sequence[str], space: Space) -> EvaluatedTests:
        """Names and units of the inner tests in every group, test by test."""
        d, count = inner.dimension, len(names)
        require_few(inner.n_moments * count, space)
        width = d if inner.scalar else 1
        moment = np.repeat(np.arange(inner.n_moments).reshape(-1, 1, width), count, axis=1).reshape(-1)
        place = np.tile(np.repeat(np.arange(count), width), inner.n_moments // width)
        source = inner.source[moment]
        return EvaluatedTests(
            np.zeros((0, inner.table.shape[1] * count)),
            np.where(source >= 0, source * count + place[:, None], -1),
            tuple(f"{inner.names[m]}, {names[g]}" for m, g in zip(moment, place, strict=True)),
            inner.scales[moment],
            inner.groups[moment] * count + place,
            inner.bounds[moment],
            scalar=inner.scalar,
            disjoint=inner.disjoint or inner.n_tests == 1,
        )


def _in_group(column: Expression, group: Group, place: int) -> Expression:
    """Write a column of tests that is zero outside a group."""
    if isinstance(column, Indicator):
        return Indicator(Pair(group, column.label), place * column.label.n_labels + column.index, column.of)
    if isinstance(column, Lookup):
        zeros = (0.0,) * column.label.n_labels
        entries = zeros * place + column.entries + zeros * (group.n_labels - place - 1)
        return Lookup(Pair(group, column.label), entries)
    return Indicator(group, place, column)


def _read_columns(given: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    if isinstance(given, str):
        given = [given]
    pairs = (
        given.items()
        if isinstance(given, Mapping)
        else [(each, None) if isinstance(each, str) else each for each in given]
    )
    columns = []
    for name, cuts in pairs:
        found = finite_array([] if cuts is None else cuts, f"cuts of {name!r}")
        if not isinstance(name, str) or not name or found.ndim != 1 or (np.diff(found) <= 0).any():
            raise InputError(f"columns must be names, or map names to cuts in increasing order; got {given!r}.")
        columns.append((name, tuple(found.tolist())))
    if not columns or len({name for name, _ in columns}) < len(columns):
        raise InputError(f"columns must be one or several distinct names of columns of context; got {given!r}.")
    return tuple(columns)


def _coded(name: str, cuts: tuple[float, ...], column: AnyArray) -> tuple[Sequence[Any], IntArray]:
    """The values of a column that occur, and the place of every row's among them."""
    if cuts:
        column = np.searchsorted(cuts, finite_array(column, f"context column {name!r}"), side="right")
    if column.dtype.kind in "iub":
        whole, places = _distinct(column.astype(np.int64))
        return whole.astype(bool).tolist() if column.dtype.kind == "b" else whole.tolist(), places
    column, codes = _alike(column) if column.dtype.kind == "U" else (column, slice(None))
    items = column.tolist()
    try:
        values = list(set(items))
    except TypeError:  # lists, say
        values = items
    if missing_rows(np.array(values, dtype=object), name).any():
        require_values(column, name)
    odd = _odd(values)
    if odd is not None:
        raise InputError(
            f"context column {name!r} must hold text, whole numbers or truth values, all of one kind; got {odd!r}. For "
            f"other numbers give cuts: Within({{{name!r}: [30, 60]}}, ...)."
        )
    values.sort()
    known = {value: place for place, value in enumerate(values)}
    return values, np.fromiter(map(known.__getitem__, items), np.int64, len(items))[codes]


def _alike(text: AnyArray) -> tuple[AnyArray, Any]:
    """The texts that occur, and the place of every row's among them; all as they are where hashes collide."""
    characters = np.ascontiguousarray(text).view(np.uint32).reshape(text.size, -1)
    factors = np.random.default_rng(0).integers(1 << 64, size=characters.shape[1], dtype=np.uint64)
    hashes, rows = characters @ factors >> np.uint64(44), np.empty(1 << 20, dtype=np.int64)
    rows[hashes] = np.arange(text.size)
    rows = rows[hashes]
    if (text[rows] != text).any():
        return text, slice(None)
    occurring, places = _distinct(rows)
    return text[occurring], places


def _distinct(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """The whole numbers that occur, in order, and the place of each among them; without sorting where they are near."""
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span > 4 * numbers.size + 1024:
        return np.unique(numbers, return_inverse=True)
    occurs = np.bincount(numbers - low, minlength=span) > 0
    return np.flatnonzero(occurs) + low, (np.cumsum(occurs) - 1)[numbers - low]


def _odd(values: Any) -> Any:
    """A value that is none of text, whole numbers and truth values, or not of the kind of the others; else None."""
    kinds = {type(value) for value in values}
    return next((value for value in values if type(value) not in (str, int, bool) or len(kinds) > 1), None)


def _in_words(column: tuple[str, tuple[float, ...]], value: Any) -> str:
    name, cuts = column
    if not cuts:
        return f"{name}={value}"
    start = f"{cuts[value - 1]:g} <= " if value else ""
    return f"{start}{name}{f' < {cuts[value]:g}' if value < len(cuts) else ''}"
