"""Measure methods on sources: ``make field``, ``make field-quick``, or ``python -m benchmarks.field --help``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

from benchmarks.environment import describe_environment
from benchmarks.field import protocol
from benchmarks.field.forecaster import Forecaster
from benchmarks.field.pictures import draw
from benchmarks.field.report import full_report

_QUICK_ERAS = 8  # the latest
RESULTS, IMAGES = Path("benchmarks/results"), Path("docs/images")
_HEAD = """# The field: past to future, in units of the cost

`{command}`. {environment}.

Gain over following the forecast: sources count alike, within one its eras; ± half a 95% interval over eras.
Harmed: eras of a forecaster and a setting that earned less than following by more than 2% of the cost; worst: the
largest such loss. Promises are for the realised mean utility of the next era, at 95% confidence; at least: nominal less
sampling error (5%) with eras as units; distance: median of promise to outcome. Seconds of a processor per decided era;
the first setting of a forecaster pays for what others share. {within}"""
_WITHIN = "Methods that learn within the era, as outcomes come in, and the others do not: {}."


def main(arguments: list[str] | None = None) -> int:
    """Measure, write tables and pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="the folder that holds field/")
    parser.add_argument(
        "--quick", action="store_true", help="two forecasters of each source, eight eras, no slow method"
    )
    parser.add_argument("--only", default="", help="sources, separated by commas; nothing is written")
    parser.add_argument("--methods", default="", help="methods by file name, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path(".cache/field"))
    options = parser.parse_args(arguments)
    everything, left_out = read_sources(options.data_dir / "field", options.only.split(",") if options.only else None)
    sources, methods = list(dict.fromkeys(one.source for one in everything)), []
    for method in protocol.all_methods():
        short = method.__name__.rpartition(".")[2]
        if options.methods and short not in options.methods.split(","):
            continue
        if not protocol.installed(method):
            left_out.append(f"{method.NAME}: the package {method.NEEDS} is not installed (pip install {method.NEEDS}).")
        elif options.quick and getattr(method, "SLOW", False):
            left_out.append(f"{method.NAME}: slow, and --quick was asked for.")
        else:
            methods.append(method)
    if options.quick:
        everything = [one for name in sources for one in [each for each in everything if each.source == name][:2]]
    results = run(
        everything, [method.NAME for method in methods], options.cache, options.jobs, 8 if options.quick else None
    )
    if results.empty:
        sys.exit("Nothing was decided: " + " ".join(left_out))
    named = {line.partition(":")[0] for line in left_out}
    silent = {one.source for one in everything} - set(results["source"]) - named
    left_out += [
        f"{source}: no era has {protocol.FEWEST_ROWS} known rows in eras before it." for source in sorted(silent)
    ]
    order = {method.NAME: place for place, method in enumerate(methods)}
    keys = ["source", "forecaster", "setting", "era"]
    results = results.sort_values(keys).sort_values("method", key=lambda names: names.map(order), kind="stable")
    within = ", ".join(f"*{method.NAME}*" for method in methods if getattr(method, "WITHIN", False))
    stem = "field-quick" if options.quick else "field"
    environment = ", ".join(f"{name} {value}" for name, value in describe_environment().items())
    command = f"python -m benchmarks.field --data-dir DIR{' --quick' if options.quick else ''}"
    head = _HEAD.format(command=command, environment=environment, within=_WITHIN.format(within) if within else "")
    text = full_report(results, left_out, [head])
    if not (options.only or options.methods):
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{stem}.md").write_text(text)
        if not options.quick:
            draw(results, IMAGES)
    print(text)
    return 0


def read_sources(folder: Path, only: list[str] | None = None) -> tuple[list[Forecaster], list[str]]:
    """All forecasters of the sources whose files are there, and words on the others."""
    found: list[Forecaster] = []
    missing = []
    for source in protocol.all_sources():
        absent = [name for name in source.FILES if not (folder / f"{name}.csv.gz").is_file()]
        missing += [f"{name}: {folder / name}.csv.gz is not there ({source.CITATION})." for name in absent]
        if not absent:
            missing += [source.LEFT_OUT] if hasattr(source, "LEFT_OUT") and only is None else []
            found += [one for one in source.read(folder) if only is None or one.source in only]
    return found, missing


def run(everything: list[Forecaster], names: list[str], cache: Path, jobs: int, latest: int | None) -> pd.DataFrame:
    """Measure all forecasters, the largest first, and tell what is done."""
    start = time.perf_counter()
    largest = sorted(everything, key=lambda one: -len(one.rows.forecasts) * one.rows.forecasts[:1].size)
    tasks = (delayed(protocol.measure)(one, names, cache, latest) for one in largest)
    found: list[protocol.Result] = []
    for count, results in enumerate(Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks), start=1):
        found += results
        what = f"{results[0]['source']}, {results[0]['forecaster']}" if results else "nothing to decide"
        print(f"{count} of {len(largest)}: {what} ({time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)
    return pd.DataFrame(found)


if __name__ == "__main__":
    sys.exit(main())
