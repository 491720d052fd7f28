"""Another process that answers some questions about long files, so that two cores work on what an edit changes.

Two threads of one interpreter hardly help: solvers take many short steps, and wait for it after each. The colleague
holds the same files and answers what no other answer depends on. Whoever finds it busy, starting or gone computes by
themselves; so does who asks what has no answer, and finds out why.

Messages are a line of JSON each, and as many bytes behind it as the line says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from threading import Lock, Thread
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:  # the studio starts faster than these are imported
    from prudent.studio.data_sets import Held
    from prudent.studio.questions import Question

__all__ = ["Colleague", "work"]

_NUMBERS_WORTH_SHARING = 100_000
_POLITENESS = 10
_PROGRAM = "from prudent.studio.colleague import work; work()"


class Colleague:
    """Starts the other process with the first long file, and talks to it; one question at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._held: set[str] = set()
        self._turn, self._door = Lock(), Lock()
        self._ended = (os.cpu_count() or 1) < 2

    def hold(self, held: Held) -> None:
        """Hand over a file, if it is long; returns at once."""
        if not self._ended and held.id not in self._held and held.rows * len(held.columns) >= _NUMBERS_WORTH_SHARING:
            Thread(target=self._hand_over, args=(held,), name="prudent-studio colleague", daemon=True).start()

    def holds(self, data: str) -> bool:
        """True if the colleague can be asked about these data."""
        return not self._ended and data in self._held

    def answer(self, kind: str, question: Question, inputs: str) -> bytes | None:
        """Return an answer as JSON; None if there is none to be had."""
        if not self.holds(question.data) or not self._turn.acquire(blocking=False):
            return None
        try:
            return self._ask({"kind": kind, "question": question.model_dump(mode="json"), "inputs": inputs})
        finally:
            self._turn.release()

    def end(self) -> None:
        """End the other process, whatever it is doing."""
        with self._door:
            self._ended = True
            if self._process is not None and self._process.stdin is not None:
                self._process.kill()
                self._process.wait()
                with suppress(OSError):  # what was written and not read
                    self._process.stdin.close()

    def _hand_over(self, held: Held) -> None:
        with self._turn:
            with self._door:
                if self._process is None and not self._ended:
                    self._process = subprocess.Popen(  # noqa: S603  # our own interpreter, and our own words
                        [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                    )
            told = {"kind": "data", "name": held.name, "size": len(held.content)}
            taken = self._ask(told, held.content) is not None
        if taken:
            self._held.add(held.id)

    def _ask(self, told: dict[str, Any], content: bytes = b"") -> bytes | None:
        """Send one message and read one; a colleague who is gone is not asked again."""
        process = self._process
        if self._ended or process is None or process.stdin is None or process.stdout is None:
            return None
        with suppress(OSError, ValueError):  # broken off, or closed
            _send(process.stdin, told, content)
            reply = _receive(process.stdout)
            if reply is not None:
                return reply[1] if reply[0]["answered"] else None
        self.end()
        return None


def work() -> None:
    """Answer what comes through standard input until it ends: the body of the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it is interrupted too, and ends it
    if hasattr(os, "nice"):
        os.nice(_POLITENESS)  # others draw what is looked at first
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that is printed gets between the answers
    from prudent.solvers.compiled_step import is_kept, prepare
    from prudent.studio import answering
    from prudent.studio.data_sets import DataSets
    from prudent.studio.questions import Question
    from prudent.studio.warming import settle_down, warm_up
    from prudent.studio.workshop import Workshop

    answers = {"verdict": answering.answer_verdict, "ladder": answering.answer_ladder}
    workshop, prepared = Workshop(DataSets()), False
    warm_up()
    settle_down()
    while (received := _receive(source)) is not None:
        told, content = received
        if not prepared and is_kept():
            prepare()
            prepared = True
        answer: bytes | None
        try:
            if told["kind"] == "data":
                workshop.data_sets.add(content, told["name"])
                answer = b""
            else:
                question = Question.model_validate(told["question"])
                answer = answers[told["kind"]](workshop, question, told["inputs"]).model_dump_json().encode()
        except Exception:  # noqa: BLE001  # whoever asked computes it too, and says what is wrong
            answer = None
        try:
            _send(sink, {"answered": answer is not None, "size": len(answer or b"")}, answer or b"")
        except OSError:
            os._exit(0)  # nobody listens any more; an orderly end would try to write it again


def _send(stream: IO[bytes], told: dict[str, Any], content: bytes) -> None:
    stream.write(json.dumps(told).encode() + b"\n" + content)
    stream.flush()


def _receive(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read one message; None at the end, also in the middle of a message."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    told: dict[str, Any] = json.loads(line)
    content = stream.read(told.get("size", 0))
    return (told, content) if len(content) == told.get("size", 0) else None
