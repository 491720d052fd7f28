"""Runs from data to decisions, end to end."""

from prudent.experiments.demonstration import Demonstration, run_demonstration
from prudent.experiments.reproduction import Reproduction, run_reproduction

__all__ = ["Demonstration", "Reproduction", "run_demonstration", "run_reproduction"]
