"""Pictures of results, in scikit-learn's style: a display holds data, ``plot`` draws it."""

from prudent.plots.ladder import LadderDisplay

__all__ = ["LadderDisplay"]
