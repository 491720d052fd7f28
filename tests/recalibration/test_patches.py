"""The search for patches: what counts as chance, progress, interrupts."""

from __future__ import annotations

import numpy as np

import prudent
from prudent.progress import ProgressLine
from prudent.recalibration.base import squared_error
from prudent.recalibration.patches import PatchSearch, standard_errors_beyond_chance

COIN = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])


def coin_sample(n: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    forecasts = rng.random(n)
    return forecasts, (rng.random(n) < 0.35 + 0.3 * forecasts).astype(float)


def test_chance_is_two_to_two_and_a_half_standard_errors() -> None:
    assert [standard_errors_beyond_chance(count) for count in (1, 2, 10_000)] == [2.0, 2.0, 2.5]
    assert 2.0 < standard_errors_beyond_chance(10) < 2.5


class Line(ProgressLine):
    """Counts what is shown; interrupts the work when it has been told so often."""

    def __init__(self, interrupt_at: int = 0) -> None:
        super().__init__("patches", wanted=False)
        self.shown: list[int] = []
        self.interrupt_at = interrupt_at

    def show(self, done: int, total: int, details: str = "") -> None:
        self.shown.append(done)
        if len(self.shown) == self.interrupt_at:
            raise KeyboardInterrupt


def coin_search(problems: int, line: Line) -> PatchSearch:
    fitting, held_out = (prudent.Cases(*coin_sample(n)).on(COIN.space) for n in (2_000, 500))
    return PatchSearch((COIN,) * problems, fitting, held_out, None, 20, line)


def test_progress_is_shown_while_promises_are_kept() -> None:
    line = Line()
    assert coin_search(3, line).run()
    assert line.shown.count(0) >= 3


def test_interrupting_keeps_what_was_found() -> None:
    search = coin_search(1, Line(interrupt_at=2))
    assert not search.run()
    assert len(search.steps) > 1
    errors = [step.fitting_error for step in search.steps]
    assert errors == sorted(errors, reverse=True)
    before, after = search.followers
    assert squared_error(search.held_out, after) <= squared_error(search.held_out, before)
