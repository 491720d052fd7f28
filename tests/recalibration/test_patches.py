"""The search for patches: what counts as chance, and what patches do."""

from __future__ import annotations

import numpy as np

import prudent
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


def test_patches_lower_squared_error() -> None:
    fitting, held_out = (prudent.Cases(*coin_sample(n)).on(COIN.space) for n in (2_000, 500))
    search = PatchSearch((COIN,), fitting, held_out, None, 20)
    search.run()
    assert len(search.steps) > 1
    errors = [step.fitting_error for step in search.steps]
    assert errors == sorted(errors, reverse=True)
    before, after = search.followers
    assert squared_error(search.held_out, after) <= squared_error(search.held_out, before)
