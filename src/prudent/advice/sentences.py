"""Advice in words and units, for people who have never heard of calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prudent.arrays import frozen
from prudent.formatting import format_number

if TYPE_CHECKING:
    from prudent.advice.results import Menu

_LONG_NAMES = {
    "bias": "a constant change of the log-odds",
    "platt": "Platt scaling",
    "isotonic": "isotonic regression",
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "shift": "a constant shift",
    "affine": "an affine map",
}


_NAMED = 3  # segments


@frozen
class Words:
    """How verdicts are put: with the unit of utility, the confidence, and whether the forecast is followed now."""

    unit: str | None
    confidence: float
    follows: bool = True

    @property
    def level(self) -> str:
        """The confidence in words."""
        return f"{100 * self.confidence:g}% confidence"

    @property
    def used(self) -> str:
        """The rule in use as a noun."""
        return "following the forecast" if self.follows else "the rule in use"

    @property
    def order(self) -> str:
        """To stay with it, as an imperative."""
        return "Follow the forecast" if self.follows else "Keep the rule in use"

    def amount(self, value: float, digits: int = 3) -> str:
        """Write a utility with its unit."""
        text = format_number(value + 0.0, digits)
        return f"{text} {self.unit}" if self.unit else text

    def stay(self, menu: Menu, tolerance: float) -> str:
        """Nothing could be worth the change."""
        names = ", ".join(_LONG_NAMES.get(name, name) for name in menu.names)
        return (
            f"{self.order}: nothing that was tried ({names}) could be worth more than "
            f"{self.amount(tolerance, 2)} a case on top ({self.level})."
        )

    def adopt(
        self, name: str, repairs: bool, estimate: float, lower: float, changed: Sequence[str] = (), *, few: bool = False
    ) -> str:
        """One entry is better, above all in the segments that are named."""
        places = ", ".join(changed[:_NAMED]) + (f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else "")
        what = f"Hedge: the rule {name}"
        if repairs:
            order = f"Follow the forecast, except in {places}" if few else "Repair the forecast, then follow it"
            what = f"{order}: recalibrated by {_LONG_NAMES.get(name, name)} it"
        certain = f"at least {self.amount(lower)} more with {self.level}"
        if lower <= 0:
            certain = f"but with {self.level} a loss of up to {self.amount(-lower)} cannot be excluded"
        where = f", above all in {places}" if changed and not few else ""
        return f"{what} earned {self.amount(estimate)} a case more than {self.used}{where}; {certain}."

    def not_enough(self, menu: Menu, tolerance: float, more: int | None) -> str:
        """Something could be better, and is not proven to be."""
        name = menu.names[int(menu.upper.argmax())]
        settle = f" About {more:,} more outcomes would settle it." if more else ""
        return (
            f"Not enough data: nothing that was tried is proven better than {self.used}, but "
            f"{_LONG_NAMES.get(name, name)} could be worth up to {self.amount(float(menu.upper.max()), 2)} a case, and "
            f"gains above {self.amount(tolerance, 2)} matter. Until then, {self.used} stays.{settle}"
        )
