"""Made-up files that golden answers are about: one coordinate, three classes, with ids, weights and groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np

N_ROWS = 300
CLASSES = ["mild", "moderate", "severe"]
LINE_PROBLEM = """\
actions = ["low", "mid", "high"]
rewards = [0.2, 0.9, 1.4]
costs = [0.0, 0.3, 0.7]
"""
CLASS_PROBLEM = """\
classes = ["mild", "moderate", "severe"]
[payoffs]
"send home" = [1.0, 0.2, -1.0]
observe = [0.5, 0.8, 0.0]
admit = [-0.2, 0.4, 1.0]
"""


def line() -> tuple[np.ndarray, np.ndarray]:
    """Too certain forecasts of one number between 0 and 1, and outcomes."""
    rng = np.random.default_rng(1)
    truth = rng.beta(2, 2, N_ROWS)
    forecasts = truth**2 / (truth**2 + (1 - truth) ** 2)
    return forecasts.round(6), np.clip(truth + rng.normal(0, 0.1, N_ROWS), 0, 1).round(6)


def classes() -> tuple[np.ndarray, np.ndarray]:
    """Too certain probabilities of three classes, and the classes that came, as numbers."""
    rng = np.random.default_rng(2)
    truth = rng.dirichlet([2.0, 1.2, 0.8], N_ROWS)
    sharpened = truth**1.5
    forecasts = (sharpened / sharpened.sum(axis=1, keepdims=True)).round(6)
    forecasts[:, 0] = (1 - forecasts[:, 1] - forecasts[:, 2]).round(6)
    return forecasts, np.array([rng.choice(3, p=row) for row in truth])


def line_csv(first: int = 0, last: int = N_ROWS) -> str:
    """Rows of one coordinate as a file."""
    forecasts, outcomes = line()
    rng = np.random.default_rng(3)
    weights, groups = rng.integers(1, 4, N_ROWS), rng.integers(0, 60, N_ROWS)
    rows = [f"a{i},{forecasts[i]},{outcomes[i]},{weights[i]},{groups[i]}" for i in range(first, last)]
    return "\n".join(["id,f,y,w,g", *rows]) + "\n"


def class_csv() -> str:
    """Rows of three classes as a file."""
    forecasts, outcomes = classes()
    rows = [f"c{i},{','.join(map(str, forecasts[i]))},{CLASSES[outcomes[i]]}" for i in range(N_ROWS)]
    return "\n".join([f"id,{','.join(f'p_{name}' for name in CLASSES)},y", *rows]) + "\n"


def write_folder(folder: Path) -> None:
    """Write everything that commands read."""
    files = {
        "line.toml": LINE_PROBLEM,
        "line.csv": line_csv(),
        "part-1.csv": line_csv(last=100),
        "part-2.csv": line_csv(first=100),
        "classes.toml": CLASS_PROBLEM,
        "classes.csv": class_csv(),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
