"""A step of the interior point as one loop: the steps that NumPy takes, and what the studio does with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import prudent
from prudent import compiled, guarantees
from prudent.ambiguity import Ambiguity, build_ambiguity
from prudent.solvers import Game, compiled_step, interior_point, recentring_loop, solve, step_loop
from prudent.solvers.compiled_step import CompiledStep, program_of
from prudent.solvers.interior_point import Iterate
from prudent.solvers.moment_reduction import reduce_moments
from prudent.solvers.moment_system import MomentSystem
from prudent.solvers.row_newton import Rows, first_pairs, recentred
from prudent.solvers.units import normalize

RNG = np.random.default_rng(8)
LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])
BOX = prudent.DecisionProblem(RNG.normal(size=(4, 2)), 0.3 * RNG.normal(size=4))
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(4, 3)))
SCALAR = guarantees.SelfOrthogonal(intercept=True)
INTERVALS = prudent.Slack(0.02, "linf")


def program(problem: prudent.DecisionProblem, guarantee: Any, slack: Any, n: int, own: bool) -> tuple[Game, Ambiguity]:
    rng = np.random.default_rng(n)
    d = problem.dimension
    simplex = isinstance(problem.space, prudent.Simplex)
    forecasts = rng.dirichlet(np.ones(d), size=n) if simplex else rng.random((n, d))
    weights = rng.random(n) + 0.1
    ambiguity = build_ambiguity(problem, guarantee, forecasts, weights / weights.sum(), slack)
    game = Game.of_mixtures(problem, problem.best_mixtures(forecasts)) if own else Game.of_problem(problem)
    return game, ambiguity


def prepared(game: Game, ambiguity: Ambiguity) -> tuple[Rows, MomentSystem, Iterate]:
    normal, rows, _ = normalize(game, ambiguity)
    system = reduce_moments(rows)
    given = Rows.of_game(normal, rows.forecasts, many=True)
    return given, system, interior_point._begin(given, system)


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take compiled steps for the Python functions that they are, which few rows do not mind."""
    monkeypatch.setattr(compiled_step, "_prepared", True)
    monkeypatch.setattr(compiled, "switch", "")
    monkeypatch.setattr(compiled, "compiled_along", lambda loop, called: loop)
    with np.errstate(all="ignore"):
        yield


CASES = [
    (LINE, SCALAR, 0.0, False),
    (LINE, SCALAR, 0.02, False),
    (BOX, SCALAR, INTERVALS, False),
    (BOX, SCALAR, 0.0, True),
    (BOX, SCALAR, prudent.Slack(50.0, "linf"), False),  # nothing is left to be held
    (CLASSES, SCALAR, 0.0, False),
    (CLASSES, SCALAR, INTERVALS, False),
    (CLASSES, SCALAR, INTERVALS, True),
    (CLASSES, SCALAR, 0.02, False),
    (BOX, SCALAR, 0.02, True),
    (CLASSES, SCALAR, prudent.Slack([0.0, 0.02, 0.0, 0.01]), False),
    (CLASSES, guarantees.UtilityCalibrated(CLASSES), INTERVALS, False),
    (CLASSES, guarantees.Classwise(2), INTERVALS, False),
    (BOX, guarantees.Unbiased() & guarantees.UtilityCalibrated(BOX), 0.0, False),
]


@pytest.mark.parametrize(("problem", "guarantee", "slack", "own"), CASES)
@pytest.mark.usefixtures("as_written")
def test_the_same_steps(problem: prudent.DecisionProblem, guarantee: Any, slack: Any, own: bool) -> None:
    rows, system, now = prepared(*program(problem, guarantee, slack, 9, own))
    known = program_of(rows, system)
    assert known is not None
    for refinements in (1, 1, 2, 2):
        plain = interior_point._Newton(rows, system, now, refinements)
        looped = CompiledStep(known, now, refinements, lambda: pytest.fail("the system is definite"))
        assert looped.merit == pytest.approx(plain.merit, rel=1e-9)
        assert looped.complement == pytest.approx(plain.complement, rel=1e-9)
        expected, found = plain.next_iterate(), looped.next_iterate()
        for name in ("room", "price", "nu", "multipliers"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-9)
        for name in ("sigma", "room_up", "room_down", "push_up", "push_down", "height"):
            np.testing.assert_allclose(getattr(found.cones, name), getattr(expected.cones, name), rtol=1e-6, atol=1e-9)
        now = expected


