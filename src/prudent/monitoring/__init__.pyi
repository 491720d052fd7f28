from prudent.monitoring.monitor import MonitorState, PolicyMonitor
from prudent.monitoring.streams import Alarm, BettingProcess

__all__ = ["Alarm", "BettingProcess", "MonitorState", "PolicyMonitor"]
