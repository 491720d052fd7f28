"""From what the studio is asked to what the library is given."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

import prudent
from prudent.problem import problem_from_table


def columns_of(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    return np.array([float(row["forecast"]) for row in rows]), np.array([float(row["y"]) for row in rows])


def problem_of(question: dict[str, Any]) -> prudent.DecisionProblem:
    table = dict(question["problem"])
    space = {"lower": table.pop("lower"), "upper": table.pop("upper")}
    del table["kind"]
    return problem_from_table({**table, "space": space})
