"""The paper's two data sets, read from a folder and checked against the published values.

The checksum is that of the values and not of the bytes: line endings and
compression differ between copies of the same data set.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import FileFormatError, InputError

__all__ = ["BIKE_SHARING", "HOUSING", "DataSet", "DataSets", "PublishedFile", "load_data_sets", "read_table"]

#: What the paper lists: no year and no counts.
_BIKE_COVARIATES = ["season", "mnth", "weekday", "holiday", "workingday", "weathersit", "temp", "hum", "windspeed"]


@dataclass(frozen=True)
class PublishedFile:
    """What a data set looks like as a file.

    Attributes
    ----------
    title : str
    names : tuple of str
        File names looked for in a folder.
    columns : tuple of str
    header : bool
        True if the first line names the columns.
    n_rows : int
    checksum : str
        SHA-256 of the values as little-endian doubles, row by row; a date counts as its day number.
    source : str
        Where to get it.
    """

    title: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    header: bool
    n_rows: int
    checksum: str
    source: str


BIKE_SHARING = PublishedFile(
    "Bike Sharing (UCI, daily)",
    ("bike_sharing_day.csv",),
    (
        "instant",
        "dteday",
        "season",
        "yr",
        "mnth",
        "holiday",
        "weekday",
        "workingday",
        "weathersit",
        "temp",
        "atemp",
        "hum",
        "windspeed",
        "casual",
        "registered",
        "cnt",
    ),
    True,
    731,
    "f6a2851633aafd43618001c20ddd992ef27603ea33ba0ea282db37d0c0fd616b",
    "https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip (day.csv)",
)
HOUSING = PublishedFile(
    "California Housing",
    ("cal_housing.data", "cal_housing.data.gz"),
    (
        "longitude",
        "latitude",
        "housingMedianAge",
        "totalRooms",
        "totalBedrooms",
        "population",
        "households",
        "medianIncome",
        "medianHouseValue",
    ),
    False,
    20_640,
    "a2f4f55ff91c67e60391318ea4d61d247d09f8fef119ec6f44a1eb727d7f1f7b",
    "https://ndownloader.figshare.com/files/5976036 (CaliforniaHousing/cal_housing.data)",
)


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


def load_data_sets(directory: str | os.PathLike[str], *, other_data: bool = False) -> DataSets:
    """Find, read and check both data sets.

    Parameters
    ----------
    directory : path
        Folder with ``bike_sharing_day.csv`` and ``cal_housing.data`` (or ``.data.gz``).
    other_data : bool
        Accept files with the right columns but other rows than the published ones.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise InputError(
            f"--data-dir must be a folder; {str(folder)!r} is not one. It holds {BIKE_SHARING.names[0]}, "
            f"from {BIKE_SHARING.source}, and {HOUSING.names[0]}, from {HOUSING.source}."
        )
    return DataSets(*(_find(folder, file, other_data) for file in (BIKE_SHARING, HOUSING)))


def read_table(path: Path, file: PublishedFile, *, other_data: bool = False) -> DataSet:
    """Read a file and check columns, numbers, the number of rows and the values."""
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
            f"Get it from {file.source}, or use it as it is with --other-data."
        )
    return DataSet(file, dict(zip(file.columns, table.T.copy(), strict=True)), published, checksum)


def _find(folder: Path, file: PublishedFile, other_data: bool) -> DataSet:
    for name in file.names:
        if (folder / name).is_file():
            return read_table(folder / name, file, other_data=other_data)
    raise InputError(
        f"{str(folder)!r} must hold {file.title} as {' or '.join(file.names)}; there is no such file. "
        f"Get it from {file.source}."
    )


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
            try:
                table[number - 1, j] = date.fromisoformat(value).toordinal() if column == "dteday" else float(value)
            except ValueError as error:
                raise FileFormatError(f"{name!r}, row {number}: {column} is {value!r}, not a number or day.") from error
    if not np.isfinite(table).all():
        row, j = np.argwhere(~np.isfinite(table))[0]
        raise FileFormatError(f"{name!r}, row {row + 1}: {file.columns[j]} must be finite; got {table[row, j]}.")
    return table
