"""The loaders take the published files, and say what is wrong with others."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from reproduction.data_sets import BIKE_SHARING, HOUSING, load_data_sets, read_table

from prudent.errors import FileFormatError, InputError
from reproduction_data import bike_lines, housing_lines, write_stand_in


def test_the_published_files(data_directory: Path) -> None:
    data = load_data_sets(data_directory)
    assert (data.bike.n_rows, data.housing.n_rows) == (731, 20_640)
    assert data.bike.published
    assert data.housing.published
    assert data.bike.columns["cnt"].mean() == pytest.approx(4504.35, abs=0.01)
    assert data.housing.columns["medianHouseValue"].max() == 500_001
    assert data.bike_covariates.shape == (731, 9)
    assert data.housing_covariates.shape == (20_640, 8)
    # The first district as scikit-learn's fetch_california_housing describes it.
    np.testing.assert_allclose(
        data.housing_covariates[0], [8.3252, 41.0, 6.98412698, 1.02380952, 322.0, 2.55555556, 37.88, -122.23], rtol=1e-8
    )


def test_line_endings_and_compression_do_not_matter(data_directory: Path, tmp_path: Path) -> None:
    text = (data_directory / "bike_sharing_day.csv").read_text(encoding="utf-8")
    (tmp_path / "bike_sharing_day.csv").write_bytes(text.replace("\n", "\r\n").encode("utf-8"))
    plain = gzip.decompress((data_directory / "cal_housing.data.gz").read_bytes())
    (tmp_path / "cal_housing.data").write_bytes(plain)
    data = load_data_sets(tmp_path)
    assert data.bike.published
    assert data.housing.published


def test_a_truncated_or_edited_file_is_refused(data_directory: Path, tmp_path: Path) -> None:
    lines = (data_directory / "bike_sharing_day.csv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "bike_sharing_day.csv"
    path.write_text("\n".join(lines[:500]), encoding="utf-8")
    with pytest.raises(FileFormatError, match="499 rows instead of 731"):
        read_table(path, BIKE_SHARING)
    path.write_text("\n".join(lines)[:-40], encoding="utf-8")
    with pytest.raises(FileFormatError, match="row 731"):
        read_table(path, BIKE_SHARING)
    edited = lines[1].replace("0.344167", "0.344168")
    path.write_text("\n".join([lines[0], edited, *lines[2:]]), encoding="utf-8")
    with pytest.raises(FileFormatError, match="rows differ from the published ones"):
        read_table(path, BIKE_SHARING)


def test_other_rows_need_to_be_asked_for(tmp_path: Path) -> None:
    folder = write_stand_in(tmp_path / "data")
    with pytest.raises(FileFormatError, match=r"240 rows instead of 731.*--other-data"):
        load_data_sets(folder)
    data = load_data_sets(folder, other_data=True)
    assert not data.bike.published
    assert not data.housing.published


def replaced(lines: list[str], row: int, column: int, value: str) -> str:
    fields = lines[row].split(",")
    fields[column] = value
    return "\n".join([*lines[:row], ",".join(fields), *lines[row + 1 :]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must start with the columns"),
        ("\n".join(bike_lines()[1:]), "must start with the columns"),
        (bike_lines()[0], "has no rows"),
        ("\n".join(bike_lines()).replace("casual", "tourists"), "must start with the columns"),
        (replaced(bike_lines(), 3, 9, "warm"), "row 3: temp is 'warm'"),
        (replaced(bike_lines(), 3, 9, "nan"), "row 3: temp must be finite; got nan"),
        (replaced(bike_lines(), 5, 1, "2011-02-31"), "row 5: dteday is '2011-02-31'"),
        (replaced(bike_lines(), 7, 15, "1,2"), "row 7: 17 values instead of 16"),
    ],
)
def test_a_wrong_bike_file_is_refused_with_the_reason(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bike_sharing_day.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=message):
        read_table(path, BIKE_SHARING, other_data=True)


def test_a_wrong_housing_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "cal_housing.data"
    path.write_text("\n".join(bike_lines()), encoding="utf-8")
    with pytest.raises(FileFormatError, match="row 1: 16 values instead of 9"):
        read_table(path, HOUSING, other_data=True)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="is not text"):
        read_table(path, HOUSING, other_data=True)
    packed = tmp_path / "cal_housing.data.gz"
    packed.write_bytes(gzip.compress("\n".join(housing_lines()).encode("utf-8"))[:-200])
    with pytest.raises(FileFormatError, match="cannot be decompressed"):
        read_table(packed, HOUSING, other_data=True)


def test_a_missing_folder_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a folder"):
        load_data_sets(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"must hold Bike Sharing .* as bike_sharing_day.csv"):
        load_data_sets(tmp_path)
