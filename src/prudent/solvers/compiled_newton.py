"""The rows' part of a Newton step by compiled loops: what RowNewton says, several times faster.

NumPy reads and writes memory in each of its operations, and a Newton step has hundreds of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from prudent.arrays import FloatArray
from prudent.chunks import over_rows
from prudent.compiled import compiled
from prudent.solvers import row_factor_loop, row_loops
from prudent.solvers.row_newton import Pairs, RightSide, RowNewton, Rows, RowStep

__all__ = ["CompiledRowNewton", "compiled_row_newton"]

Result = TypeVar("Result")

_WORK_FOR_THREADS = 1 << 19  # rows times the numbers that a loop goes through in each
_ROWS_PER_THREAD = 1280
_PARTS = 64  # more would only take time to hand out


def compiled_row_newton(
    rows: Rows, room: FloatArray, price: FloatArray, nu: FloatArray, tilts: FloatArray
) -> CompiledRowNewton | None:
    """Linearise the equations of rows with shared rewards; None where loops cannot be compiled."""
    loops = _Loops.compiled()
    return None if loops is None else CompiledRowNewton(rows, room, price, nu, tilts, loops)


@dataclass(frozen=True)
class _Loops:
    measure_rows: Callable[..., None]
    factor_rows: Callable[..., None]
    push_rows: Callable[..., None]
    move_rows: Callable[..., tuple[float, float]]
    products_after: Callable[..., tuple[float, float]]
    widen_gaps: Callable[..., None]
    correct_gaps: Callable[..., None]
    advance_rows: Callable[..., None]

    @classmethod
    def plain(cls) -> _Loops:
        """The loops as they are written."""
        homes = {"factor_rows": row_factor_loop}
        return cls(*(getattr(homes.get(field.name, row_loops), field.name) for field in fields(cls)))

    @classmethod
    def compiled(cls) -> _Loops | None:
        plain = cls.plain()
        found = [compiled(getattr(plain, field.name)) for field in fields(cls)]
        return cls(*(loop for loop in found if loop is not None)) if None not in found else None


class CompiledRowNewton(RowNewton):
    """A Newton step of rows with shared rewards."""

    def __init__(
        self, rows: Rows, room: FloatArray, price: FloatArray, nu: FloatArray, tilts: FloatArray, loops: _Loops
    ) -> None:
        self.loops = loops
        super().__init__(rows, room, price, nu, tilts)

    def measure(self, tilts: FloatArray) -> None:
        """Compute the gaps of the products to zero and what the rows' equations miss."""
        rows, n = self.rows, self.room.shape[1]
        self.to_zero, self.dual_residual, self.sum_residual = (
            np.empty_like(self.room),
            np.empty((rows.d, n)),
            np.empty(n),
        )
        self._over_rows(
            self.loops.measure_rows,
            rows.rewards,
            rows.simplex,
            self.room,
            self.price,
            self.nu,
            tilts,
            self.to_zero,
            self.dual_residual,
            self.sum_residual,
        )

    def factor(self) -> None:
        """Factor every row's block."""
        rows, shape = self.rows, self.room.shape
        d, n = rows.d, shape[1]
        self.per_room, self.ratio = np.empty(shape), np.empty(shape)
        self.total, self.mean = np.empty(n), np.empty((d, n))
        self.metric, self.flow = np.empty((d * (d + 1) // 2, n)), np.empty((d if rows.simplex else 0, n))
        self._over_rows(
            self.loops.factor_rows,
            rows.rewards,
            rows.simplex,
            self.room,
            self.price,
            self.per_room,
            self.ratio,
            self.total,
            self.mean,
            self.metric,
            self.flow,
        )

    def right_side(self, gaps: FloatArray) -> RightSide:
        """Right side of the rows' equations, for gaps of the products."""
        rows, n = self.rows, gaps.shape[1]
        right = RightSide(gaps, np.empty(n), np.empty((rows.d, n)), np.empty((rows.d, n)))
        self._over_rows(
            self.loops.push_rows,
            rows.rewards,
            rows.simplex,
            gaps,
            self.per_room,
            self.mean,
            self.dual_residual,
            self.sum_residual,
            self.metric,
            right.surplus,
            right.push,
            right.image,
        )
        return right

    def moves(self, right: RightSide, tilts: FloatArray, refinements: int) -> RowStep:
        """Steps of rooms, prices and the simplex's multipliers for a right side and a change of tilts."""
        rows, shape = self.rows, self.room.shape
        d_room, d_price, d_nu = np.empty(shape), np.empty(shape), np.empty(shape[1])
        falls = self._over_rows(
            self.loops.move_rows,
            rows.rewards,
            rows.simplex,
            self.per_room,
            self.ratio,
            self.total,
            self.mean,
            self.metric,
            self.flow,
            right.gaps,
            right.surplus,
            right.push - tilts,
            refinements,
            d_room,
            d_price,
            d_nu,
        )
        return RowStep(d_room, d_price, d_nu, *map(min, zip(*falls, strict=True)))

    def after(self, step: RowStep, primal: float, dual: float, weights: FloatArray) -> tuple[float, float]:
        """Weighted sum and least of all products after a step of these lengths."""
        plain = np.ascontiguousarray(weights)  # equal weights are a view of one number
        totals, least = zip(
            *self._over_pairs(
                self.loops.products_after, self.room, self.price, step.room, step.price, primal, dual, plain
            ),
            strict=True,
        )
        return sum(totals), min(least)

    def widened(self, gaps: FloatArray, step: RowStep, primal: float, dual: float, target: float) -> FloatArray:
        """Add to gaps what products after a step of these lengths miss of ``[0.1, 10] target``."""
        wider = np.empty_like(gaps)
        self._over_pairs(
            self.loops.widen_gaps, gaps, self.room, self.price, step.room, step.price, primal, dual, target, wider
        )
        return wider

    def corrected(self, step: RowStep, target: float) -> FloatArray:
        """Gaps of the products to a target, less the products of steps that a linearisation neglects."""
        gaps = np.empty_like(self.to_zero)
        self._over_pairs(self.loops.correct_gaps, self.to_zero, step.room, step.price, target, gaps)
        return gaps

    def advanced(self, step: RowStep, primal: float, dual: float) -> Pairs:
        """Rooms, prices and the simplex's multipliers after a step of these lengths."""
        room, price = np.empty_like(self.room), np.empty_like(self.price)
        self._over_pairs(
            self.loops.advance_rows, self.room, self.price, step.room, step.price, primal, dual, room, price
        )
        return room, price, self.nu + dual * step.nu

    def _over_rows(self, loop: Callable[..., Result], *arguments: Any) -> list[Result]:
        """Run a loop that does the work of actions times coordinates in every row."""
        return self._shared(loop, self.rows.rewards.size, arguments)

    def _over_pairs(self, loop: Callable[..., Result], *arguments: Any) -> list[Result]:
        """Run a loop that does a little with every pair."""
        return self._shared(loop, len(self.room), arguments)

    def _shared(self, loop: Callable[..., Result], work: int, arguments: tuple[Any, ...]) -> list[Result]:
        """Run a loop on all rows, on all cores where there is so much work in them that it pays."""
        n, threads_from = self.room.shape[1], _WORK_FOR_THREADS // work
        if n < threads_from:
            return [loop(0, n, *arguments)]
        rows = max(_ROWS_PER_THREAD, n // _PARTS)
        return over_rows(lambda part: loop(part.start, part.stop, *arguments), n, rows, threads_from)
