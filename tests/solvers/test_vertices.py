"""The table of vertices: least values, and labels that few vertices serve."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent.solvers import Game, local_game
from prudent.solvers.game import normalize_game
from prudent.solvers.vertices import VertexTable, vertex_table

RNG = np.random.default_rng(3)
BOX = prudent.DecisionProblem(RNG.normal(size=(4, 3)), 0.3 * RNG.normal(size=4))
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(5, 4)))
LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])


@pytest.mark.parametrize("problem", [BOX, CLASSES, LINE])
def test_the_table_of_vertices_gives_the_least_value(problem: prudent.DecisionProblem) -> None:
    """Against points of the space: no one is below the table, and mixtures of the local game reach it."""
    game = Game.of_problem(problem)
    normal = normalize_game(game)
    table = vertex_table(normal, local_game(game))
    assert table is not None
    rng = np.random.default_rng(2)
    tilts = rng.normal(size=(problem.dimension, 40))
    least = table.least(tilts)
    points = rng.random((2_000, problem.dimension))
    if isinstance(problem.space, prudent.Simplex):
        points /= points.sum(axis=1, keepdims=True)
    values = normal.utilities(points).max(axis=1)[:, None] + points @ tilts
    assert (values.min(axis=0) >= least - 1e-7).all()
    mixtures = local_game(normal).mixtures(tilts.T)
    direction = mixtures @ normal.rewards[0] + tilts.T
    reached = (mixtures * normal.offsets).sum(axis=1) + normal.space.support_minimum(direction)
    np.testing.assert_allclose(reached, least, atol=1e-7)


def test_few_vertices_serve_the_rows_of_a_cell() -> None:
    table = VertexTable(np.array([[0.0], [0.5], [1.0]]), np.array([0.0, 0.1, 0.0]))
    tilts = np.array([[0.3, 0.2, -0.1, 0.25, -0.4]])
    clusters = np.array([0, 0, 0, 1, 1])
    labels = table.labels(tilts, table.least(tilts), clusters, tolerance=0.0)
    assert labels.tolist() == [0, 0, 2, 0, 2]
    # With a tolerance of 0.1 the first vertex is good enough for all of the first cell.
    assert table.labels(tilts, table.least(tilts), clusters, tolerance=0.1).tolist()[:3] == [0, 0, 0]
