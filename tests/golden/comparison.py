"""Compare an answer with the one that was kept."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

#: Of a number's size or, for numbers below 1, of the range of utilities, which is between 1 and 2 in all cases. A
#: certificate may leave as much open, so that two correct solvers may differ by as much.
TOLERANCE = 1e-6
#: A policy file has all digits, so that playing it and writing it as SQL leave nothing open.
PLAYED = 1e-12
#: Times, hashes and names of algorithms; and utilities in *one* of the worst worlds of a policy, which has many.
IGNORED = {
    *("checksum", "id", "inputs", "method", "seconds"),
    *("saddle", "under"),
}
#: What else depends on which of several optimal multipliers and beliefs were found.
NOT_UNIQUE = {"bands", "belief", "curve", "sql", "story", "utility_at_belief"}

_METHOD = re.compile(r"Method: [^.]*\.")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?=D?(?![\w.]*\w))")  # D ends a double of Spark


def differences(
    expected: Any, found: Any, tolerance: float, ignored: AbstractSet[str] = frozenset(), place: str = ""
) -> Iterator[str]:
    """Say where two documents differ: words and whole numbers at all, other numbers by more than the tolerance."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted((expected.keys() | found.keys()) - IGNORED - ignored):
            if name in expected and name in found:
                yield from differences(expected[name], found[name], tolerance, ignored, f"{place}.{name}")
            else:
                yield f"{place}.{name} is {'gone' if name in expected else 'new'}"
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, tolerance, ignored, f"{place}[{i}]")
    elif not _agree(expected, found, tolerance):
        yield f"{place}: {expected!r} became {found!r}"


def _agree(expected: Any, found: Any, tolerance: float) -> bool:
    if isinstance(expected, float) and isinstance(found, (int, float)):
        return math.isclose(expected, found, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(expected, str) and isinstance(found, str):
        (words, numbers), (found_words, found_numbers) = _parts(expected), _parts(found)
        return words == found_words and all(
            _agree(*pair, tolerance) for pair in zip(numbers, found_numbers, strict=True)
        )
    return type(expected) is type(found) and bool(expected == found)


def _parts(text: str) -> tuple[list[str], list[float]]:
    """Take numbers out of a text, and what it says of the algorithm."""
    text = _METHOD.sub("", text)
    return _NUMBER.split(text), [float(number) for number in _NUMBER.findall(text)]
