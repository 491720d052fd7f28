"""Files that were altered, by accident or on purpose, load and work, or are refused with a clear error."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prudent
from golden.cases import EXPECTED, OTHERS, POLICIES
from prudent import guarantees
from prudent.errors import FileFormatError, InputError
from prudent.guarantees.base import And
from prudent.problem import EXAMPLE_PROBLEM, read_problem

REFUSED = (FileFormatError, InputError)
#: What values are replaced by.
VALUES: list[Any] = [
    *(None, True, False, "", "x", "\ud800", "and", "polynomial", "top-label", "l2", "audit", "measured", "simplex"),
    *(0, 1, 2, 3, 7, -1, -2, 20_000, 1_000_000, 10**7, 2**31, 2**32, 2**53, 2**63, 2**64, 10**30, -(10**30), 10**400),
    *(0.5, -0.5, 1.5, 1e-300, 5e-324, 1e-9, 1e9, 1e150, 1e300, -1e300, 1.7e308, -1.7e308),
    *([], {}, [[]], [0], [0.5], [[0.5]], [1, 2, 3], [[1, 2], [3]], ["a"], {"kind": "unbiased"}, [None], [True]),
    {"kind": "polynomial", "degree": 20_000},
    {"kind": "top-label", "n_bins": 1_000_000},
    {"kind": "classwise", "n_bins": 1_000_000},
    {"kind": "bins", "n_or_edges": 1_000_000, "spacing": "width"},
    {"kind": "bins", "n_or_edges": 3, "spacing": "quantile"},
    {"kind": "fully-calibrated"},
    {"kind": "box", "lower": [0.0], "upper": [1.0]},
    {"kind": "simplex", "n_classes": 1_000_000, "classes": None},
]


@dataclass(frozen=True)
class Specimen:
    """A correct file, its content, and the way back to a file."""

    raw: bytes
    content: str
    written: Callable[[Any], bytes]


@dataclass(frozen=True)
class Kind:
    """How files of a kind are made, loaded and first used."""

    made: Callable[[], list[Specimen]]
    load: Callable[[Path], Any]
    use: Callable[[Any], object]


def document(raw: bytes) -> Specimen:
    """A file of the library; its checksum fits whatever the content becomes."""
    head = json.loads(raw)
    content = head.pop("content")

    def written(content: Any) -> bytes:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return json.dumps({**head, "checksum": hashlib.sha256(text.encode()).hexdigest(), "content": content}).encode()

    return Specimen(raw, json.dumps(content), written)


def golden(folder: str, names: Iterable[str]) -> list[Specimen]:
    return [document((EXPECTED / folder / f"{name}.json").read_bytes()) for name in names]


def problem_files() -> list[Specimen]:
    def written(content: Any) -> bytes:
        return "\n".join(f"{name} = {json.dumps(value)}" for name, value in content.items()).encode()

    linear = {"rewards": [0.7, 0.9], "costs": [0.0, 0.1], "actions": ["a", "b"], "space.lower": 0, "space.upper": 2}
    payoffs = {"classes": ["ill", "well"], "payoffs.wait": [0, -10], "payoffs.treat": [-1, -1]}
    return [Specimen(EXAMPLE_PROBLEM.encode(), json.dumps(content), written) for content in (linear, payoffs)]


def middle(space: Any) -> np.ndarray:
    if isinstance(space, prudent.Simplex):
        return np.full((1, space.dimension), 1 / space.dimension)
    return space.bounds[0][None] / 2 + space.bounds[1][None] / 2


def use_policy(policy: Any) -> None:
    row = middle(policy.problem.space)
    policy.predict_proba(row)
    policy.predict(row, keys=["a"])


def use_monitor(monitor: Any) -> None:
    row = middle(monitor.policy.problem.space)
    monitor.update(row, row, ids=["one more"])
    str(monitor)


def use_online(calibrator: Any) -> None:
    names = [*calibrator._ledger.awaiting(1), "one more"]
    calibrator.predict(["one more"])
    calibrator.update(names, np.repeat(middle(calibrator.space), len(names), axis=0))
    str(calibrator)


STATEFUL = ("monitor", "online")
KINDS = {
    "policy": Kind(lambda: golden("policies", POLICIES), prudent.load, use_policy),
    "recalibrator": Kind(
        lambda: golden("others", OTHERS.keys() - set(STATEFUL)),
        prudent.recalibration.Recalibrator.load,
        lambda recalibrator: recalibrator.transform(middle(recalibrator.space_)),
    ),
    "monitor": Kind(lambda: golden("others", ["monitor"]), prudent.PolicyMonitor.load, use_monitor),
    "online": Kind(
        lambda: golden("others", ["online"]), prudent.recalibration.OnlineDecisionCalibrator.load, use_online
    ),
    "problem": Kind(problem_files, read_problem, lambda problem: problem.best_response(middle(problem.space))),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All paths into a document."""
    if path:
        yield path
    for name, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, name))


