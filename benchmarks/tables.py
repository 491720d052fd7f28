"""Fit and audit Parquet files in DuckDB and Spark against a plain average over the same files.

``python -m benchmarks.tables``. DuckDB writes the rows into a temporary directory. Each size runs in a process of its
own, DuckDB with a memory limit, Spark in local mode; the operating system measures peak memory. All ratios come from
one run: the plain query and the work next to it, several times, the fastest of each. Ratios of processor time stand
next to those of seconds, since other work on the machine changes them less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.environment import describe_environment, load_average

_ROWS_PER_FILE = 10_000_000
_SIZES = (1_000_000, 10_000_000, 100_000_000)
_MEMORY = "2GiB"


@dataclass(frozen=True)
class Measured:
    """One kind of work on one table."""

    work: str
    seconds: float
    processor: float
    gap: float | None
    status: str


def main(arguments: list[str] | None = None) -> int:
    """Measure growing sizes in both engines and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--spark-rows", type=int, default=10_000_000, help="0 leaves Spark out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/tables.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        print(json.dumps(measure(options.engine, options.child, options.repeats)))
        return 0
    spark = options.spark_rows if find_spec("pyspark") is not None else 0
    lines = [
        "# Tables: one coordinate, against the averages of `v` and `y` over the same Parquet files",
        "",
        ", ".join(f"{name} {value}" for name, value in describe_environment().items()) + ".",
        f"Load average at the start: {load_average()}. DuckDB's memory limit: {_MEMORY}. Spark: local mode, all cores"
        + ("." if spark else "; not measured, since it is not installed or not asked for."),
        f"Seconds are the fastest of {options.repeats}; in brackets the ratio to the plain query of the same run.",
        "Growth: seconds over those for a tenth of the rows.",
        "",
        "| engine | rows | work | seconds (ratio) | ratio of processor time | growth | gap | status | peak GiB |",
        "|---|---:|---|---:|---:|---:|---:|---|---:|",
    ]
    before: dict[tuple[str, str], tuple[int, float]] = {}
    for size in _SIZES if max(options.rows, spark) in _SIZES else (*_SIZES, max(options.rows, spark)):
        engines = [name for name, most in (("duckdb", options.rows), ("spark", spark)) if size <= most]
        if not engines:
            continue
        with tempfile.TemporaryDirectory() as directory:
            write_rows(Path(directory), size)
            for engine in engines:
                for line in _lines(engine, size, run_child(engine, directory, options.repeats), before):
                    lines.append(line)
                    print(line, flush=True)
    options.output.write_text("\n".join(lines) + "\n")
    return 0


def _lines(
    engine: str, size: int, found: dict[str, Any], before: dict[tuple[str, str], tuple[int, float]]
) -> Iterator[str]:
    rows = [Measured(**row) for row in found["rows"]]
    plain = rows[0]
    for row in rows:
        earlier = before.get((engine, row.work))
        growth = f"{row.seconds / earlier[1]:.1f}" if earlier is not None and 10 * earlier[0] == size else ""
        before[engine, row.work] = (size, row.seconds)
        gap = "" if row.gap is None else f"{row.gap:.1e}"
        yield (
            f"| {engine} | {size:,} | {row.work} | {row.seconds:.2f} ({row.seconds / plain.seconds:.1f}) "
            f"| {row.processor / plain.processor:.1f} | {growth} | {gap} | {row.status} | {found['peak']:.2f} |"
        )


def run_child(engine: str, directory: str, repeats: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.tables", "--child", directory, "--engine", engine]
    command += ["--repeats", str(repeats)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own command
    return dict(json.loads(done.stdout.splitlines()[-1]))


def write_rows(directory: Path, size: int) -> None:
    """Let DuckDB write calibrated forecasts and outcomes."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{_MEMORY}'")
    for number, first in enumerate(range(0, size, _ROWS_PER_FILE)):
        count = min(_ROWS_PER_FILE, size - first)
        forecasts = f"SELECT pow(random(), 1.3) AS v FROM range({count})"  # noqa: S608  # a number
        rows = f"SELECT v, (random() < v)::DOUBLE AS y FROM ({forecasts})"  # noqa: S608  # the line above
        connection.execute(f"COPY ({rows}) TO '{directory / f'{number:04d}.parquet'}' (FORMAT parquet)")


@dataclass(frozen=True)
class Opened:
    """A table in its engine, the plain query over it, and the processes that work."""

    table: Any
    plain: Callable[[], Any]
    processes: tuple[int, ...]


@contextmanager
def opened(engine: str, directory: Path) -> Iterator[Opened]:
    """Open the files of a directory."""
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        table = connection.read_parquet(str(directory / "*.parquet"))
        yield Opened(table, lambda: table.aggregate("avg(v), avg(y)").fetchall(), (os.getpid(),))
        return
    from pyspark.sql import SparkSession, functions

    builder = SparkSession.builder.master("local[*]").appName("benchmark").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    session = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count())).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    frame = session.read.parquet(str(directory))
    averages = [functions.avg("v"), functions.avg("y")]
    machine = session._jvm.java.lang.ProcessHandle.current().pid()
    yield Opened(frame, lambda: frame.agg(*averages).collect(), (os.getpid(), int(machine)))
    session.stop()


def processor_seconds(processes: tuple[int, ...]) -> float:
    """Seconds that processors have worked for some processes, as Linux counts them."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_memory(processes: tuple[int, ...]) -> float:
    """The most memory that some processes have held, added up, in GiB."""
    total = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for process in processes[1:]:
        status = Path(f"/proc/{process}/status").read_text()
        total += int(status.partition("VmHWM:")[2].split()[0])
    return total / 2**20


def measure(engine: str, directory: Path, repeats: int) -> dict[str, Any]:
    """Time the plain query, fits and audits, in turn."""
    import prudent
    from prudent import guarantees

    problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    promises = {
        "{1, v}": guarantees.SelfOrthogonal(intercept=True),
        "20 bins": guarantees.Bins(20),
    }
    with opened(engine, directory) as source:
        columns, forecasts = prudent.scan(source.table, "v", "y"), prudent.scan(source.table, "v")
        tasks: dict[str, Callable[[], Any]] = {"plain": source.plain}
        for name, promise in promises.items():
            fit = prudent.RobustPolicy(problem, promise).fit
            tasks[f"fit, {name}"] = lambda fit=fit: fit(forecasts)
            tasks[f"audit, {name}"] = lambda promise=promise: prudent.audit(None, columns, guarantee=promise)
            # Outcomes that are given are compared with the promise, which is an audit more.
            tasks[f"fit with outcomes, {name}"] = lambda fit=fit: fit(columns)
        source.plain()  # the first query of a process also loads what it needs
        best: dict[str, tuple[float, float]] = {}
        results: dict[str, Any] = {}
        for _ in range(repeats):
            for name, task in tasks.items():
                worked, start = processor_seconds(source.processes), time.perf_counter()
                results[name] = task()
                taken = time.perf_counter() - start, processor_seconds(source.processes) - worked
                best[name] = taken if name not in best else (min(best[name][0], taken[0]), min(best[name][1], taken[1]))
        rows = []
        for name in tasks:
            certificate = getattr(results[name], "certificate_", None)
            gap = None if certificate is None else certificate.gap / problem.utility_range
            status = "" if certificate is None else str(certificate.status)
            rows.append(asdict(Measured(name, best[name][0], max(best[name][1], 0.01), gap, status)))
        return {"rows": rows, "peak": peak_memory(source.processes)}


if __name__ == "__main__":
    sys.exit(main())
