"""``stress`` on good input: the table is that of the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prudent
from cli.conftest import columns
from prudent import guarantees
from prudent.problem import read_problem


def test_is_the_table_of_the_library(command: Callable[..., Any], folder: Path) -> None:
    options = ("--forecast", "f", "--outcome", "y", "--policy", "pure.json", "--guarantee", "self-orthogonal")
    done = command("stress", "rows.parquet", *options, "--json")
    data, problem = columns(), read_problem("problem.toml")
    expected = prudent.stress_test(
        {
            "plug-in": prudent.PlugInPolicy(problem),
            "robust": prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack="audit").fit(
                data["f"], data["y"]
            ),
            "safety": prudent.SafetyPolicy(problem),
            "pure": prudent.load("pure.json"),
        },
        data["f"],
        data["y"],
        guarantee=guarantees.SelfOrthogonal(),
        slack="audit",
    )
    result = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert result["names"] == ["plug-in", "robust", "safety", "pure"]
    np.testing.assert_allclose(result["worst"], expected.worst, atol=1e-9)
    np.testing.assert_allclose(result["realised"], expected.realised, atol=1e-12)


def test_slack_may_be_given(command: Callable[..., Any], folder: Path) -> None:
    options = ("--forecast", "f", "--outcome", "y", "--guarantee", "self-orthogonal", "--slack", "0.05", "--json")
    result, data = json.loads(command("stress", "rows.parquet", *options).out), columns()
    problem = read_problem("problem.toml")
    robust = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), slack=0.05).fit(data["f"])
    assert result["worst"][1] == pytest.approx(robust.certificate_.lower, abs=1e-6)


def test_says_what_it_took(command: Callable[..., Any], folder: Path) -> None:
    done = command("stress", "rows.parquet", "--forecast", "f")
    assert done.out.startswith("No --guarantee was given; taken: self-orthogonal.\npolicy")


def test_slack_is_measured_on_periods(command: Callable[..., Any], folder: Path) -> None:
    options = ("--forecast", "f", "--outcome", "y", "--period", "g", "--guarantee", "unbiased", "--json")
    result, data = json.loads(command("stress", "rows.parquet", *options).out), columns()
    problem = read_problem("problem.toml")
    robust = prudent.RobustPolicy(problem, "unbiased", slack="audit").fit(data["f"], data["y"], periods=data["g"])
    rows = prudent.RobustPolicy(problem, "unbiased", slack="audit").fit(data["f"], data["y"])
    assert result["worst"][1] == pytest.approx(robust.certificate_.lower, abs=1e-6)
    assert robust.certificate_.lower != pytest.approx(rows.certificate_.lower, abs=1e-4)
