"""Runs from data to decisions, end to end."""

from prudent.experiments.demonstration import Demonstration, demonstration_sample, run_demonstration
from prudent.experiments.reproduction import Reproduction, run_reproduction

__all__ = ["Demonstration", "Reproduction", "demonstration_sample", "run_demonstration", "run_reproduction"]
