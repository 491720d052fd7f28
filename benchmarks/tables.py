"""Fit and audit Parquet files in DuckDB against a plain average over the same files: ``python -m benchmarks.tables``.

DuckDB writes the rows itself into a temporary directory. Each size runs in a process of its own with DuckDB's memory
limit; the process's peak memory is measured by the operating system. All ratios come from one run: the plain query and
the work next to it, several times, the fastest of each.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.environment import describe_environment, load_average

_ROWS_PER_FILE = 10_000_000


def main(arguments: list[str] | None = None) -> int:
    """Measure growing sizes and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/tables.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        print(json.dumps(measure(options.child, options.repeats)))
        return 0
    sizes = [size for size in (1_000_000, 10_000_000, 100_000_000) if size < options.rows] + [options.rows]
    lines = [
        "# Tables: DuckDB, one coordinate, against `SELECT avg(v), avg(y)` over the same Parquet files",
        "",
        ", ".join(f"{name} {value}" for name, value in describe_environment().items()) + ".",
        f"Load average at the start: {load_average()}. DuckDB's memory limit: 2 GiB.",
        f"Seconds are the fastest of {options.repeats}; in brackets the ratio to the plain query of the same run.",
        "",
        "| rows | work | seconds (ratio) | gap | status | peak memory of the process, GiB |",
        "|---:|---|---:|---:|---|---:|",
    ]
    for size in sizes:
        with tempfile.TemporaryDirectory() as directory:
            write_rows(Path(directory), size)
            command = [sys.executable, "-m", "benchmarks.tables", "--child", directory]
            command += ["--repeats", str(options.repeats)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
            found = json.loads(done.stdout)
        for row in found["rows"]:
            ratio = row["seconds"] / found["plain"]
            gap = "" if row["gap"] is None else f"{row['gap']:.1e}"
            lines.append(
                f"| {size:,} | {row['work']} | {row['seconds']:.2f} ({ratio:.1f}) | {gap} | {row['status']} "
                f"| {found['peak']:.2f} |"
            )
            print(lines[-1], flush=True)
    options.output.write_text("\n".join(lines) + "\n")
    return 0


def write_rows(directory: Path, size: int) -> None:
    """Let DuckDB write calibrated forecasts and outcomes."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET memory_limit = '2GiB'")
    for number, first in enumerate(range(0, size, _ROWS_PER_FILE)):
        count = min(_ROWS_PER_FILE, size - first)
        forecasts = f"SELECT pow(random(), 1.3) AS v FROM range({count})"  # noqa: S608
        rows = f"SELECT v, (random() < v)::DOUBLE AS y FROM ({forecasts})"  # noqa: S608
        connection.execute(f"COPY ({rows}) TO '{directory / f'{number:04d}.parquet'}' (FORMAT parquet)")


def measure(directory: Path, repeats: int) -> dict[str, Any]:
    """Time the plain query, fits and audits, in turn."""
    import duckdb

    import prudent
    from prudent import guarantees

    problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    promises = {
        "{1, v}": guarantees.SelfOrthogonal(intercept=True),
        "20 bins": guarantees.Binned.uniform(20),
    }
    connection = duckdb.connect()
    connection.execute("SET memory_limit = '2GiB'")
    table = connection.read_parquet(str(directory / "*.parquet"))
    columns = prudent.columns(table, forecasts="v", outcomes="y")
    tasks: dict[str, Callable[[], Any]] = {"plain": lambda: table.aggregate("avg(v), avg(y)").fetchall()}
    for name, promise in promises.items():
        tasks[f"fit, {name}"] = lambda promise=promise: prudent.RobustPolicy(problem, promise).fit(columns)
        tasks[f"audit, {name}"] = lambda promise=promise: prudent.audit(columns, None, promise)
    best: dict[str, float] = {}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.perf_counter()
            results[name] = task()
            best[name] = min(best.get(name, float("inf")), time.perf_counter() - start)
    rows = []
    for name in tasks:
        certificate = getattr(results[name], "certificate_", None)
        gap = None if certificate is None else certificate.gap / problem.utility_range
        status = "" if certificate is None else str(certificate.status)
        rows.append({"work": name, "seconds": best[name], "gap": gap, "status": status})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"plain": best["plain"], "rows": rows, "peak": peak}


if __name__ == "__main__":
    sys.exit(main())
