"""Fetch a public file once: checked before it is kept, kept whole or not at all."""

from __future__ import annotations

import http.client
import io
import os
import secrets
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prudent.errors import FileFormatError, InputError
from prudent.progress import ProgressLine

__all__ = ["Source", "cache_directory", "download"]

_SECONDS = 30
_BLOCK = 1 << 16
_LARGEST = 1 << 26


@dataclass(frozen=True)
class Source:
    """A member of an archive at a public address."""

    url: str
    archive: Literal["zip", "tar"]
    member: str


def cache_directory(part: str) -> Path:
    """Return a folder for what can be made again: ``PRUDENT_CACHE``, else the user's cache."""
    given = os.environ.get("PRUDENT_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(given) if given else (Path(base) if base else Path.home() / ".cache") / "prudent"
    folder = root / part
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def download(
    source: Source, target: Path, check: Callable[[Path], None], title: str, *, progress: bool = False
) -> None:
    """Fetch an archive, unpack one member, check it, and only then give it its name.

    Parameters
    ----------
    check : callable
        Gets the path of the unpacked file and raises if it is not what it should be.
    """
    content = _unpack(_fetch(source.url, title, target, progress), source)
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        temporary.write_bytes(content)
        check(temporary)
        temporary.replace(target)
    except FileFormatError as error:
        raise FileFormatError(f"what came from {source.url} was refused and not kept: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _fetch(url: str, title: str, target: Path, progress: bool) -> bytes:
    line = ProgressLine(f"downloading {title}, bytes", progress)
    parts: list[bytes] = []
    done = 0
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310  (addresses are fixed in the code)
            expected = int(response.headers.get("Content-Length") or 0)
            while block := response.read(_BLOCK):
                parts.append(block)
                done += len(block)
                line.show(done, max(expected, done))
                if done > _LARGEST:
                    raise FileFormatError(f"{url} sends more than {_LARGEST:,} bytes; this is not the data set.")
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise InputError(
            f"{title} is not in the cache ({target.parent}) and could not be downloaded from {url}: {error}. "
            f"Offline? Fetch it elsewhere, unpack it as {target.name} into a folder, and name the folder with "
            f"--data-dir."
        ) from error
    finally:
        line.close()
    if expected and done != expected:
        raise FileFormatError(f"the download of {title} broke off: {done:,} of {expected:,} bytes came. Try again.")
    return b"".join(parts)


def _unpack(archive: bytes, source: Source) -> bytes:
    try:
        if source.archive == "zip":
            with zipfile.ZipFile(io.BytesIO(archive)) as opened:
                return opened.read(source.member)
        with tarfile.open(fileobj=io.BytesIO(archive)) as bundle:
            member = bundle.extractfile(source.member)
            if member is None:
                raise KeyError(source.member)
            return member.read()
    except (zipfile.BadZipFile, tarfile.TarError, KeyError, EOFError) as error:
        raise FileFormatError(
            f"what came from {source.url} is not a {source.archive} archive with {source.member!r} in it: {error}."
        ) from error
