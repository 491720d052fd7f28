"""Reformulations that an expert gives to the same solvers, to be fair to them.

Each was kept because it was the fastest for some solver, size or family when this suite was written:

- *segments* (one coordinate): ``q_i = lo + sum_s x_is`` with one bounded variable per row and linear piece of
  ``val``. Slopes increase, so pieces fill up in order by themselves and only the moments remain as rows.
- *multipliers* (one coordinate): the dual over the multipliers alone, one cut per row and vertex of ``val``.
- *reduced* (any dimension): as written, without the last class and without tests that depend on others, in sums
  and not means, with the moments as variables of their own.
- *policy side* (any dimension): the dual, over multipliers and a mixture of actions per row.
- *vertices* (any dimension): ``q_i`` as a convex combination of the vertices of the epigraph of ``val``.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import highspy
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.spatial import HalfspaceIntersection

from benchmarks.arrays import Arrays
from benchmarks.as_written import Answer, solve_cvxpy, solve_linprog
from benchmarks.child import NoAnswerError

__all__ = [
    "epigraph_vertices",
    "multipliers_cvxpy",
    "policy_side_cvxpy",
    "reduced_cvxpy",
    "segments_cvxpy",
    "segments_highspy",
    "segments_linprog",
    "vertices_linprog",
]

Array = NDArray[np.float64]


def segments_linprog(arrays: Arrays, method: str, presolve: bool) -> Answer:
    """Solve over segments in SciPy; slack enters as one bounded column per moment."""
    base, slopes, widths = _segments(arrays)
    n, pieces = arrays.n_rows, len(slopes)
    matrix = np.repeat(arrays.tests.T, pieces, axis=1)
    right = arrays.tests.T @ (arrays.forecasts[:, 0] - arrays.low[0])
    upper = np.tile(widths, n)
    objective, bounds = np.tile(slopes / n, n), np.stack([np.zeros_like(upper), upper], axis=1)
    if arrays.norm != "exact":
        radius = n * arrays.radius
        matrix = np.hstack([matrix, np.eye(len(radius))])
        objective = np.concatenate([objective, np.zeros(len(radius))])
        bounds = np.concatenate([bounds, np.stack([-radius, radius], axis=1)])
    answer = solve_linprog(objective, method, A_eq=matrix, b_eq=right, bounds=bounds, options={"presolve": presolve})
    return Answer(base + answer.value)


def segments_highspy(arrays: Arrays) -> Answer:
    """Solve over segments in HiGHS itself, without SciPy's checks in between; slack enters as ranges of rows."""
    base, slopes, widths = _segments(arrays)
    n, pieces = arrays.n_rows, len(slopes)
    matrix = sp.csc_matrix(np.repeat(arrays.tests.T, pieces, axis=1))
    right = arrays.tests.T @ (arrays.forecasts[:, 0] - arrays.low[0])
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_ = np.tile(slopes / n, n)
    program.col_lower_, program.col_upper_ = np.zeros(n * pieces), np.tile(widths, n)
    program.row_lower_, program.row_upper_ = right - n * arrays.radius, right + n * arrays.radius
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise NoAnswerError(solver.modelStatusToString(solver.getModelStatus()))
    return Answer(base + solver.getInfo().objective_function_value, solver.getRunTime())


def segments_cvxpy(arrays: Arrays, solver: str, **options: Any) -> Answer:
    """Solve over segments in CVXPY."""
    base, slopes, widths = _segments(arrays)
    n = arrays.n_rows
    shares = cp.Variable(n * len(slopes), nonneg=True)
    matrix = np.repeat(arrays.tests.T, len(slopes), axis=1)
    right = arrays.tests.T @ (arrays.forecasts[:, 0] - arrays.low[0])
    constraints = [shares <= np.tile(widths, n)]
    if arrays.norm == "exact":
        constraints.append(matrix @ shares == right)
    else:
        error = cp.Variable(len(right))
        constraints += [matrix @ shares == right + error, error <= n * arrays.radius, error >= -n * arrays.radius]
    answer = solve_cvxpy(cp.Problem(cp.Minimize(np.tile(slopes, n) @ shares), constraints), solver, **options)
    return Answer(base + answer.value / n, answer.solver_seconds)


