"""Online calibration against adversaries, and next to a base forecast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import prudent
from benchmarks.repair_cases import Array, payoff_problems

__all__ = ["NextToBase", "next_to_base", "online"]

Adversary = Callable[[tuple[prudent.DecisionProblem, ...], list[Array], Array, Array], Array]


def online(adversary: str, steps: list[int], seed: int = 0, delay: int = 0) -> Iterator[tuple[int, float, float]]:
    """Largest sum of errors over the root of time, after some steps: the calibrator, and a running mean.

    Both meet the same adversary, who knows the distribution of each prediction: "utility" picks the class for which the
    likeliest best response of one problem pays least, "sums" the outcome that makes the largest sum larger still. The
    calibrator learns outcomes so many steps late.
    """
    problems = payoff_problems(5, 4, 5, seed)
    meet = {"utility": _hurt, "sums": _push}[adversary]
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(problems, random_state=seed)
    chosen: dict[int, Array] = {}
    sums, seen = [np.zeros(problem.rewards.shape) for problem in problems], np.ones(5) / 5
    for step in range(1, max(steps) + 1):
        calibrator.predict([step])
        chosen[step] = meet(problems, calibrator.errors_, *calibrator.distribution_)
        if step > delay:
            calibrator.update([step - delay], [chosen[step - delay]])
        mean = seen / seen.sum()
        outcome = meet(problems, sums, mean[None], np.ones(1))
        for problem, errors in zip(problems, sums, strict=True):
            errors[problem.best_actions(mean[None])[0]] += outcome - mean
        seen = seen + outcome
        if step in steps:
            yield (
                step,
                *(
                    max(float(np.abs(errors).max()) for errors in tables) / np.sqrt(step)
                    for tables in (calibrator.errors_, sums)
                ),
            )


def _hurt(problems: tuple[prudent.DecisionProblem, ...], _: list[Array], points: Array, weights: Array) -> Array:
    problem = problems[0]
    likely = np.bincount(problem.best_actions(points), weights=weights, minlength=problem.n_actions).argmax()
    return np.eye(points.shape[1])[problem.rewards[likely].argmin()]


def _push(problems: tuple[prudent.DecisionProblem, ...], sums: list[Array], points: Array, weights: Array) -> Array:
    """The class that adds most, on average, to the largest sum among those whose event can happen."""
    best, coordinate, up = 0.0, 0, True
    for problem, errors in zip(problems, sums, strict=True):
        share = np.bincount(problem.best_actions(points), weights=weights, minlength=problem.n_actions)
        sizes = np.where(share[:, None] > 1e-9, np.abs(errors), -1.0)
        action, column = np.unravel_index(sizes.argmax(), sizes.shape)
        if sizes[action, column] > best:
            best, coordinate, up = float(sizes[action, column]), int(column), bool(errors[action, column] > 0)
    if up:
        return np.eye(points.shape[1])[coordinate]
    others = np.where(np.arange(points.shape[1]) == coordinate, -np.inf, -(weights @ points))
    return np.eye(points.shape[1])[others.argmax()]


@dataclass(frozen=True)
class NextToBase:
    """One row of the table: mean expected utility of best responding, squared error to the truth, largest sum."""

    name: str
    utilities: tuple[float, float]
    errors: tuple[float, float]
    ratio: float


def next_to_base(steps: int, seed: int = 1) -> Iterator[NextToBase]:
    """A base forecast that is right, biased, too sure or inverted, and what the calibrator makes of it."""
    rng = np.random.default_rng(seed)
    truth = rng.random((steps, 1))
    outcomes = (rng.random((steps, 1)) < truth).astype(float)
    coin = (prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0]),)
    bases = {
        "right": truth,
        "0.1 too low": truth - 0.1,
        "too sure": 0.5 + 2 * (truth - 0.5),
        "inverted": 1 - truth,
    }
    for name, base in bases.items():
        yield _next_to(f"coin, {name}", coin, np.clip(base, 0, 1), truth, outcomes)
    problems = payoff_problems(5, 4, 5, seed)
    logits = rng.normal(size=(steps, 5))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    outcomes = np.eye(5)[(rng.random((steps, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 4)]
    base = np.exp(2.5 * logits + np.array([0.5, 0.0, 0.0, 0.0, -0.5]))
    yield _next_to("5 classes, too sure and biased", problems, base / base.sum(axis=1, keepdims=True), truth, outcomes)


def _next_to(
    name: str, problems: tuple[prudent.DecisionProblem, ...], base: Array, truth: Array, outcomes: Array
) -> NextToBase:
    calibrator = prudent.recalibration.OnlineDecisionCalibrator(problems)
    each, moved = np.arange(len(truth)), np.empty_like(base)
    for row in each.tolist():
        moved[row] = calibrator.predict([row], base[[row]])[0]
        calibrator.update([row], outcomes[[row]])
    utilities, errors = [], []
    for forecasts in (base, moved):
        earned = [problem.utility(truth)[each, problem.best_response(forecasts)].mean() for problem in problems]
        utilities.append(float(np.mean(earned)))
        errors.append(float(((forecasts - truth) ** 2).sum(axis=1).mean()))
    sums = (*calibrator.errors_, *calibrator.base_errors_)
    largest = max(float(np.abs(table).max()) for table in sums) / np.sqrt(len(truth))
    return NextToBase(name, (utilities[0], utilities[1]), (errors[0], errors[1]), largest)
