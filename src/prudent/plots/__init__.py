"""Pictures of results, in scikit-learn's style: a display holds data, ``plot`` draws it."""

from prudent.plots.beliefs import BeliefDisplay
from prudent.plots.chain import ChainDisplay
from prudent.plots.ladder import LadderDisplay
from prudent.plots.price import PriceDisplay
from prudent.plots.table import TableDisplay

__all__ = ["BeliefDisplay", "ChainDisplay", "LadderDisplay", "PriceDisplay", "TableDisplay"]
