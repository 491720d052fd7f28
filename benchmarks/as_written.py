"""The adversary's program as a good user writes it down.

Variables are a belief ``q_i`` and an epigraph variable ``t_i`` per row: minimise ``mean t`` such that
``t_i >= r_a . q_i - c_a`` for every action, ``q_i`` in the outcome space, and the moments within their slack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from benchmarks.arrays import Arrays
from benchmarks.child import NoAnswerError

__all__ = ["Answer", "solve_cvxpy", "solve_linprog", "with_cvxpy", "with_linprog"]


@dataclass(frozen=True)
class Answer:
    """What a competitor found: the value and, where it is told apart, the time inside the solver."""

    value: float
    solver_seconds: float | None = None


def with_cvxpy(arrays: Arrays, solver: str, **options: Any) -> Answer:
    """Write the program in CVXPY, vectorised over rows."""
    n, d = arrays.forecasts.shape
    beliefs, values = cp.Variable((n, d)), cp.Variable(n)
    constraints = [values >= beliefs @ reward - cost for reward, cost in zip(arrays.rewards, arrays.costs, strict=True)]
    if arrays.simplex:
        constraints += [beliefs >= 0, cp.sum(beliefs, axis=1) == 1]
    else:
        constraints += [beliefs >= arrays.low[None, :], beliefs <= arrays.high[None, :]]
    moments = arrays.tests.T @ (beliefs - arrays.forecasts) / n
    if arrays.norm == "exact":
        constraints.append(moments == 0)
    elif arrays.norm == "linf":
        # Not cp.abs(moments) <= radius: CVXPY 1.9.3 then hands HiGHS a program with the moments fixed at zero.
        constraints += [moments <= arrays.radius[:, None], moments >= -arrays.radius[:, None]]
    else:
        constraints.append(cp.norm(moments, 2, axis=1) <= arrays.radius)
    return solve_cvxpy(cp.Problem(cp.Minimize(cp.sum(values) / n), constraints), solver, **options)


def with_linprog(arrays: Arrays, method: str) -> Answer:
    """Write the same program as sparse matrices for SciPy; round slack is beyond it."""
    n, d = arrays.forecasts.shape
    m = len(arrays.costs)
    each_row = sp.eye(n, format="csr")
    objective = np.concatenate([np.zeros(n * d), np.full(n, 1.0 / n)])
    upper = sp.hstack([sp.kron(each_row, arrays.rewards), -sp.kron(each_row, np.ones((m, 1)))], format="csr")
    upper_right = np.tile(arrays.costs, n)
    moments = sp.kron(sp.csr_matrix(arrays.tests.T / n), sp.eye(d), format="csr")
    moments = sp.hstack([moments, sp.csr_matrix((moments.shape[0], n))], format="csr")
    right = moments[:, : n * d] @ arrays.forecasts.reshape(-1)
    equalities, equalities_right = [], []
    if arrays.norm == "exact":
        equalities.append(moments)
        equalities_right.append(right)
    else:
        radius = np.repeat(arrays.radius, d)
        upper = sp.vstack([upper, moments, -moments], format="csr")
        upper_right = np.concatenate([upper_right, right + radius, radius - right])
    if arrays.simplex:
        equalities.append(sp.hstack([sp.kron(each_row, np.ones((1, d))), sp.csr_matrix((n, n))], format="csr"))
        equalities_right.append(np.ones(n))
    bounds = np.concatenate(
        [np.tile(np.stack([arrays.low, arrays.high], axis=1), (n, 1)), np.tile([-np.inf, np.inf], (n, 1))]
    )
    return solve_linprog(
        objective,
        method,
        A_ub=upper,
        b_ub=upper_right,
        A_eq=sp.vstack(equalities, format="csr") if equalities else None,
        b_eq=np.concatenate(equalities_right) if equalities else None,
        bounds=bounds,
    )


def solve_cvxpy(problem: cp.Problem, solver: str, **options: Any) -> Answer:
    """Solve, and take nothing for an answer that the solver does not call optimal."""
    problem.solve(solver=solver, **options)
    if problem.status != cp.OPTIMAL:
        raise NoAnswerError(problem.status)
    return Answer(float(problem.value), problem.solver_stats.solve_time)


def solve_linprog(objective: np.ndarray, method: str, **program: Any) -> Answer:
    """Solve, and take nothing for an answer that the solver does not call optimal."""
    result = linprog(objective, method=method, **program)
    if result.status != 0:
        raise NoAnswerError(result.message)
    return Answer(float(result.fun))
