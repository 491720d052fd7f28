"""Compiled loops: the same answers with and without them, and no trace of the compiler where it is not needed."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import prudent
from prudent import compiled, guarantees
from prudent.solvers import scalar_loops, vertex_loops
from prudent.solvers.compiled_newton import CompiledRowNewton, _Loops
from prudent.solvers.row_newton import RowNewton, Rows, first_pairs

PLAIN_LOOPS = _Loops.plain()
LINE = prudent.DecisionProblem([-0.4, 0.2, 0.9, 1.4], [-0.2, 0.0, 0.3, 0.7])


def test_few_rows_do_not_load_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "switch", "")
    assert compiled.compiled(scalar_loops.add_up_tests, compiled.ROWS_WORTH_COMPILING - 1) is None
    code = (
        "import sys, numpy as np, prudent; from prudent import guarantees\n"
        "problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])\n"
        "policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(np.linspace(0, 1, 500))\n"
        "policy.predict([0.3]); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "switch", "1")
    assert compiled.compiled(scalar_loops.add_up_tests, 1) is not None
    monkeypatch.setattr(compiled, "switch", "0")
    assert compiled.compiled(scalar_loops.add_up_tests, 10**9) is None


def test_without_numba_everything_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "switch", "1")
    forecasts = np.random.default_rng(0).random(2_000)
    policy = prudent.RobustPolicy(LINE, guarantees.SelfOrthogonal(intercept=True))
    with_it = policy.fit(forecasts).certificate_
    monkeypatch.setitem(sys.modules, "numba", None)
    compiled._compile.cache_clear()
    try:
        assert compiled.compiled(scalar_loops.add_up_tests, 10**6) is None
        without = policy.fit(forecasts).certificate_
    finally:
        compiled._compile.cache_clear()
    assert without.status is with_it.status is prudent.Status.OPTIMAL
    assert abs(without.lower - with_it.lower) <= 1e-8 * LINE.utility_range


def both_ways(monkeypatch: pytest.MonkeyPatch, policy: Any, *arguments: Any, **keywords: Any) -> list[Any]:
    """Fit with compiled loops and without."""
    fitted = []
    for switch in ("1", "0"):
        monkeypatch.setattr(compiled, "switch", switch)
        fitted.append(clone(policy).fit(*arguments, **keywords))
    return fitted


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("slack", [0.0, 2e-3])
@pytest.mark.parametrize("signed", [False, True])
def test_one_multiplier_is_the_same(
    monkeypatch: pytest.MonkeyPatch, weighted: bool, slack: float, signed: bool
) -> None:
    rng = np.random.default_rng(3)
    forecasts = rng.beta(0.7, 2.0, size=30_000)
    weights = rng.pareto(2.0, size=30_000) + 0.01 if weighted else None
    test = guarantees.FromFunctions([lambda v: v[:, 0] - 0.2]) if signed else guarantees.SelfOrthogonal()
    fast, plain = both_ways(
        monkeypatch, prudent.RobustPolicy(LINE, test, slack=slack), forecasts, sample_weight=weights
    )
    assert fast.solution_.method == plain.solution_.method == "scalar"
    np.testing.assert_array_equal(fast.multipliers_, plain.multipliers_)  # the same quotient was selected
    np.testing.assert_allclose(fast.solution_.beliefs, plain.solution_.beliefs, rtol=0, atol=1e-9)
    for end in ("lower", "upper"):
        assert abs(getattr(fast.certificate_, end) - getattr(plain.certificate_, end)) <= 1e-12
    assert fast.certificate_.gap <= 1e-12 * LINE.utility_range


@pytest.mark.parametrize("simplex", [False, True])
@pytest.mark.parametrize("slack", [0.0, prudent.Slack(0.01, norm="l2"), prudent.Slack(0.01, norm="linf")])
def test_several_coordinates_have_the_same_value(monkeypatch: pytest.MonkeyPatch, simplex: bool, slack: Any) -> None:
    rng = np.random.default_rng(4)
    rewards = rng.normal(size=(4, 3))
    space = prudent.Simplex(3) if simplex else prudent.Box(np.zeros(3), np.ones(3))
    problem = prudent.DecisionProblem(rewards, 0.2 * rng.normal(size=4), space=space)
    forecasts = rng.dirichlet(np.ones(3), size=700) if simplex else rng.random((700, 3))
    policy = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(intercept=True), slack=slack)
    fast, plain = both_ways(monkeypatch, policy, forecasts)
    for one, other in ((fast, plain), (plain, fast)):
        assert one.certificate_.status is prudent.Status.OPTIMAL
        assert one.certificate_.lower <= other.certificate_.upper
    # What is played at a forecast does not depend on who computes it.
    monkeypatch.setattr(compiled, "switch", "1")
    played = plain.predict_proba(forecasts)
    monkeypatch.setattr(compiled, "switch", "0")
    np.testing.assert_array_equal(played, plain.predict_proba(forecasts))


def newtons(simplex: bool, n: int, plain: bool) -> tuple[RowNewton, CompiledRowNewton]:
    rng = np.random.default_rng(5)
    m, d = 4, 3
    forecasts = rng.dirichlet(np.ones(d), size=n) if simplex else rng.random((n, d))
    rows = Rows(rng.normal(size=(m, d)), rng.normal(size=(m, 1)), np.ascontiguousarray(forecasts.T), simplex)
    tilts = rng.normal(size=(d, n))
    room, price, nu = first_pairs(rows, tilts)
    room *= 10.0 ** rng.uniform(-3, 0, size=room.shape)
    loops = PLAIN_LOOPS if plain else _Loops.compiled()
    assert loops is not None
    return RowNewton(rows, room, price, nu, tilts), CompiledRowNewton(rows, room, price, nu, tilts, loops)


@pytest.mark.parametrize(("n", "plain"), [(300, False), (1, False), (5, True)])
@pytest.mark.parametrize("simplex", [False, True])
@pytest.mark.parametrize("refinements", [0, 2])
def test_newton_steps_agree(simplex: bool, refinements: int, n: int, plain: bool) -> None:
    """Compiled, and as the ordinary Python functions that they are."""
    pair = newtons(simplex, n, plain)
    results = []
    for newton in pair:
        newton.factor()
        right = newton.right_side(0.01 + newton.to_zero)
        step = newton.moves(right, np.full((3, n), 0.1), refinements)
        results.append(
            [
                newton.metric,
                right.push,
                right.image,
                step.room,
                step.price,
                step.nu,
                np.array([step.fall_room, step.fall_price]),
                np.array(newton.after(step, 0.1, 0.2, np.full(n, 1.0 / n))),
                newton.widened(0.01 + newton.to_zero, step, 0.1, 0.2, 0.01),
                newton.corrected(step, 0.01),
                *newton.advanced(step, 0.1, 0.2),
            ]
        )
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_loops_do_what_they_say_uncompiled() -> None:
    rng = np.random.default_rng(6)
    values, weights, forecasts = rng.normal(size=200), rng.random(200), rng.random(200)
    sums = scalar_loops.add_up_tests(values, weights, forecasts).sum(axis=1)
    strength = weights * values
    expected = [strength[strength > 0].sum(), strength[strength < 0].sum(), strength @ forecasts]
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
    equal = scalar_loops.add_up_tests(values, scalar_loops.loop_weights(np.broadcast_to(0.25, 200)), forecasts)
    np.testing.assert_allclose(equal.sum(axis=1)[2], 0.25 * (values @ forecasts), rtol=1e-12)
    tilts, corners, heights = rng.normal(size=(2, 30)), rng.random((7, 2)), rng.random(7)
    nearest, least, second = np.empty(30, dtype=np.int64), np.empty(30), np.empty(30)
    vertex_loops.least_two(tilts, corners, heights, nearest, least, second)
    scores = heights + tilts.T @ corners.T
    np.testing.assert_array_equal(nearest, scores.argmin(axis=1))
    np.testing.assert_allclose(np.stack([least, second], axis=1), np.sort(scores, axis=1)[:, :2], rtol=1e-13)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_first_call_that_takes_long_says_so_on_a_terminal(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    said = io.StringIO()
    monkeypatch.setattr(said, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(compiled, "_SECONDS_UNTIL_TOLD", 0.01)
    told = threading.Event()

    def slow(number: int) -> int:
        told.wait(0.5 if not terminal else 10.0)
        return number + 1

    tell = compiled._tell
    monkeypatch.setattr(compiled, "_tell", lambda: (tell(), told.set()))
    loop = compiled._Announced(slow)
    assert loop(1) == 2
    assert ("once per installation" in said.getvalue()) is terminal
    said.truncate(0)
    assert loop(2) == 3
    assert said.getvalue() == ""


def reciprocals(values: np.ndarray, result: np.ndarray) -> None:
    for i in range(values.size):
        result[i] = 1.0 / values[i]


def test_a_division_by_zero_gives_infinity_as_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs may underflow in the last steps of an interior point: the iteration must end there, not the program."""
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "switch", "1")
    loop = compiled.compiled(reciprocals, 10**6)
    assert loop is not None
    result = np.empty(3)
    loop(np.array([2.0, 0.0, -4.0]), result)
    np.testing.assert_array_equal(result, [0.5, np.inf, -0.25])
