"""What a monitor says: its state, and the alarms that it raised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from prudent.writing import written

__all__ = ["Alarm", "MonitorState"]

_STREAMS = {
    "forecast drift": "forecasts have drifted to where less is guaranteed",
    "calibration": "the forecaster does not keep its guarantee any more",
    "utility": "realised utility is below what was guaranteed",
}


class MonitorState(Enum):
    """What the monitor says now."""

    HOLDING = "holding"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True)
class Alarm:
    """One guarantee-carrying quantity that was shown to be off.

    Attributes
    ----------
    stream : str
        "forecast drift", "calibration" or "utility".
    row : int
        After so many rows of that stream the evidence sufficed.
    since : int
        Rows before the likely begin: an estimate.
    size : float
        How far beyond the tolerance, in units of utility, since then: an estimate.
    time : str or None
        The time given with the batch in which it was shown.
    """

    stream: str
    row: int
    since: int
    size: float
    time: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.stream}: {_STREAMS[self.stream]}, by about {written(self.size, 3)} more than tolerated "
            f"since about row "
            f"{self.since:,}; shown at row {self.row:,}" + (f", {self.time}" if self.time else "")
        )
