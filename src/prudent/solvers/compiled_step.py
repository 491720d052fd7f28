"""A whole step of the interior point in one compiled call, for the few cells that stand for many rows.

Compiling it takes as long as a hundred thousand steps, so it pays in a process that lives long and answers many
questions: who runs one calls :func:`prepare`, in the background. Elsewhere a step is made of NumPy's operations and of
loops over rows, and is as good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent import compiled
from prudent.arrays import FloatArray
from prudent.solvers.cones import SlackCones
from prudent.solvers.interior_point import Iterate, Linearised
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.recentring_loop import CALLED as RECENTRING_CALLED
from prudent.solvers.recentring_loop import recentre_rows
from prudent.solvers.row_newton import Pairs, Rows
from prudent.solvers.step_loop import CALLED, look, take_step
from prudent.solvers.step_state import Place, Program

__all__ = ["CompiledStep", "compiled_recentred", "is_kept", "prepare", "program_of"]

_MOST_ROWS = 20_000  # more of them are worth a second core
_MOST_MOMENTS = 48  # of the tests; more are worth the matrix products of a tuned library
_prepared = False


def prepare() -> None:
    """Compile the step, or load it from disk, and use it from now on; where numba is missing nothing changes."""
    global _prepared
    loops = _loops()
    if loops is None:
        return
    looked_at, stepped = loops
    one, none = np.ones(1), np.zeros(0)
    row = np.full((1, 1), 0.5)
    indices = none.astype(np.int64)
    program = Program(row, False, row, row, row, one, row, none, indices, one, indices.reshape(0, 1), none)
    pairs = np.full((3, 1), 0.5)
    place = Place(pairs, pairs, np.zeros(1), one, one, none, none, none, none, none)
    stepped(program, place, looked_at(program, place), 1)
    recentre = compiled.compiled_along(recentre_rows, RECENTRING_CALLED)
    if recentre is not None:
        recentre(row, False, row, 0.1, pairs, pairs, np.zeros(1))
        _prepared = True


def is_kept() -> bool | None:
    """True if preparing is a matter of loading; None if it never will be, as without numba or a place on disk."""
    recentre = compiled.compiled_along(recentre_rows, RECENTRING_CALLED)
    found = [None if loop is None else compiled.kept_on_disk(loop) for loop in (*(_loops() or (None,)), recentre)]
    return None if None in found else all(found)


def program_of(rows: Rows, system: MomentSystem) -> Program | None:
    """Say what a compiled step needs to know; None where it does not apply or is not prepared."""
    if not _ready():
        return None
    if rows.rewards.ndim > 2 or rows.forecasts.shape[1] > _MOST_ROWS:
        return None
    values, combination = (system.values, system.combination) if system.values.ndim == 2 else _as_columns(system.values)
    size = len(values) * rows.d
    if size > _MOST_MOMENTS:
        return None
    free = np.zeros(size)
    if system.gauge:
        free[system.exact] = 1.0
    return Program(
        _plain(rows.rewards),
        rows.simplex,
        _plain(rows.forecasts),
        np.zeros((rows.d, 0)) if rows.own is None else _plain(rows.own),
        _plain(values),
        _plain(system.weights),
        np.eye(size) if combination is None else _plain(combination),
        free,
        _plain(system.interval),
        _plain(system.center),
        _plain(system.balls),
        _plain(system.ball_radius),
    )


def compiled_recentred(rows: Rows, tilts: FloatArray, mu: float, start: Pairs) -> Pairs | None:
    """Bring rows to the central path by a compiled loop; None where it does not apply or is not prepared."""
    if not _ready() or not rows.many or rows.rewards.ndim > 2 or rows.forecasts.shape[1] > _MOST_ROWS:
        return None
    loop = compiled.compiled_along(recentre_rows, RECENTRING_CALLED)
    return None if loop is None else loop(_plain(rows.rewards), rows.simplex, _plain(tilts), mu, *map(_plain, start))


def _ready() -> bool:
    return _prepared and compiled.switch != "0"


class CompiledStep:
    """One linearisation, looked at and solved by compiled loops."""

    def __init__(self, program: Program, now: Iterate, refinements: int, otherwise: Callable[[], Linearised]) -> None:
        loops, cones = _loops(), now.cones
        if loops is None:
            raise AssertionError("there is a program only where loops can be compiled")
        self._program, self._cones, self._refinements, self._otherwise = program, cones, refinements, otherwise
        self._look, self._take_step = loops
        ends = cones.room_up, cones.room_down, cones.push_up, cones.push_down
        self._place = Place(now.room, now.price, now.nu, now.multipliers, cones.sigma, *ends, cones.height)
        self._view = self._look(program, self._place)
        self.merit, self.complement = self._view.merit, self._view.complement

    def next_iterate(self) -> Iterate:
        """Take a step; where the system is singular, as NumPy's least squares say."""
        definite, place = self._take_step(self._program, self._place, self._view, self._refinements)
        if not definite:
            return self._otherwise().next_iterate()
        ends = place.room_up, place.room_down, place.push_up, place.push_down
        cones = SlackCones(self._cones.system, place.sigma, *ends, place.height)
        return Iterate(place.room, place.price, place.nu, place.multipliers, cones)


def _loops() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    looked_at, stepped = compiled.compiled_along(look, CALLED), compiled.compiled_along(take_step, CALLED)
    return None if looked_at is None or stepped is None else (looked_at, stepped)


def _as_columns(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Vector tests ``(K, d, n)`` as columns, those that are not zero, and how moments are made of them."""
    tests, coordinates = np.nonzero(values.any(axis=2))
    combination = np.zeros((tests.size, values.shape[1], len(values)))
    combination[np.arange(tests.size), coordinates, tests] = 1.0
    return values[tests, coordinates], combination.reshape(-1, len(values))


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """An array of the one kind that loops are compiled for: every other layout would be compiled anew."""
    return np.require(array, requirements=("C", "W"))
