"""Tests as expressions, so that an engine evaluates them where the forecasts live.

A test is written in *blocks*. A block knows for every row a whole-numbered
label (the bin, the decision region) and a few numbers (the forecast itself,
its powers or logarithms); within one label its tests are affine in these
numbers. Means of the numbers over rows of one label therefore give the means
of the tests, exactly, and a table needs no column per test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.joining import join

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["Block", "WrittenTests", "bin_label", "coordinate", "counted", "lookup"]


@dataclass(frozen=True, eq=False)
class Block:
    """Tests that share one label.

    Attributes
    ----------
    assemble : callable
        Takes labels ``(n,)`` and numbers ``(n, p)``; returns the tests at these rows. Affine in the numbers.
    numbers : mapping of str to expression
        Names of numbers are shared between blocks: equal names mean equal expressions.
    label : expression or None
    n_labels : int
        Labels run from zero to this, excluded.
    cuts : tuple of float or None
        Where the label is the number of these that the one coordinate has reached; None for other labels.
    quick : expression or None
        The same label by arithmetic, which may be off by one next to a cut; whoever uses it checks that it is not.
    demand : expression or None
        True for rows that the tests take; ``refusal`` says why others are not.
    """

    assemble: Callable[[IntArray, FloatArray], EvaluatedTests]
    numbers: Mapping[str, nw.Expr] = field(default_factory=dict)
    label: nw.Expr | None = None
    n_labels: int = 1
    cuts: tuple[float, ...] | None = None
    quick: nw.Expr | None = None
    demand: nw.Expr | None = None
    refusal: str = ""

    def coefficients(self) -> tuple[EvaluatedTests, list[EvaluatedTests]]:
        """Tests of every label with all numbers zero, and what each number adds to them."""
        labels, p = np.arange(self.n_labels), len(self.numbers)
        constant = self.assemble(labels, np.zeros((self.n_labels, p)))
        unit = np.eye(p)
        added = [self.assemble(labels, np.broadcast_to(unit[f], (self.n_labels, p))) for f in range(p)]
        return constant, added


@dataclass(frozen=True, eq=False)
class WrittenTests:
    """All tests of a guarantee as blocks, in the order of the moments."""

    blocks: tuple[Block, ...]

    @property
    def numbers(self) -> dict[str, nw.Expr]:
        """Every number that some block needs, by name."""
        return {name: number for block in self.blocks for name, number in block.numbers.items()}

    @property
    def labelled(self) -> list[Block]:
        """The blocks that have a label."""
        return [block for block in self.blocks if block.label is not None]

    def as_columns(self) -> tuple[list[nw.Expr], WrittenTests]:
        """Labels and numbers as columns that a frame has to get, and the same tests written with these columns.

        An expression that is used many times is then written once.
        """
        import narwhals.stable.v2 as nw

        added = {f"number_{name}": number for name, number in self.numbers.items()}
        blocks = []
        for position, block in enumerate(self.blocks):
            named = replace(block, numbers={name: nw.col(f"number_{name}") for name in block.numbers})
            if block.label is not None:
                added[f"label_{position}"] = block.label
                named = replace(named, label=nw.col(f"label_{position}"))
            blocks.append(named)
        return [expression.alias(name) for name, expression in added.items()], WrittenTests(tuple(blocks))

    def assemble(self, labels: IntArray, numbers: Mapping[str, FloatArray]) -> EvaluatedTests:
        """Evaluate the tests at rows with labels ``(n, blocks with a label)`` and numbers by name."""
        parts, position, n = [], 0, len(labels)
        for block in self.blocks:
            own = np.zeros(n, dtype=np.int64)
            if block.label is not None:
                own = labels[:, position]
                position += 1
            columns = [numbers[name] for name in block.numbers]
            parts.append(block.assemble(own, np.stack(columns, axis=1) if columns else np.zeros((n, 0))))
        return join(parts)


def coordinate(j: int) -> str:
    """Name of a forecast's coordinate, as a column and as a number."""
    return f"v{j}"


def bin_label(value: nw.Expr, edges: Sequence[float] | FloatArray) -> nw.Expr:
    """Write the bin ``[e_i, e_{i+1})`` of a value, the last bin closed, by the comparisons of a bisection."""
    return counted(value, [float(edge) for edge in edges[1:-1]])


def lookup(label: nw.Expr | None, table: Sequence[float] | FloatArray) -> nw.Expr:
    """Write the entry of a table at a label; equal neighbours take one comparison less."""
    import narwhals.stable.v2 as nw

    entries = [float(entry) for entry in table]
    if label is None or len(set(entries)) == 1:
        return nw.lit(entries[0])
    changes = [0] + [i for i in range(1, len(entries)) if entries[i] != entries[i - 1]]
    return _chosen(label, changes, [entries[i] for i in changes])


def counted(value: nw.Expr, cuts: Sequence[float], first: int = 0) -> nw.Expr:
    """Write how many of some increasing cuts a value has reached."""
    import narwhals.stable.v2 as nw

    if not len(cuts):
        return nw.lit(first)
    middle = len(cuts) // 2
    above = counted(value, cuts[middle + 1 :], first + middle + 1)
    return nw.when(value >= cuts[middle]).then(above).otherwise(counted(value, cuts[:middle], first))


def _chosen(label: nw.Expr, starts: list[int], entries: list[float]) -> nw.Expr:
    import narwhals.stable.v2 as nw

    if len(entries) == 1:
        return nw.lit(entries[0])
    middle = len(entries) // 2
    above = _chosen(label, starts[middle:], entries[middle:])
    return nw.when(label >= starts[middle]).then(above).otherwise(_chosen(label, starts[:middle], entries[:middle]))
