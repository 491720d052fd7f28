"""The files of the built-in examples, as they could have been uploaded: one real, two made up by a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable

import numpy as np

from prudent.studio.answers import Guess
from prudent.studio.questions import Columns, Linear, Payoffs

__all__ = ["make_example"]


def make_example(name: str) -> tuple[bytes, Guess]:
    """Return the file of an example, and where to start."""
    return _MAKERS[name]()


def _patients() -> tuple[bytes, Guess]:
    from prudent.experiments import demonstration_sample

    problem, forecasts, outcomes = demonstration_sample()
    low, high = (float(bound[0]) for bound in problem.space.bounds)
    content = _csv(
        ["patient", "forecast", "outcome"], zip(range(1, len(outcomes) + 1), forecasts, outcomes, strict=True)
    )
    decision = Linear(
        kind="linear",
        actions=[str(action) for action in problem.actions],
        rewards=problem.rewards.tolist(),
        costs=problem.costs.tolist(),
        lower=[low],
        upper=[high],
    )
    return content, _start(["forecast"], "outcome", "patient", decision)


def _staffing() -> tuple[bytes, Guess]:
    rng = np.random.default_rng(7)
    demand = rng.beta(2.2, 2.8, 4_000)
    # Too sure of itself: pushed away from one half.
    forecasts = demand**3 / (demand**3 + (1 - demand) ** 3)
    outcomes = np.clip(demand + rng.normal(0, 0.12, demand.size), 0, 1)
    rows = zip(range(1, demand.size + 1), forecasts.round(4), outcomes.round(4), strict=True)
    decision = Linear(
        kind="linear",
        actions=["0.8x", "1.0x", "1.2x"],
        rewards=[[0.2], [0.9], [1.8]],
        costs=[0.0, 0.28, 0.82],
        lower=[0.0],
        upper=[1.0],
    )
    return _csv(["day_id", "forecast", "demand"], rows), _start(["forecast"], "demand", "day_id", decision)


def _triage() -> tuple[bytes, Guess]:
    rng = np.random.default_rng(11)
    classes = ["mild", "moderate", "severe"]
    truth = rng.dirichlet([2.0, 1.2, 0.6], 3_000)
    drawn = [classes[rng.choice(3, p=row)] for row in truth]
    sharpened = truth**1.6
    forecasts = (sharpened / sharpened.sum(axis=1, keepdims=True)).round(6)
    forecasts[:, 0] = (1 - forecasts[:, 1] - forecasts[:, 2]).round(6)
    rows = ((f"c{i + 1}", *row, label) for i, (row, label) in enumerate(zip(forecasts, drawn, strict=True)))
    columns = [f"p_{name}" for name in classes]
    decision = Payoffs(
        kind="payoffs",
        actions=["send home", "observe", "admit"],
        classes=classes,
        payoffs=[[1.0, -1.0, -6.0], [0.5, 0.8, -2.0], [-0.5, 0.3, 1.0]],
    )
    return _csv(["case_id", *columns, "label"], rows), _start(columns, "label", "case_id", decision)


def _start(forecast: list[str], outcome: str, key: str, problem: Linear | Payoffs) -> Guess:
    columns = Columns(forecast=forecast, outcome=[outcome], key=key)
    return Guess(columns=columns, problem=problem, sentence="A built-in example; everything can be changed.")


def _csv(header: list[str], rows: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([str(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8")


_MAKERS: dict[str, Callable[[], tuple[bytes, Guess]]] = {
    "patients": _patients,
    "staffing": _staffing,
    "triage": _triage,
}
