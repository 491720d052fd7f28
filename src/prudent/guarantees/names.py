"""Guarantees by name, as command lines and settings write them: ``unbiased``, ``binned:20``, ``unbiased+binned:20``."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import reduce

from prudent.errors import InputError
from prudent.guarantees.base import Guarantee
from prudent.guarantees.cells import Binned, Classwise, Confidence, TopLabel
from prudent.guarantees.decisions import DecisionCalibrated, UtilityCalibrated
from prudent.guarantees.elementary import FullyCalibrated, Nothing, Polynomial, SelfOrthogonal, Unbiased
from prudent.guarantees.softmax import LogOdds, Temperature
from prudent.problem import DecisionProblem

__all__ = ["GUARANTEE_NAMES", "guarantee_from_name"]

_PLAIN: dict[str, Callable[[], Guarantee]] = {
    "nothing": Nothing,
    "unbiased": Unbiased,
    "self-orthogonal": SelfOrthogonal,
    "log-odds": LogOdds,
    "temperature": Temperature,
    "fully-calibrated": FullyCalibrated,
}
_NUMBERED: dict[str, Callable[[int], Guarantee]] = {
    "binned": Binned.uniform,
    "quantiles": Binned.quantiles,
    "polynomial": Polynomial,
    "top-label": TopLabel,
    "confidence": Confidence,
    "classwise": Classwise,
}
_OF_PROBLEM: dict[str, Callable[[tuple[DecisionProblem, ...]], Guarantee]] = {
    "decision-calibrated": DecisionCalibrated,
    "utility-calibrated": UtilityCalibrated,
}

#: All names, in the form in which they are written.
GUARANTEE_NAMES = (*_PLAIN, *_OF_PROBLEM, *(f"{name}:N" for name in _NUMBERED))


def guarantee_from_name(text: str, problem: DecisionProblem) -> Guarantee:
    """Read names joined by ``+``; what they need of a decision problem comes from ``problem``.

    Examples
    --------
    >>> import prudent
    >>> from prudent.guarantees.names import guarantee_from_name
    >>> guarantee_from_name("unbiased+binned:20", prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5]))
    Unbiased() & UniformBins(n_bins=20)
    """
    return reduce(lambda left, right: left & right, [_one(part.strip(), problem) for part in text.split("+")])


def _one(text: str, problem: DecisionProblem) -> Guarantee:
    name, colon, number = text.partition(":")
    if name in _NUMBERED:
        if not (number.isascii() and number.isdigit()):
            raise InputError(f"guarantee {text!r}: {name} needs a whole number, such as {name}:10.")
        return _NUMBERED[name](int(number))
    if name not in _PLAIN and name not in _OF_PROBLEM:
        near = get_close_matches(name, [*_PLAIN, *_NUMBERED, *_OF_PROBLEM], n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"guarantee {text!r} is not known; {hint}choose among {', '.join(GUARANTEE_NAMES)}, joined by +."
        )
    if colon:
        raise InputError(f"guarantee {text!r}: {name} takes no number.")
    return _PLAIN[name]() if name in _PLAIN else _OF_PROBLEM[name]((problem,))
