"""Race the library against the same program in SciPy's HiGHS, on the same arrays in one run.

The program is the adversary's LP as one would write it down: a belief and an
epigraph variable per row, one inequality per row and action, one equality per
moment. Prints the ratio of times and checks that the values agree.

    python benchmarks/against_highs.py
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import prudent
from prudent import guarantees


def highs_value(problem: prudent.DecisionProblem, forecasts: np.ndarray, tests: np.ndarray) -> float:
    """Solve ``min mean t`` with ``t_i >= u(a, q_i)`` and vanishing moments; tests have shape (n, k)."""
    n, d = forecasts.shape
    m = problem.n_actions
    low, high = problem.space.bounds
    cost = np.concatenate([np.zeros(n * d), np.full(n, 1.0 / n)])
    upper = sp.hstack([sp.kron(sp.eye(n), problem.rewards), -sp.kron(sp.eye(n), np.ones((m, 1)))], format="csr")
    moments = sp.csr_matrix(np.concatenate([np.kron(tests[:, i], np.eye(d)) for i in range(tests.shape[1])]) / n)
    equality = sp.hstack([moments, sp.csr_matrix((moments.shape[0], n))], format="csr")
    right = moments @ forecasts.reshape(-1)
    if isinstance(problem.space, prudent.Simplex):
        sums = sp.hstack([sp.kron(sp.eye(n), np.ones((1, d))), sp.csr_matrix((n, n))])
        equality, right = sp.vstack([equality, sums], format="csr"), np.concatenate([right, np.ones(n)])
    bounds = [*zip(np.tile(low, n), np.tile(high, n), strict=True), *[(None, None)] * n]
    result = linprog(cost, upper, np.tile(problem.costs, n), equality, right, bounds, method="highs")
    if result.status != 0:
        raise RuntimeError(result.message)
    return float(result.fun)


def main() -> None:
    """Run a few cases and print one line each."""
    rng = np.random.default_rng(0)
    bike = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    plane = prudent.DecisionProblem(rng.normal(size=(5, 3)), 0.3 * rng.normal(size=5))
    classes = prudent.DecisionProblem.from_payoffs(rng.normal(size=(5, 4)))
    line = rng.beta(2, 3, size=(10_000, 1))
    cube, triangle = rng.random((1_000, 3)), rng.dirichlet(np.ones(4), size=1_000)
    cases = [
        ("d=1, {v}, n=10,000", bike, guarantees.SelfOrthogonal(), line, line),
        ("d=1, {1,v}, n=10,000", bike, guarantees.SelfOrthogonal(intercept=True), line, np.hstack([line**0, line])),
        ("box d=3, {v}, n=1,000", plane, guarantees.SelfOrthogonal(), cube, cube),
        ("4 classes, {v}, n=1,000", classes, guarantees.SelfOrthogonal(), triangle, triangle),
    ]
    print(f"{'case':26}{'HiGHS / Prudent':>16}{'gap':>10}{'difference':>12}  method")
    for name, problem, guarantee, forecasts, tests in cases:
        start = time.perf_counter()
        policy = prudent.RobustPolicy(problem, guarantee).fit(forecasts)
        middle = time.perf_counter()
        value = highs_value(problem, forecasts, tests)
        end = time.perf_counter()
        ratio = (end - middle) / (middle - start)
        difference = abs(value - policy.value_)
        method = policy.solution_.method
        print(f"{name:26}{ratio:15.1f}x{policy.certificate_.gap:10.1e}{difference:12.1e}  {method}")


if __name__ == "__main__":
    main()
