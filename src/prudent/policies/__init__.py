"""Fitted objects that users hold: forecasts in, actions out, one file to ship."""

from prudent.lazy_exports import lazy_exports

# Predicting must not wait for the import of tables, files and explanations.
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
