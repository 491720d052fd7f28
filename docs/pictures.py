"""Make the pictures of the documentation: ``make pictures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

import prudent
from prudent.demo import demonstration_sample
from prudent.plots import plot_policy

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Draw the policy of the demonstration without outcomes."""
    IMAGES.mkdir(exist_ok=True)
    problem, forecasts, _ = demonstration_sample()
    policy = prudent.RobustPolicy(problem, "self-orthogonal").fit(forecasts)
    figure = plot_policy(policy, forecasts).figure
    figure.savefig(IMAGES / "policy.png", dpi=150, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
