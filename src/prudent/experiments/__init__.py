"""Runs from data to decisions, end to end."""

from prudent.experiments.demonstration import Demonstration, demonstration_sample, run_demonstration

__all__ = ["Demonstration", "demonstration_sample", "run_demonstration"]
