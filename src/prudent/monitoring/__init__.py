"""Watching a policy in production, for the moment when its guarantee stops being true."""

from prudent.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
