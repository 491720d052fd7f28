"""``fit`` on good input: the policy is the one that the library fits."""

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

ARGUMENTS = ("fit", "rows.csv", "--forecast", "f")


@pytest.mark.parametrize("slack", [(), ("--slack", "audit")], ids=["by default", "asked for"])
def test_saves_the_policy_that_the_library_fits(
    command: Callable[..., Any], folder: Path, slack: tuple[str, ...]
) -> None:
    """Outcomes that are given measure the slack."""
    options = ("--outcome", "y", *slack, "--guarantee", "polynomial:2", "--weight", "w", "--salt", "s")
    done = command(*ARGUMENTS, *options, "-o", "new.json", "--json")
    data = columns()
    expected = prudent.RobustPolicy(
        read_problem("problem.toml"), guarantees.Polynomial(2), slack="audit", salt="s"
    ).fit(data["f"], data["y"], sample_weight=data["w"])
    result = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert result["certificate"]["lower"] == pytest.approx(expected.certificate_.lower, abs=1e-12)
    policy = prudent.load("new.json")
    assert policy.salt == "s"
    np.testing.assert_allclose(policy.multipliers_, expected.multipliers_, atol=1e-9)


def test_takes_self_orthogonal_and_says_so(command: Callable[..., Any], folder: Path) -> None:
    done = command(*ARGUMENTS, "-o", "new.json")
    assert done.out.startswith("No --guarantee was given; taken: self-orthogonal.\n")
    assert prudent.load("new.json").guarantee_ == guarantees.SelfOrthogonal()


def test_pure(command: Callable[..., Any], folder: Path) -> None:
    command(*ARGUMENTS, "--pure", "-o", "new.json")
    assert prudent.load("new.json").deterministic


def test_prints_the_policy_to_a_pipe(command: Callable[..., Any], folder: Path) -> None:
    command(*ARGUMENTS, "-o", "new.json")
    assert command(*ARGUMENTS, "-o", "-").out == (folder / "new.json").read_text()
