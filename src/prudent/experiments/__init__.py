"""Runs from data to decisions, end to end."""

from prudent.experiments.demonstration import Demonstration, run_demonstration

__all__ = ["Demonstration", "run_demonstration"]
