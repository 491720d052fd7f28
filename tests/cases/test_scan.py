"""Which tables are taken, and how their columns are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent import guarantees
from prudent.errors import InputError

ROWS = {"p": [0.5, 0.25], "q": [0.5, 0.75], "y": [1, 0]}


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "dask", "ibis", "dict"])
def test_tables_of_other_engines_are_refused(kind: str) -> None:
    table: Any = ROWS
    if kind in ("pandas", "dask"):
        table = pytest.importorskip("pandas").DataFrame(ROWS)
    if kind == "pyarrow":
        table = pa.table(ROWS)
    if kind == "dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=1)
    if kind == "ibis":
        table = pytest.importorskip("ibis").memtable(pa.table(ROWS))
    with pytest.raises(InputError, match=r"table must be a DuckDB relation, a Polars LazyFrame, a Spark DataFrame, or"):
        prudent.scan(table, "p")


def test_frames_of_polars_may_be_eager() -> None:
    assert prudent.scan(pl.DataFrame(ROWS), "p").engine == "polars"


def test_labels_in_parquet_by_index_or_as_they_are_written(tmp_path: Path) -> None:
    """Numbers are indices of classes with names, as in memory."""
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table(ROWS), path)
    space = prudent.Simplex(2, classes=["a", "b"])
    named = {"forecasts": ["p", "q"], "outcomes": "y"}
    found = prudent.audit(space, prudent.scan(path, **named), guarantee=guarantees.Unbiased()).estimates
    forecasts = np.array([ROWS["p"], ROWS["q"]]).T
    expected = prudent.audit(space, forecasts, np.array(ROWS["y"]), guarantee=guarantees.Unbiased()).estimates
    np.testing.assert_allclose(found, expected, atol=1e-15)
    pq.write_table(pa.table({**ROWS, "y": [["a", "b"][label] for label in ROWS["y"]]}), path)
    found = prudent.audit(space, prudent.scan(path, **named), guarantee=guarantees.Unbiased()).estimates
    np.testing.assert_allclose(found, expected, atol=1e-15)
