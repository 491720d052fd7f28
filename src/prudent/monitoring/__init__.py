"""Watching a policy in production, for the moment when its guarantee stops being true."""

from prudent.monitoring.monitor import MonitorState, PolicyMonitor
from prudent.monitoring.streams import Alarm, BettingProcess

__all__ = ["Alarm", "BettingProcess", "MonitorState", "PolicyMonitor"]
