"""The paper's experiments end to end, and what the exact policy adds."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prudent.errors import InputError
from prudent.files import write_text
from reproduction.cases import make_cases
from reproduction.data_sets import DataSets, load_data_sets
from reproduction.markdown import render
from reproduction.seeds import Plan, run_seeds, versions
from reproduction.summary import summarise

__all__ = ["Reproduction", "run_reproduction"]

_SEEDS, _QUICK_SEEDS = 20, 2


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Everything that the experiments found.

    Attributes
    ----------
    document : dict
        ``experiment`` (seeds, plan, data, versions), ``data_sets`` (per case the forecaster, the tables with their
        orderings, the sweeps) and ``timings``; nothing but ``timings`` differs between two runs.

    Examples
    --------
    >>> from reproduction import run_reproduction
    >>> found = run_reproduction("../shared/data", quick=True, keep="results/seeds")  # doctest: +SKIP
    >>> found.save("results")  # doctest: +SKIP
    """

    document: dict[str, Any]

    def to_json(self) -> str:
        """Return the result as JSON, sorted by nothing but the order of the tables."""
        return json.dumps(self.document, indent=1, allow_nan=False, ensure_ascii=False)

    def __str__(self) -> str:
        return render(self.document)

    def save(self, directory: str | os.PathLike[str], *, figures: bool = True) -> list[Path]:
        """Write ``reproduction.json``, ``reproduction.md`` and the figures (PNG and SVG); return their paths."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "reproduction.json", folder / "reproduction.md"]
        write_text(written[0], self.to_json() + "\n")
        write_text(written[1], str(self) + "\n")
        if figures:
            from reproduction.figures import save_figures

            written += save_figures(self.document, folder)
        return written


def run_reproduction(
    data_directory: str | os.PathLike[str],
    *,
    keep: str | os.PathLike[str],
    seeds: int | None = None,
    quick: bool = False,
    other_data: bool = False,
    jobs: int | None = None,
    progress: bool = False,
) -> Reproduction:
    """Run the experiments of the paper and beyond.

    Parameters
    ----------
    data_directory : path
        Folder with the two data sets.
    keep : path
        Folder for finished seeds: a run that was interrupted continues from them.
    seeds : int, optional
        Number of random splits; 20 by default, 2 if quick.
    quick : bool
        Smaller data, shorter training, coarser grids: under a minute.
    other_data : bool
        Accept files with the right columns but other rows than the published ones.
    jobs : int, optional
        Processes; all cores by default.
    progress : bool
        Print a line on standard error for every finished seed.
    """
    count = (_QUICK_SEEDS if quick else _SEEDS) if seeds is None else seeds
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 10_000:
        raise InputError(f"seeds must be a whole number from 1 to 10,000; got {seeds!r}.")
    start = time.perf_counter()
    data = load_data_sets(data_directory, other_data=other_data)
    plan = Plan.quick() if quick else Plan()
    records = run_seeds(data, plan, list(range(count)), Path(keep), jobs=jobs, progress=progress)
    cases = make_cases(data, most_rows=plan.most_rows)
    return Reproduction(
        {
            "experiment": {
                "paper": "Robust Decision Making with Partially Calibrated Forecasts (Kiyani, Hassani, Pappas, Roth)",
                "seeds": [record["seed"] for record in records],
                "quick": quick,
                "plan": {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(plan).items()},
                "data": _describe(data),
                "versions": versions(),
            },
            "data_sets": {name: summarise(case, records) for name, case in cases.items()},
            "timings": {
                "seconds": time.perf_counter() - start,
                "seconds_per_seed": [record["seconds"] for record in records],
            },
        }
    )


def _describe(data: DataSets) -> dict[str, Any]:
    return {
        one.file.title: {"rows": one.n_rows, "published_values": one.published, "checksum_of_values": one.checksum}
        for one in (data.bike, data.housing)
    }
