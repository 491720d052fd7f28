"""Files written whole or not at all; versioned JSON and TOML, read with every doubt raised."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from prudent.errors import FileFormatError, InputError

__all__ = [
    "document_text",
    "read_document",
    "read_toml",
    "whole_file",
    "whole_path",
    "write_bytes",
    "write_document",
    "write_text",
]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when all of it is written.

    A reader sees the old file or the new one, never a part; after an error or an interruption nothing is left.
    """
    with whole_path(path) as temporary, temporary.open("wb") as stream:
        yield stream


@contextmanager
def whole_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hand out an empty file next to a path for others to fill; it then takes its name, or goes."""
    target = _path(path)
    if not target.parent.is_dir():
        raise InputError(f"path must lie in an existing directory; {str(target.parent)!r} is not one.")
    if target.is_dir():
        raise InputError(f"path must name a file; {str(target)!r} is a directory.")
    if target.exists() and not target.is_file():  # a device or a pipe would be replaced by a file
        raise InputError(f"path must name a regular file; {str(target)!r} is none.")
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        # Created in here, since a signal may end the work right after it: with the mode that the user's mask allows.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException as error:
        try:
            temporary.unlink(missing_ok=True)  # whoever filled it may have removed it
        finally:  # a second signal may have come just before
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(temporary)):
            raise _about(error, target) from error
        raise


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, whole or not at all."""
    with whole_file(path) as stream:
        stream.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_document(path: str | os.PathLike[str], kind: str, version: int, content: dict[str, Any]) -> None:
    """Write a document atomically: a reader sees the old file or the new one, never a part."""
    text = document_text(kind, version, content)
    write_text(path, text)


def document_text(kind: str, version: int, content: dict[str, Any]) -> str:
    """Return what the file of a document holds."""
    document = {"format": kind, "version": version, "checksum": _checksum(content), "content": content}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def read_document(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """Read a document of a kind, refusing foreign, truncated, altered and newer files."""
    name = str(path)
    source = _path(path)
    if source.is_dir():
        raise InputError(f"path must name a file; {name!r} is a directory.")
    try:
        document = json.loads(source.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # bad JSON, bad UTF-8, a number too long, NaN
        raise FileFormatError(f"{name!r} is not readable JSON (truncated or foreign?): {error}.") from error
    if not isinstance(document, dict) or document.get("format") != kind:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise FileFormatError(f"{name!r} is not a {kind} file; its format is {found!r}.")
    if not isinstance(document.get("version"), int) or isinstance(document.get("version"), bool):
        raise FileFormatError(f"{name!r} has no version number.")
    if document["version"] > version:
        raise FileFormatError(
            f"{name!r} has version {document['version']}, newer than this library reads ({version}). "
            f"Upgrade prudent to open it."
        )
    if document["version"] < 1 or set(document) != {"format", "version", "checksum", "content"}:
        raise FileFormatError(f"{name!r} does not have the fields of a {kind} file.")
    content = document["content"]
    try:
        intact = isinstance(content, dict) and document["checksum"] == _checksum(content)
    except ValueError:  # a number beyond the range of floats
        intact = False
    if not intact:
        raise FileFormatError(
            f"{name!r} was altered after it was written: its checksum does not fit. Save the object again."
        )
    return dict(content)


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file."""
    source = _path(path)
    if source.is_dir():
        raise InputError(f"path must name a file; {str(path)!r} is a directory.")
    try:
        return tomllib.loads(source.read_text(encoding="utf-8-sig"))
    except ValueError as error:  # bad TOML or bad UTF-8
        raise FileFormatError(f"{str(path)!r} is not readable TOML: {str(error).rstrip('.')}.") from error


def _about(error: OSError, target: Path) -> OSError:
    """Say the same of the file that the user named: nobody knows the temporary one."""
    return type(error)(error.errno, error.strerror, str(target))


def _checksum(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it contains {name}, which is not a number")


def _path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InputError(f"path must name a file; got {path!r}.")
    return Path(path)
