"""Guarantees by name: ``"unbiased"``, ``"bins:20"``, ``"unbiased+polynomial:2"``."""

import operator
from collections.abc import Callable
from functools import partial, reduce

from prudent.errors import InputError
from prudent.formatting import did_you_mean
from prudent.guarantees.base import KINDS, Guarantee
from prudent.guarantees.bins import Bins
from prudent.guarantees.within import Within
from prudent.problem import DecisionProblem

_NAMED = {family.name: family for family in KINDS.values() if family.name}
_OF_PROBLEM = {name for name, family in _NAMED.items() if "problems" in family.__dataclass_fields__}
_FAMILIES: dict[str, Callable[..., Guarantee]] = {**_NAMED, "quantile-bins:N": partial(Bins, spacing="quantile")}

#: All names, in the form in which they are written.
GUARANTEE_NAMES = (
    *sorted(_FAMILIES, key=lambda name: (name.endswith(":N"), name in _OF_PROBLEM)),
    "within:COLUMN:NAME",
)


def read_guarantee(given: object, problem: DecisionProblem | None = None, *, finite: bool = False) -> Guarantee:
    """Return a guarantee that is given as such, or by names joined by ``+``.

    ``within:region:bins:10`` holds within every region, ``within:region,sex:unbiased`` within every pair of values.

    Parameters
    ----------
    given : Guarantee or str
    problem : DecisionProblem, optional
        What the names ``decision-calibrated`` and ``utility-calibrated`` refer to.
    finite : bool
        Refuse full calibration, which has infinitely many tests.

    Examples
    --------
    >>> from prudent.guarantees.names import read_guarantee
    >>> read_guarantee("unbiased+bins:20")
    Unbiased() & Bins(20)
    """
    found = given
    if isinstance(given, str):
        found = reduce(operator.and_, [_one(part.strip(), problem) for part in given.split("+")])
    if not isinstance(found, Guarantee):
        raise InputError(
            f"guarantee must come from prudent.guarantees, such as SelfOrthogonal(), or be one of the names "
            f"{', '.join(GUARANTEE_NAMES)}, joined by +; got {given!r}."
        )
    if finite and found.full:
        raise InputError(f"guarantee must be a finite one from prudent.guarantees; got {given!r}.")
    return found


def _one(text: str, problem: DecisionProblem | None) -> Guarantee:
    name, colon, number = text.partition(":")
    if name == "within":
        columns, _, rest = number.partition(":")
        if not columns or not rest:
            raise InputError(f"guarantee {text!r}: within needs columns and a name, such as within:region:unbiased.")
        return Within(columns.split(","), _one(rest, problem))
    if name in _FAMILIES:
        if colon:
            raise InputError(f"guarantee {text!r}: {name} takes no number.")
        if name not in _OF_PROBLEM:
            return _FAMILIES[name]()
        if problem is None:
            raise InputError(f"guarantee {text!r} is stated for a decision problem, and none was given.")
        return _FAMILIES[name](problem)
    if f"{name}:N" in _FAMILIES:
        if not (number.isascii() and number.isdigit()):
            raise InputError(f"guarantee {text!r}: {name} needs a whole number, such as {name}:10.")
        return _FAMILIES[f"{name}:N"](int(number))
    hint = did_you_mean(name, (known.removesuffix(":N") for known in _FAMILIES))
    raise InputError(f"guarantee {text!r} is not known; {hint}choose among {', '.join(GUARANTEE_NAMES)}, joined by +.")
