"""Run the benchmark: ``python -m benchmarks`` or, in two minutes, ``python -m benchmarks --quick``.

Exit codes: 0, 1 if values disagree or Prudent failed somewhere, 2 for a wrong command, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from benchmarks.cases import FAMILIES
from benchmarks.environment import describe_environment, load_average
from benchmarks.primitives import PRIMITIVES, measure
from benchmarks.race import Settings, plan, race
from benchmarks.report import describe, write
from benchmarks.results import Results
from benchmarks.verdict import disagreements, own_failures

_GROWTH = 16
_NUMBERS = sorted({*FAMILIES, *(primitive.number for primitive in PRIMITIVES), _GROWTH})


def main(arguments: list[str] | None = None) -> int:
    """Parse, measure, write after each measurement."""
    options = _parser().parse_args(arguments)
    chosen: set[int] = options.only
    complete = chosen == set(_NUMBERS) and not options.against
    limit = options.limit or (10.0 if options.quick else 100.0)
    settings = Settings(options.quick, limit, 0.15 if options.quick else 10.0, options.against)
    # A selection has files of its own: it must not replace the table of a complete run.
    stem = ("bench-quick" if options.quick else "bench") + ("" if complete else "-only")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end like Ctrl-C, children included
    options.output.mkdir(parents=True, exist_ok=True)
    results = Results(options.quick, settings.limit, describe_environment())
    try:
        _measure(results, settings, chosen, options.output, stem)
        results.state = "complete" if complete else f"only rows {', '.join(map(str, sorted(chosen)))}"
    except KeyboardInterrupt:
        results.state = "interrupted"
    results.environment["load_at_end"] = load_average()
    write(results, options.output, stem)
    _draw(results, options.output, stem)
    problems = [*disagreements(results), *own_failures(results)]
    for text in problems:
        print(f"not in order: {text}", file=sys.stderr)
    print(f"{results.state}: {os.path.relpath(options.output / stem)}.md", file=sys.stderr)
    return 130 if results.state == "interrupted" else int(bool(problems))


def _measure(results: Results, settings: Settings, chosen: set[int], directory: Path, stem: str) -> None:
    primitives = [primitive for primitive in PRIMITIVES if primitive.number in chosen]
    named = [family for number, family in FAMILIES.items() if number in chosen]
    entries = plan(
        named or FAMILIES.values() if _GROWTH in chosen else named,
        settings.quick,
        headline=bool(named),
        growth=_GROWTH in chosen,
    )
    total, count = len(primitives) + sum(1 + len(entry.competitors) for entry in entries), 0

    def report(what: str, outcome: str) -> None:
        nonlocal count
        count += 1
        print(f"[{count}/{total}] {what}: {outcome}", file=sys.stderr, flush=True)
        write(results, directory, stem)

    # Single operations come first: they are short, and an interrupted run then has them.
    for primitive in primitives:
        row = measure(primitive, settings)
        results.rows.append(row)
        report(f"row {row.number}, {row.what}", describe(row))
    for item in race(entries, settings):
        results.measurements.append(item)
        report(f"case {item.family}, n={item.n:,}, {item.contestant}", describe(item))


def _draw(results: Results, directory: Path, stem: str) -> None:
    from benchmarks.plot import draw  # matplotlib takes a second to import, and only the end needs it

    draw(results, directory, stem)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes; under two minutes")
    parser.add_argument("--only", type=_numbers, default=set(_NUMBERS), metavar="1,12", help=f"rows {_NUMBERS}")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="per run; 100, with --quick 10")
    parser.add_argument("--against", default="", metavar="NAME", help="only competitors whose name contains this")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", metavar="FOLDER")
    return parser


def _numbers(text: str) -> set[int]:
    try:
        numbers = {int(part) for part in text.split(",")}
    except ValueError:
        numbers = set()
    if not numbers or not numbers <= set(_NUMBERS):
        raise argparse.ArgumentTypeError(f"rows must be numbers from {_NUMBERS}, separated by commas; got {text!r}")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
