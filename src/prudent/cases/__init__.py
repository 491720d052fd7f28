"""Rows of forecasts and outcomes, in memory or in an engine, and what is added up over them."""
