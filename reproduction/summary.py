"""Mean and spread over seeds, with the published numbers beside them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reproduction.cases import Case
from reproduction.checks import check_orderings
from reproduction.forecasters import PARTS
from reproduction.table_one import MIXED, PAPER_FIRST, PAPER_LAST, PLUG_IN

__all__ = ["average", "statistics", "summarise"]

#: Entries that say what was varied; they are the same for all seeds.
_PARAMETERS = frozenset({"name", "alpha", "cost_factor", "published", "slack", "error", "bins", "tests"})


def summarise(case: Case, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the records of one case together: forecaster, tables, orderings, sweeps."""
    found = [record["cases"][case.name] for record in records]
    sweeps = {name: [one["sweeps"][name] for one in found] for name in found[0]["sweeps"]}
    curves = sweeps.pop("belief_curves", None)
    summary: dict[str, Any] = {
        "actions": list(case.problem.actions),
        "forecaster": _forecaster([one["forecaster"] for one in found]),
        "tables": {name: _table(case, name, [one["tables"][name] for one in found]) for name in case.guarantees},
        "sweeps": {name: average(values) for name, values in sweeps.items()},
    }
    if curves is not None:  # a picture of one policy, not of an average of policies
        summary["belief_curves"] = {"seed": records[0]["seed"], **curves[0]}
    return summary


def statistics(values: list[float], published: float | None = None) -> dict[str, Any]:
    """Return mean, standard deviation over seeds (None for one seed), their number, and the published value."""
    return {
        "mean": math.fsum(values) / len(values),
        "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
        "n": len(values),
        "published": published,
    }


def _table(case: Case, name: str, tables: list[dict[str, Any]]) -> dict[str, Any]:
    policies: dict[str, dict[str, Any]] = {}
    for policy, row in tables[0]["policies"].items():
        policies[policy] = {
            column: _cell(
                [table["policies"][policy][column] for table in tables], _published(case, name, policy, column)
            )
            for column in row
        }
    difference = [table["optimum"][0] - table["policies"][MIXED]["own_worst"] for table in tables]
    return {
        "policies": policies,
        "optimum": statistics([table["optimum"][0] for table in tables]),
        "largest_certificate_gap": max(table["optimum"][1] - table["optimum"][0] for table in tables),
        "largest_range_feasibility": max(table["range_feasibility"] for table in tables),
        "out_of_sample_difference": statistics(difference),
        "checks": check_orderings(tables, case.problem.utility_range),
    }


def _cell(values: list[Any], published: float | None) -> dict[str, Any]:
    """Summarise a cell; of a range both ends, and as its value the lower one."""
    if not isinstance(values[0], list):
        return statistics(values, published)
    low, high = ([value[end] for value in values] for end in (0, 1))
    return {**statistics(low, published), "high": statistics(high)}


def _published(case: Case, name: str, policy: str, column: str) -> float | None:
    """Find the paper's number: it has one guarantee and two policies, "robust" being its own rule."""
    if name != "{v}" or column not in case.published:
        return None
    plug_in, robust = case.published[column]
    return {PLUG_IN: plug_in, PAPER_FIRST: robust, PAPER_LAST: robust}.get(policy)


def _forecaster(reports: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "converged": sum(report["converged"] for report in reports),
        "n": len(reports),
        "epochs": statistics([float(report["epochs"]) for report in reports]),
    }
    for part in PARTS:
        parts = [report[part] for report in reports]
        audits = [one["audit"] for one in parts]
        found[part] = {
            "rows": parts[0]["rows"],
            "outside": statistics([float(one["outside"]) for one in parts]),
            "furthest_outside": max(one["furthest"] for one in parts),
            "mean_squared_error": statistics([one["mean_squared_error"] for one in parts]),
            "moments": {
                name: {
                    "estimate": statistics([audit["estimates"][j] for audit in audits]),
                    "before_projection": statistics([audit["estimates_before_projection"][j] for audit in audits]),
                    "rejected": sum(name in audit["rejected"] for audit in audits),
                }
                for j, name in enumerate(audits[0]["moments"])
            },
            "audits_that_reject": sum(bool(audit["rejected"]) for audit in audits),
        }
    return found


def average(values: list[Any]) -> Any:
    """Average records of one shape number by number; parameters stay as they are."""
    first = values[0]
    if isinstance(first, dict):
        return {key: _entry(key, [value[key] for value in values]) for key in first}
    if isinstance(first, list):
        return [average([value[i] for value in values]) for i in range(len(first))]
    spread = statistics([float(value) for value in values])
    return {"mean": spread["mean"], "sd": spread["sd"]}


def _entry(key: str, values: list[Any]) -> Any:
    plain = not isinstance(values[0], (dict, list))
    return values[0] if plain and key in _PARAMETERS else average(values)
