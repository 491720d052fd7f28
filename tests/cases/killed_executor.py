"""Fit on a cluster of two executors and kill one of them; run by ``test_spark.py`` as a program."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import prudent
from prudent.errors import EngineError

PATIENCE = 90.0


def executors(application: str) -> list[int]:
    """Processes of the executors of one application."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace") if folder.name.isdigit() else ""
        except OSError:  # it has ended
            continue
        if "CoarseGrainedExecutorBackend" in words and application in words:
            found.append(int(folder.name))
    return found


def kill_one(context: Any) -> None:
    """Wait until tasks run, then kill the first executor."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage is not None and stage.numActiveTasks > 1 for stage in stages):
            os.kill(executors(context.applicationId)[0], signal.SIGKILL)
            return
        time.sleep(0.05)


def main(folder: str) -> None:
    """Print what the fit says, what is left of it, and how the next fit ends."""
    from pyspark.sql import SparkSession  # not every collection of tests has it

    builder = SparkSession.builder.master("local-cluster[2,1,512]").appName("prudent")
    options = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "1",  # else Spark tries again elsewhere, and nobody notices
        "spark.local.dir": str(Path(folder) / "spark"),
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    policy = prudent.RobustPolicy(problem, prudent.guarantees.Unbiased())
    killer = threading.Thread(target=kill_one, args=(session.sparkContext,))
    killer.start()
    try:
        endless = session.range(0, 10**13, 1, 2).selectExpr("rand(0) AS v")
        policy.fit(prudent.scan(endless, "v"))
    except EngineError as error:
        print("EngineError", error)
    killer.join()
    print("left", [name for name in vars(policy) if name.endswith("_")])
    rows = session.range(0, 1000, 1, 2).selectExpr("(id + 0.5) / 1000 AS v")
    print("afterwards", policy.fit(prudent.scan(rows, "v")).certificate_.status)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
