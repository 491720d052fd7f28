"""What every table can do: hand out chunks of its columns as NumPy arrays, and say where a cell stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray
from prudent.errors import InputError
from prudent.tables.cells import BadCellError, to_numbers, to_values

__all__ = ["Chunk", "Table"]

_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some consecutive rows.

    Attributes
    ----------
    first : int
        Rows of the table before these.
    numbers : array of shape (n, k)
        The columns asked for as numbers; NaN only in columns that may be missing.
    values : tuple of arrays of shape (n,)
        The columns asked for as they are: integers, floats, or objects (text, True and False, None).
    """

    first: int
    numbers: FloatArray
    values: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        return len(self.numbers)


class Table(ABC):
    """Named columns, read in chunks so that no more than one chunk is in memory.

    A kind of table says what its columns are and yields Arrow arrays; all checks of cells are here.

    Parameters
    ----------
    name : str
        For messages.
    columns : sequence of str
    size : int or None
        How much there is to read, in units of ``done``; None if nobody knows.
    """

    def __init__(self, name: str, columns: Sequence[str], size: int | None = None) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.size = size
        self.done = 0

    def chunks(
        self, numbers: Sequence[str], values: Sequence[str] = (), *, missing: Collection[str] = ()
    ) -> Iterator[Chunk]:
        """Read columns from the first row to the last.

        Parameters
        ----------
        numbers : sequence of str
            Columns of finite numbers.
        values : sequence of str
            Columns of ids, groups or class labels.
        missing : collection of str
            Those of them in which cells may be empty.
        """
        for column in (*numbers, *values):
            self.require(column)
        first = 0
        for arrays in self._arrays(list(dict.fromkeys((*numbers, *values)))):
            n = len(next(iter(arrays.values())))
            if n == 0:
                continue
            table = np.empty((n, len(numbers)))
            for j, column in enumerate(numbers):
                table[:, j] = self._checked(to_numbers, arrays, column, column in missing, first)
            held = tuple(self._checked(to_values, arrays, column, column in missing, first) for column in values)
            yield Chunk(first, table, held)
            first += n
        if first == 0:
            raise InputError(f"{self.name}: there are no rows below the column names.")

    def parts(self, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield columns as Arrow arrays, unchecked, with the number of rows before them: for a first look."""
        for column in columns:
            self.require(column)
        first = 0
        for arrays in self._arrays(list(dict.fromkeys(columns))):
            yield first, arrays
            first += len(next(iter(arrays.values())))

    def require(self, column: str) -> None:
        """Check that a column is there, once."""
        count = self.columns.count(column)
        if count == 1:
            return
        if count > 1:
            raise InputError(f"{self.name}: {count} columns are named {column!r}; names must differ.")
        hint = self._about_missing()
        if not hint:
            near = get_close_matches(column, self.columns, n=1, cutoff=0.6)
            more = ", ..." if len(self.columns) > _SHOWN else ""
            hint = f"did you mean {near[0]!r}? " if near else ""
            hint += f"there are {', '.join(repr(name) for name in self.columns[:_SHOWN])}{more}"
        raise InputError(f"{self.name}: there is no column {column!r}; {hint}.")

    def at(self, row: int, *columns: str) -> str:
        """Say where a cell is; the first row is 0 here and 1 for people."""
        line = self._line(row)
        place = f"{self.name}, row {row + 1:,}" + (f" (line {line:,})" if line else "")
        if not columns:
            return place
        named = ", ".join(repr(column) for column in columns)
        return f"{place}, {'column' if len(columns) == 1 else 'columns'} {named}"

    @abstractmethod
    def _arrays(self, columns: list[str]) -> Iterator[dict[str, Any]]:
        """Yield Arrow arrays of the columns, some rows at a time."""

    def _line(self, row: int) -> int | None:
        """The line of a text file on which a row starts, if it can be found out."""
        return None

    def _about_missing(self) -> str:
        """What else may be wrong when a column is not there."""
        return ""

    def _checked(self, convert: Any, arrays: dict[str, Any], column: str, may_be_missing: bool, first: int) -> Any:
        try:
            return convert(arrays[column], may_be_missing)
        except BadCellError as error:
            if error.row is None:
                raise InputError(f"{self.name}, column {column!r}: {error}.") from None
            raise InputError(f"{self.at(first + error.row, column)}: {error}.") from None
