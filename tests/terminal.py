"""A command whose standard error is a terminal: a pseudo-terminal of the operating system, as a person would have."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals exist on POSIX systems only")


class Terminal(io.StringIO):
    """What a terminal is to a program in this process."""

    def isatty(self) -> bool:
        return True


def in_terminal(command: list[str], cwd: Path | None = None, interrupt_at: bytes | None = None) -> tuple[int, str, str]:
    """Run a command; interrupt it once the terminal shows a pattern. Returns code, output and what was shown."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True, cwd=cwd) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # Linux says so when the other side is closed
                break
            if not read:
                break
            seen += read
            if interrupt_at is not None and re.search(interrupt_at, seen):
                process.send_signal(signal.SIGINT)
                interrupt_at = None
        assert process.stdout is not None
        output = process.stdout.read()
    os.close(ours)
    return process.returncode, output, seen.decode()
