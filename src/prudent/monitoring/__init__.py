"""Watching a policy in production, for the moment when its guarantee stops being true."""

from prudent.monitoring.alarms import Alarm, MonitorState
from prudent.monitoring.evidence import Evidence
from prudent.monitoring.monitor import PolicyMonitor

__all__ = ["Alarm", "Evidence", "MonitorState", "PolicyMonitor"]
