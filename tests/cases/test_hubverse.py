"""Hubverse files: rows per task and id become rows per task; quantiles as arrays; what is not one is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.errors import InputError

LEVELS = ["0.025", "0.5", "0.975"]


def long(*rows: tuple[str, ...]) -> str:
    return "".join(",".join(row) + "\n" for row in (("location", "output_type", "output_type_id", "value"), *rows))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tasks, not in the order of their names, with quantiles in any order, a median, and class probabilities."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for location, low in (("US", 10.0), ("01", 2.0)):
        rows += [(location, "quantile", level, str(low + 10 * float(level))) for level in reversed(LEVELS)]
        rows += [
            (location, "median", "NA", str(low)),
            (location, "pmf", "up", "0.25"),
            (location, "pmf", "down", "0.75"),
        ]
    Path("hub.csv").write_text(long(*rows))
    return tmp_path


def test_quantiles_are_arrays_in_the_order_of_levels_and_tasks(hub: Path) -> None:
    found = prudent.read_hubverse("hub.csv")
    assert found.ids == (0.025, 0.5, 0.975)
    assert found.tasks["location"].tolist() == ["US", "01"]
    np.testing.assert_array_equal(found.values, [[10.25, 15.0, 19.75], [2.25, 7.0, 11.75]])


def test_parquet_has_the_same(hub: Path) -> None:
    rows = [line.split(",") for line in Path("hub.csv").read_text().splitlines()]
    columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
    columns["value"] = tuple(map(float, columns["value"]))
    pq.write_table(pa.table({name: list(cells) for name, cells in columns.items()}), "hub.parquet")
    one, other = prudent.read_hubverse("hub.csv"), prudent.read_hubverse("hub.parquet")
    np.testing.assert_array_equal(one.values, other.values)
    assert one.ids == other.ids


def test_a_level_that_a_task_does_not_have(hub: Path) -> None:
    Path("hub.csv").write_text(
        long(("a", "quantile", "0.5", "1"), ("b", "quantile", "0.5", "2"), ("b", "quantile", "0.1", "0"))
    )
    np.testing.assert_array_equal(prudent.read_hubverse("hub.csv").values, [[np.nan, 1], [0, 2]])


def test_class_probabilities_are_cases(hub: Path) -> None:
    space = prudent.Simplex(2, classes=["up", "down"])
    cases = prudent.scan("hub.csv", ["up", "down"], ids="location", hubverse="pmf")
    rows = cases.on(space).in_memory()
    np.testing.assert_array_equal(rows.forecasts, [[0.25, 0.75]] * 2)
    assert cases.table.project("location").fetchall() == [("US",), ("01",)]
    found = prudent.read_hubverse("hub.csv", "pmf")
    assert found.ids == ("up", "down")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (long(("a", "sample", "1", "0.5")), "rows of output_type 'quantile' must have 1 to 1,000 different"),
        ("f,y\n0.5,1\n", "there is no column 'output_type'"),
        (long(("a", "quantile", "0.5", "1"), ("a", "quantile", "0.5", "2")), "row 2 .*already in hub.csv, row 1"),
        (long(("a", "quantile", "0.5", "much")), "hub.csv, task 1, column '0.5': 'much' is not a number"),
        (long(("a", "quantile", "", "1")), "different output_type_id that are no names"),
    ],
    ids=["no rows", "no columns", "twice", "text", "no level"],
)
def test_what_cannot_be_read(hub: Path, content: str, words: str) -> None:
    Path("hub.csv").write_text(content)
    with pytest.raises(InputError, match=words):
        prudent.read_hubverse("hub.csv")
