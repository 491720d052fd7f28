"""The table as Markdown and JSON, written after every measurement, whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.cases import FAMILIES
from benchmarks.child import Outcome
from benchmarks.results import PRUDENT, Measurement, Results, Row
from benchmarks.verdict import (
    GROWTH_GOAL,
    Comparison,
    compare,
    disagreements,
    growth_exponents,
    growth_factors,
    own_failures,
)

__all__ = ["describe", "headline_size", "markdown", "write"]


def write(results: Results, directory: Path, stem: str) -> None:
    """Replace both files, each in one step, so that an interrupted run leaves the last complete ones."""
    document = results.to_dict() | {"derived": _derived(results)}
    _replace(directory / f"{stem}.json", json.dumps(_finite(document), indent=1, allow_nan=False) + "\n")
    _replace(directory / f"{stem}.md", markdown(results, stem))


def describe(item: Measurement | Row) -> str:
    """Say in one line what was measured, for progress and tables."""
    if item.outcome != Outcome.DONE:
        return item.note
    if isinstance(item, Row):
        return f"{item.value:.3g} {item.unit}" + (_goal(item.goal, item.met, item.at_most) if item.goal else "")
    return f"{_seconds(item.seconds)}, {_bytes(item.extra_bytes)}"


def headline_size(results: Results, family: int) -> int:
    """Return the size at which a family has goals."""
    return FAMILIES[family].quick_size if results.quick else FAMILIES[family].size


def markdown(results: Results, stem: str) -> str:
    """Write the report."""
    parts = [_heading(results), _problems(results), _races(results), _rows(results), _growth(results, stem)]
    parts.append(_every_measurement(results))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(results: Results) -> str:
    environment = results.environment
    versions = ", ".join(f"{name} {number}" for name, number in environment["versions"].items())
    load = f"load {environment['load_at_start']} at the start"
    if "load_at_end" in environment:
        load += f", {environment['load_at_end']} at the end"
    machine = (
        f"{environment['processor']}, {environment['cores']} cores, {environment['memory_gb']} GB, "
        f"{environment['system']}; {load}. Python {environment['python']}, {versions}. "
        f"Started {environment['started']}; {results.state}. Limit per run: {results.limit:g} s."
    )
    lines = [f"# Benchmark{', quick sizes' if results.quick else ''}", machine]
    if results.quick:
        lines.append("Goals are set for the full sizes; at these small ones they are shown for orientation only.")
    return "\n\n".join(lines)


def _problems(results: Results) -> str:
    found = [*disagreements(results), *own_failures(results)]
    if found:
        return "\n".join(["**Not in order:**", "", *(f"- {text}" for text in found)])
    if any(item.done and item.contestant != PRUDENT for item in results.measurements):
        return "All values agree with Prudent's certificates, within 1e-5 of the utility range."
    return ""


def _races(results: Results) -> str:
    lines = []
    for number, family in FAMILIES.items():
        n = headline_size(results, number)
        own = next((item for item in results.of(number, n) if item.contestant == PRUDENT), None)
        kinds = {item.kind for item in results.of(number, n) if item.contestant != PRUDENT}
        if own is None or not kinds:  # nobody to race against
            continue
        overall = compare(results, family, n, as_written=False)
        written = compare(results, family, n, as_written=True)
        gap = f"{own.relative_gap:.0e}" if own.done else own.note
        if family.goal_gap is not None and own.done:
            gap += _goal(family.goal_gap, own.relative_gap <= family.goal_gap, at_most=True)
        winner, user = overall.winner, written.winner
        lines.append(
            [
                f"{number}. {family.name}",
                f"{n:,}",
                _seconds(own.seconds),
                f"{_seconds(winner.seconds)} {winner.contestant} ({winner.kind})" if winner else "none finished",
                _ratio(overall),
                f"{_seconds(user.seconds)} {user.contestant}" if user else _absent("as written" in kinds),
                _ratio(written) if "as written" in kinds else "",
                gap,
                _bytes(own.extra_bytes),
                _bytes(winner.extra_bytes) if winner else "",
                own.method or "",
            ]
        )
    names = ["case", "n", "Prudent", "fastest competitor", "ratio", "fastest as written", "ratio", "certified gap"]
    return _section("Races", [*names, "memory", "its memory", "method"], lines)


def _absent(raced: bool) -> str:
    return "none finished" if raced else "not raced"


def _rows(results: Results) -> str:
    lines = []
    for row in sorted(results.rows, key=lambda row: row.number):
        goal = "" if row.goal is None else f"{'≤' if row.at_most else '≥'} {row.goal:.3g}"
        mark = {True: "pass", False: "miss", None: ""}[row.met]
        value = f"{row.value:.3g} {row.unit}" if row.value is not None else row.note
        details = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in row.details.items())
        lines.append([f"{row.number}. {row.what}", f"{row.n:,}" if row.n else "", value, goal, mark, details])
    return _section("Single operations", ["row", "n", "measured", "goal", "", "details"], lines)


def _growth(results: Results, stem: str) -> str:
    lines = []
    for number, family in FAMILIES.items():
        factors, exponents = growth_factors(results, number), growth_exponents(results, number)
        if not exponents:
            continue
        steps = "; ".join(
            f"{low:,} → {high:,}: {factor:.1f}x{_goal(GROWTH_GOAL, factor <= GROWTH_GOAL, at_most=True)}"
            for low, high, factor in factors
        )
        own = exponents.pop(PRUDENT, None)
        others = "; ".join(f"{name} {exponent:.2f}" for name, exponent in exponents.items())
        lines.append([f"{number}. {family.name}", f"{own:.2f}" if own is not None else "", steps, others])
    if not lines:
        return ""
    names = ["16. family", "Prudent's exponent", "ten times the rows", "exponents of competitors"]
    plot = f"![Time against number of rows]({stem}.png)"
    return _section("Growth", names, lines) + f"\n\nExponents fit log time against log n.\n\n{plot}"


def _every_measurement(results: Results) -> str:
    lines = []
    own = {(item.family, item.n): item for item in results.measurements if item.contestant == PRUDENT}
    for item in sorted(results.measurements, key=lambda item: (item.family, item.n)):
        reference = own.get((item.family, item.n))
        ratio = offset = ""
        if item.done and item.contestant != PRUDENT and reference is not None and reference.done:
            ratio = f"{_quotient(item, reference):.3g}x"
            offset = f"{((item.lower or 0.0) - (reference.lower or 0.0)) / item.utility_range:+.1e}"
        lines.append(
            [
                str(item.family),
                f"{item.n:,}",
                item.contestant,
                item.kind,
                _seconds(item.seconds) if item.done else item.note,
                _seconds(item.solver_seconds),
                ratio,
                _bytes(item.extra_bytes),
                f"gap {item.relative_gap:.0e}" if item.done and item.contestant == PRUDENT else offset,
            ]
        )
    names = ["case", "n", "contestant", "kind", "time", "in the solver", "over Prudent", "memory", "value - lower"]
    return _section("Every measurement", names, lines)


def _derived(results: Results) -> dict[str, object]:
    """Add what follows from the measurements, for those who read the JSON only."""
    races = {}
    for number, family in FAMILIES.items():
        n = headline_size(results, number)
        if not results.of(number, n):
            continue
        races[str(number)] = {
            "name": family.name,
            "seed": family.seed,
            "n": n,
            **{
                kind: {
                    "winner": comparison.winner.contestant if comparison.winner else None,
                    "ratio": comparison.ratio,
                    "at_least": comparison.at_least,
                    "goal": comparison.goal,
                    "met": comparison.met,
                }
                for kind, comparison in (
                    ("fastest", compare(results, family, n, as_written=False)),
                    ("as_written", compare(results, family, n, as_written=True)),
                )
            },
        }
    return {
        "races": races,
        "rows": [{"number": row.number, "what": row.what, "met": row.met} for row in results.rows],
        "growth_exponents": {str(number): growth_exponents(results, number) for number in FAMILIES},
        "growth_factors": {str(number): growth_factors(results, number) for number in FAMILIES},
        "disagreements": disagreements(results),
        "own_failures": own_failures(results),
    }


def _quotient(item: Measurement, reference: Measurement) -> float:
    return (item.seconds or 0.0) / (reference.seconds or float("inf"))


def _section(title: str, names: list[str], lines: Iterable[list[str]]) -> str:
    body = [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
    if not body:
        return ""
    return "\n".join([f"## {title}", "", f"| {' | '.join(names)} |", "|---" * len(names) + "|", *body])


def _ratio(comparison: Comparison) -> str:
    if comparison.ratio is None:
        return "none" + (_goal(comparison.goal, False, at_most=False) if comparison.goal else "")
    if comparison.at_least and not comparison.met and comparison.goal:
        return f"> {comparison.ratio:.3g}x (goal ≥ {comparison.goal:g}: open, none finished)"
    text = f"{'> ' if comparison.at_least else ''}{comparison.ratio:.3g}x"
    return text + (_goal(comparison.goal, bool(comparison.met), at_most=False) if comparison.goal else "")


def _goal(goal: float, met: bool | None, at_most: bool) -> str:
    return f" (goal {'≤' if at_most else '≥'} {goal:g}: {'pass' if met else 'miss'})"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def _bytes(count: int | None) -> str:
    if count is None:
        return ""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _finite(value: Any) -> Any:
    """Write what is not a number as null: JSON has no other word for it."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
