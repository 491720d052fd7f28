"""Where errors end: one line on standard error and an exit code, and a traceback only for what should not happen."""

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import typer

from prudent.errors import (
    EngineError,
    FileFormatError,
    InfeasibleError,
    InputError,
    MissingExtraError,
    stopped_by_signal,
)

BAD_INPUT = 2
INTERRUPTED = 130
_READER_GONE = 141
_TERMINATED = 143

_requests: list[int] = []  # to terminate, that have come

# Typer has its own copy of click in some versions and imports it in others; this name is in both.
_UsageError: Any = typer.BadParameter.__bases__[0]


def run(application: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _invoke(application, list(arguments) or ["--help"])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _stopped()
    except BrokenPipeError:
        # The reader of our output has closed it; Python would try to flush once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_GONE
    except (InputError, FileFormatError, InfeasibleError, MissingExtraError, EngineError) as error:
        return _say(str(error), BAD_INPUT)
    except _UsageError as error:
        return _say(f"{error.format_message().rstrip('.')}. Try --help.", BAD_INPUT)
    except OSError as error:
        if error.strerror is None:
            return _say(str(error), BAD_INPUT)
        return _say(f"{error.filename or 'standard input or output'}: {error.strerror}.", BAD_INPUT)
    except MemoryError:
        return _say("there is not enough memory for these rows.", BAD_INPUT)
    except Exception as error:
        if stopped_by_signal(error):
            return _stopped()
        error.add_note("This is a mistake in prudent. Please report it with the lines above.")
        raise
    return code


def _stopped() -> int:
    """Say by what the work was ended: DuckDB reports every signal in the same words."""
    return _TERMINATED if _requests else _say("interrupted.", INTERRUPTED)


def _invoke(application: typer.Typer, arguments: list[str]) -> int:
    """Parse and call. Typer's own way would print errors on several lines."""
    command = typer.main.get_command(application)
    try:
        with command.make_context("prudent", arguments) as context:
            code = command.invoke(context)
    except typer.Exit as stop:
        return int(stop.exit_code)
    return code if isinstance(code, int) else 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _say(f"warning: {message}", 0)


def _say(message: str, code: int) -> int:
    sys.stderr.write(f"prudent: {' '.join(message.split())}\n")
    return code


def leave(code: int) -> NoReturn:
    """End the process; after trouble at once.

    Libraries that read ahead in threads of their own may be in the middle of it when work stops early, and some abort
    if they then meet an interpreter that is shutting down.
    """
    if code == 0:
        raise SystemExit(0)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # full, gone or closed: that has been said
            stream.flush()
    os._exit(code)


def end_on_request() -> None:
    """Let a request to terminate end the work like an error does, so that files that are not complete are removed."""

    def stop(number: int, _: object) -> None:
        _requests.append(number)
        raise SystemExit(_TERMINATED)

    signal.signal(signal.SIGTERM, stop)
