"""The command: where it listens, and what it says when it cannot."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import prudent
from prudent.studio.serving import HOST, _listen

EXECUTABLE = Path(sys.executable).parent / "prudent"


@contextmanager
def started(*arguments: str) -> Iterator[int]:
    """Run the command; gives its port and expects a clean end by Ctrl-C."""
    command = [EXECUTABLE, "studio", "--no-browser", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        try:
            yield int(re.search(r"http://127\.0\.0\.1:(\d+)/", line).group(1))
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
            assert process.stderr.read() == ""


def test_a_free_port_is_taken_where_the_one_asked_for_is_not() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with started("--port", str(taken.getsockname()[1])) as port:
            assert port != taken.getsockname()[1]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as page:
                assert b"Prudent studio" in page.read()


@pytest.mark.parametrize("wait", [0.0, 0.2, 0.8])
def test_an_interruption_while_questions_wait_is_clean(wait: float) -> None:
    """Whether the command is starting, loading, or computing: it ends with 0 and says nothing, as `started` checks."""
    with started("--port", "0") as port, socket.create_connection((HOST, port)) as asking:
        head = f"POST /api/examples/patients HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Length: 0\r\n\r\n"
        asking.sendall(head.encode())
        time.sleep(wait)


def test_an_interruption_does_not_wait_for_a_long_computation(tmp_path: Path) -> None:
    """The example takes an hour here, and the command ends with 0 and without a word all the same."""
    began = tmp_path / "began"
    code = f"""
import pathlib, time
from prudent.studio import application, serving
def make(name):
    pathlib.Path({str(began)!r}).touch()
    time.sleep(3_600)
application.make_example = make
serving.serve(0, browser=False, announce=lambda address: print(address, flush=True))
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        port = int(re.search(r":(\d+)/", process.stdout.readline()).group(1))
        with socket.create_connection((HOST, port)) as asking:
            head = f"POST /api/examples/patients HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Length: 0\r\n\r\n"
            asking.sendall(head.encode())
            while not began.exists():
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(timeout=120) == 0
            finally:
                process.kill()
            assert process.stderr.read() == ""


@pytest.mark.skipif(
    not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists(), reason="needs /proc to see who started whom"
)
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="nobody helps where there is one core")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_whoever_helps_with_long_files_ends_with_the_studio(rows: Callable[..., bytes], end: signal.Signals) -> None:
    command = [EXECUTABLE, "studio", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        port = int(re.search(r":(\d+)/", process.stdout.readline()).group(1))
        assert httpx2.post(f"http://{HOST}:{port}/api/data", content=rows(60_000), timeout=120).status_code == 200
        helpers: list[Path] = []
        while not helpers:
            assert process.poll() is None
            time.sleep(0.1)
            helpers = [path for path in children(process.pid) if b"colleague" in (path / "cmdline").read_bytes()]
        process.send_signal(end)
        assert process.wait(timeout=60) == (0 if end == signal.SIGINT else -end)
        for _ in range(0 if end == signal.SIGINT else 600):  # nobody ends it then: it finds its line cut
            if not helpers[0].exists():
                break
            time.sleep(0.1)
        assert not helpers[0].exists()
        assert process.stderr.read() == ""


def children(pid: int) -> list[Path]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():  # whichever thread started it
        found += [Path("/proc") / child for child in (task / "children").read_text().split()]
    return found


def test_only_this_machine_can_connect() -> None:
    with _listen(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        assert listener.family == socket.AF_INET


@pytest.mark.parametrize("port", [-1, 65_536])
def test_impossible_ports_are_refused(port: int) -> None:
    with pytest.raises(prudent.InputError, match="port must lie between"):
        _listen(port)


def test_importing_the_command_line_does_not_load_the_server() -> None:
    code = "import sys, prudent.cli.application; print('fastapi' in sys.modules, 'uvicorn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_process_that_only_answers_settles_down() -> None:
    """Products of long, narrow matrices stay on one thread, and what is loaded is not looked through for garbage."""
    program = (
        "import gc, threadpoolctl\n"
        "from prudent.studio.warming import settle_down\n"
        "settle_down()\n"
        "products = [one for one in threadpoolctl.threadpool_info() if one['user_api'] == 'blas']\n"
        "threads = [one['num_threads'] for one in products]\n"
        "print(max(threads, default=1), gc.get_freeze_count() > 10_000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["1", "True"]


def run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


def test_nobody_waits_for_the_compiler() -> None:
    program = (
        "import threading\n"
        "from prudent.studio import preparing, serving\n"
        "from prudent.studio.colleague import Colleague\n"
        "begun, go = threading.Event(), threading.Event()\n"
        "preparing.prepare_steps = lambda: (begun.set(), go.wait(60))\n"
        "application = serving._load(Colleague())\n"
        "print(begun.wait(60), application is not None, not go.is_set())\n"
        "go.set()\n"
    )
    assert run(program) == ["True", "True", "True"]


@pytest.mark.parametrize(
    ("kept", "compiler", "expected"),
    [
        (True, "raise SystemExit(1)", ["prepared"]),  # nothing is compiled
        (False, "", ["prepared"]),
        (False, "raise SystemExit(1)", []),  # it failed: the studio does without
        (None, "", []),
    ],
)
def test_steps_are_compiled_in_another_process(kept: bool | None, compiler: str, expected: list[str]) -> None:
    program = (
        "from prudent.solvers import compiled_step\n"
        "from prudent.studio import preparing\n"
        f"compiled_step.is_kept = lambda: {kept}\n"
        "compiled_step.prepare = lambda: print('prepared')\n"
        f"preparing._PROGRAM = {compiler!r}\n"
        "preparing.prepare_steps()\n"
    )
    assert run(program) == expected


def test_the_compiler_ends_with_the_studio() -> None:
    program = (
        "import threading, time\n"
        "from prudent.solvers import compiled_step\n"
        "from prudent.studio import preparing\n"
        "compiled_step.is_kept = lambda: False\n"
        "compiled_step.prepare = lambda: print('prepared')\n"
        "preparing._PROGRAM = 'import time; time.sleep(100)'\n"
        "thread = threading.Thread(target=preparing.prepare_steps)\n"
        "thread.start()\n"
        "while preparing._compiler is None: time.sleep(0.01)\n"
        "preparing.stop_compiling()\n"
        "thread.join(60)\n"
        "print(preparing._compiler.poll() is not None)\n"
        "preparing.prepare_steps()\n"  # too late: nothing starts any more
    )
    assert run(program) == ["True"]
