"""The result as Markdown: tables first, then what was checked, then the sweeps."""

from __future__ import annotations

from typing import Any

from reproduction.cases import BIKE, HOUSING
from reproduction.table_one import COLUMNS, MIXED, PAPER_FIRST, PAPER_LAST, PLUG_IN

__all__ = ["render"]

_COLUMNS = {**COLUMNS, "regret": "regret, bounded error"}


def render(document: dict[str, Any]) -> str:
    """Render a result of :func:`reproduction.run_reproduction`."""
    experiment = document["experiment"]
    count = len(experiment["seeds"])
    introduction = (
        f"{count} random split{'s' if count != 1 else ''}{' (quick version)' if experiment['quick'] else ''}; "
        "mean ± standard deviation over splits. Policies are fitted on calibration forecasts and judged on test "
        "forecasts. Published numbers stand in parentheses. Where a worst world is not unique, a cell is the range "
        "over all of them, and the standard deviation that of its lower end."
    )
    lines = [f"# {experiment['paper']}: reproduced", "", introduction]
    for title, found in experiment["data"].items():
        if not found["published_values"]:
            lines += ["", f"**{title}: these are not the published data** ({found['rows']} rows)."]
    for name, case in document["data_sets"].items():
        lines += ["", f"## {name}", "", *_forecaster(case["forecaster"])]
        for guarantee, table in case["tables"].items():
            lines += ["", f"### {name}, H = {guarantee}", "", *_table(table), "", *_orderings(table["checks"])]
        lines += _sweeps(name, case["sweeps"])
    return "\n".join(lines)


def _table(table: dict[str, Any]) -> list[str]:
    policies = table["policies"]
    columns = [column for column in _COLUMNS if column in policies[PLUG_IN]]
    rows = [[policy, *(_cell(row[column]) for column in columns)] for policy, row in policies.items()]
    rows.append(["optimum V*", *(_cell(table["optimum"]) if column == "own_worst" else "" for column in columns)])
    difference = f"Mixed, V* less its own worst case (out of sample): {_cell(table['out_of_sample_difference'], 5)}."
    return [*_rows(["policy", *(_COLUMNS[column] for column in columns)], rows), "", difference]


def _cell(cell: dict[str, Any], digits: int = 3) -> str:
    spread = "" if cell["sd"] is None else f" ± {cell['sd']:.{digits}f}"
    text = f"{cell['mean']:.{digits}f}"
    high = cell.get("high")
    if high is not None and f"{high['mean']:.{digits}f}" != text:
        text = f"[{text}, {high['mean']:.{digits}f}]"
    published = "" if cell["published"] is None else f" ({cell['published']:.{digits}f})"
    return text + spread + published


def _orderings(checks: list[dict[str, Any]]) -> list[str]:
    broken = [check for check in checks if check["theorem"] and check["holds"] < check["n"]]
    proven = sum(check["theorem"] for check in checks)
    lines = [f"Theorems: {proven - len(broken)} of {proven} orderings hold on every split."]
    lines += [
        f"- **violated**: {check['statement']} ({check['holds']} of {check['n']}, by {-check['least_margin']:.2g})"
        for check in broken
    ]
    seen = [[check["statement"], f"{check['holds']} of {check['n']}"] for check in checks if not check["theorem"]]
    return [*lines, "", *_rows(["no theorem", "splits on which it held"], seen)]


def _forecaster(found: dict[str, Any]) -> list[str]:
    test = found["test"]
    moments = ", ".join(
        f"{name} {_cell(moment['estimate'], 4)} (rejected on {moment['rejected']} of {found['n']})"
        for name, moment in list(test["moments"].items())[:4]
    )
    more = len(test["moments"]) - 4
    text = (
        f"Forecaster: training stopped by itself on {found['converged']} of {found['n']} splits; of {test['rows']} "
        f"test forecasts {test['outside']['mean']:.1f} on average were outside the outcome space (furthest "
        f"{test['furthest_outside']:.2g}) and were projected onto it. Audit on test rows, moments that stationary "
        f"training would make zero: {moments}{f' and {more} more' if more > 0 else ''}; some moment was rejected on "
        f"{test['audits_that_reject']} of {found['n']} splits (training rows: {found['train']['audits_that_reject']})."
    )
    return [text]


def _sweeps(name: str, sweeps: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    if name in (BIKE, HOUSING):
        lines += ["", f"### {name}: other parameters, own worst case under H = {{v}}", ""]
        rows = [
            [_number(one["alpha"]), _number(one["cost_factor"]), _mean(one["optimum"])]
            + [_mean(one["own_worst"][policy]) for policy in (PLUG_IN, PAPER_FIRST, PAPER_LAST, MIXED)]
            for one in sweeps["other_parameters"]
        ]
        lines += _rows(["alpha", "costs times", "V*", "plug-in", "paper, first", "paper, last", "mixed"], rows)
        shown = [
            "V*",
            "mixed, own worst",
            "plug-in, own worst",
            "mixed, i.i.d.",
            "distance from plug-in",
            "mean action",
        ]
        keys = ["optimum", "own_worst", "plug_in_worst", "iid", "distance", "mean_action"]
        for key, title, parameter in (("bins", "number of bins", "bins"), ("slackened", "slack", "slack")):
            lines += ["", f"### {name}: {title}", ""]
            rows = [[_number(one[parameter]), *(_mean(one[entry]) for entry in keys)] for one in sweeps[key]]
            lines += _rows([title, *shown], rows)
    if "bounded_error" in sweeps:
        lines += ["", f"### {name}: minimax regret for other bounds on the calibration error", ""]
        keys = ["iid", "own_worst", "regret", "regret_of_plug_in"]
        rows = [[_number(one["error"]), *(_mean(one[entry]) for entry in keys)] for one in sweeps["bounded_error"]]
        lines += _rows(["bound", "i.i.d.", "own worst case, {1, v}", "worst regret", "worst regret of plug-in"], rows)
    return lines


def _rows(titles: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def _mean(value: dict[str, Any]) -> str:
    return f"{value['mean']:.4f}"


def _number(value: float) -> str:
    return f"{value:g}"