def multipliers_cvxpy(arrays: Arrays, solver: str, **options: Any) -> Answer:
    """Solve for the multipliers of one coordinate: ``max sum_i t_i - penalty`` with ``t_i <= val(p) + s_i p``."""
    points, values = epigraph_vertices(arrays)
    multipliers, least = cp.Variable(arrays.tests.shape[1]), cp.Variable(arrays.n_rows)
    tilts = arrays.tests @ multipliers
    objective = cp.sum(least) - (arrays.tests.T @ arrays.forecasts[:, 0]) @ multipliers
    if arrays.norm != "exact":
        objective -= arrays.n_rows * (arrays.radius @ cp.abs(multipliers))
    cuts = [least <= value + float(point[0]) * tilts for point, value in zip(points, values, strict=True)]
    answer = solve_cvxpy(cp.Problem(cp.Maximize(objective), cuts), solver, **options)
    return Answer(answer.value / arrays.n_rows, answer.solver_seconds)


def reduced_cvxpy(arrays: Arrays, solver: str, **options: Any) -> Answer:
    """Solve as written, less what is redundant."""
    rewards, costs, width = _coordinates(arrays)
    n = arrays.n_rows
    beliefs, values = cp.Variable((n, width), nonneg=not arrays.low.any()), cp.Variable(n)
    constraints = [values >= beliefs @ reward - cost for reward, cost in zip(rewards, costs, strict=True)]
    if arrays.simplex:
        constraints.append(cp.sum(beliefs, axis=1) <= 1)
    else:
        constraints.append(beliefs <= arrays.high[None, :])
        if arrays.low.any():
            constraints.append(beliefs >= arrays.low[None, :])
    tests = _independent_tests(arrays)
    nominal = tests.T @ arrays.forecasts[:, :width]
    if arrays.norm == "exact":
        constraints.append(tests.T @ beliefs == nominal)
    else:
        error = cp.Variable(nominal.shape)
        constraints.append(tests.T @ beliefs == nominal + error)
        if arrays.norm == "linf":
            radius = n * arrays.radius[:, None]
            constraints += [error <= radius, error >= -radius]
        else:
            constraints.append(cp.norm(error, 2, axis=1) <= n * arrays.radius)
    answer = solve_cvxpy(cp.Problem(cp.Minimize(cp.sum(values)), constraints), solver, **options)
    return Answer(answer.value / n, answer.solver_seconds)


def policy_side_cvxpy(arrays: Arrays, solver: str, **options: Any) -> Answer:
    """Solve the dual over multipliers and mixtures; the inner minimum over outcomes is a bound per coordinate."""
    n, d = arrays.forecasts.shape
    tests = _independent_tests(arrays)
    mixtures, multipliers = cp.Variable((n, len(arrays.costs)), nonneg=True), cp.Variable((tests.shape[1], d))
    directions = mixtures @ arrays.rewards + tests @ multipliers
    constraints = [cp.sum(mixtures, axis=1) == 1]
    if arrays.simplex:
        least = cp.Variable(n)
        constraints += [least <= directions[:, j] for j in range(d)]
        inner = cp.sum(least)
    else:
        # min over low <= p <= high of p.g is low.g minus the width times the negative part of g.
        negative = cp.Variable((n, d), nonneg=True)
        constraints.append(negative >= -directions)
        inner = cp.sum(directions @ arrays.low) - cp.sum(negative @ (arrays.high - arrays.low))
    nominal = tests.T @ arrays.forecasts
    objective = inner - cp.sum(mixtures @ arrays.costs) - cp.sum(cp.multiply(nominal, multipliers))
    if arrays.norm == "linf":
        objective -= n * (arrays.radius @ cp.sum(cp.abs(multipliers), axis=1))
    elif arrays.norm == "l2":
        objective -= n * (arrays.radius @ cp.norm(multipliers, 2, axis=1))
    answer = solve_cvxpy(cp.Problem(cp.Maximize(objective), constraints), solver, **options)
    return Answer(answer.value / n, answer.solver_seconds)


