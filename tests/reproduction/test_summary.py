"""Averages over seeds by hand."""

from __future__ import annotations

import pytest
from reproduction.summary import average, statistics


def test_statistics() -> None:
    found = statistics([1.0, 2.0, 6.0], 2.5)
    assert found == {"mean": 3.0, "sd": pytest.approx(7**0.5), "n": 3, "published": 2.5}
    assert statistics([1.0])["sd"] is None


def test_records_are_averaged_number_by_number_and_parameters_kept() -> None:
    """Also where a chain of records has the name of a parameter."""
    records = [{"bins": [{"bins": 4, "name": "4 bins", "optimum": value}]} for value in (0.1, 0.3)]
    assert average(records) == {
        "bins": [{"bins": 4, "name": "4 bins", "optimum": {"mean": pytest.approx(0.2), "sd": pytest.approx(0.02**0.5)}}]
    }
