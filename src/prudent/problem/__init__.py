"""Decision problems: actions and utilities, in Python or in a file."""

from prudent.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
