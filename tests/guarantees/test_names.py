"""Guarantees by name."""

from __future__ import annotations

import pytest

import prudent
from prudent import guarantees
from prudent.errors import InputError
from prudent.guarantees.names import GUARANTEE_NAMES, guarantee_from_name

PROBLEM = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])


@pytest.mark.parametrize("name", GUARANTEE_NAMES)
def test_every_name_that_is_offered_can_be_read(name: str) -> None:
    text = name.replace("N", "7")
    guarantee = guarantee_from_name(text, PROBLEM)
    assert type(guarantee).name == text.partition(":")[0]


def test_names_are_joined() -> None:
    assert guarantee_from_name("unbiased + polynomial:2+decision-calibrated", PROBLEM) == (
        guarantees.Unbiased() & guarantees.Polynomial(2) & guarantees.DecisionCalibrated(PROBLEM)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not known; choose among nothing, unbiased, .*, joined by"),
        ("unbiased+", "'' is not known"),
        ("polynomal:2", "did you mean 'polynomial'"),
        ("binned:", "binned needs a whole number, such as binned:10"),
        ("binned:ten", "binned needs a whole number"),
        ("binned:-1", "binned needs a whole number"),
        ("binned:0", "n_bins must be a whole number of at least 1"),
        ("unbiased:3", "unbiased takes no number"),
        ("decision-calibrated:3", "takes no number"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        guarantee_from_name(text, PROBLEM)
