"""Random and degenerate robust decision problems, with their tests written out independently."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

import prudent
from prudent import guarantees
from reference import Allowed, World


@dataclass(frozen=True)
class Instance:
    """One problem for the library and, in other words, for the reference."""

    label: str
    problem: prudent.DecisionProblem
    guarantee: guarantees.Guarantee
    slack: Any
    outcomes: np.ndarray | None
    rewards: np.ndarray
    costs: np.ndarray
    world: World
    fresh: World

    @property
    def range(self) -> float:
        lowest = self.world.least(self.rewards) - self.costs
        highest = -self.world.least(-self.rewards) - self.costs
        spread = float(highest.max() - lowest.min())
        return spread if spread > 1e-9 else max(float(np.abs(lowest).max()), 1.0)  # constant utilities have no range


def random_instance(seed: int, rows: int | None = None) -> Instance:
    """Draw a problem; with ``rows`` of that many forecasts, else of a random small number."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 1, 2, 3, 5]))
    simplex = d > 1 and rng.random() < 0.45
    m = int(rng.integers(1, 13))
    n = int(rng.choice([1, 2, 5, 12, 25, 40], p=[0.04, 0.06, 0.1, 0.3, 0.3, 0.2]))
    n = rows or n
    rewards, costs = _utilities(rng, m, d)
    low, high = np.zeros(d), np.ones(d)
    if not simplex and rng.random() < 0.5:
        low = rng.choice([-3.0, 0.0, 10.0, 250.0], size=d)
        high = low + rng.choice([0.5, 1.0, 40.0], size=d)
        rewards = rewards / (high - low)
        costs = costs + (rewards * low).mean(axis=1)
    forecasts = _forecasts(rng, n, d, low, high, simplex)
    fresh = _forecasts(rng, 15, d, low, high, simplex)
    weights = rng.choice([1.0, 2.0, 5.0], size=n) if rng.random() < 0.5 else rng.random(n) + 0.01
    weights = weights / weights.sum()
    guarantee, build = _guarantee(rng, rewards, costs, low, high, simplex, forecasts)
    tests, groups, scales = build(forecasts)
    problem = prudent.DecisionProblem(
        rewards, costs, space=prudent.Simplex(d) if simplex else prudent.Box(low.tolist(), high.tolist())
    )
    outcomes = _outcomes(rng, forecasts, low, high, simplex)
    slack, allowed, needed = _slack(rng, tests, groups, scales, forecasts, outcomes, weights, high - low)
    label = f"seed {seed}: d={d} simplex={simplex} m={m} n={n} {guarantee!r:.80} slack={allowed.kind}"
    fresh_weights = np.full(len(fresh), 1 / len(fresh))
    return Instance(
        label,
        problem,
        guarantee,
        slack,
        outcomes if needed else None,
        rewards,
        costs,
        World(low, high, simplex, forecasts, weights, tests, allowed),
        World(low, high, simplex, fresh, fresh_weights, build(fresh)[0], allowed),
    )


def _utilities(rng, m, d):
    style = rng.integers(4)
    if style == 0:
        rewards, costs = rng.normal(size=(m, d)), 0.4 * rng.normal(size=m)
    elif style == 1:  # small integers: ties and degenerate vertices everywhere
        rewards, costs = rng.integers(-2, 3, size=(m, d)).astype(float), rng.integers(-1, 2, size=m).astype(float)
    elif style == 2:  # no costs: all lines meet at the origin
        rewards, costs = rng.normal(size=(m, d)), np.zeros(m)
    else:  # repeated and dominated actions
        rewards, costs = rng.normal(size=(m, d)), 0.4 * rng.normal(size=m)
        twin = rng.integers(0, m, size=m)
        rewards, costs = rewards[twin], costs[twin] + rng.choice([0.0, 0.0, 0.7], size=m)
    return rewards, costs


