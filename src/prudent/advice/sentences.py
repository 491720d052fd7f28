"""Advice in words and units, for people who have never heard of calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prudent.arrays import frozen
from prudent.formatting import format_number, format_table
from prudent.solvers import Certificate

if TYPE_CHECKING:
    from prudent.advice.results import Advice, Menu

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

    def too_few(self, found: int, needed: int, units: str) -> str:
        """There is no comparing."""
        return (
            f"Not enough data: at least {needed} {units} with outcomes are needed; there are {found}. Until then, "
            f"{self.used} stays."
        )

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

    def hedge(self, guarantee: str, certain: float, worst: float) -> str:
        """Without outcomes following the forecast risks more."""
        return (
            f"Hedge: if the forecasts keep the promise {guarantee}, and nothing else is known, this rule earns at "
            f"least {self.amount(certain, 4)} a case; following the forecast could earn as little as "
            f"{self.amount(worst, 4)}. Outcomes would say more."
        )

    def follow_promise(self, guarantee: str, certain: float, loss: float) -> str:
        """Without outcomes following the forecast is as safe as anything."""
        return (
            f"Follow the forecast: if it keeps the promise {guarantee}, it earns at least {self.amount(certain, 4)} a "
            f"case, and no rule is sure of more than {self.amount(max(loss, 0.0), 2)} on top."
        )


def describe(advice: Advice) -> str:
    """Write the verdict and the numbers behind it."""
    words, promise = Words(advice.problem.unit, advice.confidence), advice.promise
    lines = [str(advice.verdict)]
    if isinstance(advice.certificate, Certificate):
        lines.append(f"No rule is sure of more than {words.amount(advice.certificate.upper, 4)}.")
    if promise is not None:
        span = f"between {words.amount(promise.lower)} and {words.amount(promise.upper)}"
        lines.append(
            f"This rule earns at least {words.amount(advice.certificate.lower)} a case on average ({words.level})."
        )
        if advice.next_period is not None:
            lines.append(
                f"In the next period it earns at least {words.amount(advice.next_period.lower)} a case "
                f"({words.level}; {advice.past.n_units if advice.past else 0:,} periods)."
            )
        lines.append(
            f"The forecasts promise {words.amount(promise.promised)} a case; following them earned "
            f"{words.amount(promise.realised)}, on average {span}."
        )
    lines.append(
        f"The forecasts promise {words.amount(advice.stakes)} a case more than the best single action; gains up to "
        f"{words.amount(advice.tolerance, 2)} do not matter."
    )
    prices = getattr(getattr(advice.policy, "policy", advice.policy), "shadow_prices_", {})
    for name, price in prices.items():
        lines.append(f"One more unit of capacity for {name!r} is worth {words.amount(price)}.")
    before, after = ([f"{shares[k]:.1%}" for shares in advice.actions.values()] for k in (0, 1))
    table = {"action": list(advice.actions), "in use": before, "advised": after}
    lines += ["", format_table(table)]
    if advice.menu.names:
        lines += ["", "Gains a case over the rule in use, on cases that had no part in fitting:", str(advice.menu)]
    if advice.by_segment is not None:
        lines += ["", f"By segment, a case of it; all bounds hold at once ({words.level}):", str(advice.by_segment)]
    dropped = f", {advice.n_dropped:,} without outcome left out" if advice.n_dropped else ""
    return "\n".join([*lines, "", f"{advice.n_rows:,} cases{dropped}."])
