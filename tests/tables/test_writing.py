"""Output that any reader takes back as it was, and duplicates found in little memory."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.tables import DuplicateFinder, OutputColumn, open_output

texts = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6), min_size=1, max_size=20)


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


@settings(max_examples=60, deadline=None)
@given(texts)
def test_any_text_is_read_back(module_folder: Path, cells: list[str]) -> None:
    values = np.array([*cells, None], dtype=object)[:-1]
    for name in ("out.csv", "out.parquet"):
        with open_output(str(module_folder / name)) as output:
            for part in (values[: len(values) // 2], values[len(values) // 2 :]):
                if len(part):
                    output.write([OutputColumn("a,b", part), OutputColumn("n", np.arange(len(part)))])
    with (module_folder / "out.csv").open(newline="", encoding="utf-8") as stream:
        names, *rows = csv.reader(stream, strict=True)
    assert names == ["a,b", "n"]
    assert [cell for cell, _ in rows] == cells
    assert pq.read_table(module_folder / "out.parquet")["a,b"].to_pylist() == cells


def test_bytes_of_csv(tmp_path: Path) -> None:
    """Quotes only where needed; what a spreadsheet would compute stays as it came."""
    with open_output(str(tmp_path / "out.csv")) as output:
        cells = np.array(["plain", "=1+1", "007", 'say "hi"', "a,b", "", " x "], dtype=object)
        output.write([OutputColumn("id", cells), OutputColumn("p", np.array([0.1, 1, 0, 1e-20, 1 / 3, 0.5, 2]))])
    assert (tmp_path / "out.csv").read_text() == (
        'id,p\nplain,0.1\n=1+1,1\n007,0\n"say ""hi""",1e-20\n"a,b",0.3333333333333333\n"",0.5\n x ,2\n'
    )


@pytest.mark.parametrize("rows_at_once", [3, 10, 1000])
def test_duplicates_are_found_whatever_fits_into_memory(tmp_path: Path, rows_at_once: int) -> None:
    rng = np.random.default_rng(0)
    digests = rng.integers(0, 2**63, (200, 2), dtype=np.uint64)
    with DuplicateFinder(str(tmp_path), rows_at_once=rows_at_once) as finder:
        finder.add(digests[:50])
        finder.add(digests[50:])
        assert finder.find() is None
    for earlier, later in [(0, 199), (60, 61), (3, 70)]:
        repeated = digests.copy()
        repeated[later] = repeated[earlier]
        repeated[198] = repeated[5]  # a second pair further down
        with DuplicateFinder(str(tmp_path), rows_at_once=rows_at_once) as finder:
            finder.add(repeated)
            assert finder.find() == ((5, 198) if later == 199 else (earlier, later))


def test_half_of_a_digest_is_not_enough(tmp_path: Path) -> None:
    with DuplicateFinder(str(tmp_path)) as finder:
        finder.add(np.array([[1, 2], [1, 3], [4, 2]], dtype=np.uint64))
        assert finder.find() is None
        finder.add(np.array([[1, 2]], dtype=np.uint64))
        assert finder.find() == (0, 3)
