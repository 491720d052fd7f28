"""The best deterministic rule on a lazy table is that of memory, and holds what its certificate says on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables.lazy import BOX, CLASSES, ROWS, SCALAR, check_pure, make_rows

import prudent
from prudent import DecisionProblem, PureRobustPolicy, guarantees
from prudent.ambiguity import build_ambiguity
from prudent.solvers import Game
from prudent.solvers.pure_scalar import best_pure_multiplier, pure_ceiling

MATCH = DecisionProblem([1.0, -1.0], [0.0, -1.0])  # p or 1 - p: giving up mixing costs much

#: Where memory proves that no deterministic rule is better, and a table does, too.
PROVEN: list[Any] = [
    (1, MATCH, guarantees.SelfOrthogonal()),
    (1, SCALAR, guarantees.SelfOrthogonal()),
    (1, MATCH, guarantees.Unbiased()),
    (1, MATCH, guarantees.Nothing()),
    (1, MATCH, guarantees.UtilityCalibrated(SCALAR)),
    (1, MATCH, guarantees.Binned.uniform(5)),
    (1, MATCH, guarantees.FullyCalibrated()),
    ("simplex", CLASSES, guarantees.TopLabel(3)),
]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(("kind", "problem", "guarantee"), PROVEN, ids=lambda case: str(case)[:40])
def test_the_best_rule_is_that_of_memory(
    engine: str, kind: Any, problem: Any, guarantee: Any, weight: str | None
) -> None:
    assert check_pure(engine, ROWS, kind, problem, guarantee, weight) == "optimal"


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("kind", "problem", "guarantee"),
    [(1, MATCH, guarantees.SelfOrthogonal(intercept=True)), ("simplex", CLASSES, guarantees.SelfOrthogonal())],
    ids=["several tests", "simplex"],
)
def test_a_rule_for_several_tests_is_certified(engine: str, kind: Any, problem: Any, guarantee: Any) -> None:
    assert check_pure(engine, make_rows(400), kind, problem, guarantee, "w") == "not proven"


def test_a_test_that_bends_within_cells_is_not_proven() -> None:
    assert check_pure("duckdb", ROWS, 1, MATCH, guarantees.Temperature(), None) == "not proven"


def test_slack() -> None:
    assert check_pure("duckdb", ROWS, 1, MATCH, guarantees.SelfOrthogonal(), "w", slack=0.01) == "optimal"


def test_several_coordinates() -> None:
    assert check_pure("polars", make_rows(300), 3, BOX, guarantees.Unbiased(), None) in ("optimal", "not proven")


def test_rows_in_few_cells() -> None:
    """All forecasts within a thousandth of the space: cells are divided until they say what the rows say."""
    narrow = 0.5 + 1e-3 * np.random.default_rng(3).random(4_000)
    memory = PureRobustPolicy(MATCH, guarantees.SelfOrthogonal()).fit(narrow)
    columns = prudent.columns(pl.LazyFrame({"v": narrow}), forecasts="v")
    table = PureRobustPolicy(MATCH, guarantees.SelfOrthogonal()).fit(columns)
    assert table.value_ == pytest.approx(memory.value_, abs=1.01e-6)
    assert table.certificate_.status == "optimal"


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_holds_for_all_rows_of_cells(seed: int) -> None:
    """Ten rows at a time make a cell: the highest value on the rows lies below the bound from the cells."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 5))
    problem = DecisionProblem(rng.normal(size=m), rng.normal(size=m) / 4, space=prudent.Box(-1, 1))
    v = np.sort(rng.uniform(-1, 1, 400))
    guarantee, game = guarantees.SelfOrthogonal(), Game.of_problem(problem)
    every = build_ambiguity(problem, guarantee, v[:, None], np.full(400, 1 / 400), 0.0)
    multiplier = best_pure_multiplier(game, every)
    tilts = every.tests.tilts(multiplier)
    values = game.offsets + game.space.support_minimum(game.rewards + tilts[:, None, :])
    highest = float(every.weights @ (values.max(axis=1) - tilts[:, 0] * v))
    parts = v.reshape(40, 10)
    cells = build_ambiguity(problem, guarantee, parts.mean(axis=1)[:, None], np.full(40, 1 / 40), 0.0)
    # The linear term is that of the rows, as tables have it.
    shift = every.tests.moments(v[:, None], every.weights) - cells.tests.moments(cells.forecasts, cells.weights)
    slack = prudent.ambiguity.SlackSet(shift, cells.slack.radius, cells.slack.groups, cells.slack.ball)
    cells = prudent.ambiguity.Ambiguity(cells.space, cells.forecasts, cells.weights, cells.tests, slack)
    ceiling = pure_ceiling(game, cells, parts.min(axis=1), parts.max(axis=1))
    assert highest <= ceiling + 1e-12
    assert ceiling <= highest + 0.05 * problem.utility_range
