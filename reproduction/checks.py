"""Which orderings of the table are theorems, and how often the others were seen (docs/theory.md, section 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reproduction.table_one import COLUMNS, MIXED, MIXED_ON_TEST, PAPER_FIRST, PAPER_LAST, PLUG_IN

__all__ = ["TOLERANCE", "check_orderings"]

#: Solvers certify optimality to this share of the utility range.
TOLERANCE = 1e-6

Table = dict[str, Any]
_WORLDS = ("worst_for_robust", "worst_for_plug_in")
_JUDGED = (*_WORLDS, "own_worst")


def check_orderings(tables: list[Table], utility_range: float) -> list[dict[str, Any]]:
    """Check every ordering on every seed's table.

    Returns
    -------
    list of dict
        ``statement``, ``theorem`` (True if it must hold on every seed), ``holds`` (seeds on which it did), ``n``, and
        ``least_margin``: by how much it held, or failed, on the worst seed.
    """
    return [
        _count(statement, theorem, [margin(table) for table in tables], TOLERANCE * utility_range)
        for statement, theorem, margin in _orderings()
    ]


def _orderings() -> list[tuple[str, bool, Callable[[Table], float]]]:
    theorems: list[tuple[str, bool, Callable[[Table], float]]] = [
        ("no policy falls below its own worst case in another's worst world", True, _cells_above_own_worst),
        ("no policy's own worst case exceeds the optimum", True, _optimum_above_all),
        ("mixed: own worst case is at least its dual value on the test sample", True, _above_dual),
        ("fitted on the test forecasts, mixed: own worst case is the optimum", True, _optimal_on_test),
        ("fitted on the test forecasts, mixed: no policy does better in the worst case for robust", True, _saddle),
        (
            "mixed: no policy does better in the worst case for robust by more than V* less its own worst case",
            True,
            _near,
        ),
    ]
    compared = [
        (PLUG_IN, MIXED, ("iid",)),
        *((MIXED, other, _JUDGED) for other in (PLUG_IN, PAPER_FIRST, PAPER_LAST)),
        *((rule, PLUG_IN, _JUDGED) for rule in (PAPER_FIRST, PAPER_LAST)),
    ]
    beyond = (
        "worst case for plug-in: the paper's rule is ahead of the optimal policy only where it is ahead of every "
        "policy with the best own worst case"
    )
    return [*theorems, (beyond, False, _beyond_all_optimal)] + [
        (f"{COLUMNS[column]}: {one} is at least {other}", False, _difference(one, other, column))
        for one, other, columns in compared
        for column in columns
    ]


def _difference(better: str, worse: str, column: str) -> Callable[[Table], float]:
    def margin(table: Table) -> float:
        return _cell(table, better, column) - _cell(table, worse, column)

    return margin


def _cells_above_own_worst(table: Table) -> float:
    rows = table["policies"].values()
    return min(row[column][0] - row["own_worst"] for row in rows for column in _WORLDS)


def _optimum_above_all(table: Table) -> float:
    return min(table["optimum"][1] - row["own_worst"] for row in table["policies"].values())


def _above_dual(table: Table) -> float:
    return _cell(table, MIXED, "own_worst") - float(table["dual_of_mixed"])


def _optimal_on_test(table: Table) -> float:
    return _cell(table, MIXED_ON_TEST, "own_worst") - float(table["optimum"][0])


def _saddle(table: Table) -> float:
    best = max(row["worst_for_robust"][1] for row in table["policies"].values())
    return _cell(table, MIXED_ON_TEST, "worst_for_robust") - best


def _near(table: Table) -> float:
    best = max(row["worst_for_robust"][1] for row in table["policies"].values())
    difference = float(table["optimum"][1]) - _cell(table, MIXED, "own_worst")
    return _cell(table, MIXED, "worst_for_robust") + difference - best


def _beyond_all_optimal(table: Table) -> float:
    most = table["most_of_optimal"]
    if most is None:
        return 0.0
    ahead = [_cell(table, rule, "worst_for_plug_in") for rule in (PAPER_FIRST, PAPER_LAST)]
    return min(cell for cell in ahead if cell > _cell(table, MIXED_ON_TEST, "worst_for_plug_in")) - float(most)


def _cell(table: Table, policy: str, column: str) -> float:
    """Take a cell, of a range its lower end: the adversary that leaves least to this policy."""
    value = table["policies"][policy][column]
    return float(value[0] if isinstance(value, list) else value)


def _count(statement: str, theorem: bool, margins: list[float], tolerance: float) -> dict[str, Any]:
    return {
        "statement": statement,
        "theorem": theorem,
        "holds": sum(margin >= -tolerance for margin in margins),
        "n": len(margins),
        "least_margin": min(margins),
    }
