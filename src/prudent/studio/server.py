"""Run the server on the loopback interface until it is interrupted."""

import gc
import logging
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from types import FrameType
from typing import Any

from prudent.errors import InputError, MissingExtraError

HOST = "127.0.0.1"
DEFAULT_PORT = 8765
_THREADS = "AnyIO worker thread"


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
    with suppress(KeyboardInterrupt):
        _run(DEFAULT_PORT if port is None else port, browser, announce)
    _leave_computations()


def _run(port: int, browser: bool, announce: Callable[[str], None]) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        """Announces its address once signals are handled; does not log requests that its end cancels."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce(address)
            if browser:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            super().handle_exit(sig, frame)

    with _listen(port) as listener:
        config = uvicorn.Config(
            _load(), lifespan="off", log_level="warning", server_header=False, timeout_graceful_shutdown=1
        )
        address = f"http://{HOST}:{listener.getsockname()[1]}/"
        Server(config).run(sockets=[listener])


def _leave_computations() -> None:
    """End the process now if something is still being computed.

    Threads cannot be stopped, and the interpreter would wait for them, for minutes perhaps. Nothing is lost: the
    studio keeps everything in memory and writes no files.
    """
    busy = [thread for thread in threading.enumerate() if thread.name.startswith(_THREADS)]
    for thread in busy:
        thread.join(0.5 / len(busy))
    if any(thread.is_alive() for thread in busy):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _load() -> Any:
    """Import the library, make the application, and set up this process for it."""
    from threadpoolctl import threadpool_limits

    from prudent.studio.application import create_application

    application = create_application()
    # Matrices are long and narrow here, and there is a thread for every core already.
    threadpool_limits(limits=1, user_api="blas")
    # Imported modules stay: a collection of garbage that visits their objects takes as long as an answer.
    gc.freeze()
    # A response needs the interpreter lock several times, briefly: threads that compute must release it soon.
    sys.setswitchinterval(0.0005)
    return application


def _listen(port: int) -> socket.socket:
    """Bind to the loopback interface: no other machine can reach it."""
    if not 0 <= port <= 65_535:
        raise InputError(f"port must lie between 0 and 65535, where 0 takes any that is free; got {port}.")
    # With the protocol named asyncio knows that it is TCP and sends answers at once instead of collecting bytes.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.bind((HOST, 0))
    listener.listen(128)
    return listener