def vertices_linprog(arrays: Arrays, method: str) -> Answer:
    """Solve over convex combinations of vertices in SciPy; only for exact guarantees."""
    points, values = epigraph_vertices(arrays)
    _, _, width = _coordinates(arrays)
    tests, n = _independent_tests(arrays), arrays.n_rows
    moments = sp.csr_matrix(np.einsum("ij,lc->jcil", tests, points[:, :width]).reshape(-1, n * len(values)))
    sums = sp.kron(sp.eye(n), np.ones((1, len(values))))
    right = np.concatenate([(tests.T @ arrays.forecasts[:, :width]).reshape(-1), np.ones(n)])
    return solve_linprog(
        np.tile(values / n, n),
        method,
        A_eq=sp.vstack([moments, sums], format="csc"),
        b_eq=right,
        bounds=(0, None),
        options={"presolve": False},
    )


def epigraph_vertices(arrays: Arrays) -> tuple[Array, Array]:
    """List the points ``(N, d)`` and values ``(N,)`` of the vertices of the epigraph of ``val`` on the space.

    Found by Qhull, so that nothing here relies on the library under test.
    """
    rewards, costs, width = _coordinates(arrays)
    zeros = np.zeros((width, 1))
    sides = [np.hstack([rewards, -np.ones((len(costs), 1)), -costs[:, None]])]
    if arrays.simplex:
        middle = np.full(width, 1.0 / (width + 1))
        sides += [np.hstack([-np.eye(width), zeros, zeros]), np.concatenate([np.ones(width), [0.0, -1.0]])[None, :]]
    else:
        middle = (arrays.low + arrays.high) / 2
        sides += [np.hstack([-np.eye(width), zeros, arrays.low[:, None]])]
        sides += [np.hstack([np.eye(width), zeros, -arrays.high[:, None]])]
    inside = float((rewards @ middle - costs).max()) + arrays.utility_range
    # Qhull needs a bounded body: a lid far above, whose vertices are dropped again.
    lid = inside + 10 * arrays.utility_range
    sides.append(np.concatenate([np.zeros(width), [1.0, -lid]])[None, :])
    corners = HalfspaceIntersection(np.vstack(sides), np.append(middle, inside)).intersections
    corners = corners[corners[:, -1] < lid - arrays.utility_range]
    points = np.unique(corners[:, :-1].round(10), axis=0) + 0.0
    values = (points @ rewards.T - costs).max(axis=1)
    if arrays.simplex:
        points = np.hstack([points, 1.0 - points.sum(axis=1, keepdims=True)])
    return points, values


def _segments(arrays: Arrays) -> tuple[float, Array, Array]:
    """Cut ``val`` into linear pieces: its value at the lower end, slopes and widths."""
    points, values = epigraph_vertices(arrays)
    widths = np.diff(points[:, 0])
    return float(values[0]), np.diff(values) / widths, widths


def _coordinates(arrays: Arrays) -> tuple[Array, Array, int]:
    """Write utilities in free coordinates: on the simplex the last class follows from the others."""
    if not arrays.simplex:
        return arrays.rewards, arrays.costs, arrays.dimension
    last = arrays.rewards[:, -1]
    return arrays.rewards[:, :-1] - last[:, None], arrays.costs - last, arrays.dimension - 1


def _independent_tests(arrays: Arrays) -> Array:
    """Drop tests that are combinations of others; with slack each test counts, whatever its span."""
    if arrays.norm != "exact":
        return arrays.tests
    triangle, order = qr(arrays.tests, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > 1e-9 * diagonal[0]).sum())
    return np.ascontiguousarray(arrays.tests[:, np.sort(order[:rank])])
