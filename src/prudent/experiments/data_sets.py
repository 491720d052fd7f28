"""The paper's two data sets: where they are looked for, and what is refused.

A folder given by the user comes first, then the cache, then the public source.
Values are checked and not bytes: line endings, compression and archives
differ between copies of the same data set.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import FileFormatError, InputError
from prudent.experiments.downloads import cache_directory, download
from prudent.experiments.published_files import BIKE_SHARING, HOUSING, PublishedFile

__all__ = ["DataSet", "DataSets", "load_data_sets", "read_table"]

#: What the paper lists: no year and no counts.
_BIKE_COVARIATES = ["season", "mnth", "weekday", "holiday", "workingday", "weathersit", "temp", "hum", "windspeed"]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Values of one file.

    Attributes
    ----------
    file : PublishedFile
    columns : mapping of name to array of shape (n,)
    published : bool
        True if these are the published values, all of them.
    checksum : str
    """

    file: PublishedFile
    columns: dict[str, FloatArray]
    published: bool
    checksum: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, eq=False)
class DataSets:
    """The two data sets, with the covariates of the experiments."""

    bike: DataSet
    housing: DataSet

    @property
    def bike_covariates(self) -> FloatArray:
        """Season, month, weekday, holiday, working day, weather state, temperature, humidity, wind."""
        return np.column_stack([self.bike.columns[name] for name in _BIKE_COVARIATES])

    @property
    def housing_covariates(self) -> FloatArray:
        """The eight features of scikit-learn: counts become ratios per household."""
        given = self.housing.columns
        homes = given["households"]
        return np.column_stack(
            [
                given["medianIncome"],
                given["housingMedianAge"],
                given["totalRooms"] / homes,
                given["totalBedrooms"] / homes,
                given["population"],
                given["population"] / homes,
                given["latitude"],
                given["longitude"],
            ]
        )


def load_data_sets(
    directory: str | os.PathLike[str] | None = None, *, other_data: bool = False, progress: bool = False
) -> DataSets:
    """Find, read and check both data sets.

    Parameters
    ----------
    directory : path, optional
        Folder with ``bike_sharing_day.csv`` and ``cal_housing.data`` (or ``.data.gz``). Without it the cache is
        used, and filled from the public sources where it is empty.
    other_data : bool
        Accept files from ``directory`` with the right columns but other rows than the published ones.
    progress : bool
        Show downloads on a terminal.
    """
    if directory is None and other_data:
        raise InputError("other_data speaks of files in a folder of yours: give that folder as directory (--data-dir).")
    found = [
        _from_folder(Path(directory), file, other_data) if directory is not None else _from_cache(file, progress)
        for file in (BIKE_SHARING, HOUSING)
    ]
    return DataSets(*found)


def read_table(path: Path, file: PublishedFile, *, other_data: bool = False) -> DataSet:
    """Read a file and check columns, numbers, ranges, the number of rows and the values."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(f"{path.name!r} cannot be decompressed ({error}): truncated or not gzip?") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path.name!r} is not text: {error}.") from error
    table = _parse(path.name, text, file)
    checksum = hashlib.sha256(np.ascontiguousarray(table, dtype="<f8").tobytes()).hexdigest()
    published = checksum == file.checksum
    if not published and not other_data:
        reason = f"it has {len(table):,} rows instead of {file.n_rows:,}" if len(table) != file.n_rows else ""
        raise FileFormatError(
            f"{path.name!r} does not hold the published values of {file.title}: "
            f"{reason or 'rows differ from the published ones'}. Was it truncated or edited? "
            f"Get it from {file.source.url}, or say other_data (--other-data) to use it as it is."
        )
    return DataSet(file, dict(zip(file.columns, table.T.copy(), strict=True)), published, checksum)


def _from_folder(folder: Path, file: PublishedFile, other_data: bool) -> DataSet:
    if not folder.is_dir():
        raise InputError(f"directory (--data-dir) must be a folder; {str(folder)!r} is not one.")
    for name in file.names:
        if (folder / name).is_file():
            return read_table(folder / name, file, other_data=other_data)
    raise InputError(f"{str(folder)!r} must hold {file.title} as {' or '.join(file.names)}; there is no such file.")


def _from_cache(file: PublishedFile, progress: bool) -> DataSet:
    path = cache_directory("data") / file.names[0]

    def check(candidate: Path) -> None:
        read_table(candidate, file)

    if path.is_file():
        try:
            return read_table(path, file)
        except FileFormatError:  # damaged since it was kept: fetched again, checked again
            pass
    download(file.source, path, check, file.title, progress=progress)
    return read_table(path, file)


def _parse(name: str, text: str, file: PublishedFile) -> FloatArray:
    lines = [line for line in csv.reader(text.splitlines()) if line]
    if file.header:
        if not lines or tuple(lines[0]) != file.columns:
            shown = ",".join(lines[0])[:120] if lines else ""
            raise FileFormatError(f"{name!r} must start with the columns {','.join(file.columns)}; got {shown!r}.")
        lines = lines[1:]
    if not lines:
        raise FileFormatError(f"{name!r} has no rows.")
    table = np.empty((len(lines), len(file.columns)))
    for number, line in enumerate(lines, start=1):
        if len(line) != len(file.columns):
            raise FileFormatError(
                f"{name!r}, row {number}: {len(line)} values instead of {len(file.columns)}. Was the file truncated?"
            )
        for j, (column, value) in enumerate(zip(file.columns, line, strict=True)):
            read: Callable[[str], float] = _day if column == "dteday" else float
            try:
                table[number - 1, j] = read(value)
            except ValueError as error:
                raise FileFormatError(f"{name!r}, row {number}: {column} is {value!r}, not a number or day.") from error
    _check_ranges(name, table, file)
    return table


def _check_ranges(name: str, table: FloatArray, file: PublishedFile) -> None:
    for column, (low, high) in file.ranges.items():
        values = table[:, file.columns.index(column)]
        wrong = np.flatnonzero(~((values >= low) & (values <= high) & np.isfinite(values)))
        if wrong.size:
            raise FileFormatError(
                f"{name!r}, row {wrong[0] + 1}: {column} must lie in [{low:g}, {high:g}]; got {values[wrong[0]]:g}."
            )
    if "cnt" in file.columns:
        parts = table[:, [file.columns.index(column) for column in ("casual", "registered", "cnt")]]
        wrong = np.flatnonzero(~(parts[:, 0] + parts[:, 1] == parts[:, 2]))
        if wrong.size:
            raise FileFormatError(f"{name!r}, row {wrong[0] + 1}: cnt must be casual plus registered.")


def _day(text: str) -> float:
    return float(date.fromisoformat(text).toordinal())
