"""The server: on this machine only, on a free port, until it is interrupted."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from types import FrameType
from typing import Any

from prudent.errors import InputError, MissingExtraError
from prudent.studio.colleague import Colleague
from prudent.studio.front import Front
from prudent.studio.preparing import stop_compiling

__all__ = ["serve"]

HOST = "127.0.0.1"
DEFAULT_PORT = 8765
_SECONDS_BETWEEN_TURNS = 0.0005
_SECONDS_TO_FINISH = 0.5
_COMPUTING = ("AnyIO worker thread", "prudent-studio")


def serve(port: int | None = None, *, browser: bool = True, announce: Callable[[str], None] = print) -> None:
    """Run the studio until Ctrl-C.

    Parameters
    ----------
    port : int, optional
        By default 8765. If it is taken, a free one.
    browser : bool
        Open the page.
    announce : callable
        Gets the address as soon as connections are accepted.
    """
    for package in ("fastapi", "jinja2", "pyarrow", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "studio", "the studio")
    listener = _listen(DEFAULT_PORT if port is None else port)
    address = f"http://{HOST}:{listener.getsockname()[1]}/"

    import uvicorn

    colleague = Colleague()
    front = Front(lambda: _load(colleague))

    class Server(uvicorn.Server):
        """Tells requests that wait, for the library or for a long computation, that they wait in vain."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            front.end()
            super().handle_exit(sig, frame)

    server = Server(uvicorn.Config(front, log_level="warning", server_header=False, timeout_graceful_shutdown=2))
    # uvicorn ends open requests first and then raises the interruption again, which is how people end the studio.
    with listener, _heard_from_the_start(server), suppress(KeyboardInterrupt):
        # The socket listens already, so that a browser which is faster than the server waits in its queue.
        announce(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with _taking_turns_often():
            server.run(sockets=[listener])
    stop_compiling()
    colleague.end()
    _leave_computations()


def _leave_computations() -> None:
    """End the process now if something is still being computed, since nobody waits for it any more.

    Threads cannot be stopped, and the interpreter would wait for them, for minutes perhaps. Nothing is lost: the
    studio keeps everything in memory and writes no files.
    """
    ours = [thread for thread in threading.enumerate() if thread.name.startswith(_COMPUTING)]
    for thread in ours:
        thread.join(_SECONDS_TO_FINISH / len(ours))
    if any(thread.is_alive() for thread in ours):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


@contextmanager
def _heard_from_the_start(server: Any) -> Iterator[None]:
    """Let an interruption that comes before the server listens to signals itself end it in order."""
    if threading.current_thread() is not threading.main_thread():  # only there are signals heard
        yield
        return

    def end(_signal: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _taking_turns_often() -> Iterator[None]:
    """Let threads that compute hand over the interpreter soon: who answers needs it several times, but briefly."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SECONDS_BETWEEN_TURNS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _load(colleague: Colleague) -> Any:
    """Import what computes, and let it compute once: solvers import more when they first run."""
    from prudent.studio.application import create_application
    from prudent.studio.preparing import prepare_steps
    from prudent.studio.warming import settle_down, warm_up

    application = create_application(colleague=colleague)
    warm_up()
    settle_down()
    threading.Thread(target=prepare_steps, name=f"{_COMPUTING[1]} preparing", daemon=True).start()
    return application


def _listen(port: int) -> socket.socket:
    """Bind to the loopback interface: no other machine can reach it."""
    if not 0 <= port <= 65_535:
        raise InputError(f"port must lie between 0 and 65535, where 0 takes any that is free; got {port}.")
    # With the protocol named asyncio knows that it is TCP and sends answers at once instead of collecting bytes.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            listener.bind((HOST, port))
        except OSError:
            listener.bind((HOST, 0))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener
