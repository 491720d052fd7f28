"""The rows' part of a Newton step by compiled loops: what RowNewton says, several times faster.

NumPy reads and writes memory in each of its operations, and a Newton step has hundreds of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from prudent.arrays import FloatArray
from prudent.compiled import compiled
from prudent.solvers import row_loops
from prudent.solvers.row_newton import RightSide, RowNewton, RowStep

__all__ = ["CompiledRowNewton", "loops_available"]


def loops_available() -> bool:
    """True if loops can be compiled here; whether they are worth it is for the caller to say."""
    return compiled(row_loops.factor_rows) is not None


class CompiledRowNewton(RowNewton):
    """A Newton step of rows with shared rewards."""

    def factor(self) -> None:
        """Factor every row's block."""
        rows, shape = self.rows, self.room.shape
        d, n = rows.d, shape[1]
        self.per_room, self.per_price, self.ratio = np.empty(shape), np.empty(shape), np.empty(shape)
        self.total, self.mean = np.empty(n), np.empty((d, n))
        self.metric, self.flow = np.empty((d, d, n)), np.empty((d if rows.simplex else 0, n))
        _run(
            row_loops.factor_rows,
            rows.rewards,
            rows.simplex,
            self.room,
            self.price,
            self.per_room,
            self.per_price,
            self.ratio,
            self.total,
            self.mean,
            self.metric,
            self.flow,
        )

    def right_side(self, gaps: FloatArray) -> RightSide:
        """Right side of the rows' equations, for gaps of the products."""
        rows, n = self.rows, gaps.shape[1]
        right = RightSide(np.empty_like(gaps), np.empty(n), np.empty((rows.d, n)), np.empty((rows.d, n)))
        _run(
            row_loops.push_rows,
            rows.rewards,
            rows.simplex,
            gaps,
            self.per_room,
            self.mean,
            self.dual_residual,
            self.sum_residual,
            self.metric,
            right.pull,
            right.surplus,
            right.push,
            right.image,
        )
        return right

    def moves(self, right: RightSide, tilts: FloatArray, refinements: int) -> RowStep:
        """Steps of rooms, prices and the simplex's multipliers for a right side and a change of tilts."""
        rows, shape = self.rows, self.room.shape
        d_room, d_price, d_nu = np.empty(shape), np.empty(shape), np.empty(shape[1])
        falls = _run(
            row_loops.move_rows,
            rows.rewards,
            rows.simplex,
            self.per_room,
            self.per_price,
            self.ratio,
            self.total,
            self.mean,
            self.metric,
            self.flow,
            right.pull,
            right.surplus,
            right.push - tilts,
            refinements,
            d_room,
            d_price,
            d_nu,
        )
        return RowStep(d_room, d_price, d_nu, *falls)

    def after(self, step: RowStep, primal: float, dual: float, weights: FloatArray) -> tuple[float, float]:
        """Weighted sum and least of all products after a step of these lengths."""
        return _run(row_loops.products_after, self.room, self.price, step.room, step.price, primal, dual, weights)

    def widened(self, gaps: FloatArray, step: RowStep, primal: float, dual: float, target: float) -> FloatArray:
        """Add to gaps what products after a step of these lengths miss of ``[0.1, 10] target``."""
        wider = np.empty_like(gaps)
        _run(row_loops.widen_gaps, gaps, self.room, self.price, step.room, step.price, primal, dual, target, wider)
        return wider


def _run(loop: Callable[..., Any], *arguments: Any) -> Any:
    """Call a loop that is known to be compiled."""
    fast = compiled(loop)
    assert fast is not None
    return fast(*arguments)
