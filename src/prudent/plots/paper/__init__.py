"""Figures of the paper's experiments: numbers over many seeds, readable in grey."""

from prudent.plots.paper.beliefs import BeliefDisplay
from prudent.plots.paper.chain import ChainDisplay
from prudent.plots.paper.price import PriceDisplay
from prudent.plots.paper.table import TableDisplay

__all__ = ["BeliefDisplay", "ChainDisplay", "PriceDisplay", "TableDisplay"]
