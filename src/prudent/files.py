"""Versioned JSON documents: written whole or not at all, read with every doubt raised."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from prudent.errors import FileFormatError, InputError

__all__ = ["read_document", "write_document"]


def write_document(path: str | os.PathLike[str], kind: str, version: int, content: dict[str, Any]) -> None:
    """Write a document atomically: a reader sees the old file or the new one, never a part."""
    target = Path(path)
    text = json.dumps(
        {"format": kind, "version": version, "checksum": _checksum(content), "content": content},
        indent=1,
        allow_nan=False,
    )
    if not target.parent.is_dir():
        raise InputError(f"path must lie in an existing directory; {str(target.parent)!r} is not one.")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def read_document(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """Read a document of a kind, refusing foreign, truncated, altered and newer files."""
    name = str(path)
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
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
    if not isinstance(content, dict) or document["checksum"] != _checksum(content):
        raise FileFormatError(
            f"{name!r} was altered after it was written: its checksum does not fit. Save the object again."
        )
    return content


def _checksum(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _refuse_constant(name: str) -> float:
    raise FileFormatError(f"the file contains {name}, which is not a number.")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
