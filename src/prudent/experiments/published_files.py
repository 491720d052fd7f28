"""What the files of the paper's two data sets look like, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from prudent.experiments.downloads import Source

__all__ = ["BIKE_SHARING", "HOUSING", "PublishedFile"]

_BIKE_COLUMNS = (
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
)
_HOUSING_COLUMNS = (
    "longitude",
    "latitude",
    "housingMedianAge",
    "totalRooms",
    "totalBedrooms",
    "population",
    "households",
    "medianIncome",
    "medianHouseValue",
)
_BIKE_RANGES = {
    "season": (1, 4),
    "yr": (0, 1),
    "mnth": (1, 12),
    "holiday": (0, 1),
    "weekday": (0, 6),
    "workingday": (0, 1),
    "weathersit": (1, 4),
    "temp": (0, 1),
    "atemp": (0, 1),
    "hum": (0, 1),
    "windspeed": (0, 1),
    "casual": (0, math.inf),
    "registered": (0, math.inf),
}
_HOUSING_RANGES = {
    "longitude": (-125, -114),
    "latitude": (32, 43),
    "housingMedianAge": (0, 200),
    "totalRooms": (1, math.inf),
    "totalBedrooms": (1, math.inf),
    "population": (1, math.inf),
    "households": (1, math.inf),
    "medianIncome": (0, 100),
    "medianHouseValue": (0, math.inf),
}


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
    ranges : mapping of column to smallest and largest value
    n_rows : int
    checksum : str
        SHA-256 of the values as little-endian doubles, row by row; a date counts as its day number.
    source : Source
    """

    title: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    header: bool
    ranges: Mapping[str, tuple[float, float]]
    n_rows: int
    checksum: str
    source: Source


BIKE_SHARING = PublishedFile(
    "Bike Sharing (UCI, daily)",
    ("bike_sharing_day.csv",),
    _BIKE_COLUMNS,
    True,
    _BIKE_RANGES,
    731,
    "f6a2851633aafd43618001c20ddd992ef27603ea33ba0ea282db37d0c0fd616b",
    Source("https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip", "zip", "day.csv"),
)
HOUSING = PublishedFile(
    "California Housing",
    ("cal_housing.data", "cal_housing.data.gz"),
    _HOUSING_COLUMNS,
    False,
    _HOUSING_RANGES,
    20_640,
    "a2f4f55ff91c67e60391318ea4d61d247d09f8fef119ec6f44a1eb727d7f1f7b",
    Source("https://ndownloader.figshare.com/files/5976036", "tar", "CaliforniaHousing/cal_housing.data"),
)
