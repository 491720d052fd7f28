"""Class labels of lazy tables are those of memory, whatever type names and column have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import prudent
from prudent import Simplex, guarantees
from prudent.errors import InputError

FORECASTS = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.3, 0.3, 0.4]])


def audited(labels: Any, space: Simplex, engine: str, **options: Any) -> np.ndarray:
    frame = pl.DataFrame({f"p{j}": FORECASTS[:, j] for j in range(3)} | {"y": labels})
    table: Any = frame.lazy()
    if engine == "duckdb":
        connection = duckdb.connect()
        connection.register("frame", frame.to_arrow())
        table = connection.sql("SELECT * FROM frame")
    columns = prudent.scan(table, ["p0", "p1", "p2"], "y", **options)
    return prudent.audit(space, columns, guarantee=guarantees.Unbiased()).estimates


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (None, [0, 1, 2, 0]),
        (None, [0.0, 1.0, 2.0, 0.0]),
        (None, [True, False, True, True]),
        ((2.0, 1.0, 0.0), [0, 1, 2, 0]),
        ((2.0, 1.0, 0.0), [0.0, 1.0, 2.0, 0.0]),
        (("a", 0, "b"), [0, 0, 0, 0]),
        ((1.0, 2.0, 3.0), [1, 2, 1, 2]),
        ((1, 2, 3), [1.0, 2.0, 3.0, 2.0]),
        ((2**60, 2**60 + 1, 0), [2**60 + 1, 2**60, 0, 0]),
        ((2, True, 0), [True, False, True, True]),
        (("a", "b", "c"), [0, 1, 2, 0]),
        (("a", "b", "c"), ["c", "b", "a", "c"]),
        (("1", "0", "2"), [1, 0, 2, 2]),  # indices, in memory too: no class is a number
    ],
    ids=str,
)
def test_labels_mean_what_they_mean_in_memory(engine: str, classes: Any, labels: Any) -> None:
    space = Simplex(3, classes=classes)
    expected = prudent.audit(space, FORECASTS, labels, guarantee=guarantees.Unbiased()).estimates
    np.testing.assert_allclose(audited(labels, space, engine), expected, atol=1e-14)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("classes", "labels", "words"),
    [
        (("a", 0, "b"), [0, 1, 0, 0], "1 whose outcome"),
        ((1, 2, 3), [1.5, 1.0, 2.0, 3.0], "1 whose outcome"),
        ((1, 2, 3), ["1", "2", "3", "1"], "holds text"),
        (("a", "b", "c"), ["a", "b", "x", None], "2 whose outcome"),
        (None, ["0", "1", "2", "0"], "holds text"),
    ],
    ids=str,
)
def test_labels_that_memory_refuses(engine: str, classes: Any, labels: Any, words: str) -> None:
    space = Simplex(3, classes=classes)
    with pytest.raises(InputError):
        prudent.audit(space, FORECASTS, labels, guarantee=guarantees.Unbiased())
    with pytest.raises(InputError, match=words):
        audited(labels, space, engine)


def test_floats_that_are_nan_are_missing() -> None:
    labels = [0.0, float("nan"), 2.0, 0.0]
    known = [0, 2, 3]
    expected = prudent.audit(Simplex(3), FORECASTS[known], [0, 2, 0], guarantee=guarantees.Unbiased()).estimates
    np.testing.assert_allclose(audited(labels, Simplex(3), "duckdb", missing="drop"), expected, atol=1e-14)


@pytest.mark.parametrize("classes", [("1", "0", "2"), (1, 0, 2), (1.0, 0.0, 2.0)], ids=str)
def test_labels_of_csv_are_read_as_the_command_line_reads_them(tmp_path: Path, classes: Any) -> None:
    labels = [1, 0, 2, 2]
    lines = [",".join(map(str, [*row, label])) for row, label in zip(FORECASTS.tolist(), labels, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["p0,p1,p2,y", *lines]) + "\n")
    columns = prudent.scan(tmp_path / "rows.csv", ["p0", "p1", "p2"], "y")
    found = prudent.audit(Simplex(3, classes=classes), columns, guarantee=guarantees.Unbiased()).estimates
    expected = prudent.audit(Simplex(3), FORECASTS, [0, 1, 2, 2], guarantee=guarantees.Unbiased()).estimates
    np.testing.assert_allclose(found, expected, atol=1e-14)
