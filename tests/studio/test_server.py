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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import prudent
from prudent.studio.server import HOST, serve

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


def test_a_free_port_of_this_machine_is_taken_where_the_one_asked_for_is_not() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with started("--port", str(taken.getsockname()[1])) as port:
            assert port != taken.getsockname()[1]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as page:
                assert b"Prudent studio" in page.read()
            with pytest.raises(OSError, match=r"refused|assign"):  # only the loopback address itself answers
                socket.create_connection(("127.0.0.2", port), timeout=60)


@pytest.mark.parametrize("wait", [0.0, 0.8])
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
from prudent.studio import application, server
def make():
    pathlib.Path({str(began)!r}).touch()
    time.sleep(3_600)
application.EXAMPLES["patients"] = application.EXAMPLES["patients"]._replace(make=make)
server.serve(0, browser=False, announce=lambda address: print(address, flush=True))
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


@pytest.mark.parametrize("port", [-1, 65_536])
def test_impossible_ports_are_refused(port: int) -> None:
    with pytest.raises(prudent.errors.InputError, match="port must lie between"):
        serve(port, browser=False)


def test_importing_the_command_line_does_not_load_the_server() -> None:
    code = "import sys, prudent.cli.application; print('fastapi' in sys.modules, 'uvicorn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_loading_keeps_matrix_products_on_one_thread_and_modules_out_of_garbage_collections() -> None:
    program = (
        "import gc, threadpoolctl\n"
        "from prudent.studio.server import serve\n"
        "def look(address):\n"
        "    products = [one for one in threadpoolctl.threadpool_info() if one['user_api'] == 'blas']\n"
        "    threads = [one['num_threads'] for one in products]\n"
        "    print(max(threads, default=1), gc.get_freeze_count() > 10_000, flush=True)\n"
        "    raise KeyboardInterrupt\n"
        "serve(0, browser=False, announce=look)\n"
    )
    usual = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=usual)
    assert done.stdout.split() == ["1", "True"]


def test_uploads_that_are_cut_off_are_not_logged() -> None:
    """`started` checks that nothing is written to the standard error."""
    with started("--port", "0") as port:
        with urllib.request.urlopen(f"http://{HOST}:{port}/", timeout=60) as loaded:
            assert loaded.status == 200
        for _ in range(20):
            with socket.create_connection((HOST, port)) as cut_off:
                head = f"POST /api/data HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Length: 1000\r\n\r\nf,y\n0.5,"
                cut_off.sendall(head.encode())
        with urllib.request.urlopen(f"http://{HOST}:{port}/", timeout=60) as still:
            assert still.status == 200