@cache
def some_places(content: str) -> list[tuple[Any, ...]]:
    """Paths into a document: all short ones, and a few into long lists."""
    found = list(places(json.loads(content)))
    return [path for path in found if not any(isinstance(step, int) and step > 30 for step in path)]


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def altered(specimen: Specimen, rng: np.random.Generator) -> bytes:
    """Change one or two places of a document; the checksum fits."""
    content, paths = json.loads(specimen.content), some_places(specimen.content)
    for _ in range(rng.integers(1, 3)):
        *way, last = paths[rng.integers(len(paths))]
        holder: Any = content
        try:
            for step in way:
                holder = holder[step]
            old = holder[last]
        except (LookupError, TypeError):  # the change before has removed it
            continue
        if isinstance(holder, (dict, list)):
            change(holder, last, old, rng)
    return specimen.written(content)


def change(holder: Any, place: Any, old: Any, rng: np.random.Generator) -> None:
    kind = rng.integers(9)
    if kind == 0:
        del holder[place]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(int(rng.integers(len(holder) + 1)), old)
    elif kind == 2 and isinstance(holder, dict):
        holder[f"{place}s"] = old
    elif kind == 3:
        holder[place] = nested(old, int(rng.choice([1, 2, 30, 50, 200, 400])))
    elif kind == 4 and isinstance(old, (int, float)) and abs(old) < 1e300:
        holder[place] = old * float(rng.choice([-1, 0, 2, 0.5, 1 + 1e-9, 1e6, 1e-6]))
    elif kind == 5 and isinstance(old, (int, float)):
        holder[place] = old + int(rng.choice([-1, 1, 100]))
    elif kind == 6 and isinstance(old, list):
        holder[place] = old * int(rng.choice([0, 2, 300]))
    elif kind == 7:
        others = list(holder.values() if isinstance(holder, dict) else holder)
        holder[place] = others[rng.integers(len(others))]
    else:
        holder[place] = deepcopy(VALUES[rng.integers(len(VALUES))])


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """Change some bytes."""
    at = int(rng.integers(len(raw)))
    before, after = raw[:at], raw[at:]
    inserted = [
        bytes(rng.integers(0, 256, rng.integers(1, 5)).tolist()),
        *(b"[" * 10, b"[" * 5000, b"9" * 3, b"9" * 400, b"9" * 5000, b"NaN", b"-Infinity", b"1e999", b"null"),
        *(b"\xff\xfe", b"\\ud800", b'"', b"}", b"\x00"),
    ]
    kind = rng.integers(5)
    if kind == 0:
        return before
    if kind == 1:
        return before + bytes([after[0] ^ (1 << int(rng.integers(8)))]) + after[1:]
    if kind == 2:
        return before + after[int(rng.integers(1, 20)) :]
    return before + inserted[rng.integers(len(inserted))] + after


def unclean(kind: Kind, path: Path, n: int, seed: int) -> list[str]:
    """Load and use altered files; say which raised anything but the two errors."""
    rng = np.random.default_rng(seed)
    specimens, found, n_working = kind.made(), [], 0
    with path.open("wb", buffering=0) as stream:
        for number in range(n):
            specimen = specimens[rng.integers(len(specimens))]
            raw = damaged(specimen.raw, rng) if number % 5 == 0 else altered(specimen, rng)
            stream.seek(0)
            stream.write(raw)
            stream.truncate()
            try:
                kind.use(kind.load(path))
                n_working += 1
            except REFUSED:
                pass
            except Exception as error:  # noqa: BLE001  # whatever it is, it is what is looked for
                found.append(f"{number}: {type(error).__name__} {error}"[:200])
    assert n_working > n / 100, "alterations that leave a file in order show that loading and using works"
    return found