@pytest.mark.usefixtures("as_written")
def test_tests_kept_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prudent.solvers.moment_reduction._MANY_ROWS", 1)
    rows, system, now = prepared(*program(CLASSES, SCALAR & guarantees.UtilityCalibrated(CLASSES), INTERVALS, 9, False))
    assert system.combination is not None
    known = program_of(rows, system)
    assert known is not None
    expected = interior_point._Newton(rows, system, now, 1).next_iterate()
    found = CompiledStep(known, now, 1, lambda: pytest.fail("the system is definite")).next_iterate()
    np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.room, expected.room, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("problem", [LINE, BOX, CLASSES])
def test_rows_come_to_the_same_place_on_the_path(
    monkeypatch: pytest.MonkeyPatch, problem: prudent.DecisionProblem
) -> None:
    rows, system, _ = prepared(*program(problem, SCALAR, 0.0, 12, False))
    tilts = system.tilts(np.random.default_rng(1).normal(size=system.size))
    start = first_pairs(rows, tilts)
    expected = recentred(rows, tilts, 1e-3, start)
    monkeypatch.setattr(compiled_step, "_prepared", True)
    monkeypatch.setattr(compiled, "switch", "")
    monkeypatch.setattr(compiled, "compiled_along", lambda loop, called: loop)
    for one, other in zip(recentred(rows, tilts, 1e-3, start), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("as_written")
def test_where_it_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    many = guarantees.FromFunctions([lambda v, k=k: np.cos(k * v[:, 0]) for k in range(40)])
    rows, system, _ = prepared(*program(BOX, many, 0.02, 90, False))
    assert program_of(rows, system) is None
    rows, system, _ = prepared(*program(BOX, SCALAR, 0.0, 9, False))
    assert program_of(rows, system) is not None
    monkeypatch.setattr(compiled, "switch", "0")
    assert program_of(rows, system) is None
    assert compiled_step.compiled_recentred(rows, rows.forecasts, 0.1, first_pairs(rows, rows.forecasts)) is None


@pytest.mark.usefixtures("as_written")
def test_a_singular_system_is_left_to_least_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, system, now = prepared(*program(CLASSES, SCALAR, 0.0, 9, False))
    known = program_of(rows, system)
    assert known is not None
    monkeypatch.setattr(step_loop, "factor_definite", lambda matrix, shift: (False, matrix))
    plain = interior_point._Newton(rows, system, now, 1)
    found = CompiledStep(known, now, 1, lambda: plain).next_iterate()
    np.testing.assert_array_equal(found.room, interior_point._Newton(rows, system, now, 1).next_iterate().room)


def test_nothing_is_used_before_it_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_step, "_prepared", False)
    rows, system, _ = prepared(*program(BOX, SCALAR, 0.0, 9, False))
    assert program_of(rows, system) is None
    assert compiled_step.compiled_recentred(rows, rows.forecasts, 0.1, first_pairs(rows, rows.forecasts)) is None


def test_short_tables_are_solved_as_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit: what the studio says of a small file is what the library says."""
    monkeypatch.setattr(compiled, "switch", "")
    cases = [program(CLASSES, SCALAR, INTERVALS, 300, False), program(BOX, guarantees.Unbiased(), 0.02, 300, False)]
    expected = [solve(*case) for case in cases]
    monkeypatch.setattr(compiled_step, "_prepared", True)
    monkeypatch.setattr(compiled, "compiled_along", lambda loop, called: pytest.fail("nothing is compiled"))
    for case, one in zip(cases, expected, strict=True):
        found = solve(*case)
        assert found.multipliers is not None
        np.testing.assert_array_equal(found.multipliers, one.multipliers)


@pytest.mark.slow
def test_compiled_once_and_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the problem, loops are compiled for one kind of arrays: a second one would keep somebody waiting."""
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled_step, "_prepared", False)
    monkeypatch.setattr(compiled, "switch", "")
    joined = SCALAR & guarantees.UtilityCalibrated(CLASSES)
    cases = [
        program(problem, guarantee, slack, n, own)
        for n in (40, 12_000)
        for problem, guarantee, slack, own in [
            *CASES,
            (CLASSES, joined, INTERVALS, False),
            (CLASSES, joined, 0.0, True),
        ]
    ]
    plain = [solve(*case) for case in cases]
    compiled_step.prepare()
    assert compiled_step._prepared
    assert compiled_step.is_kept()
    for case, expected in zip(cases, plain, strict=True):
        found = solve(*case)
        assert found.gap <= 1e-6 * case[0].scale
        assert found.lower <= expected.upper
        assert expected.lower <= found.upper
    for loop, called in (
        (step_loop.look, step_loop.CALLED),
        (step_loop.take_step, step_loop.CALLED),
        (recentring_loop.recentre_rows, recentring_loop.CALLED),
    ):
        dispatcher: Any = compiled.compiled_along(loop, called)
        assert len(dispatcher._loop.signatures) == 1
