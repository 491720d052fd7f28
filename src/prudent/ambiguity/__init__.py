"""Weighted rows, test matrix, slack set and known structure: what a solver gets."""

from prudent.ambiguity.slack import Slack, SlackSet
from prudent.ambiguity.worlds import Ambiguity, build_ambiguity, evaluate_rows, first_rows

__all__ = ["Ambiguity", "Slack", "SlackSet", "build_ambiguity", "evaluate_rows", "first_rows"]
