"""Find rows with the same key in memory that does not grow.

Sixteen bytes of a digest per row go to a temporary file once there are many; equal ones are found by sorting one
share of all digests after the other. Two different keys share sixteen bytes with probability 2^-128 per pair.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["DuplicateFinder"]

_BYTES = 16
_MEMORY_BYTES = 32 << 20
_ROWS_AT_ONCE = 1 << 20


class DuplicateFinder:
    """Collects digests of keys, then names two rows that share one.

    Parameters
    ----------
    folder : str, optional
        For the temporary file; 16 bytes per row.
    rows_at_once : int
        How many rows are sorted in memory at a time.
    """

    def __init__(self, folder: str | None = None, *, rows_at_once: int = _ROWS_AT_ONCE) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES, dir=folder)  # noqa: SIM115
        self._rows_at_once = rows_at_once
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, digests: NDArray[np.uint64]) -> None:
        """Take digests of the next rows, shape ``(n, 2)``."""
        self._file.write(np.ascontiguousarray(digests, dtype=np.uint64).tobytes())
        self._rows += len(digests)

    def find(self) -> tuple[int, int] | None:
        """Return the first row that repeats an earlier one as ``(earlier, row)``, or None."""
        shares = -(-self._rows // self._rows_at_once)
        found = [pair for share in range(shares) if (pair := self._find_in(share, shares)) is not None]
        return min(found, key=lambda pair: pair[1], default=None)

    def _find_in(self, share: int, shares: int) -> tuple[int, int] | None:
        digests, rows = [], []
        for first, block in self._blocks():
            mine = np.flatnonzero(block[:, 0] % np.uint64(shares) == share)
            digests.append(block[mine])
            rows.append(first + mine)
        held, numbers = np.concatenate(digests), np.concatenate(rows)
        # Sorting by half of the digest leaves next to nothing for the whole one.
        order = np.argsort(held[:, 0])
        same = held[order[1:], 0] == held[order[:-1], 0]
        if not same.any():
            return None
        suspects = np.sort(order[np.append(same, False) | np.append(False, same)])
        held, numbers = held[suspects], numbers[suspects]
        order = np.lexsort((held[:, 1], held[:, 0]))  # stable: equal digests stay in the order of rows
        held, numbers = held[order], numbers[order]
        repeats = np.flatnonzero((held[1:] == held[:-1]).all(axis=1))
        if repeats.size == 0:
            return None
        k = int(repeats[numbers[repeats + 1].argmin()])
        return int(numbers[k]), int(numbers[k + 1])

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        self._file.seek(0)
        first = 0
        while data := self._file.read(_BYTES * self._rows_at_once):
            block = np.frombuffer(data, dtype=np.uint64).reshape(-1, 2)
            yield first, block
            first += len(block)
