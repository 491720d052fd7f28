"""The world outside fails: full disks, interruptions, readers that leave. One line, the right code, no partial file."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import EXECUTABLE

DECIDE = ("--policy", "policy.json", "--forecast", "f", "--id", "id")
PATIENCE = 120.0  # seconds until a test gives up on a process; nothing is measured

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX systems")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def full(folder: Path) -> Iterator[Callable[[], None]]:
    """Gives a function that limits files to a kilobyte, until the test ends."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("decide", "rows.csv", *DECIDE, "-o", "out.csv"), "out.csv"),
        (("decide", "rows.parquet", *DECIDE, "-o", "out.parquet"), "out.parquet"),
        (("fit", "rows.csv", "--forecast", "f", "--guarantee", "bins:20", "-o", "out.json"), "out.json"),
        (("init", "out.toml"), "out.toml"),
    ],
    ids=["csv", "parquet", "policy", "problem"],
)
def test_a_disk_that_takes_no_more(
    command: Callable[..., Any],
    executable: Callable[..., Any],
    folder: Path,
    full: Callable[[], None],
    arguments: tuple[str, ...],
    output: str,
) -> None:
    """A limit on the size of files fails in the middle of a write, as a full disk does."""
    before = names(folder)
    if arguments[0] == "fit":
        done = executable(*arguments, preexec_fn=full)
    else:
        full()
        done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"prudent: {output}: File too large.\n"
    assert names(folder) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [("decide", "rows.csv", *DECIDE, "-o", "-"), ("init", "-"), ("--version",)])
def test_a_full_disk_behind_standard_output(
    folder: Path, executable: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([EXECUTABLE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "prudent: standard input or output: No space left on device.\n"


@pytest.mark.parametrize(
    ("target", "request_to_stop", "code", "message"),
    [
        ("actions.csv", signal.SIGINT, 130, "prudent: interrupted.\n"),
        ("actions.parquet", signal.SIGTERM, 143, ""),
    ],
    ids=["interrupted", "terminated"],
)
def test_stopped_in_the_middle(
    folder: Path, tmp_path_factory: Any, target: str, request_to_stop: signal.Signals, code: int, message: str
) -> None:
    """Rows arrive through a pipe that never ends, so the work is in its middle whenever the signal comes."""
    temporary = tmp_path_factory.mktemp("temporary")
    (folder / target).write_text("yesterday's")
    before = names(folder)
    process = subprocess.Popen(
        [EXECUTABLE, "decide", "-", *DECIDE, "-o", target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stdin is not None
    process.stdin.write(b"id,f\n" + b"".join(b"a%d,0.5\n" % i for i in range(600_000)))
    process.stdin.flush()
    deadline = time.monotonic() + PATIENCE
    while not names(temporary) and time.monotonic() < deadline:  # until rows are copied to a temporary file
        time.sleep(0.02)
    assert names(temporary)
    process.send_signal(request_to_stop)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.decode()) == (code, b"", message)
    assert names(folder) == before
    assert not names(temporary)
    assert (folder / target).read_text() == "yesterday's"


def test_a_reader_that_leaves(folder: Path) -> None:
    """As in ``prudent decide ... | head``."""
    (folder / "long.csv").write_text("id,f\n" + "".join(f"a{i},0.5\n" for i in range(300_000)))
    process = subprocess.Popen(
        [EXECUTABLE, "decide", "long.csv", *DECIDE, "-o", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"id,action\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(PATIENCE) == 141
    process.stderr.close()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc, where nobody may write")
def test_a_folder_that_nobody_may_write_to(command: Callable[..., Any], folder: Path) -> None:
    done = command("decide", "rows.csv", *DECIDE, "-o", "/proc/actions.csv")
    assert done.code == 2
    assert re.fullmatch(r"prudent: /proc/actions\.csv: [^\n]+\n", done.err)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read and write everything")
def test_files_without_permission(command: Callable[..., Any], folder: Path) -> None:
    (folder / "closed").mkdir(mode=0o500)
    done = command("decide", "rows.csv", *DECIDE, "-o", "closed/out.csv")
    assert (done.code, done.err) == (2, "prudent: closed/out.csv: Permission denied.\n")
    (folder / "rows.csv").chmod(0)
    done = command("decide", "rows.csv", *DECIDE, "-o", "out.csv")
    assert (done.code, done.err) == (2, "prudent: rows.csv: Permission denied.\n")


def test_no_tables_without_pyarrow(command: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = command("decide", "rows.csv", *DECIDE, "-o", "out.csv")
    assert done.code == 2
    assert "pip install 'prudent[cli]'" in done.err


def test_progress_is_only_for_terminals(command: Callable[..., Any], folder: Path) -> None:
    assert command("decide", "rows.csv", *DECIDE, "-o", "out.csv").err == ""


def test_progress_on_a_terminal(folder: Path) -> None:
    """Standard error is a terminal of our own."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [EXECUTABLE, "ladder", "rows.csv", "--forecast", "f", "--outcome", "y"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=folder,
    )
    os.close(theirs)
    out, _ = process.communicate(timeout=PATIENCE)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    assert process.returncode == 0
    assert b"Best choice" in out
    assert "ladder: nothing" in shown