def _forecasts(rng, n, d, low, high, simplex):
    style = rng.integers(4)
    if simplex:
        points = rng.dirichlet(np.full(d, rng.choice([0.3, 1.0, 4.0])), size=n)
        if style == 0:  # atoms, zeros and certainties
            points = np.round(points * 3)
            points[points.sum(axis=1) == 0] = 1.0
            points /= points.sum(axis=1, keepdims=True)
        return points
    unit = rng.random((n, d)) if style else rng.integers(0, 5, size=(n, d)) / 4
    if style == 1:
        unit = np.repeat(unit[: max(1, n // 3)], 4, axis=0)[:n]
        unit = np.vstack([unit, rng.random((n - len(unit), d))])
    return low + (high - low) * unit


def _outcomes(rng, forecasts, low, high, simplex):
    n, d = forecasts.shape
    if simplex:
        return np.eye(d)[[rng.choice(d, p=row / row.sum()) for row in forecasts]]
    return np.clip(forecasts + 0.3 * (high - low) * rng.normal(size=(n, d)), low, high)


def _guarantee(rng, rewards, costs, low, high, simplex, forecasts):
    d = rewards.shape[1]
    width = high - low
    space = prudent.Simplex(d) if simplex else prudent.Box(low.tolist(), high.tolist())
    problem = prudent.DecisionProblem(rewards, costs, space=space)
    other = rng.normal(size=(3, d)) / width

    def regions(v, table, charge):
        best = (v @ table.T - charge).argmax(axis=1)
        return np.eye(len(table))[best]

    def polynomials(v, degree):
        x = np.clip(2 * (v - low) / width - 1, -1, 1)
        products = [p for total in range(degree + 1) for p in combinations_with_replacement(range(d - simplex), total)]
        waves = [[np.cos(p.count(j) * np.arccos(x[:, j])) for j in range(d)] for p in products]
        return np.prod(waves, axis=1).T

    ones = (lambda v: np.ones((len(v), 1)), lambda: np.ones(1))
    selves = (lambda v: v, lambda: np.maximum(np.abs(low), np.abs(high)))
    families: list[Any] = [
        (guarantees.Nothing(), _scalar(lambda v: np.zeros((len(v), 0)), np.zeros(0))),
        (guarantees.Unbiased(), _scalar(ones[0], np.ones(1))),
        (guarantees.SelfOrthogonal(), _scalar(selves[0], selves[1]())),
        (
            guarantees.SelfOrthogonal(intercept=True),
            _scalar(lambda v: np.hstack([np.ones((len(v), 1)), v]), np.concatenate([[1.0], selves[1]()])),
        ),
        (guarantees.Unbiased() & guarantees.Unbiased(), _scalar(lambda v: np.ones((len(v), 2)), np.ones(2))),
        (
            guarantees.Polynomial(2 if d < 5 else 1),
            _scalar(
                lambda v: polynomials(v, 2 if d < 5 else 1), np.ones(polynomials(low[None], 2 if d < 5 else 1).shape[1])
            ),
        ),
        (
            guarantees.DecisionCalibrated(problem),
            _scalar(lambda v: regions(v, rewards, costs), np.ones(len(rewards))),
        ),
        (
            guarantees.DecisionCalibrated(prudent.DecisionProblem(other, space=space)) & guarantees.SelfOrthogonal(),
            _both(
                _scalar(lambda v: regions(v, other, np.zeros(3)), np.ones(3)),
                _scalar(selves[0], selves[1]()),
            ),
        ),
        (
            guarantees.UtilityCalibrated(prudent.DecisionProblem(other, space=space)),
            _vector(lambda v: other[(v @ other.T).argmax(axis=1)][:, None, :]),
        ),
        (
            guarantees.SelfOrthogonal() & guarantees.UtilityCalibrated(problem),
            _both(
                _scalar(selves[0], selves[1]()),
                _vector(lambda v: rewards[(v @ rewards.T - costs).argmax(axis=1)][:, None, :]),
            ),
        ),
        (guarantees.Classwise(3), _vector(lambda v: _classwise(v, low, high, 3))),
        (
            guarantees.FromFunctions(
                [lambda v: np.sin(7 * (v[:, 0] - low[0]) / width[0]), lambda v: v * 0.0 + v[:, :1]]
            ),
            _both(
                _scalar(lambda v: np.sin(7 * (v[:, :1] - low[0]) / width[0]), np.ones(1)),
                _vector(lambda v: np.repeat(v[:, None, :1], d, axis=2)) if d > 1 else _scalar(lambda v: v, np.ones(1)),
            ),
        ),
    ]
    if d == 1:
        edges = low[0] + width[0] * np.array([0.0, 0.2, 0.55, 1.0])

        def bins(v):
            cell = np.clip(np.searchsorted(edges, v[:, 0], side="right") - 1, 0, 2)
            return np.eye(3)[cell]

        families.append((guarantees.Bins(edges.tolist()), _scalar(bins, np.ones(3))))
        families.append(
            (
                guarantees.Bins(edges.tolist()) & guarantees.SelfOrthogonal(),
                _both(_scalar(bins, np.ones(3)), _scalar(selves[0], selves[1]())),
            )
        )
    if simplex:

        def confidence(v):
            tests = np.zeros((len(v), 3, d))
            cell = np.clip(np.floor(v.max(axis=1) * 3).astype(int), 0, 2)
            tests[np.arange(len(v)), cell, v.argmax(axis=1)] = 1.0
            return tests

        def top_label(v):
            tests = np.zeros((len(v), 3 * d, d))
            cell = np.clip(np.floor(v.max(axis=1) * 3).astype(int), 0, 2)
            tests[np.arange(len(v)), v.argmax(axis=1) * 3 + cell, v.argmax(axis=1)] = 1.0
            return tests

        families += [
            (guarantees.TopLabelPooled(3), _vector(confidence)),
            (guarantees.TopLabel(3), _vector(top_label)),
        ]
    return families[rng.integers(len(families))]


def _scalar(function, scales):
    def build(v):
        values = function(v)
        n, k = values.shape
        d = v.shape[1]
        tests = np.zeros((n, k * d, d))
        for i in range(k):
            for j in range(d):
                tests[:, i * d + j, j] = values[:, i]
        return tests, np.repeat(np.arange(k), d), np.repeat(scales, d)

    return build


def _vector(function):
    def build(v):
        tests = function(v)
        return tests, np.arange(tests.shape[1]), np.ones(tests.shape[1])

    return build


def _both(first, second):
    def build(v):
        one, other = first(v), second(v)
        shift = one[1].max(initial=-1) + 1
        return (
            np.concatenate([one[0], other[0]], axis=1),
            np.concatenate([one[1], other[1] + shift]),
            np.concatenate([one[2], other[2]]),
        )

    return build


def _classwise(v, low, high, bins):
    n, d = v.shape
    tests = np.zeros((n, d * bins, d))
    for j in range(d):
        edges = np.linspace(low[j], high[j], bins + 1)
        cell = np.clip(np.searchsorted(edges, v[:, j], side="right") - 1, 0, bins - 1)
        tests[np.arange(n), j * bins + cell, j] = 1.0
    return tests


def _slack(rng, tests, groups, scales, forecasts, outcomes, weights, width):
    _, size, d = tests.shape
    k = int(groups.max(initial=-1)) + 1
    zero = np.zeros(size)
    style = int(rng.integers(8))
    unit = float(rng.choice([0.003, 0.02, 0.1])) * float(width.min())
    group_scale = np.array([scales[groups == g][0] for g in range(k)]) if k else np.zeros(0)
    scalar_tests = size == 0 or (np.bincount(groups, minlength=k) == d).all()
    if size == 0 or style <= 2:
        return 0.0, Allowed("exact", zero, zero, groups), False
    if style == 3:
        return unit, Allowed("ball", zero, unit * group_scale, groups), False
    if style == 4:
        radii = unit * rng.choice([0.0, 1.0, 2.0], size=k)
        return radii, Allowed("ball", zero, radii * group_scale, groups), False
    if style == 5:
        radii = unit * rng.choice([0.0, 1.0, 2.0], size=size)
        shown = radii.reshape(k, d) if scalar_tests else prudent.Slack(radii, "linf")
        return shown, Allowed("box", zero, radii * scales, groups), False
    measured = np.einsum("nkd,nd,n->k", tests, outcomes - forecasts, weights)
    if style == 6:
        slack = prudent.Slack(unit, "linf", "measured")
        return slack, Allowed("box", measured, np.full(size, unit) * scales, groups), True
    center = measured / scales
    shown = center.reshape(k, d) if scalar_tests else center
    slack = prudent.Slack(unit, "l2", shown)
    return slack, Allowed("ball", measured, unit * group_scale, groups), False
