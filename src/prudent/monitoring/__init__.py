"""Watching a policy in production, for the moment when its guarantee stops being true."""

from prudent.monitoring.evidence import Evidence
from prudent.monitoring.monitor import Alarm, MonitorState, PolicyMonitor

__all__ = ["Alarm", "Evidence", "MonitorState", "PolicyMonitor"]
