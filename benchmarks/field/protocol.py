"""Past to future: every era is decided by what was known before it, by every method.

Results of a forecaster and a method are kept in a file whose name tells what they depend on: the data, the method, the
library. An interrupted run continues, and a new method or source costs only its own part.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from inspect import getsource
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import numpy as np

import prudent
from benchmarks.field import decision, forecaster, methods, sources
from benchmarks.field.decision import Decision
from benchmarks.field.forecaster import Forecaster, Rows, Setting

#: With fewer known rows an era is not decided by anybody.
FEWEST_ROWS = 30

Result = dict[str, Any]


def discover(package: ModuleType) -> list[ModuleType]:
    """Import all modules of a package."""
    return [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]


def all_sources() -> list[ModuleType]:
    """Sources by name."""
    return discover(sources)


def all_methods() -> list[ModuleType]:
    """Methods in the order of the tables."""
    return sorted(discover(methods), key=lambda module: module.ORDER)


def installed(method: ModuleType) -> bool:
    """Whether the package that a method needs is there."""
    needs = getattr(method, "NEEDS", None)
    return needs is None or find_spec(needs) is not None


def rounds(one: Forecaster) -> Iterator[tuple[Any, Rows, Rows]]:
    """Eras with what was known before them; of tasks and sites with all others."""
    rows = one.rows
    for number, era in enumerate(np.unique(rows.eras)):
        inside = rows.eras == era
        if one.ordered:
            before = rows.eras < era
            if rows.known is not None and rows.decided is not None:
                before &= rows.known <= rows.decided[inside].min()
        else:
            before = ~inside
        if (number or not one.ordered) and before.sum() >= FEWEST_ROWS:
            yield era, rows.where(before), rows.where(inside)


def play(one: Forecaster, chosen: list[ModuleType], latest: int | None = None) -> dict[str, list[Result]]:
    """Decide all eras, or the latest, of a forecaster by some methods; gains are in units of the cost."""
    found: dict[str, list[Result]] = {method.NAME: [] for method in chosen}
    every = list(rounds(one))
    for era, past, now in every[-latest:] if latest else every:
        n_past = len(np.unique(past.eras))
        for name, setting in one.settings.items():
            utilities = now.utilities(setting.problem)
            followed = mean_utility(utilities, decision.follow(setting.problem, now.forecasts))
            for method in chosen:
                start = time.process_time()
                decided = method.decide(past, now, setting.problem)
                seconds = time.process_time() - start
                if decided is not None:
                    earned = mean_utility(utilities, decided)
                    known = {"source": one.source, "forecaster": one.name, "setting": name, "era": str(era)}
                    sizes = {"past_eras": n_past, "past_rows": len(past.forecasts), "rows": len(now.forecasts)}
                    what = {"method": method.NAME, "verdict": decided.verdict, "seconds": seconds}
                    found[method.NAME].append(
                        known | sizes | what | in_units(setting, earned, followed, decided.promise)
                    )
    return found


def mean_utility(utilities: Any, decided: Decision) -> float:
    """What a decision earned per row."""
    return float((utilities * decided.mixtures).sum(axis=1).mean())


def in_units(setting: Setting, earned: float, followed: float, promise: float | None) -> Result:
    """What is kept of a decided era, in units of the cost."""
    gain = earned - followed
    gain = 0.0 if abs(gain) < 1e-12 * setting.cost else gain  # sums in another order
    numbers: Result = {"utility": earned / setting.cost, "gain": gain / setting.cost, "promise": None}
    if promise is not None:
        numbers["promise"] = promise / setting.cost
    return numbers


def fingerprint(one: Forecaster, method: ModuleType, latest: int | None) -> str:
    """Name what results depend on."""
    digest = blake2b(digest_size=12)
    texts = [getsource(method), *(getsource(module) for module in (decision, forecaster)), getsource(play), _library()]
    texts += [getsource(rounds), one.source, one.name, str(one.ordered), str(latest), repr(dict(one.settings))]
    rows = one.rows
    columns = [rows.forecasts, rows.outcomes, rows.eras, rows.decided, rows.known, *rows.context.values()]
    for setting in one.settings.values():
        columns += [setting.problem.rewards, setting.problem.costs]
    for part in [*texts, *("" if column is None else column for column in columns)]:
        digest.update(part.encode() if isinstance(part, str) else _bytes(part))
    return digest.hexdigest()


def _bytes(column: Any) -> bytes:
    array = np.asarray(column)
    return "\0".join(map(str, array.tolist())).encode() if array.dtype.kind in "OSUT" else array.tobytes()


def _library() -> str:
    """All code of the library."""
    digest = blake2b(digest_size=12)
    for path in sorted(Path(prudent.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def measure(one: Forecaster, names: list[str], cache: Path, latest: int | None = None) -> list[Result]:
    """Results of a forecaster by named methods, from the cache where they are known."""
    chosen = [method for method in all_methods() if method.NAME in names]
    places = {method.NAME: cache / f"{fingerprint(one, method, latest)}.json" for method in chosen}
    missing = [method for method in chosen if not places[method.NAME].exists()]
    cache.mkdir(parents=True, exist_ok=True)
    for name, results in (play(one, missing, latest) if missing else {}).items():
        part = places[name].with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(results))
        os.replace(part, places[name])
    return [result for place in places.values() for result in json.loads(place.read_text())]
