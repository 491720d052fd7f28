"""Which columns are probably what."""

from __future__ import annotations

import pytest

from prudent.studio.guessing import guess
from prudent.studio.schemas import ColumnSummary


def share(name: str, *values: str) -> ColumnSummary:
    return ColumnSummary(name=name, kind="number", lower=0.0, upper=1.0, values=list(values))


def text(name: str, *values: str) -> ColumnSummary:
    return ColumnSummary(name=name, kind="text", lower=None, upper=None, values=list(values))


@pytest.mark.parametrize("prefix", ["", "p_", "Chance of "])
def test_probabilities_are_named_by_the_classes_after_one_prefix(prefix: str) -> None:
    columns = [share(f"{prefix}Well"), share(f"{prefix}Ill"), text("state", "ill", "well")]
    found = guess(columns)
    assert found.columns is not None
    assert found.columns.forecast == [f"{prefix}Well", f"{prefix}Ill"]
    assert found.columns.outcome == ["state"]
    assert found.problem is not None
    assert found.problem.table()["classes"] == ["well", "ill"]


@pytest.mark.parametrize(
    "names",
    [
        ["p_ill", "p_well", "q_ill", "q_well"],  # which?
        ["p_ill", "q_well"],
        ["pill", "pwell"],  # not at the start of a word
        ["p_ill"],
    ],
)
def test_other_names_are_no_classes(names: list[str]) -> None:
    found = guess([*map(share, names), text("state", "ill", "well")])
    assert found.problem is not None
    assert found.problem.kind == "linear"


def test_an_outcome_is_not_its_own_forecast() -> None:
    found = guess([share("class_0", "0.5"), share("class_1", "0", "1")])
    assert found.problem is not None
    assert found.problem.kind == "linear"
