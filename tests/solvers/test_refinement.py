"""Cells of rows: exact moments, a dual never below that of the rows, and splits that close the gap."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import compiled, guarantees
from prudent.ambiguity import Ambiguity, build_ambiguity
from prudent.solvers import Game, local_game, solve
from prudent.solvers.cells import Cells
from prudent.solvers.first_cells import bisected, neighbouring
from prudent.solvers.moment_reduction import reduce_moments
from prudent.solvers.row_blocks import RowBlocks
from prudent.solvers.units import normalize
from prudent.solvers.vertex_table import VertexTable, vertex_table

RNG = np.random.default_rng(3)
BOX = prudent.DecisionProblem(RNG.normal(size=(4, 3)), 0.3 * RNG.normal(size=4))
CLASSES = prudent.DecisionProblem.from_payoffs(RNG.normal(size=(5, 4)))
LINE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7])


def sample(problem: prudent.DecisionProblem, n: int, slack: object = 0.0) -> tuple[Game, Ambiguity]:
    rng = np.random.default_rng(n)
    d = problem.dimension
    simplex = isinstance(problem.space, prudent.Simplex)
    forecasts = rng.dirichlet(np.ones(d), size=n) if simplex else rng.random((n, d))
    weights = rng.random(n) + 0.1
    weights /= weights.sum()
    guarantee = guarantees.SelfOrthogonal(intercept=True)
    return Game.of_problem(problem), build_ambiguity(problem, guarantee, forecasts, weights, slack)


@pytest.mark.parametrize("problem", [BOX, CLASSES, LINE])
def test_a_world_constant_on_cells_has_the_same_moments_on_rows(problem: prudent.DecisionProblem) -> None:
    game, ambiguity = sample(problem, 500)
    normal, rows, _ = normalize(game, ambiguity)
    system = reduce_moments(rows)
    index, count = bisected(system.values, 32)
    cells = Cells(normal, system, rows.forecasts, index, count)
    for parts in (3, 7):
        world = np.random.default_rng(1).random((cells.count, problem.dimension))
        on_rows = system.moments((world[cells.index] - rows.forecasts).T) - system.center
        on_cells = cells.system.moments((world - cells.forecasts).T) - cells.system.center
        np.testing.assert_allclose(on_cells, on_rows, atol=1e-13)
        assert cells.weights.sum() == pytest.approx(1.0, abs=1e-12)
        labels = np.arange(500) % parts
        before = cells.count
        cells.split(np.arange(500), labels)
        assert cells.count > before
        assert set(np.unique(cells.index)) == set(range(cells.count))


def test_splitting_parts_rows_by_cell_and_label() -> None:
    game, ambiguity = sample(LINE, 60)
    normal, rows, _ = normalize(game, ambiguity)
    system = reduce_moments(rows)
    index = np.arange(60) % 4
    cells = Cells(normal, system, rows.forecasts, index, 4)
    chosen = np.flatnonzero(index < 2)
    labels = chosen % 5
    cells.split(chosen, labels)
    pairs = {(index[row], row % 5 if index[row] < 2 else -1): set() for row in range(60)}
    for row in range(60):
        pairs[index[row], row % 5 if index[row] < 2 else -1].add(int(cells.index[row]))
    assert all(len(numbers) == 1 for numbers in pairs.values())
    assert len({next(iter(numbers)) for numbers in pairs.values()}) == len(pairs) == cells.count
    for cell in range(cells.count):
        inside = cells.index == cell
        assert cells.weights[cell] == pytest.approx(system.weights[inside].sum(), rel=1e-12)
        mean = np.average(rows.forecasts[inside], axis=0, weights=system.weights[inside])
        np.testing.assert_allclose(cells.forecasts[cell], mean, atol=1e-12)


@pytest.mark.parametrize("problem", [BOX, CLASSES, LINE])
def test_the_table_of_vertices_gives_the_least_value(problem: prudent.DecisionProblem) -> None:
    """Against points of the space: no one is below the table, and mixtures of the local game reach it."""
    game, _ = sample(problem, 5)
    local = local_game(game)
    table = vertex_table(normalize(*sample(problem, 5))[0], local)
    assert table is not None
    normal = normalize(*sample(problem, 5))[0]
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
    cells = np.array([0, 0, 0, 1, 1])
    labels = table.labels(tilts, table.least(tilts), cells, tolerance=0.0)
    assert labels.tolist() == [0, 0, 2, 0, 2]
    # With a tolerance of 0.1 the first vertex is good enough for all of the first cell.
    assert table.labels(tilts, table.least(tilts), cells, tolerance=0.1).tolist()[:3] == [0, 0, 0]


@pytest.mark.parametrize("tolerance", [1e-9, 0.05, 0.3])
def test_a_compiled_loop_chooses_the_same_vertices(tolerance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    table = VertexTable(rng.random((40, 3)), 0.1 * rng.normal(size=40))
    tilts, cells = rng.normal(size=(3, 3_000)), np.sort(rng.integers(0, 90, size=3_000))
    least = table.scores(tilts).min(axis=1)
    found = []
    for switch in ("1", "0"):
        monkeypatch.setattr(compiled, "switch", switch)
        found.append(table.labels(tilts, least, cells, tolerance))
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) > 3


def test_neighbouring_rows_share_cells_and_no_cell_is_empty() -> None:
    position = np.concatenate([np.random.default_rng(0).beta(0.1, 5, size=5_000), [1.0]])
    index, count = neighbouring(position, 64)
    assert 1 < count <= 65
    assert set(np.unique(index)) == set(range(count))
    order = np.argsort(position, kind="stable")
    assert (np.diff(index[order]) >= 0).all()
    constant, one = neighbouring(np.full(10, 0.3), 64)
    assert one == 1
    assert not constant.any()


def assert_cells_agree_with_rows(problem: prudent.DecisionProblem, game: Game, ambiguity: Ambiguity) -> None:
    """Both brackets contain the optimum, the cells' is narrow, and their world is allowed."""
    cells = solve(game, ambiguity)
    assert cells.method == "refined cells"
    rows = solve(game, ambiguity, method="interior point")
    assert cells.gap <= 1e-6 * problem.utility_range
    assert cells.lower <= rows.upper
    assert rows.lower <= cells.upper
    moments = ambiguity.moments(cells.beliefs)
    assert abs(moments - ambiguity.slack.project(moments)).max() <= 1e-11


