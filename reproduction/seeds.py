"""Run every split once: in parallel, resumable, the same to the last bit.

Each finished seed is a file of its own, named after everything it depends on
(plan, data, code and library versions), so an interrupted run continues where
it stopped and a changed one starts afresh. Linear algebra runs in one thread:
sums split among threads differ in their last bits.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_limits

import prudent
from prudent.errors import InputError
from prudent.files import write_text
from reproduction import sweeps
from reproduction.cases import BIKE, HOUSING, Case, make_cases
from reproduction.data_sets import DataSets
from reproduction.forecasters import Forecasts, train
from reproduction.table_one import table_of_split

__all__ = ["Plan", "run_seeds", "versions"]


@dataclass(frozen=True)
class Plan:
    """How much to compute; results depend on nothing else but the data, the code and the seed."""

    max_iterations: int = 300
    most_rows: int | None = None
    alphas: tuple[float, ...] = (0.5, 0.7, 0.9, 1.1, 1.3)
    cost_factors: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    bin_counts: tuple[int, ...] = (1, 2, 3, 5, 8, 12, 20, 32, 50, 100)
    radii: tuple[float, ...] = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    degrees: tuple[int, ...] = (2, 3, 4, 6, 8)
    halvings: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    errors: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
    curve_points: int = 201

    @classmethod
    def quick(cls) -> Plan:
        """A version for a first look and for tests: fewer rows, shorter training, coarser grids."""
        return cls(
            max_iterations=40,
            most_rows=800,
            alphas=(0.7, 0.9, 1.1),
            cost_factors=(0.5, 1.0, 2.0),
            bin_counts=(1, 2, 5, 20, 100),
            radii=(0.0, 0.005, 0.02, 0.1),
            degrees=(2, 4),
            halvings=(1, 4, 16),
            errors=(0.0, 0.1, 0.2),
            curve_points=51,
        )


def run_seeds(
    data: DataSets, plan: Plan, seeds: list[int], folder: Path, *, jobs: int | None = None, progress: bool = False
) -> list[dict[str, Any]]:
    """Return one record per seed, in order; those already in the folder are read, not computed.

    Parameters
    ----------
    jobs : int, optional
        Processes; all cores by default, one runs in this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = _key(data, plan)
    records: dict[int, dict[str, Any]] = {}
    for seed in seeds:
        known = _read(_path(folder, key, seed))
        if known is not None:
            records[seed] = known
    missing = [seed for seed in seeds if seed not in records]
    for record in _computed(data, plan, missing, folder, key, jobs):
        records[record["seed"]] = record
        if progress:
            print(f"seeds: {len(records)} of {len(seeds)}, last {record['seconds']:.0f} s", file=sys.stderr)
    return [records[seed] for seed in seeds]


def run_seed(data: DataSets, plan: Plan, seed: int) -> dict[str, Any]:
    """Train, tabulate and sweep every case on the split of one seed."""
    start = time.perf_counter()
    found: dict[str, Any] = {}
    with threadpool_limits(limits=1):
        for case in make_cases(data, most_rows=plan.most_rows).values():
            forecasts = train(case, seed, plan.max_iterations)
            found[case.name] = {
                "forecaster": forecasts.report,
                "tables": {
                    name: table_of_split(case, name, guarantee, forecasts)
                    for name, guarantee in case.guarantees.items()
                },
                "sweeps": _sweeps(case, forecasts, plan),
            }
    return {"seed": seed, "cases": found, "seconds": time.perf_counter() - start}


def versions() -> dict[str, str]:
    """Return what the numbers depend on besides plan and data."""
    return {
        "prudent": metadata.version("prudent"),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _sweeps(case: Case, data: Forecasts, plan: Plan) -> dict[str, Any]:
    if case.error:
        return {"bounded_error": sweeps.bounded_error(case, data, plan.errors)}
    if case.name not in (BIKE, HOUSING):
        return {}
    return {
        "other_parameters": sweeps.other_parameters(case, data, plan.alphas, plan.cost_factors),
        "bins": sweeps.bins(case, data, plan.bin_counts),
        "slackened": sweeps.slackened(case, data, plan.radii),
        "interpolation": sweeps.interpolation(case, data, plan.degrees, plan.halvings),
        "transition": sweeps.transition(case, data),
        "belief_curves": sweeps.belief_curves(case, data, plan.curve_points),
    }


def _computed(
    data: DataSets, plan: Plan, seeds: list[int], folder: Path, key: str, jobs: int | None
) -> Iterator[dict[str, Any]]:
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be at least 1; got {jobs!r}.")
    count = min(joblib.cpu_count() if jobs is None else jobs, len(seeds))
    if count <= 1:
        for seed in seeds:
            yield _run_and_keep(data, plan, seed, folder, key)
        return
    parallel = joblib.Parallel(n_jobs=count, return_as="generator_unordered")
    yield from parallel(joblib.delayed(_run_and_keep)(data, plan, seed, folder, key) for seed in seeds)


def _run_and_keep(data: DataSets, plan: Plan, seed: int, folder: Path, key: str) -> dict[str, Any]:
    """Compute a seed and write it in the same process: an interrupt then loses no finished seed."""
    record = run_seed(data, plan, seed)
    write_text(_path(folder, key, seed), json.dumps(record, allow_nan=False))
    return record


def _read(path: Path) -> dict[str, Any] | None:
    """Read a kept seed; one that was damaged is computed again."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record


def _path(folder: Path, key: str, seed: int) -> Path:
    return folder / f"{key}-{seed}.json"


def _key(data: DataSets, plan: Plan) -> str:
    content = {
        "plan": asdict(plan),
        "data": [data.bike.checksum, data.housing.checksum],
        "versions": versions(),
        "code": _code(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()[:16]


def _code() -> str:
    """Fingerprint of the library's source and of this package's, so that results of other code are not reused."""
    digest = hashlib.sha256()
    for root in (Path(prudent.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root.parent).as_posix().encode("utf-8") + b"\0" + path.read_bytes())
    return digest.hexdigest()
