"""The rows' blocks of a Newton step."""

from __future__ import annotations

import numpy as np
import pytest

from prudent.solvers.row_newton import RowBlocks


@pytest.mark.parametrize("simplex", [False, True])
def test_blocks_of_rows_are_inverted_like_one_by_one(simplex: bool) -> None:
    rng = np.random.default_rng(0)
    m, d, n = 4, 3, 50
    factor = rng.normal(size=(m, d, n)) * 10.0 ** rng.uniform(-4, 4, size=(m, 1, n))
    diagonal = 10.0 ** rng.uniform(-4, 2, size=(d, n))
    load = rng.normal(size=(d, n))
    x, nu = RowBlocks(factor, diagonal, simplex).solve(load, refinements=2)
    for i in range(n):
        block = factor[:, :, i].T @ factor[:, :, i] + np.diag(diagonal[:, i])
        left = block @ x[:, i] + nu[i] - load[:, i]
        assert (
            np.abs(left).max() <= 1e-8 * (np.abs(block) @ np.abs(x[:, i]) + np.abs(load[:, i]).max() + abs(nu[i])).max()
        )
        if simplex:
            assert abs(x[:, i].sum()) <= 1e-9 * np.abs(x[:, i]).max()
        else:
            assert nu[i] == 0
