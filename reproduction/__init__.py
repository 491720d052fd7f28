"""The paper's experiments from data to tables and figures: ``make reproduce`` or ``python -m reproduction``."""

from reproduction.run import Reproduction, run_reproduction

__all__ = ["Reproduction", "run_reproduction"]
