"""What to do with a forecast, and what is certain: one answer for every face of the library."""

from prudent.advice.advising import advise
from prudent.advice.backtest import Backtest, backtest
from prudent.advice.results import Advice, Gain, Promise, Segments, Verdict, VerdictKind
from prudent.policies.horizons import UtilityBound

__all__ = [
    "Advice",
    "Backtest",
    "Gain",
    "Promise",
    "Segments",
    "UtilityBound",
    "Verdict",
    "VerdictKind",
    "advise",
    "backtest",
]
