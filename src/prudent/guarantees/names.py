"""Guarantees by name, as command lines and settings write them: ``unbiased``, ``binned:20``, ``unbiased+binned:20``."""

from dataclasses import fields
from difflib import get_close_matches
from functools import reduce
from typing import Any

from prudent.errors import InputError
from prudent.guarantees.base import KINDS, Guarantee, require_guarantee
from prudent.problem import DecisionProblem

_FAMILIES = {family.name: family for family in KINDS.values() if family.name}
_FIELDS = {name: {item.name for item in fields(family)} for name, family in _FAMILIES.items()}
_NUMBERED = {name for name, found in _FIELDS.items() if found & {"n_bins", "degree"}}
_OF_PROBLEM = {name for name, found in _FIELDS.items() if "problems" in found}

#: All names, in the form in which they are written.
GUARANTEE_NAMES = tuple(
    f"{name}:N" if name in _NUMBERED else name
    for name in sorted(_FAMILIES, key=lambda name: (name in _NUMBERED, name in _OF_PROBLEM))
)


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
    if name not in _FAMILIES:
        near = get_close_matches(name, _FAMILIES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"guarantee {text!r} is not known; {hint}choose among {', '.join(GUARANTEE_NAMES)}, joined by +."
        )
    arguments: list[object] = [(problem,)] if name in _OF_PROBLEM else []
    if name in _NUMBERED:
        if not (number.isascii() and number.isdigit()):
            raise InputError(f"guarantee {text!r}: {name} needs a whole number, such as {name}:10.")
        arguments = [int(number)]
    elif colon:
        raise InputError(f"guarantee {text!r}: {name} takes no number.")
    return _FAMILIES[name](*arguments)


def read_guarantee(value: Any, problem: DecisionProblem | None = None) -> Guarantee:
    """Take a guarantee as it is, or find it by name."""
    if isinstance(value, str) and problem is not None:
        return guarantee_from_name(value, problem)
    require_guarantee(value)
    found: Guarantee = value
    return found
