"""The machine and the versions that a measurement was taken with; no names of hosts, users or folders."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["describe_environment", "load_average"]

_PACKAGES = ("prudent", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "highspy")


def describe_environment() -> dict[str, Any]:
    """Collect versions, processor, cores and how busy the machine was at the start."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_at_start": load_average(),
        "versions": {package: version(package) for package in _PACKAGES},
    }


def load_average() -> float:
    """Return the mean number of busy processes of the last minute; near zero on a quiet machine."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
