"""The studio under load, and how fast an edit is answered: ``python -m benchmarks.studio``.

Many clients at once, each moving the slack slider and editing a cost on its own data, next to clients that upload.
Then one client with a long file, the way a person works: only what changed is computed again.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks.environment import describe_environment

_PARTS = ("policy", "stress", "verdict", "ladder")
_PAGE = 4096


@dataclass
class Load:
    """What the clients met."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)


def main() -> None:
    """Run the studio, load it, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=1_000, help="of each client's file")
    parser.add_argument("--long", type=int, default=100_000, help="rows of the long file")
    options = parser.parse_args()
    environment = describe_environment()
    with _studio() as (address, process):
        load = asyncio.run(_load(address, process, options.clients, options.seconds, options.rows))
        edits = _edits(address, options.long)
    print(_render(environment, options, load, edits))
    if load.errors:
        raise SystemExit(f"{len(load.errors)} errors, the first: {load.errors[0]}")


@contextmanager
def _studio() -> Iterator[tuple[str, int]]:
    command = [str(Path(sys.executable).parent / "prudent"), "studio", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        line = process.stdout.readline() if process.stdout else ""
        found = re.search(r"http://\S+/", line)
        if found is None:
            raise SystemExit("the studio did not start")
        try:
            yield found.group(), process.pid
        finally:
            process.send_signal(signal.SIGINT)


def _file(rows: int, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    forecasts = rng.beta(2, 3, rows)
    outcomes = (rng.random(rows) < forecasts**1.1).astype(int)
    lines = [f"{forecast:.6f},{outcome}" for forecast, outcome in zip(forecasts, outcomes, strict=True)]
    return ("\n".join(["forecast,outcome", *lines]) + "\n").encode()


def _question(identity: str) -> dict[str, Any]:
    return {
        "data": identity,
        "columns": {"forecast": ["forecast"], "outcome": ["outcome"], "weight": None, "key": None},
        "problem": {
            "kind": "linear",
            "actions": ["0.8x", "1.0x", "1.2x"],
            "rewards": [[0.72], [0.90], [1.08]],
            "costs": [0.02, 0.05, 0.10],
            "lower": [0.0],
            "upper": [1.0],
        },
        "guarantee": ["self-orthogonal"],
        "slack": "audit",
        "confidence": 0.95,
        "pure": False,
    }


async def _load(address: str, pid: int, clients: int, seconds: float, rows: int) -> Load:
    load, stop = Load(), time.perf_counter() + seconds
    limits = httpx2.Limits(max_connections=clients + 2)
    async with httpx2.AsyncClient(base_url=address, timeout=120, limits=limits) as client:

        async def person(number: int) -> None:
            # Fewer files than clients, as the studio holds 16; several people look at the same one.
            content, moves = _file(rows, number % 8), 0
            while time.perf_counter() < stop:
                start = time.perf_counter()
                uploaded = await client.post("/api/data", content=content)
                load.seconds.append(time.perf_counter() - start)
                if uploaded.status_code != 200:
                    load.errors.append(uploaded.text)
                    return
                question = _question(uploaded.json()["id"])
                for _ in range(10):
                    moves += 1
                    question["slack"] = round(0.001 * (number + 50 * moves) % 0.5, 6)
                    question["problem"]["costs"][2] = 0.1 + 0.001 * (moves % 20)
                    for part in _PARTS:
                        start = time.perf_counter()
                        answer = await client.post(f"/api/{part}", json=question)
                        load.seconds.append(time.perf_counter() - start)
                        if answer.status_code != 200:
                            load.errors.append(answer.text)
                    if time.perf_counter() > stop:
                        return

        async def observer() -> None:
            while time.perf_counter() < stop:
                load.memory.append(_memory(pid))
                await asyncio.sleep(1)

        await asyncio.gather(observer(), *(person(number) for number in range(clients)))
    return load


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def _edits(address: str, rows: int) -> dict[str, list[tuple[float, float]]]:
    """Times of single requests after an edit: seen by the client, and spent on computing."""
    changes: dict[str, Any] = {
        "slack by hand": lambda question, k: question.update(slack=0.001 * (k + 1)),
        "a cost, one rung picked": lambda question, k: question["problem"]["costs"].__setitem__(
            2, 0.1 + 0.001 * (k + 1)
        ),
        "a cost, best rung": lambda question, k: (
            question.update(guarantee="auto"),
            question["problem"]["costs"].__setitem__(2, 0.2 + 0.001 * (k + 1)),
        ),
    }
    found: dict[str, list[tuple[float, float]]] = {}
    with httpx2.Client(base_url=address, timeout=120) as client:
        identity = client.post("/api/data", content=_file(rows, 99)).json()["id"]
        first = _question(identity)
        for part in _PARTS:
            client.post(f"/api/{part}", json=first)
        for what, change in changes.items():
            question = copy.deepcopy(first)
            for k in range(7):
                change(question, k)
                for part in _PARTS:
                    start = time.perf_counter()
                    answer = client.post(f"/api/{part}", json=question).json()
                    found.setdefault(f"{what}: {part}", []).append((time.perf_counter() - start, answer["seconds"]))
    return found


def _render(environment: dict[str, Any], options: Any, load: Load, edits: dict[str, list[tuple[float, float]]]) -> str:
    times = np.sort(load.seconds) * 1000
    early, late = _quarter(load.memory, 1), _quarter(load.memory, 3)
    machine = f"{environment['processor']}, {environment['cores']} cores, load {environment['load_at_start']}"
    memory = f"{early:,.0f} MB | {late:,.0f} MB | {load.memory[-1] / 1e6:,.0f} MB"
    waits = f"{np.median(times):,.0f} ms | {np.quantile(times, 0.95):,.0f} ms | {times[-1]:,.0f} ms"
    lines = [
        "# The studio under load",
        "",
        f"`python -m benchmarks.studio`, {environment['started'][:10]}, Python {environment['python']}, {machine}.",
        f"{options.clients} clients for {options.seconds:g} s on the loopback interface, {options.rows:,} rows each.",
        "",
        "| requests | errors | median | p95 | longest | memory after a quarter | after three quarters | at the end |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
        f"| {len(times):,} | {len(load.errors)} | {waits} | {memory} |",
        "",
        f"One client with {options.long:,} rows: medians and least times of seven edits. A line is one request; the",
        "page sends all four at once and shows each answer as it comes.",
        "",
        "| edit and part | seen by the client | least | computing |",
        "|---|---:|---:|---:|",
    ]
    for what, pairs in edits.items():
        seen, spent = np.array(pairs).T * 1000
        lines.append(f"| {what} | {np.median(seen):,.0f} ms | {seen.min():,.0f} ms | {np.median(spent):,.0f} ms |")
    return "\n".join(lines)


def _quarter(memory: list[int], which: int) -> float:
    return memory[len(memory) * which // 4] / 1e6


if __name__ == "__main__":
    main()
