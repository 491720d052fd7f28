"""Run one measurement in a process of its own, with limits on time and memory.

The work is a generator. Its first item says that imports, arrays and warm-up are ready, which starts the clock; each
later item is a better answer. So a limit that strikes during repeats costs only the repeats.

Children are forked from a server that has imported the solvers already: starting one takes milliseconds, and nothing
that an earlier measurement left behind (caches, threads, memory) reaches a later one.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["READY", "NoAnswerError", "Outcome", "Reply", "run_in_child"]

READY: dict[str, Any] = {}
_PREPARATION_LIMIT = 60.0
_MEMORY_SHARE = 0.8


class NoAnswerError(RuntimeError):
    """A contestant ended without an answer that it calls accurate; the message is its status."""


class Outcome:
    """How a measurement ended."""

    DONE = "done"
    TIME_OUT = "time-out"
    BEHIND = "behind"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Reply:
    """What came back from a child: the last answer, or why there is none."""

    outcome: str
    answer: dict[str, Any]
    note: str = ""


@dataclass(frozen=True)
class _Failure:
    note: str


def run_in_child(work: Callable[..., Iterator[dict[str, Any]]], arguments: tuple[Any, ...], limit: float) -> Reply:
    """Run ``work(*arguments)`` in a fresh process and return its last answer within ``limit`` seconds."""
    receiver, sender = _context.Pipe(duplex=False)
    process = _context.Process(target=_serve, args=(sender, work, arguments), daemon=True)
    process.start()
    sender.close()
    try:
        return _listen(receiver, process, limit)
    finally:
        process.kill()
        process.join()
        receiver.close()


def _listen(receiver: Connection, process: Any, limit: float) -> Reply:
    answers: list[dict[str, Any]] = []
    while True:
        if not receiver.poll(limit if answers else limit + _PREPARATION_LIMIT):
            if len(answers) > 1:
                return Reply(Outcome.DONE, answers[-1])
            if answers:
                return Reply(Outcome.TIME_OUT, {}, f"time-out > {limit:g} s")
            return Reply(Outcome.TIME_OUT, {}, f"time-out > {limit:g} s, in the warm-up")
        try:
            message = receiver.recv()
        except EOFError:
            if len(answers) > 1:
                return Reply(Outcome.DONE, answers[-1])
            process.join()
            return Reply(Outcome.FAILED, {}, f"failed: {_ending(process.exitcode)}")
        if isinstance(message, _Failure):
            return Reply(Outcome.FAILED, {}, f"failed: {message.note}")
        answers.append(message)


def _serve(sender: Connection, work: Callable[..., Iterator[dict[str, Any]]], arguments: tuple[Any, ...]) -> None:
    """Run in the child: send each item, then the reason if it failed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this process
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    _limit_memory()
    try:
        for answer in work(*arguments):
            sender.send(answer)
    except NoAnswerError as error:
        sender.send(_Failure(str(error)[:160]))
    except MemoryError:
        sender.send(_Failure("out of memory"))
    except Exception as error:  # noqa: BLE001  # whatever a contestant raises is a result to show
        text = str(error).strip().splitlines()
        sender.send(_Failure(f"{type(error).__name__}: {text[0] if text else ''}"[:160]))
    finally:
        sender.close()


def _limit_memory() -> None:
    """Let a program that is too large fail by itself and not bring the machine down."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = int(_MEMORY_SHARE * physical)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"ended by {signal.Signals(-code).name}" + (", perhaps out of memory" if code in (-6, -9) else "")
    return f"ended with code {code} and no answer"


_available = multiprocessing.get_all_start_methods()
_context: Any = multiprocessing.get_context("forkserver" if "forkserver" in _available else "spawn")
if "forkserver" in _available:
    _context.set_forkserver_preload(["benchmarks.contestants"])
