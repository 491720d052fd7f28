"""The studio: how fast it starts, answers an edit, and holds under load: ``python -m benchmarks.studio``.

Many clients at once, each moving the slack slider and editing a cost on its own data, next to clients that upload.
Then one client with a long file, the way a person works: only what changed is computed again. Last the same in the
page itself, in Chromium, from the input event to the answer on screen; left out where there is no browser.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks.environment import describe_environment

_PARTS = ("policy", "verdict", "stress", "ladder")  # in the order in which the page wants them
_STARTS = 5
_EDITS = 7
_PAGE = 4096


@dataclass
class Load:
    """What the clients met."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)


def main() -> None:
    """Run the studio, load it, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=180.0, help="seconds of the same load before anything counts")
    parser.add_argument("--rows", type=int, default=1_000, help="of each client's file")
    parser.add_argument("--long", type=int, default=100_000, help="rows of the long file")
    options = parser.parse_args()
    environment = describe_environment()
    starts = [_start() for _ in range(_STARTS + 1)][1:]  # the first one compiles modules
    with running_studio() as (address, process):
        edits = _edits(address, options.long)
        waits = _waits_in_page(address, options.long)
    with running_studio() as (address, process):
        load = asyncio.run(_load(address, process, options.clients, options.warm_up, options.seconds, options.rows))
    print(_render(environment, options, starts, load, edits, waits))
    if load.errors:
        raise SystemExit(f"{len(load.errors)} errors, the first: {load.errors[0]}")


@contextmanager
def running_studio() -> Iterator[tuple[str, int]]:
    """Run the command as a person would; gives its address and process."""
    command = [str(Path(sys.executable).parent / "prudent"), "studio", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own command
        line = process.stdout.readline() if process.stdout else ""
        found = re.search(r"http://\S+/", line)
        if found is None:
            raise SystemExit("the studio did not start")
        try:
            yield found.group(), process.pid
        finally:
            process.send_signal(signal.SIGINT)


def _start() -> tuple[float, float]:
    """Seconds from the start of the process to the page, and until questions are answered."""
    start = time.perf_counter()
    with running_studio() as (address, _), httpx2.Client(base_url=address, timeout=120) as client:
        client.get("/").raise_for_status()
        page = time.perf_counter() - start
        client.get("/assets/page.js").raise_for_status()
        return page, time.perf_counter() - start


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
    }


def _three_classes(rows: int) -> tuple[bytes, dict[str, Any]]:
    """A file of class probabilities, and a question about it but for its id."""
    rng = np.random.default_rng(98)
    steps = np.floor(rng.dirichlet([2.0, 3.0, 2.0], rows) * 1_000_000)
    steps[:, 2] = 1_000_000 - steps[:, :2].sum(axis=1)  # whole millionths, so that rows add up to one as written
    chances = (steps / 1_000_000) ** 1.1
    drawn = (rng.random(rows)[:, None] > np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    lines = [
        ",".join(f"{step / 1_000_000:.6f}" for step in row) + f",{'abc'[label]}"
        for row, label in zip(steps, drawn.clip(0, 2), strict=True)
    ]
    question = {
        "columns": {"forecast": ["a", "b", "c"], "outcome": ["outcome"], "weight": None, "key": None},
        "problem": {
            "kind": "payoffs",
            "actions": ["low", "middle", "high"],
            "classes": ["a", "b", "c"],
            "payoffs": [[1.0, 0.0, -1.0], [0.2, 0.5, 0.2], [-1.0, 0.3, 1.0]],
        },
        "guarantee": ["self-orthogonal"],
        "slack": "audit",
        "confidence": 0.95,
    }
    return ("\n".join(["a,b,c,outcome", *lines]) + "\n").encode(), question


async def _load(address: str, pid: int, clients: int, warm_up: float, seconds: float, rows: int) -> Load:
    load, begin = Load(), time.perf_counter() + warm_up
    stop = begin + seconds
    limits = httpx2.Limits(max_connections=clients + 2)
    async with httpx2.AsyncClient(base_url=address, timeout=120, limits=limits) as client:

        def note(part: str, start: float) -> None:
            if start >= begin:
                load.seconds.setdefault(part, []).append(time.perf_counter() - start)

        async def person(number: int) -> None:
            # Fewer files than clients, as the studio holds 16; several people look at the same one.
            content, moves = _file(rows, number % 8), 0
            while time.perf_counter() < stop:
                start = time.perf_counter()
                uploaded = await client.post("/api/data", content=content)
                note("upload", start)
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
                        note(part, start)
                        if answer.status_code != 200:
                            load.errors.append(answer.text)
                    if time.perf_counter() > stop:
                        return

        async def observer() -> None:
            await asyncio.sleep(warm_up)
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
    of_classes: dict[str, Any] = {
        "a payoff, three classes, one rung picked": lambda question, k: question["problem"]["payoffs"][0].__setitem__(
            2, -1.0 + 0.01 * (k + 1)
        ),
        "a payoff, three classes, best rung": lambda question, k: (
            question.update(guarantee="auto"),
            question["problem"]["payoffs"][0].__setitem__(2, -1.2 + 0.01 * (k + 1)),
        ),
    }
    found: dict[str, list[tuple[float, float]]] = {}
    with httpx2.Client(base_url=address, timeout=120) as client:
        one = _file(rows, 99), _question("")
        for (content, asked), edits in ((one, changes), (_three_classes(rows), of_classes)):
            first = {**asked, "data": client.post("/api/data", content=content).json()["id"]}
            for part in _PARTS:
                client.post(f"/api/{part}", json=first)
            for what, change in edits.items():
                question = copy.deepcopy(first)
                for k in range(_EDITS):
                    change(question, k)
                    for part in _PARTS:
                        start = time.perf_counter()
                        answer = client.post(f"/api/{part}", json=question).json()
                        times = time.perf_counter() - start, answer["seconds"]
                        found.setdefault(f"{what}: {part}", []).append(times)
    return found


def _waits_in_page(address: str, rows: int) -> dict[str, list[float]] | None:
    """Milliseconds from an input event to the answer on screen, as the page itself measures them."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if executable is None:
        return None
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "long.csv"
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(address)
        classes, asked = _three_classes(rows)
        for content, suffix, steps in ((_file(rows, 99), "", (1.1, 1.2)), (classes, ", three classes", (-1.2, -1.0))):
            path.write_bytes(content)
            page.set_input_files("#file", path)
            _all_current(page)
            numbers = page.locator("#decision table.edit tbody input[type=number]")
            what, edited = ("a payoff", numbers.nth(2)) if suffix else ("a cost", numbers.nth(5))
            for k, payoff in enumerate(np.ravel(asked["problem"]["payoffs"]) if suffix else []):
                numbers.nth(k).fill(str(payoff))
                _all_current(page)

            def edit(name: str, change: Callable[[int], None]) -> None:
                for k in range(_EDITS):
                    change(k)
                    for part, waited in _all_current(page).items():
                        found.setdefault(f"{name}: {part}", []).append(waited)  # called in the loop

            def fill(first: float) -> Callable[[int], None]:
                return lambda k: edited.fill(f"{first + 0.01 * k:.2f}")  # noqa: B023  # called in the loop

            edit(f"{what}{suffix}, best rung", fill(steps[0]))
            page.locator("#ladder [data-rung=self-orthogonal] input").check()
            _all_current(page)
            edit(f"{what}{suffix}, one rung picked", fill(steps[1]))
            page.get_by_label("set by hand").check()
            _all_current(page)
            slider = page.locator("input[type=range][aria-label^=Slack]")
            edit(f"slack by hand{suffix}", lambda k: slider.fill(str(100 + 10 * k)))  # noqa: B023  # called in the loop
        browser.close()
    return found


