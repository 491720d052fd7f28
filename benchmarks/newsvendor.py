"""Nonlinear utilities of numbers on coarse and fine grids: ``python -m benchmarks.newsvendor --data-dir DIR``.

Bikes to order, from point forecasts and their residuals on random splits; beds to staff, from quantiles of two seasons
for the next. Realised utilities are those of the function itself at the outcome, whatever the grid. The result goes to
``results/newsvendor.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict

import prudent
from benchmarks.environment import describe_environment
from prudent import guarantees
from prudent.cases.cases import first_days

__all__ = ["BINS", "Newsvendor", "Row", "beds", "bikes", "decided", "references", "write"]

Array = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results" / "newsvendor.md"
BINS = (6, 11, 21, 41, 81)
_SPLITS = 3
_MOST_ORTHOGONAL = 41
_LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
_COLUMNS = (
    "season",
    "yr",
    "mnth",
    "holiday",
    "weekday",
    "workingday",
    "weathersit",
    "temp",
    "atemp",
    "hum",
    "windspeed",
)

_HEAD = """# Orders and beds: nonlinear utility on coarse and fine grids

`python -m benchmarks.newsvendor --data-dir DIR`, {seconds:.0f} s in all.
{environment}.

Utility is `price * min(amount, outcome) - cost * amount`. Rules are fitted on past forecasts with outcomes and decide
on others; *certificate* is what they promise there, *realised* the mean utility of the function itself.
*Follow*: best action for the forecast. *Advice*: what `prudent.advise` names. *Unbiased*, *Cumulative*, *orthogonal*,
*utility*: `RobustPolicy` with `slack="audit"` under `Unbiased()`, `Cumulative()`, `Cumulative(orthogonal=True)` and
`UtilityCalibrated(problem)`. Tests of `Unbiased` and `Cumulative` are constant, so these rules are one mixture for all
forecasts. Orthogonal tests differ between rows; with 81 points they take minutes and are left out. With more points
confidence is shared among more moments, so that the certificates of `Cumulative` still fall a little.
"""
_TABLE = """
| points | grid hides | follow | advice: verdict | certificate | realised | {} |
|---|---|---|---|---|---|{}|"""
_KINDS = ("Unbiased", "Cumulative", "orthogonal", "utility")


@dataclass(frozen=True, eq=False)
class Newsvendor:
    """Forecasts of some form with outcomes, to fit on and to decide on.

    Attributes
    ----------
    price, cost : float
    amounts : tuple of float
    top : float
        End of the grid.
    grid : callable
        Returns so many points.
    fit, test : dicts
        What :func:`prudent.forecasts_from` takes.
    past, future : arrays
        Outcomes.
    periods : sequence or None
        Of the past.
    """

    price: float
    cost: float
    amounts: tuple[float, ...]
    grid: Callable[[int], Array]
    fit: dict[str, Array]
    test: dict[str, Array]
    past: Array
    future: Array
    periods: Sequence[object] | None = None

    def utility(self, amount: float, outcome: float) -> float:
        """The function itself."""
        return self.price * min(amount, outcome) - self.cost * amount

    def earned(self, amounts: Array) -> Array:
        """Utility of amounts (one per row, or the same columns for all) at the outcomes to decide on."""
        future = self.future.reshape(-1, *[1] * (amounts.ndim - 1))
        return self.price * np.minimum(amounts, future) - self.cost * amounts

    def problem(self, n_points: int) -> prudent.DecisionProblem:
        """The decision on a grid."""
        return prudent.DecisionProblem.from_utility(self.utility, self.amounts, self.grid(n_points), amounts=True)


@dataclass(frozen=True)
class Row:
    """Results on one grid; pairs are certificate and realised."""

    n_points: int
    hidden: float
    follow: float
    verdict: str
    advice: tuple[float, float]
    robust: dict[str, tuple[float, float]]


def bikes(directory: Path, seed: int = 0) -> Newsvendor:
    """Daily counts, cross-fitted on seven tenths at random, decided on the others; price 5, cost 2."""
    table = np.genfromtxt(directory / "bike_sharing_day.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    features, counts = np.column_stack([table[name] for name in _COLUMNS]), table["cnt"].astype(float)
    order = np.random.default_rng(seed).permutation(len(counts))
    past, future = np.split(order, [len(order) * 7 // 10])
    forest = RandomForestRegressor(200, min_samples_leaf=3, random_state=0)
    points = cross_val_predict(forest, features[past], counts[past], cv=5)
    others = forest.fit(features[past], counts[past]).predict(features[future])
    residuals = counts[past] - points
    return Newsvendor(
        5.0,
        2.0,
        tuple(np.linspace(300, 9000, 30).tolist()),
        lambda n: np.linspace(0, 9000, n),
        {"points": points, "residuals": residuals},
        {"points": others, "residuals": residuals},
        counts[past],
        counts[future],
    )


def beds(directory: Path, model: str = "FluSight-ensemble") -> Newsvendor:
    """Flu admissions a week per 100,000 people: beds worth 3 if needed and 1 to staff; two seasons, then the third."""
    import pandas as pd

    table = pd.read_csv(directory / "field" / "flusight_admissions.csv.gz", dtype={"location": str})
    people = (table["observed"] / table["rate_per_100k"]).groupby(table["location"]).median()  # in 100,000
    table = table[table["model"] == model]
    quantiles = table[[f"q{level}" for level in _LEVELS]].div(table["location"].map(people), axis=0).to_numpy()
    rates, dates = table["rate_per_100k"].to_numpy(), table["reference_date"].to_numpy()
    past = dates < "2025-08-01"
    # Rates are skewed: points and amounts are closer where they are small.
    return Newsvendor(
        3.0,
        1.0,
        tuple((40 * np.linspace(0, 1, 30) ** 2).tolist()),
        lambda n: 40 * np.linspace(0, 1, n) ** 2,
        {"quantiles": quantiles[past], "levels": np.array(_LEVELS)},
        {"quantiles": quantiles[~past], "levels": np.array(_LEVELS)},
        rates[past],
        rates[~past],
        first_days(dates[past].tolist(), "month"),
    )


def references(case: Newsvendor) -> dict[str, float]:
    """Realised without a grid: the critical fractile of the forecast, its centre, the best amount for all, the best."""
    level = 1 - case.cost / case.price
    if "points" in case.test:
        centre = case.test["points"]
        fractile = centre + np.quantile(case.test["residuals"], level)
    else:
        known = case.test["quantiles"]
        fractile = np.array([np.interp(level, case.test["levels"], row) for row in known])
        centre = known[:, known.shape[1] // 2]
    single = case.earned(np.array([case.amounts])).mean(axis=0).max()
    amounts = {"critical fractile": fractile, "centre of the forecast": centre}
    found = {name: float(case.earned(each).mean()) for name, each in amounts.items()}
    return found | {"best single amount": float(single), "outcome known": float(case.earned(case.future).mean())}


def decided(case: Newsvendor, n_points: int, kinds: Sequence[str] = _KINDS) -> Row:
    """Fit rules on one grid, and decide."""
    problem = case.problem(n_points)
    past, future = (prudent.forecasts_from(problem, **given).probabilities for given in (case.fit, case.test))
    cases = prudent.Cases(past, case.past, periods=case.periods)

    def realised(policy: prudent.policies.Policy) -> float:
        return float((policy.predict_proba(future) * case.earned(np.array([case.amounts]))).sum(axis=1).mean())

    families = {
        "Unbiased": guarantees.Unbiased(),
        "Cumulative": guarantees.Cumulative(),
        "orthogonal": guarantees.Cumulative(orthogonal=True),
        "utility": guarantees.UtilityCalibrated(problem),
    }
    robust = {}
    for kind in kinds:
        policy = prudent.RobustPolicy(problem, families[kind], slack="audit").fit(cases)
        robust[kind] = (policy.certify(future).lower, realised(policy))
    advice = prudent.advise(problem, cases)
    found = (advice.for_cases(future).lower, realised(advice.policy))
    hidden = problem.discretization.error
    return Row(n_points, hidden, realised(prudent.PlugInPolicy(problem)), advice.verdict.kind.value, found, robust)


def write(directory: Path, started: float) -> None:
    """Compute all tables and write the page."""
    lines = []
    for seed in range(_SPLITS):
        title = f"Bikes: price 5, cost 2, 30 orders from 300 to 9,000, split {seed}"
        lines += _section(title, bikes(directory, seed), 0)
    text = "Beds a week per 100,000 people: worth 3, cost 1, 30 amounts, FluSight ensemble, 2023-25, then 2025-26"
    lines += _section(text, beds(directory), 2)
    environment = ", ".join(f"{name} {value}" for name, value in describe_environment().items())
    head = _HEAD.format(seconds=time.perf_counter() - started, environment=environment)
    RESULTS.write_text("\n".join([head, *lines, ""]), encoding="utf-8")


def _section(title: str, case: Newsvendor, digits: int) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield (
        "Without a grid: " + ", ".join(f"{name} {value:,.{digits}f}" for name, value in references(case).items()) + "."
    )
    yield _TABLE.format(
        " | ".join(f"{kind}: certificate / realised" for kind in _KINDS), "|".join(["---"] * len(_KINDS))
    )
    for n_points in BINS:
        row = decided(case, n_points, [kind for kind in _KINDS if kind != "orthogonal" or n_points <= _MOST_ORTHOGONAL])
        print(f"{title}: {row}", file=sys.stderr)
        numbers = [f"{value:,.{digits}f}" for value in (row.hidden, row.follow)]
        pairs = [
            " / ".join(f"{value:,.{digits}f}" for value in row.robust[kind]) if kind in row.robust else "-"
            for kind in _KINDS
        ]
        advice = [row.verdict, *(f"{value:,.{digits}f}" for value in row.advice)]
        yield "| " + " | ".join([str(n_points), *numbers, *advice, *pairs]) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="the folder of bike_sharing_day.csv and field/")
    write(parser.parse_args(arguments).data_dir, time.perf_counter())


if __name__ == "__main__":
    main()
