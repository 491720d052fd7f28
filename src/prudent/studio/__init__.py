"""A local page on which a person brings forecasts, describes a decision and sees what to do."""

from prudent.studio.server import serve

__all__ = ["serve"]