pytestmark = [
    # Numbers near the ends of what floats can hold overflow here as they do outside of files.
    pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_altered_files_work_or_are_refused(kind: str, tmp_path: Path) -> None:
    assert unclean(KINDS[kind], tmp_path / "file", 800, seed=0) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_fifty_thousand_altered_files_work_or_are_refused(kind: str, tmp_path: Path) -> None:
    assert unclean(KINDS[kind], tmp_path / "file", 50_000, seed=1) == []


def rewritten(path: Path, folder: str, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    (specimen,) = golden(folder, [name])
    content = json.loads(specimen.content)
    change(content)
    path.write_bytes(specimen.written(content))
    return path


@pytest.mark.parametrize(
    ("name", "guarantee"),
    [
        ("robust", guarantees.Polynomial(20_000)),
        ("robust", guarantees.Polynomial(1_000_000)),
        ("robust", guarantees.Bins(1_000_000)),
        ("robust-classes", guarantees.TopLabel(1_000_000)),
        ("robust-classes", guarantees.Classwise(1_000_000)),
        ("robust-classes", guarantees.Polynomial(400)),
        ("robust-classes", And((guarantees.TopLabel(3_000),) * 1_000)),
    ],
)
def test_a_small_file_takes_little_memory(name: str, guarantee: guarantees.Guarantee, tmp_path: Path) -> None:
    described = guarantee.to_dict()
    path = rewritten(
        tmp_path / "p.json", "policies", name, lambda content: content.update(resolved_guarantee=described)
    )
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"moment_names must be those of the guarantee|too many tests"):
        prudent.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("guarantee", lambda c: c["coefficients"][0].pop(), "coefficients must be numbers of shape"),
        ("guarantee", lambda c: c.update(coefficients=nested(1.0, 50)), "must be numbers of shape"),
        ("monitor", lambda c: c["evidence"]["utility"].update(n_rows=2**64), "n_rows must be a whole number from 0"),
        ("monitor", lambda c: c.update(tolerance=10**400), "tolerance must be a number from"),
        ("monitor", lambda c: c["rows"][0].__setitem__(0, 1.5), "ids must be strings or whole numbers"),
        ("monitor", lambda c: c["rows"].append(c["rows"][0]), "rows must have different ids"),
        ("monitor", lambda c: c["rows"].append(["a", None, None]), "rows must have a forecast"),
        ("monitor", lambda c: c["rows"].append(["a", [[0.5]]]), "rows must be triples"),
        (
            "monitor",
            lambda c: c.update(guarantee=guarantees.Bins(1_000_000).to_dict()),
            "excess must be numbers of shape",
        ),
        ("online", lambda c: c["rows"].append(["a", None, [0.5]]), "rows must have a forecast"),
        ("online", lambda c: c.update(n_steps=22), "n_steps must be a whole number from 0 to 21"),
        ("online", lambda c: c["probabilities"].append(0.5), "probabilities must be numbers of shape"),
        ("online", lambda c: c["errors"][0][0][0].__setitem__(0, 1e6), "errors must not exceed what 17 steps"),
        ("decision", lambda c: c.update(space={"kind": "box", "lower": [0], "upper": [2]}), "that of the problems"),
        ("decision", lambda c: c["patches"].append({"problem": 1, "source": 0, "shifts": []}), "patch.problem must be"),
    ],
)
def test_numbers_are_compared_with_each_other(
    name: str, change: Callable[[dict[str, Any]], object], message: str, tmp_path: Path
) -> None:
    load = KINDS[name].load if name in STATEFUL else KINDS["recalibrator"].load
    with pytest.raises(FileFormatError, match=message):
        load(rewritten(tmp_path / "file.json", "others", name, change))
