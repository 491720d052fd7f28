"""Random problems with context, with their tests written out independently."""

from __future__ import annotations

from typing import Any

import numpy as np

import instances
import prudent
from instances import Instance
from prudent import guarantees
from reference import World

Build = Any


def context_instance(seed: int) -> tuple[Instance, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Draw a problem, the context of its rows, and that of its fresh rows, whose groups all occur among its rows."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 2, 3]))
    simplex = d > 1 and rng.random() < 0.5
    m, n = int(rng.integers(1, 7)), int(rng.choice([4, 12, 30]))
    rewards, costs = instances._utilities(rng, m, d)
    low, high = np.zeros(d), np.ones(d)
    if not simplex and rng.random() < 0.5:
        low = rng.choice([-3.0, 0.0, 10.0], size=d)
        high = low + rng.choice([0.5, 1.0, 40.0], size=d)
        rewards = rewards / (high - low)
        costs = costs + (rewards * low).mean(axis=1)
    space = prudent.Simplex(d) if simplex else prudent.Box(low.tolist(), high.tolist())
    forecasts, fresh = (instances._forecasts(rng, rows, d, low, high, simplex) for rows in (n, 10))
    weights = rng.random(n) + 0.01 if rng.random() < 0.5 else np.ones(n)
    weights = weights / weights.sum()
    region, age = rng.choice(["north", "south", "west"], size=n), rng.integers(0, 90, size=n).astype(float)
    others = rng.integers(0, n, size=10)
    context = {"region": region, "age": age, "night": rng.random(n) < 0.5}
    new = {name: column[others] for name, column in context.items()}
    guarantee, build = _with_context(rng, rewards, costs, low, high, simplex, forecasts, context)
    tests, groups, scales = build(forecasts, context)
    outcomes = instances._outcomes(rng, forecasts, low, high, simplex)
    slack, allowed, needed = instances._slack(rng, tests, groups, scales, forecasts, outcomes, weights, high - low)
    world = World(low, high, simplex, forecasts, weights, tests, allowed)
    elsewhere = World(low, high, simplex, fresh, np.full(10, 0.1), build(fresh, new)[0], allowed)
    problem = prudent.DecisionProblem(rewards, costs, space=space)
    label = f"seed {seed}: d={d} simplex={simplex} m={m} n={n} {guarantee!r:.120} slack={allowed.kind}"
    given = problem, guarantee, slack, outcomes if needed else None, rewards, costs, world, elsewhere
    return Instance(label, *given), context, new


def _with_context(rng, rewards, costs, low, high, simplex, forecasts, context):
    """Draw tests within groups, beside pooled ones, or functions of the context."""
    style = int(rng.integers(5))
    if style == 4:
        tests = [lambda v, z: v[:, 0] * (z["region"] == "north"), lambda v, z: np.where(z["age"] < 40, 1.0, -0.5)]

        def functions(v, z):
            return np.stack([test(v, z) for test in tests], axis=1)

        return guarantees.FromFunctions(tests, context=["region", "age"]), _of(functions)
    inner, build = instances._guarantee(rng, rewards, costs, low, high, simplex, forecasts)
    if style == 3:
        inner, build = guarantees.Unbiased(), instances._scalar(lambda v: np.ones((len(v), 1)), np.ones(1))
    columns, keys = (
        ("region", lambda z: [(name,) for name in z["region"].tolist()]),
        ({"age": [30, 60]}, lambda z: [(int(age >= 30) + int(age >= 60),) for age in z["age"]]),
        (["region", "night"], lambda z: list(zip(z["region"].tolist(), z["night"].tolist(), strict=True))),
        ("night", lambda z: [(night,) for night in z["night"].tolist()]),
    )[style]
    within = _within(build, keys, sorted(set(keys(context))), low.size)
    if style < 3 and rng.random() < 0.6:
        return guarantees.Within(columns, inner), within
    pooled = instances._scalar(lambda v: v, np.maximum(np.abs(low), np.abs(high)))
    return guarantees.Within(columns, inner) & guarantees.SelfOrthogonal(), _beside(within, pooled)


def _within(build, keys, known, d):
    """Tests of every group, test by test; the coordinates of a scalar test stay together."""

    def made(v, z):
        tests, groups, scales = build(v)
        scalar = (np.bincount(groups, minlength=1) == d).all() if len(groups) else True
        width, count = (d if scalar else 1), len(known)
        places = np.array([known.index(key) for key in keys(z)])
        order = [(m + j, g) for m in range(0, len(groups), width) for g in range(count) for j in range(width)]
        moment, group = (np.array(column, dtype=int) for column in zip(*order, strict=True)) if order else ([], [])
        moment, group = np.array(moment, dtype=int), np.array(group, dtype=int)
        shown = tests[:, moment] * (places[:, None] == group)[:, :, None]
        return shown, groups[moment] * count + group, scales[moment]

    return made


def _beside(within, pooled):
    def made(v, z):
        one, other = within(v, z), pooled(v)
        shift = one[1].max(initial=-1) + 1
        shown = np.concatenate([one[0], other[0]], axis=1)
        return shown, np.concatenate([one[1], other[1] + shift]), np.concatenate([one[2], other[2]])

    return made


def _of(function):
    return lambda v, z: instances._scalar(lambda _: function(v, z), np.ones(2))(v)
