"""What Spark's own event log says of a run: tasks, and the bytes that went through the driver."""

import json
from dataclasses import dataclass
from pathlib import Path

SETTINGS = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.logBlockUpdates.enabled": "true",
}
"""Settings of Spark that make it write such a log; with `spark.eventLog.dir`, a URI."""


@dataclass(frozen=True, slots=True)
class DriverTraffic:
    """Sums over a run: tasks and the executors they ran on; bytes.

    `results` is what tasks sent back to the driver; `closures` what the driver sent to executors
    for tasks (code and contexts, as the blocks of Spark's broadcasts); `shuffled` what tasks
    handed to tasks without the driver.
    """

    jobs: int
    tasks: int
    executors: int
    results: int
    closures: int
    shuffled: int

    @property
    def through_driver(self) -> int:
        """Bytes that came or went by the driver."""
        return self.results + self.closures


def driver_traffic(folder: Path) -> DriverTraffic:
    """Sums over all event logs of a folder."""
    jobs = tasks = results = closures = shuffled = 0
    executors: set[str] = set()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            kind = event["Event"].rpartition(".")[2]
            if kind == "SparkListenerJobStart":
                jobs += 1
            elif kind == "SparkListenerTaskEnd":
                metrics = event.get("Task Metrics") or {}
                tasks += 1
                executors.add(event["Task Info"]["Executor ID"])
                results += metrics.get("Result Size", 0)
                shuffled += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
            elif kind == "SparkListenerBlockUpdated":
                closures += _broadcast_bytes(event["Block Updated Info"])
    return DriverTraffic(jobs, tasks, len(executors), results, closures, shuffled)


def _broadcast_bytes(block: dict[str, object]) -> int:
    """Bytes of a piece of a broadcast that an executor (or the driver) has got."""
    name = str(block["Block ID"])
    if not (name.startswith("broadcast_") and "_piece" in name):
        return 0
    return int(str(block.get("Memory Size") or 0)) + int(str(block.get("Disk Size") or 0))
