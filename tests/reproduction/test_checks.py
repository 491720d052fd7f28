"""The orderings can fail: each is shown a table that breaks it."""

from __future__ import annotations

import copy

import pytest
from reproduction.checks import check_orderings
from reproduction.table_one import MIXED, MIXED_ON_TEST, PAPER_FIRST, PAPER_LAST, PLUG_IN


def row(iid: float, own: float, robust: tuple[float, float], plug_in: tuple[float, float]) -> dict:
    return {"iid": iid, "own_worst": own, "worst_for_robust": list(robust), "worst_for_plug_in": list(plug_in)}


TABLE = {
    "policies": {
        PLUG_IN: row(0.47, 0.39, (0.40, 0.41), (0.39, 0.39)),
        PAPER_FIRST: row(0.44, 0.40, (0.42, 0.42), (0.43, 0.43)),
        PAPER_LAST: row(0.46, 0.41, (0.43, 0.43), (0.42, 0.42)),
        MIXED: row(0.45, 0.4299, (0.4299, 0.43), (0.4299, 0.43)),
        MIXED_ON_TEST: row(0.45, 0.43, (0.43, 0.43), (0.43, 0.43)),
    },
    "optimum": [0.43, 0.43],
    "dual_of_mixed": 0.4298,
    "most_of_optimal": None,
}


def failing(table: dict) -> list[str]:
    return [
        check["statement"] for check in check_orderings([TABLE, table], 1.0) if check["theorem"] and check["holds"] < 2
    ]


def test_a_good_table_passes() -> None:
    checks = check_orderings([TABLE], 1.0)
    assert sum(check["theorem"] for check in checks) == 6
    assert all(check["holds"] == 1 for check in checks if check["theorem"])
    seen = {check["statement"]: check["holds"] for check in checks}
    assert seen["worst case for plug-in: Prudent, mixed is at least plug-in"] == 1
    assert seen[f"worst case for plug-in: {MIXED} is at least {PAPER_FIRST}"] == 0


@pytest.mark.parametrize(
    ("policy", "column", "value", "statement"),
    [
        (PLUG_IN, "worst_for_robust", [0.38, 0.41], "no policy falls below its own worst case"),
        (PAPER_LAST, "own_worst", 0.431, "no policy's own worst case exceeds the optimum"),
        (MIXED, "own_worst", 0.4297, "at least its dual value"),
        (MIXED_ON_TEST, "own_worst", 0.4299, "own worst case is the optimum"),
        (PLUG_IN, "worst_for_robust", [0.40, 0.4301], "no policy does better in the worst case for robust"),
    ],
)
def test_a_bad_table_fails(policy: str, column: str, value: object, statement: str) -> None:
    table = copy.deepcopy(TABLE)
    table["policies"][policy][column] = value
    assert any(statement in broken for broken in failing(table))


@pytest.mark.parametrize(("most", "holds"), [(0.44, 1), (0.46, 0)])
def test_a_rule_that_is_ahead_is_compared_with_all_optimal_policies(most: float, holds: int) -> None:
    table = copy.deepcopy(TABLE)
    table["policies"][PAPER_LAST]["worst_for_plug_in"] = [0.45, 0.45]
    table["most_of_optimal"] = most
    checks = check_orderings([table], 1.0)
    assert [check["holds"] for check in checks if "ahead of every policy" in check["statement"]] == [holds]