@pytest.mark.parametrize("problem", [BOX, CLASSES])
@pytest.mark.parametrize("slack", [0.0, 0.01, prudent.Slack(0.02, norm="l2")])
def test_many_rows_are_solved_through_cells(problem: prudent.DecisionProblem, slack: object) -> None:
    assert_cells_agree_with_rows(problem, *sample(problem, 5_000, slack))


def test_the_worst_case_of_a_policy_with_many_rows() -> None:
    """Rows with rewards of their own go through cells as well."""
    for problem in (BOX, CLASSES):
        _, ambiguity = sample(problem, 5_000)
        mixtures = prudent.PlugInPolicy(problem).predict_proba(ambiguity.forecasts)
        assert_cells_agree_with_rows(problem, Game.of_mixtures(problem, mixtures), ambiguity)


@pytest.mark.parametrize("simplex", [False, True])
def test_blocks_of_rows_are_inverted_like_one_by_one(simplex: bool) -> None:
    rng = np.random.default_rng(0)
    m, d, n = 4, 3, 50
    factor = rng.normal(size=(m, d, n)) * 10.0 ** rng.uniform(-4, 4, size=(m, 1, n))
    diagonal = 10.0 ** rng.uniform(-4, 2, size=(d, n))
    push = rng.normal(size=(d, n))
    x, nu = RowBlocks(factor, diagonal, simplex).solve(push, refinements=2)
    for i in range(n):
        block = factor[:, :, i].T @ factor[:, :, i] + np.diag(diagonal[:, i])
        left = block @ x[:, i] + nu[i] - push[:, i]
        assert (
            np.abs(left).max() <= 1e-8 * (np.abs(block) @ np.abs(x[:, i]) + np.abs(push[:, i]).max() + abs(nu[i])).max()
        )
        if simplex:
            assert abs(x[:, i].sum()) <= 1e-9 * np.abs(x[:, i]).max()
        else:
            assert nu[i] == 0
