"""Rows of files by column name, in memory or in an engine; errors name file, row and column."""

from prudent.lazy_exports import lazy_exports
from prudent.tables.columns import columns as columns  # eagerly: importing the module would take the function's name

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
