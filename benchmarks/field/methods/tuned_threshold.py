"""The threshold that was best on past rows, as scikit-learn tunes thresholds.

With two actions a threshold of the expected gain decides. With more every action gets a handicap, tuned in turn.
"""

from __future__ import annotations

import numpy as np

import prudent
from benchmarks.field.decision import Decision
from benchmarks.field.forecaster import Array, Rows

NAME, ORDER = "tuned threshold", 5
_ROUNDS = 3


def decide(past: Rows, now: Rows, problem: prudent.DecisionProblem) -> Decision:
    """Maximise past utility, one handicap after the other."""
    expected, earned = problem.linear_utility(past.by_rows.on(problem.space).forecasts), past.utilities(problem)
    handicaps = np.zeros(problem.n_actions)
    for _ in range(1 if problem.n_actions == 2 else _ROUNDS):
        for action in range(1, problem.n_actions):
            handicaps[action] = best_handicap(expected, earned, handicaps, action)
    chosen = (problem.linear_utility(now.by_rows.on(problem.space).forecasts) + handicaps).argmax(axis=1)
    return Decision(np.eye(problem.n_actions)[chosen])


def best_handicap(expected: Array, earned: Array, handicaps: Array, action: int) -> float:
    """Of one action, given those of the others: between two rows, or the present one where nothing is gained."""
    others = np.delete(np.arange(len(handicaps)), action)
    rivals = expected[:, others] + handicaps[others]
    needed = rivals.max(axis=1) - expected[:, action]  # from this handicap on the action is taken
    gains = earned[:, action] - earned[np.arange(len(earned)), others[rivals.argmax(axis=1)]]
    order = np.argsort(needed, kind="stable")
    steps, total = needed[order], np.concatenate([[0.0], np.cumsum(gains[order])])
    ends = np.concatenate([[0], np.flatnonzero(np.diff(steps) > 0) + 1, [len(steps)]])  # rows that are taken together
    best = int(ends[total[ends].argmax()])
    present = int(np.searchsorted(steps, handicaps[action], side="right"))
    if total[best] <= total[present] + 1e-12 * np.abs(gains).sum():
        return float(handicaps[action])
    if best in (0, len(steps)):
        return float(steps[0] - 1.0 if best == 0 else steps[-1] + 1.0)
    return float((steps[best - 1] + steps[best]) / 2)
