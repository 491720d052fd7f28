"""Act on forecasts you only half trust.

Given a decision problem, what a forecaster guarantees and a sample of its
forecasts, Prudent returns the policy with the highest expected utility in the
worst world that the guarantee allows, that world, and a certificate for both.
"""

from prudent.lazy_exports import lazy_exports

__version__ = "0.1.0"

# Fitting a policy must not wait for the import of monitors, tables and reports.
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
