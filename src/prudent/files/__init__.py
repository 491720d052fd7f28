"""Files written whole or not at all; versioned JSON and TOML, read with every doubt raised.

Fields of saved objects are read with the type, range and shape that JSON has lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from prudent.errors import FileFormatError, InputError

PathLike = str | os.PathLike[str]
_Built = TypeVar("_Built")


@contextmanager
def whole_file(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when all of it is written.

    A reader sees the old file or the new one, never a part; after an error or an interruption nothing is left.
    """
    target = _path(path)
    if not target.parent.is_dir():
        raise InputError(f"path must lie in an existing directory; {str(target.parent)!r} is not one.")
    if target.exists() and not target.is_file():  # a device or a pipe would be replaced by a file
        raise InputError(f"path must name a regular file; {str(target)!r} is none.")
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException as error:
        try:
            temporary.unlink(missing_ok=True)
        finally:  # a second signal may have come just before
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(temporary)):
            raise type(error)(error.errno, error.strerror, str(target)) from error  # users know the target only
        raise


def write_text(path: PathLike, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as stream:
        stream.write(text.encode("utf-8"))


def document_text(kind: str, version: int, content: dict[str, Any]) -> str:
    """Return what the file of a document holds."""
    document = {"format": kind, "version": version, "checksum": _checksum(content), "content": content}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def read_document(path: PathLike, kind: str, version: int, build: Callable[[dict[str, Any]], _Built]) -> _Built:
    """Rebuild what a document describes, refusing files that are foreign, altered, too new or too old."""
    name = str(path)
    source = _path(path)
    try:
        text = source.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode("utf-8")  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:  # bad JSON, bad UTF-8, a number too long, NaN
        raise FileFormatError(f"{name!r} is not readable JSON (truncated or foreign?): {error}.") from error
    if not isinstance(document, dict) or document.get("format") != kind:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise FileFormatError(f"{name!r} is not a {kind} file; its format is {found!r}.")
    held = document.get("version")
    if type(held) is not int or held != version:
        raise FileFormatError(
            f"{name!r} has version {held!r}; this library reads version {version}. Upgrade prudent, or make the object "
            f"again and save it."
        )
    if set(document) != {"format", "version", "checksum", "content"}:
        raise FileFormatError(f"{name!r} does not have the fields of a {kind} file.")
    content = document["content"]
    try:
        intact = isinstance(content, dict) and document["checksum"] == _checksum(content)
    except (ValueError, RecursionError):  # a number beyond the range of floats, lists in lists in lists
        intact = False
    if not intact:
        raise FileFormatError(
            f"{name!r} was altered after it was written: its checksum does not fit. Save the object again."
        )
    try:
        return build(content)
    except (FileFormatError, InputError, RecursionError) as error:  # lists in lists in lists
        raise FileFormatError(f"{name!r} has a field with a wrong value: {error}") from error


class Saved(ABC):
    """An object whose whole state one JSON file holds."""

    _format: ClassVar[str]
    _version: ClassVar[int] = 1

    def save(self, path: PathLike) -> None:
        """Write the state to one JSON file, whole or not at all."""
        write_text(path, document_text(self._format, self._version, self._content()))

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read what was saved; it goes on where the other stopped."""
        return read_document(path, cls._format, cls._version, cls._rebuild)

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Describe the state."""

    @classmethod
    @abstractmethod
    def _rebuild(cls, content: dict[str, Any]) -> Self:
        """Rebuild the object from its description, checking every field."""


def read_toml(path: PathLike) -> dict[str, Any]:
    """Read a TOML file."""
    source = _path(path)
    try:
        return tomllib.loads(source.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # bad TOML, bad UTF-8, lists in lists in lists
        raise FileFormatError(f"{str(path)!r} is not readable TOML: {str(error).rstrip('.')}.") from error


def _checksum(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it contains {name}, which is not a number")


def _path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InputError(f"path must name a file; got {path!r}.")
    if Path(path).is_dir():
        raise InputError(f"path must name a file; {str(path)!r} is a directory.")
    return Path(path)


#: What a file holds of an object, by field.
Document = dict[str, Any]

_Field = TypeVar("_Field")

_LARGEST = sys.float_info.max


class Record:
    """The fields of one object in a document: exactly those expected, each of its type, range and shape.

    Shapes come from what was read before, so that no list is longer than the rest of the
    file says, and nothing is computed from a number that does not fit the others.

    Parameters
    ----------
    content : dict
    name : str
        Of the object, for messages.
    *fields : str
    """

    def __init__(self, content: Any, name: str, *fields: str) -> None:
        if not isinstance(content, dict) or content.keys() != set(fields):
            found = sorted(content) if isinstance(content, dict) else type(content).__name__
            raise FileFormatError(f"{name} must have exactly the fields {sorted(fields)}; got {found}.")
        self._content, self._name = content, name

    def __getitem__(self, field: str) -> Any:
        return self._content[field]

    def typed(self, field: str, kind: type[_Field]) -> _Field:
        """Read a text, a flag, a list or an object."""
        value = self._content[field]
        if type(value) is not kind:
            raise self._wrong(field, f"of type {kind.__name__}")
        return value

    def number(self, field: str, least: float = -_LARGEST, most: float = _LARGEST) -> float:
        """Read a number of a range."""
        value = self._content[field]
        if not _has_shape(value, ()) or not least <= value <= most:
            raise self._wrong(field, f"a number from {least:g} to {most:g}")
        return float(value)

    def count(self, field: str, most: int = 2**53) -> int:
        """Read a whole number that is not negative."""
        value = self.typed(field, int)
        if not 0 <= value <= most:
            raise self._wrong(field, f"a whole number from 0 to {most}")
        return value

    def array(self, field: str, *shape: int | None) -> NDArray[np.float64]:
        """Read finite numbers of a shape, in which None stands for any length."""
        value = self._content[field]
        if not _has_shape(value, shape):
            raise self._wrong(field, f"numbers of shape {shape}")
        return np.array(value, dtype=np.float64).reshape([-1 if length is None else length for length in shape])

    def _wrong(self, field: str, rule: str) -> FileFormatError:
        found = repr(self._content[field])
        shown = found if len(found) <= 80 else f"{found[:77]}..."
        return FileFormatError(f"{self._name}.{field} must be {rule}; got {shown}.")


def _has_shape(value: Any, shape: tuple[int | None, ...]) -> bool:
    if not shape:
        return type(value) in (int, float) and -_LARGEST <= value <= _LARGEST
    first, *rest = shape
    fits = type(value) is list and first in (None, len(value))
    return fits and all(_has_shape(item, tuple(rest)) for item in value)
