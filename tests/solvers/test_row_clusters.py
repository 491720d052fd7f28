"""Clusters of rows: exact moments, a dual never below that of the rows, and splits that close the gap."""

from __future__ import annotations

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.cases.memory_rows import Ambiguity
from prudent.solvers import Game, SolverOptions, solve
from prudent.solvers.game import normalize
from prudent.solvers.moment_system import reduce_moments
from prudent.solvers.row_clusters import RowClusters, bisected, neighbouring, parts_that_lose
from solutions import build_ambiguity

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
def test_a_world_constant_on_clusters_has_the_same_moments_on_rows(problem: prudent.DecisionProblem) -> None:
    game, ambiguity = sample(problem, 500)
    normal, rows, _ = normalize(game, ambiguity)
    system = reduce_moments(rows)
    index, count = bisected(system.values, 32)
    clusters = RowClusters(normal, system, rows.forecasts, index, count)
    for parts in (3, 7):
        world = np.random.default_rng(1).random((clusters.count, problem.dimension))
        on_rows = system.moments((world[clusters.index] - rows.forecasts).T) - system.center
        on_clusters = clusters.system.moments((world - clusters.forecasts).T) - clusters.system.center
        np.testing.assert_allclose(on_clusters, on_rows, atol=1e-13)
        assert clusters.weights.sum() == pytest.approx(1.0, abs=1e-12)
        labels = np.arange(500) % parts
        before = clusters.count
        clusters.split(np.arange(500), labels)
        assert clusters.count > before
        assert set(np.unique(clusters.index)) == set(range(clusters.count))


def test_splitting_parts_rows_by_cluster_and_label() -> None:
    game, ambiguity = sample(LINE, 60)
    normal, rows, _ = normalize(game, ambiguity)
    system = reduce_moments(rows)
    index = np.arange(60) % 4
    clusters = RowClusters(normal, system, rows.forecasts, index, 4)
    chosen = np.flatnonzero(index < 2)
    labels = chosen % 5
    clusters.split(chosen, labels)
    pairs = {(index[row], row % 5 if index[row] < 2 else -1): set() for row in range(60)}
    for row in range(60):
        pairs[index[row], row % 5 if index[row] < 2 else -1].add(int(clusters.index[row]))
    assert all(len(numbers) == 1 for numbers in pairs.values())
    assert len({next(iter(numbers)) for numbers in pairs.values()}) == len(pairs) == clusters.count
    for cluster in range(clusters.count):
        inside = clusters.index == cluster
        assert clusters.weights[cluster] == pytest.approx(system.weights[inside].sum(), rel=1e-12)
        mean = np.average(rows.forecasts[inside], axis=0, weights=system.weights[inside])
        np.testing.assert_allclose(clusters.forecasts[cluster], mean, atol=1e-12)


def test_neighbouring_rows_share_clusters_and_no_cluster_is_empty() -> None:
    position = np.concatenate([np.random.default_rng(0).beta(0.1, 5, size=5_000), [1.0]])
    index, count = neighbouring(position, 64)
    assert 1 < count <= 65
    assert set(np.unique(index)) == set(range(count))
    order = np.argsort(position, kind="stable")
    assert (np.diff(index[order]) >= 0).all()
    constant, one = neighbouring(np.full(10, 0.3), 64)
    assert one == 1
    assert not constant.any()


def assert_clusters_agree_with_rows(problem: prudent.DecisionProblem, game: Game, ambiguity: Ambiguity) -> None:
    """Both brackets contain the optimum, the clusters' is narrow, and their world is allowed."""
    clusters = solve(game, ambiguity)
    assert clusters.method == "row clusters"
    rows = solve(game, ambiguity, options=SolverOptions("interior point"))
    assert clusters.certificate.gap <= 1e-6 * problem.utility_range
    assert clusters.lower <= rows.upper
    assert rows.lower <= clusters.upper
    moments = ambiguity.tests.moments(clusters.beliefs - ambiguity.forecasts, ambiguity.weights)
    assert abs(moments - ambiguity.slack.project(moments)).max() <= 1e-11


@pytest.mark.parametrize("problem", [BOX, CLASSES])
@pytest.mark.parametrize("slack", [0.0, 0.01, prudent.Slack(0.02, norm="l2")])
def test_many_rows_are_solved_through_clusters(problem: prudent.DecisionProblem, slack: object) -> None:
    assert_clusters_agree_with_rows(problem, *sample(problem, 5_000, slack))


def test_the_worst_case_of_a_policy_with_many_rows() -> None:
    """Rows with rewards of their own go through clusters as well."""
    for problem in (BOX, CLASSES):
        _, ambiguity = sample(problem, 5_000)
        mixtures = prudent.PlugInPolicy(problem).predict_proba(ambiguity.forecasts)
        assert_clusters_agree_with_rows(problem, Game.of_problem(problem).against(mixtures), ambiguity)


def test_parts_that_lose_most_come_first_and_lose_nearly_all() -> None:
    assert parts_that_lose(np.array([0.1, 0.6, 0.0, 0.3])).tolist() == [1, 3, 0]
    assert parts_that_lose(np.array([0.995, 0.005])).tolist() == [0]
