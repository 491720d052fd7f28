"""What comes with the library to start with, by name; their files are made in ``example_files``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EXAMPLES", "BuiltIn"]


@dataclass(frozen=True)
class BuiltIn:
    """An example: its title, and what it says."""

    title: str
    sentence: str


#: By name, in the order shown.
EXAMPLES = {
    "patients": BuiltIn(
        "Patients (real)",
        "442 diabetes patients of scikit-learn; linear regression forecasts progression, a clinic decides on care.",
    ),
    "staffing": BuiltIn(
        "Staffing (made up)",
        "4,000 days of demand; the forecaster is much too sure of itself.",
    ),
    "triage": BuiltIn(
        "Triage (made up)",
        "3,000 cases in three classes, with a payoff for each action and class.",
    ),
}