# The page says itself when it is done: asking again and again would make it draw frames that nobody else asks for,
# on the cores that compute.
_WHEN_CURRENT = """(parts) => new Promise((done) => {
  function look() {
    const panels = parts.map((part) => document.getElementById(part));
    const current = (panel) => panel?.dataset.current === "true" && !panel.classList.contains("stale");
    if (document.getElementById("drop").ariaBusy === "true" || !panels.every(current)) return;
    observer.disconnect();
    const waited = panels.filter((panel) => panel.dataset.waited !== undefined);
    done(Object.fromEntries(waited.map((panel) => [panel.id, Number(panel.dataset.waited)])));
    for (const panel of waited) delete panel.dataset.waited;
  }
  const observer = new MutationObserver(look);
  setTimeout(() => {
    observer.observe(document.body, { attributes: true, childList: true, subtree: true });
    look();
  }, 100);
})"""


def _all_current(page: Any) -> dict[str, float]:
    """Wait until every panel answers what is visible; return how long those took that were asked anew."""
    waits: dict[str, float] = page.evaluate(_WHEN_CURRENT, list(_PARTS))
    return waits


def _render(
    environment: dict[str, Any],
    options: Any,
    starts: list[tuple[float, float]],
    load: Load,
    edits: dict[str, list[tuple[float, float]]],
    waits: dict[str, list[float]] | None,
) -> str:
    machine = f"{environment['processor']}, {environment['cores']} cores, load {environment['load_at_start']}"
    page, ready = np.median(np.array(starts), axis=0)
    lines = [
        "# The studio",
        "",
        f"`python -m benchmarks.studio`, {environment['started'][:10]}, Python {environment['python']}, {machine}.",
        "",
        f"From the start of the process to the first page served: {page:.2f} s, median of {_STARTS} starts (longest",
        f"{max(start[0] for start in starts):.2f} s); until questions are answered: {ready:.2f} s.",
        "",
        *_render_load(options, load),
        "",
        f"One client with {options.long:,} rows: medians and least times of {_EDITS} edits. A line is one request,",
        "after the one above it.",
        "",
        "| edit and part | seen by the client | least | computing |",
        "|---|---:|---:|---:|",
    ]
    for what, pairs in edits.items():
        seen, spent = np.array(pairs).T * 1000
        lines.append(f"| {what} | {np.median(seen):,.0f} ms | {seen.min():,.0f} ms | {np.median(spent):,.0f} ms |")
    if waits is None:
        return "\n".join([*lines, "", "There was no browser for measurements in the page."])
    lines += [
        "",
        "In the page, in Chromium, with the same file: from the input event to the answer on screen. All parts are",
        "asked for at once, with the best rung the ladder after the policy.",
        "",
        "| edit and panel | median | least | longest |",
        "|---|---:|---:|---:|",
    ]
    for what, times in waits.items():
        lines.append(f"| {what} | {np.median(times):,.0f} ms | {min(times):,.0f} ms | {max(times):,.0f} ms |")
    return "\n".join(lines)


def _render_load(options: Any, load: Load) -> list[str]:
    memory = np.array(load.memory) / 1e6
    growth, _ = np.polyfit(np.arange(memory.size) / 60, memory, 1)
    everything = [seconds for part in load.seconds.values() for seconds in part]
    lines = [
        f"{options.clients} clients for {options.seconds:g} s on the loopback interface, {options.rows:,} rows each,",
        f"none of whom ever pauses: {len(load.errors)} errors. Memory, read every second after a warm-up of",
        f"{options.warm_up:g} s: from {memory.min():,.0f} to {memory.max():,.0f} MB, at the end {memory[-1]:,.0f} MB;",
        f"its line of least squares grows by {growth:+.1f} MB a minute.",
        "",
        "| request | answered | median | p95 | longest |",
        "|---|---:|---:|---:|---:|",
    ]
    for part, seconds in [*load.seconds.items(), ("all", everything)]:
        times = np.array(seconds) * 1000
        numbers = f"{np.median(times):,.0f} ms | {np.quantile(times, 0.95):,.0f} ms | {times.max():,.0f} ms"
        lines.append(f"| {part} | {len(times):,} | {numbers} |")
    return lines


if __name__ == "__main__":
    main()
