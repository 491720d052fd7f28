"""How fast ``prudent decide`` is on a long Parquet file, and how much memory it needs: ``python -m benchmarks.decide``.

Everything runs in processes of its own, the way a user runs it, so times include the start of Python and imports.
Next to it stands a program that only reads the same file with pyarrow and writes it again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import prudent
from benchmarks.environment import describe_environment

_BATCH_ROWS = 1 << 17
_READ_AND_WRITE = f"""
import sys
import pyarrow.parquet as pq
source = pq.ParquetFile(sys.argv[1], pre_buffer=False, buffer_size=1 << 20)
with pq.ParquetWriter(sys.argv[2], source.schema_arrow) as target:
    for batch in source.iter_batches({_BATCH_ROWS}):
        target.write_batch(batch)
"""
# A small process that starts the one to be measured: a child's peak memory begins with that of who started it.
_MEASURE = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps([time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Run:
    """One process: seconds from start to end, seconds of all processors, and the most memory it held."""

    seconds: float
    busy: float
    peak_bytes: int


def main() -> None:
    """Write the files, run the programs, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decide", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the long file; the short one has a tenth")
    parser.add_argument("--repeats", type=int, default=3, help="the least time counts, and the largest memory")
    options = parser.parse_args()
    environment = describe_environment()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_policies(folder)
        sizes = [options.rows // 10, options.rows]
        for rows in sizes:
            _write_rows(folder / f"{rows}.parquet", rows)
        table = {
            what: [_best(command, folder, rows, options.repeats) for rows in sizes]
            for what, command in _commands().items()
        }
        _check(folder, options.rows)
    print(_render(table, sizes, environment, options.repeats))


def _commands() -> dict[str, list[str]]:
    executable = str(Path(sys.executable).parent / "prudent")
    decide = [executable, "decide", "{rows}.parquet", "--forecast", "forecast", "--json"]
    return {
        "pyarrow: read and write": [sys.executable, "-c", _READ_AND_WRITE, "{rows}.parquet", "copy.parquet"],
        "decide, no draws": [*decide, "--policy", "pure.json", "-o", "pure.parquet"],
        "decide, draws by seed": [*decide, "--policy", "mixed.json", "--seed", "0", "-o", "seed.parquet"],
        "decide, draws by id": [*decide, "--policy", "mixed.json", "--id", "id", "-o", "id.parquet"],
        "the same to CSV": [*decide, "--policy", "mixed.json", "--id", "id", "-o", "id.csv"],
    }


def _write_policies(folder: Path) -> None:
    problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])
    forecasts = np.random.default_rng(0).beta(2, 3, 10_000)
    guarantee = prudent.guarantees.SelfOrthogonal()
    prudent.RobustPolicy(problem, guarantee).fit(forecasts).save(folder / "mixed.json")
    prudent.RobustPolicy(problem, guarantee, randomize=False).fit(forecasts).save(folder / "pure.json")


def _write_rows(path: Path, rows: int) -> None:
    """Text ids, and forecasts without order; a part at a time."""
    schema = pa.schema([("id", pa.string()), ("forecast", pa.float64())])
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - first)
            ids = [f"case-{number:09d}" for number in range(first, first + count)]
            writer.write_table(pa.table({"id": ids, "forecast": rng.beta(2, 3, count)}, schema=schema))


def _best(command: list[str], folder: Path, rows: int, repeats: int) -> Run:
    filled = [part.replace("{rows}", str(rows)) for part in command]
    runs = [_run(filled, folder) for _ in range(repeats)]
    return Run(min(run.seconds for run in runs), min(run.busy for run in runs), max(run.peak_bytes for run in runs))


def _run(command: list[str], folder: Path) -> Run:
    measured = [sys.executable, "-c", _MEASURE, *command]
    done = subprocess.run(measured, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603  # our own command
    return Run(*json.loads(done.stdout))


def _check(folder: Path, rows: int) -> None:
    """The last rows of the long file have the actions that the library gives them in memory."""
    policy = prudent.load(folder / "mixed.json")
    source = pq.ParquetFile(folder / f"{rows}.parquet")
    last = source.read_row_group(source.num_row_groups - 1)
    written = pq.read_table(folder / "id.parquet")
    if written.num_rows != rows:
        raise SystemExit(f"{written.num_rows} rows were written instead of {rows}")
    tail = written.slice(rows - last.num_rows)
    expected = policy.predict(last["forecast"].to_numpy(), keys=last["id"].to_pylist())
    if tail["id"] != last["id"] or tail["action"].to_pylist() != expected.tolist():
        raise SystemExit("the actions written are not those of policy.predict")


def _render(table: dict[str, list[Run]], sizes: list[int], environment: dict[str, Any], repeats: int) -> str:
    short, long = sizes
    plain = next(iter(table.values()))[1].busy
    machine = f"{environment['processor']}, {environment['cores']} cores, load {environment['load_at_start']}"
    titles = [
        f"{long:,} rows, text ids",
        "seconds",
        "rows per second",
        "processor seconds",
        "times the plain copy",
        "peak memory",
        f"peak at {short:,} rows",
    ]
    lines = [
        "# `prudent decide` on a long Parquet file",
        "",
        f"`python -m benchmarks.decide`, {environment['started'][:10]}, Python {environment['python']}, {machine}.",
        f"Least times and largest memory of {repeats} run(s), whole processes, start and imports included. The ratio",
        "is of processor seconds, which other work on the machine disturbs least.",
        "The plain copy reads and writes both columns; without ids, decide reads only the forecasts.",
        "",
        f"| {' | '.join(titles)} |",
        f"|---{'|---:' * (len(titles) - 1)}|",
    ]
    for what, (small, large) in table.items():
        lines.append(
            f"| {what} | {large.seconds:.1f} | {long / large.seconds:,.0f} | {large.busy:.1f} | "
            f"{large.busy / plain:.1f} | {large.peak_bytes / 1e6:,.0f} MB | {small.peak_bytes / 1e6:,.0f} MB |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
