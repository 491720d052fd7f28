from prudent.plots.policy import plot_policy
from prudent.plots.results import plot_audit, plot_backtest, plot_ladder, plot_stress_test

__all__ = ["plot_audit", "plot_backtest", "plot_ladder", "plot_policy", "plot_stress_test"]
