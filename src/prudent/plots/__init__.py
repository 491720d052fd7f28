"""Pictures of policies and results: every function draws into axes and returns them."""

from prudent.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
